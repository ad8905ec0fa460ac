"""The table: every operator of frontends/onnx/OPERATORS.md, with its definition in numpy, the shapes that ONNX forbids, and those
whose results a device of f16 cannot hold."""
import numpy as np

from case import Case, onnx
from definitions import *

# --- What ONNX forbids: the definition's own words --------------------------------------------------------------------

NO_INDEX = "Gather: all index values are expected to be within bounds [-s, s-1] along an axis of size s."
NO_BROADCAST = "Broadcasting: the dimensions of each axis are equal or one of them is 1."
EMPTY_EXTREME = "ArgMax: the index of the largest element along an axis; along one of 0 there is none."
KERNEL_FITS = "Pool, Conv: output_spatial_shape = floor((input + pads - kernel) / strides + 1), which is not negative."
PAD_OF_NOTHING = "Pad: reflect mirrors values of the input, edge repeats them; of an axis of 0 there are none."
TOPK = "TopK: the top k elements along an axis, k no more than there are."
DIVISIBLE = "SpaceToDepth, DepthToSpace: blocks of [blocksize, blocksize] of the input."
NO_ROI = "RoiAlign: pools features of each region of interest; an image without elements has none."
SQUARE = "Det: a square matrix."
NO_WINDOW = "STFT, MelWeightMatrix, windows: a length is positive."
EQUAL = "Operands that share an axis are of equal size along it."
RESIZE = "Resize: output = floor(input * scale); a scale is greater than 0, and something has to be scaled."


# --- What numbers of a device cannot hold: f16 flushes below 2^-14 ----------------------------------------------------

EPSILON = "epsilon is zero in f16, and rows of one element, whose variance is 0, are divided by its root."


def when(sentence, *axes, sizes=(0,)):
    """Forbidden, or coarse, where one of the axes has one of the sizes."""
    return lambda s: sentence if any(s[a] in sizes for a in axes) else None


CASES = []


def case(*arguments, **more):
    CASES.append(Case(*arguments, **more))


# --- Elementwise ------------------------------------------------------------------------------------------------------

UNARY = {
    "Abs": np.abs, "Acos": np.arccos, "Acosh": np.arccosh, "Asin": np.arcsin, "Asinh": np.arcsinh, "Atan": np.arctan, "Atanh": np.arctanh,
    "Ceil": np.ceil, "Celu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), "Cos": np.cos, "Cosh": np.cosh,
    "Elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), "Erf": erf, "Exp": np.exp, "Floor": np.floor,
    "HardSigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1), "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1), "Identity": lambda x: x,
    "LeakyRelu": lambda x: np.where(x < 0, 0.01 * x, x), "Log": np.log, "Mish": lambda x: x * np.tanh(np.log1p(np.exp(x))), "Neg": np.negative,
    "Reciprocal": lambda x: 1 / x, "Relu": lambda x: np.maximum(x, 0), "Round": np.rint,
    "Selu": lambda x: 1.05070102214813 * np.where(x > 0, x, 1.67326319217681 * np.expm1(np.minimum(x, 0))),
    "Shrink": lambda x: np.where(x > 0.5, x, np.where(x < -0.5, x, 0)), "Sigmoid": sigmoid, "Sign": np.sign, "Sin": np.sin, "Sinh": np.sinh,
    "Softplus": lambda x: np.log1p(np.exp(x)), "Softsign": lambda x: x / (1 + np.abs(x)), "Sqrt": np.sqrt, "Tan": np.tan, "Tanh": np.tanh,
    "ThresholdedRelu": lambda x: np.where(x > 1, x, 0), "Gelu": lambda x: 0.5 * x * (1 + erf(wide(x) / np.sqrt(2))),
}
RANGES = {"Acos": (-0.9, 0.9), "Asin": (-0.9, 0.9), "Atanh": (-0.9, 0.9), "Acosh": (1.1, 2.0), "Log": (0.5, 2), "Sqrt": (0.5, 2)}
for name, function in UNARY.items():
    low, high = RANGES.get(name, (-2, 2))
    case(name, "x:f n c w", lambda x, f=function: f(wide(x)), data={"x": lambda r, shape, s, a=low, b=high: r.uniform(a, b, shape)})
case("Swish", "x:f n c", lambda x: x * sigmoid(x), opset=24)
case("Log", "x:f n c; d:f", lambda x, d: np.log2(wide(x)), name="Log-base-2", constants={"d": np.array(np.log(2), np.float32)},
     data={"x": lambda r, shape, s: r.uniform(0.5, 2, shape)},
     nodes=lambda i, o: [("Log", i[:1], ["ln" + o[0]]), ("Div", ["ln" + o[0], i[1]], o)])


def fast_gelu(x):
    return 0.5 * x * (1 + np.tanh(x * (0.7978845608028654 + 0.035677408136300125 * x * x)))


MICROSOFT = {"domain": "com.microsoft"}  # by the text of its operators' schemas
case("Gelu", "x:f n c", UNARY["Gelu"], name="ms-Gelu", **MICROSOFT)
case("BiasGelu", "x:f n c; b:f c", lambda x, b: UNARY["Gelu"](wide(x) + b), **MICROSOFT)
for text in ("x:f n c", "x:f n c; b:f c"):
    case("FastGelu", text, lambda x, b=0: fast_gelu(wide(x) + b), name="FastGelu" + "-bias" * (";" in text), **MICROSOFT)
for alpha in (1.702, 0.5):
    case("QuickGelu", "x:f n c", lambda x, a=alpha: x * sigmoid(a * wide(x)), name=f"QuickGelu-{alpha}", alpha=alpha, **MICROSOFT)
case("MoE", "x:f n c; r:f n 3; a:f 3 h c; b:f 3 h; w:f 3 c h", mixed, k=1, **MICROSOFT)
case("MoE", "x:f n c; r:f n 2; a:f 2 h c; b:f 2 h; w:f 2 c h", lambda *tensors: mixed(*tensors, k=2), name="MoE-2", k=2, activation_type="silu", normalize_routing_weights=1,
     **MICROSOFT)
case("IsInf", "x:f n c", np.isinf)
case("IsNaN", "x:f n c", np.isnan)
case("Not", "x:b n c", np.logical_not)
case("BitwiseNot", "x:i n c", np.invert)
case("Clip", "x:f n c; low:f; high:f", lambda x, low, high: np.clip(wide(x), -0.5, 0.5), data={"low": lambda *_: -0.5, "high": lambda *_: 0.5})
case("Dropout", "x:f n c", lambda x: wide(x))
case("Cast", "x:f n c", lambda x: x.astype(np.int32), to=6)
for bits, code, low, high in (("i4", 22, -8, 7), ("u4", 21, 0, 15)):  # two elements share a byte
    case("Cast", "x:f n c", wide, data={"x": lambda r, shape, s, a=low, b=high: r.integers(a, b, shape, endpoint=True)}, name=f"Cast-{bits}",
         nodes=lambda i, o, t=code: [("Cast", i, ["packed" + o[0]], {"to": t}), ("Cast", ["packed" + o[0]], o, {"to": 1})])
