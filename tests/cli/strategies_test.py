#!/usr/bin/env python3
"""Strategies in text: what text may decide is obeyed, what follows from that is derived again, and what differs is refused.
Usage: strategies_test.py BIN [unittest arguments]. Exit 77 where numpy is not installed."""
import re
import subprocess
import sys
import unittest

import dynamic_shapes  # exits where numpy is not installed
from dynamic_shapes import BIN, BundleTest, np, onnx
from sampling import sampled


def weights(name, *shape):
    values = np.random.default_rng(len(name)).standard_normal(shape).astype(np.float32) * 0.1
    return onnx.tensor(name, onnx.FLOAT, list(shape), raw=values.tobytes())


def convolution():
    """64 channels, 3x3: minimal filtering pays."""
    return onnx.model([onnx.node("Conv", "x w", "y", pads=[1, 1, 1, 1])], [onnx.info("x", onnx.FLOAT, [1, 64, 14, 14])],
                      [onnx.info("y", onnx.FLOAT, None)], weights=[weights("w", 64, 64, 3, 3)])


def transformer():
    """A block of a decoder with an open sequence."""
    nodes = [onnx.node("LayerNormalization", "x g b", "n"), onnx.node("MatMul", "n wq", "q"), onnx.node("MatMul", "n wk", "k"),
             onnx.node("MatMul", "n wv", "v"), onnx.node("Transpose", "k", "kt", perm=[0, 2, 1]), onnx.node("MatMul", "q kt", "s"),
             onnx.node("Softmax", "s", "p", axis=-1), onnx.node("MatMul", "p v", "a"), onnx.node("Add", "x a", "r"),
             onnx.node("MatMul", "r w1", "h"), onnx.node("Relu", "h", "e"), onnx.node("MatMul", "e w2", "f"), onnx.node("Add", "r f", "y")]
    parts = [weights(n, 64, 64) for n in ("wq", "wk", "wv")] + [weights("w1", 64, 256), weights("w2", 256, 64), weights("g", 64), weights("b", 64)]
    return onnx.model(nodes, [onnx.info("x", onnx.FLOAT, [1, "t", 64])], [onnx.info("y", onnx.FLOAT, None)], weights=parts)


def at_level(arguments):
    """One level, as compile_file has it, where the test names none."""
    return arguments if "-t" in arguments else (*arguments, "-t", "cpu:x86-64-v3")


