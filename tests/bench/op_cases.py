"""The operators of ops.py: each a name and a small ONNX model, at sizes of real networks. Needs onnx and numpy.

A case is `Case(name, nodes, inputs, constants)`: `nodes` are tuples (operator, inputs, attributes) of which each makes `tN`, N its number,
and the last one the result; `inputs` are shapes, or arrays where numbers matter; what a network would have learnt is a constant."""
import dataclasses

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ELEMENTS = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "bool": TensorProto.BOOL}


@dataclasses.dataclass
class Case:
    name: str
    nodes: list
    inputs: dict
    constants: dict = dataclasses.field(default_factory=dict)

    def arrays(self):
        """What it is asked: the same numbers in every run."""
        random = np.random.default_rng(1)
        return {name: value if isinstance(value, np.ndarray) else random.standard_normal(value, np.float32) for name, value in self.inputs.items()}

    def model(self):
        random, feeds = np.random.default_rng(2), self.arrays()
        constants = {name: value if isinstance(value, np.ndarray) else random.standard_normal(value, np.float32) / 16
                     for name, value in self.constants.items()}
        nodes = [helper.make_node(kind, names, [f"t{i}"] if kind != "TopK" else [f"t{i}", f"t{i}i"], **attributes)
                 for i, (kind, names, attributes) in enumerate(self.nodes)]
        ports = [helper.make_tensor_value_info(name, ELEMENTS[value.dtype.name], value.shape) for name, value in feeds.items()]
        results = [onnx.ValueInfoProto(name=name) for name in nodes[-1].output]
        graph = helper.make_graph(nodes, "operator", ports, results, [numpy_helper.from_array(value, name) for name, value in constants.items()])
        return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def one(name, kind, inputs, constants=None, order=None, **attributes):
    """A single operator: its inputs, then its constants, or in the order given."""
    constants = constants or {}
    return Case(name, [(kind, order or [*inputs, *constants], attributes)], inputs, constants)


def whole(*numbers):
    return np.array(numbers, np.int64)


def text_of(shape):
    return "x".join(map(str, shape))


def products():
    for m, k, n in ((1, 2048, 2048), (4, 2048, 2048), (1, 4096, 1024), (1, 768, 3072), (16, 1024, 1024), (128, 768, 768), (512, 512, 512), (2048, 2048, 512)):
        yield one(f"MatMul {m}x{k} by {k}x{n} of a run", "MatMul", {"a": (m, k), "b": (k, n)})
    for m, k, n in ((1, 2048, 2048), (4, 2048, 2048), (128, 768, 768)):
        yield one(f"Gemm {m}x{k} by the transpose of {n}x{k} of a run", "Gemm", {"a": (m, k), "b": (n, k)}, transB=1)
    for m, k, n in ((1, 2048, 2048), (16, 1024, 1024), (128, 768, 768), (128, 768, 3072), (512, 512, 512)):
        yield one(f"MatMul {m}x{k} by {k}x{n}", "MatMul", {"a": (m, k)}, {"b": (k, n)})
    yield one("MatMul of 12 heads 128x64 by 64x128", "MatMul", {"a": (12, 128, 64), "b": (12, 64, 128)})
    yield one("MatMul of 12 heads 128x128 by 128x64", "MatMul", {"a": (12, 128, 128), "b": (12, 128, 64)})
    yield one("MatMul of 8 heads 1x64 by 64x1024", "MatMul", {"a": (8, 1, 64), "b": (8, 64, 1024)})


