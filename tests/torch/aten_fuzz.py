#!/usr/bin/env python3
"""Imports the calls of aten_cases.json with other numbers, shapes and edges: none may crash. Usage: aten_fuzz.py BIN ROUNDS
[FOLDER to leave the seeds in]. Exit 77 where numpy is not installed."""
import pathlib
import subprocess
import sys
import tempfile

from aten_test import BIN, CASES, Family

folder = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else tempfile.mkdtemp(prefix="dmxc-aten-fuzz-"))
folder.mkdir(exist_ok=True)
seeds = []
for number, case in enumerate(CASES):
    seeds.append(folder / f"{number}-{case['target']}.pt2")
    Family({number: case}).program.write(seeds[-1])
result = subprocess.run([BIN / "dmx-fuzz-torch-import", sys.argv[2], *seeds])
if len(sys.argv) <= 3:
    for seed in seeds:
        seed.unlink()
    folder.rmdir()
sys.exit(result.returncode)
