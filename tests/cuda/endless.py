#!/usr/bin/env python3
"""Kernels that do not end are ended by name in seconds of a processor, by default; long ones are not: rows of 32,000, and models of the fixtures at
half of the bound. And what tools say of the machine: on stderr, before the run.

Usage: endless.py BIN. A plain run takes one of the fixtures, with DMXC_LONG=1 all of them. Exit 77 where numpy is not there."""

import importlib.util
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

if importlib.util.find_spec("numpy") is None:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

import numpy as np

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "models"), str(TESTS / "fuzz"), str(TESTS), str(TESTS / "cuda")]
import fixtures  # noqa: E402
import judge  # noqa: E402
import mutants  # noqa: E402
import onnx_file as onnx  # noqa: E402
from sampling import LONG  # noqa: E402

MOST_SECONDS = 10
HALF = 1 << 25  # of the bound that launches have by default
ROW = 32000
NOWHERE = ["--device-opt", "cuda.driver=/nowhere/libcuda.so.1"]
SIMULATOR = ["--device-opt", "cuda.sim=on"]


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=1200)
    return done.returncode, done.stdout, done.stderr


def seconds_of_children():
    """Of processors: what else a machine does takes none of them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def endless(programs, place):
    """What is wrong where a kernel loops on its first instruction, or around its whole body."""
    subject = mutants.Subject(programs, place)
    first = r"(\n\n)(\tld\.param\.b64)"  # of a kernel's instructions
    for name in "the first instruction", "the body":
        loop = r"\1$forever:\n\tbra $forever;\n\2" if name == "the first instruction" else r"\1$forever:\n\2"
        text = mutants.mutated(subject.text, first, loop, -1)
        if name == "the body":
            text = mutants.mutated(text, r"\tret;", "\tbra $forever;", -1)
        start = seconds_of_children()
        code, said = subject.answer(text, steps=None)
        seconds = seconds_of_children() - start
        print(f"{name}: exit {code} in {seconds:.1f} s")
        named = re.search(r"kernel '\w+', line \d+ .*endless: the launch has done \d+ instructions, and none of its warps ended", said)
        if code != 1 or not named or seconds > MOST_SECONDS:
            yield f"{name}: exit {code} in {seconds:.1f} s: {said[-400:]}"


def rows():
    """Models of rows of 32,000: (name, bytes)."""
    row, flat = [1, ROW], [onnx.info("x", onnx.FLOAT, [1, ROW])]
    one = {"Softmax": {"axis": -1}, "LogSoftmax": {"axis": -1}, "CumSum": {}, "ReduceSum": {}, "ArgMax": {"axis": 1}, "LayerNormalization": {}}
    for kind, attributes in one.items():
        inputs = {"CumSum": "x axis", "ReduceSum": "x axes", "LayerNormalization": "x scale"}.get(kind, "x")
        constants = [onnx.tensor("axis", onnx.INT64, [], [1]), onnx.ints("axes", [1]), onnx.floats("scale", [ROW])]
        shape = {"ReduceSum": [1, 1], "ArgMax": [1, 1]}.get(kind, row)
        out = [onnx.info("y", onnx.INT64 if kind == "ArgMax" else onnx.FLOAT, shape)]
        yield kind, onnx.model([onnx.node(kind, inputs, "y", **attributes)], flat, out, weights=constants)
    for k in 50, ROW:
        out = [onnx.info("y", onnx.FLOAT, [1, k]), onnx.info("i", onnx.INT64, [1, k])]
        yield f"TopK {k}", onnx.model([onnx.node("TopK", "x k", "y i", axis=1)], flat, out, weights=[onnx.ints("k", [k])])


def ends(programs, place, name, model, inputs):
    """ "" or what is wrong with a model that is to end far below the bound."""
    bundle = place / "m.bundle"
    code, _, said = run(programs / "dmxc", model, "-q", "-t", "cuda:sm_90a", "-o", bundle)
    if code:
        return said
    start = seconds_of_children()
    code, _, said = run(programs / "dmx-run", bundle, "-q", *inputs, "--output-dir", place / "out", *SIMULATOR, "--device-opt", f"cuda.sim_steps={HALF}")
    print(f"{name}: {seconds_of_children() - start:.1f} s")
    return said if code else ""


def long_ones(programs, place):
    for name, model in rows():
        (place / "m.onnx").write_bytes(model)
        if wrong := ends(programs, place, name, place / "m.onnx", ["--random-inputs", "1"]):
            yield f"{name}: {wrong}"
    names = [path.stem for path in sorted(fixtures.FOLDER.glob("*.npz"))] if LONG else ["tiny-gpt2.script17"]
    for name in names:
        folder = place / name
        folder.mkdir()
        fixtures.unpack(fixtures.FOLDER / f"{name}.npz", folder)
        model = next(each for each in folder.iterdir() if each.name in ("model.onnx", "model.pt2"))
        if wrong := ends(programs, place, name, model, ["--random-inputs", "1"]):
            if "endless" in wrong or not LONG:
                yield f"{name}: {wrong}"


def said(programs, place):
    """What is wrong with what tools say of the machine that they chose."""
    fixtures.unpack(fixtures.FOLDER / f"{mutants.MODEL}.npz", place)
    bundle = place / "said.bundle"
    run(programs / "dmxc", place / "model.onnx", "-q", "-t", "cuda:sm_90a", "-o", bundle)
    line = "runs on cuda sm_90a: simulator, because NVIDIA's driver cannot be loaded (/nowhere/libcuda.so.1: "
    code, out, err = run(programs / "dmx-run", bundle, "--random-inputs", "1", *NOWHERE)
    if code or line not in err or "simulator" in out:
        yield f"dmx-run says on stdout '{out}', on stderr '{err}'"
    code, out, err = run(programs / "dmx-run", bundle, "--random-inputs", "1", "--benchmark", "--iters", "1", *NOWHERE)
    if code or line not in err:
        yield f"dmx-run --benchmark says on stderr '{err}'"
    code, out, err = run(programs / "dmx-run", bundle, "--random-inputs", "1", "--device-opt", "cuda.sim=off", *NOWHERE)
    if code != 1 or "there is no GPU to run on" not in err:
        yield f"dmx-run without a simulator: exit {code}, '{err}'"
    code, out, err = run(programs / "dmx-compare", place / "model.onnx", "--random-inputs", "1", "--", "-t", "cuda:sm_90a")
    if code or "runs on cuda sm_90a: " not in err:
        yield f"dmx-compare: exit {code}, on stderr '{err}'"


def main():
    programs, bad = pathlib.Path(sys.argv[1]).resolve(), 0
    for what in endless, long_ones, said:
        with tempfile.TemporaryDirectory(prefix="dmxc-endless-") as place:
            for wrong in what(programs, pathlib.Path(place)):
                bad += 1
                print(f"FAIL {wrong}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