def convolutions():
    for c, size, m, k, stride, groups in ((3, 224, 32, 3, 2, 1), (3, 224, 64, 7, 2, 1), (64, 56, 64, 3, 1, 1), (128, 28, 128, 3, 1, 1), (256, 14, 256, 3, 1, 1),
                                          (64, 56, 256, 1, 1, 1), (256, 56, 64, 1, 1, 1), (512, 14, 512, 1, 1, 1), (256, 56, 512, 1, 2, 1), (128, 56, 128, 3, 1, 32),
                                          (32, 112, 32, 3, 1, 32), (96, 112, 96, 3, 2, 96), (192, 28, 192, 3, 1, 192), (144, 56, 144, 5, 2, 144),
                                          (240, 28, 240, 5, 1, 240), (672, 14, 672, 5, 1, 672), (96, 56, 96, 7, 1, 96), (384, 14, 384, 7, 1, 384)):
        kind = "depthwise " if groups == c else f"{groups} groups, " if groups > 1 else ""
        yield one(f"Conv {kind}{k}x{k} s{stride}, {c}x{size}x{size} to {m}", "Conv", {"x": (1, c, size, size)}, {"w": (m, c // groups, k, k), "b": (m,)},
                  strides=[stride] * 2, pads=[k // 2] * 4, group=groups)
    yield one("Conv 3x3 dilated by 2, 256x28x28 to 256", "Conv", {"x": (1, 256, 28, 28)}, {"w": (256, 256, 3, 3)}, pads=[2] * 4, dilations=[2, 2])
    yield one("Conv of sequences k3, 256x400 to 256", "Conv", {"x": (1, 256, 400)}, {"w": (256, 256, 3)}, pads=[1, 1])
    for c, size, m, k, stride, pad in ((256, 32, 128, 2, 2, 0), (64, 64, 32, 2, 2, 0), (128, 32, 64, 4, 2, 1), (64, 64, 32, 4, 2, 1), (21, 32, 21, 16, 8, 4), (64, 32, 32, 3, 2, 1)):
        yield one(f"ConvTranspose {k}x{k} s{stride}, {c}x{size}x{size} to {m}", "ConvTranspose", {"x": (1, c, size, size)}, {"w": (c, m, k, k)},
                  strides=[stride] * 2, pads=[pad] * 4)


def pools():
    for kind, c, size, k, stride, pad in (("MaxPool", 64, 112, 3, 2, 1), ("MaxPool", 64, 112, 2, 2, 0), ("MaxPool", 256, 20, 5, 1, 2), ("MaxPool", 256, 20, 13, 1, 6),
                                          ("AveragePool", 64, 112, 2, 2, 0), ("AveragePool", 64, 56, 3, 1, 1), ("AveragePool", 64, 56, 7, 1, 3),
                                          ("AveragePool", 64, 56, 7, 7, 0)):
        yield one(f"{kind} {k}x{k} s{stride}, {c}x{size}x{size}", kind, {"x": (1, c, size, size)}, kernel_shape=[k, k], strides=[stride] * 2, pads=[pad] * 4)
    yield one("GlobalAveragePool 2048x7x7", "GlobalAveragePool", {"x": (1, 2048, 7, 7)})
    yield one("GlobalAveragePool 96x112x112", "GlobalAveragePool", {"x": (1, 96, 112, 112)})


def resizes():
    def resize(name, x, scale, before=(), after=(), constants=None, inputs=None, **how):
        nodes = [*before, ("Resize", [f"t{len(before) - 1}" if before else "x", "", "scales"], how), *after]
        return Case(name, nodes, {"x": x, **(inputs or {})}, {"scales": np.array([1, 1, scale, scale], np.float32), **(constants or {})})

    nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    half = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    for c, size in ((256, 20), (128, 40), (64, 80)):
        yield resize(f"Resize nearest x2, {c}x{size}x{size}", (1, c, size, size), 2, **nearest)
    yield resize("Resize nearest x2 and Add, 64x80x80", (1, 64, 80, 80), 2, after=[("Add", ["t0", "y"], {})], inputs={"y": (1, 64, 160, 160)}, **nearest)
    for c, size, scale in ((64, 56, 2), (32, 64, 4), (21, 65, 8)):
        yield resize(f"Resize linear x{scale}, {c}x{size}x{size}", (1, c, size, size), scale, **half)
    for m in (32, 21, 16):
        yield resize(f"Conv 1x1 and Resize linear x8, 64x64x64 to {m}", (1, 64, 64, 64), 8, before=[("Conv", ["x", "w"], {})],
                     constants={"w": (m, 64, 1, 1)}, **half)
    yield resize("Resize linear x2 of aligned corners, 64x56x56", (1, 64, 56, 56), 2, mode="linear", coordinate_transformation_mode="align_corners")
    yield resize("Resize linear by a half, 64x112x112", (1, 64, 112, 112), 0.5, **half)
    yield resize("Resize cubic x2, 3x112x112", (1, 3, 112, 112), 2, mode="cubic", coordinate_transformation_mode="half_pixel")


def movements():
    for name, shape, order in (("H<->W", (16, 512, 512), (0, 2, 1)), ("NCHW->NHWC", (1, 64, 112, 112), (0, 2, 3, 1)), ("NHWC->NCHW", (1, 112, 112, 64), (0, 3, 1, 2)),
                               ("NCHW->NHWC of 3", (1, 3, 224, 224), (0, 2, 3, 1)), ("NHWC->NCHW of 3", (1, 224, 224, 3), (0, 3, 1, 2)),
                               ("heads", (1, 128, 12, 64), (0, 2, 1, 3)), ("keys", (1, 128, 12, 64), (0, 2, 3, 1)), ("windows", (8, 7, 8, 7, 96), (0, 2, 1, 3, 4))):
        yield one(f"Transpose {name}, {text_of(shape)}", "Transpose", {"x": shape}, perm=list(order))
    for mode in ("constant", "reflect", "edge"):
        yield one(f"Pad {mode} by 3, 64x112x112", "Pad", {"x": (1, 64, 112, 112)}, {"pads": whole(0, 0, 3, 3, 0, 0, 3, 3)}, mode=mode)
    yield one("Pad reflect by 40, 64x4000", "Pad", {"x": (64, 4000)}, {"pads": whole(0, 40, 0, 40)}, mode="reflect")
    yield one("Concat of channels, 2 of 128x56x56", "Concat", {"x": (1, 128, 56, 56), "y": (1, 128, 56, 56)}, axis=1)
    yield one("Concat of the last axis, 512 rows of 256 and 256", "Concat", {"x": (512, 256), "y": (512, 256)}, axis=1)
    yield one("Slice of every second row and column, 64x112x112", "Slice", {"x": (1, 64, 112, 112)},
              {"starts": whole(0, 0), "ends": whole(112, 112), "axes": whole(2, 3), "steps": whole(2, 2)})
    yield one("Slice of a half, 128x56x56", "Slice", {"x": (1, 128, 56, 56)}, {"starts": whole(0), "ends": whole(64), "axes": whole(1)})
    yield one("DepthToSpace 2, 256x32x32", "DepthToSpace", {"x": (1, 256, 32, 32)}, blocksize=2)
    yield one("SpaceToDepth 2, 64x64x64", "SpaceToDepth", {"x": (1, 64, 64, 64)}, blocksize=2)
    yield one("Expand 1x256x1x1 to 1x256x28x28", "Expand", {"x": (1, 256, 1, 1)}, {"shape": whole(1, 256, 28, 28)})
    yield one("Tile 1x1x128x128 by 16", "Tile", {"x": (1, 1, 128, 128)}, {"repeats": whole(1, 16, 1, 1)})
    ids = np.random.default_rng(3).integers(0, 30000, 512)
    yield one("Gather of 512 rows of 768", "Gather", {"ids": ids}, {"table": (30000, 768)}, order=["table", "ids"])
    yield one("GatherElements 512x512", "GatherElements", {"x": (512, 512), "at": np.random.default_rng(4).integers(0, 512, (512, 512))}, axis=1)
    grid = np.random.default_rng(5).uniform(-1, 1, (1, 64, 64, 2)).astype(np.float32)
    yield one("GridSample 64x64x64", "GridSample", {"x": (1, 64, 64, 64), "grid": grid}, mode="bilinear")
    yield one("CumSum along the last axis, 512x512", "CumSum", {"x": (512, 512)}, {"axis": np.array(1, np.int64)})


def selections():
    for n, k in ((20000, 2000), (8400, 300), (1000, 5), (32000, 50)):
        yield one(f"TopK {k} of {n}", "TopK", {"x": (1, n)}, {"k": whole(k)})
    yield one("TopK 8 of 64, 512 rows", "TopK", {"x": (512, 64)}, {"k": whole(8)})
    yield one("TopK 4 of 256 along axis 0, 128 columns", "TopK", {"x": (256, 128)}, {"k": whole(4)}, axis=0)
    random = np.random.default_rng(6)
    for classes, count in ((1, 1000), (10, 1000), (1, 4000)):
        corner = random.uniform(0, 600, (1, count, 2))
        boxes = np.concatenate([corner, corner + random.uniform(10, 120, (1, count, 2))], 2).astype(np.float32)
        scores = random.uniform(0, 1, (1, classes, count)).astype(np.float32)
        yield one(f"NonMaxSuppression {classes} x {count}", "NonMaxSuppression", {"boxes": boxes, "scores": scores},
                  {"most": whole(100), "overlap": np.array([0.5], np.float32), "least": np.array([0.05], np.float32)})
    yield one("ArgMax of channels, 21x256x256", "ArgMax", {"x": (1, 21, 256, 256)}, axis=1, keepdims=0)
    yield one("ArgMax of rows, 512x1000", "ArgMax", {"x": (512, 1000)}, axis=1)
    yield one("NonZero 256x256", "NonZero", {"x": (np.random.default_rng(7).random((256, 256)) < 0.3)})


def reductions():
    for kind in ("ReduceSum", "ReduceMean", "ReduceMax"):
        more = {"constants": {"axes": whole(0)}} if kind == "ReduceSum" else {"axes": [0]}
        yield one(f"{kind} over axis 0, 512x4096", kind, {"x": (512, 4096)}, keepdims=0, **more)
    yield one("ReduceMean over the last axis, 512x768", "ReduceMean", {"x": (512, 768)}, axes=[1])
    yield one("ReduceMean over rows and columns, 256x56x56", "ReduceMean", {"x": (1, 256, 56, 56)}, axes=[2, 3])
    yield one("ReduceMean over channels, 64x112x112", "ReduceMean", {"x": (1, 64, 112, 112)}, axes=[1])
    yield one("ReduceL2 over the last axis, 512x768", "ReduceL2", {"x": (512, 768)}, axes=[1])
    for shape, axis in (((12, 128, 128), 2), ((512, 1000), 1), ((1, 21, 256, 256), 1)):
        yield one(f"Softmax of axis {axis}, {text_of(shape)}", "Softmax", {"x": shape}, axis=axis)
    yield one("LayerNormalization 128x768", "LayerNormalization", {"x": (128, 768)}, {"g": (768,), "h": (768,)}, axis=-1)
    yield one("InstanceNormalization 64x112x112", "InstanceNormalization", {"x": (1, 64, 112, 112)}, {"g": (64,), "h": (64,)})
    yield one("LogSoftmax 128x30000", "LogSoftmax", {"x": (128, 30000)}, axis=-1)


def elementwise():
    big = (1, 64, 112, 112)
    for kind in ("Relu", "Sigmoid", "Tanh", "Exp", "Erf", "HardSwish", "Elu", "Abs", "Floor", "Softplus", "LeakyRelu"):
        yield one(f"{kind} 64x112x112", kind, {"x": big})
    yield one("Sqrt 64x112x112", "Sqrt", {"x": np.abs(np.random.default_rng(9).standard_normal(big, np.float32))})
    for kind in ("Add", "Mul", "Div", "Max", "Greater"):
        yield one(f"{kind} 64x112x112", kind, {"x": big, "y": big})
    yield one("Add of a channel's number, 64x112x112", "Add", {"x": big}, {"y": (64, 1, 1)})
    yield one("Mul by a row's number, 512x768", "Mul", {"x": (512, 768), "y": (512, 1)})
    yield one("Pow 2, 512x768", "Pow", {"x": (512, 768)}, {"y": np.array(2, np.float32)})
    yield one("Where 512x768", "Where", {"c": np.random.default_rng(8).random((512, 768)) < 0.5, "x": (512, 768), "y": (512, 768)})
    yield one("Cast to i32, 64x112x112", "Cast", {"x": big}, to=TensorProto.INT32)
    yield one("Clip 64x112x112", "Clip", {"x": big}, {"low": np.array(0, np.float32), "high": np.array(6, np.float32)})
    yield one("BatchNormalization 64x112x112", "BatchNormalization", {"x": big}, {"g": (64,), "h": (64,), "m": (64,), "v": np.ones(64, np.float32)})


def cases():
    import op_networks  # which makes cases by what is above

    families = (products, convolutions, pools, resizes, movements, selections, reductions, elementwise, op_networks.networks)
    return [case for family in families for case in family()]
