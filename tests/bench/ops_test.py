#!/usr/bin/env python3
"""ops.py by a peer whose answers are known. No figure of ours is judged. Usage: ops_test.py BIN [unittest arguments]."""
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

BIN = pathlib.Path(sys.argv[1]).resolve()
BENCH = pathlib.Path(__file__).resolve().parent

# A runtime that knows Abs, or thinks that it does.
LIBRARY = """
import numpy as np, os
class SessionOptions: pass
class InferenceSession:
    def __init__(self, path, options, providers): pass
    def run(self, names, feed): return [np.abs(feed["x"]) + float(os.environ["OFF_BY"])]
    def io_binding(self): return Binding()
    def get_outputs(self): return [type("Port", (), {"name": "t0"})]
    def run_with_iobinding(self, bound): np.abs(bound.given["x"])
class Binding:
    def bind_cpu_input(self, name, value): self.given = {name: value}
    def bind_output(self, name): pass
"""


@unittest.skipUnless(all(importlib.util.find_spec(name) for name in ("numpy", "onnx")), "numpy or onnx is not there")
class Operators(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-ops-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        (self.dir / "onnxruntime.py").write_text(LIBRARY)

    def ops(self, *more, off_by=0):
        return subprocess.run([sys.executable, BENCH / "ops.py", "--build", BIN.parent, "--rounds", "2", "--seconds", "0", "--json", self.dir / "out.json",
                               "--table", self.dir / "page.md", *more], capture_output=True, text=True, env={"PYTHONPATH": str(self.dir), "OFF_BY": str(off_by)})

    def test_a_row(self):
        done = self.ops("--only", "^Abs", "--threads", "1,2", "--before", BIN.parent)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        [row] = json.loads((self.dir / "out.json").read_text())["rows"]
        self.assertFalse(row["differs"])
        self.assertEqual(sorted(row["2"]), ["before", "ours", "peer"])
        self.assertLess(0, row["roof"])
        self.assertIsNone(row["peak"])
        cells = (self.dir / "page.md").read_text().splitlines()[-1].split("|")
        self.assertAlmostEqual(float(cells[4]), row["1"]["peer"] / row["1"]["ours"], delta=0.006)

    def test_share_of_peak(self):
        """Of a product, over a peak that is said: half of twice as much."""
        sys.path.insert(0, str(BENCH))
        import onnx
        import op_cases
        import ops
        [case] = [case for case in op_cases.cases() if case.name == "MatMul 16x1024 by 1024x1024"]
        onnx.save(case.model(), self.dir / "model.onnx")
        subprocess.run([BIN / "dmxc", self.dir / "model.onnx", "-q", "-o", self.dir / "m.bundle"], check=True)
        (self.dir / "set").mkdir()
        for name, value in case.arrays().items():
            ops.np.save(self.dir / "set" / f"in_{name}.npy", value)
        share = lambda gflops: ops.share_of_peak(BIN.parent, self.dir / "m.bundle", self.dir, {"gflops": gflops})
        self.assertTrue(0.1 < share(100) / share(200) / 2 < 10)
        self.assertLess(1, share(1))  # any machine multiplies more than a number a nanosecond

    def test_what_differs_is_marked(self):
        done = self.ops("--only", "^Abs", "--threads", "2", off_by=0.1)
        self.assertTrue(json.loads((self.dir / "out.json").read_text())["rows"][0]["differs"])
        self.assertRegex(done.stdout, "(?m)^!Abs")

    def test_no_row(self):
        done = self.ops("--only", "Abs of nothing")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no row's name matches 'Abs of nothing'", done.stderr)

    def test_rows_below_one_come_first(self):
        sys.path.insert(0, str(BENCH))
        import ops
        row = lambda name, ours: {"name": name, "differs": False, 1: {"ours": ours, "peer": 1.0}}
        page = ops.page([row("fast", 0.5), row("slow", 2.0), row("even", 1.0)], types.SimpleNamespace(threads=[1], before=None), "machine")
        self.assertEqual(re.findall("slow|even|fast", page), ["slow", "even", "fast"])

    def test_cases_have_names_of_their_own(self):
        sys.path.insert(0, str(BENCH))
        import op_cases
        names = [case.name for case in op_cases.cases()]
        self.assertEqual(len(names), len(set(names)))
        self.assertLess(120, len(names))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
