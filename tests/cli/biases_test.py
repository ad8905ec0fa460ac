#!/usr/bin/env python3
"""What is added to the scores of a softmax and masks nothing: no model of these has a line on masks. Masks beside them keep theirs. Usage:
biases_test.py BIN ZOO DIGITS [unittest arguments]. Exit 77 where numpy is not installed."""
import pathlib
import subprocess
import sys
import unittest

import dynamic_shapes  # exits where numpy is not installed
from dynamic_shapes import BIN, BundleTest, np, onnx

ZOO, DIGITS = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
# Of the zoo, those whose exporters write a mask.
MASKED = ("bert", "gpt2", "llama")


class Net:
    """Nodes, inputs and weights of a net that ends in a softmax."""

    def __init__(self, seed):
        self.random, self.nodes, self.inputs, self.weights, self.count = np.random.default_rng(seed), [], [], [], 0

    def op(self, operator, inputs, **attributes):
        self.count += 1
        self.nodes.append(onnx.node(operator, " ".join(inputs), f"t{self.count}", **attributes))
        return f"t{self.count}"

    def input(self, *shape, dtype=onnx.FLOAT):
        self.inputs.append(onnx.info(f"x{len(self.inputs)}", dtype, list(shape)))
        return f"x{len(self.inputs) - 1}"

    def constant(self, array):
        array = np.ascontiguousarray(array)
        dtype = {np.dtype(np.float32): onnx.FLOAT, np.dtype(np.int64): onnx.INT64, np.dtype(bool): onnx.BOOL}[array.dtype]
        self.weights.append(onnx.tensor(f"w{len(self.weights)}", dtype, list(array.shape), raw=array.tobytes()))
        return f"w{len(self.weights) - 1}"

    def normal(self, *shape, scale=1.0):
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def model(self, result):
        self.nodes.append(onnx.node("Identity", result, "y"))
        return onnx.model(self.nodes, self.inputs, [onnx.info("y", onnx.FLOAT, None)], weights=self.weights)


# --- nets without masks -----------------------------------------------------------------


def dense(net, scale=1.0):
    """Layers of random widths; the last one's bias stands before the softmax."""
    widths = [int(n) for n in net.random.integers(3, 40, size=int(net.random.integers(2, 5)))]
    x = net.input(int(net.random.integers(2, 6)), widths[0])
    for i, (before, behind) in enumerate(zip(widths, widths[1:])):
        x = net.op("Add", [net.op("MatMul", [x, net.normal(before, behind)]), net.normal(behind, scale=scale)])
        if i + 2 < len(widths):
            x = net.op(str(net.random.choice(["Relu", "Tanh", "Sigmoid"])), [x])
    return net.op("Softmax", [x], axis=-1)


def intercepts(net):
    """As regressions on numbers that nobody scaled have them: some below -100, and far from one another."""
    x, classes = net.input(4, 6), int(net.random.integers(3, 12))
    bias = net.constant(-net.random.uniform(0, 900, classes).astype(np.float32))
    return net.op("Softmax", [net.op("Add", [net.op("MatMul", [x, net.normal(6, classes)]), bias])], axis=-1)


def choosing(net):
    """An activation that is written as a choice by what the scores are."""
    x, zero = net.op("MatMul", [net.input(3, 8), net.normal(8, 12)]), net.constant(np.float32(0))
    slope = net.constant(net.random.uniform(0.1, 0.3, [1, 12]).astype(np.float32))
    chosen = net.op("Where", [net.op("Greater", [x, zero]), x, net.op("Mul", [x, slope])])
    return net.op("Softmax", [net.op("Add", [chosen, net.normal(12)])], axis=-1)


def image(net):
    x = net.op("Conv", [net.input(2, 3, 9, 9), net.normal(4, 3, 3, 3), net.normal(4)])
    x = net.op("Flatten", [net.op("GlobalAveragePool", [net.op("Relu", [x])])])
    return net.op("Softmax", [net.op("Gemm", [x, net.normal(4, 7), net.normal(7)])], axis=-1)


def attended(net, bias, rows=24, heads=2, depth=8):
    """softmax(q k + bias) v; `bias` gives what is added, of a shape that broadcasts."""
    q, k, v = net.input(1, heads, rows, depth), net.input(1, heads, depth, rows), net.input(1, heads, rows, depth)
    scores = net.op("Add", [net.op("MatMul", [q, k]), bias])
    return net.op("MatMul", [net.op("Softmax", [scores], axis=-1), v])


def relative(net):
    """Learned biases by distance, as T5 and Swin have them, from a table of buckets."""
    rows, heads = 24, 2
    distance = np.clip(np.arange(rows)[None] - np.arange(rows)[:, None], -8, 8) + 8
    table = net.op("Gather", [net.normal(17, heads), net.constant(distance.astype(np.int64))], axis=0)
    return attended(net, net.op("Unsqueeze", [net.op("Transpose", [table], perm=[2, 0, 1]), net.constant(np.array([0]))]))


