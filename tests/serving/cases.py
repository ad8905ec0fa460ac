"""What tests of serving share: models made by a script, compiled, and asked for answers. A test is TEST.py BIN BACKENDS [unittest arguments]:
BACKENDS has dmx/libtriton_dmx.so. Exit 77 without a server, see server.py."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import server

server.enter()
import numpy as np
import tritonclient.http as http
from tritonclient.utils import np_to_triton_dtype

BIN, BACKENDS = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
MODELS = server.ROOT.parent / "shared/data/real-models"
LONG = os.environ.get("DMXC_LONG") == "1"
SYSTEM_PYTHON = "/usr/bin/python3"  # which has onnx


def run(*arguments, **options):
    return subprocess.run([str(word) for word in arguments], capture_output=True, text=True, errors="replace", **options)


def compiled(model, bundle, *arguments):
    done = run(BIN / "dmxc", model, "-o", bundle, "-q", "--color", "never", *arguments)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return bundle


def python(script, *arguments):
    """A script for the Python that has onnx."""
    done = run(SYSTEM_PYTHON, "-c", script, *arguments)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return done.stdout


CONVERT = """
import sys, pathlib, numpy, onnx
from onnx import numpy_helper
model = onnx.load(sys.argv[1], load_external_data=False)
stored = {each.name for each in model.graph.initializer}
names = [each.name for each in model.graph.input if each.name not in stored]
for number, name in enumerate(names):
    tensor = onnx.TensorProto.FromString(pathlib.Path(sys.argv[2], f"input_{number}.pb").read_bytes())
    numpy.save(pathlib.Path(sys.argv[3], "in_" + name.replace("/", "%2F") + ".npy"), numpy_helper.to_array(tensor))
print("\\n".join(names))
"""
DENSE = """
import sys, numpy, onnx
from onnx import TensorProto, helper, numpy_helper
kind, width, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
random = numpy.random.default_rng(7)
w = numpy_helper.from_array((random.standard_normal((width, width)) / width ** 0.5).astype("f4"), "w")
info = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
if kind == "state":
    nodes = [helper.make_node("MatMul", ["h", "w"], ["m"]), helper.make_node("Add", ["m", "x"], ["a"]), helper.make_node("Tanh", ["a"], ["h2"]),
             helper.make_node("Identity", ["h2"], ["y"])]
    graph = helper.make_graph(nodes, "g", [info("x", [1, width]), info("h", [1, width])], [info("y", [1, width]), info("h2", [1, width])], [w])
elif kind == "sum":  # of products of all rows, onto a state: many rows take long
    nodes, last = [], "x"
    for layer in range(60):
        nodes += [helper.make_node("MatMul", [last, "w"], [f"m{layer}"]), helper.make_node("Relu", [f"m{layer}"], [f"r{layer}"])]
        last = f"r{layer}"
    axes = numpy_helper.from_array(numpy.array([0]), "axes")
    nodes += [helper.make_node("ReduceSum", [last, "axes"], ["s"]), helper.make_node("Add", ["s", "h"], ["a"]), helper.make_node("Tanh", ["a"], ["h2"]),
              helper.make_node("Identity", ["h2"], ["y"])]
    graph = helper.make_graph(nodes, "g", [info("x", ["n", width]), info("h", [1, width])], [info("y", [1, width]), info("h2", [1, width])], [w, axes])
elif kind == "mixed":
    axes = numpy_helper.from_array(numpy.array(0), "axis")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("CumSum", ["m", "axis"], ["y"])]
    graph = helper.make_graph(nodes, "g", [info("x", ["n", width])], [info("y", ["n", width])], [w, axes])
elif kind == "gather":
    nodes = [helper.make_node("Gather", ["w", "i"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("i", TensorProto.INT64, ["n", 2])], [info("y", ["n", 2, width])], [w])
else:
    nodes, last = [], "x"
    for layer in range(int(kind)):
        nodes += [helper.make_node("MatMul", [last, "w"], [f"m{layer}"]), helper.make_node("Relu", [f"m{layer}"], [f"r{layer}"])]
        last = f"r{layer}"
    graph = helper.make_graph(nodes, "g", [info("x", ["n", width])], [info(last, ["n", width])], [w])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
"""


class Serving(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-serving-"))
        cls.repository = cls.dir / "models"
        cls.repository.mkdir()
        cls.names = {}  # of outputs, by model

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir, ignore_errors=True)

    def made(self, name, kind, width, *arguments):
        python(DENSE, kind, width, self.dir / f"{name}.onnx")
        return compiled(self.dir / f"{name}.onnx", self.dir / f"{name}.bundle", *arguments)

    def alone(self, bundle, inputs):
        """What dmx-run gives."""
        with tempfile.TemporaryDirectory(dir=self.dir) as place:
            for name, values in inputs.items():
                np.save(pathlib.Path(place) / f"in_{re.sub('[^a-zA-Z0-9_.-]', '_', name)}.npy", values)
            done = run(BIN / "dmx-run", bundle, "--inputs", place, "--output-dir", place)
            self.assertEqual(done.returncode, 0, done.stderr)
            return {path.stem.removeprefix("out_"): np.load(path) for path in pathlib.Path(place).glob("out_*.npy")}

    def ask(self, client, model, inputs, module=http, binary=True, **options):
        given, more = [], {"binary_data": binary} if module is http else {}
        for name, values in inputs.items():
            values = values.reshape(1) if values.ndim == 0 else values  # the server knows no scalars
            each = module.InferInput(name, list(values.shape), np_to_triton_dtype(values.dtype))
            each.set_data_from_numpy(values, **more)
            given.append(each)
        if module is http:
            options["outputs"] = [http.InferRequestedOutput(name, binary_data=binary) for name in self.outputs_of(client, model)]
        return client.infer(model, given, **options)

    def outputs_of(self, client, model):
        if model not in self.names:
            self.names[model] = [each["name"] for each in client.get_model_metadata(model)["outputs"]]
        return self.names[model]
