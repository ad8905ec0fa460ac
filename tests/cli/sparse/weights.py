#!/usr/bin/env python3
"""Constant weights that are zero in blocks: numpy's numbers, the bits of --sparsity off, fewer bytes and less time. Usage:
weights.py BIN [unittest arguments]. Exit 77 where numpy is not installed. A plain run takes samples, DMXC_LONG=1 takes all."""
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from dynamic_shapes import BIN, BundleTest, np, onnx
from sampling import LONG, sample, sampled

LEVELS = ("x86-64-v2", "x86-64-v3", "host")
NESTED = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"


def kept(pattern, k, n, seed=0):
    """Which elements are not zero."""
    i, j = np.ogrid[:k, :n]
    numbers = np.random.default_rng(seed)
    if pattern == "random":  # rectangles anywhere
        mask = np.zeros((k, n), bool)
        for _ in range(3 + seed % 5):
            rows, columns = (np.sort(numbers.integers(0, size + 1, 2)) for size in (k, n))
            mask[slice(*rows), slice(*columns)] = True
        return mask
    blocks = numbers.random((k // 64 + 1, n // 64 + 1)) < 0.1
    return {"dense": (i >= 0) & (j >= 0), "triangular": i * n >= j * k, "diagonal": i * 8 // k == j * 8 // n, "rows": (i < k // 2) & (j >= 0),
            "columns": (i >= 0) & (j < n // 2), "blocks": np.kron(blocks, np.ones((64, 64), bool))[:k, :n],
            "identity": i == j, "all": (i < 0) & (j < 0)}[pattern]


def weights(pattern, k, n, seed=0):
    values = np.random.default_rng(seed).standard_normal((k, n)).astype(np.float32)
    return np.where(kept(pattern, k, n, seed), values, np.where(values > 0, np.float32(0), np.float32(-0.0)))


class SparseCase(BundleTest):
    """Texts of self.dir/m.onnx for TARGET, changed and taken up again."""
    TARGET = "cpu:x86-64-v3"

    def emit(self, phase, *arguments):
        done = subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "--emit", phase, "-o", "-", "-t", self.TARGET, *arguments],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def resume(self, text, phase="partition", *arguments):
        (self.dir / "m.mlir").write_text(text)
        return subprocess.run([BIN / "dmxc", self.dir / "m.mlir", "--from", phase, "-o", self.dir / "m.bundle", "-t", self.TARGET, *arguments],
                              capture_output=True, text=True)

    def refused(self, text, phase, *said):
        done = self.resume(text, phase)
        self.assertEqual(done.returncode, 1, done.stderr)
        for part in said:
            self.assertIn(part, done.stderr)

    def changed(self, text, pattern, replacement):
        new, count = re.subn(pattern, replacement, text, count=1)
        self.assertEqual(count, 1, pattern)
        return new


@sampled(2)
class SparseWeights(SparseCase):
    def write(self, w, rows, turned=False, relu=False):
        """y = x w, or its relu; rows a number, or a dim's name."""
        nodes = [onnx.node("MatMul", "x w_t" if turned else "x w", "p" if relu else "y")]
        if turned:
            nodes.insert(0, onnx.node("Transpose", "w", "w_t", perm=[1, 0]))
        if relu:
            nodes.append(onnx.node("Relu", "p", "y"))
        held = np.ascontiguousarray(w.T if turned else w)
        (self.dir / "m.onnx").write_bytes(onnx.model(
            nodes, [onnx.info("x", onnx.FLOAT, [rows, w.shape[0]])], [onnx.info("y", onnx.FLOAT, [rows, w.shape[1]])],
            weights=[onnx.tensor("w", onnx.FLOAT, held.shape, raw=held.tobytes())]))

    def output(self, x, *arguments):
        done = self.run_bundle({"x": x}, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.load(self.dir / "out" / "out_y.npy")

    def test_numbers_and_bits(self):
        """Any pattern, any sizes: what numpy sums, and with zeros left out the bits of all of them."""
        for seed in sample(range(60), 8):
            numbers = np.random.default_rng(seed)
            pattern = ("random", "triangular", "diagonal", "rows", "columns", "blocks", "all")[seed % 7]
            m, k, n = (int(round(top ** numbers.uniform(low, 1))) for top, low in ((300, 0), (1500, 0.5), (400, 0.3)))
            w, x = weights(pattern, k, n, seed), numbers.standard_normal((m, k)).astype(np.float32)
            self.write(w, "m" if seed % 3 == 0 else m, turned=seed % 2, relu=seed % 5 == 0)
            got = {}
            for mode in ("on", "off"):
                self.compile_file(self.dir / "m.onnx", "--sparsity", mode, "-t", "cpu:" + "+".join(LEVELS))
                got[mode] = {(level, threads): self.output(x, "--isa", level, "--threads", threads) for level in LEVELS for threads in "14"}
            wanted, slack = x.astype(np.float64) @ w, np.abs(x).astype(np.float64) @ np.abs(w) * k * 2.0 ** -23
            wanted = np.maximum(wanted, 0) if seed % 5 == 0 else wanted
            for run, y in got["on"].items():
                with self.subTest(seed=seed, pattern=pattern, sizes=(m, k, n), run=run):
                    self.assertTrue((np.abs(y - wanted) <= slack + 1e-30).all())
                    np.testing.assert_array_equal(y.view(np.uint32), got["off"][run].view(np.uint32))

    def test_bytes(self):
        """Bundles have what is not zero."""
        for pattern, most in (("triangular", 0.6), ("diagonal", 0.2), ("rows", 0.52), ("columns", 0.52), ("blocks", 0.2), ("all", 0.02), ("dense", 1.1)):
            self.write(weights(pattern, 512, 512), 20)
            self.compile_file(self.dir / "m.onnx")
            self.assertLess((self.dir / "m.bundle").stat().st_size, most * 512 * 512 * 4 + 16384, pattern)
            self.compile_file(self.dir / "m.onnx", "--sparsity", "off")
            self.assertGreater((self.dir / "m.bundle").stat().st_size, 512 * 512 * 4, pattern)

    def test_what_is_not_finite(self):
        """Infinities and NaN that meet nothing but left out zeros do not spread; with --sparsity off they do."""
        w, x = weights("rows", 256, 64), np.ones((3, 256), np.float32)
        x[0, 200], x[1, 250] = np.inf, np.nan
        self.write(w, 3)
        self.compile_file(self.dir / "m.onnx")
        np.testing.assert_allclose(self.output(x), np.ones((3, 128)) @ w[:128], rtol=1e-4, atol=1e-4)
        self.compile_file(self.dir / "m.onnx", "--sparsity", "off")
        got = self.output(x)
        self.assertTrue(np.isnan(got[:2]).all() and np.isfinite(got[2]).all())

    def test_text(self):
        """What a strategy's text says of a form is checked against the constant; another form is obeyed."""
        x = np.random.default_rng(3).standard_normal((20, 256)).astype(np.float32)
        self.write(weights("diagonal", 256, 256), 20)
        self.compile_file(self.dir / "m.onnx")
        wanted = self.output(x)
        text = self.emit("partition")
        self.assertIn('form = "runs"', text)
        self.assertEqual(self.resume(text).returncode, 0)
        np.testing.assert_array_equal(self.output(x), wanted)
        for key, value in (("rows", 128), ("runs", 9), ("columns", 64), ("size", 64), ("flops", 1)):
            self.refused(self.changed(text, rf"\b{key} = \d+ : i64", f"{key} = {value} : i64"), "partition", key, f"{value} : i64")
        find = rf'strategy = (?=\{{algorithm = "matmul-runs"){NESTED}'
        for choice in ('{algorithm = "matmul-packed"}', '{packed = {"1" = {form = "panel16"}}}', '{algorithm = "matmul"}'):
            done = self.resume(self.changed(text, find, f"strategy = {choice}"))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertGreater((self.dir / "m.bundle").stat().st_size, 256 * 256 * 4)
            np.testing.assert_allclose(self.output(x), wanted, rtol=1e-4, atol=1e-4)
        done = self.resume(self.emit("partition", "--sparsity", "off").replace('form = "panel16"', 'form = "runs"'))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.write(weights("dense", 256, 256), 20)
        self.refused(self.changed(self.emit("partition"), r'algorithm = "matmul-packed"', 'algorithm = "matmul-runs"'), "partition", "matmul-runs", "matmul-packed")

    def test_text_of_later_phases(self):
        """Behind partition the form stands with its buffer too: one that is no longer the constant's is refused as it is packed."""
        self.write(weights("diagonal", 256, 256), 20)
        text = self.emit("schedule")
        self.assertEqual(self.resume(text, "schedule").returncode, 0)
        for key, said in (("rows", "rows"), ("runs", "runs")):
            self.refused(re.sub(rf"\b{key} = \d+ : i64", f"{key} = 5 : i64", text), "schedule", said)
            self.refused(re.sub(rf"\b{key} = \d+ : i64, ", "", text), "schedule", said)
        self.refused(re.sub(r"\bcolumns = \d+ : i64", "columns = 7 : i64", text), "schedule", "columns")

    def test_schedule(self):
        """A schedule may keep all of a matrix, or leave out less than pays."""
        x = np.random.default_rng(3).standard_normal((20, 256)).astype(np.float32)
        w = weights("dense", 256, 256)
        w[:8, :32] = 0
        self.write(w, 20)
        for algorithm, form in (("matmul-packed", "panel16"), ("matmul-runs", "runs")):
            (self.dir / "s.mlir").write_text(
                "module attributes {transform.with_named_sequence} {\n  transform.named_sequence @__transform_main(%m: !transform.any_op "
                "{transform.readonly}) {\n    %r = transform.dmx.match {} in %m : !transform.any_op -> !transform.any_op\n"
                f'    transform.dmx.decide %r {{algorithm = "{algorithm}"}} : !transform.any_op\n    transform.yield\n  }}\n}}\n')
            self.assertIn(f'form = "{form}"', self.emit("partition", "--schedule", str(self.dir / "s.mlir")))
            self.compile_file(self.dir / "m.onnx", "--schedule", self.dir / "s.mlir")
            np.testing.assert_allclose(self.output(x), x @ w, rtol=1e-4, atol=1e-3)

    def seconds(self, bundle, runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([BIN / "dmx-run", self.dir / bundle, "--benchmark", "--threads", "1", "--warmup", "1", "--iters", str(runs)],
                       check=True, capture_output=True)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    def test_time(self):
        """User time of one thread beside dense weights, in pairs: 256 rows by 2048 x 2048."""
        size, few, many = (2048, 2, 14) if LONG else (1024, 2, 26)
        bounds = {"triangular": 0.65, "diagonal": 0.25, "blocks": 0.25, "rows": 0.6, "columns": 0.6, "all": 0.05}
        for pattern in ("dense", *(bounds if LONG else sample(sorted(bounds), 2))):
            self.write(weights(pattern, size, size), 256)
            self.compile_file(self.dir / "m.onnx", "-t", "cpu:host")
            (self.dir / "m.bundle").rename(self.dir / f"{pattern}.bundle")
        took = lambda pattern: self.seconds(f"{pattern}.bundle", many) - self.seconds(f"{pattern}.bundle", few)
        for pattern, most in bounds.items():
            if (self.dir / f"{pattern}.bundle").exists():
                ratio = statistics.median(took(pattern) / took("dense") for _ in range(3))
                self.assertLess(ratio, most if LONG else most + 0.15, pattern)  # of fewer, shorter products copies are a larger part


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
