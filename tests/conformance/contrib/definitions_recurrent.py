"""Recurrences and relative positions of com.microsoft by their definitions, in float64."""
import math

import numpy as np

from definitions_matmul import at
from tensors import Tensor


# --- LinearAttention --------------------------------------------------------------------------------------------------


def by_head(tensor, heads):
    """[b, heads, t, size] of a packed one; None stays."""
    return None if tensor is None else tensor.v.reshape(*tensor.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def linear_attention(operands, attributes, results):
    query, key, value, past, decay, beta = [*operands, *[None] * 6][:6]
    q_heads, kv_heads = attributes["q_num_heads"], attributes["kv_num_heads"]
    rule, window = attributes.get("update_rule", "gated_delta"), attributes.get("state_window", 0)
    q, k, v = by_head(query, q_heads), by_head(key, kv_heads), by_head(value, kv_heads)
    gate = np.exp(by_head(decay, kv_heads)) if decay is not None and "gated" in rule else None  # [.., dk] or [.., 1]
    rate = beta.v.transpose(0, 2, 1)[..., None] if beta is not None and "delta" in rule else None  # of all heads where there is one
    batch, _, length, size = q.shape
    scale = np.float32(attributes.get("scale", 0.0)) or 1 / math.sqrt(size)
    state = np.zeros((batch, kv_heads, size, v.shape[-1]))
    if past is not None:
        state = past.v[-1] if window else past.v  # "slot W-1 is the slot past_state is read from"
    # A query head reads the state of the key head of its group; where there are more of those, they share the query head.
    count = max(q_heads, kv_heads)
    q_of, kv_of = np.arange(count) * q_heads // count, np.arange(count) * kv_heads // count
    output, states = np.zeros((batch, count, length, v.shape[-1])), []
    for t in range(length):
        if gate is not None:
            state = state * gate[:, :, t, :, None]
        added = v[:, :, t]
        if rate is not None:
            read = np.einsum("bhkv,bhk->bhv", state, k[:, :, t])
            added = np.broadcast_to(rate, (batch, kv_heads, length, 1))[:, :, t] * (added - read)
        state = state + np.einsum("bhk,bhv->bhkv", k[:, :, t], added)
        output[:, :, t] = scale * np.einsum("bhk,bhkv->bhv", q[:, q_of, t], state[:, kv_of])
        states.append(state)
    present = state
    if window:  # "right-aligned: slot j is the state after token (T - W + j)", zeros below
        present = np.stack([np.zeros(state.shape)] * max(0, window - length) + states[max(0, length - window):])
    kind = past.kind if past is not None else query.kind
    return [Tensor(query.kind, output.transpose(0, 2, 1, 3).reshape(batch, length, -1)), Tensor(kind, present)]


# --- CausalConvWithState ----------------------------------------------------------------------------------------------


def causal_conv_with_state(operands, attributes, results):
    x, weight = operands[:2]
    bias, past = at(operands, 2), at(operands, 3)
    last, dilation, window = attributes.get("channels_last", 0), attributes.get("dilation", 1), attributes.get("state_window", 0)

    def first(value):
        """[b, channels, positions]."""
        return value.reshape(*value.shape[:2], -1).transpose(0, 2, 1) if last else value

    def back(value):
        return value.transpose(0, 2, 1).reshape(value.shape[0], value.shape[2], *x.shape[2:]) if last else value
    value, taps = first(x.v), weight.shape[2]
    held = (taps - 1) * dilation
    before = np.zeros((value.shape[0], value.shape[1], held))
    if past is not None:
        before = first(past.v[-1] if window else past.v)
    whole, length = np.concatenate([before, value], 2), value.shape[2]
    # "position t reads input positions t - (k_1 - 1 - j) * dilation for tap j"
    y = sum(weight.v[:, 0, j, None] * whole[:, :, j * dilation:j * dilation + length] for j in range(taps))
    y = y + (bias.v[:, None] if bias is not None else 0)
    if attributes.get("activation", "none") in ("silu", "swish"):
        y = y / (1 + np.exp(-y))
    ends = [whole[:, :, t + 1:t + 1 + held] for t in range(length)]  # the state after each position
    present = back(whole[:, :, length:])
    if window:
        present = np.stack([np.zeros(present.shape)] * max(0, window - length) + [back(e) for e in ends[max(0, length - window):]])
    return [Tensor(x.kind, back(y)), Tensor(x.kind, present)]


# --- Relative positions -----------------------------------------------------------------------------------------------


def relative_position_bias(operands, attributes, results):
    """Buckets of T5 (arXiv 1910.10683): half of them one position each, the others growing with its logarithm up to the largest
    distance. One way, the kernels take the distance in both directions, where T5 sees nothing ahead."""
    table, query_length, key_length = operands
    buckets, heads = table.shape
    rows, columns = int(query_length.v.reshape(())), int(key_length.v.reshape(()))
    distance = np.arange(columns) - np.arange(rows)[:, None]
    offset = np.zeros(distance.shape, np.int64)
    if attributes.get("is_bidirectional", 0):
        buckets //= 2
        offset = np.where(distance > 0, buckets, 0)
    distance, exact = np.abs(distance), buckets // 2
    grown = np.log(np.maximum(distance, 1) / exact) / math.log(attributes["max_distance"] / exact) * (buckets - exact)
    bucket = np.where(distance < exact, distance, np.minimum(exact + np.trunc(grown).astype(int), buckets - 1)) + offset
    # "COL-major": the buckets of a head lie one behind the other.
    by_head_table = table.v.reshape(heads, -1)
    return [Tensor(table.kind, by_head_table[:, bucket][None])]


def gated_relative_position_bias(operands, attributes, results):
    query, query_bias, relative, weight, bias, eco = operands[:6]
    offsets, heads = at(operands, 6), attributes["num_heads"]
    rows = query.v
    if offsets is not None:  # token_count rows without padding; offsets says where each belongs, those of the padding behind
        batch, length = offsets.shape
        whole = np.zeros((batch * length, rows.shape[-1]))
        whole[offsets.v.reshape(-1)[:len(rows)]] = rows
        rows = whole.reshape(batch, length, -1)
    layer = (rows + query_bias.v).reshape(*rows.shape[:2], heads, -1).transpose(0, 2, 1, 3)
    gates = layer @ weight.v + bias.v
    gates = 1 / (1 + np.exp(-gates.reshape(*gates.shape[:3], 2, -1).sum(-1)))
    gate = gates[..., :1] * (gates[..., 1:] * eco.v - 1.0) + 2.0
    return [Tensor(query.kind, gate * relative.v)]


DEFINITIONS = {"LinearAttention": linear_attention, "CausalConvWithState": causal_conv_with_state,
               "RelativePositionBias": relative_position_bias,
               "GatedRelativePositionBias": gated_relative_position_bias}
