#!/usr/bin/env python3
"""What 16-bit floats cannot hold on the simulated card: norms that are written out keep their squares inside, and what saturates is counted and
said. The numbers are numpy's. Usage: corsair_range.py BIN [unittest arguments]. Exit 77 where numpy is not installed."""
import itertools
import json
import math
import re
import subprocess
import sys
import unittest

from dynamic_shapes import BIN, BundleTest, np, onnx
from sampling import sampled

ROWS, WIDTH = 8, 64
SCALES = (1, 100, 300, 1000, 3000)
END = 65504  # of f16


def rows(scale):
    """Numbers of a scale, and a row of zeros."""
    x = np.random.default_rng(0).standard_normal((ROWS, WIDTH)) * scale
    x[3] = 0
    return x.astype(np.float32)


def mean(x):
    return x.mean(-1, keepdims=True)


# What exporters write for a norm: nodes from x to y, and what they compute. `e`: an epsilon, `two`, `one`.
NORMS = {
    "rms by a product": (("Mul x x s", "ReduceMean s m", "Add m e v", "Sqrt v r", "Div x r y"), 1e-6,
                         lambda x, e: x / np.sqrt(mean(x * x) + e)),
    "rms by a power": (("Pow x two s", "ReduceMean s m", "Add e m v", "Sqrt v r", "Div one r i", "Mul i x y"), 1e-6,
                       lambda x, e: x / np.sqrt(mean(x * x) + e)),
    "rms of a small epsilon": (("Pow x two s", "ReduceMean s m", "Add m e v", "Sqrt v r", "Reciprocal r i", "Mul x i y"), 1e-12,
                               lambda x, e: x / np.sqrt(mean(x * x) + e)),
    "layer": (("ReduceMean x u", "Sub x u c", "Pow c two s", "ReduceMean s m", "Add m e v", "Sqrt v r", "Div c r y"), 1e-5,
              lambda x, e: (x - mean(x)) / np.sqrt(x.var(-1, keepdims=True) + e)),
    "layer, differences apart": (("ReduceMean x u", "Sub x u c", "Sub x u d", "Mul d d s", "ReduceMean s m", "Add m e v", "Sqrt v r", "Div c r y"),
                                 1e-5, lambda x, e: (x - mean(x)) / np.sqrt(x.var(-1, keepdims=True) + e)),
    "layer, of means of squares, as JAX": (("ReduceMean x u", "Sub x u c", "Mul x x s", "ReduceMean s m", "Mul u u q", "Sub m q d", "Max d zero w", "Add w e v",
                                            "Sqrt v r", "Reciprocal r i", "Mul i weight j", "Mul c j y"), 1e-6,
                                           lambda x, e: 2 * (x - mean(x)) / np.sqrt(x.var(-1, keepdims=True) + e)),
}
# Lengths, and what is divided by them: nodes from x to y, and what they compute.
LENGTHS = {
    "L2": (("ReduceL2 x y",), lambda x: np.sqrt((x * x).sum(-1, keepdims=True))),
    "L2, written out": (("Mul x x s", "ReduceSum s t", "Sqrt t y"), lambda x: np.sqrt((x * x).sum(-1, keepdims=True))),
    "root of the mean": (("Pow x two s", "ReduceMean s m", "Sqrt m y"), lambda x: np.sqrt(mean(x * x))),
    "unit length": (("LpNormalization x y",), lambda x: x / np.maximum(np.sqrt((x * x).sum(-1, keepdims=True)), 1e-30)),
    "unit length, clamped": (("Mul x x s", "ReduceSum s t", "Sqrt t r", "Max r small v", "Div x v y"),
                             lambda x: x / np.maximum(np.sqrt((x * x).sum(-1, keepdims=True)), 1e-12)),
    "unit length, with an epsilon": (("ReduceL2 x r", "Add r small v", "Div x v y"), lambda x: x / (np.sqrt((x * x).sum(-1, keepdims=True)) + 1e-12)),
}


