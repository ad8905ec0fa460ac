#!/usr/bin/env python3
"""Described GPUs: what a figure changes of tiles, grids and regions, with results that stay what numpy says, and sentences about what is wrong in a
description. Usage: machines.py BIN. Exit 77 where numpy is not there."""

import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import products  # exits where numpy is not there

BIN = products.BIN
STANDARD = json.loads((pathlib.Path(__file__).resolve().parents[2] / "schemas" / "cuda" / "h100.json").read_text())
CASE = products.Case("rounded", (), (1032, 520, 200), "as it is", "constant", True, "bias relu", True, False)


def at(description, path):
    for key in path.split("."):
        description = description[key]
    return description


def described(values):
    """The built-in machine with other figures; its total comes to what it must."""
    machine = copy.deepcopy(STANDARD)
    for path, value in values.items():
        at(machine, path)["value"] = value
    if "totals.flops_per_second" not in values:
        machine["totals"]["flops_per_second"]["value"] = (
            2 * at(machine, "multiprocessor.multiplications_per_clock")["value"] * machine["multiprocessors"]["value"] * machine["clock_hz"]["value"])
    return machine


# Figures, and what then stands in the launch table: blocks, bytes of shared memory at most.
MACHINES = [
    ("as it is built in", {}, None, 232448),
    ("four multiprocessors", {"multiprocessors": 4}, 4, 232448),
    ("half of the shared memory", {"block.shared_bytes": 116224}, None, 116224),
    ("the least shared memory", {"block.shared_bytes": 98336}, None, 98336),
    ("a slow cache", {"memory.l2_bytes_per_second": 2e11}, None, 232448),
    ("a long start", {"kernel.launch_clocks": 100000, "product.clocks_for_128_sums": 500}, None, 232448),
]


def changed(path, value):
    machine = copy.deepcopy(STANDARD)
    folder, _, key = path.rpartition(".")
    inner = at(machine, folder) if folder else machine
    if value is None:
        del inner[key]
    else:
        inner[key] = value
    return json.dumps(machine)


FACT = {"mark": "fact"}
WRONG = [
    (changed("multiprocessors", None), "'multiprocessors' is missing"),
    (changed("block.shared_bytes", {"value": -1, **FACT}), "'block.shared_bytes' is -1, allowed are 98336 to 232448"),
    (changed("block.threads", {"value": 2048, **FACT}), "'block.threads' is 2048, allowed are 384 to 1024"),
    (changed("multiprocessors", {"value": 1.5, **FACT}), "'multiprocessors' is 1.5, not an integer"),
    (changed("clock_hz", {"value": "fast", **FACT}), "'clock_hz' is not"),
    (changed("clock_hz", {"value": 1.83e9}), "'clock_hz' has no mark"),
    (changed("clock_hz", {"value": 1e9, **FACT}), "made of clock_hz, multiprocessors and multiprocessor.multiplications_per_clock"),
    (changed("thread.register", {"value": 3, **FACT}), "numbers, but only"),
    (changed("name", None), "'name' is missing"),
    ("{", "not valid JSON"),
    ("[]", "not a JSON object"),
]


def table(bundle):
    """The kernels of the launch table."""
    lines = (bundle / "code" / "cuda" / "sm_90a" / "kernels.ptx").read_text().splitlines()
    return json.loads("".join(line[2:] for line in lines[:next(i for i, line in enumerate(lines) if not line.startswith("//"))]))["kernels"]


def run(folder):
    failures, launches = [], set()
    for label, figures, blocks, shared in MACHINES:
        place = folder / re.sub(r"\W", "_", label)
        place.mkdir()
        path = place / "machine.json"
        path.write_text(json.dumps(described(figures)))
        try:
            products.check(place, CASE, products.np.random.default_rng(66), f"cuda:sm_90a+{path}")
        except RuntimeError as error:
            failures.append(f"{label}: {error}")
            continue
        [launch] = [kernel for kernel in table(place / "m.bundle") if kernel.get("item") == "block"]
        launches.add(json.dumps([launch["grid"], launch["block"], launch["shared"]]))
        if (blocks and launch["grid"] != blocks) or launch["shared"] > shared:
            failures.append(f"{label}: a launch of {launch['grid']} blocks with {launch['shared']} bytes")
    if len(launches) < 3:
        failures.append(f"figures change too little: {launches}")
    path, model = folder / "wrong.json", folder / "as_it_is_built_in" / "m.onnx"
    for text, part in WRONG:
        path.write_text(text)
        done = subprocess.run([BIN / "dmxc", model, "-t", f"cuda:{path}", "-o", folder / "w.bundle"], capture_output=True, text=True)
        if done.returncode != 1 or part not in done.stderr or str(path) not in done.stderr:
            failures.append(f"{part}: exit code {done.returncode}: {done.stderr[:300]}")
    done = subprocess.run([BIN / "dmxc", model, "-t", "cuda:none.json", "-o", folder / "w.bundle"], capture_output=True, text=True)
    if done.returncode not in (1, 3) or "none.json" not in done.stderr:
        failures.append(f"a file that is not there: exit code {done.returncode}: {done.stderr[:300]}")
    return failures


def main():
    with tempfile.TemporaryDirectory(prefix="dmxc-cuda-machines-") as place:
        failures = run(pathlib.Path(place))
    for failure in failures:
        print(f"FAILED: {failure}")
    print(f"{len(MACHINES)} machines and {len(WRONG)} descriptions that are wrong: {len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
