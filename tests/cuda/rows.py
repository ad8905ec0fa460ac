#!/usr/bin/env python3
"""Rows that threads of a block, or of several, share, against numpy in f64: reductions, extremes and their places, softmax, normalisation; types; rows of 64 to
130,000 elements, of a length that a run tells, over several axes; ties, NaN and infinities; the same bits for any order of turns.

Usage: rows.py BIN. A plain run takes one of SHARE cases, with DMXC_LONG=1 all. Exit 77 where numpy is not there."""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile

if importlib.util.find_spec("numpy") is None:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

import numpy as np

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "fuzz"), str(TESTS)]
import onnx_file as onnx  # noqa: E402
from sampling import sample  # noqa: E402

BIN = pathlib.Path(sys.argv[1]).resolve()
SHARE = 6
FLOAT16, DOUBLE, INT32, BOOL = 10, 11, 6, 9
TYPES = {onnx.FLOAT: np.float32, FLOAT16: np.float16, DOUBLE: np.float64, INT32: np.int32, onnx.INT64: np.int64}
# (shape, axes): rows along the last axis, several axes, one in the middle, few long ones that blocks share; rows beside each other.
SHAPES = [([5, 64], [1]), ([3, 65], [1]), ([7, 1000], [1]), ([1, 32001], [1]), ([2, 70000], [1]), ([3, 4, 50], [1, 2]), ([2, 300, 3], [1]), ([4, 130, 130], [0, 2]),
          ([1, 130000], [1]), ([700, 40], [0]), ([3, 257, 33], [1]), ([5000, 7], [0])]
BOUNDED = "length within bounds"
REDUCED = {"ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min, "ReduceProd": np.prod, "ReduceL2": lambda x, **how: np.sqrt(np.sum(x * x, **how))}


def softmax(x, axis, log=False):
    shifted = x - x.max(axis=axis, keepdims=True)
    total = np.exp(shifted).sum(axis=axis, keepdims=True)
    return shifted - np.log(total) if log else np.exp(shifted) / total


def normalized(x, axes, rms=False):
    centred = x if rms else x - x.mean(axis=axes, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=axes, keepdims=True) + 1e-5)


