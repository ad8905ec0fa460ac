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
PRODUCT = """func.func @main(%a: tensor<64x128xf32> {dmir.name = "a"}, %b: tensor<128x96xf32> {dmir.name = "b"}) -> (tensor<64x96xf32> {dmir.name = "y"}) {
  %0 = dmir.relu %a : (tensor<64x128xf32>) -> tensor<64x128xf32> loc("relu")
  %1 = dmir.matmul %0, %b : (tensor<64x128xf32>, tensor<128x96xf32>) -> tensor<64x96xf32> loc("product")
  return %1 : tensor<64x96xf32>
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

    def test_lists_of_indices(self):
        """Which MLIR's parser asks for their width."""
        for list in ("array<index>", "array<index: 1>", "array // of\n  <\n index: 1, 2>"):
            self.refused(f"module attributes {{\n t.a = {list}}} {{}}", r"text\.mlir:2:\d+: error: a list is of indices", doors=self.MODEL)

    def test_names_that_are_there_twice(self):
        two = SMALL.replace("(%x: tensor<4x8xf32>", '(%w: tensor<4x8xf32> {dmir.name = "x"}, %x: tensor<4x8xf32>')
        self.refused(two, "two arguments have the 'dmir.name' \"x\"", doors=[["text.mlir"], ["text.mlir", "--from", "frontend"]])

    def test_bytecode(self):
        bytecode = [b"ML\xefR", b"ML\xefR\x0dMLIR22\x00" + bytes(400)] + [path.read_bytes() for path in sorted(REPRO.glob("bytecode-*.mlir"))]
        print(f"{len(bytecode) - 2} files of bytecode in {REPRO}")
        for content in bytecode:
            self.refused(content, r"text\.mlir:1:1: error: this is MLIR's bytecode, which is not read; write it as text", doors=None if content == bytecode[0] else self.MODEL)

    def test_no_text(self):
        self.refused(SMALL + "\n\0\n", r"text\.mlir:7:1: error: a byte of 0 stands here, so this is no text", doors=[["text.mlir"], [self.small, "--schedule", "text.mlir"]])

    def test_blocks_that_are_not_there(self):
        """MLIR's parser says so and then frees what it has freed."""
        text = "func.func @main() {\n  cf.br ^two\n^one:\n  return\n}\n"
        self.refused(text, r"text\.mlir:2:9: error: its region has no block \^two", doors=self.MODEL)

    def test_huge_tensors(self):
        self.refused("module attributes {t.a = tensor<4294967296x4294967296xf32>} {}", "has more than 2\\^46 elements", doors=self.MODEL)

    def test_dims_that_are_multiplied_out(self):
        twelve = "*".join(["(n+m+k+l+1)"] * 12)
        self.refused(OPEN.replace('"n"', f'"{twelve}"'), "has more than 4000 characters when it is multiplied out", doors=self.MODEL)
        self.refused(OPEN.replace('"n"', '"' + "n" * 5000 + '"'), "has 5000 characters, more than the 4000 of an expression over dims", doors=self.MODEL)
        three = "*".join(["(n+m+k+l+1)"] * 3)
        sizes = '(%s: tensor<?x?x?x?xf32, #dmir.dims<"n", "m", "k", "l">> {dmir.name = "s"}, %x:'
        (self.dir / "three.mlir").write_text(OPEN.replace('"n"', f'"{three}"').replace("(%x:", sizes))
        self.run_tool("three.mlir", "--emit", "partition", "-o", "three.out")

    def test_sizes_that_no_run_knows(self):
        self.refused(OPEN.replace('"n"', '"2*n"'), r"text\.mlir:1:17: error: input 0 has the size '2\*n', but no input has 'n' itself", doors=[["text.mlir"]])

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

    def test_placements(self):
        text = self.phase("memory")
        self.assertEqual(text.count("{arena = 0"), 3, text)
        spots = [int(n) for n in re.findall(r"arena = 0 : i64, offset = (\d+)", text)]
        self.assertEqual(len(set(spots)), 2, text)
        node = "error: the placement of result 0 "
        for change, says in (((r"output = 0", "output = 16"), "is the output 16, but the function has 1"), ((r"arena = 0", "arena = 3"), "is in the arena 3, but the function has 1"),
                             ((r"size = 1024 : i64\}\], strategy", "size = 1000 : i64}], strategy"), "has 'size' = 1000, but its type takes 1024"),
                             ((r"offset = 0", "offset = 32"), "has 'offset' = 32; it must be a multiple of 64"),
                             ((r"offset = 0", "offset = 9223372036854775807"), "has 'offset' = 9223372036854775807"),
                             ((rf"offset = {max(spots)}", f"offset = {min(spots)}"), "is still needed"),
                             ((r"\{placement = \[\{arena = 0 : i64", "{placement = [{arena = unit"), "{arena, offset, size} or {output, size}"),
                             ((r"\{placement = \[", "{placement = [1, "), "one for each of the 1 results"),
                             ((r"placement = \[\{arena = 0 : i64, offset = \d+ : i64, ", "placement = [{output = 0 : i64, "), "whose bytes are not the result's"),
                             ((r"placement = \[.*?\], ", ""), "has no placement, which the phase memory gives it")):
            self.wrong(text, "memory", change, says, "error: ", *([node] if says[0] not in "{o" and "no placement" not in says else []))

    def test_units_of_placements(self):
        text = self.phase("memory", OPEN.replace("return %0", '%1 = dmir.softmax %0 {axis = 0 : i64} : (tensor<?x8xf32, #dmir.dims<"n">>) -> tensor<?x8xf32, #dmir.dims<"n">>\n  return %1'))
        self.wrong(text, "memory", (r'(placement = \[\{arena.*?)unit = #dmir.dims<"n">', r'\1unit = #dmir.dims<"m">'), "of unit 'm', but its type takes 32 of unit 'n'")
        self.wrong(text, "memory", (r'(dmir\.arenas = \[\{.*?)unit = #dmir.dims<"n">', r'\1unit = #dmir.dims<"n * n">'), "has 'unit' = n, and its arena n*n")

    def test_programs(self):
        text = self.phase("schedule")
        for change, says in (((r"(dlir\.buffer arena.*?)size = \d+", r"\1size = 4"), "the size of 4 bytes is less than dtype and shape need: 1024"),
                             ((r"nodes = \[.first.\]", "grain = 0 : i64, nodes = []"), "whose strategy has 'grain' = 1, not the task's 0"),
                             ((r"(dlir\.buffer output [^{]*\{)", r"\1index = 7 : i64, "), "a buffer is output 7, the entry point has 1"),
                             ((r'dlir\.buffer input "x" : tensor<4x64xf32>', 'dlir.buffer input "x" : memref<4x64xf32>'), "'x' is of no type that a bundle has"),
                             ((r"arenas = \[\{", "arenas = [{unit = 3 : i32, "), "an arena must be {size, lower_bound}"),
                             ((r"work = 1 : i64\}", 'work = 1 : i64, dims = #dmir.dims<"n">}'), "'dims' must be #dmir.dims of work, grain"),
                             ((r"(dlir\.dispatch @k\d_\w+)\(%x\)", r"\1(%x, %x)"), "which takes 1 buffers, not 2"),
                             ((r'(dlir\.buffer arena "first" : tensor<4x64)xf32>', r"\1xi32>"), "whose result 0 is f32[4x64], and the buffer 'first' i32[4x64]"), ((r"(dlir\.dispatch @)\w+", r"\1nowhere"), "which is not in the text"),
                             ((r'queue = "cpu"', 'queue = "npu"'), "not for its queue 'npu'"),
                             ((r"(%first_done = .*\n)(.*\n)", r"\2\1"), "waits for a task that does not stand before it"),
                             ((r"(%second_done = .*) after %first_done", r"\1"), "without waiting for an earlier task"),
                             ((r"(dlir\.kernel .*)work = 1 : i64", r"\1work = 255 : i64"), "whose strategy has 'work' = 255, not the task's 1"),
                             ((r"(queue = \"cpu\", scratch = \d+ : i64, )work = 1 : i64", r"\1work = 7 : i64"), "whose strategy has 'work' = 1, not the task's 7"),
                             ((r"(dlir\.program @main attributes \{.*\])\} \{", r"\1, owned} {"), "the text has no entry point"),
                             ((r'"first"\)', r'"fi\\00rst")'), "holds a byte 0")):
            self.wrong(text, "schedule", change, says)

    def test_kernels_whose_root_computes_nothing(self):
        """A result that is none of the kernel's ops was a segmentation fault in codegen."""
        text = self.phase("schedule", CHAIN)
        self.wrong(text, "schedule", (r"(dlir\.kernel @k0_\w+ (?:.*\n)*?.*dmir\.yield )%\w+", r"\1%arg0"), "in which nothing uses 'dmir.")

    def test_work_that_the_code_knows_alone(self):
        """The runtime checks a kernel's contract; what it finds is the text's, not a fault of the compiler."""
        text = self.phase("schedule", OPEN)
        self.wrong(text, "schedule", (r"(dmir\.softmax %arg0 \{axis = )1", r"\g<1>0"), "changed.mlir: error: this text describes no bundle that could run: ", "task 0 'rows': kernel")

    def test_devices(self):
        if "corsair" not in self.run_tool("--print-targets").stdout:
            self.skipTest("this build has no target corsair")
        text = self.phase("schedule.array", PRODUCT, "-t", "corsair:quads=2")
        for change, says in (((r'dlir\.device = "corsair"', 'dlir.device = "npu"'), "'dlir.device' is \"npu\", which is no target of this compile"),
                             ((r'dlir\.device = "corsair"', "dlir.device = [1]"), "which is no target of this compile"),
                             ((r"lldmir\.quads = \d+ : i64", "lldmir.quads = unit"), "'lldmir.quads'"), ((r"lldmir\.quads = \d+ : i64", "lldmir.quads = 1000 : i64"), "it must be an i64 from 1 to"),
                             ((r"lldmir\.type = tensor<64x128xf32>", "lldmir.type = tensor<128x64xf32>"), "that is not its shape"),
                             ((r"lldmir\.type = tensor<64x96xf32>", "lldmir.type = tensor<4x16x96xf32>"), "that is not the result's shape"),
                             ((r"lldmir\.type = tensor<64x128xf32>", "lldmir.order = array<i64: 0, 4294967297>, lldmir.type = tensor<64x128xf32>"), "that is no order of its dims")):
            self.wrong(text, "schedule.array", change, says, words=("-t", "corsair:quads=2"))
        program = self.phase("schedule", PRODUCT, "-t", "corsair:quads=2")
        self.wrong(program, "schedule", (r'(dlir\.argument \w+ "\w+" : tensor<)64x128xf32', r"\g<1>64x127xf32"), "bytes, and the buffer", words=("-t", "corsair:quads=2"))
        self.wrong(program, "schedule", (r"(at|permanent|units) (\[|array)", r"\1 (") if re.search(r"(at|permanent|units) (\[|array)", program) else (r"begin \[0", "begin [unit"), "error: ", words=("-t", "corsair:quads=2"))

    def test_files_that_went_wrong(self):
        if not REPRO.is_dir():
            self.skipTest(f"{REPRO} is not there")
        if "corsair" not in self.run_tool("--print-targets").stdout:
            self.skipTest("this build has no target corsair")
        for name, target, phase, says in (("memory-placement-output-16", "corsair:quads=2", "memory", "is the output 16"), ("memory-formats-not-dictionaries", "corsair:quads=2", "memory", "'dmir.formats'"),
                                          ("corsair-array-order-1000000", "corsair", "schedule.array", "'lldmir.gather' op")):
            with self.subTest(name):
                # They are older than the multiply-adds in strategies of corsair.
                (self.dir / f"{name}.mlir").write_text((REPRO / f"{name}.mlir").read_text().replace("flops = 0 : i64, ", ""))
                err = self.run_tool(self.dir / f"{name}.mlir", "--allow-external-data", REPRO, "-t", target, "--from", phase, "-o", self.dir / "o.bundle", code=1, cwd=REPRO).stderr
                self.assertIn(says, err)


if __name__ == "__main__":
    import sys
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
