#!/usr/bin/env python3
"""--numerics bf16-convs: convolutions whose operands are rounded to bf16, summed in f32, against numpy. Usage: short_convs.py BIN [unittest
arguments]. Exit 77 where numpy is not installed. With DMXC_LONG=1 60 convolutions, else a tenth of them."""
import pathlib
import random
import re
import subprocess
import sys
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from dynamic_shapes import BIN, BundleTest, np, onnx
from rounded_weights import exact, to_bf16 as rounded
from sampling import sample

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "host")
ULP = 2.0 ** -23


class Conv:
    """y = relu(conv(x, w)) of a 1x1 convolution `x` whose channels are in blocks."""

    def __init__(self, seed):
        pick, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.size, self.channels = pick.randint(1, 15), pick.choice((16, 18, 24, 32, 40, 64, 100))
        self.outputs = pick.choice((8, 12, 16, 17, 31, 48, 64, 80))
        self.groups = 1
        if pick.random() < 0.2:
            self.groups, self.channels, self.outputs = 2, pick.choice((32, 64)), pick.choice((32, 64))
        self.kernel = pick.choice(((1, 1), (1, 1), (5, 5), (1, 3), (2, 4), (3, 3)))
        self.stride, self.dilation = pick.choice((1, 1, 2)), pick.choice((1, 1, 2))
        if self.kernel == (3, 3):  # minimal filtering has no such one
            self.dilation = 2
        reach = [(k - 1) * self.dilation for k in self.kernel]
        self.pads = [pick.randint(max(0, r - self.size + 1), r) if r else 0 for r in reach] + [pick.randint(0, r) for r in reach]
        self.batch = pick.choice((1, 1, 3))

    def make(self):
        first, second = (self.channels, 3, 1, 1), (self.outputs, self.channels // self.groups, *self.kernel)
        self.w0, self.w = (self.numbers.standard_normal(s).astype(np.float32) for s in (first, second))
        self.x = self.numbers.standard_normal((self.batch, 3, self.size, self.size)).astype(np.float32)
        weights = [onnx.tensor(name, onnx.FLOAT, w.shape, raw=w.tobytes()) for name, w in (("w0", self.w0), ("w", self.w))]
        nodes = [onnx.node("Conv", "x w0", "c"),
                 onnx.node("Conv", "c w", "s", strides=[self.stride] * 2, dilations=[self.dilation] * 2, pads=self.pads, group=self.groups),
                 onnx.node("Relu", "s", "y")]
        return onnx.model(nodes, [onnx.info("x", onnx.FLOAT, list(self.x.shape))],
                          [onnx.info("y", onnx.FLOAT, None), onnx.info("c", onnx.FLOAT, None)], weights=weights)

    def wanted(self, c, number):
        """And the sum of the products' magnitudes, of the convolution's input as the bundle computed it."""
        x, w = number(c), number(self.w)
        x = np.pad(x, ((0, 0), (0, 0), (self.pads[0], self.pads[2]), (self.pads[1], self.pads[3])))
        sizes = [(x.shape[2 + i] - (self.kernel[i] - 1) * self.dilation - 1) // self.stride + 1 for i in (0, 1)]
        sums = np.zeros((2, self.batch, self.outputs, *sizes))
        ic, oc = self.channels // self.groups, self.outputs // self.groups
        for g in range(self.groups):
            for i in range(self.kernel[0]):
                for j in range(self.kernel[1]):
                    at = [slice(k * self.dilation, k * self.dilation + (n - 1) * self.stride + 1, self.stride) for k, n in zip((i, j), sizes)]
                    part, taps = x[:, g * ic:(g + 1) * ic, at[0], at[1]], w[g * oc:(g + 1) * oc, :, i, j]
                    for k, f in enumerate((lambda a: a, np.abs)):
                        sums[k, :, g * oc:(g + 1) * oc] += np.einsum("nchw,oc->nohw", f(part), f(taps))
        return np.maximum(sums[0], 0), sums[1]

    def check(self, test, got, c, number=rounded):
        y, size = self.wanted(c, number)
        terms = self.channels // self.groups * self.kernel[0] * self.kernel[1]
        test.assertEqual(got.shape, y.shape)
        test.assertLessEqual((np.abs(got - y) / (size * (terms + 2) * ULP + 1e-30)).max(), 1, str(vars(self).keys()))


class ShortConvs(BundleTest):
    def compile(self, *arguments):
        done = subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "-o", self.dir / "m.bundle", *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def outputs(self, one, *arguments):
        done = self.run_bundle({"x": one.x}, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [np.load(self.dir / "out" / f"out_{name}.npy") for name in "yc"]

    def text(self, *arguments):
        subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "--emit", "partition", "-o", self.dir / "text.mlir", *arguments], check=True, capture_output=True)
        return (self.dir / "text.mlir").read_text()

    def members(self):
        """All but what says where the bundle is from."""
        with zipfile.ZipFile(self.dir / "m.bundle") as bundle:
            return {name: bundle.read(name) for name in bundle.namelist() if name != "manifest.json"}

    def test_random_convolutions(self):
        for seed in sample(range(60), 20):
            one = Conv(seed)
            (self.dir / "m.onnx").write_bytes(one.make())
            self.compile("--numerics", "bf16-convs", "-t", "cpu:" + "+".join(LEVELS))
            for level in LEVELS:
                with self.subTest(seed=seed, level=level):
                    got, c = self.outputs(one, "--isa", level, "--threads", "1")
                    one.check(self, got, c)
                    again, _ = self.outputs(one, "--isa", level, "--threads", "2")
                    np.testing.assert_array_equal(got.view(np.uint32), again.view(np.uint32))

    def plain(self):
        one = Conv(0)
        one.size, one.channels, one.outputs, one.groups, one.kernel, one.stride, one.dilation = 9, 34, 24, 1, (1, 1), 1, 1
        one.pads, one.batch = [0] * 4, 1
        (self.dir / "m.onnx").write_bytes(one.make())
        return one

    def test_what_is_not_rounded_is_found_out(self):
        one = self.plain()
        for mode, number, other in (("bf16-convs", rounded, exact), ("bf16", exact, rounded), ("strict", exact, rounded)):
            self.compile("--numerics", mode)
            got = self.outputs(one)
            one.check(self, *got, number)
            with self.assertRaises(AssertionError):
                one.check(self, *got, other)

    def test_text_is_what_is_done(self):
        """The text of partition has it all, and gives the same bundle."""
        one = self.plain()
        text = self.text("--numerics", "bf16-convs")
        self.assertRegex(text, r"dmir\.conv .*tensor<1x34x9x9xbf16, #dmir.blocked<\S+ \S+>, tensor<24x34x1x1xbf16>\) -> tensor<1x24x9x9xf32|"
                               r"dmir\.conv .*xbf16.*xbf16.*-> tensor<\S+xf32")
        self.assertIn('algorithm = "conv-pairs"', text)
        self.assertIn('form = "convpairs16"', text)
        self.compile("--numerics", "bf16-convs")
        first = self.members()
        done = subprocess.run([BIN / "dmxc", self.dir / "text.mlir", "--from", "partition", "--numerics", "bf16-convs", "-o", self.dir / "m.bundle"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(first, self.members())
        one.check(self, *self.outputs(one))

    def test_strict_has_none(self):
        self.plain()
        for mode in ("strict", "bf16"):
            self.assertNotIn("conv-pairs", self.text("--numerics", mode))

    def test_minimal_filtering_stays(self):
        """3x3 that minimal filtering computes are f32, as it is faster."""
        one = Conv(0)
        one.size, one.channels, one.outputs, one.groups, one.kernel, one.stride, one.dilation = 14, 64, 64, 1, (3, 3), 1, 1
        one.pads, one.batch = [1] * 4, 1
        (self.dir / "m.onnx").write_bytes(one.make())
        text = self.text("--numerics", "bf16-convs")
        self.assertIn('"conv-winograd"', text)
        self.assertNotIn("conv-pairs", text)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