case("CastLike", "x:f n c; like:i d", lambda x, y: x.astype(np.int64))
case("BitCast", "x:f n c", lambda x: x.view(np.int32), opset=26, to=6)
case("QuantizeLinear", "x:f n c; s:f; z:u", quantized, data={"s": lambda *_: 0.1, "z": lambda *_: 100})
case("QuantizeLinear", "x:f n c w; s:f c; z:u c", lambda x, s, z: quantized(x, s[:, None], z[:, None].astype(int)), name="QuantizeLinear-axis",
     data={"s": lambda r, shape, s: r.uniform(0.1, 0.2, shape)}, axis=1)
case("DequantizeLinear", "x:u n c w; s:f c; z:u c", lambda x, s, z: (x.astype(np.int64) - z[:, None].astype(np.int64)) * wide(s)[:, None], axis=1)
case("DynamicQuantizeLinear", "x:f n c", lambda x: dynamic_quantized(x), results=3)
case("PRelu", "x:f n c w; s:f c 1", lambda x, s: np.where(x < 0, wide(s) * x, x))

BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power, "Mean": lambda a, b: (a + b) / 2,
          "Max": np.maximum, "Min": np.minimum, "Sum": np.add}
for name, function in BINARY.items():
    case(name, "x:f n c w; y:f c 1", lambda x, y, f=function: f(wide(x), wide(y)), data={"x": lambda r, shape, s: r.uniform(0.5, 2, shape)})
    case(name, "x:f n; y:f h n", lambda x, y, f=function: f(wide(x), wide(y)), name=name + "-grows",
         data={"x": lambda r, shape, s: r.uniform(0.5, 2, shape)})
for name, function in {"Equal": np.equal, "Less": np.less, "LessOrEqual": np.less_equal, "Greater": np.greater, "GreaterOrEqual": np.greater_equal}.items():
    case(name, "x:i n c; y:i c", function)
for name, function in {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}.items():
    case(name, "x:b n c; y:b n 1", function)
for name, function in {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}.items():
    case(name, "x:j n c; y:j c", function)
case("BitShift", "x:u n c; y:u c", lambda x, y: x << y, data={"y": lambda r, shape, s: r.integers(0, 4, shape)}, direction="LEFT", name="BitShift-left")
case("BitShift", "x:u n c; y:u c", lambda x, y: x >> y, data={"y": lambda r, shape, s: r.integers(0, 7, shape)}, direction="RIGHT")
case("Mod", "x:i n c; y:i c", np.mod, data={"y": lambda r, shape, s: r.integers(1, 7, shape)})
case("Mod", "x:f n c; y:f c", lambda x, y: np.fmod(wide(x), wide(y)), name="Mod-fmod", fmod=1)
case("Where", "p:b n 1; x:f n c; y:f c", lambda p, x, y: np.where(p, wide(x), wide(y)))

# --- Reductions and rows ----------------------------------------------------------------------------------------------


def reduced(function):
    return lambda x, axes: function(wide(x), tuple(int(a) for a in axes))


REDUCTIONS = {
    "ReduceSum": lambda x, a: x.sum(a, keepdims=True), "ReduceMean": mean, "ReduceProd": lambda x, a: x.prod(a, keepdims=True),
    "ReduceMax": lambda x, a: x.max(a, keepdims=True, initial=-np.inf), "ReduceMin": lambda x, a: x.min(a, keepdims=True, initial=np.inf),
    "ReduceL1": lambda x, a: np.abs(x).sum(a, keepdims=True), "ReduceL2": lambda x, a: np.sqrt((x * x).sum(a, keepdims=True)),
    "ReduceSumSquare": lambda x, a: (x * x).sum(a, keepdims=True), "ReduceLogSum": lambda x, a: np.log(x.sum(a, keepdims=True)),
    "ReduceLogSumExp": lambda x, a: np.log(np.exp(x).sum(a, keepdims=True)),
}
for name, function in REDUCTIONS.items():
    for axes in ([1], [0, 2], [2], [0, 1, 2]):
        case(name, "x:f n c w; axes:i 0", reduced(function), constants={"axes": np.array(axes, np.int64)}, name=name + "-" + "".join(map(str, axes)),
             opset=18 if name != "ReduceMax" and name != "ReduceMin" else 20)
for name in ("ReduceMax", "ReduceMin"):
    least = name == "ReduceMax"
    case(name, "x:i n c; axes:i 0", lambda x, a, f=np.max if least else np.min, e=np.iinfo(np.int64).min if least else np.iinfo(np.int64).max:
         f(x, (1,), keepdims=True, initial=e), constants={"axes": np.array([1])}, opset=20, name=name + "-i64")
    case(name, "x:b n c; axes:i 0", lambda x, a, f=np.any if least else np.all: f(x, (1,), keepdims=True), constants={"axes": np.array([1])},
         opset=20, name=name + "-bool")
for name, pick_one in {"ArgMax": np.argmax, "ArgMin": np.argmin}.items():
    case(name, "x:f n c w", lambda x, f=pick_one: np.expand_dims(f(x, 1), 1) if x.shape[1] else np.zeros((x.shape[0], 1, x.shape[2]), np.int64), axis=1,
         forbidden=lambda s: EMPTY_EXTREME if s["c"] == 0 and s["n"] and s["w"] else None)
for axis in (0, 1, 2):
    case("Softmax", "x:f n c w", lambda x, a=axis: softmax(x, a), axis=axis, name=f"Softmax-{axis}")
    case("LogSoftmax", "x:f n c w", lambda x, a=axis: softmax(x, a, True), axis=axis, name=f"LogSoftmax-{axis}")
    case("Hardmax", "x:f n c w", lambda x, a=axis: hardmax(x, a), axis=axis, name=f"Hardmax-{axis}")
    case("CumSum", "x:f n c w; axis:i", lambda x, a: np.cumsum(wide(x), int(a)), constants={"axis": np.array(axis)}, name=f"CumSum-{axis}")
    case("LpNormalization", "x:f n c w", lambda x, a=axis: np.nan_to_num(wide(x) / np.sqrt((wide(x) ** 2).sum(a, keepdims=True))), axis=axis, p=2,
         name=f"LpNormalization-{axis}")
case("CumProd", "x:f n c; axis:i", lambda x, a: np.cumprod(wide(x), 1), constants={"axis": np.array(1)}, opset=26)
case("LayerNormalization", "x:f n c w; s:f c w; b:f c w", lambda x, s, b: layer_norm(x, 1, s, b), results=3, axis=1,
     coarse=lambda s: EPSILON if s["c"] * s["w"] == 1 else None)
