#!/usr/bin/env python3
"""A table whose rows are gathered and that is a product's right operand stands once in the bundle; the numbers are numpy's. Usage:
packed_rows.py BIN [unittest arguments]. Exit 77 where numpy is not installed."""
import json
import subprocess
import sys
import unittest

from dynamic_shapes import BIN, BundleTest, np, onnx

MICROSOFT = onnx.field(8, onnx.message((1, "com.microsoft"), (2, 1)))
IDS = np.array([[0, 49, 17], [16, 31, 48]])


def normal(*shape):
    return np.random.default_rng(shape[0]).standard_normal(shape).astype(np.float32)


class PackedRows(BundleTest):
    def write(self, nodes, outputs, weights, columns):
        """A model of ids (rows) and x (rows x columns)."""
        inputs = [onnx.info("ids", onnx.INT64, [2, "n"]), onnx.info("x", onnx.FLOAT, [2, "n", columns])]
        types = {"float32": onnx.FLOAT, "uint8": onnx.UINT8, "int64": onnx.INT64}
        constants = [onnx.tensor(n, types[str(v.dtype)], v.shape, raw=np.ascontiguousarray(v).tobytes()) for n, v in weights.items()]
        (self.dir / "m.onnx").write_bytes(
            onnx.model(nodes, inputs, [onnx.info(name, onnx.FLOAT, None) for name in outputs], weights=constants, extra=MICROSOFT))

    def floats(self, rows=50, columns=24, *more, outputs=""):
        table = normal(rows, columns)
        self.write([onnx.node("Gather", "w ids", "row"), onnx.node("Transpose", "w", "t", perm=[1, 0]), onnx.node("MatMul", "x t", "y"),
                    *more], ["row", "y", *outputs.split()], {"w": table}, columns)
        return table

    def blocks(self, bits, rows=50, columns=64, block=32):
        """MatMulNBits and GatherBlockQuantized of the same operands; gives the table's values."""
        random, count = np.random.default_rng(bits), columns // block
        codes = random.integers(0, 1 << bits, (rows, columns)).astype(np.uint8)
        scales = random.uniform(0.1, 1, (rows, count)).astype(np.float32)
        parts = codes.reshape(rows, -1, 8 // bits)
        packed = sum(parts[:, :, i].astype(np.uint8) << (bits * i) for i in range(8 // bits)).astype(np.uint8)
        attributes = {"bits": bits, "block_size": block}
        nodes = [onnx.node("Reshape", "w shape", "flat"),
                 onnx.node("GatherBlockQuantized", "flat ids scales", "row", "com.microsoft", gather_axis=0, quantize_axis=1, **attributes),
                 onnx.node("MatMulNBits", "x w scales", "y", "com.microsoft", K=columns, N=rows, **attributes)]
        self.write(nodes, ["row", "y"], {"w": packed.reshape(rows, count, -1), "scales": scales, "shape": np.array([rows, -1])}, columns)
        return (codes - float(1 << bits - 1)).reshape(rows, count, block) * scales[:, :, None]

    def entries(self):
        shown = subprocess.run([BIN / "dmx-inspect", self.dir / "m.bundle", "--what", "sizes", "--json"], capture_output=True, text=True)
        return [row for section, rows in json.loads(shown.stdout).items() if section.startswith("weights") for row in rows]

    def check(self, table, packed, ids=IDS):
        """Both outputs, and that the weights have these packings and no others."""
        table, x = table.reshape(len(table), -1), normal(*ids.shape, table.size // len(table))
        result = self.run_bundle({"ids": ids, "x": x})
        self.assertEqual(result.returncode, 0, result.stderr)
        got = {f.stem.removeprefix("out_"): np.load(f) for f in (self.dir / "out").glob("*.npy")}
        np.testing.assert_array_equal(got["row"], table.astype(np.float32)[ids])
        np.testing.assert_allclose(got["y"], x.astype(np.float64) @ table.T, rtol=1e-4, atol=1e-4)
        self.assertEqual(sorted(entry.get("packing", "") for entry in self.entries() if entry["bytes"] > 64), sorted(packed))

    def test_floats(self):
        for level in ("x86-64-v2", "x86-64-v3", "host"):
            for rows, columns in ((50, 24), (64, 7), (17, 3)):
                with self.subTest(level=level, rows=rows, columns=columns):
                    table = self.floats(rows, columns)
                    self.compile_file(self.dir / "m.onnx", "-t", f"cpu:{level}")
                    self.check(table, ["panel16"], IDS % rows)

    def test_few_bits(self):
        for bits, packed in ((4, ["blocks16", "panel16"]), (2, ["blocks16", "panel16"]), (8, ["blocks16", "panel16"])):
            for level in ("x86-64-v2", "host"):
                with self.subTest(bits=bits, level=level):
                    table = self.blocks(bits)
                    self.compile_file(self.dir / "m.onnx", "-t", f"cpu:{level}")
                    self.check(table, packed)

    def test_an_index_outside_fails(self):
        self.floats()
        self.compile_file(self.dir / "m.onnx")
        result = self.run_bundle({"ids": IDS + 49, "x": normal(2, 3, 24)})
        self.assertEqual(result.returncode, 1)
        self.assertIn("index", result.stderr)

    def test_another_reader_keeps_rows(self):
        """What adds to the table reads it row by row, so rows are there anyway and gathers read those."""
        table = self.floats(50, 24, onnx.node("ReduceMax", "x", "m", keepdims=0), onnx.node("Add", "w m", "z"), outputs="z")
        self.compile_file(self.dir / "m.onnx")
        self.check(table, ["", "panel16"])

    def test_rounded_weights(self):
        """Rows are what the product multiplies by, to the bit: bf16 to nearest even, or s8 times the row's greatest magnitude over 127."""
        def bf16(table):
            bits = table.view(np.uint32)
            return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)

        def s8(table):
            scale = np.abs(table).max(1, keepdims=True) / np.float32(127)
            codes = np.rint(np.divide(table, scale, out=np.zeros(table.shape), where=scale > 0, dtype=np.float64))
            return codes.astype(np.float32) * scale

        for mode, form, rounded in (("bf16-weights", "panel16-bf16", bf16), ("int8-columns", "panel16-s8", s8)):
            for level in ("x86-64-v2", "x86-64-v3", "host"):
                for rows, columns in ((1000, 24), (2501, 7)):
                    with self.subTest(mode=mode, level=level, rows=rows):
                        table = self.floats(rows, columns)
                        self.compile_file(self.dir / "m.onnx", "-t", f"cpu:{level}", "--numerics", mode)
                        self.check(rounded(table), [form], np.concatenate((IDS, [[rows - 1, 999], [0, 998]]), 1))

    def test_rounded_rows_of_zeros_and_without_a_number(self):
        table = self.floats(1000, 24)
        model = (self.dir / "m.onnx").read_bytes()
        changed = table.copy()
        changed[17], changed[31, 5] = 0, np.inf
        (self.dir / "m.onnx").write_bytes(model.replace(table.tobytes(), changed.tobytes()))
        self.compile_file(self.dir / "m.onnx", "--numerics", "int8-columns")
        result = self.run_bundle({"ids": IDS, "x": normal(2, 3, 24)})
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = np.load(self.dir / "out/out_row.npy")
        self.assertTrue((rows[0, 2] == 0).all() and np.isnan(rows[1, 1]).all() and np.isfinite(rows[0, :2]).all())

    def test_the_text_of_a_phase_holds_it(self):
        table, text = self.floats(), self.dir / "p.mlir"
        subprocess.run([BIN / "dmxc", self.dir / "m.onnx", "-t", "cpu:x86-64-v3", "--emit", "partition", "-o", text], check=True, capture_output=True)
        lines = text.read_text().splitlines()
        self.assertEqual(sum("panel16" in line for line in lines), 2)
        self.compile_file(text, "--from", "partition")
        self.check(table, ["panel16"])
        # Text that takes the packing from the product takes it from the rows too.
        product = next(i for i, line in enumerate(lines) if "matmul-packed" in line)
        lines[product] = lines[product].split(" attributes ")[0] + ' attributes {strategy = {algorithm = "matmul", packed = {}}} {'
        text.write_text("\n".join(lines))
        command = [BIN / "dmxc", text, "--from", "partition", "-t", "cpu:x86-64-v3", "-o", self.dir / "m.bundle"]
        result = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("'packed' of its strategy is", result.stderr)
        self.assertIn("it has none; leave it out", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
