#!/usr/bin/env python3
"""Shapes that are known at run time only: one bundle, many sizes, against numpy. Usage: dynamic_shapes.py BIN [unittest
arguments]. Exit 77 where numpy is not installed."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

BIN = pathlib.Path(sys.argv[1]).resolve()


def typed(shape):
    """[2, "n"] as a tensor type."""
    dims = [d for d in shape if isinstance(d, str)]
    text = "x".join("?" if isinstance(d, str) else str(d) for d in shape)
    named = ", #dmir.dims<" + ", ".join(f'"{d}"' for d in dims) + ">" if dims else ""
    return f"tensor<{text + 'x' if shape else ''}f32{named}>"


def op(result, name, operands, shape, attributes=""):
    """One op; operands are {value: shape}, or pairs of them where a value stands twice."""
    pairs = list(operands.items()) if isinstance(operands, dict) else operands
    values, types = ", ".join(v for v, _ in pairs), ", ".join(typed(s) for _, s in pairs)
    return f"  {result} = dmir.{name} {values}{' {' + attributes + '}' if attributes else ''} : ({types}) -> {typed(shape)}\n"


class Case:
    def __init__(self, inputs, body, result, shape, oracle, sizes):
        self.inputs, self.body, self.result, self.shape, self.oracle, self.sizes = inputs, body, result, shape, oracle, sizes

    def text(self):
        arguments = ", ".join(f'%{n}: {typed(s)} {{dmir.name = "{n}"}}' for n, s in self.inputs.items())
        return (f'func.func @main({arguments}) -> ({typed(self.shape)} {{dmir.name = "out"}}) {{\n{self.body}'
                f"  return {self.result} : {typed(self.shape)}\n}}\n")


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True)) if x.size else x
    return x / x.sum(-1, keepdims=True)


def attention():
    q, k, s = ["b", "n", 16], ["b", "m", 16], ["b", "n", "m"]
    body = (op("%t", "transpose", {"%k": k}, ["b", 16, "m"], "permutation = array<i64: 0, 2, 1>") +
            op("%s", "matmul", {"%q": q, "%t": ["b", 16, "m"]}, s) + op("%p", "softmax", {"%s": s}, s, "axis = 2 : i64") +
            op("%y", "matmul", {"%p": s, "%v": k}, q))
    return Case({"q": q, "k": k, "v": k}, body, "%y", q, lambda q, k, v: softmax(q @ k.transpose(0, 2, 1)) @ v,
                [{"b": b, "n": n, "m": m} for b, n, m in ((1, 1, 1), (2, 7, 3), (1, 16, 17), (3, 33, 64), (1, 100, 128), (2, 0, 5))])


def broadcasting():
    a, c, y = ["a", "n"], ["b", "m"], ["broadcast(a, b)", "broadcast(m, n)"]
    return Case({"x": a, "z": c}, op("%y", "add", {"%x": a, "%z": c}, y), "%y", y, lambda x, z: x + z,
                [dict(zip("anbm", s)) for s in ((3, 5, 3, 5), (1, 5, 3, 5), (3, 1, 3, 40), (4, 33, 1, 1), (1, 1, 1, 1), (0, 3, 1, 3))])


def movement():
    x, joined, padded, cut = ["n", 6], ["2*n", 6], ["2*n + 3", 7], ["n + 1", 7]
    body = (op("%c", "concat", [("%x", x), ("%x", x)], joined, "axis = 0 : i64") +
            "  %zero = dmir.constant dense<0.5> : tensor<f32>\n" +
            op("%p", "pad", {"%c": joined, "%zero": []}, padded, "low = array<i64: 2, 0>, high = array<i64: 1, 1>, interior = array<i64: 0, 0>") +
            op("%s", "slice", {"%p": padded}, cut, "starts = array<i64: -9223372036854775808, 0>, "
               "sizes = array<i64: -9223372036854775808, 7>, steps = array<i64: 1, 1>, dims = #dmir.dims<\"n\", \"n + 1\">") +
            op("%r", "reshape", {"%s": cut}, ["7*n + 7"]))
    return Case({"x": x}, body, "%r", ["7*n + 7"],
                lambda x: np.pad(np.concatenate([x, x]), ((2, 1), (0, 1)), constant_values=0.5)[len(x):2 * len(x) + 1].reshape(-1),
                [{"n": n} for n in (1, 2, 5, 16, 31, 64)])


def reductions():
    x = ["n", "m"]
    body = (op("%a", "reduce mean", {"%x": x}, ["n", 1], "axes = array<i64: 1>") +
            op("%d", "sub", {"%x": x, "%a": ["n", 1]}, x) +
            op("%z", "normalize standard", {"%d": x}, x, "axes = array<i64: 1>, epsilon = 1.0e-5 : f64") +
            op("%y", "reduce max", {"%z": x}, ["m"], "axes = array<i64: 0>, keepDims = false"))

    def oracle(x):
        d = x - x.mean(1, keepdims=True)
        return (d / np.sqrt(d.var(1, keepdims=True) + 1e-5)).max(0)
    return Case({"x": x}, body, "%y", ["m"], oracle, [dict(n=n, m=m) for n, m in ((1, 1), (3, 15), (16, 16), (5, 100), (70, 33))])


def windows():
    x, w, y, z = ["b", 3, "h"], [5, 3, 3], ["b", 5, "floordiv(h - 1, 2) + 1"], ["b", 5, "floordiv(h - 1, 2)"]
    body = (op("%c", "conv", {"%x": x, "%w": w}, y, "strides = array<i64: 2>, dilations = array<i64: 1>, low = array<i64: 1>, high = array<i64: 1>") +
            op("%p", "pool max", {"%c": y}, z, "window = array<i64: 2>, strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, "
               "high = array<i64: 0>, ceilExtra = array<i64: 0>"))

    def oracle(x, w):
        x = np.pad(x, ((0, 0), (0, 0), (1, 1)))
        count = (x.shape[2] - 3) // 2 + 1
        c = np.stack([np.einsum("bck,ock->bo", x[:, :, 2 * i:2 * i + 3], w) for i in range(count)], 2)
        return np.maximum(c[:, :, :-1], c[:, :, 1:])
    return Case({"x": x, "w": w}, body, "%p", z, oracle, [dict(b=b, h=h) for b, h in ((1, 3), (2, 16), (3, 33), (1, 64))])


CASES = {"attention": attention(), "broadcasting": broadcasting(), "movement": movement(), "reductions": reductions(), "windows": windows()}


class BundleTest(unittest.TestCase):
    """One bundle, run again and again."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-dynamic-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def compile_file(self, model, *arguments):
        result = subprocess.run([BIN / "dmxc", model, "-o", self.dir / "m.bundle", *arguments], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)

    def run_bundle(self, values):
        folder = self.dir / "in"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, value in values.items():
            np.save(folder / f"{name}.npy", value)
        return subprocess.run([BIN / "dmx-run", self.dir / "m.bundle", "--inputs", folder, "--output-dir", self.dir / "out"],
                              capture_output=True, text=True)


