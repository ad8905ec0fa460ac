#!/usr/bin/env python3
"""Masks that add or put any number in the place of scores, factors of scores, and constants of which tiles are left out: what is said of
them, and that results are no farther from numpy's f64 than op by op; with scores that a fill does not drown, and rows that see no key.
Usage: fills_test.py BIN [unittest arguments]. A plain run takes a fifth of the forms, DMXC_LONG=1 all. Exit 77 where numpy is not installed."""
import json
import pathlib
import sys
import unittest

CLI = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(CLI), str(CLI.parent)]
import dynamic_shapes  # exits where numpy is not installed
from dynamic_shapes import BundleTest, np, onnx, softmax
from sampling import sample

HEADS, N, SIZE, WINDOW = 2, 448, 16, 100
I, J = np.arange(N)[:, None], np.arange(N)[None]
CAUSAL, LOCAL = J <= I, (J <= I) & (J > I - WINDOW)
LEAST = float(np.finfo(np.float32).min)


class Graph:
    """Nodes, and beside each value what numpy has for it in f64."""

    def __init__(self, values):
        self.nodes, self.weights, self.count = [], [], 0
        self.exact = {name: value.astype(np.float64) if value.dtype == np.float32 else value for name, value in values.items()}
        keys = self.op("Transpose", "k", lambda k: k.swapaxes(2, 3), perm=[0, 1, 3, 2])
        self.scores = self.op("Mul", f"{self.op('MatMul', f'q {keys}', np.matmul)} {self.constant(np.float32(SIZE**-0.5))}", np.multiply)

    def op(self, kind, inputs, meaning, **attributes):
        self.count += 1
        name = f"v{self.count}"
        self.nodes.append(onnx.node(kind, inputs, name, **attributes))
        self.exact[name] = meaning(*(self.exact[one] for one in inputs.split()))
        return name

    def constant(self, array):
        array = np.ascontiguousarray(array)
        name = f"c{len(self.weights)}"
        types = {np.dtype(np.float32): onnx.FLOAT, np.dtype(np.int64): onnx.INT64, np.dtype(bool): onnx.BOOL}
        self.weights.append(onnx.tensor(name, types[array.dtype], list(array.shape), raw=array.tobytes()))
        self.exact[name] = array.astype(np.float64) if array.dtype == np.float32 else array
        return name

    def add(self, a, b):
        return self.op("Add", f"{a} {b}", np.add)

    def mul(self, a, b):
        return self.op("Mul", f"{a} {b}", np.multiply)

    def choose(self, keep, scores, fill):
        return self.op("Where", f"{keep} {scores} {self.constant(np.float32(fill))}", np.where)

    def rows(self):
        return self.constant(I), self.constant(J)

    def causal(self):
        """1.0 where j <= i, of compared positions."""
        i, j = self.rows()
        return self.op("Cast", self.op("LessOrEqual", f"{j} {i}", np.less_equal), lambda x: x.astype(np.float64), to=onnx.FLOAT)

    def attend(self, scores):
        return self.op("MatMul", f"{self.op('Softmax', scores, softmax, axis=-1)} v", np.matmul)


def complement(g, fill=-1e4):
    """(1 - m) * fill, added."""
    left = g.op("Sub", f"{g.constant(np.float32(1))} {g.causal()}", np.subtract)
    return g.attend(g.add(g.scores, g.mul(left, g.constant(np.float32(fill)))))


def constant_sum(g, keep=LOCAL, fill=-65504):
    return g.attend(g.add(g.scores, g.constant(np.where(keep, 0, fill).astype(np.float32)[None, None])))


def with_padding(g):
    i, j = g.rows()
    later = g.op("Greater", f"{j} {i}", np.greater)
    future = g.op("Where", f"{later} {g.constant(np.float32(-1e9))} {g.constant(np.float32(0))}", np.where)
    pad = g.op("Cast", "pad", lambda x: x.astype(np.float64), to=onnx.FLOAT)
    return g.attend(g.add(g.scores, g.add(future, g.mul(pad, g.constant(np.float32(-1e9))))))


def factor(g):
    return g.attend(g.mul(g.scores, g.causal()))


def factor_and_sum(g):
    """As GPT's first: scores m - 1e4 (1 - m)."""
    m = g.causal()
    left = g.op("Sub", f"{g.constant(np.float32(1))} {m}", np.subtract)
    return g.attend(g.op("Sub", f"{g.mul(g.scores, m)} {g.mul(left, g.constant(np.float32(1e4)))}", np.subtract))


def linear(g):
    return g.op("MatMul", f"{g.op('Trilu', g.scores, np.tril, upper=0)} v", np.matmul)


