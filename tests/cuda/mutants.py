#!/usr/bin/env python3
"""Kernels of a real model, each changed at one place: the simulator must name the check, the kernel and the line, or the answer must
be wrong by dmx-run's comparison. A change that changes nothing fails the test; the unchanged kernels report nothing for many seeds.

Usage: mutants.py BIN. Exit 77 where numpy is not there."""

import hashlib
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

if importlib.util.find_spec("numpy") is None:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "models"), str(pathlib.Path(__file__).resolve().parents[1])]

import numpy as np  # noqa: E402

import fixtures  # noqa: E402
import judge  # noqa: E402
from sampling import LONG  # noqa: E402

MODEL, ENTRY = "tiny-mlp.script17", "code/cuda/sm_90a/kernels.ptx"
# What is changed: a name, the text as a regular expression, what stands there instead, which of its places (-1: the last one).
MUTANTS = [
    ("an address is 4 too far", r"(st\.global\.b32 \t?\[%rd\d+)\]", r"\1+4]", 0),
    ("an address is far away", r"(ld\.global(?:\.nc)?\.b32 \t?%r\d+, \[%rd\d+)((?:\+\d+)?)\]", r"\1+1048576]", 0),
    ("an address is not aligned", r"(ld\.global(?:\.nc)?\.b32 \t?%r\d+, \[%rd\d+)((?:\+\d+)?)\]", r"\1+2]", 0),
    ("a guard is turned round", r"@(%p\d+) bra", r"@!\1 bra", 0),
    ("a guard is left out", r"@%p\d+ bra", "bra", 0),
    ("a bound is one more", r"setp\.(?:ne|eq)\.b64 \t?(%p\d+), (%rd\d+), (\d+);", r"setp.gt.s64 \1, \2, \3;", 0),
    ("a predicate is of others", r"setp\.(ne|eq|lt|gt|ge|le)(\.[a-z]+)?\.([bsu]64)", r"setp.eq.\3", 0),
    ("a width is half", r"st\.global\.b32", "st.global.b16", 0),
    ("a load is twice as wide", r"ld\.global(\.nc)?\.b32", r"ld.global\1.b64", 0),
    ("a product is a sum", r"fma\.rn\.f32 (\t?%r\d+), (%r\d+), (%r\d+), %r\d+;", r"add.rn.f32 \1, \2, \3;", 0),
    ("a factor is left out", r"mul(?:\.wide|\.lo)?\.([su]\d+) (\t?%r[d]?\d+), (%r[d]?\d+), (\d+);", r"mov.u32 \2, 0;", 0),
    ("an argument is swapped with its neighbour", r"_param_2\]", "_param_3]", 0),
    ("a result is an operand", r"_param_3\]", "_param_0]", 0),
    ("the launch table's grid is larger", r'"grid":(\[.*?\]|\d+),"contract"', r'"grid":["add",1,\1],"contract"', 0),
    ("the launch table's block is smaller", r'"block":128', '"block":64', 0),
    ("the kernel has a smaller block", r"\.reqntid 128", ".reqntid 64", 0),
    ("a store is left out", r"st\.global\.b32 \t?\[%rd\d+\], %r\d+;", "", -1),
    ("a step of a loop is nothing", r"(add\.s64 \t?%rd\d+, %rd\d+), 4;", r"\1, 0;", 0),
]


class Bundle:
    """A model's bundle as a folder, and words of dmx-run for its inputs and expected outputs."""

    def __init__(self, programs, place):
        self.programs, self.place, self.bundle, self.words, self.text = programs, place, place / "m.bundle", [], ""

    def expect(self, name, value):
        (self.place / "expect").mkdir(exist_ok=True)
        np.save(self.place / "expect" / name, value)

    def take(self):
        """What was compiled."""
        self.words += ["--expect", self.place / "expect"]
        self.text = (self.bundle / ENTRY).read_text()

    def run(self, program, *arguments):
        done = subprocess.run([str(self.programs / program), *map(str, arguments)], capture_output=True, text=True, timeout=300)
        if program == "dmxc" and done.returncode:
            raise RuntimeError(done.stderr)
        return done.returncode, done.stdout + done.stderr

    def answer(self, text, *arguments, steps=1000000):
        """(exit code, output) of a run with other kernels; steps: what ends them, None: the default."""
        changed = self.place / "changed.bundle"
        shutil.rmtree(changed, ignore_errors=True)
        shutil.copytree(self.bundle, changed)
        (changed / ENTRY).write_text(text)
        manifest = json.loads((changed / "manifest.json").read_text())
        data = text.encode()
        for entry in manifest["entries"]:
            if entry["name"] == ENTRY:
                entry["size"], entry["sha256"] = len(data), hashlib.sha256(data).hexdigest()
        manifest_text = json.dumps(manifest)
        (changed / "manifest.json").write_text(manifest_text)
        (changed / "manifest.sha256").write_text(hashlib.sha256(manifest_text.encode()).hexdigest() + "\n")
        return self.run("dmx-run", changed, *self.words, "--device-opt", "cuda.sim=on", *(["--device-opt", f"cuda.sim_steps={steps}"] if steps else []), *arguments)


class Subject(Bundle):
    """A model of the fixtures."""

    def __init__(self, programs, place):
        super().__init__(programs, place)
        folder = place / "files" / MODEL
        folder.mkdir(parents=True)
        fixtures.unpack(fixtures.FOLDER / f"{MODEL}.npz", folder)
        meta = json.loads((folder / "meta.json").read_text())
        arrays = judge.load(folder / "inputs_0.npz")
        for name in meta["inputs"]:
            np.save(place / "in.npy", arrays[judge.Judge.order(meta, arrays)[0]])
            self.words += ["--input", f"{name}={place}/in.npy"]
        self.expect("output_0.npy", list(judge.load(folder / "reference_0.npz").values())[0].astype(np.float32))
        self.run("dmxc", folder / "model.onnx", "-t", "cuda:sm_90a", "--bundle-format", "dir", "-o", self.bundle)
        self.take()


def mutated(text, pattern, instead, which):
    places = list(re.finditer(pattern, text))
    if not places:
        return text
    place = places[which]
    return text[: place.start()] + place.expand(instead) + text[place.end() :]


def judge_mutants(subject, mutants, seeds=1):
    """How many of them are not found, by a check or in the result, with any of these orders of threads; 1 where the unchanged kernels are."""
    for seed in range(50 if LONG else 3):
        code, said = subject.answer(subject.text, "--device-opt", f"cuda.sim_seed={seed}")
        if code:
            print(f"FAIL unchanged kernels, seed {seed}: {said}")
            return 1
    bad = 0
    for name, pattern, instead, which in mutants:
        text = mutated(subject.text, pattern, instead, which)
        found = False
        for seed in range(seeds):
            code, said = subject.answer(text, "--device-opt", f"cuda.sim_seed={seed}") if text != subject.text else (0, "the text is the same")
            found = code == 5 or (code and re.search(r"kernel '\w+'(, line \d+|.*(threads|blocks|map|shared))", said))
            if found:
                break
        bad += not found
        print(f"{'ok  ' if found else 'FAIL'} {name}: {code}: {said.strip().splitlines()[-1][:220] if said.strip() else ''}")
    return bad


def main():
    with tempfile.TemporaryDirectory(prefix="dmxc-cuda-") as place:
        return 1 if judge_mutants(Subject(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(place)), MUTANTS) else 0


if __name__ == "__main__":
    sys.exit(main())
