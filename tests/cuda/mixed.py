#!/usr/bin/env python3
"""Graphs that run partly on the simulator of GPUs and partly on the host, in random shares: each side must see what the other wrote.

Usage: mixed.py BIN [DRIVER]. Regions of tiny models are put on one of the two by a generator of fixed seeds: 20 graphs with DMXC_LONG=1, else 3.
The results are held against their framework's. DRIVER: as models.py has it. Exit 77 where numpy is not there."""

import importlib.util
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

if importlib.util.find_spec("numpy") is None:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "models"), str(pathlib.Path(__file__).resolve().parents[1])]

import fixtures  # noqa: E402
import judge  # noqa: E402
from models import machine  # noqa: E402
from sampling import LONG  # noqa: E402

MODELS = ["tiny-mlp.script17", "tiny-attention.script17", "tiny-cnn.script17", "tiny-bert.script14"]


REGION = re.compile(r'dmir\.region "cuda"(.*) attributes \{strategy = \{.*\}\} \{$')


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-400:])


def put_on_host(text, choose):
    """The text of a partition with some regions on the host, and how many of how many. How they are computed is decided anew."""
    share, moved, regions = choose.choice([0.2, 0.5, 0.8]), 0, 0
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if found := REGION.search(line):
            regions += 1
            if choose.random() < share or (moved == 0 and regions == 2):
                moved += 1
                lines[number] = line[: found.start()] + f'dmir.region "cpu"{found.group(1)} {{'
    return "\n".join(lines) + "\n", moved, regions


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    judging, bad = judge.Judge(programs, run_options=machine(sys.argv[2:])), 0
    targets = ["-q", "-t", "cuda:sm_90a", "-t", "cpu:host"]
    for seed in range(20 if LONG else 3):
        choose = random.Random(seed)
        name = MODELS[seed % len(MODELS)]
        with tempfile.TemporaryDirectory(prefix="dmxc-mixed-") as place:
            folder = pathlib.Path(place)
            fixtures.unpack(fixtures.FOLDER / f"{name}.npz", folder)
            meta = json.loads((folder / "meta.json").read_text())
            run(programs / "dmxc", folder / meta["file"], *targets, "--emit", "partition", "-o", folder / "p.mlir")
            text, moved, regions = put_on_host((folder / "p.mlir").read_text(), choose)
            (folder / "mixed.mlir").write_text(text)
            run(programs / "dmxc", folder / "mixed.mlir", "--from", "partition", *targets, "-o", folder / "m.bundle")
            state, why, _ = judging.run_set(folder, meta, folder / "m.bundle", 0)
        good = state == "pass" and 0 < moved < regions
        bad += not good
        print(f"{'ok  ' if good else 'FAIL'} {name} seed {seed}: {moved} of {regions} regions on the host {state} {why}", flush=True)
    return 1 if bad else 0


sys.exit(main())
