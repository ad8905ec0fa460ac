#!/usr/bin/env python3
"""The calls of aten_cases.json as seeds of dmx-fuzz-torch-import, which imports them with other numbers, shapes and edges.
Usage: aten_fuzz.py BIN ROUNDS CORPUS runs it; aten_fuzz.py FOLDER leaves the seeds there. In every other seed the
operands are constants, so that they are folded. Exit 77 where numpy is not installed."""
import json
import pathlib
import subprocess
import sys
import tempfile

from aten_test import CASES, Family


def write_seeds(folder):
    for number, case in enumerate(CASES):
        program = Family({number: case}).program.json()
        if number % 2:
            specs = program["graph_module"]["signature"]["input_specs"]
            for i, spec in enumerate(specs):
                name = spec["user_input"]["arg"]["as_tensor"]["name"]
                specs[i] = {"tensor_constant": {"arg": {"name": name}, "tensor_constant_name": name}}
        (folder / f"{number}-{case['target']}").write_text(json.dumps(program, separators=(",", ":")))


if len(sys.argv) == 2:
    pathlib.Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    write_seeds(pathlib.Path(sys.argv[1]))
else:
    with tempfile.TemporaryDirectory(prefix="dmxc-aten-fuzz-") as folder:
        write_seeds(pathlib.Path(folder))
        fuzzer = pathlib.Path(sys.argv[1]) / "dmx-fuzz-torch-import"
        sys.exit(subprocess.run([fuzzer, "--rounds", sys.argv[2], folder, sys.argv[3]]).returncode)
