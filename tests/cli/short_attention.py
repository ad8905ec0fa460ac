#!/usr/bin/env python3
"""--numerics bf16: attention whose Q, K, V and weights are rounded to bf16, against numpy. Usage: short_attention.py BIN ZOO [unittest
arguments]. Exit 77 where numpy is not installed. With DMXC_LONG=1 100 attentions, else a tenth of them.

The bound. A score's sum differs by its order from the exact one by d * 2^-23 * sum |q||k|, and what is done with it (scale, mask, the
row's maximum subtracted, exp to 2 ulp) by a few 2^-23 of the greatest magnitudes on the way. Where no score of a row is off by more than e,
no weight is by a factor of more than exp(2 e); sums of t weights and of t weighted values add t * 2^-23 of their terms' magnitudes each.
Weights are rounded as powers of what is above the row's greatest score so far, before their sum divides them: of more than 1024 keys the
greatest of tiles of 128. A power that is so near to the middle of two bf16 that e decides may be either of them."""
import json
import pathlib
import random
import re
import subprocess
import sys
import unittest

ZOO = pathlib.Path(sys.argv.pop(2))
from dynamic_shapes import BIN, BundleTest, np, onnx, softmax
from rounded_weights import exact, to_bf16 as rounded
from sampling import LONG, sample

LEVELS = ("x86-64-v2", "x86-64-v3", "host")
A_MODEL = 4  # attentions
MODELS = ("bert_mini", "bert_mini_dyn", "gpt2_mini_prefill", "gpt2_mini_step", "llama_mini_dyn", "llama_mini_step", "vit_mini")
ULP = 2.0 ** -23


