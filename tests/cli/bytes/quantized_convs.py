#!/usr/bin/env python3
"""Random convolutions of bytes against integer sums in numpy: equal bits, with batches and images that are known and open, padded, in
groups and depthwise. Usage: quantized_convs.py BIN [unittest arguments]. A plain run has 40 of 200, each at one level of four; the long
one has all at all levels. Exit 77 where numpy or onnx is not installed."""
import pathlib
import random
import subprocess
import sys
import unittest

try:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    print("SKIPPED: numpy or onnx is not installed (python3-numpy python3-onnx)")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from dynamic_shapes import BIN, BundleTest  # noqa: E402
from quantized import convolve, requantise  # noqa: E402
from sampling import LONG, SEED  # noqa: E402

LEVELS = ["x86-64-v2", "x86-64-v3", "x86-64-v4", "host"]
ALL, PLAIN, EACH = 200, 40, 10  # convolutions, those of a plain run, those of a model
TYPES = {np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8, np.dtype(np.int32): TensorProto.INT32}


class Conv:
    """A ConvInteger or a QLinearConv with all that it is given, and what it gives."""

    def __init__(self, number):
        r, self.name = random.Random(number), f"c{number}"
        kind = r.choice(["dense", "dense", "thin", "grouped", "depthwise", "depthwise"])
        self.groups, self.ic, self.oc = {
            "dense": lambda: (1, r.randint(1, 70), r.randint(8, 70)),
            "thin": lambda: (1, r.randint(1, 20), r.randint(1, 7)),
            "grouped": lambda: (2, 2 * r.choice([16, 32, 5]), 2 * r.choice([16, 48])),
            "depthwise": lambda: (lambda c: (c, c, c * r.choice([1, 1, 1, 2])))(r.randint(3, 50)),
        }[kind]()
        self.kernel = r.choice([(1, 1), (1, 1), (3, 3), (3, 3), (2, 3), (5, 1)])
        self.strides, self.pads = r.choice([[1, 1], [1, 1], [2, 2], [2, 1]]), [r.randint(0, k - 1) for k in self.kernel * 2]
        self.act, self.weight = r.choice([np.uint8, np.uint8, np.int8]), r.choice([np.int8, np.int8, np.uint8])
        self.zero, self.integer, self.open = r.choice([0, 0, 11]), r.random() < 0.5, r.choice(["", "n", "n", "nhw"])
        self.batch, self.size = r.randint(1, 3), (r.randint(5, 12), r.randint(5, 17))
        draw = np.random.default_rng(number)
        limits = lambda t: (np.iinfo(t).min, np.iinfo(t).max + 1)
        self.x = draw.integers(*limits(self.act), (self.batch, self.ic, *self.size)).astype(self.act)
        self.w = draw.integers(*limits(self.weight), (self.oc, self.ic // self.groups, *self.kernel)).astype(self.weight)
        self.wz = self.weight(128 if self.weight == np.uint8 and r.random() < 0.7 else 0)

    def node(self):
        n = self.name
        shape = dict(pads=self.pads, strides=self.strides, group=self.groups)
        constants = {"w": self.w, "xz": self.act(self.zero), "wz": self.wz}
        if self.integer:
            node = helper.make_node("ConvInteger", [f"x_{n}", f"w_{n}", f"xz_{n}", f"wz_{n}"], [f"y_{n}"], **shape)
        else:
            constants |= {"xs": np.float32(0.031), "ws": np.float32(0.017), "ys": np.float32(0.53), "yz": self.act(7)}
            names = [f"{k}_{n}" for k in ("x", "xs", "xz", "w", "ws", "wz", "ys", "yz")]
            node = helper.make_node("QLinearConv", names, [f"y_{n}"], **shape)
        return node, {f"{k}_{n}": v for k, v in constants.items()}

    def wanted(self):
        sums = convolve(self.x.astype(np.int64) - self.zero, self.w.astype(np.int64) - int(self.wz), self.pads, self.strides, self.groups)
        if self.integer:
            return sums.astype(np.int32)
        factor = np.float32(0.031) * np.float32(0.017) / np.float32(0.53)
        return requantise(sums.astype(np.float32) * factor, np.float32(1), self.act(7))

    def dims(self):
        named = {"": [None] * 4, "n": ["n", None, None, None], "nhw": ["n", None, "h", "w"]}[self.open]
        return [f"{name}_{self.name}" if name else size for name, size in zip(named, self.x.shape)]


class Convolutions(BundleTest):
    def write_model(self, convs):
        nodes, constants, inputs, outputs = [], {}, [], []
        for conv in convs:
            node, own = conv.node()
            nodes.append(node)
            constants |= own
            inputs.append(helper.make_tensor_value_info(f"x_{conv.name}", TYPES[conv.x.dtype], conv.dims()))
            outputs.append(helper.make_tensor_value_info(f"y_{conv.name}", TYPES[conv.wanted().dtype], [None] * 4))
        graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        (self.dir / "m.onnx").write_bytes(model.SerializeToString())

    def check(self, convs, level):
        self.write_model(convs)
        self.compile_file(self.dir / "m.onnx", "-t", f"cpu:{level}")
        result = self.run_bundle({f"x_{conv.name}": conv.x for conv in convs})
        self.assertEqual(result.returncode, 0, result.stderr)
        for conv in convs:
            got = np.load(next((self.dir / "out").glob(f"*y_{conv.name}.npy")))
            np.testing.assert_array_equal(got, conv.wanted(), err_msg=f"{vars(conv) | {'x': 0, 'w': 0}} at {level}")

    def test_random(self):
        first = 0 if LONG else SEED * PLAIN % ALL
        for at in range(0, ALL if LONG else PLAIN, EACH):
            convs = [Conv(first + at + i) for i in range(EACH)]
            for number, level in enumerate(LEVELS):
                if LONG or number == at // EACH % len(LEVELS):
                    with self.subTest(first=first + at, level=level):
                        self.check(convs, level)

    def test_what_multiplies(self):
        """Batches that a run brings keep bytes, as known ones do: dense, in groups of whole blocks, and depthwise."""
        for groups, algorithm in ((1, "conv-quads"), (2, "conv-quads"), (32, "conv-depthwise")):
            for batch in (2, "n"):
                conv = Conv(0)
                conv.groups, conv.ic, conv.oc, conv.kernel, conv.pads, conv.open = groups, 32, 32, (3, 3), [1] * 4, "n" if batch == "n" else ""
                conv.act = conv.weight = np.int8
                conv.x, conv.w, conv.wz = np.ones((2, 32, 9, 9), np.int8), np.ones((32, 32 // groups, 3, 3), np.int8), np.int8(0)
                self.write_model([conv])
                text = subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "--emit", "partition", "-o", "-"], capture_output=True, text=True)
                self.assertIn(f'"{algorithm}"', text.stdout)
                line = next(line for line in text.stdout.splitlines() if "dmir.conv " in line)
                self.assertRegex(line, r"ui8.*32x\d+x3x3xi8>|ui8.*xi8>")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
