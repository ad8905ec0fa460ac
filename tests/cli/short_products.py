#!/usr/bin/env python3
"""--numerics bf16: products of operands rounded to bf16, summed in f32, against numpy. Usage: short_products.py BIN ZOO [unittest
arguments]. Exit 77 where numpy is not installed. With DMXC_LONG=1 500 products and all models of the zoo."""
import math
import pathlib
import random
import re
import subprocess
import sys
import unittest
import zipfile

ZOO = pathlib.Path(sys.argv.pop(2))
from dynamic_shapes import BIN, BundleTest, np, onnx
from rounded_weights import exact, to_bf16 as rounded
from sampling import LONG, sample, sampled

LEVELS = ["x86-64-v2", "x86-64-v3", "host"]
FLAGS = set(pathlib.Path("/proc/cpuinfo").read_text().split())
UNITS = {"znver4": {"avx512_bf16", "sse4a"}, "sapphirerapids": {"avx512_bf16", "amx_bf16"}}
LEVELS += [level for level, flags in UNITS.items() if flags <= FLAGS]
MODELS = ("mlp", "bert_mini", "vit_mini", "gpt2_mini_prefill", "llama_mini_step", "lstm_tagger", "mobilenet_v2", "mlp_dyn", "bert_mini_dyn",
          "resnet18", "lenet", "tcn_audio", "unet_mini_dyn")  # that a plain run takes samples of
A_MODEL = 10  # products
NUMBERS = {"bf16": rounded, "f32": exact}


class Product:
    """y = epilogue(x w), its nodes, operands and what it is by the rule."""

    def __init__(self, number, seed):
        pick = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.x, self.w, self.y = (f"{letter}{number}" for letter in "xwy")
        self.m, self.k, self.n = (round(300 ** pick.random()) for _ in range(3))
        self.batch = pick.choice(((), (), (2,), (3, 2)))
        self.constant, self.turned = pick.random() < 0.7, pick.random() < 0.3
        self.shared = self.constant or pick.random() < 0.5  # one right operand for the batch
        self.epilogue = pick.choice(("", "relu", "bias", "residual"))
        right = (self.n, self.k) if self.turned else (self.k, self.n)
        self.shapes = {self.x: (*self.batch, self.m, self.k), self.w: right if self.shared else (*self.batch, *right)}
        self.out = (*self.batch, self.m, self.n)
        if self.epilogue in ("bias", "residual"):
            self.shapes["e" + self.y] = (self.n,) if self.epilogue == "bias" else self.out
        self.values = {name: self.numbers.standard_normal(shape).astype(np.float32) for name, shape in self.shapes.items()}

    def nodes(self):
        right, sum_ = self.w, self.y + "_s"
        if self.turned:
            axes = list(range(len(self.shapes[self.w])))
            yield onnx.node("Transpose", self.w, right := self.w + "_t", perm=[*axes[:-2], axes[-1], axes[-2]])
        yield onnx.node("MatMul", f"{self.x} {right}", sum_ if self.epilogue else self.y) + onnx.field(3, f"P{self.y}")
        if self.epilogue == "relu":
            yield onnx.node("Relu", sum_, self.y)
        elif self.epilogue:
            yield onnx.node("Add", f"{sum_} e{self.y}", self.y)

    @property
    def few(self):
        """Rows that wait for the right operand."""
        return self.m * (math.prod(self.batch) if self.shared else 1) <= 4

    def check(self, test, got, number=rounded, weights=None):
        """weights: the rounding of the right operand, where it is another."""
        x, w = self.values[self.x], self.values[self.w]
        x, w = number(x), (weights or number)(np.swapaxes(w, -1, -2) if self.turned else w)
        wanted, slack = x @ w, np.abs(x) @ np.abs(w) * self.k * 2.0 ** -23
        if "e" + self.y in self.values:
            extra = self.values["e" + self.y]
            wanted, slack = wanted + extra, slack + np.abs(wanted + extra) * 2.0 ** -23
        wanted = np.maximum(wanted, 0) if self.epilogue == "relu" else wanted
        test.assertEqual(got.shape, wanted.shape)
        test.assertTrue((np.abs(got - wanted) <= slack + 1e-30).all(), f"{self.shapes} {self.epilogue}: {np.abs(got - wanted).max()}")


