#!/usr/bin/env python3
"""Shapes that are known at run time only: one bundle, many sizes, against numpy. Usage: dynamic_shapes.py BIN [unittest
arguments]. Exit 77 where numpy is not installed."""
import itertools
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
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "fuzz"), str(pathlib.Path(__file__).resolve().parents[1])]
import make_corpus as onnx  # writes ONNX models without the onnx package
from sampling import sample


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


def constant(name, value):
    dims = "x".join(map(str, value.shape))
    return f'  {name} = dmir.constant dense<"0x{value.astype("<f4").tobytes().hex()}"> : tensor<{dims}xf32>\n'


def conv_oracle(x, w, strides, dilations, low, high, groups):
    """By the definition, all output positions of a tap at once."""
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *zip(low, high)])
    out = [max((n - d * (k - 1) - 1) // s + 1, 0) for n, k, s, d in zip(x.shape[2:], w.shape[2:], strides, dilations)]
    channels = w.shape[0]
    x = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    w = w.reshape(groups, channels // groups, *w.shape[1:])
    total = np.zeros((x.shape[0], groups, w.shape[1], *out))
    for tap in np.ndindex(*w.shape[3:]):
        window = tuple(slice(t * d, t * d + s * (n - 1) + 1 if n else t * d, s) for t, d, s, n in zip(tap, dilations, strides, out))
        total += np.einsum("bgc...,goc->bgo...", x[(slice(None),) * 3 + window], w[(slice(None),) * 3 + tap])
    return total.reshape(total.shape[0], channels, *out)


class ConvChain:
    """Convolutions of a shape with symbolic batch and spatial dims, one after the other."""

    def __init__(self, shape):
        self.shape, self.body, self.layers, self.inputs, self.value = shape, "", [], {"x": shape}, "%x"
        self.random = np.random.default_rng(7)

    def step(self, name, shape, attributes, function, operands=()):
        result = f"%v{len(self.layers)}"
        self.body += op(result, name, [(self.value, self.shape), *operands], shape, attributes)
        self.layers.append(function)
        self.value, self.shape = result, shape
        return self

    def conv(self, channels, kernel, strides=1, dilations=1, low=0, high=None, groups=1, at_run_time=False):
        rank = len(self.shape) - 2
        spread = lambda v: list(v) if isinstance(v, (list, tuple)) else [v] * rank
        kernel, strides, dilations, low = map(spread, (kernel, strides, dilations, low))
        high = low if high is None else spread(high)
        shape = [channels, self.shape[1] // groups, *kernel]
        w = (self.random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        name = f"%w{len(self.layers)}"
        if at_run_time:
            self.inputs[name[1:]] = shape
        else:
            self.body += constant(name, w)
        rest = [l + h - d * (k - 1) - 1 for k, d, l, h in zip(kernel, dilations, low, high)]
        out = [f"max(floordiv({n} {'-' if r < 0 else '+'} {abs(r)}, {s}) + 1, 0)" for n, r, s in zip(self.shape[2:], rest, strides)]
        array = lambda name, v: f"{name} = array<i64: {', '.join(map(str, v))}>"
        attributes = ", ".join(map(array, ("strides", "dilations", "low", "high"), (strides, dilations, low, high))) + f", groups = {groups} : i64"
        return self.step("conv", [self.shape[0], channels, *out], attributes,
                         lambda x, given, before: conv_oracle(x, given.get(name[1:], w), strides, dilations, low, high, groups), [(name, shape)])

    def relu(self):
        return self.step("relu", self.shape, "", lambda x, given, before: np.maximum(x, 0))

    def add(self, layer):
        """The sum with an earlier layer's value."""
        return self.step("add", self.shape, "", lambda x, given, before: x + before[layer], [(f"%v{layer}", self.shape)])

    def pool(self):
        shape = [*self.shape[:2], *(f"max(floordiv({n} - 1, 2) + 1, 0)" for n in self.shape[2:])]
        array = lambda name, v: f"{name} = array<i64: {v}, {v}>"
        attributes = ", ".join(map(array, ("window", "strides", "dilations", "low", "high", "ceilExtra"), (3, 2, 1, 1, 1, 0)))

        def oracle(x, given, before):
            x = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
            h, w = ((n - 3) // 2 + 1 for n in x.shape[2:])
            return np.max([x[:, :, i:i + 2 * h - 1:2, j:j + 2 * w - 1:2] for i in range(3) for j in range(3)], 0)
        return self.step("pool max", shape, attributes, oracle)

    def case(self, sizes):
        def oracle(x, *weights):
            given, values = dict(zip(list(self.inputs)[1:], weights)), [x]
            for layer in self.layers:
                values.append(layer(values[-1], given, values[1:]))
            return values[-1]
        return Case(self.inputs, self.body, self.value, self.shape, oracle, sizes)


def convolutions():
    """Through the blocked layout: sizes of 0, 1, less than the kernel, and around the sizes of tiles and runs."""
    image = [dict(b=b, h=h, w=w) for b, h, w in ((1, 1, 1), (2, 2, 3), (0, 9, 9), (1, 13, 7), (3, 29, 14), (1, 30, 57), (2, 5, 171), (1, 8, 0))]
    chain = ConvChain(["b", 3, "h", "w"]).conv(20, 7, strides=2, low=3).relu().conv(20, 3, low=1).relu().conv(40, 1).relu()
    chain.conv(20, 3, low=1).add(3).relu().conv(33, 3, strides=2, low=(0, 2), high=(2, 0)).conv(9, (1, 5), dilations=(1, 2), low=(0, 4))
    small = ConvChain(["b", 8, "h", "w"]).conv(8, 3, low=1).relu().conv(64, 3, low=1, strides=(1, 3)).conv(16, 3, low=1, dilations=3).conv(3, 1)
    pooled = ConvChain(["b", 3, "h", "w"]).conv(24, 3, low=1).relu().pool().conv(150, 1, strides=2).conv(17, 2, low=1, high=0, at_run_time=True)
    groups = ConvChain(["b", 32, "h", "w"]).conv(64, 3, low=1, groups=2).conv(64, 3, low=1, groups=64).relu().conv(64, 5, strides=2, low=2, groups=64)
    groups.conv(48, 3, low=2, dilations=2, groups=16).conv(12, 3, low=1)
    # A kernel that is larger than the image has nothing to compute.
    valid = ConvChain(["b", 16, "h", "w"]).conv(16, 3).conv(24, 3, strides=2)
    line = ConvChain(["b", 1, "n"]).conv(24, 11, strides=4, low=5).relu().conv(40, 3, dilations=4, low=8, high=0).conv(40, 3, low=1, groups=40).conv(33, 1)
    # Windows that are loops: phases of 1, 3 and 2, and strides of which an iteration's taps are a part.
    filters = ConvChain(["b", 1, "n"]).conv(20, 70, low=35).conv(17, 81, strides=3, low=40).conv(9, 66, strides=4, dilations=6, low=200)
    octaves = ConvChain(["b", 2, "n"]).conv(20, 140, strides=64, low=60).conv(5, 41, low=20).conv(6, 67, strides=2, dilations=2, low=66)
    leaps = ConvChain(["b", 1, "n"]).conv(6, 100, strides=40, low=3).conv(36, 3, low=1)
    lines = [dict(b=b, n=n) for b, n in ((1, 1), (2, 33), (1, 512), (3, 700), (1, 9001), (0, 5), (1, 0))]
    volume = ConvChain(["b", 2, "d", "h", "w"]).conv(18, 3, low=1).conv(18, (1, 3, 2), strides=(2, 1, 2), low=(0, 1, 1))
    return {"chain": chain.case(image), "small": small.case(image), "pooled": pooled.case([s for s in image if s["w"]]), "groups": groups.case(image),
            "valid": valid.case(image), "line": line.case([dict(b=b, n=n) for b, n in ((1, 1), (2, 3), (1, 64), (3, 100), (1, 3001), (0, 5), (1, 0))]),
            "filters": filters.case(lines), "octaves": octaves.case(lines), "leaps": leaps.case(lines),
            "volume": volume.case([dict(b=b, d=d, h=h, w=w) for b, d, h, w in ((1, 1, 1, 1), (2, 3, 2, 5), (1, 4, 9, 15), (1, 2, 0, 3))])}


CONVOLUTIONS = convolutions()
def row():
    """A part of fixed size of a constant that starts where a run says."""
    table = np.arange(21, dtype=np.float32).reshape(7, 3)
    body = (constant("%t", table) + op("%r", "slice", {"%t": [7, 3]}, [1, 3], "starts = array<i64: -9223372036854775808, 0>, "
                                       'sizes = array<i64: 1, 3>, steps = array<i64: 1, 1>, dims = #dmir.dims<"n">') +
            op("%y", "add", {"%x": ["n", 3], "%r": [1, 3]}, ["n", 3]))
    return Case({"x": ["n", 3]}, body, "%y", ["n", 3], lambda x: x + table[len(x)], [{"n": n} for n in (0, 1, 2, 5, 6)])


CASES = {"row": row(), "attention": attention(), "broadcasting": broadcasting(), "movement": movement(), "reductions": reductions(), "windows": windows(), **CONVOLUTIONS}


class BundleTest(unittest.TestCase):
    """One bundle, run again and again."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-dynamic-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def compile_file(self, model, *arguments):
        if "-t" not in arguments:
            arguments += ("-t", "cpu:x86-64-v3")
        result = subprocess.run([BIN / "dmxc", model, "-o", self.dir / "m.bundle", *arguments], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)

    def compile_onnx(self, model):
        (self.dir / "m.onnx").write_bytes(model)
        self.compile_file(self.dir / "m.onnx")

    def run_bundle(self, values, *arguments):
        folder = self.dir / "in"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, value in values.items():
            np.save(folder / f"{name}.npy", value)
        return subprocess.run([BIN / "dmx-run", self.dir / "m.bundle", "--inputs", folder, "--output-dir", self.dir / "out", *arguments],
                              capture_output=True, text=True)


class Dynamic(BundleTest):
    def compile(self, case, *arguments):
        (self.dir / "m.mlir").write_text(case.text())
        self.compile_file(self.dir / "m.mlir", *arguments)

    def inputs(self, case, sizes, seed=0):
        random = np.random.default_rng(seed)
        return {n: random.standard_normal([sizes.get(d, d) for d in s]).astype(np.float32) for n, s in case.inputs.items()}

    def check(self, name, level="host"):
        case = CASES[name]
        self.compile(case, "-t", f"cpu:{level}")
        for sizes in case.sizes:
            with self.subTest(case=name, level=level, **sizes):
                values = self.inputs(case, sizes)
                result = self.run_bundle(values)
                self.assertEqual(result.returncode, 0, result.stderr)
                got, wanted = np.load(next((self.dir / "out").glob("*.npy"))), case.oracle(*values.values())
                self.assertEqual(got.shape, wanted.shape)
                np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=max(2e-5, 4e-6 * np.abs(wanted).max(initial=0)))

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

    def test_convolutions(self):
        for name, level in sample(itertools.product(CONVOLUTIONS, ("host", "x86-64-v3", "x86-64-v2")), 4):
            self.check(name, level)

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

    def test_operands_that_break_a_rule_name_their_node(self):
        inputs = [onnx.info("x", onnx.FLOAT, [2, 3]), onnx.info("shape", onnx.INT64, [2])]
        self.compile_onnx(onnx.model([onnx.node("Reshape", "x shape", "y")], inputs, [onnx.info("y", onnx.FLOAT, [3, 2])]))
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        result = self.run_bundle({"x": x, "shape": np.array([3, -1])})
        self.assertEqual(result.returncode, 0, result.stderr)
        np.testing.assert_array_equal(np.load(self.dir / "out" / "out_y.npy"), x.reshape(3, 2))
        result = self.run_bundle({"x": x, "shape": np.array([6, 1])})
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("node 'Reshape_0: what is known at run time only must be valid and give what the model declares'", result.stderr)
        self.assertIn("an operand has a value its operation does not allow", result.stderr)

    def test_a_question_mark_names_no_dim(self):
        self.compile_onnx(onnx.unary("Relu", ["?", "?"]))
        x = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
        result = self.run_bundle({"x": x})
        self.assertEqual(result.returncode, 0, result.stderr)
        np.testing.assert_array_equal(np.load(self.dir / "out" / "out_y.npy"), np.maximum(x, 0))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
