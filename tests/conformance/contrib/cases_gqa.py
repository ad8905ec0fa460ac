"""Cases of GroupQueryAttention."""
from build import Cases, Random, Tensor, held, np
from case import Before, Computed, onnx
from definitions_attention import DEFINITIONS, GroupQuery, resident

CASES = Cases(DEFINITIONS)
CAPACITY = 16  # positions that the rotary caches have


class Call:
    """Operands of one call. `totals`: tokens of each batch entry after it; `capacity`: rows of the past, None without one."""

    def __init__(self, totals, length=None, capacity=None, heads=4, kv_heads=2, size=16, packed=False, rotary=0, positions=None, bias=None,
                 sink=False, kind="f32", constant=False, quantized=None, bits=8, norm=False, valid=None, total=None, per_channel=False,
                 before=None, scalar=True):
        self.__dict__.update(locals())
        self.batch, self.total = len(totals), total or max(totals)
        self.length = length or max(totals)

    def cache(self, r):
        """Zeros where nothing was stored, so that a buffer that is copied and one that is written in place hold the same."""
        if self.capacity is None:
            return None
        past = [t - (self.valid[b] if self.valid else min(self.length, t)) for b, t in enumerate(self.totals)]
        past = self.before or past
        shape = [self.batch, self.kv_heads, self.capacity, self.size // 2 if self.quantized and self.bits == 4 else self.size]
        if self.quantized:
            values = r.random.integers(0, 256, shape) if self.bits == 4 else r.random.integers(-128, 128, shape)
        else:
            values = r.random.standard_normal(shape)
        inside = np.arange(self.capacity) < np.reshape(past, (-1, 1, 1))
        return Tensor(self.quantized or self.kind, np.where(inside[..., None], values, 0))

    def operands(self, r):
        keep = held if self.constant else (lambda t: t)
        hidden, kv_hidden = self.heads * self.size, self.kv_heads * self.size
        if self.packed:
            qkv = [r.normal(self.kind, self.batch, self.length, hidden + 2 * kv_hidden), None, None]
        else:
            qkv = [r.normal(self.kind, self.batch, self.length, width) for width in (hidden, kv_hidden, kv_hidden)]
        lengths = keep(Tensor("i32", np.array(self.totals) - 1))
        total = keep(Tensor("i32", np.array(self.total if self.scalar else [self.total])))
        turns = [None, None]
        if self.rotary:
            angle = Random("rotary caches").random.uniform(0, 6.3, (CAPACITY, self.rotary))
            turns = [held(Tensor(self.kind, np.cos(angle))), held(Tensor(self.kind, np.sin(angle)))]
        bias = r.normal(self.kind, *self.bias, self.length, self.total) if self.bias else None
        scale_shape = (1, self.kv_heads, 1, self.size) if self.per_channel else (1,)
        scales = [r.uniform("f32", 0.01, 0.03, *scale_shape) if self.quantized else None for _ in range(2)]
        norms = [r.normal(self.kind, self.size) if self.norm else None for _ in range(2)]
        sink = held(r.normal(self.kind, self.heads)) if self.sink else None
        positions = Tensor("i64", self.positions) if self.positions is not None else None
        valid = Tensor("i32", self.valid) if self.valid else None
        operands = [*qkv, self.cache(r), self.cache(r), lengths, total, *turns, positions, bias, sink, *scales, *norms, valid]
        return operands

    def masked(self, r):
        """With lengths that other nodes compute."""
        operands = self.operands(r)
        operands[5:7] = [Computed(o) for o in operands[5:7]]
        return operands


def specified(attributes):
    """Rows of tokens that are there; cache rows that hold some."""
    def masks(operands):
        call = GroupQuery(operands, attributes)
        news = call.valid.v if call.valid is not None else np.minimum(call.length, call.totals - call.pasts)
        rows = np.arange(call.length) < news[:, None]
        held_rows = call.totals
        if call.sliding:
            held_rows = np.array([resident(int(t), call.capacity, call.window) for t in call.totals])
        cache = (np.arange(call.present) < held_rows[:, None])[:, None, :, None]
        total = int(call.total.v.reshape(-1)[0])
        query_at, key_at = call.pasts[:, None] + np.arange(call.length), np.arange(total)
        seen = (key_at < call.totals[:, None, None]) & rows[..., None]
        if call.causal and attributes.get("qk_output") == 1:
            seen = seen & (key_at <= query_at[..., None])
            if call.window > 0:
                seen = seen & (key_at > query_at[..., None] - call.window)
        if not call.sliding and rows.all():  # nothing but zeros was stored there
            cache = np.array(True)
        masks = {0: rows[..., None], 1: cache, 2: cache, 3: seen[:, None]}
        return {i: m for i, m in masks.items() if not m.all()}
    return masks


def lengths_from_mask(calls):
    """As exporters write them: seqlens_k is the sum of attention_mask less 1, total_sequence_length its extent."""
    masks = [[("attention_mask", Tensor("i64", np.arange(c.total) < np.reshape(c.totals, (-1, 1))))] for c in calls]
    nodes = [onnx.node("ReduceSum", "attention_mask along", "counts", keepdims=0), onnx.node("Sub", "counts one", "last"),
             onnx.node("Cast", "last", "seqlens_k", to=6), onnx.node("Shape", "attention_mask", "extents"),
             onnx.node("Gather", "extents second", "extent", axis=0), onnx.node("Cast", "extent", "total_sequence_length", to=6)]
    nodes = [node + onnx.field(3, f"lengths_{i}") for i, node in enumerate(nodes)]
    weights = [Tensor("i64", [1]).proto("along"), Tensor("i64", np.array(1)).proto("one"), Tensor("i64", np.array(1)).proto("second")]
    return Before(masks, nodes, weights)


def query(variant, *calls, results=(1, 1, 1), masked=False, **more):
    first = calls[0]
    if masked:
        more["before"] = lengths_from_mask(calls)
    more.update(_num_heads=first.heads, _kv_num_heads=first.kv_heads)
    if first.rotary:
        more["_do_rotary"] = 1
    attributes = {k[1:]: v for k, v in more.items() if k.startswith("_")}
    CASES.add("GroupQueryAttention", variant, [call.masked if masked else call.operands for call in calls], results,
              specified=specified(attributes), **more)


query("prompt", Call([5]))
query("prompt_batch", Call([4, 4]))
query("prompt_padded", Call([3, 5]))
query("prompt_buffer", Call([4, 4], capacity=8))
query("prompt_output_alone", Call([4]), results=(1,))
query("prompt_key_alone", Call([4]), results=(1, 1))
query("prompt_constant_lengths", Call([4, 4], constant=True))
query("prompt_empty_past", Call([4], capacity=0, constant=True))
query("step", Call([6], 1, capacity=5))
query("step_constant", Call([6], 1, capacity=5, constant=True))
query("step_buffer", Call([6], 1, capacity=12))
query("step_buffer_constant", Call([6], 1, capacity=12, constant=True))
query("step_ragged", Call([4, 6], 1, capacity=8))
query("step_ragged_growing", Call([4, 6], 1, capacity=5))
query("step_full", Call([8], 1, capacity=8))
query("step_first", Call([1, 1], 1, capacity=8))
query("total_of_one_element", Call([6], 1, capacity=8, scalar=False))
query("chunk", Call([7], 3, capacity=4))
query("chunk_buffer", Call([7], 3, capacity=10))
query("packed", Call([4, 4], packed=True))
query("packed_step", Call([6], 1, capacity=8, packed=True))
query("packed_rotary", Call([5], packed=True, rotary=8))
query("packed_rotary_step", Call([4, 6], 1, capacity=8, packed=True, rotary=8))
query("rotary", Call([4, 4], rotary=8))
query("rotary_interleaved", Call([4, 4], rotary=8), _rotary_interleaved=1)
query("rotary_halves", Call([4], rotary=8), _rotary_interleaved=0)
query("rotary_step", Call([6], 1, capacity=8, rotary=8))
query("rotary_step_ragged", Call([4, 6], 1, capacity=8, rotary=8), _rotary_interleaved=1)
query("rotary_chunk", Call([7], 3, capacity=10, rotary=8))
query("rotary_part", Call([5], size=32, rotary=8))
query("rotary_part_interleaved", Call([5], size=32, rotary=8), _rotary_interleaved=1)
query("rotary_caches_unused", Call([4]), _do_rotary=0)
query("positions", Call([4, 4], rotary=8, positions=[[0, 1, 2, 3]] * 2))
query("positions_offset", Call([4, 4], rotary=8, positions=[[2, 3, 4, 5], [7, 8, 9, 10]]))
query("positions_scattered", Call([4], rotary=8, positions=[[2, 9, 4, 7]]))
query("positions_step", Call([6], 1, capacity=8, rotary=8, positions=[[9]]))
query("positions_step_ragged", Call([4, 6], 1, capacity=8, rotary=8, positions=[[3], [11]]))
query("positions_chunk", Call([7], 3, capacity=8, rotary=8, positions=[[4, 9, 2]]))
query("heads_all", Call([4], kv_heads=4))
query("heads_one", Call([4, 4], heads=6, kv_heads=1))
query("heads_eight_by_two", Call([6], 1, capacity=7, heads=8, kv_heads=2, rotary=8))
query("scale", Call([4]), _scale=0.5)
query("scale_zero", Call([4]), _scale=0.0)
query("softcap", Call([5]), _softcap=2.0)
query("softcap_step", Call([6], 1, capacity=8, rotary=8), _softcap=1.5, _scale=0.7)
query("window", Call([9]), _local_window_size=3)
query("window_step", Call([9], 1, capacity=12), _local_window_size=4)
query("window_chunk", Call([9], 4, capacity=10, rotary=8), _local_window_size=2)
query("window_wide", Call([4]), _local_window_size=100)
query("window_one", Call([5, 5]), _local_window_size=1)
query("window_none", Call([5]), _local_window_size=-1)
query("window_softcap", Call([9], packed=True, rotary=8), _local_window_size=3, _softcap=3.0)
query("smooth", Call([5]), _smooth_softmax=1)
query("smooth_step", Call([6], 1, capacity=8), _smooth_softmax=1, _softcap=2.0)
query("smooth_off", Call([5]), _smooth_softmax=0)
query("smooth_unset", Call([5]), _smooth_softmax=-1)
query("sink", Call([5, 5], sink=True))
query("sink_step", Call([6], 1, capacity=8, sink=True, rotary=8))
query("sink_window", Call([9], sink=True), _local_window_size=4)
query("bias", Call([5], bias=(1, 1)))
query("bias_heads", Call([4, 4], bias=(1, 4)))
query("bias_batch", Call([4, 4], bias=(2, 1)))
query("bias_batch_heads", Call([4, 4], bias=(2, 4)), _softcap=2.0)
query("bias_step", Call([6], 1, capacity=8, bias=(1, 4), rotary=8))
query("bias_window_sink", Call([9], bias=(1, 4), sink=True, packed=True), _local_window_size=4)
query("both_ways", Call([5]), _causal=0)
query("both_ways_batch", Call([4, 4], rotary=8, bias=(1, 4)), _causal=0)
query("causal", Call([5]), _causal=1)
query("qk_none", Call([4]), _qk_output=0)
query("qk_before", Call([4, 4]), results=(1, 1, 1, 1), _qk_output=1)
query("qk_after", Call([4, 4]), results=(1, 1, 1, 1), _qk_output=2)
query("qk_after_step", Call([6], 1, capacity=5, rotary=8), results=(1, 1, 1, 1), _qk_output=2)
query("qk_before_softcap", Call([4]), results=(1, 0, 0, 1), _qk_output=1, _softcap=2.0)
query("norm", Call([5], norm=True))
query("norm_rotary", Call([6], 1, capacity=8, norm=True, rotary=8), _qk_norm_epsilon=0.01)
query("norm_epsilons", Call([4], norm=True, packed=True), _q_norm_epsilon=0.1, _k_norm_epsilon=0.5)
for kind in ("f16", "bf16"):
    query(f"{kind}", Call([5], kind=kind, rotary=8))
    query(f"{kind}_step", Call([6], 1, capacity=8, kind=kind, packed=True, rotary=8))
    query(f"{kind}_sink", Call([6], 1, capacity=8, kind=kind, sink=True), _softcap=4.0)
query("open_prompt", Call([3]), Call([5]))
query("open_steps", Call([6], 1, capacity=5, rotary=8), Call([9], 1, capacity=8, rotary=8))
query("open_buffer", Call([6], 1, capacity=12, rotary=8), Call([9], 1, capacity=12, rotary=8))
query("open_batch", Call([3], capacity=6), Call([4, 4], capacity=6))
query("open_prompt_and_step", Call([4], 4, capacity=10, packed=True, rotary=8), Call([5], 1, capacity=10, packed=True, rotary=8))
query("mask_prompt", Call([4, 4], rotary=8), masked=True)
query("mask_prompt_empty_past", Call([5], capacity=0, packed=True, rotary=8), masked=True)
query("mask_step", Call([4, 6], 1, capacity=5, rotary=8), masked=True)
query("mask_step_buffer", Call([6], 1, capacity=12, packed=True, rotary=8), masked=True)
query("mask_open_steps", Call([5], 5, capacity=0, rotary=8), Call([9], 1, capacity=8, rotary=8), masked=True)
query("mask_open_buffer", Call([5], 5, capacity=11, rotary=8), Call([9], 1, capacity=11, rotary=8), masked=True)
query("everything", Call([4, 6], 1, capacity=8, rotary=8, positions=[[3], [5]], bias=(2, 4), sink=True, packed=True), _softcap=5.0,
      _scale=0.3, _local_window_size=3, _rotary_interleaved=1)

EXTENDED = {"group": "extended"}
for kind, bits in (("i8", 8), ("u8", 4)):
    for per_channel in (False, True):
        quantization = "PER_CHANNEL" if per_channel else "PER_TENSOR"
        query(f"cache_{kind}_{quantization.lower()}", Call([6], 1, capacity=8, quantized=kind, bits=bits, per_channel=per_channel),
              **EXTENDED, _k_quant_type=quantization, _v_quant_type=quantization, _kv_cache_bit_width=bits)
query("cache_i8_chunk", Call([7], 3, capacity=8, quantized="i8", rotary=8), **EXTENDED, _k_quant_type="PER_TENSOR",
      _v_quant_type="PER_TENSOR", _kv_cache_bit_width=8)
query("cache_none", Call([6], 1, capacity=8), _k_quant_type="NONE", _v_quant_type="NONE")
query("padded_chunks", Call([5, 4], 3, capacity=10, valid=[3, 1], total=8), **EXTENDED)
query("padded_chunks_rotary", Call([5, 4], 3, capacity=10, valid=[2, 3], total=5, rotary=8), **EXTENDED, _local_window_size=3)
query("padded_chunk_idle", Call([5, 4], 1, capacity=10, valid=[1, 0], total=6), **EXTENDED)
query("sliding_before_full", Call([4], 1, capacity=6, before=[3]), **EXTENDED, _local_window_size=4, _sliding_window_cache=1)
query("sliding_full", Call([9], 1, capacity=4, before=[4]), **EXTENDED, _local_window_size=4, _sliding_window_cache=1)
query("sliding_slack", Call([9, 11], 1, capacity=6, before=[5, 4]), **EXTENDED, _local_window_size=4, _sliding_window_cache=1)
query("sliding_chunk", Call([9], 5, capacity=4, before=[4]), **EXTENDED, _local_window_size=4, _sliding_window_cache=1)
query("not_sliding", Call([9], 1, capacity=12), _local_window_size=4, _sliding_window_cache=0)
