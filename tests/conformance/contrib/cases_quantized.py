"""Cases of the QLinear family, of products of integers, FusedConv and FusedGemm."""
import definitions_attention
import definitions_matmul
import definitions_quantized
from build import Cases, Random, Tensor, held, np
from cases_attention import MASKS

CASES = Cases({**definitions_matmul.DEFINITIONS, **definitions_attention.DEFINITIONS, **definitions_quantized.DEFINITIONS})
KINDS = {"u8": (0, 255, 119), "i8": (-128, 127, 7)}


def scalar(kind, value):
    return held(Tensor(kind, np.array(value)))


def codes(r, kind, *shape):
    low, high, _ = KINDS[kind]
    return r.integers(kind, low, high, *shape)


# --- Elementwise ------------------------------------------------------------------------------------------------------


def binary(op, variant, a, b, kind="u8", zeros=(True, True, True), constant=False, scales=(0.0373, 0.0519, 0.0831), sets=None):
    def one(a, b):
        def make(r):
            zero = [scalar(kind, KINDS[kind][2] - 3 * i) if there else None for i, there in enumerate(zeros)]
            second = held(codes(Random(variant), kind, *b)) if constant else codes(r, kind, *b)
            operands = [codes(r, kind, *a), scalar("f32", scales[0]), zero[0], second, scalar("f32", scales[1]), zero[1],
                        scalar("f32", scales[2]), zero[2]]
            return operands
        return make
    CASES.add(op, variant, [one(*s) for s in sets] if sets else one(a, b))


for op in ("QLinearAdd", "QLinearMul"):
    for kind in KINDS:
        binary(op, kind, (3, 4, 5), (3, 4, 5), kind)
        binary(op, f"{kind}_broadcast", (3, 1, 5), (4, 1), kind)
        binary(op, f"{kind}_scalar", (3, 5), (), kind)
        binary(op, f"{kind}_no_zeros", (3, 5), (3, 5), kind, zeros=(False, False, False))
    binary(op, "scalar_left", (), (3, 5))
    binary(op, "zero_of_a", (3, 5), (3, 5), zeros=(True, False, False))
    binary(op, "zero_of_b", (3, 5), (3, 5), zeros=(False, True, False))
    binary(op, "zero_of_c", (3, 5), (3, 5), zeros=(False, False, True))
    binary(op, "constant", (2, 3, 40), (40,), constant=True)
    binary(op, "saturates", (3, 40), (3, 40), scales=(0.21, 0.17, 0.011))
    binary(op, "open", None, None, sets=[((1, 4), (1, 4)), ((3, 4), (3, 4))])


def unary(op, variant, shape, kind="u8", zeros=(True, True), scales=(0.0373, 0.00391), sets=None, **more):
    def one(shape):
        def make(r):
            zero = [scalar(kind, z) if there else None for z, there in zip((KINDS[kind][2],
                                                                            KINDS[kind][0] if op in RATIOS else KINDS[kind][2] + 2), zeros)]
            operands = [codes(r, kind, *shape), scalar("f32", scales[0]), zero[0], scalar("f32", scales[1]), zero[1]]
            return operands
        return make
    CASES.add(op, variant, [one(s) for s in sets] if sets else one(shape), **more)


RATIOS = ("QLinearSigmoid", "QLinearSoftmax")  # their values lie between 0 and 1
for kind in KINDS:
    unary("QLinearSigmoid", kind, (3, 40), kind)
    unary("QLinearSigmoid", f"{kind}_no_zeros", (3, 5), kind, zeros=(False, False))
    unary("QLinearSigmoid", f"{kind}_zero_of_x", (3, 5), kind, zeros=(True, False))
    unary("QLinearSigmoid", f"{kind}_zero_of_y", (3, 5), kind, zeros=(False, True))
    unary("QLinearLeakyRelu", kind, (3, 40), kind, scales=(0.0373, 0.0291))
    unary("QLinearLeakyRelu", f"{kind}_alpha", (3, 40), kind, scales=(0.0373, 0.0291), _alpha=0.31)
    unary("QLinearLeakyRelu", f"{kind}_no_zeros", (3, 5), kind, scales=(0.0373, 0.0291), zeros=(False, False))
    unary("QLinearLeakyRelu", f"{kind}_zero_of_x", (3, 5), kind, scales=(0.0373, 0.0291), zeros=(True, False), _alpha=0.2)
    unary("QLinearSoftmax", kind, (3, 20), kind, _opset=13)
    unary("QLinearSoftmax", f"{kind}_axis", (3, 4, 5), kind, _opset=13, _axis=1)
    unary("QLinearSoftmax", f"{kind}_old", (3, 4, 5), kind, _opset=12, _axis=1)
    unary("QLinearSoftmax", f"{kind}_no_zero_of_x", (3, 20), kind, zeros=(False, True), _opset=13, _axis=-1)
