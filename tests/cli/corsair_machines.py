#!/usr/bin/env python3
"""Described machines: each memory smaller and larger, fewer and more units, and teams of 1 to 32 quads. A model compiles and its
run is right, or the compiler refuses it with exit code 4, the memory or key, what it has and what it needs; no run faults.

corsair_machines.py BIN      with DMXC_LONG=1 every model on every machine and team; exit 77 where numpy is not installed"""
import concurrent.futures
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from sampling import LONG  # noqa: E402

BIN = pathlib.Path(sys.argv[1])
STANDARD = json.loads((pathlib.Path(__file__).resolve().parents[2] / "schemas" / "corsair" / "corsair-like.json").read_text())


# --- models -----------------------------------------------------------------------------------------------------------------

def tensor(shape):
    return "tensor<" + "".join(f"{dim}x" for dim in shape) + "f32>"


class Model:
    """A DMIR function, op by op; each method returns the name and the shape of a value."""

    def __init__(self):
        self.lines, self.inputs, self.result = [], [], None

    def input(self, *shape):
        self.inputs.append(shape)
        return f"%x{len(self.inputs) - 1}", shape

    def weights(self, *shape):
        values = np.random.default_rng(len(self.lines)).standard_normal(shape, np.float32) / np.sqrt(np.prod(shape[1:] if len(shape) == 4 else shape[:1]))
        return self.add(f'dmir.constant dense<"0x{values.tobytes().hex().upper()}"> : {tensor(shape)}', shape)

    def add(self, text, shape):
        self.lines.append(f'  %v{len(self.lines)} = {text} loc("v{len(self.lines)}")')
        return f"%v{len(self.lines) - 1}", tuple(shape)

    def op(self, name, operands, shape, attributes=""):
        names, types = ", ".join(o[0] for o in operands), ", ".join(tensor(o[1]) for o in operands)
        self.result = self.add(f"dmir.{name} {names} {attributes} : ({types}) -> {tensor(shape)}", shape)
        return self.result

    def matmul(self, a, b):
        return self.op("matmul", [a, b], a[1][:-1] + b[1][-1:])

    def conv(self, x, channels, kernel, groups=1):
        n, c, h, w = x[1]
        ones, pads = "array<i64: 1, 1>", f"array<i64: {kernel // 2}, {kernel // 2}>"
        return self.op("conv", [x, self.weights(channels, c // groups, kernel, kernel)], (n, channels, h, w),
                       f"{{strides = {ones}, dilations = {ones}, low = {pads}, high = {pads}, groups = {groups} : i64}}")

    def text(self):
        arguments = ", ".join(f'%x{i}: {tensor(s)} {{dmir.name = "x{i}"}}' for i, s in enumerate(self.inputs))
        name, shape = self.result
        body = "\n".join(self.lines)
        return f'func.func @main({arguments}) -> ({tensor(shape)} {{dmir.name = "y"}}) {{\n{body}\n  return {name} : {tensor(shape)}\n}}\n'


def layers(m):
    """Products by constants, with a bias: more than one band of rows, odd columns."""
    x = m.input(150, 200)
    for columns in (330, 70):
        x = m.matmul(x, m.weights(x[1][-1], columns))
        x = m.op("relu", [m.op("add", [x, m.weights(columns)], x[1])], x[1])
    m.op("softmax", [x], x[1], "{axis = 1 : i64}")


def deep(m):
    """A reduction of many blocks, which comes through IB in segments."""
    m.matmul(m.input(70, 2100), m.weights(2100, 40))


def attention(m):
    q, k = m.input(6, 66, 64), m.input(6, 64, 66)
    scores = m.op("softmax", [m.matmul(q, k)], (6, 66, 66), "{axis = 2 : i64}")
    m.matmul(scores, q)


def images(m):
    x = m.conv(m.input(2, 8, 14, 14), 72, 3)
    x = m.conv(m.op("relu", [x], x[1]), 72, 3, groups=72)
    m.conv(x, 16, 1)


def rows(m):
    """No product."""
    x = m.input(64, 300)
    x = m.op("normalize standard", [x], x[1], "{axes = array<i64: 1>, epsilon = 1.0e-3 : f64}")
    x = m.op("transpose", [x], x[1][::-1], "{permutation = array<i64: 1, 0>}")
    m.op("reduce max", [m.op("tanh", [x], x[1])], (300, 1), "{axes = array<i64: 1>}")


MODELS = {f.__name__: f for f in (layers, deep, attention, images, rows)}


# --- machines ---------------------------------------------------------------------------------------------------------------

def described(path, value):
    """The standard machine with another number there; its totals come to what they must."""
    machine = copy.deepcopy(STANDARD)
    at_path(machine, path)["value"] = value

    def value(path):
        return at_path(machine, path)["value"]
    chiplets, clock, totals = value("topology.packages") * value("topology.chiplets"), value("clock_hz"), machine["totals"]
    quads, slices = chiplets * value("topology.quads"), value("topology.slices")
    totals["quads"]["value"] = quads
    for kind, depth in (("int8", 64), ("int4", 128), ("int16", 64)):
        totals[f"{kind}_ops_per_second"]["value"] = 2 * 64 * depth / value(f"dimc.row_clocks_{kind}") * quads * slices * value("topology.cores") * clock
    totals["st_read_bytes_per_second"]["value"] = value("memories.ST.read") * quads * slices * clock
    totals["ddr_bytes_per_second"]["value"] = value("memories.DDR.read") * chiplets * clock
    totals["sram_bytes"]["value"] = quads * (value("memories.GM.size") + slices * value("memories.ST.size"))
    return machine


def at_path(machine, path):
    for key in path.split("."):
        machine = machine[key]
    return machine


def machines():
    """(what is different, description)"""
    for memory in STANDARD["memories"]:
        path = f"memories.{memory}.size"
        for factor in (0.5, 2, *((1 / 4, 1 / 16, 1 / 64, 1 / 1024) if LONG else ())):
            size = max(64, int(at_path(STANDARD, path)["value"] * factor) // 64 * 64)
            yield f"{path}={size}", described(path, size)
    for path, values in {"topology.slices": (1, 8, 2, 3), "topology.cores": (1, 8, 2, 3), "topology.quads": (1, 3, 2), "topology.chiplets": (1, 3, 2),
                         "topology.packages": (1,), "dimc.max_ppr_mode": (0, 1, 2, 6), "dispatch.queues_per_quad": (1, 3), "simd.lanes": (1, 16, 256)}.items():
        for value in values if LONG else values[:2]:
            yield f"{path}={value}", described(path, value)


# --- judging ----------------------------------------------------------------------------------------------------------------

def tool(name, *arguments):
    return subprocess.run([str(part) for part in (BIN / name, *arguments)], capture_output=True, text=True, timeout=600)


def sqnr(want, got):
    noise = float(((want.astype(np.float64) - got) ** 2).sum())
    return 10 * np.log10(float((want.astype(np.float64) ** 2).sum()) / noise) if noise else np.inf


class Study:
    """Models with their inputs and the CPU's results in a folder."""

    def __init__(self, folder):
        self.folder = folder
        for number, (name, build) in enumerate(MODELS.items()):
            model = Model()
            build(model)
            (folder / f"{name}.mlir").write_text(model.text())
            (folder / name).mkdir()
            for i, shape in enumerate(model.inputs):
                np.save(folder / name / f"in_x{i}.npy", np.random.default_rng([number, i]).standard_normal(shape, np.float32))
            for done in (tool("dmxc", folder / f"{name}.mlir", "-q", "-o", folder / f"{name}.bundle"),
                         tool("dmx-run", folder / f"{name}.bundle", "-q", "--inputs", folder / name, "--output-dir", folder / f"{name}.cpu")):
                assert done.returncode == 0, done.stderr

    def judge(self, case):
        """(what came out: right, moved where nodes that do not fit are on the host, refused or wrong; the text that says so)"""
        name, label, target = case
        place = self.folder / f"{name}-{label}"
        bundle = self.folder / f"{name}-{label}.bundle"
        done = tool("dmxc", self.folder / f"{name}.mlir", "-t", target, "-o", bundle)
        moved = re.search(r"not fit corsair: .*", done.stderr)
        if done.returncode:
            named = re.search(r"(?:memories\.\w+\.size|dispatch\.queues_per_quad) is \d+, .* need \d+|(?:DDR|GM|ST) holds \d+ bytes, the model needs \d+", done.stderr)
            return "refused" if done.returncode == 4 and named else "wrong", f"dmxc exits with {done.returncode}: {done.stderr[-400:]}"
        done = tool("dmx-run", bundle, "-q", "--inputs", self.folder / name, "--output-dir", place)
        bundle.unlink()
        if done.returncode:
            return "wrong", f"dmx-run exits with {done.returncode}: {done.stderr[-500:]}"
        noise = sqnr(np.load(self.folder / f"{name}.cpu" / "out_y.npy"), np.load(place / "out_y.npy"))
        if noise >= 25 and moved:
            return "moved", moved[0]
        return "right" if noise >= 25 else "wrong", f"{noise:.1f} dB"


def cases(folder):
    """(model, label, target); a sample of the models on each machine and team, but each of them on some of all."""
    every = list(MODELS)
    for turn, (label, machine) in enumerate(machines()):
        path = folder / f"{label}.json"
        path.write_text(json.dumps({**machine, "name": "m" + re.sub(r"\W", "_", label)}))
        for name in every if LONG else sorted({every[turn % len(every)], "layers"}):
            yield name, label, f"corsair:{path}"
    for quads in range(1, 33):
        for name in every if LONG else (every[quads % len(every)],):
            yield name, f"quads={quads}", f"corsair:quads={quads}"


def main():
    with tempfile.TemporaryDirectory(prefix="dmxc-machines-") as place:
        study = Study(pathlib.Path(place))
        every = list(cases(pathlib.Path(place)))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            verdicts = list(zip(every, pool.map(study.judge, every)))
    for (name, label, _), (verdict, text) in verdicts:
        if verdict == "wrong" or (verdict in ("refused", "moved") and "-v" in sys.argv):
            print(f"{verdict}: {name}, {label}: {text.strip()}")
    count = {verdict: sum(v == verdict for _, (v, _) in verdicts) for verdict in ("right", "moved", "refused", "wrong")}
    print(f"{len(every)} models on machines and teams: {count}")
    # What the compiler refuses is little, or the test says nothing.
    return 1 if count["wrong"] or not 0 < count["refused"] + count["moved"] < len(every) / (2 if LONG else 4) else 0


sys.exit(main())
