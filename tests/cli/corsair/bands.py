#!/usr/bin/env python3
"""Scores that are computed band by band, with masks by diagonals: causal, windows and both, of one head and of several, on teams of all sizes,
against numpy in f64, and the bytes of --sparsity off. What a mask leaves out takes no time, and no constant of the mask is on the device.
Usage: bands.py BIN [unittest arguments]; a plain run takes a third of them. Exit 77 where numpy is not installed."""
import json
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import corsair_interpreter as interpreter
from corsair_rotations import Graph
from dynamic_shapes import BIN, BundleTest, np, onnx, softmax
from sampling import sampled

FAR = 10**9


def kept(rows, columns, lower, upper):
    apart = np.arange(columns)[None] - np.arange(rows)[:, None]
    return (apart >= lower) & (apart <= upper)


def weighted(q, k, v, mask, bias=0):
    """Of one head after the other: scores of long ones are large."""
    heads = [softmax(np.where(mask, a @ b.T / np.sqrt(q.shape[-1]) + bias, -np.inf)) @ c for a, b, c in zip(q[0], k[0], v[0])]
    return np.stack(heads)[None]


@sampled(3)
class Bands(BundleTest):
    def write(self, heads, rows, size, lower=-FAR, upper=FAR, fill=-np.inf, bias=None, columns=None, chosen=None):
        """One attention; its inputs, and numpy's result."""
        g, columns = Graph(), columns or rows
        scores = g.op("MatMul", "q", g.op("Transpose", "k", perm=[0, 1, 3, 2]))
        scores = g.op("Mul", scores, g.constant(np.float32(size**-0.5)))
        mask = kept(rows, columns, lower, upper)
        if bias is not None:
            scores = g.op("Add", scores, g.constant(bias.astype(np.float32)))
        if not mask.all():
            scores = g.op("Add", scores, g.constant(np.where(mask, 0, fill).astype(np.float32)))
        if chosen:
            keep, brought = chosen
            condition = "m" if brought else g.op("Greater", g.constant(keep.astype(np.float32)), g.constant(np.float32(0)))
            scores = g.op("Where", condition, scores, g.constant(np.float32(-1e4)))
            mask = mask & keep.reshape(keep.shape[-2:])
        g.nodes.append(onnx.node("Identity", g.op("MatMul", g.op("Softmax", scores, axis=-1), "v"), "y"))
        shapes = {"q": (1, heads, rows, size), "k": (1, heads, columns, size), "v": (1, heads, columns, size)}
        inputs = [onnx.info(name, onnx.FLOAT, list(shape)) for name, shape in shapes.items()]
        if chosen and brought:
            inputs.append(onnx.info("m", onnx.BOOL, list(keep.shape)))
        (self.dir / "m.onnx").write_bytes(onnx.model(g.nodes, inputs, [onnx.info("y", onnx.FLOAT, None)], weights=g.weights))
        random = np.random.default_rng(rows + heads)
        self.values = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        exact = [value.astype(np.float64) for value in self.values.values()]
        if chosen and brought:
            self.values["m"] = keep
        return weighted(*exact, mask, 0 if bias is None else bias)

    def run_on(self, quads, *flags):
        self.compile_file(self.dir / "m.onnx", "-t", f"corsair:quads={quads}", "--require-target", "corsair:100", *flags)
        done = self.run_bundle(self.values, "--device-opt", f"report={self.dir / 'r.json'}")
        self.assertEqual(done.returncode, 0, done.stderr)
        last = json.loads((self.dir / "r.json").read_text())["last"]
        return np.load(self.dir / "out/out_y.npy"), sum(kernel["main"]["clocks"] for kernel in last)

    def check(self, wanted, quads, at_least=32):
        """Clocks with what a mask leaves out skipped, and with it computed: the same bytes."""
        y, clocks = self.run_on(quads)
        error = y - wanted
        self.assertGreaterEqual(10 * np.log10((wanted * wanted).sum() / (error * error).sum()), at_least)
        dense, more = self.run_on(quads, "--sparsity", "off")
        self.assertEqual(y.tobytes(), dense.tobytes())
        return clocks, more

    def tasks(self):
        return subprocess.run([BIN / "dmx-inspect", self.dir / "m.bundle", "--what", "kernels"], capture_output=True, text=True, check=True).stdout

    def test_causal(self):
        wanted = self.write(1, 1024, 64, upper=0)
        for quads in (1, 2, 8, 16, 32):
            with self.subTest(quads=quads):
                clocks, more = self.check(wanted, quads)
                self.assertLess(clocks, more)
                self.assertNotRegex(self.tasks(), r"\.argument arg\d+ const")  # no mask

    def test_causal_half_of_the_clocks(self):
        self.write(1, 1024, 64)
        _, unmasked = self.run_on(1)
        self.write(1, 1024, 64, upper=0)
        _, causal = self.run_on(1)
        self.assertLessEqual(causal, 0.8 * unmasked)

    def test_causal_of_longer_rows(self):
        wanted = self.write(1, 2048, 64, upper=0, fill=-1e9)
        for quads in (4, 16):
            with self.subTest(quads=quads):
                clocks, more = self.check(wanted, quads)
                self.assertLess(clocks, 0.9 * more)

    def test_windows_grow_with_the_rows(self):
        clocks = {}
        for rows in (2048, 4096):
            wanted = self.write(1, rows, 64, lower=1 - 512, upper=0)
            clocks[rows], more = self.check(wanted, 2)
            self.assertLess(clocks[rows], 0.6 * more)
        self.assertLess(clocks[4096], 2.1 * clocks[2048])

    def test_code_does_not_grow(self):
        sizes = []
        for rows in (2048, 4096):
            self.write(1, rows, 64, upper=0)
            self.compile_file(self.dir / "m.onnx", "-t", "corsair:quads=1", "--require-target", "corsair:100")
            sizes.append(self.tasks().count("\n"))
        self.assertEqual(len(set(sizes)), 1, sizes)

    def test_other_diagonals(self):
        for heads, rows, lower, upper in ((1, 1024, -300, 0), (2, 512, -FAR, 7), (3, 512, -7, FAR), (2, 1024, -100, 100)):
            for quads in (1, 4):
                with self.subTest(heads=heads, rows=rows, lower=lower, upper=upper, quads=quads):
                    self.check(self.write(heads, rows, 64, lower, upper), quads)

    def test_heads(self):
        for heads, rows, size, quads in ((6, 512, 128, 1), (6, 512, 128, 2), (4, 1024, 32, 8), (2, 1024, 256, 4)):
            with self.subTest(heads=heads, rows=rows, size=size, quads=quads):
                self.check(self.write(heads, rows, size, upper=0), quads)

    def test_more_keys_than_queries(self):
        self.check(self.write(1, 512, 64, upper=512, columns=1024), 2)

    def test_biases(self):
        """One for all heads that differs by row and column, and one by column."""
        random = np.random.default_rng(3)
        for shape in ((512, 512), (1, 512)):
            for quads in (1, 2):
                with self.subTest(shape=shape, quads=quads):
                    self.check(self.write(2, 512, 64, upper=0, bias=random.standard_normal(shape)), quads, at_least=30)

    def test_masks_that_are_no_rules(self):
        """Chosen by bools: a constant that differs by row and column, and what a run brings of each column."""
        random = np.random.default_rng(5)
        for shape, brought in (((512, 512), False), ((1, 1, 1, 512), True), ((1, 1, 512, 512), True)):
            for quads in (1, 2):
                with self.subTest(shape=shape, brought=brought, quads=quads):
                    keep = random.random(shape) > 0.3
                    self.check(self.write(2, 512, 64, chosen=(keep, brought)), quads, at_least=30)

    def test_bits(self):
        """Those of the interpreter, of the two products' plans."""
        for heads, rows, size, quads in ((1, 512, 64, 1), (3, 512, 128, 2), (1, 1024, 64, 1), (2, 1024, 64, 4)):
            with self.subTest(heads=heads, rows=rows, size=size, quads=quads):
                self.write(heads, rows, size)
                y, _ = self.run_on(quads)
                partition = subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "-q", "-t", f"corsair:quads={quads}", "--emit", "partition", "-o", "-"],
                                           capture_output=True, text=True, check=True).stdout
                self.assertIn("lldmir.bands", partition)
                wanted = interpreter.interpret(partition, self.tasks(), self.values)
                self.assertEqual(np.float32(wanted["y"]).tobytes(), y.tobytes())

    def test_stages_resume(self):
        wanted = self.write(1, 1024, 64, upper=0)
        first, _ = self.run_on(4)
        for stage in ("partition", "schedule.spmd", "schedule.bands"):
            with self.subTest(stage=stage):
                text = self.dir / f"{stage}.mlir"
                subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "-q", "-t", "corsair:quads=4", "--emit", stage, "-o", text], check=True)
                self.assertIn("folded" if stage != "schedule.bands" else "lldmir.bands", text.read_text())
                subprocess.run([BIN / "dmxc", text, "--from", stage, "-q", "-t", "corsair:quads=4", "-o", self.dir / "m.bundle"], check=True)
                done = self.run_bundle(self.values)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(np.load(self.dir / "out/out_y.npy").tobytes(), first.tobytes())
        self.assertEqual(first.shape, wanted.shape)

    def test_texts_that_are_wrong(self):
        self.write(1, 1024, 64, upper=0)
        text = self.dir / "t.mlir"

        def refuses(stage, change, message):
            subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "-q", "-t", "corsair:quads=2", "--emit", stage, "-o", text], check=True)
            changed = change(text.read_text())
            self.assertNotEqual(changed, text.read_text())
            text.write_text(changed)
            done = subprocess.run([BIN / "dmxc", text, "--from", stage, "-q", "-t", "corsair:quads=2", "-o", self.dir / "m.bundle"],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(message, done.stderr)

        # A band whose rows are another's too, and a strip that is read after its band.
        refuses("schedule.bands", lambda t: re.sub(r"\(d0\) -> \(d0 \* 64\)", "(d0) -> (d0 * 32)", t),
                "has rows in a band that are another's too")
        refuses("schedule.bands", lambda t: t.replace('"softmax"(', '"exp"('), "has no scores, softmax and values in a band")
        refuses("schedule.bands", lambda t: re.sub(r"(\(d0, d1\) -> )\(d0 \* 64 [^)]*\)", r"\1(d0 * 128 + d1)", t), "counts the rows of a band not from its first one")
        refuses("partition", lambda t: t.replace(", folded>}", ">}", 1).replace(", folded>, lldmir.plan", ">, lldmir.plan", 1), "is folded, but rows are so from queries")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
