#!/usr/bin/env python3
"""dmx-compare and dmx-run --expect say PASS of networks that are right, and models are taken whose other branch cannot be at the sizes of a
run. Usage: compare_test.py BIN REPO [unittest arguments]. Exit 77 without numpy and onnx; models of ../shared/data/real-models that are not
there are skipped."""
import sys
import unittest

try:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    print("SKIPPED: numpy or onnx is not installed (python3-numpy python3-onnx)")
    sys.exit(77)

from dmxc_case import BIN, REPO, Base

sys.path.insert(0, str(REPO / "tests"))
from sampling import LONG

MODELS = REPO.parent / "shared/data/real-models"


def branches(then, otherwise, dims):
    """y = c ? then(x) : otherwise(x); both are operators with their constants, an array each."""
    def graph(name, operator, *constants, **attributes):
        weights = [numpy_helper.from_array(np.asarray(value), f"{name}_w{i}") for i, value in enumerate(constants)]
        nodes = [helper.make_node(operator, ["x", *(w.name for w in weights)], [name + "_y"], name=name + "_node", **attributes)]
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name + "_y", TensorProto.FLOAT, None)], weights)
    node = helper.make_node("If", ["c"], ["y"], name="choice", then_branch=graph("t", *then), else_branch=graph("e", *otherwise))
    values = [helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)]
    whole = helper.make_graph([node], "g", values, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    return helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


class Compare(Base):
    def real(self, name):
        folder = MODELS / name
        if not (folder / "model.onnx").exists():
            self.skipTest(f"{folder} is not there")
        return folder / "model.onnx", folder / "test_data_set_0"

    def passes(self, name):
        model, data = self.real(name)
        done = self.run_tool(model, "--inputs", data, "--per-node", tool="dmx-compare")
        self.assertIn("rule: |error| <= 0.002 |expected| + 0.0002 max |expected|; integers equal\n", done.stdout)
        self.assertIn("no node differs among ", done.stdout)
        return done

    def test_elements_near_zero(self):
        """24 of 260,096 elements are far off by their own size, and none by the largest."""
        self.passes("magika_standard_v3_3")
        model, data = self.real("magika_standard_v3_3")
        self.assertIn("FAIL first node that differs", self.run_tool(model, "--inputs", data, "--per-node", "--rtol", "1e-3", tool="dmx-compare", code=5).stdout)

    @unittest.skipUnless(LONG, "takes a minute")
    def test_one_element_of_nine_million(self):
        self.passes("dnsmos_sig_bak_ovr")

    def test_a_network_for_two_rates(self):
        """The other rate's branch cannot be at these sizes."""
        done = self.passes("silero_vad_v6")
        self.assertIn("its else_branch cannot be computed at these sizes", done.stderr)

    def write(self, *arguments):
        (self.dir / "m.onnx").write_bytes(branches(*arguments))
        return self.dir / "m.onnx"

    def inputs(self, c, x):
        np.save(self.dir / "c.npy", np.array(c))
        np.save(self.dir / "x.npy", x)
        return ["--inputs", self.dir]

    WRONG = ("Reshape", np.array([7, 7], np.int64))  # of 6 elements
    RIGHT = ("Mul", np.float32(3))

    def test_a_branch_that_cannot_be(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        for wrong, attribute in ((True, "then_branch"), (False, "else_branch")):
            model = self.write(*((self.WRONG, self.RIGHT) if wrong else (self.RIGHT, self.WRONG)), [2, 3])
            err = self.run_tool(model, "-o", "m.bundle").stderr
            self.assertIn(f"node 'choice': warning: its {attribute} cannot be computed at these sizes; a run that takes it is refused [branch-shape]\n"
                          f"  note: node 'choice/{attribute[:4]}/{'t' if wrong else 'e'}_node': Reshape ", err)
            self.run_tool(model, "-o", "m.bundle", "-Werror", code=1)
            self.run_tool("m.bundle", *self.inputs(not wrong, x), "--output-dir", "out", tool="dmx-run")
            np.testing.assert_array_equal(np.load(next((self.dir / "out").glob("*y.npy"))), 3 * x)
            self.assertIn("choice", self.run_tool("m.bundle", *self.inputs(wrong, x), tool="dmx-run", code=1).stderr)

    def test_what_is_wrong_in_a_branch_is_said(self):
        """Neither branch can be; one is of an operator that is not known."""
        err = self.run_tool(self.write(self.WRONG, self.WRONG, [2, 3]), "-o", "o", code=1).stderr
        self.assertIn("_node': error: Reshape ", err)
        err = self.run_tool(self.write(("Strange",), self.RIGHT, [2, 3]), "-o", "o", code=1).stderr
        self.assertIn("node 'choice/then/t_node': error: Strange ", err)
        err = self.run_tool(self.write(self.RIGHT, ("Strange",), [2, 3]), "-o", "o", code=1).stderr
        self.assertIn("node 'choice/else/e_node': error: Strange ", err)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