unary("QLinearSoftmax", "old_last", (3, 4, 5), _opset=9, _axis=2)
unary("QLinearSoftmax", "first_axis", (6, 3), _opset=13, _axis=0)
for op, more in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"scales": (0.0373, 0.02917)}), ("QLinearSoftmax", {"_opset": 13})):
    unary(op, "open", None, sets=[(1, 8), (3, 8)], **more)

POOL = {"scales": (0.0373, 0.02917)}
for kind in KINDS:
    unary("QLinearAveragePool", kind, (2, 3, 7, 6), kind, **POOL, _kernel_shape=[3, 2])
    unary("QLinearAveragePool", f"{kind}_pads", (1, 3, 7, 6), kind, **POOL, _kernel_shape=[3, 3], _pads=[1, 1, 1, 1], _strides=[2, 2])
    unary("QLinearAveragePool", f"{kind}_count_pads", (1, 3, 7, 6), kind, **POOL, _kernel_shape=[3, 3], _pads=[1, 0, 1, 2],
          _count_include_pad=1)
    unary("QLinearAveragePool", f"{kind}_last", (1, 7, 6, 3), kind, **POOL, _kernel_shape=[2, 2], _channels_last=1, _strides=[2, 1])
    unary("QLinearAveragePool", f"{kind}_no_zeros", (1, 3, 7, 6), kind, **POOL, _kernel_shape=[2, 2], zeros=(False, False))
    unary("QLinearGlobalAveragePool", kind, (2, 3, 7, 6), kind, **POOL)
    unary("QLinearGlobalAveragePool", f"{kind}_last", (2, 7, 6, 3), kind, **POOL, _channels_last=1)
    unary("QLinearGlobalAveragePool", f"{kind}_line", (2, 3, 9), kind, **POOL, _channels_last=0)
unary("QLinearAveragePool", "ceil", (1, 3, 8, 6), **POOL, _kernel_shape=[3, 3], _strides=[2, 2], _ceil_mode=1)
unary("QLinearAveragePool", "floor", (1, 3, 8, 6), **POOL, _kernel_shape=[3, 3], _strides=[2, 2], _ceil_mode=0, _count_include_pad=0,
      _channels_last=0)
unary("QLinearAveragePool", "same_upper", (1, 3, 7, 6), **POOL, _kernel_shape=[2, 3], _strides=[2, 2], _auto_pad="SAME_UPPER")
unary("QLinearAveragePool", "same_lower", (1, 3, 7, 6), **POOL, _kernel_shape=[2, 3], _auto_pad="SAME_LOWER")
unary("QLinearAveragePool", "valid", (1, 3, 7, 6), **POOL, _kernel_shape=[2, 3], _auto_pad="VALID")
unary("QLinearAveragePool", "notset", (1, 3, 7), **POOL, _kernel_shape=[3], _auto_pad="NOTSET")
unary("QLinearAveragePool", "zero_of_x", (1, 3, 7, 6), **POOL, _kernel_shape=[2, 2], zeros=(True, False))
unary("QLinearAveragePool", "open", None, **POOL, _kernel_shape=[2, 2], sets=[(1, 3, 5, 6), (2, 3, 8, 7)])
unary("QLinearGlobalAveragePool", "volume", (2, 3, 3, 4, 5), **POOL)
unary("QLinearGlobalAveragePool", "open", None, **POOL, sets=[(1, 3, 5, 6), (2, 3, 8, 7)])
for kind in KINDS:
    unary("QLinearReduceMean", kind, (3, 4, 5), kind, **POOL, _axes=[1], _keepdims=1)
    unary("QLinearReduceMean", f"{kind}_dropped", (3, 4, 5), kind, **POOL, _axes=[0, 2], _keepdims=0)
    unary("QLinearReduceMean", f"{kind}_no_zeros", (3, 4, 5), kind, **POOL, _axes=[-1], _keepdims=1, zeros=(False, False))
