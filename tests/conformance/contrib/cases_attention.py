"""Cases of MultiHeadAttention, Attention, QAttention and RotaryEmbedding."""
from build import Cases, Random, Tensor, held, np
from definitions_attention import DEFINITIONS

CASES = Cases(DEFINITIONS)


# --- RotaryEmbedding --------------------------------------------------------------------------------------------------


def rotary(variant, shape, half, positions=None, kind="f32", rows=12, constant=True, opens=None, **more):
    def one(shape):
        def make(r):
            batch, length = shape[0], shape[-2]
            places = positions if positions is not None else Random("positions").random.integers(0, rows, (batch, length))
            angle = Random("caches").random.uniform(0, 6.3, (rows, half))
            keep = held if constant else (lambda t: t)
            return [r.normal(kind, *shape), Tensor("i64", places), keep(Tensor(kind, np.cos(angle))), keep(Tensor(kind, np.sin(angle)))]
        return make
    CASES.add("RotaryEmbedding", variant, [one(s) for s in opens] if opens else one(shape), **more)


rotary("heads", (2, 3, 4, 16), 8)
rotary("heads_interleaved", (2, 3, 4, 16), 8, _interleaved=1)
rotary("flat", (2, 4, 48), 8)
rotary("flat_interleaved", (2, 4, 48), 8, _interleaved=1)
rotary("flat_not_interleaved", (2, 4, 48), 8, _interleaved=0)
rotary("first_position", (2, 3, 4, 16), 8, positions=[5])
rotary("first_position_flat", (2, 4, 48), 8, positions=[3], _interleaved=1)
rotary("part", (2, 4, 48), 4, _num_heads=3, _rotary_embedding_dim=8)
rotary("part_interleaved", (2, 4, 48), 4, _num_heads=3, _rotary_embedding_dim=8, _interleaved=1)
rotary("part_heads", (2, 3, 4, 16), 4, _num_heads=3, _rotary_embedding_dim=8)
rotary("num_heads", (2, 4, 48), 8, _num_heads=3, _rotary_embedding_dim=16)
rotary("scale_half", (2, 4, 48), 8, _scale=0.5)
rotary("scale", (2, 4, 48), 8, _scale=1.0)
rotary("not_ragged", (2, 4, 48), 8, _is_packed_batching=0)
# Sequences one behind the other: more tokens than the caches have positions.
rotary("ragged", (1, 20, 48), 8, _is_packed_batching=1)
rotary("ragged_interleaved", (1, 20, 48), 8, _is_packed_batching=1, _interleaved=1, _num_heads=3, _rotary_embedding_dim=16)
rotary("caches_at_run", (2, 3, 4, 16), 8, constant=False)
rotary("one_token", (1, 3, 1, 16), 8, positions=[[7]])
for kind in ("f16", "bf16"):
    rotary(kind, (2, 3, 4, 16), 8, kind=kind)
    rotary(kind + "_flat", (2, 4, 48), 8, kind=kind, _interleaved=1)
rotary("open", None, 8, opens=[(1, 3, 1, 16), (2, 3, 5, 16)])
rotary("open_flat", None, 8, opens=[(1, 1, 48), (2, 5, 48)], _num_heads=3, _rotary_embedding_dim=16)


# --- Masks ------------------------------------------------------------------------------------------------------------

MASKS = {  # by form: f(random, batch, length, kv length, total); every query sees a key
    "lengths": lambda r, b, s, l, t: np.maximum(t - np.arange(b), 1),
    "ends_starts": lambda r, b, s, l, t: np.concatenate([np.full(b, t), np.arange(b)]),
    "cumulated": lambda r, b, s, l, t: np.concatenate([np.maximum(t - np.arange(b), 1), np.arange(b + 1) * s, np.arange(b + 1) * t]),
    "kv": lambda r, b, s, l, t: np.where(np.arange(l) == 0, 1, r.random.integers(0, 2, (b, l))),
    "total": lambda r, b, s, l, t: np.where(np.arange(t) == 0, 1, r.random.integers(0, 2, (b, t))),
    "full": lambda r, b, s, l, t: np.where(np.arange(t) == 0, 1, r.random.integers(0, 2, (b, s, t))),
    "megatron": lambda r, b, s, l, t: np.tril(np.ones((b, 1, t + 2, t + 2), int)),
    "nothing": lambda r, b, s, l, t: np.zeros((b, t), int),
}


