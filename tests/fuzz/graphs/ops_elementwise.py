"""Operators that compute element by element."""
import math

import numpy as np

from builder import PLAIN, op
from graph import ANY, CODES, FLOATS, INTS, NUMBERS, NUMPY, SIGNED, UNSIGNED, WIDE, Skip, bounds, is_float

erf = np.vectorize(math.erf)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def swish(x, alpha=1.0):
    return x * sigmoid(alpha * x)


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))


def softplus(x):
    return np.log1p(np.exp(x))


def ranged(function, lo, hi):
    """The range and the largest slope of a smooth function, from samples."""
    xs = np.linspace(lo, hi, 201) if hi > lo else np.array([lo, lo + 1e-6])
    ys = function(xs)
    slope = float(np.max(np.abs(np.diff(ys)) / (xs[1] - xs[0]))) * 1.1
    room = slope * (xs[1] - xs[0])
    return float(ys.min() - room), float(ys.max() + room), slope


# name: function, since when, range of operands, attributes that are drawn
SMOOTH = {
    "Acos": (np.arccos, 7, -0.9, 0.9), "Acosh": (np.arccosh, 9, 1.25, 8), "Asin": (np.arcsin, 7, -0.9, 0.9), "Asinh": (np.arcsinh, 9, -8, 8),
    "Atan": (np.arctan, 7, -8, 8), "Atanh": (np.arctanh, 9, -0.8, 0.8), "Cos": (np.cos, 7, -20, 20), "Cosh": (np.cosh, 9, -4, 4),
    "Erf": (erf, 9, -4, 4), "Exp": (np.exp, 6, -6, 4), "HardSwish": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), 14, -8, 8),
    "Log": (np.log, 6, 0.25, 100), "Mish": (lambda x: x * np.tanh(softplus(x)), 18, -8, 8), "Reciprocal": (lambda x: 1 / x, 6, 0.25, 50),
    "Sigmoid": (sigmoid, 6, -12, 12), "Sin": (np.sin, 7, -20, 20), "Sinh": (np.sinh, 9, -4, 4), "Softplus": (softplus, 1, -12, 12),
    "Softsign": (lambda x: x / (1 + abs(x)), 1, -50, 50), "Sqrt": (np.sqrt, 6, 0.25, 100), "Tan": (np.tan, 7, -1.2, 1.2), "Tanh": (np.tanh, 6, -12, 12)}


def smooth(g, name):
    function, _, lo, hi = SMOOTH[name]
    v = g.floats(lo=lo, hi=hi)
    low, high, slope = ranged(function, v.lo, v.hi)
    g.like(g.node(name, [v]), v, lo=low, hi=high, err=v.err * slope, step=None, rounding=8)


for _name, _entry in SMOOTH.items():
    op(_name, since=_entry[1], weight=0.4)(lambda g, n=None, m=_name: smooth(g, m))


@op("Celu", "Elu", "LeakyRelu", "HardSigmoid", "Selu", "ThresholdedRelu", "Gelu", "Swish", weight=0.5)
def with_attributes(g, name):
    since = {"Celu": 12, "Gelu": 20, "Swish": 24, "ThresholdedRelu": 10}.get(name, 6)
    if g.graph.opset < since:
        raise Skip
    a, b = g.choose(0.25, 0.5, 1.0), g.choose(0.25, 0.5, 1.0)
    tanh = g.chance(0.5)
    function, attributes = {
        "Celu": (lambda x: np.maximum(x, 0) + np.minimum(0, a * np.expm1(x / a)), dict(alpha=a)),
        "Elu": (lambda x: np.where(x > 0, x, a * np.expm1(x)), dict(alpha=a)),
        "LeakyRelu": (lambda x: np.where(x > 0, x, a * x), dict(alpha=a)),
        "HardSigmoid": (lambda x: np.clip(a * x + b, 0, 1), dict(alpha=a, beta=b)),
        "Selu": (lambda x: b * np.where(x > 0, x, a * np.expm1(x)), dict(alpha=a, gamma=b)),
        "ThresholdedRelu": (lambda x: np.where(x > a, x, 0), dict(alpha=a)),
        "Gelu": (gelu_tanh if tanh else gelu, dict(approximate="tanh" if tanh else "none")),
        "Swish": (lambda x: swish(x, a), dict(alpha=a))}[name]
    v = g.floats(exact=name == "ThresholdedRelu")
    low, high, slope = ranged(function, v.lo, v.hi)
    err = v.err * slope + (1e-6 * v.top if name == "Gelu" else 0)  # the constants of its definition are f32
    g.like(g.node(name, [v], **attributes), v, lo=low, hi=high, err=err, step=None, rounding=8, hazy=name == "ThresholdedRelu")