def retention(g):
    decay = np.where(CAUSAL, 0.97 ** np.abs(I - J), 0).astype(np.float32)
    return g.op("MatMul", f"{g.mul(g.scores, g.constant(decay))} v", np.matmul)


def random_blocks(cut=False):
    blocks = np.random.default_rng(5).random((N // 64, N // 64)) < 0.3
    blocks |= np.eye(N // 64, dtype=bool)
    keep = np.kron(blocks, np.ones((64, 64), bool))
    return keep & CAUSAL if cut else keep


def chosen_blocks(g, keep=None, fill=-np.inf):
    keep = random_blocks() if keep is None else keep
    return g.attend(g.choose(g.constant(keep[None, None]), g.scores, fill))


TILES = "tiles of 64 x 64"
FORMS = {  # what is built, the rule that is said, whether leaving out changes no bit
    "complement": (complement, "j <= i", False),
    "constant_sum": (constant_sum, f"i <= j + {WINDOW - 1} and j <= i", False),
    "great_sum": (lambda g: constant_sum(g, CAUSAL, -1e30), "j <= i", False),
    "with_padding": (with_padding, "j <= i", False),
    "factor": (factor, "j <= i", False),
    "factor_and_sum": (factor_and_sum, "j <= i", False),
    "number": (lambda g: chosen_blocks(g, LOCAL, -3), f"i <= j + {WINDOW - 1} and j <= i", False),
    "linear": (linear, None, False),
    "retention": (retention, None, False),
    "blocks": (chosen_blocks, TILES, True),
    "blocks_of_least": (lambda g: chosen_blocks(g, fill=LEAST), TILES, True),
    "cut_blocks": (lambda g: chosen_blocks(g, random_blocks(cut=True)), TILES, True),
    "blocks_added": (lambda g: constant_sum(g, random_blocks(), -np.inf), TILES, True),
    "blocks_of_fill": (lambda g: constant_sum(g, random_blocks(), -1e4), TILES, False),
    "blocks_of_number": (lambda g: chosen_blocks(g, fill=-2), TILES, False),
}


class Fills(BundleTest):
    def given(self, times=1.0, padding=0.2, seed=3):
        random = np.random.default_rng(seed)
        values = {name: random.standard_normal((1, HEADS, N, SIZE)).astype(np.float32) for name in "qkv"}
        values["q"] *= np.float32(times)
        return {**values, "pad": (random.random((1, 1, 1, N)) < padding).astype(np.int64)}

    def model(self, build, values):
        g = Graph(values)
        last = build(g)
        used = {*"qkv", *(["pad"] if build is with_padding else [])}
        types = {"pad": (onnx.INT64, [1, 1, 1, N])}
        inputs = [onnx.info(name, *types.get(name, (onnx.FLOAT, [1, HEADS, N, SIZE]))) for name in sorted(used)]
        model = onnx.model([*g.nodes, onnx.node("Identity", last, "y")], inputs, [onnx.info("y", onnx.FLOAT, None)], weights=g.weights, opset=17)
        return model, {name: values[name] for name in used}, g.exact[last]

    def result(self, model, values, *flags):
        (self.dir / "m.onnx").write_bytes(model)
        self.compile_file(self.dir / "m.onnx", "--sparsity-report", str(self.dir / "r.json"), *flags)
        ran = self.run_bundle(values)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return np.load(next((self.dir / "out").glob("*y.npy")))

    def check(self, name, **given):
        build, rule, exact = FORMS[name]
        model, values, wanted = self.model(build, self.given(**given))
        apart = lambda result: np.abs(result - wanted).max() / np.abs(wanted).max()
        op_by_op = apart(self.result(model, values, "-O0"))
        off = self.result(model, values, "--sparsity", "off")
        on = self.result(model, values)
        self.assertLessEqual(apart(on), max(1.05 * op_by_op, 2e-6), name)
        if exact:
            self.assertEqual(on.tobytes(), off.tobytes(), name)
        report = json.loads((self.dir / "r.json").read_text())
        if rule is None:
            self.assertIn("attention-linear", (self.dir / "r.json").read_text(), name)
            return
        one, = report["attentions"]
        self.assertIn(rule, one["rule"], name)
        self.assertEqual(one["algorithm"], "attention-tiles", name)

    def test_forms(self):
        for name in sample(FORMS, 5):
            with self.subTest(form=name):
                self.check(name)

    def test_scores_beyond_fills(self):
        """Scores of some 1e4, of which some that are left out count."""
        for name in sample(["complement", "constant_sum", "with_padding", "blocks_of_fill"], 4):
            with self.subTest(form=name):
                self.check(name, times=5000)

    def test_rows_without_keys(self):
        """All keys are padding: what is left out counts as much as what is not."""
        for name in sample(["with_padding"], 2):
            self.check(name, padding=1.1)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