class Attention:
    """y = softmax(mask(scale q k)) v: its nodes, operands and what it is by the rule."""

    def __init__(self, number, seed):
        pick = random.Random(seed)
        self.number, self.numbers = number, np.random.default_rng(seed)
        self.m, self.t = (max(1, round(200 ** pick.random())) for _ in range(2))
        if pick.random() < 0.2:  # more keys than are looked at at once
            self.m, self.t = pick.choice((1, 5, 130)), pick.randint(1025, 1400)
        self.d, self.n = pick.randint(1, 80), pick.choice((64, 16, 1, 37))
        self.batch, self.kv, self.group = pick.choice((1, 1, 2)), pick.choice((1, 2)), pick.choice((1, 1, 2))
        self.scale = pick.choice(("", "Mul", "Div"))
        self.mask = pick.choice(("", "causal", "window", "bias"))
        if self.mask in ("causal", "window"):
            self.t = max(self.m, self.t)
        self.layout = pick.choice(("rows", "turned", "heads"))  # of k: [b, h, t, d], [b, h, d, t], [b, t, h, d]
        self.before = {name: pick.choice(("", "", "Neg", "kept")) for name in "qkv"}
        self.open = pick.random() < 0.3 and self.mask in ("", "bias")
        self.group = 1 if self.open else self.group

    def name(self, letter):
        return f"{letter}{self.number}"

    def make(self):
        k = {"rows": (self.kv, self.t, self.d), "turned": (self.kv, self.d, self.t), "heads": (self.t, self.kv, self.d)}[self.layout]
        shapes = {"q": (self.batch, self.kv * self.group, self.m, self.d), "k": (self.batch, *k), "v": (self.batch, self.kv, self.t, self.n)}
        if self.mask == "bias":
            shapes["b"] = (self.m, self.t)
        self.values = {self.name(n): self.numbers.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
        return self.values

    def keep(self):
        i, j = np.arange(self.m)[:, None], np.arange(self.t)[None]
        return (j <= i) & (j > i - 7) if self.mask == "window" else j <= i

    def port(self, name, value):
        """With names for the rows and keys that are open."""
        sizes = {self.m: self.name("rows"), self.t: self.name("keys")} if self.open and self.m != self.t else {}
        axes = {"q": {2: self.m}, "v": {2: self.t}, "b": {0: self.m, 1: self.t},
                "k": {{"rows": 2, "turned": 3, "heads": 1}[self.layout]: self.t}}.get(name[0], {})
        return onnx.info(name, onnx.FLOAT, [sizes.get(axes[i], s) if i in axes else s for i, s in enumerate(value.shape)])

    def nodes(self):
        """And constants, and further outputs."""
        nodes, constants, outputs = [], [], []
        name, node = self.name, lambda op, inputs, output, **more: nodes.append(onnx.node(op, inputs, output, **more))
        number = lambda label, dtype, array: constants.append(onnx.tensor(name(label), dtype, array.shape, raw=array.tobytes()))
        read = {}
        for one, how in self.before.items():
            read[one] = name(one)
            if how:  # an op before it, whose result others may read
                read[one] = name(one) + "_n"
                node("Neg", name(one), read[one])
            if how == "kept":
                outputs.append(read[one])
        if self.layout != "turned":
            node("Transpose", read["k"], name("kt"), perm=[0, 1, 3, 2] if self.layout == "rows" else [0, 2, 3, 1])
            read["k"] = name("kt")
        if self.group > 1:
            for one, (rows, columns) in (("k", (self.d, self.t)), ("v", (self.t, self.n))):
                number(one + "wide", onnx.INT64, np.array([self.batch, self.kv, self.group, rows, columns]))
                number(one + "flat", onnx.INT64, np.array([self.batch, self.kv * self.group, rows, columns]))
                number(one + "axis", onnx.INT64, np.array([2]))
                node("Unsqueeze", f"{read[one]} {name(one + 'axis')}", name(one + "_u"))
                node("Expand", f"{name(one + '_u')} {name(one + 'wide')}", name(one + "_x"))
                read[one] = name(one + "_r")
                node("Reshape", f"{name(one + '_x')} {name(one + 'flat')}", read[one])
        node("MatMul", f"{read['q']} {read['k']}", s := name("s"))
        if self.scale:
            number("scale", onnx.FLOAT, np.float32([0.25 if self.scale == "Mul" else 4]))
            node(self.scale, f"{s} {name('scale')}", s := name("sc"))
        if self.mask == "bias":
            node("Add", f"{s} {name('b')}", s := name("sm"))
        elif self.mask:
            number("keep", onnx.BOOL, self.keep())
            number("fill", onnx.FLOAT, np.float32([np.finfo(np.float32).min]))
            node("Where", f"{name('keep')} {s} {name('fill')}", s := name("sm"))
        node("Softmax", s, name("w"), axis=-1)
        node("MatMul", f"{name('w')} {read['v']}", name("y"))
        return nodes, constants, outputs

    @property
    def few(self):
        """Rows that no unit multiplies faster: they stay f32."""
        return self.m <= 4 and not (self.open and self.m != self.t)

    def powers(self, scores, error, number):
        """Rounded, what they may be off by, and the sum of exact ones, all as shares of the row's greatest power."""
        tile = 128 if self.t > 1024 else self.t
        tops = np.maximum.accumulate([scores[..., at:at + tile].max(-1) for at in range(0, self.t, tile)])
        top = np.where(np.isfinite(tops), tops, 0).repeat(tile, 0)[:self.t].transpose(1, 2, 3, 0)
        powers, scale = np.exp(scores - top), np.exp(top - scores.max(-1, keepdims=True))
        low, high = number(np.float32(powers * np.exp(-2 * error))), number(np.float32(powers * np.exp(2 * error)))
        off = 0 if number is exact else high - low
        return (powers if number is exact else number(np.float32(powers))) * scale, off * scale, (powers * scale).sum(-1, keepdims=True)

    def check(self, test, got, number=None, number_of_v=None, weight=None, flushes=False):
        number = number or (exact if self.few else rounded)
        weight = weight or number
        q, k, v = (self.values[self.name(n)] * np.float32(-1 if self.before[n] else 1) for n in "qkv")
        k = k.transpose({"rows": (0, 1, 3, 2), "turned": (0, 1, 2, 3), "heads": (0, 2, 3, 1)}[self.layout])
        q, k, v = number(q), np.repeat(number(k), self.group, 1), np.repeat((number_of_v or number)(v), self.group, 1)
        scale = 0.25 if self.scale else 1
        scores, error = q @ k * scale, np.abs(q) @ np.abs(k) * scale * (self.d + 2) * ULP
        if self.mask == "bias":
            scores = scores + self.values[self.name("b")]
        elif self.mask:
            scores, error = np.where(self.keep(), scores, -np.inf), np.where(self.keep(), error, 0)
        finite = np.where(np.isfinite(scores), np.abs(scores), 0)
        error = error.max(-1, keepdims=True) + 4 * finite.max(-1, keepdims=True) * ULP + 4 * ULP
        powers, off, total = self.powers(scores, error, weight)
        if self.open and weight is not exact:  # which keys are looked at together depends on sizes that the compiler assumes
            off = off + powers * 2.0 ** -7
        wanted = powers @ v / total
        slack = powers @ np.abs(v) / total * (np.expm1(2 * error) + (2 * self.t + 8) * ULP) + off @ np.abs(v) / total
        test.assertEqual(got.shape, wanted.shape)
        worst = (np.abs(got - wanted) / (slack + 1e-30)).max()
        test.assertLessEqual(worst, 1, f"{q.shape} {k.shape} {v.shape} {vars(self)['mask']} {self.layout} {self.before}")


class ShortAttention(BundleTest):
    def write(self, attentions):
        nodes, weights, outputs, values = [], [], [], {}
        for one in attentions:
            values |= one.make()
            more = one.nodes()
            nodes += more[0]
            weights += more[1]
            outputs += [one.name("y"), *more[2]]
        inputs = [one.port(name, value) for one in attentions for name, value in one.values.items()]
        (self.dir / "m.onnx").write_bytes(onnx.model(nodes, inputs, [onnx.info(name, onnx.FLOAT, None) for name in outputs], weights=weights))
        return values

    def compile(self, *arguments, model=None, output=None):
        done = subprocess.run([BIN / "dmxc", model or self.dir / "m.onnx", "-o", output or self.dir / "m.bundle", *arguments],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def kernels(self, *arguments, model=None):
        """The kernels of attention, and what was read of masks."""
        self.compile("--emit", "partition", "-t", "cpu:x86-64-v3", "--sparsity-report", self.dir / "masks.json", *arguments, model=model,
                     output=self.dir / "text.mlir")
        kernels = re.findall(r'algorithm = "(attention[^"]*)"', (self.dir / "text.mlir").read_text())
        return kernels, json.loads((self.dir / "masks.json").read_text())["attentions"]  # products use what they know by kernels of their own

    def outputs(self, values, *arguments):
        done = self.run_bundle(values, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {f.stem.removeprefix("out_"): np.load(f) for f in (self.dir / "out").glob("*.npy")}

    def test_random_attentions(self):
        for group in sample(range(25), 10):
            attentions = [Attention(i, A_MODEL * group + i) for i in range(A_MODEL)]
            values = self.write(attentions)
            self.assertEqual(self.kernels("--numerics", "bf16"), self.kernels())
            self.compile("--numerics", "bf16", "-t", "cpu:" + "+".join(LEVELS))
            for level in LEVELS:
                got = self.outputs(values, "--isa", level, "--threads", "1")
                again = self.outputs(values, "--isa", level, "--threads", "2")
                for one in attentions:
                    with self.subTest(group=group, level=level, attention=one.number):
                        one.check(self, got[one.name("y")])
                        np.testing.assert_array_equal(got[one.name("y")].view(np.uint32), again[one.name("y")].view(np.uint32))

    def plain(self):
        one = Attention(0, 0)
        one.m, one.t, one.d, one.n, one.batch, one.kv, one.group = 40, 50, 32, 64, 1, 2, 1
        one.scale, one.mask, one.layout, one.before, one.open = "Mul", "", "rows", dict.fromkeys("qkv", ""), False
        return one

    def test_what_is_not_rounded_is_found_out(self):
        """The bound tells rounded operands from exact ones, each by itself."""
        one = self.plain()
        values = self.write([one])
        self.compile()
        strict = self.outputs(values)["y0"]
        one.check(self, strict, exact)
        with self.assertRaises(AssertionError):
            one.check(self, strict)
        self.compile("--numerics", "bf16")
        short = self.outputs(values)["y0"]
        one.check(self, short)
        for numbers in ({"number": exact, "number_of_v": rounded, "weight": rounded}, {"number_of_v": exact}, {"weight": exact}):
            with self.assertRaises(AssertionError):
                one.check(self, short, **numbers)

    def test_without_one_kernel(self):
        """-O0: a kernel an op, the same meaning but for what divides before it rounds."""
        one = self.plain()
        values = self.write([one])
        self.assertEqual(self.kernels("--numerics", "bf16", "-O0")[0], [])
        self.compile("--numerics", "bf16", "-O0")
        one.open = True  # no power is known to a bit
        one.check(self, self.outputs(values)["y0"])

    def test_models_with_products_of_integers(self):
        """Attention has the bits of strict beside these."""
        one = self.plain()
        values = one.make()
        nodes, weights, _ = one.nodes()
        numbers = np.random.default_rng(1).integers(-128, 128, (16, 8)).astype(np.int8)
        integers = [onnx.info("a", 2, [4, 16])]  # u8
        (self.dir / "m.onnx").write_bytes(onnx.model(
            [*nodes, onnx.node("MatMulInteger", "a b", "c")], [*(one.port(n, v) for n, v in values.items()), *integers],
            [onnx.info("y0", onnx.FLOAT, None), onnx.info("c", 6, None)], weights=[*weights, onnx.tensor("b", 3, [16, 8], raw=numbers.tobytes())]))
        values["a"] = np.full((4, 16), 3, np.uint8)
        results = []
        for mode in ("strict", "bf16"):
            self.compile("--numerics", mode)
            results.append(self.outputs(values)["y0"].view(np.uint32))
        np.testing.assert_array_equal(*results)

    def test_where_it_is_rounded(self):
        """A producer that has no other reader writes bf16; what is kept as f32 is rounded where it is read."""
        one = self.plain()
        for how, inside in (("Neg", 1), ("kept", 4)):
            one.before = dict.fromkeys("qkv", how)
            self.write([one])
            self.assertEqual(self.kernels("--numerics", "bf16")[0], ["attention"])
            text = (self.dir / "text.mlir").read_text()
            regions = [r for r in re.split(r"(?=dmir\.region )", text) if "dmir.softmax" in r]
            self.assertEqual(len(regions), 1)
            found = re.findall(r"dmir\.cast %\S+ : \(tensor<\S+xf32>\) -> tensor<\S+xbf16>", regions[0].split("dmir.yield")[0])
            if how == "kept":
                self.assertEqual(len(found), inside)
            self.assertRegex(text, r"dmir.matmul %\S+, %\S+ : \(tensor<\S+x40x50xbf16>, tensor<\S+x50x64xbf16>\) -> tensor<\S+xf32>")

    def test_numbers_that_are_not_finite(self):
        """What rounds to an infinity, NaN and subnormal values."""
        one = self.plain()
        values = self.write([one])
        self.compile("--numerics", "bf16", "-t", "cpu:x86-64-v2+x86-64-v3+host")
        v = values["v0"]
        v[0, 0, :, 0], v[0, 0, :, 1], v[0, 0, :, 2] = 3.4e38, 0, 1e-40
        v[0, 0, 3, 1], v[0, 1, 3, 5] = np.nan, -np.inf
        for level in LEVELS:
            got = self.outputs(values, "--isa", level)["y0"]
            self.assertTrue(np.isposinf(got[0, 0, :, 0]).all())
            self.assertTrue(np.isnan(got[0, 0, :, 1]).all() and np.isneginf(got[0, 1, :, 5]).all())
            tiny = rounded(np.float32([1e-40]))[0]
            if level == "host" and not got[0, 0, :, 2].any():  # instructions for pairs take subnormal numbers as zeros
                tiny = 0
            np.testing.assert_allclose(got[0, 0, :, 2], tiny, rtol=0, atol=60 * 2.0 ** -149 + tiny / 256)

    def test_models(self):
        """Kernels and masks are strict's."""
        present = [name for name in MODELS if (ZOO / name / "model.onnx").is_file()]
        if not present:
            self.skipTest(f"{ZOO} is not there")
        for name in present if LONG else sample(present, 3):
            with self.subTest(model=name):
                model = ZOO / name / "model.onnx"
                strict = self.kernels(model=model)
                self.assertEqual(self.kernels("--numerics", "bf16", model=model), strict)
                self.assertGreater(len(strict[0]), 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
