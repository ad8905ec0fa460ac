#!/usr/bin/env python3
"""Prints interpreter cases whose expectations numpy computes (OracleTest.cpp reads them).

One case a line, fields separated by tabs: op, attributes, inputs, outputs, tolerance; tensors separated by ';' in the
literal syntax of Cases.h. Everything is seeded, so the cases are the same on every run.
"""
import itertools

import numpy as np

rng = np.random.default_rng(7)
TYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "ui8": np.uint8, "ui16": np.uint16,
         "ui32": np.uint32, "ui64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64, "i1": np.bool_}
NAMES = {np.dtype(v): k for k, v in TYPES.items()}
FLOATS = ("f16", "f32", "f64")
NUMBERS = [name for name in TYPES if name != "i1"]
INTS = [name for name in NUMBERS if name not in FLOATS]


def literal(array):
    array = np.asarray(array)
    shape = "".join(f"{dim}x" for dim in array.shape)
    if array.dtype == np.bool_:
        values = [str(int(v)) for v in array.ravel()]
    elif array.dtype.kind == "f":
        values = [repr(float(v)) for v in array.ravel()]
    else:
        values = [str(int(v)) for v in array.ravel()]
    return f"{shape}{NAMES[array.dtype]}: " + " ".join(values)


def emit(op, attributes, inputs, outputs, tolerance=0.0):
    print("\t".join([op, attributes, ";".join(map(literal, inputs)), ";".join(map(literal, outputs)), repr(tolerance)]))


def sample(name, shape):
    """Values that fill the range of an integer type; multiples of 1/8 for floats."""
    if name == "i1":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if name in FLOATS:
        return (rng.integers(-80, 80, shape) / 8).astype(TYPES[name])
    info = np.iinfo(TYPES[name])
    return rng.integers(info.min, info.max, shape, dtype=TYPES[name], endpoint=True)


def small(name, shape, low=-4, high=5):
    low = max(low, 0) if name.startswith("ui") else low
    return rng.integers(low, high, shape).astype(TYPES[name])


def ints(values):
    return "array<i64" + "".join((": " if i == 0 else ", ") + str(int(v)) for i, v in enumerate(values)) + ">"


def flag(value):
    return "true" if value else "false"


def elementwise():
    shapes = [((5,), (5,)), ((2, 3), ()), ((), (4,)), ((2, 1, 4), (3, 1)), ((3, 1), (1, 5)), ((2, 3, 4), (2, 3, 4)),
              ((1, 1), (2, 1, 1, 3))]
    operations = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    with np.errstate(all="ignore"):
        for (op, function), name, (a, b) in itertools.product(operations.items(), NUMBERS, shapes):
            x, y = sample(name, a), sample(name, b)
            emit(op, "", [x, y], [np.asarray(function(x, y)).astype(TYPES[name])])
        for name, (a, b) in itertools.product(NUMBERS, shapes):
            x, y = sample(name, a), sample(name, b)
            y = np.where(y == 0, TYPES[name](3), y).astype(TYPES[name])
            emit("mod", "", [x, y], [np.asarray(np.mod(x, y)).astype(TYPES[name])])
            emit("fmod", "", [x, y], [np.asarray(np.fmod(x, y)).astype(TYPES[name])])
            if name in FLOATS:
                emit("div", "", [x, y], [np.asarray(x / y).astype(TYPES[name])])
            else:
                quotient = [int(abs(int(p)) // abs(int(q))) * (1 if (p < 0) == (q < 0) else -1)
                            for p, q in np.broadcast(x, y)]
                bits = np.iinfo(TYPES[name]).bits
                wrapped = np.array([q % 2**bits for q in quotient], dtype=np.uint64).astype(TYPES[name])
                emit("div", "", [x, y], [wrapped.reshape(np.broadcast(x, y).shape)])
            for kind in ("eq", "ne", "lt", "le", "gt", "ge"):
                function = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
                            "ge": np.greater_equal}[kind]
                u, v = small(name, a), small(name, b)
                emit("compare " + kind, "", [u, v], [np.asarray(function(u, v))])
    for name in INTS:
        x, y = sample(name, (3, 4)), sample(name, (4,))
        emit("and", "", [x, y], [x & y])
        emit("or", "", [x, y], [x | y])
        emit("xor", "", [x, y], [x ^ y])
        count = rng.integers(0, np.iinfo(TYPES[name]).bits, (3, 4)).astype(TYPES[name])
        emit("shl", "", [x, count], [np.left_shift(x, count)])
        emit("shr", "", [x, count], [np.right_shift(x, count)])
    for name in TYPES:
        c, x, y = sample("i1", (2, 1, 3)), sample(name, (4, 1)), sample(name, (2, 4, 3))
        emit("select", "", [c, x, y], [np.where(c, x, y)])


