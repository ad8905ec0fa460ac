#!/usr/bin/env python3
"""dmxc: texts that are hostile, or that say what cannot be. Usage: dmxc_texts_test.py BIN REPO [unittest arguments]"""
import json
import pathlib
import re
import resource
import subprocess
import unittest

from dmxc_case import BIN, REPO, DIGITS, SMALL, Base

# Files that went wrong; beside the checkout where it has them.
REPRO = REPO / "../shared/data/repro-2"
PHASES = ("frontend", "partition", "memory", "schedule")
CHAIN = """func.func @main(%x: tensor<4x64xf32> {dmir.name = "x"}) -> (tensor<4x64xf32> {dmir.name = "y"}) {
  %0 = dmir.softmax %x {axis = 1 : i64} : (tensor<4x64xf32>) -> tensor<4x64xf32> loc("first")
  %1 = dmir.softmax %0 {axis = 0 : i64} : (tensor<4x64xf32>) -> tensor<4x64xf32> loc("second")
  %2 = dmir.softmax %1 {axis = 1 : i64} : (tensor<4x64xf32>) -> tensor<4x64xf32> loc("third")
  %3 = dmir.add %2, %0 : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32> loc("sum")
  %4 = dmir.softmax %3 {axis = 0 : i64} : (tensor<4x64xf32>) -> tensor<4x64xf32> loc("last")
  return %4 : tensor<4x64xf32>
}
"""
OPEN = """func.func @main(%x: tensor<?x8xf32, #dmir.dims<"n">> {dmir.name = "x"}) -> (tensor<?x8xf32, #dmir.dims<"n">> {dmir.name = "y"}) {
  %0 = dmir.softmax %x {axis = 1 : i64} : (tensor<?x8xf32, #dmir.dims<"n">>) -> tensor<?x8xf32, #dmir.dims<"n">> loc("rows")
  return %0 : tensor<?x8xf32, #dmir.dims<"n">>
}
"""


