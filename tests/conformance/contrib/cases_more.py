"""Cases of the operators that optimizers and quantizers write beside the others."""
from build import Cases, Random, Tensor, held, np
from cases_quantized import KINDS, codes, scalar
from definitions_more import DEFINITIONS

CASES = Cases(DEFINITIONS)


def qgemm(variant, a=(3, 16), b=(16, 10), kinds=("u8", "i8", "u8"), columns=False, c=None, stored=True, constant=True, sets=None, **more):
    """`kinds`: of A, B and Y; `columns`: a scale and a zero point a column."""
    keep = held if constant else (lambda t: t)

    def one(a):
        def make(r):
            w, shape = Random(variant), (10,) if columns else ()
            c_value = keep(Tensor("i32", w.random.integers(-2000, 2000, c))) if c is not None else None
            last = [scalar("f32", 0.173), scalar(kinds[2], KINDS[kinds[2]][2])] if stored else []
            return [codes(r, kinds[0], *a), scalar("f32", 0.0173), scalar(kinds[0], KINDS[kinds[0]][2]), keep(codes(w, kinds[1], *b)),
                    keep(Tensor("f32", w.random.uniform(0.01, 0.03, shape))),
                    keep(Tensor(kinds[1], w.random.integers(-5, 6, shape) + KINDS[kinds[1]][2])), c_value, *last]
        return make
    CASES.add("QGemm", variant, [one(s) for s in sets] if sets else one(a), **more)


qgemm("plain")
qgemm("signed", kinds=("i8", "i8", "i8"))
qgemm("unsigned", kinds=("u8", "u8", "u8"))
qgemm("c", c=(10,))
qgemm("c_whole", c=(3, 10), columns=True)
qgemm("columns", columns=True)
qgemm("floats", stored=False)
qgemm("floats_c", stored=False, c=(10,), columns=True)
qgemm("trans_a", a=(16, 3), _transA=1)
qgemm("trans_b", b=(10, 16), _transB=1, columns=True)
qgemm("not_transposed", _transA=0, _transB=0, _alpha=1.0)
qgemm("alpha", _alpha=0.5, stored=False)
qgemm("at_run", constant=False, c=(10,))
qgemm("open", sets=[(1, 16), (5, 16)])


def qconv(variant, x=(1, 4, 7, 6), w=(6, 4, 3, 3), kinds=("u8", "i8", "u8"), each=False, bias=False, constant=True, sets=None, **more):
    """`each`: a scale an output channel."""
    keep = held if constant else (lambda t: t)

    def one(x):
        def make(r):
            s, shape = Random(variant), (w[0],) if each else ()
            return [codes(r, kinds[0], *x), scalar("f32", 0.0173), scalar(kinds[0], KINDS[kinds[0]][2]), keep(codes(s, kinds[1], *w)),
                    held(Tensor("f32", s.random.uniform(0.01, 0.03, shape))), held(Tensor(kinds[1], np.zeros(shape) + (
                        0 if kinds[1] == "i8" else 121))), scalar("f32", 0.231), scalar(kinds[2], KINDS[kinds[2]][2]),
                    held(Tensor("i32", s.random.integers(-2000, 2000, w[0]))) if bias else None]
        return make
    CASES.add("QLinearConv", variant, [one(s) for s in sets] if sets else one(x), **more)


LAST = {"_channels_last": 1}
qconv("plain", **LAST, x=(1, 7, 6, 4))
qconv("first", _channels_last=0)
qconv("unset")
qconv("bias", **LAST, x=(1, 7, 6, 4), bias=True)
qconv("each", **LAST, x=(1, 7, 6, 4), each=True, bias=True)
qconv("signed", **LAST, x=(1, 7, 6, 4), kinds=("i8", "i8", "i8"))
qconv("unsigned", **LAST, x=(1, 7, 6, 4), kinds=("u8", "u8", "u8"))
qconv("pads", **LAST, x=(2, 7, 6, 4), _pads=[1, 0, 1, 2], _strides=[2, 1], _kernel_shape=[3, 3])
qconv("dilations", **LAST, x=(1, 9, 8, 4), _dilations=[2, 1])
qconv("groups", **LAST, x=(1, 7, 6, 4), w=(6, 2, 3, 3), _group=2)
qconv("depthwise", **LAST, x=(1, 7, 6, 4), w=(4, 1, 3, 3), _group=4, each=True)
qconv("same", **LAST, x=(1, 7, 6, 4), _auto_pad="SAME_UPPER")
qconv("open", **LAST, sets=[(1, 5, 6, 4), (2, 8, 7, 4)], bias=True)


