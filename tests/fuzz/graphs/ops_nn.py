"""Products, convolutions, pools and what networks are made of."""
import math

import numpy as np

from builder import op
from dims import Dim, most
from graph import Skip, is_float


def dot(a, b, n):
    """Bounds of a sum of n products."""
    top = a.top * b.top * n
    lo = 0 if a.lo >= 0 and b.lo >= 0 else -top
    return dict(lo=lo, hi=top, err=(a.err * b.top + b.err * a.top) * n, step=a.step * b.step if a.step and b.step else None, rounding=n + 4)


PRODUCTS = ("f32", "f32", "f32", "f64", "i32", "i64", "f16")


@op("MatMul", since=9, weight=2.5)
def matmul(g):
    a = g.pick(PRODUCTS, (1, 4), where=lambda v: v.known and (v.dtype != "f16" or g.graph.opset >= 13))
    a = g.within(a, -8, 8)
    k = a.dims[-1]
    if g.chance(0.3):
        found = [v for v in g.visible if v.dtype == a.dtype and v.rank >= 2 and v.dims[-2].same(k) and not v.leaf and v.known and g.fits(v.dims[:-2], a.dims[:-2])]
        if not found:
            raise Skip
        b = g.choose(*found)
    else:
        batch = [d if g.chance(0.6) else g.static(1) for d in a.dims[:-2]][g.random.randint(0, max(0, a.rank - 2)):]
        dims = [k] if g.chance(0.1) else (batch if g.chance(0.5) else []) + [k, g.extent()]
        b = g.fresh(a.dtype, dims, lo=-2, hi=2, step=0.25 if is_float(a.dtype) else 1)
    if g.chance(0.15) and a.rank >= 2 and b.rank == 2 and a.rank == 2 and b.dims[1].same(b.dims[1]):
        a, b = b, a
        if not a.dims[1].same(b.dims[0]):
            a, b = b, a
    k = a.dims[-1]
    dims = g.broadcast(a.dims[:-2], b.dims[:-2]) + ([a.dims[-2]] if a.rank > 1 else []) + ([b.dims[-1]] if b.rank > 1 else [])
    g.value(g.node("MatMul", [a, b]), a.dtype, dims, **dot(a, b, max(1, k.most)))


@op("Gemm", since=11, weight=1.0)
def gemm(g):
    a = g.within(g.pick(("f32", "f32", "f64"), (2, 2), where=lambda v: v.known), -8, 8)
    ta, tb = g.choose(0, 1), g.choose(0, 1)
    m, k = a.dims[::-1] if ta else a.dims
    n = g.extent()
    b = g.fresh(a.dtype, [n, k] if tb else [k, n], lo=-2, hi=2, step=0.25)
    alpha, beta = g.choose(1.0, 0.5), g.choose(1.0, 0.5)
    inputs, about = [a, b], dot(a, b, max(1, k.most))
    if g.chance(0.6):
        c = g.fresh(a.dtype, g.choose([m, n], [n], [g.static(1), n], [m, g.static(1)], []), lo=-2, hi=2, step=0.25)
        inputs.append(c)
        about = {**about, "lo": about["lo"] - 2, "hi": about["hi"] + 2}
    about["step"] = about["step"] and about["step"] * 0.25
    g.value(g.node("Gemm", inputs, alpha=alpha, beta=beta, transA=ta, transB=tb), a.dtype, [m, n], **about)


EINSUMS = ("ij,jk->ik", "bij,bjk->bik", "bhid,bhjd->bhij", "ij->ji", "ij->i", "ij,ij->", "i,j->ij", "ii->i", "bij,jk->bik", "...ij,...jk->...ik", "ij,ik->jk")


