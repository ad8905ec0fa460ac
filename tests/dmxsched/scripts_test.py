#!/usr/bin/python3
"""Scripts that are written in Python: the bundles of the same scripts written by hand, byte for byte. Usage: scripts_test.py BIN REPO [unittest arguments]"""
import hashlib
import re
import sys
import unittest

from case import REPO, Author

sys.path.insert(0, str(REPO / "tools/python"))
from dmxsched import handles, ops, recording  # noqa: E402

DIGITS = (REPO / "tools/digits/digits.onnx", "--dim", "batch=32")
EXAMPLES = REPO / "tools/examples"


class Examples(Author):
    """What tools/examples has in both languages."""

    def test_the_same_bytes(self):
        for name, *options in (("overrule",), ("open", "--set", "items=16", "--set", "grain=4")):
            with self.subTest(name):
                self.dmxsched(str(EXAMPLES / f"{name}.py"), "-o", "s.mlir")
                for script in (EXAMPLES / f"{name}.mlir", "s.mlir", None):
                    schedule = ["--schedule", script, *options] if script else []
                    self.run_tool(*DIGITS, *schedule, "-q", "-o", self.dir / f"{'none' if not script else 'hand' if script != 's.mlir' else 'python'}.bundle")
                bundles = {kind: (self.dir / f"{kind}.bundle").read_bytes() for kind in ("hand", "python", "none")}
                self.assertEqual(bundles["python"], bundles["hand"])
                self.assertNotEqual(bundles["python"], bundles["none"])

    def test_parameters_are_listed_alike(self):
        self.dmxsched(str(EXAMPLES / "open.py"), "-o", "s.mlir")
        lists = [self.run_tool("tune", *DIGITS, "--schedule", script, "--list").stdout for script in (EXAMPLES / "open.mlir", "s.mlir")]
        self.assertEqual(lists[1], lists[0])
        self.assertIn("grain", lists[0])

    def test_a_decision_is_by_the_line_of_python(self):
        self.write("from dmxsched import schedule\n\n\n@schedule(at='partition')\ndef s(m):\n    m.match('dmir.conv', nth=0).decide(grain=7)\n")
        self.dmxsched("s.py", "-o", "s.mlir")
        self.assertIn("grain = 7  (s.py:6:5)", self.run_tool(*DIGITS, "--schedule", "s.mlir", "--explain-decisions", "-o", "o").stdout)