def erf(x):
    return np.vectorize(math.erf)(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# Activations as exporters spell them: nodes, what they compute, and the function that the device has for them.
ACTIVATIONS = {
    "silu": (("Sigmoid x s", "Mul x s y"), lambda x: x * sigmoid(x), "silu"),
    "silu by exponentials": (("Neg x n", "Exp n e", "Add e one p", "Div x p y"), lambda x: x * sigmoid(x), "silu"),
    "gelu": (("Div x root2 d", "Erf d e", "Add e one p", "Mul x p m", "Mul m half y"), lambda x: x * (1 + erf(x / 2 ** 0.5)) / 2, "gelu"),
    "gelu, the half first": (("Mul half x h", "Mul x rsqrt2 d", "Erf d e", "Add one e p", "Mul p h y"), lambda x: x * (1 + erf(x / 2 ** 0.5)) / 2, "gelu"),
    "gelu by tanh": (("Pow x three c", "Mul c cubic k", "Add x k s", "Mul s slope t", "Tanh t u", "Add u one p", "Mul x half h", "Mul h p y"),
                     lambda x: x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x ** 3))) / 2, "gelu_tanh"),
    "gelu by tanh, of products": (("Mul x x q", "Mul q x c", "Mul cubic c k", "Add k x s", "Mul slope s t", "Tanh t u", "Add one u p", "Mul p x m", "Mul half m y"),
                                  lambda x: x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x ** 3))) / 2, "gelu_tanh"),
    "hard swish": (("Add x three a", "Relu a r", "Min r six c", "Div c six d", "Mul x d y"), lambda x: x * np.clip(x + 3, 0, 6) / 6, "hard_swish"),
    "softplus": (("Exp x e", "Add e one p", "Log p y"), lambda x: np.logaddexp(0, x), "softplus"),
    "softplus of a run's operator": (("Softplus x y",), lambda x: np.logaddexp(0, x), "softplus"),
    "one over a root": (("Abs x a", "Add a one b", "Sqrt b r", "Div one r y"), lambda x: 1 / np.sqrt(np.abs(x) + 1), "rsqrt"),
}
# What one instruction with numbers of its own does: nodes, what they compute, the function. Products in it are not rounded.
WITH_NUMBERS = {
    "a line": (("Mul x k a", "Add a one y"), lambda x, k: x * k + 1, "affine"),
    "a line, downwards": (("Mul k x a", "Sub one a y"), lambda x, k: 1 - x * k, "affine"),
    "a line, a number taken off": (("Mul x k a", "Sub a two y"), lambda x, k: x * k - 2, "affine"),
    "a product and a sum": (("Tanh x t", "Mul x t a", "Add t a y"), lambda x, k: x * np.tanh(x) + np.tanh(x), "fma"),
    "bounds": (("Max x one a", "Min a six y"), lambda x, k: np.clip(x, 1, 6), "clip"),
    "bounds, the upper first": (("Min six x a", "Max one a y"), lambda x, k: np.clip(x, 1, 6), "clip"),
    "relu6": (("Relu x a", "Min a six y"), lambda x, k: np.clip(x, 0, 6), "clip"),
    "a steep line": (("Mul x k a", "Add a half b", "Max b zero c", "Min c one y"), lambda x, k: np.clip(x * k + 0.5, 0, 1), "hard_sigmoid"),
    "leaky": (("LeakyRelu x y",), lambda x, k: np.where(x < 0, x * np.float64(np.float32(0.01)), x), "leaky_relu"),
    "a slope": (("Greater x zero p", "Mul x k a", "Where p x a y"), lambda x, k: np.where(x > 0, x, x * k), "leaky_relu"),
    "a slope, from below": (("LessOrEqual x zero p", "Mul k x a", "Where p a x y"), lambda x, k: np.where(x > 0, x, x * k), "leaky_relu"),
    "squares": (("ReduceSumSquare x y",), lambda x, k: (x * x).sum(-1, keepdims=True), "reduce_sum_square"),
}
# Not one instruction: what is read elsewhere too, bounds whose order matters, another x.
APART = {
    "a product that is a result": (("Mul x k a", "Add a one b", "Mul a b y"), lambda x, k: x * k * (x * k + 1), {"mul", "add"}),
    "bounds the wrong way round": (("Max x six a", "Min a one y"), lambda x, k: np.minimum(np.maximum(x, 6), 1), {"max", "min"}),
    "another's slope": (("Tanh x t", "Greater t one p", "Mul x k a", "Where p x a y"), lambda x, k: np.where(np.tanh(x) > 1, x, x * k), {"tanh", "gt", "mul", "select"}),
}
# Rows of which one place, or all places, are asked for.
PLACES = {"ArgMax": lambda x: x.argmax(-1)[:, None], "ArgMin": lambda x: x.argmin(-1)[:, None], "CumSum": lambda x: x.cumsum(-1)}
NUMBERS = {"zero": 0.0, "one": 1.0, "two": 2.0, "three": 3.0, "six": 6.0, "half": 0.5, "root2": 2 ** 0.5, "rsqrt2": 0.5 ** 0.5, "cubic": 0.044715, "slope": 0.7978845608,
           "small": 1e-12}
