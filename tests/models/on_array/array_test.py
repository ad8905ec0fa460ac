#!/usr/bin/env python3
"""Exports on the simulated array as they are: fifteen of fifteen networks and types by the bounds of their sizes.

Usage: array_test.py BIN [PART OF A NAME]. Exit 77 where numpy is not there. Results are right by the rule of the table (rule.py), whose
peer is another implementation of the array's arithmetic (array_peers.py); nine tenths of the multiply-adds that the peer counted are the
array's, as its report has them. A plain run takes a fifth, DMXC_LONG=1 all: then at least twelve have that share."""

import importlib.util
import json
import pathlib
import re
import sys
import tempfile

if importlib.util.find_spec("numpy") is None:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE.parents[0]), str(HERE.parents[1])]
import array_peers
import fixtures
import judge
import numpy as np
import sampling

SHARE, LEAST = 0.9, 12
# What the host computes of a file whose share is smaller, and why.
LESS = {"tiny-cnn.script17": "convolutions of one group, not of 8"}


def bounds(folder, meta):
    """--dim NAME=1..N, of all sets; from 0 where a set has none."""
    sizes = {}
    for number in range(meta["sets"]):
        arrays = judge.load(folder / f"inputs_{number}.npz")
        for (_, dims), key in zip(meta["inputs"].items(), judge.Judge.order(meta, arrays)):
            for dim, extent in zip(dims, arrays[key].shape):
                if isinstance(dim, str) and re.fullmatch(r"[A-Za-z_]\w*", dim):
                    sizes.setdefault(dim, set()).add(extent)
    return [word for dim, all_of in sizes.items() for word in ("--dim", f"{dim}={min(1, *all_of)}..{max(all_of)}")]


def complaint(name, bin_folder, peers):
    """("" or what is wrong with a file, the share of the array)."""
    with tempfile.TemporaryDirectory(prefix="dmxc-array-") as place:
        folder = pathlib.Path(place) / "files" / name
        folder.mkdir(parents=True)
        meta = fixtures.unpack(fixtures.FOLDER / f"{name}.npz", folder)
        for number in range(meta["sets"]):
            results = [peers[key] for at in range(99) if (key := f"{name} {number} {at}") in peers]
            if results:
                np.savez(folder / f"{fixtures.PEER[pathlib.Path(meta['file']).suffix]}_{number}.npz", **{str(at): each for at, each in enumerate(results)})
        report, dims = pathlib.Path(place) / "report.json", bounds(folder, meta)
        sets = [number for number in range(meta["sets"]) if judge.fits(folder, meta, number)]
        judged = judge.Judge(bin_folder, "aie", ["--device-opt", f"report={report}"])
        result = judged.mode(folder, meta, dims, sets)
        if result["state"] != "pass":
            return f"{result['state']}: {result['why']}", 0
        done = sum(kernel["main"]["model_macs"] for kernel in json.loads(report.read_text())["last"])
        share = done / int(peers[f"{name} {sets[-1]} macs"])
        why = LESS.get(name, "")
        if share < SHARE:
            said = judged.compile(folder, meta, "-t", "aie", *dims, "--emit", "partition", "-o", "/dev/null", "--placement-report", "-").text
            if not why or why not in said:
                return f"the array has {100 * share:.1f} % of the multiply-adds, and the report does not say '{why}':\n{said[-2000:]}", share
        return "", share


def main():
    bin_folder, part = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else ""
    names = [name for name in array_peers.FIXTURES if part in name]
    if not part:
        names = sampling.sample(names, 5)
    bad, shares = 0, []
    with np.load(array_peers.FILE) as file:
        peers = dict(file)
    for name in names:
        why, share = complaint(name, bin_folder, peers)
        shares.append(share)
        print(f"{name}: {100 * share:.1f} % of the multiply-adds on the array" + (f"\nFAIL {name}: {why}" if why else ""))
        bad += bool(why)
    enough = sum(share >= SHARE for share in shares)
    if len(names) == len(array_peers.FIXTURES) and enough < LEAST:
        bad += 1
        print(f"FAIL: {enough} of {len(names)} files have {100 * SHARE:.0f} % on the array, {LEAST} are to have it")
    return 1 if bad else 0


sys.exit(main())