@sampled(2)
class ShortProducts(BundleTest):
    def test_levels_with_units(self):
        """Random products run at those that are here; elsewhere EmulatedUnitsTest emulates their instructions."""
        lacking = [level for level in UNITS if level not in LEVELS]
        if lacking:
            self.skipTest(f"this machine does not run {', '.join(lacking)}")

    def write(self, products):
        ports = lambda items: [onnx.info(name, onnx.FLOAT, list(shape)) for name, shape in items]
        constants = {p.w for p in products if p.constant}
        nodes = [node for p in products for node in p.nodes()]
        inputs = [(n, s) for p in products for n, s in p.shapes.items() if n not in constants]
        weights = [onnx.tensor(p.w, onnx.FLOAT, p.shapes[p.w], raw=p.values[p.w].tobytes()) for p in products if p.constant]
        (self.dir / "m.onnx").write_bytes(onnx.model(nodes, ports(inputs), ports((p.y, p.out) for p in products), weights=weights))
        return {n: v for p in products for n, v in p.values.items() if n not in constants}

    def outputs(self, values, *arguments):
        done = self.run_bundle(values, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {f.stem.removeprefix("out_"): np.load(f) for f in (self.dir / "out").glob("*.npy")}

    def compile(self, *arguments, model=None):
        done = subprocess.run([BIN / "dmxc", model or self.dir / "m.onnx", "-o", self.dir / "m.bundle", *arguments],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def test_random_products(self):
        for group in sample(range(50), 10):
            products = [Product(i, A_MODEL * group + i) for i in range(A_MODEL)]
            values = self.write(products)
            report = self.compile("--numerics", "bf16", "-t", "cpu:" + "+".join(LEVELS))
            formats = {p: next(iter(re.findall(rf"\bP{p.y} +matmul +(\w+ \w+) +f32\n", report)), "f32 f32") for p in products}
            for p in products:
                self.assertEqual(formats[p] == "bf16 bf16", not p.few, f"{p.shapes} {formats[p]}")
            for level in LEVELS:
                got = self.outputs(values, "--isa", level, "--threads", "1")
                again = self.outputs(values, "--isa", level, "--threads", "2")
                for p in products:
                    with self.subTest(group=group, level=level, product=p.y):
                        p.check(self, got[p.y], *(NUMBERS[name] for name in formats[p].split()))
                        np.testing.assert_array_equal(got[p.y].view(np.uint32), again[p.y].view(np.uint32))

    def test_strict_is_found_out(self):
        """The bound of the other test tells exact products from rounded ones."""
        product = next(p for p in (Product(0, seed) for seed in range(100)) if p.k > 50 and p.n > 50 and not p.few)
        values = self.write([product])
        self.compile()
        got = self.outputs(values)[product.y]
        product.check(self, got, NUMBERS["f32"])
        with self.assertRaises(AssertionError):
            product.check(self, got)

    def test_open_sizes(self):
        """Rows that may be few are rounded beside weights of 64 KiB and more, but where a run brings them: a state stays as it is."""
        for columns, brought in ((170, False), (70, False), (170, True)):
            weight = np.random.default_rng(3).standard_normal((150, columns)).astype(np.float32)
            large = weight.nbytes >= 65536
            number = rounded if large and not brought else NUMBERS["f32"]
            weights = (rounded if large else NUMBERS["f32"])(weight)
            for dims in (["m", 150], [2, "m", 150]):
                (self.dir / "m.onnx").write_bytes(onnx.model(
                    [onnx.node("Reshape" if brought else "Relu", "x same" if brought else "x", "t"), onnx.node("MatMul", "t w", "s"), onnx.node("Relu", "s", "y")],
                    [onnx.info("x", onnx.FLOAT, dims)], [onnx.info("y", onnx.FLOAT, [*dims[:-1], columns])],
                    weights=[onnx.tensor("w", onnx.FLOAT, weight.shape, raw=weight.tobytes()),
                             onnx.tensor("same", onnx.INT64, [len(dims)], raw=np.array([0] * len(dims), np.int64).tobytes())]))
                self.compile("--numerics", "bf16")
                for m in (0, 1, 2, 7, 64, 129):
                    x = np.random.default_rng(m).standard_normal([m if d == "m" else d for d in dims]).astype(np.float32)
                    t = number(x if brought else np.maximum(x, 0))
                    wanted, slack = t @ weights, np.abs(t) @ np.abs(weights) * 150 * 2.0 ** -23
                    got = self.outputs({"x": x})["y"]
                    self.assertEqual(got.shape, wanted.shape)
                    self.assertTrue((np.abs(got - np.maximum(wanted, 0)) <= slack).all(), f"{dims} {m} {columns}")

    def test_convolutions_stay(self):
        """A convolution has the bits of strict; the product behind it is rounded."""
        numbers = np.random.default_rng(5)
        weights = {name: numbers.standard_normal(shape).astype(np.float32) for name, shape in (("v", (32, 64, 3, 3)), ("u", (48, 32, 1, 1)), ("w", (48, 20)))}
        nodes = [onnx.node("Conv", "x v", "a", pads=[1] * 4), onnx.node("Conv", "a u", "c"), onnx.node("GlobalAveragePool", "c", "p"),
                 onnx.node("Flatten", "p", "f"), onnx.node("MatMul", "f w", "y")]
        (self.dir / "m.onnx").write_bytes(onnx.model(
            nodes, [onnx.info("x", onnx.FLOAT, [6, 64, 14, 14])], [onnx.info("c", onnx.FLOAT, [6, 48, 14, 14]), onnx.info("y", onnx.FLOAT, [6, 20])],
            weights=[onnx.tensor(name, onnx.FLOAT, value.shape, raw=value.tobytes()) for name, value in weights.items()]))
        values = {"x": numbers.standard_normal((6, 64, 14, 14)).astype(np.float32)}
        self.compile()
        strict = self.outputs(values)
        report = self.compile("--numerics", "bf16")
        self.assertNotIn(" conv ", report)
        short = self.outputs(values)
        np.testing.assert_array_equal(short["c"].view(np.uint32), strict["c"].view(np.uint32))
        self.assertFalse((short["y"] == strict["y"]).all())

    def test_numbers_that_are_not_finite(self):
        """Infinities, NaN, what rounds to an infinity, subnormals."""
        x = np.array([[1, np.inf, 0, 0], [0, np.nan, 1, 1], [3.4e38, 0, 0, 0], [1e-40, 0, 0, 0], [-3.4e38, 0, 0, 1]], np.float32)
        (self.dir / "m.onnx").write_bytes(onnx.model([onnx.node("MatMul", "x w", "y")], [onnx.info(n, onnx.FLOAT, s) for n, s in (("x", [5, 4]), ("w", [4, 4]))],
                                                     [onnx.info("y", onnx.FLOAT, [5, 4])]))
        self.compile("--numerics", "bf16")
        got = self.outputs({"x": x, "w": np.eye(4, dtype=np.float32)})["y"]
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(got, rounded(x) @ np.eye(4))

    def test_weights_are_held_once_and_shorter(self):
        product = Product(0, 0)
        product.m, product.k, product.n = 40, 256, 256
        product.shapes = {product.x: (40, 256), product.w: (256, 256)}
        product.batch, product.out, product.constant, product.turned, product.epilogue = (), (40, 256), True, False, ""
        product.values = {n: product.numbers.standard_normal(s).astype(np.float32) for n, s in product.shapes.items()}
        self.write([product])
        report = self.compile("--numerics", "bf16", "-t", "cpu:x86-64-v2+x86-64-v3+x86-64-v4")
        self.assertRegex(report, r"Py0 +matmul +bf16 bf16 +f32\n")
        self.assertLess(self.bytes_of("weights/"), 256 * 256 * 2 + 8192)
        self.compile("--numerics", "bf16")
        self.assertLess(self.bytes_of("weights/"), 256 * 256 * 2 + 8192, "one form for all levels")
        for level in ("x86-64-v3", "x86-64-v4", "znver4", "sapphirerapids"):
            self.assertGreater(self.bytes_of(f"code/cpu/{level}/"), 0)
        self.compile()
        self.assertEqual(self.bytes_of("code/cpu/znver4/") + self.bytes_of("code/cpu/sapphirerapids/"), 0)

    def bytes_of(self, folder):
        with zipfile.ZipFile(self.dir / "m.bundle") as bundle:
            return sum(entry.file_size for entry in bundle.infolist() if entry.filename.startswith(folder))

    def test_models(self):
        """Beside strict, by the relative RMS of each output."""
        present = [path.parent.name for path in sorted(ZOO.glob("*/model.onnx")) if LONG or path.parent.name in MODELS]
        if not present:
            self.skipTest(f"{ZOO} is not there")
        for name in present if LONG else sample(present, 5):
            with self.subTest(model=name):
                data = next((ZOO / name).glob("set*"))
                results = []
                for mode in ("strict", "bf16"):
                    self.compile("--numerics", mode, model=ZOO / name / "model.onnx")
                    done = subprocess.run([BIN / "dmx-run", self.dir / "m.bundle", "--inputs", data, "--output-dir", self.dir / name / mode],
                                          capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    results.append({f.stem: np.load(f).astype(np.float64) for f in (self.dir / name / mode).glob("*.npy")})
                for output, strict in results[0].items():
                    error = np.sqrt(((results[1][output] - strict) ** 2).mean() / (strict ** 2).mean())
                    print(f"{name} {output}: {error:.1e}", flush=True)
                    self.assertLess(error, 1.5e-2)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
