#!/usr/bin/env python3
"""Writes the seeds of the importers' fuzzers: make_corpus.py FOLDER writes FOLDER/onnx/* and FOLDER/tensor/*.

Small models that together use every construct the importer walks (a body, a function, every kind of attribute, weights in
each place they can lie) and the operators with most arithmetic on shapes. Needs Python alone."""
import pathlib
import struct
import sys

from onnx_file import *  # noqa: F403 - the messages are what this file is made of


# --- seeds ------------------------------------------------------------------------------------------------------------
def structure():
    """Every construct of a model file."""
    x, y = info("x", FLOAT, [2, 3]), info("y", FLOAT, None)
    add = [node("Add", "x w", "y")]
    then = graph([node("Neg", "x", "t")], outputs=[info("t", FLOAT, None)])
    other = graph([node("Exp", "x", "e")], outputs=[info("e", FLOAT, None)])
    body = graph([node("Add", "acc x", "next"), node("Identity", "next", "scan"), node("Identity", "go", "again")],
                 [info("i", INT64, []), info("go", BOOL, []), info("acc", FLOAT, [2, 3])],
                 [info("again", BOOL, []), info("next", FLOAT, None), info("scan", FLOAT, None)])
    scan = graph([node("Add", "s row", "sum"), node("Identity", "sum", "out")],
                 [info("s", FLOAT, [3]), info("row", FLOAT, [3])], [info("sum", FLOAT, None), info("out", FLOAT, None)])
    function = field(25, message((1, "Scaled"), (4, "a"), (5, "b"), (6, "alpha"), (9, field(2, 17)), (10, "local")) + field(
        7, node("LeakyRelu", "a", "b", alpha=Ref("alpha"))) + field(11, attribute("beta", 1.0)))
    yield "weights-raw-large", model(add, [x], [y], weights=[tensor("w", FLOAT, [2, 3, 1, 1], raw=b"")] + [
        floats("big", [10, 10])])
    yield "weights-in-file", model([node("Add", "x big", "y")], [info("x", FLOAT, [10, 10])], [y], weights=[
        floats("big", [10, 10])])
    yield "weights-typed", model(add, [x], [y], weights=[tensor("w", FLOAT, [2, 3], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])])
    yield "weights-external", model([node("Add", "x w", "y")], [info("x", FLOAT, [4, 8])], [y], weights=[
        external("w", FLOAT, [4, 8], location="weights.bin", offset="16", length="128")])
    yield "weights-sparse", model(add, [x], [y], sparse_weights=[
        sparse(tensor("w", FLOAT, [2], [1.0, 2.0]), tensor("at", INT64, [2], [1, 4]), [2, 3])])
    yield "weights-half", model([node("Cast", "w", "c", to=FLOAT), node("Add", "x c", "y")], [x], [y], weights=[
        tensor("w", BFLOAT16, [2, 3], [16256, 0, 1, 2, 3, 4])])
    yield "dims-symbolic", model([node("Shape", "x", "s"), node("Gather", "s zero", "n", axis=0),
                                  node("Unsqueeze", "n axis", "u"), node("Concat", "u minus", "r", axis=0),
                                  node("Reshape", "x r", "y")], [info("x", FLOAT, ["batch", "seq", 4])], [y], weights=[
        tensor("zero", INT64, [], [0]), ints("axis", [0]), ints("minus", [-1])], infos=[info("n", INT64, [])])
    yield "dims-unknown", model([node("MatMul", "x w", "m"), node("Softmax", "m", "y", axis=-1)],
                                [info("x", FLOAT, [None, 4])], [info("y", FLOAT, [None, 3])], weights=[floats("w", [4, 3])])
    yield "input-without-shape", model([node("Relu", "x", "y")], [info("x", FLOAT, None)], [y])
    yield "if-constant", model([node("If", "c", "y", then_branch=("g", then), else_branch=("g", other))], [x], [y], weights=[
        tensor("c", BOOL, [], [1])])
    yield "if-at-run", model([node("If", "c", "y", then_branch=("g", then), else_branch=("g", other))],
                             [x, info("c", BOOL, [1])], [y])
    yield "loop-constant", model([node("Loop", "n go x", "y all", body=("g", body))], [x], [y, info("all", FLOAT, None)], weights=[
        tensor("n", INT64, [], [3]), tensor("go", BOOL, [], [1])])
    yield "loop-at-run", model([node("Loop", "n go x", "y all", body=("g", body))],
                               [x, info("n", INT64, []), info("go", BOOL, [])], [y, info("all", FLOAT, None)])
    yield "scan", model([node("Scan", "w x", "y all", num_scan_inputs=1, body=("g", scan))], [x], [y, info(
        "all", FLOAT, None)], weights=[floats("w", [3])])
    yield "function", model([node("Scaled", "x", "y", domain="local", alpha=0.5)], [x], [y], extra=function)
    yield "function-default", model([node("Scaled", "x", "y", domain="local")], [x], [y], extra=function)
    yield "sequence", model([node("SequenceConstruct", "x x", "s"), node("SequenceInsert", "s x", "s2"),
                             node("ConcatFromSequence", "s2", "y", axis=0)], [x], [y])
    yield "optional", model([node("Optional", "x", "o"), node("OptionalHasElement", "o", "h"),
                             node("OptionalGetElement", "o", "y")], [x], [y], opset=18)
    yield "constants", model([node("Constant", "", "a", value=("t", floats("v", [2, 3]))), node("Constant", "", "b", value_float=2.0),
                              node("Constant", "", "c", value_ints=[1, 2]), node("Constant", "", "d", value_floats=[1.0, 2.0, 3.0]),
                              node("Constant", "", "s", sparse_value=("s", sparse(
                                  tensor("w", FLOAT, [1], [1.0]), tensor("at", INT64, [1, 2], [1, 2]), [2, 3]))),
                              node("Sum", "x a b d s", "y")], [x], [y])
    yield "out-of-order", model([node("Relu", "h", "y"), node("Neg", "x", "h")], [x], [y])
    yield "constant-fold", model([node("Range", "a b c", "r"), node("Reshape", "r shape", "q"), node("Mul", "x q", "y")], [x], [y], weights=[
        tensor("a", FLOAT, [], [0.0]), tensor("b", FLOAT, [], [6.0]), tensor("c", FLOAT, [], [1.0]), ints("shape", [2, -1])])


