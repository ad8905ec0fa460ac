#!/usr/bin/env python3
"""Constant weights of the array that are zero in tiles: numpy's numbers, the bits of --sparsity off, fewer clocks, fewer words of DDR; and
texts that leave out other rows. Usage: zeros.py BIN [unittest arguments]. Exit 77 where numpy is not installed. A plain run takes samples,
DMXC_LONG=1 takes all."""
import json
import pathlib
import re
import shutil
import sys
import unittest

from checks import np, onnx_file, sampling
from tools_case import ToolsCase

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "sparse"))
from weights import kept  # noqa: E402

PATTERNS = ("random", "triangular", "diagonal", "rows", "columns", "blocks", "identity", "all")
KINDS = {"f32": (np.float32, onnx_file.FLOAT), "i8": (np.int8, onnx_file.INT8), "i32": (np.int32, onnx_file.INT32)}
BEHIND = ("", "relu", "bias", "bias relu", "residual", "gelu", "bias gelu")


class Model:
    """y = x w and what is behind it: numbers of which bf16 and sums of f32 hold all."""

    def __init__(self, seed, pattern, m, k, n, kind="f32", behind="", dims=None):
        self.kind, self.dims = kind, dims or [m, k]
        numbers = np.random.default_rng(seed)
        element, code = KINDS[kind]
        draw = lambda *shape: numbers.integers(-8, 9, shape).astype(element)
        w = draw(k, n)
        self.w = np.where(kept(pattern, k, n, seed), w, np.where(w < 0, element(-0.0), element(0)))
        self.inputs, self.weights, self.y = {"x": draw(m, k)}, [], None
        self.weights.append(onnx_file.tensor("w", code, [k, n], raw=self.w.tobytes()))
        wide = (self.inputs["x"].astype(np.float64) @ self.w.astype(np.float64)).astype(np.int64)
        value, self.nodes = "p", [onnx_file.node("MatMulInteger" if kind == "i8" else "MatMul", "x w", "p")]
        for word in behind.split() if kind == "f32" else ():
            value, wide = self.behind(word, value, wide, draw)
        self.nodes.append(onnx_file.node("Identity", value, "y"))
        self.y = None if "gelu" in behind else wide.astype(np.float32 if kind == "f32" else np.int32)

    def behind(self, word, value, y, draw):
        result = word
        if word == "residual":
            self.inputs["r"] = draw(*y.shape)
            self.nodes.append(onnx_file.node("Add", f"{value} r", result))
            return result, y + self.inputs["r"].astype(np.int64)
        if word == "bias":
            row = draw(y.shape[1])
            self.weights.append(onnx_file.tensor("row", onnx_file.FLOAT, row.shape, raw=row.tobytes()))
            self.nodes.append(onnx_file.node("Add", f"{value} row", result))
            return result, y + row.astype(np.int64)
        self.nodes.append(onnx_file.node("Relu", value, result) if word == "relu" else onnx_file.node("Gelu", value, result))
        return result, np.maximum(y, 0)

    def save(self, folder):
        code = KINDS[self.kind][1]
        infos = [onnx_file.info(name, code, self.dims if name == "x" else value.shape) for name, value in self.inputs.items()]
        wide = onnx_file.FLOAT if self.kind == "f32" else onnx_file.INT32
        (folder / "m.onnx").write_bytes(onnx_file.model(self.nodes, infos, [onnx_file.info("y", wide, [self.dims[0], self.w.shape[1]])],
                                                        weights=self.weights, opset=20))
        shutil.rmtree(folder / "data", ignore_errors=True)
        (folder / "data").mkdir()
        for name, value in self.inputs.items():
            np.save(folder / f"data/in_{name}.npy", value)


