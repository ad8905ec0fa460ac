"""Operators along axes: reductions, sorting, normalisations."""
import math

import numpy as np

from builder import op
from dims import most, product
from graph import Skip, is_float
from ops_move import by_data

REDUCED = ("f32", "f32", "f64", "i32", "i64")


def reduced_dims(g, v, axes, keep):
    return [g.static(1) if i in axes else d for i, d in enumerate(v.dims) if keep or i not in axes]


@op("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
    "ReduceSumSquare", since=11, weight=0.7)
def reduce(g, name):
    kind = name[6:]
    real = kind in ("L2", "LogSum", "LogSumExp", "Mean")
    v = g.pick(("f32", "f32", "f64") if real else REDUCED, (0 if g.graph.opset >= 18 else 1, 5), where=lambda v: v.known)
    if kind in ("LogSumExp", "Prod"):
        v = g.within(v, -3, 3)
    if kind == "LogSum":
        v = g.within(v, 0.25, 50)
    axes = sorted(g.random.sample(range(v.rank), g.random.randint(1, v.rank))) if v.rank and g.chance(0.85) else None
    if g.style.card and v.rank:
        axes = axes[:1] if axes else [0]
    over = list(range(v.rank)) if axes is None else axes
    n, least_n = most([v.dims[a] for a in over]), min([math.prod(d) for d in zip(*[v.dims[a].floor for a in over])] or [1])
    keep = g.choose(0, 1)
    dims = reduced_dims(g, v, over, keep)
    empty_result = least_n == 0 and not (product(dims) is not None and product(dims).most == 0)
    if kind in ("Mean", "Max", "Min", "LogSum") and empty_result:
        raise Skip  # NaN, infinities: values that nothing can go on with
    if least_n == 0 and kind in ("LogSumExp",):
        raise Skip
    count = max(n, 1)
    inputs, attributes = [v], dict(keepdims=keep)
    if kind == "Max" or kind == "Min":
        about = dict(lo=v.lo, hi=v.hi, err=v.err, step=v.step, rounding=0)
    elif kind == "Mean":
        about = dict(lo=v.lo, hi=v.hi, err=v.err, step=None, rounding=count)
    elif kind == "Prod":
        if count > 8:
            raise Skip
        top = max(1.0, v.top) ** count
        about = dict(lo=-top, hi=top, err=v.err * top * count, step=v.step ** count if v.step else None, rounding=count)
        if not is_float(v.dtype):
            about.update(lo=-int(top), hi=int(top))
    elif kind in ("L1", "Sum", "SumSquare"):
        a, b = (v.lo, v.hi) if kind == "Sum" else (0, v.top if kind == "L1" else v.top * v.top)
        step = v.step and (v.step if kind != "SumSquare" else v.step ** 2)
        about = dict(lo=min(0, a * count), hi=max(0, b * count), err=v.err * count * (1 if kind != "SumSquare" else 2 * v.top), step=step, rounding=count)
    elif kind == "L2":
        shift = max(v.err * count, 1e-6 * v.top)
        about = dict(lo=0, hi=v.top * math.sqrt(count), err=shift * 4 if v.err else 0, step=None, rounding=count)
    elif kind == "LogSum":
        about = dict(lo=math.log(v.lo), hi=math.log(v.hi * count) + 0.01, err=v.err / v.lo, step=None, rounding=count * 8 + 8 / max(1e-3, 0.1))
    else:
        about = dict(lo=v.lo - 0.01, hi=v.hi + math.log(count) + 0.01, err=v.err, step=None, rounding=count + 8)
    if g.graph.opset >= 18 or (kind == "Sum" and g.graph.opset >= 13):
        if axes is not None:
            inputs.append(g.ints(*[a - v.rank if g.chance(0.2) else a for a in axes]))
        elif g.chance(0.2):
            attributes["noop_with_empty_axes"] = 0
    elif axes is not None:
        attributes["axes"] = axes
    g.like(g.node(name, inputs, **attributes), v, dims, **about)


@op("ReduceMax#bool", since=20, weight=0.3)
def reduce_bool(g):
    v = g.pick(("bool",), (1, 4), where=lambda v: v.known)
    axis, written = g.axis(v, where=lambda d: d.least > 0)
    name = g.choose("ReduceMax", "ReduceMin")
    g.like(g.node(name, [v, g.ints(written)], keepdims=1), v, reduced_dims(g, v, [axis], True))


@op("ArgMax", "ArgMin", since=13, weight=0.8)
def arg_reduce(g, name):
    v = g.pick(("f32", "f64", "i32", "i8", "u8"), (1, 5), where=lambda v: v.exact and v.known, step=lambda d: 0.25 if is_float(d) else 1)
    axis, written = g.axis(v, where=lambda d: d.least > 0)
    keep = g.choose(0, 1)
    g.value(g.node(name, [v], axis=written, keepdims=keep, select_last_index=g.choose(0, 1)), "i64", reduced_dims(g, v, [axis], keep), 0,
            v.dims[axis].most, hazy=is_float(v.dtype))


