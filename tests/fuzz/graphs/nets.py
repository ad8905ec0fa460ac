#!/usr/bin/env python3
"""Random nets of 3 to 12 layers, one behind the other: products, softmax, norms, attention, gates, residuals. Each compiles at -O0 to -O3 for
the processor and gives what the interpreter gives; on the simulated card it gives that at 20 dB, and no value saturates. Usage:

  nets.py BIN [--count N] [--first SEED] [--keep FOLDER]

Without --count 40 nets, in a long run 500 others. Exit codes: 0, 1 when a net failed, 77 without numpy."""
import argparse
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)
TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "fuzz"), str(TESTS / "models"), str(TESTS)]

from device import LEAST_SQNR, sqnr  # noqa: E402
from dims import Dim  # noqa: E402
from graph import Graph, Node, Value  # noqa: E402
from rule import excess  # noqa: E402
from sampling import LONG  # noqa: E402
from worker import Worker  # noqa: E402

PLAIN, ALL = 24, 500


class Net:
    """A net that grows layer by layer; all values are f32 matrices, or batches of them."""

    def __init__(self, seed):
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.graph, self.count = Graph(17, [{}]), 0
        rows, width = self.random.choice((1, 3, 4, 8, 17, 32)), self.random.choice((4, 6, 8, 16, 31, 64))
        batch = self.random.choice(((), (), (1,), (2,), (3, 2)))
        # Hidden states are as large as they are: of a scale of hundreds and thousands, what comes first is a norm.
        self.scale = self.random.choice((1, 1, 1, 1, 100, 1000, 3000))
        self.made = []
        self.x = self.input((*batch, rows, width))
        if self.scale > 1:
            self.x = self.random.choice((self.norm, self.root_norm, self.written_norm, self.unit_length))(self.x)
        self.made, self.is_mixed = [self.x], False
        for _ in range(self.random.randint(3, 12)):
            layer = self.random.choice((self.dense, self.dense, self.dense, self.softmax, self.softmax, self.norm, self.root_norm, self.written_norm,
                                        self.unit_length, self.attention, self.mixed, self.gate, self.residual, self.residual, self.activation, self.turn,
                                        self.line, self.rotation))
            # Products of products of themselves are below what 16 bits hold: a norm comes between.
            if layer == self.mixed and self.is_mixed:
                layer = self.written_norm
            self.is_mixed = layer == self.mixed or (self.is_mixed and layer in (self.turn, self.residual, self.dense, self.activation, self.gate))
            self.x = layer(self.x)
            self.made.append(self.x)
        outputs = {self.x} | set(self.random.sample(self.made[1:], self.random.choice((0, 0, 1))))
        self.graph.outputs = [name for name in self.made if name in outputs]
        self.graph.tidy()

    # --- parts ----------------------------------------------------------------------------------------------------
    def input(self, shape):
        name = f"x{len(self.graph.inputs)}"
        self.record(name, shape)
        self.graph.inputs.append(self.graph.values[name])
        return name

    def record(self, name, shape):
        top = float(self.scale) if name.startswith("x") else 1.0
        self.graph.values[name] = Value(name, "f32", [Dim([n]) for n in shape], -top, top)

    def shape(self, name):
        return self.graph.values[name].shape(0)

    def weight(self, *shape, scale=1.0):
        return self.constant((self.numbers.standard_normal(shape) * scale).astype(np.float32))

    def constant(self, array):
        self.count += 1
        name = f"w{self.count}"
        self.graph.weights[name] = np.asarray(array)
        return name

    def node(self, operator, inputs, shape, **attributes):
        self.count += 1
        name = f"v{self.count}"
        self.graph.nodes.append(Node(operator, inputs, [name], "", attributes, f"/{self.count}/{operator.lower()}"))
        self.record(name, shape)
        return name

    def product(self, a, b, n):
        return self.node("MatMul", [a, b], (*self.shape(a)[:-1], n))

    def scaled(self, x, factor):
        return self.node("Mul", [x, self.constant(np.float32(factor))], self.shape(x))

    def turned(self, x):
        shape = self.shape(x)
        order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
        return self.node("Transpose", [x], [shape[i] for i in order], perm=order)

    # --- layers ---------------------------------------------------------------------------------------------------
    def dense(self, x):
        shape, k = self.shape(x), self.shape(x)[-1]
        n = self.random.choice((k, k, k, 8, 24))
        w, b = self.weight(k, n, scale=k ** -0.5), self.weight(n, scale=0.1)
        if len(shape) == 2 and self.random.random() < 0.6:
            return self.node("Gemm", [x, w, b], (*shape[:-1], n))
        y = self.product(x, w, n)
        return self.node("Add", [y, b], self.shape(y)) if self.random.random() < 0.6 else y

    def softmax(self, x):
        axis = self.random.choice((-1, -1, -1, -2))
        return self.node(self.random.choice(("Softmax", "Softmax", "LogSoftmax")), [x], self.shape(x), axis=axis)

    def norm(self, x):
        n = self.shape(x)[-1]
        return self.node("LayerNormalization", [x, self.weight(n), self.weight(n)], self.shape(x), axis=-1, epsilon=1e-3)

    def epsilon(self):
        """Later rows may be all but constant, and what is left of them noise."""
        return self.random.choice((1e-2, 1e-3)) if self.scale == 1 or self.made else self.random.choice((1e-2, 1e-5, 1e-6, 1e-12))

    def written_norm(self, x):
        """LayerNorm as exporters below opset 17 write it."""
        shape = self.shape(x)
        centred = self.node("Sub", [x, self.node("ReduceMean", [x], (*shape[:-1], 1), axes=[-1], keepdims=1)], shape)
        squares = self.node("Pow", [centred, self.constant(np.float32(2))], shape)
        variance = self.node("ReduceMean", [squares], (*shape[:-1], 1), axes=[-1], keepdims=1)
        root = self.node("Sqrt", [self.node("Add", [variance, self.constant(np.float32(self.epsilon()))], self.shape(variance))], self.shape(variance))
        return self.node("Add", [self.node("Mul", [self.node("Div", [centred, root], shape), self.weight(shape[-1])], shape), self.weight(shape[-1])], shape)

    def unit_length(self, x):
        """x over its length, clamped as torch does, times a root of its width."""
        shape = self.shape(x)
        length = self.node("ReduceL2", [x], (*shape[:-1], 1), axes=[-1], keepdims=1)
        length = self.node("Max", [length, self.constant(np.float32(1e-12))], self.shape(length))
        return self.scaled(self.node("Div", [x, length], shape), shape[-1] ** 0.5)

    def root_norm(self, x):
        shape = self.shape(x)
        mean = self.node("ReduceMean", [self.node("Mul", [x, x], shape)], (*shape[:-1], 1), axes=[-1], keepdims=1)
        root = self.node("Sqrt", [self.node("Add", [mean, self.constant(np.float32(self.epsilon()))], self.shape(mean))], self.shape(mean))
        return self.node("Mul", [self.node("Div", [x, root], shape), self.weight(shape[-1])], shape)

    def attention(self, x):
        k = self.shape(x)[-1]
        q, key, v = (self.product(x, self.weight(k, n, scale=k ** -0.5), n) if self.random.random() < 0.7 else x for n in (k, k, k))
        scores = self.scaled(self.product(q, self.turned(key), self.shape(x)[-2]), k ** -0.5)
        if self.random.random() < 0.3:
            n = self.shape(x)[-2]
            scores = self.node("Add", [scores, self.constant(np.triu(np.full((n, n), -np.inf, np.float32), 1))], self.shape(scores))
        return self.product(self.node("Softmax", [scores], self.shape(scores), axis=-1), v, k)

    def mixed(self, x):
        """softmax(x) over other rows, or a product of x with itself."""
        shape = self.shape(x)
        y = self.product(x, self.turned(x), shape[-2])
        return self.scaled(y, 1 / shape[-1])

    def gate(self, x):
        n = self.shape(x)[-1]
        return self.node("Mul", [self.node("Sigmoid", [self.product(x, self.weight(n, n, scale=n ** -0.5), n)], self.shape(x)), x], self.shape(x))

    def residual(self, x):
        alike = [other for other in self.made if self.shape(other) == self.shape(x)]
        return self.node("Add", [x, self.random.choice(alike)], self.shape(x)) if alike else self.activation(x)

    def activation(self, x):
        return self.node(self.random.choice(("Relu", "Tanh", "Sigmoid", "Erf", "Softplus", "LeakyRelu", "HardSigmoid", "HardSwish")), [x], self.shape(x))

    def line(self, x):
        """x times a number, or a vector, and a number, or a row, on top; perhaps kept within bounds."""
        factor = self.constant(np.float32(self.random.choice((0.3, -1.7)))) if self.random.random() < 0.6 else self.weight(self.shape(x)[-1])
        rest = self.constant(np.float32(self.random.choice((0.1, -2.3)))) if self.random.random() < 0.6 else self.weight(self.shape(x)[-1])
        y = self.node(self.random.choice(("Add", "Sub")), [self.node("Mul", [x, factor], self.shape(x)), rest], self.shape(x))
        if self.random.random() < 0.5:
            low, high = (self.constant(np.float32(number)) for number in self.random.choice(((0, 1), (-1.1, 2.3))))
            y = self.node("Min", [self.node("Max", [y, low], self.shape(x)), high], self.shape(x))
        return y

    def rotation(self, x):
        """Rotary embedding by a table, as exporters write it; at least two columns."""
        *outer, rows, width = self.shape(x)
        if width % 2:
            return self.line(x)
        angles = np.arange(rows)[:, None] * 10.0 ** -np.linspace(0, 1, width // 2)
        cosine, sine = (self.constant(np.concatenate([f(angles)] * 2, -1).astype(np.float32)) for f in (np.cos, np.sin))
        half, cuts = (*outer, rows, width // 2), [self.constant(np.array([n])) for n in (0, width // 2, width, -1)]
        first, second = (self.node("Slice", [x, cuts[i], cuts[i + 1], cuts[3]], half) for i in (0, 1))
        quarter = self.node("Concat", [self.node("Neg", [second], half), first], self.shape(x), axis=-1)
        return self.node("Add", [self.node("Mul", [x, cosine], self.shape(x)), self.node("Mul", [quarter, sine], self.shape(x))], self.shape(x))

    def turn(self, x):
        return self.turned(x)


def outputs(folder, graph):
    """(name, what a run gave, what the interpreter gave) of each output."""
    for name in graph.outputs:
        yield name, *(np.load(folder / stem / f"out_{name}.npy") for stem in ("got", "ref"))


def failure(worker, folder, seed):
    """What is wrong with the net of a seed; None where nothing is."""
    for old in folder.glob("*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    graph = Net(seed).graph
    (folder / "m.onnx").write_bytes(graph.bytes())
    (folder / "in").mkdir()
    for value in graph.inputs:
        np.save(folder / "in" / f"{value.name}.npy", graph.data(value, 0, seed))
    done = worker.ask("interpret", "in", "ref", "m.onnx", "-q")
    if not done:
        return f"interpreter: exit {done.code}: {done.text}"
    for level in range(4):
        done = worker.ask("compile", "m.onnx", "-o", "m.bundle", "-q", "-t", "cpu:host", f"-O{level}")
        if done:
            done = worker.ask("run", "m.bundle", "", 1, "", "in", "got")
        if not done:
            return f"-O{level}: exit {done.code}: {done.text}"
        for name, got, wanted in outputs(folder, graph):
            if got.shape != wanted.shape or not excess(got, wanted) <= 1:
                return f"-O{level}: output {name} differs from the interpreter's"
    # A plain run has every third of them on the card.
    return failure_on_card(worker, folder, graph) if "corsair" in worker.targets and (LONG or seed % 3 == 0) else None


def failure_on_card(worker, folder, graph):
    done = worker.ask("compile", "m.onnx", "-o", "m.bundle", "-q", "-t", "corsair")
    if done:
        done = worker.ask("run", "m.bundle", "", 1, "corsair.strict_range=1", "in", "got")
    if not done:
        return f"corsair: exit {done.code}: {done.text}"
    for name, got, wanted in outputs(folder, graph):
        if got.shape != wanted.shape or sqnr(got, wanted) < LEAST_SQNR:
            return f"corsair: output {name}: {sqnr(got, wanted):.1f} dB"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=ALL if LONG else PLAIN)
    parser.add_argument("--first", type=int, default=0 if LONG else ALL)
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory(prefix="dmx-nets-") as folder:
        folder = pathlib.Path(folder)
        worker = Worker([arguments.bin.resolve() / "dmx-graph-worker"], folder)
        worker.targets = subprocess.run([arguments.bin / "dmxc", "--print-targets"], capture_output=True, text=True, check=True).stdout
        for seed in range(arguments.first, arguments.first + arguments.count):
            text = failure(worker, folder, seed)
            if text:
                failed.append(seed)
                print(f"seed {seed}: {text.strip()[:400]}", flush=True)
                if arguments.keep:
                    arguments.keep.mkdir(parents=True, exist_ok=True)
                    shutil.copy(folder / "m.onnx", arguments.keep / f"net{seed}.onnx")
        worker.close()
    print(f"seeds {arguments.first} to {arguments.first + arguments.count - 1}: {arguments.count} nets, {worker.counts}, {worker.milliseconds} ms; "
          f"failed: {failed or 'none'}")
    return 1 if failed else 0


sys.exit(main())
