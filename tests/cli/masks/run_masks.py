#!/usr/bin/env python3
"""Masks that a run knows more of than the compiler: ids of documents, padding, positions, whole matrices. They are rules with values that operands
bring, tiles of keys are skipped by what these are in a run, and answers are numpy's of the dense graph. Usage: run_masks.py BIN [unittest
arguments]. Exit 77 where numpy is not installed."""
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import dynamic_shapes  # exits where numpy is not installed
from dynamic_shapes import BundleTest, np, onnx, sample, softmax
from sampling import LONG, sampled

HEADS, SIZE = 3, 16
LENGTHS = (300, 1300) if LONG else (1300,)  # whole rows of scores, and tiles
LEAST = float(np.finfo(np.float32).min)
TYPES = {np.dtype(np.int64): onnx.INT64, np.dtype(np.int32): onnx.INT32, np.dtype(bool): onnx.BOOL, np.dtype(np.float32): onnx.FLOAT}


class Graph:
    """Attention of n tokens; `values` are the inputs of a run, those of masks beside q, k and v."""

    def __init__(self, n):
        self.n, self.nodes, self.weights, self.infos, self.values, self.random = n, [], [], [], {}, np.random.default_rng(n)
        for name in "qkv":
            self.input(name, self.random.standard_normal([1, HEADS, n, SIZE]).astype(np.float32))
        self.scores = self.op("MatMul", "q", self.op("Transpose", "k", perm=[0, 1, 3, 2]))

    def op(self, kind, *inputs, **attributes):
        self.nodes.append(onnx.node(kind, " ".join(inputs), f"v{len(self.nodes)}", **attributes))
        return f"v{len(self.nodes) - 1}"

    def constant(self, array):
        array = np.ascontiguousarray(array)
        self.weights.append(onnx.tensor(f"c{len(self.weights)}", TYPES[array.dtype], list(array.shape), raw=array.tobytes()))
        return f"c{len(self.weights) - 1}"

    def input(self, name, array):
        self.infos.append(onnx.info(name, TYPES[array.dtype], list(array.shape)))
        self.values[name] = array
        return name

    def causal(self):
        place = lambda shape: self.constant(np.arange(self.n).reshape(shape))
        return self.op("LessOrEqual", place([1, self.n]), place([self.n, 1]))

    def same(self, ids):
        """ids [1, n]: whether a row's is a key's."""
        axes = lambda *a: self.constant(np.array(a))
        return self.op("Equal", self.op("Unsqueeze", ids, axes(1, 3)), self.op("Unsqueeze", ids, axes(1, 2)))

    def where(self, keep, fill):
        return self.op("Where", keep, self.scores, self.constant(np.float32(fill)))

    def model(self, masked):
        self.nodes += [onnx.node("Softmax", masked, "w", axis=-1), onnx.node("MatMul", "w v", "y")]
        return onnx.model(self.nodes, self.infos, [onnx.info("y", onnx.FLOAT, None)], weights=self.weights)


