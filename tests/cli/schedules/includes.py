#!/usr/bin/env python3
"""transform.dmx.include and --schedule-path: files of several folders, schedules that targets ship, who has the last word, cycles.
Usage: includes.py BIN REPO [unittest arguments]

A plain run takes a sample; DMXC_LONG=1 takes all."""
import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parents[2])]
from dmxc_case import DIGITS, Base  # noqa: E402
from schedules.scripts import ANY, script  # noqa: E402
import sampling  # noqa: E402

BATCH = ("--dim", "batch=32")
HEAD, END = "module attributes {transform.with_named_sequence} {\n", "}\n"


def include(*files):
    return "".join(f'  transform.dmx.include "{file}"\n' for file in files)


def sequence(name, *lines, handle="r", attributes=""):
    body = "".join(f"    {line}\n" for line in lines)
    return f"  transform.named_sequence @{name}(%{handle}: {ANY} {{transform.readonly}}) {attributes}{{\n{body}    transform.yield\n  }}\n"


def main(*lines):
    return sequence("__transform_main", *lines, handle="m")


def find(node, handle="r"):
    return f'%{handle} = transform.dmx.match {{node = "{node}"}} in %m : {ANY} -> {ANY}'


def decide(values, handle="r"):
    return f"transform.dmx.decide %{handle} {{{values}}} : {ANY}"


