#!/usr/bin/env python3
"""What 16-bit floats cannot hold on the simulated card: norms that are written out keep their squares inside, and what saturates is counted and
said. The numbers are numpy's. Usage: corsair_range.py BIN [unittest arguments]. Exit 77 where numpy is not installed."""
import json
import re
import sys
import unittest

from dynamic_shapes import BundleTest, np, onnx

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


class Range(BundleTest):
    def compile_nodes(self, nodes, constants):
        texts = [text.split() for text in nodes]
        attributes = {"ReduceMean": {"axes": [-1]}, "Softmax": {"axis": -1}}
        made = [onnx.node(t[0], " ".join(t[1:-1] + (["axes"] if t[0] == "ReduceSum" else [])), t[-1], **attributes.get(t[0], {})) +
                onnx.field(3, f"{t[0]}_{t[-1]}") for t in texts]
        weights = [onnx.tensor(n, onnx.INT64 if n == "axes" else onnx.FLOAT, np.shape(v), raw=np.asarray(v, "<i8" if n == "axes" else "<f4").tobytes())
                   for n, v in constants.items() if any(n in t for t in texts) or (n == "axes" and "ReduceSum" in texts[0])]
        (self.dir / "m.onnx").write_bytes(onnx.model(made, [onnx.info("x", onnx.FLOAT, [ROWS, WIDTH])], [onnx.info("y", onnx.FLOAT, None)], weights=weights))
        self.compile_file(self.dir / "m.onnx", "-t", "corsair", "--require-target", "corsair")

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
            self.compile_nodes(nodes, {"e": epsilon, "two": 2.0, "one": 1.0})
            for scale in SCALES:
                with self.subTest(norm=name, scale=scale):
                    x = rows(scale)
                    wanted = oracle(x.astype(np.float64), epsilon)
                    self.assertLess(np.abs(self.result(x) - wanted).max(), 1e-3 * np.abs(wanted).max())
                    self.assertEqual(self.counted(), {})

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
