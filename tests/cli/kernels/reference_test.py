#!/usr/bin/env python3
"""References of kernels that users wrote: functions of DMIR that say what a kernel computes, which the interpreter takes and no bundle.
Usage: reference_test.py BIN REPO [unittest arguments]. Exit 77 without numpy or a C compiler."""
import json
import re
import shutil
import subprocess
import sys
import unittest

from kernels_test import BIN, EXAMPLE, REPO, Case, field, np, sample

ARGMAX = """func.func @{name}(%x: tensor<?x?x{type}, #dmir.dims<"b", "n">>) -> tensor<?xi64, #dmir.dims<"b">> {{
  %y = dmir.arg_reduce {kind} %x {{axis = 1 : i64, keepDims = false}} : (tensor<?x?x{type}, #dmir.dims<"b", "n">>) -> tensor<?xi64, #dmir.dims<"b">>
  return %y : tensor<?xi64, #dmir.dims<"b">>
}}
"""
# Rows as they are and `k` times `k` behind each.
TAIL = """#include <stdint.h>
int32_t tail(void **b, const int64_t *d, int64_t begin, int64_t end, void *s) {
  int64_t n = d[0], k = d[1];
  for (int64_t i = begin; i < end; ++i)
    for (int64_t j = 0; j < n + k; ++j)
      ((float *)b[1])[i * (n + k) + j] = j < n ? ((const float *)b[0])[i * n + j] : k;
  return 0;
}
"""
TAIL_REFERENCE = """func.func @tail(%x: tensor<?x?xf32, #dmir.dims<"b", "n">>, %k: tensor<i64> {dmir.name = "k"}) -> tensor<?x?xf32, #dmir.dims<"b", "k + n">> {
  %f = dmir.cast %k : (tensor<i64>) -> tensor<f32>
  %y = dmir.pad %x, %f {low = array<i64: 0, 0>, high = array<i64: 0, -9223372036854775808>, interior = array<i64: 0, 0>, dims = #dmir.dims<"k">} : (tensor<?x?xf32, #dmir.dims<"b", "n">>, tensor<f32>) -> tensor<?x?xf32, #dmir.dims<"b", "k + n">>
  return %y : tensor<?x?xf32, #dmir.dims<"b", "k + n">>
}
"""


def argmax(name="argmax", type="f16", kind="max"):
    return ARGMAX.format(name=name, type=type, kind=kind)


class ReferenceCase(Case):
    def refer(self, text, functions=("argmax",), **changes):
        (self.dir / "r.mlir").write_text(text)
        return self.declare(reference={"file": "r.mlir", "functions": list(functions)}, **changes)

    def compare(self, source, *options, code=0, sizes=("--dim", "b=4", "--dim", "n=100")):
        if source in ("text", "dmir"):
            sizes = ()
        return self.run_tool(self.model(source) if source != "tail" else "tail.onnx", "--random-inputs", "1", *options, "--", "--kernels", "k.json", *sizes, "-t", "cpu:x86-64-v3",
                             tool="dmx-compare", code=code)