@sampled(2)
class Strategies(BundleTest):
    def emit(self, model, phase="partition", *arguments):
        """The text of a phase, with the model beside it."""
        (self.dir / "m.onnx").write_bytes(model)
        done = subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "--emit", phase, "-o", "-", *at_level(arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def resume(self, text, phase="partition", *arguments):
        (self.dir / "m.mlir").write_text(text)
        return subprocess.run([BIN / "dmxc", self.dir / "m.mlir", "--from", phase, "-o", self.dir / "m.bundle", *at_level(arguments)],
                              capture_output=True, text=True)

    def refused(self, text, *said, phase="partition"):
        done = self.resume(text, phase)
        self.assertEqual(done.returncode, 1, done.stderr)
        for part in said:
            self.assertIn(part, done.stderr)

    def outputs(self, shape, *arguments):
        """What the bundle gives for an input of a shape."""
        x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
        done = self.run_bundle({"x": x})
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.load(self.dir / "out" / "out_y.npy")

    def changed(self, text, pattern, replacement):
        """The text with the first match replaced."""
        new, count = re.subn(pattern, replacement, text, count=1)
        self.assertEqual(count, 1, pattern)
        return new

    def test_unchanged_text_gives_the_same_bundle(self):
        for model, levels in ((convolution(), "x86-64-v3"), (transformer(), "x86-64-v3+x86-64-v4")):
            target = ("-t", "cpu:" + levels)
            text = self.emit(model, "partition", *target)
            self.assertEqual(self.resume(text, "partition", *target).returncode, 0)
            (self.dir / "m.bundle").rename(self.dir / "resumed.bundle")
            self.compile_file(self.dir / "m.onnx", *target)
            code = [subprocess.run([BIN / "dmx-inspect", self.dir / name, "--what", "kernels"], capture_output=True, text=True).stdout
                    for name in ("m.bundle", "resumed.bundle")]
            self.assertTrue(code[0])
            self.assertEqual(code[0], code[1])

    def test_what_follows_is_refused_where_it_differs(self):
        text = self.emit(convolution())
        self.assertIn("conv-winograd", text)
        for key, value, found in (("scratch", "0", None), ("work", "1", None), ("flops", "3", None), ("bytes", "3", None)):
            needed = re.search(rf"{key} = (\d+) : i64", text[text.index("conv-winograd"):]).group(1)
            head, tail = text[:text.index("conv-winograd")], text[text.index("conv-winograd"):]
            self.refused(head + self.changed(tail, rf"{key} = \d+ : i64", f"{key} = {value} : i64"), "Conv_0", f"'{key}'", f"{value} : i64", needed)
        self.refused(self.changed(text, r'form = "convwinograd16"', 'form = "convpanel16"'), "packed.1.form", "convpanel16", "convwinograd16")
        self.refused(self.changed(text, r'size = \d+ : i64', "size = 64 : i64"), "packed.1.size", "64 : i64")
        self.refused(self.changed(text, r'scratch = \d+ : i64', 'scratch = "much"'), "'scratch'")
        self.refused(self.changed(text, r'strategy = \{', 'strategy = {in_place = [0], '), "in_place")
        self.refused(self.changed(text, r'strategy = \{', 'strategy = {scrach = 0 : i64, '), "'scrach'", "leave it out")
        self.refused(self.changed(text, r'algorithm = "conv-winograd"', 'algorithm = "conv-fast"'), "conv-fast", "conv-winograd")
        self.refused(self.changed(text, r'grain = \d+ : i64', "grain = 0 : i64"), "'grain'")
        self.refused(self.changed(text, r'dmir.region "cpu"', 'dmir.region "gpu"'), "'gpu'")

    def test_open_sizes(self):
        text = self.emit(transformer())
        self.assertIn("nominal = {", text)
        self.refused(self.changed(text, r"nominal = \{t = \d+ : i64", "nominal = {t = 0 : i64"), "nominal.t")
        self.assertEqual(self.resume(self.changed(text, r"nominal = \{t = \d+ : i64\}, scratch = [^}]*?work = [^}]*?\}", "nominal = {t = 7 : i64}}")).returncode, 0)
        self.refused(self.changed(text, r"in_place = \[[^]]*\]", "in_place = [7]"), "in_place")

    def test_missing_strategies_are_derived(self):
        for model, shape in ((convolution(), (1, 64, 14, 14)), (transformer(), (1, 5, 64))):
            text = self.emit(model)
            self.compile_file(self.dir / "m.onnx")
            wanted = self.outputs(shape)
            nested = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
            for replacement in ("", " attributes {strategy = {}}"):
                bare = re.sub(rf" attributes \{{strategy = {nested}\}}", replacement, text)
                self.assertNotEqual(bare, text)
                done = self.resume(bare)
                self.assertEqual(done.returncode, 0, done.stderr)
                np.testing.assert_array_equal(self.outputs(shape), wanted)

    def test_choices_are_obeyed(self):
        text = self.emit(convolution())
        self.compile_file(self.dir / "m.onnx")
        wanted = self.outputs((1, 64, 14, 14))
        nested = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
        find = rf'strategy = (?=\{{algorithm = "conv-winograd"){nested}'
        for choice, kernel in (('{algorithm = "conv-direct"}', "conv_direct"), ('{algorithm = "conv-unpacked"}', "conv_unpacked"),
                               ("{packed = {}}", "conv_unpacked"), ('{packed = {"1" = {form = "convpanel16"}}}', "conv_direct"),
                               ("{grain = 3 : i64}", "conv_winograd")):
            done = self.resume(self.changed(text, find, f"strategy = {choice}"))
            self.assertEqual(done.returncode, 0, done.stderr)
            graph = subprocess.run([BIN / "dmx-inspect", self.dir / "m.bundle", "--what", "tasks"], capture_output=True, text=True).stdout
            self.assertIn(kernel, graph)
            np.testing.assert_allclose(self.outputs((1, 64, 14, 14)), wanted, rtol=1e-4, atol=1e-4)

    def test_rounded_weights_may_be_chosen(self):
        text = self.emit(transformer())
        nested = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
        find = rf'strategy = (?=\{{algorithm = "matmul-packed"){nested}'
        name = re.search(r'form = "(panel16[^"]+)"', self.emit(transformer(), "partition", "--dim", "t=1..4", "--numerics", "bf16-weights")).group(1)
        self.assertEqual(self.resume(self.changed(text, find, f'strategy = {{packed = {{"1" = {{form = "{name}"}}}}}}')).returncode, 0)
        self.outputs((1, 5, 64))

    def test_text_of_other_phases(self):
        placed = self.emit(convolution(), "memory")
        self.refused(self.changed(placed, r"scratch = [1-9]\d* : i64", "scratch = 0 : i64"), "'scratch'", phase="memory")
        bare = re.sub(r"placement = \[(?:[^][]|\[[^]]*\])*\],? ?", "", placed)
        self.assertNotEqual(bare, placed)
        self.refused(bare, "placement", phase="memory")
        self.refused(self.emit(convolution(), "frontend"), "region")
        self.assertEqual(self.resume(self.emit(transformer(), "memory"), "memory").returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