case("LayerNormalization", "x:f n w; s:f w", lambda x, s: layer_norm(x, -1, s)[0], name="LayerNormalization-last")
case("RMSNormalization", "x:f n c w; s:f w", lambda x, s: wide(x) / np.sqrt(mean(wide(x) ** 2, (2,)) + 1e-5) * s, opset=23)
case("SimplifiedLayerNormalization", "x:f n c w; s:f w", lambda x, s: wide(x) / np.sqrt(mean(wide(x) ** 2, (2,)) + 1e-5) * s)
case("InstanceNormalization", "x:f n c h w; s:f c; b:f c", lambda x, s, b: normalized(x, (2, 3)) * s[:, None, None] + b[:, None, None])
case("GroupNormalization", "x:f n 4 h w; s:f 4; b:f 4", lambda x, s, b: normalized(x.reshape(x.shape[0], 2, 2, *x.shape[2:]), (2, 3, 4)).reshape(x.shape)
     * s[:, None, None] + b[:, None, None], num_groups=2, opset=21)
case("MeanVarianceNormalization", "x:f n c h w", lambda x: normalized(x, (0, 2, 3), 1e-9), tolerance=1e-3,
     coarse=lambda s: EPSILON if s["n"] * s["h"] * s["w"] == 1 else None)
case("BatchNormalization", "x:f n c h w; s:f c; b:f c; m:f c; v:f c", lambda x, s, b, m, v: (wide(x) - m[:, None, None]) /
     np.sqrt(wide(v)[:, None, None] + 1e-5) * s[:, None, None] + b[:, None, None], data={"v": lambda r, shape, s: r.uniform(0.5, 2, shape)})
case("LRN", "x:f n c h w", lambda x: lrn(x, 3), size=3)
case("Det", "x:f n m m", lambda x: np.linalg.det(wide(x)), forbidden=lambda s: None, base={"m": 2})

# --- Products ---------------------------------------------------------------------------------------------------------

for name, operands in {"plain": "x:f m k; y:f k n", "batched": "x:f b m k; y:f b k n", "shared": "x:f b m k; y:f k n", "growing": "x:f d 1 m k; y:f b k n",
                       "row": "x:f k; y:f b k n", "column": "x:f b m k; y:f k", "dot": "x:f k; y:f k"}.items():
    case("MatMul", operands, lambda x, y: wide(x) @ wide(y), name="MatMul-" + name, base={"b": 2})
case("MatMul", "x:f b m k; y:f k n", lambda x, y: wide(x) @ wide(y), name="MatMul-constant", constants={"y": lambda s: np.ones((s["k"], s["n"]), np.float32)}, base={"b": 2, "k": 20, "n": 35})
case("MatMul", "x:i m k; y:i k n", lambda x, y: x @ y, name="MatMul-i64")
case("Gemm", "x:f m k; y:f n k; z:f n", lambda x, y, z: wide(x) @ wide(y).T + z, transB=1)
case("MatMulInteger", "x:u b m k; y:s k n; z:u", lambda x, y, z: ((x.astype(int) - int(z)) @ y.astype(int)).astype(np.int32), base={"b": 2})
case("QLinearMatMul", "x:u m k; xs:f; xz:u; y:u k n; ys:f; yz:u; zs:f; zz:u", lambda x, xs, xz, y, ys, yz, zs, zz:
     quantized((x.astype(int) - int(xz)) @ (y.astype(int) - int(yz)) * float(xs) * float(ys), float(zs), int(zz)),
     data={"xs": lambda *_: 0.125, "ys": lambda *_: 0.25, "zs": lambda *_: 0.5, "xz": lambda *_: 3, "yz": lambda *_: 2, "zz": lambda *_: 7})
case("Einsum", "x:f n c w; y:f n w m", lambda x, y: np.einsum("ncw,nwm->ncm", wide(x), wide(y)), equation="ncw,nwm->ncm")
case("Einsum", "x:f n c w", lambda x: np.einsum("ncw->wn", wide(x)), equation="ncw->wn", name="Einsum-sum")
case("Attention", "q:f b 2 m d; k:f b 2 t d; v:f b 2 t w", lambda q, k, v: attention(q, k, v), opset=23, base={"b": 2},
     forbidden=when("Attention: the scale is 1/sqrt(head_size), which a size of 0 has none of.", "d"))