def cases():
    """(name, nodes, type, shape, weights, type of the result, what it computes)"""
    for shape, axes in SHAPES:
        for kind, function in REDUCED.items():
            for keeps in 0, 1:
                how = {"axis": tuple(axes), "keepdims": bool(keeps)}
                older = kind != "ReduceSum"
                nodes = [onnx.node(kind, "x" if older else "x axes", "y", keepdims=keeps, **({"axes": axes} if older else {}))]
                yield f"{kind} {shape} {axes} {keeps}", nodes, onnx.FLOAT, shape, [] if older else [onnx.ints("axes", axes)], None, lambda x, f=function, how=how: f(x, **how)
        if len(axes) == 1:
            for kind, function in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
                for last in 0, 1:
                    place = lambda x, f=function, a=axes[0], last=last: np.expand_dims(x.shape[a] - 1 - f(np.flip(x, a), a) if last else f(x, a), a)  # noqa: E731
                    yield f"{kind} {shape} last {last}", [onnx.node(kind, "x", "y", axis=axes[0], select_last_index=last)], onnx.FLOAT, shape, [], onnx.INT64, place
            for kind in "Softmax", "LogSoftmax":
                yield f"{kind} {shape}", [onnx.node(kind, "x", "y", axis=axes[0])], onnx.FLOAT, shape, [], None, lambda x, a=axes[0], k=kind: softmax(x, a, k == "LogSoftmax")
        if axes[-1] == len(shape) - 1 and axes == list(range(axes[0], len(shape))):
            size = [shape[axis] for axis in axes]
            yield (f"LayerNormalization {shape} {axes}", [onnx.node("LayerNormalization", "x s", "y", axis=axes[0])], onnx.FLOAT, shape, [onnx.floats("s", size, 1.5)], None,
                   lambda x, a=tuple(axes): 1.5 * normalized(x, a))  # fmt: skip
    for kind in FLOAT16, DOUBLE, INT32, onnx.INT64:
        for name in ("ReduceSum", "ReduceMax", "ReduceMean") + (("Softmax",) if kind in (FLOAT16, DOUBLE) else ("ArgMax",)):
            shape, weights, out = [3, 777], [], onnx.INT64 if name == "ArgMax" else None
            if name == "Softmax":
                nodes, what = [onnx.node(name, "x", "y", axis=1)], lambda x: softmax(x, 1)
            elif name == "ArgMax":
                nodes, what = [onnx.node(name, "x", "y", axis=1)], lambda x: np.argmax(x, axis=1)[:, None]
            elif name == "ReduceSum":
                nodes, weights, what = [onnx.node(name, "x axes", "y")], [onnx.ints("axes", [1])], lambda x: x.sum(axis=1, keepdims=True)
            else:
                nodes = [onnx.node(name, "x", "y", axes=[1])]
                what = (lambda x: x.max(axis=1, keepdims=True)) if name == "ReduceMax" else lambda x: np.trunc(x.mean(axis=1, keepdims=True)) if x.dtype.kind == "i" else x.mean(axis=1, keepdims=True)
            yield f"{name} of {TYPES[kind].__name__}", nodes, kind, shape, weights, out, what
    yield from top_cases()
    # What stands before and behind is computed by the same kernel.
    fused = [onnx.node("Mul", "x x", "p"), onnx.node("ReduceSum", "p axes", "s"), onnx.node("Sqrt", "s", "r"), onnx.node("Relu", "r", "y")]
    yield "a sum of squares, its root", fused, onnx.FLOAT, [5, 3000], [onnx.ints("axes", [1])], None, lambda x: np.sqrt((x * x).sum(axis=1, keepdims=True))
    open_rows = [onnx.node("Softmax", "x", "p", axis=1), onnx.node("Mul", "p x", "y")]
    yield "softmax of an open length", open_rows, onnx.FLOAT, [3, "n"], [], None, lambda x: softmax(x, 1) * x
    # Of a length that is known to be long: blocks share a row, however long it is.
    for kind, nodes, what in (("Softmax", [onnx.node("Softmax", "x", "y", axis=1)], lambda x: softmax(x, 1)), ("Max", [onnx.node("ReduceMax", "x", "y", axes=[1])], lambda x: x.max(axis=1, keepdims=True)),
                              ("ArgMax", [onnx.node("ArgMax", "x", "y", axis=1)], lambda x: np.argmax(x, axis=1)[:, None])):  # fmt: skip
        yield f"{kind} of a {BOUNDED}", nodes, onnx.FLOAT, [2, "n"], [], onnx.INT64 if kind == "ArgMax" else None, what
    yield "a maximum of an open length", [onnx.node("ReduceMax", "x", "y", axes=[1])], onnx.FLOAT, [3, "n"], [], None, lambda x: x.max(axis=1, keepdims=True)


def top_cases():
    """The k largest and smallest, and where they are: of equal ones the first; NaN is above every number."""
    for shape, axis, k in ([3, 70], 1, 70), ([5, 1000], 1, 8), ([2, 5000], 1, 33), ([1, 60000], 1, 5), ([4, 300, 3], 1, 6), ([2, 64], 1, 1):
        for kind in onnx.FLOAT, FLOAT16, DOUBLE, INT32, onnx.INT64:
            for largest in 1, 0:
                nodes = [onnx.node("TopK", "x k", "v i", axis=axis, largest=largest), onnx.node("Cast", "i", "c", to=kind), onnx.node("Concat", "v c", "y", axis=axis)]
                yield f"TopK {k} of {shape} {TYPES[kind].__name__} {largest}", nodes, kind, shape, [onnx.ints("k", [k])], None, lambda x, a=axis, k=k, f=largest: top(x, a, k, f)
    nodes = [onnx.node("TopK", "x k", "v i", axis=1), onnx.node("Cast", "i", "y", to=onnx.FLOAT)]
    yield "TopK of an open length", nodes, onnx.FLOAT, [3, "n"], [onnx.ints("k", [9])], None, lambda x: top(x, 1, 9, 1)[:, 9:]


def top(x, axis, k, largest):
    """Values, then places."""
    key = np.where(np.isnan(x), np.inf, x) if x.dtype.kind == "f" else x.astype(object)
    above = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    place = np.lexsort((-key, ~above) if largest else (key, above), axis=axis)  # stable: of equal ones the first
    place = np.take(place, range(k), axis)
    return np.concatenate([np.take_along_axis(x, place, axis), place.astype(x.dtype)], axis)


