#!/usr/bin/env python3
"""What an ONNX file says for people is in the bundle: metadata, descriptions of inputs and outputs. Usage: model_words.py BIN
[unittest arguments]. Exit 77 where onnx is not installed."""
import pathlib
import subprocess
import sys
import unittest

try:
    import numpy as np
    from onnx import TensorProto, helper
except ImportError:
    print("SKIPPED: numpy or onnx is not installed (python3-numpy python3-onnx)")
    sys.exit(77)

from dynamic_shapes import BIN, BundleTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "python"))
import dmxrt  # noqa: E402


class ModelWords(BundleTest):
    def compile(self, change, *options):
        """A model with words in it; what `dmxc` prints as warnings."""
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3], doc_string="RGB, 0 to 1")
        y, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "yz")
        y.type.denotation = "IMAGE"
        nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["z"])]
        model = helper.make_model(helper.make_graph(nodes, "g", [x], [y, z]), producer_name="a test", producer_version="1.5", ir_version=8,
                                  opset_imports=[helper.make_opsetid("", 17)])
        model.model_version, model.domain, model.doc_string = 7, "org.example", "Says \x1b[31m what it sees.\nTwice."
        helper.set_model_props(model, {"names": "{0: 'cat', 1: 'd\u00f6g'}", "stride": "32", "empty": ""})
        change(model)
        (self.dir / "m.onnx").write_bytes(self.spoil(model.SerializeToString()))
        done = subprocess.run([f"{BIN}/dmxc", self.dir / "m.onnx", "-o", self.dir / "m.bundle", *options], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr if "warning" in done.stderr else ""

    spoil = staticmethod(lambda data: data)

    WORDS = {"names": "{0: 'cat', 1: 'd\u00f6g'}", "stride": "32", "onnx.producer": "a test 1.5", "onnx.domain": "org.example",
             "onnx.version": "7", "onnx.description": "Says \x1b[31m what it sees.\nTwice."}

    def check_bundle(self, words):
        with dmxrt.Session(str(self.dir / "m.bundle"), library=f"{BIN}/../lib/libdmxrt.so") as session:
            self.assertEqual({key: session.metadata(key) for key in words}, words)
            self.assertEqual(session.metadata("empty"), None)
            self.assertEqual([t.description for t in session.inputs + session.outputs], ["RGB, 0 to 1", "IMAGE", None])
            result = session.run(x=np.float32([[-1, 2, 3], [4, -5, 6]]))
            np.testing.assert_array_equal(result["y"], [[0, 2, 3], [4, 0, 6]])

    def test_reaches_the_bundle(self):
        self.assertEqual(self.compile(lambda model: None), "")
        self.check_bundle(self.WORDS)
        shown = subprocess.run([f"{BIN}/dmx-inspect", self.dir / "m.bundle", "--what", "summary"], capture_output=True, text=True).stdout
        for text in ("metadata names", "d\u00f6g", "metadata onnx.producer", "RGB, 0 to 1", "IMAGE", "Says \\x1b[31m what it sees.\\nTwice."):
            self.assertIn(text, shown)

    def test_survives_every_phase(self):
        self.compile(lambda model: None)
        for phase in ("frontend", "partition", "memory", "schedule"):
            text = self.dir / f"{phase}.mlir"
            subprocess.run([f"{BIN}/dmxc", self.dir / "m.onnx", "--emit", phase, "-o", text], check=True)
            (self.dir / "m.bundle").unlink()
            subprocess.run([f"{BIN}/dmxc", text, "--from", phase, "-o", self.dir / "m.bundle"], check=True, capture_output=True)
            self.check_bundle(self.WORDS)

    def test_a_silent_model_needs_no_new_reader(self):
        def silence(model):
            model.producer_name = model.producer_version = model.domain = model.doc_string = ""
            model.model_version = 0
            del model.metadata_props[:]
            model.graph.input[0].doc_string = ""
            model.graph.output[0].type.denotation = ""
        self.compile(silence, "-t", "cpu:x86-64-v3")
        with dmxrt.Session(str(self.dir / "m.bundle"), library=f"{BIN}/../lib/libdmxrt.so") as session:
            self.assertEqual([t.description for t in session.inputs + session.outputs], [None, None, None])
            self.assertEqual(session.metadata("onnx.producer"), None)

    def test_what_is_no_text_is_left_out(self):
        self.spoil = lambda data: data.replace(b"stride", b"str\xffde").replace(b"RGB", b"R\0B")
        warnings = self.compile(lambda model: None)
        self.assertIn("a key of the metadata is not text (UTF-8 without a byte 0): the bundle goes without it", warnings)
        self.assertIn("the description of 'x' is not text", warnings)
        with dmxrt.Session(str(self.dir / "m.bundle"), library=f"{BIN}/../lib/libdmxrt.so") as session:
            self.assertEqual(session.metadata("names"), self.WORDS["names"])
            self.assertEqual(session.inputs[0].description, None)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