def mask_for(form, r, *sizes):
    return Tensor("i32", MASKS[form](r, *sizes)) if form else None


# --- MultiHeadAttention -----------------------------------------------------------------------------------------------


class Heads:
    """Operands of one call of MultiHeadAttention."""

    def __init__(self, batch=2, length=4, kv=None, heads=2, size=8, v_size=None, form="split", bias=False, mask=None, added=None,
                 past=None, kind="f32", buffer=None, constant=True):
        self.__dict__.update(locals())
        self.kv, self.v_size = kv or length, v_size or size

    def qkv(self, r):
        b, s, l, n, h, v = self.batch, self.length, self.kv, self.heads, self.size, self.v_size
        shapes = {"split": ((b, s, n * h), (b, l, n * h), (b, l, n * v)), "packed": ((b, s, n, 3, h), None, None),
                  "packed_kv": ((b, s, n * h), (b, l, n, 2, h), None), "cross": ((b, s, n * h), (b, n, l, h), (b, n, l, v))}[self.form]
        return [r.normal(self.kind, *shape) if shape else None for shape in shapes]

    def operands(self, r):
        past = 0 if self.past is None else self.past
        total = past + self.kv
        bias = None
        if self.bias:
            bias = Random("bias").normal(self.kind, self.heads * (2 * self.size + self.v_size))
            bias = held(bias) if self.constant else bias
        added = r.normal(self.kind, *self.added, self.length, total) if self.added else None
        caches = [None, None]
        if self.past is not None:
            rows = self.buffer or past
            caches = [r.normal(self.kind, self.batch, self.heads, rows, h) for h in (self.size, self.v_size)]
            caches = [Tensor(self.kind, np.where(np.arange(rows)[:, None] < past, c.v, 0)) for c in caches]
        shared = [Tensor("i32", [past])] if self.buffer else []
        operands = [*self.qkv(r), bias, mask_for(self.mask, r, self.batch, self.length, self.kv, total), added, *caches, *shared]
        return operands


def heads(variant, *calls, results=(1,), **more):
    calls = calls or (Heads(),)
    CASES.add("MultiHeadAttention", variant, [call.operands for call in calls], results, _num_heads=calls[0].heads, **more)


heads("self")
heads("cross_lengths", Heads(kv=6))
heads("value_size", Heads(v_size=4, kv=5))
heads("one_head", Heads(heads=1))
heads("packed", Heads(form="packed"))
heads("packed_bias", Heads(form="packed", bias=True))
heads("packed_kv", Heads(form="packed_kv", kv=5))
heads("packed_kv_self", Heads(form="packed_kv"))
heads("cross", Heads(form="cross", kv=6))
heads("cross_value_size", Heads(form="cross", kv=6, v_size=4))
heads("cross_step", Heads(form="cross", length=1, kv=6, mask="kv"))
heads("bias", Heads(bias=True))
heads("bias_at_run", Heads(bias=True, constant=False))
heads("bias_value_size", Heads(bias=True, v_size=4, kv=5))
heads("bias_mask_added", Heads(bias=True, mask="kv", added=(2, 2)))
for form in ("lengths", "cumulated", "kv", "full"):
    heads(f"mask_{form}", Heads(mask=form))
    heads(f"mask_{form}_cross", Heads(mask=form, kv=6))
heads("mask_total_past", Heads(mask="total", past=3), results=(1, 1, 1))
heads("mask_kv_past", Heads(mask="kv", past=3), results=(1, 1, 1), group="extended")
heads("mask_full_past", Heads(mask="full", past=3), results=(1, 1, 1))
FAR = (1e-2, 2e-2)  # float32 holds three digits of a score less 10000, and here nothing else counts
heads("mask_nothing", Heads(mask="nothing", kv=6), tolerance=FAR)
heads("mask_filter", Heads(mask="kv"), _mask_filter_value=-2.0)
heads("mask_filter_default", Heads(mask="kv"), _mask_filter_value=-10000.0)
for batch, count in ((1, 1), (1, 2), (2, 1), (2, 2)):
    heads(f"added_{batch}x{count}", Heads(added=(batch, count)))
