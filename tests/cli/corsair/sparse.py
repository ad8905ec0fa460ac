#!/usr/bin/env python3
"""Weights that are zero in tiles, on corsair: numpy's numbers, the bits of --sparsity off, fewer clocks and bytes, every stage the same. Usage:
sparse.py BIN [unittest arguments]. Exit 77 where numpy is not installed. A plain run takes samples, DMXC_LONG=1 takes all."""
import json
import pathlib
import re
import subprocess
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in (".", "sparse")]
from dynamic_shapes import BIN, np, onnx
from sampling import LONG, sample
from weights import SparseCase, weights

PATTERNS = ("random", "triangular", "diagonal", "rows", "columns", "blocks", "all")


class CorsairSparse(SparseCase):
    TARGET = "corsair:quads=1"

    def write(self, w, rows, bias=None, relu=False):
        """y = x w, or relu(x w + bias)."""
        held, nodes, last = [onnx.tensor("w", onnx.FLOAT, w.shape, raw=w.tobytes())], [("MatMul", "x w")], "y"
        if bias is not None:
            held.append(onnx.tensor("b", onnx.FLOAT, bias.shape, raw=bias.tobytes()))
            nodes.append(("Add", "v0 b"))
        if relu:
            nodes.append(("Relu", f"v{len(nodes) - 1}"))
        nodes = [onnx.node(op, reads, f"v{i}" if i + 1 < len(nodes) else last) for i, (op, reads) in enumerate(nodes)]
        (self.dir / "m.onnx").write_bytes(onnx.model(nodes, [onnx.info("x", onnx.FLOAT, [rows, w.shape[0]])],
                                                     [onnx.info("y", onnx.FLOAT, [rows, w.shape[1]])], weights=held))

    def run_on(self, x, team="", *flags, file="m.onnx"):
        """The output, and what the device says of the product and of all of the run."""
        self.compile_file(self.dir / file, "-t", "corsair" + (f":quads={team}" if team else ""), *flags)
        done = self.run_bundle({"x": x}, "--device-opt", f"report={self.dir / 'r.json'}")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads((self.dir / "r.json").read_text())["last"][0]["main"]
        product = next(task for task in report["tasks"] if task["name"].startswith("MatMul"))
        return np.load(self.dir / "out" / "out_y.npy"), product["last_clock"] - product["first_clock"], report["clocks"]

    def alone(self, x, y):
        """Clocks of the product on one quad where all rows come before and leave behind it, and the bits are the same."""
        text, marks = re.subn(r"lldmir\.bands(, )?", "", self.emit("schedule.bands"))
        self.assertEqual(marks, 2)
        (self.dir / "t.mlir").write_text(text.replace(", }", "}").replace(" {}", ""))
        apart, product, _ = self.run_on(x, "1", "--from", "schedule.bands", file="t.mlir")
        np.testing.assert_array_equal(apart.view(np.uint32), y.view(np.uint32))
        return product

    def test_numbers_and_bits(self):
        """Any pattern, any sizes, any team: near numpy's numbers, and with zeros left out the bits of all of them."""
        leaves_out = 0
        for seed in sample(range(42), 4):
            numbers, pattern = np.random.default_rng(seed), PATTERNS[seed % 7]
            m, k, n = (int(round(top ** numbers.uniform(low, 1))) for top, low in ((400, 0.5), (1400, 0.8), (1200, 0.8)))
            m = (m + 7) // 8 * 8 if seed % 4 == 3 else m  # so that rows are dealt
            w, x = weights(pattern, k, n, seed), numbers.standard_normal((m, k)).astype(np.float32)
            bias = numbers.standard_normal(n).astype(np.float32) if seed % 2 else None
            self.write(w, m, bias, relu=seed % 3 == 0)
            wanted = x.astype(np.float64) @ w + (0 if bias is None else bias)
            wanted = np.maximum(wanted, 0) if seed % 3 == 0 else wanted
            leaves_out += "lldmir.kept" in self.emit("partition") if LONG else 0
            for team in ("1", "", "8")[:2 + LONG]:
                with self.subTest(seed=seed, pattern=pattern, sizes=(m, k, n), team=team):
                    y = self.run_on(x, team)[0]
                    self.assertLessEqual(np.square(y - wanted).sum(), 1e-3 * np.square(wanted).sum())
                    np.testing.assert_array_equal(y.view(np.uint32), self.run_on(x, team, "--sparsity", "off")[0].view(np.uint32))
        self.assertGreaterEqual(leaves_out, 12 if LONG else 0)

    def test_clocks(self):
        """1024^3 beside dense weights: what the product takes, the run, of which DDR alone takes 72,592 on one quad (16,640 tiles of 65 bytes
        a row and f16 results, at 43.7 bytes a clock), and what the bundle has."""
        x = np.random.default_rng(1).standard_normal((1024, 1024)).astype(np.float32)
        bounds = {"triangular": 0.7, "diagonal": 0.35, "blocks": 0.55, "rows": 0.6, "columns": 0.7, "all": 0.35}
        floor = (1024 * 1024 * 65 / 64 + 1024 * 1024 * 2) / 43.7
        took, alone, bytes_of = {}, {}, {}
        for pattern in ("dense", *(bounds if LONG else ("triangular",))):
            self.write(weights(pattern, 1024, 1024), 1024)
            for team in ("", "1")[not LONG:]:
                y, *took[pattern, team] = self.run_on(x, team)
            bytes_of[pattern] = (self.dir / "m.bundle").stat().st_size  # of one quad
            alone[pattern] = self.alone(x, y)
        for (pattern, team), (product, run) in took.items():
            with self.subTest(pattern=pattern, team=team, took=took, alone=alone):
                if team:
                    self.assertLess(run, 1.03 * floor)
                if pattern != "dense":
                    self.assertLess(bytes_of[pattern], 0.85 * bytes_of["dense"])
                    self.assertLess(alone[pattern], bounds[pattern] * alone["dense"])
                    self.assertLess(product, took["dense", team][0] + 1)
                if pattern == "triangular":
                    self.assertLess(run, took["dense", team][1])

    @unittest.skipUnless(LONG, "of 9 million weights")
    def test_runs(self):
        """256 x 3072 by 3072 x 3072 on one quad: the arrays take longer than DDR, and the run is as much shorter as the product."""
        x, clocks = np.random.default_rng(1).standard_normal((256, 3072)).astype(np.float32), {}
        for pattern in ("dense", "triangular"):
            self.write(weights(pattern, 3072, 3072), 256)
            clocks[pattern] = self.run_on(x, "1")[2]
        self.assertLess(clocks["triangular"], 0.75 * clocks["dense"])

    def test_stages(self):
        """Every stop means the same, to the bit; `schedule.tiles` names the blocks."""
        self.write(weights("triangular", 1000, 900), 200, np.ones(900, np.float32))
        self.assertIn("lldmir.blocks", self.emit("schedule.tiles"))
        done = subprocess.run([BIN / "dmx-compare", self.dir / "m.onnx", "--random-inputs", "1", "--stages", "--", "-t", "corsair:quads=1"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        stops = re.findall(r"^(schedule\S*|run|memory) +(.*)$", done.stdout, re.M)
        self.assertGreater(len(stops), 8)
        self.assertEqual({said for _, said in stops}, {"equal to the bit"}, done.stdout)

    def test_text(self):
        """What a text leaves out must be zero, at whatever stop it says so; less may be left out than could be."""
        self.write(weights("triangular", 1024, 1024), 256)
        text, kept = self.emit("partition"), r"lldmir\.kept = \[array<i64: 0, "
        self.refused(self.changed(text, kept, "lldmir.kept = [array<i64: "), "partition", "MatMul_0", "lldmir.kept", "leaves out block 0")
        self.refused(self.changed(text, kept, "lldmir.kept = [array<i64: 0, 0, "), "partition", "lldmir.kept", "different blocks")
        self.refused(self.changed(text, r"lldmir\.kept = \[.*?\], lldmir", "lldmir.kept = [array<i64: 0>], lldmir"), "partition", "lldmir.kept", "rounds of columns")
        tiles = self.emit("schedule.tiles")
        self.refused(self.changed(tiles, r"lldmir\.blocks = array<i64: 0, ", "lldmir.blocks = array<i64: "), "schedule.tiles", "without tile 0 along K")
        self.refused(self.changed(tiles, r"lldmir\.blocks = array<i64: (?!0)", "lldmir.blocks = array<i64: 0, "), "schedule.tiles", "leaves out as zeros")
        self.refused(self.changed(tiles, r"lldmir\.blocks = array<i64: 0, ", "lldmir.blocks = array<i64: 99, "), "schedule.tiles", "lldmir.blocks")

    def test_report(self):
        """A fact that is used and what that saves; one that is not, and why."""
        def facts():
            self.compile_file(self.dir / "m.onnx", "-t", "corsair:quads=1", "--sparsity-report", self.dir / "r.json")
            return json.loads((self.dir / "r.json").read_text())["facts"]
        self.write(weights("triangular", 1024, 1024), 256)
        fact, = facts()
        self.assertEqual((fact["node"], fact["of"], fact["rule"]), ("MatMul_0", "its right operand", "j <= i"))
        self.assertNotIn("not_used", fact)
        self.assertLess(fact["issued"], 0.8 * fact["operations"])
        dense = weights("dense", 512, 512)
        (self.dir / "m.onnx").write_bytes(onnx.model(
            [onnx.node("Trilu", "x", "t", upper=0), onnx.node("MatMul", "t w", "y")], [onnx.info("x", onnx.FLOAT, [512, 512])],
            [onnx.info("y", onnx.FLOAT, [512, 512])], weights=[onnx.tensor("w", onnx.FLOAT, dense.shape, raw=dense.tobytes())]))
        fact, = facts()
        self.assertEqual(fact["of"], "its left operand")
        self.assertIn("the same for all rows", fact["not_used"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
