"""Cases of recurrences and of relative positions."""
from build import Cases, Random, Tensor, held, np
from definitions_recurrent import DEFINITIONS

CASES = Cases(DEFINITIONS)


# --- LinearAttention --------------------------------------------------------------------------------------------------


def linear(variant, rule=None, batch=2, length=5, q_heads=2, kv_heads=2, size=8, v_size=4, past=False, decay=None, rate=None, kind="f32",
           window=0, sets=None, **more):
    """`decay`: "head" or "key"; `rate`: "head" or "one"."""
    if rule:
        more["_update_rule"] = rule
    if window:
        more["_state_window"] = window

    def one(batch, length):
        def make(r):
            keys = r.random.standard_normal((batch, length, kv_heads, size))
            keys /= np.linalg.norm(keys, axis=-1, keepdims=True)  # "should be L2-normalized for delta modes"
            state = [*([window] if window else []), batch, kv_heads, size, v_size]
            operands = [r.normal(kind, batch, length, q_heads * size), Tensor(kind, keys.reshape(batch, length, -1)),
                        r.normal(kind, batch, length, kv_heads * v_size),
                        r.normal(kind, *state) if past else None,
                        r.uniform(kind, -1.5, -0.05, batch, length, kv_heads * (size if decay == "key" else 1)) if decay else None,
                        r.uniform(kind, 0.1, 0.9, batch, length, kv_heads if rate == "head" else 1) if rate else None]
            return operands
        return make
    CASES.add("LinearAttention", variant, [one(*s) for s in sets] if sets else one(batch, length), (1, 1), _q_num_heads=q_heads,
              _kv_num_heads=kv_heads, **more)


NEEDS = {"linear": {}, "gated": {"decay": "head"}, "delta": {"rate": "head"}, "gated_delta": {"decay": "head", "rate": "head"}}
for rule, needed in NEEDS.items():
    linear(rule, rule, **needed)
    linear(f"{rule}_past", rule, past=True, **needed)
    linear(f"{rule}_step", rule, past=True, length=1, **needed)
    linear(f"{rule}_groups", rule, q_heads=4, past=True, **needed)
linear("default_rule", decay="head", rate="head")
linear("gated_by_key", "gated", decay="key")
linear("gated_delta_by_key", "gated_delta", decay="key", rate="one", past=True)
linear("delta_one_rate", "delta", rate="one")
linear("more_keys", "gated_delta", q_heads=2, kv_heads=4, decay="head", rate="head")
linear("scale", "linear", _scale=0.25)
linear("scale_zero", "linear", _scale=0.0)
linear("chunks", "gated_delta", length=9, decay="head", rate="head", _chunk_size=4)
linear("window", "gated_delta", decay="head", rate="head", window=3, past=True, group="extended")
linear("window_short", "linear", length=2, window=4, group="extended")
linear("no_window", "linear", past=True, _state_window=0)
linear("f16", "gated_delta", decay="head", rate="head", past=True, kind="f16")
linear("bf16", "gated", decay="key", kind="bf16")
linear("open", "gated_delta", decay="head", rate="head", past=True, sets=[(1, 1), (2, 6)])


# --- CausalConvWithState ----------------------------------------------------------------------------------------------


def causal(variant, batch=2, channels=6, length=7, taps=4, bias=False, past=False, kind="f32", last=(), dilation=1, window=0,
           constant=True, sets=None, **more):
    """`last`: the channels' axes of a layout that has them last."""
    if dilation != 1:
        more["_dilation"] = dilation
    if window:
        more["_state_window"] = window
    if last:
        more["_channels_last"] = 1

    def one(batch, length):
        def make(r):
            w, state = Random(variant), (taps - 1) * dilation
            shape = (batch, length, *last) if last else (batch, channels, length)
            states = (batch, state, *last) if last else (batch, channels, state)
            keep = held if constant else (lambda t: t)
            operands = [r.normal(kind, *shape), keep(w.normal(kind, channels, 1, taps)), keep(w.normal(kind, channels)) if bias else None,
                        r.normal(kind, *([window] if window else []), *states) if past else None]
            return operands
        return make
    CASES.add("CausalConvWithState", variant, [one(*s) for s in sets] if sets else one(batch, length), (1, 1), **more)


