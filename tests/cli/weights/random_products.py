#!/usr/bin/env python3
"""Random products by weights in blocks, many of them in a model, against numpy that rounds the weights: random_products.py BIN [unittest arguments].
20 of a mode in a plain run, at one level; 500 at each with DMXC_LONG=1, which is about a minute a mode and level: what is done, and what fails, is said
at once. Products.test_int8_weights_16 is a mode alone. The same bits for any number of threads. Exit 77 where numpy is not installed."""
import contextlib
import re
import sys
import time
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
            with self.told(seed=seed, mode=mode, level=level, output=name, shape=(x.shape, w.shape)):
                self.expect_close(got[name], x, w, bound(mode, len(w)))
        for threads in (2, 5):
            again = self.outputs(inputs, threads=threads)
            for name in wanted:
                with self.told(seed=seed, mode=mode, level=level, output=name, threads=threads):
                    np.testing.assert_array_equal(again[name].view(np.uint32), got[name].view(np.uint32))

    @contextlib.contextmanager
    def told(self, **what):
        """A subtest that fails aloud: unittest waits for the end, which is an hour away in a long run."""
        with self.subTest(**what):
            try:
                yield
            except Exception as error:
                print("FAILED", what, str(error).strip().partition("\n")[0], file=sys.stderr, flush=True)
                raise

    def check_mode(self, mode):
        seeds = range(25) if LONG else [SEED]
        for level in LEVELS if LONG else LEVELS[SEED // 2 % 4:][:1]:
            start = time.time()
            for seed in seeds:
                with self.told(seed=seed, mode=mode, level=level):
                    self.check(seed, mode, level)
            print(f"{mode} at {level}: {EACH * len(seeds)} products in {time.time() - start:.0f} s", file=sys.stderr, flush=True)


for each in sample(MODES, len(MODES) // 2):
    setattr(Products, "test_" + re.sub("[-:]", "_", each), lambda self, mode=each: self.check_mode(mode))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