unary("QLinearReduceMean", "zero_of_x", (3, 4, 5), **POOL, _axes=[-2], _keepdims=0, zeros=(True, False))
unary("QLinearReduceMean", "open", None, **POOL, _axes=[1], _keepdims=1, sets=[(1, 5, 4), (3, 5, 4)])


def concat(variant, shapes, axis, kind="u8", zeros=True, constant=False, sets=None):
    def one(shapes):
        def make(r):
            low, high, zero = KINDS[kind]
            operands = [scalar("f32", 0.0473), scalar(kind, zero)]
            for i, shape in enumerate(shapes):
                x = codes(Random(variant) if constant and i else r, kind, *shape)
                operands += [held(x) if constant and i else x, scalar("f32", 0.0311 + 0.0107 * i), scalar(kind, zero - 5 * i)]
            return operands
        return make
    CASES.add("QLinearConcat", variant, [one(s) for s in sets] if sets else one(shapes), _axis=axis)


for kind in KINDS:
    concat(kind, [(2, 3, 4), (2, 5, 4)], 1, kind)
    concat(f"{kind}_three", [(2, 3), (1, 3), (4, 3)], 0, kind)
    concat(f"{kind}_negative", [(2, 3, 4), (2, 3, 1)], -1, kind)
concat("one", [(2, 3)], 1)
concat("constant", [(2, 3), (2, 2)], 1, constant=True)
concat("open", None, 1, sets=[[(1, 3), (1, 2)], [(4, 3), (4, 2)]])


def choose(variant, shapes, kind="u8", constant=False):
    def make(r):
        low, high, zero = KINDS[kind]
        condition, x, y = shapes
        x, y = codes(r, kind, *x), codes(r, kind, *y)
        return [Tensor("bool", r.random.integers(0, 2, condition)), x, scalar("f32", 0.0373), scalar(kind, zero),
                held(y) if constant else y, scalar("f32", 0.0519), scalar(kind, zero - 9), scalar("f32", 0.0641), scalar(kind, zero + 3)]
    CASES.add("QLinearWhere", variant, make)


for kind in KINDS:
    choose(kind, ((3, 5), (3, 5), (3, 5)), kind)
    choose(f"{kind}_broadcast", ((3, 1), (5,), (2, 1, 5)), kind)
    choose(f"{kind}_scalar", ((3, 5), (3, 5), ()), kind)
choose("condition_broadcast", ((5,), (3, 5), (3, 5)))
choose("constant", ((3, 5), (3, 5), (1,)), constant=True)


# --- Products of integers ---------------------------------------------------------------------------------------------


def integers(op, variant, a=(3, 16), b=(16, 10), a_kind="u8", b_kind="i8", columns=False, zeros=(True, True), bias=False, kind="f32",
             constant=True, vectors=False, sets=None):
    """`columns`: a scale and a zero point a column of B."""
    keep = held if constant else (lambda t: t)
    dynamic = op == "DynamicQuantizeMatMul"

    def one(a):
        def make(r):
            w = Random(variant)
            wide = b[-1] if columns else 1
            shape = (wide,) if columns or vectors else ()
            b_scale = keep(Tensor(kind, w.random.uniform(0.01, 0.05, shape)))
            b_zero = keep(Tensor(b_kind, w.random.integers(KINDS[b_kind][2] - 9, KINDS[b_kind][2] + 9, shape))) if zeros[1] else None
            weight, last = keep(codes(w, b_kind, *b)), keep(w.normal(kind, b[-1])) if bias else None
            if dynamic:
                operands = [r.normal("f32", *a), weight, b_scale, b_zero, last]
            else:
                a_zero = keep(Tensor(a_kind, np.full((1,) if vectors else (), KINDS[a_kind][2]))) if zeros[0] else None
                a_scale = keep(Tensor(kind, np.full((1,) if vectors else (), 0.0173)))
                operands = [codes(r, a_kind, *a), weight, a_scale, b_scale, a_zero, b_zero, last]
            return operands
        return make
    CASES.add(op, variant, [one(s) for s in sets] if sets else one(a))