MICROSOFT = "com.microsoft"


@op(*(f"{MICROSOFT}.{name}" for name in ("Gelu", "BiasGelu", "FastGelu", "QuickGelu")), weight=0.4)
def contributed(g, name):
    name = name.removeprefix(MICROSOFT + ".")
    v = g.floats(dtypes=("f32",), lo=-50, hi=50)
    operands, lo, hi, err = [v], v.lo, v.hi, v.err
    if name in ("BiasGelu", "FastGelu") and v.rank and (name == "BiasGelu" or g.chance(0.5)):
        bias = g.fresh("f32", v.dims[-1:], -1.0, 1.0)
        operands, lo, hi, err = [v, bias], v.lo + bias.lo, v.hi + bias.hi, v.err + bias.err
    elif name == "BiasGelu":
        raise Skip
    function = {"FastGelu": gelu_tanh, "QuickGelu": lambda x: swish(x, 1.702)}.get(name, gelu)
    low, high, slope = ranged(function, lo, hi)
    attributes = {"alpha": 1.702} if name == "QuickGelu" else {}
    g.like(g.node(name, operands, domain=MICROSOFT, **attributes), v, lo=low, hi=high, err=err * slope + 1e-6 * max(abs(lo), abs(hi)),
           step=None, rounding=8)


@op("Abs", "Neg", "Relu", "Identity")
def simple(g, name):
    dtypes = FLOATS + INTS if name == "Abs" else FLOATS + SIGNED if name == "Neg" else FLOATS + (SIGNED if g.graph.opset >= 14 else ())
    v = g.pick(ANY if name == "Identity" else dtypes)
    if v.dtype == "bf16" and g.graph.opset < 14:
        raise Skip
    lo, hi = {"Abs": (0 if v.lo <= 0 <= v.hi else min(abs(v.lo), abs(v.hi)), v.top), "Neg": (-v.hi, -v.lo), "Relu": (max(v.lo, 0), max(v.hi, 0)),
              "Identity": (v.lo, v.hi)}[name]
    g.like(g.node(name, [v]), v, lo=lo, hi=hi)


@op("Ceil", "Floor", "Round", "Sign", since=13)
def jumps(g, name):
    dtypes = FLOATS + INTS if name == "Sign" else FLOATS
    v = g.pick(dtypes, where=lambda v: v.exact, step=lambda d: 0.25 if is_float(d) else 1)
    if v.dtype == "bf16" and name == "Round" and g.graph.opset < 22:
        raise Skip
    lo, hi = (-1, 1) if name == "Sign" else (math.floor(v.lo), math.ceil(v.hi))
    g.like(g.node(name, [v]), v, lo=lo if v.lo < 0 else 0 if name == "Sign" else lo, hi=hi, step=1, hazy=is_float(v.dtype))


@op("Shrink", since=9, weight=0.4)
def shrink(g):
    v = g.floats(exact=True)
    g.like(g.node("Shrink", [v], bias=0.5, lambd=1.0), v, lo=min(v.lo + 0.5, 0), hi=max(v.hi, 0), step=min(v.step or 0.5, 0.5), hazy=True)


@op("Not", weight=0.6)
def logical_not(g):
    v = g.pick(("bool",))
    g.like(g.node("Not", [v]), v)


@op("And", "Or", "Xor", since=7, weight=0.7)
def logical(g, name):
    a = g.pick(("bool",))
    b = g.partner(a)
    g.value(g.node(name, [a, b]), "bool", g.broadcast(a.dims, b.dims), 0, 1)


