#!/usr/bin/env python3
"""The harness by a peer whose figures are known: ratios, quiet rounds, roofs, failures. No figure of ours is judged.
Usage: compare_peers_test.py BIN [unittest arguments]."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

import compare_peers

BIN = pathlib.Path(sys.argv[1]).resolve()
DIGITS = pathlib.Path(__file__).resolve().parents[2] / "tools/digits"


class Side:
    def __init__(self, *foreign):
        self.left, self.calls = list(foreign), 0

    def measure(self, threads):
        self.calls += 1
        return {"ms": float(self.calls), "load": None, "rss": 2.0, "foreign": self.left.pop(0)}


class Figures(unittest.TestCase):
    def test_spread(self):
        pairs = [({"ms": 2.0}, {"ms": 1.0}), ({"ms": 2.0}, {"ms": 6.0}), ({"ms": 1.0}, {"ms": 1.0})]
        self.assertEqual(compare_peers.spread(pairs, "ms"), {"median": 1.0, "min": 0.5, "max": 3.0})
        self.assertIsNone(compare_peers.spread([({"load": 1.0}, {"load": None})], "load"))

    def test_loud_rounds_are_repeated(self):
        ours, peer = Side(0.0, 0.9, 0.0), Side(0.0, 0.0, 0.0)
        pairs, busy = compare_peers.paired(ours, peer, 1, 2, 2)
        self.assertFalse(busy)
        self.assertEqual([own["ms"] for own, _ in pairs], [1.0, 3.0])

    def test_a_machine_that_is_never_quiet_is_marked(self):
        ours, peer = Side(*[0.9] * 6), Side(*[0.0] * 6)
        pairs, busy = compare_peers.paired(ours, peer, 1, 2, 2)
        self.assertTrue(busy)
        self.assertEqual(len(pairs), 2)

    def test_roof_of_a_task(self):
        roof = {"gflops": 100.0, "read_gbs": {"1024": 50.0, "1048576": 10.0}}
        self.assertEqual(compare_peers.bandwidth(roof, 1024), 50.0)
        self.assertEqual(compare_peers.bandwidth(roof, 1025), 10.0)
        self.assertEqual(compare_peers.bandwidth(roof, 1 << 30), 10.0)
        task = lambda name, ms, flops, size: {"name": name, "kernel": "k", "nodes": [], "mean_ms": ms, "flops": flops, "bytes": size}
        # 1 ms at the roof: 1e8 operations or 1e7 bytes from the large buffer.
        report = {"constant_bytes": 1 << 20, "arena_bytes": 1,
                  "tasks": [task("fast", 1.25, 1e8, 0), task("slow", 4.0, 1e8, 1e7), task("worst", 9.0, 0, 1e7), task("tiny", 0.01, 0, 0)]}
        slow = compare_peers.slow_tasks(types.SimpleNamespace(measure=lambda *_: {"report": report}), 1, roof)
        self.assertEqual([t["task"] for t in slow], ["worst", "slow"])
        self.assertAlmostEqual(slow[1]["of_roof"], 0.25)
        self.assertAlmostEqual(slow[1]["gflops"], 25.0)


class Run(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-bench-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        for name in ("digits", "broken"):
            (self.dir / "zoo" / name / "set0").mkdir(parents=True)
        shutil.copy(DIGITS / "digits.onnx", self.dir / "zoo/digits/model.onnx")
        shutil.copy(DIGITS / "images.npy", self.dir / "zoo/digits/set0/in_image.npy")
        (self.dir / "zoo/broken/model.onnx").write_bytes(b"no model")

    def compare(self, *more, peer="""printf '{"median_ms": %d.5, "create_ms": 7}\\n' {threads}"""):
        return subprocess.run([sys.executable, compare_peers.__file__, "--zoo", self.dir / "zoo", "--build", BIN.parent, "--rounds", "2",
                               "--seconds", "0.01", "--peer", peer, "--json", self.dir / "out.json", *more], capture_output=True, text=True)

    def test_table(self):
        done = self.compare("--models", "digits", "--threads", "1,2", "--roofs")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        result = json.loads((self.dir / "out.json").read_text())
        self.assertEqual([row["peer_ms"] for row in result["models"]], [1.5, 2.5])
        for row in result["models"]:
            self.assertLess(0, row["dmxc_ms"])
            self.assertLessEqual(row["latency"]["min"], row["peer_ms"] / row["dmxc_ms"] * 1.001)
            self.assertGreaterEqual(row["latency"]["max"], row["peer_ms"] / row["dmxc_ms"] * 0.999)
            self.assertIsNone(row["rss"], "the peer does not tell")
            self.assertGreaterEqual(row["arena"], 1)
        self.assertLess(0, result["roofs"]["1"]["gflops"])
        self.assertIn("geometric mean", done.stdout)

    def test_numerics_reach_the_compiler(self):
        self.assertEqual(self.compare("--models", "digits", "--numerics", "bf16").returncode, 0)
        done = self.compare("--models", "digits", "--numerics", "none")
        self.assertEqual(done.returncode, 1)
        self.assertIn("numerics", done.stdout)

    def test_errors(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not there")
        bundle = self.dir / "digits.bundle"
        subprocess.run([BIN / "dmxc", self.dir / "zoo/digits/model.onnx", "-o", bundle, "-q", "-t", "cpu:host"], check=True)
        for name, change in (("set0", 1.0), ("set1", 1.25)):  # the worst set counts: max|x - 1.25 x| / max|1.25 x|
            inputs = self.dir / "zoo/digits" / name
            inputs.mkdir(exist_ok=True)
            shutil.copy(DIGITS / "images.npy", inputs / "in_image.npy")
            subprocess.run([BIN / "dmx-run", bundle, "--inputs", inputs, "--output-dir", inputs, "-q"], check=True)
            for path in inputs.glob("out_*.npy"):
                numpy.save(path, numpy.load(path) * change)
        peer = self.dir / "peer.py"
        peer.write_text("import sys\nprint('{\"median_ms\": 1, \"rel_err\": 0.%s}' % sys.argv[1][-1])\n")
        done = self.compare("--models", "digits", "--errors", peer=f"{sys.executable} {peer} {{set}}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        ours, theirs = json.loads((self.dir / "out.json").read_text())["models"][0]["errors"]
        self.assertAlmostEqual(ours, 0.2, places=6)
        self.assertEqual(theirs, 0.1)

    def test_a_model_that_fails_is_named(self):
        done = self.compare()
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("broken               FAILED", done.stdout)
        self.assertEqual(json.loads((self.dir / "out.json").read_text())["failed"], ["broken"])

    def test_a_peer_without_figures_is_a_failure(self):
        done = self.compare("--models", "digits", peer="echo none {dir} {threads}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no median_ms in the peer's output", done.stdout)


LIBRARY = """
import numpy as np
class SessionOptions: pass
class InferenceSession:
    def __init__(self, path, options, providers):
        if not open(path, "rb").read(): raise RuntimeError("at the top\\nno graph")
        assert options.intra_op_num_threads == 3
    def get_outputs(self): return [type("Port", (), {"name": "y"})]
    def get_inputs(self): return [type("Port", (), {"name": "x"})]
    def run(self, names, feed): return [2 * feed["x"]]
