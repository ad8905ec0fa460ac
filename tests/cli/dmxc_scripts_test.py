#!/usr/bin/env python3
"""dmxc --schedule: scripts whose ops of MLIR would do something else than is meant, or nothing. Usage: dmxc_scripts_test.py BIN REPO [unittest arguments]"""
import sys
import unittest

from dmxc_case import DIGITS, Base
from dmxc_schedule_test import ANY, BATCH, CONV2, match, script

PARAM = "!transform.any_param"
SOFTMAX = match('kind = "op", op = "dmir.softmax"', "s")
REGION = match('node = "body/softmax"')  # of the region, which is called after its first node, body/exp


def annotate(handle, name, value=None, type="i64"):
    """The lines of an annotation; `value` as MLIR writes it."""
    if value is None:
        return (f'transform.annotate %{handle} "{name}" : {ANY}',)
    value = value if type is None or value.startswith('"') else f"{value} : {type}"
    return (f"%v = transform.param.constant {value} -> {PARAM}", f'transform.annotate %{handle} "{name}" = %v : {ANY}, {PARAM}')


class Guards(Base):
    def said(self, *lines, code=1, consumes=False):
        text = script(*lines)
        (self.dir / "s.mlir").write_text(text.replace("transform.readonly", "transform.consumed") if consumes else text)
        done = self.run_tool(self.small, "-t", "cpu", "--schedule", "s.mlir", "--emit", "partition", "-o", "-", code=code)
        self.assertNotIn("reproducer", done.stderr)
        return done.stderr if code else done.stdout

    def test_annotations_that_are_refused(self):
        for line, (handle, name, value, *rest), message in (
                (REGION, ("r", "device", '"corsair"'), "'device' of node 'body/exp' ('dmir.region') is not for annotations: transform.dmx.decide"),
                (REGION, ("r", "strategy", '"nonsense"'), "'strategy' of node 'body/exp' ('dmir.region') is not for annotations"),
                (REGION, ("r", "strategy", None), "'strategy' of node 'body/exp'"),
                (REGION, ("r", "placement", "{}", None), "'placement' of node"),
                (REGION, ("r", "dmir.formats", '[1, "a", unit]', None), "'dmir.formats' is an attribute of the compiler's own"),
                (SOFTMAX, ("m", "dmir.sparsity", "5"), "'dmir.sparsity' is an attribute of the compiler's own"),
                (SOFTMAX, ("m", "sym_name", '"x"'), "'sym_name' of node 'builtin.module' ('builtin.module') is not for annotations"),
                (SOFTMAX, ("s", "axis", '"last"'), """node 'body/softmax' ('dmir.softmax') cannot have axis = "last": it is of another kind"""),
                (SOFTMAX, ("s", "axis", None), "cannot have axis = unit: it is of another kind"),
                (SOFTMAX, ("m", "mark", '"mine"'), """node 'builtin.module' ('builtin.module') cannot have mark = "mine": """),
                (SOFTMAX, ("s", "axis", "9"), "node 'body/softmax' ('dmir.softmax') cannot have axis = 9 : i64: ")):
            with self.subTest(name=name, value=value):
                err = self.said(line, *annotate(handle, name, value, *rest))
                self.assertIn(message, err)
                self.assertIn("[schedule-refused]", err)
                self.assertRegex(err, r"s\.mlir:[45]:5: ")

    def test_a_decision_is_no_annotation(self):
        (self.dir / "s.mlir").write_text(script(CONV2, *annotate("r", "grain", "7")))
        err = self.run_tool(DIGITS, *BATCH, "-t", "cpu", "--schedule", "s.mlir", "--emit", "partition", "-o", "-", code=1).stderr
        self.assertIn("'grain' of node '/conv2/Conv' ('dmir.region') is a decision, which annotations do not make; write transform.dmx.decide", err)

    def test_annotations_that_are_taken(self):
        self.assertIn('mark = "mine"', self.said(REGION, *annotate("r", "mark", '"mine"'), code=0))
        self.assertIn("axis = 0", self.said(SOFTMAX, *annotate("s", "axis", "0"), code=0))

    def test_the_model_itself_is_not_exchanged(self):
        tries = "{ ^bb0(%x: !transform.any_op): transform.yield }"
        self.assertIn("exchanges what it tries things on, and the handle has the model itself", self.said(f"transform.alternatives %m : {ANY} {tries}", consumes=True))
        err = self.said(f"transform.alternatives {tries}")
        self.assertIn("'transform.alternatives' without a handle is of the model itself", err)
        self.assertIn("s.mlir:3:5: error: ", err)
        self.said(REGION, f"transform.alternatives %r : {ANY} {tries}", code=0)

    def test_passes(self):
        """Those that fit; of others that they are unknown."""
        for name, code in (("canonicalize", 0), ("cse", 0), ("symbol-privatize", 1), ("remove-dead-values", 1), ("snapshot-op-locations", 1)):
            run = f'%p = transform.apply_registered_pass "{name}" to %m : ({ANY}) -> {ANY}'
            (self.dir / "s.mlir").write_text(script(run).replace("transform.readonly", "transform.consumed"))
            err = self.run_tool(self.small, "--schedule", "s.mlir", "-o", "o", code=code).stderr
            self.assertEqual("unknown pass or pass pipeline" in err, bool(code), err)

    def test_the_model_stays_what_it_is(self):
        line = f"%a:2 = transform.func.replace_func_signature @main args_interchange = [1, 0] results_interchange = [0] at %m : ({ANY}) -> ({ANY}, {ANY})"
        (self.dir / "two.mlir").write_text("""func.func @main(%x: tensor<4xf32> {dmir.name = "x"}, %n: tensor<4xi64> {dmir.name = "n"}) -> (tensor<4xf32> {dmir.name = "y"}) {
  %0 = dmir.cast %n : (tensor<4xi64>) -> tensor<4xf32>
  %1 = dmir.add %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
""")
        (self.dir / "s.mlir").write_text(script(line).replace("transform.readonly", "transform.consumed"))
        err = self.run_tool("two.mlir", "--schedule", "s.mlir", "-o", "o", code=1).stderr
        self.assertIn("the scripts changed what of the model can be called, or its inputs and outputs", err)

    def test_ops_that_are_not_whole(self):
        """In MLIR's generic form an op may lack what it needs, which a sequence asks it for."""
        for line in (f'"transform.foreach"(%m) : ({ANY}) -> ()', f'"transform.foreach"(%m) ({{}}) : ({ANY}) -> ()',
                     f'"transform.match.param.cmpi"(%m) : ({ANY}) -> ()', f'"transform.alternatives"(%m) : ({ANY}) -> ()'):
            with self.subTest(line=line):
                self.assertRegex(self.said(line, consumes="alternatives" in line), r"s\.mlir:3:5: error: ")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