@op("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", since=18, weight=0.4)
def bitwise(g, name):
    a = g.pick(INTS)
    low, high = bounds(a.dtype)
    bits = 2 ** int(a.top + 1).bit_length() - 1
    if name == "BitwiseNot":
        if a.dtype in UNSIGNED:
            return g.like(g.node(name, [a]), a, lo=low, hi=high)
        return g.like(g.node(name, [a]), a, lo=-a.hi - 1, hi=-a.lo - 1)
    b = g.partner(a)
    bits = max(bits, 2 ** int(b.top + 1).bit_length() - 1)
    g.value(g.node(name, [a, b]), a.dtype, g.broadcast(a.dims, b.dims), max(low, -bits - 1), min(high, bits))


@op("BitShift", since=11, weight=0.4)
def bit_shift(g):
    a = g.pick(UNSIGNED)
    b = g.fresh(a.dtype, [d if g.chance(0.7) else g.static(1) for d in a.dims], lo=0, hi=3)
    left = g.chance(0.5)
    g.value(g.node("BitShift", [a, b], direction="LEFT" if left else "RIGHT"), a.dtype, a.dims, 0, a.hi * 8 if left else a.hi)


def grid(*steps):
    return min(steps) if all(steps) else None


@op("Add", "Sub", "Mul", since=7, weight=2.0)
def arithmetic(g, name):
    a = g.pick(NUMBERS if g.graph.opset >= 14 else ("f32", "f64", "i32", "i64"))
    if a.dtype == "bf16" and g.graph.opset < 13:
        raise Skip
    b = a if g.chance(0.05) else g.partner(a)
    if g.chance(0.5):
        a, b = b, a
    if name == "Mul":
        corners = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
        lo, hi, err, step = min(corners), max(corners), a.err * b.top + b.err * a.top, a.step * b.step if a.step and b.step else None
    else:
        lo, hi = (a.lo + b.lo, a.hi + b.hi) if name == "Add" else (a.lo - b.hi, a.hi - b.lo)
        err, step = a.err + b.err, grid(a.step, b.step)
    g.value(g.node(name, [a, b]), a.dtype, g.broadcast(a.dims, b.dims), lo, hi, err, step)


@op("Div", since=7)
def divide(g):
    a = g.pick(WIDE + ("i32", "i64") + (("f16",) if g.graph.opset > 12 else ()))
    b = g.partner(a)
    if is_float(a.dtype):
        if b.lo < 0.25:
            magnitude = g.like(g.node("Abs", [b]), b, lo=0, hi=b.top)
            one = g.scalar(0.5, a.dtype)
            b = g.like(g.node("Add", [magnitude, one]), magnitude, lo=0.5, hi=b.top + 0.5, step=grid(b.step, 0.5))
        least = b.lo
        return g.value(g.node("Div", [a, b]), a.dtype, g.broadcast(a.dims, b.dims), -a.top / least, a.top / least,
                       a.err / least + b.err * a.top / least ** 2, rounding=2)
    divisor = g.fresh(a.dtype, [g.static(1) if g.chance(0.5) else d for d in a.dims], lo=g.choose(1, 2), hi=7)
    g.value(g.node("Div", [a, divisor]), a.dtype, a.dims, -a.top, a.top)


@op("Mod", since=13, weight=0.5)
def modulo(g):
    a = g.pick(("i8", "i32", "i64", "u8", "f32"), where=lambda v: v.exact)
    real = is_float(a.dtype)
    b = g.fresh(a.dtype, [g.static(1) if g.chance(0.5) else d for d in a.dims], lo=1 if real else g.choose(1, 2), hi=8 if real else 7, step=0.25 if real else 1)
    f = real or g.chance(0.4)
    lo = 0 if a.lo >= 0 else -8 if f else 0
    g.value(g.node("Mod", [a, b], fmod=int(f)), a.dtype, a.dims, lo, 8, 0, grid(a.step, b.step), hazy=real)


@op("Pow", since=13, weight=0.5)
def power(g):
    if g.chance(0.5):
        a = g.floats(lo=0.25, hi=6)
        e = g.choose(2.0, 0.5, -1.0, 3.0, 1.5)
        lo, hi, slope = ranged(lambda x: x ** e, a.lo, a.hi)
        return g.like(g.node("Pow", [a, g.scalar(e, "f32" if a.dtype == "f16" else a.dtype)]), a, lo=lo, hi=hi, err=a.err * slope, step=None, rounding=8)
    a = g.pick(("i32", "i64"), where=lambda v: v.top <= 12, lo=-3, hi=3)
    e = g.choose(0, 1, 2, 3)
    g.like(g.node("Pow", [a, g.scalar(e, a.dtype)]), a, lo=-max(1, a.top) ** e, hi=max(1, a.top) ** e)


