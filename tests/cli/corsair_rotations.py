#!/usr/bin/env python3
"""Rotary embeddings on the simulated card: however halves, pairs and angles are spelt, one function of the vector device turns the rows. The
numbers are numpy's. Usage: corsair_rotations.py BIN [unittest arguments]. Exit 77 where numpy is not installed."""
import re
import subprocess
import sys
import unittest

from dynamic_shapes import BIN, BundleTest, np, onnx

HEADS, LENGTH, SIZE = 4, 8, 32
HALF = SIZE // 2


def turned(x, angles, pairs):
    """Rows of x by angles [length, half]; pairs lie half a row apart, or side by side."""
    a, b = (x[..., :HALF], x[..., HALF:]) if pairs == "halves" else (x[..., ::2], x[..., 1::2])
    c, s = np.cos(angles), np.sin(angles)
    first, second = a * c - b * s, b * c + a * s
    return np.concatenate([first, second], -1) if pairs == "halves" else np.stack([first, second], -1).reshape(x.shape)


class Graph:
    def __init__(self):
        self.nodes, self.weights, self.count = [], [], 0

    def op(self, operator, *inputs, **attributes):
        self.count += 1
        name = f"t{self.count}"
        self.nodes.append(onnx.node(operator, " ".join(inputs), name, **attributes) + onnx.field(3, f"{operator}_{name}"))
        return name

    def constant(self, values):
        array = np.asarray(values)
        array = np.ascontiguousarray(array.astype("<i8" if array.dtype.kind == "i" else "<f4"))
        name = f"w{len(self.weights)}"
        self.weights.append(onnx.tensor(name, onnx.INT64 if array.dtype.kind == "i" else onnx.FLOAT, list(array.shape), raw=array.tobytes()))
        return name

    def part(self, x, start, end, step=1):
        return self.op("Slice", x, *(self.constant([n]) for n in (start, end, -1, step)))


def angles_of(positions):
    return positions[:, None] * 100.0 ** (-np.arange(HALF) / HALF)


def model_angles(g):
    """[1, 1, length, half] of the positions that a run brings, as exporters compute them."""
    return g.op("Mul", g.op("Reshape", "p", g.constant([1, 1, LENGTH, 1])), g.constant(angles_of(np.ones(1))))


def halves(g, x, cosine, sine):
    quarter = g.op("Concat", g.op("Neg", g.part(x, HALF, SIZE)), g.part(x, 0, HALF), axis=-1)
    return g.op("Add", g.op("Mul", x, cosine), g.op("Mul", quarter, sine))


def neighbours(g, x, cosine, sine):
    apart = lambda y: g.op("Unsqueeze", y, g.constant([-1]))
    both = g.op("Concat", apart(g.op("Neg", g.part(x, 1, SIZE, 2))), apart(g.part(x, 0, SIZE, 2)), axis=-1)
    quarter = g.op("Reshape", both, g.constant([1, HEADS, LENGTH, SIZE]))
    return g.op("Add", g.op("Mul", x, cosine), g.op("Mul", quarter, sine))


def computed(g, x):
    f = model_angles(g)
    both = g.op("Concat", f, f, axis=-1)
    return halves(g, x, g.op("Cos", both), g.op("Sin", both))


def scaled(g, x):
    f = model_angles(g)
    both = g.op("Concat", f, f, axis=-1)
    one = g.constant(np.float32(1))
    return halves(g, x, g.op("Mul", g.op("Cos", both), one), g.op("Mul", g.op("Sin", both), one))


def table(g, x):
    a = angles_of(np.arange(LENGTH))
    both = np.concatenate([a, a], -1)
    return halves(g, x, g.constant(np.cos(both)), g.constant(np.sin(both)))


def gathered(g, x):
    a = angles_of(np.arange(64))
    both = np.concatenate([a, a], -1)
    places = g.op("Cast", "p", to=onnx.INT64)
    return halves(g, x, *(g.op("Gather", g.constant(f(both)), places) for f in (np.cos, np.sin)))


def by_parts(g, x):
    f = model_angles(g)
    c, s = g.op("Cos", f), g.op("Sin", f)
    a, b = g.part(x, 0, HALF), g.part(x, HALF, SIZE)
    first = g.op("Sub", g.op("Mul", a, c), g.op("Mul", b, s))
    return g.op("Concat", first, g.op("Add", g.op("Mul", a, s), g.op("Mul", c, b)), axis=-1)


def pairs(g, x):
    f = g.op("Unsqueeze", model_angles(g), g.constant([-1]))
    both = g.op("Reshape", g.op("Concat", f, f, axis=-1), g.constant([1, 1, LENGTH, SIZE]))
    return neighbours(g, x, g.op("Cos", both), g.op("Sin", both))


