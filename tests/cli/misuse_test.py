#!/usr/bin/env python3
"""What is given and cannot be used is refused, and equal errors are said once. Usage: misuse_test.py BIN REPO [unittest arguments].
Exit 77 without numpy and onnx."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    print("SKIPPED: numpy or onnx is not installed (python3-numpy python3-onnx)")
    sys.exit(77)

from dmxc_case import BIN, DIGITS, SMALL, Base, onnx_with_external_weights


def model(nodes, outputs=("y",), opset=17, shape=(4, 8)):
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))
    graph = helper.make_graph(nodes, "g", [value("x")], [value(name) for name in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


def chain(operators):
    """The operators one after the other, from x to y."""
    names = ["x"] + [f"t{i}" for i in range(1, len(operators))] + ["y"]
    return [helper.make_node(op, [names[i]], [names[i + 1]], name=f"n{i}") for i, op in enumerate(operators)]


class Misuse(Base):
    def write(self, *arguments, name="m.onnx", **keywords):
        (self.dir / name).write_bytes(model(*arguments, **keywords))
        return name

    # --- refused -----------------------------------------------------------------------
    def test_an_entry_point_that_is_not_there(self):
        err = self.run_tool(self.write(chain(["Relu"])), "--entry", "foo", "-o", "o", code=2).stderr
        self.assertIn("there is no entry point 'foo': an ONNX file has one, 'main'", err)
        self.run_tool("m.onnx", "--entry", "main", "-o", "o")

    def test_a_folder_of_external_data_that_is_not_there(self):
        (self.dir / "m.onnx").write_bytes(onnx_with_external_weights())
        (self.dir / "weights.bin").write_bytes(bytes(16))
        for folder, why in (("absent", "No such file"), ("weights.bin", "not a folder")):
            err = self.run_tool("m.onnx", "--allow-external-data", folder, "-o", "o", code=3).stderr
            self.assertIn(f"--allow-external-data '{folder}': ", err)
            self.assertIn(why, err)
        self.run_tool("m.onnx", "--allow-external-data", ".", "-o", "o")

    def test_a_dim_or_shape_given_twice(self):
        err = self.run_tool(DIGITS, "--dim", "batch=1", "--dim", "batch=2", "-o", "o", code=2).stderr
        self.assertIn("the dim 'batch' is given twice: --dim batch=1, --dim batch=2", err)
        self.run_tool(DIGITS, "--dim", "batch=1", "--dim", "batch=1", "-o", "o", code=2)
        err = self.run_tool("m.onnx", "--shape", "x=4x8", "--shape", "x=none", "-o", "o", code=2).stderr
        self.assertIn("the shape of 'x' is given twice", err)

    def test_commands_of_others(self):
        """Words that elsewhere are commands: what to type, to be pasted. A file of that name is a model."""
        bundle = "dmxc m.onnx -o m.bundle"
        for words, text in ((["compile", "m.onnx"], f"there is no command 'compile'; dmxc compiles the model that it is given: {bundle}"),
                            (["compile"], "dmxc model.onnx -o model.bundle"),
                            (["run", "m.onnx"], f"{bundle} && dmx-run m.bundle --random-inputs 1"),
                            (["run", "a/m.bundle"], "bundles are run by dmx-run: dmx-run a/m.bundle --random-inputs 1"),
                            (["benchmark", "m.bundle", "-q"], "dmx-run m.bundle --random-inputs 1 --benchmark"),
                            (["inspect", "m.bundle"], "dmx-inspect m.bundle"),
                            (["build", "-o", "x", "a b.onnx"], "dmxc model.onnx -o model.bundle"),
                            (["convert", "my model.onnx"], "dmxc 'my model.onnx' -o 'my model.bundle'"), (["help"], "dmxc --help")):
            err = self.run_tool(*words, code=2).stderr
            self.assertTrue(err.rstrip("\n").endswith(text + " [usage]"), f"{words}: {err}")
        self.write(chain(["Relu"]), name="run")
        self.run_tool("run", "-o", "o", "-q")

    def test_a_gpu_is_cuda(self):
        if "cuda" not in self.run_tool("--print-targets").stdout:
            self.skipTest("this build lacks the target cuda")
        for name in ("cuda", "gpu", "nvidia:sm_90a"):
            self.run_tool(self.write(chain(["Relu"])), "-q", "-t", name, "-o", f"{name[:3]}.bundle")
        bundles = [(self.dir / f"{name}.bundle").read_bytes() for name in ("cud", "gpu", "nvi")]
        self.assertEqual(bundles, bundles[:1] * 3)
        self.run_tool("m.onnx", "-q", "-t", "gpu", "-t", "cpu", "--place", "n*=gpu", "--require-target", "gpu:100", "-o", "o")
        self.assertEqual(self.run_tool("--print-target-info", "gpu").stdout, self.run_tool("--print-target-info", "cuda").stdout)
        self.assertIn("unknown target 'gpus'; this build has: ", self.run_tool("m.onnx", "-t", "gpus", code=2).stderr)

    def test_tuning_open_sizes(self):
        """What is to be added is said by the model's own names, and works when it is pasted."""
        err = self.run_tool("tune", DIGITS, "--db", "d.jsonl", code=2).stderr
        self.assertIn("of its inputs' dims 'batch' is open; add the sizes that count, for example --dim batch=128", err)
        value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", "a dim"])
        graph = helper.make_graph(chain(["Relu"]), "g", [value("x")], [value("y")])
        text = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
        (self.dir / "open.onnx").write_bytes(text)
        err = self.run_tool("tune", "open.onnx", "--db", "d.jsonl", code=2).stderr
        self.assertIn("'rows', 'a dim' are open", err)
        flags = shlex.split(re.search(r"for example (--dim .*?)(?: \[|$)", err, re.M)[1])
        self.assertEqual(flags, ["--dim", "rows=128", "--dim", "a dim=128"])
        self.run_tool("tune", "open.onnx", "--db", "d.jsonl", "--trials", 2, *flags)  # its sizes are known now

    def test_a_state_without_a_size(self):
        """A cache that grows along an open dim; what the message says makes it work."""
        info = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        nodes = [helper.make_node("Concat", ["past.0.key", "x"], ["present.0.key"], axis=1), helper.make_node("Transpose", ["present.0.key"], ["t"], perm=[0, 2, 1]),
                 helper.make_node("MatMul", ["x", "t"], ["s"]), helper.make_node("Softmax", ["s"], ["p"], axis=-1), helper.make_node("MatMul", ["p", "present.0.key"], ["y"])]
        graph = helper.make_graph(nodes, "g", [info("x", [1, 1, 8]), info("past.0.key", [1, "past", 8])], [info("y", [1, 1, 8]), info("present.0.key", [1, "total", 8])])
        (self.dir / "m.onnx").write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
        for level in ("0", "2"):
            command = ["m.onnx", "-o", "o", "-O", level, "--state", "past.0.key=present.0.key"]
            err = self.run_tool(*command, code=1).stderr
            self.assertIn("--state past.0.key=present.0.key: the state has 'past' rows, none at first; ", err)
            advice = re.search(r": (--dim \w+=0\.\.)N ", err)[1]
            self.assertFalse((self.dir / "o").exists())
            self.run_tool(*command, *f"{advice}7".split())
            (self.dir / "o").unlink()

    def test_a_model_without_outputs(self):
        err = self.run_tool(self.write(chain(["Relu"]), outputs=()), "-o", "o", code=1).stderr
        self.assertIn("the model has no outputs", err)
        (self.dir / "none.mlir").write_text("func.func @main(%x: tensor<4xf32>) { return }\n")
        self.run_tool("none.mlir", "-o", "o", code=1)
        self.assertFalse((self.dir / "o").exists())

    def test_an_output_that_is_a_directory(self):
        """Before the compile, so of a model that is not even there."""
        (self.dir / "folder").mkdir()
        err = self.run_tool("absent.onnx", "-o", "folder", code=3).stderr
        self.assertIn("cannot write 'folder': it is a directory", err)
        self.run_tool(self.small, "--emit", "frontend", "-o", "folder", code=3)

    def test_what_belongs_to_phases_that_do_not_run(self):
        self.run_tool(self.small, "--emit", "memory", "-o", "s.mlir")
        for flags in (["--dim", "n=1"], ["--entry", "main"], ["--placement-report", "-"], ["--place", "*=cpu"]):
            err = self.run_tool("s.mlir", "--from", "memory", "-o", "o", *flags, code=2).stderr
            self.assertIn(flags[0] + " ", err)
        self.assertIn("does not run", self.run_tool(self.small, "--emit", "frontend", "--require-target", "cpu", code=2).stderr)

    def test_a_model_given_to_dmx_run(self):
        for tool in ("dmx-run", "dmx-inspect"):
            for given in (DIGITS, self.small):
                err = self.run_tool(given, tool=tool, code=1).stderr
                self.assertIn(f"'{given}' is a model, not a bundle; compile it first: dmxc {given} -o", err)
        self.run_tool("absent.onnx", tool="dmx-run", code=3)

    # --- warnings and notes --------------------------------------------------------------
    def test_a_newer_opset_is_a_warning(self):
        err = self.run_tool(self.write(chain(["Relu"]), opset=99), "-o", "o").stderr
        self.assertRegex(err, r"warning: the model imports opset 99 of ai.onnx, the newest that is known is \d+: ")
        self.run_tool("m.onnx", "-o", "o", "-Werror", code=1)
        self.assertNotIn("warning", self.run_tool(self.write(chain(["Relu"]), opset=22), "-o", "o").stderr)

    def test_numerics_that_change_nothing_are_a_note(self):
        err = self.run_tool(self.write(chain(["Relu"])), "-o", "o", "--numerics", "int8-weights").stderr
        self.assertIn("note: --numerics int8-weights changes nothing", err)
        self.assertNotIn("changes nothing", self.run_tool("m.onnx", "-o", "o", "--numerics", "strict").stderr)
        weight = numpy_helper.from_array(np.ones((512, 512), np.float32), "w")
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 512])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 512])], [weight])
        (self.dir / "p.onnx").write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
        err = self.run_tool("p.onnx", "-o", "o", "--numerics", "int8-weights").stderr
        self.assertIn("rounded 1 weight", err)
        self.assertNotIn("changes nothing", err)

    def test_equal_warnings_are_said_once(self):
        """A constant that is defined twice, by exporters that unroll; behind the notes, and where something is left out, how to see all."""
        value = numpy_helper.from_array(np.float32(1))
        nodes = [helper.make_node("Constant", [], [f"c{i}"], name=f"k{i}", value=value) for i in range(12) for _ in range(2)]
        nodes += [helper.make_node("Sum", ["x"] + [f"c{i}" for i in range(12)], ["y"])]
        self.write(nodes)
        err = self.run_tool("m.onnx", "-o", "o").stderr
        said = "its constant is defined again later; the last definition is used"
        self.assertEqual([line for line in err.splitlines() if "warning" in line],
                         [f"m.onnx: warning: {said}: 12 nodes: 'k0', 'k1', 'k2' and 9 more [onnx-graph]"])
        self.assertTrue(err.endswith("dmxc: --all-errors says each message by itself, with its notes\n"), err)
        every = self.run_tool("m.onnx", "-o", "o", "--all-errors").stderr
        self.assertEqual(len(re.findall(rf"node 'k\d+': warning: {said} \[onnx-graph\]\n  note: the constant is 'c\d+'\n", every)), 12)
        self.assertIn("m.onnx: error: its constant", self.run_tool("m.onnx", "-o", "o", "-Werror", code=1).stderr)

    # --- many errors -----------------------------------------------------------------------
    def test_equal_errors_are_said_once(self):
        err = self.run_tool(self.write(chain(["Strange"] * 300)), "-o", "o", code=1).stderr
        self.assertEqual(err.splitlines(), [
            "m.onnx: error: Strange (ai.onnx opset 17): the operator is unknown: 300 nodes: 'n0', 'n1', 'n2' and 297 more [op-unknown]",
            "  help: --kernels FILE gives the operator a kernel of your own",
            "dmxc: 300 errors; --all-errors says each by itself, with its operands"])
        every = self.run_tool("m.onnx", "-o", "o", "--all-errors", code=1).stderr
        self.assertEqual(len(re.findall(r"node 'n\d+': error: ", every)), 300)

    def test_many_operators_with_one_reason(self):
        err = self.run_tool(self.write(chain([f"Strange{i}zz" for i in range(300)])), "-o", "o", code=1).stderr
        self.assertLessEqual(len(err.splitlines()), 10)
        self.assertIn("the operator is unknown: 300 nodes: Strange0zz 'n0', Strange1zz 'n1', Strange2zz 'n2' and 297 more", err)

    def test_different_errors_stay_apart(self):
        err = self.run_tool(self.write(chain(["Strange", "Bernoulli", "Strange"])), "-o", "o", code=1).stderr
        self.assertIn("2 nodes: 'n0', 'n2' [op-unknown]", err)
        self.assertRegex(err, r"node 'n1': error: Bernoulli ")
        self.assertIn("dmxc: 3 errors", err)

    # --- words -------------------------------------------------------------------------------
    def test_no_words_of_the_ir(self):
        self.small.write_text(SMALL.replace("axis = 1", "axis = 7"))
        err = self.run_tool(self.small, "-o", "o", code=1).stderr
        self.assertRegex(err, r"error: axis 7")
        value = helper.make_tensor_value_info
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], name="p")], "g",
                                  [value("x", TensorProto.FLOAT, [4, 8]), value("w", TensorProto.FLOAT, [9, 8])], [value("y", TensorProto.FLOAT, None)])
        (self.dir / "m.onnx").write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
        err = self.run_tool("m.onnx", "-o", "o", code=1).stderr
        self.assertNotRegex(err, r"C\d|tensor<")

    def test_a_path_is_said_once(self):
        for tool, arguments in (("dmxc", ["absent.onnx", "-o", "o"]), ("dmx-run", ["absent.bundle"]), ("dmx-inspect", ["absent.bundle"])):
            err = self.run_tool(*arguments, tool=tool, code=3).stderr
            self.assertEqual(err.count("absent."), 1, err)

    def test_time_report_with_a_blank(self):
        for flags in (["--time-report", "json"], ["--time-report=json"]):
            self.assertIn('"phases"', self.run_tool(self.small, "-q", "-o", "o", *flags).stderr)
        self.assertIn("seconds", self.run_tool("--time-report", self.small, "-q", "-o", "o").stderr)

    # --- dmx-compare -------------------------------------------------------------------------
    def test_compare(self):
        self.assertRegex(self.run_tool("--version", tool="dmx-compare").stdout, r"^dmx-compare \d+\.\d+\.\d+")
        self.assertIn("--inputs DIR", self.run_tool(self.small, tool="dmx-compare", code=2).stderr)
        self.run_tool(self.small, "--inputs", ".", "--random-inputs", "1", tool="dmx-compare", code=2)
        self.assertIn("PASS output 'y'", self.run_tool(self.small, "--random-inputs", "1", "--per-node", tool="dmx-compare").stdout)
        self.assertIn("PASS output", self.run_tool(DIGITS, "--random-inputs", "1", "--", "--dim", "batch=3", tool="dmx-compare").stdout)

    # --- links and streams -------------------------------------------------------------------
    def test_output_follows_a_symbolic_link(self):
        (self.dir / "real").mkdir()
        (self.dir / "link.bundle").symlink_to("real/m.bundle")
        for _ in range(2):  # to nothing, then to a bundle
            self.run_tool(self.small, "-o", "link.bundle")
            self.assertTrue((self.dir / "link.bundle").is_symlink())
            self.run_tool("real/m.bundle", "--check", tool="dmx-inspect")
        (self.dir / "tree").symlink_to("real/tree")
        self.run_tool(self.small, "-o", "tree", "--bundle-format", "dir")
        self.assertTrue((self.dir / "tree").is_symlink())
        self.assertTrue((self.dir / "real/tree/manifest.json").exists())

    def piped(self, command, code=0):
        result = subprocess.run(["bash", "-c", "set -o pipefail; " + command], cwd=self.dir, capture_output=True, timeout=300,
                                env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "TMPDIR": str(self.dir)})
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stderr.decode()

    @unittest.skipUnless(os.access("/dev/shm", os.W_OK), "/dev/shm is not there")
    def test_output_in_shared_memory(self):
        """A file there is one like others: what is there already is replaced."""
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="dmxc-misuse-") as shared:
            written = []
            for _ in range(2):
                self.run_tool(self.small, "-o", f"{shared}/m.bundle")
                self.run_tool(f"{shared}/m.bundle", "--check", tool="dmx-inspect")
                written.append((pathlib.Path(shared) / "m.bundle").read_bytes())
            self.assertEqual(*written)

    def test_streams(self):
        self.run_tool(self.write(chain(["Relu", "Exp"])), "-o", "file.bundle")
        self.piped("cat m.onnx | dmxc - -o - > a.bundle")
        self.piped("dmxc - -o - < m.onnx | cat > b.bundle")
        self.piped("cat m.onnx | dmxc - -o c.bundle")
        first = (self.dir / "file.bundle").read_bytes()
        for name in "abc":
            self.assertEqual((self.dir / f"{name}.bundle").read_bytes(), first)
        err = self.piped("head -c 20 m.onnx | dmxc - -o d.bundle", code=1)
        self.assertIn("<stdin>", err)
        self.assertIn("no name to derive", self.piped("cat m.onnx | dmxc -", code=2))
        self.assertIn("name the model's file", self.piped("cat m.onnx | dmxc - --emit frontend -o -", code=2))
        self.assertIn("No space left", self.piped("dmxc m.onnx -o - > /dev/full", code=3))
        self.assertIn("Broken pipe", self.piped("(dmxc m.onnx -o -; echo $? > code) | true; sleep 0.1; exit $(cat code)", code=3))
        left = {path.name for path in self.dir.iterdir()} - {"code", "small.mlir", "m.onnx", *(f"{name}.bundle" for name in ("file", *"abc"))}
        self.assertEqual(left, set())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