@op("CumSum", since=14, weight=0.8)
def cumsum(g):
    v = g.pick(("f32", "f64", "i32", "i64"), (1, 4), where=lambda v: v.known)
    axis, written = g.axis(v)
    n = max(1, v.dims[axis].most)
    g.like(g.node("CumSum", [v, g.scalar(written)], exclusive=g.choose(0, 1), reverse=g.choose(0, 1)), v, lo=min(0, v.lo * n), hi=max(0, v.hi * n),
           err=v.err * n, rounding=n)


@op("CumProd", since=26, weight=0.4)
def cumprod(g):
    v = g.pick(("f32", "i64"), (1, 3), where=lambda v: v.known and all(d.most <= 6 for d in v.dims), lo=-2, hi=2, dims=lambda _: g.dims(2, high=4))
    v = g.within(v, -2, 2)
    axis, written = g.axis(v)
    top = 2 ** max(1, v.dims[axis].most)
    g.like(g.node("CumProd", [v, g.scalar(written)], exclusive=g.choose(0, 1), reverse=g.choose(0, 1)), v, lo=-top, hi=top, err=v.err * top * 6,
           step=None if is_float(v.dtype) else 1, rounding=8)


@op("TopK", since=11)
def topk(g):
    v = g.pick(("f32", "f64", "i32", "i64"), (1, 4), where=lambda v: v.exact and v.known, step=lambda d: 0.25 if is_float(d) else 1)
    axis, written = g.axis(v)
    k = g.random.randint(0 if g.chance(g.style.empty) else min(1, v.dims[axis].least), v.dims[axis].least)
    values, where = g.node("TopK", [v, g.ints(k)], 2, axis=written, largest=g.choose(0, 1), sorted=1)
    dims = [g.static(k) if i == axis else d for i, d in enumerate(v.dims)]
    g.like(values, v, dims, hazy=is_float(v.dtype))
    g.value(where, "i64", dims, 0, max(0, v.dims[axis].most - 1), hazy=is_float(v.dtype))


@op("NonZero", since=13, weight=0.8)
def nonzero(g):
    v = g.pick(("f32", "i32", "i64", "bool", "u8"), (1, 4), where=lambda v: v.exact and v.known, step=lambda d: 0.25 if is_float(d) else 1)
    n = product(v.dims)
    count = by_data(g, n.values, [0] * len(n.values))
    g.value(g.node("NonZero", [v]), "i64", g.statics(v.rank) + [count], 0, max([1] + [d.most for d in v.dims]), hazy=is_float(v.dtype))


@op("Unique", since=11, weight=0.6)
def unique(g):
    v = g.pick(("f32", "i64", "i8", "f64"), (1, 3), where=lambda v: v.exact and v.known, step=lambda d: 0.25 if is_float(d) else 1)
    axis = None if g.chance(0.6) else g.axis(v, where=lambda d: d.least > 0)[0]
    if axis is not None and any(d.least == 0 for d in v.dims):
        raise Skip  # whether slices of nothing are equal is a matter of taste
    n = product(v.dims) if axis is None else v.dims[axis]
    count = by_data(g, n.values, [min(1, x) for x in n.values])
    outputs = g.choose(1, 1, 4)
    names = g.node("Unique", [v], outputs, axis=axis, sorted=1)
    first = names if outputs == 1 else names[0]
    g.like(first, v, [count] if axis is None else [count if i == axis else d for i, d in enumerate(v.dims)], hazy=is_float(v.dtype))
    if outputs == 4:
        for name, dims in ((names[1], [count]), (names[2], [n]), (names[3], [count])):
            g.value(name, "i64", dims, 0, max(1, n.most), hazy=is_float(v.dtype))


@op("Softmax", "LogSoftmax", since=13, weight=1.2)
def softmax(g, name):
    v = g.floats((1, 5), dtypes=("f32", "f32", "f32", "f64", "f16"), lo=-10, hi=10)
    axis, written = g.axis(v)
    n = max(1, v.dims[axis].most)
    if name == "Softmax":
        return g.like(g.node(name, [v], axis=written), v, lo=0, hi=1, err=v.err * 2, step=None, rounding=n + 16)
    g.like(g.node(name, [v], axis=written), v, lo=v.lo - v.hi - math.log(n) - 0.01, hi=0.01, err=v.err * 2, step=None, rounding=n + 16)


@op("Hardmax", since=13, weight=0.5)
def hardmax(g):
    v = g.floats((1, 4), dtypes=("f32",), exact=True, where=lambda v: v.known)
    _, written = g.axis(v)
    g.like(g.node("Hardmax", [v], axis=written), v, lo=0, hi=1, step=1, hazy=True)


def normal(g, name, inputs, v, top, smallest, n, **attributes):
    """A result of (x - mean) / sqrt(variance + epsilon), whose error the `smallest` variance bounds."""
    slope = 2 / math.sqrt(smallest)
    err = slope * (v.err + 4 * v.top * max(4, n) ** 0.5 * 2.0 ** -{"f32": 24, "f16": 11, "f64": 53}[v.dtype])
    return g.like(g.node(name, inputs, **attributes), v, lo=-top, hi=top, err=err, step=None, rounding=8)


