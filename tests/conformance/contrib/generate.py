#!/usr/bin/env python3
"""Writes the cases of com.microsoft in the layout of ONNX's own: FOLDER/cases/NAME/model.onnx, its data sets, and FOLDER/cases.csv with
their tolerances and classes.

Usage: generate.py FOLDER [--sample] [--op OP,..]     --sample: some of each operator
Exit 77 where numpy is not installed."""
import argparse
import importlib
import pathlib
import shutil
import sys

try:
    import numpy as np  # noqa: F401 - what the cases are made with
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

FAMILIES = sorted(p.stem for p in pathlib.Path(__file__).resolve().parent.glob("cases_*.py"))
SAMPLE = 2  # cases of an operator


def all_cases():
    cases = [case for family in FAMILIES for case in importlib.import_module(family).CASES]
    names = [case.name for case in cases]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SystemExit(f"two cases have one name: {', '.join(twice)}")
    return cases


def sampled(cases):
    """Some of each operator, spread over those of its list that are core."""
    for op in dict.fromkeys(case.op for case in cases):
        listed = [case for case in cases if case.op == op]
        listed = [case for case in listed if case.group == "core"] or listed
        step = max(1, len(listed) / SAMPLE)
        yield from (listed[int(i * step)] for i in range(min(SAMPLE, len(listed))))


def write(cases, folder):
    shutil.rmtree(folder / "cases", ignore_errors=True)
    lines = ["case,rtol,atol,class"]
    for case in cases:
        case.write(folder / "cases")
        lines.append(f"{case.name},{case.tolerance[0]},{case.tolerance[1]},{case.group}")
    (folder / "cases.csv").write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--op")
    options = parser.parse_args()
    cases = all_cases()
    if options.op:
        cases = [case for case in cases if case.op in options.op.split(",")]
    cases = list(sampled(cases)) if options.sample else cases
    write(cases, options.folder)
    print(f"{len(cases)} cases of {len({case.op for case in cases})} operators")


if __name__ == "__main__":
    main()
