#!/usr/bin/env python3
"""What follows a product elementwise is computed of its tiles on the way out of OB: the bits of -O0, where one op runs after the other, in fewer
clocks; functions that a user puts into the text are obeyed, and what nobody can compute is refused by its node.
Usage: fused.py BIN [unittest arguments]; a plain run takes a part of the cases. Exit 77 where numpy is not installed."""
import json
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from corsair_rotations import Graph
from dynamic_shapes import BIN, BundleTest, np, onnx
from sampling import sample, sampled

F16 = r"!affine_ext\.vec_ext<64x64xf16>"
NEST = re.compile(r"^    affine\.for .*?^    }.*?$", re.M | re.S)


def erf(x):
    """Abramowitz and Stegun 7.1.26, to 1.5e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(x) * (1 - poly * np.exp(-x * x))


# --- what follows a product: (graph, its result, columns) -> the last value; and the same of numbers, of its result and the input

def gelu(g, y, n):
    return g.op("Mul", g.op("Mul", y, g.op("Add", g.op("Erf", g.op("Div", y, g.constant(np.sqrt(2.0)))), g.constant(1.0))), g.constant(0.5))


def scale_of(n):
    return np.random.default_rng(n).standard_normal(n).astype(np.float32)


AFTER = {
    "relu": (lambda g, y, n: g.op("Relu", y), lambda y, x: np.maximum(y, 0)),
    "gelu": (gelu, lambda y, x: y * (1 + erf(y / np.sqrt(2.0))) / 2),
    "scale": (lambda g, y, n: g.op("Tanh", g.op("Mul", y, g.constant(scale_of(n)))), lambda y, x: np.tanh(y * scale_of(y.shape[-1]))),
    "residual": (lambda g, y, n: g.op("Relu", g.op("Add", y, "x")), lambda y, x: np.maximum(y + x, 0)),
    "rows": (lambda g, y, n: g.op("Sub", y, g.largest), lambda y, x: y - x.max(-1, keepdims=True)),
    "twice": (lambda g, y, n: g.op("Add", g.op("Mul", y, g.op("Tanh", y)), y), lambda y, x: y * np.tanh(y) + y)}
CASES = [(lead, rows, depth, columns, name) for lead, rows, depth, columns in (
    ((), 130, 100, 100), ((), 512, 64, 64), ((), 1, 192, 192), ((), 200, 1100, 1100), ((3,), 70, 130, 130), ((2, 2), 128, 64, 64)) for name in AFTER]


@sampled(2)
class Fused(BundleTest):
    def model(self, lead, rows, depth, columns, name, bias=True, between=lambda g, y: y):
        g, source = Graph(), np.random.default_rng(rows + depth)
        w = source.standard_normal((depth, columns)).astype(np.float32) / np.sqrt(depth)
        b = source.standard_normal(columns).astype(np.float32) * bool(bias)
        g.largest = g.op("ReduceMax", "x", g.constant([-1]), keepdims=1) if name == "rows" else None
        y = g.op("MatMul", "x", g.constant(w))
        if bias:
            y = g.op("Add", y, g.constant(b))
        last = AFTER[name][0](g, between(g, y), columns)
        g.nodes.append(onnx.node("Identity", last, "y"))
        (self.dir / "m.onnx").write_bytes(onnx.model(g.nodes, [onnx.info("x", onnx.FLOAT, [*lead, rows, depth])], [onnx.info("y", onnx.FLOAT, None)],
                                                     weights=g.weights, opset=20))
        self.values = {"x": source.standard_normal((*lead, rows, depth)).astype(np.float32)}
        x = self.values["x"].astype(np.float64)
        return AFTER[name][1](x @ w.astype(np.float64) + b, x)

    def emit(self, stage, quads=1, *arguments):
        return subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "-q", "-t", f"corsair:quads={quads}", "--emit", stage, "-o", "-", *arguments],
                              capture_output=True, text=True, check=True).stdout

    def compile(self, quads=1, *arguments, model="m.onnx"):
        return subprocess.run([BIN / "dmxc", self.dir / model, "-q", "-t", f"corsair:quads={quads}", "-o", self.dir / "m.bundle", *arguments],
                              capture_output=True, text=True)

    def outcome(self, *arguments):
        done = self.run_bundle(self.values, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.load(self.dir / "out/out_y.npy")

    def clocks(self):
        return json.loads((self.dir / "r.json").read_text())["last"][0]["main"]["clocks"]

    def of_text(self, text, stage, quads=1):
        (self.dir / "t.mlir").write_text(text)
        done = self.compile(quads, "--from", stage, model="t.mlir")
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.outcome()

    def test_the_bits_of_one_op_after_the_other(self):
        for lead, rows, depth, columns, name in sample(CASES, 9):
            for quads in (1, 4, 8):
                with self.subTest(lead=lead, rows=rows, depth=depth, name=name, quads=quads):
                    exact = self.model(lead, rows, depth, columns, name)
                    whole, tiles = self.emit("schedule.buffers", quads), self.emit("schedule.fused", quads)
                    self.assertEqual(self.emit("schedule.fused", quads, "-O0"), self.emit("schedule.buffers", quads, "-O0"))
                    functions = re.findall(rf"lldmir\.simd .*\) {{.*}} -> {F16}", tiles)
                    self.assertEqual(len(functions), len(re.findall(r"simd .* outs", whole)) - len(re.findall(r"simd .* outs", tiles)))
                    if depth > 1000 or (quads == 1 and rows * np.prod(lead) >= 200):  # of few rows slices would wait for one another
                        self.assertGreater(len(functions), 0, "nothing is fused")
                    results, clocks = [], []
                    for level in ("-O0", "-O2"):
                        self.assertEqual(self.compile(quads, level).returncode, 0)
                        results.append(self.outcome("--device-opt", "skew_seed=3", "--device-opt", f"report={self.dir / 'r.json'}"))
                        clocks.append(self.clocks())
                    self.assertEqual(results[0].tobytes(), results[1].tobytes())
                    self.assertLessEqual(clocks[1], 1.04 * clocks[0])
                    noise = np.sum((results[1].astype(np.float64) - exact) ** 2)
                    self.assertGreater(10 * np.log10(np.sum(exact**2) / noise), 30)

    def test_convolutions(self):
        """A relu, and what is added before it: of images, of shares of rows and of channels."""
        for images, channels, size, quads in ((1, 16, 28, 1), (2, 72, 17, 1), (1, 64, 32, 4), (1, 256, 7, 8), (8, 16, 18, 8)):
            with self.subTest(images=images, channels=channels, size=size, quads=quads):
                g, source = Graph(), np.random.default_rng(channels)
                weights = lambda: g.constant(source.standard_normal((channels, channels, 3, 3)).astype(np.float32) / np.sqrt(9 * channels))
                conv = lambda x: g.op("Conv", x, weights(), g.constant(source.standard_normal(channels).astype(np.float32)), pads=[1, 1, 1, 1], kernel_shape=[3, 3])
                h = g.op("Relu", conv("x"))
                g.nodes.append(onnx.node("Relu", g.op("Add", g.op("Tanh", conv(h)), h), "y"))
                shape = [images, channels, size, size]
                (self.dir / "m.onnx").write_bytes(onnx.model(g.nodes, [onnx.info("x", onnx.FLOAT, shape)], [onnx.info("y", onnx.FLOAT, None)], weights=g.weights))
                self.values = {"x": source.standard_normal(shape).astype(np.float32)}
                text = self.emit("schedule.fused", quads)
                if quads == 1:
                    self.assertEqual(text.count('function = "'), 4)
                if size != 7:  # of which quads have all, and a part of what follows
                    self.assertGreater(text.count('function = "relu"'), 0)
                results = []
                for level in ("-O0", "-O2"):
                    self.assertEqual(self.compile(quads, level).returncode, 0)
                    results.append(self.outcome("--device-opt", "skew_seed=3"))
                self.assertEqual(results[0].tobytes(), results[1].tobytes())
                done = subprocess.run([BIN / "dmx-compare", self.dir / "m.onnx", "--random-inputs", "1", "--stages", "--", "-q", "-t", f"corsair:quads={quads}"],
                                      capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout.count("equal to the bit")), (0, 10), done.stdout)
        relu = re.search(r'function = "relu", inputs = array<i64: (-1)>', text)
        for old, new, message in (('function = "relu"', 'function = "gilu"', "names the function 'gilu'"), (relu[0], relu[0].replace("-1", "0"), "function 0 of its epilogue"),
                                  (relu[0], relu[0].replace("-1", "-2"), "function 0 of its epilogue")):
            (self.dir / "t.mlir").write_text(text.replace(old, new, 1))
            done = self.compile(quads, "--from", "schedule.fused", model="t.mlir")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(message, done.stderr)

    def test_a_block_in_one_pass(self):
        """512x512x2048, GELU, 2048x512: one nest for product, bias, cast and GELU, nothing between; 70,000 clocks are the design's bound."""
        g, source = Graph(), np.random.default_rng(1)
        weights = lambda *shape: g.constant(source.standard_normal(shape).astype(np.float32) / np.sqrt(shape[0]))
        hidden = gelu(g, g.op("Add", g.op("MatMul", "x", weights(512, 2048)), weights(2048)), 2048)
        g.nodes.append(onnx.node("Add", f"{g.op('MatMul', hidden, weights(2048, 512))} {weights(512)}", "y"))
        (self.dir / "m.onnx").write_bytes(onnx.model(g.nodes, [onnx.info("x", onnx.FLOAT, [512, 512])], [onnx.info("y", onnx.FLOAT, None)], weights=g.weights))
        self.values = {"x": source.standard_normal((512, 512)).astype(np.float32)}
        text = self.emit("schedule.fused")
        nest = NEST.findall(text)
        self.assertEqual(len(nest), 2)
        for word in ("affine_ext.matmul", 'lldmir.simd "add"', "affine_ext.cast", 'lldmir.simd "gelu"', "affine.store"):
            self.assertIn(word, nest[0])
        self.assertNotIn("outs", text)
        self.assertEqual(text.count("memref.alloc"), 2)  # what the second product reads, and the result
        results = []
        for level in ("-O0", "-O2"):
            self.assertEqual(self.compile(1, level).returncode, 0)
            results.append(self.outcome("--device-opt", f"report={self.dir / 'r.json'}"))
        self.assertEqual(results[0].tobytes(), results[1].tobytes())
        self.assertLess(self.clocks(), 70000)

    def put(self, text, function, parameters=""):
        """A function of the tile that the first store takes."""
        store = re.search(r"^ *affine\.store (%[\w#]+), ", text, re.M)
        line = f'      %hand = lldmir.simd "{function}"({store[1]} : {F16}) {{{parameters}}} -> {F16}\n'.replace("\\", "")
        return text[:store.start()] + line + text[store.start():].replace(f"affine.store {store[1]},", "affine.store %hand,", 1)

    def test_functions_by_hand(self):
        """A relu and a scale, in the text before and behind the fusion, also of a product that has functions already."""
        for quads, rows, name in ((1, 512, "scale"), (4, 2048, "rows")):
            self.model((), rows, 100, 100, name)
            self.assertEqual(self.compile(quads).returncode, 0)
            y = self.outcome()
            for stage in ("schedule.fused", "schedule.array", "schedule.spmd"):
                text = self.emit(stage, quads)
                self.assertEqual(text.count("affine.store"), 1)
                self.assertTrue(np.array_equal(np.maximum(y, 0), self.of_text(self.put(text, "relu"), stage, quads)), stage)
                self.assertTrue(np.array_equal(y * 2, self.of_text(self.put(text, "affine", "imm0 = 2.0 : f32"), stage, quads)), stage)
        for rows in (130, 512):  # the same of a graph that has it
            for function, parameters, inserted in (("relu", "", lambda g, y: g.op("Relu", y)), ("affine", "imm0 = 2.0 : f32", lambda g, y: g.op("Mul", y, g.constant(2.0)))):
                for name in ("scale", "residual"):
                    self.model((), rows, 100, 100, name)
                    found = self.of_text(self.put(self.emit("schedule.buffers"), function, parameters), "schedule.buffers")
                    self.model((), rows, 100, 100, name, between=inserted)
                    self.assertEqual(self.compile(1).returncode, 0)
                    self.assertEqual(found.tobytes(), self.outcome().tobytes(), (rows, function, name))

    def test_what_cannot_be(self):
        self.model((), 320, 130, 130, "residual")
        text = self.emit("schedule.fused")
        self.assertEqual(self.compile().returncode, 0)
        relu = re.search(rf'(%\w+) = lldmir\.simd "relu"\((%\w+) : {F16}\) {{}} -> {F16}', text)
        sum_of = re.search(r"(%\w+) = affine_ext\.cast (%\w+) : \((!\S+BFP32_1>+)\) -> (\S+)", text)
        beside = re.search(rf"(%\w+) = affine\.load (%\w+)\[(%\w+), (%\w+)\] : (memref<5x3x{F16}, \"GM\">)", text)
        for old, new, message in (
                (relu[0], relu[0].replace('"relu"', '"softmax"'), "names the function 'softmax', which the vector device does not have of tiles"),
                (relu[0], relu[0].replace('"relu"', '"gilu"'), "names the function 'gilu', which the vector device does not have of tiles"),
                (relu[0], relu[0].replace('"relu"', '"pow"'), "has not as many operands as 'pow'"),
                (sum_of[0], f'%early = lldmir.simd "relu"({sum_of[2]} : {sum_of[3]}) {{}} -> {sum_of[3]}\n' + sum_of[0].replace(sum_of[2], "%early", 1),
                 'of "relu" is of no tiles of f16, which the vector device computes'),
                (beside[0], beside[0].replace(f"[{beside[3]}, {beside[4]}]", f"[{beside[3]}, 0]"), "has a part in"),
                (beside[0], beside[0].replace(f"[{beside[3]}, {beside[4]}]", f"[{beside[4]}, {beside[3]}]"), "has a part in")):
            self.assertIn(old, text)
            (self.dir / "t.mlir").write_text(text.replace(old, new, 1))
            done = self.compile(1, "--from", "schedule.fused", model="t.mlir")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(message, done.stderr)
            self.assertRegex(done.stderr, r"node '[\w.]+'")

    def test_what_another_op_needs(self):
        """The result of a product that is softmaxed too is left whole; a text that stores it no more is refused."""
        g = Graph()
        p = g.op("MatMul", "x", g.constant(np.eye(100)))
        g.nodes.append(onnx.node("Add", f"{g.op('Relu', p)} {g.op('Softmax', p, axis=-1)}", "y"))
        (self.dir / "m.onnx").write_bytes(onnx.model(g.nodes, [onnx.info("x", onnx.FLOAT, [512, 100])], [onnx.info("y", onnx.FLOAT, None)], weights=g.weights))
        text = self.emit("schedule.fused")
        self.assertNotRegex(text, rf'lldmir\.simd "relu"\(%\w+ : {F16}\)')
        store = re.search(r"^ *affine\.store .*$", text, re.M)[0]
        other = '    %other = memref.alloc() : memref<512x100xf16, "GM">\n    %grid = affine_ext.tiles %other : memref<512x100xf16, "GM"> to ' \
            'memref<8x2x!affine_ext.vec_ext<64x64xf16>, "GM">\n'
        nest = re.search(r"^    affine\.for", text, re.M).start()
        (self.dir / "t.mlir").write_text(text[:nest] + other + text[nest:].replace(store, re.sub(r"(store %\w+, )%\w+", r"\1%grid", store), 1))
        done = self.compile(1, "--from", "schedule.fused", model="t.mlir")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"node '\w+': 'lldmir\.simd' reads a buffer that nothing before it fills")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
