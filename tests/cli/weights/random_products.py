#!/usr/bin/env python3
"""Random products by weights in blocks, many of them in a model, against numpy that rounds the weights: random_products.py BIN. 20 of a mode in a plain
run, at one level; 500 at each with DMXC_LONG=1. The same bits for any number of threads. Exit 77 where numpy is not installed."""
import sys
import unittest

from block_weights import BlockTest, bound, np, onnx, rounded, rounded_rows
from sampling import LONG, SEED, sample

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "host")
MODES = ("int8", "int8:128", "int8-weights", "int4-weights", "int8-weights-zeros", "int4-weights-zeros", "int8-weights:16", "int4-weights:64", "int4-weights:128",
         "int8-weights:256")
EACH = 20  # of a model


def products(seed, mode):
    """Sizes of which all are rounded: k x n is 16384 and more, lines or columns are whole bytes."""
    random = np.random.default_rng(seed)
    rows = (1, 1, 2, 3, 4, 5, 17, 40)
    for i in range(EACH):
        k, n = int(random.integers(17, 700)), int(random.integers(1, 300))
        n = max(n, -(-16384 // k))
        yield i, int(rows[random.integers(len(rows))]), k, n + (n % 2 if mode.startswith("int4") and k % 2 else 0)


class Products(BlockTest):
    def check(self, seed, mode, level):
        nodes, inputs, outputs, weights, wanted = [], {}, {}, {}, {}
        for i, m, k, n in products(seed, mode):
            random = np.random.default_rng((seed, i))
            w, x = random.standard_normal((k, n)).astype(np.float32), random.standard_normal((m, k)).astype(np.float32)
            w *= np.exp(random.standard_normal(n)).astype(np.float32)
            turned = bool(random.integers(2))
            nodes.append(onnx.node("Gemm", f"x{i} w{i}", f"y{i}", transB=int(turned)))
            inputs[f"x{i}"], outputs[f"y{i}"] = x, [m, n]
            weights[f"w{i}"] = np.ascontiguousarray(w.T) if turned else w
            wanted[f"y{i}"] = (rounded_rows(mode, x), rounded(mode, w))
        self.write(nodes, {n: x.shape for n, x in inputs.items()}, outputs, weights)
        self.assertIn(f"rounded {EACH} weights", self.compile(mode, "-t", f"cpu:{level}"))
        got = self.outputs(inputs, threads=1)
        for name, (x, w) in wanted.items():
            with self.subTest(seed=seed, mode=mode, level=level, output=name, shape=(x.shape, w.shape)):
                self.expect_close(got[name], x, w, bound(mode, len(w)))
        for threads in (2, 5):
            again = self.outputs(inputs, threads=threads)
            for name in wanted:
                np.testing.assert_array_equal(again[name].view(np.uint32), got[name].view(np.uint32))

    def test_products(self):
        for mode in sample(MODES, len(MODES) // 2):
            for level in LEVELS if LONG else LEVELS[SEED // 2 % 4:][:1]:
                for seed in range(25) if LONG else [SEED]:
                    self.check(seed, mode, level)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
