#!/usr/bin/env python3
"""--show-invoked-commands: what tools would do of a compile, as lines that a shell takes. Usage: commands_test.py BIN REPO [unittest arguments]."""
import os
import pathlib
import shutil
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

    def test_the_code_of_processors(self, entries=("common", "x86-64-v3", "x86-64-v4")):
        """Of two levels and what they share: the linker's result is the bundle's, byte for byte, from objects that llc makes anew."""
        for level in sample(["-O0", "-O2"], 2):
            lines = self.compile(level)
            code = {name.split("/")[2]: data for name, data in self.entries(self.dir / "m.bundle").items() if name.startswith("code/cpu/")}
            self.assertEqual(sorted(code), list(entries))
            for line in lines.splitlines():  # all that a command makes, it makes anew
                if not line.startswith("dmx-opt"):
                    (self.dir / line.split(" -o ")[1].split()[0]).unlink(missing_ok=True)
            self.paste("".join(line + "\n" for line in lines.splitlines() if not line.startswith("dmx-opt")))
            for name, data in code.items():
                self.assertEqual((self.dir / "st" / name / "kernels.so").read_bytes(), data, name)

    def test_a_product(self):
        """A kernel of many instructions: what LLVM makes of one depends on the order of uses, which text does not have."""
        x, w, y = "tensor<40x48xf32>", "tensor<48x64xf32>", "tensor<40x64xf32>"
        (self.dir / "m.mlir").write_text(f"""func.func @main(%x: {x} {{dmir.name = "x"}}, %w: {w} {{dmir.name = "w"}}) -> ({y} {{dmir.name = "y"}}) {{
  %0 = dmir.matmul %x, %w : ({x}, {w}) -> {y} loc("product")
  %1 = dmir.softmax %0 {{axis = 1 : i64}} : ({y}) -> {y} loc("softmax")
  return %1 : {y}
}}
""")
        self.test_the_code_of_processors(["x86-64-v3", "x86-64-v4"])

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
                if target == "cuda":
                    self.check_ptx([line for line in lines.splitlines() if "-mcpu=sm_90a" in line])

    def check_ptx(self, lines):
        """The PTX of each kernel, but for comments."""
        made = [self.dir / line.split(" -o ")[1] for line in lines]
        texts = [path.read_text() for path in made]
        self.assertTrue(texts)
        for path in made:
            path.unlink()
        self.paste("\n".join(lines) + "\n")
        bare = lambda text: [code for line in text.splitlines() if (code := line.split("//")[0].rstrip())]
        self.assertEqual([bare(path.read_text()) for path in made], [bare(text) for text in texts])

    def test_modes_are_in_the_lines(self):
        """-O, --numerics and a micro-kernel: dmx-opt makes the texts of the compile, with the same regions, strategies and kernels."""
        matrix = "tensor<64x64xf32>"
        (self.dir / "m.mlir").write_text(f"""func.func @main(%x: {matrix} {{dmir.name = "x"}}, %w: {matrix} {{dmir.name = "w"}}) -> ({matrix} {{dmir.name = "y"}}) {{
  %0 = dmir.matmul %x, %w : ({matrix}, {matrix}) -> {matrix} loc("product")
  return %0 : {matrix}
}}
""")
        cases = [["-O0"], ["--numerics", "bf16"]]
        if shutil.which("gcc"):
            shutil.copy(REPO / "tools/examples/kernels/sgemm.json", self.dir / "k.json")
            subprocess.run(["gcc", "-O2", "-c", "-fPIC", "-ffreestanding", "-fno-stack-protector", "-march=x86-64-v3",
                            REPO / "tools/examples/kernels/sgemm.c", "-o", self.dir / "sgemm.o"], check=True)
            cases.append(["--kernels", "k.json"])
        for options in sample(cases, 3):
            with self.subTest(options=options):
                lines = [line for line in self.compile("-t", "cpu:x86-64-v3", *options).splitlines() if line.startswith("dmx-opt")]
                made = [self.dir / line.split(" -o ")[1] for line in lines]
                bare = lambda path: [line for line in path.read_text().splitlines() if not line.startswith("module ")]  # which has reports
                texts = [bare(path) for path in made]
                for path in made:
                    path.unlink()
                self.paste("\n".join(lines) + "\n")
                self.assertEqual([bare(path) for path in made], texts)

    def test_what_it_needs(self):
        self.assertIn("give --save-temps DIR", self.run_tool("m.mlir", "-o", "m.bundle", "--show-invoked-commands", code=2).stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