CONV = {"h": 4, "w": 5}
for name, operands, options in (("same", "x:f n c h w; k:f m c 3 3; b:f m", {"pads": [1, 1, 1, 1]}), ("point", "x:f n c h w; k:f m c 1 1", {}),
                                ("stride", "x:f n c h w; k:f m c 3 3", {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
                                ("line", "x:f n c w; k:f m c 3", {"pads": [1, 1]}), ("group", "x:f n 4 h w; k:f 6 2 3 3", {"pads": [1, 1, 1, 1], "group": 2}),
                                ("depth", "x:f n 4 h w; k:f 4 1 3 3", {"pads": [1, 1, 1, 1], "group": 4}),
                                ("wide", "x:f n 32 h w; k:f 40 32 3 3", {"pads": [1, 1, 1, 1]})):
    case("Conv", operands, lambda *x, o=options: conv(*x, **o), name="Conv-" + name, **options)
    case("Conv", operands, lambda *x, o=options: conv(*x, **o), name="Conv-constant-" + name,
         constants={"k": lambda s, text=operands: np.random.default_rng(5).standard_normal([s.get(a, a) if not a.isdigit() else int(a) for a in text.split(";")[1].split(":")[1].split()[1:]])}, **options)
WIDE = np.random.default_rng(5).standard_normal([40, 32, 3, 3])
case("Conv", "x:f n 32 h w; k:f 40 32 3 3", lambda x, k: conv(x, k, pads=[1, 1, 1, 1]), constants={"k": WIDE}, pads=[1, 1, 1, 1], name="Conv-blocked")
case("ConvInteger", "x:u n c h w; k:s m c 3 3; z:u", lambda x, k, z: conv(x.astype(int) - int(z), k.astype(int), pads=[1, 1, 1, 1]).astype(np.int32),
     data={"z": lambda *_: 3}, pads=[1, 1, 1, 1])
case("QLinearConv", "x:u n c h w; xs:f; xz:u; k:u m c 1 1; ks:f; kz:u; ys:f; yz:u", lambda x, xs, xz, k, ks, kz, ys, yz:
     quantized(conv(x.astype(int) - int(xz), k.astype(int) - int(kz)) * float(xs) * float(ks), float(ys), int(yz)),
     data={"xs": lambda *_: 0.125, "ks": lambda *_: 0.25, "ys": lambda *_: 0.5, "xz": lambda *_: 3, "kz": lambda *_: 2, "yz": lambda *_: 7})
case("ConvTranspose", "x:f n c h w; k:f c m 3 2", lambda x, k: conv_transpose(x, k, strides=(2, 1)), strides=[2, 1],
     forbidden=when("ConvTranspose: output = stride * (input - 1) + kernel - pads, which takes a position to begin at.", "h", "w"))
for size, pads in ((2, [0, 0, 0, 0]), (3, [0, 0, 0, 0]), (4, [1, 1, 1, 1]), (5, [1, 2, 1, 0])):  # phases whose channels fill blocks
    case("ConvTranspose", f"x:f n c h w; k:f c 16 {size} {size}", lambda x, k, p=pads: conv_transpose(x, k, strides=(2, 2), pads=p), strides=[2, 2], pads=pads,
         name=f"ConvTranspose-phases-{size}", forbidden=when("ConvTranspose: output = stride * (input - 1) + kernel - pads, which takes a position to begin at.", "h", "w"))
case("DeformConv", "x:f n c h w; k:f m c 2 2; o:f n 8 p q", deform_conv, base={"h": 4, "w": 3, "p": 3, "q": 2},
     forbidden=lambda s: None if (s["h"], s["w"]) == (s["p"] + 1, s["q"] + 1) else EQUAL)

# --- Windows ----------------------------------------------------------------------------------------------------------

EMPTY_WINDOW = "Pool: of the values that a window covers; one that covers padding alone has none."
for kernel, pads in (([2, 2], [1, 1, 1, 1]), ([1, 1], [0, 0, 0, 0])):
    suffix = f"-{kernel[0]}"
    nothing = when(EMPTY_WINDOW, "h", "w") if pads[0] else lambda s: None
    case("MaxPool", "x:f n c h w", lambda x, k=kernel, p=pads: max_pool(x, k, p), kernel_shape=kernel, pads=pads, name="MaxPool" + suffix, forbidden=nothing)
    for count in (0, 1):
        case("AveragePool", "x:f n c h w", lambda x, k=kernel, p=pads, c=count: average_pool(x, k, p, c), kernel_shape=kernel, pads=pads,
             count_include_pad=count, name=f"AveragePool{suffix}-{count}", forbidden=nothing)
    case("LpPool", "x:f n c h w", lambda x, k=kernel, p=pads: np.sqrt((windows(wide(x), k, [1, 1], [1, 1], p, 0) ** 2).sum((4, 5))), kernel_shape=kernel,
         pads=pads, p=2, name="LpPool" + suffix, forbidden=nothing)
case("MaxPool", "x:u n c h w", lambda x: max_pool(x, [1, 2], [0, 1, 0, 1]).astype(np.uint8), kernel_shape=[1, 2], pads=[0, 1, 0, 1], name="MaxPool-u8", forbidden=when(EMPTY_WINDOW, "w"))
case("MaxPool", "x:f n c h w", lambda x: pooled_where(x, [2, 2]), results=2, kernel_shape=[2, 2], name="MaxPool-where", forbidden=when(KERNEL_FITS, "h", "w"))
case("MaxPool", "x:f n c h w", lambda x: max_pool(x, [2, 2]), kernel_shape=[2, 2], name="MaxPool-valid", forbidden=when(KERNEL_FITS, "h", "w"))
case("GlobalAveragePool", "x:f n c h w", lambda x: mean(x, (2, 3)))
case("GlobalMaxPool", "x:f n c h w", lambda x: wide(x).max((2, 3), keepdims=True, initial=-np.inf))
case("GlobalLpPool", "x:f n c h w", lambda x: np.sqrt((wide(x) ** 2).sum((2, 3), keepdims=True)))
case("MaxUnpool", "x:f n c 2 3; i:i n c 2 3", lambda x, i: max_unpool(x, i), kernel_shape=[2, 2], strides=[2, 2],
     data={"i": lambda r, shape, s: np.arange(shape[0] * shape[1]).reshape(*shape[:2], 1, 1) * 24 + np.arange(6).reshape(2, 3) * 2})
case("MaxRoiPool", "x:f n c h w; r:f p 5", max_roi_pool, pooled_shape=[2, 2], data={"r": lambda r, shape, s: np.tile([0, 0, 0, 2, 2], (shape[0], 1))},
     forbidden=when(NO_ROI, "n", "h", "w"))
case("RoiAlign", "x:f n c h w; r:f p 4; b:i p", roi_align, output_height=2, output_width=2, sampling_ratio=2,
     data={"r": lambda r, shape, s: np.tile([0.2, 0.3, 2.1, 2.4], (shape[0], 1)), "b": lambda r, shape, s: np.zeros(shape)}, forbidden=when(NO_ROI, "n", "h", "w"))
case("GridSample", "x:f n c h w; g:f n p q 2", grid_sample, data={"g": lambda r, shape, s: r.uniform(-0.9, 0.9, shape)}, opset=20,
     forbidden=when("GridSample: the grid is normalized by the input's spatial dimensions.", "h", "w"))
case("AffineGrid", "t:f n 2 3; size:i 4", lambda t, size: affine_grid(t, size), constants={"size": lambda s: np.array([s["n"], 3, 4, 5])}, opset=20)
case("Col2Im", "x:f n p 16; image:i 2; block:i 2", lambda x, i, b: col2im(x), constants={"image": np.array([4, 5]), "block": np.array([1, 2])}, base={"p": 6},
     forbidden=lambda s: "Col2Im: C * product(block_shape) channels." if s["p"] % 2 else None)
for mode in ("nearest", "linear", "cubic"):
    case("Resize", "x:f n c h w; ; scales:f 4", lambda x, s, m=mode: resized(x, m), constants={"scales": np.array([1, 1, 2, 2], np.float32)}, mode=mode,
         coordinate_transformation_mode="asymmetric", nearest_mode="floor", name="Resize-" + mode)
case("Upsample", "x:f n c h w; scales:f 4", lambda x, s: wide(x).repeat(2, 2).repeat(2, 3), constants={"scales": np.array([1, 1, 2, 2], np.float32)}, opset=9)
case("DepthToSpace", "x:f n 8 h w", depth_to_space, blocksize=2)
case("SpaceToDepth", "x:f n c h w", space_to_depth, blocksize=2, base={"h": 4, "w": 6}, forbidden=when(DIVISIBLE, "h", "w", sizes=(1,)))

# --- Movement ---------------------------------------------------------------------------------------------------------

case("Concat", "x:f n c w; y:f n m w", lambda x, y: wide(np.concatenate([x, y], 1)), axis=1)
case("Concat", "x:f n c; y:f n m; z:f n k", lambda x, y, z: wide(np.concatenate([x, y, z], 1)), axis=1, name="Concat-last")
case("Split", "x:f n 6 w; split:i 3", lambda x, s: tuple(wide(p) for p in np.split(x, [1, 1], 1)), constants={"split": np.array([1, 0, 5])}, results=3, axis=1)
case("Transpose", "x:f n c w", lambda x: wide(x.transpose(2, 0, 1)), perm=[2, 0, 1])
case("Reshape", "x:f n c w; shape:i 2", lambda x, s: wide(x.reshape(x.shape[0], x.shape[1] * x.shape[2])), constants={"shape": lambda s: np.array([s["n"], s["c"] * s["w"]])}, allowzero=1)
case("Reshape", "x:f n c w; shape:i 2", lambda x, s: wide(x.reshape(x.shape[0], x.shape[1] * x.shape[2])), constants={"shape": np.array([0, -1])}, name="Reshape-infers",
     forbidden=when("Reshape: at most one dimension can be -1; its value is inferred from the size of the tensor and the remaining dimensions.", "n"))
case("Flatten", "x:f n c w", lambda x: wide(x.reshape(x.shape[0], x.shape[1] * x.shape[2])), axis=1)
case("Squeeze", "x:f n 1 w; axes:i 1", lambda x, a: wide(x[:, 0]), constants={"axes": np.array([1])})
case("Unsqueeze", "x:f n w; axes:i 1", lambda x, a: wide(x[:, None]), constants={"axes": np.array([1])})
case("Expand", "x:f n 1; shape:i 2", lambda x, s: wide(np.broadcast_to(x, (x.shape[0], 3))), constants={"shape": np.array([1, 3])})
case("Expand", "x:f n 1; shape:i 2", lambda x, s: wide(np.broadcast_to(x, (x.shape[0], 0))), constants={"shape": np.array([1, 0])}, name="Expand-0")
case("Tile", "x:f n c; repeats:i 2", lambda x, r: wide(np.tile(x, (2, 3))), constants={"repeats": np.array([2, 3])})
case("Tile", "x:f n c; repeats:i 2", lambda x, r: wide(np.tile(x, (0, 1))), constants={"repeats": np.array([0, 1])}, name="Tile-0")
case("Slice", "x:f n c w; a:i 2; e:i 2; x2:i 2; s:i 2", lambda x, a, e, y, s: wide(x[:, 1:3, ::-2]), constants={
    "a": np.array([1, -1]), "e": np.array([3, -100]), "x2": np.array([1, 2]), "s": np.array([1, -2])})
case("Slice", "x:f n c w; a:i 1; e:i 1; x2:i 1", lambda x, a, e, y: wide(x[:, :0]), constants={"a": np.array([0]), "e": np.array([0]), "x2": np.array([1])}, name="Slice-0")
case("Pad", "x:f n c; p:i 4; v:f", lambda x, p, v: np.pad(wide(x), ((1, 0), (2, 1)), constant_values=1.5), constants={"p": np.array([1, 2, 0, 1]), "v": np.array(1.5, np.float32)})
for mode in ("reflect", "edge", "wrap"):
    forbidden = when(PAD_OF_NOTHING, "c") if mode != "reflect" else when(PAD_OF_NOTHING, "c", sizes=(0, 1))
    case("Pad", "x:f n c; p:i 4", lambda x, p, m=mode: np.pad(wide(x), ((0, 0), (1, 1)), mode=m) if x.size else np.zeros((x.shape[0], x.shape[1] + 2)), constants={"p": np.array([0, 1, 0, 1])}, mode=mode,
         name="Pad-" + mode, forbidden=forbidden, opset=19)
case("CenterCropPad", "x:f n c; shape:i 2", lambda x, s: centred(x, 4, 2), constants={"shape": np.array([4, 2])})
case("Gather", "x:f n c w; i:i p q", lambda x, i: wide(np.take(x, i, 1)), data={"i": lambda r, shape, s: r.integers(-1, 1, shape) if s["c"] else np.zeros(shape)}, axis=1,
     forbidden=lambda s: NO_INDEX if s["c"] == 0 and s["p"] and s["q"] else None)
# Two numbers a byte, the first in the lower bits, less 8; a scale for every 16. Rows of a table, and a matrix of one column.
NIBBLES, STEPS = np.arange(40, dtype=np.uint8).reshape(5, 8) * 6, np.linspace(0.5, 2, 5, dtype=np.float32).reshape(5, 1)
HALVES = (np.stack([NIBBLES & 15, NIBBLES >> 4], -1).reshape(5, 16).astype(np.int64) - 8) * wide(STEPS)
case("GatherBlockQuantized", "x:u 5 8; i:i p q; s:f 5 1", lambda x, i, s: HALVES[i], constants={"x": NIBBLES, "s": STEPS},
     data={"i": lambda r, shape, s: r.integers(0, 5, shape)}, gather_axis=0, quantize_axis=1, block_size=16, bits=4, **MICROSOFT)
case("MatMulNBits", "a:f n m 16; b:u 5 1 8; s:f 5", lambda a, b, s: wide(a) @ HALVES.T,
     constants={"b": NIBBLES.reshape(5, 1, 8), "s": STEPS.reshape(5)}, K=16, N=5, bits=4, block_size=16, **MICROSOFT)
case("MatMulNBits", "a:f m 16; b:u 1 1 8; s:f 1", lambda a, b, s: wide(a) @ HALVES[1:2].T, name="MatMulNBits-column",
     constants={"b": NIBBLES[1:2].reshape(1, 1, 8), "s": STEPS[1:2].reshape(1)}, K=16, N=1, bits=4, block_size=16, **MICROSOFT)
case("Gather", "x:f n c; i:i p", lambda x, i: wide(np.take(x, i, 0)), data={"i": lambda r, shape, s: np.zeros(shape)}, name="Gather-rows",
     forbidden=lambda s: NO_INDEX if s["n"] == 0 and s["p"] else None)
case("GatherElements", "x:f n c; i:i p c", lambda x, i: wide(np.take_along_axis(x, i, 0)), data={"i": lambda r, shape, s: np.zeros(shape)},
     forbidden=lambda s: NO_INDEX if s["n"] == 0 and s["p"] and s["c"] else None)
case("GatherND", "x:f n c w; i:i p 2", lambda x, i: wide(x[i[:, 0], i[:, 1]]), data={"i": lambda r, shape, s: np.zeros(shape)},
     forbidden=lambda s: NO_INDEX if 0 in (s["n"], s["c"]) and s["p"] else None)
for op in ("Scatter", "ScatterElements"):
    case(op, "x:f n c; i:i p c; u:f p c", lambda x, i, u: wide(scatter_elements(x, i, u)), data={"i": lambda r, shape, s: np.broadcast_to(np.arange(shape[0])[:, None], shape)},
         base={"n": 4, "p": 2}, opset=9 if op == "Scatter" else 18, forbidden=lambda s: NO_INDEX if s["p"] > s["n"] and s["c"] else None)
case("ScatterND", "x:f n c; i:i p 1; u:f p c", lambda x, i, u: scatter_rows(x, i, u), data={"i": lambda r, shape, s: np.arange(shape[0])[:, None]}, base={"n": 4, "p": 2},
     forbidden=lambda s: NO_INDEX if s["p"] > s["n"] else None)
case("Compress", "x:f n c; p:b n", lambda x, p: wide(x[p]), axis=0)
case("NonZero", "x:f n c", lambda x: np.array(np.nonzero(x)).astype(np.int64))
case("OneHot", "i:i n p; d:i; v:f 2", lambda i, d, v: wide(np.where((i % 3)[..., None] == np.arange(3), v[1], v[0])), constants={"d": np.array(3)},
     data={"i": lambda r, shape, s: r.integers(-3, 3, shape)})
case("OneHot", "i:i n; d:i; v:f 2", lambda i, d, v: np.zeros((len(i), 0)), constants={"d": np.array(0)}, name="OneHot-0")
case("Trilu", "x:f n m w", lambda x: wide(np.triu(x)), upper=1)
case("EyeLike", "x:f n c", lambda x: np.eye(*x.shape))
case("Range", "a:i; b:i; c:i", lambda a, b, c: np.arange(a, b, c), constants={"a": np.array(3), "b": np.array(3), "c": np.array(1)}, name="Range-0")
case("Range", "a:f; b:f; c:f", lambda a, b, c: np.arange(0, 1, 2.0), constants={"a": np.array(0, np.float32), "b": np.array(1, np.float32), "c": np.array(2, np.float32)}, name="Range-1")
case("ReverseSequence", "x:f n c w; l:i c", lambda x, l: np.stack([np.concatenate([x[:k, i][::-1], x[k:, i]]) for i, k in enumerate(l)], 1).astype(np.float64) if x.shape[1] else wide(x),
     data={"l": lambda r, shape, s: np.full(shape, min(2, max(s["n"], 1)))}, time_axis=0, batch_axis=1,
     forbidden=lambda s: "ReverseSequence: lengths are in [1, the dim of the time axis]." if s["n"] == 0 else None)
case("Shape", "x:f n c w", lambda x: np.array(x.shape))
case("Size", "x:f n c w", lambda x: np.array(x.size))
case("TopK", "x:f n c; k:i 1", lambda x, k: topk(x, 1), constants={"k": np.array([1])}, results=2, forbidden=when(TOPK, "c"))
case("TopK", "x:f n c; k:i 1", lambda x, k: topk(x, 0), constants={"k": np.array([0])}, results=2, name="TopK-0")
case("Unique", "x:i n c", unique, results=4)
case("TensorScatter", "x:f b 2 t d; u:f b 2 s d; i:i b", lambda x, u, i: tensor_scattered(x, u, i), opset=24, data={"i": lambda r, shape, s: np.zeros(shape)}, base={"b": 2, "t": 4, "s": 2},
     forbidden=lambda s: "TensorScatter: the write indices and the sequence length of the update stay within the cache." if s["s"] > s["t"] else None)
case("ConstantOfShape", "s:i 2", lambda s: np.zeros((2, 0)), constants={"s": np.array([2, 0])})
case("ConstantOfShape", "s:i 0", lambda s: np.zeros(()), constants={"s": np.array([], np.int64)}, name="ConstantOfShape-scalar")

# --- Recurrent --------------------------------------------------------------------------------------------------------

case("LSTM", "x:f t n c; w:f 1 8 c; r:f 1 8 2; b:f 1 16", lstm, results=3, hidden_size=2)
case("GRU", "x:f t n c; w:f 1 6 c; r:f 1 6 2; b:f 1 12", gru, results=2, hidden_size=2, attributes={"linear_before_reset": 0})
case("RNN", "x:f t n c; w:f 1 2 c; r:f 1 2 2; b:f 1 4", rnn, results=2, hidden_size=2)

# --- Signals, losses, boxes -------------------------------------------------------------------------------------------

case("DFT", "x:f n w 2; ; axis:i", lambda x, a: dft(x), constants={"axis": np.array(1)}, opset=20)
case("DFT", "x:f n w 1; ; axis:i", lambda x, a: dft(x), constants={"axis": np.array(1)}, opset=20, name="DFT-real")
case("STFT", "x:f n 8 1; step:i; win:f 4", lambda x, s, win: stft(x, win), constants={"step": np.array(2)}, opset=17)
for name, terms in {"HannWindow": (0.5, 0.5, 0), "HammingWindow": (25 / 46, 21 / 46, 0), "BlackmanWindow": (0.42, 0.5, 0.08)}.items():
    for size in (0, 1):
        case(name, "size:i", lambda n, t=terms: t[0] - t[1] * np.cos(2 * np.pi * np.arange(n) / n) + t[2] * np.cos(4 * np.pi * np.arange(n) / n), constants={"size": np.array(size)},
             opset=17, name=f"{name}-{size}", forbidden=lambda s: None)
case("NegativeLogLikelihoodLoss", "x:f n c w; t:i n w", lambda x, t: loss(x, t), data={"t": lambda r, shape, s: np.zeros(shape)}, forbidden=lambda s: NO_INDEX if s["c"] == 0 else None)
case("SoftmaxCrossEntropyLoss", "x:f n c w; t:i n w", lambda x, t: loss(softmax(x, 1, True), t), data={"t": lambda r, shape, s: np.zeros(shape)}, forbidden=lambda s: NO_INDEX if s["c"] == 0 else None)
case("NonMaxSuppression", "b:f n p 4; s:f n c p; m:i; o:f", lambda b, s, m, o: nms(b, s), constants={"m": np.array(2), "o": np.array(0.5, np.float32)},
     data={"b": lambda r, shape, s: np.concatenate([r.uniform(0, 0.5, (*shape[:2], 2)), r.uniform(0.6, 1, (*shape[:2], 2))], 2)})
case("RotaryEmbedding", "x:f n 2 t 4; c:f n t 2; s:f n t 2", lambda x, c, s: rotated(x, c, s), opset=23)

# --- ai.onnx.ml -------------------------------------------------------------------------------------------------------

ML = {"domain": "ai.onnx.ml"}
case("Binarizer", "x:f n c", lambda x: np.where(x > 0.2, 1.0, 0.0), threshold=0.2, **ML)
case("Scaler", "x:f n 3", lambda x: (wide(x) - [1, 2, 3]) * [0.5, 1, 2], offset=[1.0, 2.0, 3.0], scale=[0.5, 1.0, 2.0], **ML)
case("Normalizer", "x:f n c", lambda x: np.nan_to_num(wide(x) / np.sqrt((wide(x) ** 2).sum(1, keepdims=True))), norm="L2", **ML)
case("Imputer", "x:f n 1", lambda x: np.where(np.isnan(x), 2.0, wide(x)), imputed_value_floats=[2.0], **ML)
case("LinearRegressor", "x:f n 3", lambda x: wide(x) @ [[1.0], [2.0], [3.0]] + 0.5, coefficients=[1.0, 2.0, 3.0], intercepts=[0.5], targets=1, **ML)
case("LabelEncoder", "x:i n c", lambda x: np.where(x == 1, 10, np.where(x == 2, 20, -1)).astype(np.int64), keys_int64s=[1, 2], values_int64s=[10, 20], default_int64=-1, **ML)
case("OneHotEncoder", "x:i n", lambda x: (x[:, None] == [0, 1, 2]).astype(np.float64), cats_int64s=[0, 1, 2], **ML)
case("ArrayFeatureExtractor", "x:f n c; i:i 1", lambda x, i: wide(x[:, [0]]), constants={"i": np.array([0])}, forbidden=when(NO_INDEX, "c"), **ML)
case("ZipMap", "x:f n 2", lambda x: wide(x), classlabels_int64s=[4, 7], **ML)
case("FeatureVectorizer", "x:f n 2; y:f n 1", lambda x, y: wide(np.concatenate([x, y], 1)), inputdimensions=[2, 1], **ML)
case("TreeEnsembleRegressor", "x:f n 2", lambda x: np.where(x[:, :1] <= 0.5, 1.0, 2.0), n_targets=1, nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0],
     nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values=[0.5, 0.0, 0.0], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], target_treeids=[0, 0],
     target_nodeids=[1, 2], target_ids=[0, 0], target_weights=[1.0, 2.0], **ML)
