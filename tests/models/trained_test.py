#!/usr/bin/env python3
"""TRAINED.md and README's table of it are what trained_table.py writes, a new result takes the place of an old one, and a result that
differs is told from one that does not."""

import json
import pathlib
import tempfile
import unittest

import numpy as np

import trained
import trained_one
import trained_packages
import trained_session
import trained_table

RAN = {"state": "ran", "day": "2026-01-02", "inputs": 20, "asked": 12, "same": 11, "grade": 0.97, "calls": 3, "error": 0.5, "sqnr": 12.3,
       "compile_s": 1.2, "bundle_bytes": 2500000, "why": "", "differs": "a|b"}  # fmt: skip


class Table(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix="dmxc-trained-")
        self.addCleanup(place.cleanup)
        self.results = pathlib.Path(place.name)

    def write(self, each, mode, result):
        path = self.results / each.name / f"{mode}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(result))
        return trained_table.rows_of(trained_table.write([each], trained.MODES, self.results, self.page))

    def test_the_pages_are_fresh(self):
        for path, text in trained_table.pages(trained.PACKAGES, trained.MODES, self.results).items():
            self.assertEqual(text, path.read_text(), f"{path.name}: tools/models --trained --table writes it again")
        self.assertIn("<!-- trained -->", trained_table.README.read_text())

    def test_every_package_has_a_row(self):
        names = {row["package"] for row in trained_table.rows_of(trained_table.PAGE.read_text())}
        self.assertEqual(names, {each.name for each in trained.PACKAGES})

    def test_rows(self):
        each, self.page = trained_packages.Magika, ""
        (row,) = self.write(each, "bf16-weights", RAN)
        self.assertEqual((row["inputs"], row["same"], row["grade"], row["SQNR dB"], row["why"]), ("12 of 20", "11", "97.0 %", "12", "a\\|b"))
        self.assertEqual(trained_table.cell(row), "11/12 (97.0 %)")
        self.page = trained_table.write([each], trained.MODES, self.results, "")
        (self.results / each.name / "bf16-weights.json").unlink()
        default, kept = self.write(each, "default", {"state": "refused", "why": "x.onnx: no", "day": "2026-01-03"})
        self.assertEqual(kept, row)
        self.assertEqual((default["why"], trained_table.cell(default)), ("refused: x.onnx: no", "refused"))

    def test_a_wrong_answer_is_told(self):
        package = trained_packages.CaptchaWhisperer()
        same, grade, first = trained_one.compared(package, ["AB12", "CD", "EF"], ["AB12", "CX", None])
        self.assertEqual((same, grade, first), (1, 0.5, "CX instead of CD"))

    def test_outputs_are_measured(self):
        bundles = trained_session.Bundles(self.results, self.results, "")
        bundles.measure("y", np.array([3.0, 4.0], "f4"), np.array([3.0, 4.0], "f4"))
        self.assertEqual((bundles.error, bundles.sqnr()), (0.0, None))
        bundles.measure("y", np.array([3.0, 4.5], "f4"), np.array([3.0, 4.0], "f4"))
        self.assertEqual(bundles.error, 0.125)
        self.assertAlmostEqual(bundles.sqnr(), 23.0103, places=3)
        bundles.measure("z", np.array([np.nan], "f4"), np.array([1.0], "f4"))
        self.assertEqual(bundles.sqnr(), -np.inf)

    def test_the_control_differs(self):
        bundles = trained_session.Bundles(self.results, self.results, "", control=True)
        reference = {"y": np.arange(6, dtype="f4").reshape(2, 3), "z": np.arange(3)}
        got = bundles.outputs("x.onnx", {}, reference)
        self.assertTrue(all((got[name] != values).any() and got[name].dtype == values.dtype for name, values in reference.items()))

    def test_grades(self):
        self.assertEqual(trained_packages.characters_right("kitten", "sitting"), 0.5)
        self.assertEqual(trained_packages.overlap([0, 0, 2, 2], [1, 0, 3, 2]), 1 / 3)
        notes = trained_packages.BasicPitch()
        self.assertEqual(notes.grade([[0, 1, 60], [1, 2, 62]], [[0.04, 1, 60], [1, 2, 63]]), 0.5)
        scores = trained_packages.DnsMos()
        self.assertFalse(scores.same({"a": 1.0}, {"a": 1.006}))


if __name__ == "__main__":
    unittest.main()
