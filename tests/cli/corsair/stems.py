#!/usr/bin/env python3
"""Convolutions of few channels have their whole windows along K: near numpy's numbers at every stop, on any team, the same bits at -O0 and -O2, in
fewer clocks than by blocks of 64 channels, which a text may ask for; where rows of a window are no neighbours that is refused by node.
Usage: stems.py BIN [unittest arguments]; a plain run takes a part of the cases. Exit 77 where numpy is not installed."""
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from corsair.card import CardTest
from corsair_rotations import Graph
from dynamic_shapes import BIN, np, onnx
from sampling import sample

# image [n, c, h, w] or [n, c, w], columns, kernel, strides, pads (all before, then all behind), dilations, groups
STEM = ((1, 3, 224, 224), 64, (7, 7), (2, 2), (3, 3, 3, 3), (1, 1), 1)
CASES = [((1, 3, 40, 36), 64, (7, 7), (2, 2), (3, 3, 3, 3), (1, 1), 1), ((1, 3, 33, 47), 40, (7, 5), (1, 2), (0, 0, 0, 0), (1, 1), 1),
         ((3, 1, 24, 24), 130, (5, 5), (1, 1), (2, 2, 2, 2), (1, 1), 1), ((2, 4, 30, 26), 16, (5, 5), (3, 1), (1, 4, 0, 3), (1, 2), 1),
         ((2, 6, 24, 32), 8, (5, 5), (2, 2), (2, 2, 2, 2), (1, 1), 2), ((1, 12, 200), 96, (31,), (1,), (15, 15), (1,), 1),
         ((8, 3, 32, 32), 32, (7, 7), (4, 4), (3, 3, 3, 3), (1, 1), 1), ((1, 64, 16, 16), 64, (5, 5), (1, 1), (2, 2, 2, 2), (1, 1), 1)]
SEVEN = re.compile(r"#lldmir\.plan<num_imc 3, ppr_mode 2, groups 1, slices 4, share rows, segment 3, windows>")


def convolved(x, w, strides, pads, dilations, groups):
    """In f64, place by place of the kernel."""
    axes = x.ndim - 2
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *zip(pads[:axes], pads[axes:])])
    sizes = [(size - d * (k - 1) - 1) // s + 1 for size, k, s, d in zip(x.shape[2:], w.shape[2:], strides, dilations)]
    y = np.zeros((x.shape[0], w.shape[0], *sizes))
    n, c = w.shape[0] // groups, w.shape[1]
    for place in np.ndindex(*w.shape[2:]):
        seen = x[(slice(None), slice(None), *(slice(p * d, p * d + (size - 1) * s + 1, s) for p, d, s, size in zip(place, dilations, strides, sizes)))]
        for group in range(groups):
            part = w[(slice(group * n, (group + 1) * n), slice(None), *place)].astype(np.float64)
            y[:, group * n:(group + 1) * n] += np.einsum("oc,nc...->no...", part, seen[:, group * c:(group + 1) * c])
    return y


class Stems(CardTest):
    def model(self, shape, columns, kernel, strides, pads, dilations, groups):
        """A convolution with a bias and a relu; the exact result."""
        g, source = Graph(), np.random.default_rng(len(kernel) + columns)
        w = (source.standard_normal((columns, shape[1] // groups, *kernel)) / np.sqrt(shape[1] * np.prod(kernel))).astype(np.float32)
        b = source.standard_normal(columns).astype(np.float32)
        y = g.op("Conv", "x", g.constant(w), g.constant(b), pads=list(pads), kernel_shape=list(kernel), strides=list(strides), dilations=list(dilations), group=groups)
        g.nodes.append(onnx.node("Relu", y, "y"))
        (self.dir / "m.onnx").write_bytes(onnx.model(g.nodes, [onnx.info("x", onnx.FLOAT, shape)], [onnx.info("y", onnx.FLOAT, None)], weights=g.weights))
        self.values = {"x": source.standard_normal(shape).astype(np.float32)}
        exact = convolved(self.values["x"], w, strides, pads, dilations, groups)
        return np.maximum(exact + b.reshape(-1, *[1] * len(kernel)), 0)

    def test_numbers(self):
        for case in sample(CASES, 4):
            exact = self.model(*case)
            for quads in (1, 4, 8):
                with self.subTest(case=case, quads=quads):
                    text = self.dmxc(quads, "--emit", "partition", "-o", "-").stdout
                    self.assertEqual(text.count(", windows>"), int(case[0][1] < 64), text)
                    results = [self.outcome(quads, level)[0] for level in ("-O0", "-O2")]
                    self.assertEqual(results[0].tobytes(), results[1].tobytes())
                    self.near(results[1], exact)
            done = subprocess.run([BIN / "dmx-compare", self.dir / "m.onnx", "--random-inputs", "1", "--stages", "--", "-q", "-t", "corsair:quads=4"],
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout.count("equal to the bit")), (0, 10), done.stdout)

    def changed(self, new):
        """The text of partition with another plan; its weights are packed by it."""
        text = self.dmxc(1, "--emit", "partition", "-o", "-").stdout
        self.assertEqual(len(SEVEN.findall(text)), 1)
        (self.dir / "t.mlir").write_text(re.sub(r", packed = \{(?:[^{}]|\{[^{}]*\})*\}", "", SEVEN.sub(new, text)))
        return ("--from", "partition")

    def test_clocks(self):
        """12,544 windows of 147 numbers: 3 blocks of 64 at once, 8 clocks a row, on 4 slices take 25,088; by blocks of channels there are 49."""
        exact = self.model(*STEM)
        found, clocks = self.outcome(1)
        self.near(found, exact)
        self.assertLess(clocks, 2 * 12544 * 8 // 4 + 2 * 12544 * 64 // 43 + 8000, "the arrays' twice, and the result through DDR")
        blocks, others = self.outcome(1, *self.changed("#lldmir.plan<num_imc 8, ppr_mode 3, groups 1, slices 4, share rows, segment 49>"), model="t.mlir")
        self.near(blocks, exact)
        self.assertGreater(others, clocks + 60000)

    def test_what_cannot_be(self):
        self.model((1, 3, 40, 36), 64, (7, 7), (2, 2), (3, 3, 3, 3), (1, 1), 1)
        for new, message in (("segment 49, windows", "segment is 49, and must be 3"), ("segment 3", "segment is 3, and must be 49"),
                             ("segment 3, window", "expected 'windows'")):
            done = self.dmxc(1, "-o", self.dir / "m.bundle", *self.changed(f"#lldmir.plan<num_imc 3, ppr_mode 2, groups 1, slices 4, share rows, {new}>"),
                             model="t.mlir")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(message, done.stderr)
        self.model((1, 3, 40, 36), 64, (7, 7), (1, 1), (0, 0, 0, 0), (2, 1), 1)
        text = self.dmxc(1, "--emit", "partition", "-o", "-").stdout
        (self.dir / "t.mlir").write_text(re.sub(r"(#lldmir\.plan<.*segment \d+)>", r"\1, windows>", text))
        done = self.dmxc(1, "-o", self.dir / "m.bundle", "--from", "partition", model="t.mlir")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"node '[\w./]+': 'lldmir\.plan' .*no windows whose rows are neighbours")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
