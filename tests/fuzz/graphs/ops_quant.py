"""Quantised operators. Scales are powers of two and operands lie on a grid, so that rounding has one right answer."""
import numpy as np

from builder import op
from graph import NUMPY, Skip
from ops_nn import kernel_for, windows

EIGHT = {"u8": (0, 255), "i8": (-128, 127)}


def quantised(lo, hi, scale, zero, dtype):
    low, high = EIGHT[dtype]
    return max(low, int(np.floor(lo / scale)) + zero), min(high, int(np.ceil(hi / scale)) + zero)


def parameters(g, dtype, axis_extent=None):
    """A scale and a zero point: of the tensor, or one for each slice."""
    scale = g.choose(0.125, 0.25, 0.5, 1.0)
    zero = g.random.randint(*((100, 140) if dtype == "u8" else (-10, 10))) if g.chance(0.6) else 0
    if axis_extent is None:
        return scale, zero, g.scalar(scale, "f32"), g.scalar(zero, dtype)
    n = axis_extent
    return scale, zero, g.constant(np.full(n, scale, np.float32)), g.constant(np.full(n, zero, NUMPY[dtype]))


@op("QuantizeLinear", since=13, weight=1.0)
def quantize(g):
    v = g.floats((0, 4), dtypes=("f32",), exact=True, lo=-16, hi=16)
    dtype = g.choose("u8", "i8")
    axes = [i for i, d in enumerate(v.dims) if d.static and d.least]
    axis = g.choose(*axes) if axes and g.chance(0.4) else None
    scale, zero, s, z = parameters(g, dtype, v.dims[axis].values[0] if axis is not None else None)
    lo, hi = quantised(v.lo, v.hi, scale, zero, dtype)
    name = g.node("QuantizeLinear", [v, s, z], axis=axis)
    q = g.value(name, dtype, v.dims, min(lo, hi), max(lo, hi), hazy=True)
    if g.chance(0.5):
        g.value(g.node("DequantizeLinear", [q, s, z], axis=axis), "f32", v.dims, (q.lo - zero) * scale, (q.hi - zero) * scale, 0, scale)


@op("DequantizeLinear", since=13, weight=1.0)
def dequantize(g):
    q = g.pick(("u8", "i8", "i32"), (0, 4))
    if q.dtype == "i32":
        q = g.within(q, -1000, 1000)
        return g.value(g.node("DequantizeLinear", [q, g.scalar(0.25, "f32")]), "f32", q.dims, q.lo * 0.25, q.hi * 0.25, 0, 0.25)
    scale, zero, s, z = parameters(g, q.dtype)
    g.value(g.node("DequantizeLinear", [q, s, z]), "f32", q.dims, (q.lo - zero) * scale, (q.hi - zero) * scale, 0, scale)


@op("DynamicQuantizeLinear", since=11, weight=0.4)
def dynamic_quantize(g):
    """Its scale is rounded, so that a number may be off by one: nothing goes on with it."""
    v = g.fresh("f32", [g.extent(2, 6), g.extent(1, 5)], lo=-1.0, hi=1.0, step=0.25, weight=False)
    y, scale, zero = g.node("DynamicQuantizeLinear", [v], 3)
    g.value(y, "u8", v.dims, 0, 255, err=1, leaf=True)
    g.value(scale, "f32", [], 0, 0.01, 1e-6, None, leaf=True)
    g.value(zero, "u8", [], 0, 255, err=1, leaf=True)


