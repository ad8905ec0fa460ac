"""Attention of com.microsoft by its definitions, in float64. Operands are `Tensor`s or None; results are lists of `Tensor`s."""
import math

import numpy as np

from tensors import RANGES, Tensor


def rotated(x, cos, sin, positions, interleaved):
    """x: [b, heads, s, h], positions [b, s]. Only the first 2 * cos.shape[1] of a head turn, the others pass."""
    half = cos.shape[1]
    c, s = cos[positions][:, None], sin[positions][:, None]
    turned, rest = x[..., :2 * half], x[..., 2 * half:]
    if interleaved:
        real, imaginary = turned[..., 0::2], turned[..., 1::2]
    else:
        real, imaginary = turned[..., :half], turned[..., half:]
    real, imaginary = real * c - imaginary * s, real * s + imaginary * c
    turned = np.stack([real, imaginary], -1).reshape(turned.shape) if interleaved else np.concatenate([real, imaginary], -1)
    return np.concatenate([turned, rest], -1)


def rotary_embedding(operands, attributes, results):
    x, positions, cos, sin = operands
    dim, heads = attributes.get("rotary_embedding_dim", 0), attributes.get("num_heads", 0)
    value = x.v
    if value.ndim == 3:
        # The head size of a 3D input is known from num_heads, else it is the caches' width twice.
        size = value.shape[2] // heads if heads else cos.shape[1] * 2
        value = value.reshape(*value.shape[:2], -1, size).transpose(0, 2, 1, 3)
    batch, _, length, _ = value.shape
    # "1D tensor with shape (1)": the position of the first token, the others follow it.
    at_token = positions.v if positions.v.ndim == 2 else np.broadcast_to(positions.v.reshape(()) + np.arange(length), (batch, length))
    half = dim // 2 or cos.shape[1]
    # `scale`: "custom scale will be used if specified", without a word for what; the kernels of all providers read it and use
    # it for nothing, and so does this.
    y = rotated(value, cos.v[:, :half], sin.v[:, :half], at_token, attributes.get("interleaved", 0))
    return [Tensor(x.kind, y.transpose(0, 2, 1, 3).reshape(x.shape) if x.v.ndim == 3 else y)]


def softmax(scores, sink=None):
    """Over the last axis; `sink` is a score without a value that takes its share. Rows without any score give 0."""
    high = scores.max(-1, keepdims=True, initial=-np.inf)
    high = np.maximum(high, sink) if sink is not None else high
    high = np.where(np.isfinite(high), high, 0)
    weights = np.exp(scores - high)
    total = weights.sum(-1, keepdims=True) + (np.exp(sink - high) if sink is not None else 0)
    return weights / np.where(total == 0, 1, total)


def scale_of(attributes, head_size):
    """0 is the default too."""
    return np.float32(attributes.get("scale", 0)) or 1 / math.sqrt(head_size)


