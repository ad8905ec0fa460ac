#!/usr/bin/env python3
"""What the simulator of GPUs says of time (cuda.report, cuda.trace): every launch of a model is there, with figures that fit each other and that do
not depend on the order of turns; blocks that were not run are estimated; what products ask for is told from what fills up tiles, on the page too; what
cannot be written or read is said.

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

import numpy as np  # noqa: E402

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "models"), str(TESTS), str(TESTS / "fuzz")]
import fixtures  # noqa: E402
import onnx_file as onnx  # noqa: E402
from models import MODELS, SAMPLE  # noqa: E402
from sampling import LONG  # noqa: E402

BIN = pathlib.Path(sys.argv[1]).resolve()
BOUNDS = {"issue", "float", "integer", "double", "special", "tensor", "shared memory", "L2", "DRAM", "launch", "few blocks", "latency"}
SECTOR, LINE = 32, 128


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=1200)
    if done.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name} ended with {done.returncode}: {done.stderr[-800:]}")
    return done.stdout, done.stderr


def wrong(kernel):
    """What does not fit of a launch's figures."""
    main, name = kernel["main"], kernel["kernel"]
    read, written = main["read_bytes"], main["written_bytes"]
    if main["clocks"] <= 0 or main["bound"] not in BOUNDS:
        yield f"{name}: {main['clocks']} clocks, bound by {main['bound']}"
    if not all(0 <= share <= 1 for share in [*main["utilisation"].values(), main["mac_peak_share"], main["padded_peak_share"], main["coalescing"], main["occupancy"]]):
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


def figures_of(place, node, given, weight):
    """Figures of the kernel with the product, and the page. `given`: an input's dims and their sizes in a run."""
    place.mkdir()
    dims, sizes = given
    weight = onnx.tensor("w", onnx.FLOAT, weight, raw=np.ones(weight, np.float32).tobytes())
    (place / "m.onnx").write_bytes(onnx.model([node], [onnx.info("x", onnx.FLOAT, dims)], [onnx.info("y", onnx.FLOAT, None)], weights=[weight]))
    np.save(place / "x.npy", np.zeros(sizes, np.float32))
    run(BIN / "dmxc", place / "m.onnx", "-q", "-t", "cuda:sm_90a", "--numerics", "bf16", "-o", place / "m.bundle")
    run(BIN / "dmx-run", place / "m.bundle", "-q", "--input", f"x={place}/x.npy", "--device-opt", f"cuda.report={place}/r.json")
    run(BIN / "dmx-inspect", place / "m.bundle", "--html", place / "m.html", "--report", place / "r.json")
    [kernel] = [each for each in json.loads((place / "r.json").read_text())["last"] if "model_macs" in each["main"]]
    return kernel["main"], (place / "m.html").read_text()


def check_products(place):
    """What a model asks for and what fills up tiles, counted by hand: of 64 x 64, 64 terms at a time."""
    product = onnx.node("MatMul", "x w", "y")
    for rows, tiles in ((70, 2), (128, 2), (129, 3)):
        main, page = figures_of(place / f"rows{rows}", product, (["rows", 72], (rows, 72)), (72, 40))
        asked, done = rows * 72 * 40, tiles * 64 * 64 * 128
        if main["model_macs"] != asked or main["macs"] != {"f16": done, "tf32": 0, "f32": 0}:
            yield f"{rows} rows: {main['model_macs']} multiply-adds of {main['macs']}, not {asked} of {done}"
        if abs(main["padded_peak_share"] / main["mac_peak_share"] - (1 - asked / done)) > 1e-4:
            yield f"{rows} rows: {main['padded_peak_share']} of {main['mac_peak_share']} is padding"
        if main["roofline"]["ops"] != 2 * asked:
            yield f"{rows} rows: {main['roofline']['ops']} operations"
        if not re.search(r"% of peak, [0-9.]+ % padding", page) or "sectors_read" not in page:
            yield "the page does not show it"
    # 9 taps of 16 channels, 40 outputs of 8 x 16 pixels, two images: 144 terms in three steps, 40 outputs in 64 rows.
    main, _ = figures_of(place / "conv", onnx.node("Conv", "x w", "y", pads=[1, 1, 1, 1]), ([2, 16, 8, 16], (2, 16, 8, 16)), (40, 16, 3, 3))
    if (main["model_macs"], main["macs"]["f16"]) != (2 * 40 * 144 * 128, 2 * 64 * 192 * 128):
        yield f"a convolution: {main['model_macs']} multiply-adds of {main['macs']['f16']}"
    # Of f32: a thread an element, and nothing is filled up.
    main, page = figures_of(place / "few", product, ([3, 72], (3, 72)), (72, 40))
    if (main["model_macs"], main["macs"]["f32"], main["padded_peak_share"]) != (3 * 72 * 40, 3 * 72 * 40, 0) or "% padding" in page:
        yield f"a plain product: {main['model_macs']} multiply-adds of {main['macs']}"


def check_words(place, bundle):
    """One sentence for what cannot be written or read."""
    machine = TESTS.parent / "schemas" / "cuda" / "h100.json"
    figures = json.loads(machine.read_text())
    del figures["memory"]["share_in_a_row"]
    (place / "missing.json").write_text(json.dumps(figures))
    figures = json.loads(machine.read_text())
    figures["latency"]["l2_clocks"]["value"] = -262
    (place / "negative.json").write_text(json.dumps(figures))
    described = lambda file: f"the machine '{place}/{file}.json' of cuda.sim_machine: machine description: "
    for option, code, words in [
        ("report=/nowhere/r.json", 3, "cannot write the report '/nowhere/r.json' of the GPU's simulator"),
        ("trace=/nowhere/t.json", 3, "cannot write the trace '/nowhere/t.json' of the GPU's simulator"),
        ("sim_machine=/nowhere/m.json", 3, "cannot read the machine '/nowhere/m.json' of cuda.sim_machine"),
        (f"sim_machine={place}/missing.json", 2, described("missing") + "'memory.share_in_a_row' is missing"),
        (f"sim_machine={place}/negative.json", 2, described("negative") + "'latency.l2_clocks' is -262, allowed are 0 to"),
    ]:  # fmt: skip
        command = [BIN / "dmx-run", bundle, "--random-inputs", 1, "-q", "--device-opt", "cuda.sim=on", "--device-opt", f"cuda.{option}"]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
        if done.returncode != code or words not in done.stderr or len(done.stderr.strip().splitlines()) != 1:
            yield f"{option}: exit code {done.returncode}: {done.stderr[-400:]}"


def main():
    bad = 0
    with tempfile.TemporaryDirectory(prefix="dmxc-clock-") as place:
        for name in MODELS if LONG else SAMPLE:
            found = list(check(name, pathlib.Path(place)))
            bad += bool(found)
            print(f"{'FAIL' if found else 'ok  '} {name} {'; '.join(found[:4])}", flush=True)
        bundle = pathlib.Path(place) / SAMPLE[0] / "m.bundle"
        for found in (check_products(pathlib.Path(place)), check_words(pathlib.Path(place), bundle)):
            for said in found:
                print(f"FAIL {said}")
                bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