causal("plain")
causal("bias", bias=True)
causal("past", past=True)
causal("bias_past", bias=True, past=True)
for name in ("silu", "swish", "none"):
    causal(f"type_{name}", bias=True, past=True, _activation=name)
causal("step", length=1, past=True, bias=True, _activation="silu")
causal("shorter_than_state", length=2, past=True)
causal("two_taps", taps=2, past=True)
causal("one_tap", taps=1)
causal("dilation", dilation=2, past=True)
causal("dilation_one", past=True, _dilation=1, _ndim=1)
causal("dilation_step", length=1, dilation=3, past=True, bias=True)
causal("last", last=(6,), past=True, bias=True)
causal("last_two_axes", last=(2, 3), past=True, _activation="silu")
causal("last_no_past", last=(6,))
causal("first", past=True, _channels_last=0)
causal("window", window=3, past=True, group="extended")
causal("window_short", window=5, length=2, past=True, group="extended")
causal("window_last", window=2, past=True, last=(6,), group="extended")
causal("no_window", past=True, _state_window=0)
causal("extensions_unset", past=True, _input_channel_offset=0, _input_channels=0, _state_channels_last=-1, _state_length=0,
       _state_update_capacity=0)
causal("weights_at_run", constant=False, bias=True, past=True)
causal("f16", kind="f16", bias=True, past=True)
causal("bf16", kind="bf16", past=True)
causal("open", sets=[(1, 1), (2, 6)], bias=True, past=True, _activation="silu")


# --- Relative positions -----------------------------------------------------------------------------------------------


def relative(variant, length=7, buckets=8, heads=2, distance=20, kind="f32", constant=False, sets=None, **more):
    def one(length):
        def make(r):
            lengths = [Tensor("i64", [length]) for _ in range(2)]
            return [held(Random(variant).normal(kind, buckets, heads)), *[held(t) if constant else t for t in lengths]]
        return make
    CASES.add("RelativePositionBias", variant, [one(s) for s in sets] if sets else one(length), _max_distance=distance, **more)


relative("one_way", constant=True)
relative("one_way_set", constant=True, _is_bidirectional=0)
relative("both_ways", constant=True, _is_bidirectional=1)
relative("lengths_at_run")
relative("lengths_at_run_both", _is_bidirectional=1)
relative("far", length=40, buckets=32, distance=23, constant=True, _is_bidirectional=1)
relative("far_one_way", length=40, buckets=12, distance=19, heads=3, constant=True)
relative("one_token", length=1, constant=True)
relative("f16", kind="f16", constant=True, _is_bidirectional=1)
relative("open", sets=[3, 9], _is_bidirectional=1)


def gated(variant, batch=2, length=5, heads=3, size=8, width=8, kind="f32", packed=False, constant=True, sets=None, **more):
    def one(batch, length):
        def make(r):
            w, hidden = Random(variant), heads * size
            keep = held if constant else (lambda t: t)
            query, offsets = r.normal(kind, batch, length, hidden), None
            if packed:  # the last entry has two tokens less
                count = batch * length - 2
                query, offsets = r.normal(kind, count, hidden), Tensor("i32", np.arange(batch * length).reshape(batch, length))
            operands = [query, keep(w.normal(kind, hidden)), r.normal(kind, 1, heads, length, length),
                        keep(w.normal(kind, size, width, size=0.3)),
                        keep(w.normal(kind, width, size=0.3)), keep(w.normal(kind, 1, heads, 1, 1))]
            return [*operands, offsets] if offsets else operands
        return make

    def specified(operands):
        if len(operands) < 7:
            return {}
        tokens = np.arange(operands[6].v.size) < len(operands[0].v)
        return {0: tokens.reshape(operands[6].shape)[:, None, :, None]}
    CASES.add("GatedRelativePositionBias", variant, [one(*s) for s in sets] if sets else one(batch, length), specified=specified,
              _num_heads=heads, **more)


gated("plain")
gated("one_head", heads=1, width=4)
gated("wide", width=16, length=3)
gated("weights_at_run", constant=False)
gated("packed", packed=True)
gated("packed_one", packed=True, batch=1, heads=2)
gated("f16", kind="f16")
gated("open", sets=[(1, 3), (2, 6)])