def eight(g, dtype, dims, **about):
    return g.fresh(dtype, dims, lo=EIGHT[dtype][0] // 8, hi=EIGHT[dtype][1] // 8, **about)


@op("MatMulInteger", since=10, weight=0.6)
def matmul_integer(g):
    a = g.pick(("u8", "i8"), (2, 3), where=lambda v: v.known)
    k = a.dims[-1]
    if not k.least:
        raise Skip  # ONNX Runtime leaves the sums of nothing as they are
    dtype = g.choose("u8", "i8")
    b = eight(g, dtype, [k, g.extent()], weight=g.chance(0.7))
    inputs = [a, b]
    if g.chance(0.5):
        inputs += [g.scalar(g.random.randint(0, 3), a.dtype), g.scalar(g.random.randint(0, 3), dtype)]
    top = 400 * 260 * max(1, k.most)
    g.value(g.node("MatMulInteger", inputs), "i32", list(a.dims[:-1]) + [b.dims[-1]], -top, top)


@op("ConvInteger", since=10, weight=0.4)
def conv_integer(g):
    c = g.choose(1, 2, 3)
    v = eight(g, "u8", [g.extent(high=3), g.static(c), g.extent(2, 6), g.extent(2, 6)])
    if not v.known or any(d.least < 2 for d in v.dims[2:]):
        raise Skip
    kernels = kernel_for(g, v)
    attributes, dims = windows(g, v, kernels)
    out = g.random.randint(1, 4)
    w = eight(g, g.choose("u8", "i8"), g.statics(out, c, *kernels), weight=True)
    inputs = [v, w] + ([g.scalar(g.random.randint(0, 3), "u8")] if g.chance(0.4) else [])
    top = 40 * 40 * c * 9 + 1
    g.value(g.node("ConvInteger", inputs, kernel_shape=kernels, **attributes), "i32", [v.dims[0], g.static(out)] + dims, -top, top)


@op("QLinearMatMul", since=10, weight=0.5)
def qlinear_matmul(g):
    """The product of the scales is a power of two; an exact half is rounded to even by all."""
    dtype = g.choose("u8", "i8")
    k = g.extent()
    if k.least == 0:
        raise Skip  # ONNX Runtime gives what was in memory
    a, b = eight(g, dtype, [g.extent(), k]), eight(g, dtype, [k, g.extent()], weight=g.chance(0.8))
    _, _, sa, za = parameters(g, dtype)
    _, _, sb, zb = parameters(g, dtype)
    _, _, sy, zy = parameters(g, dtype)
    g.value(g.node("QLinearMatMul", [a, sa, za, b, sb, zb, sy, zy]), dtype, [a.dims[0], b.dims[1]], *EIGHT[dtype], hazy=True)


@op("QLinearConv", since=10, weight=0.5)
def qlinear_conv(g):
    c, out, dtype = g.choose(1, 2, 4), g.random.randint(1, 4), g.choose("u8", "i8")
    v = eight(g, dtype, [g.extent(high=3), g.static(c), g.extent(2, 6), g.extent(2, 6)])
    if any(d.least < 2 for d in v.dims[2:]):
        raise Skip
    kernels = kernel_for(g, v)
    attributes, dims = windows(g, v, kernels)
    w = eight(g, dtype, g.statics(out, c, *kernels), weight=True)
    _, _, sx, zx = parameters(g, dtype)
    _, _, sw, zw = parameters(g, dtype)
    _, _, sy, zy = parameters(g, dtype)
    inputs = [v, sx, zx, w, sw, zw, sy, zy] + ([g.fresh("i32", g.statics(out), lo=-50, hi=50, weight=True)] if g.chance(0.5) else [])
    g.value(g.node("QLinearConv", inputs, kernel_shape=kernels, **attributes), dtype, [v.dims[0], g.static(out)] + dims, *EIGHT[dtype], hazy=True)


@op("MatMul#qdq", since=13, weight=0.8)
def qdq_matmul(g):
    """A product of dequantised operands that is quantised again: what compilers make integer products of."""
    k, n = g.random.randint(1, 9), g.extent()
    a = g.floats((2, 3), dtypes=("f32",), exact=True, lo=-8, hi=8, where=lambda v: v.known and v.dims[-1].static, dims=lambda _: g.dims(g.choose(1, 2)) + g.statics(k))
    k = a.dims[-1]
    dtype = g.choose("u8", "i8")
    scale, zero, s, z = parameters(g, dtype)
    lo, hi = quantised(a.lo, a.hi, scale, zero, dtype)
    q = g.value(g.node("QuantizeLinear", [a, s, z]), dtype, a.dims, min(lo, hi), max(lo, hi), hazy=True)
    x = g.value(g.node("DequantizeLinear", [q, s, z]), "f32", a.dims, (q.lo - zero) * scale, (q.hi - zero) * scale, 0, scale)
    w = eight(g, "i8", [k, n], weight=True) if n.static else eight(g, "i8", [k, n])
    ws = g.choose(0.125, 0.25)
    y = g.value(g.node("DequantizeLinear", [w, g.scalar(ws, "f32"), g.scalar(0, "i8")]), "f32", w.dims, w.lo * ws, w.hi * ws, 0, ws)
    top = x.top * y.top * max(1, k.most)
    p = g.value(g.node("MatMul", [x, y]), "f32", list(x.dims[:-1]) + [n], -top, top, 0, scale * ws)
    scale2, zero2, s2, z2 = parameters(g, dtype)
    if p.exact:
        lo, hi = quantised(p.lo, p.hi, scale2, zero2, dtype)
        g.value(g.node("QuantizeLinear", [p, s2, z2]), dtype, p.dims, min(lo, hi), max(lo, hi), hazy=True)
