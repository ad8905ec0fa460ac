#!/usr/bin/env python3
"""Masks of attention as rules: what dmxc and dmx-inspect say of them, near misses, and that leaving keys out changes no bit. Usage:
masks_test.py BIN ZOO GENERATOR [unittest arguments]. ZOO holds models of tests/conformance, GENERATOR is bar_masks.py of
shared/bench; what is not there is skipped. Exit 77 where numpy is not installed."""
import json
import os
import pathlib
import resource
import subprocess
import sys
import unittest

import dynamic_shapes  # exits where numpy is not installed
from dynamic_shapes import BIN, BundleTest, np, onnx, softmax

ZOO, GENERATOR = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
GOLDEN = pathlib.Path(__file__).resolve().parent / "masks"
LEAST, INFINITE = np.finfo(np.float32).min, -np.inf
MOST_SECONDS = 2  # of a compile, as a user of the processor


def constant(name, array):
    array = np.ascontiguousarray(array)
    types = {np.dtype(np.float32): onnx.FLOAT, np.dtype(np.int64): onnx.INT64, np.dtype(bool): onnx.BOOL, np.dtype(np.int32): onnx.INT32}
    return onnx.tensor(name, types[array.dtype], list(array.shape), raw=array.tobytes())


def attention(rows, columns, mask, inputs=(), weights=(), heads=2, depth=16, axis=-1, form="where", fill=LEAST, dims=(), **parts):
    """softmax(q k under a mask) v; `mask` are nodes whose last output is `keep`, of bools."""
    info = lambda name, shape, dtype=onnx.FLOAT: onnx.info(name, dtype, shape)
    masked = {"where": [onnx.node("Where", "keep s fill", "m")],
              "added": [onnx.node("Where", "keep zero fill", "bias"), onnx.node("Add", "s bias", "m")],
              "times": [onnx.node("Cast", "keep", "f", to=onnx.FLOAT), onnx.node("Mul", "s f", "m")]}[form]
    nodes = [*mask, onnx.node("MatMul", "q k", "s"), *masked, onnx.node("Softmax", "m", "w", axis=axis), onnx.node("MatMul", "w v", "y")]
    fixed = [constant("fill", np.float32(fill)), constant("zero", np.float32(0))]
    return onnx.model(nodes, [info("q", [1, heads, rows, depth]), info("k", [1, heads, depth, columns]), info("v", [1, heads, columns, depth]),
                              *[info(n, s, t) for n, s, t in inputs]], [info("y", None)], weights=[*fixed, *weights], **parts)


def meeting(n, mask, shape=None, outer=(1, 2), depth=16):
    """softmax(q k + a constant) v, `c`, which meets scores of a shape."""
    sizes = {"q": [*outer, n, depth], "k": [*outer, depth, n], "v": [*outer, n, depth]}
    meets = [onnx.node("Reshape", "s there", "t"), onnx.node("Add", "t c", "u"), onnx.node("Reshape", "u back", "m")] if shape else [onnx.node("Add", "s c", "m")]
    shapes = [constant("there", np.array(shape or [0])), constant("back", np.array([*outer, n, n]))]
    nodes = [onnx.node("MatMul", "q k", "s"), *meets, onnx.node("Softmax", "m", "w", axis=-1), onnx.node("MatMul", "w v", "y")]
    return onnx.model(nodes, [onnx.info(name, onnx.FLOAT, size) for name, size in sizes.items()], [onnx.info("y", onnx.FLOAT, None)],
                      weights=[constant("c", mask), *shapes])


def ranges(rows, columns):
    """i [rows, 1] and j [1, columns]."""
    return [constant("i", np.arange(rows, dtype=np.int64)[:, None]), constant("j", np.arange(columns, dtype=np.int64)[None])]


