#!/usr/bin/env python3
"""Facts of sparsity outside of attention, from the outside: results against numpy and the same bits with `--sparsity off`, what texts and
the report say of them, texts that say what is false, and rows that nobody reads. The facts themselves are held against all values by
tests/unit/Phases. Usage: sparsity_test.py BIN [unittest arguments]. A plain run takes an eighth of 60 chains, DMXC_LONG=1 all. Exit 77 where
numpy is not installed."""
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import unittest

CLI = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(CLI), str(CLI.parent)]
import dynamic_shapes  # exits where numpy is not installed
from dynamic_shapes import BIN, BundleTest, np, onnx, softmax
from sampling import sample

ROWS, WIDTH = 96, 128


def constant(name, array):
    array = np.ascontiguousarray(array)
    types = {np.dtype(np.float32): onnx.FLOAT, np.dtype(np.int64): onnx.INT64, np.dtype(bool): onnx.BOOL}
    return onnx.tensor(name, types[array.dtype], list(array.shape), raw=array.tobytes())


def blocks(n, size):
    return np.kron(np.eye(n // size), np.ones((size, size)))


def sparse(numbers, form):
    """A weight with zeros as models have them."""
    weight = numbers.standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH)
    half = np.arange(WIDTH) < WIDTH // 2
    keep = {"lower": np.tril(np.ones((WIDTH, WIDTH))), "upper": np.triu(np.ones((WIDTH, WIDTH)), 1), "blocks": blocks(WIDTH, 16),
            "rows": half[:, None] * np.ones(WIDTH), "columns": ~half * np.ones((WIDTH, 1)), "none": np.zeros((WIDTH, WIDTH)),
            "identity": np.eye(WIDTH), "groups": (np.arange(WIDTH)[:, None] - np.arange(WIDTH)) % 4 == 0,
            "scattered": np.kron(numbers.random((8, 8)) < 0.3, np.ones((16, 16))), "all": np.ones((WIDTH, WIDTH))}[form]
    return (weight * keep).astype(np.float32)


FORMS = ["lower", "upper", "blocks", "rows", "columns", "none", "identity", "groups", "scattered", "all"]


class Chain:
    """Ops one behind the other, as nodes and as numpy has them in f64."""

    def __init__(self, seed):
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.x = self.numbers.standard_normal((ROWS, WIDTH)).astype(np.float32)
        self.nodes, self.weights, self.value, self.name = [], [], self.x.astype(np.float64), "x"
        for _ in range(self.random.randint(3, 6)):
            self.random.choice([self.product, self.product, self.relu, self.times_mask, self.chosen, self.square])()
        if self.random.random() < 0.4:
            self.last_rows()

    def weight(self, array):
        self.weights.append(constant(f"w{len(self.weights)}", array))
        return f"w{len(self.weights) - 1}"

    def node(self, kind, inputs, **attributes):
        self.name = f"v{len(self.nodes)}"
        self.nodes.append(onnx.node(kind, inputs, self.name, **attributes))

    def product(self):
        weight = sparse(self.numbers, self.random.choice(FORMS))
        self.node("MatMul", f"{self.name} {self.weight(weight)}")
        self.value = self.value @ weight.astype(np.float64)

    def relu(self):
        self.node("Relu", self.name)
        self.value = np.maximum(self.value, 0)

    def rule(self, columns):
        shift, kind = self.random.randint(-4, 20), self.random.choice(["lower", "window"])
        i, j = np.arange(ROWS)[:, None], np.arange(columns)
        return (j <= i + shift) if kind == "lower" else (np.abs(i - j) <= abs(shift) + 1)

    def times_mask(self):
        keep = self.rule(self.value.shape[1])
        self.node("Mul", f"{self.name} {self.weight(keep.astype(np.float32))}")
        self.value = self.value * keep

    def chosen(self):
        keep = self.rule(self.value.shape[1])
        self.node("Where", f"{self.weight(keep)} {self.name} {self.weight(np.float32(0))}")
        self.value = np.where(keep, self.value, 0)

    def square(self):
        """softmax of masked scores of the value with itself, times it."""
        before, name = self.value, self.name
        self.node("Transpose", name, perm=[1, 0])
        self.node("MatMul", f"{name} {self.name}")
        self.node("Mul", f"{self.name} {self.weight(np.float32(0.1))}")
        keep = np.arange(ROWS)[:, None] >= np.arange(ROWS)
        self.node("Where", f"{self.weight(keep)} {self.name} {self.weight(np.float32(-np.inf))}")
        self.node("Softmax", self.name, axis=-1)
        self.node("MatMul", f"{self.name} {name}")
        self.value = softmax(np.where(keep, 0.1 * (before @ before.T), -np.inf)) @ before

    def last_rows(self):
        starts, ends, axes = (self.weight(np.array([n], np.int64)) for n in (-2, ROWS, 0))
        self.node("Slice", f"{self.name} {starts} {ends} {axes}")
        self.value = self.value[-2:]

    def model(self):
        return onnx.model(self.nodes, [onnx.info("x", onnx.FLOAT, [ROWS, WIDTH])], [onnx.info(self.name, onnx.FLOAT, None)],
                          weights=self.weights)


def product_with(weight, name="w", rows=ROWS):
    return onnx.model([onnx.node("MatMul", "x w", "y")], [onnx.info("x", onnx.FLOAT, [rows, weight.shape[0]])],
                      [onnx.info("y", onnx.FLOAT, None)], weights=[constant(name, weight)])


class Sparsity(BundleTest):
    def run_dmxc(self, *arguments):
        return subprocess.run([BIN / "dmxc", *arguments, "-t", "cpu:x86-64-v3"], capture_output=True, text=True)

    def outputs(self, model, values, *arguments):
        (self.dir / "m.onnx").write_bytes(model)
        self.compile_file(self.dir / "m.onnx", *arguments)
        shutil.rmtree(self.dir / "out", ignore_errors=True)
        ran = self.run_bundle(values, "--threads", "1")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return np.load(next((self.dir / "out").glob("*.npy")))

    def text(self, model, phase, *arguments):
        (self.dir / "m.onnx").write_bytes(model)
        done = self.run_dmxc(self.dir / "m.onnx", "--emit", phase, "-o", self.dir / "text.mlir", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.dir / "text.mlir").read_text()

    def test_chains(self):
        for seed in sample(range(60), 8):
            chain = Chain(seed)
            with self.subTest(seed=seed):
                got = self.outputs(chain.model(), {"x": chain.x})
                off = self.outputs(chain.model(), {"x": chain.x}, "--sparsity", "off")
                self.assertEqual(got.tobytes(), off.tobytes())
                np.testing.assert_allclose(got, chain.value, rtol=1e-3, atol=1e-4 * np.abs(chain.value).max(initial=1e-3))

    # --- texts

    def refused(self, text, *words):
        (self.dir / "bad.mlir").write_text(text)
        done = self.run_dmxc(self.dir / "bad.mlir", "--from", "frontend", "-o", self.dir / "bad.bundle")
        self.assertEqual(done.returncode, 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse((self.dir / "bad.bundle").exists())

    def test_what_is_false_is_named(self):
        weight = sparse(np.random.default_rng(0), "lower")
        text = self.text(product_with(weight), "frontend")
        rule = "(d0 - d1 >= 0)"
        self.assertIn(rule, text)
        self.refused(text.replace(rule, "(d0 - d1 - 1 >= 0)"), "[sparsity]", "'w'", "j < i", "j <= i")
        self.refused(text.replace("value = 0.000000e+00", "value = 1.000000e+00"), "[sparsity]", "'w'")
        self.refused(text.replace("affine_set<(d0, d1)", "affine_set<(d0, d1, d2)"), "dmir.sparsity", "3 dims")
        self.refused(text.replace("value = 0.000000e+00 : f32", "value = 0 : i32"), "dmir.sparsity", "no number of")
        self.refused(text.replace("{known = {", "{knows = {"), "dmir.sparsity", "knows")
        # A fact of a product whose operands imply none, and a demand that is less than what is read.
        dense = self.text(product_with(sparse(np.random.default_rng(0), "all")), "frontend")
        product = "dmir.matmul %arg0, %w "
        self.assertIn(product + ":", dense)
        for key in ("known = {keep = [affine_set<(i, j) : (i - j >= 0)>], value = 0.0 : f32}", "demanded = {keep = []}"):
            self.refused(dense.replace(product, product + "{dmir.sparsity = {" + key + "}} "), "[sparsity]", "MatMul_0")

    def test_what_is_true_may_stay_or_go(self):
        weight = sparse(np.random.default_rng(0), "blocks")
        text = self.text(product_with(weight), "frontend")
        self.assertIn("(d0 floordiv 16 - d1 floordiv 16 == 0)", text)
        self.compile_file(self.dir / "m.onnx")
        direct = (self.dir / "m.bundle").stat().st_size
        weaker = text.replace("(d0 floordiv 16 - d1 floordiv 16 == 0)", "(d0 floordiv 32 - d1 floordiv 32 == 0)")
        without = re.sub(r"\{dmir\.sparsity = \{known = \{[^}]*\}\}\}", "", text)
        self.assertNotIn("dmir.sparsity", without)
        for same in (text, without, weaker):
            (self.dir / "text.mlir").write_text(same)
            self.compile_file(self.dir / "text.mlir", "--from", "frontend", "--allow-external-data", self.dir)
            self.assertLess(abs((self.dir / "m.bundle").stat().st_size - direct), 4096) # weights are packed as before

    # --- the report

    def facts(self, model):
        (self.dir / "m.onnx").write_bytes(model)
        done = self.run_dmxc(self.dir / "m.onnx", "--emit", "partition", "-o", self.dir / "text.mlir", "--sparsity-report", self.dir / "r.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads((self.dir / "r.json").read_text())["facts"]

    def test_the_report_names_facts(self):
        fact, = self.facts(product_with(sparse(np.random.default_rng(0), "lower")))
        self.assertEqual((fact["node"], fact["of"], fact["rule"]), ("MatMul_0", "its right operand", "j <= i"))
        self.assertIn("'w'", fact["from"])
        self.assertAlmostEqual(fact["kept"], (WIDTH + 1) / (2 * WIDTH))
        self.assertEqual(fact["operations"], 2 * ROWS * WIDTH * WIDTH)
        self.assertNotIn("not_used", fact)
        self.assertLess(fact["issued"], fact["operations"])
        # Of scattered blocks no rule tells, but the strategy does.
        fact, = self.facts(product_with(sparse(np.random.default_rng(0), "scattered")))
        self.assertEqual((fact["of"], fact["rule"]), ("its right operand", "its blocks have other than zeros"))
        self.assertLess(fact["issued"], 0.8 * fact["operations"])
        self.assertEqual(self.facts(product_with(sparse(np.random.default_rng(0), "all"))), [])
        fact, = self.facts(onnx.model(
            [onnx.node("MatMul", "x w", "s"), onnx.node("Where", "keep s zero", "y")], [onnx.info("x", onnx.FLOAT, [WIDTH, WIDTH])],
            [onnx.info("y", onnx.FLOAT, None)], weights=[constant("w", sparse(np.random.default_rng(0), "all")), constant("zero", np.float32(0)),
                                                         constant("keep", np.tril(np.ones((WIDTH, WIDTH), bool)))]))
        self.assertEqual((fact["node"], fact["rule"]), ("MatMul_0", "j <= i"))
        self.assertIn("result", fact["of"])

    # --- rows that nobody reads

    def test_one_row_of_an_mlp(self):
        numbers = np.random.default_rng(1)
        first, second = (numbers.standard_normal((WIDTH, WIDTH)).astype(np.float32) for _ in range(2))
        nodes = [onnx.node("MatMul", "x a", "h"), onnx.node("Relu", "h", "r"), onnx.node("MatMul", "r b", "o"), onnx.node("Add", "o x", "s"),
                 onnx.node("Gather", "s last", "y", axis=0)]
        model = onnx.model(nodes, [onnx.info("x", onnx.FLOAT, [ROWS, WIDTH])], [onnx.info("y", onnx.FLOAT, None)],
                           weights=[constant("a", first), constant("b", second), constant("last", np.int64(-1))])
        text = self.text(model, "partition")
        for product in re.findall(r"dmir\.matmul .*", text):
            self.assertIn(f"tensor<1x{WIDTH}xf32>", product.split("->")[1])
        x = numbers.standard_normal((ROWS, WIDTH)).astype(np.float32)
        got, off = self.outputs(model, {"x": x}), self.outputs(model, {"x": x}, "--sparsity", "off")
        self.assertEqual(got.tobytes(), off.tobytes())
        own = x[-1].astype(np.float64)
        np.testing.assert_allclose(got[0], np.maximum(own @ first, 0) @ second + own, rtol=1e-4, atol=1e-3)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