class Texts(Base):
    MODEL = [["text.mlir"]]

    def doors(self, file):
        """Each way by which a file reaches MLIR's parser."""
        yield [file]
        for phase in PHASES:
            yield [file, "--from", phase]
        yield [self.small, "--schedule", file]
        yield [file, "--input-format", "mlir"]
        if "torch" in self.run_tool("--help").stdout.split("--input-format")[1].split("--")[0]:
            yield [file, "--input-format", "torch"]

    def refused(self, text, message, doors=None):
        """Within a second of processor time and half a gigabyte, at a line of the file."""
        path = self.dir / "text.mlir"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        for words in doors or self.doors("text.mlir"):
            with self.subTest(message=message, words=words):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                err = self.run_tool(*words, "-o", "o.bundle", code=1).stderr
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                self.assertRegex(err, r"text\.mlir(:\d+:\d+)?: (node '.*': )?error: ")
                self.assertRegex(err, message)
                self.assertFalse((self.dir / "o.bundle").exists())
                self.assertLess(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 4)
                self.assertLess(after.ru_maxrss, 512 << 10)

    def test_deep_brackets(self):
        deep = r"text\.mlir:2:\d+: error: brackets are nested deeper than 256 levels"
        self.refused("module attributes {\n t.a = " + "[" * 20000, deep)
        for opens in ("{a = ", "(", "tuple<", "loc(callsite(", "module {"):
            self.refused("module attributes {\n t.a = " + opens * 20000, deep, doors=self.MODEL)

    def test_brackets_that_are_not_deep(self):
        """What strings and comments hold is none, nor is '->'; two hundred levels are read."""
        self.small.write_text('// ' + "[" * 1000 + "\n" + SMALL.replace("{axis = 1 : i64}", '{axis = 1 : i64, a = "' + "[" * 1000 + '", b = ' + "[" * 200 + "]" * 200 + ", c = ["
                              + ", ".join(["affine_map<(d0) -> (d0 + 1)>"] * 1200) + "]}") + "// -> " * 1000)
        self.run_tool(self.small, "-o", "o.bundle")

    def test_operators_of_maps(self):
        """MLIR's parser of affine maps recurses with each operator."""
        for map in ("-" * 100000 + "d0", "d0" + " + d0" * 100000, "d0" + " floordiv 2" * 100000):
            self.refused(f"module attributes {{\n t.a = affine_map<(d0) -> ({map})>}} {{}}", r"text\.mlir:2:\d+: error: an expression has more than 1000 operators", doors=self.MODEL)

    def test_aliases(self):
        """Nothing that walks over attributes sees a bracket of the text."""
        nested = "#a0 = [1]\n" + "".join(f"#a{i} = [#a{i - 1}]\n" for i in range(1, 20000)) + "module attributes {t.a = #a19999} {\n}\n"
        self.refused(nested, "nested deeper than 256 levels, by way of aliases")
        doubled = "#a0 = [1]\n" + "".join(f"#a{i} = [#a{i - 1}, #a{i - 1}]\n" for i in range(1, 60)) + "module attributes {t.a = #a59} {\n}\n"
        self.refused(doubled, "has more than 1048576 parts, by way of aliases", doors=self.MODEL)
        places = '#l0 = loc("a")\n' + "".join(f"#l{i} = loc(callsite(#l{i - 1} at #l0))\n" for i in range(1, 20000)) + "module {\n} loc(#l19999)\n"
        self.refused(places, "nested deeper than 256 levels, by way of aliases", doors=self.MODEL)

    def test_bytecode(self):
        bytecode = [b"ML\xefR", b"ML\xefR\x0dMLIR22\x00" + bytes(400)] + [path.read_bytes() for path in sorted(REPRO.glob("bytecode-*.mlir"))]
        print(f"{len(bytecode) - 2} files of bytecode in {REPRO}")
        for content in bytecode:
            self.refused(content, r"text\.mlir:1:1: error: this is MLIR's bytecode, which is not read; write it as text", doors=None if content == bytecode[0] else self.MODEL)

    def test_no_text(self):
        self.refused(SMALL + "\n\0\n", r"text\.mlir:7:1: error: a byte of 0 stands here, so this is no text", doors=[["text.mlir"], [self.small, "--schedule", "text.mlir"]])

    def test_huge_tensors(self):
        self.refused("module attributes {t.a = tensor<4294967296x4294967296xf32>} {}", "has more than 2\\^46 elements", doors=self.MODEL)

    def test_dims_that_are_multiplied_out(self):
        twelve = "*".join(["(n+m+k+l+1)"] * 12)
        self.refused(OPEN.replace('"n"', f'"{twelve}"'), "has more than 4000 characters when it is multiplied out", doors=self.MODEL)
        self.refused(OPEN.replace('"n"', '"' + "n" * 5000 + '"'), "has 5000 characters, more than the 4000 of an expression over dims", doors=self.MODEL)
        three = "*".join(["(n+m+k+l+1)"] * 3)
        (self.dir / "three.mlir").write_text(OPEN.replace('"n"', f'"{three}"'))
        self.run_tool("three.mlir", "--emit", "partition", "-o", "three.out")

    def test_records_of_tuning(self):
        """As every line that is no record: a warning that names it, and the default."""
        deep = '{"a":' * 200000 + "1" + "}" * 200000
        lines = ['{"v": 1, "region": "r", "target": "cpu", "level": "default", "decided": ' + deep + "}", "[" * 300 + "]" * 300]
        (self.dir / "d.jsonl").write_text("\n" + "\n".join(lines) + "\n")
        err = self.run_tool(self.small, "--tuning-db", "d.jsonl", "-o", "o.bundle").stderr
        for line in (2, 3):
            self.assertIn(f"d.jsonl:{line}: warning: its brackets are nested deeper than 200 levels; the line is not used [tuning-db]", err)

    def test_bundles(self):
        """Of JSON that a bundle has from anywhere."""
        self.run_tool(self.small, "--bundle-format", "dir", "-o", "b.bundle")
        for entry in ("manifest.json", "graph.json"):
            path = self.dir / "b.bundle" / entry
            whole = path.read_text()
            path.write_text(whole.rstrip()[:-1] + ', "more": ' + "[" * 100000 + "]" * 100000 + "}")
            for words in (["dmx-inspect", "b.bundle"], ["dmx-run", "b.bundle", "--random-inputs", "1"]):
                done = subprocess.run([BIN / words[0], *words[1:]], cwd=self.dir, capture_output=True, text=True)
                self.assertEqual(done.returncode, 1, done.stderr)
            path.write_text(whole)