@op("Einsum", since=12, weight=0.7)
def einsum(g):
    equation = g.choose(*EINSUMS)
    left, right = equation.split("->")
    sizes = {}
    dtype = g.choose("f32", "f64", "i32")
    operands = []
    for term in left.split(","):
        plain = term.replace("...", "")
        operands.append(g.fresh(dtype, [sizes.setdefault(c, g.extent(high=6)) for c in ("b" if "..." in term else "") + plain], lo=-2, hi=2,
                                step=0.25 if is_float(dtype) else 1))
    n = most([d for c, d in sizes.items() if c not in right and not (c == "b" and "..." in right)]) or 1
    dims = [sizes[c] for c in right.replace("...", "b")]
    about = dot(operands[0], operands[1], n) if len(operands) > 1 else dict(lo=-2.0 * n, hi=2.0 * n, step=operands[0].step)
    g.value(g.node("Einsum", operands, equation=equation), dtype, dims, **about)


def image(g, spatial, low=1, high=9, channels=None, **about):
    """[N, C, spatial..]; what windows go over has extents of at least `low`."""
    def fits(v):
        return all(d.least >= low for d in v.dims[2:]) and v.known and (channels is None or v.dims[1].same(channels))
    dims = lambda _: [g.extent(high=3), channels or g.static(g.random.choice((0 if g.chance(g.style.empty) else 1, 1, 2, 3, 4, 8)))] + [
        g.extent(low, high) if not g.symbols or g.chance(0.8) or min(s.least for s in g.symbols) < low else g.choose(*g.symbols) for _ in range(spatial)]
    return g.floats((2 + spatial, 2 + spatial), dtypes=("f32",) * 6 + (("f16",) if g.graph.opset >= 13 else ()), where=fits, dims=dims, **about)