def operators():
    """Those with the most arithmetic on shapes, one a file."""
    y = [info("y", FLOAT, None)]
    yield "conv", unary("Conv", [1, 2, 5, 5], weights=[floats("w", [4, 1, 3, 3]), floats("b", [4])], more="w b", group=2,
                        pads=[1, 0, 1, 2], strides=[2, 1], dilations=[1, 2])
    yield "conv-same", unary("Conv", ["n", 1, "t"], weights=[floats("w", [1, 1, 3])], more="w", auto_pad="SAME_UPPER")
    yield "conv-transpose", unary("ConvTranspose", [1, 2, 3, 3], weights=[floats("w", [2, 1, 3, 3])], more="w", strides=[2, 2],
                                  output_padding=[1, 1], pads=[1, 1, 1, 1])
    yield "max-pool", unary("MaxPool", [1, 1, 7, 7], out="y i", kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1],
                            ceil_mode=1, dilations=[1, 2])
    yield "average-pool", unary("AveragePool", [1, 1, "h", "w"], kernel_shape=[2, 2], count_include_pad=1)
    yield "resize", model([node_of("Resize", ["x", "", "s"], "y", mode="cubic", coordinate_transformation_mode="align_corners")],
                          [info("x", FLOAT, [1, 1, 4, 4])], y, weights=[tensor("s", FLOAT, [4], [1.0, 1.0, 1.5, 0.5])])
    yield "resize-crop", model([node("Resize", "x roi s", "y", mode="linear", coordinate_transformation_mode="tf_crop_and_resize")],
                               [info("x", FLOAT, [4])], y, weights=[tensor("roi", FLOAT, [2], [0.1, 0.9]),
                                                                    tensor("s", FLOAT, [1], [2.0])])
    yield "slice", unary("Slice", [5, "n", 7], weights=[ints("b", [1, -2]), ints("e", [-1, 2**63 - 1]), ints("a", [0, 2]),
                                                     ints("s", [2, -1])], more="b e a s")
    yield "slice-at-run", model([node("Slice", "x b e", "y")], [info("x", FLOAT, [5, 6]), info("b", INT64, [2]),
                                                                  info("e", INT64, [2])], y)
    yield "pad", unary("Pad", [2, 3], weights=[ints("p", [1, 0, 2, -1])], more="p", mode="reflect")
    yield "reshape", unary("Reshape", [2, "n", 4], weights=[ints("s", [0, -1, 2, 2])], more="s")
    yield "split", unary("Split", [7, 2], out="y z", weights=[ints("s", [3, 4])], more="s", axis=0)
    yield "tile", unary("Tile", [2, 3], weights=[ints("r", [2, 3])], more="r")
    yield "expand", unary("Expand", [3, 1], weights=[ints("s", [2, 1, 6])], more="s")
    yield "concat", unary("Concat", [2, "n"], more="x x", axis=1)
    yield "gather", unary("Gather", [4, 3], weights=[tensor("i", INT64, [2, 1], [0, -1])], more="i", axis=0)
    yield "gather-nd", unary("GatherND", [2, 3, 4], weights=[tensor("i", INT64, [2, 1], [0, 2])], more="i", batch_dims=1)
    yield "scatter-nd", unary("ScatterND", [4, 3], weights=[tensor("i", INT64, [2, 1], [0, 3]), floats("u", [2, 3])], more="i u",
                              reduction="add", opset=16)
    yield "scatter-elements", unary("ScatterElements", [3, 3], weights=[tensor("i", INT64, [1, 2], [1, 2]), floats("u", [1, 2])],
                                    more="i u", axis=1)
    yield "one-hot", model([node("OneHot", "x d v", "y", axis=-1)], [info("x", INT64, [2])], y, weights=[
        tensor("d", INT64, [], [3]), tensor("v", FLOAT, [2], [0.0, 1.0])])
    yield "topk", unary("TopK", [3, "n"], out="y i", weights=[ints("k", [2])], more="k", axis=0, largest=0)
    yield "nonzero", model([node("NonZero", "x", "i"), node("Shape", "i", "y")], [info("x", FLOAT, [2, 3])], y)
    yield "nms", model([node("NonMaxSuppression", "b s m", "y")], [info("b", FLOAT, [1, 6, 4]), info("s", FLOAT, [1, 1, 6])], y,
                       weights=[ints("m", [3])])
    yield "einsum", unary("Einsum", [2, 3, 4], weights=[floats("w", [2, 4, 5])], more="w", equation="...ij,...jk->...k")
    yield "gemm", unary("Gemm", [3, 2], weights=[floats("w", [4, 3]), floats("b", [4])], more="w b", transA=1, transB=1, alpha=0.5)
    yield "reduce", unary("ReduceLogSumExp", [2, "n", 4], axes=[-1, 0], keepdims=0)
    yield "reduce-axes", unary("ReduceSum", [2, 3], weights=[ints("a", [])], more="a", noop_with_empty_axes=1)
    yield "cumsum", unary("CumSum", [2, 3], weights=[tensor("a", INT64, [], [1])], more="a", exclusive=1, reverse=1)
    yield "lstm", unary("LSTM", [3, 1, 2], out="y h c", weights=[floats("w", [2, 8, 2]), floats("r", [2, 8, 2]), floats("b", [2, 16])],
                        more="w r b", hidden_size=2, direction="bidirectional", clip=1.0)
    yield "gru", unary("GRU", ["t", 1, 2], out="y h", weights=[floats("w", [1, 6, 2]), floats("r", [1, 6, 2])], more="w r",
                       hidden_size=2, linear_before_reset=1)
    yield "batch-norm", unary("BatchNormalization", ["n", 2, 3], weights=[floats(n, [2]) for n in "sbmv"], more="s b m v")
    yield "layer-norm", unary("LayerNormalization", [2, 3, 4], weights=[floats("s", [3, 4])], more="s", axis=1)
    yield "lrn", unary("LRN", [1, 4, 2, 2], size=3)
    yield "quantize", model([node("QuantizeLinear", "x s z", "q", axis=1), node("DequantizeLinear", "q s z", "y", axis=1)],
                            [info("x", FLOAT, [2, 3])], y, weights=[floats("s", [3]), tensor("z", INT8, [3], [1, 2, 3])])
    yield "qlinear-conv", model([node("QLinearConv", "x s z w s z s z", "y")], [info("x", UINT8, [1, 1, 4, 4])], y, weights=[
        floats("s", []), tensor("z", UINT8, [], [3]), tensor("w", UINT8, [1, 1, 2, 2], raw=b"\1\2\3\4")])
    yield "grid-sample", model([node("GridSample", "x g", "y", mode="bicubic", padding_mode="reflection")],
                               [info("x", FLOAT, [1, 1, 3, 3]), info("g", FLOAT, [1, 2, 2, 2])], y)
    yield "roi-align", model([node("RoiAlign", "x r b", "y", output_height=2, output_width=2, sampling_ratio=2)],
                             [info("x", FLOAT, [1, 1, 6, 6]), info("r", FLOAT, [1, 4])], y, weights=[ints("b", [0])])
    yield "stft", model([node_of("STFT", ["x", "s", "", "l"], "y")], [info("x", FLOAT, [1, 16, 1])], y, weights=[
        tensor("s", INT64, [], [4]), tensor("l", INT64, [], [8])])
    yield "dft", unary("DFT", [1, 6, 1], axis=1)
    yield "col2im", unary("Col2Im", [1, 4, 9], weights=[ints("i", [4, 4]), ints("b", [2, 2])], more="i b", opset=18)
    yield "attention", model([node("Attention", "x x x", "y", q_num_heads=2, kv_num_heads=2, is_causal=1)],
                             [info("x", FLOAT, [1, "t", 8])], y, opset=23)
    yield "rotary", model([node("RotaryEmbedding", "x c c", "y", num_heads=2)], [info("x", FLOAT, [1, 3, 8])], y, opset=23,
                          weights=[floats("c", [1, 3, 2])])
    yield "depth-to-space", unary("DepthToSpace", [1, 8, "h", 2], blocksize=2, mode="CRD")
    yield "loss", model([node("SoftmaxCrossEntropyLoss", "x t", "y p", ignore_index=-1)],
                        [info("x", FLOAT, [2, 3, 4]), info("t", INT64, [2, 4])], [*y, info("p", FLOAT, None)])
    yield "tree", model([node("TreeEnsembleRegressor", "x", "y", domain="ai.onnx.ml", n_targets=1, nodes_treeids=[0, 0, 0],
                              nodes_nodeids=[0, 1, 2], nodes_featureids=[1, 0, 0], nodes_values=[0.5, 0.0, 0.0],
                              nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0],
                              target_ids=[0, 0], target_nodeids=[1, 2], target_treeids=[0, 0], target_weights=[1.0, 2.0])],
                        [info("x", FLOAT, ["n", 2])], y)


