#!/usr/bin/env python3
"""--show-invoked-commands: what tools would do of a compile, as lines that a shell takes. Usage: commands_test.py BIN REPO [unittest arguments]."""
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from dmxc_case import BIN, REPO, SCALAR_AND_VECTOR, Base

sys.path.insert(0, str(REPO / "tests"))
from sampling import sample

TARGETS = ("cpu", "corsair", "aie", "cuda")


class Commands(Base):
    def setUp(self):
        super().setUp()
        (self.dir / "m.mlir").write_text(SCALAR_AND_VECTOR)

    def compile(self, *options):
        return self.run_tool("m.mlir", "-o", "m.bundle", "--save-temps", "st", "--show-invoked-commands", *options).stdout

    def paste(self, lines):
        done = subprocess.run(["sh", "-e"], input=lines, cwd=self.dir, text=True, capture_output=True, env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_code_of_processors(self):
        """Of two levels and what they share: the linker's result is the bundle's, byte for byte, from objects that llc makes anew."""
        for level in sample(["-O0", "-O2"], 2):
            lines = self.compile(level)
            code = {name.split("/")[2]: data for name, data in self.entries(self.dir / "m.bundle").items() if name.startswith("code/cpu/")}
            self.assertEqual(sorted(code), ["common", "x86-64-v3", "x86-64-v4"])
            for path in (self.dir / "st").rglob("*.o"):
                path.unlink()
            self.paste("".join(line + "\n" for line in lines.splitlines() if not line.startswith("dmx-opt")))
            for name, data in code.items():
                self.assertEqual((self.dir / "st" / name / "kernels.so").read_bytes(), data, name)

    def test_the_phases(self):
        """The same lines from two runs, and dmx-opt takes its own."""
        lines = self.compile("-t", "cpu:x86-64-v3")
        self.assertEqual(lines, self.compile("-t", "cpu:x86-64-v3"))
        steps = [line for line in lines.splitlines() if line.startswith("dmx-opt")]
        self.assertEqual(len(steps), 3, lines)  # frontend to partition, memory, schedule
        self.paste("\n".join(steps) + "\n")

    def test_every_target(self):
        for target in sample(TARGETS, 2):
            with self.subTest(target=target):
                lines = self.compile("-t", target)
                self.assertIn(f"--target={target}", lines)
                self.assertIn("--dmxc-schedule", lines)
                self.assertTrue(list((self.dir / "st").iterdir()))

    def test_what_it_needs(self):
        self.assertIn("give --save-temps DIR", self.run_tool("m.mlir", "-o", "m.bundle", "--show-invoked-commands", code=2).stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