def values(random, name, kind, shape):
    shape = [{"n": 40007 if BOUNDED in name else 1501}.get(size, size) for size in shape]
    x = random.integers(-40, 41, shape)
    if kind in (INT32, onnx.INT64):
        return x.astype(TYPES[kind])
    x = (x / 16).astype(TYPES[kind])
    if "Prod" in name:
        x = np.where(x < 0, -1, 1) * (1 + 0 * x) * 1.0
        x.reshape(-1)[:: max(x.size // 40, 1)] = 1.5
    if "TopK" in name and x.dtype.kind == "f":
        x.reshape(-1)[random.integers(0, x.size, 4)] = [np.inf, -np.inf, np.nan, -0.0]
    if "Arg" in name or "Max" in name:
        flat = x.reshape(-1)
        flat[random.integers(0, flat.size, 3)] = np.inf
    return np.ascontiguousarray(x.astype(TYPES[kind]))


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name} ended with {done.returncode}: {(done.stdout + done.stderr).strip()[-400:]}")
    return done.stdout


def wrong(place, number, case):
    name, nodes, kind, shape, weights, out, what = case
    x = values(np.random.default_rng(number), name, kind, shape)
    wanted = np.asarray(what(x.astype(np.float64) if x.dtype.kind == "f" else x))
    dims = [size if wanted.ndim != len(shape) or shape[i] != "n" or wanted.shape[i] == 1 else "n" for i, size in enumerate(wanted.shape)]
    model = onnx.model(nodes, [onnx.info("x", kind, shape)], [onnx.info("y", out or kind, dims)], weights=weights)
    (place / "m.onnx").write_bytes(model)
    np.save(place / "x.npy", x)
    strategies = place / "p.mlir"
    bounds = ["--dim", "n=30000..100000"] if BOUNDED in name else []
    run(BIN / "dmxc", place / "m.onnx", "-q", *bounds, "-t", "cuda:sm_90a", "--emit", "partition", "-o", strategies)
    if "-by-team" not in strategies.read_text() or (bounds and "blocks = 8" not in strategies.read_text()):
        return "no kernel of it is by a team, or not by one of several blocks"
    run(BIN / "dmxc", place / "m.onnx", "-q", *bounds, "-t", "cuda:sm_90a", "--require-target", "cuda:100", "-o", place / "m.bundle")
    seen = []
    for seed in 0, number + 1:
        run(BIN / "dmx-run", place / "m.bundle", "-q", "--input", f"x={place}/x.npy", "--output-dir", place / "out", "--device-opt", "cuda.sim=on",
            "--device-opt", f"cuda.sim_seed={seed}")  # fmt: skip
        seen.append(np.load(place / "out" / "out_y.npy"))
    if seen[0].tobytes() != seen[1].tobytes():
        return "other bits in another order of turns"
    y = seen[0]
    if y.shape != wanted.shape:
        return f"a result of {y.shape}, not {wanted.shape}"
    if y.dtype.kind != "f":
        return "" if np.array_equal(y, wanted) else f"{np.sum(y != wanted)} of {y.size} integers differ"
    step = {np.float16: 2.0**-10, np.float32: 2.0**-22, np.float64: 2.0**-50}[y.dtype.type]
    # Each sum is a tree of the threads' own; 16 elements' chains or so.
    bound = step * 16 * np.maximum(np.abs(wanted), 1 if kind != DOUBLE else 1) + (step * np.abs(x.astype(np.float64)).sum() / 64 if "Sum" in name or "Mean" in name else 0)
    with np.errstate(invalid="ignore"):
        good = (np.abs(y.astype(np.float64) - wanted) <= bound) | (y == wanted) | (np.isnan(y) & np.isnan(wanted))
    return "" if good.all() else f"{np.sum(~good)} of {y.size} differ, by up to {np.nanmax(np.abs(y.astype(np.float64) - wanted)):.3g}"


def main():
    bad, chosen = 0, sample(enumerate(cases()), SHARE)
    for number, case in chosen:
        with tempfile.TemporaryDirectory(prefix="dmxc-rows-") as place:
            try:
                said = wrong(pathlib.Path(place), number, case)
            except RuntimeError as error:
                said = str(error)
        if said:
            bad += 1
            print(f"FAIL {case[0]}: {said}", flush=True)
    print(f"{len(chosen)} cases, {bad} of them wrong")
    return 1 if bad else 0


sys.exit(main())