def linear(op, variant, shape=(3, 4, 5), axis=None, zero=True, kind="u8", scales="f32", **more):
    if axis is not None:
        more["_axis"] = axis
    wide = (shape[axis],) if axis is not None else ()

    def make(r):
        scale = held(r.uniform(scales, 0.011, 0.037, *wide))
        low, high, middle = KINDS.get(kind, (-8 if kind == "i4" else 0, 7 if kind == "i4" else 15, 3))
        point = held(Tensor(kind, r.random.integers(max(low, middle - 9), min(high, middle + 9), wide))) if zero else None
        value = r.normal(scales, *shape) if op == "QuantizeLinear" else r.integers(kind, low, high, *shape)
        return [held(value) if kind[1] == "4" and op != "QuantizeLinear" else value, scale, point]
    CASES.add(op, variant, make, **more)


for op in ("QuantizeLinear", "DequantizeLinear"):
    for kind in KINDS:
        linear(op, kind, kind=kind)
        for axis in (0, 1, -1):
            linear(op, f"{kind}_axis{axis % 3}", kind=kind, axis=axis)
        linear(op, f"{kind}_no_zero", kind=kind, zero=False) if op == "DequantizeLinear" or kind == "u8" else None
    linear(op, "f16", scales="f16", kind="i8")
    for kind in ("u4", "i4"):
        linear(op, kind, kind=kind, opset=21)
for kind, low, high in (("i16", -32768, 32767), ("u16", 0, 65535), ("i32", -90000, 90000)):
    CASES.add("DequantizeLinear", kind, lambda r, k=kind, a=low, b=high: [r.integers(k, a, b, 3, 5), scalar("f32", 0.0031), scalar(k, 7)])
    if kind != "i32":
        CASES.add("QuantizeLinear", kind, lambda r, k=kind: [r.normal("f32", 3, 5), scalar("f32", 0.00031), scalar(k, 7)])


def pool(variant, shape=(1, 7, 6, 3), kind="u8", sets=None, **more):
    one = lambda shape: lambda r: [codes(r, kind, *shape)]
    CASES.add("NhwcMaxPool", variant, [one(s) for s in sets] if sets else one(shape), **more)


for kind in KINDS:
    pool(kind, kind=kind, _kernel_shape=[3, 2])
    pool(f"{kind}_pads", kind=kind, _kernel_shape=[3, 3], _pads=[1, 1, 1, 1], _strides=[2, 2])
pool("dilations", (1, 9, 8, 3), _kernel_shape=[2, 2], _dilations=[2, 3])
pool("ceil", (1, 8, 6, 3), _kernel_shape=[3, 3], _strides=[2, 2], _ceil_mode=1)
pool("floor", (1, 8, 6, 3), _kernel_shape=[3, 3], _strides=[2, 2], _ceil_mode=0)
pool("same", _kernel_shape=[2, 3], _strides=[2, 2], _auto_pad="SAME_UPPER")
pool("valid", _kernel_shape=[2, 3], _auto_pad="VALID")
pool("open", _kernel_shape=[2, 2], sets=[(1, 5, 6, 3), (2, 8, 7, 3)])


def nhwc(op, variant, x=(1, 7, 6, 4), w=(6, 4, 3, 3), bias=False, added=None, kind="f32", sets=None, **more):
    def one(x):
        def make(r):
            s = Random(variant)
            return [r.normal(kind, *x), held(s.normal(kind, *w, size=0.3)), held(s.normal(kind, w[0])) if bias else None,
                    r.normal(kind, *added) if added else None]
        return make
    CASES.add(op, variant, [one(s) for s in sets] if sets else one(x), **more)


for op in ("NhwcConv", "NhwcFusedConv"):
    nhwc(op, "plain")
    nhwc(op, "bias", bias=True, _pads=[1, 1, 1, 1], _kernel_shape=[3, 3])
    nhwc(op, "stride_dilation", x=(2, 9, 8, 4), _strides=[2, 1], _dilations=[2, 1], bias=True)
    nhwc(op, "groups", w=(6, 2, 3, 3), _group=2)
    nhwc(op, "same", _auto_pad="SAME_LOWER")
    nhwc(op, "f16", kind="f16", bias=True)
    nhwc(op, "open", sets=[(1, 5, 6, 4), (2, 9, 8, 4)], bias=True)
nhwc("NhwcConv", "f64", kind="f64")
nhwc("NhwcFusedConv", "relu", bias=True, _activation="Relu")
nhwc("NhwcFusedConv", "leaky", bias=True, added=(1, 5, 4, 6), _activation="LeakyRelu", _activation_params=[0.2])
nhwc("NhwcFusedConv", "added", added=(1, 5, 4, 6))


def product(op, variant, a, b, kind="f32", sets=None, **more):
    one = lambda a, b: lambda r: [r.normal(kind, *a), r.normal(kind, *b)]
    CASES.add(op, variant, [one(*s) for s in sets] if sets else one(a, b), **more)


