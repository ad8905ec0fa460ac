"""Models of one node for the rows of frontends/onnx/DIFFERENCES.md: what differs, on few numbers. Needs numpy, onnx and torch; differences.py runs them."""
from dataclasses import dataclass, field
from typing import Callable, Optional

import numpy as np
import onnx
import torch
import torch.nn.functional as F
import torchvision
from onnx import TensorProto, helper, numpy_helper

NAN, INF = np.nan, np.inf
OPSET = 21


def f32(*numbers):
    return np.array(numbers, np.float32)


def i64(*numbers):
    return np.array(numbers, np.int64)


def i32(*numbers):
    return np.array(numbers, np.int32)


def noise(*shape, dtype=np.float32):
    return np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape).astype(dtype)


@dataclass
class Case:
    """A node, its operands (None: left out; those in `known` are constants) and the same in torch."""
    op: str
    operands: list
    attributes: dict = field(default_factory=dict)
    torch: Optional[Callable] = None
    opset: int = OPSET
    known: tuple = ()
    results: tuple = (TensorProto.FLOAT,)  # their types
    compared: tuple = ()  # which of them; none: all
    behind: tuple = ()  # types that the result is cast to in turn
    x86_only: bool = False
    domain: str = ""
    version: int = 3  # of another domain

    def __post_init__(self):
        self.operands = [None if operand is None else np.asarray(operand) for operand in self.operands]

    def model(self, producer):
        names = [f"x{i}" if operand is not None else "" for i, operand in enumerate(self.operands)]
        outputs = [f"y{i}" for i in range(len(self.results))]
        node = helper.make_node(self.op, names, outputs, name="node", domain=self.domain, **self.attributes)
        nodes = [node]
        for i, kind in enumerate(self.behind):
            nodes.append(helper.make_node("Cast", [nodes[-1].output[0]], [f"cast{i}"], to=kind))
        kinds = [(outputs[0] if not self.behind else nodes[-1].output[0], self.behind[-1] if self.behind else self.results[0])]
        kinds += list(zip(outputs[1:], self.results[1:]))
        info = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
                for i, (name, x) in enumerate(zip(names, self.operands)) if x is not None and i not in self.known]
        graph = helper.make_graph(nodes, "g", info, [helper.make_tensor_value_info(name, kind, None) for name, kind in kinds],
                                  [numpy_helper.from_array(self.operands[i], names[i]) for i in self.known])
        opsets = [helper.make_opsetid("", self.opset)] + [helper.make_opsetid(self.domain, self.version)] * bool(self.domain)
        return helper.make_model(graph, opset_imports=opsets, producer_name=producer,
                                 ir_version=10 if self.opset < 23 else 11)

    def feeds(self):
        return {f"x{i}": x for i, x in enumerate(self.operands) if x is not None and i not in self.known}

    def by_torch(self):
        result = self.torch(*[None if x is None else torch.from_numpy(np.array(x)) for x in self.operands])
        return [value.numpy() for value in (result if isinstance(result, (tuple, list)) else [result])]


def resize(x, scales=None, sizes=None, region=None, torch=None, result=TensorProto.FLOAT, **attributes):
    operands = [x, region, None if scales is None else f32(*scales), None if sizes is None else i64(*sizes)]
    while operands[-1] is None:
        operands.pop()
    known = tuple(i for i in range(1, len(operands)) if operands[i] is not None)
    return Case("Resize", operands, attributes, torch and (lambda x, *rest: torch(x)), 19, known, (result,))


def recurrent(op, lengths=None, **attributes):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    operands = [noise(4, 2, 3), noise(1, gates * 3, 3), noise(1, gates * 3, 3), noise(1, gates * 6)] + ([lengths] if lengths is not None else [])
    return Case(op, operands, {"hidden_size": 3, **attributes}, results=(TensorProto.FLOAT,) * (3 if op == "LSTM" else 2))


def of_image(op, shape, torch=None, opset=OPSET, x=None, **attributes):
    return Case(op, [noise(*shape) if x is None else x], attributes, torch, opset)


