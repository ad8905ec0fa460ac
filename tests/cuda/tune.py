#!/usr/bin/env python3
"""dmxc tune -t cuda measures by the simulator's clock (cuda.report): what it finds of a product, a convolution and a sum of rows takes no more clocks
than the default, the clocks that its database says, and computes the same bits.

Usage: tune.py BIN. A plain run makes 6 trials a region, with DMXC_LONG=1 all of them. Exit 77 where numpy is not there."""

import importlib.util
import json
import pathlib
import re
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
from sampling import LONG  # noqa: E402

BIN = pathlib.Path(sys.argv[1]).resolve()
TARGET = ["-t", "cuda:sm_90a", "--numerics", "bf16", "-q"]
TRIALS = 64 if LONG else 6


def eighths(random, *shape):
    """Values whose products and sums are exact in any order."""
    return random.integers(-16, 17, shape).astype(np.float32) / 8


def cases(random):
    """(name, node, input, weight): 64 columns or pixels more than a tile has, so that tiles differ in rounds and padding."""
    yield "product", onnx.node("MatMul", "x w", "y"), eighths(random, 200, 320), eighths(random, 320, 136)
    yield "convolution", onnx.node("Conv", "x w", "y", pads=[1, 1, 1, 1]), eighths(random, 1, 16, 10, 10), eighths(random, 72, 16, 3, 3)
    yield "rows", onnx.node("ReduceSum", "x w", "y", keepdims=0), eighths(random, 40, 3000), np.array([1], np.int64)


def run(*command, code=0):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=1200)
    if done.returncode != code:
        raise RuntimeError(f"{pathlib.Path(command[0]).name} ended with {done.returncode}: {done.stderr[-800:]}")
    return done.stdout


def measured(bundle, place, value):
    """(clocks of all launches, the result)"""
    np.save(place / "x.npy", value)
    run(BIN / "dmx-run", bundle, "-q", "--input", f"x={place}/x.npy", "--output", f"y={place}/y.npy", "--device-opt", "cuda.sim=on",
        "--device-opt", f"cuda.report={place}/r.json")  # fmt: skip
    return sum(kernel["main"]["clocks"] for kernel in json.loads((place / "r.json").read_text())["last"]), np.load(place / "y.npy")


def check(place, node, value, weight):
    """What was found, in words."""
    place.mkdir()
    kind = onnx.INT64 if weight.dtype == np.int64 else onnx.FLOAT
    model = onnx.model([node], [onnx.info("x", onnx.FLOAT, value.shape)], [onnx.info("y", onnx.FLOAT, None)],
                       weights=[onnx.tensor("w", kind, weight.shape, raw=weight.tobytes())])  # fmt: skip
    (place / "m.onnx").write_bytes(model)
    run(BIN / "dmxc", place / "m.onnx", *TARGET, "-o", place / "default.bundle")
    said = run(BIN / "dmxc", "tune", place / "m.onnx", *(word for word in TARGET if word != "-q"), "--db", place / "d.jsonl", "--trials", TRIALS, "-o", place / "tuned.bundle")
    tried = [int(clocks) for clocks in re.findall(r"}: (\d+) clocks$", said, re.MULTILINE)]
    before, default = measured(place / "default.bundle", place, value)
    after, tuned = measured(place / "tuned.bundle", place, value)
    if (default.view(np.uint32) != tuned.view(np.uint32)).any():
        raise RuntimeError("other bits")
    records = [json.loads(line) for line in (place / "d.jsonl").read_text().splitlines()]
    if not records:
        if tried or "nothing is free of the regions on devices" not in said or before != after:
            raise RuntimeError(f"no record: {said}")
        return f"{before} clocks, nothing is free"
    [record] = records
    if (record["default_clocks"], record["clocks"]) != (before, after):
        raise RuntimeError(f"{record['default_clocks']} and {record['clocks']} clocks are recorded, runs take {before} and {after}")
    if after != min(tried) or after > before:
        raise RuntimeError(f"{after} clocks of {tried}, the default has {before}")
    return f"{before} clocks, then {after} of {len(tried)} trials: {record['decided']}"


def main():
    bad = 0
    with tempfile.TemporaryDirectory(prefix="dmxc-tune-") as place:
        for name, *case in cases(np.random.default_rng(67)):
            try:
                print(f"ok   {name}: {check(pathlib.Path(place) / name, *case)}", flush=True)
            except RuntimeError as error:
                bad += 1
                print(f"FAIL {name}: {error}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
