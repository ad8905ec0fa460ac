"""Normalizations and activations of com.microsoft by their definitions, in float64."""
import math

import numpy as np

from definitions_matmul import at
from tensors import Tensor

erf = np.vectorize(math.erf, otypes=[np.float64])


def rms_normalized(x, gamma, axis, epsilon):
    axes = tuple(range(axis % x.ndim, x.ndim))
    inverse = 1 / np.sqrt((x * x).mean(axes, keepdims=True) + np.float32(epsilon))
    return x * inverse * gamma, inverse


def layer_normalized(x, gamma, beta, epsilon):
    mean = x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + np.float32(epsilon))
    return (x - mean) * inverse * gamma + (beta if beta is not None else 0), mean, inverse


def simplified_layer_normalization(operands, attributes, results):
    x, scale = operands
    y, inverse = rms_normalized(x.v, scale.v, attributes.get("axis", -1), attributes.get("epsilon", 1e-5))
    return [Tensor(scale.kind, y), Tensor("f64" if attributes.get("stash_type", 1) == 11 else "f32", inverse)]


def summed(x, skip, bias):
    """"(batch, sequence, hidden) or (1, sequence, hidden) or (sequence, hidden)": broadcast."""
    return x.v + skip.v + (bias.v if bias is not None else 0)


def skip_simplified_layer_normalization(operands, attributes, results):
    x, skip, gamma = operands[:3]
    total = summed(x, skip, at(operands, 3))
    y, inverse = rms_normalized(total, gamma.v, -1, attributes.get("epsilon", 1e-12))
    return [Tensor(x.kind, y), None, Tensor("f32", inverse), Tensor(x.kind, total)]


def skip_layer_normalization(operands, attributes, results):
    x, skip, gamma = operands[:3]
    beta = at(operands, 3)
    total = summed(x, skip, at(operands, 4))
    y, mean, inverse = layer_normalized(total, gamma.v, beta.v if beta is not None else None, attributes.get("epsilon", 1e-12))
    return [Tensor(x.kind, y), Tensor("f32", mean), Tensor("f32", inverse), Tensor(x.kind, total)]


def embed_layer_normalization(operands, attributes, results):
    ids, segments, words, places, segment_table, gamma, beta, mask, position_ids = [*operands, *[None] * 9][:9]
    batch, length = ids.shape
    at_place = position_ids.v if position_ids is not None else np.arange(length)[None]
    total = words.v[ids.v] + places.v[np.broadcast_to(at_place, (batch, length))]
    if segments is not None:
        total = total + segment_table.v[segments.v]
    y, _, _ = layer_normalized(total, gamma.v, beta.v, attributes.get("epsilon", 1e-12))
    # The schema says "position of first 0 in mask, or number of words"; ONNX Runtime counts the ones.
    counts = np.zeros(batch) if mask is None else (mask.v == 1).sum(1)
    return [Tensor(words.kind, y), Tensor("i32", counts), Tensor(words.kind, total)]


def group_normalized(x, gamma, beta, attributes):
    groups, last = attributes["groups"], attributes.get("channels_last", 1)
    value = np.moveaxis(x, -1, 1) if last else x
    shape = value.shape
    value = value.reshape(shape[0], groups, -1)
    mean = value.mean(-1, keepdims=True)
    value = (value - mean) / np.sqrt(((value - mean) ** 2).mean(-1, keepdims=True) + np.float32(attributes.get("epsilon", 1e-5)))
    channel = (1, shape[1], *[1] * (len(shape) - 2))
    value = value.reshape(shape) * gamma.reshape(channel) + beta.reshape(channel)
    if attributes["activation"] == 1:
        value = value / (1 + np.exp(-value))
    return np.moveaxis(value, 1, -1) if last else value


def group_norm(operands, attributes, results):
    x, gamma, beta = operands
    return [Tensor(x.kind, group_normalized(x.v, gamma.v, beta.v, attributes))]


def skip_group_norm(operands, attributes, results):
    x, gamma, beta, skip = operands[:4]
    bias, last = at(operands, 4), attributes.get("channels_last", 1)
    spread = (lambda v: v) if last else (lambda v: np.moveaxis(v, -1, 1))
    added = skip.v
    if skip.v.ndim == 2:  # (N x C)
        added = spread(skip.v[:, None, None])
    total = x.v + added
    if bias is not None:
        total = total + spread(bias.v[None, None, None])
    return [Tensor(x.kind, group_normalized(total, gamma.v, beta.v, attributes)), Tensor(x.kind, total)]


def gelu_of(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def gelu(operands, attributes, results):
    return [Tensor(operands[0].kind, gelu_of(operands[0].v))]


def bias_gelu(operands, attributes, results):
    return [Tensor(operands[0].kind, gelu_of(operands[0].v + operands[1].v))]


def fast_gelu(operands, attributes, results):
    """"Y=0.5*X*(1+tanh(0.797885*X+0.035677*X*X*X))": the digits are those of sqrt(2/pi) and 0.044715 sqrt(2/pi)."""
    x = operands[0].v + (operands[1].v if at(operands, 1) is not None else 0)
    root = math.sqrt(2 / math.pi)
    return [Tensor(operands[0].kind, 0.5 * x * (1 + np.tanh(root * x + 0.044715 * root * x ** 3)))]


def quick_gelu(operands, attributes, results):
    x = operands[0].v
    return [Tensor(operands[0].kind, x / (1 + np.exp(-np.float32(attributes.get("alpha", 1.702)) * x)))]


def bias_split_gelu(operands, attributes, results):
    x = operands[0].v + operands[1].v
    left, right = np.split(x, 2, -1)
    return [Tensor(operands[0].kind, left * gelu_of(right))]


DEFINITIONS = {"SimplifiedLayerNormalization": simplified_layer_normalization,
               "SkipSimplifiedLayerNormalization": skip_simplified_layer_normalization,
               "SkipLayerNormalization": skip_layer_normalization, "EmbedLayerNormalization": embed_layer_normalization,
               "GroupNorm": group_norm,
               "SkipGroupNorm": skip_group_norm, "Gelu": gelu, "BiasGelu": bias_gelu, "FastGelu": fast_gelu, "QuickGelu": quick_gelu,
               "BiasSplitGelu": bias_split_gelu}