@sampling.sampled(2)
class Includes(Base):
    def write(self, file, *parts):
        (self.dir / file).parent.mkdir(parents=True, exist_ok=True)
        (self.dir / file).write_text(HEAD + "".join(parts) + END)

    def explained(self, *arguments, target="cpu"):
        return self.run_tool(DIGITS, *BATCH, "-t", target, "--emit", "partition", "-q", "-o", "p.mlir", "--schedule", "s.mlir", "--explain-decisions", *arguments).stdout

    def refused(self, *arguments, code=1, target="cpu"):
        err = self.run_tool(DIGITS, *BATCH, "-t", target, "-o", "x.bundle", "--schedule", "s.mlir", *arguments, code=code).stderr
        self.assertEqual(err.count("error:"), 1, err)
        self.assertFalse((self.dir / "x.bundle").exists())
        return err

    def test_a_library_of_two_files(self):
        """One file of a library includes another; both are found by the path, run before the script, and are overruled by it."""
        self.write("lib/deep/grains.mlir", sequence("few", decide("grain = 2")))
        self.write("lib/convs.mlir", include("deep/grains.mlir"), main(
            find("/conv2/Conv"), f"transform.include @few failures(propagate) (%r) : ({ANY}) -> ()", find("/conv1/Conv", "f"), decide("grain = 9", "f")))
        self.write("s.mlir", include("convs.mlir"), main(find("/conv1/Conv"), decide("grain = 5"), find("/hidden/Gemm", "g"),
                                                          f"transform.include @few failures(propagate) (%g) : ({ANY}) -> ()"))
        text = self.explained("--schedule-path", "lib")
        blocks = {block.split("'")[1]: block for block in text.split("node ")[1:]}
        self.assertIn("grain = 5  (s.mlir:5:5)", blocks["/conv1/Conv"])
        self.assertIn("grain = 2  (lib/deep/grains.mlir:3:5)", blocks["/conv2/Conv"])
        self.assertIn("grain = 2  (lib/deep/grains.mlir:3:5)", blocks["/hidden/Gemm"])
        self.run_tool(DIGITS, *BATCH, "-q", "-o", "m.bundle", "--MD", "--schedule", "s.mlir", "--schedule-path", "lib", "--save-schedule", "saved.mlir")
        for file in ("s.mlir", "lib/convs.mlir", "lib/deep/grains.mlir"):
            self.assertIn(file, (self.dir / "m.bundle.d").read_text())
        self.run_tool(DIGITS, *BATCH, "-q", "-o", "again.bundle", "--schedule", "saved.mlir")
        self.assertTrue((self.dir / "m.bundle").read_bytes() == (self.dir / "again.bundle").read_bytes())

    def test_the_order_of_folders(self):
        """Beside the script, then the folders in their order; a file that two include runs once."""
        for folder, grain in ((".", 2), ("one", 3), ("two", 4)):
            self.write(f"{folder}/d.mlir", main(find("/conv2/Conv"), decide(f"grain = {grain}")))
        self.write("one/e.mlir", include("d.mlir"))
        self.write("s.mlir", include("d.mlir", "e.mlir"), main())
        paths = ("--schedule-path", "one", "--schedule-path", "two")
        self.assertIn("grain = 3  (one/d.mlir:4:5)", self.explained(*paths))  # of e.mlir, which is the later one
        (self.dir / "d.mlir").unlink()
        self.assertIn("grain = 3  (one/d.mlir:4:5)", self.explained(*paths))
        (self.dir / "one/d.mlir").unlink()
        self.assertIn("grain = 4  (two/d.mlir:4:5)", self.explained(*paths))

    def test_what_a_target_ships(self):
        if "corsair" not in self.run_tool("--print-targets").stdout:
            self.skipTest("this build has no target corsair")
        self.write("s.mlir", include("corsair/one_chiplet.mlir"), main())
        self.assertRegex(self.explained(target="corsair"), r"quads = 4  \(\S*/share/dmxc/schedules/corsair/one_chiplet\.mlir:\d+:5\)")
        self.write("mine/corsair/one_chiplet.mlir", main(f'%r = transform.dmx.match {{device = "corsair"}} in %m : {ANY} -> {ANY}', decide("quads = 2")))
        self.assertIn("quads = 2  (mine/corsair/one_chiplet.mlir:4:5)", self.explained("--schedule-path", "mine", target="corsair"))
        self.write("s.mlir", include("corsair/one_chiplet.mlir"), main(f'%r = transform.dmx.match {{device = "corsair"}} in %m : {ANY} -> {ANY}', decide("quads = 8")))
        self.assertIn("quads = 8  (s.mlir:5:5)", self.explained(target="corsair"))

    def test_refusals(self):
        self.write("s.mlir", include("a.mlir"), main())
        self.write("a.mlir", include("b.mlir"))
        self.write("b.mlir", include("a.mlir"))
        self.assertIn("b.mlir:2:3: error: a cycle of includes: 'a.mlir' includes 'b.mlir' includes 'a.mlir' [schedule-include]", self.refused().replace("./", ""))
        self.write("a.mlir", include("s.mlir"))
        self.assertIn("a cycle of includes: 's.mlir' includes 'a.mlir' includes 's.mlir'", self.refused().replace("./", ""))
        self.write("a.mlir", include("a.mlir"))
        self.assertIn("a cycle of includes: 'a.mlir' includes 'a.mlir'", self.refused().replace("./", ""))
        (self.dir / "a.mlir").unlink()
        self.assertIn("s.mlir:2:3: error: there is no file 'a.mlir' in '.', '", self.refused())
        self.assertIn("; --schedule-path adds folders [schedule-include]", self.refused())
        self.assertIn("--schedule-path none: there is no such folder", self.refused("--schedule-path", "none", code=3))
        self.write("a.mlir", sequence("x"))
        self.write("b.mlir", sequence("x", decide("grain = 1")))
        self.write("s.mlir", include("a.mlir", "b.mlir"), main())
        self.assertIn("b.mlir: error: @x is in 'a.mlir' too; give one of them another name", self.refused().replace("./", ""))
        (self.dir / "s.mlir").write_text(script("partition", 'transform.dmx.include "a.mlir"'))
        self.assertIn("stands beside sequences, not in one [schedule-include]", self.refused())
        (self.dir / "bad.mlir").write_text("module {\n")
        self.write("s.mlir", include("bad.mlir"), main())
        self.assertIn("bad.mlir:", self.refused())
        err = self.run_tool(DIGITS, *BATCH, "-o", "x.bundle", "--schedule-path", ".", code=2).stderr
        self.assertIn("--schedule-path is for scripts; give one with --schedule", err)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
