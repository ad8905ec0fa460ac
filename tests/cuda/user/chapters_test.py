#!/usr/bin/env python3
"""The chapters of tools/examples/hopper: kernels in Python that pass in any order of turns, that NVIDIA's assembler takes without spills, whose clocks are in the order
that is claimed, and whose authors' faults are named with their line. With DMXC_LONG=1 all of them, 20 seeds, and the clocks of 4096^3.
Usage: chapters_test.py BIN REPO [unittest arguments]. Exit 77 without numpy."""
import os
import re
import shutil
import subprocess
import sys
import unittest

from written import BIN, EXAMPLES, REPO, Case, find_ptxas, np, onnx

from sampling import LONG, sample, sampled

HOPPER = REPO / "tools/examples/hopper"
CHAPTERS = sorted(file.stem for file in HOPPER.glob("ch*_*.py"))
PRODUCTS = [name for name in CHAPTERS if name > "ch5"]


@sampled(3)
class Chapters(Case):
    def chapter(self, name, *options, change=None, code=0):
        """What a chapter says; with (old, new) of its text changed."""
        folder = self.dir / "examples/hopper"
        if not folder.exists():
            shutil.copytree(HOPPER, folder)
            (self.dir / "python").symlink_to(REPO / "tools/python")
        if change:
            text = (HOPPER / f"{name}.py").read_text()
            self.assertIn(change[0], text)
            (folder / f"{name}.py").write_text(text.replace(*change, 1))
        environment = {**os.environ, "DMXC_BIN": str(BIN), "DMXK_SIM": "on", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([sys.executable, folder / f"{name}.py", *map(str, options)], capture_output=True, text=True, env=environment, cwd=self.dir)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_they_pass(self):
        self.assertEqual(len(CHAPTERS), 7)
        ptxas = find_ptxas()
        for name in sample(CHAPTERS, 3):
            with self.subTest(name=name):
                size = ("--size", 256, 256, 448) if name in PRODUCTS else ()
                said = self.chapter(name, "--seeds", 20 if LONG else 2, "--keep", "kept", *size)
                self.assertRegex(said, r"PASS \w+, (\d+) of \1 seeds; \d+ clocks")
                text = next((self.dir / "kept").glob("*.ptx"))
                if ptxas:
                    done = subprocess.run([ptxas, "-arch=sm_90a", "-v", text, "-o", self.dir / "k.cubin"], capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertNotRegex(done.stderr, "C75|[1-9][0-9]* bytes spill")
                shutil.rmtree(self.dir / "kept")

    def test_it_shows_and_prints(self):
        said = self.chapter("ch1_hello", "--show")
        for words in ("llvm.func @hello", ".visible .entry", "hello from block 1", "thread 3 of block 0 has 30"):
            self.assertIn(words, said)
        self.assertLess(said.index("hello from block 0"), said.index("hello from block 1"))

    def test_wrong_numbers_fail(self):
        self.assertIn("FAIL seed 0: z[0, 0] is", self.chapter("ch2_saxpy", change=("k.fma(2.0", "k.fma(3.0"), code=1))

    def test_clocks(self):
        """Of one tile: the stages are faster than what waits for each; of 4096^3 in the order of the chapters."""
        if not LONG:
            self.skipTest("only in the long run")
        clocks = [int(re.search(r": (\d+) clocks", self.chapter(name, "--size", 4096, 4096, 4096, "--blocks", 3)).group(1)) for name in PRODUCTS]
        self.assertEqual(clocks, sorted(clocks, reverse=True))
        self.assertEqual(len(set(clocks)), 3)

    def fault(self, name, old, new, checks, line=None, options=()):
        """A planted fault is named: by which check, and the line of Python (of `line`, a part of the changed text)."""
        said = self.chapter(name, *options, change=(old, new), code=1)
        self.assertRegex(said, checks)
        lines = (self.dir / f"examples/hopper/{name}.py").read_text().splitlines()
        places = [number for number, text in enumerate(lines, 1) if line in text]
        self.assertTrue(any(f"({name}.py:{number})" in said for number in places), f"{places}\n{said}")

    def test_faults(self):
        size = ("--size", 128, 128, 640)
        cases = [("ch6_specialised", "                    empty[it.before].arrive()\n", "                    pass\n", "deadlock", "empty[it.slot].wait", size),
                 ("ch4_tile", "full[0].expect(left.bytes + 2 * right.bytes)", "full[0].expect(left.bytes + right.bytes)", "tx-mismatch|smem-race|deadlock", "full[0]", ()),
                 ("ch5_multistage", "            k.sync()\n            ahead", "            ahead", "smem-race", "load(", size),
                 ("ch3_saxpy_tma", "        k.fence_init()\n", "", "proxy-fence|mbar-init", "full[0]", ())]
        for case in sample(cases, 2):
            with self.subTest(name=case[0]):
                self.fault(*case[:5], options=case[5])

    def test_python_errors(self):
        """Before anything is compiled: what a kernel cannot be, with file and line."""
        for clause, old, new in (("is used outside of the loop or branch that computes it", "    z[row, column]", "    with k.when(row > 3):\n        row = row + 1\n    z[row, column]"),
                                 ("'x' has 2 axes, and 1 are given", "x[row, column]", "x[row]"),
                                 ("a number of i32 stands where f32 is wanted", "k.fma(2.0", "k.fma(i"),
                                 ("is known when it runs, and not here", "    z[row, column]", "    if row > 3:\n        row = 1\n    z[row, column]"),
                                 ("'two' is no number of a kernel", "k.fma(2.0", "k.fma('two'")):
            with self.subTest(clause=clause):
                said = self.chapter("ch2_saxpy", change=(old, new), code=1)
                self.assertRegex(said, r"ch2_saxpy.py:\d+: ")
                self.assertIn(clause, said)
        said = self.chapter("ch3_saxpy_tma", change=('k.buffer("f32", BOX, COLUMNS)', 'k.buffer("f32", 1000, COLUMNS)'), code=1)
        self.assertIn("bytes of shared memory, and may have 232448", said)
        self.assertIn("map 0 of its launch: its box has 300 elements along axis 1, not 1 to 256", self.chapter("ch3_saxpy_tma", change=('{"tensor": "x", "box": [COLUMNS, BOX]}', '{"tensor": "x", "box": [COLUMNS, 300]}'), code=1))

    def test_one_product_three_ways(self):
        """From Python, from a text and from ONNX: the same bits, of numbers whose sums round."""
        random = np.random.default_rng(6)
        a, b = random.standard_normal((128, 64)).astype(np.float16), random.standard_normal((64, 128)).astype(np.float16)
        self.chapter("ch4_tile", "--keep", "kept")
        got = []
        for model in ("kept/tile.mlir", "tile.mlir"):
            self.compile(model=model, kernels=None)
            got.append(self.run_bundle({"a": a, "b": b})["d"])
        np.testing.assert_array_equal(got[0], got[1])
        infos = [onnx.info("a", onnx.FLOAT16, [128, 64]), onnx.info("b", onnx.FLOAT16, [64, 128])]
        (self.dir / "m.onnx").write_bytes(onnx.model([onnx.node("MatMul", "a b", "d")], infos, [onnx.info("d", onnx.FLOAT16, [128, 128])]))
        self.compile(kernels=None)
        self.assertIn(b"matmul_specialised", self.entries(self.dir / "m.bundle")["code/cuda/sm_90a/kernels.ptx"])
        np.testing.assert_array_equal(self.run_bundle({"a": a, "b": b})["d"], got[0].astype(np.float16))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
