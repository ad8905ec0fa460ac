"""Mixtures of experts of com.microsoft by their definitions, in float64."""
import math

import numpy as np

from definitions_attention import softmax
from definitions_matmul import at, unpacked
from tensors import Tensor

ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0), "silu": lambda x: x / (1 + np.exp(-x)), "identity": lambda x: x,
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    # Of a mixture this is the tanh form in the kernels; its text says "gelu" alone.
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
}


def swiglu(gate, linear, attributes):
    """"G = clamp(g, max=limit), L = clamp(l, min=-limit, max=limit), G * sigmoid(alpha * G) * (L + beta)"."""
    alpha, beta = np.float32(attributes.get("activation_alpha", 1.0)), np.float32(attributes.get("activation_beta", 0.0))
    limit = np.float32(attributes.get("swiglu_limit", np.inf))
    linear = np.clip(linear, -limit, limit)
    if attributes.get("swiglu_limit_after_activation", 0):
        return np.minimum(gate / (1 + np.exp(-alpha * gate)), limit) * (linear + beta)
    gate = np.minimum(gate, limit)
    return gate / (1 + np.exp(-alpha * gate)) * (linear + beta)


def expert(x, layers, attributes):
    """`layers`: weight [n, k] and bias of FC1, FC2 and perhaps FC3."""
    first, second, third = layers
    hidden = x @ first[0].T + first[1]
    kind, fusion = attributes.get("activation_type", "relu"), attributes.get("swiglu_fusion", 0)
    if kind in ("swiglu", "geglu"):
        if fusion == 1:  # "interleaved on each row"
            gate, linear = hidden[:, 0::2], hidden[:, 1::2]
        elif fusion == 2:  # "concatenated on each row"
            gate, linear = np.split(hidden, 2, 1)
        else:
            gate, linear = hidden, x @ third[0].T + third[1]
        hidden = swiglu(gate, linear, attributes) if kind == "swiglu" else ACTIVATIONS["gelu"](gate) * linear
    else:
        hidden = ACTIVATIONS[kind](hidden)
        if third is not None:  # what FC3 is for without SwiGLU: it scales the activated rows
            hidden = hidden * (x @ third[0].T + third[1])
    return hidden @ second[0].T + second[1]


def sparsely_mixed(router):
    """The two experts of the sparse mixer and their weights. Its text names it alone; the CUDA kernel, the only one, takes the best
    expert, then the best of the others, each with its share of a softmax over those (the first one not among them the second time)
    that lie no farther below it than 2 * 0.01 * max(|logit|, best)."""
    open_logits, order, weights = router.copy(), [], []
    for _ in range(2):
        best = open_logits.argmax(-1)[:, None]
        high = np.take_along_axis(open_logits, best, -1)
        near = np.isfinite(open_logits) & (high - router <= 2 * np.float32(0.01) * np.maximum(np.abs(router), high))
        weights.append(1 / np.where(near, np.exp(router - high), 0).sum(-1, keepdims=True))
        order.append(best)
        np.put_along_axis(open_logits, best, -np.inf, -1)
    return np.concatenate(order, -1), np.concatenate(weights, -1)


def mixed(x, router, mixing, layers_of, attributes):
    """The sum over the chosen experts; "normalize_routing_weights" divides by the sum of theirs."""
    rows = x.reshape(-1, x.shape[-1])
    count = attributes.get("k", 1)
    order = np.argsort(-router, -1, kind="stable")[:, :count]
    weights = np.take_along_axis(softmax(router) if mixing is None else mixing, order, -1)
    if attributes.get("use_sparse_mixer", 0):
        order, weights = sparsely_mixed(router)
    elif attributes.get("normalize_routing_weights", 0):
        weights = weights / weights.sum(-1, keepdims=True)
    y = np.zeros((len(rows), x.shape[-1]))
    for e in range(router.shape[1]):
        token, place = np.nonzero(order == e)
        if len(token):
            y[token] += weights[token, place][:, None] * expert(rows[token], layers_of(e), attributes)
    return y.reshape(x.shape)


def moe(operands, attributes, results):
    x, router, *rest = [*operands, *[None] * 8][:8]

    def layers_of(e):
        return [(w.v[e], b.v[e] if b is not None else 0) if w is not None else None for w, b in zip(rest[0::2], rest[1::2])]
    return [Tensor(x.kind, mixed(x.v, router.v, None, layers_of, attributes))]


def dequantized(codes, scales, zero_points, bits, block, columns, e):
    """Expert e's weights: a scale a row, or one a block of it; zero points are packed as the weights are."""
    rows = codes.shape[1]
    if bits == 3:  # "row-local LSB-first bitstreams"
        spread = (codes.v[e][..., None] >> np.arange(8)) & 1
        spread = spread.reshape(rows, -1)[:, :columns * 3].reshape(rows, columns, 3)
        values = (spread << np.arange(3)).sum(-1)
    else:
        values = unpacked(codes.v[e], bits, columns)
    blocks = columns // block if block else 1
    scale = scales.v[e].reshape(rows, blocks)
    zero = np.full((rows, blocks), 1 << (bits - 1))
    if zero_points is not None and bits != 3:  # of 3 bits they are the default's
        zero = unpacked(zero_points.v[e], bits, blocks if zero_points.v.ndim == 3 else rows).reshape(rows, blocks)
    of = np.arange(columns) // (columns // blocks)
    return (values - zero[:, of]) * scale[:, of]


def dequantized_floats(weights, scales, global_scale, block, e):
    """"float(weight[e, n, k]) * scale[e, n / block_size, k / block_size]", or one scale an expert."""
    value = weights.v[e]
    if not block:
        return value * global_scale.v[e]
    rows, columns = (np.arange(extent) // block for extent in value.shape)
    return value * scales.v[e][rows[:, None], columns]


def q_moe(operands, attributes, results):
    given = [*operands, *[None] * 21][:21]
    x, router, mixing = given[0], given[1], given[14]
    width, block = attributes.get("expert_weight_bits", 4), attributes.get("block_size", 0)
    floats = attributes.get("quant_type", "int") == "fp8"
    inner = given[5].shape[2] if floats else given[5].shape[2] * 8 // attributes.get("fc2_expert_weight_bits", width)
    columns = (x.shape[-1], inner, x.shape[-1])

    def layers_of(e):
        layers = []
        for i in range(3):
            codes, scales, bias, zeros = given[2 + 3 * i], given[3 + 3 * i], given[4 + 3 * i], given[11 + i]
            bits = attributes.get(f"fc{i + 1}_expert_weight_bits", width)
            if codes is None:
                layers.append(None)
                continue
            weight = dequantized_floats(codes, scales, at(given, 15 + i), block, e) if floats else dequantized(
                codes, scales, zeros, bits, block, columns[i], e)
            layers.append((weight, bias.v[e] if bias is not None else 0))
        return layers
    return [Tensor(x.kind, mixed(x.v, router.v, mixing.v if mixing is not None else None, layers_of, attributes))]


DEFINITIONS = {"MoE": moe, "QMoE": q_moe}
