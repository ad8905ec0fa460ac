#!/usr/bin/env python3
"""small_products.py: its shapes, and what it prints of a few of them. No figure of ours is judged. Usage: small_products_test.py BIN
[unittest arguments]."""
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv[1]).resolve()
BENCH = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(BENCH))


@unittest.skipUnless(all(importlib.util.find_spec(name) for name in ("numpy", "onnx")), "numpy or onnx is not there")
class SmallProducts(unittest.TestCase):
    def test_shapes(self):
        import small_products
        for any_size in (False, True):
            shapes = small_products.sizes(188, 2_400_000, any_size)
            self.assertEqual(len(set(shapes)), 188)
            self.assertAlmostEqual(sum(4 * inner * columns for _, inner, columns in shapes), 2_400_000, delta=360_000)
            self.assertEqual({columns % 16 for _, _, columns in shapes} == {0}, not any_size)
        nodes = [node.op_type for node in small_products.network(188, 2_400_000).graph.node]
        self.assertEqual((nodes.count("MatMul"), nodes.count("Gemm")), (94, 94))

    def test_figures(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "figures.json"
            done = subprocess.run([sys.executable, BENCH / "small_products.py", "--build", BIN.parent, "--count", "4", "--bytes", "20000", "--runs", "1",
                                   "--flags=-t cpu:x86-64-v3", "--json", file], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            figures = json.loads(file.read_text())
        self.assertLess(figures["cached_s"][0], figures["cpu_s"][0])
        self.assertLess(0, figures["bundle_bytes"])
        self.assertRegex(done.stdout, r"^4 products, \d+ bytes: \d+\.\d CPU s, with an empty cache")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