class Masks(BundleTest):
    def report(self, model, *arguments, suffix=""):
        """The text, or the JSON, of the report; and the line."""
        path = model
        if isinstance(model, bytes):
            path = self.dir / "m.onnx"
            path.write_bytes(model)
        file = self.dir / f"report{suffix}"
        done = subprocess.run([BIN / "dmxc", path, "-t", "cpu:x86-64-v3", "--emit", "partition", "-o", self.dir / "text.mlir",
                               "--sparsity-report", file, *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.line = next((line for line in done.stderr.splitlines() if line.startswith("masks: ")), "")
        return json.loads(file.read_text()) if suffix else file.read_text()

    def rules(self, model, *arguments):
        return [one.get("rule", "") for one in self.report(model, *arguments, suffix=".json")["attentions"]]

    def reasons(self, model):
        return [one.get("unknown", "") for one in self.report(model, suffix=".json")["attentions"]]

    # --- near misses

    def test_bounds(self):
        n = 24
        for operator, more, rule in (("LessOrEqual", 0, "j <= i"), ("Less", 0, "j < i"), ("Less", 1, "j <= i"), ("LessOrEqual", 5, "j <= i + 5")):
            nodes = [onnx.node("Add", "i more", "p"), onnx.node(operator, "j p", "keep")]
            model = attention(n, n, nodes, weights=[*ranges(n, n), constant("more", np.int64(more))])
            self.assertEqual(self.rules(model), [rule], operator)

    def test_triangles(self):
        n = 24
        for k, rule in ((0, "i <= j"), (1, "i < j"), (-3, "i <= j + 3")):
            nodes = [onnx.node("Trilu", "ones shift", "t", upper=1), onnx.node("Cast", "t", "keep", to=onnx.BOOL)]
            model = attention(n, n, nodes, weights=[constant("ones", np.ones((n, n), np.float32)), constant("shift", np.int64(k))])
            self.assertEqual(self.rules(model), [rule])

    def test_windows(self):
        n = 40
        for wide in (7, 8):
            nodes = [onnx.node("LessOrEqual", "j i", "a"), onnx.node("Sub", "i wide", "e"), onnx.node("Greater", "j e", "b"), onnx.node("And", "a b", "keep")]
            model = attention(n, n, nodes, weights=[*ranges(n, n), constant("wide", np.int64(wide))])
            self.assertEqual(self.rules(model), [f"j <= i and i <= j + {wide - 1}"])

    def test_past(self):
        """Rows that come behind others: with the past added, and by an exporter that forgot it."""
        shift = [onnx.node("Add", "i past", "p"), onnx.node("LessOrEqual", "j p", "keep")]
        self.assertEqual(self.rules(attention(8, 20, shift, weights=[*ranges(8, 20), constant("past", np.int64(12))])), ["j <= i + 12"])
        self.assertEqual(self.rules(attention(8, 20, [onnx.node("LessOrEqual", "j i", "keep")], weights=ranges(8, 20))), ["j <= i"])

    def test_flipped_element(self):
        keep = np.tril(np.ones((1024, 1024), bool))
        model = lambda mask: attention(1024, 1024, [onnx.node("Identity", "c", "keep")], weights=[constant("c", mask)], heads=1)
        self.assertEqual(self.rules(model(keep)), ["j <= i"])
        keep[700, 900] = True
        rule, = self.rules(model(keep))
        self.assertEqual(rule, f"{16 * 17 // 2 + 1} tiles of 64 x 64")  # the triangle's, and the one with the element
        keep = np.random.default_rng(1).random((1024, 1024)) < 0.5
        reason, = self.reasons(model(keep))
        self.assertEqual(reason, "'c' (dmir.constant): neither value of the constant fills one run in each row")

    def test_one_reason(self):
        """Each mask that is no rule says what is in its way, and nothing else."""
        n, random = 24, np.random.default_rng(1)
        i, j = np.arange(n)[:, None], np.arange(n)
        added = lambda mask, shape=None: self.reasons(meeting(n, mask.astype(np.float32), shape))[0].removeprefix("'c' (dmir.constant): ")
        dense = random.random((n, n)) < 0.5
        self.assertEqual(added(np.where(dense, 0, -1e9)), "neither value of the constant fills one run in each row")
        self.assertEqual(added(np.where(dense, 0, -1e9) * (1 + (i < 3))), "the constant has more than two different values")
        self.assertEqual(added(np.where(j * j <= i, 0, -1e9)), "the runs of equal elements in rows of the constant end neither at one column nor 1 further each row")
        self.assertEqual(added(np.where(random.random((2, n, n)) < 0.5, 0, -1e9)), "the constant differs along 3 axes, of which 2 are the most")
        self.assertEqual(added(np.where(j <= i, 0, -1e4), [1, 1, 2, n, n]), f"it meets scores of 1 x 1 x 2 x {n} x {n}, which are reshaped to 1 x 2 x {n} x {n} before the softmax")
        self.assertEqual(added(np.where(dense, 0, -100)), "the least number that it adds is -100: weights are small there, and not 0")
        self.assertEqual(added(np.full((n, n), -np.inf)), "no score is kept")
        bands = [[onnx.node("Less", f"d to{x}", f"a{x}"), onnx.node("GreaterOrEqual", f"d from{x}", f"b{x}"), onnx.node("And", f"a{x} b{x}", f"k{x}"),
                  onnx.node("Or", f"k{x} o{x - 1}" if x else "k0 k0", f"o{x}")] for x in range(5)]
        bounds = [constant(name + str(x), np.int64(at)) for x in range(5) for name, at in (("from", 4 * x), ("to", 4 * x + 2 + x // 4))]
        nodes = [onnx.node("Sub", "i j", "d"), *(node for band in bands for node in band), onnx.node("Identity", "o4", "keep")]
        large = 100  # smaller ones are folded to a constant
        reason, = self.reasons(attention(large, large, nodes, weights=[*ranges(large, large), *bounds]))
        self.assertRegex(reason, r"^'\w+' \(dmir\.or\): its rule has 5 cases, of which 4 are the most$")

    def test_shifted_windows(self):
        """Those of images, as Swin has them: a matrix a window that adds -100, before windows and images become one axis."""
        side, window, shift = 28, 7, 3
        line = np.searchsorted([side - window, side - shift], np.arange(side), "right")
        parts = (line[:, None] * 3 + line).reshape(side // window, window, side // window, window).swapaxes(1, 2).reshape(-1, window * window)
        mask = np.where(parts[:, None] != parts[:, :, None], -100, 0).astype(np.float32)
        self.assertEqual(mask.shape, (16, 49, 49))
        one, = self.report(meeting(49, mask.reshape(1, 16, 1, 49, 49), [1, 16, 3, 49, 49], [16, 3]), suffix=".json")["attentions"]
        self.assertEqual(one["unknown"], "'c' (dmir.constant): the least number that it adds is -100: weights are small there, and not 0")
        self.assertEqual(one["rest"], "'c' of 1 x 16 x 1 x 49 x 49")

    def test_positions_of_the_caller(self):
        """A row's position is what the caller says: no i + past. Of one row it is one number that a run brings."""
        nodes = [onnx.node("Unsqueeze", "position_ids two", "p"), onnx.node("Unsqueeze", "p one", "r"), onnx.node("LessOrEqual", "j r", "keep")]
        more = [constant("one", np.array([1], np.int64)), constant("two", np.array([2], np.int64))]
        model = lambda rows: attention(rows, 40, nodes, [("position_ids", [1, rows], onnx.INT64)], [constant("j", np.arange(40)[None]), *more])
        self.assertEqual(self.rules(model(6)), ["j <= 'position_ids'[i]"])
        self.assertEqual(self.rules(model(1)), ["j <= 'position_ids'"])
        self.compile_onnx(model(1))
        for position in (0, 17, 39, 2**62):
            self.check_run(1, 40, np.arange(40)[None] <= position, {"position_ids": np.array([[position]])})

    def test_other_uses(self):
        n = 24
        compare = [onnx.node("LessOrEqual", "j i", "keep")]
        self.assertEqual(self.rules(attention(n, n, compare, weights=ranges(n, n), axis=-2)), [])
        self.assertEqual(self.rules(attention(n, n, compare, weights=ranges(n, n), form="times")), ["j <= i"])

    # --- symbols that operands bring

    def test_lengths(self):
        """Keys of each batch entry, as an i32 operand of a value a batch entry."""
        nodes = [onnx.node("Cast", "lengths", "l", to=onnx.INT64), onnx.node("Reshape", "l shape", "b"), onnx.node("Less", "j b", "few"),
                 onnx.node("LessOrEqual", "j i", "past"), onnx.node("And", "few past", "keep")]
        model = attention(300, 300, nodes, [("lengths", [1], onnx.INT32)], [*ranges(300, 300), constant("shape", np.array([1, 1, 1, 1], np.int64))])
        self.assertEqual(self.rules(model), ["j < 'lengths' and j <= i"])
        self.compile_onnx(model)
        for length in (1, 77, 300, 1000):
            self.check_run(300, 300, np.tril(np.ones((300, 300), bool)) & (np.arange(300)[None] < length), {"lengths": np.array([length], np.int32)})

    def result(self):
        return np.load(next((self.dir / "out").glob("*.npy")))

    def check_run(self, rows, columns, keep, more):
        random = np.random.default_rng(1)
        q, k, v = (random.standard_normal([1, 2, *shape]).astype(np.float32) for shape in ((rows, 16), (16, columns), (columns, 16)))
        ran = self.run_bundle({"q": q, "k": k, "v": v, **more})
        self.assertEqual(ran.returncode, 0, ran.stderr)
        wanted = softmax(np.where(keep, q.astype(np.float64) @ k, LEAST)) @ v
        np.testing.assert_allclose(self.result(), wanted, rtol=1e-4, atol=1e-5)

    # --- parts of tables

    def step(self, rows):
        """GPT-2's step: the row of a table of positions that is behind the past ones, over all keys, of which `window` count."""
        info = lambda name, shape: onnx.info(name, onnx.FLOAT, shape)
        nodes = [onnx.node("Concat", "past_k new_k", "k", axis=3), onnx.node("Concat", "past_v new_v", "v", axis=2), onnx.node("Shape", "past_k", "s"),
                 onnx.node("Slice", "s three four", "past"), onnx.node("Add", "past one", "all"), onnx.node("Slice", "table past all two", "row"),
                 onnx.node("Slice", "row none all three", "keep"), onnx.node("MatMul", "q k", "scores"), onnx.node("Where", "keep scores fill", "m"),
                 onnx.node("Softmax", "m", "w", axis=-1), onnx.node("MatMul", "w v", "y")]
        table = np.tril(np.ones((rows, rows), bool)) & ~np.tril(np.ones((rows, rows), bool), -8)
        numbers = [constant(name, np.array([value], np.int64)) for name, value in (("none", 0), ("one", 1), ("two", 2), ("three", 3), ("four", 4))]
        return onnx.model(nodes, [info("q", [1, 2, 1, 16]), info("past_k", [1, 2, 16, "past"]), info("new_k", [1, 2, 16, 1]),
                                  info("past_v", [1, 2, "past", 16]), info("new_v", [1, 2, 1, 16])], [info("y", None)],
                          weights=[constant("fill", np.float32(LEAST)), constant("table", table[None, None]), *numbers])

    def regions(self):
        """Attentions that are one region, in the text of the last report."""
        return (self.dir / "text.mlir").read_text().count('strategy = {algorithm = "attention')

    def test_part_of_a_table(self):
        """More keys than the table has rows would not broadcast, so that the part is as long as the keys; and more are refused as before."""
        self.assertEqual(self.rules(self.step(64)), ["past <= j + 7 and j <= past"])
        self.assertEqual(self.regions(), 1)
        self.compile_onnx(self.step(64))
        random = np.random.default_rng(3)
        for past in (0, 1, 7, 8, 40, 63, 64, 1000):
            shapes = {"q": [1, 16], "past_k": [16, past], "new_k": [16, 1], "past_v": [past, 16], "new_v": [1, 16]}
            given = {name: random.standard_normal([1, 2, *shape]).astype(np.float32) for name, shape in shapes.items()}
            ran = self.run_bundle(given)
            if past >= 64:
                self.assertEqual(ran.returncode, 2, ran.stderr)
                self.assertIn(f"the operands broadcast': cannot broadcast 64 and {past + 1}", ran.stderr)
                continue
            self.assertEqual(ran.returncode, 0, ran.stderr)
            k, v = (np.concatenate([given[f"past_{n}"], given[f"new_{n}"]], axis).astype(np.float64) for n, axis in (("k", 3), ("v", 2)))
            scores = np.where(np.arange(past + 1) > past - 8, given["q"] @ k, LEAST)
            np.testing.assert_allclose(self.result(), softmax(scores) @ v, rtol=1e-4, atol=1e-5)

    def test_table_of_one_row(self):
        """It broadcasts to any number of keys: nothing follows for those."""
        self.rules(self.step(1))
        self.assertIn("min(1, past)", (self.dir / "text.mlir").read_text())

    def test_viewed_mask(self):
        """Torch's GPT-2 views its mask as [batch, elements / batch], which is as long as the keys or one column for all of them."""
        info = lambda name, shape, dtype=onnx.FLOAT: onnx.info(name, dtype, shape)
        nodes = [onnx.node("Shape", "q", "s"), onnx.node("Slice", "s none one", "batch"), onnx.node("Shape", "mask", "t"),
                 onnx.node("ReduceProd", "t", "all", keepdims=1), onnx.node("Div", "all batch", "each"),
                 onnx.node("Concat", "batch one one each", "to", axis=0), onnx.node("Reshape", "mask to", "keep"), onnx.node("MatMul", "q k", "scores"),
                 onnx.node("Where", "keep scores fill", "m"), onnx.node("Softmax", "m", "w", axis=-1), onnx.node("MatMul", "w v", "y")]
        numbers = [constant("none", np.array([0], np.int64)), constant("one", np.array([1], np.int64)), constant("fill", np.float32(LEAST))]
        model = onnx.model(nodes, [info("q", ["b", 2, "n", 16]), info("k", ["b", 2, 16, "n"]), info("v", ["b", 2, "n", 16]),
                                   info("mask", ["rows", "columns"], onnx.BOOL)], [info("y", None)], weights=numbers)
        self.assertEqual(self.rules(model), [""])
        self.assertEqual(self.regions(), 1)
        self.compile_onnx(model)
        random = np.random.default_rng(4)
        q, k, v = (random.standard_normal([2, 2, *shape]).astype(np.float32) for shape in ((8, 16), (16, 8), (8, 16)))
        for shape, fits in (((2, 8), True), ((4, 4), True), ((1, 2), True), ((2, 4), False), ((2, 16), False), ((3, 5), False)):
            mask = random.random(shape) < 0.7
            ran = self.run_bundle({"q": q, "k": k, "v": v, "mask": mask})
            self.assertEqual(ran.returncode, 0 if fits else 2, ran.stderr)
            if fits:
                scores = np.where(mask.reshape(2, 1, 1, -1), q.astype(np.float64) @ k, LEAST)
                np.testing.assert_allclose(self.result(), softmax(scores) @ v, rtol=1e-4, atol=1e-5)
            else:
                self.assertRegex(ran.stderr, "cannot broadcast|a reshape keeps the number of elements")

    def test_step_of_the_zoo(self):
        model = ZOO / "gpt2_mini_step" / "model.onnx"
        if not model.exists():
            self.skipTest(f"no {model}")
        self.assertEqual(self.rules(model), ["j <= past"] * 3)
        self.assertEqual(self.regions(), 3)

    # --- what is said

    def test_tiles(self):
        causal = attention(8, 8, [onnx.node("LessOrEqual", "j i", "keep")], weights=ranges(8, 8), heads=1)
        one, = self.report(causal, "--sparsity-tile", "4x4", suffix=".json")["attentions"]
        self.assertEqual(one["tiles"], [[[0, 0], [4, 4]], [[0, 4], [4, 8]], [[4, 4], [8, 8]]])
        self.assertEqual([one[k] for k in ("scores", "kept", "empty_tiles", "full_tiles", "mixed_tiles")], [64, 36, 1, 1, 2])
        self.assertIn("36 of 64 scores, 56.2 %", self.report(causal))

    def test_off(self):
        """The same kernel, which looks at all keys; the bundle says so."""
        causal = attention(512, 512, [onnx.node("LessOrEqual", "j i", "keep")], weights=ranges(512, 512))
        self.report(causal)
        self.assertTrue(self.line.endswith("masked keys skipped in 1"), self.line)
        self.report(causal, "--sparsity", "off")
        self.assertTrue(self.line.endswith("masked keys skipped in 0"), self.line)
        self.compile_file(self.dir / "m.onnx", "--sparsity", "off")
        shown = json.loads(subprocess.run([BIN / "dmx-inspect", self.dir / "m.bundle", "--what", "masks", "--json"], capture_output=True, check=True).stdout)
        self.assertEqual(shown["sparsity"], "off")
        self.assertEqual([(m["rule"], m["kept"], m["algorithm"]) for m in shown["masks"]], [("j <= i", 2 * 512 * 513 // 2, "attention-all-tiles")])
        text = subprocess.run([BIN / "dmx-inspect", self.dir / "m.bundle", "--what", "masks"], capture_output=True, text=True, check=True).stdout
        self.assertIn("j <= i", text)

    def test_resumed(self):
        """Texts of later phases say the same in the bundle."""
        causal = attention(300, 300, [onnx.node("LessOrEqual", "j i", "keep")], weights=ranges(300, 300))
        (self.dir / "m.onnx").write_bytes(causal)
        subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "-q", "-t", "cpu:x86-64-v3", "--emit", "memory", "-o", self.dir / "m.mlir"], check=True)
        self.compile_file(self.dir / "m.mlir", "--from", "memory")
        shown = json.loads(subprocess.run([BIN / "dmx-inspect", self.dir / "m.bundle", "--what", "masks", "--json"], capture_output=True, check=True).stdout)
        self.assertEqual([m["rule"] for m in shown["masks"]], ["j <= i"])

    def test_misuse(self):
        (self.dir / "m.onnx").write_bytes(attention(8, 8, [onnx.node("LessOrEqual", "j i", "keep")], weights=ranges(8, 8)))
        for flags, said in ((["--sparsity", "of"], "--sparsity"), (["--sparsity-tile", "4x4"], "--sparsity-report"),
                            (["--sparsity-report", "r", "--sparsity-tile", "4"], "for example 64x128"),
                            (["--sparsity-report", "r", "--sparsity-tile", "0x4"], "for example 64x128"),
                            (["--sparsity-report", "r", "--emit", "frontend"], "--sparsity-report belongs to the phase partition")):
            done = subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "-o", self.dir / "o", *flags], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)
        done = subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "-o", self.dir / "o", "--sparsity-report", self.dir / "no" / "r"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 3, done.stderr)

    def golden(self, name, model, *arguments):
        text = self.report(model, *arguments)
        if os.environ.get("DMXC_UPDATE"):
            (GOLDEN / f"{name}.txt").write_text(text)
        self.assertEqual(text, (GOLDEN / f"{name}.txt").read_text())

    def test_golden(self):
        names = ["gpt2_mini_prefill", "gpt2_small_prefill", "llama_mini_dyn", "bert_mini_dyn"]
        there = [name for name in names if (ZOO / name / "model.onnx").exists()]
        if not there:
            self.skipTest(f"no models in {ZOO}")
        for name in there:
            with self.subTest(name=name):
                self.golden(name, ZOO / name / "model.onnx")
                if name.startswith("gpt2"):  # what the file says by constants is in the rule alone
                    self.assertNotIn("xi1>", (self.dir / "text.mlir").read_text())

    def test_golden_of_hugging_face(self):
        if not GENERATOR.exists():
            self.skipTest(f"{GENERATOR} is not there")
        made = subprocess.run(["/usr/bin/python3", GENERATOR, "hf", self.dir / "hf.onnx", "4", "512", "64"], capture_output=True, text=True)
        if made.returncode:
            self.skipTest("bar_masks.py cannot make its model: " + made.stderr[-200:])
        self.golden("bar_masks_hf", self.dir / "hf.onnx")

    # --- large and hostile

    def long(self, n, window):
        """Masked by comparisons of ranges, as graphs have it: one head of n tokens."""
        matrix, column, row, bools = f"tensor<1x{n}x{n}xf32>", f"tensor<{n}x1xi64>", f"tensor<1x{n}xi64>", f"tensor<{n}x{n}xi1>"
        q, k = f"tensor<1x{n}x64xf32>", f"tensor<1x64x{n}xf32>"
        near = (f"  %w = dmir.constant dense<{window}> : tensor<i64>\n"
                f"  %e = dmir.sub %i, %w : ({column}, tensor<i64>) -> {column}\n"
                f"  %near = dmir.compare gt %j, %e : ({row}, {column}) -> {bools}\n"
                f"  %keep = dmir.and %past, %near : ({bools}, {bools}) -> {bools}\n")
        (self.dir / "long.mlir").write_text(
            f'func.func @main(%q: {q} {{dmir.name = "q"}}, %k: {k} {{dmir.name = "k"}}, %v: {q} {{dmir.name = "v"}}) -> ({q} {{dmir.name = "y"}}) {{\n'
            f"  %low = dmir.constant dense<0xFF800000> : tensor<f32>\n"
            f"  %i = dmir.iota {{axis = 0 : i64}} : () -> {column}\n  %j = dmir.iota {{axis = 1 : i64}} : () -> {row}\n"
            f"  %{'past' if window else 'keep'} = dmir.compare le %j, %i : ({row}, {column}) -> {bools}\n{near if window else ''}"
            f"  %s = dmir.matmul %q, %k : ({q}, {k}) -> {matrix}\n"
            f"  %m = dmir.select %keep, %s, %low : ({bools}, {matrix}, tensor<f32>) -> {matrix}\n"
            f"  %p = dmir.softmax %m {{axis = 2 : i64}} : ({matrix}) -> {matrix}\n"
            f"  %y = dmir.matmul %p, %v : ({matrix}, {q}) -> {q}\n  return %y : {q}\n}}\n")
        report = self.dir / "long.json"
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        self.compile_file(self.dir / "long.mlir", "--sparsity-report", report)
        took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        self.assertLess((self.dir / "m.bundle").stat().st_size, 1 << 20)
        one, = json.loads(report.read_text())["attentions"]
        return one, took

    def test_long(self):
        """131072 tokens, causal and with a window of 512: counted exactly, and nothing as large as the matrix is compiled, kept or run."""
        n, seconds = 131072, 1
        for window, kept in ((512, 66978048), (0, n * (n + 1) // 2)):
            _, short = self.long(1024, window)
            one, took = self.long(n, window)
            self.assertEqual(one["kept"], kept)
            self.assertNotIn("tiles", one)
            self.assertLess(took, short + seconds)
            if window:
                self.assertLess(one["issued"], 0.01 * one["operations"])
                run = subprocess.Popen([BIN / "dmx-run", self.dir / "m.bundle", "--random-inputs", "1", "--threads", "1", "-q"])
                _, status, usage = os.wait4(run.pid, 0)
                run.returncode = os.waitstatus_to_exitcode(status)
                self.assertEqual(status, 0)
                if b"__asan_init" not in (BIN / "dmx-run").read_bytes():  # which keeps what was freed
                    self.assertLess(usage.ru_maxrss, 250 << 10)

    def test_chains(self):
        """10,000 ands, and selects of selects 60 deep that share their operands: quickly, and as they are."""
        n = 16
        chain = [onnx.node("LessOrEqual", "j i", "a0")]
        chain += [onnx.node("And", f"a{x} given", f"a{x + 1}") for x in range(10000)]
        chain.append(onnx.node("Identity", "a10000", "keep"))
        given = [("given", [1, 1, 1, n], onnx.BOOL)]
        diamond = [onnx.node("LessOrEqual", "j i", "a0"), onnx.node("Less", "j i", "b0")]
        for x in range(60):
            diamond += [onnx.node("Where", f"given a{x} b{x}", f"a{x + 1}"), onnx.node("Where", f"given b{x} a{x}", f"b{x + 1}")]
        diamond.append(onnx.node("Identity", "a60", "keep"))
        # Of more than 64 ops the outer ones are read. What a row may see at most is read of the selects: both of their operands are false behind the diagonal.
        for nodes, reason, rule in ((chain, "", "'given'[j]"), (diamond, "", "j <= i")):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            one, = self.report(attention(n, n, nodes, given, ranges(n, n)), suffix=".json")["attentions"]
            self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, MOST_SECONDS)
            self.assertEqual((one.get("unknown", ""), one.get("rule", "")), (reason, rule))
        self.compile_file(self.dir / "m.onnx")
        choice = np.arange(n) % 3 == 0
        a, b = np.tril(np.ones((n, n), bool)), np.tril(np.ones((n, n), bool), -1)
        for _ in range(60):
            a, b = np.where(choice, a, b), np.where(choice, b, a)
        self.check_run(n, n, a, {"given": choice.reshape(1, 1, 1, n)})

    def test_bad_rules(self):
        """Texts with a rule that is none: the place and what is wrong."""
        text = ('func.func @main(%x: tensor<2x4x8xf32> {{dmir.name = "x"}}) -> (tensor<2x4x8xf32> {{dmir.name = "y"}}) {{\n'
                "  %y = dmir.mask %x {{keep = [affine_set<{}>], fill = 0.0 : f32}} : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>\n"
                "  return %y : tensor<2x4x8xf32>\n}}\n")
        for rule, said in (("(b, i, j) : (i - k >= 0)", "use of undeclared identifier"),
                           ("(b, i, j)[s] : (i - s >= 0)", "3 dims, 1 symbols and 1 conditions; the operand has 3 axes, there are 0 dims and values"),
                           ("(i, j) : (i - j >= 0)", "2 dims, 0 symbols and 1 conditions; the operand has 3 axes"),
                           ("(b, i, j) : (i floordiv 0 - j >= 0)", "divides by something else than a positive number"),
                           ("(b, i, j) : (i mod -3 - j >= 0)", "divides by something else than a positive number"),
                           ("(b, i, j) : (i * j >= 0)", "non-affine expression"),
                           (f"(b, i, j) : (i - j * {2**62} >= 0)", "a number lies outside of 2^40"),
                           (f"(b, i, j) : (i - j * {2**70} >= 0)", "too large")):
            (self.dir / "bad.mlir").write_text(text.format(rule))
            done = subprocess.run([BIN / "dmxc", self.dir / "bad.mlir", "-o", self.dir / "o"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1, (rule, done.stderr))
            self.assertIn(said, done.stderr)
            self.assertRegex(done.stderr, r"bad\.mlir:2:\d+: ")
            self.assertFalse((self.dir / "o").exists())

    def test_nan_and_empty(self):
        """A mask of NaN gives NaN, no keys nothing: the dense answers."""
        n = 8
        model = attention(n, n, [onnx.node("LessOrEqual", "j i", "keep")], weights=ranges(n, n), fill=np.nan)
        self.compile_onnx(model)
        random = np.random.default_rng(0)
        q, k, v = (random.standard_normal([1, 2, *s]).astype(np.float32) for s in ((n, 16), (16, n), (n, 16)))
        self.assertEqual(self.run_bundle({"q": q, "k": k, "v": v}).returncode, 0)
        got = self.result()
        self.assertTrue(np.isnan(got[:, :, :-1]).all() and np.isfinite(got[:, :, -1]).all())
        for rows, columns in ((0, 5), (5, 0), (9, 4)):
            self.compile_onnx(attention(rows, columns, [onnx.node("LessOrEqual", "j i", "keep")], weights=ranges(rows, columns), fill=INFINITE))
            q, k, v = (random.standard_normal([1, 2, *s]).astype(np.float32) for s in ((rows, 16), (16, columns), (columns, 16)))
            ran = self.run_bundle({"q": q, "k": k, "v": v})
            self.assertEqual(ran.returncode, 0, ran.stderr)
            got, keep = self.result(), np.arange(columns)[None] <= np.arange(rows)[:, None]
            wanted = softmax(np.where(keep, q.astype(np.float64) @ k, INFINITE)) @ v if columns else np.zeros((1, 2, rows, 16))
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:])
