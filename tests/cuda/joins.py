#!/usr/bin/env python3
"""Concatenations and stacks of 2 to 64 tensors of sizes 1 to 3 along every axis, and joins and sums of 600, against numpy: on the simulated GPU,
card and array, at -O0 to -O3.

Usage: joins.py BIN. A plain run takes PLAIN of the small ones and one level of 600; with DMXC_LONG=1 all of them. A model holds many joins.
Exit 77 where numpy is not there."""

import importlib.util
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

if importlib.util.find_spec("numpy") is None:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

import numpy as np

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "fuzz"), str(TESTS)]
import onnx_file as onnx  # noqa: E402
from sampling import LONG, SEED  # noqa: E402

TARGETS = {"cuda:sm_90a": ["--device-opt", "cuda.sim=on"], "corsair": [], "aie": []}
LEVELS = ["-O0", "-O1", "-O2", "-O3"]
MANY, PLAIN, IN_A_MODEL = 600, 60, 20
SHAPE = [2, 3, 4]


class Join:
    """Parts, and what joins them: along an axis ("concat"), along a new one ("stack"), or as a sum."""

    def __init__(self, kind, axis, sizes):
        self.kind, self.axis, self.sizes = kind, axis, sizes

    def __repr__(self):
        sizes = str(self.sizes[0]) if len(set(self.sizes)) == 1 else "1 to 3"
        return f"{self.kind} of {len(self.sizes)} along axis {self.axis}, sizes {sizes}"

    def parts(self, random):
        shapes = [SHAPE[: self.axis] + [size] + SHAPE[self.axis + 1 :] if self.kind == "concat" else SHAPE for size in self.sizes]
        return [(random.integers(-8, 9, shape) / 8).astype(np.float32) for shape in shapes]

    def wanted(self, parts):
        if self.kind == "sum":
            return np.sum(parts, axis=0, dtype=np.float64).astype(np.float32)
        return (np.concatenate if self.kind == "concat" else np.stack)(parts, axis=self.axis)

    def nodes(self, parts, name):
        if self.kind == "sum":
            return [onnx.node("Sum", " ".join(parts), name)]
        if self.kind == "concat":
            return [onnx.node("Concat", " ".join(parts), name, axis=self.axis)]
        wide = [f"{part}_wide" for part in parts]
        return [onnx.node("Unsqueeze", f"{part} axes_{self.axis}", to) for part, to in zip(parts, wide)] + [
            onnx.node("Concat", " ".join(wide), name, axis=self.axis)
        ]


def small_joins():
    """All of them."""
    random = np.random.default_rng(1)
    for count in range(2, 65):
        for axis in range(3):
            for size in 1, 2, 3, None:
                yield Join("concat", axis, [size] * count if size else [int(each) for each in random.integers(1, 4, count)])
        for axis in range(4):
            yield Join("stack", axis, [1] * count)


def many_joins():
    return [Join("concat", axis, [1] * MANY) for axis in range(3)] + [Join("stack", axis, [1] * MANY) for axis in (0, 3)] + [Join("sum", 0, [1] * MANY)]


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=1200)
    return "" if done.returncode == 0 else f"exit {done.returncode}: {' '.join(map(str, command[:2]))}: {(done.stdout + done.stderr).strip()[-400:]}"