@sampled(4)
class RunMasks(BundleTest):
    def build(self, graph, masked, *options):
        (self.dir / "m.onnx").write_bytes(graph.model(masked))
        self.compile_file(self.dir / "m.onnx", "--sparsity-report", str(self.dir / "r.json"), *options)
        one, = json.loads((self.dir / "r.json").read_text())["attentions"]
        return one

    def run_once(self, values):
        ran = self.run_bundle(values)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return np.load(next((self.dir / "out").glob("*y.npy")))

    def dense(self, values, scores):
        return softmax(scores(values["q"].astype(np.float64) @ values["k"].swapaxes(2, 3))) @ values["v"]

    def check(self, graph, masked, rule, scores, hidden=None):
        """Against numpy, and where rows `seeing` and keys `hidden` lie tiles apart: not even NaN of such values is read."""
        one = self.build(graph, masked)
        self.assertEqual((one.get("rule", one.get("unknown")), one["algorithm"]), (rule, "attention-tiles"))
        got, wanted = self.run_once(graph.values), self.dense(graph.values, scores)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5, equal_nan=True)
        if hidden is None or graph.n <= 1024:  # whole rows of scores begin at multiples of 256
            return
        seeing, keys = hidden
        values = {**graph.values, "v": graph.values["v"].copy()}
        values["v"][:, :, keys] = np.nan
        np.testing.assert_allclose(self.run_once(values)[:, :, seeing], wanted[:, :, seeing], rtol=1e-4, atol=1e-5)

    def kept(self, keep, fill=-np.inf):
        return lambda scores: np.where(keep, scores, fill)

    # --- ids

    def documents(self, n):
        return np.repeat(np.arange(5, dtype=np.int64) * 7 - 3, [n // 3, n // 4, 3, n // 6, n - n // 3 - n // 4 - 3 - n // 6])

    def test_documents(self):
        for n in LENGTHS:
            ids, tril = self.documents(n), np.tril(np.ones((n, n), bool))
            for given in (False, True) if LONG else (True,):
                g = Graph(n)
                name = g.input("ids", ids[None]) if given else g.constant(ids[None])
                keep = g.op("And", g.same(name), g.causal())
                own = "'ids'" if given else "'c0'"
                self.check(g, g.where(keep, -np.inf), f"{own}[j] == {own}[i] and j <= i", self.kept((ids[:, None] == ids) & tril), (slice(n // 3 + n // 4 + 3 + n // 6, n), slice(0, n // 4)))

    def test_other_orders(self):
        """Ids that are not sorted, of which tiles have some and not all."""
        n = LENGTHS[-1]
        for fill in (-np.inf, LEAST) if LONG else (LEAST,):
            g = Graph(n)
            ids = g.random.permutation(self.documents(n)).astype(np.int32)
            ids[: n // 4] = 99
            self.check(g, g.where(g.same(g.input("ids", ids[None])), fill), "'ids'[j] == 'ids'[i]", self.kept(ids[:, None] == ids), (slice(n // 2, n), slice(0, n // 8)))

    def test_positions(self):
        n = LENGTHS[0]
        g = Graph(n)
        at = np.sort(g.random.integers(0, n, n))
        row = g.op("Reshape", g.input("position_ids", at[None]), g.constant(np.array([n, 1])))
        keep = g.op("LessOrEqual", g.constant(np.arange(n)[None]), row)
        self.check(g, g.where(keep, -np.inf), "j <= 'position_ids'[i]", self.kept(np.arange(n)[None] <= at[:, None]))

    def test_heads(self):
        """A window for each head."""
        n = LENGTHS[-1]
        g = Graph(n)
        wide, delta = np.array([40, 700, 90]).reshape(1, HEADS, 1, 1), np.arange(n)[:, None] - np.arange(n)
        difference = g.op("Sub", g.constant(np.arange(n)[:, None]), g.constant(np.arange(n)[None]))
        keep = g.op("And", g.op("Less", difference, g.constant(wide)), g.op("GreaterOrEqual", difference, g.constant(np.int64(0))))
        one = self.build(g, g.where(keep, -np.inf))
        self.assertRegex(one["rule"], r"^i < j \+ 'c\d' and j <= i$")
        np.testing.assert_allclose(self.run_once(g.values), self.dense(g.values, self.kept((delta >= 0) & (delta < wide))), rtol=1e-4, atol=1e-5)
        self.assertLess((self.dir / "m.bundle").stat().st_size, 1 << 20)

    # --- padding

    def test_padding(self):
        """Bools that choose, and numbers that are added: none, half and all of the keys."""
        n = LENGTHS[-1]
        for added, low in ((False, -np.inf), (True, -np.inf), (True, LEAST)):
            for count in (n, n // 2, 0) if LONG else (n // 2, 0) if low == LEAST else ():
                g = Graph(n)
                keep = np.arange(n) < count
                if added:
                    masked = g.op("Add", g.scores, g.input("pad", np.where(keep, 0, low).astype(np.float32).reshape(1, 1, 1, n)))
                else:
                    masked = g.where(g.input("pad", keep.reshape(1, 1, 1, n)), low)
                hidden = (slice(0, n), slice(n * 3 // 4, n)) if count == n // 2 else None
                with np.errstate(invalid="ignore"):
                    self.check(g, masked, "'pad'[j] > -1e+38" if added else "'pad'[j]", self.kept(keep, low), hidden)

    def test_padding_of_numbers(self):
        """(1 - mask) * least, beside a causal mask, as exporters write it."""
        n = LENGTHS[0]
        g = Graph(n)
        keep = np.arange(n) >= n // 2
        mask = g.op("Cast", g.op("Reshape", g.input("mask", keep[None].astype(np.int64)), g.constant(np.array([1, 1, 1, n]))), to=onnx.FLOAT)
        pad = g.op("Mul", g.op("Sub", g.constant(np.float32(1)), mask), g.constant(np.float32(LEAST)))
        tril = np.tril(np.ones((n, n), bool))
        wanted = lambda scores: np.where(tril, np.where(keep, scores, LEAST), -np.inf)
        self.check(g, g.op("Where", g.causal(), g.op("Add", g.scores, pad), g.constant(np.float32(-np.inf))), "j <= i and 'Mul_0'[j] > -1e+38", wanted)

    # --- whole matrices

    def test_matrices(self):
        n = LENGTHS[-1]
        for added in (False, True) if LONG else (False,):
            g = Graph(n)
            blocks = g.random.random((1 + n // 128, 1 + n // 128)) < 0.4
            blocks[0, :4], blocks[0, 4:] = True, False
            keep = np.kron(blocks, np.ones((128, 128), bool))[:n, :n]
            keep[5, 700] |= not added
            if added:
                masked = g.op("Add", g.scores, g.input("mask", np.where(keep, 0, -np.inf).astype(np.float32)))
            else:
                masked = g.where(g.input("mask", keep[None, None]), -np.inf)
            with np.errstate(invalid="ignore"):
                self.check(g, masked, "'mask'[i, j] > -1e+38" if added else "'mask'[i, j]", self.kept(keep), (slice(0, 100), slice(6 * 128, n)))

    def test_same_bits(self):
        """Whatever is skipped."""
        n = LENGTHS[-1]
        g = Graph(n)
        keep = g.op("And", g.same(g.input("ids", self.documents(n)[None])), g.input("mask", g.random.random((1, 1, 1, n)) < 0.7))
        masked = g.where(keep, -np.inf)
        nodes = list(g.nodes)
        self.build(g, masked)
        with_skips = self.run_once(g.values)
        g.nodes = nodes
        self.assertEqual(self.build(g, masked, "--sparsity", "off")["algorithm"], "attention-all-tiles")
        self.assertEqual(self.run_once(g.values).tobytes(), with_skips.tobytes())

    # --- what a user promises

    RULE = "(b, h, i, j): 0 <= i - j < 200 or j < 10"

    def promised(self, n, dtype):
        g = Graph(n)
        i, j = np.arange(n)[:, None], np.arange(n)
        keep = ((j <= i) & (i - j < 200) | (j < 10))[None, None]
        given = np.where(keep, 0, -np.inf).astype(dtype) if dtype == np.float32 else keep.astype(dtype)
        mask = g.input("mask", given)
        if dtype == np.int64:
            mask = g.op("Cast", mask, to=onnx.BOOL)
        masked = g.op("Add", g.scores, mask) if dtype == np.float32 else g.where(mask, -np.inf)
        (self.dir / "m.onnx").write_bytes(g.model(masked))
        return g, keep

    def test_promises(self):
        n = LENGTHS[0]
        for dtype in (bool, np.int64, np.float32) if LONG else (bool,):
            g, keep = self.promised(n, dtype)
            self.compile_file(self.dir / "m.onnx", "--mask", f"mask={self.RULE}", "--sparsity-report", str(self.dir / "r.json"))
            one, = json.loads((self.dir / "r.json").read_text())["attentions"]
            self.assertEqual(one["rule"], "(j <= i and i <= j + 199) or (j + 200 <= i and j <= 9) or (i < j and j <= 9)")
            values = {name: value for name, value in g.values.items() if name != "mask"}
            np.testing.assert_allclose(self.run_once(values), self.dense(values, self.kept(keep)), rtol=1e-4, atol=1e-5)

    def compare(self, values, *options):
        folder = self.dir / "given"
        folder.mkdir(exist_ok=True)
        for name, value in values.items():
            np.save(folder / f"{name}.npy", value)
        return subprocess.run([dynamic_shapes.BIN / "dmx-compare", self.dir / "m.onnx", "--inputs", folder, "--", *options], capture_output=True, text=True)

    def test_broken_promise(self):
        g, _ = self.promised(70, bool)
        done = self.compare(g.values, "--mask", f"mask={self.RULE}")
        self.assertEqual(done.returncode, 0, done.stderr)
        g.values["mask"][0, 0, 3, 65] ^= True
        done = self.compare(g.values, "--mask", f"mask={self.RULE}")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("--mask mask: the promise is broken: element (0, 0, 3, 65) of what is given is 1.0", done.stderr)

    def test_bad_promises(self):
        self.promised(40, bool)
        for text, said, column in sample((("mask", "expected INPUT=RULE", None), ("mask=(i, j) j <= i", "expected ':' and the rule", 7),
                                   ("mask=(i, j): j <= k", "'k' is no axis", 13), ("mask=(i, i): i <= i", "this axis is there twice", 4),
                                   ("mask=(i, j): j <= i and", "expected an axis or a number", 18), ("mask=(i, j): (i - j) // 2 == 0", "may be negative", 16),
                                   ("mask=(i, j): i * j < 3", "one side of '*' is a number", 12), ("mask=(i, j): i % 0 == 1", "is a number from 1 on", 12),
                                   ("mask=(i, j): i + j", "expected a comparison", 13), ("mask=(i, j): j <= i )", "expected 'and', 'or', or the end", 15),
                                   (f"mask=(i, j): j <= {2**50}", "numbers are at most 2^40", 13), ("mask=(i, j): " + "(" * 100, "more than 64 brackets", None),
                                   ("masks=(b, h, i, j): j <= i", "the model has no such input; it has 'q', 'k', 'v', 'mask'", None),
                                   ("mask=(i, j): j <= i", "the rule has 2 axes, and the input 4", None)), 5):
            done = subprocess.run([dynamic_shapes.BIN / "dmxc", self.dir / "m.onnx", "-o", self.dir / "o", "--mask", text], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, (text, done.stderr))
            self.assertIn(said, done.stderr, text)
            if column is not None:
                self.assertIn("\n  " + " " * column + "^", done.stderr, text)
            self.assertFalse((self.dir / "o").exists())

    def test_other_length(self):
        """Ids of more keys than there are: refused by the importer where they are constants, by a run where they are brought."""
        n = 40
        g = Graph(n)
        (self.dir / "m.onnx").write_bytes(g.model(g.where(g.same(g.constant(np.arange(n + 1)[None])), -np.inf)))
        done = subprocess.run([dynamic_shapes.BIN / "dmxc", self.dir / "m.onnx", "-o", self.dir / "m.bundle"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"Where.*broadcast|broadcast.*Where")
        g = Graph(n)
        self.build(g, g.where(g.same(g.input("ids", np.arange(n)[None])), -np.inf))
        ran = self.run_bundle({**g.values, "ids": np.arange(n + 1)[None]})
        self.assertEqual(ran.returncode, 2, ran.stderr)
        self.assertIn("'ids'", ran.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
