"""Operators that move elements: shapes, slices, gathers, scatters."""
import numpy as np

from builder import op
from dims import Dim, most, product
from graph import ANY, CODES, FLOATS, NUMBERS, NUMPY, Skip, is_float

MOVED = ANY


def movable(g, rank=(0, 5), where=None, **about):
    return g.pick(MOVED, rank, where=where, **about)


def shape_operand(g, dims):
    """A shape as an operand: numbers, or computed from the shapes of values."""
    if all(d.static for d in dims):
        return g.ints(*[d.values[0] for d in dims])
    parts = []
    for d in dims:
        if d.static:
            parts.append(g.ints(d.values[0]))
            continue
        source = next((v for v in g.visible if any(x.same(d) for x in v.dims)), None)
        if source is None:
            raise Skip
        sizes = g.node("Shape", [source])
        parts.append(g.node("Gather", [sizes, g.ints([i for i, x in enumerate(source.dims) if x.same(d)][0])], axis=0))
    return g.node("Concat", parts, axis=0) if len(parts) > 1 else parts[0]


def to_computed(g, v, dims):
    """A reshape by an operand. A 0 in it copies the extent at its place, unless allowzero says that it is none."""
    zeros = [i for i, d in enumerate(dims) if d.least == 0]
    copies = all(i < v.rank and v.dims[i].same(dims[i]) for i in zeros)
    if not copies and g.graph.opset < 14:
        raise Skip
    return g.like(g.node("Reshape", [v, shape_operand(g, dims)], allowzero=None if copies else 1), v, dims)