class Zeros(ToolsCase):
    def compile(self, source="m.onnx", *arguments, code=0):
        return self.tool("dmxc", source, "-q", "-t", "aie", "-o", "m.bundle", *arguments, code=code)

    def run_bundle(self):
        """The result and the report's sums."""
        self.tool("dmx-run", "m.bundle", "--inputs", "data", "--output-dir", "out", "--device-opt", "report=r.json")
        report = json.loads((self.dir / "r.json").read_text())["last"]
        figures = {key: sum(kernel["main"][key] for kernel in report) for key in ("clocks", "model_macs")}
        figures["ddr"] = sum(kernel["main"]["read_bytes"]["DDR"] for kernel in report)
        return np.load(self.dir / "out/out_y.npy"), figures

    def emit(self, phase, *arguments):
        self.tool("dmxc", "m.onnx", "-q", "-t", "aie", "--emit", phase, "-o", "t.mlir", *arguments)
        return (self.dir / "t.mlir").read_text()

    def resume(self, text, phase, code=0):
        (self.dir / "t.mlir").write_text(text)
        return self.compile("t.mlir", "--from", phase, "--allow-external-data", self.dir, code=code)

    def both(self):
        """With zeros left out, and without; the same bits."""
        found = {}
        for mode in ("on", "off"):
            self.compile("m.onnx", "--sparsity", mode)
            found[mode] = self.run_bundle()
        np.testing.assert_array_equal(found["on"][0].view(np.uint32), found["off"][0].view(np.uint32))
        return found["on"], found["off"][1]

    def test_numbers_and_bits(self):
        """Any pattern, any sizes, all that may be behind a product."""
        fewer = 0
        for seed in sampling.sample(range(120), 40):
            numbers = np.random.default_rng(seed)
            pattern, kind = PATTERNS[seed % len(PATTERNS)], ("f32", "f32", "f32", "i8", "i32")[seed % 5]
            m, k, n = (int(round(top ** numbers.uniform(0.4, 1))) for top in (300, 700, 700))
            with self.subTest(seed=seed, pattern=pattern, kind=kind, sizes=(m, k, n)):
                model = Model(seed, pattern, m, k, n, kind, BEHIND[int(numbers.integers(len(BEHIND)))])
                model.save(self.dir)
                (y, figures), dense = self.both()
                if model.y is not None:
                    np.testing.assert_array_equal(y, model.y)
                self.assertLessEqual(figures["clocks"], 1.1 * dense["clocks"])
                fewer += figures["model_macs"] < dense["model_macs"]
        self.assertGreater(fewer, 0)

    def test_rows_that_a_run_brings(self):
        """A bound on the rows, fewer in a run."""
        model = Model(5, "triangular", 70, 256, 300, behind="bias", dims=["rows", 256])
        model.save(self.dir)
        self.compile("m.onnx", "--dim", "rows=1..200")
        y, figures = self.run_bundle()
        np.testing.assert_array_equal(y, model.y)
        self.assertLess(figures["model_macs"], 0.8 * 70 * 256 * 300)

    def test_clocks(self):
        """By default flags; what is zero is not read, and no rows that would meet it."""
        m, k, n = (1024, 1024, 1024) if sampling.LONG else (96, 512, 768)
        bounds = {"triangular": (0.7, 0.75), "diagonal": (0.35, 0.35), "rows": (0.6, 0.55), "columns": (0.6, 0.65), "blocks": (0.5, 0.5), "all": (0.2, 0.2)}
        for pattern, (clocks, ddr) in bounds.items() if sampling.LONG else [("triangular", bounds["triangular"])]:
            Model(1, pattern, m, k, n).save(self.dir)
            (_, figures), dense = self.both()
            print(f"{pattern} {m} x {k} x {n}: {figures} of {dense}, {figures['clocks'] / dense['clocks']:.3f}")
            self.assertLess(figures["clocks"], (clocks if sampling.LONG else clocks + 0.1) * dense["clocks"], pattern)  # small ones fill and drain longer
            if sampling.LONG:  # else rows of a stay where there are no runs
                self.assertLess(figures["ddr"], ddr * dense["ddr"], pattern)

    def test_texts(self):
        """Each text goes on to the same words; the rows that it keeps are kept, and of what is not zero none may go."""
        model = Model(2, "triangular", 100, 256, 512)
        model.save(self.dir)
        self.compile()
        y, figures = self.run_bundle()
        np.testing.assert_array_equal(y, model.y)
        partition = self.emit("partition")
        lists = re.search(r"kept = \[(array<.*?>(?:, array<.*?>)*)\]", partition)
        self.assertTrue(lists)
        for text, phase in ((partition, "partition"), (self.emit("schedule.grid"), "schedule.grid"), (self.emit("schedule"), "schedule")):
            self.resume(text, phase)
            again, same = self.run_bundle()
            np.testing.assert_array_equal(again, model.y)
            self.assertEqual(same, figures)
        rows = re.findall(r"array<i64: (\d+), (\d+)>", lists[1])
        last = max(range(len(rows)), key=lambda block: int(rows[block][0]))
        begin, end = map(int, rows[last])
        self.assertGreater(begin, 0)
        derived = re.sub(r'algorithm = "[^"]*", |skips = \["right"\], |flops = \d+ : i64, |size = \d+ : i64|(?<!_)rows = \d+ : i64, ', "", partition).replace(", }", "}")
        text = lambda *ends: derived.replace(lists[1], lists[1].replace(f"array<i64: {begin}, {end}>", f"array<i64{': ' if ends else ''}{', '.join(map(str, ends))}>"))
        self.resume(text(0, end), "partition")  # more than has to be
        again, more = self.run_bundle()
        np.testing.assert_array_equal(again, model.y)
        self.assertGreater(more["model_macs"], figures["model_macs"])
        for ends, why in (((), r"leaves out row \d+, column \d+ of its constant, which is not zero"), ((begin + 1, end), "whole pairs of tiles"),
                          ((end, begin), "has something else"), ((begin, 1 << 20), "runs of pairs of tiles ascend")):
            self.assertRegex(self.resume(text(*ends), "partition", code=1), why)
        self.resume(re.sub(r'packed = \{"1" = \{.*?\}\}, ', 'packed = {"1" = {form = "bf16"}}, ', derived), "partition")  # all of it
        again, dense = self.run_bundle()
        np.testing.assert_array_equal(again, model.y)
        self.assertEqual(dense["model_macs"], 100 * 256 * 512)

    def facts(self, source, *arguments):
        self.tool("dmxc", source, "-q", "-t", "aie", "--sparsity-report", "s.json", "-o", "m.bundle", *arguments)
        return json.loads((self.dir / "s.json").read_text())["facts"]

    def test_report(self):
        """Facts that were used with what they saved, and those that were not with the reason."""
        Model(4, "triangular", 100, 256, 512).save(self.dir)
        fact, = self.facts("m.onnx")
        self.assertEqual((fact["of"], fact["operations"]), ("its right operand", 2 * 100 * 256 * 512))
        self.assertNotIn("not_used", fact)
        self.compile()
        self.assertEqual(fact["issued"], 2 * self.run_bundle()[1]["model_macs"])
        Model(4, "blocks", 100, 512, 512).save(self.dir)  # no rule says them
        fact, = self.facts("m.onnx")
        self.assertLess(fact["issued"], 0.8 * fact["operations"])
        self.assertEqual(self.facts("m.onnx", "--sparsity", "off"), [])
        (self.dir / "left.mlir").write_text("""func.func @main(%x: tensor<128x128xf32> {dmir.name = "x"}, %b: tensor<128x128xf32> {dmir.name = "b"}) -> (tensor<128x128xf32> {dmir.name = "y"}) {
  %m = dmir.mask %x {keep = [affine_set<(i, j) : (i - j >= 0)>], fill = 0.0 : f32} : (tensor<128x128xf32>) -> tensor<128x128xf32>
  %y = dmir.matmul %m, %b : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}
""")
        fact, = self.facts("left.mlir")
        self.assertEqual((fact["of"], fact["not_used"]), ("its left operand", "rows of the first operand come whole: runs of tiles are those of a packed second one"))

    def test_a_wrong_range_is_found(self):
        """A text of the grid whose shim reads other rows of a than those that meet the block's panel."""
        model = Model(3, "rows", 100, 512, 128)
        model.save(self.dir)
        text = self.emit("schedule.grid")
        self.resume(text, "schedule.grid")
        np.testing.assert_array_equal(self.run_bundle()[0], model.y)
        put = re.search(r"dlir\.put @a_in.*", text)[0]
        wrong = re.sub(r"(%a\[[^]]*)\]", r"\g<1> + 64]", put)
        self.assertNotEqual(wrong, put)
        self.resume(text.replace(put, wrong), "schedule.grid")
        self.assertTrue((self.run_bundle()[0] != model.y).any())
        register = re.search(r"dlir\.register 0 \[(\d+)\]", text)
        self.assertRegex(self.resume(text.replace(register[0], f"dlir.register 0 [{int(register[1]) + 1}]"), "schedule.grid", code=1), r"is filled \d+ times where it is drained")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
