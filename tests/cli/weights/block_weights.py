#!/usr/bin/env python3
"""--numerics int8-weights and int4-weights, whose weights have a scale a block, against numpy that rounds them itself. Usage: block_weights.py
BIN [unittest arguments]. Exit 77 where numpy is not installed."""
import itertools
import json
import pathlib
import re
import subprocess
import sys
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from dynamic_shapes import BIN, BundleTest, np, onnx  # noqa: E402
from sampling import sample, sampled  # noqa: E402

LEVELS = ["cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:host"]
ELEMENTS = {"f32": (onnx.FLOAT, np.float32), "f16": (onnx.FLOAT16, np.float16)}


def parts(mode):
    """Bits, block and whether there are zero points."""
    name, _, block = mode.partition(":")
    return int(name[3]), int(block or 32), name.endswith("-zeros")


def rounded(mode, w):
    """A matrix with blocks along its first axis as the mode keeps it, in f64: scales are rounded to f16 before integers are."""
    bits, block, zeros = parts(mode)
    k, n = w.shape
    padded = np.zeros((-(-k // block) * block, n))
    padded[:k] = w
    lines = padded.reshape(-1, block, n)
    extreme = np.take_along_axis(lines, np.abs(lines).argmax(1)[:, None], 1)
    if zeros:
        low, high = np.minimum(lines.min(1, keepdims=True), 0), np.maximum(lines.max(1, keepdims=True), 0)
        scale = half((high - low) / (2 ** bits - 1))
        zero, least, most = np.clip(np.rint(-low / nonzero(scale)), 0, 2 ** bits - 1), 0, 2 ** bits - 1
    elif bits == 8:
        scale, zero, least, most = half(np.abs(extreme) / 127), 0, -127, 127
    else:
        scale, zero, least, most = half(extreme / -8), 8, 0, 15
    codes = np.clip(np.rint(lines / nonzero(scale)) + zero, least, most)
    return np.where(scale == 0, 0, (codes - zero) * scale).reshape(-1, n)[:k]


def rounded_rows(mode, x):
    """Rows as a product by such weights multiplies them, in f64: as they are, or in the mode int8 as integers of a scale a block, which is in f32."""
    name, _, block = mode.partition(":")
    if name != "int8":
        return x.astype(np.float64)
    block, columns = int(block or 32), x.shape[-1]
    blocks = -(-columns // block)
    padded = np.zeros((*x.shape[:-1], blocks * block), np.float32)
    padded[..., :columns] = x
    lines = padded.reshape(*x.shape[:-1], blocks, block)
    scale = np.abs(lines).max(-1, keepdims=True) / np.float32(127)
    scale = np.where(scale < np.finfo(np.float32).tiny, np.float32(0), scale)
    codes = np.where(scale == 0, np.float32(0), np.rint(lines / nonzero(scale))).astype(np.float64)
    return (codes * scale).reshape(padded.shape)[..., :columns]


def bound(mode, k):
    """How far f32 sums of a product of k terms may be off, relative to the terms' magnitudes; of int8 as targets/cpu/README.md says."""
    return (-(-k // parts(mode)[1]) + 4) * 2 ** -24 if mode.partition(":")[0] == "int8" else 2e-6


def half(scale):
    return scale.astype(np.float16).astype(np.float64)


def nonzero(scale):
    return np.where(scale == 0, 1, scale)


def relative_rms(mode, w):
    return np.sqrt(((rounded(mode, w) - w) ** 2).sum() / (w.astype(np.float64) ** 2).sum())


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


class BlockTest(BundleTest):
    def write(self, nodes, inputs, outputs, constants, element="f32"):
        kind, dtype = ELEMENTS[element]
        port = lambda ports: [onnx.info(n, kind if n != "ids" else onnx.INT64, s) for n, s in ports.items()]
        weights = [onnx.tensor(n, kind, v.shape, raw=v.astype(dtype).tobytes()) for n, v in constants.items()]
        (self.dir / "m.onnx").write_bytes(onnx.model(nodes, port(inputs), port(outputs), weights=weights))

    def product(self, m, k, n, seed=1, transposed=False, element="f32"):
        """x w as a Gemm; returns w as k x n."""
        w = normal(seed, k, n).astype(ELEMENTS[element][1])
        self.write([onnx.node("Gemm", "x w", "y", transB=int(transposed))], {"x": [m, k]}, {"y": [m, n]},
                   {"w": np.ascontiguousarray(w.T) if transposed else w}, element)
        return w.astype(np.float32)

    def two(self):
        """Two products, the second of weights whose blocks have an outlier each."""
        first, second = normal(1, 256, 128), normal(2, 128, 512)
        second[::32] *= 40
        self.write([onnx.node("MatMul", "x a", "h"), onnx.node("Relu", "h", "r"), onnx.node("Gemm", "r b", "y")], {"x": [2, 256]}, {"y": [2, 512]},
                   {"a": first, "b": second})
        return first, second

    def dmxc(self, *arguments, code=0, model="m.onnx"):
        result = subprocess.run([BIN / "dmxc", self.dir / model, *arguments], capture_output=True, text=True)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def compile(self, mode, *arguments, code=0):
        return self.dmxc("-o", self.dir / "m.bundle", "--numerics", mode, *arguments, code=code).stderr

    def partition(self, mode, *arguments):
        return self.dmxc("--emit", "partition", "-o", "-", "--numerics", mode, *arguments).stdout

    def outputs(self, values, threads=None):
        result = self.run_bundle(values) if threads is None else self.run_bundle(values, "--threads", str(threads))
        self.assertEqual(result.returncode, 0, result.stderr)
        return {f.stem.removeprefix("out_"): np.load(f) for f in (self.dir / "out").glob("*.npy")}

    def expect_close(self, got, x, w, slack=2e-6):
        """Sums of f32: the error is small beside the sum of magnitudes."""
        wanted, size = x.astype(np.float64) @ w, np.abs(x).astype(np.float64) @ np.abs(w) + 1
        self.assertEqual(got.shape, wanted.shape)
        self.assertLess((np.abs(got - wanted) / size).max(initial=0), slack)


@sampled(6)
class Blocks(BlockTest):
    def test_products(self):
        modes = ("int8-weights", "int4-weights", "int8-weights-zeros:64", "int4-weights-zeros", "int4-weights:128", "int8-weights:16")
        shapes = [(1, 512, 300, False), (1, 3000, 35, True), (17, 2500, 36, False), (3, 260, 130, True), (33, 130, 144, False), (1, 129, 150, False)]
        for mode, (m, k, n, transposed) in sample(itertools.product(modes, shapes), 7):
            w = self.product(m, k, n, transposed=transposed)
            self.assertIn(f"matmul-blocks{mode[3]}", self.partition(mode))
            for level in LEVELS:
                with self.subTest(mode=mode, m=m, k=k, level=level):
                    self.compile(mode, "-t", level)
                    x = normal(m, m, k)
                    got = self.outputs({"x": x})["y"]
                    self.expect_close(got, x, rounded(mode, w))
                    with self.assertRaises(AssertionError):  # it would notice weights that are kept
                        self.expect_close(got, x, w)

    def test_rows_that_a_run_brings(self):
        for mode in ("int8-weights", "int4-weights:64"):
            w = self.product("m", 300, 150)
            for level in LEVELS:
                self.compile(mode, "-t", level)
                for m in (0, 1, 2, 5, 16, 33, 100):
                    with self.subTest(mode=mode, m=m, level=level):
                        x = normal(m, m, 300)
                        self.expect_close(self.outputs({"x": x})["y"], x, rounded(mode, w))

    def test_text_between_phases_carries_them(self):
        for mode in ("int8-weights", "int4-weights-zeros"):
            w, x = self.product(2, 512, 300), normal(5, 2, 512)
            self.compile(mode)
            wanted, entries = self.outputs({"x": x})["y"], self.entries()
            for phase in ("partition", "memory", "schedule"):
                with self.subTest(mode=mode, phase=phase):
                    self.dmxc("--emit", phase, "-o", self.dir / "p.mlir", "--numerics", mode)
                    self.dmxc("--from", phase, "-o", self.dir / "m.bundle", model="p.mlir")
                    np.testing.assert_array_equal(self.outputs({"x": x})["y"], wanted)
                    same = self.entries()
                    self.assertEqual(same["weights/model.safetensors"], entries["weights/model.safetensors"])
                    self.assertIn("rounding_error", json.loads(same["manifest.json"])["options"])

    def entries(self):
        with zipfile.ZipFile(self.dir / "m.bundle") as bundle:
            return {name: bundle.read(name) for name in bundle.namelist()}

    def test_reports(self):
        for mode, kept in (("int8-weights", "s8:32"), ("int4-weights:64", "u4:64")):
            w = self.product(1, 512, 300)
            report = self.compile(mode, "--placement-report", self.dir / "r.txt")
            self.assertRegex(report, rf"Gemm_0 +matmul +f32 {kept} +f32\n")
            line = re.search(r"rounded 1 weight: 600.0 KiB in (.*) KiB, relative RMS error at most (\S+) \('(.*)'\)", report)
            self.assertTrue(line, report)
            bits, block, _ = parts(mode)
            self.assertEqual(line[1], f"{(300 * 512 * bits / 8 + 512 / block * 300 * 2) / 1024:.1f}")
            self.assertAlmostEqual(float(line[2]) / relative_rms(mode, w), 1, delta=0.01)
            self.assertEqual(line[3], "Gemm_0")
            row = re.search(rf"^Gemm_0\tdmir.matmul\t.*\tf32 {kept} -> f32 \(error (\S+)\)$", (self.dir / "r.txt").read_text(), re.M)
            self.assertEqual(row and row[1], line[2])

    def test_table_that_is_gathered_too(self):
        """The embedding that is also the last layer: rows are what the product multiplies by, to the bit, and are there once."""
        table, ids, x = normal(1, 2000, 256), np.array([7, 1999, 0]), normal(2, 1, 256)
        nodes = [onnx.node("Gather", "table ids", "e"), onnx.node("Transpose", "table", "t", perm=[1, 0]), onnx.node("MatMul", "x t", "y")]
        for mode in ("int8-weights", "int4-weights-zeros"):
            self.write(nodes, {"ids": [3], "x": [1, 256]}, {"e": [3, 256], "y": [1, 2000]}, {"table": table})
            self.assertIn("rounded 1 weight", self.compile(mode))
            got, kept = self.outputs({"ids": ids, "x": x}), rounded(mode, table.T)
            np.testing.assert_array_equal(got["e"], kept.T[ids].astype(np.float32))
            self.expect_close(got["y"], x, kept)
            self.assertLess(len(self.entries()["weights/model.safetensors"]), 2000 * 256 * (parts(mode)[0] + 1) / 8 + 4096)

    def test_rows_of_a_table(self):
        """Rows that a run asks for; short ones, as the angles of a rotation have, stay."""
        for columns, rounds in ((256, True), (300, True), (128, False)):
            table, ids = normal(3, 400, columns), np.array([[1, 399, 5, 1]])
            self.write([onnx.node("Gather", "table ids", "e")], {"ids": [1, "n"]}, {"e": [1, "n", columns]}, {"table": table})
            report = self.compile("int4-weights")
            self.assertEqual("rounded" in report, rounds, report)
            kept = rounded("int4-weights", table.T).T if rounds else table
            np.testing.assert_array_equal(self.outputs({"ids": ids})["e"], kept[ids].astype(np.float32))

    def test_files_of_f16(self):
        """Computed in f32 from weights that were rounded from f16, and rounded to it once."""
        for mode in ("int8-weights", "int4-weights"):
            w, x = self.product(4, 256, 200, element="f16"), normal(1, 4, 256).astype(np.float16)
            self.compile(mode)
            got = self.outputs({"x": x})["y"]
            self.assertEqual(got.dtype, np.float16)
            wanted = x.astype(np.float64) @ rounded(mode, w)
            np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=2e-3, atol=1e-3 * np.abs(wanted).max())

    def test_what_is_kept(self):
        """Few weights, and those with a number that is not finite."""
        w = normal(1, 512, 300)
        w[5, 7] = np.inf
        self.write([onnx.node("MatMul", "x w", "y")], {"x": [1, 512]}, {"y": [1, 300]}, {"w": w})
        self.assertIn("numerics-unused", self.compile("int8-weights"))
        self.product(1, 100, 100)
        self.assertIn("numerics-unused", self.compile("int4-weights"))

    def test_scales_beyond_f16(self):
        """Weights so small, or so large, that a scale has no f16 keep scales of f32."""
        for size in (1e-7, 1e9):
            w, x = normal(1, 512, 300) * np.float32(size), normal(2, 1, 512)
            self.write([onnx.node("MatMul", "x w", "y")], {"x": [1, 512]}, {"y": [1, 300]}, {"w": w})
            report = self.compile("int8-weights")
            self.assertLess(float(re.search(r"error at most (\S+)", report)[1]), 7e-3)
            got, wanted = self.outputs({"x": x})["y"], x.astype(np.float64) @ w
            self.assertLess(np.sqrt(((got - wanted) ** 2).mean() / (wanted ** 2).mean()), 1e-2)

    def test_max_error(self):
        first, second = self.two()
        low, high = relative_rms("int4-weights", first), relative_rms("int4-weights", second)
        report = self.compile("int4-weights", "--max-error", str((low + high) / 2) if low < high else "0")
        self.assertIn("rounded 1 weight", report)
        self.assertRegex(report, r"--max-error leaves the weights of 1 node as they are: 'Gemm_0'")
        x = normal(3, 2, 256)
        self.expect_close(self.outputs({"x": x})["y"], np.maximum(x.astype(np.float64) @ rounded("int4-weights", first), 0), second, 1e-5)
        refused = self.compile("int4-weights", "--max-error", "0.001", code=4)
        self.assertRegex(refused, r"--max-error 1.00e-03 is met by no weights: the least rounding error is \d.*, of node 'MatMul_0'; smaller")
        self.assertFalse((self.dir / "m.bundle").exists() and "m.bundle" in refused)

    def test_keep_precision(self):
        first, second = self.two()
        x = normal(3, 2, 256)
        report = self.compile("int4-weights", "--keep-precision", "Mat*")
        self.assertIn("rounded 1 weight", report)
        exact = np.maximum(x.astype(np.float64) @ first, 0)
        self.expect_close(self.outputs({"x": x})["y"], exact, rounded("int4-weights", second), 1e-5)
        self.assertIn("--keep-precision nothing matches no node", self.compile("int4-weights", "--keep-precision", "nothing"))

    def test_misuse(self):
        self.product(1, 512, 300)
        for arguments, says in ((["--numerics", "int4-weights:48"], "has blocks of 16, 32, 64, 128 or 256, not '48'"),
                                (["--numerics", "int4-weights:"], "not ''"), (["--numerics", "bf16:32"], "the numerics mode 'bf16' has no blocks"),
                                (["--numerics", "int5-weights"], r"no numerics mode 'int5-weights'; it has strict.*int4-weights\[:BLOCK\]"),
                                (["--numerics", "int4-weights", "-t", "cuda"], "no numerics mode 'int4-weights'.*of cpu it is one"),
                                (["--numerics", "int4-weights", "--max-error", "0"], "--max-error"),
                                (["--numerics", "strict", "--max-error", "0.1"], "--max-error is for a mode of --numerics with blocks"),
                                (["--keep-precision", "a"], "--keep-precision is for a mode of --numerics that rounds")):
            with self.subTest(arguments=arguments):
                self.assertRegex(self.dmxc("-o", self.dir / "m.bundle", *arguments, code=2).stderr, says)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