class PhaseFacts(Base):
    """A text of a phase that says what cannot be: refused by node and key."""

    def phase(self, phase, text=CHAIN, *words):
        (self.dir / "model.mlir").write_text(text)
        self.run_tool("model.mlir", "--emit", phase, "-o", "phase.mlir", *words)
        return (self.dir / "phase.mlir").read_text()

    def wrong(self, text, phase, change, *messages, words=()):
        """`change`: a pattern and what stands there instead."""
        changed = re.sub(*change, text, count=1)
        self.assertNotEqual(changed, text, change)
        (self.dir / "changed.mlir").write_text(changed)
        (self.dir / "o.bundle").unlink(missing_ok=True)
        with self.subTest(phase=phase, change=change):
            err = self.run_tool("changed.mlir", "--from", phase, "-o", "o.bundle", *words, code=1).stderr
            for message in messages:
                self.assertIn(message, err)
            self.assertFalse((self.dir / "o.bundle").exists())

    def test_facts_of_the_model(self):
        for attribute, says in (('dmir.formats = [1, "a", unit]', "must be an array of dictionaries of texts"), ("dmir.formats = unit", "'dmir.formats'"),
                                ("dmir.dims = {n = array<i64: 9, 2>}", "0 <= MIN <= MAX"), ("dmir.dims = [1]", "'dmir.dims'"), ("dmir.metadata = {a = 1}", "a dictionary of texts"),
                                ('dmir.computed_dims = [["n", #dmir.dims<"n + 1">]]', "each of names before it"), ("dmir.computed_dims = [1]", "'dmir.computed_dims'"),
                                ("dmir.nodes = -1 : i64", "an i64 of at least 0"), ("dmir.nodes = 1 : ui64", "'dmir.nodes'"), ("dmir.placement = [{target = 1}]", "'dmir.placement'"),
                                ("dmir.masks = {attentions = [1]}", "'dmir.masks'")):
            for phase in PHASES if attribute.startswith("dmir.formats") else PHASES[2:3]:
                text = self.phase(phase)
                name = attribute.split(" ")[0]
                head = re.search(r"^module attributes \{(.*)\} \{$", text, re.M)
                others = [part for part in re.split(r", (?=dmir\.)", head[1]) if not part.startswith(name + " ")]
                changed = "module attributes {" + ", ".join(others + [attribute]) + "} {"
                self.wrong(text, phase, (re.escape(head[0]), lambda _: changed), f"'{name}' = ", says)

    def test_facts_of_functions(self):
        text = self.phase("memory")
        for pattern, to, says in ((r'dmir\.name = "x"', "dmir.name = 1 : i64", "argument 0 has 'dmir.name' = 1"), (r'dmir\.name = "y"', "dmir.name = unit", "result 0 has 'dmir.name' = unit"),
                                  (r"lower_bound = \d+ : i64", "lower_bound = -1 : i64", "'dmir.arenas'"), (r"dmir\.arenas = \[.*?\]", "dmir.arenas = unit", "'dmir.arenas'")):
            self.wrong(text, "memory", (pattern, to), says)


if __name__ == "__main__":
    import sys
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
