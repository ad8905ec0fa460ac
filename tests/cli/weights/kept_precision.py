#!/usr/bin/env python3
"""What --keep-precision leaves in the modes of --numerics without blocks, and the errors that reports give for bf16, against numpy. Usage:
kept_precision.py BIN [unittest arguments]. Exit 77 where numpy is not installed."""
import re
import sys
import unittest

from block_weights import BlockTest, normal, np, onnx
from rounded_weights import exact, rounded as by_column, to_bf16
from sampling import sample


def named(name, *arguments, **attributes):
    return onnx.node(*arguments, **attributes) + onnx.field(3, name)


def relative(got, wanted):
    return np.sqrt(((got - wanted) ** 2).mean() / (wanted ** 2).mean())


def bf16_error(w):
    return np.sqrt(((to_bf16(w) - w) ** 2).sum() / (w.astype(np.float64) ** 2).sum())


class Kept(BlockTest):
    def two(self, rows):
        weights = {"a": normal(1, 256, 128), "b": normal(2, 128, 512)}
        self.write([named("first", "MatMul", "x a", "h"), named("second", "MatMul", "h b", "y")], {"x": [rows, 256]}, {"y": [rows, 512]}, weights)
        return weights["a"], weights["b"]

    def test_products(self):
        """One of two products stays, whichever is named, in modes that round operands and in those that keep weights."""
        modes = {"bf16": (40, to_bf16, to_bf16), "bf16-weights": (2, exact, to_bf16), "int8-columns": (2, exact, lambda w: by_column("int8-columns", w))}
        for mode, kept in sample([(mode, kept) for mode in modes for kept in ("first", "second", "nothing")], 3):
            rows, of_left, of_right = modes[mode]
            a, b = self.two(rows)
            x = normal(3, rows, 256)
            report = self.compile(mode, *([] if kept == "nothing" else ["--keep-precision", kept[:4] + "*"]))
            got = self.outputs({"x": x})["y"]

            def answer(kept):
                of = lambda name: (exact, exact) if kept == name else (of_left, of_right)
                h = (of("first")[0](x) @ of("first")[1](a)).astype(np.float32)
                return of("second")[0](h) @ of("second")[1](b)

            with self.subTest(mode=mode, kept=kept):
                # Where an f32 sum lies near the middle of two bf16 it may be either.
                self.assertLess(relative(got, answer(kept)), 2e-4)
                for other in {"first", "second", "nothing"} - {kept}:
                    self.assertGreater(relative(got, answer(other)), 1e-3)
                self.assertIn(f"rounded {2 if kept == 'nothing' else 1} weight", report)

    def test_attention_stays_whole(self):
        """One kernel computes both products of an attention: where one is named it is computed in f32."""
        heads, tokens, size = 2, 48, 32
        shape = [1, heads, tokens, size]
        self.write([onnx.node("Transpose", "k", "kt", perm=[0, 1, 3, 2]), named("scores", "MatMul", "q kt", "s"), onnx.node("Softmax", "s", "w", axis=-1),
                    named("mixed", "MatMul", "w v", "y")], {n: shape for n in "qkv"}, {"y": shape}, {})
        values = {n: normal(i, *shape) for i, n in enumerate("qkv")}
        scores = exact(values["q"]) @ exact(values["k"]).transpose(0, 1, 3, 2)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        wanted = powers / powers.sum(-1, keepdims=True) @ values["v"]
        for kept, rounds in (("scores", False), ("mixed", False), ("other*", True)):
            report = self.compile("bf16", "--keep-precision", kept)
            off = relative(self.outputs(values)["y"], wanted)
            self.assertEqual(off > 1e-4, rounds, f"{kept}: {off}")
            self.assertEqual("keep-precision-unused" in report, rounds, report)

    def convolutions(self):
        weights = {"w0": normal(1, 32, 3, 1, 1), "w": normal(2, 24, 32, 1, 1)}
        self.write([named("stem", "Conv", "x w0", "c"), named("body", "Conv", "c w", "y")], {"x": [1, 3, 9, 9]}, {"y": [1, 24, 9, 9]}, weights)
        return weights["w0"], weights["w"]

    def test_convolutions(self):
        first, second = self.convolutions()
        x = normal(5, 1, 3, 9, 9)
        of = lambda number: np.einsum("nchw,oc->nohw", number(np.einsum("nchw,oc->nohw", exact(x), exact(first[..., 0, 0])).astype(np.float32)),
                                      number(second[..., 0, 0]))
        self.compile("bf16-convs")
        self.assertLess(relative(self.outputs({"x": x})["y"], of(to_bf16)), 2e-4)
        self.compile("bf16-convs", "--keep-precision", "body")
        self.assertLess(relative(self.outputs({"x": x})["y"], of(exact)), 1e-6)


