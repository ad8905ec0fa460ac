#!/usr/bin/env python3
"""Masks of attention in random spellings, against numpy: the same rule as comparisons of ranges, constants, triangles, in bools,
integers or floats, joined and put in place of scores or added to them in the ways that exporters have. Every result is that of the
dense graph; at least 90 % of the masks are read as rules. Usage: mask_spellings.py BIN [graphs]. Exit 77 where numpy is not installed."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "fuzz"), str(pathlib.Path(__file__).resolve().parents[1])]
import make_corpus as onnx
from sampling import LONG

BIN = pathlib.Path(sys.argv[1]).resolve()
TYPES = {np.dtype(np.float32): onnx.FLOAT, np.dtype(np.int64): onnx.INT64, np.dtype(bool): onnx.BOOL}
LEAST, INFINITE = np.float32(np.finfo(np.float32).min), np.float32(-np.inf)


class Graph:
    """Nodes of one model with many attentions; each value of a mask beside its numpy array."""

    def __init__(self, random):
        self.random, self.nodes, self.weights, self.count = random, [], [], 0

    def name(self):
        self.count += 1
        return f"t{self.count}"

    def op(self, operator, inputs, **attributes):
        out = self.name()
        self.nodes.append(onnx.node(operator, " ".join(inputs), out, **attributes))
        return out

    def constant(self, array):
        array = np.ascontiguousarray(array)
        out = self.name()
        self.weights.append(onnx.tensor(out, TYPES[array.dtype], list(array.shape), raw=array.tobytes()))
        return out

    def integer(self, value):
        return self.constant(np.array(value, np.int64))

    def chance(self, *weights):
        return int(self.random.choice(len(weights), p=np.array(weights) / sum(weights)))

    # --- ranges

    def positions(self, count, axis):
        """0 .. count - 1 along an axis of two."""
        kind = self.chance(4, 3, 1, 1)
        if kind == 0:
            line = self.op("Range", [self.integer(0), self.integer(count), self.integer(1)])
        elif kind == 1:
            line = self.constant(np.arange(count, dtype=np.int64))
        elif kind == 2:
            line = self.op("Slice", [self.constant(np.arange(count + 9, dtype=np.int64)), self.integer([0]), self.integer([count])])
        else:
            half = count // 2
            line = self.op("Concat", [self.constant(np.arange(half, dtype=np.int64)), self.constant(np.arange(half, count, dtype=np.int64))], axis=0)
        if self.chance(1, 1):
            return self.op("Unsqueeze", [line, self.integer([axis])])
        return self.op("Reshape", [line, self.integer([1, count] if axis == 0 else [count, 1])])

    # --- conditions, as bools of rows x columns

    def compared(self, rows, columns, low, high):
        """low <= j - i <= high; None is no bound."""
        i, j = self.positions(rows, 1), self.positions(columns, 0)
        result = None
        if high is not None:
            kind = self.chance(1, 1, 1, 1)
            if kind == 0:
                result = self.op("LessOrEqual", [j, self.op("Add", [i, self.integer(high)])])
            elif kind == 1:
                result = self.op("Not", [self.op("Greater", [j, self.op("Add", [i, self.integer(high)])])])
            elif kind == 2:
                result = self.op("GreaterOrEqual", [i, self.op("Sub", [j, self.integer(high)])])
            else:
                result = self.op("Less", [self.op("Sub", [j, i]), self.integer(high + 1)])
        if low is not None:
            kind = self.chance(1, 1)
            other = (self.op("GreaterOrEqual", [j, self.op("Add", [i, self.integer(low)])]) if kind == 0 else
                     self.op("Not", [self.op("Less", [self.op("Sub", [j, i]), self.integer(low)])]))
            result = other if result is None else self.op("And", [result, other])
        return result

    def band(self, rows, columns):
        low, high = [(None, int(self.random.integers(0, 9))), (int(self.random.integers(-9, 0)), int(self.random.integers(0, 5)))][self.chance(1, 1)]
        delta = np.arange(columns)[None] - np.arange(rows)[:, None]
        wanted = (delta <= high) & (delta >= (low if low is not None else -10**9))
        kind = self.chance(3, 1, 1, 1)
        if kind == 0:
            return self.compared(rows, columns, low, high), wanted
        if kind == 1:
            return self.constant(wanted), wanted
        if kind == 2:
            return self.op("Transpose", [self.constant(wanted.T)], perm=[1, 0]), wanted
        ones = self.constant(np.ones((rows, columns), np.float32))
        below = self.op("Trilu", [ones, self.integer(high)], upper=0)
        if low is not None:
            below = self.op("Trilu", [below, self.integer(low)], upper=1)
        return self.op("Cast", [below], to=onnx.BOOL), wanted

    def chunks(self, rows, columns):
        size = int(self.random.integers(2, 9))
        i, j = self.positions(rows, 1), self.positions(columns, 0)
        by = self.integer(size)
        return (self.op("Equal", [self.op("Div", [i, by]), self.op("Div", [j, by])]),
                np.arange(rows)[:, None] // size == np.arange(columns)[None] // size)

    def steps(self, rows, columns):
        """Each so many keys back, and neighbours; or the last ones of each chunk."""
        size, own = int(self.random.integers(3, 40)), int(self.random.integers(1, 9))
        i, j = np.arange(rows)[:, None], np.arange(columns)[None]
        by = self.integer(size)
        if self.chance(1, 1):
            apart = self.op("Sub", [self.positions(rows, 1), self.positions(columns, 0)])
            return self.op("Equal", [self.op("Mod", [apart, by]), self.integer(own % size)]), (i - j) % size == own % size
        first = max(size - own, (size + 1) // 2)
        value = self.op("GreaterOrEqual", [self.op("Mod", [self.positions(columns, 0), by]), self.integer(first)])
        return value, np.broadcast_to(j % size >= first, (rows, columns))

    def few(self, rows, columns):
        count = int(self.random.integers(1, columns))
        wanted = np.broadcast_to(np.arange(columns)[None] < count, (rows, columns))
        return self.op("Less", [self.positions(columns, 0), self.integer(count)]), wanted

    def joined(self, a, b, both):
        """And or or, in bools, integers or floats."""
        kind = self.chance(2, 1, 1)
        if kind == 0:
            return self.op("And" if both else "Or", [a, b])
        to = onnx.INT64 if kind == 1 else onnx.FLOAT
        x, y = self.op("Cast", [a], to=to), self.op("Cast", [b], to=to)
        return self.op("Cast", [self.op("Mul" if both else "Add", [x, y])], to=onnx.BOOL)

    def rule(self, rows, columns):
        far = int(columns > 64)  # fewer are folded to a matrix, which has no steps
        value, wanted = (self.band, self.chunks, self.few, self.steps)[self.chance(4, 1, 1, far)](rows, columns)
        if self.chance(1, 1):
            other, more = (self.band, self.chunks, self.few, self.steps)[self.chance(2, 1, 2, far)](rows, columns)
            both = bool(self.chance(1, 3))
            value, wanted = self.joined(value, other, both), wanted & more if both else wanted | more
        return value, wanted

    # --- what is done with it

    def masked(self, scores, value, wanted):
        """Scores under the mask, and what each masked one becomes."""
        kind = self.chance(2, 2, 2, 1, 1)
        fill = (LEAST, INFINITE)[self.chance(1, 1)]
        if kind == 0:
            return self.op("Where", [value, scores, self.constant(fill)]), fill
        if kind == 1:
            return self.op("Where", [self.op("Not", [value]), self.constant(fill), scores]), fill
        if kind == 2:
            return self.op("Add", [scores, self.op("Where", [value, self.constant(np.float32(0)), self.constant(fill)])]), fill
        weight = self.op("Cast", [value], to=onnx.FLOAT)
        hidden = self.op("Sub", [self.constant(np.float32(1)), weight])
        if kind == 3:
            return self.op("Add", [scores, self.op("Mul", [hidden, self.constant(LEAST)])]), LEAST
        return self.op("Where", [self.op("Cast", [hidden], to=onnx.BOOL), self.constant(fill), scores]), fill


def softmax(x):
    with np.errstate(invalid="ignore"):
        x = np.exp(x - x.max(-1, keepdims=True))
        return x / x.sum(-1, keepdims=True)


def small(random):
    return int(random.integers(12, 40)), int(random.integers(16, 50))


def make(seed, attentions, sizes=small):
    """A model of some attentions, inputs of a run, and what it is to give."""
    random = np.random.default_rng(seed)
    graph = Graph(random)
    inputs, outputs, values, wanted = [], [], {}, {}
    for a in range(attentions):
        rows, columns = sizes(random)
        shapes = {f"q{a}": [2, rows, 8], f"k{a}": [2, 8, columns], f"v{a}": [2, columns, 4]}
        q, k, v = shapes
        for name, shape in shapes.items():
            inputs.append(onnx.info(name, onnx.FLOAT, shape))
            values[name] = random.standard_normal(shape).astype(np.float32)
        rule, kept = graph.rule(rows, columns)
        scores, fill = graph.masked(graph.op("MatMul", [q, k]), rule, kept)
        weights = graph.op("Softmax", [scores], axis=-1)
        graph.nodes.append(onnx.node("MatMul", f"{weights} {v}", f"y{a}"))
        outputs.append(onnx.info(f"y{a}", onnx.FLOAT, None))
        dense = np.where(kept, values[q].astype(np.float64) @ values[k], fill)
        wanted[f"y{a}"] = softmax(dense) @ values[v]
    return onnx.model(graph.nodes, inputs, outputs, weights=graph.weights), values, wanted


def run(name, model, values, folder, *flags):
    """What dmxc says, and the outputs of a run."""
    path, bundle, given, out = folder / "m.onnx", folder / "m.bundle", folder / "in", folder / "out"
    path.write_bytes(model)
    done = subprocess.run([BIN / "dmxc", path, "-t", "cpu:x86-64-v3", "-o", bundle, *flags], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}: dmxc ended with {done.returncode}\n{done.stderr}")
    for folder in (given, out):
        shutil.rmtree(folder, ignore_errors=True)
    given.mkdir()
    for tensor, value in values.items():
        np.save(given / f"{tensor}.npy", value)
    ran = subprocess.run([BIN / "dmx-run", bundle, "--inputs", given, "--output-dir", out, "-q"], capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{name}: dmx-run ended with {ran.returncode}\n{ran.stderr}")
    return done.stderr, lambda tensor: np.load(next(out.glob(f"*{tensor}.npy")))


def check(name, got, expected):
    if not np.allclose(got, expected, rtol=1e-4, atol=1e-5, equal_nan=True):
        sys.exit(f"{name} differs from the dense graph by {np.nanmax(np.abs(got - expected))}")


def one(seed, attentions, folder):
    """A model of some attentions: how many of their masks were read."""
    model, values, wanted = make(seed, attentions)
    said, result = run(f"seed {seed}", model, values, folder)
    for name, expected in wanted.items():
        check(f"seed {seed}: '{name}'", result(name), expected)
    found = re.search(r"masks: (\d+) of (\d+) masked", said)
    return int(found.group(1)) if found else 0


def main():
    graphs = int(sys.argv[2]) if len(sys.argv) > 2 else 200 if LONG else 20
    each, read = 10, 0
    with tempfile.TemporaryDirectory(prefix="dmxc-masks-") as folder:
        for seed in range(graphs // each):
            read += one(seed, each, pathlib.Path(folder))
    total = graphs // each * each
    print(f"{total} spellings give what the dense graph does; {read} are read as rules")
    if read < 0.9 * total:
        sys.exit(f"only {read} of {total} masks were read as rules")


if __name__ == "__main__":
    main()
