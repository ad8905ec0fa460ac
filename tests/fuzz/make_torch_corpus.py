#!/usr/bin/env python3
"""Writes the seeds of the torch front end's fuzzers: make_torch_corpus.py FOLDER writes FOLDER/torch/* and
FOLDER/torch-import/*. For the reader every layout of an archive, its tables and pickles; for the importer programs (JSON) and
torch-dialect text that use every construct it walks; tests/torch/aten_fuzz.py adds a program for each operator."""
import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "torch"))
import pt2file

SIZE = "Symbol('s0', positive=True, integer=True)"


def value(name):
    return {"as_tensor": {"name": name}}


def ints(*numbers):
    return {"as_ints": list(numbers)}


class Program(pt2file.Program):
    def call(self, target, output, dtype=None, shape=(), /, **arguments):
        """A call whose result is one tensor, or the tensors of a list."""
        names = [output] if isinstance(output, str) else output
        results = [value(output)] if isinstance(output, str) else [{"as_tensors": [{"name": name} for name in output]}]
        self.node(target if "." in target.split("aten.")[0] else "torch.ops.aten." + target,
                  {name: value(a) if isinstance(a, str) else a for name, a in arguments.items()}, results)
        for name in names if dtype else ():
            self.values[name] = pt2file.meta(dtype, list(shape))

    def number(self, target, output, /, **arguments):
        self.node(target, arguments, [{"as_sym_int": {"as_name": output}}])


def sizes():
    p = Program()
    p.input("x", "f32", [SIZE, f"Mul(Integer(2), {SIZE})"])
    p.ranges["s0"] = {"min_val": 2, "max_val": 64}
    p.number("torch.ops.aten.sym_size.int", "n", self=value("x"), dim={"as_int": 0})
    p.number("_operator.mul", "nn", a={"as_sym_int": {"as_name": "n"}}, b={"as_sym_int": {"as_name": "n"}})
    p.number("_operator.floordiv", "half", a={"as_sym_int": {"as_name": "nn"}}, b={"as_sym_int": {"as_int": 2}})
    p.call("view.default", "y", "f32", [4, f"FloorDiv(Pow({SIZE}, Integer(2)), Integer(2))"], self="x",
           size={"as_sym_ints": [{"as_int": 4}, {"as_name": "half"}]})
    p.call("slice.Tensor", "z", self="y", dim={"as_int": 1}, start={"as_int": 1}, end={"as_sym_int": {"as_name": "n"}})
    p.call("arange.default", "a", end={"as_sym_int": {"as_name": "n"}})
    p.call("expand.default", "e", self="a", size={"as_sym_ints": [{"as_int": 3}, {"as_name": "n"}]})
    p.output("z")
    p.output("e")
    return p


def states():
    p = Program()
    p.tensor("cache", "buffer", "f32", [4, 3], bytes(48))
    p.tensor("count", "buffer", "i64", [], bytes(8))
    p.input("x", "f32", [1, 3])
    p.input("at", "i64", [1])
    p.call("index_put.default", "updated", "f32", [4, 3], self="cache", indices={"as_optional_tensors": [{"as_tensor": {"name": "at"}}]}, values="x")
    p.call("add.Tensor", "next", "i64", [], self="count", other={"as_int": 1})
    p.call("sum.dim_IntList", "y", "f32", [3], self="updated", dim=ints(0))
    p.output("updated", "buffer_mutation", buffer_name="cache")
    p.output("next", "buffer_mutation", buffer_name="count")
    p.output("y")
    return p


def in_place():
    p = Program()
    p.tensor("total", "buffer", "f32", [2, 3], bytes(24), persistent=False)
    p.input("x", "f32", [2, 3])
    p.call("add_.Tensor", "added", self="total", other="x")
    p.call("select.int", "row", self="total", dim={"as_int": 0}, index={"as_int": 1})
    p.call("slice.Tensor", "part", self="row", dim={"as_int": 0}, start={"as_int": 1}, end={"as_int": 3})
    p.call("mul_.Tensor", "scaled", self="part", other={"as_float": 0.5})
    p.call("transpose.int", "t", self="added", dim0={"as_int": 0}, dim1={"as_int": 1})
    p.call("copy_.default", "copied", self="t", src="t")
    p.call("relu.default", "y", "f32", [2, 3], self="total")
    p.output("y")
    return p


