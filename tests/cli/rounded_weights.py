#!/usr/bin/env python3
"""--numerics bf16-weights and int8-columns against numpy with weights that numpy rounds. Usage: rounded_weights.py BIN [unittest
arguments]. Exit 77 where numpy is not installed."""
import itertools
import json
import re
import subprocess
import sys
import unittest
import zipfile

from dynamic_shapes import BIN, BundleTest, np, onnx
from sampling import sampled

LEVELS = ["cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:host"]
FORMATS = {"bf16-weights": "matmul-packed-bf16", "int8-columns": "matmul-packed-s8"}


def exact(x):
    return np.asarray(x, np.float64)


def to_bf16(x):
    """To nearest, ties to even; in f64."""
    bits = np.ascontiguousarray(x).astype(np.float32).view(np.uint32).astype(np.uint64)
    return exact(((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(np.float32))


def rounded(mode, w):
    """A K x N matrix of f32 as the mode keeps it, in f64."""
    if mode == "bf16-weights":
        return to_bf16(w)
    scale = (np.abs(w).max(0) / np.float32(127)).astype(np.float64)
    return np.rint(w / scale) * scale


def relative_rms(mode, w):
    return np.sqrt(((rounded(mode, w) - w) ** 2).sum() / (w.astype(np.float64) ** 2).sum())


def weight(shape, seed=1):
    random = np.random.default_rng(seed)
    return (random.standard_normal(shape) * np.exp(random.standard_normal(shape[-1]))).astype(np.float32)


@sampled(2)
class Rounded(BundleTest):
    def write(self, nodes, inputs, outputs, constants):
        port = lambda ports: [onnx.info(n, onnx.FLOAT if n != "ids" else onnx.INT64, s) for n, s in ports.items()]
        weights = [onnx.tensor(n, onnx.FLOAT, v.shape, raw=v.tobytes()) for n, v in constants.items()]
        (self.dir / "m.onnx").write_bytes(onnx.model(nodes, port(inputs), port(outputs), weights=weights))

    def dense(self, m, k, n, seed=1, transposed=False):
        """relu(x w + b) of an `m` that may be a name; returns w as k x n, and b."""
        w, b = weight((k, n), seed), weight((n,), 9)
        self.write([onnx.node("Gemm", "x w b", "s", transB=int(transposed)), onnx.node("Relu", "s", "y")], {"x": [m, k]},
                   {"y": [m, n]}, {"w": np.ascontiguousarray(w.T) if transposed else w, "b": b})
        return w, b

    def compile(self, mode, *arguments):
        result = subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "-o", self.dir / "m.bundle", "--numerics", mode, *arguments],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr

    def algorithms(self, mode, *arguments):
        result = subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "--emit", "partition", "-o", "-", "--numerics", mode, *arguments],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return re.findall(r'algorithm = "([^"]*)"', result.stdout)

    def outputs(self, values):
        result = self.run_bundle(values)
        self.assertEqual(result.returncode, 0, result.stderr)
        return {f.stem.removeprefix("out_"): np.load(f) for f in (self.dir / "out").glob("*.npy")}

    def expect_close(self, got, x, w, b=None, relu=True):
        """Sums of f32: the error is small beside the sum of magnitudes."""
        wanted = x.astype(np.float64) @ w + (0 if b is None else b)
        slack = np.abs(x).astype(np.float64) @ np.abs(w) + 1
        self.assertEqual(got.shape, wanted.shape)
        worst = (np.abs(got - (np.maximum(wanted, 0) if relu else wanted)) / slack).max(initial=0)
        self.assertLess(worst, 2e-6)

    def x(self, m, k):
        return np.random.default_rng(m).standard_normal((m, k)).astype(np.float32)

    def test_static_rows(self):
        shapes = [(1, 512, 300, False), (1, 3000, 35, True), (3, 260, 130, True), (9, 1100, 100, False), (16, 200, 96, True)]
        for (mode, kernel), (m, k, n, transposed) in itertools.product(FORMATS.items(), shapes):
            w, b = self.dense(m, k, n, transposed=transposed)
            self.assertIn(kernel, self.algorithms(mode))
            for level in LEVELS:
                with self.subTest(mode=mode, m=m, level=level):
                    self.compile(mode, "-t", level)
                    x = self.x(m, k)
                    self.expect_close(self.outputs({"x": x})["y"], x, rounded(mode, w), b)

    def test_rows_that_a_run_brings(self):
        for mode, kernel in FORMATS.items():
            w, b = self.dense("m", 300, 150)
            self.assertIn(kernel, self.algorithms(mode))
            for level in LEVELS:
                self.compile(mode, "-t", level)
                for m in (0, 1, 2, 5, 16, 33, 100):
                    with self.subTest(mode=mode, m=m, level=level):
                        x = self.x(m, 300)
                        self.expect_close(self.outputs({"x": x})["y"], x, rounded(mode, w), b)

    def test_roundings_differ_from_exact_products(self):
        """What the other tests compare with would notice weights that are kept."""
        for mode in FORMATS:
            w, b = self.dense(1, 512, 300)
            self.compile(mode)
            x = self.x(1, 512)
            got = self.outputs({"x": x})["y"]
            with self.assertRaises(AssertionError):
                self.expect_close(got, x, w, b)

    def test_table_that_is_gathered_too(self):
        """The embedding that is also the last layer: what is gathered is what the product multiplies by."""
        table = weight((200, 128))
        for mode in FORMATS:
            nodes = [onnx.node("Gather", "table ids", "e"), onnx.node("Transpose", "table", "t", perm=[1, 0]),
                     onnx.node("MatMul", "x t", "y")]
            self.write(nodes, {"ids": [3], "x": [1, 128]}, {"e": [3, 128], "y": [1, 200]}, {"table": table})
            self.compile(mode)
            ids, x = np.array([7, 199, 0]), self.x(1, 128)
            got = self.outputs({"ids": ids, "x": x})
            kept = rounded(mode, np.ascontiguousarray(table.T))
            np.testing.assert_array_equal(got["e"], kept.T[ids].astype(np.float32))
            self.expect_close(got["y"], x, kept, relu=False)

    def test_what_is_kept(self):
        """Many rows, few bytes, and rows that are many in every run."""
        for m, k, n, arguments in ((17, 512, 300, []), (1, 100, 100, []), ("m", 512, 300, ["--dim", "m=32..64"])):
            w, b = self.dense(m, k, n)
            x = self.x(m if m != "m" else 40, k)
            exact = None
            for mode in ("strict", *FORMATS):
                with self.subTest(m=m, mode=mode):
                    self.assertNotIn("rounded", self.compile(mode, *arguments))
                    got = self.outputs({"x": x})["y"]
                    exact = got if exact is None else exact
                    np.testing.assert_array_equal(got, exact)

    def entries(self):
        with zipfile.ZipFile(self.dir / "m.bundle") as bundle:
            return {name: bundle.read(name) for name in bundle.namelist()}

    def test_strict_is_the_default(self):
        self.dense("m", 512, 300)
        self.compile_file(self.dir / "m.onnx")
        default = self.entries()
        self.assertNotIn("rounded", self.compile("strict", "-t", "cpu:x86-64-v3"))
        strict = self.entries()
        self.assertEqual(default.pop("manifest.json") == strict.pop("manifest.json"), False)
        self.assertEqual(default, strict)

    def test_report(self):
        for mode, element in (("bf16-weights", "bf16"), ("int8-columns", "s8")):
            w, _ = self.dense(1, 512, 300)
            report = self.compile(mode)
            self.assertRegex(report, rf"Gemm_0 +matmul +f32 {element} +f32\n")
            line = re.search(r"rounded 1 weight: 600.0 KiB in (.*), relative RMS error at most (\S+) \('(.*)'\)", report)
            self.assertTrue(line, report)
            size = {"bf16-weights": 304 * 512 * 2, "int8-columns": 304 * 512 + 304 * 4}[mode]
            self.assertEqual(line[1], f"{size / 1024:.1f} KiB")
            self.assertAlmostEqual(float(line[2]) / relative_rms(mode, w), 1, delta=0.01)
            self.assertEqual(line[3], "Gemm_0")
            options = json.loads(self.entries()["manifest.json"])["options"]
            self.assertEqual((options["numerics"], options["rounded_weights"], options["rounding_error"]), (mode, 1, line[2]))
            self.assertEqual(self.compile(mode, "-q"), "")

    def test_column_that_is_not_finite(self):
        w, b = self.dense(1, 512, 300)
        w[5, 7], clean = np.inf, w.copy()
        self.write([onnx.node("MatMul", "x w", "y")], {"x": [1, 512]}, {"y": [1, 300]}, {"w": w})
        self.assertIn("at most inf", self.compile("int8-columns").lower())
        x = self.x(1, 512)
        got = self.outputs({"x": x})["y"]
        clean[:, 7] = 1
        others = np.arange(300) != 7
        self.assertTrue(np.isnan(got[0, 7]))
        self.expect_close(got[:, others], x, rounded("int8-columns", clean)[:, others], relu=False)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
