#!/usr/bin/env python3
"""What the simulator of GPUs says of time (cuda.report, cuda.trace): every launch of a model is there, with figures that fit each other and that do
not depend on the order of turns; blocks that were not run are estimated; what cannot be written is said.

Usage: clock.py BIN. A plain run takes SAMPLE of the tiny models, with DMXC_LONG=1 all fixtures. Exit 77 where numpy is not there."""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile

if importlib.util.find_spec("numpy") is None:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "models"), str(TESTS)]
import fixtures  # noqa: E402
from models import MODELS, SAMPLE  # noqa: E402
from sampling import LONG  # noqa: E402

BIN = pathlib.Path(sys.argv[1]).resolve()
BOUNDS = {"issue", "float", "integer", "double", "special", "tensor", "shared memory", "L2", "DRAM", "launch", "few blocks", "latency"}
SECTOR, LINE = 32, 128


def run(*command, code=0):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=1200)
    if done.returncode != code:
        raise RuntimeError(f"{pathlib.Path(command[0]).name} ended with {done.returncode}, not {code}: {done.stderr[-800:]}")
    return done.stdout, done.stderr


def wrong(kernel):
    """What does not fit of a launch's figures."""
    main, name = kernel["main"], kernel["kernel"]
    read, written = main["read_bytes"], main["written_bytes"]
    if main["clocks"] <= 0 or main["bound"] not in BOUNDS:
        yield f"{name}: {main['clocks']} clocks, bound by {main['bound']}"
    if not all(0 <= share <= 1 for share in [*main["utilisation"].values(), main["mac_peak_share"], main["coalescing"], main["occupancy"]]):
        yield f"{name}: a share that is none"
    if read["L2"] < SECTOR * main["sectors_read"] or (read["L2"] > SECTOR * main["sectors_read"]) > (main["tma_bytes_read"] > 0):
        yield f"{name}: {read['L2']} bytes of {main['sectors_read']} sectors"
    if read["DRAM"] > read["L2"] or written["DRAM"] > written["L2"]:
        yield f"{name}: more bytes come from DRAM than pass the second cache"
    if main["shared_wavefronts"] * LINE != read["shared"] or main["bank_conflicts"] > main["shared_wavefronts"]:
        yield f"{name}: {main['shared_wavefronts']} wavefronts and {main['bank_conflicts']} conflicts"
    if main["multiprocessors"] > min(132, main["blocks"]):
        yield f"{name}: {main['multiprocessors']} multiprocessors for {main['blocks']} blocks"


def reported(bundle, place, *options):
    """The report of a run with random inputs."""
    run(BIN / "dmx-run", bundle, "--random-inputs", 1, "-q", "--device-opt", f"cuda.report={place}/report.json", "--device-opt", f"cuda.trace={place}/trace.json",
        *(word for option in options for word in ("--device-opt", f"cuda.{option}")))  # fmt: skip
    trace = json.loads((place / "trace.json").read_text())
    if not any(event.get("dur", 0) > 0 for event in trace["traceEvents"]):
        raise RuntimeError("the trace has no launch")
    return json.loads((place / "report.json").read_text())["last"]


def check(name, place):
    folder = place / name
    folder.mkdir()
    fixtures.unpack(fixtures.FOLDER / f"{name}.npz", folder)
    model = next(path for path in sorted(folder.iterdir()) if path.name.startswith("model."))
    bundle = folder / "m.bundle"
    run(BIN / "dmxc", model, "-q", "-t", "cuda:sm_90a", "--numerics", "bf16", "-o", bundle)
    first = reported(bundle, folder)
    yield from (said for kernel in first for said in wrong(kernel))
    names = [kernel["kernel"] for kernel in first]
    text = run(BIN / "dmx-inspect", bundle, "--what", "kernels")[0]
    missing = [kernel for kernel in set(re.findall(r"\.entry (\w+)\(", text)) if kernel not in names]
    if missing:
        yield f"no figures of {missing[:3]}"
    for seed in (1, 7):
        if reported(bundle, folder, f"sim_seed={seed}") != first:
            yield f"other figures with turns of seed {seed}"
    some = reported(bundle, folder, "sim_blocks=3")
    if [kernel["kernel"] for kernel in some] != names:
        yield "other launches where three blocks of each are run"


def main():
    bad = 0
    with tempfile.TemporaryDirectory(prefix="dmxc-clock-") as place:
        for name in MODELS if LONG else SAMPLE:
            found = list(check(name, pathlib.Path(place)))
            bad += bool(found)
            print(f"{'FAIL' if found else 'ok  '} {name} {'; '.join(found[:4])}", flush=True)
        bundle = pathlib.Path(place) / SAMPLE[0] / "m.bundle"
        said = run(BIN / "dmx-run", bundle, "--random-inputs", 1, "-q", "--device-opt", "cuda.report=/nowhere/r.json", code=3)[1]
        if "cannot write the report '/nowhere/r.json' of the GPU's simulator" not in said:
            print(f"FAIL a report to a folder that is not there: {said[-300:]}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
