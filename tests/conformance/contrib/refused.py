#!/usr/bin/env python3
"""Models that break the definitions of com.microsoft, through dmxc, and runs that give forbidden lengths and indices: each ends with
exit 1 and one line that has the words of wrong.py, dmxc's the node too.

Usage: refused.py BIN FOLDER [--only GLOB]
Exit 77 where numpy is not installed, or dmxc has no front end for ONNX."""
import argparse
import fnmatch
import pathlib
import re
import subprocess
import sys

from generate import all_cases  # noqa: F401 - says where numpy is missing
from wrong import RUNS, WRONG

LIMIT = 120  # seconds of one command


def says(text, word):
    """Names of one letter and numbers stand alone; other words may go on, and a name may be written in words."""
    if word.isdigit():
        return re.search(rf"(?<!\d){word}(?!\d)", text)
    word = word.replace("_", "[_ ]")
    return re.search(rf"(?<![a-z0-9])(?:{word})" + ("(?![a-z0-9])" if re.fullmatch(r"'\?.'\?", word) else ""), text, re.I)


def complaint(programs, case, folder):
    """What is not as it should be, or None."""
    model, bundle = folder / f"{case.name}.onnx", folder / f"{case.name}.bundle"
    model.write_bytes(case.model(declared=False))
    bundle.unlink(missing_ok=True)
    run = subprocess.run([programs / "dmxc", model, "-o", bundle], capture_output=True, text=True, timeout=LIMIT)
    said = run.stdout + run.stderr
    if run.returncode != 1:
        return f"exit {run.returncode}, not 1: {said.strip()[:300]}"
    if bundle.exists():
        return "a bundle was written all the same"
    errors = [line for line in said.splitlines() if "error:" in line]
    if len(errors) != 1:
        return f"{len(errors)} lines of errors: {said.strip()[:300]}"
    if f"'{case.op.lower()}'" not in errors[0]:
        return f"the node is not named: {errors[0]}"
    text = errors[0].split("error:", 1)[1]
    missing = [word for word in case.words if not says(text, word)]
    return f"lacks {', '.join(missing)}: {text.strip()}" if missing else None


def complaint_of_run(programs, case, folder):
    """The same of a model that compiles and a run that must not."""
    bundle, inputs = folder / f"{case.name}.bundle", folder / case.name
    (folder / f"{case.name}.onnx").write_bytes(case.model())
    made = subprocess.run([programs / "dmxc", folder / f"{case.name}.onnx", "-o", bundle], capture_output=True, text=True, timeout=LIMIT)
    if made.returncode:
        return f"does not compile: {(made.stdout + made.stderr).strip()[:300]}"
    inputs.mkdir(exist_ok=True)
    for i, (name, value) in enumerate(case.fed(0)):
        (inputs / f"input_{i}.pb").write_bytes(value.proto(name))
    run = subprocess.run([programs / "dmx-run", bundle, "--inputs", inputs], capture_output=True, text=True, timeout=LIMIT)
    errors = [line for line in run.stderr.splitlines() if "error:" in line]
    if run.returncode != 1 or len(errors) != 1:
        return f"exit {run.returncode}, {len(errors)} lines of errors: {(run.stdout + run.stderr).strip()[:300]}"
    missing = [word for word in case.words if not says(errors[0].lower(), word)]
    return f"lacks {', '.join(missing)}: {errors[0]}" if missing else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="*")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    cases = [case for case in WRONG + RUNS if fnmatch.fnmatch(case.name, options.only)]
    failed = 0
    for case in cases:
        judge = complaint_of_run if case in RUNS else complaint
        wrong = judge(options.bin, case, options.folder)
        if wrong:
            failed += 1
            print(f"{case.name}: {wrong}")
    print(f"{len(cases) - failed} of {len(cases)} models of {len({case.op for case in cases})} operators are refused as they should be")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
