"""What the simulated card must give: the bits of its arithmetic where the interpreter of tests/cli follows, and near enough elsewhere.

A graph that lies on the card alone, in f32, is computed by corsair_interpreter.py under the plan that was compiled. A float output
below 20 dB is wrong, unless the interpreter in the same formats (the worker's `formats`) loses as much."""
import importlib.util
import math
import pathlib
import re
import subprocess
import sys

import numpy as np

LEAST_SQNR = 20.0
CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
OTHER_TYPES = re.compile(r"tensor<(?:[0-9]+x)*(?!f32)[a-z]+[0-9]*[,>]|tensor<[^>]*\?")


def sqnr(got, wanted):
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    if not np.isfinite(a).all() or not np.isfinite(b).all():
        return math.inf if np.array_equal(a, b, equal_nan=True) else -math.inf
    noise, signal = float(((a - b) ** 2).sum()), float((b ** 2).sum())
    return math.inf if noise == 0 else -math.inf if signal == 0 else 10 * math.log10(signal / noise)


def slack(elements):
    """dB that the card, which adds in another order, may lose beyond its formats where they alone lose too much.

    The noises of N elements are two draws of one distribution; 19 of 20 quotients of them (the F distribution) are below 22 dB for
    one element, 8 for four, 4 for sixteen."""
    return 3 + 20 / elements


def interpreter():
    """tests/cli/corsair_interpreter.py, whose numbers are compared with the specification's where that is at hand."""
    sys.path.insert(0, str(CHECKOUT / "tests" / "cli"))
    import corsair_interpreter
    path = CHECKOUT.parent / "shared" / "design" / "bfp_ref.py"
    if path.exists():
        spec = importlib.util.spec_from_file_location("bfp_ref", path)
        reference = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(reference)
        if difference := corsair_interpreter.differs_from(reference):
            sys.exit(f"corsair_interpreter.py and {path} differ: {difference}")
    return corsair_interpreter


class Device:
    """`inspect`: dmx-inspect."""

    def __init__(self, inspect):
        self.inspect, self.interpreter = inspect, interpreter()
        self.followed = self.outputs = 0  # variants and outputs whose bits were compared

    def bits(self, folder, inputs):
        """{output: its bits} of m.bundle and its phases, or None where the interpreter does not follow."""
        partition = (folder / "phases" / "2-partition.mlir").read_text()
        if OTHER_TYPES.search(re.sub(r"array<i64[^>]*>", "", partition)) or "dmir.region" not in partition:
            return None
        code = subprocess.run([self.inspect, folder / "m.bundle", "--what", "kernels"], capture_output=True, text=True, check=True).stdout
        try:
            with np.errstate(all="ignore"):
                expected = self.interpreter.interpret(partition, code, {path.stem: np.load(path) for path in (folder / inputs).glob("*.npy")}, folder=folder)
        except (self.interpreter.OnHost, self.interpreter.Unknown):
            return None
        self.followed += 1
        self.outputs += len(expected)
        return expected


def other_bits(got, wanted):
    """How bits differ; None where they do not."""
    wanted = np.asarray(wanted, np.float32, order="C")
    if got.shape != wanted.shape:
        return f"is {list(got.shape)}, not {list(wanted.shape)}"
    bad = got.view(np.uint32) != wanted.view(np.uint32) if got.size else np.zeros(0, bool)
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{bad.sum()} of {bad.size} elements have other bits, first {list(at)}: {got[at]!r} instead of {wanted[at]!r}"
