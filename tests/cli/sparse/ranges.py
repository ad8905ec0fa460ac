#!/usr/bin/env python3
"""Products and softmax of what a rule of indices leaves out: numpy's numbers, and the bits of --sparsity off. Usage: ranges.py BIN
[unittest arguments]. Exit 77 where numpy is not installed. A plain run takes samples, DMXC_LONG=1 takes all."""
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


class Model:
    """Nodes and weights that grow, and what numpy says of values."""

    def __init__(self, seed):
        self.numbers = np.random.default_rng(seed)
        self.nodes, self.inputs, self.weights, self.values = [], [], [], {}

    def input(self, shape, dims=None):
        name = f"x{len(self.inputs)}"
        self.inputs.append(onnx.info(name, onnx.FLOAT, list(dims or shape)))
        self.values[name] = self.numbers.standard_normal(shape).astype(np.float32)
        return name

    def constant(self, value):
        name = f"c{len(self.weights)}"
        kind = {"float32": onnx.FLOAT, "int64": onnx.INT64, "bool": onnx.BOOL}[str(value.dtype)]
        self.weights.append(onnx.tensor(name, kind, list(value.shape), raw=np.ascontiguousarray(value).tobytes()))
        return name

    def node(self, op, inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(onnx.node(op, inputs, name, **attributes))
        return name

    def masked(self, x, keep, how):
        """x where `keep`, a matrix, is true; else zero."""
        if how == "mul":
            return self.node("Mul", f"{x} {self.constant(keep.astype(np.float32))}")
        return self.node("Where", f"{self.constant(keep)} {x} {self.constant(np.zeros((), np.float32))}")

    def encode(self, y, shape):
        return onnx.model([*self.nodes, onnx.node("Identity", y, "y")], self.inputs, [onnx.info("y", onnx.FLOAT, list(shape))], weights=self.weights)


def rule(numbers, rows, columns):
    """A matrix of what is kept, as models write it: a triangle, a band, blocks along the diagonal."""
    i, j = np.ogrid[:rows, :columns]
    shift, width, blocks = int(numbers.integers(-columns // 3, columns // 3 + 1)), int(numbers.integers(1, columns)), int(numbers.integers(2, 6))
    size = -(-max(rows, columns) // blocks)
    return [j <= i + shift, j >= i + shift, (j <= i + shift) & (j > i + shift - width), i // size == j // size][numbers.integers(4)]


@sampled(2)
class SparseRanges(BundleTest):
    def output(self, values, *arguments):
        done = self.run_bundle(values, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.load(self.dir / "out" / "out_y.npy")

    def algorithms(self, *arguments):
        done = subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "--emit", "partition", "-o", "-", *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.text = done.stdout
        return re.findall(r'algorithm = "([^"]+)"', re.sub(r"dmir\.masks = .*", "", done.stdout))

    def agree(self, model, y, wanted, slack, case):
        """Numbers at each level, by one thread and by four, and the bits that they have with --sparsity off."""
        (self.dir / "m.onnx").write_bytes(model.encode(y, wanted.shape))
        got = {}
        for mode in ("on", "off"):
            self.compile_file(self.dir / "m.onnx", "--sparsity", mode, "-t", "cpu:" + "+".join(LEVELS))
            got[mode] = {(level, threads): self.output(model.values, "--isa", level, "--threads", threads) for level in LEVELS for threads in "14"}
        for run, value in got["on"].items():
            with self.subTest(case=case, run=run):
                self.assertTrue(((np.abs(value - wanted) <= slack + 1e-30) | (np.isnan(value) & np.isnan(wanted))).all(), np.abs(value - wanted).max())
                np.testing.assert_array_equal(value.view(np.uint32), got["off"][run].view(np.uint32))

    def test_products(self):
        """Operands and results that rules leave parts of zero."""
        used = 0
        for seed in sample(range(80), 8):
            model = Model(seed)
            numbers = model.numbers
            where, how, turned = ("left", "right", "result", "left right", "left result")[seed % 5], ("mul", "where")[seed // 5 % 2], seed % 3 == 0
            m, k, n = (int(round(top ** numbers.uniform(0.6, 1))) for top in (300, 900, 300))
            batch = (2,) if seed % 4 == 3 else ()
            x, w = model.input((*batch, m, k)), model.input((*batch, n, k) if turned else (*batch, k, n))
            a, b = model.values[x], model.values[w]
            if turned:
                w, b = model.node("Transpose", w, perm=[0, 2, 1] if batch else [1, 0]), np.swapaxes(b, -1, -2)
            keep = {"left": rule(numbers, m, k), "right": rule(numbers, k, n), "result": rule(numbers, m, n)}
            if "left" in where:
                x, a = model.masked(x, keep["left"], how), np.where(keep["left"], a, 0)
            if "right" in where:
                w, b = model.masked(w, keep["right"], how), np.where(keep["right"], b, 0)
            y = model.node("MatMul", f"{x} {w}")
            wanted, slack = a.astype(np.float64) @ b, np.abs(a).astype(np.float64) @ np.abs(b) * k * 2.0 ** -23
            if "result" in where:
                y, wanted = model.masked(y, keep["result"], how), np.where(keep["result"], wanted, 0)
            self.agree(model, y, wanted, slack, (seed, where, how, (m, k, n)))
            used += any(name.endswith("-ranges") for name in self.algorithms())
            self.assertFalse(any(name.endswith("-ranges") for name in self.algorithms("--sparsity", "off")))
        self.assertGreater(used, 3)

    def test_softmax(self):
        """Rows of which a rule keeps a part, none of some: NaN then, as without the rule being known."""
        for seed in sample(range(24), 4):
            model = Model(seed)
            numbers = model.numbers
            rows, columns = int(numbers.integers(3, 70)), int(numbers.integers(256, 900))
            batch = (2, 2) if seed % 3 == 0 else ()
            i, j = np.ogrid[:rows, :columns]
            shift, width = int(numbers.integers(-2, columns - rows)), int(numbers.integers(1, columns))
            terms = [("LessOrEqual", "j", shift)] + ([("Greater", "j", shift - width)] if seed % 2 else [])
            keep = (j <= i + shift) & ((j > i + shift - width) if seed % 2 else True)
            at = {"i": model.constant(np.arange(rows).reshape(rows, 1)), "j": model.constant(np.arange(columns).reshape(1, columns))}
            kept = None
            for op, _, by in terms:
                right = model.node("Add", f"{at['i']} {model.constant(np.array(by))}")
                one = model.node(op, f"{at['j']} {right}")
                kept = model.node("And", f"{kept} {one}") if kept else one
            x = model.input((*batch, rows, columns))
            masked = model.node("Where", f"{kept} {x} {model.constant(np.array(-np.inf, np.float32))}")
            y = model.node("LogSoftmax" if seed % 5 == 0 else "Softmax", masked, axis=-1)
            values = np.where(keep, model.values[x].astype(np.float64), -np.inf)
            with np.errstate(invalid="ignore", divide="ignore"):
                powers = np.exp(values - values.max(-1, keepdims=True))
                wanted = powers / powers.sum(-1, keepdims=True)
                wanted = np.log(wanted) if seed % 5 == 0 else wanted
            if seed % 2 == 0:
                y, wanted = model.node("Mul", f"{y} {x}"), wanted * model.values[x]
            (self.dir / "m.onnx").write_bytes(model.encode(y, wanted.shape))
            if seed % 5:  # masks are looked for in front of the softmax that is none's logarithm
                self.assertIn("softmax-along-ranges", self.algorithms("-t", "cpu:host"), seed)
            finite = np.isfinite(wanted)
            if finite.all():
                self.agree(model, y, wanted, np.abs(wanted) * 1e-4 + 1e-5, (seed, rows, columns))
                continue
            for mode in ("on", "off"):  # -inf and NaN where numpy has them
                self.compile_file(self.dir / "m.onnx", "--sparsity", mode, "-t", "cpu:host")
                got = self.output(model.values)
                np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
                np.testing.assert_allclose(got[~np.isnan(wanted)], wanted[~np.isnan(wanted)], rtol=1e-4, atol=1e-4)

    def test_open_rows(self):
        """A triangle over dims that a run brings."""
        nodes = [onnx.node("Trilu", "a", "t", upper=0), onnx.node("MatMul", "t b", "y")]
        (self.dir / "m.onnx").write_bytes(onnx.model(nodes, [onnx.info("a", onnx.FLOAT, ["n", "n"]), onnx.info("b", onnx.FLOAT, ["n", 40])],
                                                     [onnx.info("y", onnx.FLOAT, ["n", 40])]))
        for mode in ("on", "off"):
            self.compile_file(self.dir / "m.onnx", "--sparsity", mode)
            for n in (1, 7, 64, 301):
                numbers = np.random.default_rng(n)
                a, b = numbers.standard_normal((n, n)).astype(np.float32), numbers.standard_normal((n, 40)).astype(np.float32)
                np.testing.assert_allclose(self.output({"a": a, "b": b}), np.tril(a).astype(np.float64) @ b, rtol=1e-4, atol=1e-3)

    def triangle(self, n, masked="left"):
        """y = tril(a) b, tril(a b), or without a mask."""
        model = Model(n)
        a, b = model.input((n, n)), model.input((n, n))
        a = model.node("Trilu", a, upper=0) if masked == "left" else a
        y = model.node("MatMul", f"{a} {b}")
        y = model.node("Trilu", y, upper=0) if masked == "result" else y
        (self.dir / "m.onnx").write_bytes(model.encode(y, (n, n)))
        return model

    def resume(self, text, phase):
        (self.dir / "m.mlir").write_text(text)
        return subprocess.run([BIN / "dmxc", self.dir / "m.mlir", "--from", phase, "-o", self.dir / "m.bundle"], capture_output=True, text=True)

    def test_text(self):
        """The algorithm says that ranges are used; text may decide against it, and not without a fact."""
        for masked in ("left", "result"):
            model = self.triangle(200, masked)
            self.assertIn("matmul-ranges", self.algorithms())
            text, wanted = self.text, np.tril(model.values["x0"]) @ model.values["x1"] if masked == "left" else np.tril(model.values["x0"] @ model.values["x1"])
            for changed in (text, text.replace('"matmul-ranges"', '"matmul"')):
                changed = re.sub(r"flops = \d+ : i64, |skips = \[[^]]*\], ", "", changed)
                self.assertEqual((done := self.resume(changed, "partition")).returncode, 0, done.stderr)
                np.testing.assert_allclose(self.output(model.values), wanted, rtol=1e-3, atol=1e-3)
            emitted = subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "--emit", "schedule", "-o", "-"], capture_output=True, text=True).stdout
            self.assertEqual((done := self.resume(emitted, "schedule")).returncode, 0, done.stderr)
            np.testing.assert_allclose(self.output(model.values), wanted, rtol=1e-3, atol=1e-3)
            self.algorithms("--sparsity", "off")
            done = self.resume(self.text.replace('"matmul"', '"matmul-ranges"'), "partition")
            self.assertEqual(done.returncode, 1)
            self.assertIn("matmul-ranges", done.stderr)

    def test_time(self):
        """User time of one thread beside the same without a mask, in pairs."""
        few, many, size = (1, 7, 1024) if LONG else (1, 9, 640)
        took = {}
        for masked in ("left", "result", ""):
            self.triangle(size, masked)
            self.compile_file(self.dir / "m.onnx", "-t", "cpu:host")
            (self.dir / "m.bundle").rename(self.dir / f"{masked or 'dense'}.bundle")

        def seconds(bundle, runs):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            subprocess.run([BIN / "dmx-run", self.dir / bundle, "--benchmark", "--threads", "1", "--warmup", "1", "--iters", str(runs)],
                           check=True, capture_output=True)
            return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        took = lambda name: seconds(f"{name}.bundle", many) - seconds(f"{name}.bundle", few)
        for masked in ("left", "result"):
            self.assertLess(statistics.median(took(masked) / took("dense") for _ in range(3)), 0.85, masked)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
