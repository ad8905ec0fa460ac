#!/usr/bin/env python3
"""Attention whose softmax is spelt out, or along an axis that is not the last: one region with the mask's rule, and no farther from numpy's
f64 than op by op. Usage: softmax_forms.py BIN [unittest arguments]. Exit 77 where numpy is not installed."""
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import dynamic_shapes  # exits where numpy is not installed
from dynamic_shapes import BundleTest, np, onnx, softmax

HEADS, ROWS, KEYS, SIZE = 2, 70, 90, 16  # queries see keys up to 20 behind them
PAST = KEYS - ROWS


class Graph:
    def __init__(self):
        self.nodes, self.weights, self.count = [], [], 0

    def op(self, kind, *inputs, **attributes):
        self.count += 1
        self.nodes.append(onnx.node(kind, " ".join(inputs), f"v{self.count}", **attributes))
        return f"v{self.count}"

    def constant(self, array):
        array = np.ascontiguousarray(array)
        self.weights.append(onnx.tensor(f"c{len(self.weights)}", onnx.INT64 if array.dtype == np.int64 else onnx.FLOAT, list(array.shape), raw=array.tobytes()))
        return f"c{len(self.weights) - 1}"

    def number(self, value):
        return self.constant(np.float32(value))

    def masked(self, scores, queries, keys):
        """j <= i + past, where queries and keys are axes of the scores."""
        place = lambda axis, count: self.constant(np.arange(count, dtype=np.int64).reshape([count if a == axis else 1 for a in range(4)]))
        keep = self.op("LessOrEqual", place(keys, KEYS), self.op("Add", place(queries, ROWS), self.constant(np.int64(PAST))))
        return self.op("Where", keep, scores, self.number(-np.inf))

    def sum(self, powers, axis, **more):
        return self.op("ReduceSum", powers, self.constant(np.array([axis])), **more)

    def product(self, a, b):
        return self.op("Mul", self.op("MatMul", a, b), self.number(SIZE**-0.5))

    def scores(self):
        return self.masked(self.product("q", self.op("Transpose", "k", perm=[0, 1, 3, 2])), 2, 3)


def shifted(g, scores):
    powers = g.op("Exp", g.op("Sub", scores, g.op("ReduceMax", scores, axes=[-1], keepdims=1)))
    return g.op("MatMul", g.op("Div", powers, g.sum(powers, -1, keepdims=1)), "v")


def plain(g, scores):
    powers = g.op("Exp", scores)
    return g.op("MatMul", g.op("Div", powers, g.sum(powers, 3, keepdims=1)), "v")


def inverse(g, scores):
    """The sum loses its axis and gets it back, powers are computed twice, as graphs that nobody has tidied have it."""
    total = g.op("Unsqueeze", g.sum(g.op("Exp", scores), 3, keepdims=0), g.constant(np.array([-1])))
    return g.op("MatMul", g.op("Mul", g.op("Reciprocal", total), g.op("Exp", scores)), "v")


def keys_first(g):
    scores = g.masked(g.product("k", g.op("Transpose", "q", perm=[0, 1, 3, 2])), 3, 2)
    return g.op("MatMul", g.op("Transpose", g.op("Softmax", scores, axis=2), perm=[0, 1, 3, 2]), "v")


def on_the_right(g):
    scores = g.masked(g.product("k", g.op("Transpose", "q", perm=[0, 1, 3, 2])), 3, 2)
    result = g.op("MatMul", g.op("Transpose", "v", perm=[0, 1, 3, 2]), g.op("Softmax", scores, axis=2))
    return g.op("Transpose", result, perm=[0, 1, 3, 2])


def heads_last(g):
    scores = g.op("Transpose", g.product("q", g.op("Transpose", "k", perm=[0, 1, 3, 2])), perm=[0, 2, 3, 1])
    weights = g.op("Softmax", g.masked(scores, 1, 2), axis=2)
    return g.op("MatMul", g.op("Transpose", weights, perm=[0, 3, 1, 2]), "v")


def spelt_keys_first(g):
    scores = g.masked(g.product("k", g.op("Transpose", "q", perm=[0, 1, 3, 2])), 3, 2)
    powers = g.op("Exp", g.op("Sub", scores, g.op("ReduceMax", scores, axes=[2], keepdims=1)))
    return g.op("MatMul", g.op("Transpose", g.op("Div", powers, g.sum(powers, 2, keepdims=1)), perm=[0, 1, 3, 2]), "v")


SPELT = {"shifted": shifted, "plain": plain, "inverse": inverse}
TURNED = {"keys_first": keys_first, "on_the_right": on_the_right, "heads_last": heads_last, "spelt_keys_first": spelt_keys_first}


class Softmaxes(BundleTest):
    def attention(self, build, rows=ROWS):
        g = Graph()
        last = build(g)
        info = lambda name, count: onnx.info(name, onnx.FLOAT, [1, HEADS, count, SIZE])
        return onnx.model([*g.nodes, onnx.node("Identity", last, "y")], [info("q", rows), info("k", KEYS), info("v", KEYS)],
                          [onnx.info("y", onnx.FLOAT, None)], weights=g.weights, opset=17)

    def given(self, times=1.0):
        random = np.random.default_rng(5)
        values = {name: random.standard_normal((1, HEADS, count, SIZE)).astype(np.float32) for name, count in (("q", ROWS), ("k", KEYS), ("v", KEYS))}
        values["q"] *= np.float32(times)
        exact = {name: value.astype(np.float64) for name, value in values.items()}
        scores = exact["q"] @ exact["k"].swapaxes(2, 3) * SIZE**-0.5
        keep = np.arange(KEYS) <= np.arange(ROWS)[:, None] + PAST
        return values, softmax(np.where(keep, scores, -np.inf)) @ exact["v"], scores

    def error(self, model, values, wanted, *flags):
        (self.dir / "m.onnx").write_bytes(model)
        self.compile_file(self.dir / "m.onnx", "--sparsity-report", str(self.dir / "r.json"), *flags)
        ran = self.run_bundle(values)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return np.abs(np.load(next((self.dir / "out").glob("*y.npy"))) - wanted).max()

    def test_each_is_one_region(self):
        values, wanted, _ = self.given()
        for name, build in {**{name: (lambda g, f=form: f(g, g.scores())) for name, form in SPELT.items()}, **TURNED}.items():
            with self.subTest(form=name):
                model = self.attention(build)
                before = self.error(model, values, wanted, "-O0")
                error = self.error(model, values, wanted)
                one, = json.loads((self.dir / "r.json").read_text())["attentions"]
                self.assertEqual((one["rule"], one["algorithm"].split("-")[0]), (f"j <= i + {PAST}", "attention"))
                self.assertNotIn("rest", one)
                self.assertLessEqual(error, max(1.05 * before, 2e-6))

    def test_powers_that_overflow(self):
        """Scores above 88, whose powers are infinite and whose quotients are NaN as the graph has them, give the weights."""
        values, wanted, scores = self.given(times=150)
        self.assertGreater(scores.max(), 300)
        for name in ("plain", "inverse"):
            model = self.attention(lambda g: SPELT[name](g, g.scores()))
            self.assertTrue(np.isnan(self.error(model, values, wanted, "-O0")))
            self.assertLess(self.error(model, values, wanted), 1e-4)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
