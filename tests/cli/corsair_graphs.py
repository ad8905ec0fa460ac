#!/usr/bin/env python3
"""Random graphs on the simulated card: hazards are checked on every access, teams of all sizes must give the same bytes,
and the numbers must be near the CPU's.

corsair_graphs.py BIN FIRST_SEED COUNT [KEEP]     KEEP: a folder for graphs that fail"""
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

BIN, FIRST, COUNT = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
KEEP = pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else None


def product(dims):
    total = 1
    for dim in dims:
        total *= dim
    return total


class Graph:
    """Text of a DMIR function that grows op by op."""

    def __init__(self, seed):
        self.random, self.lines, self.values, self.inputs = random.Random(seed), [], [], []
        for i in range(self.random.randint(1, 2)):
            shape = self.random.choice([(1, 3, 12, 12), (2, 8, 8, 8), (1, 64, 16, 8), (4, 32, 64), (1, 16, 128), (65, 96), (8, 40), (1, 100),
                                        (1, 4096), (16, 2100), (3, 2048)])
            self.inputs.append((f"%x{i}", shape))
            self.values.append((f"%x{i}", shape))
        for _ in range(self.random.randint(3, 14)):
            self.grow()

    def type(self, shape):
        return "tensor<" + "".join(f"{dim}x" for dim in shape) + "f32>"

    def add(self, text, shape):
        """One op, its result name as NAME."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        self.values.append((name, tuple(shape)))
        return name

    def constant(self, shape, scale):
        """Weights whose values repeat with a period of no power of two."""
        count, r = product(shape), self.random
        period = [round(r.gauss(0, scale), 4) for _ in range(min(count, 61))]
        numbers = [period[i % len(period)] for i in range(count)]

        def nested(dims, start):
            if not dims:
                return f"{numbers[start]:.4f}"
            step = product(dims[1:])
            return "[" + ",".join(nested(dims[1:], start + i * step) for i in range(dims[0])) + "]"
        name = f"%c{len(self.lines)}"
        self.lines.append(f"  {name} = dmir.constant dense<{nested(shape, 0)}> : {self.type(shape)}")
        return name

    def grow(self):
        kinds = [self.unary, self.binary, self.matmul, self.attention, self.softmax, self.normalize, self.transpose, self.reshape,
                 self.slice, self.concat, self.reduce, self.conv, self.pool, self.conv, self.matmul]
        self.random.choice(kinds)()

    def pick(self, *ranks):
        fitting = [v for v in self.values if not ranks or len(v[1]) in ranks]
        return self.random.choice(fitting) if fitting else None

    def unary(self):
        name, shape = self.pick()
        op = self.random.choice(["relu", "tanh", "sigmoid", "abs", "erf"])
        self.add(f"dmir.{op} {name} : ({self.type(shape)}) -> {self.type(shape)}", shape)

    def binary(self):
        name, shape = self.pick()
        same = [v for v in self.values if v[1] == shape]
        other, rhs = self.random.choice(same)[0], shape
        if self.random.random() < 0.4:
            rhs = shape[self.random.randrange(len(shape)):]
            rhs = tuple(dim if self.random.random() < 0.7 else 1 for dim in rhs)
            other = self.constant(rhs, 0.5)
        op = self.random.choice(["add", "sub", "mul", "max"])
        self.add(f"dmir.{op} {name}, {other} : ({self.type(shape)}, {self.type(rhs)}) -> {self.type(shape)}", shape)

    def matmul(self):
        found = self.pick(2, 3)
        if not found:
            return
        name, shape = found
        columns = self.random.choice([1, 10, 64, 96, 130, 256])
        weights = self.constant((shape[-1], columns), shape[-1] ** -0.5)
        out = shape[:-1] + (columns,)
        self.add(f"dmir.matmul {name}, {weights} : ({self.type(shape)}, {self.type((shape[-1], columns))}) -> {self.type(out)}", out)

    def attention(self):
        found = self.pick(2, 3)
        if not found:
            return
        name, shape = found
        order = list(range(len(shape) - 2)) + [len(shape) - 1, len(shape) - 2]
        turned = tuple(shape[i] for i in order)
        t = self.add(f"dmir.transpose {name} {{permutation = array<i64: {', '.join(map(str, order))}>}} : ({self.type(shape)}) -> {self.type(turned)}", turned)
        scores = shape[:-1] + (shape[-2],)
        s = self.add(f"dmir.matmul {name}, {t} : ({self.type(shape)}, {self.type(turned)}) -> {self.type(scores)}", scores)
        p = self.add(f"dmir.softmax {s} {{axis = {len(shape) - 1} : i64}} : ({self.type(scores)}) -> {self.type(scores)}", scores)
        self.add(f"dmir.matmul {p}, {name} : ({self.type(scores)}, {self.type(shape)}) -> {self.type(shape)}", shape)

    def softmax(self):
        name, shape = self.pick()
        axis = self.random.randrange(len(shape))
        self.add(f"dmir.softmax {name} {{axis = {axis} : i64}} : ({self.type(shape)}) -> {self.type(shape)}", shape)

    def normalize(self):
        name, shape = self.pick()
        if shape[-1] < 8:
            return
        self.add(f"dmir.normalize standard {name} {{axes = array<i64: {len(shape) - 1}>, epsilon = 1.0e-3 : f64}} : ({self.type(shape)}) -> {self.type(shape)}", shape)

    def transpose(self):
        name, shape = self.pick()
        order = list(range(len(shape)))
        self.random.shuffle(order)
        out = tuple(shape[i] for i in order)
        self.add(f"dmir.transpose {name} {{permutation = array<i64: {', '.join(map(str, order))}>}} : ({self.type(shape)}) -> {self.type(out)}", out)

    def reshape(self):
        name, shape = self.pick()
        flat = list(shape)
        if len(flat) > 2 and self.random.random() < 0.6:
            at = self.random.randrange(len(flat) - 1)
            out = tuple(flat[:at] + [flat[at] * flat[at + 1]] + flat[at + 2:])
        elif len(flat) < 4 and flat[-1] % 4 == 0:
            out = tuple(flat[:-1] + [4, flat[-1] // 4])
        else:
            return
        self.add(f"dmir.reshape {name} : ({self.type(shape)}) -> {self.type(out)}", out)

    def slice(self):
        name, shape = self.pick()
        axis = self.random.randrange(len(shape))
        if shape[axis] < 4:
            return
        start, step = self.random.randrange(shape[axis] // 2), self.random.choice([1, 1, 2])
        size = (shape[axis] - start + step - 1) // step
        out = shape[:axis] + (size,) + shape[axis + 1:]
        at = lambda values: "array<i64: " + ", ".join(map(str, values)) + ">"
        starts, steps = [0] * len(shape), [1] * len(shape)
        starts[axis], steps[axis] = start, step
        self.add(f"dmir.slice {name} {{starts = {at(starts)}, sizes = {at(out)}, steps = {at(steps)}}} : ({self.type(shape)}) -> {self.type(out)}", out)

    def concat(self):
        name, shape = self.pick()
        other = self.random.choice([v for v in self.values if v[1] == shape])[0]
        axis = self.random.randrange(len(shape))
        out = shape[:axis] + (2 * shape[axis],) + shape[axis + 1:]
        if product(out) < 200000:
            self.add(f"dmir.concat {name}, {other} {{axis = {axis} : i64}} : ({self.type(shape)}, {self.type(shape)}) -> {self.type(out)}", out)

    def reduce(self):
        name, shape = self.pick()
        axis = self.random.randrange(len(shape))
        out = shape[:axis] + (1,) + shape[axis + 1:]
        kind = self.random.choice(["mean", "max"])
        self.add(f"dmir.reduce {kind} {name} {{axes = array<i64: {axis}>}} : ({self.type(shape)}) -> {self.type(out)}", out)

    def conv(self):
        found = self.pick(4)
        if not found or min(found[1][2:]) < 5 or found[1][1] > 128:
            return
        name, (n, c, h, w) = found
        k, stride, cout = self.random.choice([1, 3, 5]), self.random.choice([1, 2]), self.random.choice([4, 16, 64, 72])
        pad = k // 2
        weights = self.constant((cout, c, k, k), (c * k * k) ** -0.5)
        out = (n, cout, (h + 2 * pad - k) // stride + 1, (w + 2 * pad - k) // stride + 1)
        self.add(f"dmir.conv {name}, {weights} {{strides = array<i64: {stride}, {stride}>, dilations = array<i64: 1, 1>, low = array<i64: {pad}, {pad}>, "
                 f"high = array<i64: {pad}, {pad}>}} : ({self.type(found[1])}, {self.type((cout, c, k, k))}) -> {self.type(out)}", out)

    def pool(self):
        found = self.pick(4)
        if not found or min(found[1][2:]) < 4:
            return
        name, (n, c, h, w) = found
        out = (n, c, h // 2, w // 2)
        kind = self.random.choice(["max", "average"])
        self.add(f"dmir.pool {kind} {name} {{window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, "
                 f"high = array<i64: 0, 0>, ceilExtra = array<i64: 0, 0>}} : ({self.type(found[1])}) -> {self.type(out)}", out)

    def text(self):
        results = self.values[-1:] + [self.random.choice(self.values)]
        results = [v for i, v in enumerate(results) if v not in results[:i] and v not in self.inputs]
        arguments = ", ".join(f'{n}: {self.type(s)} {{dmir.name = "x{i}"}}' for i, (n, s) in enumerate(self.inputs))
        types = [self.type(s) for _, s in results]
        outputs = ", ".join(f'{t} {{dmir.name = "y{i}"}}' for i, t in enumerate(types))
        body = "\n".join(self.lines)
        return (f"func.func @main({arguments}) -> ({outputs}) {{\n{body}\n"
                f"  return {', '.join(n for n, _ in results)} : {', '.join(types)}\n}}\n")


def run(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    return None if result.returncode == 0 else f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}"


def check(seed, scratch):
    """What is wrong with a graph, or None."""
    graph = Graph(seed)
    if not graph.lines:
        return None
    model = scratch / "m.mlir"
    model.write_text(graph.text())
    wrong = run(BIN / "dmxc", model, "-q", "-o", scratch / "cpu.bundle") or run(
        BIN / "dmx-run", scratch / "cpu.bundle", "--random-inputs", seed, "--output-dir", scratch / "cpu")
    first = None
    for quads in random.Random(seed).sample([1, 2, 4, 8, 32], 3):
        out = scratch / f"device{quads}"
        wrong = wrong or run(BIN / "dmxc", model, "-q", "-t", f"corsair:quads={quads}", "-o", scratch / "d.bundle") or run(
            BIN / "dmx-run", scratch / "d.bundle", "--random-inputs", seed, "--output-dir", out, "--device-opt", f"skew_seed={seed + 1}",
            "--expect", scratch / "cpu", "--min-sqnr", "15")
        noise = re.search(r"max abs (\S+), .* too noisy", wrong or "")
        if noise and float(noise[1]) < 1e-4:  # the smallest numbers of f16
            wrong = None
        if wrong:
            return f"{quads} quads: {wrong}"
        bytes_now = [path.read_bytes() for path in sorted(out.glob("*.npy"))]
        text = subprocess.run([BIN / "dmxc", model, "-t", f"corsair:quads={quads}", "--emit", "partition", "-o", "-"], capture_output=True,
                              text=True, check=True).stdout
        if "along_k = 1" in text:  # sums over quads are added in another order
            continue
        first = first or bytes_now
        if bytes_now != first:
            return f"{quads} quads give other bytes"
    return wrong


def main():
    failed = 0
    for seed in range(FIRST, FIRST + COUNT):
        with tempfile.TemporaryDirectory(prefix="dmxc-graphs-") as folder:
            scratch = pathlib.Path(folder)
            wrong = check(seed, scratch)
            if wrong:
                failed += 1
                print(f"seed {seed}: {wrong}", flush=True)
                if KEEP:
                    KEEP.mkdir(parents=True, exist_ok=True)
                    shutil.copy(scratch / "m.mlir", KEEP / f"{seed}.mlir")
    print(f"{COUNT - failed} of {COUNT} random graphs are right")
    return int(failed > 0)


sys.exit(main())
