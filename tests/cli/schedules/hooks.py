#!/usr/bin/env python3
"""Where scripts run, what they may call, and what they cost who has none. Usage: hooks.py BIN [unittest arguments]"""
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from schedules.scripts import ANY, interchange, loop, match, script, tile

BIN = pathlib.Path(sys.argv[1]).resolve()
TYPES = ("tensor<130x192xf16>", "tensor<192x256xf16>", "tensor<130x256xf16>")
MODEL = """func.func @main(%x: {0} {{dmir.name = "x"}}, %w: {1} {{dmir.name = "w"}}) -> ({2} {{dmir.name = "y"}}) {{
  %a = dmir.add %x, %x : ({0}, {0}) -> {0} loc("twice")
  %p = dmir.matmul %a, %w : ({0}, {1}) -> {2} loc("prod")
  return %p : {2}
}}
""".format(*TYPES)
FIND = f'%f = transform.structured.match ops{{["func.func"]}} in %m : ({ANY}) -> {ANY}'
CALL = f"transform.include @swap failures(propagate) (%n) : ({ANY}) -> ()"
CORSAIR = ("-t", "corsair:quads=1")


def sequence(name, *lines):
    body = "".join(f"    {line}\n" for line in lines)
    return f"  transform.named_sequence @{name}(%n: {ANY} {{transform.consumed}}) {{\n{body}    transform.yield\n  }}\n"


def library(*sequences):
    return f"module attributes {{transform.with_named_sequence}} {{\n{''.join(sequences)}}}\n"


