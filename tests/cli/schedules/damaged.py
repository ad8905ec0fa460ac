#!/usr/bin/env python3
"""Scripts with a mistake, at stops of three targets: each is refused with the script's place, what is wrong and what is near; none breaks the
compiler. Usage: damaged.py BIN [unittest arguments]"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[i]) for i in (1, 2)]
from sampling import sample
from schedules.scripts import ANY, fuse, interchange, loop, match, script, tile, unroll

BIN = pathlib.Path(sys.argv[1]).resolve()
TYPES = ("tensor<130x192xf16>", "tensor<192x256xf16>", "tensor<130x256xf16>")
MODEL = """func.func @main(%x: {0} {{dmir.name = "x"}}, %w: {1} {{dmir.name = "w"}}) -> ({2} {{dmir.name = "y"}}) {{
  %p = dmir.matmul %x, %w : ({0}, {1}) -> {2} loc("prod")
  return %p : {2}
}}
""".format(*TYPES)
# A target, its stop that most scripts are for, and what of it there is to find.
TARGETS = {"corsair:quads=1": ("schedule.tiles", True), "cuda": ("schedule.pipeline", False), "cpu:x86-64-v3": ("partition", False)}
NONE = "'dmx.match' found no nest, expected 1 or more"
PARAM = "!transform.param<i64>"


def structured(name, rest="", source="m", handle="x"):
    return f"%{handle} = transform.structured.match ops{{[\"{name}\"]}} in %{source} {rest}: ({ANY}) -> {ANY}"


NOTHING = f"  transform.named_sequence @notin(%m: {ANY} {{transform.readonly}}) {{\n    transform.yield\n  }}\n"
# What a script says; what is said of it where there are loops, and where there are none (null: the same).
CASES = [
    ([match('kind = "nesst"')], "knows no kind 'nesst'; there are region, op, product, loop, nest; did you mean 'nest'?", None),
    ([match('kin = "nest"')], "has no property 'kin'", None),
    ([match('kind = "nest", nth = "0"')], "'nth' is a number", None),
    ([match('kind = "nest", node = "prodd"')], "'prod' (node)", NONE),
    ([match(expect=" expect 2")], "found 1 nest, expected 2", "found no nest, expected 2"),
    ([match('kind = "nest", nth = 3')], "nth = 3 is none of 0 to 0", NONE),
    ([match('op = "dmir.matmull"')], "did you mean 'dmir.matmul'?", None),
    ([match(), interchange([1, 0]).replace("interchange", "interchang")], "there is no op 'transform.dmx.interchang'; did you mean 'transform.dmx.interchange'?", None),
    ([match(), interchange([1, 1])], "names each loop once", NONE),
    ([match(), interchange([])], "names each loop once", NONE),
    ([match(), interchange([2, 1, 0])], "names 3 loops, the nest 'prod' has 2", NONE),
    ([match(), interchange([0, -1])], "names each loop once", NONE),
    ([match(), interchange([1, 0]), interchange([1, 0], handle="q")], "'n' was consumed by 'transform.dmx.interchange' at s.mlir:4", NONE),
    ([match(), tile([0, 0])], "cuts no loop", None),
    ([match(), tile([2, -3])], "a size is -3; give 0 or more", NONE),
    ([match(), tile([2, 2, 2, 2])], "names 4 loops", NONE),
    ([match(), tile([9223372036854775807])], "a size is 9223372036854775807; give 1099511627776 at most", NONE),
    ([match(), tile([2]), loop(0, nest="n")], "'n' was consumed by 'transform.dmx.tile'", NONE),
    ([match(), tile([2]).replace(f"{ANY}, {ANY}", ANY)], "expected ','", None),
    ([match(), loop(5)], "has 2 loops, counted from 0", NONE),
    ([match(), loop(1), unroll("by 0")], "needs a number of 1 or more", None),
    ([match(), loop(1), unroll("bye 2")], "expected", None),
    ([match(), loop(1), unroll("by 5000")], "makes 5000 copies of a body; at most 4096", NONE),
    ([match(), fuse("n", "n")], "'n' was consumed by 'transform.dmx.fuse_into' at s.mlir:4", NONE),
    ([match(), loop(1), fuse("n", "l")], "'l' was consumed by 'transform.dmx.fuse_into' at s.mlir:5", NONE),
    ([match(), f"%q = transform.dmx.pad %n to_multiple_of -4 : {ANY} -> {ANY}"], "needs a number of 1 or more", None),
    ([match(), f'transform.dmx.normalize %n to "nest.perfekt" : {ANY}'], "there is no form 'nest.perfekt'; did you mean 'nest.perfect'?", None),
    ([match(), f'transform.dmx.normalize %n to "" : {ANY}'], "there is no form ''", None),
    ([match(), tile([0, 2]), f'transform.dmx.check %t is "nest.normalized" : {ANY}'], "'dmx.check' found no nest.normalized of the nest 'prod'", NONE),
    ([match(), tile([0, 2]), f'transform.dmx.check %t is "nest.normalized" ensured : {ANY}'], "what came before promised nest.normalized", NONE),
    ([match(), f'%p = transform.dmx.param "size" one_of [2, 3] default 4 -> {PARAM}', tile(["%p"]).replace("'", "").replace(f": {ANY} ->", f": {ANY}, {PARAM} ->")],
     "'size' cannot be 4, its default; its values are 2, 3", NONE),
    ([match(), f'%p = transform.dmx.param "size" of [2] -> {PARAM}'], "'of' is no domain", None),
    ([match(), f'%p = transform.dmx.param "size" one_of ["a"] -> {PARAM}', tile(["%p"]).replace("'", "").replace(f": {ANY} ->", f": {ANY}, {PARAM} ->")], "'transform.dmx.param': expected parameter to be an integer attribute", NONE),
    ([structured("dmir.matmull")], "'structured.match' found no op 'dmir.matmull'", None),
    ([structured("linalg.matmul")], "'structured.match' found no op 'linalg.matmul'", None),
    ([structured("func.fun")], "'structured.match' found no op 'func.fun'", None),
    ([structured("linalg.matmul", "{dmx.may_be_none} "), f"%t, %l = transform.structured.tile_using_for %x tile_sizes [2] : ({ANY}) -> ({ANY}, {ANY})",
      match('kind = "nest", node = "none"')], "found no nest", None),
    ([structured("func.func"), f'%p = transform.dmx.run_pass "dmir-simplyfy" on %x : {ANY} -> {ANY}'], "knows no pass 'dmir-simplyfy'; did you mean 'dmir-simplify'?", None),
    ([structured("func.func"), f'%p = transform.dmx.run_pass "dmir-simplify" {{a = 1}} on %x : {ANY} -> {ANY}'], "'dmx.run_pass' 'dmir-simplify'", None),
    ([structured("func.func"), f'%p = transform.dmx.run_pass "cse" on %x : {ANY} -> {ANY}', f'%q = transform.dmx.run_pass "cse" on %x : {ANY} -> {ANY}'],
     "'x' was consumed by 'transform.dmx.run_pass' at s.mlir:4", None),
    ([structured("func.func"), f'%p = transform.apply_registered_pass "affine-permute-trips" to %x : ({ANY}) -> {ANY}'], "affine-permute-trips", None),
    ([match(), f"transform.loop.unroll_and_jam %n {{factor = 0}} : {ANY}"], "factor", None),
    (["transform.include @nothing failures(propagate) (%m) : (" + ANY + ") -> ()"], "there is no sequence '@nothing'; did you mean '@notin'?", None),
    ([match(), interchange([1, 0]).replace("%n", "%nn")], "use of undeclared SSA value name", None),
    ([match("kind = \"op\", op = \"dmir.cast\"", handle="c", expect=" expect any"), structured("func.func"), interchange([1, 0], nest="x")], "is of loops of 'affine.for'; this is 'func.func'", None),
]
STOPS = ("frontend", "partition", "memory", "schedule")


class Damaged(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dmxc-damaged-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        (self.dir / "m.mlir").write_text(MODEL)

    def refused(self, target, at, text):
        (self.dir / "s.mlir").write_text(text)
        (self.dir / "m.bundle").unlink(missing_ok=True)
        done = subprocess.run([BIN / "dmxc", "m.mlir", "-t", target, "-o", "m.bundle", "--schedule", "s.mlir"], capture_output=True, text=True, cwd=self.dir)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^s\.mlir(:\d+:\d+)?: error: .*\[schedule-[a-z]+\]")
        self.assertFalse((self.dir / "m.bundle").exists())
        return done.stderr

    def test_each_is_named(self):
        self.assertEqual(len(CASES), 45)
        for (lines, loops, none), target in sample([(case, target) for case in CASES for target in TARGETS], 5):
            at, has_loops = TARGETS[target]
            with self.subTest(target=target, lines=lines):
                if any("func.func" in line for line in lines): # which there are at each target's first stop
                    at = "frontend"
                said = self.refused(target, at, script(at, *lines, more=NOTHING))
                self.assertIn(loops if has_loops or none is None else none, said)

    def test_stops(self):
        """A stop that a target has not is named with those it has; at those the same script says the same."""
        for target, (own, _) in TARGETS.items():
            said = self.refused(target, "schedule.tile", script("schedule.tile", match()))
            self.assertIn('@s is to run at "schedule.tile"; in this compile scripts run behind "frontend", "partition", "memory", ', said)
            self.assertIn(f'"{own}"', said)
            self.assertEqual("did you mean 'schedule.tiles'?" in said, "corsair" in target, said)
            told = {re.search("s\\.mlir.*", self.refused(target, at, script(at, match())))[0] for at in STOPS}
            self.assertEqual(told, {f"s.mlir:3:10: error: {NONE} [schedule-match]"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