def hostile():
    """What a reader must refuse."""
    deep = graph([node("Neg", "x", "y")], outputs=[info("y", FLOAT, None)])
    for _ in range(10):
        deep = graph([node("If", "c", "y", then_branch=("g", deep), else_branch=("g", deep))], outputs=[info("y", FLOAT, None)])
        if len(deep) > 700:
            break
    x, y = info("x", FLOAT, [2]), info("y", FLOAT, None)
    recursive = field(25, message((1, "F"), (4, "a"), (5, "b"), (10, "local")) + field(7, node("F", "a", "b", domain="local")))
    yield "nested", field(1, 8) + field(7, deep) + field(8, field(2, 17))
    yield "recursion", model([node("F", "x", "y", domain="local")], [x], [y], extra=recursive)
    yield "huge-dims", model([node("Add", "x x", "y")], [info("x", FLOAT, [2**40, 2**40])], [y])
    yield "huge-constant", unary("ConstantOfShape", [1], dtype=INT64, weights=[ints("x", [2**30, 2**10])])
    yield "huge-range", model([node("Range", "a b c", "y")], [], [y], weights=[tensor("a", INT64, [], [0]), tensor(
        "b", INT64, [], [2**62]), tensor("c", INT64, [], [1])])
    yield "wire-length", b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    yield "segment", model([node("Neg", "w", "y")], [], [y], weights=[tensor("w", FLOAT, [2], raw=b"12345678") + field(
        3, message((1, 0), (2, 99)))])
    # Found by fuzzing.
    yield "no-results", model([node("Split", "x", "")], [x], [y])
    body = graph([node("Identity", "go", "again"), node("Exp", "v", "next")], [info("i", INT64, []), info("go", BOOL, []), info(
        "v", FLOAT, [2])], [info("again", BOOL, []), info("next", FLOAT, None)])
    yield "loop-condition", model([node("Loop", "n n x", "y", body=("g", body))], [x, info("n", INT64, [])], [y])
    yield "scalar-weights", model([node("QLinearConv", "x s z z s z s z", "y")], [info("x", UINT8, [1, 1, 4, 4])], [y], weights=[
        floats("s", []), tensor("z", UINT8, [], [3])])
    yield "long-shape", model([node("Reshape", "x s", "y")], [x, info("s", INT64, [2**63 - 1])], [y])
    yield "batch-dims", model([node("GatherND", "x i", "y", batch_dims=-2**63)], [info("x", FLOAT, [2, 3]), info(
        "i", INT64, [2, 1])], [info("y", FLOAT, [None, None])])