def half(*shape):
    return np.full(shape, 300, np.float16)


def affine(align):
    return Case("AffineGrid", [f32(1, 0, 0, 0, 1, 0).reshape(1, 2, 3), i64(1, 1, 1, 4)], {"align_corners": align},
                lambda theta, size: F.affine_grid(theta, [1, 1, 1, 4], bool(align)), known=(1,))


def quantize(x, scale=1.0, zero=10):
    return Case("QuantizeLinear", [x, np.array(scale, x.dtype), np.uint8(zero)],
                torch=lambda x, scale, zero: torch.quantize_per_tensor(x, float(scale), int(zero), torch.quint8).int_repr(),
                results=(TensorProto.UINT8,))


def scattered(op, reduction):
    indices = i64(1, 1, -1)
    return Case(op, [f32(1, 2, NAN), indices if op == "ScatterElements" else indices.reshape(3, 1), f32(1, NAN, 3)], {"reduction": reduction},
                lambda x, i, updates: x.scatter_reduce(0, i.reshape(-1) % 3, updates, "amax"))


def grid(coordinates, **attributes):
    mode = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}[attributes["mode"]]
    return Case("GridSample", [noise(1, 1, 3, 3) + 5, coordinates], attributes,
                lambda x, g: F.grid_sample(x, g, mode, attributes["padding_mode"], False))


def of_ml(op, *operands, results=(TensorProto.FLOAT,), version=3, compared=(), **attributes):
    return Case(op, list(operands), attributes, opset=18, results=results, compared=compared, domain="ai.onnx.ml", version=version)


def tree(op, **attributes):
    """One tree of three leaves."""
    nodes = {"nodes_treeids": [0] * 5, "nodes_nodeids": list(range(5)), "nodes_featureids": [0, 1, 0, 0, 0], "nodes_values": [0.0, .5, 0.0, 0.0, 0.0],
             "nodes_modes": ["BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF"], "nodes_truenodeids": [1, 3, 0, 0, 0],
             "nodes_falsenodeids": [2, 4, 0, 0, 0], "nodes_hitrates": [1.0] * 5}
    kind = "class" if op == "TreeEnsembleClassifier" else "target"
    leaves = {f"{kind}_treeids": [0] * 3, f"{kind}_nodeids": [2, 3, 4]}
    return of_ml(op, f32(1, 0, -1, 0, -1, 1).reshape(3, 2), results=(TensorProto.INT64, TensorProto.FLOAT) if kind == "class" else (TensorProto.FLOAT,),
                 **nodes, **leaves, **attributes)


RAMP = np.tile(np.arange(0, 90, 10, dtype=np.uint8), (7, 1)).reshape(1, 1, 7, 9)  # torch rounds behind each axis
IMAGE = noise(1, 1, 7, 9)
NAN_ROW = f32(1, NAN, 3, 2).reshape(1, 4)
INTEGERS = (TensorProto.INT64,)