def joint():
    p = Program()
    p.tensor("w", "parameter", "f32", [3, 4], bytes(48))
    p.input("x", "f32", [2, 4])
    p.input("target", "i64", [2])
    p.call("permute.default", "wt", "f32", [4, 3], self="w", dims=ints(1, 0))
    p.call("mm.default", "logits", "f32", [2, 3], self="x", mat2="wt")
    p.call("_log_softmax.default", "logs", "f32", [2, 3], self="logits", dim={"as_int": 1}, half_to_float={"as_bool": False})
    p.node("torch.ops.aten.nll_loss_forward.default",
           {"self": value("logs"), "target": value("target"), "weight": {"as_none": True}, "reduction": {"as_int": 1},
            "ignore_index": {"as_int": -100}}, [value("loss"), value("total")])
    p.call("ones_like.default", "one", self="loss")
    p.call("nll_loss_backward.default", "g1", grad_output="one", self="logs", target="target", weight={"as_none": True},
           reduction={"as_int": 1}, ignore_index={"as_int": -100}, total_weight="total")
    p.call("_log_softmax_backward_data.default", "g2", grad_output="g1", output="logs", dim={"as_int": 1}, input_dtype={"as_scalar_type": 7})
    p.call("permute.default", "g3", self="g2", dims=ints(1, 0))
    p.call("mm.default", "g4", self="g3", mat2="x")
    p.output("loss", "loss_output")
    p.output("g4", "gradient_to_parameter", parameter_name="w")
    return p


def inner_graph():
    p = Program()
    p.input("x", "f32", [2, 3])
    inner = Program()
    inner.input("arg0", "f32", [2, 3])
    inner.call("relu.default", "r", self="arg0")
    graph = inner.json()["graph_module"]["graph"]
    graph["outputs"] = [value("r")]
    p.nodes.append({"target": "torch.ops.higher_order.wrap_with_set_grad_enabled", "metadata": {},
                    "inputs": [{"name": "", "arg": {"as_bool": False}}, {"name": "", "arg": {"as_graph": {"name": "g", "graph": graph}}},
                               {"name": "", "arg": value("x")}],
                    "outputs": [{"as_tensors": [{"name": "y"}]}], "is_hop_single_tensor_return": False})
    p.output("y")
    return p


def network():
    p = Program()
    p.tensor("cw", "parameter", "f32", [4, 2, 3, 3], bytes(288))
    p.tensor("table", "parameter", "f32", [8, 4], bytes(128))
    p.tensor("mask", "tensor_constant", "bool", [4, 4], bytes(16))
    p.input("x", "f32", [2, 4, 4, 4])
    p.input("words", "i64", [2, 4])
    p.call("conv2d.default", "c", "f32", [2, 4, 2, 2], input="x", weight="cw", stride=ints(2, 2), padding=ints(1, 1), groups={"as_int": 2})
    p.call("max_pool2d.default", "m", self="c", kernel_size=ints(2, 2))
    p.call("flatten.using_ints", "f", "f32", [2, 4], self="m", start_dim={"as_int": 1})
    p.call("embedding.default", "emb", "f32", [2, 4, 4], weight="table", indices="words")
    p.call("scaled_dot_product_attention.default", "att", "f32", [2, 4, 4], query="emb", key="emb", value="emb", attn_mask="mask")
    p.call("split.Tensor", ["s0", "s1"], self="att", split_size={"as_int": 2}, dim={"as_int": -1})
    p.call("cat.default", "joined", tensors={"as_tensors": [{"name": "s1"}, {"name": "s0"}]}, dim={"as_int": -1})
    p.call("unsqueeze.default", "u", self="f", dim={"as_int": 1})
    p.call("add.Tensor", "y", "f32", [2, 4, 4], self="joined", other="u", alpha={"as_float": 2.0})
    p.output("y")
    return p


def data_dependent():
    p = Program()
    p.input("x", "f32", [2, 3])
    p.input("n", "i64", [])
    p.number("torch.ops.aten.item.default", "u0", self=value("n"))
    p.node("torch.ops.aten._assert_scalar.default", {"self": {"as_sym_int": {"as_name": "u0"}}, "assert_msg": {"as_string": "no"}}, [])
    p.call("nonzero.default", "where", self="x")
    p.number("torch.ops.aten.sym_size.int", "u1", self=value("where"), dim={"as_int": 0})
    p.call("full.default", "y", size={"as_sym_ints": [{"as_name": "u1"}, {"as_int": 2}]}, fill_value={"as_float": 1.5})
    p.call("repeat.default", "z", self="y", repeats={"as_sym_ints": [{"as_int": 1}, {"as_name": "u0"}]})
    p.output("z")
    p.output("where")
    return p