heads("added_past", Heads(added=(1, 2), past=3, length=1), results=(1, 1, 1))
heads("added_mask", Heads(added=(1, 2), mask="kv"))
heads("past", Heads(past=3), results=(1, 1, 1))
heads("past_step", Heads(past=5, length=1), results=(1, 1, 1))
heads("past_bias", Heads(past=5, length=1, bias=True), results=(1, 1, 1))
heads("past_empty", Heads(past=0), results=(1, 1, 1))
heads("past_packed_kv", Heads(past=3, form="packed_kv"), results=(1, 1, 1), group="extended")
heads("past_value_size", Heads(past=3, v_size=4), results=(1, 1, 1), group="extended")
heads("past_not_returned", Heads(past=3), group="extended")
heads("present", results=(1, 1, 1))
heads("present_bias", Heads(bias=True, kv=5), results=(1, 1, 1))
heads("key_alone", results=(1, 1), group="extended")
heads("qk", Heads(kv=6), results=(1, 0, 0, 1))
heads("qk_mask_past", Heads(mask="total", past=3), results=(1, 1, 1, 1))
heads("causal", _unidirectional=1)
heads("causal_past", Heads(past=3), results=(1, 1, 1), _unidirectional=1)
heads("causal_step", Heads(past=3, length=1), results=(1, 1, 1), _unidirectional=1)
heads("causal_mask", Heads(mask="kv"), _unidirectional=1)
heads("causal_mask_added", Heads(mask="full", added=(1, 2)), _unidirectional=1)
heads("causal_packed", Heads(form="packed"), _unidirectional=1)
heads("causal_not", _unidirectional=0)
heads("scale", _scale=0.5)
heads("scale_zero", _scale=0.0)
heads("scale_causal_bias", Heads(bias=True), _scale=1.0, _unidirectional=1)
heads("buffer", Heads(past=3, length=1, buffer=8), results=(1, 1, 1), group="extended")
for kind in ("f16", "bf16"):
    heads(kind, Heads(kind=kind))
    heads(kind + "_qk", Heads(kind=kind), results=(1, 0, 0, 1))
    heads(kind + "_mask_past", Heads(kind=kind, mask="total", past=3, bias=True), results=(1, 1, 1))
heads("open", Heads(batch=1, length=3), Heads(batch=2, length=5))
heads("open_past", Heads(past=3, length=1), Heads(past=6, length=1), results=(1, 1, 1))
heads("open_mask", Heads(batch=1, length=3, mask="kv"), Heads(batch=2, length=5, mask="kv"))
heads("open_causal", Heads(batch=1, length=3, form="packed"), Heads(batch=2, length=5, form="packed"), _unidirectional=1)


# --- Attention --------------------------------------------------------------------------------------------------------


