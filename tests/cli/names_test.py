#!/usr/bin/env python3
"""Names in other people's models and bundles: control characters in them never reach a terminal or a report as they are. Usage:
names_test.py BIN REPO [unittest arguments]. Exit 77 without numpy and onnx."""
import json
import sys
import unittest

try:
    import numpy as np
    from onnx import TensorProto, helper
except ImportError:
    print("SKIPPED: numpy or onnx is not installed (python3-numpy python3-onnx)")
    sys.exit(77)

from dmxc_case import Base

# Moves the cursor, clears the screen, says something in our place, C1's CSI.
EVIL = "a\x1b[2J\x1b[31m\nm.onnx: error: none\r\t\x7f\u009bm"
SHOWN = "a\\x1b[2J\\x1b[31m\\nm.onnx: error: none\\r\\t\\x7f\\u009bm"


def model(operators, dims=(4, 8), softmax=False):
    """Unary operators one after the other; every name has EVIL in it."""
    values = [EVIL + "x"] + [EVIL + str(i) for i in range(len(operators) - 1)] + [EVIL + "y"]
    nodes = [helper.make_node(op, [values[i]], [values[i + 1]], name=f"{EVIL}n{i}") for i, op in enumerate(operators)]
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, list(dims))
    graph = helper.make_graph(nodes, "g", [value(values[0])], [value(values[-1])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


class Names(Base):
    def write(self, *arguments, **keywords):
        (self.dir / "m.onnx").write_bytes(model(*arguments, **keywords))

    def see(self, *texts):
        """What a terminal would get: no control characters but lines' ends and tabs, and no line that a name made."""
        for text in texts:
            found = [c for c in text if (c < " " and c not in "\n\t") or "\x7f" <= c < "\xa0"]
            self.assertEqual(found, [], text)
            self.assertFalse([line for line in text.split("\n") if line.startswith("m.onnx: error: none")], text)

    def test_messages(self):
        self.write(["Strange", "Relu"])
        for more in ([], ["--all-errors"]):
            err = self.run_tool("m.onnx", "-o", "o", *more, code=1).stderr
            self.see(err)
            self.assertIn(SHOWN + "n0", err)
        line = json.loads(self.run_tool("m.onnx", "-o", "o", "--diagnostics", "json", code=1).stderr.splitlines()[0])
        self.assertEqual(line["node"], EVIL + "n0")

    def test_reports(self):
        self.write(["Relu", "Softmax", "Exp"])
        reports = ["--placement-report", "p", "--sparsity-report", "s", "--explain-decisions", "--time-report", "text", "--progress", "plain", "-v"]
        done = self.run_tool("m.onnx", "-o", "m.bundle", *reports)
        placement = (self.dir / "p").read_text()
        self.see(done.stdout, done.stderr, placement, (self.dir / "s").read_text())
        self.assertIn(SHOWN + "n0\tdmir.relu\t", placement)
        self.assertEqual({line.count("\t") for line in placement.splitlines()[1:]}, {6})

    def test_tools(self):
        self.write(["Relu", "Exp"], dims=(EVIL + "d", 8))
        self.run_tool("m.onnx", "-o", "m.bundle")
        np.save(self.dir / "x.npy", np.zeros((3, 8), np.float32))
        for tool, arguments in (("dmx-run", ["--random-inputs", "1"]), ("dmx-run", ["--random-inputs", "1", "--per-task"]),
                                ("dmx-inspect", []), *(("dmx-inspect", ["--what", what]) for what in ("tensors", "dims", "tasks", "memory", "kernels"))):
            self.see(self.run_tool("m.bundle", *arguments, tool=tool).stdout)
        for arguments in ([], ["--input", "z=x.npy"], ["--random-inputs", "1", "--dim", "z=3"]):
            done = self.run_tool("m.bundle", *arguments, tool="dmx-run", code=2)
            self.see(done.stdout, done.stderr)
        done = self.run_tool("m.onnx", "--random-inputs", "1", "--per-node", tool="dmx-compare")
        self.see(done.stdout, done.stderr)
        # What names select stays what it is.
        self.run_tool("m.bundle", "--input", f"{EVIL}x=x.npy", "--output-dir", "out", tool="dmx-run")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