product("TransposeMatMul", "plain", (3, 4), (4, 5))
product("TransposeMatMul", "both", (4, 3), (5, 4), _transA=1, _transB=1, _alpha=0.5)
product("TransposeMatMul", "neither", (2, 3, 4), (4, 5), _transA=0, _transB=0, _alpha=1.0)
for kind in ("f16", "f64", "bf16"):
    product("TransposeMatMul", kind, (3, 4), (5, 4), kind=kind, _transB=1)
product("TransposeMatMul", "open", None, None, sets=[((1, 3, 8), (1, 4, 8)), ((2, 5, 8), (2, 6, 8))], _transB=1)
for name, parameters in (("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("LeakyRelu", {"_activation_alpha": 0.2}),
                         ("HardSigmoid", {"_activation_alpha": 0.3, "_activation_beta": 0.4})):
    product("FusedMatMulActivation", name.lower(), (3, 4), (4, 5), _activation=name, **parameters)
product("FusedMatMulActivation", "everything", (4, 2, 6, 3), (5, 2, 6, 4), _activation="Relu", _transA=1, _transB=1, _transBatchA=1,
        _transBatchB=1, _alpha=0.25)
for kind in ("f16", "f64", "bf16"):
    product("FusedMatMulActivation", kind, (3, 4), (4, 5), kind=kind, _activation="Relu")
for kind in ("f32", "f16", "bf16"):
    for bias in (False, True):
        CASES.add("GemmFastGelu", f"{kind}{'_bias' * bias}", lambda r, k=kind, b=bias: [r.normal(k, 2, 3, 8), held(r.normal(k, 8, 5)), held(
            r.normal(k, 5)) if b else None])
for kind in ("f32", "f16"):
    for shape in ((2, 3, 8), (1, 1, 16), (3, 5, 40)):
        CASES.add("BiasAdd", f"{kind}_{shape[-1]}", lambda r, k=kind, s=shape: [r.normal(k, *s), held(r.normal(k, s[-1])), r.normal(k, *s)])
for kind in ("f32", "f16", "f64"):
    CASES.add("BiasSoftmax", f"{kind}_inner", lambda r, k=kind: [r.normal(k, 2, 3, 4, 5), r.normal(k, 2, 1, 1, 5)], _axis=3,
              _is_inner_broadcast=1)
    CASES.add("BiasSoftmax", f"{kind}_outer", lambda r, k=kind: [r.normal(k, 2, 3, 4, 5), r.normal(k, 4, 5)], _axis=3,
              _is_inner_broadcast=0)
CASES.add("BiasSoftmax", "default_axis", lambda r: [r.normal("f32", 3, 8), r.normal("f32", 1, 8)], _is_inner_broadcast=0)
for kind in KINDS:
    zero = KINDS[kind][2]
    CASES.add("MulInteger", kind, lambda r, k=kind, z=zero: [codes(r, k, 3, 5), scalar(k, z), codes(r, k, 3, 5), scalar(k, z - 2)])
    CASES.add("MulInteger", f"{kind}_no_zeros", lambda r, k=kind: [codes(r, k, 3, 1), None, codes(r, k, 5)])
    CASES.add("MulInteger", f"{kind}_zero_of_b", lambda r, k=kind, z=zero: [codes(r, k, 3, 5), None, codes(r, k, 1, 5), scalar(k, z)])
    for keep in (0, 1):
        CASES.add("ReduceSumInteger", f"{kind}_{keep}", lambda r, k=kind: [codes(r, k, 3, 4, 5)], _axes=[1], _keepdims=keep)
    CASES.add("ReduceSumInteger", f"{kind}_two", lambda r, k=kind: [codes(r, k, 3, 4, 5)], _axes=[0, -1], _keepdims=1)


def bnb4(variant, form=1, k=64, n=24, block=32, kind="f32", rows=(3,), sets=None, **more):
    def one(rows):
        def make(r):
            w, wide = Random(variant), n if more.get("_transB") == 0 else k
            return [r.normal(kind, *rows, wide), held(w.bytes((n * k + 1) // 2)), held(w.uniform(kind, 0.1, 1, -(-n * k // block)))]
        return make
    CASES.add("MatMulBnb4", variant, [one(s) for s in sets] if sets else one(rows), _K=k, _N=n, _block_size=block, _quant_type=form, **more)


for form, name in enumerate(("fp4", "nf4")):
    bnb4(name, form)
    bnb4(f"{name}_one_row", form, rows=(1,), block=16)
    bnb4(f"{name}_f16", form, kind="f16", block=64)
bnb4("bf16", kind="bf16")
bnb4("odd", k=37, n=7, block=16)
bnb4("not_transposed", _transB=0)
bnb4("transposed", _transB=1, _training_mode=0, rows=(2, 3))
bnb4("open", sets=[(1,), (5,)])