TEXTS = {
    "text-mlp": """func.func @main(%arg0: !torch.vtensor<[2,4],f32>) -> !torch.vtensor<[2,3],f32> {
  %w = torch.vtensor.literal(dense<0.5> : tensor<3x4xf32>) : !torch.vtensor<[3,4],f32>
  %b = torch.vtensor.literal(dense<[1.0, 2.0, 3.0]> : tensor<3xf32>) : !torch.vtensor<[3],f32>
  %int1 = torch.constant.int 1
  %int0 = torch.constant.int 0
  %dims = torch.prim.ListConstruct %int1, %int0 : (!torch.int, !torch.int) -> !torch.list<int>
  %t = torch.aten.permute %w, %dims : !torch.vtensor<[3,4],f32>, !torch.list<int> -> !torch.vtensor<[4,3],f32>
  %m = torch.aten.mm %arg0, %t : !torch.vtensor<[2,4],f32>, !torch.vtensor<[4,3],f32> -> !torch.vtensor<[2,3],f32>
  %y = torch.aten.add.Tensor %m, %b, %int1 : !torch.vtensor<[2,3],f32>, !torch.vtensor<[3],f32>, !torch.int -> !torch.vtensor<[2,3],f32>
  return %y : !torch.vtensor<[2,3],f32>
}
""",
    "text-sizes": """func.func @main(%arg0: !torch.vtensor<[?,8],f32>) -> !torch.vtensor<[?],f32> {
  %s = torch.symbolic_int "s77" {min_val = 2, max_val = 64} : !torch.int
  torch.bind_symbolic_shape %arg0, [%s], affine_map<()[s0] -> (s0, 8)> : !torch.vtensor<[?,8],f32>
  %int0 = torch.constant.int 0
  %int8 = torch.constant.int 8
  %n = torch.aten.size.int %arg0, %int0 : !torch.vtensor<[?,8],f32>, !torch.int -> !torch.int
  %m = torch.aten.mul.int %n, %int8 : !torch.int, !torch.int -> !torch.int
  %l = torch.prim.ListConstruct %m : (!torch.int) -> !torch.list<int>
  %y = torch.aten.view %arg0, %l : !torch.vtensor<[?,8],f32>, !torch.list<int> -> !torch.vtensor<[?],f32>
  return %y : !torch.vtensor<[?],f32>
}
""",
    "text-onnx": """func.func @main(%arg0: !torch.vtensor<[1,2,4,4],f32>) -> (!torch.vtensor<[1,3,4,4],f32>, !torch.vtensor<[1,1,4,4],f32>) attributes {torch.onnx_meta.opset_version = 17 : si64} {
  %none = torch.constant.none
  %w = torch.operator "onnx.Constant"() {torch.onnx.value = dense<0.5> : tensor<3x2x1x1xf32>} : () -> !torch.vtensor<[3,2,1,1],f32>
  %y = torch.operator "onnx.Conv"(%arg0, %w) {torch.onnx.kernel_shape = [1 : si64, 1 : si64], torch.onnx.group = 1 : si64} : (!torch.vtensor<[1,2,4,4],f32>, !torch.vtensor<[3,2,1,1],f32>) -> !torch.vtensor<[1,3,4,4],f32>
  %s:2 = torch.operator "onnx.Split"(%arg0) {torch.onnx.axis = 1 : si64} : (!torch.vtensor<[1,2,4,4],f32>) -> (!torch.vtensor<[1,1,4,4],f32>, !torch.vtensor<[1,1,4,4],f32>)
  return %y, %s#1 : !torch.vtensor<[1,3,4,4],f32>, !torch.vtensor<[1,1,4,4],f32>
}
""",
    "text-resource": """func.func @main(%arg0: !torch.vtensor<[2],si64>) -> !torch.vtensor<[2],si64> {
  %c = torch.vtensor.literal(dense_resource<k> : tensor<2xsi64>) : !torch.vtensor<[2],si64>
  %int1 = torch.constant.int 1
  %y = torch.aten.sub.Tensor %arg0, %c, %int1 : !torch.vtensor<[2],si64>, !torch.vtensor<[2],si64>, !torch.int -> !torch.vtensor<[2],si64>
  return %y : !torch.vtensor<[2],si64>
}
{-#
  dialect_resources: {
    builtin: {
      k: "0x0800000001000000000000000200000000000000"
    }
  }
#-}
""",
}


# --- The reader's -----------------------------------------------------------------------------------------------------
ARCHIVE, PROGRAM, TABLE, PICKLE, SIZE_TEXT = range(5)  # the first byte of a seed says what the rest is


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value