@op("Reshape", since=5, weight=2)
def reshape(g):
    v = movable(g, (0, 6), where=lambda v: v.known)
    total = product(v.dims)
    how = g.choose("merge", "merge", "split", "flat", "zero", "computed")
    dims = list(v.dims)
    if how == "merge" and v.rank >= 2:
        axis = g.random.randrange(v.rank - 1)
        dims[axis:axis + 2] = [product(dims[axis:axis + 2])]
    elif how == "split" and v.rank:
        axis, _ = g.axis(v, where=lambda d: d.static)
        n = dims[axis].values[0]
        factors = [f for f in range(1, n + 1) if n % f == 0] or [1]
        f = g.choose(*factors)
        dims[axis:axis + 1] = g.statics(f, n // f)
    elif how == "zero":
        if not v.rank:
            raise Skip
        zeros = [0 if g.chance(0.6) or not d.static else d.values[0] for d in dims]
        if any(d.static and d.values[0] == 0 for d, z in zip(dims, zeros)):
            raise Skip
        return g.like(g.node("Reshape", [v, g.ints(*zeros)]), v)
    elif how == "computed":
        g.random.shuffle(dims)
        return to_computed(g, v, dims)
    else:
        dims = [total] if total is not None else g.statics(1)
        if g.chance(0.4):
            dims.insert(g.choose(0, 1), g.static(1))
    open_ = [i for i, d in enumerate(dims) if not d.static]
    # -1 stands for what is left, which nothing decides where another extent is 0
    if len(open_) > 1 or (open_ and any(d.least == 0 for i, d in enumerate(dims) if i != open_[0])):
        return to_computed(g, v, dims)
    target = [-1 if i in open_ else d.values[0] for i, d in enumerate(dims)]
    if g.graph.opset >= 14 and 0 in target:
        return g.like(g.node("Reshape", [v, g.ints(*target)], allowzero=1), v, dims) if -1 not in target else None
    if 0 in target:
        for i, t in enumerate(target):  # without allowzero 0 copies the extent at that place
            if t == 0 and not (i < v.rank and v.dims[i].same(dims[i])):
                raise Skip
    elif not open_ and g.chance(0.3) and target:
        target[g.random.randrange(len(target))] = -1
    g.like(g.node("Reshape", [v, g.ints(*target)]), v, dims)


@op("Flatten", since=9)
def flatten(g):
    v = movable(g, (1, 5), where=lambda v: v.known)
    axis = g.random.randint(0, v.rank)
    one = g.static(1)
    g.like(g.node("Flatten", [v], axis=axis - v.rank if axis < v.rank and g.chance(0.3) and g.graph.opset >= 11 else axis), v,
           [product(v.dims[:axis]) or one, product(v.dims[axis:]) or one])


@op("Squeeze", since=1)
def squeeze(g):
    v = movable(g, (1, 5), where=lambda v: any(d.is_one() for d in v.dims))
    axes = [i for i, d in enumerate(v.dims) if d.is_one() and g.chance(0.7)] or [next(i for i, d in enumerate(v.dims) if d.is_one())]
    dims = [d for i, d in enumerate(v.dims) if i not in axes]
    g.like(g.node("Squeeze", [v, g.ints(*axes)]) if g.graph.opset >= 13 else g.node("Squeeze", [v], axes=axes), v, dims)


@op("Unsqueeze", since=1)
def unsqueeze(g):
    v = movable(g, (0, 4))
    n = g.choose(1, 1, 2)
    g.unsqueeze(v, sorted(g.random.sample(range(v.rank + n), n)))


@op("Transpose", weight=2)
def transpose(g):
    v = movable(g, (1, 5))
    if g.chance(0.2):
        return g.like(g.node("Transpose", [v]), v, v.dims[::-1])
    perm = g.random.sample(range(v.rank), v.rank)
    g.like(g.node("Transpose", [v], perm=perm), v, [v.dims[p] for p in perm])


def joined(values):
    return dict(lo=min(v.lo for v in values), hi=max(v.hi for v in values), err=max(v.err for v in values),
                step=min(v.step for v in values) if all(v.step for v in values) else None)


@op("Concat", since=4, weight=2)
def concat(g):
    a = movable(g, (1, 5))
    axis, written = g.axis(a)
    parts = [a]
    for _ in range(g.choose(1, 1, 2, 3)):
        parts.append(g.pick((a.dtype,), (a.rank, a.rank), where=lambda v: all(x.same(y) for i, (x, y) in enumerate(zip(v.dims, a.dims)) if i != axis) and v.known,
                            dims=lambda _: [g.extent() if i == axis else d for i, d in enumerate(a.dims)]))
    if not a.known:
        raise Skip
    dims = list(a.dims)
    for v in parts[1:]:
        dims[axis] = dims[axis].with_(v.dims[axis], lambda x, y: x + y, "({}+{})")
    g.like(g.node("Concat", parts, axis=written), a, dims, **joined(parts))


@op("Split", since=2, weight=1)
def split(g):
    v = movable(g, (1, 5))
    axis, written = g.axis(v, where=lambda d: d.static)
    n = v.dims[axis].values[0]
    at = sorted(g.random.randint(0, n) for _ in range(g.choose(0, 1, 1, 2)))
    sizes = [b - a for a, b in zip([0] + at, at + [n])]
    if g.graph.opset >= 13:
        names = g.node("Split", [v, g.ints(*sizes)], len(sizes), axis=written)
    else:
        names = g.node("Split", [v], len(sizes), axis=written, split=sizes)
    for name, size in zip([names] if len(sizes) == 1 else names, sizes):
        g.like(name, v, [g.static(size) if i == axis else d for i, d in enumerate(v.dims)])


@op("Split#equal", since=18, weight=0.5)
def split_equal(g):
    v = movable(g, (1, 4))
    axis, written = g.axis(v, where=lambda d: d.static and d.values[0] >= 2)
    n = v.dims[axis].values[0]
    parts = g.random.randint(2, min(4, n))
    each = -(-n // parts)
    if each * (parts - 1) >= n:
        raise Skip
    for i, name in enumerate(g.node("Split", [v], parts, axis=written, num_outputs=parts)):
        g.like(name, v, [g.static(min(each, n - i * each)) if k == axis else d for k, d in enumerate(v.dims)])


@op("Slice", since=10, weight=2)
def slice_(g):
    v = movable(g, (1, 5))
    dims, starts, ends, axes, steps = list(v.dims), [], [], [], []
    for axis in sorted(g.random.sample(range(v.rank), g.random.randint(1, v.rank))):
        d = v.dims[axis]
        if d.static:
            n, step = d.values[0], g.choose(1, 1, 1, 2, 3, -1, -2)
            a, b = sorted((g.random.randint(0, n), g.random.randint(0, n + 1)))
            start, end = (a, b if g.chance(0.8) else 2 ** 40) if step > 0 else (b, a - 1 - n if g.chance(0.6) or a == 0 else -2 ** 40)
            if g.chance(0.3) and step > 0 and 0 < a <= n:
                start = a - n if a < n else a
            dims[axis] = g.static(len(range(*slice(start, end if abs(end) < 2 ** 30 else None, step).indices(n))))
        else:
            k = g.random.randint(0, min(2, d.least))
            if not d.exact:
                raise Skip
            start, end, step = g.choose((k, 2 ** 62, 1), (0, -k, 1) if k else (0, 2 ** 31 - 1, 1), (-1, -2 ** 62, -1))
            if (start, end) != (-1, -2 ** 62) and k:
                dims[axis] = d.map(lambda n: n - k, "({}-%d)" % k)
        starts.append(start), ends.append(end), axes.append(axis - v.rank if g.chance(0.2) else axis), steps.append(step)
    inputs = [v, g.ints(*starts), g.ints(*ends), g.ints(*axes)]
    if any(s != 1 for s in steps) or g.chance(0.3):
        inputs.append(g.ints(*steps))
    g.like(g.node("Slice", inputs), v, dims)


@op("Slice#open", since=13, weight=0.5)
def slice_open(g):
    """Up to another value's extent."""
    v = movable(g, (1, 4), where=lambda v: any(not d.static and d.exact for d in v.dims))
    axis, _ = g.axis(v, where=lambda d: not d.static and d.exact)
    end = shape_operand(g, [v.dims[axis]])
    start = g.choose(0, 1)
    if start > v.dims[axis].least:
        raise Skip
    dims = [d.map(lambda n: n - start, "({}-%d)" % start) if i == axis and start else d for i, d in enumerate(v.dims)]
    g.like(g.node("Slice", [v, g.ints(start), end, g.ints(axis)]), v, dims)


def index(g, extent, dims, dtype=None):
    """Indices below an extent, some counted from its end."""
    n = extent.least
    if n == 0:
        if product(list(dims) or g.statics(1)).most > 0:
            raise Skip
        n = 1
    return g.fresh(dtype or g.choose("i64", "i64", "i32"), dims, lo=-n if g.chance(0.4) else 0, hi=n - 1)


@op("Gather", since=11, weight=2)
def gather(g):
    v = movable(g, (1, 4))
    axis, written = g.axis(v, where=lambda d: d.least > 0 or g.chance(0.3))
    at = index(g, v.dims[axis], g.dims(g.choose(0, 1, 1, 2)))
    g.like(g.node("Gather", [v, at], axis=written), v, v.dims[:axis] + at.dims + v.dims[axis + 1:])


@op("GatherElements", since=11)
def gather_elements(g):
    v = movable(g, (1, 4), where=lambda v: v.known)
    axis, written = g.axis(v)
    at = index(g, v.dims[axis], [g.extent() if i == axis else d for i, d in enumerate(v.dims)])
    g.like(g.node("GatherElements", [v, at], axis=written), v, at.dims)


@op("GatherND", since=12)
def gather_nd(g):
    v = movable(g, (1, 4), where=lambda v: v.known)
    batch = g.choose(0, 0, 1) if v.rank > 1 else 0
    depth = g.random.randint(1, v.rank - batch)
    least = min(d.least for d in v.dims[batch:batch + depth])
    outer = list(v.dims[:batch]) + g.dims(g.choose(0, 1, 2))
    at = index(g, Dim([least]), outer + g.statics(depth), "i64")
    g.like(g.node("GatherND", [v, at], batch_dims=batch or None), v, outer + list(v.dims[batch + depth:]))


def distinct(g, n, count):
    return g.random.sample(range(n), count)


@op("ScatterElements", "Scatter", since=9, weight=0.8)
def scatter_elements(g, name):
    """Indices differ along the axis, as the order of updates is not defined."""
    if (name == "Scatter") != (g.graph.opset < 11):
        raise Skip
    v = movable(g, (1, 4), where=lambda v: v.known)
    axis, written = g.axis(v, where=lambda d: d.static)
    n = v.dims[axis].values[0]
    count = g.random.randint(0 if g.chance(0.2) else min(1, n), n)
    dims = [g.static(count) if i == axis else d for i, d in enumerate(v.dims)]
    if not all(d.static for d in dims):
        raise Skip
    shape = [d.values[0] for d in dims]
    along = np.array(distinct(g, n, count), np.int64).reshape([count if i == axis else 1 for i in range(v.rank)])
    updates = g.pick((v.dtype,), (v.rank, v.rank), where=lambda w: all(a.same(b) for a, b in zip(w.dims, dims)), dims=lambda _: dims)
    at = g.constant(np.broadcast_to(along, shape))
    g.like(g.node(name, [v, at, updates], axis=written), v, **joined([v, updates]))


@op("ScatterElements#reduction", since=18, weight=0.5)
def scatter_reduce(g):
    v = g.pick(("f32", "i32", "i64"), (1, 3), where=lambda v: v.known and v.exact)
    axis, written = g.axis(v, where=lambda d: d.least > 0)
    how = g.choose("add", "max", "min")
    dims = [g.static(g.random.randint(0, 3)) if i == axis else g.static(g.random.randint(0, d.least)) for i, d in enumerate(v.dims)]
    at = index(g, v.dims[axis], dims)
    updates = g.fresh(v.dtype, dims, lo=-2, hi=2, step=0.25 if is_float(v.dtype) else 1)
    n = dims[axis].values[0] if how == "add" else 1
    g.like(g.node("ScatterElements", [v, at, updates], axis=written, reduction=how), v, lo=v.lo - 2 * n, hi=v.hi + 2 * n,
           step=min(v.step or 0.25, 0.25) if is_float(v.dtype) else 1)


@op("ScatterND", since=13, weight=0.8)
def scatter_nd(g):
    v = movable(g, (1, 4), where=lambda v: v.known)
    axis_extent = v.dims[0]
    if not axis_extent.static:
        raise Skip
    count = g.random.randint(0 if g.chance(0.2) else min(1, axis_extent.least), axis_extent.least)
    at = g.constant(np.array(distinct(g, axis_extent.least, count), np.int64).reshape(count, 1))
    dims = g.statics(count) + list(v.dims[1:])
    updates = g.pick((v.dtype,), (v.rank, v.rank), where=lambda w: all(a.same(b) for a, b in zip(w.dims, dims)), dims=lambda _: dims)
    g.like(g.node("ScatterND", [v, at, updates]), v, **joined([v, updates]))


@op("TensorScatter", since=24, weight=0.5)
def tensor_scatter(g):
    batch, length, width, new = g.random.randint(1, 3), g.random.randint(2, 6), g.random.randint(1, 5), g.random.randint(1, 2)
    past = g.fresh("f32", g.statics(batch, 2, length, width))
    update = g.fresh("f32", g.statics(batch, 2, new, width))
    at = g.fresh("i64", g.statics(batch), lo=0, hi=length - new)
    g.like(g.node("TensorScatter", [past, update, at], mode=g.choose("linear", "circular")), past, **joined([past, update]))


@op("Expand", since=8)
def expand(g):
    v = movable(g, (0, 4), where=lambda v: v.known)
    dims = [g.extent() if d.is_one() and g.chance(0.7) else d for d in v.dims]
    dims = g.dims(g.choose(0, 0, 1)) + dims
    g.like(g.node("Expand", [v, shape_operand(g, dims)]), v, dims)


@op("Tile", since=6)
def tile(g):
    v = movable(g, (1, 4), where=lambda v: v.known)
    repeats = [g.choose(1, 1, 2, 3, 0 if g.chance(g.style.empty) else 1) for _ in v.dims]
    g.like(g.node("Tile", [v, g.ints(*repeats)]), v, [d if r == 1 else g.static(0) if r == 0 else d.map(lambda n: n * r, "({}*%d)" % r)
                                                       for d, r in zip(v.dims, repeats)])


@op("Pad", since=13)
def pad(g):
    v = g.pick(NUMBERS if g.graph.opset >= 13 else FLOATS, (1, 4), where=lambda v: v.known and v.dtype != "bf16")
    mode = g.choose("constant", "constant", "reflect", "edge", *(["wrap"] if g.graph.opset >= 19 else []))
    low, high = [], []
    for d in v.dims:
        room = 2 if mode == "constant" else min(2, max(0, d.least - 1)) if mode != "edge" or d.least == 0 else 2
        low.append(g.random.randint(0, room)), high.append(g.random.randint(0, room))
        if mode == "constant" and g.chance(0.15) and d.least >= 2:
            low[-1] = -1
    inputs, value = [v, g.ints(*low, *high)], 0
    if mode == "constant" and g.chance(0.5):
        value = g.choose(0, 1)
        inputs.append(g.scalar(value, v.dtype))
    dims = [d.map(lambda n: n + a + b, "({}+%d)" % (a + b)) if a + b else d for d, a, b in zip(v.dims, low, high)]
    name = g.node("Pad", inputs, mode=mode)
    g.like(name, v, dims, lo=min(v.lo, value), hi=max(v.hi, value)) if mode == "constant" else g.like(name, v, dims)


@op("DepthToSpace", "SpaceToDepth", since=11, weight=0.6)
def depth_space(g, name):
    b = 2
    if name == "DepthToSpace":
        v = g.pick(("f32", "f64"), (4, 4), where=lambda v: v.dims[1].static and v.dims[1].values[0] % 4 == 0 and v.dims[1].values[0],
                   dims=lambda _: [g.extent(), g.static(g.choose(4, 8, 12)), g.extent(), g.extent()])
        dims = [v.dims[0], g.static(v.dims[1].values[0] // 4)] + [d.map(lambda n: n * b, "({}*2)") for d in v.dims[2:]]
        return g.like(g.node(name, [v], blocksize=b, mode=g.choose("DCR", "CRD")), v, dims)
    v = g.pick(("f32", "f64"), (4, 4), where=lambda v: all(d.static and d.values[0] % 2 == 0 for d in v.dims[2:]),
               dims=lambda _: g.dims(2) + g.statics(g.choose(2, 4, 6), g.choose(2, 4, 6)))
    dims = [v.dims[0], v.dims[1].map(lambda n: n * 4, "({}*4)")] + [g.static(d.values[0] // 2) for d in v.dims[2:]]
    g.like(g.node(name, [v], blocksize=b), v, dims)


@op("Trilu", since=14, weight=0.7)
def trilu(g):
    v = g.pick(("f32", "f64", "i32", "i64", "bool"), (2, 4))
    inputs = [v] + ([g.scalar(g.random.randint(-3, 3))] if g.chance(0.6) else [])
    g.like(g.node("Trilu", inputs, upper=g.choose(0, 1)), v, lo=min(v.lo, 0), hi=max(v.hi, 0))


@op("ReverseSequence", since=10, weight=0.6)
def reverse_sequence(g):
    v = g.pick(("f32", "i64", "i32"), (2, 4))
    batch, time = g.choose((0, 1), (1, 0))
    lengths = g.fresh("i64", [v.dims[batch]], lo=min(1, v.dims[time].least), hi=v.dims[time].least)
    if v.dims[time].least == 0 and v.dims[batch].most > 0:
        raise Skip
    g.like(g.node("ReverseSequence", [v, lengths], batch_axis=batch, time_axis=time), v)


@op("CenterCropPad", since=18, weight=0.6)
def center_crop_pad(g):
    v = g.pick(("f32", "i32", "i64"), (1, 4))
    axes = sorted(g.random.sample(range(v.rank), g.random.randint(1, v.rank)))
    if not all(v.dims[a].static for a in axes):
        raise Skip
    sizes = [g.random.randint(0 if g.chance(g.style.empty) else 1, 7) for _ in axes]
    dims = [g.static(sizes[axes.index(i)]) if i in axes else d for i, d in enumerate(v.dims)]
    g.like(g.node("CenterCropPad", [v, g.ints(*sizes)], axes=axes), v, dims, lo=min(v.lo, 0), hi=max(v.hi, 0))


def by_data(g, largest, floor):
    """An extent that data decide."""
    return Dim(largest, g.name("d_"), floor)


@op("Compress", since=11, weight=0.6)
def compress(g):
    v = movable(g, (1, 3), where=lambda v: v.known)
    axis, written = g.axis(v)
    n = v.dims[axis]
    mask = g.fresh("bool", [n])
    count = by_data(g, n.values, [0] * len(n.values))
    g.like(g.node("Compress", [v, mask], axis=written), v, [count if i == axis else d for i, d in enumerate(v.dims)])


@op("EyeLike", since=9, weight=0.5)
def eye_like(g):
    v = g.pick(("f32", "i32", "i64", "f64"), (2, 2))
    to = g.choose("f32", "i32", "i64", "f64")
    g.value(g.node("EyeLike", [v], dtype=CODES[to], k=g.choose(0, 1, -1)), to, v.dims, 0, 1, 0, 1)


@op("OneHot", since=11, weight=0.6)
def one_hot(g):
    depth = g.random.randint(1, 6)
    at = g.pick(("i64", "i32"), (1, 3), where=lambda v: v.known, lo=0, hi=depth - 1)
    axis = g.random.randint(0, at.rank)
    dims = list(at.dims)
    dims.insert(axis, g.static(depth))
    to = "i64" if len(g.style.types) < 5 and at.dtype == "i64" else g.choose("f32", "i64", "i32")
    values = g.constant(np.array([0, 3], NUMPY[to]))
    g.value(g.node("OneHot", [at, g.scalar(depth), values], axis=-1 if axis == at.rank else axis), to, dims, 0, 3, 0, 1)


@op("Range", since=11, weight=0.6)
def range_(g):
    dtype = g.choose("i64", "i32", "f32")
    if g.symbols and g.chance(0.5):
        source = [v for v in g.visible if any(not d.static and d.exact for d in v.dims)]
        if source:
            v = g.choose(*source)
            axis, _ = g.axis(v, where=lambda d: not d.static and d.exact)
            size = g.node("Gather", [g.node("Shape", [v]), g.scalar(axis)], axis=0)
            return g.value(g.node("Range", [g.scalar(0), size, g.scalar(1)]), "i64", [v.dims[axis]], 0, max(1, v.dims[axis].most))
    n = g.random.randint(0 if g.chance(0.2) else 1, 12)
    start, step = g.choose(0, 1, -3), g.choose(1, 2, -1)
    g.value(g.node("Range", [g.scalar(x, dtype) for x in (start, start + n * step, step)]), dtype, g.statics(n), -40, 40, 0, 1)


@op("ConstantOfShape", since=9, weight=0.6)
def constant_of_shape(g):
    from onnx_file import tensor
    dims = g.dims(g.choose(0, 1, 2, 3))
    dtype = g.choose("f32", "i64", "i32", "bool")
    value = g.choose(0, 1)
    raw = tensor("value", CODES[dtype], [1], raw=np.array([value], NUMPY[dtype]).tobytes())
    g.value(g.node("ConstantOfShape", [shape_operand(g, dims) if dims else g.constant(np.zeros(0, np.int64))], value=("t", raw)), dtype, dims, value, value, 0, 1)


@op("Constant", since=12, weight=0.5)
def constant(g):
    from onnx_file import tensor
    if g.chance(0.3):
        return g.value(g.node("Constant", [], value_float=0.5), "f32", [], 0.5, 0.5, 0, 0.5)
    if g.chance(0.3):
        return g.value(g.node("Constant", [], value_ints=[3, 1, 2]), "i64", g.statics(3), 1, 3)
    dtype = g.choose("f32", "i32", "i64")
    shape = [g.random.randint(0 if g.chance(g.style.empty) else 1, 4) for _ in range(g.choose(0, 1, 2))]
    array = g.numpy.integers(-3, 4, shape).astype(NUMPY[dtype])
    g.value(g.node("Constant", [], value=("t", tensor("value", CODES[dtype], shape, raw=array.tobytes()))), dtype, g.statics(*shape), -3, 3, 0, 1)


@op("Shape", "Size", weight=0.7)
def shape(g, name):
    v = movable(g)
    if name == "Size":
        return g.value(g.node(name, [v]), "i64", [], 0, max(1, most(v.dims)))
    largest = max([1] + [d.most for d in v.dims])
    if g.graph.opset >= 15 and v.rank and g.chance(0.4):
        start = g.random.randint(0, v.rank)
        return g.value(g.node(name, [v], start=start), "i64", g.statics(v.rank - start), 0, largest)
    g.value(g.node(name, [v]), "i64", g.statics(v.rank), 0, largest)