def slopes(net, rows=24):
    """ALiBi: what grows with the distance is no fill, however far the keys are."""
    line = (np.arange(rows)[None, None, None] - np.arange(rows)[None, None, :, None]).astype(np.float32)
    return attended(net, net.constant(line * np.array([0.5, 0.9], np.float32)[None, :, None, None]), rows=rows)


def far(net):
    return slopes(net, rows=2400)


def positions(net):
    """The same from positions that the graph computes."""
    line = net.op("Cast", [net.op("Range", [net.constant(np.int64(0)), net.constant(np.int64(24)), net.constant(np.int64(1))])], to=onnx.FLOAT)
    return attended(net, net.op("Mul", [line, net.constant(np.array([[[[0.5]], [[0.25]]]], np.float32))]))


def given(net):
    """A bias that the caller brings; a mask would be in attention."""
    scores = net.op("MatMul", [net.input(5, 8), net.normal(8, 10)])
    return net.op("Softmax", [net.op("Add", [scores, net.input(10)])], axis=-1)


def gated(net):
    """A bias that other layers compute, of one row."""
    scores = net.op("MatMul", [net.input(5, 8), net.normal(8, 10)])
    gate = net.op("Sigmoid", [net.op("MatMul", [net.input(1, 6), net.normal(6, 10)])])
    return net.op("Softmax", [net.op("Add", [scores, net.op("Mul", [gate, net.constant(np.float32(20))])])], axis=-1)


KINDS = [dense, lambda net: dense(net, 60), intercepts, choosing, image, relative, slopes, positions, given, gated]

# --- the same places with masks -----------------------------------------------------------


def swin(net):
    """Windows that were shifted: -100 where two parts of the image meet, in no order that a rule has."""
    return attended(net, net.constant(np.where(net.random.random((1, 1, 24, 24)) < 0.5, 0, -100).astype(np.float32)))


def irregular(net):
    return attended(net, net.constant(np.where(net.random.random((24, 24)) < 0.5, 0, -np.inf).astype(np.float32)))


def beside(net):
    """A mask and a bias in one sum."""
    mask = net.constant(np.where(net.random.random((24, 24)) < 0.5, 0, -1e9).astype(np.float32))
    return attended(net, net.op("Add", [net.normal(1, 1, 24, 24), mask]))


def scaled(net):
    """(mask - 1) * 10000 of what the caller brings."""
    kept = net.op("Cast", [net.input(1, 1, 1, 24, dtype=onnx.INT64)], to=onnx.FLOAT)
    return attended(net, net.op("Mul", [net.op("Sub", [kept, net.constant(np.float32(1))]), net.constant(np.float32(10000))]))


def brought(net):
    """Added to attention by the caller: what it is only a run knows."""
    return attended(net, net.input(1, 1, 24, 24))


def best(net):
    """Scores below a bound: the choice looks at them, and leaves out."""
    scores = net.op("MatMul", [net.input(5, 8), net.normal(8, 10)])
    low = net.op("Less", [scores, net.input(5, 1)])
    return net.op("Softmax", [net.op("Where", [low, net.constant(np.float32(-np.inf)), scores])], axis=-1)


class Biases(BundleTest):
    def line(self, path):
        """What is said of masks. Of models with other words before their text, the frontend and partition alone are run."""
        done = subprocess.run([BIN / "dmxc", path, "-t", "cpu:x86-64-v3", "--emit", "partition", "-o", self.dir / "t.mlir"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return "".join(line for line in done.stderr.splitlines() if line.startswith("masks:"))

    def made(self, kind, seed):
        net = Net(seed)
        (self.dir / "m.onnx").write_bytes(net.model(kind(net)))
        return self.line(self.dir / "m.onnx")

    def test_nets_without_masks(self):
        for seed in range(60):
            self.assertEqual(self.made(KINDS[seed % len(KINDS)], seed), "", f"seed {seed}")
        self.assertEqual(self.made(far, 0), "")

    def test_models_without_masks(self):
        self.assertEqual(self.line(DIGITS), "")
        zoo = [path for path in sorted(ZOO.glob("*/model.onnx")) if not path.parent.name.startswith(MASKED)]
        if not zoo:
            self.skipTest(f"no models in {ZOO}")
        for path in zoo:
            self.assertEqual(self.line(path), "", path)

    def test_masks_keep_their_line(self):
        for kind in (swin, irregular, beside, scaled, brought, best):
            asked = int(kind is brought)  # in a run
            self.assertEqual(self.made(kind, 1), f"masks: {asked} of 1 masked attention by rule, masked keys skipped in 0", kind.__name__)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:])