def per_channel(g, n, dtype, lo=-1.0, hi=1.0):
    return g.fresh(dtype, [n], lo=lo, hi=hi, step=0.25)


@op("LayerNormalization", "RMSNormalization", since=17, weight=0.9)
def layer_norm(g, name):
    if name == "RMSNormalization" and g.graph.opset < 23:
        raise Skip
    v = g.floats((1, 4), dtypes=("f32", "f32", "f64") if name != "RMSNormalization" else ("f32",), lo=-6, hi=6, where=lambda v: v.known)
    axis, written = (v.rank - 1, -1) if g.style.card else g.axis(v)
    n = most(v.dims[axis:])
    if min(d.least for d in v.dims[axis:]) == 0:
        raise Skip
    dims = list(v.dims[axis:])
    epsilon = g.choose(0.5, 0.0625)
    scale = g.fresh(v.dtype, dims, lo=-1.0, hi=1.0, step=0.25)
    inputs = [v, scale] + ([g.fresh(v.dtype, dims, lo=-1.0, hi=1.0, step=0.25)] if name == "LayerNormalization" and g.chance(0.5) else [])
    top = 1 + (v.top / math.sqrt(epsilon) if name == "RMSNormalization" else 2 * v.top / math.sqrt(epsilon))
    normal(g, name, inputs, v, min(top, 1 + math.sqrt(n)), epsilon, n, axis=written, epsilon=epsilon)


@op("BatchNormalization", since=14, weight=0.8)
def batch_norm(g):
    v = g.floats((2, 5), dtypes=("f32", "f64"), lo=-6, hi=6)
    c = v.dims[1]
    inputs = [v] + [per_channel(g, c, v.dtype, lo, hi) for lo, hi in ((-1, 1), (-1, 1), (-1, 1), (0.25, 2))]
    top = 1 + (v.top + 1) / 0.5
    g.like(g.node("BatchNormalization", inputs, epsilon=0.125), v, lo=-top, hi=top, err=v.err * 2, step=None, rounding=16)


@op("InstanceNormalization", since=6, weight=0.6)
def instance_norm(g):
    v = g.floats((3, 5), dtypes=("f32",), lo=-6, hi=6, where=lambda v: v.known and all(d.least > 0 for d in v.dims[2:]), dims=lambda _: g.dims(2) + g.dims(g.choose(1, 2), 1))
    normal(g, "InstanceNormalization", [v, per_channel(g, v.dims[1], v.dtype), per_channel(g, v.dims[1], v.dtype)], v, 1 + math.sqrt(most(v.dims[2:])), 0.25,
           most(v.dims[2:]), epsilon=0.25)


@op("GroupNormalization", since=21, weight=0.6)
def group_norm(g):
    c, groups = g.choose((4, 2), (3, 1), (6, 3), (2, 2))
    v = g.fresh("f32", [g.extent(), g.static(c)] + g.dims(g.choose(1, 2), 1, 5))
    if any(d.least == 0 for d in v.dims[2:]):
        raise Skip
    channels = g.statics(c)[0]
    n = most(v.dims[1:])
    normal(g, "GroupNormalization", [v, per_channel(g, channels, v.dtype), per_channel(g, channels, v.dtype)], v, 1 + math.sqrt(n), 0.25, n,
           num_groups=groups, epsilon=0.25)


@op("LRN", since=1, weight=0.5)
def lrn(g):
    v = g.floats((4, 4), dtypes=("f32",), lo=-4, hi=4)
    g.like(g.node("LRN", [v], size=g.choose(1, 3, 5), alpha=0.5, beta=0.75, bias=1.0), v, err=v.err * 8, step=None, rounding=32)


@op("LpNormalization", since=22, weight=0.5)
def lp_norm(g):
    v = g.floats((1, 4), dtypes=("f32", "f64"), lo=0.25, hi=6)
    axis, written = g.axis(v)
    g.like(g.node("LpNormalization", [v], axis=written, p=g.choose(1, 2)), v, lo=0, hi=1, err=v.err * 8, step=None, rounding=max(8, v.dims[axis].most))


@op("MeanVarianceNormalization", since=13, weight=0.5)
def mean_variance(g):
    """Of values whose variance is no accident: the first is far from the others."""
    v = g.fresh("f32", [g.extent(1, 3), g.extent(1, 3), g.static(4), g.static(5)], lo=1.0, hi=2.0, step=0.25)
    bump = np.zeros((4, 5), np.float32)
    bump[0, 0] = 8
    w = g.like(g.node("Add", [v, g.constant(bump)]), v, lo=1.0, hi=10.0)
    if min(d.least for d in v.dims) == 0:
        raise Skip
    g.like(g.node("MeanVarianceNormalization", [w], axes=[0, 2, 3]), w, lo=-8.0, hi=8.0, err=1e-5, step=None, rounding=64)
