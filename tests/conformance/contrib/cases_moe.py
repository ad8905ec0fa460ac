"""Cases of mixtures of experts."""
from build import Cases, Random, Tensor, held, np
from definitions_moe import DEFINITIONS

CASES = Cases(DEFINITIONS)


class Experts:
    """Operands of one call. `fusion` rows of FC1 are a unit of the inner size; `third`: whether there is an FC3."""

    def __init__(self, rows=(6,), hidden=16, inner=24, experts=4, fusion=1, third=False, biases=(True, True, True), kind="f32",
                 constant=True, near=False):
        self.__dict__.update(locals())
        self.tokens = int(np.prod(rows))

    def shapes(self):
        first, second = (self.fusion * self.inner, self.hidden), (self.hidden, self.inner)
        return [first, second, (self.inner, self.hidden) if self.third else None]

    def routed(self, r):
        """Logits of which no two are near one another: the choice does not depend on rounding. `near`: so near that the sparse
        mixer counts the next one too, and not the one after it."""
        logits = np.argsort(r.random.standard_normal((self.tokens, self.experts)),
                            -1) * 0.5 + r.random.uniform(0, 0.1, (self.tokens, self.experts))
        if self.near:
            places = np.argsort(r.random.standard_normal((self.tokens, self.experts)), -1)
            logits = 4 + places * 0.055 + r.random.uniform(0, 0.01, places.shape)
        return [r.normal(self.kind, *self.rows, self.hidden), Tensor(self.kind, logits)]

    def bias(self, r, i):
        return r.normal(self.kind, self.experts, self.shapes()[i][0], size=0.3) if self.biases[i] and self.shapes()[i] else None

    def keep(self, tensor):
        return held(tensor) if self.constant else tensor


def plain(variant, *calls, **more):
    def operands(call):
        def make(r):
            weights = Random(variant)
            layers = []
            for i, shape in enumerate(call.shapes()):
                layers += [weights.normal(call.kind, call.experts, *shape, size=0.3) if shape else None, call.bias(weights, i)]
            return [*call.routed(r), *[call.keep(t) for t in layers]]
        return make
    CASES.add("MoE", variant, [operands(call) for call in calls or (Experts(),)], **more)


NO_BIAS = (False, False, False)
plain("relu")
for kind in ("relu", "gelu", "silu", "identity"):
    plain(f"type_{kind}", _activation_type=kind)
    plain(f"type_{kind}_two", Experts(rows=(2, 5)), _activation_type=kind, _k=2)
plain("normalized", _k=2, _normalize_routing_weights=1)
plain("not_normalized", _k=2, _normalize_routing_weights=0)
plain("all_experts", _k=4)
plain("no_bias", Experts(biases=NO_BIAS), _k=2)
plain("bias_one", Experts(biases=(True, False, False)), _k=2)
plain("bias_two", Experts(biases=(False, True, False)), _k=2)
plain("rank3", Experts(rows=(2, 3)), _k=2)
plain("one_expert", Experts(experts=1))
plain("weights_at_run", Experts(constant=False), _k=2)
plain("swiglu", Experts(fusion=2), _activation_type="swiglu", _swiglu_fusion=1, _k=2)
plain("swiglu_parameters", Experts(fusion=2), _activation_type="swiglu", _swiglu_fusion=1, _k=2, _activation_alpha=1.702,
      _activation_beta=1.0, _swiglu_limit=0.5, _normalize_routing_weights=1)
plain("swiglu_halves", Experts(fusion=2), _activation_type="swiglu", _swiglu_fusion=2, _k=2, _activation_alpha=1.702)
plain("swiglu_third", Experts(third=True), _activation_type="swiglu", _swiglu_fusion=0, _k=2)
plain("swiglu_third_no_bias", Experts(third=True, biases=NO_BIAS), _activation_type="swiglu", _k=2)
plain("swiglu_limit_after", Experts(fusion=2), _activation_type="swiglu", _swiglu_fusion=1, _swiglu_limit=0.4,
      _swiglu_limit_after_activation=1, group="extended")
plain("silu_third", Experts(third=True), _activation_type="silu", _k=2)
plain("geglu", Experts(fusion=2), _activation_type="geglu", _swiglu_fusion=1, group="extended")
plain("geglu_halves", Experts(fusion=2), _activation_type="geglu", _swiglu_fusion=2, group="extended")
plain("relu2", _activation_type="relu2", group="extended")
plain("dense_router", _use_sparse_mixer=0)
MIXER = {"_use_sparse_mixer": 1, "_k": 2, "group": "extended"}
plain("mixer", Experts(experts=8), **MIXER)
plain("mixer_near", Experts(experts=8, rows=(2, 5), near=True), _activation_type="silu", **MIXER)
plain("mixer_normalized", Experts(experts=8, near=True), _normalize_routing_weights=1, **MIXER)
for kind in ("f16", "bf16"):
    plain(kind, Experts(kind=kind), _activation_type="silu", _k=2)
