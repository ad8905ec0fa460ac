#!/usr/bin/env python3
"""cuda.report has figures, which fit each other, of every launch of the tiny models of tests/models/fixtures and of the zoo. Of the zoo's models three blocks of
each launch are run, of those that compute indices all.

Usage: reports.py BIN ZOO. A plain run takes one of 20 fixtures and one of 9 models of the zoo, with DMXC_LONG=1 all. Exit 77 where numpy is not there."""

import collections
import json
import pathlib
import re
import sys
import tempfile

import clock  # exits where numpy is not there
import judge
from sampling import sample

INDICES = {"ArgMax", "NonMaxSuppression", "NonZero", "TopK"}
SIMULATED = ["--device-opt", "cuda.sim=on"]
REFUSED = {line.split()[0] for line in (clock.fixtures.FOLDER / "REFUSED").read_text().splitlines() if line and not line.startswith("#")}
FIXTURES = [path.stem for path in sorted(clock.fixtures.FOLDER.glob("*.npz")) if path.stem not in REFUSED]


def fixture(name, folder):
    """(model, words for its inputs)"""
    clock.fixtures.unpack(clock.fixtures.FOLDER / f"{name}.npz", folder)
    meta = json.loads((folder / "meta.json").read_text())
    arrays, words = judge.load(folder / "inputs_0.npz"), []
    for key, given in zip(meta["inputs"], judge.Judge.order(meta, arrays)):
        clock.np.save(folder / f"in_{key}.npy", arrays[given])
        words += ["--input", f"{key}={folder}/in_{key}.npy"]
    return folder / meta["file"], words


def of_zoo(model):
    """Where the model computes indices all blocks are run: what some leave of a tensor may be none."""
    meta = json.loads((model / "meta.json").read_text())
    words = [word for each in meta["inputs"] for word in ("--input", f"{each['name']}={model}/set0/in_{each['name']}.npy")]
    blocks = [] if INDICES & set(meta["ops"]) else ["--device-opt", "cuda.sim_blocks=3"]
    return model / "model.onnx", [*words, *blocks, "--device-opt", "cuda.sim_checks=0"]


def check(model, words, folder):
    """(launches, what is wrong with them)"""
    bundle, report, figures = folder / "m.bundle", folder / "r.json", folder / "run.json"
    clock.run(clock.BIN / "dmxc", model, "-q", "-t", "cuda:sm_90a", "--numerics", "bf16", "-o", bundle)
    clock.run(clock.BIN / "dmx-run", bundle, "-q", *words, *SIMULATED, "--device-opt", f"cuda.report={report}", "--per-task", "--json", figures)
    kernels = json.loads(report.read_text())["last"]
    wrong = [said for kernel in kernels for said in clock.wrong(kernel)]
    # Each task that ran on the device has launches, as often as it ran.
    ours = set(re.findall(r"\.entry (\w+)\(", clock.run(clock.BIN / "dmx-inspect", bundle, "--what", "kernels")[0]))
    tasks = collections.Counter()
    for task in json.loads(figures.read_text())["tasks"]:
        if task["kernel"] in ours and task["bytes"]:
            tasks[task["kernel"]] += task["calls"]
    launches = collections.Counter(kernel["kernel"] for kernel in kernels)
    if launches != tasks or not launches:
        wrong.append(f"launches that are not tasks {launches - tasks}, tasks without one {tasks - launches}")
    return kernels, wrong


def main():
    bad = 0
    zoo = sorted(path.parent for path in pathlib.Path(sys.argv[2]).glob("*/model.onnx"))
    cases = [(name, lambda folder, name=name: fixture(name, folder)) for name in sample(FIXTURES, 20)]
    cases += [(model.name, lambda folder, model=model: of_zoo(model)) for model in sample(zoo, 9)]
    for name, make in cases:
        with tempfile.TemporaryDirectory(prefix="dmxc-reports-") as place:
            folder = pathlib.Path(place)
            try:
                kernels, wrong = check(*make(folder), folder)
                clocks = sum(kernel["main"]["clocks"] for kernel in kernels)
            except RuntimeError as error:
                kernels, wrong, clocks = [], [str(error)], 0
        bad += bool(wrong)
        print(f"{'FAIL' if wrong else 'ok  '} {name}: {len(kernels)} launches, {clocks} clocks {'; '.join(wrong[:3])}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