class Dynamic(BundleTest):
    def compile(self, case, *arguments):
        (self.dir / "m.mlir").write_text(case.text())
        self.compile_file(self.dir / "m.mlir", *arguments)

    def inputs(self, case, sizes, seed=0):
        random = np.random.default_rng(seed)
        return {n: random.standard_normal([sizes.get(d, d) for d in s]).astype(np.float32) for n, s in case.inputs.items()}

    def check(self, name):
        case = CASES[name]
        self.compile(case, "-t", "cpu:host")
        for sizes in case.sizes:
            with self.subTest(case=name, **sizes):
                values = self.inputs(case, sizes)
                result = self.run_bundle(values)
                self.assertEqual(result.returncode, 0, result.stderr)
                got, wanted = np.load(next((self.dir / "out").glob("*.npy"))), case.oracle(*values.values())
                self.assertEqual(got.shape, wanted.shape)
                np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)

    def test_attention(self):
        self.check("attention")

    def test_broadcasting(self):
        self.check("broadcasting")

    def test_movement(self):
        self.check("movement")

    def test_reductions(self):
        self.check("reductions")

    def test_windows(self):
        self.check("windows")

    def test_shapes_that_do_not_fit_are_refused(self):
        self.compile(CASES["broadcasting"])
        result = self.run_bundle(self.inputs(CASES["broadcasting"], dict(a=3, n=5, b=4, m=5)))
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("broadcast", result.stderr)
        self.compile(CASES["attention"])
        values = self.inputs(CASES["attention"], dict(b=2, n=3, m=4))
        values["v"] = values["v"][:1]
        result = self.run_bundle(values)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("'v'", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