plain("open", Experts(rows=(1,)), Experts(rows=(7,)), _k=2, _activation_type="silu")


# --- QMoE -------------------------------------------------------------------------------------------------------------


def quantized(variant, *calls, bits=4, widths=None, block=0, zeros=False, mixing=False, normalized=1, **more):
    """`normalized`: None leaves the attribute out. Most cases have it, since ONNX Runtime's CPU kernel normalizes in any case."""
    widths = widths or (bits, bits, bits)
    if normalized is not None:
        more["_normalize_routing_weights"] = normalized
    if block:
        more["_block_size"] = block
    if bits != 4:
        more["_expert_weight_bits"] = bits
    for i, width in enumerate(widths):
        if width != bits:
            more[f"_fc{i + 1}_expert_weight_bits"] = width

    def operands(call):
        def make(r):
            weights, layers, points = Random(variant), [], []
            for i, shape in enumerate(call.shapes()):
                if not shape:
                    layers, points = layers + [None] * 3, points + [None]
                    continue
                (n, k), width = shape, widths[i]
                blocks = [k // block] if block else []
                packed = [n, -(-k // block * width // 8)] if block else [-(-n * width // 8)]
                zero = weights.bytes(call.experts, *packed) if zeros else None
                layers += [weights.bytes(call.experts, n, k * width // 8),
                           weights.uniform(call.kind, 0.1 / (1 << width), 0.5 / (1 << width), call.experts, n,
                                           *blocks), call.bias(weights, i)]
                points.append(zero)
            share = r.uniform(call.kind, 0.05, 1, call.tokens, call.experts) if mixing else None
            return [*call.routed(r), *[call.keep(t) for t in layers], *[call.keep(t) if t else None for t in points], share]
        return make
    CASES.add("QMoE", variant, [operands(call) for call in calls or (Experts(hidden=32, inner=64),)], **more)


WIDE = dict(hidden=32, inner=64)
SWIGLU = dict(_activation_type="swiglu", _swiglu_fusion=1)
quantized("plain")
for bits in (2, 4, 8):
    quantized(f"{bits}bits_rows", bits=bits, _k=2)
    quantized(f"{bits}bits_block16", bits=bits, block=16, _k=2)
    quantized(f"{bits}bits_block32", bits=bits, block=32, _k=2, _activation_type="silu")
    quantized(f"{bits}bits_zero", bits=bits, zeros=True, _k=2)
    quantized(f"{bits}bits_block_zero", bits=bits, block=16, zeros=True, _k=2)
    quantized(f"{bits}bits_swiglu", Experts(**WIDE, fusion=2), bits=bits, _k=2, **SWIGLU)
    quantized(f"{bits}bits_swiglu_block", Experts(**WIDE, fusion=2), bits=bits, block=32, _k=2, **SWIGLU)
    quantized(f"{bits}bits_f16", Experts(**WIDE, kind="f16"), bits=bits, _k=2)
quantized("4bits_written", _expert_weight_bits=4, block=16, _k=2)
quantized("4bits_bf16", Experts(**WIDE, kind="bf16"), _k=2)
quantized("4bits_block64", Experts(hidden=64, inner=128), block=64, _k=2)
quantized("4bits_block128", Experts(hidden=128, inner=256), block=128, _k=2)
quantized("4bits_odd_blocks_zero", Experts(hidden=48, inner=80), block=16, zeros=True, _k=2)
quantized("8bits_block256", Experts(hidden=256, inner=256, experts=2), bits=8, block=256)
for kind in ("relu", "gelu", "silu", "identity"):
    quantized(f"type_{kind}", _activation_type=kind, _k=2)
quantized("relu2", _activation_type="relu2", group="extended")
quantized("geglu", Experts(**WIDE, fusion=2), _activation_type="geglu", _swiglu_fusion=2, group="extended")
quantized("swiglu_parameters", Experts(**WIDE, fusion=2), **SWIGLU, _k=2, _activation_alpha=1.702, _activation_beta=1.0, _swiglu_limit=0.5)
quantized("swiglu_block_zero", Experts(**WIDE, fusion=2), block=16, zeros=True, **SWIGLU, _k=2)
quantized("swiglu_halves", Experts(**WIDE, fusion=2), _activation_type="swiglu", _swiglu_fusion=2, _k=2)
quantized("swiglu_third", Experts(**WIDE, third=True), _activation_type="swiglu", _swiglu_fusion=0, _k=2)
quantized("swiglu_third_block_zero", Experts(**WIDE, third=True), block=16, zeros=True, _activation_type="swiglu", _k=2)
quantized("swiglu_limit_after", Experts(**WIDE, fusion=2), **SWIGLU, _swiglu_limit=0.4, _swiglu_limit_after_activation=1, group="extended")
quantized("silu_third", Experts(**WIDE, third=True, biases=NO_BIAS), _activation_type="silu", _k=2)
quantized("three_experts", _k=3)
quantized("shares", _k=3, normalized=0)
quantized("shares_unset", block=16, _k=2, normalized=None)
quantized("shares_swiglu", Experts(**WIDE, fusion=2), **SWIGLU, _k=2, normalized=None)
quantized("router_weights", mixing=True, _k=2, normalized=None)
quantized("router_weights_normalized", mixing=True, zeros=True, block=16, _k=2)
quantized("no_bias", Experts(**WIDE, biases=NO_BIAS), _k=2)
quantized("bias_two", Experts(**WIDE, biases=(False, True, False)), block=16, _k=2)
quantized("rank3", Experts(**WIDE, rows=(2, 3)), _k=2)
quantized("all_experts", _k=4)
quantized("weights_at_run", Experts(**WIDE, constant=False), _k=2)
quantized("weights_at_run_block_zero", Experts(**WIDE, constant=False), block=16, zeros=True, _k=2)
quantized("integers", _quant_type="int", _use_sparse_mixer=0, _k=2)
for layout in (-1, 0):
    quantized(f"layout{'_raw' if not layout else '_unset'}", _weights_prepacked=layout, _k=2)
for level in (0, 1, 4):
    quantized(f"accuracy{level}", block=32, _accuracy_level=level, _k=2)
quantized("mixed_widths", widths=(4, 8, 4), _k=2, group="extended")
quantized("mixed_widths_first", widths=(2, 4, 4), _k=2, group="extended")
quantized("mixed_widths_block", Experts(**WIDE, third=True), bits=2, widths=(2, 8, 4), block=16, zeros=True, _activation_type="swiglu",
          group="extended")
quantized("3bits", Experts(hidden=32, inner=64, fusion=2, kind="f16"), bits=3, block=32, **SWIGLU, _weights_prepacked=0, _k=2,
          group="extended")
quantized("3bits_bf16", Experts(hidden=32, inner=64, fusion=2, kind="bf16"), bits=3, block=32, **SWIGLU, _weights_prepacked=0,
          group="extended")
quantized("mixer", Experts(**WIDE, experts=8, near=True), normalized=None, **MIXER)


def floats(variant, call, block, kind="f32"):
    """Weights of f8e4m3fn; without blocks they have a scale an expert."""
    def make(r):
        w, layers, experts = Random(variant), [], call.experts
        for i, (n, k) in enumerate(call.shapes()[:2]):
            scales = w.uniform(kind, 0.002, 0.01, experts, -(-n // block), -(-k // block)) if block else None
            layers += [held(w.codes("f8e4m3fn", experts, n, k)), held(scales), held(call.bias(w, i))]
        globals_of = [held(w.uniform("f32", 0.002, 0.01, experts)) for _ in range(2)] if not block else []
        return [*call.routed(r), *layers, *[None] * (7 if not block else 0), *globals_of]
    more = {"_block_size": block} if block else {}
    CASES.add("QMoE", variant, make, _quant_type="fp8", _k=2, _normalize_routing_weights=1, _activation_type="silu", group="extended",
              opset=21, **more)


floats("fp8_blocks", Experts(**WIDE), 16)
floats("fp8_partial_blocks", Experts(hidden=40, inner=72), 32)
floats("fp8_f16", Experts(**WIDE, kind="f16"), 32, "f16")
floats("fp8_experts", Experts(**WIDE), 0)
quantized("open", Experts(**WIDE, rows=(1,)), Experts(**WIDE, rows=(7,)), _k=2, _activation_type="silu")
quantized("open_block", Experts(**WIDE, rows=(1, 1), fusion=2), Experts(**WIDE, rows=(2, 3), fusion=2), block=32, _k=2, **SWIGLU)
