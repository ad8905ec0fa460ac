#!/usr/bin/env python3
"""Whole models on a target with coarse numbers: all products on the device, noise below a bound. Prints a table.

device_models.py BIN TARGET MIN_SQNR MODEL[:dim=value,..] ...     a MODEL is a folder with model.onnx and data sets
Models that are not there are named as skipped; with none left the test is skipped (exit code 77)."""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import device


def run(*command):
    start = time.monotonic()
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    return result, time.monotonic() - start


def check(tools, target, min_sqnr, model, scratch):
    """One row of the table and whether it is good."""
    bundle, data = scratch / (model.name + ".bundle"), model.data_set()
    compiled, seconds = run(tools / "dmxc", model.folder / "model.onnx", "-t", target, "--require-target", target + ":95", "-o",
                            bundle, *model.dims)
    if compiled.returncode:
        return compiled.stderr, False
    report = scratch / "report.json"
    ran, simulated = run(tools / "dmx-run", bundle, "--inputs", data, "--expect", data, "--min-sqnr", min_sqnr,
                         "--json", report)
    if not report.exists():
        return ran.stdout + ran.stderr, False
    outputs = json.loads(report.read_text())["comparisons"]
    worst = min((o["sqnr_db"] for o in outputs if o["sqnr_db"] is not None), default=float("inf"))
    return (f"worst of {len(outputs)} outputs {worst:5.1f} dB, compiled in {seconds:5.2f} s, ran in {simulated:5.2f} s",
            ran.returncode == 0 and all(o["pass"] for o in outputs))


def main():
    tools, target, min_sqnr = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    done, failed = 0, 0
    with tempfile.TemporaryDirectory(prefix="dmxc-models-") as scratch:
        for model in device.present(sys.argv[4:]):
            (pathlib.Path(scratch) / "report.json").unlink(missing_ok=True)
            text, good = check(tools, target, min_sqnr, model, pathlib.Path(scratch))
            print(f"{'ok  ' if good else 'FAIL'} {model.name:18} {text}", flush=True)
            done, failed = done + 1, failed + (not good)
    return 77 if not done else int(failed > 0)


sys.exit(main())