class Merged:
    """Operands of one call of Attention; `sizes`: the hidden sizes of Q, K and V."""

    def __init__(self, batch=2, length=4, heads=2, sizes=(16, 16, 16), width=12, bias=True, mask=None, past=None, added=None, buffer=None,
                 kind="f32", constant=True):
        self.__dict__.update(locals())

    def operands(self, r):
        keep = held if self.constant else (lambda t: t)
        past, weights = self.past or 0, Random("weights")
        total = past + self.length
        added = r.normal(self.kind, *self.added, self.length, total) if self.added else None
        cache = None
        if self.past is not None:
            rows = self.buffer or past
            cache = r.normal(self.kind, 2, self.batch, self.heads, rows, self.sizes[0] // self.heads)
            cache = Tensor(self.kind, np.where(np.arange(rows)[:, None] < past, cache.v, 0))
        operands = [r.normal(self.kind, self.batch, self.length, self.width),
                    keep(weights.normal(self.kind, self.width, sum(self.sizes), size=0.3)),
                    keep(weights.normal(self.kind, sum(self.sizes), size=0.3)) if self.bias else None,
                    mask_for(self.mask, r, self.batch, self.length, self.length, total), cache, added,
                    Tensor("i32", [past]) if self.buffer else None]
        return operands


def merged(variant, *calls, results=(1,), **more):
    calls = calls or (Merged(),)
    CASES.add("Attention", variant, [call.operands for call in calls], results, _num_heads=calls[0].heads, **more)


merged("plain")
merged("no_bias", Merged(bias=False))
merged("one_head", Merged(heads=1))
merged("four_heads", Merged(heads=4))
merged("weights_at_run", Merged(constant=False))
merged("weights_at_run_mask", Merged(constant=False, mask="total"))
merged("causal", _unidirectional=1)
merged("causal_not", _unidirectional=0)
merged("causal_no_bias", Merged(bias=False), _unidirectional=1)
for form in ("lengths", "ends_starts", "cumulated", "total", "full"):
    merged(f"mask_{form}", Merged(mask=form))
    merged(f"mask_{form}_causal", Merged(mask=form), _unidirectional=1)
merged("mask_megatron", Merged(mask="megatron"), group="extended")
merged("mask_nothing", Merged(mask="nothing"), tolerance=FAR)
merged("mask_filter", Merged(mask="total"), _mask_filter_value=-3.0)
merged("mask_filter_full", Merged(mask="full"), _mask_filter_value=-1e9)
merged("mask_no_bias", Merged(mask="total", bias=False))
merged("sizes", Merged(sizes=(16, 16, 16)), _qkv_hidden_sizes=[16, 16, 16])
merged("sizes_of_value", Merged(sizes=(16, 16, 8)), _qkv_hidden_sizes=[16, 16, 8])
merged("sizes_of_query", Merged(sizes=(8, 8, 24)), _qkv_hidden_sizes=[8, 8, 24])
merged("sizes_mask_causal", Merged(sizes=(16, 16, 8), mask="total"), _qkv_hidden_sizes=[16, 16, 8], _unidirectional=1)
merged("past", Merged(past=3), results=(1, 1))
merged("past_causal", Merged(past=3), results=(1, 1), _unidirectional=1)
merged("past_step", Merged(past=5, length=1), results=(1, 1), _unidirectional=1)
merged("past_mask", Merged(past=3, mask="total"), results=(1, 1), _unidirectional=1)
merged("past_mask_lengths", Merged(past=3, mask="lengths"), results=(1, 1))
merged("past_mask_ends_starts", Merged(past=3, mask="ends_starts"), results=(1, 1))
merged("past_mask_full", Merged(past=3, mask="full"), results=(1, 1))
merged("past_empty", Merged(past=0), results=(1, 1), _unidirectional=1)
merged("past_no_bias", Merged(past=3, bias=False), results=(1, 1))
merged("present", results=(1, 1))
merged("present_mask", Merged(mask="total"), results=(1, 1), _unidirectional=1)
for batch, count in ((1, 1), (1, 2), (2, 1), (2, 2)):
    merged(f"added_{batch}x{count}", Merged(added=(batch, count)))
merged("added_mask", Merged(added=(1, 2), mask="total"))
merged("added_past", Merged(added=(1, 2), past=3), results=(1, 1), _unidirectional=1)
merged("scale", _scale=0.4)
merged("scale_zero_causal", _scale=0.0, _unidirectional=1)
merged("rotary", _do_rotary=1, group="extended")
merged("rotary_past", Merged(past=3, heads=1, sizes=(64, 64, 64)), results=(1, 1), _do_rotary=1, _rotary_embedding_dim=32, group="extended")
merged("rotary_not", _do_rotary=0)
merged("buffer", Merged(past=3, length=1, buffer=8), results=(1, 1), _past_present_share_buffer=1, group="extended")
merged("buffer_not", Merged(past=3), results=(1, 1), _past_present_share_buffer=0)
for kind in ("f16", "bf16"):
    merged(kind, Merged(kind=kind))
    merged(kind + "_mask", Merged(kind=kind, mask="total"), _unidirectional=1)
merged("open", Merged(batch=1, length=3), Merged(batch=2, length=5))
merged("open_mask", Merged(batch=1, length=3, mask="total"), Merged(batch=2, length=5, mask="total"))
merged("open_past", Merged(batch=1, length=1, past=3), Merged(batch=2, length=1, past=6), results=(1, 1), _unidirectional=1)
