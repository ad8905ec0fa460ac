#!/usr/bin/env python3
"""Rows of arguments and results cross between DDR and the card while others are computed (lldmir.bands of schedule.bands): the bits of a text that has
all of them cross before and behind, in fewer clocks; and what cannot be is refused by node.
Usage: crossings.py BIN [unittest arguments]; a plain run takes a part of the cases. Exit 77 where numpy is not installed."""
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

# rows, depth, columns of a product, how many products one behind the other (the second back to depth), a function behind each, quads,
# and whether all rows of the argument and of the result cross in bands: of results not where cores take the columns in rounds (300 of 64, four at once)
CASES = [(512, 512, 512, 1, None, 1, (True, True)), (512, 512, 512, 1, "Tanh", 1, (True, True)), (500, 200, 130, 1, "Relu", 1, (True, True)),
         (512, 512, 2048, 2, "Tanh", 1, (True, True)), (1024, 64, 64, 1, None, 8, (True, True)), (320, 1100, 700, 1, None, 1, (True, True)),
         (64, 512, 512, 1, None, 1, (False, False)), (2048, 300, 100, 2, "Relu", 4, (True, False)), (700, 700, 2000, 1, None, 1, (True, True))]
MARK = re.compile(r"lldmir\.bands, ")


class Crossings(CardTest):
    def model(self, rows, depth, columns, products, function):
        g, source = Graph(), np.random.default_rng(rows + depth + columns)
        value, exact, sizes = "x", source.standard_normal((rows, depth)).astype(np.float32), [depth, columns, depth][:products + 1]
        self.values = {"x": exact}
        exact = exact.astype(np.float64)
        for k, n in zip(sizes, sizes[1:]):
            w = (source.standard_normal((k, n)) / np.sqrt(k)).astype(np.float32)
            value, exact = g.op("MatMul", value, g.constant(w)), exact @ w
            if function:
                value, exact = g.op(function, value), np.tanh(exact) if function == "Tanh" else np.maximum(exact, 0)
        g.nodes.append(onnx.node("Identity", value, "y"))
        (self.dir / "m.onnx").write_bytes(onnx.model(g.nodes, [onnx.info("x", onnx.FLOAT, [rows, depth])], [onnx.info("y", onnx.FLOAT, None)], weights=g.weights))
        return exact

    def text(self, quads):
        """Of schedule.bands, and which of argument 0 and result 0 cross in bands there."""
        text = self.dmxc(quads, "--emit", "schedule.bands", "-o", "-").stdout
        head = re.search(r"func\.func @k0.*?\n", text)[0]
        arguments, results = head.split(" -> ")
        return text, ("lldmir.bands" in arguments.split("%arg1")[0], "lldmir.bands" in results)

    def test_bits(self):
        for *model, quads, marks in sample(CASES, 4):
            with self.subTest(model=model, quads=quads):
                exact = self.model(*model)
                text, found = self.text(quads)
                self.assertEqual(found, marks)
                result, clocks = self.outcome(quads)
                self.near(result, exact)
                (self.dir / "t.mlir").write_text(MARK.sub("", text.replace("lldmir.bands}", "}").replace("{lldmir.bands, ", "{")).replace(", }", "}"))
                apart, before = self.outcome(quads, "--from", "schedule.bands", model="t.mlir")
                self.assertEqual(result.tobytes(), apart.tobytes())
                self.assertLessEqual(clocks, before * 1.005)
                if quads == 1 and any(marks):
                    self.assertLess(clocks, before - 500)
                self.assertEqual(self.outcome(quads, "-O0")[0].tobytes(), result.tobytes())

    def test_a_block(self):
        """512x512x2048 and back: 6,279 clocks of tiles from DDR, 12,193 of f16 to it at 43 bytes a clock; most of both are hidden behind what is computed."""
        self.model(512, 512, 2048, 2, "Relu")
        text = self.text(1)[0]
        clocks = self.outcome(1)[1]
        (self.dir / "t.mlir").write_text(MARK.sub("", text))
        before = self.outcome(1, "--from", "schedule.bands", model="t.mlir")[1]
        self.assertLess(clocks, before - 0.6 * (6279 + 12193))
        done = subprocess.run([BIN / "dmx-compare", self.dir / "m.onnx", "--random-inputs", "1", "--stages", "--", "-q", "-t", "corsair:quads=1"],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout.count("equal to the bit")), (0, 10), done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
