#!/usr/bin/env python3
"""Weights in blocks of files of f16 and bf16, of products of a batch and of a mixture's experts, against numpy that rounds them itself. Usage:
block_files.py BIN [unittest arguments]. Exit 77 where numpy is not installed."""
import itertools
import pathlib
import re
import sys
import unittest
import zipfile

from block_weights import BlockTest, LEVELS, bound, half, normal, np, onnx, rounded, rounded_rows
from sampling import sample

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "conformance/contrib"))
from definitions_moe import mixed  # noqa: E402
from rounded_weights import to_bf16  # noqa: E402

MODES = ("int8-weights", "int4-weights", "int8-weights-zeros:64", "int4-weights-zeros")
#        its number in ONNX, what it makes of numbers, and of them bytes
SHORT = {"f16": (onnx.FLOAT16, half, lambda x: x.astype(np.float16).tobytes()),
         "bf16": (onnx.BFLOAT16, to_bf16, lambda x: (to_bf16(x).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes())}


class Files(BlockTest):
    def write_short(self, kind, nodes, inputs, outputs, weights):
        """Inputs and outputs of f32, cast, around `nodes` of `kind`."""
        number, _, raw = SHORT[kind]
        port = lambda ports: [onnx.info(n, onnx.INT64 if n == "ids" else onnx.FLOAT, s) for n, s in ports.items()]
        casts = [onnx.node("Cast", n, f"{n}_short", to=number) for n in inputs if n != "ids"]
        casts += [onnx.node("Cast", f"{n}_short", n, to=onnx.FLOAT) for n in outputs]
        tensors = [onnx.tensor(n, number, w.shape, raw=raw(w)) for n, w in weights.items()]
        (self.dir / "m.onnx").write_bytes(onnx.model(casts[:-len(outputs)] + nodes + casts[-len(outputs):], port(inputs), port(outputs), weights=tensors))

    def share_equal(self, got, wanted):
        return (got.astype(np.float64) == wanted).mean()

    def test_products(self):
        """Weights are rounded from the file's numbers, the product is computed in f32 and rounded to them once: but for sums that lie near
        the middle of two of these numbers that is the result, to the bit."""
        shapes = ((1, 512, 150, False), (4, 300, 130, True), (40, 256, 200, False))
        for kind, mode, (m, k, n, turned) in sample(itertools.product(SHORT, MODES, shapes), 8):
            w = SHORT[kind][1](normal(k, k, n)).astype(np.float32)
            self.write_short(kind, [onnx.node("Gemm", "x_short w", "y_short", transB=int(turned))], {"x": [m, k]}, {"y": [m, n]},
                             {"w": np.ascontiguousarray(w.T) if turned else w})
            self.assertIn(f"matmul-blocks{mode[3]}", self.partition(mode))
            x = SHORT[kind][1](normal(m, m, k))
            wanted = [SHORT[kind][1]((x @ v).astype(np.float32)) for v in (rounded(mode, w), w.astype(np.float64))]
            for level in LEVELS:
                with self.subTest(kind=kind, mode=mode, m=m, level=level):
                    self.compile(mode, "-t", level)
                    got = self.outputs({"x": x.astype(np.float32)})["y"]
                    self.assertGreater(self.share_equal(got, wanted[0]), 0.98)
                    self.assertLess(self.share_equal(got, wanted[1]), 0.7)  # weights that are kept would be found out

    def test_rows_of_a_table(self):
        for kind, mode in sample(itertools.product(SHORT, MODES), 2):
            table, ids = SHORT[kind][1](normal(3, 400, 256)).astype(np.float32), np.array([1, 399, 5])
            self.write_short(kind, [onnx.node("Gather", "table ids", "e_short")], {"ids": [3]}, {"e": [3, 256]}, {"table": table})
            self.assertIn("rounded 1 weight", self.compile(mode))
            wanted = SHORT[kind][1](rounded(mode, table.T).T[ids].astype(np.float32))
            np.testing.assert_array_equal(self.outputs({"ids": ids})["e"].astype(np.float64), wanted, f"{kind}, {mode}")


class Batches(BlockTest):
    def test_products_of_a_batch(self):
        """One matrix for all of a batch, whose size a run may bring."""
        for mode, batch in sample(itertools.product(MODES, ((2, 3), ("b", 5), ("b", 2, "m"))), 4):
            k, n = 300, 130
            w = normal(7, k, n)
            self.write([onnx.node("MatMul", "x w", "y")], {"x": [*batch, k]}, {"y": [*batch, n]}, {"w": w})
            for level in LEVELS:
                self.compile(mode, "-t", level)
                for sizes in ({"b": 1, "m": 1}, {"b": 3, "m": 1}, {"b": 4, "m": 17}):
                    x = normal(1, *(sizes.get(dim, dim) for dim in batch), k)
                    with self.subTest(mode=mode, x=x.shape, level=level):
                        self.expect_close(self.outputs({"x": x})["y"], x, rounded(mode, w))

    def test_matrices_of_a_batch_stay(self):
        """A matrix for each of a batch, which no unpacking kernel reads."""
        w, x = normal(1, 3, 200, 100), normal(2, 3, 4, 200)
        self.write([onnx.node("MatMul", "x w", "y")], {"x": [3, 4, 200]}, {"y": [3, 4, 100]}, {"w": w})
        self.assertIn("numerics-unused", self.compile("int8-weights"))
        self.expect_close(self.outputs({"x": x})["y"], x, w.astype(np.float64))


class Shared(BlockTest):
    """Weights that several products read: each kernel unpacks them itself, and they are in the bundle once."""

    def check(self, mode, wanted, most, *arguments):
        """wanted: of each output the rows and the matrix, as k x n."""
        text = self.partition(mode, *arguments)
        name = "matmul-blocks8-quads" if mode == "int8" else "matmul-blocks" + re.search(r"bits = (\d)", text)[1]
        self.assertEqual(text.count("dmir.region"), len(wanted), "what is dequantized alone is written in each run")
        self.assertEqual(text.count(f'"{name}"'), len(wanted))
        inputs = {f"x{i}": x for i, (x, _) in enumerate(wanted)}
        for level in LEVELS:
            with self.subTest(mode=mode, level=level):
                self.compile(mode, "-t", level, *arguments)
                got = self.outputs(inputs)
                for i, (x, w) in enumerate(wanted):
                    self.expect_close(got[f"y{i}"], rounded_rows(mode, x), w, bound(mode, len(w)))
                with zipfile.ZipFile(self.dir / "m.bundle") as bundle:
                    self.assertLess(bundle.getinfo("weights/model.safetensors").file_size, most)

    def test_rounded_weights(self):
        """Of one row and of many, as they lie and, of a matrix, turned round."""
        w = normal(1, 256, 160)
        self.write([onnx.node("MatMul", "x0 w", "y0"), onnx.node("Gemm", "x1 w", "y1")], {"x0": [1, 256], "x1": [20, 256]},
                   {"y0": [1, 160], "y1": [20, 160]}, {"w": w})
        for mode in ("int8-weights", "int8"):
            self.check(mode, [(normal(m, m, 256), rounded(mode, w)) for m in (1, 20)], 256 * 160 * 1.2)
        self.write([onnx.node("Transpose", "w", "t", perm=[1, 0]), onnx.node("MatMul", "x0 t", "y0"), onnx.node("MatMul", "x1 t", "y1"),
                    onnx.node("MatMul", "x2 t", "y2")], {f"x{i}": [2 + i, 160] for i in range(3)}, {f"y{i}": [2 + i, 256] for i in range(3)}, {"w": w})
        self.check("int4-weights", [(normal(m, m, 160), rounded("int4-weights", w.T)) for m in (2, 3, 4)], 256 * 160 * 0.7)

    def test_weights_of_the_file(self):
        """Nodes MatMulNBits of one matrix: its codes, scales and zero points."""
        k, n, block = 256, 160, 32
        random = np.random.default_rng(3)
        codes, zeros = (random.integers(0, 16, (n, size)).astype(np.uint8) for size in (k, k // block))
        scales = random.uniform(0.1, 1, (n, k // block)).astype(np.float32)
        packed = lambda x: np.ascontiguousarray(x[:, ::2] | x[:, 1::2] << 4)
        tensors = {"w": packed(codes).reshape(n, k // block, -1), "zeros": packed(zeros), "scales": scales}
        nodes = [onnx.node("MatMulNBits", f"x{i} w scales zeros", f"y{i}", "com.microsoft", K=k, N=n, bits=4, block_size=block) for i in range(2)]
        port = lambda name, *shape: onnx.info(name, onnx.FLOAT, shape)
        (self.dir / "m.onnx").write_bytes(onnx.model(
            nodes, [port("x0", 1, k), port("x1", 9, k)], [port("y0", 1, n), port("y1", 9, n)],
            weights=[onnx.tensor(name, onnx.FLOAT if name == "scales" else onnx.UINT8, x.shape, raw=x.tobytes()) for name, x in tensors.items()],
            extra=onnx.field(8, onnx.message((1, "com.microsoft"), (2, 1)))))
        parts = codes.reshape(n, -1, block).astype(np.float64) - zeros[:, :, None]
        matrix = (parts * scales[:, :, None]).reshape(n, k).T
        self.check("strict", [(normal(m, m, k), matrix) for m in (1, 9)], k * n * 0.8)


class Mixtures(BlockTest):
    def write_mixture(self, tokens, experts, width, inner):
        shapes = {"first": (experts, inner, width), "second": (experts, width, inner)}
        weights = {n: normal(len(n), *s) * np.float32(0.1) for n, s in shapes.items()}
        node = onnx.node_of("MoE", ["x", "router", "first", "", "second"], "y", domain="com.microsoft", k=2, activation_type="relu")
        port = lambda name, *shape: onnx.info(name, onnx.FLOAT, shape)
        (self.dir / "m.onnx").write_bytes(onnx.model(
            [node], [port("x", tokens, width), port("router", tokens, experts)], [port("y", tokens, width)],
            weights=[onnx.tensor(n, onnx.FLOAT, w.shape, raw=w.tobytes()) for n, w in weights.items()],
            extra=onnx.field(8, onnx.message((1, "com.microsoft"), (2, 1)))))
        return weights

    def test_experts(self):
        """Rows in groups, each of which has a matrix with scales of its own."""
        experts, width, inner = 4, 256, 192
        for mode, tokens in sample(itertools.product(MODES, (1, 6, 70)), 4):
            weights = self.write_mixture(tokens, experts, width, inner)
            self.assertIn(f"grouped-matmul-blocks{mode[3]}", self.partition(mode))
            x, router = normal(tokens, tokens, width), normal(tokens + 1, tokens, experts) * np.float32(3)
            kept = {n: [rounded(mode, m.T).T for m in w] for n, w in weights.items()}
            answers = [mixed(x.astype(np.float64), router.astype(np.float64), None,
                             lambda e, of=of: [(of["first"][e].astype(np.float64), 0), (of["second"][e].astype(np.float64), 0), None],
                             {"k": 2, "activation_type": "relu"}) for of in (kept, weights)]
            for level in LEVELS:
                with self.subTest(mode=mode, tokens=tokens, level=level):
                    self.assertIn("rounded 2 weights", self.compile(mode, "-t", level))
                    got = self.outputs({"x": x, "router": router})["y"]
                    off = [np.sqrt(((got - y) ** 2).mean() / (y ** 2).mean()) for y in answers]
                    self.assertLess(off[0], 2e-6)
                    self.assertGreater(off[1], 2e-3)  # weights that are kept would be found out


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