def tensor(storage=b"FloatStorage", offset=0, rebuild=b"v2", dtype=b""):
    place = b"(" + text(b"storage") + b"ctorch" + (b".storage" if storage == b"UntypedStorage" else b"") + b"\n" + storage + b"\n"
    place += text(b"0") + text(b"cpu") + b"K\x10tQ"
    hooks = b"ccollections\nOrderedDict\n)R"
    return b"ctorch._utils\n_rebuild_tensor_" + rebuild + b"\n(" + place + b"K" + bytes([offset]) + b"K\x03\x85K\x01\x85\x89" + hooks + dtype + b"tR"


def parameter(value):
    return b"ctorch._utils\n_rebuild_parameter\n(" + value + b"\x88ccollections\nOrderedDict\n)RtR"


def pickles():
    plain = b"\x80\x02}q\0(" + text(b"w") + tensor(offset=1) + text(b"b") + tensor(b"UntypedStorage", 0, b"v3", b"ctorch\nbfloat16\n") + b"u."
    state = (b"\x80\x02ccollections\nOrderedDict\nq\0)Rq\1(" + text(b"w") + parameter(tensor(b"HalfStorage")) + b"q\2" + text(b"tied") +
             b"h\2u}" + text(b"_metadata") + b"}sb.")
    return {"pickle": plain, "pickle-module": state}


def readers():
    """(name, kind, bytes)"""
    table = {"w": {"path_name": "weight_0", "is_param": True, "use_pickle": False, "tensor_meta": pt2file.meta("f32", [3])}}
    views = {name: {"path_name": "weight_0", "is_param": False, "use_pickle": False,
                    "tensor_meta": {**pt2file.meta(dtype, shape), "strides": [{"as_int": n} for n in strides], "storage_offset": {"as_int": offset}}}
             for name, dtype, shape, strides, offset in (("t", "f32", [3, 2], [1, 3], 2), ("e", "i64", [4, 2], [0, 1], 0), ("z", "f16", [0, 5], [5, 1], 9),
                                                         ("s", "bf16", [], [], 31), ("b", "bool", [8, 8], [8, 1], 0))}
    p = Program()
    p.tensor("w", "parameter", "f32", [3], bytes(64))
    p.input("x", "f32", [SIZE, 3])
    p.ranges["s0"] = {"min_val": 2, "max_val": None}
    p.call("add.Tensor", "y", "f32", [SIZE, 3], self="x", other="w", alpha={"as_float": "Infinity"})
    p.output("y")
    program = json.dumps(p.json(), separators=(",", ":")).encode()
    yield "archive", ARCHIVE, pt2file.archive(p.records())
    for name, data in pickles().items():
        yield name, PICKLE, data
        nested = pt2file.archive({"data.pkl": data, "byteorder": b"little", "data/0": bytes(64), "version": b"3\n"}, "archive")
        yield "nested-" + name, ARCHIVE, pt2file.archive({"archive_format": b"pt2", "archive_version": b"0", "models/model.json": program,
                                                          "data/weights/model.pt": nested}, "m.export")
        yield "legacy-" + name, ARCHIVE, pt2file.archive({"serialized_exported_program.json": program, "serialized_state_dict.pt": nested,
                                                          "serialized_constants.pt": b"", "version": b"8.2"}, "")
    yield "program", PROGRAM, program
    for name, given in (("table", table), ("table-views", views)):
        yield name, TABLE, json.dumps({"config": given}, separators=(",", ":")).encode()
    yield "size-calls", SIZE_TEXT, b"Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), FloorDiv(Symbol('s1'), Integer(3)))"
    yield "size-infix", SIZE_TEXT, b"2*s0 + (s1 - 1)//2 % 5 ** 2"
    yield "size-others", SIZE_TEXT, b"Max(Min(Symbol('u0'), Integer(-4)), Mod(Pow(Symbol('s0'), Integer(2)), Integer(7)), CeilDiv(Integer(9), Symbol('s1')))"


def main():
    folder = pathlib.Path(sys.argv[1]) / "torch"
    folder.mkdir(parents=True, exist_ok=True)
    for name, kind, data in readers():
        (folder / name).write_bytes(bytes([kind]) + data)
    root = pathlib.Path(sys.argv[1]) / "torch-import"
    root.mkdir(parents=True, exist_ok=True)
    for program in (sizes, states, in_place, joint, inner_graph, network, data_dependent):
        (root / program.__name__.replace("_", "-")).write_text(json.dumps(program().json(), separators=(",", ":")))
    for name, text in TEXTS.items():
        (root / name).write_text(text)


if __name__ == "__main__":
    main()