class Compared(ReferenceCase):
    def test_bundles_beside_it(self):
        """A kernel that does what its reference says, one that does not, and one without."""
        self.build()
        self.refer(argmax())
        self.assertEqual((self.dir / "r.mlir").read_text(), (EXAMPLE / "argmax.mlir").read_text())  # which the page shows
        self.assertIn("PASS output 'y'", self.compare("onnx").stdout)
        self.assertIn("no node differs", self.compare("onnx", "--per-node").stdout)
        self.build((EXAMPLE / "argmax.c").read_text().replace("x[j] > x[best]", "x[j] < x[best]"))
        self.assertIn("FAIL output 'y'", self.compare("onnx", code=5).stdout)
        self.assertIn("first node that differs: 'best'", self.compare("onnx", "--per-node", code=5).stdout)
        self.refer(argmax(kind="min"))
        self.assertIn("PASS output 'y'", self.compare("onnx").stdout)
        self.declare()
        self.assertIn("node 'best': nothing says what the kernel 'acme.argmax' computes", self.compare("onnx", code=1).stderr)

    def test_of_several_types(self):
        """Each type has a function; one that has none is said so."""
        operands = [{"name": "x", "dtype": "f16|f32|f64", "shape": ["b", "n"]}]
        self.build()
        self.refer(argmax("wide", "f32", "min") + argmax(), ("wide", "argmax"), operands=operands)
        self.assertIn("PASS output 'y'", self.compare("onnx").stdout)
        self.refer(argmax("wide", "f32"), ("wide",), operands=operands)
        self.assertIn("no function of it takes such operands", self.compare("onnx", code=1).stderr)

    def test_numbers_of_a_node(self):
        """An attribute is an argument, and dims mention it."""
        info = lambda name, dims: field(1, name) + field(2, field(1, field(1, 1) + field(2, b"".join(field(1, field(2, d)) for d in dims))))
        three = field(5, field(1, "k") + field(20, 2) + field(3, 3))
        graph = field(1, field(1, "x") + field(2, "y") + field(3, "node") + field(4, "Tail") + field(7, "com.acme") + three) + field(2, "g")
        graph += field(11, info("x", ["b", "n"])) + field(12, info("y", ["b", "m"]))
        (self.dir / "tail.onnx").write_bytes(field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17)) + field(8, field(1, "com.acme") + field(2, 1)))
        self.build(TAIL, "tail.o")
        self.refer(TAIL_REFERENCE, ["tail"], name="acme.tail", match={"onnx": {"domain": "com.acme", "op": "Tail"}}, attributes=[{"name": "k"}],
                   operands=[{"name": "x", "dtype": "f32", "shape": ["b", "n"]}], results=[{"name": "y", "dtype": "x", "shape": ["b", "n + k"]}],
                   scalars=[{"value": "n"}, {"value": "k"}], bodies=[{"target": "cpu", "object": "tail.o", "symbol": "tail"}])
        self.assertIn("PASS output 'y'", self.compare("tail", sizes=("--dim", "b=4", "--dim", "n=5")).stdout)

    def test_bundles_do_not_have_it(self):
        """The same bytes with it and without: what runs is the kernel."""
        self.build()
        self.refer(argmax(kind="min"))
        self.compile("onnx", "-t", "cpu:x86-64-v3")
        self.declare()
        self.compile("onnx", "-t", "cpu:x86-64-v3", out="without.bundle")
        self.assertEqual((self.dir / "m.bundle").read_bytes(), (self.dir / "without.bundle").read_bytes())