class Reports(BlockTest):
    def errors(self, mode):
        """What of the placement report, and of dmxc's own, is said of errors."""
        said = self.compile(mode, "--placement-report", self.dir / "r.txt")
        rows = re.findall(r"^(\S+)\t\S+\t.*\tbf16 bf16 -> f32 \(error (\S+)\)$", (self.dir / "r.txt").read_text(), re.M)
        total = re.search(r"rounded (\d+) weights?: (\S+) KiB in (\S+) KiB, relative RMS error at most (\S+) \('(.*)'\)", said)
        self.assertTrue(total, said)
        return {name: float(error) for name, error in rows}, total

    def test_convolutions(self):
        first, second = Kept.convolutions(self)
        rows, total = self.errors("bf16-convs")
        self.assertEqual(list(rows), ["body"])  # the other has three channels
        self.assertAlmostEqual(rows["body"] / bf16_error(second), 1, delta=0.01)
        self.assertEqual((total[1], total[2], total[3], total[5]), ("1", "3.0", "1.5", "body"))

    def test_products(self):
        """Of weights as the file has them, and of three that one product has joined."""
        a, b = Kept.two(self, 40)
        rows, total = self.errors("bf16")
        self.assertAlmostEqual(rows["first"] / bf16_error(a), 1, delta=0.01)
        self.assertAlmostEqual(rows["second"] / bf16_error(b), 1, delta=0.01)
        self.assertEqual(total[1], "2")
        weights = {n: normal(i, 128, 128) for i, n in enumerate("abc")}
        self.write([named(f"of_{n}", "MatMul", f"x {n}", f"y{n}") for n in weights], {"x": [40, 128]}, {f"y{n}": [40, 128] for n in weights}, weights)
        rows, total = self.errors("bf16")
        for error in rows.values():
            self.assertAlmostEqual(error / bf16_error(np.concatenate(list(weights.values()), 1)), 1, delta=0.02)
        self.assertTrue(rows)

    def resumed(self, mode, text):
        return self.dmxc("--from", "partition", "--numerics", mode, "-o", self.dir / "m.bundle", model=text).stderr

    def test_text_of_partition(self):
        """Whether the mode was of use is seen in the text, which has no weights here."""
        shape = [1, 2, 48, 32]
        self.write([onnx.node("Transpose", "k", "kt", perm=[0, 1, 3, 2]), onnx.node("MatMul", "q kt", "s"), onnx.node("Softmax", "s", "w", axis=-1),
                    onnx.node("MatMul", "w v", "y")], {n: shape for n in "qkv"}, {"y": shape}, {})
        for mode, used in (("bf16", True), ("strict", False)):
            self.dmxc("--emit", "partition", "-o", self.dir / f"{mode}.mlir", "--numerics", mode)
            said = self.resumed("bf16", f"{mode}.mlir")
            self.assertEqual("numerics-unused" not in said, used, said)
            self.assertEqual("chosen in the phase partition" not in said, used, said)

    def test_misuse(self):
        Kept.two(self, 2)
        for mode in ("bf16", "bf16-convs", "bf16-weights", "int8-columns"):
            said = self.dmxc("-o", self.dir / "m.bundle", "--numerics", mode, "--max-error", "0.1", code=2).stderr
            self.assertIn(f"--max-error is for a mode of --numerics with blocks, for example int8-weights; '{mode}' is not one", said)
        said = self.dmxc("-o", self.dir / "m.bundle", "-t", "corsair", "--numerics", "basic", "--keep-precision", "first", code=2).stderr
        self.assertIn("--keep-precision is for a mode of --numerics that rounds operands or weights, for example bf16; 'basic' is not one", said)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