class Hooks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dmxc-hooks-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        self.write("m.mlir", MODEL)

    def write(self, name, text):
        (self.dir / name).write_text(text)

    def dmxc(self, *arguments, code=0):
        done = subprocess.run([BIN / "dmxc", *map(str, arguments)], capture_output=True, text=True, cwd=self.dir)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def entries(self, bundle):
        with zipfile.ZipFile(self.dir / bundle) as archive:
            return {name: archive.read(name) for name in archive.namelist() if name != "manifest.json"}

    def test_every_stop(self):
        """A script that marks what it is given, at each stop: the mark is in that stop's text and not in the one before. One that does nothing
        gives the default's bundle."""
        for target in ("corsair:quads=1", "cuda", "cpu:x86-64-v3", "aie"):
            phases = [line.split()[0] for line in self.dmxc("--print-phases", "-t", target).stdout.splitlines()][:-1]
            self.dmxc("m.mlir", "-t", target, "-q", "-o", "plain.bundle")
            for before, at in zip([None, *phases], phases):
                with self.subTest(target=target, at=at):
                    self.write("s.mlir", script(at, f'transform.annotate %m "mark.here" : {ANY}'))
                    for stop, there in ((before, False), (at, True)):
                        if stop:
                            text = self.dmxc("m.mlir", "-t", target, "-q", "--emit", stop, "-o", "-", *(("--schedule", "s.mlir") if there else ())).stdout
                            self.assertEqual("mark.here" in next(line for line in text.split("\n") if line.startswith("module")), there)
                    self.write("s.mlir", script(at, match('kind = "loop"', expect=" expect any")))
                    self.dmxc("m.mlir", "-t", target, "-q", "-o", "s.bundle", "--schedule", "s.mlir")
                    self.assertEqual(self.entries("plain.bundle"), self.entries("s.bundle"))

    def test_scripts_on_a_text(self):
        """Those of the stop that a text is of run on the text; those of a stop before it are refused."""
        self.write("s.mlir", script("schedule.tiles", match(), interchange([1, 0])))
        self.dmxc("m.mlir", *CORSAIR, "-q", "--emit", "schedule.tiles", "-o", "t.mlir")
        for name, model, more in (("direct", "m.mlir", ()), ("resumed", "t.mlir", ("--from", "schedule.tiles"))):
            self.dmxc(model, *CORSAIR, "-q", "-o", f"{name}.bundle", "--schedule", "s.mlir", *more)
        self.assertEqual(self.entries("direct.bundle"), self.entries("resumed.bundle"))
        self.write("p.mlir", script("partition", f'transform.annotate %m "mark.here" : {ANY}'))
        said = self.dmxc("t.mlir", *CORSAIR, "--from", "schedule.tiles", "-o", "x", "--schedule", "p.mlir", code=1).stderr
        self.assertIn('p.mlir:2:3: error: @s is to run at "partition", which this compile does not come by; scripts run behind "schedule.tiles", "schedule.buffers"', said)
        said = self.dmxc("m.mlir", *CORSAIR, "--emit", "partition", "-o", "x", "--schedule", "s.mlir", code=1).stderr
        self.assertIn('"schedule.tiles", which this compile does not come by; scripts run behind "frontend", "partition" [schedule-script]', said)

    def test_passes_of_phases(self):
        """By their names, on the module and on functions: what a phase has done is not done again, and a target's pass does the next stage's work."""
        self.write("s.mlir", script("frontend", f'%p = transform.dmx.run_pass "dmir-simplify" on %m : {ANY} -> {ANY}').replace("transform.readonly", "transform.consumed"))
        self.dmxc("m.mlir", "-q", "-o", "s.bundle", "--schedule", "s.mlir")
        self.write("r.mlir", script("frontend", FIND, f'%p = transform.apply_registered_pass "dmir-simplify" to %f : ({ANY}) -> {ANY}'))
        self.dmxc("m.mlir", "-q", "-o", "r.bundle", "--schedule", "r.mlir")
        self.dmxc("m.mlir", "-q", "-o", "plain.bundle")
        self.assertEqual(self.entries("plain.bundle"), self.entries("s.bundle"))
        self.assertEqual(self.entries("plain.bundle"), self.entries("r.bundle"))
        self.write("t.mlir", script("schedule.formats", FIND, f'%p = transform.dmx.run_pass "corsair-tile-products" on %f : {ANY} -> {ANY}'))
        for name, more in (("plain", ()), ("ahead", ("--schedule", "t.mlir"))):
            self.dmxc("m.mlir", *CORSAIR, "-q", "-o", f"{name}.bundle", *more)
        self.assertEqual(self.entries("plain.bundle"), self.entries("ahead.bundle"))
        self.assertIn("affine.for", self.dmxc("m.mlir", *CORSAIR, "-q", "--emit", "schedule.formats", "-o", "-", "--schedule", "t.mlir").stdout)

    def test_sequences_of_other_files(self):
        swap = sequence("swap", interchange([1, 0]))
        self.write("direct.mlir", script("schedule.tiles", match(), interchange([1, 0])))
        self.write("call.mlir", script("schedule.tiles", match(), CALL))
        bundles = {}
        for name, file in (("direct", None), ("beside", "lib.mlir"), ("found", "folder/tools.mlir")):
            (self.dir / "folder").mkdir(exist_ok=True)
            if file:
                self.write(file, library(swap))
                self.write(f"{name}.mlir", script("schedule.tiles", match(), CALL, more=f'  transform.dmx.include "{pathlib.Path(file).name}"\n'))
            self.dmxc("m.mlir", *CORSAIR, "-q", "-o", "m.bundle", "--schedule", f"{name}.mlir", "--schedule-path", "folder", "--MD")
            bundles[name] = self.entries("m.bundle")
            self.assertIn(file or "direct.mlir", (self.dir / "m.bundle.d").read_text())
        self.assertEqual(bundles["direct"], bundles["beside"])
        self.assertEqual(bundles["direct"], bundles["found"])
        refused = lambda script: self.dmxc("m.mlir", *CORSAIR, "-o", "m.bundle", "--schedule", script, code=1).stderr
        self.assertIn("call.mlir:4:5: error: there is no sequence '@swap'; transform.dmx.include takes in those of other files [schedule-script]", refused("call.mlir"))
        self.write("lib.mlir", library(sequence("swap", interchange([2, 1]))))
        self.assertRegex(refused("beside.mlir"), r"lib\.mlir:3:\d+: error: 'dmx\.interchange' names each loop once, from 0 on, for example \[1, 0\] \[schedule-refused\]")

    def test_the_log(self):
        self.write("s.mlir", script("schedule.tiles", match(), tile([0, 2]), f'transform.dmx.normalize %t to "nest.normalized+nest.perfect" : {ANY}'))
        log = self.dmxc("m.mlir", *CORSAIR, "-q", "-o", "m.bundle", "--schedule", "s.mlir", "--schedule-log", "-").stdout
        self.assertEqual(log, "s.mlir:4:15: 'dmx.tile': nest.perfect of the nest 'prod': nothing to be done\n"
                              "s.mlir:5:5: 'dmx.normalize': nest.normalized+nest.perfect of the nest 'prod': 2 loops made to go from 0 by 1\n")
        self.assertIn("nest.canonical\n", self.dmxc("--print-forms").stdout)
        self.assertIn("--schedule-log is for scripts; give one with --schedule", self.dmxc("m.mlir", "-o", "m.bundle", "--schedule-log", "-", code=2).stderr)

    def test_what_is_not_valid_names_the_op(self):
        """A pass that leaves out what the stop needs: the op of the script behind which the model was not valid."""
        self.write("s.mlir", script("schedule.tiles", match(), loop(1), FIND, f'%p = transform.dmx.run_pass "corsair-bufferize" on %f : {ANY} -> {ANY}'))
        said = self.dmxc("m.mlir", *CORSAIR, "-o", "m.bundle", "--schedule", "s.mlir", code=1).stderr
        self.assertIn("scripts changed what schedule.buffers was given: behind schedule.tiles 'transform.dmx.run_pass' at s.mlir:6:10", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
