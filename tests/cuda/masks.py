#!/usr/bin/env python3
"""Attention whose mask is a rule, on the simulator of GPUs, no op on the host, against numpy: known and open sizes, a window, lengths that an
operand brings, rows that see nothing. Usage: masks.py BIN. Exit 77 where numpy is not there."""

import importlib.util
import pathlib
import subprocess
import sys

if importlib.util.find_spec("numpy") is None:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / part) for part in ("fuzz", "cuda")]
import make_corpus as onnx  # noqa: E402
from attempts import Attempts  # noqa: E402
from models import machine  # noqa: E402

BIN = pathlib.Path(sys.argv[1]).resolve()
HEADS, DEPTH = 2, 8
LEAST = np.finfo(np.float32).min


def constant(name, values, dtype):
    values = np.asarray(values)
    return onnx.tensor(name, dtype, list(values.shape), raw=values.tobytes())


def model(rows, columns, keep, fill, inputs=(), weights=()):
    """softmax(q k where `keep`, else fill) v; `keep` are nodes over places i and j, whose last output is keep."""
    shape = lambda name, dims, dtype=onnx.FLOAT: onnx.info(name, dtype, dims)
    size = lambda of, axis, out: [onnx.node("Shape", of, out + "n", start=axis, end=axis + 1), onnx.node("Squeeze", out + "n", out + "s"),
                                  onnx.node("Range", f"zero {out}s one", out + "r")]  # fmt: skip
    nodes = [*size("q", 2, "i"), *size("k", 3, "j"), onnx.node("Unsqueeze", "ir last", "i"), onnx.node("Identity", "jr", "j"), *keep,
             onnx.node("MatMul", "q k", "s"), onnx.node("Where", "keep s fill", "m"), onnx.node("Softmax", "m", "w", axis=-1),
             onnx.node("MatMul", "w v", "y")]  # fmt: skip
    fixed = [constant("zero", np.int64(0), onnx.INT64), constant("one", np.int64(1), onnx.INT64), constant("last", np.array([1]), onnx.INT64),
             constant("fill", np.float32(fill), onnx.FLOAT), *weights]  # fmt: skip
    given = [shape("q", [1, HEADS, rows, DEPTH]), shape("k", [1, HEADS, DEPTH, columns]), shape("v", [1, HEADS, columns, DEPTH]),
             *[shape(*one) for one in inputs]]  # fmt: skip
    return onnx.model(nodes, given, [onnx.info("y", onnx.FLOAT, None)], weights=fixed)


CAUSAL = [onnx.node("LessOrEqual", "j i", "keep")]
WINDOW = [onnx.node("LessOrEqual", "j i", "a"), onnx.node("Sub", "i wide", "e"), onnx.node("Greater", "j e", "b"), onnx.node("And", "a b", "keep")]
FEW = [onnx.node("Less", "j few", "keep")]
BEHIND = [onnx.node("Greater", "j i", "keep")]  # the last row sees nothing
WIDE = [constant("wide", np.int64(5), onnx.INT64)]
# name: model, its rule, sizes of runs, what is kept of them, what else a run is given
CASES = {
    "causal": (model(20, 20, CAUSAL, -np.inf), "j <= i", [(20, 20)], lambda i, j: j <= i, {}),
    "causal of open sizes": (model("s", "t", CAUSAL, LEAST), "j <= i", [(1, 1), (17, 9), (9, 33)], lambda i, j: j <= i, {}),
    "window": (model("s", "s", WINDOW, LEAST, weights=WIDE), "j <= i and i <= j + 4", [(3, 3), (30, 30)], lambda i, j: (j <= i) & (j > i - 5), {}),
    "few keys": (model(6, "t", FEW, LEAST, [("few", [1, 1], onnx.INT64)]), "j < 'few'", [(6, 12), (6, 40)], lambda i, j: j < 11,
                 {"few": np.array([[11]])}),
    "a blind row": (model(12, 12, BEHIND, LEAST), "i < j", [(12, 12)], lambda i, j: j > i, {}),
}  # fmt: skip


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0].name} ended with {done.returncode}: {done.stderr.strip()[-400:]}")


def wanted(q, k, v, keep):
    scores = np.where(keep, q.astype(np.float64) @ k, LEAST)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ v


def check(place, case):
    text, rule, sizes, kept, more = case
    (place / "m.onnx").write_bytes(text)
    target = ["-q", "-t", "cuda:sm_90a", "--require-target", "cuda:100"]
    run(BIN / "dmxc", place / "m.onnx", *target, "-o", place / "m.bundle", "--sparsity-report", place / "r.txt")
    report = (place / "r.txt").read_text()
    if f"rule       {rule}\n" not in report:
        raise RuntimeError(f"the rule is not {rule}: {report}")
    random = np.random.default_rng(1)
    for rows, columns in sizes:
        shapes = {"q": (1, HEADS, rows, DEPTH), "k": (1, HEADS, DEPTH, columns), "v": (1, HEADS, columns, DEPTH)}
        values = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        words = []
        for name, value in (values | more).items():
            np.save(place / f"{name}.npy", value)
            words += ["--input", f"{name}={place}/{name}.npy"]
        run(BIN / "dmx-run", place / "m.bundle", *words, "--output", f"y={place}/y.npy", "-q", *machine([]))
        keep = kept(np.arange(rows)[:, None], np.arange(columns)[None])
        got, expected = np.load(place / "y.npy"), wanted(**values, keep=keep)
        if got.shape != expected.shape or not np.allclose(got, expected, rtol=1e-4, atol=1e-5):
            raise RuntimeError(f"{rows} rows and {columns} keys differ by {np.abs(got - expected).max()}")


def main():
    attempts = Attempts()
    for name, case in CASES.items():
        attempts.run(name, check, case)
    return attempts.status()


if __name__ == "__main__":
    sys.exit(main())
