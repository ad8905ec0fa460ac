"""FusedConv and the QLinear family of com.microsoft by their definitions, in float64."""
import pathlib
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "extents"))
import definitions as plain  # what ONNX's own operators are there

from definitions_matmul import activated, at
from tensors import Tensor, quantized


def padding_of(attributes, extents, kernel):
    """The pads of a window, those that auto_pad means too; and whether it has any."""
    rank = len(extents)
    strides, dilations = attributes.get("strides") or [1] * rank, attributes.get("dilations") or [1] * rank
    automatic = attributes.get("auto_pad", "NOTSET")
    if automatic not in ("SAME_UPPER", "SAME_LOWER"):
        return list(attributes.get("pads") or [0] * 2 * rank) if automatic == "NOTSET" else [0] * 2 * rank
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    whole = [max((-(-e // s) - 1) * s + r - e, 0) for e, s, r in zip(extents, strides, reach)]
    small, large = [w // 2 for w in whole], [w - w // 2 for w in whole]
    return small + large if automatic == "SAME_UPPER" else large + small


def fused_conv(operands, attributes, results):
    x, w = operands[:2]
    bias, added = at(operands, 2), at(operands, 3)
    pads = padding_of(attributes, x.shape[2:], w.shape[2:])
    y = plain.conv(x.v, w.v, bias.v if bias is not None else None, attributes.get("strides"), attributes.get("dilations"), pads,
                   attributes.get("group", 1))
    y = y + added.v if added is not None else y
    return [Tensor(x.kind, activated(y, attributes.get("activation"), attributes.get("activation_params", [])))]


def real(tensor, scale, zero):
    return (tensor.v - (zero.v.reshape(()) if zero is not None else 0)) * scale.v.reshape(())


def stored(values, scale, zero, kind):
    return quantized(values, scale.v.reshape(()), zero.v.reshape(()) if zero is not None else 0, kind)


def binary(function):
    def definition(operands, attributes, results):
        a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero = [*operands, None][:8]
        return [stored(function(real(a, a_scale, a_zero), real(b, b_scale, b_zero)), c_scale, c_zero, a.kind)]
    return definition


def unary(function):
    def definition(operands, attributes, results):
        x, x_scale, x_zero, y_scale, y_zero = [*operands, None][:5]
        return [stored(function(real(x, x_scale, x_zero), attributes), y_scale, y_zero, x.kind)]
    return definition


def softmax(x, attributes):
    """"for onnx v.13+" along the axis; before it over all axes from this one on."""
    axis = attributes.get("axis", -1) % x.ndim
    if attributes["opset"] >= 13:
        return plain.softmax(x, axis)
    rows = int(np.prod(x.shape[:axis]))
    return plain.softmax(x.reshape(rows, -1), 1).reshape(x.shape)


def spread(x, attributes):
    """Channels first."""
    return np.moveaxis(x, -1, 1) if attributes.get("channels_last", 0) else x


def back(y, attributes):
    return np.moveaxis(y, 1, -1) if attributes.get("channels_last", 0) else y


def average_pool(x, attributes):
    x, kernel = spread(x, attributes), attributes["kernel_shape"]
    rank, extents = len(kernel), x.shape[2:]
    strides, pads = attributes.get("strides") or [1] * rank, padding_of(attributes, extents, kernel)
    ends = list(pads[rank:])
    if attributes.get("ceil_mode", 0):  # one more window where a part of it begins inside
        for i, (e, k, s) in enumerate(zip(extents, kernel, strides)):
            count = -(-(e + pads[i] + pads[rank + i] - k) // s) + 1
            count -= (count - 1) * s >= e + pads[i]
            ends[i] = max(ends[i], (count - 1) * s + k - e - pads[i])
    ones = [1] * rank
    total = plain.windows(x, kernel, strides, ones, pads[:rank] + ends, 0)
    inside = np.pad(np.ones(x.shape), ((0, 0), (0, 0), *zip(pads[:rank], pads[rank:])),
                    constant_values=attributes.get("count_include_pad", 0))
    beyond = [0] * rank + [e - p for e, p in zip(ends, pads[rank:])]
    counted = plain.windows(inside, kernel, strides, ones, beyond, 0)
    axes = tuple(range(x.ndim, total.ndim))
    return back(total.sum(axes) / counted.sum(axes), attributes)


def global_average_pool(x, attributes):
    x = spread(x, attributes)
    return back(x.mean(tuple(range(2, x.ndim)), keepdims=True), attributes)


def concat(operands, attributes, results):
    y_scale, y_zero, *rest = operands
    parts = [real(x, scale, zero) for x, scale, zero in zip(rest[0::3], rest[1::3], rest[2::3])]
    return [stored(np.concatenate(parts, attributes["axis"]), y_scale, y_zero, y_zero.kind)]


def reduce_mean(operands, attributes, results):
    x, x_scale, x_zero, y_scale, y_zero = [*operands, None][:5]
    mean = real(x, x_scale, x_zero).mean(tuple(attributes["axes"]), keepdims=bool(attributes["keepdims"]))
    return [stored(mean, y_scale, y_zero, x.kind)]


def where(operands, attributes, results):
    condition, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero = operands
    return [stored(np.where(condition.v, real(x, x_scale, x_zero), real(y, y_scale, y_zero)), z_scale, z_zero, x.kind)]


DEFINITIONS = {
    "FusedConv": fused_conv, "QLinearAdd": binary(np.add), "QLinearMul": binary(np.multiply),
    "QLinearSigmoid": unary(lambda x, a: 1 / (1 + np.exp(-x))),
    "QLinearLeakyRelu": unary(lambda x, a: np.where(x < 0, np.float32(a.get("alpha", 0.01)) * x, x)), "QLinearSoftmax": unary(softmax),
    "QLinearAveragePool": unary(average_pool), "QLinearGlobalAveragePool": unary(global_average_pool), "QLinearConcat": concat,
    "QLinearReduceMean": reduce_mean, "QLinearWhere": where,
}
