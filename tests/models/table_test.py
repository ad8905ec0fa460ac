#!/usr/bin/env python3
"""STATUS.md is what table.py writes of the list and of itself, and a result of this machine takes the place of an old one."""

import json
import pathlib
import tempfile
import unittest

import catalog
import decode
import masks
import table

PAGE = pathlib.Path(__file__).resolve().parent / "STATUS.md"


class Table(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix="dmxc-table-")
        self.addCleanup(place.cleanup)
        self.files = pathlib.Path(place.name)

    def test_the_page_is_fresh(self):
        text = PAGE.read_text()
        self.assertEqual(table.write(catalog.exports(), self.files, text), text, "tools/models --table writes it again")

    def test_the_page_of_decoders_is_fresh(self):
        text = (PAGE.parent / "DECODERS.md").read_text()
        self.assertEqual(decode.page({}, text), text, "tools/models --decode writes it again")
        answer = {"equal": 3, "close": 0, "different": [[0, 1]], "worst": 1e-6, "tokens_per_s": 2.0, "peer_tokens_per_s": 1.0,
                  "ratio": [1, 2, 3], "prompt_ratio": [1, 2, 3], "model_bytes": 100, "bundle_bytes": 101}  # fmt: skip
        page = decode.page(decode.row_of("a-decoder", answer, "2026-01-02"), text)
        self.assertIn("| a-decoder | 3 | 0 | 1 | 1.0e-06 | 2.0 | 1.0 | 2.00 [1.00-3.00] | 2.00 [1.00-3.00] | 0 | 1.010 | 2026-01-02 |", page)

    def test_the_page_of_masks_is_fresh(self):
        text = (PAGE.parent / "MASKS.md").read_text()
        self.assertEqual(masks.write({}, text), text, "tools/models --masks writes it again")

    def test_attentions_are_counted(self):
        """Softmaxes between two products, whatever kernel computes them: not one over classes, and not one whose scores nothing multiplied."""
        ops = """    %0 = dmir.matmul %arg0, %arg1 : (tensor<1x4x8xf32>, tensor<1x8x4xf32>) -> tensor<1x4x4xf32> loc(#loc1)
    %1 = dmir.mask %0 {fill = 0xFF800000 : f32, keep = [#set]} : (tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
    %2 = dmir.softmax %1 {axis = 2 : i64} : (tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
    %3 = dmir.is_nan %2 : (tensor<1x4x4xf32>) -> tensor<1x4x4xi1>
    %4 = dmir.select %3, %zero, %2 : (tensor<1x4x4xi1>, tensor<f32>, tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
    %5 = dmir.matmul %4, %arg2 : (tensor<1x4x4xf32>, tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
    %6 = dmir.softmax %5 {axis = 2 : i64} : (tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
    %7 = dmir.softmax %arg3 {axis = 2 : i64} : (tensor<1x4x4xf16>) -> tensor<1x4x4xf16>
    %8 = dmir.matmul %7, %arg4 : (tensor<1x4x4xf16>, tensor<1x4x8xf16>) -> tensor<1x4x8xf16>
"""
        self.assertEqual(masks.Text(ops.splitlines()).attentions(), ["f32"])
        found = {"types": {"f32": 2}, "regions": 1, "masks": [{"rule": "j <= i", "rest": "'p' of 1 x 4"}, {"unknown": "'c' (dmir.cast): it reads 'x'"}]}
        row = masks.row_of("a", "e", "gpt2", found, "pass")
        self.assertEqual([row["one region"], row["by rule"]], ["1", "1 of 2"])
        page = masks.write({("a", "e"): row})
        self.assertIn("1 of 2 attentions with scores of f32 are one region", page)
        self.assertIn("0 of 1 files of decoders, of 1 families, name the rule of each mask (0 %)", page)
        self.assertEqual(masks.write({}, page), page)

    def test_rows(self):
        exports = catalog.exports(["tiny"])
        one, other, third = exports[0], exports[1], exports[2]

        def judged(export, state, why=""):
            folder = self.files / export.name
            folder.mkdir(exist_ok=True)
            (folder / "meta.json").write_text(json.dumps({"file": "model.onnx", "bytes": 1}))
            (folder / "judge.json").write_text(json.dumps({"open": {"state": state, "why": why, "compile_s": 1.2, "day": "2026-01-02"}}))

        judged(one, "refused", "a|b /far/away/from/here: 'x'")
        judged(other, "pass")
        first = table.rows_of(table.write(exports, self.files))
        self.assertEqual((first[one.name]["open"], first[one.name]["why"]), ("refused", "a\\|b here: 'x'"))
        self.assertEqual((first[other.name]["open"], first[other.name]["judged"]), ("pass", "2026-01-02"))
        self.assertNotIn(third.name, first)

        page = table.write(exports, self.files)
        (self.files / other.name / "meta.json").unlink()
        judged(one, "pass")
        second = table.rows_of(table.write(exports, self.files, page))
        self.assertEqual(second[one.name]["open"], "pass")
        self.assertEqual(second[other.name], first[other.name])

    def test_what_the_page_says_of_itself(self):
        """Days before the newest change are marked, and the mark, that day and the count of operators stay when the page is written again."""
        one, other = catalog.exports(["tiny"])[:2]
        for export, day in ((one, "2026-01-02"), (other, "2026-01-03")):
            (self.files / export.name).mkdir()
            (self.files / export.name / "meta.json").write_text(json.dumps({"file": "model.onnx", "bytes": 1}))
            (self.files / export.name / "judge.json").write_text(json.dumps({"open": {"state": "pass", "compile_s": 1, "day": day}}))
        page = table.write([one, other], self.files, "", "2026-01-03", "Of the 5 operators all are imported.")
        self.assertIn("| ~2026-01-02 |", page)
        self.assertIn("| 2026-01-03 |", page)
        self.assertIn("- Of the 5 operators", page)
        self.assertEqual(table.write([one, other], self.files, page), page)
        for export in (one, other):  # on a machine without the files
            (self.files / export.name / "meta.json").unlink()
        self.assertEqual(table.write([one, other], self.files, page), page)


if __name__ == "__main__":
    unittest.main()