case("LinearClassifier", "x:f n 2", lambda x: classified(wide(x) @ np.array([[1.0, -1.0], [0.5, 2.0]]).T + [0.1, 0.2]), results=2, coefficients=[1.0, -1.0, 0.5, 2.0], intercepts=[0.1, 0.2],
     classlabels_ints=[4, 7], **ML)

case("SVMRegressor", "x:f n 2", lambda x: (kernels(x, [[1, 0.5], [-0.5, 2]], 0.5) @ [1, -1] + 0.25)[:, None], coefficients=[1.0, -1.0], kernel_params=[0.5, 0.0, 3.0],
     kernel_type="RBF", n_supports=2, post_transform="NONE", rho=[0.25], support_vectors=[1.0, 0.5, -0.5, 2.0], **ML)
case("SVMClassifier", "x:f n 2", lambda x: voted(kernels(x, [[1, 0.5], [-0.5, 2]]) @ [1, -1] + 0.03125), results=2, coefficients=[1.0, -1.0], kernel_params=[0.5, 0.0, 3.0],
     kernel_type="LINEAR", classlabels_ints=[4, 7], post_transform="NONE", rho=[0.03125], support_vectors=[1.0, 0.5, -0.5, 2.0], vectors_per_class=[1, 1], **ML)
case("SVMClassifier", "x:f n 2", lambda x: coupled(kernels(x, [[1, 0.5], [-0.5, 2], [0.25, -1]]) @ [[0.5, 1, 0], [-0.75, 0, 1.5], [0, -0.5, -1]] + [0.1, -0.2, 0.3],
                                                [-1.5, -1.0, -2.0], [0.1, 0.0, -0.1]),
     results=2, coefficients=[0.5, -0.75, -0.5, 1.0, 1.5, -1.0], kernel_params=[0.5, 0.0, 3.0], kernel_type="LINEAR", classlabels_ints=[4, 7, 9], post_transform="NONE",
     rho=[0.1, -0.2, 0.3], support_vectors=[1.0, 0.5, -0.5, 2.0, 0.25, -1.0], vectors_per_class=[1, 1, 1], prob_a=[-1.5, -1.0, -2.0], prob_b=[0.1, 0.0, -0.1], **ML)