def movement():
    for name in TYPES:
        x = sample(name, (2, 3, 4, 5))
        for permutation in itertools.permutations(range(4)):
            emit("transpose", f"permutation = {ints(permutation)}", [x], [np.transpose(x, permutation)])
        y = sample(name, (4, 6, 5))
        for steps in ((1, 1, 1), (2, 3, 1), (-1, 2, -2), (-3, -1, 1)):
            index = tuple(slice(None, None, step) for step in steps)
            want = y[index]
            starts = [0 if step > 0 else dim - 1 for step, dim in zip(steps, y.shape)]
            emit("slice", f"starts = {ints(starts)}, sizes = {ints(want.shape)}, steps = {ints(steps)}", [y], [want])
        for mode, numpy_mode in (("constant", "constant"), ("edge", "edge"), ("reflect", "reflect"), ("wrap", "wrap")):
            low, high = (1, 3, 0), (2, 0, 4)
            value = sample(name, ())
            arguments = {"constant_values": value} if mode == "constant" else {}
            want = np.pad(y, list(zip(low, high)), mode=numpy_mode, **arguments)
            emit("pad", f"low = {ints(low)}, high = {ints(high)}, interior = {ints((0, 0, 0))}, mode = #dmir<pad_mode {mode}>",
                 [y, value], [want])
        for axis in range(3):
            parts = [sample(name, tuple(k if a == axis else d for a, d in enumerate((2, 3, 4)))) for k in (1, 0, 5)]
            emit("concat", f"axis = {axis}", parts, [np.concatenate(parts, axis)])
            index = rng.integers(-y.shape[axis], y.shape[axis], (3, 2))
            emit("gather", f"axis = {axis}", [y, index], [np.take(y, index, axis)])
            shape = tuple(7 if a == axis else d for a, d in enumerate(y.shape))
            index = rng.integers(0, y.shape[axis], shape)
            emit("gather_elements", f"axis = {axis}", [y, index], [np.take_along_axis(y, index, axis)])
        want = np.broadcast_to(sample(name, (3, 1, 2)), (4, 3, 5, 2))
        emit("broadcast", "", [want[0][:, :1]], [want])
        index = rng.integers(0, 4, (5, 2))
        emit("gather_nd", "", [y, index], [y[index[:, 0], index[:, 1]]])