for op in ("MatMulIntegerToFloat", "DynamicQuantizeMatMul"):
    integers(op, "plain")
    integers(op, "columns", columns=True)
    integers(op, "columns_bias", columns=True, bias=True)
    integers(op, "bias", bias=True)
    integers(op, "no_zeros", zeros=(False, False))
    integers(op, "no_zeros_bias", zeros=(False, False), bias=True)
    integers(op, "unsigned", b_kind="u8")
    integers(op, "unsigned_columns", b_kind="u8", columns=True, bias=True)
    integers(op, "rank3", a=(2, 3, 16))
    integers(op, "rank4", a=(2, 1, 3, 16), bias=True)
    integers(op, "vectors", vectors=True)
    integers(op, "weights_at_run", constant=False, bias=True)
    integers(op, "weights_at_run_columns", constant=False, columns=True)
    integers(op, "wide", a=(9, 80), b=(80, 70))
    integers(op, "open", sets=[(1, 1, 16), (2, 5, 16)], bias=True)
integers("MatMulIntegerToFloat", "signed", a_kind="i8")
integers("MatMulIntegerToFloat", "signed_columns", a_kind="i8", columns=True, bias=True)
integers("MatMulIntegerToFloat", "batched_b", a=(2, 3, 16), b=(2, 16, 10))
integers("MatMulIntegerToFloat", "zero_of_a", zeros=(True, False))
integers("MatMulIntegerToFloat", "zero_of_b", zeros=(False, True))
integers("MatMulIntegerToFloat", "f16", kind="f16", bias=True)


def merged(variant, batch=2, length=4, heads=2, hidden=16, width=12, a_kind="u8", b_kind="i8", columns=False, zeros=(True, True),
           mask=None, past=None, results=(1,), kind="f32", **more):
    def make(r):
        total = length + (past or 0)
        shape = (3 * hidden,) if columns else ()
        cache = r.normal(kind, 2, batch, heads, past, hidden // heads) if past is not None else None
        operands = [codes(r, a_kind, batch, length, width), held(codes(r, b_kind, width, 3 * hidden)),
                    held(r.normal(kind, 3 * hidden, size=0.2)),
                    held(Tensor(kind, np.array(0.0173))), held(r.uniform(kind, 0.002, 0.01, *shape)),
                    Tensor("i32", MASKS[mask](r, batch, length, length,
                                              total)) if mask else None, scalar(a_kind, KINDS[a_kind][2]) if zeros[0] else None,
                    held(Tensor(b_kind, r.random.integers(KINDS[b_kind][2] - 9, KINDS[b_kind][2] + 9, shape))) if zeros[1] else None, cache]
        return operands
    CASES.add("QAttention", variant, make, results, _num_heads=heads, **more)


merged("plain")
merged("columns", columns=True)
merged("unsigned", b_kind="u8")
merged("signed", a_kind="i8", group="extended")
merged("no_zeros", zeros=(False, False))
merged("zero_of_weight", zeros=(False, True))
merged("zero_of_input", zeros=(True, False))
merged("causal", _unidirectional=1)
merged("causal_not", _unidirectional=0)
for form in ("lengths", "ends_starts", "total", "full"):
    merged(f"mask_{form}", mask=form)
merged("mask_filter", mask="total", _mask_filter_value=-2.0)
merged("past", past=3, results=(1, 1), _unidirectional=1)
merged("past_mask", past=3, mask="total", results=(1, 1))
merged("past_no_zeros", past=3, results=(1, 1), zeros=(False, False))
merged("past_zero_of_input", past=3, results=(1, 1), zeros=(True, False))
merged("present", results=(1, 1))
merged("scale", _scale=0.3)
merged("rotary_not", _do_rotary=0, _past_present_share_buffer=0)
merged("rotary", _do_rotary=1, group="extended")
merged("f16", kind="f16")
merged("one_head", heads=1, columns=True, mask="total", _unidirectional=1)


# --- FusedConv, FusedGemm ---------------------------------------------------------------------------------------------


def conv(variant, x=(1, 4, 7, 6), w=(6, 4, 3, 3), bias=False, added=None, kind="f32", constant=True, sets=None, **attributes):
    def one(x):
        def make(r):
            weights = Random(variant)
            operands = [r.normal(kind, *x), weights.normal(kind, *w, size=0.3), weights.normal(kind, w[0]) if bias else None,
                        r.normal(kind, *added) if added else None]
            operands[1:3] = [held(t) if constant else t for t in operands[1:3]]
            return operands
        return make
    CASES.add("FusedConv", variant, [one(s) for s in sets] if sets else one(x), **attributes)


SAME = {"_pads": [1, 1, 1, 1], "_kernel_shape": [3, 3]}
conv("plain")
for name, parameters in (("Relu", None), ("Tanh", None), ("Sigmoid", None), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.75]),
                         ("HardSigmoid", [0.3, 0.4])):
    conv(f"type_{name.lower()}", _activation=name, **SAME, **({"_activation_params": parameters} if parameters else {}))