def tensors():
    """The first byte of a file says what follows: 0 a TensorProto, 1 a SparseTensorProto, 2 an .npy file."""
    yield "dense-raw", 0, floats("w", [2, 3])
    yield "dense-raw-large", 0, floats("w", [10, 10])
    yield "dense-typed", 0, tensor("w", FLOAT, [2], [1.0, 2.0])
    yield "dense-ints", 0, tensor("w", INT64, [3], [1, -1, 2**63 - 1])
    yield "dense-bool", 0, tensor("w", BOOL, [300], raw=bytes([2, 1, 0] * 100))
    yield "dense-nibbles", 0, tensor("w", UINT4, [3], [0x21, 3])
    yield "dense-strings", 0, tensor("w", STRING, [1], extra=field(6, "text"))
    yield "dense-external", 0, external("w", FLOAT, [4], location="weights.bin", offset="4")
    yield "dense-empty", 0, tensor("w", FLOAT16, [2, 0])
    yield "dense-huge", 0, tensor("w", FLOAT, [2**40, 2**40], raw=b"1234")
    yield "sparse-linear", 1, sparse(tensor("w", FLOAT, [2], [1.0, 2.0]), tensor("at", INT64, [2], [1, 4]), [2, 3])
    yield "sparse-pairs", 1, sparse(tensor("w", FLOAT, [1], [1.0]), tensor("at", INT64, [1, 2], [1, 2]), [2, 3])
    yield "sparse-large", 1, sparse(floats("w", [100]), tensor("at", INT64, [100], list(range(100))), [10, 10])
    header = "{'descr': '<f4', 'fortran_order': %s, 'shape': (2, 3), }"
    for name, order in (("npy", "False"), ("npy-fortran", "True")):
        text = (header % order).ljust(117) + "\n"
        yield name, 2, b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + b"\0\0\x80\x3f" * 6
    yield "npy-version-2", 2, b"\x93NUMPY\2\0" + struct.pack("<I", 2**31) + b"{}"


def main():
    root = pathlib.Path(sys.argv[1])
    for folder in ("onnx", "tensor"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for family in (structure, operators, hostile):
        for name, data in family():
            assert len(data) < 2048, f"{name} has {len(data)} bytes"
            (root / "onnx" / name).write_bytes(data)
    for name, kind, data in tensors():
        assert len(data) < 2048, f"{name} has {len(data)} bytes"
        (root / "tensor" / name).write_bytes(bytes([kind]) + data)


if __name__ == "__main__":
    main()