@op("Max", "Min", since=8)
def extreme(g, name):
    a = g.pick(("f32", "f64", "i32", "i64") + (("f16", "u8", "i8") if g.graph.opset >= 12 else ()))
    operands = [a] + [g.partner(a) for _ in range(g.choose(0, 1, 1, 1, 2))]
    dims = a.dims
    for b in operands[1:]:
        dims = g.broadcast(dims, b.dims)
    f = max if name == "Max" else min
    g.value(g.node(name, operands), a.dtype, dims, f(v.lo for v in operands), f(v.hi for v in operands), max(v.err for v in operands),
            grid(*(v.step for v in operands)), rounding=0)


@op("Sum", "Mean", since=8, weight=0.5)
def total(g, name):
    a = g.floats(dtypes=WIDE)
    operands = [a] + [g.partner(a) for _ in range(g.choose(0, 1, 2, 3))]
    dims = a.dims
    for b in operands[1:]:
        dims = g.broadcast(dims, b.dims)
    n = len(operands) if name == "Mean" else 1
    g.value(g.node(name, operands), a.dtype, dims, sum(v.lo for v in operands) / n, sum(v.hi for v in operands) / n, sum(v.err for v in operands),
            grid(*(v.step for v in operands)) if name == "Sum" else None, rounding=4)


@op("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", since=13, weight=0.6)
def compare(g, name):
    if "OrEqual" in name and g.graph.opset < 12:
        raise Skip
    a = g.pick(("f32", "f64", "f16") + INTS + (("bool",) if name == "Equal" else ()), where=lambda v: v.exact, step=lambda d: 0.25 if is_float(d) else 1)
    b = g.partner(a, step=0.25 if is_float(a.dtype) else 1)
    if not b.exact:
        raise Skip
    g.value(g.node(name, [a, b]), "bool", g.broadcast(a.dims, b.dims), 0, 1, hazy=is_float(a.dtype))


@op("PRelu", since=9, weight=0.5)
def prelu(g):
    a = g.pick(("f32", "f64"))
    slope = g.fresh(a.dtype, [g.static(1) if g.chance(0.6) else d for d in a.dims], lo=-1, hi=1, step=0.25)
    g.like(g.node("PRelu", [a, slope]), a, lo=-a.top, hi=a.top, err=a.err, step=a.step and a.step * 0.25)


@op("Where", since=9)
def where(g):
    a = g.pick(ANY)
    b = g.partner(a)
    dims = g.broadcast(a.dims, b.dims)
    c = g.pick(("bool",), where=lambda v: g.fits(v.dims, dims) and v.known, dims=lambda _: [d if g.chance(0.7) else g.static(1) for d in dims])
    g.value(g.node("Where", [c, a, b]), a.dtype, g.broadcast(c.dims, dims), min(a.lo, b.lo), max(a.hi, b.hi), max(a.err, b.err), grid(a.step, b.step), rounding=0)


@op("Clip", since=12, weight=0.6)
def clip(g):
    v = g.pick(("f32", "f64", "f16", "i8", "u8", "i32", "i64"), where=lambda v: v.hi - v.lo >= 1)
    number = float if is_float(v.dtype) else int
    grid_ = v.step or 0.25
    lo, hi = (number(math.floor((v.lo + (v.hi - v.lo) * f) / grid_) * grid_) for f in (0.25, 0.75))
    low, high = (g.scalar(lo, v.dtype) if g.chance(0.8) else None), (g.scalar(hi, v.dtype) if g.chance(0.8) else None)
    g.like(g.node("Clip", [v, low, high]), v, lo=lo if low else v.lo, hi=hi if high else v.hi)


@op("Clip#attributes", since=6, until=10)
def clip_old(g):
    v = g.floats(dtypes=("f32",), where=lambda v: v.hi - v.lo >= 1)
    g.like(g.node("Clip", [v], min=-0.5, max=0.5), v, lo=max(v.lo, -0.5) if v.lo < 0.5 else 0.5, hi=min(v.hi, 0.5) if v.hi > -0.5 else -0.5,
           step=grid(v.step, 0.5))


