#!/usr/bin/env python3
"""Rows, columns, copies and elementwise kernels by the simulator's clock: what is large takes at most WITHIN times what its memory takes, a long row at
most LONG_ROWS by 32 warps or more, and longer where a machine has no clusters of blocks.

Usage: speed.py BIN"""

import json
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "fuzz"), str(TESTS)]
import onnx_file as onnx  # noqa: E402

BIN = pathlib.Path(sys.argv[1]).resolve()
ROOT = TESTS.parent
WITHIN, LONG_ROWS = 2.5, {32000: 5e-6, 50257: 6e-6, 128256: 10e-6}
FLOAT, FLOAT16 = onnx.FLOAT, 10
MEMORY = json.loads((ROOT / "schemas/cuda/h100.json").read_text())["memory"]["bytes_per_second"]["value"]


def reduced(shape, *axes):
    return [onnx.node("ReduceSum", "x axes", "y")], shape, [onnx.ints("axes", list(axes))], [1 if i in axes else size for i, size in enumerate(shape)], FLOAT


def one(kind, shape, out=FLOAT, result=None, **attributes):
    return [onnx.node(kind, "x", "y", **attributes)], shape, [], result or shape, out


def softmax(shape):
    return one("Softmax", shape, axis=1)


def layer_norm(shape):
    return [onnx.node("LayerNormalization", "x s", "y", axis=1)], shape, [onnx.floats("s", shape[1:], 1.5)], shape, FLOAT


def rms_norm(shape):
    nodes = [onnx.node("Mul", "x x", "p"), onnx.node("ReduceMean", "p", "m", axes=[1]), onnx.node("Add", "m e", "a"), onnx.node("Sqrt", "a", "r"),
             onnx.node("Div", "x r", "d"), onnx.node("Mul", "d s", "y")]  # fmt: skip
    return nodes, shape, [onnx.floats("s", shape[1:], 1.5), onnx.floats("e", [1], 1e-5)], shape, FLOAT


def argmax(shape):
    return one("ArgMax", shape, onnx.INT64, [shape[0], 1], axis=1)


def top(shape, k):
    return [onnx.node("TopK", "x k", "y i", axis=1)], shape, [onnx.ints("k", [k])], [shape[0], k], FLOAT


def gelu(shape):
    nodes = [onnx.node("Div", "x q", "a"), onnx.node("Erf", "a", "b"), onnx.node("Add", "b o", "c"), onnx.node("Mul", "x c", "d"), onnx.node("Mul", "d h", "y")]
    return nodes, shape, [onnx.floats("q", [1], 1.41421356), onnx.floats("o", [1], 1), onnx.floats("h", [1], 0.5)], shape, FLOAT


# name -> (nodes, shape of x, weights, shape and type of y), elements that are read and written
LARGE = {
    "softmax 4096 x 1024": softmax([4096, 1024]),
    "layer norm 4096 x 1024": layer_norm([4096, 1024]),
    "rms norm 4096 x 1024": rms_norm([4096, 1024]),
    "argmax 4096 x 1024": argmax([4096, 1024]),
    "sum along axis 1 of 4096 x 1024": reduced([4096, 1024], 1),
    "sum along axis 0 of 4096 x 1024": reduced([4096, 1024], 0),
    "sum along axis 0 of 32768 x 64": reduced([32768, 64], 0),
    "sum along axis 1 of 64 x 256 x 256": reduced([64, 256, 256], 1),
    "transpose of 2048 x 2048": one("Transpose", [2048, 2048], perm=[1, 0]),
    "square of 16 M": ([onnx.node("Mul", "x x", "y")], [4096, 4096], [], [4096, 4096], FLOAT),
    "gelu of 16 M": gelu([4096, 4096]),
    "cast of 16 M": one("Cast", [4096, 4096], FLOAT16, to=FLOAT16),
}
LONG = {"softmax": softmax, "layer norm": layer_norm, "rms norm": rms_norm, "argmax": argmax, "sum": lambda shape: reduced(shape, 1)}
WIDTHS = {FLOAT: 4, FLOAT16: 2, onnx.INT64: 8}


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name} ended with {done.returncode}: {(done.stdout + done.stderr).strip()[-400:]}")
    return done.stdout