"""


class ThePeer(unittest.TestCase):
    """peer.py with a runtime that doubles its input."""

    def setUp(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not there")
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-bench-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        (self.dir / "onnxruntime.py").write_text(LIBRARY)
        (self.dir / "m.onnx").write_bytes(b"graph")
        numpy.save(self.dir / "in_x.npy", numpy.array([1.0, -4.0]))
        numpy.save(self.dir / "out_y.npy", numpy.array([2.0, -10.0]))

    def peer(self, *arguments, path=None):
        return subprocess.run([sys.executable, pathlib.Path(compare_peers.__file__).with_name("peer.py"), *arguments, "--inputs", self.dir,
                               "--threads", "3", "--seconds", "0"], capture_output=True, text=True, env={"PYTHONPATH": str(path or self.dir)})

    def test_figures(self):
        done = self.peer("onnxruntime", self.dir / "m.onnx")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertAlmostEqual(report["rel_err"], 0.2)
        self.assertLessEqual(0, report["min_ms"])
        self.assertLessEqual(report["min_ms"], report["median_ms"])

    def test_refusals(self):
        (self.dir / "empty.onnx").write_bytes(b"")
        for arguments, said in (((self.dir / "empty.onnx",), "no graph"), ((self.dir / "m.onnx", "--precision", "f32"), "OpenVINO's")):
            done = self.peer("onnxruntime", *arguments)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)
        (self.dir / "in_x.npy").unlink()
        self.assertIn("no in_NAME.npy for input 'x'", self.peer("onnxruntime", self.dir / "m.onnx").stderr)
        (self.dir / "none").mkdir()
        done = self.peer("openvino", self.dir / "m.onnx", path=self.dir / "none")
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
