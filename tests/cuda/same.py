#!/usr/bin/env python3
"""The same bundle for any number of compile jobs, and the same bits of results for any order of a GPU's blocks and warps.

Usage: same.py BIN. A plain run takes one model and 4 orders, with DMXC_LONG=1 four models and 50. Exit 77 where numpy is not there."""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

if importlib.util.find_spec("numpy") is None:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "models"), str(pathlib.Path(__file__).resolve().parents[1])]

import fixtures  # noqa: E402
from sampling import LONG  # noqa: E402

MODELS = ["tiny-mlp.script17", "tiny-cnn.q-qdq", "tiny-bert.script14", "tiny-attention.script17"]


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-400:])


def differences(programs, folder, seeds):
    meta = json.loads((folder / "meta.json").read_text())
    bundles = []
    for jobs in (1, 2, 5):
        bundle = folder / "m.bundle"
        run(programs / "dmxc", folder / meta["file"], "-q", "-t", "cuda:sm_90a", "-j", jobs, "-o", bundle)
        bundles.append(bundle.read_bytes())
    if len(set(bundles)) != 1:
        return "the bundle depends on the number of jobs"
    first = None
    for seed in range(seeds):
        place = folder / f"out{seed}"
        run(programs / "dmx-run", folder / "m.bundle", "--random-inputs", 1, "--output-dir", place,
            "--device-opt", "cuda.sim=on", "--device-opt", f"cuda.sim_seed={seed}")  # fmt: skip
        bits = {path.name: path.read_bytes() for path in place.iterdir()}
        first = first or bits
        if not bits or bits != first:
            return f"seed {seed} gives other bits than seed 0"
    return ""


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    bad = 0
    for name in MODELS if LONG else MODELS[:1]:
        with tempfile.TemporaryDirectory(prefix="dmxc-same-") as place:
            folder = pathlib.Path(place)
            fixtures.unpack(fixtures.FOLDER / f"{name}.npz", folder)
            why = differences(programs, folder, 50 if LONG else 4)
        bad += bool(why)
        print(f"{'FAIL' if why else 'ok  '} {name} {why}", flush=True)
    return 1 if bad else 0


sys.exit(main())
