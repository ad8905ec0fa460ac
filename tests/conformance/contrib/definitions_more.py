"""Operators of com.microsoft that optimizers and quantizers write beside the others, by their definitions, in float64."""
import numpy as np

import definitions_norm
import definitions_quantized as base
from definitions_attention import softmax
from definitions_matmul import activated, at, fused_mat_mul
from tensors import Tensor, quantized

plain = base.plain


def channels_first(tensor):
    return np.moveaxis(tensor.v, -1, 1)


def per_axis(tensor, rank, axis):
    """A scale or zero point that is one for all, or one a place of an axis."""
    return tensor.v.reshape([-1 if i == axis % rank else 1 for i in range(rank)]) if tensor.v.size > 1 else tensor.v.reshape(())


def q_gemm(operands, attributes, results):
    a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero = [*operands, *[None] * 9][:9]
    left = a.v - a_zero.v.reshape(())
    left = left.T if attributes.get("transA", 0) else left
    columns = b.v.T if attributes.get("transB", 0) else b.v  # scales and zero points are of the columns of the product
    right = columns - b_zero.v.reshape(-1)
    total = left @ right + (c.v if c is not None else 0)  # C's scale is that of the product
    y = total * np.float32(attributes.get("alpha", 1.0)) * a_scale.v.reshape(()) * b_scale.v.reshape(-1)
    return [base.stored(y, y_scale, y_zero, y_zero.kind) if y_scale is not None else Tensor("f32", y)]


def q_linear_conv(operands, attributes, results):
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = operands[:8]
    bias, last = at(operands, 8), attributes.get("channels_last", 0)
    value = (channels_first(x) if last else x.v) - x_zero.v.reshape(())
    rank = w.v.ndim
    kernel = w.v - per_axis(w_zero, rank, 0)
    pads = base.padding_of(attributes, value.shape[2:], w.shape[2:])
    y = plain.conv(value, kernel, bias.v if bias is not None else None, attributes.get("strides"), attributes.get("dilations"), pads,
                   attributes.get("group", 1))
    y = y * x_scale.v.reshape(()) * per_axis(w_scale, rank, 1)
    y = base.stored(y, y_scale, y_zero, y_zero.kind)
    return [Tensor(y.kind, np.moveaxis(y.v, 1, -1)) if last else y]


def quantize_linear(operands, attributes, results):
    x, scale = operands[:2]
    zero, axis = at(operands, 2), attributes.get("axis", 1)
    offset = per_axis(zero, x.v.ndim, axis) if zero is not None else 0
    return [quantized(x.v, per_axis(scale, x.v.ndim, axis), offset, zero.kind if zero is not None else "u8")]


def dequantize_linear(operands, attributes, results):
    x, scale = operands[:2]
    zero, axis = at(operands, 2), attributes.get("axis", 1)
    offset = per_axis(zero, x.v.ndim, axis) if zero is not None else 0
    return [Tensor(scale.kind, (x.v - offset) * per_axis(scale, x.v.ndim, axis))]


