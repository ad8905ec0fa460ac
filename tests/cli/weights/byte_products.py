#!/usr/bin/env python3
"""--numerics int8: weights and rows both as integers with a scale a block, their products summed as integers. Against numpy that rounds both itself,
and against the interpreter. Usage: byte_products.py BIN [unittest arguments]. Exit 77 where numpy is not installed."""
import re
import subprocess
import sys
import unittest

from block_weights import BIN, LEVELS, BlockTest, bound, normal, np, onnx, rounded, rounded_rows
from sampling import sampled


def whole(seed, *shape, block=32):
    """Integers of 8 bits of which each block of the last axis has the greatest one, times 1 or 2 a block: rounding keeps them."""
    random = np.random.default_rng(seed)
    x = random.integers(-127, 128, shape).astype(np.float32)
    x[..., ::block] = 127 * np.sign(random.random(x[..., ::block].shape) - 0.5)
    return x * np.repeat(random.integers(1, 3, x[..., ::block].shape).astype(np.float32), block, -1)[..., :shape[-1]]


@sampled(3)
class Bytes(BlockTest):
    def test_sums_of_integers_are_exact(self):
        """Scales are powers of two and all sums below 2^24: nothing is rounded, in whatever order."""
        for m, k, n, block in ((1, 130, 150, 32), (3, 256, 80, 64), (4, 100, 200, 16), (40, 130, 144, 128), (7, 260, 65, 256)):
            x, w = whole(m, m, k, block=block), np.ascontiguousarray(whole(n, n, k, block=block).T)
            self.write([onnx.node("MatMul", "x w", "y")], {"x": [m, k]}, {"y": [m, n]}, {"w": w})
            wanted = x.astype(np.int64) @ w.astype(np.int64)
            self.assertLess(np.abs(wanted).max(), 1 << 24)
            for level in LEVELS:
                with self.subTest(m=m, k=k, n=n, block=block, level=level):
                    self.compile(f"int8:{block}", "-t", level)
                    np.testing.assert_array_equal(self.outputs({"x": x})["y"], wanted.astype(np.float32))

    def test_rows_are_rounded(self):
        """A row of which rounding loses something tells this mode from int8-weights."""
        w, x = self.product(5, 512, 300), normal(5, 5, 512)
        for level in LEVELS:
            self.compile("int8", "-t", level)
            got = self.outputs({"x": x})["y"]
            self.expect_close(got, rounded_rows("int8", x), rounded("int8", w), bound("int8", 512))
            with self.assertRaises(AssertionError):
                self.expect_close(got, x, rounded("int8", w))

    def test_rows_that_a_run_brings(self):
        w = self.product("m", 300, 150)
        for level in LEVELS:
            self.compile("int8:64", "-t", level)
            for m in (0, 1, 2, 5, 16, 33, 100):
                with self.subTest(m=m, level=level):
                    x = normal(m, m, 300)
                    self.expect_close(self.outputs({"x": x})["y"], rounded_rows("int8:64", x), rounded("int8:64", w))

    def test_numbers_that_are_not_finite(self):
        """They make NaN of their row, as they do of its block, and of no other one."""
        w = self.product(4, 512, 300)
        x = normal(1, 4, 512)
        x[1, 5], x[2, 400], x[3, 32:64] = np.inf, np.nan, 1e-41
        for level in LEVELS:
            self.compile("int8", "-t", level)
            got = self.outputs({"x": x})["y"]
            self.assertTrue(np.isnan(got[1:3]).all())
            self.expect_close(got[[0, 3]], rounded_rows("int8", x[[0, 3]]), rounded("int8", w))

    def test_products_of_one_operand(self):
        """Each rounds its rows as it copies them, and none waits for a kernel that does; so do batches, heavy epilogues and rows that lie apart."""
        weights = {n: normal(i, 256, 128) for i, n in enumerate("abc")}
        nodes = [onnx.node("MatMul", f"x {n}", f"y{n}") for n in "ab"]
        nodes += [onnx.node("Transpose", "z", "zt", perm=[0, 2, 1]), onnx.node("MatMul", "zt c", "p"), onnx.node("Erf", "p", "yc")]
        self.write(nodes, {"x": [2, 3, 256], "z": [2, 256, 9]}, {"ya": [2, 3, 128], "yb": [2, 3, 128], "yc": [2, 9, 128]}, weights)
        text = self.partition("int8")
        self.assertEqual(text.count("matmul-blocks8-quads"), 3)
        self.assertEqual(text.count("dmir.round_blocks"), 3)
        self.assertEqual(len(re.findall(r"dmir.region", text)), 3, text)
        x, z = normal(7, 2, 3, 256), normal(8, 2, 256, 9)
        for options in ((), ("-O0",)):
            for level in LEVELS:
                self.compile("int8", "-t", level, *options)
                got = self.outputs({"x": x, "z": z})
                for n in "ab":
                    self.expect_close(got[f"y{n}"], rounded_rows("int8", x), rounded("int8", weights[n]))
                product = rounded_rows("int8", z.transpose(0, 2, 1)) @ rounded("int8", weights["c"])
                far = np.abs(product) > 4  # where erf is 1
                np.testing.assert_allclose(got["yc"][far], np.sign(product)[far], rtol=1e-6)
                self.assertLess(np.abs(got["yc"] - np.tanh(product * 1.12)).max(), 0.05)

    def test_interpreter(self):
        """The graph says what is computed: its text against the interpreter, at every level."""
        for m, k, n in ((1, 300, 150), (33, 130, 144)):
            self.product(m, k, n)
            text = self.dmxc("--emit", "frontend", "-o", "-").stdout
            (self.dir / "f.mlir").write_text(text)
            passes = ["--target=cpu", "--numerics=int8", "--dmir-round-weights", "--dmir-round-rows"]
            rounded_text = subprocess.run([BIN / "dmx-opt", self.dir / "f.mlir", *passes], capture_output=True, text=True, check=True).stdout
            self.assertIn("dmir.round_blocks", rounded_text)
            (self.dir / "r.mlir").write_text(rounded_text)
            for level in LEVELS:
                result = subprocess.run([BIN / "dmx-compare", self.dir / "r.mlir", "--random-inputs", "3", "--rtol", "1e-5", "--atol", "1e-4", "--", "-t", level],
                                        capture_output=True, text=True)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_threads_and_texts(self):
        w, x = self.product(37, 512, 300), normal(5, 37, 512)
        self.compile("int8")
        wanted = self.outputs({"x": x}, threads=1)["y"]
        for threads in (2, 3, 8):
            np.testing.assert_array_equal(self.outputs({"x": x}, threads=threads)["y"].view(np.uint32), wanted.view(np.uint32))
        for phase in ("partition", "memory", "schedule"):
            self.dmxc("--emit", phase, "-o", self.dir / "p.mlir", "--numerics", "int8")
            self.dmxc("--from", phase, "-o", self.dir / "m.bundle", model="p.mlir")
            np.testing.assert_array_equal(self.outputs({"x": x})["y"], wanted)

    def test_files_of_f16(self):
        w, x = self.product(4, 256, 200, element="f16"), normal(1, 4, 256).astype(np.float16)
        self.compile("int8")
        got, wanted = self.outputs({"x": x})["y"], rounded_rows("int8", x) @ rounded("int8", w)
        self.assertEqual(got.dtype, np.float16)
        np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=2e-3, atol=1e-3 * np.abs(wanted).max())

    def test_what_is_kept_reads_its_rows_as_they_are(self):
        first, second = self.two()
        x = normal(3, 2, 256)
        for options, node in ((["--keep-precision", "Mat*"], "MatMul_0"), (["--keep-precision", "Gemm*"], "Gemm_0")):
            report = self.compile("int8", *options, "--placement-report", self.dir / "r.txt")
            self.assertIn("rounded 1 weight", report)
            hidden = np.maximum(x.astype(np.float64) @ first if node == "MatMul_0" else rounded_rows("int8", x) @ rounded("int8", first), 0)
            wanted = rounded_rows("int8", hidden) @ rounded("int8", second) if node == "MatMul_0" else hidden @ second
            got = self.outputs({"x": x})["y"]
            self.assertLess(np.sqrt(((got - wanted) ** 2).mean() / (wanted ** 2).mean()), 1e-4)
            report = (self.dir / "r.txt").read_text()
            self.assertRegex(report, rf"(?m)^{node}\tdmir.matmul\t.*\t-$")
            self.assertEqual(len(re.findall(r"(?m)^\w+\tdmir.matmul\t.*\ts8:32 s8:32 -> f32 \(error \S+\)$", report)), 1, report)
            self.assertEqual(report.count("dmir.round_blocks"), 1)
        refused = self.compile("int8", "--max-error", "0.0001", code=4)
        self.assertRegex(refused, "--max-error 1.00e-04 is met by no weights: the least rounding error is .*, of node '")

    def test_misuse(self):
        self.product(1, 512, 300)
        for arguments, says in ((["--numerics", "int8:48"], "'int8' has blocks of 16, 32, 64, 128 or 256, not '48'"),
                                (["--numerics", "int8", "-t", "cuda"], "no numerics mode 'int8'.*of cpu it is one"),
                                (["--numerics", "int8", "-t", "corsair"], "no numerics mode 'int8'.*of cpu it is one"),
                                (["--numerics", "int9"], r"no numerics mode 'int9'; it has strict.*int8\[:BLOCK\]")):
            with self.subTest(arguments=arguments):
                self.assertRegex(self.dmxc("-o", self.dir / "m.bundle", *arguments, code=2).stderr, says)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