case("TreeEnsembleClassifier", "x:f n 2", leaf_classes, results=2, opset=17, classlabels_int64s=[4, 7, 9], post_transform="NONE", nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2],
     nodes_featureids=[0, 0, 0], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values=[0.5, 0.0, 0.0], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0],
     class_treeids=[0, 0, 0], class_nodeids=[1, 1, 2], class_ids=[0, 1, 2], class_weights=[0.5, 0.25, 1.0], **ML)


def numbers(kind, *values):
    dtype = {onnx.FLOAT: np.float32, onnx.UINT8: np.uint8}[kind]
    return "t", onnx.tensor("", kind, [len(values)], raw=np.array(values, dtype).tobytes())


case("TreeEnsemble", "x:f n 2", lambda x: np.where(x[:, :1] <= 0.375, [0.5, 0.0], [0.0, 0.25]), opset=22, n_targets=2, aggregate_function=1, post_transform=0, tree_roots=[0],
     nodes_featureids=[0], nodes_modes=numbers(onnx.UINT8, 0), nodes_splits=numbers(onnx.FLOAT, 0.375), nodes_truenodeids=[0], nodes_trueleafs=[1], nodes_falsenodeids=[1],
     nodes_falseleafs=[1], leaf_targetids=[0, 1], leaf_weights=numbers(onnx.FLOAT, 0.5, 0.25), **ML)