def heads_of(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def joined(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


# --- GroupQueryAttention ----------------------------------------------------------------------------------------------


class Cache:
    """A cache of keys or values, which may hold 8 or 4 bit codes: read as numbers, written as what the cache's type holds."""

    def __init__(self, past, scale, quantization, bits, kind, head_size):
        self.kind, self.bits, self.size = kind, bits, head_size
        self.codes = quantization not in (None, "NONE")
        self.scale = scale.v if self.codes else None
        if self.codes and scale.v.size > 1:  # a channel of a head has its own
            self.scale = np.broadcast_to(scale.v, scale.shape).reshape(1, scale.shape[-3] if scale.v.ndim > 2 else -1, 1, head_size)
        self.past = past

    def read(self, stored):
        if not self.codes:
            return stored
        if self.bits == 4:  # "each byte contains two 4-bit values": the code less 8
            stored = np.stack([stored & 15, stored >> 4], -1).reshape(*stored.shape[:-1], self.size) - 8
        return stored * self.scale

    def encode(self, values):
        """What the cache holds for values."""
        if not self.codes:
            return Tensor(self.kind, values).v
        low, high = (-8, 7) if self.bits == 4 else RANGES["i8"]
        codes = np.clip(np.rint(values / self.scale), low, high).astype(np.int64)
        if self.bits == 4:
            codes = codes + 8
            return codes[..., 0::2] | codes[..., 1::2] << 4
        return codes


def resident(total, capacity, window):
    """The definition's L(T)."""
    slack = capacity - window + 1
    return total if total <= capacity else total - slack * -(-(total - capacity) // slack)


def rms(x, weight, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(epsilon)) * weight


class GroupQuery:
    """One call, laid out by batch entry."""

    def __init__(self, operands, attributes):
        (self.query, self.key, self.value, self.past_key, self.past_value, self.lengths, self.total, self.cos, self.sin, self.positions,
         self.bias, self.sink, self.k_scale, self.v_scale, self.q_norm, self.k_norm, self.valid) = [*operands, *[None] * 17][:17]
        self.attributes, self.kind = attributes, self.query.kind
        self.heads, self.kv_heads = attributes["num_heads"], attributes["kv_num_heads"]
        self.batch, self.length = self.query.shape[:2]
        self.causal, self.window = attributes.get("causal", 1), attributes.get("local_window_size", -1)
        self.sliding = attributes.get("sliding_window_cache", 0)
        self.split()
        self.size = self.q.shape[-1]
        self.capacity = self.past_key.shape[2] if self.past_key is not None else 0
        total = int(self.total.v.reshape(-1)[0])
        # "it is of length max_sequence_length ... otherwise of length past_sequence_length + kv_sequence_length"
        self.present = self.capacity if self.sliding else max(total, self.capacity)
        self.totals = self.lengths.v.reshape(-1) + 1
        self.first_prompt = first_prompt = self.length == total and self.valid is None
        news = self.valid.v if self.valid is not None else np.minimum(self.length, self.totals)
        self.pasts = np.zeros(self.batch, np.int64) if first_prompt else self.totals - news
        self.news = news if self.valid is not None else np.full(self.batch, self.length)
        self.rotate()

    def split(self):
        if self.key is None:
            packed = heads_of(self.query.v, self.heads + 2 * self.kv_heads)
            self.q, self.k, self.v = np.split(packed, [self.heads, self.heads + self.kv_heads], 1)
        else:
            self.q = heads_of(self.query.v, self.heads)
            self.k, self.v = (heads_of(x.v, self.kv_heads) for x in (self.key, self.value))

    def rotate(self):
        a = self.attributes
        if self.q_norm is not None:
            epsilon = a.get("qk_norm_epsilon", 1e-6)
            self.q = rms(self.q, self.q_norm.v, a.get("q_norm_epsilon", epsilon))
            self.k = rms(self.k, self.k_norm.v, a.get("k_norm_epsilon", epsilon))
        if not a.get("do_rotary", 0):
            return
        positions = self.pasts[:, None] + np.arange(self.length)
        if self.positions is not None:
            positions = self.positions.v
            if self.first_prompt:  # "the kernel uses only the first element": of all entries, and the others follow it
                positions = np.broadcast_to(positions[0, 0] + np.arange(self.length), positions.shape)
        positions = np.minimum(positions, len(self.cos.v) - 1)  # rows of padding may lie beyond; nothing reads them
        turn = [self.cos.v, self.sin.v, positions, a.get("rotary_interleaved", 0)]
        # A rotated value is stored as its type before it is used.
        self.q, self.k = (Tensor(self.kind, rotated(x, *turn)).v for x in (self.q, self.k))

    def caches(self):
        a = self.attributes
        kind = self.past_key.kind if self.past_key is not None else self.kind
        bits = a.get("kv_cache_bit_width", 8)
        return [Cache(past, scale, a.get(name, "NONE"), bits, kind, self.size)
                for past, scale, name in ((self.past_key, self.k_scale, "k_quant_type"), (self.past_value, self.v_scale, "v_quant_type"))]

    def stored(self, cache, fresh, b):
        """All that entry b has seen and still holds, in order of position, and the position of the first: as the cache holds it."""
        kept, new = np.zeros((self.kv_heads, 0, 0)), cache.encode(fresh[b:b + 1])[0][:, :self.news[b]]
        count = min(int(self.pasts[b]), resident(int(self.pasts[b]), self.capacity, self.window)) if self.sliding else int(self.pasts[b])
        if cache.past is not None:
            kept = (cache.past.codes if hasattr(cache.past, "codes") else cache.past.v)[b, :, :count]
        whole = np.concatenate([kept, new], 1) if kept.shape[1] else new
        return whole, int(self.pasts[b]) - (count if kept.shape[1] else 0)

    def present_of(self, cache, fresh):
        width = self.size // 2 if cache.codes and cache.bits == 4 else self.size
        present = np.zeros((self.batch, self.kv_heads, self.present, width))
        for b in range(self.batch):
            rows, _ = self.stored(cache, fresh, b)
            if self.sliding:
                rows = rows[:, rows.shape[1] - resident(int(self.totals[b]), self.capacity, self.window):]
            if cache.past is not None and not self.sliding:  # what lies behind stays: the buffer is the same one
                present[b, :, :cache.past.shape[2]] = cache.past.v[b]
            present[b, :, :rows.shape[1]] = rows[:, :self.present]
        return Tensor(cache.kind, present)

    def scores(self, b, keys, first):
        a = self.attributes
        head_of = np.arange(self.heads) // (self.heads // self.kv_heads)
        scores = self.q[b] @ np.swapaxes(keys[head_of], -1, -2) * scale_of(a, self.size)
        query_at, key_at = self.pasts[b] + np.arange(self.length), first + np.arange(keys.shape[1])
        cap = np.float32(a.get("softcap", 0))
        scores = cap * np.tanh(scores / cap) if cap else scores
        if self.bias is not None:
            bias = np.broadcast_to(self.bias.v, (self.batch, self.heads, *self.bias.shape[2:]))[b]
            scores = scores + bias[:, :, key_at]
        distance = query_at[:, None] - key_at
        outside = (distance < 0) if self.causal else np.zeros(distance.shape, bool)
        if self.window > 0:  # a token sees itself and those before it, so many in all
            outside = outside | (distance >= self.window)
        return scores, outside

    def compute(self, results):
        keys, values = self.caches()
        a = self.attributes
        sink = None
        if self.sink is not None:
            sink = self.sink.v.reshape(-1, 1, 1)
        elif a.get("smooth_softmax", -1) == 1:
            sink = np.zeros((self.heads, 1, 1))
        output = np.zeros((self.batch, self.heads, self.length, self.size))
        qk = np.zeros((self.batch, self.heads, self.length, max(int(self.total.v.reshape(-1)[0]), 0)))
        head_of = np.arange(self.heads) // (self.heads // self.kv_heads)
        for b in range(self.batch):
            stored_keys, first = self.stored(keys, self.k, b)
            stored_values, _ = self.stored(values, self.v, b)
            scores, outside = self.scores(b, keys.read(stored_keys[None])[0], first)
            weights = softmax(np.where(outside, -np.inf, scores), sink)
            output[b] = weights @ values.read(stored_values[None])[0][head_of]
            shown = {1: np.where(outside, 0, scores), 2: weights}.get(a.get("qk_output", 0))
            if shown is not None:
                qk[b, :, :, first:first + shown.shape[-1]] = shown
        return [Tensor(self.kind, joined(output)), self.present_of(keys, self.k), self.present_of(values, self.v), Tensor(self.kind, qk)]


def group_query_attention(operands, attributes, results):
    return GroupQuery(operands, attributes).compute(results)


# --- MultiHeadAttention, Attention ------------------------------------------------------------------------------------


def mask_of(mask, shape, filler):
    """What a mask of any of its shapes adds to scores of [b, 1, s, t]: "value 0 means padding or 1 otherwise"."""
    batch, length, total = shape
    if mask is None:
        return 0
    value = mask.v
    if value.ndim == 1 and value.size == batch:  # the length of each, padding at the right
        keep = np.arange(total) < value[:, None]
    elif value.ndim == 1 and value.size == 2 * batch:  # "exclusive end positions followed by the inclusive start positions"
        keep = (np.arange(total) < value[:batch, None]) & (np.arange(total) >= value[batch:, None])
    elif value.ndim == 1:  # 3 * batch + 2: key lengths, then the running sums of query and key lengths
        keep = np.arange(total) < value[:batch, None]
    elif value.ndim == 2:
        keep = value != 0
        if keep.shape[1] != total:  # kv_sequence_length: what is past is never padding
            keep = np.concatenate([np.ones((batch, total - keep.shape[1]), bool), keep], 1)
    elif value.ndim == 3:
        keep = value != 0
    else:  # (batch, 1, max, max): the rows and columns of the positions here
        keep = value[:, 0, total - length:total, :total] != 0
    keep = np.broadcast_to(keep[:, None] if keep.ndim == 2 else keep, (batch, length, total))
    return np.where(keep, 0, np.float32(filler))[:, None]


def attended(q, k, v, attributes, mask, bias):
    """[b, n, s, h] of scaled products with masks added, and the scores before the softmax and after it."""
    (batch, _, length, size), total = q.shape, k.shape[2]
    scores = q @ np.swapaxes(k, -1, -2) * scale_of(attributes, size)
    scores = scores + mask_of(mask, (batch, length, total), attributes.get("mask_filter_value", -10000.0))
    scores = scores + (bias.v if bias is not None else 0)
    masked = scores
    if attributes.get("unidirectional", 0):  # "every token can only attend to previous tokens"
        later = np.arange(total) > total - length + np.arange(length)[:, None]
        masked = np.where(later, -np.inf, scores)
    weights = softmax(masked)
    return weights @ v, masked, weights


def multi_head_attention(operands, attributes, results):
    query, key, value, bias, mask, added, past_key, past_value, past_length, indirection = [*operands, *[None] * 10][:10]
    heads = attributes["num_heads"]
    if key is None:  # packed: (b, l, heads, 3, size)
        q, k, v = (query.v[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3))
    else:
        q = heads_of(query.v, heads)
        if value is None:  # packed: (b, l, heads, 2, size)
            k, v = (key.v[:, :, :, i].transpose(0, 2, 1, 3) for i in range(2))
        else:
            k, v = (x.v if x.v.ndim == 4 else heads_of(x.v, heads) for x in (key, value))
    if bias is not None:
        width = q.shape[-1] * heads
        parts = np.split(bias.v, [width, 2 * width])
        q, k, v = (x + part.reshape(heads, 1, -1) for x, part in zip((q, k, v), parts))
    past = 0
    if past_key is not None:
        past = past_key.shape[2] if past_length is None else int(past_length.v.reshape(-1)[0])
        k, v = (np.concatenate([p.v[:, :, :past], x], 2) for p, x in ((past_key, k), (past_value, v)))
    y, scores, _ = attended(q, k, v, attributes, mask, added)
    present = [Tensor(query.kind, x) for x in (k, v)]
    if past_length is not None:  # the buffer is the same one, and what lies behind stays
        present = []
        for buffer, whole in ((past_key, k), (past_value, v)):
            kept = buffer.v.copy()
            kept[:, :, :whole.shape[2]] = whole
            present.append(Tensor(query.kind, kept))
    return [Tensor(query.kind, joined(y)), *present, Tensor(query.kind, scores)]


def projected(x, weights, bias, attributes):
    """Q, K and V of a merged product, by head."""
    heads = attributes["num_heads"]
    merged = x @ weights + (bias if bias is not None else 0)
    sizes = attributes.get("qkv_hidden_sizes") or [merged.shape[-1] // 3] * 3
    return [heads_of(part, heads) for part in np.split(merged, np.cumsum(sizes)[:2], -1)]


def attention_rotation(length, past, size, dim):
    """The caches that do_rotary means where no operand holds them: base 10000, halves."""
    half = (dim or size) // 2
    angle = np.arange(past, past + length)[:, None] / 10000.0 ** (np.arange(half) / half)
    return np.cos(angle), np.sin(angle)


def attend_merged(q, k, v, kind, attributes, mask, past, added, past_length):
    share = attributes.get("past_present_share_buffer", 0)
    before = 0
    if past is not None:
        before = int(past_length.v.reshape(-1)[0]) if share else past.shape[3]
    if attributes.get("do_rotary", 0):
        cos, sin = attention_rotation(q.shape[2], before, q.shape[3], attributes.get("rotary_embedding_dim", 0))
        places = np.broadcast_to(np.arange(q.shape[2]), (q.shape[0], q.shape[2]))
        q, k = rotated(q, cos, sin, places, False), rotated(k, cos, sin, places, False)
    if past is not None:
        k, v = (np.concatenate([past.v[i][:, :, :before], x], 2) for i, x in enumerate((k, v)))
    y, _, _ = attended(q, k, v, attributes, mask, added)
    present = None
    if k.shape == v.shape:
        present = np.stack([k, v])
        if share:
            whole = past.v.copy()
            whole[:, :, :, :k.shape[2]] = present
            present = whole
    return [Tensor(kind, joined(y)), Tensor(kind, present) if present is not None else None]


def attention(operands, attributes, results):
    x, weights, bias, mask, past, added, past_length = [*operands, *[None] * 7][:7]
    q, k, v = projected(x.v, weights.v, bias.v if bias is not None else None, attributes)
    return attend_merged(q, k, v, x.kind, attributes, mask, past, added, past_length)


def q_attention(operands, attributes, results):
    x, weights, bias, x_scale, w_scale, mask, x_zero, w_zero, past = [*operands, *[None] * 9][:9]
    value = (x.v - (x_zero.v.reshape(()) if x_zero is not None else 0)) * x_scale.v.reshape(())
    weight = (weights.v - (w_zero.v.reshape(-1) if w_zero is not None else 0)) * w_scale.v.reshape(-1)
    q, k, v = projected(value, weight, bias.v, attributes)
    return attend_merged(q, k, v, bias.kind, attributes, mask, past, None, None)


DEFINITIONS = {"RotaryEmbedding": rotary_embedding, "GroupQueryAttention": group_query_attention,
               "MultiHeadAttention": multi_head_attention,
               "Attention": attention, "QAttention": q_attention}