# Nodes from x to y with a constant `k` from 1e-7 to 1e6, and what they compute: right, or on the host and said.
CONSTANTS = {
    "Mul x k y": lambda x, k: x * k, "Div x k y": lambda x, k: x / k, "Add x k y": lambda x, k: x + k, "Sub k x y": lambda x, k: k - x,
    "Div k a y": lambda x, k: k / (np.abs(x) + 1), "Max x k y": lambda x, k: np.maximum(x, k), "Min x k y": lambda x, k: np.minimum(x, k),
    "Log z y": lambda x, k: np.log(np.maximum(x, 0) + k), "Div x z y": lambda x, k: x / (np.maximum(x, 0) + k), "Sqrt z y": lambda x, k: np.sqrt(np.maximum(x, 0) + k),
}
# What saturates in its last node: nodes from x to y, the scale of x, what they compute, the constant `k`.
BEYOND = {
    "squares": (("Mul x x y",), 300, lambda x, k: x * x, None),
    "a sum": (("ReduceSum x y",), 10000, lambda x, k: x.sum(-1, keepdims=True), None),
    "exponentials": (("Exp x y",), 8, lambda x, k: np.exp(x), None),
    "the last of three products": (("Mul x k a", "Mul a k b", "Mul b k y"), 1, lambda x, k: x * k ** 3, 50.0),
    "a difference": (("Sub x k a", "Sub a k y"), 8000, lambda x, k: x - 2 * k, 30000.0),
    "a quotient": (("Div x k y",), 1000, lambda x, k: x / k, 0.01),
    "a power": (("Pow x k y",), 60, lambda x, k: x ** 3, 3.0),
    "a product of matrices": (("MatMul x k y",), 300, lambda x, k: x @ k, np.full((WIDTH, 8), 100.0)),
    "a large factor": (("Mul x k y",), 30, lambda x, k: x * k, 1000.0),
}
# What does not: the end of the range comes in, or is infinite.
WITHIN = {
    "the fill of a mask": (("Add x k a", "Softmax a y"), np.triu(np.full((ROWS, WIDTH), -3.4e38), 1)),
    "infinities of a mask": (("Add x k a", "Softmax a y"), np.triu(np.full((ROWS, WIDTH), -np.inf), 1)),
    "1 / 0": (("Relu x a", "Reciprocal a y"), None),
    "log 0": (("Relu x a", "Log a y"), None),
    "ordinary numbers": (("Mul x x a", "Exp x b", "Add a b y"), None),
    "the largest of a masked row": (("Add x k a", "Max a k y"), np.full((ROWS, WIDTH), -1e9)),
}