def pairs_spread(g, x):
    f = g.op("Expand", g.op("Unsqueeze", model_angles(g), g.constant([-1])), g.constant([1, 1, LENGTH, HALF, 2]))
    both = g.op("Reshape", f, g.constant([1, 1, LENGTH, SIZE]))
    return neighbours(g, x, g.op("Cos", both), g.op("Sin", both))


def pairs_of_a_table(g, x):
    both = np.repeat(angles_of(np.arange(LENGTH)), 2, -1)
    return neighbours(g, x, g.constant(np.cos(both)), g.constant(np.sin(both)))


def part_of_rows(g, x):
    """The rest of each row stays as it is."""
    wide = g.op("Concat", x, x, axis=-1)
    return g.op("Slice", g.op("Concat", computed(g, g.part(wide, 0, SIZE)), g.part(wide, SIZE, 2 * SIZE), axis=-1),
                *(g.constant([n]) for n in (0, SIZE, -1, 1)))


# What is written, and how it pairs the elements.
SPELLINGS = {"angles twice": (computed, "halves"), "angles twice, scaled": (scaled, "halves"), "a table": (table, "halves"),
             "rows of a table": (gathered, "halves"), "a part of each row": (part_of_rows, "halves"), "half by half": (by_parts, "halves"), "pairs": (pairs, "neighbours"),
             "pairs, spread": (pairs_spread, "neighbours"), "pairs of a table": (pairs_of_a_table, "neighbours")}


class Rotations(BundleTest):
    def compile_graph(self, graph, y, *arguments):
        inputs = [onnx.info("x", onnx.FLOAT, [1, HEADS, LENGTH, SIZE]), onnx.info("p", onnx.FLOAT, [LENGTH])]
        graph.nodes.append(onnx.node("Relu", y, "y0"))  # what is turned is read on the card
        graph.nodes.append(onnx.node("Sub", "y0 y1", "y"))
        graph.nodes.insert(len(graph.nodes) - 1, onnx.node("Relu", graph.op("Neg", y), "y1"))
        (self.dir / "m.onnx").write_bytes(onnx.model(graph.nodes, inputs, [onnx.info("y", onnx.FLOAT, None)], weights=graph.weights))
        self.compile_file(self.dir / "m.onnx", *arguments)

    def functions(self):
        done = subprocess.run([BIN / "dmx-inspect", self.dir / "m.bundle", "--what", "kernels"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return set(re.findall(r"EXEC_SIMD .*\bfn=(\w+)", done.stdout))

    def check(self, kind, scale):
        random = np.random.default_rng(1)
        x, p = (random.standard_normal((1, HEADS, LENGTH, SIZE)) * scale).astype(np.float32), np.arange(LENGTH, dtype=np.float32)
        done = self.run_bundle({"x": x, "p": p})
        self.assertEqual(done.returncode, 0, done.stderr)
        got, wanted = np.load(self.dir / "out/out_y.npy"), turned(x.astype(np.float64), angles_of(p), kind)
        return np.abs(got - wanted).max() / np.abs(wanted).max()

    def test_spellings(self):
        for name, (write, kind) in SPELLINGS.items():
            function = "rope" if kind == "halves" else "rope_interleaved"
            for quads in (1, 4):
                graph = Graph()
                self.compile_graph(graph, write(graph, "x"), "-t", f"corsair:quads={quads}", "--require-target", "corsair")
                with self.subTest(name, quads=quads):
                    self.assertIn(function, self.functions())
                    self.assertNotIn("concat", self.functions())
                for scale in (1, 300, 3000):
                    with self.subTest(name, quads=quads, scale=scale):
                        self.assertLess(self.check(kind, scale), 4e-3)  # f16 angles, their cosines and the rows

    def test_on_the_host(self):
        """As the model has it."""
        for name, (write, kind) in SPELLINGS.items():
            graph = Graph()
            self.compile_graph(graph, write(graph, "x"))
            with self.subTest(name):
                self.assertLess(self.check(kind, 1), 1e-6)

    def test_other_angles(self):
        """Halves that are turned differently are no rotation of pairs."""
        graph = Graph()
        both = np.concatenate([angles_of(np.arange(LENGTH)), angles_of(np.arange(LENGTH) + 1)], -1)
        self.compile_graph(graph, halves(graph, "x", graph.constant(np.cos(both)), graph.constant(np.sin(both))), "-t", "corsair")
        self.assertFalse({"rope", "rope_interleaved"} & self.functions())
        x, p = np.random.default_rng(1).standard_normal((1, HEADS, LENGTH, SIZE)).astype(np.float32), np.zeros(LENGTH, np.float32)
        done = self.run_bundle({"x": x, "p": p})
        self.assertEqual(done.returncode, 0, done.stderr)
        quarter = np.concatenate([-x[..., HALF:], x[..., :HALF]], -1)
        self.assertLess(np.abs(np.load(self.dir / "out/out_y.npy") - (x * np.cos(both) + quarter * np.sin(both))).max(), 1e-2)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