case("TfIdfVectorizer", "x:i n", tf, data={"x": lambda r, shape, s: r.integers(0, 4, shape)}, max_gram_length=lambda s: 2, min_gram_length=1, max_skip_count=0, mode="TF", ngram_counts=[0, 3],
     ngram_indexes=[0, 1, 2, 3, 4], pool_int64s=[1, 2, 3, 1, 2, 2, 3])
for bins, length in ((8, 16), (1, 16), (0, 16), (4, 2)):
    case("MelWeightMatrix", "b:i; l:i; r:i; low:f; high:f", mel_weights, name=f"MelWeightMatrix-{bins}-{length}", constants={
        "b": np.array(bins), "l": np.array(length), "r": np.array(8192), "low": np.array(0), "high": np.array(4096)})
case("SwiGLU", "x:f n c; y:f n c", lambda x, y: wide(x) * sigmoid(x) * wide(y), opset=28)
case("CausalConvWithState", "x:f n 3 w; k:f 3 1 3", causal_conv, results=2, opset=27)
case("CausalConvWithState", "x:f n c w; k:f c 1 3", causal_conv, results=2, opset=27, name="CausalConvWithState-channels", activation=lambda s: "none")  # as many groups
for name, heads, scale in (("", "2", 0.5), ("-heads", "h", lambda s: 0.5)):  # the number of heads is the model's
    case("FlexAttention", f"q:f n {heads} t 4; k:f n {heads} p 4; v:f n {heads} p c", lambda q, k, v: softmax(wide(q) @ np.swapaxes(wide(k), 2, 3) / 2, 3) @ wide(v), opset=26,
         domain="ai.onnx.preview", name="FlexAttention" + name, scale=scale)
