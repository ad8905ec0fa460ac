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


def run(*command):
    start = time.monotonic()
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    return result, time.monotonic() - start


def check(tools, target, min_sqnr, folder, dims, scratch):
    """One row of the table and whether it is good."""
    bundle = scratch / (folder.name + ".bundle")
    compiled, seconds = run(tools / "dmxc", folder / "model.onnx", "-t", target, "--require-target", target + ":95", "-o",
                            bundle, *[part for dim in dims for part in ("--dim", dim)])
    if compiled.returncode:
        return compiled.stderr, False
    sets = sorted(folder.glob("set0")) or sorted(folder.glob("test_data_set_0"))
    report = scratch / "report.json"
    ran, simulated = run(tools / "dmx-run", bundle, "--inputs", sets[0], "--expect", sets[0], "--min-sqnr", min_sqnr,
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
        for argument in sys.argv[4:]:
            name, _, dims = argument.partition(":")
            folder = pathlib.Path(name)
            if not (folder / "model.onnx").exists():
                print(f"SKIPPED {folder.name}: {folder} is not there")
                continue
            (pathlib.Path(scratch) / "report.json").unlink(missing_ok=True)
            text, good = check(tools, target, min_sqnr, folder, dims.split(",") if dims else [], pathlib.Path(scratch))
            print(f"{'ok  ' if good else 'FAIL'} {folder.name:18} {text}", flush=True)
            done, failed = done + 1, failed + (not good)
    return 77 if not done else int(failed > 0)


sys.exit(main())