def reductions():
    for name in NUMBERS:
        x = small(name, (3, 4, 5))
        for axes in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
            for keep in (True, False):
                attributes = f"axes = {ints(axes)}, keepDims = {flag(keep)}"
                wide = x.astype(np.float64) if name in FLOATS else x.astype(np.int64)
                emit("reduce sum", attributes, [x], [np.sum(wide, axes, keepdims=keep).astype(TYPES[name])])
                emit("reduce max", attributes, [x], [np.max(x, axes, keepdims=keep)])
                emit("reduce min", attributes, [x], [np.min(x, axes, keepdims=keep)])
                mean = np.trunc(np.mean(wide, axes, keepdims=keep)) if name in INTS else np.mean(wide, axes, keepdims=keep)
                emit("reduce mean", attributes, [x], [mean.astype(TYPES[name])], 2e-3 if name == "f16" else 2e-7)
                if len(axes) == 1:
                    emit("arg_reduce max", f"axis = {axes[0]}, keepDims = {flag(keep)}", [x],
                         [np.argmax(x, axes[0], keepdims=keep)])
                    emit("arg_reduce min", f"axis = {axes[0]}, keepDims = {flag(keep)}", [x],
                         [np.argmin(x, axes[0], keepdims=keep)])
        for axis in range(3):
            emit("cumsum", f"axis = {axis}", [x], [np.cumsum(x, axis, dtype=TYPES[name])])
            flipped = np.flip(np.cumsum(np.flip(x, axis), axis, dtype=TYPES[name]), axis)
            emit("cumsum", f"axis = {axis}, reverse = true", [x], [flipped])
            key = -x.astype(np.float64)
            order = np.argsort(key, axis, kind="stable").take(range(2), axis)
            emit("top_k", f"k = 2, axis = {axis}", [x], [np.take_along_axis(x, order, axis), order])
            order = np.argsort(x, axis, kind="stable").take(range(3), axis)
            emit("top_k", f"k = 3, axis = {axis}, largest = false", [x], [np.take_along_axis(x, order, axis), order])


def matmuls():
    shapes = [((3, 4), (4, 5)), ((1, 7), (7, 1)), ((9, 2), (2, 3)), ((2, 3, 4), (4, 2)), ((3, 4), (2, 4, 5)),
              ((2, 1, 3, 4), (5, 4, 2)), ((6, 1), (1, 6))]
    for name, (a, b) in itertools.product(NUMBERS, shapes):
        x, y = small(name, a), small(name, b)
        want = np.matmul(x.astype(np.float64), y.astype(np.float64))
        emit("matmul", "", [x, y], [want.astype(np.int64).astype(TYPES[name]) if name in INTS else want.astype(TYPES[name])])