case("LinearAttention", "q:f n 3 8; k:f n 3 8; v:f n 3 4", linear_attention, results=2, opset=27, q_num_heads=2, kv_num_heads=2, update_rule="linear", scale=1.0)
case("LinearAttention", "q:f n t 8; k:f n t 8; v:f n t 4", linear_attention, results=2, opset=27, name="LinearAttention-tokens", q_num_heads=lambda s: 2, kv_num_heads=2,
     update_rule="linear", scale=1.0)  # unrolled: the number of tokens is the model's

# --- Sequences and control flow ---------------------------------------------------------------------------------------

case("SequenceConstruct", "x:f n c; y:f m c", lambda x, y: wide(np.concatenate([x, y])), nodes=lambda i, o: [
    ("SequenceConstruct", i, ["seq" + o[0]]), ("ConcatFromSequence", ["seq" + o[0]], o, {"axis": 0})])
case("SplitToSequence", "x:f 4 c", lambda x: wide(x[1:2]), constants={}, nodes=lambda i, o: [
    ("SplitToSequence", i, ["seq" + o[0]], {"axis": 0}), ("Constant", [], ["at" + o[0]], {"value_int": 1}), ("SequenceAt", ["seq" + o[0], "at" + o[0]], o)])
case("SequenceLength", "x:f n c; y:f m c", lambda x, y: np.array(2), nodes=lambda i, o: [("SequenceConstruct", i, ["seq" + o[0]]), ("SequenceLength", ["seq" + o[0]], o)])
case("SequenceErase", "x:f n c; y:f m c", lambda x, y: wide(y), nodes=lambda i, o: [
    ("SequenceConstruct", i, ["seq" + o[0]]), ("Constant", [], ["zero" + o[0]], {"value_int": 0}), ("SequenceErase", ["seq" + o[0], "zero" + o[0]], ["left" + o[0]]),
    ("SequenceAt", ["left" + o[0], "zero" + o[0]], o)])
case("SequenceInsert", "x:f n c; y:f m c", lambda x, y: wide(np.concatenate([x, y])), nodes=lambda i, o: [
    ("SequenceEmpty", [], ["none" + o[0]]), ("SequenceInsert", ["none" + o[0], i[0]], ["one" + o[0]]), ("SequenceInsert", ["one" + o[0], i[1]], ["two" + o[0]]),
    ("ConcatFromSequence", ["two" + o[0]], o, {"axis": 0})])
case("OptionalGetElement", "x:f n c", lambda x: (wide(x), np.array(True)), results=2, nodes=lambda i, o: [
    ("Optional", i, ["opt" + o[0]]), ("OptionalGetElement", ["opt" + o[0]], [o[0]]), ("OptionalHasElement", ["opt" + o[0]], [o[1]])])


def branch(op, source, result):
    return ("g", onnx.graph([onnx.node(op, source, result)], outputs=[onnx.info(result, onnx.FLOAT, None)]))


def loop(inputs, outputs):
    """Sums the second operand as often as the first says; all sums are kept."""
    o = outputs[0]
    body = onnx.graph([onnx.node("Add", f"acc{o} {inputs[1]}", f"next{o}"), onnx.node("Identity", f"next{o}", f"kept{o}"), onnx.node("Identity", f"go{o}", f"again{o}")],
                      [onnx.info(f"i{o}", onnx.INT64, []), onnx.info(f"go{o}", onnx.BOOL, []), onnx.info(f"acc{o}", onnx.FLOAT, None)],
                      [onnx.info(f"again{o}", onnx.BOOL, []), onnx.info(f"next{o}", onnx.FLOAT, None), onnx.info(f"kept{o}", onnx.FLOAT, None)])
    return [("Loop", [inputs[0], "", inputs[1]], outputs, {"body": ("g", body)})]


def scan(inputs, outputs):
    o = outputs[0]
    body = onnx.graph([onnx.node("Add", f"s{o} row{o}", f"sum{o}"), onnx.node("Identity", f"sum{o}", f"out{o}")],
                      [onnx.info(f"s{o}", onnx.FLOAT, None), onnx.info(f"row{o}", onnx.FLOAT, None)],
                      [onnx.info(f"sum{o}", onnx.FLOAT, None), onnx.info(f"out{o}", onnx.FLOAT, None)])
    return [("Scan", inputs, outputs, {"body": ("g", body), "num_scan_inputs": 1})]


for value in (True, False):
    case("If", "p:b; x:f n c", lambda p, x: np.where(p, -wide(x), np.exp(wide(x))), data={"p": lambda r, shape, s, v=value: v}, name=f"If-{value}",
         nodes=lambda i, o: [("If", [i[0]], o, {"then_branch": branch("Neg", i[1], "t" + o[0]), "else_branch": branch("Exp", i[1], "e" + o[0])})])
for trips in (0, 1, 3):
    case("Loop", "m:i; x:f n c", lambda m, x: (wide(x) * (int(m) + 1), np.stack([wide(x) * (k + 2) for k in range(int(m))]) if m else np.zeros((0, *x.shape))),
         results=2, data={"m": lambda r, shape, s, v=trips: v}, name=f"Loop-{trips}", nodes=loop)
case("Scan", "s:f n c; x:f t n c", lambda s, x: (wide(s) + wide(x).sum(0), s + np.cumsum(wide(x), 0)), results=2, nodes=scan)



def negated(inputs, outputs):
    """A sequence of both operands, each negated by the body, joined again."""
    o = outputs[0]
    body = onnx.graph([onnx.node("Neg", f"each{o}", f"neg{o}")], [onnx.info(f"each{o}", onnx.FLOAT, None)], [onnx.info(f"neg{o}", onnx.FLOAT, None)])
    return [("SequenceConstruct", inputs, [f"seq{o}"]), ("SequenceMap", [f"seq{o}"], [f"all{o}"], {"body": ("g", body)}), ("ConcatFromSequence", [f"all{o}"], outputs, {"axis": 0})]


case("SequenceMap", "x:f n c; y:f m c", lambda x, y: -wide(np.concatenate([x, y])), nodes=negated)

# Operators that stand inside other cases.
INSIDE = {"ConcatFromSequence", "SequenceAt", "SequenceEmpty", "Constant", "Optional", "OptionalHasElement"}