def window(g, d, kernel, stride, dilation, low, high, ceil=False):
    reach = dilation * (kernel - 1) + 1

    def out(n):
        size = n + low + high - reach
        if size < 0:
            raise Skip
        return (-(-size // stride) if ceil else size // stride) + 1
    return d.map(out, f"w({{}},{kernel},{stride},{dilation},{low},{high},{int(ceil)})")


def windows(g, v, kernels, dilate=True, half=False):
    """Strides, dilations and pads for kernels, and the dims that they give."""
    n = len(kernels)
    strides = [g.choose(1, 1, 2, 3) for _ in range(n)]
    dilations = [g.choose(1, 1, 2) if dilate else 1 for _ in range(n)]
    limit = [(k - 1) // 2 if half else k - 1 for k in kernels]
    pads = [g.random.randint(0, m) for m in limit] + [g.random.randint(0, m) for m in limit]
    dims = [window(g, d, k, s, e, pads[i], pads[n + i]) for i, (d, k, s, e) in enumerate(zip(v.dims[2:], kernels, strides, dilations))]
    return dict(strides=strides, dilations=dilations, pads=pads), dims


def kernel_for(g, v):
    return [g.random.randint(1, min(3, d.least)) if d.least else g.choose(1, 2) for d in v.dims[2:]]


@op("Conv", since=11, weight=2.0)
def conv(g):
    v = image(g, 2 if g.style.card else g.choose(1, 2, 2, 2, 3), lo=-4, hi=4)
    c = v.dims[1]
    if not c.static:
        raise Skip
    channels = c.values[0]
    groups = 1 if g.style.card else g.choose(1, 1, 1, channels or 1, 2 if channels % 2 == 0 and channels else 1)
    out = groups * g.random.randint(1, 4)
    kernels = kernel_for(g, v)
    attributes, dims = windows(g, v, kernels)
    w = g.fresh(v.dtype, g.statics(out, channels // groups, *kernels), lo=-1, hi=1, step=0.25, weight=g.style.card or g.chance(0.8))
    n = max(1, channels // groups * math.prod(kernels))
    about = dot(v, w, n)
    about.update(step=None, rounding=20 * n)  # transforms of filters and images round on their way
    inputs = [v, w]
    if g.chance(0.5):
        inputs.append(g.fresh(v.dtype, g.statics(out), lo=-1, hi=1, step=0.25, weight=True if g.style.card else None))
        about.update(lo=about["lo"] - 1, hi=about["hi"] + 1)
    if g.chance(0.1) and all(x == 1 for x in attributes["dilations"]):
        attributes = dict(strides=attributes["strides"], auto_pad="SAME_UPPER")
        dims = [d.map(lambda n, s=s: -(-n // s), "same({},%d)" % s) for d, s in zip(v.dims[2:], attributes["strides"])]
    g.value(g.node("Conv", inputs, kernel_shape=kernels, group=groups, **attributes), v.dtype, [v.dims[0], g.static(out)] + dims, **about)


@op("ConvTranspose", since=11, weight=1.0)
def conv_transpose(g):
    v = image(g, g.choose(1, 2, 2), lo=-4, hi=4, high=5)
    if not v.dims[1].static or v.dtype != "f32":
        raise Skip
    channels = v.dims[1].values[0]
    groups = g.choose(1, 1, channels or 1)
    out = g.random.randint(1, 3)
    kernels = [g.random.randint(1, 3) for _ in v.dims[2:]]
    strides = [g.choose(1, 2) for _ in kernels]
    extra = [g.random.randint(0, s - 1) for s in strides]
    pads = [g.random.randint(0, (k - 1) // 2) for k in kernels] * 2
    def size(d, k, s, e, p):
        if (d.least - 1) * s + k + e - 2 * p < 0:
            raise Skip
        return d.map(lambda n: (n - 1) * s + k + e - 2 * p, f"t({{}},{k},{s},{e},{p})")
    dims = [size(*args) for args in zip(v.dims[2:], kernels, strides, extra, pads)]
    w = g.fresh("f32", g.statics(channels, out, *kernels), lo=-1, hi=1, step=0.25, weight=True)
    about = dot(v, w, max(1, channels // groups * math.prod(kernels)))
    about.update(step=None, rounding=20 * max(1, channels * math.prod(kernels)))
    inputs = [v, w] + ([g.fresh("f32", g.statics(out * groups), lo=0, hi=0, step=0.25)] if g.chance(0.3) else [])
    g.value(g.node("ConvTranspose", inputs, kernel_shape=kernels, strides=strides, output_padding=extra, pads=pads, group=groups), "f32",
            [v.dims[0], g.static(out * groups)] + dims, **about)


@op("MaxPool", "AveragePool", "LpPool", since=11, weight=0.9)
def pool(g, name):
    v = image(g, g.choose(1, 2, 2, 2, 3), lo=-8, hi=8, low=2)
    if v.dtype == "f16" and name == "LpPool":
        raise Skip
    kernels = kernel_for(g, v)
    attributes, dims = windows(g, v, kernels, dilate=name == "MaxPool" or (name == "AveragePool" and g.graph.opset >= 19), half=True)
    if name == "LpPool":
        attributes.pop("dilations")
        w = g.within(v, 0.25, 8) if v.lo < 0.25 < v.hi else v
        if w.lo < 0.25:
            raise Skip
        n = math.prod(kernels)
        attributes["pads"] = [0] * (2 * len(kernels))
        dims = [window(g, d, k, s, 1, 0, 0) for d, k, s in zip(v.dims[2:], kernels, attributes["strides"])]
        return g.value(g.node(name, [w], kernel_shape=kernels, p=g.choose(1, 2), **attributes), w.dtype, list(w.dims[:2]) + dims, 0, w.top * n, w.err * n, rounding=8 * n)
    if name == "AveragePool":
        if g.graph.opset < 19:
            attributes.pop("dilations")
        return g.value(g.node(name, [v], kernel_shape=kernels, count_include_pad=g.choose(0, 1), **attributes), v.dtype, list(v.dims[:2]) + dims,
                       min(v.lo, 0), max(v.hi, 0), v.err, rounding=2 * math.prod(kernels))
    if g.graph.opset >= 12 and v.exact and g.chance(0.3) and v.dtype == "f32" and len(kernels) == 2 and all(x == 1 for x in attributes["dilations"]):
        values, where = g.node(name, [v], 2, kernel_shape=kernels, **attributes)
        g.value(where, "i64", list(v.dims[:2]) + dims, 0, most(v.dims), hazy=True)
        return g.like(values, v, list(v.dims[:2]) + dims)
    g.like(g.node(name, [v], kernel_shape=kernels, **attributes), v, list(v.dims[:2]) + dims)


@op("MaxUnpool", since=11, weight=0.4)
def max_unpool(g):
    v = g.fresh("f32", g.statics(g.choose(1, 2), g.choose(1, 3), 4, 6), lo=-4.0, hi=4.0, step=0.25)
    values, where = g.node("MaxPool", [v], 2, kernel_shape=[2, 2], strides=[2, 2])
    small = list(v.dims[:2]) + g.statics(2, 3)
    pooled = g.like(values, v, small)
    g.like(g.node("MaxUnpool", [pooled, where], kernel_shape=[2, 2], strides=[2, 2]), v, lo=min(0, v.lo), hi=max(0, v.hi), hazy=True)


@op("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", since=2, weight=0.5)
def global_pool(g, name):
    v = image(g, g.choose(1, 2, 3), lo=-8, hi=8)
    if v.dtype != "f32" or any(d.least == 0 for d in v.dims[2:]):
        raise Skip
    dims, n = list(v.dims[:2]) + g.statics(*[1] * (v.rank - 2)), most(v.dims[2:])
    if name == "GlobalMaxPool":
        return g.like(g.node(name, [v]), v, dims)
    if name == "GlobalLpPool":
        return g.like(g.node(name, [v], p=1), v, dims, lo=0, hi=v.top * n, err=v.err * n, step=None, rounding=4 * n)
    g.like(g.node(name, [v]), v, dims, step=None, rounding=2 * n)


@op("Resize", since=13, weight=0.8)
def resize(g):
    v = image(g, g.choose(1, 2, 2), lo=-8, hi=8, high=6)
    if v.dtype != "f32" or not v.static:
        raise Skip
    mode = g.choose("nearest", "linear", "cubic") if v.rank == 4 else g.choose("nearest", "linear")
    factors = [g.choose(1.0, 2.0, 0.5) for _ in v.dims[2:]]
    sizes = [int(d.values[0] * f) for d, f in zip(v.dims[2:], factors)]
    if any(s == 0 for s in sizes) or any(d.least == 0 for d in v.dims):
        raise Skip
    dims = list(v.dims[:2]) + g.statics(*sizes)
    how = g.choose("half_pixel", "asymmetric", "align_corners") if mode != "nearest" else "asymmetric"
    if how == "align_corners" and sizes != [d.values[0] * f for d, f in zip(v.dims[2:], factors)]:
        raise Skip  # ONNX takes the product with the scale as the length, ONNX Runtime what is left of it
    attributes = dict(mode=mode, coordinate_transformation_mode=how, nearest_mode="floor" if mode == "nearest" else None)
    if g.chance(0.5):
        inputs = [v, None, g.constant(np.array([1, 1] + factors, np.float32))]
    else:
        inputs = [v, None, None, g.ints(*[d.values[0] for d in dims])]
    top = v.top * (1 if mode != "cubic" else 2.5)
    if mode == "nearest":
        return g.like(g.node("Resize", inputs, **attributes), v, dims)
    g.like(g.node("Resize", inputs, **attributes), v, dims, lo=-top, hi=top, err=v.err * 2.5 + v.top * 1e-6, step=None, rounding=64)


@op("Upsample", since=9, until=9, weight=3)
def upsample(g):
    v = g.fresh("f32", g.dims(2, high=3) + g.dims(2, 1, 4))
    dims = list(v.dims[:2]) + [d.map(lambda n: n * 2, "({}*2)") for d in v.dims[2:]]
    g.like(g.node("Upsample", [v, g.constant(np.array([1, 1, 2, 2], np.float32))], mode="nearest"), v, dims)


@op("GridSample", since=20, weight=0.5)
def grid_sample(g):
    v = image(g, 2, lo=-4, hi=4, low=2, high=5)
    if v.dtype != "f32" or v.rank != 4:
        raise Skip
    where = g.fresh("f32", [v.dims[0], g.extent(1, 4), g.extent(1, 4), g.static(2)], lo=-0.75, hi=0.75, step=0.25)
    g.value(g.node("GridSample", [v, where], mode="linear", padding_mode=g.choose("zeros", "border"), align_corners=1), "f32",
            [v.dims[0], v.dims[1]] + list(where.dims[1:3]), min(0, v.lo), max(0, v.hi), v.err + v.top * 1e-5, None, rounding=64)


@op("AffineGrid", since=20, weight=0.4)
def affine_grid(g):
    n, h, w = g.random.randint(1, 3), g.random.randint(2, 4), g.random.randint(2, 4)
    theta = g.fresh("f32", g.statics(n, 2, 3), lo=-1.0, hi=1.0, step=0.25)
    g.value(g.node("AffineGrid", [theta, g.ints(n, 1, h, w)], align_corners=g.choose(0, 1)), "f32", g.statics(n, h, w, 2), -3.0, 3.0, 1e-5, None, rounding=32)


@op("RoiAlign", since=16, until=21, weight=0.4)
def roi_align(g):
    n, c, boxes = g.random.randint(1, 2), g.random.randint(1, 3), g.random.randint(0 if g.chance(g.style.empty) else 1, 3)
    v = g.fresh("f32", g.statics(n, c, 6, 6), lo=-2.0, hi=2.0, step=0.25)
    rois = g.constant(np.array([[0.5, 1.0, 4.5, 5.0]] * boxes, np.float32).reshape(boxes, 4))
    batch = g.fresh("i64", g.statics(boxes), lo=0, hi=n - 1)
    g.value(g.node("RoiAlign", [v, rois, batch], output_height=2, output_width=3, sampling_ratio=2, mode="avg", coordinate_transformation_mode="half_pixel"), "f32",
            g.statics(boxes, c, 2, 3), -2.0, 2.0, 1e-5, None, rounding=64)


@op("MaxRoiPool", since=1, weight=0.3)
def max_roi_pool(g):
    c = g.random.randint(1, 3)
    v = g.fresh("f32", g.statics(1, c, 8, 8), lo=-2.0, hi=2.0, step=0.25)
    rois = g.constant(np.array([[0, 0, 0, 3, 3], [0, 2, 2, 7, 5]], np.float32))
    g.like(g.node("MaxRoiPool", [v, rois], pooled_shape=[2, 2], spatial_scale=1.0), v, g.statics(2, c, 2, 2))


@op("Col2Im", since=18, weight=0.4)
def col2im(g):
    n, c = g.random.randint(1, 2), g.random.randint(1, 3)
    v = g.fresh("f32", g.statics(n, c * 4, 9))
    g.like(g.node("Col2Im", [v, g.ints(4, 4), g.ints(2, 2)]), v, g.statics(n, c, 4, 4), lo=-v.top * 4, hi=v.top * 4)


@op("DeformConv", since=19, weight=0.3)
def deform_conv(g):
    v = g.fresh("f32", g.statics(1, 2, 4, 4), lo=-2.0, hi=2.0, step=0.25)
    w = g.fresh("f32", g.statics(2, 2, 2, 2), lo=-1.0, hi=1.0, step=0.25)
    offset = g.fresh("f32", g.statics(1, 8, 3, 3), lo=-0.5, hi=0.5, step=0.25)
    g.value(g.node("DeformConv", [v, w, offset], kernel_shape=[2, 2]), "f32", g.statics(1, 2, 3, 3), -16.0, 16.0, 1e-5, None, rounding=128)


def letters(g):
    return g.choose("sum", "mean", "none")


@op("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", since=13, weight=0.4)
def loss(g, name):
    c, how = g.random.randint(2, 5), letters(g)
    v = g.fresh("f32", [g.extent(1, 5), g.static(c)], lo=-4.0, hi=4.0, step=0.25)
    if v.dims[0].least == 0:
        raise Skip
    target = g.fresh("i64", [v.dims[0]], lo=0, hi=c - 1)
    n = max(1, v.dims[0].most) if how == "sum" else 1
    dims = [v.dims[0]] if how == "none" else []
    g.value(g.node(name, [v, target], reduction=how), "f32", dims, -12.0 * n, 12.0 * n, v.err * n, None, rounding=64)


@op("Det", since=11, weight=0.4)
def det(g):
    n = g.random.randint(1, 4)
    v = g.fresh("f32", g.dims(g.choose(0, 1, 2), high=3) + g.statics(n, n), lo=-2.0, hi=2.0, step=0.25)
    top = 2.0 ** n * math.factorial(n)
    g.value(g.node("Det", [v]), "f32", v.dims[:-2], -top, top, top * 1e-5, None)


@op("DFT", since=20, weight=0.4)
def dft(g):
    n = g.random.randint(1, 9)
    v = g.fresh("f32", [g.extent(1, 3), g.static(n), g.static(g.choose(1, 2))])
    inverse = g.choose(0, 1) if v.dims[-1].values[0] == 2 else 0
    g.value(g.node("DFT", [v, None, g.scalar(1)], inverse=inverse), "f32", list(v.dims[:2]) + g.statics(2), -2 * v.top * n, 2 * v.top * n, v.top * n * 1e-5, None)


@op("STFT", since=17, weight=0.4)
def stft(g):
    size = g.choose(4, 8)
    v = g.fresh("f32", g.statics(g.random.randint(1, 2), 2 * size + g.random.randint(0, 5), 1))
    frames = (v.dims[1].values[0] - size) // 2 + 1
    window_ = g.constant(np.ones(size, np.float32))
    g.value(g.node("STFT", [v, g.scalar(2), window_, g.scalar(size)], onesided=1), "f32", [v.dims[0]] + g.statics(frames, size // 2 + 1, 2),
            -v.top * size, v.top * size, v.top * size * 1e-5, None)


@op("HannWindow", "HammingWindow", "BlackmanWindow", since=17, weight=0.2)
def window_op(g, name):
    n = g.random.randint(1, 9)
    g.value(g.node(name, [g.scalar(n)], periodic=g.choose(0, 1) if n > 1 else 1), "f32", g.statics(n), -0.1, 1.0, 1e-5, None)


@op("MelWeightMatrix", since=17, weight=0.2)
def mel(g):
    g.value(g.node("MelWeightMatrix", [g.scalar(4), g.scalar(16), g.scalar(8000), g.scalar(0.0, "f32"), g.scalar(4000.0, "f32")]), "f32", g.statics(9, 4),
            0.0, 1.0, 1e-4, None)


@op("NonMaxSuppression", since=11, weight=0.4)
def nms(g):
    """Boxes on a grid; scores that differ."""
    n = g.random.randint(1, 6)
    corners = g.numpy.integers(0, 6, (1, n, 2)).astype(np.float32)
    boxes = g.constant(np.concatenate([corners, corners + g.numpy.integers(1, 4, (1, n, 2))], -1).astype(np.float32))
    scores = g.constant((g.numpy.permutation(2 * n).reshape(1, 2, n) / 16).astype(np.float32))
    count = Dim([2 * n] * len(g.graph.bindings), g.name("d_"), [0] * len(g.graph.bindings))
    g.value(g.node("NonMaxSuppression", [boxes, scores, g.scalar(g.random.randint(1, 3)), g.scalar(0.4375, "f32"), g.scalar(0.125, "f32")]), "i64",
            [count, g.static(3)], 0, 2 * n)