def model(case):
    nodes, shape, weights, result, out = case
    outputs = [onnx.info("y", out, result)] + ([onnx.info("i", onnx.INT64, result)] if b"TopK" in nodes[0] else [])
    return onnx.model(nodes, [onnx.info("x", FLOAT, shape)], outputs, weights=weights)


def launch(place, case, level="sm_90a"):
    """The only kernel of a case, as the clock has it."""
    (place / "m.onnx").write_bytes(model(case))
    run(BIN / "dmxc", place / "m.onnx", "-q", "-t", f"cuda:{level}", "--require-target", "cuda:100", "-o", place / "m.bundle")
    run(BIN / "dmx-run", place / "m.bundle", "--random-inputs", 1, "-q", "--device-opt", "cuda.sim=on", "--device-opt", f"cuda.report={place}/r.json",
        "--device-opt", "cuda.sim_blocks=3")  # fmt: skip
    kernels = json.loads((place / "r.json").read_text())["last"]
    if len(kernels) != 1:
        raise RuntimeError(f"{len(kernels)} kernels, not one")
    return kernels[0]["main"]


def count(shape):
    total = 1
    for size in shape:
        total *= size
    return total


def large(place, bad):
    for name, case in LARGE.items():
        main = launch(place, case)
        nodes, shape, _, result, out = case
        memory = (4 * count(shape) + WIDTHS[out] * count(result)) / MEMORY
        times = main["seconds"] / memory
        wrong = times > WITHIN
        bad += [name] if wrong else []
        print(f"{'FAIL' if wrong else 'ok  '} {name}: {1e6 * main['seconds']:.1f} us, {times:.2f} times its memory's", flush=True)


def long_rows(place, bad):
    for size, most in LONG_ROWS.items():
        for name, case in LONG.items():
            main = launch(place, case([1, size]))
            warps = main["blocks"] * main["threads_a_block"] // 32
            wrong = main["seconds"] > most or warps < 32
            bad += [name] if wrong else []
            print(f"{'FAIL' if wrong else 'ok  '} {name} of 1 x {size}: {1e6 * main['seconds']:.2f} us by {warps} warps", flush=True)


def without_clusters(place, bad):
    """The machine file decides: where a row is one block's it takes longer."""
    machine = json.loads((ROOT / "schemas/cuda/h100.json").read_text())
    machine["block"]["cluster"]["value"] = 1
    (place / "alone.json").write_text(json.dumps(machine))
    main = launch(place, softmax([1, 32000]), place / "alone.json")
    wrong = main["blocks"] != 1 or main["seconds"] < LONG_ROWS[32000]
    bad += ["alone"] if wrong else []
    print(f"{'FAIL' if wrong else 'ok  '} softmax of 1 x 32000 without clusters: {1e6 * main['seconds']:.2f} us by {main['blocks']} blocks", flush=True)


def tops(place, bad):
    """No bound by memory is asked of the largest k: each is found after the one before it."""
    for shape, k, most in ([4096, 1024], 8, 20e-6), ([1, 32000], 50, 60e-6):
        main = launch(place, top(shape, k))
        wrong = main["seconds"] > most
        bad += ["top"] if wrong else []
        print(f"{'FAIL' if wrong else 'ok  '} the largest {k} of {shape}: {1e6 * main['seconds']:.1f} us", flush=True)


def main():
    bad = []
    with tempfile.TemporaryDirectory(prefix="dmxc-speed-") as place:
        for part in large, long_rows, without_clusters, tops:
            part(pathlib.Path(place), bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
