#!/usr/bin/env python3
"""What dumps say of the model itself, whatever the types in them are by then: dm.model_inputs.type, dm.model_outputs.type and
dm.model_constants.type of every stop, held against the ONNX file's inputs, outputs and initializers.

model_types.py BIN      exit 77 where numpy or onnx is not installed"""
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from onnx import TensorProto, checker, helper, numpy_helper
except ImportError:
    print("SKIPPED: numpy or onnx is not installed (python3-numpy python3-onnx)")
    sys.exit(77)

BIN = pathlib.Path(sys.argv[1])
# What an operand of a node is on the card.
ELEMENTS = {("Conv", 1): "!dmir.block_fp<BFP16_64C>", ("Conv", 2): "!dmir.block_fp<BFP32_1>", ("MatMul", 1): "!dmir.block_fp<BFP16_64C>",
            ("Add", 1): "!dmir.block_fp<BFP32_1>", ("Gather", 0): "f16", ("Mul", 1): "f16"}
KINDS = {TensorProto.FLOAT: "f32", TensorProto.INT64: "i64"}


def make_model():
    """A convolution, two products, a table, and a factor that is no weight."""
    random = np.random.default_rng(1)
    shapes = {"kernel": (16, 3, 3, 3), "kernel.bias": (16,), "first": (16 * 36, 70), "first.bias": (70,), "second": (70, 10), "table": (50, 24), "factor": (24,)}
    weights = [numpy_helper.from_array(random.normal(size=shape).astype(np.float32), name) for name, shape in shapes.items()]
    node = helper.make_node
    nodes = [node("Conv", ["image", "kernel", "kernel.bias"], ["c"], name="conv", pads=[1, 1, 1, 1]), node("Relu", ["c"], ["r"], name="relu"),
             node("Flatten", ["r"], ["f"], name="flat"), node("MatMul", ["f", "first"], ["p"], name="first_mm"), node("Add", ["p", "first.bias"], ["a"], name="add"),
             node("MatMul", ["a", "second"], ["y"], name="second_mm"), node("Gather", ["table", "ids"], ["g"], name="look"), node("Mul", ["g", "factor"], ["rows"], name="scale")]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("image", TensorProto.FLOAT, [2, 3, 6, 6]), value("ids", TensorProto.INT64, [5])],
                              [value("y", TensorProto.FLOAT, [2, 10]), value("rows", TensorProto.FLOAT, [5, 24])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model)
    return model


def type_of(value):
    tensor = value.type.tensor_type
    return "tensor<" + "".join(f"{dim.dim_value}x" for dim in tensor.shape.dim) + KINDS[tensor.elem_type] + ">"


def attribute(text, name):
    """The types in a list of the module's attributes; none where the text has none."""
    listed = re.search(rf"dm\.model_{name}\.type = \[(.*?)\][,}}]", text)
    return re.findall(r"tensor<[^<>]*(?:<[^<>]*>)?>", listed[1]) if listed else None


def names_of(text):
    """The names of the program's inputs, outputs and constants, these by their locations."""
    program = re.search(r"dlir\.program @main attributes \{.*?inputs = \[(.*?)\], outputs = \[(.*?)\]\}", text)
    aliases = dict(re.findall(r'^(#loc\d*) = loc\("(.*)"\)$', text, re.M))
    constants = [aliases[line.rsplit("loc(", 1)[1].rstrip(")")] for line in text.splitlines() if " = dlir.buffer constant " in line]
    return [re.findall(r'name = "(.*?)"', part) for part in program.groups()] + [constants]


def squeezed(type_text):
    """Without dims of 1, which a bias over channels has more of than the file's."""
    return re.sub(r"(?<=[<x])1x", "", type_text)


def check(stop, text, graph):
    inputs, outputs, constants = names_of(text)
    said = {name: attribute(text, name) for name in ("inputs", "outputs", "constants")}
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    uses = {name: (node.op_type, at) for node in graph.node for at, name in enumerate(node.input) if name in initializers}
    expected = {"inputs": {value.name: type_of(value) for value in graph.input}, "outputs": {value.name: type_of(value) for value in graph.output},
                "constants": {name: "tensor<" + "".join(f"{dim}x" for dim in tensor.dims) + ELEMENTS[uses[name]] + ">" for name, tensor in initializers.items()}}
    for what, names in (("inputs", inputs), ("outputs", outputs), ("constants", constants)):
        found = dict(zip(names, map(squeezed, said[what] or [])))
        wanted = {name: squeezed(text) for name, text in expected[what].items()}
        if len(names) != len(said[what] or []) or found != wanted:
            sys.exit(f"FAIL: {stop}: {what} are {found} instead of {wanted}")


def run(*arguments):
    done = subprocess.run([BIN / "dmxc", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"FAIL: {arguments}: {done.stderr}")
    return done.stdout


def main(scratch):
    model = make_model()
    (scratch / "m.onnx").write_bytes(model.SerializeToString())
    for quads in (1, 4):
        flags = ("-q", "-t", f"corsair:quads={quads}")
        run(scratch / "m.onnx", *flags, "--dump-phases", scratch / "dumps", "-o", scratch / "m.bundle")
        stops = 0
        for path in sorted((scratch / "dumps").glob("4*.mlir")):
            stop = "schedule." + path.stem.split("-")[1] if path.stem[1] != "-" else "schedule"
            text = path.read_text()
            check(f"{stop} of {quads} quads", text, model.graph)
            if run(scratch / "m.onnx", *flags, "--emit", stop, "-o", "-") != text:
                sys.exit(f"FAIL: --emit {stop} and --dump-phases differ")
            stops += 1
        if stops != 8:
            sys.exit(f"FAIL: {stops} stops instead of 8")
    print("inputs, outputs and constants of the ONNX file at 8 stops, 1 and 4 quads")


with tempfile.TemporaryDirectory(prefix="dmxc-model-types-") as folder:
    main(pathlib.Path(folder))