class Loops(Author):
    """A batch of products of 128x80x32 by 128x32x320 on corsair, by loops."""

    MODEL = """func.func @main(%a: tensor<128x80x32xf32> {dmir.name = "a"}, %b: tensor<128x32x320xf32> {dmir.name = "b"}) -> (tensor<128x80x320xf32> {dmir.name = "y"}) {
  %0 = dmir.matmul %a, %b : (tensor<128x80x32xf32>, tensor<128x32x320xf32>) -> tensor<128x80x320xf32>
  return %0 : tensor<128x80x320xf32>
}
"""

    def setUp(self):
        super().setUp()
        (self.dir / "m.mlir").write_text(self.MODEL)

    def bundle(self, *schedule):
        self.run_tool("m.mlir", "-t", "corsair", *schedule, "-q", "-o", "m.bundle")
        return hashlib.sha256((self.dir / "m.bundle").read_bytes()).hexdigest()

    def test_the_same_bytes_by_python_and_by_text(self):
        self.dmxsched(str(EXAMPLES / "batch_matmul.py"), "-o", "s.mlir")
        before = self.bundle()
        for options in ((), ("--set", "columns=5")):
            bundles = [self.bundle("--schedule", script, *options) for script in (EXAMPLES / "batch_matmul.mlir", "s.mlir")]
            self.assertEqual(bundles[1], bundles[0])
            self.assertNotIn(before, bundles)
            before = bundles[0]

    def test_a_sequence_of_another_file(self):
        """The bundle is that of the same in one file; the file is looked for beside the script, then in the path."""
        text = (EXAMPLES / "batch_matmul.mlir").read_text()
        sequence = text[text.index("  transform.named_sequence @interchange"):text.index("  transform.named_sequence @tiled")]
        (self.dir / "far").mkdir()
        for file in ("lib.mlir", "far/loops.mlir"):
            (self.dir / file).write_text("module attributes {transform.with_named_sequence} {\n" + sequence + "}\n")
        whole = self.bundle("--schedule", EXAMPLES / "batch_matmul.mlir")
        for library, paths in (("lib.mlir", ()), ("loops.mlir", ("--schedule-path", "far"))):
            self.write("from dmxsched import include, schedule\n\n\n@schedule(at='schedule.tiles')\ndef s(module):\n"
                       f"    nest = include('{library}', 'interchange', module.match(kind='nest'), results=1)\n    nest.tile([2, 2])[1].unroll(full=True)\n")
            self.dmxsched("s.py", "-o", "s.mlir")
            self.assertEqual(self.bundle("--schedule", "s.mlir", *paths), whole)
        error = self.run_tool("m.mlir", "-t", "corsair", "--schedule", "s.mlir", "-o", "o", code=1).stderr
        self.assertIn("s.py:6:12: error: there is no file 'loops.mlir' in '.', '", error)

    def test_what_it_computes(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed (python3-numpy)")
        random = numpy.random.default_rng(3)
        a, b = random.standard_normal((128, 80, 32), "f4"), random.standard_normal((128, 32, 320), "f4")
        for folder, tensors in (("in", {"a": a, "b": b}), ("out", {"y": a @ b})):
            (self.dir / folder).mkdir()
            for name, tensor in tensors.items():
                numpy.save(self.dir / folder / f"{name}.npy", tensor)
        self.dmxsched(str(EXAMPLES / "batch_matmul.py"), "-o", "s.mlir")
        self.bundle("--schedule", "s.mlir")
        self.run_tool("m.bundle", "--inputs", "in", "--expect", "out", "--min-sqnr", "35", tool="dmx-run")

    def test_steps_that_only_enable_others(self):
        """Fewer than one in ten of the author's lines, if the line that declares what a function needs is one."""
        lines = [line for line in (EXAMPLES / "batch_matmul.py").read_text().split('"""')[2].splitlines() if line.strip()]
        enabling = [line for line in lines if re.search(r"requires|normalize|check|apply_|run_pass|canonical|licm|cse|simplify|cast", line)]
        self.assertEqual(len(enabling), 1, enabling)
        self.assertLess(len(enabling) / len(lines), 0.1)


class Texts(Author):
    def lines(self, body, before=""):
        """The ops of the schedule `s`, in MLIR's short form."""
        text = self.printed(f"from dmxsched import *\n\n{before}\n@schedule(at='partition')\ndef s(module):\n" + body)
        return [line.strip() for line in text.splitlines() if line.startswith("    ")][:-1]

    def test_ops_that_have_a_method_of_their_own(self):
        handle, number = "!transform.any_op", "!transform.param<i64>"
        self.assertEqual(self.lines(
            "    r = module.match('dmir.conv', node='l*', where={'strides': [2, 2]}, expect=3)\n    module.match(kind='product', expect='any')\n"
            "    n = r.dim(-1, of_operand=1)\n    p = param('p', divides=n, default=4)\n    q = param('q', range=(1, p))\n"
            "    r.decide({'algorithm': 'a', 'x86-64-v4': {'rows': 8}}, grain=q)\n    param('t', one_of=['a', 'b'])\n"), [
            f'%0 = transform.dmx.match {{node = "l*", op = "dmir.conv", where = {{strides = [2, 2]}}}} in %arg0 expect 3 : {handle} -> {handle}',
            f'%1 = transform.dmx.match {{kind = "product"}} in %arg0 expect any : {handle} -> {handle}',
            f"%2 = transform.dmx.dim %0 operand 1 [-1] : {handle} -> {number}",
            f'%3 = transform.dmx.param "p" divides %2 default 4 -> {number}',
            f'%4 = transform.dmx.param "q" range 1 to %3 -> {number}',
            f'transform.dmx.decide %0 {{algorithm = "a", "x86-64-v4" = {{rows = 8 : i64}}}} with grain = %4 : {handle}, {number}',
            '%5 = transform.dmx.param "t" one_of ["a", "b"] -> !transform.any_param'])

    def test_ops_of_the_table(self):
        """Numbers and parameters in one list; a number where a parameter is taken; an enumeration; a handle of one kind of ops."""
        handle, number = "!transform.any_op", "!transform.param<i64>"
        self.assertEqual([line.partition(" (!transform.op<")[0] for line in self.lines(
            "    p = param('p', one_of=[2, 4])\n    r = module.structured.match(ops=['linalg.matmul'], interface='TilingInterface')\n"
            "    tiled, loops = r.structured.tile_using_for(sizes=[4, p], results=2)[:2]\n    tiled.annotate('mark', param=5)\n"
            "    tiled.loop.unroll(4)\n    loops.structured.lower_unpack()\n"
            "    module.structured.match(ops=['func.func'], attributes={'dmx.may_be_none': Attribute('unit')})\n")], [
            f'%0 = transform.dmx.param "p" one_of [2, 4] -> {number}',
            f'%1 = transform.structured.match ops{{["linalg.matmul"]}} interface{{TilingInterface}} in %arg0 : ({handle}) -> {handle}',
            f"%tiled_linalg_op, %loops:2 = transform.structured.tile_using_for %1 tile_sizes [4, %0] : ({handle}, {number}) -> ({handle}, {handle}, {handle})",
            f"%2 = transform.param.constant 5 : i64 -> {number}",
            f'transform.annotate %tiled_linalg_op "mark" = %2 : {handle}, {number}',
            f"transform.loop.unroll %tiled_linalg_op {{factor = 4 : i64}} : {handle}",
            f'%3 = transform.cast %loops#0 : {handle} to !transform.op<"linalg.unpack">',
            "%empty_op, %transpose_op, %collapse_shape_op, %extract_slice_op = transform.structured.lower_unpack %3 :",
            f'%4 = transform.structured.match ops{{["func.func"]}} in %arg0 {{dmx.may_be_none}} : ({handle}) -> {handle}'])

    def test_functions_become_sequences(self):
        """Once for what they are called with; a handle that they consume is marked so, and what they return is yielded."""
        text = self.printed("from dmxsched import *\n\n\n@transform\ndef grain(r, n):\n    r.decide(grain=n)\n    return r.dim(0)\n\n\n@transform\ndef gone(r):\n"
                            "    r.loop.unroll(factor=2)\n\n\n@schedule(at='partition')\ndef s(m):\n    r = m.match()\n    grain(r, 3)\n    n = grain(r, 4)\n"
                            "    grain(m.match(), 3)\n    param('p', divides=n)\n    gone(r)\n")
        self.assertEqual(re.findall(r"named_sequence (@\w+\(.*?\).*?) (?:attributes .*)?\{\n", text), [
            "@grain(%arg0: !transform.any_op {transform.readonly}) -> !transform.param<i64>",
            "@grain_2(%arg0: !transform.any_op {transform.readonly}) -> !transform.param<i64>",
            "@gone(%arg0: !transform.any_op {transform.consumed})", "@s(%arg0: !transform.any_op {transform.readonly})"])
        self.assertEqual(re.findall(r"include (@\w+) failures\((\w+)\)", text), [("@grain", "propagate"), ("@grain_2", "propagate"), ("@grain", "propagate"), ("@gone", "propagate")])

    def test_bodies(self):
        lines = self.lines("    r = module.match()\n    n = r.foreach(lambda x: x.dim(0))\n    @r.alternatives\n    def one(x):\n        x.decide(grain=2)\n    param('p', divides=n)\n")
        self.assertEqual([line for line in lines if "foreach" in line or "alternatives" in line or "yield" in line], [
            "%1 = transform.foreach %0 : !transform.any_op -> !transform.param<i64> {", "transform.yield %3 : !transform.param<i64>",
            "transform.alternatives %0 : !transform.any_op {"])

    def test_names_are_the_author_s(self):
        self.write("from dmxsched import *\n\n\n@schedule(at='partition')\ndef s(model):\n    convs = model.match()\n    a = model.match(); a = model.match()\n"
                   "    model.match(\n        'dmir.conv')\n")
        text = self.dmxsched("s.py")
        self.assertEqual(re.findall(r'(%\w+) = "transform.dmx.match"\((%\w+)\)', text), [("%convs", "%model"), ("%a", "%model"), ("%a_2", "%model"), ("%matched", "%model")])

    def test_names_that_mlir_has_not(self):
        """Of functions, values, parameters, files: all that Python takes."""
        self.write("from dmxsched import *\n\n\n@transform\ndef größer(naïf):\n    naïf.decide(grain=2)\n\n\n@schedule(at='partition')\ndef plan_é(modèle):\n"
                   "    été = modèle.match('dmir.conv')\n    größer(été)\n    été.annotate('naïf \"x\\\\', param=param('été', one_of=['é', '\\n\\t\"']))\n"
                   "    (lambda x: x.foreach(lambda y: y.decide({'é': {'b c': [1]}})))(été)\n", file='fün "x".py')
        self.dmxsched('fün "x".py', "-o", "s.mlir")
        text = self.run_tool("s.mlir", "--mlir-print-debuginfo", tool="dmx-opt").stdout
        for words in ('"f\\C3\\BCn \\22x\\22.py":11:11', 'one_of ["\\C3\\A9", "\\0A\\09\\22"]', '"na\\C3\\AFf \\22x\\\\"', '"\\C3\\A9" = {"b c" = [1]}'):
            self.assertIn(words, text)

    def test_every_op_of_the_compiler(self):
        """With a value for each argument, and with those alone that it needs: all are read as the ops that are meant."""
        texts = [whole for op in ops.known().values() if not op.row["regions"] for whole in {self.example(op, False), self.example(op, True)}]
        self.assertGreater(len(texts), 200)
        (self.dir / "all.mlir").write_text("// -----\n".join(texts))
        errors = re.findall(r"error: (.*)", self.run_tool("all.mlir", "--split-input-file", "-o", self.dir / "out", tool="dmx-opt", code=1).stderr)
        ours = r"attribute|propert|operand #|operand count|result #|segment|redefin|undeclared|unregistered|unknown op|must be Transform|expected ['\"]"
        self.assertEqual([error for error in errors if re.search(ours, error)], [])
        self.assertLess(len(errors), 60)  # of others the values make no sense: 3 sizes for 1 dim

    def example(self, op, whole):
        values = {"int": 1, "bool": True, "unit": True, "str": "x", "symbol": "f", "type": "i32", "dict": {}, "ints": [1, 2, 3], "ints32": [1, 2], "bools": [True],
                  "strs": ["x"], "int list": [1], "symbols": ["f"], "dicts": [{}], "types": ["i32"], "lists of ints": [[1]], "list": [], "any": 1}
        recording.Recorder.current = now = recording.Recorder()
        self.addCleanup(setattr, recording.Recorder, "current", None)
        block = now.block = recording.Block()
        takes, given = [], {}
        for name, argument in op.arguments.items():
            if not whole and not argument.required:
                continue
            if argument.attribute:
                given[name] = next(iter(argument.attribute["words"])) if "words" in argument.attribute else values[argument.attribute["type"]]
                continue
            value = handles.value_of(argument.operand["of"].split("|")[0], block, "h")
            takes.append((value._name, value._type, argument.operand["name"] in op.row["consumes"]))
            given[name] = [value] if argument.operand.get("count") == "variadic" else value
        if any(result.get("count") for result in op.row["results"]):
            given["results"] = 1
        handles.apply(op, None, **given)
        return "module attributes {transform.with_named_sequence} {\n" + recording.sequence_text("s", takes, block, [], self.example.__func__) + "}\n"


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
