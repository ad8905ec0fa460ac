#!/usr/bin/env python3
"""Whole models on a target whose numbers follow from the model alone: -O0 and -O2 give the same bytes. A plain run takes one of six.

device_levels.py BIN TARGET TEAMS MODEL[:dim=value,..] ...     TEAMS are what stands behind the target's name, as quads=1,quads=8;
a MODEL is a folder as in device_models.py"""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import device
from sampling import sample

BIN, TARGET, TEAMS = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(",")


def outputs(model, team, level, scratch):
    bundle, out = scratch / "m.bundle", scratch / f"out{level}"
    subprocess.run([BIN / "dmxc", model.folder / "model.onnx", "-q", "-t", f"{TARGET}:{team}", level, "-o", bundle, *model.dims], check=True)
    subprocess.run([BIN / "dmx-run", bundle, "--inputs", model.data_set(), "--output-dir", out], check=True, stdout=subprocess.DEVNULL)
    return {path.name: path.read_bytes() for path in out.glob("*.npy")}


def main():
    cases, failed = [(model, team) for model in device.present(sys.argv[4:]) for team in TEAMS], 0
    for model, team in sample(cases, 6):
        with tempfile.TemporaryDirectory(prefix="dmxc-levels-") as folder:
            plain, optimised = (outputs(model, team, level, pathlib.Path(folder)) for level in ("-O0", "-O2"))
        other = [name for name in optimised if plain.get(name) != optimised[name]]
        good = optimised and not other
        print(f"{'ok  ' if good else 'FAIL'} {model.name:18} {team:8} {', '.join(other)}", flush=True)
        failed += not good
    return 77 if not cases else int(failed > 0)


sys.exit(main())
