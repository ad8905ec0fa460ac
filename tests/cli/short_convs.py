#!/usr/bin/env python3
"""--numerics bf16: convolutions of operands rounded to bf16, summed in f32, against numpy. Usage: short_convs.py BIN [unittest arguments].
Exit 77 where numpy is not installed. With DMXC_LONG=1 100 convolutions, else a tenth of them."""
import random
import re
import subprocess
import sys
import unittest

from dynamic_shapes import BIN, BundleTest, np, onnx
from rounded_weights import rounded as rounded_weights
from sampling import sample

LEVELS = ("x86-64-v2", "x86-64-v3", "host")
A_MODEL = 5  # convolutions


def rounded(x):
    """To bf16, to nearest, ties to even; in f64."""
    return rounded_weights("bf16-weights", np.ascontiguousarray(x))


def exact(x):
    return np.asarray(x, np.float64)


class Conv:
    """y = epilogue(conv(x, w) + b), its nodes, operands and what it is by the rule."""

    def __init__(self, number, seed):
        pick = random.Random(seed)
        self.number, self.numbers = number, np.random.default_rng(seed)
        self.x, self.w, self.b, self.y, self.e = (f"{letter}{number}" for letter in "xwbye")
        self.kind = pick.choice(("3x3",) * 6 + ("1x1", "5x5", "depthwise", "dilated"))
        self.ic, self.oc = pick.choice((32, 48, 64, 96)), pick.choice((20, 32, 40, 64, 100))
        self.groups = self.ic if self.kind == "depthwise" else 1
        self.oc = self.ic if self.kind == "depthwise" else self.oc
        self.kernel = {"1x1": 1, "5x5": 5}.get(self.kind, 3)
        self.dilation = 2 if self.kind == "dilated" else 1
        self.stride = pick.choice((1, 1, 2))
        self.pads = [pick.randint(0, self.kernel // 2) for _ in range(4)]  # top, left, bottom, right
        n, reach = pick.choice((1, 1, 2)), (self.kernel - 1) * self.dilation + 1
        h, w = (max(round(30 ** pick.random()), reach) for _ in range(2))
        self.epilogue = pick.choice(("", "relu", "residual"))
        shapes = {self.x: (n, self.ic, h, w), self.w: (self.oc, self.ic // self.groups, self.kernel, self.kernel), self.b: (self.oc,)}
        self.values = {name: self.numbers.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        self.out = self.conv(exact)[0].shape
        if self.epilogue == "residual":
            self.values[self.e] = self.numbers.standard_normal(self.out).astype(np.float32)

    @property
    def must_round(self):
        """Where minimal filtering pays beyond doubt."""
        return self.kind == "3x3" and self.stride == 1 and min(self.out[2:]) >= 8 and min(self.ic, self.oc) >= 64

    def nodes(self):
        sum_ = self.y + "_s" if self.epilogue else self.y
        yield onnx.node("Conv", f"{self.x} {self.w} {self.b}", sum_, strides=[self.stride] * 2, pads=self.pads,
                        dilations=[self.dilation] * 2, group=self.groups) + onnx.field(3, f"Conv_{self.number}")
        if self.epilogue == "relu":
            yield onnx.node("Relu", sum_, self.y)
        elif self.epilogue:
            yield onnx.node("Add", f"{sum_} {self.e}", self.y)

    def conv(self, number):
        """The sums, and those of magnitudes."""
        top, left, bottom, right = self.pads
        x, w = number(self.values[self.x]), number(self.values[self.w])
        x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
        reach = (self.kernel - 1) * self.dilation + 1
        windows = np.lib.stride_tricks.sliding_window_view(x, (reach, reach), (2, 3))
        windows = windows[:, :, ::self.stride, ::self.stride, ::self.dilation, ::self.dilation]
        rule = "nchwij,cij->nchw" if self.groups > 1 else "nchwij,ocij->nohw"
        w = w[:, 0] if self.groups > 1 else w
        return np.einsum(rule, windows, w, optimize=True), np.einsum(rule, np.abs(windows), np.abs(w), optimize=True)

    def check(self, test, got, number):
        wanted, magnitudes = self.conv(number)
        terms = self.ic // self.groups * self.kernel ** 2 + 1
        bias = exact(self.values[self.b])[:, None, None]
        wanted, slack = wanted + bias, (magnitudes + np.abs(bias)) * terms * 2.0 ** -23
        if self.epilogue == "residual":
            wanted = wanted + self.values[self.e]
            slack = slack + np.abs(wanted) * 2.0 ** -23
        wanted = np.maximum(wanted, 0) if self.epilogue == "relu" else wanted
        test.assertEqual(got.shape, wanted.shape)
        worst = (np.abs(got - wanted) / slack).max()
        test.assertLessEqual(worst, 1, f"{self.kind} {self.values[self.x].shape} {self.values[self.w].shape} {self.epilogue}")


class ShortConvs(BundleTest):
    def write(self, convs, extra=()):
        ports = lambda items: [onnx.info(name, onnx.FLOAT, list(shape)) for name, shape in items]
        inputs = {n: v for c in convs for n, v in c.values.items() if n in (c.x, c.e)}
        weights = [onnx.tensor(n, onnx.FLOAT, c.values[n].shape, raw=c.values[n].tobytes()) for c in convs for n in (c.w, c.b)]
        (self.dir / "m.onnx").write_bytes(onnx.model([node for c in convs for node in c.nodes()], ports((n, v.shape) for n, v in inputs.items()),
                                                     ports((c.y, c.out) for c in convs), weights=weights))
        return inputs

    def compile(self, *arguments):
        """The numbers of the convolutions whose operands are rounded, by the compiler's report."""
        done = subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "-o", self.dir / "m.bundle", *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {int(number) for number in re.findall(r"Conv_(\d+) +conv +bf16 bf16 +f32\n", done.stderr)}

    def outputs(self, values, *arguments):
        done = self.run_bundle(values, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {f.stem.removeprefix("out_"): np.load(f) for f in (self.dir / "out").glob("*.npy")}

    def test_random_convs(self):
        for group in sample(range(20), 10):
            convs = [Conv(i, A_MODEL * group + i) for i in range(A_MODEL)]
            values = self.write(convs)
            short = self.compile("--numerics", "bf16", "-t", "cpu:" + "+".join(LEVELS))
            for level in LEVELS:
                got = self.outputs(values, "--isa", level, "--threads", "1")
                again = self.outputs(values, "--isa", level, "--threads", "2")
                for number, conv in enumerate(convs):
                    with self.subTest(group=group, level=level, conv=conv.y):
                        self.assertTrue(number in short or not conv.must_round)
                        self.assertTrue(conv.kind == "3x3" or number not in short)
                        conv.check(self, got[conv.y], rounded if number in short else exact)
                        np.testing.assert_array_equal(got[conv.y].view(np.uint32), again[conv.y].view(np.uint32))

    def test_without_layouts(self):
        """-O0: rows of an image instead of blocks of channels."""
        conv = next(c for c in (Conv(0, seed) for seed in range(100)) if c.must_round)
        values = self.write([conv])
        self.assertEqual(self.compile("--numerics", "bf16", "-O0"), {0})
        conv.check(self, self.outputs(values)[conv.y], rounded)

    def test_strict_is_found_out(self):
        """The bound of the other tests tells exact products from rounded ones."""
        conv = next(c for c in (Conv(0, seed) for seed in range(100)) if c.must_round)
        values = self.write([conv])
        self.assertEqual(self.compile(), set())
        got = self.outputs(values)[conv.y]
        conv.check(self, got, exact)
        with self.assertRaises(AssertionError):
            conv.check(self, got, rounded)

    def test_direct_sums(self):
        """What text decides to be computed directly has the same meaning."""
        for seed in [seed for seed in range(200) if Conv(0, seed).must_round][:1]:
            conv = Conv(0, seed)
            values = self.write([conv])
            self.compile("--numerics", "bf16", "--emit", "partition", "-t", "cpu:x86-64-v3+host")
            text = (self.dir / "m.bundle").read_text()
            nested = r"\{(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*\}"
            text, count = re.subn(rf'strategy = (?=\{{algorithm = "conv-winograd"){nested}', 'strategy = {packed = {"1" = {form = "convpairs16"}}}', text)
            self.assertEqual(count, 1)
            (self.dir / "m.mlir").write_text(text)
            done = subprocess.run([BIN / "dmxc", self.dir / "m.mlir", "--from", "partition", "--numerics", "bf16", "-t", "cpu:x86-64-v3+host",
                                   "-o", self.dir / "m.bundle"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            for level in ("x86-64-v3", "host"):
                conv.check(self, self.outputs(values, "--isa", level)[conv.y], rounded)

    def test_chain(self):
        """A producer writes rounded numbers for a convolution beside those that others read."""
        numbers = np.random.default_rng(5)
        x, w, v = (numbers.standard_normal(s).astype(np.float32) for s in ((1, 64, 14, 14), (64, 64, 3, 3), (64, 64, 3, 3)))
        tensors = [onnx.tensor(n, onnx.FLOAT, t.shape, raw=t.tobytes()) for n, t in (("w", w), ("v", v))]
        nodes = [onnx.node("Conv", "x w", "s", pads=[1] * 4), onnx.node("Relu", "s", "r"),
                 onnx.node("Conv", "r v", "t", pads=[1] * 4) + onnx.field(3, "Conv_1"), onnx.node("Add", "t r", "y")]
        (self.dir / "m.onnx").write_bytes(onnx.model(nodes, [onnx.info("x", onnx.FLOAT, [1, 64, 14, 14])],
                                                     [onnx.info(n, onnx.FLOAT, [1, 64, 14, 14]) for n in "ry"], weights=tensors))
        self.assertEqual(self.compile("--numerics", "bf16", "--placement-report", self.dir / "placed"), {0, 1})
        placed = [line.split("\t") for line in (self.dir / "placed").read_text().splitlines()]
        self.assertEqual(placed[1][-1], "formats")
        numbers_of = {(row[0], row[-1]) for row in placed[2:] if row[1] == "dmir.conv" or row[-1] != "-"}
        self.assertEqual(numbers_of, {("Conv_0", "bf16 bf16 -> f32"), ("Conv_1", "bf16 bf16 -> f32")})
        got = self.outputs({"x": x})
        second = Conv(0, 0)
        second.kind, second.groups, second.kernel, second.dilation, second.stride, second.pads = "3x3", 1, 3, 1, 1, [1] * 4
        second.ic, second.epilogue = 64, "residual"
        second.values = {second.x: got["r"], second.w: v, second.b: np.zeros(64, np.float32), second.e: got["r"]}
        second.check(self, got["y"], rounded)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
