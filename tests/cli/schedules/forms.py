#!/usr/bin/env python3
"""Normal forms of loops on texts, by dmx-opt: what is brought about, once, where it is missing; forms of a script's own; 100 random nests whose
order may be changed or not by a check that shares nothing with the compiler's. Usage: forms.py BIN [unittest arguments]"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from schedules import nests

BIN = pathlib.Path(sys.argv[1]).resolve()
ANY = "!transform.any_op"
TWO = """func.func @main(%values: memref<4096x4096xf32>, %others: memref<2048x2048xf32>, %table: memref<4096xf32>) {
  affine.for %j = 0 to 4096 {
    %hoistable = affine.load %table[%j] : memref<4096xf32>
    affine.for %i = 0 to 4096 {
      %value = affine.load %values[%i, %j] : memref<4096x4096xf32>
      %sum = arith.addf %value, %hoistable : f32
      affine.store %sum, %values[%i, %j] : memref<4096x4096xf32>
    }
  } loc("first")
  affine.for %j = 0 to 2048 {
    %hoistable = affine.load %table[%j] : memref<4096xf32>
    affine.for %i = 0 to 2048 {
      %value = affine.load %others[%i, %j] : memref<2048x2048xf32>
      %product = arith.mulf %value, %hoistable : f32
      affine.store %product, %others[%i, %j] : memref<2048x2048xf32>
    }
  } loc("second")
  return
}
"""
BOTH = [f'%{name} = transform.dmx.match {{kind = "nest", node = "{name}"}} in %m expect 1 : {ANY} -> {ANY}' for name in ("first", "second")]
LOG = """'dmx.interchange': nest.perfect of the nest 'first': 1 op moved into the inner loop
'dmx.tile': nest.perfect of the nest 'second': 1 op moved into the inner loop
'dmx.normalize': nest.perfect of the nest at t.mlir:5:5: nothing to be done
'dmx.normalize': nest.perfect of the nest 'second': nothing to be done
"""


def whole(payload, *lines, more=""):
    body = "".join(f"    {line}\n" for line in lines)
    return (f"module attributes {{transform.with_named_sequence}} {{\n{payload}"
            f"  transform.named_sequence @__transform_main(%m: {ANY} {{transform.readonly}}) {{\n{body}    transform.yield\n  }}\n{more}}}\n")


def sequence(name, *lines):
    body = "".join(f"    {line}\n" for line in lines)
    return f"  transform.named_sequence @{name}(%n: {ANY} {{transform.readonly}}) {{\n{body}    transform.yield\n  }}\n"


class Forms(unittest.TestCase):
    def run_it(self, text, *flags, code=0):
        with tempfile.TemporaryDirectory(prefix="dmxc-forms-") as folder:
            (pathlib.Path(folder) / "t.mlir").write_text(text)
            done = subprocess.run([BIN / "dmx-opt", "t.mlir", "--transform-interpreter", *flags], capture_output=True, text=True, cwd=folder)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    @staticmethod
    def log(done):
        return "".join(line + "\n" for line in re.findall(r"remark: (.*) \[schedule-log\]", done.stderr))

    def nest_of(self, text, memref):
        """The lines of the nest around the stores to a memref."""
        lines = text.split("\n")
        store = next(i for i, line in enumerate(lines) if f"affine.store" in line and line.rstrip().endswith(memref))
        begin = max(i for i in range(store) if lines[i].startswith("    affine.for"))
        return lines[begin:next(i for i in range(store, len(lines)) if lines[i].startswith("    }")) + 1]

    def test_each_nest_once(self):
        """What interchange needs is brought about on its nest, and leaves the other one's text alone; nothing is left to do then."""
        done = self.run_it(whole(TWO, *BOTH, f"%o = transform.dmx.interchange %first [1, 0] : {ANY} -> {ANY}",
                                 f"%t, %p = transform.dmx.tile %second [32, 32] : {ANY} -> {ANY}, {ANY}", f'transform.dmx.normalize %m to "nest.perfect" : {ANY}'))
        self.assertEqual(self.log(done), LOG)
        self.assertEqual(len([line for line in self.nest_of(done.stdout, "memref<2048x2048xf32>") if "affine.for" in line]), 4)
        before = self.run_it(whole(TWO))
        first = self.run_it(whole(TWO, BOTH[0], f"%o = transform.dmx.interchange %first [1, 0] : {ANY} -> {ANY}"))
        self.assertEqual(*(self.nest_of(each.stdout, "memref<2048x2048xf32>") for each in (before, first)))
        self.assertNotEqual(*(self.nest_of(each.stdout, "memref<4096x4096xf32>") for each in (before, first)))

    def test_what_is_in_the_way(self):
        """A store between the loops is named, with its place."""
        text = whole(TWO, BOTH[0], f"%o = transform.dmx.interchange %first [1, 0] : {ANY} -> {ANY}")
        text = text.replace("    affine.for %i = 0 to 4096 {\n", "    affine.store %hoistable, %table[%j + 1] : memref<4096xf32>\n    affine.for %i = 0 to 4096 {\n")
        said = self.run_it(text, code=1).stderr
        self.assertIn("t.mlir:24:10: error: 'dmx.interchange' needs nest.perfect of the nest 'first': 'affine.store' at t.mlir:5:5 stands beside a loop [schedule-form]", said)

    def test_hoisting_and_the_other_forms(self):
        text = """func.func @main(%a: memref<64xf32>, %c: memref<1xf32>) {
  affine.for %u = 0 to 1 {
    affine.for %i = 4 to 20 step 4 {
      %x = affine.load %c[0] : memref<1xf32>
      affine.store %x, %a[%i] : memref<64xf32>
    }
  } loc("n")
  return
}
"""
        done = self.run_it(whole(text, f'transform.dmx.normalize %m to "nest.canonical" : {ANY}', f'transform.dmx.check %m is "nest.perfect+nest.multi_trip" ensured : {ANY}'))
        self.assertEqual(self.log(done), "'dmx.normalize': nest.canonical of the nest 'n': 1 loop of one trip taken away, 1 loop made to go from 0 by 1, 1 op moved before the nest\n")
        self.assertRegex(done.stdout, r"= affine\.load %\w+\[0\] .*\n    affine\.for %(\w+) = 0 to 4 \{\n      affine\.store %\w+, %\w+\[%\1 \* 4 \+ 4\]")
        for form, why in (("nest.normalized", "does not go from 0 by 1"), ("nest.multi_trip", "has one trip"), ("nest.hoisted", "does the same in all trips")):
            self.assertIn(why, self.run_it(whole(text, f'transform.dmx.check %m is "{form}" : {ANY}'), code=1).stderr)

    def test_a_form_of_the_scripts_own(self):
        define = '  transform.dmx.define_form @short extends "nest.perfect" check @is_short reach @make_short\n'
        is_short = sequence("is_short", f'%l = transform.dmx.match {{kind = "loop"}} in %n expect 2 : {ANY} -> {ANY}')
        uses = (BOTH[0], f'transform.dmx.normalize %first to "short" : {ANY}', f'transform.dmx.check %first is "short" : {ANY}')
        good = self.run_it(whole(TWO, *uses, more=define + is_short + sequence("make_short", f'transform.dmx.normalize %n to "nest.normalized" : {ANY}')))
        self.assertEqual(self.log(good), "'dmx.normalize': short of the nest 'first': 1 op moved into the inner loop\n'dmx.normalize': short of 'first': nothing to be done\n")
        never = sequence("is_short", f'%l = transform.dmx.match {{kind = "loop"}} in %n expect 1 : {ANY} -> {ANY}')
        broken = self.run_it(whole(TWO, *uses, more=define + never + sequence("make_short")), code=1).stderr
        self.assertIn("error: @make_short promised short of 'first', and is at fault: 'dmx.match' found 2 loops, expected 1 [schedule-postcondition]", broken)
        missing = self.run_it(whole(TWO, *uses, more=define.replace("@is_short", "@is_shor") + is_short + sequence("make_short")), code=1).stderr
        self.assertIn("has no sequence @is_shor to check it [schedule-form]", missing)
        itself = self.run_it(whole(TWO, *uses, more=define.replace("nest.perfect", "short") + is_short + sequence("make_short")), code=1).stderr
        self.assertIn("the form 'short' extends itself [schedule-form]", itself)

    def test_handles_with_a_form(self):
        typed = f'%o = transform.dmx.interchange %first [1, 0] : {ANY} -> !transform.dmx.form<"nest.perfect">'
        self.run_it(whole(TWO, BOTH[0], typed))
        bad = BOTH[0][:-len(ANY)] + '!transform.dmx.form<"nest.perfect">'
        self.assertIn("the handle is to what has nest.perfect, which is not there of the nest 'first': 'affine.load' at t.mlir:4:18 stands beside a loop [schedule-form]",
                      self.run_it(whole(TWO, bad), code=1).stderr)
        self.assertIn("there is no form 'nest.perfekt'; did you mean 'nest.perfect'?", self.run_it(whole(TWO, bad.replace("perfect", "perfekt")), code=1).stderr)

    @staticmethod
    def body(text):
        """The lines of a nest, with the memrefs' names in the test's text."""
        text = re.sub(r"%arg([01])\b", lambda found: "%" + "ab"[int(found[1])], text)
        text = re.sub(r" loc\(.*?\)$", "", text, flags=re.M)
        lines = text.split("\n")
        begin = next(i for i, line in enumerate(lines) if line.strip().startswith("affine.for"))
        return lines[begin:next(i for i, line in enumerate(lines) if line.strip() == "return")]

    def test_random_nests(self):
        """Each is changed where that is allowed, and computes what it did; else it is refused."""
        for transform in ("interchange", "tile"):
            cases = [nests.Nest(seed) for seed in range(100)]
            texts = [case.text(transform) for case in cases]
            legal = [case.is_legal(transform) for case in cases]
            self.assertGreater(min(sum(legal), 100 - sum(legal)), 20)
            done = self.run_it("// -----\n".join(texts), "-split-input-file", "-mlir-print-local-scope", code=1)
            refused = set(re.findall(r"error: 'dmx\.\w+' would change what the nest '(n\d+)' computes: .* \[schedule-illegal\]", done.stderr))
            self.assertEqual(done.stderr.count("error: "), len(refused), done.stderr)
            functions = dict(re.findall(r"func\.func @(n\d+)\((.*?)\n  transform\.named_sequence", done.stdout, re.S))
            for case, text, is_legal in zip(cases, texts, legal):
                with self.subTest(transform=transform, nest=case.name, legal=is_legal):
                    self.assertEqual(is_legal, case.name not in refused)
                    if is_legal:
                        self.assertEqual(*(nests.Run(self.body(each)).memory for each in (text, functions[case.name])))
            print(f"{transform}: {sum(legal)} of 100 nests are allowed, {len(refused)} refused", flush=True)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