conv("hard_swish", _activation="HardSwish", _activation_params=[1 / 6, 0.5], group="extended")
conv("bias", bias=True, _activation="Relu")
conv("added", added=(1, 6, 7, 6), _activation="Relu", **SAME)
conv("bias_added", bias=True, added=(1, 6, 7, 6), _activation="LeakyRelu", _activation_params=[0.1], **SAME)
conv("added_alone", added=(1, 6, 5, 4))
conv("stride_dilation", x=(2, 4, 9, 8), _strides=[2, 1], _dilations=[2, 1], _activation="Relu", bias=True)
conv("groups", w=(6, 2, 3, 3), _group=2, _activation="Relu", **SAME)
conv("depthwise", w=(4, 1, 3, 3), _group=4, _activation="Tanh", bias=True, **SAME)
conv("line", x=(2, 4, 9), w=(6, 4, 3), _activation="Relu", _pads=[1, 0])
conv("volume", x=(1, 2, 4, 5, 3), w=(3, 2, 2, 2, 2), _activation="Relu")
for automatic in ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"):
    conv(f"auto_{automatic.lower()}", _auto_pad=automatic, _strides=[2, 2], _activation="Relu")
conv("weights_at_run", constant=False, bias=True, _activation="Relu")
conv("f16", kind="f16", bias=True, _activation="Relu", **SAME)
conv("f64", kind="f64", bias=True, _activation="Relu", **SAME)
conv("open", sets=[(1, 4, 5, 6), (2, 4, 9, 8)], bias=True, _activation="Relu", **SAME)


def gemm(variant, a=(3, 8), b=(8, 5), c=None, kind="f32", constant=True, sets=None, integers=False, **attributes):
    def one(a):
        def make(r):
            w = Random(variant)
            some = (lambda s, *shape: s.integers(kind, 0, 5, *shape)) if integers else (lambda s, *shape: s.normal(kind, *shape))
            operands = [some(r, *a), some(w, *b), *([some(w, *c)] if c is not None else [])]
            return [operands[0], *[held(t) if constant else t for t in operands[1:]]]
        return make
    CASES.add("FusedGemm", variant, [one(s) for s in sets] if sets else one(a), **attributes)


gemm("plain", c=(5,))
gemm("no_c")
GEMM_TYPES = {"Relu": {}, "Tanh": {}, "Sigmoid": {}, "LeakyRelu": {"alpha": 0.2}, "Elu": {"alpha": 0.7},
              "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
              "Selu": {"alpha": 1.5, "gamma": 1.1}, "Softplus": {}, "Softsign": {}, "ThresholdedRelu": {"alpha": 0.5}}
for name, parameters in GEMM_TYPES.items():
    extended = {"group": "extended"} if name in ("Selu", "Softplus", "Softsign", "ThresholdedRelu", "Elu") else {}
    gemm(f"type_{name.lower()}", c=(5,), _activation=name, **{f"_activation_{k}": v for k, v in parameters.items()}, **extended)
gemm("alpha_beta", c=(3, 5), _alpha=0.5, _beta=-0.25, _activation="Relu")
gemm("trans_a", a=(8, 3), c=(5,), _transA=1, _activation="Relu")
gemm("trans_b", b=(5, 8), c=(3, 1), _transB=1, _activation="Tanh")
gemm("trans_both", a=(8, 3), b=(5, 8), c=(1, 5), _transA=1, _transB=1, _activation="LeakyRelu", _activation_alpha=0.1)
gemm("zeros", c=(), _transA=0, _transB=0, _alpha=1.0, _beta=1.0)
gemm("weights_at_run", c=(5,), constant=False, _activation="Relu")
gemm("wide", a=(9, 80), b=(80, 70), c=(70,), _activation="Relu")
gemm("open", sets=[(1, 8), (6, 8)], c=(5,), _activation="Relu")
for kind in ("f16", "f64"):
    gemm(kind, c=(5,), kind=kind, _activation="Relu")
for kind in ("i32", "i64", "u32", "u64"):
    gemm(kind, c=(5,), kind=kind, integers=True, _activation="Relu", group="extended")