class Texts(ReferenceCase):
    def meaning(self, file, code=0):
        """What the interpreter makes of a text."""
        done = subprocess.run([BIN / "dmx-opt", file, "--dmxc-evaluate"], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def test_stops(self):
        """In the place of an op too the texts of all phases mean what it says; its file must lie there, and be the same."""
        fixed = lambda text: text.replace('?x?xf16, #dmir.dims<"b", "n">', "4x100xf16").replace('?xi64, #dmir.dims<"b">', "4xi64")
        (self.dir / "s.mlir").write_text(fixed((self.dir / self.model("dmir")).read_text()))
        self.build()
        self.refer(argmax(kind="min"))
        self.run_tool("s.mlir", "--kernels", "k.json", "-t", "cpu:x86-64-v3", "--dump-phases", "p", "-o", "m.bundle")
        (self.dir / "min.mlir").write_text((self.dir / "s.mlir").read_text().replace("arg_reduce max", "arg_reduce min"))
        largest, least = self.meaning("s.mlir"), self.meaning("min.mlir")
        self.assertNotEqual(largest, least)
        for file, meant in (("1-frontend.mlir", largest), ("2-partition.mlir", least), ("4-schedule.mlir", least)):
            shutil.copy(self.dir / "p" / file, self.dir / "t.mlir")
            self.assertEqual(self.meaning("t.mlir"), meant, file)
        self.run_tool("t.mlir", "--from", "schedule", "-t", "cpu:x86-64-v3", "-o", "t.bundle")
        (self.dir / "r.mlir").write_text(argmax())
        self.assertIn("is not the one that was declared", self.meaning("t.mlir", code=1))
        text = (self.dir / "t.mlir").read_text()
        (self.dir / "t.mlir").write_text(re.sub(r'file = "[^"]*r\.mlir"', 'file = "/etc/passwd"', text))
        self.assertIn("--allow-external-data", self.run_tool("t.mlir", "--from", "schedule", "-t", "cpu:x86-64-v3", "-o", "t.bundle", code=1).stderr)

    def test_what_is_wrong(self):
        self.build()
        good = argmax()
        other = self.dir.parent / (self.dir.name + ".mlir")
        other.write_text(good)
        self.addCleanup(other.unlink)
        called = lambda kernel: good.replace("  return", f'  %z = dmir.extern "{kernel}"(%x) {{bodies = [], counts = #dmir.dims<"1", "1", "0">}} : (tensor<?x?xf16, #dmir.dims<"b", "n">>) -> '
                                             'tensor<?xi64, #dmir.dims<"b">>\n  return')
        loop = good.replace("  %y =", '  %c = dmir.constant dense<true> : tensor<i1>\n  %z = dmir.if %c then @argmax else @argmax (%x) : (tensor<i1>, tensor<?x?xf16, #dmir.dims<"b", "n">>) -> '
                            'tensor<?xi64, #dmir.dims<"b">>\n  %y =')
        cases = [("r.mlir", "1:1: ", "what is this"), ("r.mlir", "it has no function 'argmax'; did you mean 'argmix'?", argmax("argmix")), ("r.mlir", "'dmir.argh'", good.replace("dmir.arg_reduce", "dmir.argh")),
                 ("r.mlir", "operand 'x' is f32 [b, n], the kernel's signature has f16 [b, n]", argmax(type="f32")),
                 ("r.mlir", "operand 'x' is f16 [b, m], the kernel's signature has f16 [b, n]", good.replace('"n"', '"m"')),
                 ("r.mlir", "argument 1 is none", good.replace('"n">>) ->', '"n">>, %k: tensor<i64>) ->', 1)),
                 ("r.mlir", "it has 1 arguments and 2 results, the kernel 1 operands and 1 results",
                  good.replace("-> tensor<?xi64, #dmir.dims<\"b\">> {", "-> (tensor<?xi64, #dmir.dims<\"b\">>, tensor<?xi64, #dmir.dims<\"b\">>) {").replace("return %y : t", "return %y, %y : tensor<?xi64, #dmir.dims<\"b\">>, t")),
                 ("r.mlir", "result 'y' is i64 [b, 1], the kernel's signature has i64 [b]", good.replace("keepDims = false", "keepDims = true").replace('?xi64, #dmir.dims<"b">', '?x1xi64, #dmir.dims<"b">')),
                 ("r.mlir", "holds the kernel itself", called("acme.argmax")), ("r.mlir", "holds the kernel 'acme.other'", called("acme.other")), ("r.mlir", "calls itself", loop),
                 ("r.mlir", "must have a body of one block", "func.func private @argmax()"), ("r.mlir", "takes the same types as 'argmax'", good + argmax("again")),
                 ("r.mlir", "which the interpreter does not compute", good.replace("  return", "  func.call @argmax(%x) : (tensor<?x?xf16, #dmir.dims<\"b\", \"n\">>) -> tensor<?xi64, #dmir.dims<\"b\">>\n  return")),
                 ("../" + other.name, "own folder alone", good), ("none.mlir", "none.mlir", good)]
        for file, clause, text in sample(cases, 4):
            with self.subTest(clause=clause):
                (self.dir / "r.mlir").write_text(text)
                self.declare(reference={"file": file, "functions": ["argmax", "again"] if "@again" in text else ["argmax"]})
                done = self.compile("onnx", "-t", "cpu:x86-64-v3", code=3 if file == "none.mlir" else 1)
                self.assertIn(clause, done.stderr)
                self.assertIn("k.json", done.stderr)
                self.assertFalse((self.dir / "m.bundle").exists())
        for clause, reference in (("an array with something in it", {"file": "r.mlir", "functions": []}), ("no key 'function'; did you mean 'functions'?", {"file": "r.mlir", "function": "f"}),
                                  ("an object is expected", "r.mlir"), ("'functions' is missing", {"file": "r.mlir"})):
            self.declare(reference=reference)
            self.assertIn(clause, self.compile("onnx", code=1).stderr)

    def test_schema(self):
        """The published schema takes what the reader takes."""
        try:
            import jsonschema
        except ImportError:
            self.skipTest("jsonschema is not installed (python3-jsonschema)")
        schema = json.loads((REPO / "schemas/kernels.schema.json").read_text())
        kernel = self.refer(argmax())
        jsonschema.validate({"kernels": [kernel]}, schema)
        beside = {**kernel, "bodies": [{"target": "cuda", "symbol": "argmax", "launch": {"grid": "b", "block": 256}}]} # in front of its code
        del beside["match"]
        jsonschema.validate({"kernels": [beside]}, schema)
        for example in sorted((REPO / "tools/examples/kernels").glob("*.json")):
            jsonschema.validate(json.loads(example.read_text()), schema)
        with self.assertRaises(jsonschema.ValidationError):
            jsonschema.validate({"kernels": [{**kernel, "reference": "r.mlir"}]}, schema)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
