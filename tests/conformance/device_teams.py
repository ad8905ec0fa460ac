#!/usr/bin/env python3
"""Whether the team size that the compiler estimates to be fastest is: all sizes are compiled and run, and the chosen one may be
a tenth slower than the best. Prints clocks; models are folders as in device_models.py.

device_teams.py BIN TARGET MODEL[:dim=value,..] ..."""
import json
import pathlib
import subprocess
import sys
import tempfile

import device

BIN, TARGET = pathlib.Path(sys.argv[1]), sys.argv[2]


def clocks(model, level, scratch):
    bundle, report = scratch / "m.bundle", scratch / "r.json"
    subprocess.run([BIN / "dmxc", model.folder / "model.onnx", "-q", "-t", TARGET + level, "-o", bundle, *model.dims], check=True)
    subprocess.run([BIN / "dmx-run", bundle, "--inputs", model.data_set(), "-q", "--device-opt", f"report={report}"], check=True,
                   stdout=subprocess.DEVNULL)
    run = json.loads(report.read_text())["last"][0]["main"]
    return run["clocks"], run["quads"]


def main(scratch):
    done = failed = 0
    for model in device.present(sys.argv[3:]):
        chosen, quads = clocks(model, "", scratch)
        every = {size: clocks(model, f":quads={size}", scratch)[0] for size in (1, 2, 4, 8, 16, 32)}
        good = chosen <= 1.1 * min(every.values())
        print(f"{'ok  ' if good else 'FAIL'} {model.name:18} chosen {quads:2}: {chosen:7};  "
              + "  ".join(f"{size}: {value}" for size, value in every.items()), flush=True)
        done, failed = done + 1, failed + (not good)
    return 77 if not done else int(failed > 0)


with tempfile.TemporaryDirectory(prefix="dmxc-teams-") as folder:
    sys.exit(main(pathlib.Path(folder)))
