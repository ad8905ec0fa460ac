"""The rule of the table, written once: what of a model's outputs counts as right."""

import numpy as np

RELATIVE, ABSOLUTE, OF_PEER = 2e-3, 2e-4, 3.0


def real(values):
    """What is compared: bf16 as dmx-run writes it (two bytes without a type) as float."""
    if values.dtype == np.dtype("V2"):
        return (values.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return values.astype(np.float64) if values.dtype.kind in "fiub" else values


def is_float(name):
    return name.startswith(("float", "bfloat")) or name in ("V2", "|V2")


def excess(got, reference):
    """How far the worst element is outside of 2e-3 |ref| + 2e-4 max |ref|: at most 1 is right. NaN and infinities must agree."""
    got, reference = real(got), real(reference)
    finite = np.isfinite(reference)
    if not np.array_equal(np.isfinite(got), finite) or not np.array_equal(got[~finite], reference[~finite], equal_nan=True):
        return np.inf
    if not finite.any():
        return 0.0
    got, reference = got[finite], reference[finite]
    allowed = RELATIVE * np.abs(reference) + ABSOLUTE * np.abs(reference).max()
    error = np.abs(got - reference)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(error == 0, 0.0, error / allowed).max())


def worst(got, reference):
    """The largest error, as a share of the largest reference."""
    got, reference = real(got), real(reference)
    top = np.abs(reference[np.isfinite(reference)]).max(initial=0)
    with np.errstate(invalid="ignore"):
        return float(np.nanmax(np.abs(got - reference), initial=0) / top) if top else float(np.nanmax(np.abs(got), initial=0))


def index_error(got, reference, scores, slack):
    """A sentence where integers differ although the scores that ordered them do not explain it. Scores are those of the reference:
    of the integers' shape, where neighbours may change places, or with one axis more, which the integers index."""
    differs = got != reference
    if not differs.any():
        return ""
    if scores is None:
        return f"{int(differs.sum())} of {differs.size} integers differ"
    scores = real(scores)
    near = 2 * slack * (RELATIVE * np.abs(scores) + ABSOLUTE * np.abs(scores).max(initial=0))
    if scores.shape == got.shape:
        for place in zip(*np.nonzero(differs)):
            row, at = scores[place[:-1]], place[-1]
            around = [other for other in (at - 1, at + 1) if 0 <= other < row.size]
            if not any(abs(row[at] - row[other]) <= near[place] for other in around):
                return f"integer at {tuple(map(int, place))} differs and its score stands alone"
        return ""
    for place in zip(*np.nonzero(differs)):
        ours, theirs = int(got[place]), int(reference[place])
        row, room = scores[place], near[place]
        if not 0 <= ours < row.shape[-1] or abs(row[ours] - row[theirs]) > room[theirs]:
            return f"integer at {tuple(map(int, place))} differs and its score is not as good"
    return ""


def check(got, reference, expected, peer=None, scores=None):
    """What is wrong with a set of outputs, "" for nothing, and its worst error. expected: [dtype, shape] of each; peer: what another
    implementation of the same arithmetic gave; scores: {integer output: float output}."""
    if len(got) != len(reference):
        return f"{len(got)} outputs instead of {len(reference)}", 0.0
    largest = 0.0
    for number, (ours, theirs, (dtype, shape)) in enumerate(zip(got, reference, expected)):
        name = "bfloat16" if ours.dtype == np.dtype("V2") else str(ours.dtype)
        if list(ours.shape) != list(shape):
            return f"output {number} has shape {list(ours.shape)} instead of {list(shape)}", largest
        if name != dtype:
            return f"output {number} is {name} instead of {dtype}", largest
        other = peer[number] if peer is not None and number < len(peer) and peer[number].shape == ours.shape else None
        if not is_float(dtype):
            score = (scores or {}).get(str(number))
            slack = 1.0 if peer is None or score is None else max(1.0, OF_PEER * excess(peer[int(score)], reference[int(score)]))
            if other is not None and np.array_equal(ours, other):
                continue  # what the file computes, whatever its rounding does to the framework's integers
            sentence = index_error(ours, theirs, None if score is None else reference[int(score)], slack)
            if sentence:
                return f"output {number}: {sentence}", largest
            continue
        largest = max(largest, worst(ours, theirs))
        ratio = excess(ours, theirs)
        allowed = 1.0 if other is None else max(1.0, OF_PEER * excess(other, theirs))
        if not ratio <= allowed:
            return (
                f"output {number}: error {worst(ours, theirs):.3g} of the largest, {ratio:.3g} x what is allowed"
                + (f" (the peer's own: {allowed / OF_PEER:.3g} x)" if allowed > 1 else ""),
                largest,
            )
    return "", largest
