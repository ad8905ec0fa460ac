#!/usr/bin/env python3
"""Every fixture compiled and run with its sizes open and fixed, against its framework's results.

Usage: fixtures_test.py BIN [PART OF A NAME]. Exit 77 where numpy is not there.
A plain run takes a quarter of them. fixtures/REFUSED names files that dmxc does not take yet, with words of its sentence."""

import importlib.util
import pathlib
import sys
import tempfile

if importlib.util.find_spec("numpy") is None:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import fixtures
import judge
from sampling import sample


def refused():
    """{file: words of the sentence}."""
    path = fixtures.FOLDER / "REFUSED"
    lines = path.read_text().splitlines() if path.exists() else []
    return dict(line.split(": ", 1) for line in lines if line.strip() and not line.startswith("#"))


def complaint(path, bin_folder, expected):
    """ "" or what is wrong with a fixture."""
    with tempfile.TemporaryDirectory(prefix="dmxc-fixture-") as place:
        folder = pathlib.Path(place) / "files" / path.stem
        folder.mkdir(parents=True)
        fixtures.unpack(path, folder)
        results = judge.Judge(bin_folder, "cpu:host").judge(folder)
    words = expected.get(path.stem)
    states = {result["state"] for result in results.values()}
    if words is not None and states == {"pass"}:
        return "it passes: take it out of fixtures/REFUSED"
    for mode, result in results.items():
        if words is None and result["state"] != "pass":
            return f"{mode}: {result['state']}: {result['why']}"
        if words is not None and (result["state"] != "refused" or words not in " ".join(result.get("all", []))):
            return f"{mode}: {result['state']} {result.get('why', '')}; fixtures/REFUSED expects a refusal that says '{words}'"
    return ""


def main():
    bin_folder, part = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else ""
    paths, bad = [path for path in sorted(fixtures.FOLDER.glob("*.npz")) if part in path.name], 0
    if not paths:
        print(f"no fixture has '{part}' in its name")
        return 1
    expected, paths = refused(), paths if part else sample(paths, 10)
    for path in paths:
        sentence = complaint(path, bin_folder, expected)
        if sentence:
            bad += 1
            print(f"FAIL {path.stem}: {sentence}")
    print(f"{len(paths) - bad} of {len(paths)} fixtures are as they should be")
    return 1 if bad else 0


sys.exit(main())
