#!/usr/bin/env python3
"""Tiny models of every kind on the simulator of GPUs, no op on the host, against their framework's results.

Usage: models.py BIN [DRIVER]. A plain run takes SAMPLE; with DMXC_LONG=1 all of MODELS run. With DRIVER, a library that stands for
NVIDIA's (tests/runtime/cuda/FakeCuda.h), they run as on a GPU instead. Exit 77 where numpy is not there."""

import importlib.util
import pathlib
import sys
import tempfile
import time

if importlib.util.find_spec("numpy") is None:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "models"), str(pathlib.Path(__file__).resolve().parents[1])]

import fixtures  # noqa: E402
import judge  # noqa: E402
from sampling import LONG  # noqa: E402

MOST_SECONDS = 60  # of one way of a model, compiled and run
SAMPLE = ["tiny-mlp.script17", "tiny-mlp.fp16"]
MODELS = SAMPLE + [
    "tiny-attention.script17",
    "tiny-bert.script14",
    "tiny-bert.ortopt-fp16",
    "tiny-cnn.script17",
    "tiny-cnn.q-qdq",
    "tiny-gpt2.script17",
    "tiny-llama.script17",
    "tiny-t5.script17",
    "tiny-mlp.q-dyn",
    "tiny-mlp.pt2",
]


def machine(driver):
    """Options of dmx-run: the simulator, or the GPU of a driver."""
    return ["--device-opt", "cuda.sim=off", "--device-opt", f"cuda.driver={driver[0]}"] if driver else ["--device-opt", "cuda.sim=on"]


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    names = MODELS if LONG else SAMPLE
    judging = judge.Judge(programs, "cuda:sm_90a", machine(sys.argv[2:]))
    judging.target += ["--require-target", "cuda:100"]
    bad = 0
    for name in names:
        with tempfile.TemporaryDirectory(prefix="dmxc-cuda-") as place:
            folder = pathlib.Path(place) / "files" / name
            folder.mkdir(parents=True)
            fixtures.unpack(fixtures.FOLDER / f"{name}.npz", folder)
            start = time.monotonic()
            results = judging.judge(folder)
            seconds = time.monotonic() - start
        wrong = [f"{way}: {result['state']}: {result['why']}" for way, result in results.items() if result["state"] != "pass"]
        if LONG and seconds > MOST_SECONDS * len(results):
            wrong.append(f"it took {seconds:.0f} s")
        bad += bool(wrong)
        print(f"{'FAIL' if wrong else 'ok  '} {name} {seconds:.1f} s {'; '.join(wrong)}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