def nhwc_max_pool(operands, attributes, results):
    x, kernel = operands[0], attributes["kernel_shape"]
    value, rank = channels_first(x), len(kernel)
    strides, dilations = attributes.get("strides") or [1] * rank, attributes.get("dilations") or [1] * rank
    pads = base.padding_of(attributes, value.shape[2:], kernel)
    if attributes.get("ceil_mode", 0):  # one more window where a part of it begins inside
        for i, (extent, k, s, d) in enumerate(zip(value.shape[2:], kernel, strides, dilations)):
            reach = (k - 1) * d + 1
            count = -(-(extent + pads[i] + pads[rank + i] - reach) // s) + 1
            count -= (count - 1) * s >= extent + pads[i]
            pads[rank + i] = max(pads[rank + i], (count - 1) * s + reach - extent - pads[i])
    y = plain.windows(value, kernel, strides, dilations, pads, -1000)
    y = y.max(tuple(range(value.ndim, y.ndim)))
    return [Tensor(x.kind, np.moveaxis(y, 1, -1))]


def nhwc_conv(operands, attributes, results):
    x, w = operands[:2]
    bias, added = at(operands, 2), at(operands, 3)
    value = channels_first(x)
    pads = base.padding_of(attributes, value.shape[2:], w.shape[2:])
    y = plain.conv(value, w.v, bias.v if bias is not None else None, attributes.get("strides"), attributes.get("dilations"), pads,
                   attributes.get("group", 1))
    y = y + channels_first(added) if added is not None else y
    y = activated(y, attributes.get("activation"), attributes.get("activation_params", []))
    return [Tensor(x.kind, np.moveaxis(y, 1, -1))]


def fused_mat_mul_activation(operands, attributes, results):
    [y] = fused_mat_mul(operands, attributes, results)
    named = [attributes.get("activation_" + p) for p in ("alpha", "beta", "gamma")]
    return [Tensor(y.kind, activated(y.v, attributes["activation"], named))]


def gemm_fast_gelu(operands, attributes, results):
    x, w = operands[:2]
    [y] = definitions_norm.fast_gelu([Tensor("f64", x.v @ w.v), at(operands, 2)], attributes, results)
    return [Tensor(x.kind, y.v)]


def bias_add(operands, attributes, results):
    x, bias, skip = operands
    return [Tensor(x.kind, x.v + bias.v + skip.v)]


def bias_softmax(operands, attributes, results):
    """The softmax is over all axes from `axis` on; the bias lacks the axes before it, or has 1 in those just before."""
    data, bias = operands
    axis = attributes.get("axis", 1) % data.v.ndim
    total = data.v + (bias.v if bias.v.ndim == data.v.ndim else bias.v.reshape(*[1] * (data.v.ndim - bias.v.ndim), *bias.shape))
    rows = softmax(total.reshape(int(np.prod(data.shape[:axis])), -1))
    return [Tensor(data.kind, rows.reshape(data.shape))]


def mul_integer(operands, attributes, results):
    a, a_zero, b, b_zero = [*operands, None][:4]
    zero = lambda t: t.v.reshape(()) if t is not None else 0
    return [Tensor("i32", (a.v - zero(a_zero)) * (b.v - zero(b_zero)))]


def reduce_sum_integer(operands, attributes, results):
    total = operands[0].v.sum(tuple(attributes["axes"]), keepdims=bool(attributes["keepdims"]))
    return [Tensor("i32" if operands[0].kind == "i8" else "u32", total)]


# The values that bitsandbytes gives its 16 codes.
FP4 = [0.0, 0.005208333333, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25]
NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
       -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
       0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]


def mat_mul_bnb4(operands, attributes, results):
    a, b, absmax = operands
    k, n, block = attributes["K"], attributes["N"], attributes["block_size"]
    table = np.array(NF4 if attributes["quant_type"] else FP4 + [-v for v in FP4])
    codes = np.stack([b.v >> 4, b.v & 15], -1).reshape(-1)[:n * k]  # the first value is the byte's high half
    weight = (table[codes] * absmax.v[np.arange(n * k) // block]).reshape(n, k)
    return [Tensor(a.kind, a.v @ (weight.T if attributes.get("transB", 1) else weight))]


DEFINITIONS = {"QGemm": q_gemm, "QLinearConv": q_linear_conv, "QuantizeLinear": quantize_linear, "DequantizeLinear": dequantize_linear,
               "NhwcMaxPool": nhwc_max_pool, "NhwcConv": nhwc_conv, "NhwcFusedConv": nhwc_conv, "TransposeMatMul": fused_mat_mul,
               "FusedMatMulActivation": fused_mat_mul_activation, "GemmFastGelu": gemm_fast_gelu, "BiasAdd": bias_add,
               "BiasSoftmax": bias_softmax, "MulInteger": mul_integer, "ReduceSumInteger": reduce_sum_integer, "MatMulBnb4": mat_mul_bnb4}