class Subject:
    """Joins as one model, with the numbers that it takes and gives."""

    def __init__(self, place, joins):
        random = np.random.default_rng(2)
        nodes, inputs, outputs = [], [], []
        for folder in "in", "out":
            (place / folder).mkdir()
        for number, join in enumerate(joins):
            parts, names = join.parts(random), []
            for i, part in enumerate(parts):
                names.append(f"x{number}_{i}")
                inputs.append(onnx.info(names[-1], onnx.FLOAT, list(part.shape)))
                np.save(place / "in" / f"{names[-1]}.npy", part)
            wanted = join.wanted(parts)
            nodes += join.nodes(names, f"y{number}")
            outputs.append(onnx.info(f"y{number}", onnx.FLOAT, list(wanted.shape)))
            np.save(place / "out" / f"y{number}.npy", wanted)
        axes = [onnx.ints(f"axes_{axis}", [axis]) for axis in range(4)]
        self.place, self.joins = place, joins
        (place / "m.onnx").write_bytes(onnx.model(nodes, inputs, outputs, weights=axes))

    def wrong(self, programs, target, level):
        """ "" or what is: that a join differs is told by its output's name."""
        bundle = self.place / "m.bundle"
        said = run(programs / "dmxc", self.place / "m.onnx", "-q", level, "-t", target, "-o", bundle) or run(
            programs / "dmx-run", bundle, "-q", "--inputs", self.place / "in", "--expect", self.place / "out", "--rtol", 0, "--atol", 0, *TARGETS[target]
        )
        return said and f"{said}\n     {'; '.join(f'y{i}: {join}' for i, join in enumerate(self.joins))}"


def chosen():
    """(joins of a model, level, target): each level and target sees others in a plain run."""
    small, ways = list(small_joins()), list(itertools.product(LEVELS, TARGETS))
    many = [[join] for join in many_joins()]
    if LONG:
        models = [small[i : i + IN_A_MODEL] for i in range(0, len(small), IN_A_MODEL)] + many
        return [(joins, level, target) for joins in models for level, target in ways]
    random = np.random.default_rng(SEED)
    print(f"a sample: {PLAIN} of {len(small) * len(ways)} cases, DMXC_SAMPLE={SEED}")
    picked = [small[i] for i in random.permutation(len(small))[:PLAIN]]
    each = PLAIN // len(ways)
    out = [(picked[i * each : (i + 1) * each], level, target) for i, (level, target) in enumerate(ways)]
    return out + [(many[(SEED + i) % len(many)], LEVELS[(SEED + i) % 4], target) for i, target in enumerate(TARGETS)]


def limits(programs, place):
    """ "" or what is wrong with how many arguments kernels are given: in a region's text, in a kernel's parameters, in a text of one that asks
    for more."""
    joins = many_joins()
    model, bundle, text = Subject(place, [joins[0], joins[-1]]).place / "m.onnx", place / "m.bundle", place / "m.mlir"
    for level in "-O0", "-O2":
        if said := run(programs / "dmxc", model, "-q", level, "-t", "cuda:sm_90a", "--bundle-format", "dir", "-o", bundle):
            return said
        ptx = (bundle / "code/cuda/sm_90a/kernels.ptx").read_text()
        counts = [len(re.findall(r"\.param", entry)) for entry in re.findall(r"\.entry \w+\((.*?)\)\n", ptx, re.DOTALL)]
        if not counts or max(counts) > 512 or max(counts) < 300:
            return f"kernels of {level} have {counts} parameters"
    # Of a target that gives kernels as many as they like.
    if said := run(programs / "dmxc", model, "-q", "-t", "cpu", "--emit", "partition", "-o", text):
        return said
    text.write_text(text.read_text().replace('dmir.region "cpu"', 'dmir.region "cuda"'))
    said = run(programs / "dmxc", text, "-q", "-t", "cuda:sm_90a", "--from", "partition", "-o", place / "other.bundle")
    return "" if said.startswith("exit 1:") and "and a kernel of the cuda target is given at most 476; make several regions of it" in said else said or "no refusal"


def main():
    programs, bad = pathlib.Path(sys.argv[1]).resolve(), 0
    with tempfile.TemporaryDirectory(prefix="dmxc-joins-") as place:
        if wrong := limits(programs, pathlib.Path(place)):
            bad += 1
            print(f"FAIL {wrong}", flush=True)
    cases = chosen()
    for joins, level, target in cases:
        with tempfile.TemporaryDirectory(prefix="dmxc-joins-") as place:
            if wrong := Subject(pathlib.Path(place), joins).wrong(programs, target, level):
                bad += 1
                print(f"FAIL {target} {level}: {wrong}", flush=True)
    print(f"{len(cases)} models of {sum(len(joins) for joins, _, _ in cases)} joins, {bad} of them wrong")
    return 1 if bad else 0


sys.exit(main())