def windows_of(x, kernel, strides, dilations, low, high, fill):
    """Yields (output index, window values), the window as an array of the kernel's shape."""
    spatial = len(kernel)
    padded = np.pad(x, [(0, 0), (0, 0)] + list(zip(low, high)), constant_values=fill)
    out = [(padded.shape[2 + i] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1 for i in range(spatial)]
    for position in itertools.product(*map(range, out)):
        index = tuple(slice(p * s, p * s + d * (k - 1) + 1, d) for p, s, d, k in zip(position, strides, dilations, kernel))
        yield position, out, padded[(slice(None), slice(None)) + index]


def convolutions():
    settings = [((7,), (3,), (1,), (1,), (0,), (0,), 1), ((9,), (3,), (2,), (2,), (2,), (1,), 2),
                ((5, 6), (3, 2), (1, 1), (1, 1), (1, 0), (1, 1), 1), ((6, 7), (3, 3), (2, 3), (1, 2), (2, 2), (0, 2), 2),
                ((4, 4), (1, 1), (1, 1), (1, 1), (0, 0), (0, 0), 4), ((3, 4, 5), (2, 2, 3), (1, 2, 1), (1, 1, 2), (0, 1, 2), (1, 0, 0), 1)]
    for name, (dims, kernel, strides, dilations, low, high, groups) in itertools.product(("i8", "i32", "ui64", "f16", "f32", "f64"), settings):
        x, w = small(name, (2, 4) + dims), small(name, (8, 4 // groups) + kernel)
        per_in, per_out = 4 // groups, 8 // groups
        want = None
        for position, out, window in windows_of(x.astype(np.float64), kernel, strides, dilations, low, high, 0):
            want = np.zeros([2, 8] + out) if want is None else want
            for o in range(8):
                g = o // per_out
                part = window[:, g * per_in:(g + 1) * per_in]
                want[(slice(None), o) + position] = (part * w[o].astype(np.float64)).reshape(2, -1).sum(1)
        attributes = f"strides = {ints(strides)}, dilations = {ints(dilations)}, low = {ints(low)}, high = {ints(high)}"
        result = want.astype(np.int64).astype(TYPES[name]) if name in INTS else want.astype(TYPES[name])
        emit("conv", attributes + f", groups = {groups}", [x, w], [result])
        pool(name, x, kernel, strides, dilations, low, high, attributes)


def pool(name, x, kernel, strides, dilations, low, high, attributes):
    attributes = f"window = {ints(kernel)}, " + attributes
    extra = f", ceilExtra = {ints([0] * len(kernel))}"
    highest = total = count = None
    wide = np.where(np.isfinite(x), x, 0).astype(np.float64)
    ones = np.ones_like(wide)
    axes = tuple(range(2, 2 + len(kernel)))
    fields = [windows_of(wide, kernel, strides, dilations, low, high, fill) for fill in (-np.inf, 0)]
    fields.append(windows_of(ones, kernel, strides, dilations, low, high, 0))
    for (position, out, top), (_, _, values), (_, _, inside) in zip(*fields):
        if highest is None:
            highest, total, count = (np.zeros(list(x.shape[:2]) + out) for _ in range(3))
        at = (slice(None), slice(None)) + position
        highest[at], total[at], count[at] = top.max(axes), values.sum(axes), inside.sum(axes)
    if not np.isfinite(highest).all():
        return
    convert = (lambda a: np.trunc(a).astype(np.int64).astype(TYPES[name])) if name in INTS else (lambda a: a.astype(TYPES[name]))
    emit("pool max", attributes + extra, [x], [convert(highest)])
    emit("pool sum", attributes + extra, [x], [convert(total)])
    tolerance = 2e-3 if name == "f16" else 2e-7
    emit("pool average", attributes + extra, [x], [convert(total / count)], tolerance)
    emit("pool average", attributes + extra + ", countPadding = true", [x], [convert(total / np.prod(kernel))], tolerance)


def normalisations():
    for name in FLOATS:
        x = sample(name, (3, 4, 5))
        wide = x.astype(np.float64)
        tolerance = {"f16": 2e-3, "f32": 3e-7, "f64": 1e-13}[name]
        for axis in range(3):
            shifted = wide - wide.max(axis, keepdims=True)
            e = np.exp(shifted)
            p = e / e.sum(axis, keepdims=True)
            if name != "f16":
                emit("softmax", f"axis = {axis}", [x], [p.astype(TYPES[name])], tolerance)
                emit("softmax", f"axis = {axis}, log = true", [x], [(shifted - np.log(e.sum(axis, keepdims=True))).astype(TYPES[name])],
                     1e-6 if name == "f32" else 1e-10)
        for axes in ((0,), (2,), (1, 2), (0, 1, 2)):
            mean, variance = wide.mean(axes, keepdims=True), wide.var(axes, keepdims=True)
            attributes = f"axes = {ints(axes)}, epsilon = 1.0e-3 : f64"
            emit("normalize standard", attributes, [x], [((wide - mean) / np.sqrt(variance + 1e-3)).astype(TYPES[name])], tolerance)
            rms = wide / np.sqrt((wide * wide).mean(axes, keepdims=True) + 1e-3)
            emit("normalize rms", attributes, [x], [rms.astype(TYPES[name])], tolerance)


def casts():
    for source, target in itertools.product(TYPES, TYPES):
        if source == target:
            continue
        x = sample(source, (17,))
        if source in FLOATS and target.startswith("ui"):
            x = np.abs(x)
        if target == "f16" and source not in FLOATS:
            x = small(source, (17,)) if source != "i1" else x
        emit("cast", "", [x], [x.astype(TYPES[target])])


elementwise()
movement()
reductions()
matmuls()
convolutions()
normalisations()
casts()
