#!/usr/bin/env python3
"""Logits of a decoder that is made from seeds, its weights kept in blocks, against numpy in f64 with the model's weights: they may be no further off
than numpy's are with weights that it rounds itself. Usage: decoder_logits.py BIN [unittest arguments]. 3 M parameters in a plain run; with
DMXC_LONG=1 also 100 M, whose bundle and memory are measured. Exit 77 where numpy is not installed."""
import math
import multiprocessing
import re
import sys
import unittest

from block_weights import BlockTest, normal, np, onnx, rounded, rounded_rows
from sampling import LONG, sample

MODES = ("int8", "int8-weights", "int4-weights", "int8-weights-zeros:64", "int4-weights-zeros:128")
#        width, heads, layers, inner, words: of 3 M and 100 M parameters
SIZES = [(256, 4, 2, 512, 2048)] + [(768, 12, 10, 2048, 24576)] * LONG
TOKENS = 24


class Decoder:
    """A decoder of gated layers, its norms without weights, as ONNX and in numpy."""

    def __init__(self, width, heads, layers, inner, words):
        self.width, self.heads, self.layers, self.words = width, heads, layers, words
        random = np.random.default_rng(width)
        shapes = {"embedding": (words, width), "head": (width, words)}
        for i in range(layers):
            shapes |= {f"{n}{i}": (width, width) for n in "qkvo"} | {f"gate{i}": (width, inner), f"up{i}": (width, inner), f"down{i}": (inner, width)}
        self.weights = {n: (random.standard_normal(s) / math.sqrt(s[0] if n != "embedding" else 1)).astype(np.float32) for n, s in shapes.items()}
        self.count = sum(w.size for w in self.weights.values())

    def as_kept(self, mode):
        """The weights as numpy rounds them: along k, a table along its rows."""
        return {n: rounded(mode, w.T).T if n == "embedding" else rounded(mode, w) for n, w in self.weights.items()}

    def logits(self, ids, weights, mode="strict"):
        w = {n: x.astype(np.float64) for n, x in weights.items()}
        norm = lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
        times = lambda x, name: rounded_rows(mode, x) @ w[name]
        split = lambda x: x.reshape(TOKENS, self.heads, -1).transpose(1, 0, 2)
        x = w["embedding"][ids]
        for i in range(self.layers):
            h = norm(x)
            q, k, v = (split(times(h, f"{n}{i}")) for n in "qkv")
            scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1]) + np.triu(np.full((TOKENS, TOKENS), -1e9), 1)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            mixed = (scores / scores.sum(-1, keepdims=True)) @ v
            x = x + times(mixed.transpose(1, 0, 2).reshape(TOKENS, -1), f"o{i}")
            h = norm(x)
            gate = times(h, f"gate{i}")
            x = x + times(gate / (1 + np.exp(-gate)) * times(h, f"up{i}"), f"down{i}")
        return times(norm(x), "head")

    def model(self):
        nodes, node = [], onnx.node
        add = lambda *arguments, **attributes: nodes.append(node(*arguments, **attributes))

        def norm(x, y):
            add("Mul", f"{x} {x}", f"{y}s")
            add("ReduceMean", f"{y}s", f"{y}m", axes=[-1])
            add("Add", f"{y}m epsilon", f"{y}e")
            add("Sqrt", f"{y}e", f"{y}r")
            add("Div", f"{x} {y}r", y)

        add("Gather", "embedding ids", "x0")
        for i in range(self.layers):
            norm(f"x{i}", f"n{i}")
            for n in "qkv":
                add("MatMul", f"n{i} {n}{i}", f"{n}p{i}")
                add("Reshape", f"{n}p{i} split", f"{n}r{i}")
                add("Transpose", f"{n}r{i}", f"{n}t{i}", perm=[1, 2, 0] if n == "k" else [1, 0, 2])
            add("MatMul", f"qt{i} kt{i}", f"s{i}")
            add("Mul", f"s{i} scale", f"sc{i}")
            add("Add", f"sc{i} mask", f"sm{i}")
            add("Softmax", f"sm{i}", f"p{i}", axis=-1)
            add("MatMul", f"p{i} vt{i}", f"a{i}")
            add("Transpose", f"a{i}", f"at{i}", perm=[1, 0, 2])
            add("Reshape", f"at{i} join", f"aj{i}")
            add("MatMul", f"aj{i} o{i}", f"ao{i}")
            add("Add", f"x{i} ao{i}", f"y{i}")
            norm(f"y{i}", f"h{i}")
            add("MatMul", f"h{i} gate{i}", f"g{i}")
            add("Sigmoid", f"g{i}", f"gs{i}")
            add("Mul", f"g{i} gs{i}", f"gg{i}")
            add("MatMul", f"h{i} up{i}", f"u{i}")
            add("Mul", f"gg{i} u{i}", f"gu{i}")
            add("MatMul", f"gu{i} down{i}", f"d{i}")
            add("Add", f"y{i} d{i}", f"x{i + 1}")
        norm(f"x{self.layers}", "last")
        add("MatMul", "last head", "logits")
        small = {"epsilon": np.float32(1e-6), "scale": np.float32(1 / math.sqrt(self.width // self.heads)),
                 "mask": np.triu(np.full((TOKENS, TOKENS), -1e9, np.float32), 1)}
        tensors = [onnx.tensor(n, onnx.FLOAT, np.shape(v), raw=np.asarray(v).tobytes()) for n, v in (self.weights | small).items()]
        tensors += [onnx.tensor(n, onnx.INT64, [len(v)], raw=np.array(v).tobytes()) for n, v in
                    {"split": [TOKENS, self.heads, -1], "join": [TOKENS, self.width]}.items()]
        return onnx.model(nodes, [onnx.info("ids", onnx.INT64, [TOKENS])], [onnx.info("logits", onnx.FLOAT, [TOKENS, self.words])], weights=tensors)


def relative(got, wanted):
    return np.sqrt(((got - wanted) ** 2).mean() / (wanted ** 2).mean())


class Logits(BlockTest):
    def test_no_further_off_than_numpys_rounding(self):
        for size in SIZES:
            decoder = Decoder(*size)
            ids = np.random.default_rng(5).integers(0, decoder.words, TOKENS)
            (self.dir / "m.onnx").write_bytes(decoder.model())
            exact = decoder.logits(ids, decoder.weights)
            for mode in sample(MODES, 2):
                with self.subTest(parameters=decoder.count, mode=mode):
                    report = self.compile(mode, "-t", "cpu:host")
                    self.assertIn(f"rounded {2 + 7 * decoder.layers} weights", report)
                    off = relative(self.outputs({"ids": ids})["logits"].astype(np.float64), exact)
                    numpys = relative(decoder.logits(ids, decoder.as_kept(mode), mode), exact)
                    print(f"{decoder.count / 1e6:.1f} M, {mode}: {off:.3e}, by numpy {numpys:.3e}", flush=True)
                    self.assertLess(off, 1.02 * numpys)
                    self.assertGreater(off, 0.98 * numpys)  # it did round
                    if mode == "int4-weights":
                        bytes_each = (self.dir / "m.bundle").stat().st_size / decoder.count
                        self.assertLess(bytes_each, 0.6 if size[0] > 256 else 0.75)  # code is most of what a small one has besides

    def write_gigabyte(self):
        width, layers = 4096, 16
        raw = normal(1, width, width).tobytes()
        weights = [onnx.tensor(f"w{i}", onnx.FLOAT, (width, width), raw=raw) for i in range(layers)]
        nodes = [onnx.node("MatMul", f"x{i} w{i}", f"x{i + 1}") for i in range(layers)]
        port = lambda name: onnx.info(name, onnx.FLOAT, [1, width])
        (self.dir / "m.onnx").write_bytes(onnx.model(nodes, [port("x0")], [port(f"x{layers}")], weights=weights))

    @unittest.skipUnless(LONG, "writes a gigabyte: with DMXC_LONG=1")
    def test_a_gigabyte_beside_the_file(self):
        """Beside the mapped file no more than half of it."""
        maker = multiprocessing.get_context("fork").Process(target=self.write_gigabyte)  # what this process has held counts for those it starts
        maker.start()
        maker.join()
        for mode in ("int8-weights", "int4-weights"):
            peak = float(re.search(r'"peak_rss_mb": ([\d.]+)', self.compile(mode, "-t", "cpu:x86-64-v3", "--time-report", "json"))[1])
            print(f"1 GiB of f32, {mode}: peak {peak:.0f} MiB", flush=True)
            self.assertLess(peak, 1024 + 512)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
