"""Cases of EmbedLayerNormalization, GroupNorm and the forms of Gelu."""
from build import Cases, Random, Tensor, held, np
from definitions_norm import DEFINITIONS

CASES = Cases(DEFINITIONS)


def embed(variant, batch=2, length=4, hidden=8, segments=True, mask=None, positions=None, results=(1, 1), kind="f32", constant=True,
          sets=None, **more):
    """`mask`: "ends" (ones, then zeros), "full", "holes" (a zero between ones) or "words" (other numbers too); `positions`: the extent of
    the batch."""
    def one(batch, length):
        def make(r):
            w = Random(variant)
            keep = held if constant else (lambda t: t)
            ids = lambda high, *shape: r.integers("i32", 0, high, *shape)
            shown = {None: lambda: None, "full": lambda: np.ones((batch, length)),
                     "ends": lambda: np.arange(length) < np.arange(length, length - batch, -1)[:, None],
                     "holes": lambda: np.where(np.arange(length) == 1, 0, np.ones((batch, length))),
                     "words": lambda: r.random.integers(-1, 3, (batch, length))}[mask]()
            operands = [ids(19, batch, length), ids(1, batch, length) if segments else None, keep(w.normal(kind, 20, hidden)),
                        keep(w.normal(kind, 9, hidden)),
                        keep(w.normal(kind, 2, hidden)) if segments else None, keep(w.normal(kind, hidden)), keep(w.normal(kind, hidden)),
                        Tensor("i32", shown) if mask else None, ids(8, positions, length) if positions else None]
            return operands
        return make
    CASES.add("EmbedLayerNormalization", variant, [one(*s) for s in sets] if sets else one(batch, length), results, **more)


embed("plain")
embed("no_segments", segments=False)
embed("epsilon", _epsilon=0.1)
embed("output_alone", results=(1,))
embed("mask", mask="ends")
embed("mask_full", mask="full", _mask_index_type=1)
embed("mask_holes", mask="holes")
embed("mask_words", batch=5, length=9, mask="words")
embed("mask_none", _mask_index_type=0, group="extended")
embed("mask_unread", mask="ends", results=(1,))
embed("sum", results=(1, 1, 1), mask="ends")
embed("sum_alone", results=(1, 0, 1))
embed("positions", positions=2)
embed("positions_shared", positions=1)
embed("positions_no_segments", positions=2, segments=False, mask="ends")
embed("everything", positions=2, mask="ends", results=(1, 1, 1), _epsilon=1e-5)
embed("tables_at_run", constant=False)
embed("f16", kind="f16", mask="ends")
embed("open", sets=[(1, 3), (2, 6)])
embed("open_mask", sets=[(1, 3), (2, 6)], mask="ends")


def group(op, variant, shape=(2, 5, 4, 8), groups=4, activation=0, last=None, skip="same", bias=False, results=(1,), kind="f32",
          gamma="f32", constant=True, sets=None, **more):
    if last is not None:
        more["_channels_last"] = last

    def one(shape):
        def make(r):
            w = Random(variant)
            channels = shape[1] if last == 0 else shape[-1]
            keep = held if constant else (lambda t: t)
            operands = [r.normal(kind, *shape), keep(w.normal(gamma, channels)), keep(w.normal(gamma, channels))]
            if op == "SkipGroupNorm":
                ones = (shape[0], channels, 1, 1) if last == 0 else (shape[0], 1, 1, channels)
                operands += [r.normal(kind, *{"same": shape, "ones": ones, "flat": (shape[0], channels)}[skip]),
                             keep(w.normal(kind, channels)) if bias else None]
            return operands
        return make
    CASES.add(op, variant, [one(s) for s in sets] if sets else one(shape), results, _groups=groups, _activation=activation, **more)


for op in ("GroupNorm", "SkipGroupNorm"):
    group(op, "plain")
    group(op, "silu", activation=1)
    group(op, "last", last=1)
    group(op, "first", (2, 8, 5, 4), last=0)
    group(op, "first_silu", (2, 8, 5, 4), last=0, activation=1)
    group(op, "one_group", groups=1)
    group(op, "group_a_channel", groups=8)
    group(op, "epsilon", _epsilon=0.5)
    group(op, "vectors_at_run", constant=False)
    group(op, "f16", kind="f16")
    group(op, "f16_vectors", kind="f16", gamma="f16", activation=1)
    group(op, "open", sets=[(1, 3, 4, 8), (2, 5, 6, 8)], activation=1)
group("SkipGroupNorm", "sum", results=(1, 1))
group("SkipGroupNorm", "bias", bias=True, results=(1, 1))
group("SkipGroupNorm", "bias_first", (2, 8, 5, 4), last=0, bias=True, results=(1, 1), activation=1)
group("SkipGroupNorm", "skip_ones", skip="ones", bias=True)
group("SkipGroupNorm", "skip_flat", skip="flat", bias=True, results=(1, 1))
group("SkipGroupNorm", "skip_flat_first", (2, 8, 5, 4), last=0, skip="flat")
group("SkipGroupNorm", "skip_ones_first", (2, 8, 5, 4), last=0, skip="ones", results=(1, 1))


def gelu(op, variant, shape=(2, 3, 8), bias=False, kind="f32", constant=True, sets=None, **more):
    def one(shape):
        def make(r):
            vector = Random(variant).normal(kind, shape[-1])
            return [r.normal(kind, *shape, size=2), *([held(vector) if constant else vector] if bias else [])]
        return make
    CASES.add(op, variant, [one(s) for s in sets] if sets else one(shape), **more)


for op, bias, kinds in (("Gelu", False, ("f16", "f64", "bf16")), ("BiasGelu", True, ("f16", "f64", "bf16")),
                        ("FastGelu", False, ("f16", "f64", "bf16")),
                        ("QuickGelu", False, ("f16", "f64", "bf16")), ("BiasSplitGelu", True, ("f16",))):
    gelu(op, "plain", bias=bias)
    gelu(op, "wide", (1, 3, 70), bias=bias)
    gelu(op, "one_row", (1, 1, 16), bias=bias)
    if op != "BiasSplitGelu":  # "(N, S, D)"
        gelu(op, "rank4", (2, 3, 2, 8), bias=bias)
        gelu(op, "rank1", (9,), bias=bias)
    gelu(op, "open", bias=bias, sets=[(1, 1, 8), (2, 5, 8)])
    for kind in kinds:
        rough = {"tolerance": (1e-5, 1e-5)} if (op, kind) == ("FastGelu", "f64") else {}  # its text has six digits
        gelu(op, kind, bias=bias, kind=kind, **rough)
    if bias:
        gelu(op, "bias_at_run", bias=True, constant=False)
gelu("FastGelu", "bias", bias=True)
gelu("FastGelu", "bias_f16", bias=True, kind="f16")
gelu("FastGelu", "bias_at_run", bias=True, constant=False)
gelu("QuickGelu", "alpha", _alpha=1.0)
gelu("QuickGelu", "alpha_default", _alpha=1.702)