@sampled(2)
class Range(BundleTest):
    def compile_nodes(self, nodes, constants, result=None, whole=True):
        texts = [text.split() for text in nodes]
        attributes = {"ReduceMean": {"axes": [-1]}, "ReduceL2": {"axes": [-1]}, "ReduceSumSquare": {"axes": [-1]}, "LpNormalization": {"axis": -1}, "Softmax": {"axis": -1},
                      "ArgMax": {"axis": 1}, "ArgMin": {"axis": 1}}
        made = [onnx.node(t[0], " ".join(t[1:-1] + (["axes"] if t[0] == "ReduceSum" else [])), t[-1], **attributes.get(t[0], {})) +
                onnx.field(3, f"{t[0]}_{t[-1]}") for t in texts]
        weights = [onnx.tensor(n, onnx.INT64 if n in ("axes", "axis") else onnx.FLOAT, np.shape(v), raw=np.asarray(v, "<i8" if n in ("axes", "axis") else "<f4").tobytes())
                   for n, v in constants.items() if any(n in t for t in texts) or (n == "axes" and any("ReduceSum" in t for t in texts))]
        (self.dir / "m.onnx").write_bytes(onnx.model(made, [onnx.info("x", onnx.FLOAT, [ROWS, WIDTH])], [onnx.info("y", onnx.FLOAT if result is None else result, None)], weights=weights))
        self.compile_file(self.dir / "m.onnx", "-t", "corsair", *(["--require-target", "corsair"] if whole else []))

    def result(self, x, *arguments, code=0):
        done = self.run_bundle({"x": x}, *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.stderr = done.stderr
        return np.load(self.dir / "out/out_y.npy") if not code else None

    def counted(self):
        """{node: values} of the warning."""
        return {node: int(count) for node, count in re.findall(r"node '([^']*)' saturated (\d+) value", self.stderr)}

    def test_norms(self):
        for name, (nodes, epsilon, oracle) in NORMS.items():
            self.compile_nodes(nodes, {"e": epsilon, "two": 2.0, "one": 1.0, "zero": 0.0, "weight": np.full(WIDTH, 2.0)})
            for scale in SCALES:
                with self.subTest(norm=name, scale=scale):
                    x = rows(scale)
                    wanted = oracle(x.astype(np.float64), epsilon)
                    self.assertLess(np.abs(self.result(x) - wanted).max(), 1e-3 * np.abs(wanted).max())
                    self.assertEqual(self.counted(), {})

    def test_lengths(self):
        for name, (nodes, oracle) in LENGTHS.items():
            self.compile_nodes(nodes, {**NUMBERS, "axes": [-1]})
            for scale in SCALES:
                with self.subTest(length=name, scale=scale):
                    x = rows(scale)
                    wanted = oracle(x.astype(np.float64))
                    got = self.result(x)
                    rest = np.arange(ROWS) != 3 if name == "unit length" else slice(None)  # 0 / 0 is what it is
                    self.assertLess(np.abs(got - wanted)[rest].max(), 1e-3 * np.abs(wanted).max())
                    self.assertEqual(self.counted(), {})

    def dmx(self, tool, *arguments):
        done = subprocess.run([BIN / tool, *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def functions(self):
        """Of the vector device, in the program."""
        done = self.dmx("dmx-inspect", self.dir / "m.bundle", "--what", "kernels")
        return set(re.findall(r"EXEC_SIMD .*\bfn=(\w+)", done))

    def test_activations(self):
        """One instruction each: f64 rounded once."""
        for name, (nodes, oracle, function) in ACTIVATIONS.items():
            self.compile_nodes(nodes, NUMBERS)
            with self.subTest(name):
                self.assertLessEqual(self.functions() - {function}, {"abs", "add", "copy", "fill"})
                self.assertIn(function, self.functions())
            for scale in (1, 100, 3000) if function != "softplus" else (1,):
                with self.subTest(activation=name, scale=scale):
                    x = rows(scale).astype(np.float16).astype(np.float32)
                    wanted = oracle(x.astype(np.float64)) if scale == 1 else np.where(x > 20, x, np.where(x < -20, 0, oracle(x.astype(np.float64))))
                    wanted = wanted if function != "rsqrt" else oracle(x.astype(np.float64))
                    self.assertLess(np.abs(self.result(x) - wanted).max(), 1e-3 * np.abs(wanted).max())

    def test_numbers_in_an_instruction(self):
        factor = 0.2  # which f16 has not
        for name, (nodes, oracle, function) in WITH_NUMBERS.items():
            self.compile_nodes(nodes, {**NUMBERS, "k": factor})
            with self.subTest(name):
                self.assertLessEqual(self.functions() - {function}, {"copy", "fill", "tanh"})
                self.assertIn(function, self.functions())
            for scale in (1, 10):
                with self.subTest(name, scale=scale):
                    x = rows(scale).astype(np.float16).astype(np.float32)
                    wanted = oracle(x.astype(np.float64), float(np.float32(factor)))
                    error = np.abs(self.result(x) - wanted)
                    if "x t" in nodes[0]:  # the tangent is rounded before
                        self.assertLess(error.max(), 2e-3 * np.abs(wanted).max())
                    else:  # rounded once; sums of rows are f32 inside
                        self.assertLessEqual((error - np.maximum(np.abs(wanted) * 2.0 ** -11, 2.0 ** -14)).max(), 1e-6 * np.abs(wanted).max())

    def test_apart(self):
        for name, (nodes, oracle, functions) in APART.items():
            self.compile_nodes(nodes, {**NUMBERS, "k": 0.2})
            with self.subTest(name):
                self.assertLessEqual(functions, self.functions())
                x = rows(1)
                wanted = oracle(x.astype(np.float64), 0.2)
                self.assertLess(np.abs(self.result(x) - wanted).max(), 2e-3 * np.abs(wanted).max())

    def test_on_the_host(self):
        """The functions in a text for the processor, which has none of them."""
        kind, x = f"tensor<{ROWS}x{WIDTH}xf32>", rows(3)
        for _, oracle, function in ACTIVATIONS.values():
            (self.dir / "f.mlir").write_text(f'func.func @main(%x: {kind} {{dmir.name = "x"}}) -> ({kind} {{dmir.name = "y"}}) {{\n'
                                             f"  %y = dmir.{function} %x : ({kind}) -> {kind}\n  return %y : {kind}\n}}\n")
            self.compile_file(self.dir / "f.mlir")
            with self.subTest(function):
                wanted = 1 / np.sqrt(np.abs(x).astype(np.float64) + 1) if function == "rsqrt" else oracle(x.astype(np.float64))
                self.assertLess(np.abs(self.result(np.abs(x) + 1 if function == "rsqrt" else x) - wanted).max(), 1e-5)

    def test_places(self):
        for name, oracle in PLACES.items():
            with self.subTest(name):
                self.compile_nodes((f"{name} x axis y" if name == "CumSum" else f"{name} x y",), {"axis": 1}, result=onnx.FLOAT if name == "CumSum" else onnx.INT64)
                self.assertIn(name.lower(), self.functions())
                x = rows(1).astype(np.float16).astype(np.float32)
                got, wanted = self.result(x), oracle(x.astype(np.float64))
                self.assertLessEqual(np.abs(got - wanted).max(), 1e-2 if name == "CumSum" else 0)

    def test_places_on_teams(self):
        """Each quad has rows of a product of its own, also where the axis goes and the dims behind it move up."""
        random = np.random.default_rng(2)
        x, w = random.standard_normal((1, 64, 64)).astype(np.float32), random.standard_normal((64, 75)).astype(np.float32)
        weights = [onnx.tensor("w", onnx.FLOAT, w.shape, raw=w.tobytes())]
        for name, axis, keep, quads in itertools.product(("ArgMax", "ArgMin"), (1, 2), (0, 1), (1, 2, 4)):
            nodes = [onnx.node("MatMul", "x w", "s"), onnx.node(name, "s", "y", axis=axis, keepdims=keep)]
            (self.dir / "m.onnx").write_bytes(onnx.model(nodes, [onnx.info("x", onnx.FLOAT, list(x.shape))],
                                                         [onnx.info("y", onnx.INT64, None), onnx.info("s", onnx.FLOAT, None)], weights=weights))
            self.compile_file(self.dir / "m.onnx", "-t", f"corsair:quads={quads}", "--require-target", "corsair")
            with self.subTest(name, axis=axis, keep=keep, quads=quads):
                got, sums = self.result(x), np.load(self.dir / "out/out_s.npy")
                wanted = (sums.argmax if name == "ArgMax" else sums.argmin)(axis)
                np.testing.assert_array_equal(got, np.expand_dims(wanted, axis) if keep else wanted)

    def test_constants(self):
        """f16 has neither 1e-7 nor 1e6: where that matters the host computes the node, and says so."""
        placed = 0
        for node, oracle in CONSTANTS.items():
            before = (("Abs x b", "Add b one a") if " a " in node else ("Relu x r", "Add r k z") if " z " in f"{node} " else ())
            for constant in (1e-7, 1e-3, 1.0, 1e6):
                with self.subTest(node=node, constant=constant):
                    self.compile_nodes((*before, node), {"one": 1.0, "k": constant}, whole=False)
                    x = rows(1)
                    x[3, :] = 0
                    with np.errstate(all="ignore"):
                        wanted = oracle(x.astype(np.float64), float(np.float32(constant)))
                    got = self.result(x)
                    noise = ((got - wanted) ** 2).sum()
                    self.assertTrue(noise == 0 or 10 * np.log10((wanted ** 2).sum() / noise) >= 30, f"{got[:2, :3]} {wanted[:2, :3]}")
                    report = self.dmx("dmxc", self.dir / "m.onnx", "-t", "corsair", "--placement-report", "-", "-o", self.dir / "p.bundle")
                    if "f16 has no number" in report:
                        self.assertIn(f"f16 has no number {np.float32(constant):g}".replace("e+06", "e+06"), report)
                        placed += 1
                    elif constant in (1e-3, 1.0):
                        self.assertNotIn("f16 has no number", report)
        print(f"{placed} of {4 * len(CONSTANTS)} graphs have a node on the host for its constant")
        self.assertGreater(placed, 5)

    def test_beyond(self):
        for name, (nodes, scale, oracle, constant) in BEYOND.items():
            with self.subTest(name):
                self.compile_nodes(nodes, {"k": 0.0 if constant is None else constant, "axes": [-1]})
                node = f"{nodes[-1].split()[0]}_y"
                x = rows(scale) if "power" not in name else np.abs(rows(scale))
                report = self.dir / "report.json"
                got, exact = self.result(x, "--device-opt", f"report={report}"), oracle(x.astype(np.float64), constant)
                count = int((np.abs(got) >= END).sum())
                self.assertGreater(count, 0)
                self.assertLessEqual(abs(count - int((np.abs(exact) > END).sum())), 0.05 * count + 1)  # roundings before
                self.assertEqual(self.counted().get(node), count, self.stderr)
                tasks = [task for kernel in json.loads(report.read_text())["last"] for task in kernel["main"]["tasks"]]
                self.assertEqual(sum(task.get("saturated", 0) for task in tasks if task["name"] == node), count)
                self.result(x, "--device-opt", "corsair.strict_range=1", code=1)
                self.assertIn(f"node '{node}' saturated {count} value", self.stderr)

    def test_within(self):
        for name, (nodes, constant) in WITHIN.items():
            with self.subTest(name):
                self.compile_nodes(nodes, {"k": 0.0 if constant is None else constant})
                self.result(rows(1), "--device-opt", "corsair.strict_range=1")
                self.assertEqual(self.stderr, "")

    def test_inputs(self):
        """The host's own numbers: large ones are counted, fills are not."""
        self.compile_nodes(("Relu x y",), {})
        x = rows(1)
        x[0, :5], x[1, :7] = 1e6, -3e38
        self.result(x)
        self.assertIn("what the host gives saturated 5 values", self.stderr)
        self.result(x, "--device-opt", "corsair.strict_range=2", code=2)
        self.assertIn("strict_range=0|1", self.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
