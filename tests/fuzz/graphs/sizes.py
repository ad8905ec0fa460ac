#!/usr/bin/env python3
"""Random graphs of sizes up to several times what the card's memories hold, with default flags: each compiles, each node that went to the
host says why, and the numbers are those of numpy in f64; what takes the simulator long is compiled alone.

sizes.py BIN FIRST_SEED COUNT      a plain run takes one of 40; exit 77 where numpy or onnx is not installed"""
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    print("SKIPPED: numpy or onnx is not installed (python3-numpy python3-onnx)")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from sampling import LONG, sample

BIN, FIRST, COUNT = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
LARGEST = 1 << 26  # elements of a value: 128 MiB on the device, of whose quads each holds 16
MOST_WORK = 1 << (33 if LONG else 31)  # multiply-adds and eight times the elements of a graph that is run
WEIGHTS = {}


def weights(shape, scale):
    """Of a normal distribution, the same for a shape, since large ones take long to draw."""
    if shape not in WEIGHTS:
        WEIGHTS[shape] = np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)
    return WEIGHTS[shape] * np.float32(scale)


class Graph:
    """An ONNX graph that grows op by op, and how numpy computes each."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants, self.shapes, self.steps, self.work = [], [], {}, [], 0
        self.inputs = ["x0"]
        self.images = self.random.random() < 0.3
        self.shapes["x0"] = self.image() if self.images else self.matrix()
        self.last = "x0"
        for _ in range(self.random.integers(2, 7)):  # each product adds noise of 40 dB
            kinds = [self.conv, self.conv, self.pool, self.unary, self.residual] if self.images else \
                [self.product, self.product, self.attention, self.norm, self.softmax, self.unary, self.residual, self.row, self.turn, self.joined]
            self.choose(kinds)()
        self.used = {name for node in self.nodes for name in node.input}

    def choose(self, values):
        return values[self.random.integers(len(values))]

    def matrix(self):
        return (int(self.choose([1, 64, 512, 1000, 2048, 4096, 8192])), int(self.choose([64, 256, 768, 1024, 2048, 4096])))

    def image(self):
        side = int(self.choose([16, 56, 112, 224, 448]))
        return (int(self.choose([1, 1, 4])), int(self.choose([3, 16, 64])), side, side)

    def shape(self):
        return self.shapes[self.last]

    def add(self, op, inputs, shape, compute, work=0, **attributes):
        """One node; `compute` makes its value from those of its inputs."""
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        self.shapes[name] = tuple(int(dim) for dim in shape)
        self.steps.append((name, inputs, compute))
        self.work += work + 8 * int(np.prod(self.shapes[name]))
        self.last = name
        return name

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        self.shapes[name] = value.shape
        self.steps.append((name, [], lambda: value.astype(np.float64) if value.dtype == np.float32 else value))
        return name

    #--- kinds of ops

    def product(self):
        rows, depth = self.shape()
        columns = int(self.choose([64, 256, 1024, 2048, 4096, 8192, 14000]))
        if rows * columns > LARGEST or depth * columns > LARGEST:
            return
        by = self.constant(weights((depth, columns), depth ** -0.5))
        self.add("MatMul", [self.last, by], (rows, columns), np.matmul, rows * depth * columns)

    def attention(self):
        """Of heads, keys and values from the same rows."""
        rows, width = self.shape()
        heads = int(self.choose([1, 4, 16]))
        if not 64 <= rows <= 8192 or width > 4096 or width % heads or heads * rows * rows > LARGEST:
            return
        self.norm()  # large scores would make the softmax double its operands' errors
        depth = width // heads
        split = self.constant(np.array([rows, heads, depth], np.int64))
        join = self.constant(np.array([rows, width], np.int64))
        as_heads = lambda x, shape: x.reshape(shape)
        x = self.add("Reshape", [self.last, split], (rows, heads, depth), as_heads)
        q = self.add("Transpose", [x], (heads, rows, depth), lambda a: a.transpose(1, 0, 2), perm=[1, 0, 2])
        k = self.add("Transpose", [x], (heads, depth, rows), lambda a: a.transpose(1, 2, 0), perm=[1, 2, 0])
        scale = self.constant(np.float32([1 / depth]))
        s = self.add("MatMul", [q, k], (heads, rows, rows), np.matmul, rows * width * rows)
        s = self.add("Mul", [s, scale], (heads, rows, rows), np.multiply)
        p = self.add("Softmax", [s], (heads, rows, rows), softmax, axis=-1)
        y = self.add("MatMul", [p, q], (heads, rows, depth), np.matmul, rows * width * rows)
        y = self.add("Transpose", [y], (rows, heads, depth), lambda a: a.transpose(1, 0, 2), perm=[1, 0, 2])
        self.add("Reshape", [y, join], (rows, width), as_heads)

    def norm(self):
        rows, width = self.shape()
        gain = self.constant(1 + weights((width,), 0.1))
        self.add("LayerNormalization", [self.last, gain], (rows, width), layer_norm, axis=-1, epsilon=1e-5)

    def softmax(self):
        """Of rows whose numbers f16 has: those of longer ones are less than its least normal number."""
        if self.shape()[-1] > 1024:
            return
        self.norm()
        self.add("Softmax", [self.last], self.shape(), softmax, axis=-1)
        self.add("Mul", [self.last, self.constant(np.float32([self.shape()[-1]]))], self.shape(), np.multiply)

    def unary(self):
        op, compute = self.choose([("Relu", lambda a: np.maximum(a, 0)), ("Sigmoid", lambda a: 1 / (1 + np.exp(-a))), ("Abs", np.abs)])
        self.add(op, [self.last], self.shape(), compute)

    def residual(self):
        other = self.choose([name for name, shape in self.shapes.items() if shape == self.shape()])
        self.add("Add", [self.last, other], self.shape(), np.add)

    def row(self):
        """A whole constant, or a row of one."""
        shape = self.shape() if self.random.random() < 0.3 else self.shape()[-1:]
        self.add("Add", [self.last, self.constant(weights(shape, 0.5))], self.shape(), np.add)

    def turn(self):
        rows, width = self.shape()
        if rows <= 8192:
            self.add("Transpose", [self.last], (width, rows), np.transpose, perm=[1, 0])

    def joined(self):
        rows, width = self.shape()
        if 2 * rows * width <= LARGEST:
            self.add("Concat", [self.last, self.last], (rows, 2 * width), lambda a, b: np.concatenate((a, b), 1), axis=1)

    def conv(self):
        n, channels, height, width = self.shape()
        out, side = int(self.choose([16, 64, 128])), int(self.choose([1, 3]))
        if n * out * height * width > LARGEST:
            return
        by = self.constant(weights((out, channels, side, side), (channels * side * side) ** -0.5))
        self.add("Conv", [self.last, by], (n, out, height, width), convolve, n * out * height * width * channels * side * side, pads=[side // 2] * 4)

    def pool(self):
        n, channels, height, width = self.shape()
        if height % 2 == 0:
            self.add("MaxPool", [self.last], (n, channels, height // 2, width // 2),
                     lambda a: a.reshape(n, channels, height // 2, 2, width // 2, 2).max((3, 5)), kernel_shape=[2, 2], strides=[2, 2])

    #--- the whole

    def write(self, path):
        info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shapes[name])
        graph = helper.make_graph(self.nodes, "g", [info("x0")], [info(self.last)], self.constants)
        path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())

    def compute(self, x):
        values, left = {"x0": x.astype(np.float64)}, [name for _, inputs, _ in self.steps for name in inputs]
        for name, inputs, compute in self.steps:
            values[name] = compute(*(values[i] for i in inputs))
            for i in inputs:
                left.remove(i)
                if i not in left and i != self.last:
                    values.pop(i, None)
        return values[self.last]


def softmax(a):
    e = np.exp(a - a.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(a, gain):
    a = a - a.mean(-1, keepdims=True)
    return a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-5) * gain


def convolve(a, by):
    side = by.shape[-1]
    padded = np.pad(a, ((0, 0), (0, 0)) + ((side // 2,) * 2,) * 2)
    out = np.zeros((a.shape[0], by.shape[0]) + a.shape[2:])
    for i in range(side):
        for j in range(side):
            part = padded[:, :, i:i + a.shape[2], j:j + a.shape[3]]
            out += np.einsum("nchw,oc->nohw", part, by[:, :, i, j], optimize=True)
    return out


def sqnr(want, got):
    noise = np.sum((want - got) ** 2)
    return 10 * np.log10(np.sum(want ** 2) / noise) if noise else np.inf


def tool(name, *arguments):
    done = subprocess.run([str(BIN / name), *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def check(seed, folder, counts):
    """What is wrong with a graph; "" if nothing is."""
    graph = Graph(seed)
    if not graph.nodes:
        return ""
    model, bundle = folder / "m.onnx", folder / "m.bundle"
    graph.write(model)
    code, report, said = tool("dmxc", model, "-t", "corsair", "-o", bundle, "--placement-report", "-")
    if code:
        return f"dmxc exits with {code}: {said[-500:]}"
    for row in (line.split("\t") for line in report.splitlines() if not line.startswith("#")):
        if row[2] == "cpu" and not re.match(r"corsair: \S", row[5]):
            return f"node {row[0]} is on the host and does not say why: {row[5]}"
    counts["moved"] += "not fit corsair" in said
    counts["on the host"] += "; cpu " in said
    if graph.work > MOST_WORK:
        counts["compiled alone"] += 1
        return ""
    x = np.random.default_rng(seed).standard_normal(graph.shapes["x0"], np.float32)
    (folder / "in").mkdir()
    np.save(folder / "in" / "in_x0.npy", x)
    code, _, said = tool("dmx-run", bundle, "-q", "--inputs", folder / "in", "--output-dir", folder / "out")
    if code:
        return f"dmx-run exits with {code}: {said[-500:]}"
    decibel = sqnr(graph.compute(x), np.load(next((folder / "out").glob("*.npy"))).astype(np.float64))
    counts["right"] += decibel >= 30
    return "" if decibel >= 30 else f"{decibel:.1f} dB"


def main():
    failed, counts = 0, dict.fromkeys(("right", "compiled alone", "on the host", "moved"), 0)
    for seed in sample(range(FIRST, FIRST + COUNT), 40):
        with tempfile.TemporaryDirectory(prefix="dmxc-sizes-") as folder:
            wrong = check(seed, pathlib.Path(folder), counts)
        if wrong:
            failed += 1
            print(f"graph {seed}: {wrong}", flush=True)
    print(f"{counts}, {failed} wrong")
    return 1 if failed or not counts["right"] + counts["compiled alone"] else 0


if __name__ == "__main__":
    sys.exit(main())