NARROW = ("f8e4m3fn", "f8e5m2")


@op("Cast", since=9, weight=1.5)
def cast(g):
    v = g.pick(ANY)
    targets = [d for d in g.style.types if d != v.dtype and (d != "bf16" or g.graph.opset >= 13)]
    to = g.choose(*targets)
    if to == "bool":
        if not v.exact:
            raise Skip
        return g.value(g.node("Cast", [v], to=CODES[to]), to, v.dims, 0, 1, hazy=is_float(v.dtype))
    if not is_float(to):
        low, high = bounds(to)
        if is_float(v.dtype) and not v.exact or v.lo < low or v.hi > high:
            raise Skip
        return g.like(g.node("Cast", [v], to=CODES[to]), v, dtype=to, lo=math.floor(v.lo), hi=math.ceil(v.hi), step=1, hazy=is_float(v.dtype))
    g.like(g.node("Cast", [v], to=CODES[to]), v, dtype=to, rounding=1)


@op("Cast#narrow", since=19, weight=0.5)
def cast_narrow(g):
    """To 8 bits and back; values of the coarse grid that both have."""
    v = g.floats(dtypes=("f32", "f16"), exact=True, where=lambda v: v.step >= 0.25 and v.top <= 3)
    to = g.choose(*NARROW)
    if v.top / v.step > 2 ** (3 if to == "f8e5m2" else 4):
        raise Skip
    eight = g.node("Cast", [v], to=CODES[to])
    g.like(g.node("Cast", [eight], to=CODES[v.dtype]), v, hazy=v.hazy)


@op("Cast#nibbles", since=21, weight=0.4)
def cast_nibbles(g):
    v = g.pick(("i32", "i8", "i64", "u8", "f32"), where=lambda v: v.exact and -8 <= v.lo and v.hi <= 7 and (v.step or 0) >= 1, lo=0, hi=7, step=1)
    to = "u4" if v.lo >= 0 and g.chance(0.5) else "i4"
    four = g.node("Cast", [v], to=CODES[to])
    back = g.choose("i32", "i8" if v.lo < 0 else "u8", "f32")
    g.like(g.node("Cast", [four], to=CODES[back]), v, dtype=back)


@op("CastLike", since=15, weight=0.5)
def cast_like(g):
    v = g.pick(("f32", "i32", "i64", "bool", "u8"), where=lambda v: 0 <= v.lo or v.dtype != "i64")
    to = g.choose("f32", "f64")
    other = g.pick((to,))
    g.like(g.node("CastLike", [v, other]), v, dtype=to, rounding=1)


@op("BitCast", since=26, weight=0.3)
def bit_cast(g):
    pairs = {"i32": "u32", "u8": "i8", "i64": "u64", "u16": "i16"}
    v = g.pick(tuple(pairs), where=lambda v: v.lo >= 0 and v.hi <= bounds(pairs[v.dtype])[1], lo=0, hi=7)
    g.like(g.node("BitCast", [v], to=CODES[pairs[v.dtype]]), v, dtype=pairs[v.dtype])


@op("IsNaN", "IsInf", since=13, weight=0.5)
def is_special(g, name):
    """The special numbers are weights, as inputs have ranges."""
    v = g.pick(("f32", "f64"))
    special = g.constant(np.array([np.nan, np.inf, -np.inf, 0.5], NUMPY[v.dtype])[g.numpy.integers(0, 4, 7)])
    index = g.fresh("i64", v.dims, lo=0, hi=6)
    strange = g.node("Gather", [special, index])
    if name == "IsInf" and g.chance(0.5):
        return g.value(g.node(name, [strange], detect_negative=0), "bool", v.dims, 0, 1)
    g.value(g.node(name, [strange]), "bool", v.dims, 0, 1)


@op("Dropout", since=12, weight=0.4)
def dropout(g):
    v = g.floats()
    inputs = [v] + g.choose([], [g.scalar(0.5, "f32")], [g.scalar(0.5, "f32"), g.scalar(False, "bool")])
    if g.chance(0.5):
        return g.like(g.node("Dropout", inputs), v)
    kept, mask = g.node("Dropout", inputs, 2)
    g.like(kept, v)
    g.value(mask, "bool", v.dims, 1, 1)