# Where readers agree, a compile says nothing.
QUIET = [resize(IMAGE, (1, 1, 2, 3), mode="linear", coordinate_transformation_mode="align_corners"),
         resize(IMAGE, (1, 1, 2, 3), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
         resize(IMAGE, None, (1, 1, 11, 5), mode="cubic", coordinate_transformation_mode="pytorch_half_pixel"),
         grid(f32(.1, .2).reshape(1, 1, 1, 2), mode="linear", padding_mode="border"), recurrent("LSTM"),
         of_image("MaxPool", (1, 1, 6, 6), kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_UPPER"),
         of_image("LRN", (1, 5, 2, 2), size=3), Case("Softmax", [noise(2, 3)], {"axis": 1}, opset=11)]

# By the rows' names; a list where a row has more than one case.
CASES = {
    "cast-out-of-range": Case("Cast", [f32(1e10, -1e10, NAN, INF, -INF)], {"to": TensorProto.INT32}, lambda x: x.to(torch.int32),
                              results=(TensorProto.INT32,), x86_only=True),
    "cast-f8-range": [Case("Cast", [f32(1e9, -INF, 1)], {"to": kind}, lambda x, t=t: x.to(t).float(), behind=(TensorProto.FLOAT,))
                      for kind, t in ((TensorProto.FLOAT8E5M2, torch.float8_e5m2), (TensorProto.FLOAT8E4M3FNUZ, torch.float8_e4m3fnuz),
                                      (TensorProto.FLOAT8E5M2FNUZ, torch.float8_e5m2fnuz))],
    "sign-nan": Case("Sign", [f32(NAN, -2, 3)], torch=torch.sign),
    "clip-nan-bound": Case("Clip", [f32(0, 1, -1, 5), f32(NAN).reshape(()), f32(3).reshape(())],
                           torch=lambda x, low, high: x.clamp(float(low), float(high))),
    "pow-integer-overflow": Case("Pow", [i32(3, 10, -7), i32(40, 12, 25)], torch=torch.pow, results=(TensorProto.INT32,)),
    "mean-half": Case("Mean", [np.full(2, 60000, np.float16)] * 2, results=(TensorProto.FLOAT16,)),
    "mod-zero": Case("Mod", [i32(-7, 7), i32(0, 0)], torch=torch.remainder, results=(TensorProto.INT32,)),
    "softmax-before-13": Case("Softmax", [noise(2, 3, 4)], {"axis": 1}, opset=11),
    "hardmax-nan": Case("Hardmax", [NAN_ROW], {"axis": 1}),
    "gelu-half": [Case("Gelu", [np.array([-3.5, -3, 1], np.float16)], {"approximate": how}, lambda x, how=how: F.gelu(x, approximate=how),
                       results=(TensorProto.FLOAT16,)) for how in ("none", "tanh")],
    "shrink-nan": [Case("Shrink", [f32(NAN, 1, .2)], {"lambd": .5}, lambda x: F.hardshrink(x, .5)),
                   Case("Shrink", [f32(NAN, 1, .2)], {"lambd": .5, "bias": .5}, lambda x: F.softshrink(x, .5))],
    "thresholdedrelu-nan": Case("ThresholdedRelu", [f32(NAN, 1, 2)], {"alpha": 1.0}, lambda x: F.threshold(x, 1.0, 0.0)),
    "scatterelements-extremum-nan": scattered("ScatterElements", "max"),
    "scatternd-extremum-nan": scattered("ScatterND", "max"),
    "unique-nan": Case("Unique", [f32(2, NAN, 1, NAN)], torch=torch.unique),
    "range-decimals": Case("Range", [f32(x).reshape(()) for x in (1, 1.3, .1)], torch=lambda *ends: torch.arange(1, 1.3, .1), known=(0, 1, 2)),
    "reducelogsumexp-minus-infinity": Case("ReduceLogSumExp", [np.full((2, 3), -INF, np.float32), i64(1)],
                                           torch=lambda x, axes: x.logsumexp(1, True), known=(1,)),
    "reducemean-empty": Case("ReduceMean", [np.zeros((2, 0, 3), np.float32), i64(1)], torch=lambda x, axes: x.mean(1, True), known=(1,)),
    "reducemax-nan": Case("ReduceMax", [NAN_ROW, i64(1)], torch=lambda x, axes: x.amax(1, True), known=(1,)),
    "argmax-nan": Case("ArgMax", [NAN_ROW], {"axis": 1}, lambda x: x.argmax(1, True), results=INTEGERS),
    "reduce-integer-overflow": [
        Case("ReduceProd", [np.full((1, 40), 3, np.int32), i64(1)], torch=lambda x, axes: x.prod(1, True, dtype=torch.int32), known=(1,),
             results=(TensorProto.INT32,)),
        Case("ReduceSum", [np.full((1, 4), 2**30, np.int32), i64(1)], torch=lambda x, axes: x.sum(1, True, dtype=torch.int32), known=(1,),
             results=(TensorProto.INT32,))],
    "reducemean-half": Case("ReduceMean", [np.full((1, 4096), 100, np.float16), i64(1)], torch=lambda x, axes: x.mean(1, True), known=(1,),
                            results=(TensorProto.FLOAT16,)),
    "reducel2-half": Case("ReduceL2", [half(1, 64), i64(1)], torch=lambda x, axes: torch.linalg.vector_norm(x, dim=1, keepdim=True), known=(1,),
                          results=(TensorProto.FLOAT16,)),
    "topk-ties": Case("TopK", [f32(1, 3, 3, 2, 2, 3), i64(4)], torch=lambda x, k: x.topk(4), known=(1,), results=(TensorProto.FLOAT,) + INTEGERS),
    "convtranspose-same-shape": Case("ConvTranspose", [noise(1, 2, 3, 3), noise(2, 1, 3, 3)],
                                     {"strides": [3, 2], "output_shape": [10, 8], "auto_pad": "SAME_UPPER"}),
    "pool-same-dilated": of_image("MaxPool", (1, 1, 7, 8), kernel_shape=[3, 2], strides=[2, 2], dilations=[2, 1], auto_pad="SAME_UPPER"),
    "maxpool-same-lower": of_image("MaxPool", (1, 1, 6, 6), kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_LOWER"),
    "maxpool-padded-indices": Case("MaxPool", [noise(1, 2, 6, 6)], {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1]},
                                   lambda x: (F.max_pool2d(x, 3, 1, 1), torch.cat([F.max_pool2d(x, 3, 1, 1, return_indices=True)[1][:, :1],
                                                                                   F.max_pool2d(x, 3, 1, 1, return_indices=True)[1][:, 1:] + 36], 1)),
                                   results=(TensorProto.FLOAT,) + INTEGERS),
    "maxpool-nan": of_image("MaxPool", (), lambda x: F.max_pool1d(x, 2, 2), x=f32(1, NAN, 3, 4).reshape(1, 1, 4), kernel_shape=[2], strides=[2]),
    "maxpool-nan-index": Case("MaxPool", [f32(1, NAN, NAN).reshape(1, 1, 3)], {"kernel_shape": [3]},
                              lambda x: F.max_pool1d(x, 3, return_indices=True), results=(TensorProto.FLOAT,) + INTEGERS, compared=(1,)),
    "globalmaxpool-nan": of_image("GlobalMaxPool", (), lambda x: x.amax((2, 3), True), x=f32(1, NAN, 3, 4).reshape(1, 1, 2, 2)),
    "lppool-negative": of_image("LpPool", (1, 1, 4, 4), lambda x: F.lp_pool2d(x, 1, 2, 2), kernel_shape=[2, 2], strides=[2, 2], p=1),
    "lppool-ceil": of_image("LpPool", (1, 1, 5, 5), lambda x: F.lp_pool2d(x, 2, 2, 2, True), kernel_shape=[2, 2], strides=[2, 2], p=2, ceil_mode=1),
    "lppool-half": Case("LpPool", [half(1, 1, 4, 4)], {"kernel_shape": [2, 2], "strides": [2, 2]}, lambda x: F.lp_pool2d(x, 2, 2, 2),
                        results=(TensorProto.FLOAT16,)),
    "lrn-even": of_image("LRN", (5, 5, 2, 2), lambda x: F.local_response_norm(x, 4, .5), size=4, alpha=.5),
    "lrn-few-images": of_image("LRN", (1, 5, 2, 2), lambda x: F.local_response_norm(x, 3, .5), size=3, alpha=.5),
    "layernorm-half": [
        Case("LayerNormalization", [noise(2, 64, dtype=np.float16) * np.float16(100), np.ones(64, np.float16)],
             torch=lambda x, scale: F.layer_norm(x, (64,), scale), results=(TensorProto.FLOAT16,)),
        Case("InstanceNormalization", [noise(1, 2, 64, dtype=np.float16) * np.float16(100), np.ones(2, np.float16), np.zeros(2, np.float16)],
             torch=lambda x, scale, bias: F.instance_norm(x.float()).half(), results=(TensorProto.FLOAT16,))],
    "batchnorm-training-variance": Case(
        "BatchNormalization", [noise(2, 3, 4), f32(1, 2, 3), f32(1, 1, 1), f32(0, 1, 2), f32(1, 0, 2)], {"training_mode": 1},
        lambda x, scale, bias, mean, variance: (F.batch_norm(x, mean, variance, scale, bias, True), mean, variance),
        results=(TensorProto.FLOAT,) * 3, compared=(2,)),
    "lpnormalization-one": Case("LpNormalization", [f32(1, -2, 4).reshape(1, 3)], {"p": 1}, lambda x: F.normalize(x, 1.0)),
    "lpnormalization-half": Case("LpNormalization", [half(1, 64)], torch=F.normalize, results=(TensorProto.FLOAT16,)),
    "meanvariance-constant": Case("MeanVarianceNormalization", [np.ones((1, 2, 2, 2), np.float32)]),
    "quantize-range": quantize(f32(3e9, INF, 1e20)),
    "quantize-nan": quantize(f32(NAN)),
    "quantize-reciprocal": quantize((np.arange(-400, 400) * .05).astype(np.float32), .1, 128),
    "quantize-half": Case("QuantizeLinear", [(np.arange(-400, 400) * .05).astype(np.float16), np.float16(.1), np.uint8(128)],
                          results=(TensorProto.UINT8,)),
    "dynamicquantize-zeros": Case("DynamicQuantizeLinear", [f32(0, 0, 0)], results=(TensorProto.UINT8, TensorProto.FLOAT, TensorProto.UINT8)),
    "resize-aligned-scales": [
        resize(IMAGE, (1, 1, s, s), mode=mode, coordinate_transformation_mode="align_corners",
               torch=lambda x, m=m, s=s: F.interpolate(x, scale_factor=s, mode=m, align_corners=True))
        for mode, m in (("linear", "bilinear"), ("cubic", "bicubic")) for s in (1.7, .6)],
    "resize-rounding": [
        resize(noise(1, 1, 10, 10), (1, 1, 1.3, .7), mode="linear", torch=lambda x: F.interpolate(x, scale_factor=(1.3, .7), mode="bilinear")),
        resize(IMAGE, (1, 1, .6, .45), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor",
               torch=lambda x: F.interpolate(x, scale_factor=(.6, .45), mode="nearest"))],
    "resize-crop-scales": resize(IMAGE, (1, 1, .6, .7), region=f32(0, 0, .2, -.3, 1, 1, .8, 1.2), mode="linear",
                                 coordinate_transformation_mode="tf_crop_and_resize"),
    "resize-aligned-filter": resize(IMAGE, None, (1, 1, 4, 4), mode="linear", antialias=1, exclude_outside=1,
                                    coordinate_transformation_mode="align_corners",
                                    torch=lambda x: F.interpolate(x, (4, 4), mode="bilinear", antialias=True, align_corners=True)),
    "resize-integers": resize(RAMP, (1, 1, 1, 2), mode="linear", result=TensorProto.UINT8,
                              torch=lambda x: F.interpolate(x, scale_factor=(1.0, 2.0), mode="bilinear")),
    "resize-one-cubic": resize(IMAGE, None, (1, 1, 1, 1), mode="cubic", coordinate_transformation_mode="pytorch_half_pixel"),
    "resize-10-nearest": Case("Resize", [IMAGE, f32(1, 1, 1.7, .6)], {"mode": "nearest"},
                              lambda x, scales: F.interpolate(x, scale_factor=(1.7, .6), mode="nearest"), opset=10, known=(1,)),
    "recurrent-lengths": [recurrent(op, i32(4, 2)) for op in ("LSTM", "GRU", "RNN")],
    "recurrent-clip": [recurrent(op, clip=.3) for op in ("LSTM", "GRU", "RNN")],
    "recurrent-activations": recurrent("LSTM", activations=["HardSigmoid", "Tanh", "Tanh"]),
    "lstm-input-forget": recurrent("LSTM", input_forget=1),
    "hamming-coefficients": Case("HammingWindow", [i64(8).reshape(())], torch=lambda n: torch.hamming_window(8), known=(0,)),
    "window-one": [Case(op, [i64(1).reshape(())], {"periodic": 0}, lambda n, t=t: t(1, periodic=False), known=(0,))
                   for op, t in (("HannWindow", torch.hann_window), ("HammingWindow", torch.hamming_window), ("BlackmanWindow", torch.blackman_window))],
    "gridsample-cubic-border": [Case("GridSample", [noise(1, 2, 5, 7), np.random.default_rng(1).uniform(-1.6, 1.6, (1, 6, 9, 2)).astype(np.float32)],
                                     {"mode": "cubic", "padding_mode": "border", "align_corners": corners},
                                     lambda x, g, corners=corners: F.grid_sample(x, g, "bicubic", "border", bool(corners))) for corners in (0, 1)],
    "gridsample-nan": grid(f32(NAN, 0, INF, 0, -INF, 0, .1, NAN).reshape(1, 1, 4, 2), mode="linear", padding_mode="border"),
    "affinegrid-one": affine(1),
    "maxunpool-shape": Case("MaxUnpool", [f32(1, 2, 3, 4).reshape(1, 1, 2, 2), i64(5, 7, 13, 15).reshape(1, 1, 2, 2), i64(1, 1, 5, 5)],
                            {"kernel_shape": [2, 2], "strides": [2, 2]}, lambda x, at, shape: F.max_unpool2d(x, at, 2, 2, output_size=(5, 5)),
                            known=(2,)),
    "treeensembleclassifier-unvoted": tree("TreeEnsembleClassifier", class_ids=[0, 1, 2], class_weights=[1.0, 2.0, -3.0],
                                           classlabels_int64s=[5, 6, 7]),
    "treeensembleclassifier-negative": tree("TreeEnsembleClassifier", class_ids=[0, 0, 0], class_weights=[-.1, .7, 0.0], classlabels_int64s=[5, 6]),
    "treeensembleregressor-transform": tree("TreeEnsembleRegressor", target_ids=[0, 0, 0], target_weights=[1.0, 2.0, -3.0], n_targets=1,
                                            post_transform="LOGISTIC"),
    "normalizer-max-negative": of_ml("Normalizer", f32(-3, 1, 2).reshape(1, 3), norm="MAX"),
    "onehotencoder-fraction": of_ml("OneHotEncoder", f32(1, 1.5, 3), cats_int64s=[1, 2, 3], zeros=1),
    "labelencoder-nan": of_ml("LabelEncoder", f32(1, NAN, 3), results=INTEGERS, version=2, keys_floats=[1.0, NAN, 3.0], values_int64s=[1, 2, 3],
                              default_int64=-9),
    "linearclassifier-one-row": of_ml("LinearClassifier", noise(4, 2), results=INTEGERS + (TensorProto.FLOAT,), compared=(1,),
                                      coefficients=[.1, .2], intercepts=[.1], classlabels_ints=[7, 8]),
    "roialign-before-16": Case("RoiAlign", [noise(1, 2, 8, 8), f32(.3, .4, 5.7, 6.1).reshape(1, 4), i64(0)],
                               {"output_height": 3, "output_width": 3, "sampling_ratio": 2},
                               lambda x, rois, batch: torchvision.ops.roi_align(x, [rois], 3, 1.0, 2, False), opset=10),
    "attention-capped-scores": Case("Attention", [noise(1, 1, 2, 4), noise(1, 1, 3, 4), noise(1, 1, 3, 4)], {"softcap": 2.0}, opset=23,
                                    results=(TensorProto.FLOAT,) * 4, compared=(3,)),
}
