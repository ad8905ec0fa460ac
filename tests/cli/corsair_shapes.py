#!/usr/bin/env python3
"""Every kind of op that the simulated card computes, at extents 0, 1 and odd ones, and graphs whose order of tasks the operands
do not show: compiled for the card and for the CPU, and compared. A table says which cases the host computes and why.

corsair_shapes.py BIN [KIND ..]      exit 77 where numpy is not installed"""
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

BIN = pathlib.Path(sys.argv[1])
DTYPES = {"f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i1": np.bool_}


def tensor(shape, kind="f32"):
    return "tensor<" + "".join(f"{dim}x" for dim in shape) + kind + ">"


def ints(values):
    return "array<i64" + (": " + ", ".join(map(str, values)) if len(values) else "") + ">"


class Case:
    """A DMIR function of named inputs; `host`: a part of the reason why the host has a part of it."""

    def __init__(self, name, host=None):
        self.name, self.host = name, host
        self.inputs, self.lines, self.results, self.functions, self.values = [], [], [], "", {}

    def input(self, shape, kind="f32", values=None):
        name = f"%x{len(self.inputs)}"
        self.inputs.append((shape, kind))
        if values is not None:
            self.values[len(self.inputs) - 1] = values
        return name, tuple(shape), kind

    def constant(self, shape, kind="f32"):
        """Multiples of 1/8, which f16 and blocks of few magnitudes hold exactly."""
        numbers = np.random.default_rng(len(self.lines) + 7).integers(-9, 9, size=shape)
        text = np.array2string(numbers / 8 if kind[0] == "f" else numbers, separator=",", threshold=1 << 30).replace(".,", ".0,").replace(".]", ".0]")
        if text.endswith("."):
            text += "0"
        return self.op(f"dmir.constant dense<{'' if 0 in shape else text}> : {tensor(shape, kind)}", shape, kind)

    def op(self, text, shape, kind="f32"):
        self.lines.append((f"%v{len(self.lines)}", text))
        return self.lines[-1][0], tuple(shape), kind

    def call(self, name, operands, attributes, shape, kind="f32"):
        names, types = ", ".join(o[0] for o in operands), ", ".join(tensor(*o[1:]) for o in operands)
        return self.op(f"dmir.{name} {names} {attributes} : ({types}) -> {tensor(shape, kind)}", shape, kind)

    def result(self, *values):
        self.results += values
        return self

    def text(self):
        arguments = ", ".join(f'%x{i}: {tensor(*t)} {{dmir.name = "x{i}"}}' for i, t in enumerate(self.inputs))
        types = [tensor(*r[1:]) for r in self.results]
        outputs = ", ".join(f'{t} {{dmir.name = "y{i}"}}' for i, t in enumerate(types))
        body = "\n".join(f"  {name + ' = ' if not text.startswith('dmir.define') else ''}{text} loc(\"{name[1:]}\")" for name, text in self.lines)
        return (f"func.func @main({arguments}) -> ({outputs}) {{\n{body}\n  return {', '.join(r[0] for r in self.results)} : {', '.join(types)}\n}}\n"
                + self.functions)

    def write_inputs(self, folder):
        folder.mkdir()
        numbers = np.random.default_rng(3)
        for i, (shape, kind) in enumerate(self.inputs):
            values = numbers.integers(-16, 17, size=shape)
            values = self.values.get(i, values / 8 if kind[0] == "f" else values)
            np.save(folder / f"in_x{i}.npy", np.asarray(values).astype(DTYPES[kind]).reshape(shape))


def joined(name, cases):
    """One function that computes all of them."""
    whole = Case(name)
    for number, case in enumerate(cases):
        def renamed(text):
            for i in reversed(range(len(case.inputs))):
                text = text.replace(f"%x{i}", f"%x_{i + len(whole.inputs)}")
            return text.replace("%v", f"%c{number}v")
        lines = [(renamed(n), renamed(t)) for n, t in case.lines]
        results = [(renamed(n), *rest) for n, *rest in case.results]
        whole.values.update((len(whole.inputs) + i, v) for i, v in case.values.items())
        whole.inputs += case.inputs
        whole.lines += [(n.replace("%x_", "%x"), t.replace("%x_", "%x")) for n, t in lines]
        whole.results += [(n.replace("%x_", "%x"), *rest) for n, *rest in results]
    return whole


# --- the cases --------------------------------------------------------------------------------------------------------------

SHAPES = [(), (0,), (1,), (7,), (1, 1), (0, 3), (3, 0), (1, 65), (65, 1), (0, 1), (2, 1, 3), (3, 0, 1), (1, 1, 1, 1), (2, 0, 3, 4), (1, 3, 1, 5)]


def elementwise():
    for op in ("relu", "neg", "abs", "sigmoid"):
        for shape in SHAPES:
            case = Case(f"{op} {shape}")
            yield case.result(case.call(op, [case.input(shape)], "", shape))
    for op in ("add", "mul", "max"):
        for a, b in [((), (3,)), ((1,), (0,)), ((0, 3), (1, 3)), ((0, 3), (3,)), ((4, 1), (1, 5)), ((2, 1, 3), (5, 1)), ((1, 1), (0, 1)), ((2, 3), (1, 1, 1))]:
            case = Case(f"{op} {a} {b}")
            yield case.result(case.call(op, [case.input(a), case.input(b)], "", np.broadcast_shapes(a, b)))
    for shape in SHAPES:
        case = Case(f"select {shape}")
        x, y = case.input(shape), case.input(shape)
        below = case.call("compare lt", [x, y], "", shape, "i1")
        yield case.result(below, case.call("select", [below, x, y], "", shape), case.call("cast", [y], "", shape, "i64"))


def infinite():
    """Infinities saturate on the way to the card, which still knows them; the host knows those of its own values."""
    for shape in [(), (1,), (7,), (0,), (64, 65), (3, 1, 5)]:
        values = np.resize([1.0, np.inf, np.nan, -np.inf, 65000.0, -0.5], shape)
        for host, op in [(None, "neg"), ("f16 saturates", None)]:
            case = Case(f"infinite {shape} {op}", host)
            x = case.input(shape, values=values)
            yield case.result(case.call("is_inf", [case.call(op, [x], "", shape) if op else x], "", shape, "i1"))
    case = Case("infinite constant")
    picked = case.call("gather", [case.op("dmir.constant dense<[0x7F800000, 2.0, 0xFF800000]> : tensor<3xf32>", (3,)), case.input((4,), "i64", [2, 1, 0, 1])], "{axis = 0 : i64}", (4,))
    yield case.result(case.call("is_inf", [picked], "", (4,), "i1"))


def movement():
    for shape in SHAPES:
        for kind in ("f32", "f16", "i64", "i1"):
            case = Case(f"moves {shape} {kind}")
            x, rank = case.input(shape, kind), len(shape)
            order = list(range(rank))[::-1]
            turned = case.call("transpose", [x], f"{{permutation = {ints(order)}}}", shape[::-1], kind)
            flat = case.call("reshape", [turned], "", (int(np.prod(shape)),), kind)
            wide = case.call("broadcast", [x], "", (2, *shape), kind)
            case.result(turned, flat, wide)
            if rank:
                at = max(range(rank), key=lambda axis: shape[axis])
                sizes = [min(dim, 1) if axis == at else dim for axis, dim in enumerate(shape)]
                starts, nothing = [dim - size for dim, size in zip(shape, sizes)], [0 if axis == at else dim for axis, dim in enumerate(shape)]
                part = case.call("slice", [x], f"{{starts = {ints(starts)}, sizes = {ints(sizes)}, steps = {ints([1] * rank)}}}", sizes, kind)
                empty = case.call("slice", [x], f"{{starts = {ints([0] * rank)}, sizes = {ints(nothing)}, steps = {ints([1] * rank)}}}", nothing, kind)
                total = [dim + sizes[axis] if axis == at else dim for axis, dim in enumerate(shape)]
                case.result(part, empty, case.call("concat", [x, empty, part], f"{{axis = {at} : i64}}", total, kind))
            yield case
    for shape, axis in (((8, 8, 7, 8), 0), ((2, 256, 40), 1)):  # quads share the operand
        case = Case(f"turns round {shape} {axis}")
        floor = case.call("floor", [case.input(shape)], "", shape)
        starts, steps = [0] * len(shape), [1] * len(shape)
        starts[axis], steps[axis] = shape[axis] - 1, -1
        yield case.result(case.call("slice", [floor], f"{{starts = {ints(starts)}, sizes = {ints(shape)}, steps = {ints(steps)}}}", shape))


def pad():
    for shape, low, high in [((0,), (0,), (2,)), ((1,), (1,), (0,)), ((0, 3), (1, 0), (0, 1)), ((3, 1), (0, 0), (0, 0)), ((1, 1, 1), (0, 1, 2), (1, 0, 1)), ((2, 0), (1, 0), (1, 0))]:
        case = Case(f"pad {shape}")
        out = [dim + l + h for dim, l, h in zip(shape, low, high)]
        x, value = case.input(shape), case.input(())
        yield case.result(case.call("pad", [x, value], f"{{low = {ints(low)}, high = {ints(high)}, interior = {ints([0] * len(shape))}}}", out))


def gather():
    for data, indices, axis in [((1,), (1,), 0), ((3, 4), (), 0), ((3, 4), (0,), 0), ((3, 1), (2,), 0), ((1, 4), (3,), 0), ((2, 3, 1), (2, 2), 1), ((0, 3), (2,), 1),
                                ((3, 0), (2,), 0), ((0, 3), (0,), 0), ((4, 1), (1, 1), 1)]:
        for constant in (False, True):
            case = Case(f"gather {data} {indices} {axis} {constant}")
            out = data[:axis] + indices + data[axis + 1:]
            picks = np.arange(int(np.prod(indices))).reshape(indices) % max(data[axis], 1)
            x = case.constant(data) if constant else case.input(data)
            yield case.result(case.call("gather", [x, case.input(indices, "i64", picks)], f"{{axis = {axis} : i64}}", out))


def scatter():
    for data, rows, axis in [((1, 1), 1, 0), ((4, 3), 2, 0), ((4, 3), 0, 0), ((4, 1), 3, 0), ((2, 5, 3), 1, 1), ((0, 3), 0, 0), ((3, 0), 2, 0), ((1, 4, 1), 2, 1)]:
        # Where a row has one element the broadcast is none, and which rows are whole does not show.
        case = Case(f"scatter {data} {rows} {axis}", "scatters whole rows" if max(data[:axis] + data[axis + 1:]) == 1 else None)
        shape = data[:axis] + (rows,) + data[axis + 1:]
        along = tuple(rows if i == axis else 1 for i in range(len(data)))
        x, index, updates = case.input(data), case.input(along, "i64", np.arange(rows).reshape(along)), case.input(shape)
        wide = case.call("broadcast", [index], "", shape, "i64")
        yield case.result(case.call("scatter_elements", [x, wide, updates], f"{{axis = {axis} : i64}}", data))


def matmul():
    for a, b in [((1, 1), (1, 1)), ((1, 5), (5, 1)), ((0, 5), (5, 3)), ((3, 5), (5, 0)), ((1, 64), (64, 1)), ((65, 1), (1, 65)), ((2, 3, 1), (1, 4)), ((0, 3, 4), (4, 2)),
                 ((2, 0, 4), (4, 2)), ((1, 1, 4), (4, 1)), ((3, 1, 1, 4), (4, 70)), ((1, 129), (129, 130)), ((66, 129), (129, 1)), ((3, 0), (0, 2))]:
        for constant in (False, True):
            case = Case(f"matmul {a} {b} {constant}", "a product over nothing" if a[-1] == 0 else None)
            y = case.call("matmul", [case.input(a), case.constant(b) if constant else case.input(b)], "", a[:-1] + b[-1:])
            yield case.result(y, case.call("add", [y, case.constant(b[-1:])], "", a[:-1] + b[-1:]))
    for a, b in [((1, 1, 1), (1, 1, 1)), ((2, 1, 5), (2, 5, 1)), ((0, 2, 3), (0, 3, 2)), ((2, 0, 3), (2, 3, 4)), ((2, 3, 4), (2, 4, 0)), ((1, 3, 4), (5, 4, 1)), ((5, 1, 4), (1, 4, 3)),
                 ((3, 1, 2, 5), (2, 5, 3)), ((2, 1, 1, 1), (1, 3, 1, 1)), ((9, 1, 64), (9, 64, 1))]:
        case = Case(f"matmul {a} {b}")
        out = np.broadcast_shapes(a[:-2], b[:-2]) + (a[-2], b[-1])
        yield case.result(case.call("matmul", [case.input(a), case.input(b)], "", out))
    # Operands that are broadcast along what is summed.
    for constant in (False, True):
        for batch in ((), (3,)):
            case = Case(f"matmul broadcast left {batch} {constant}")
            a = case.call("broadcast", [case.input(batch + (5, 1))], "", batch + (5, 70))
            yield case.result(case.call("matmul", [a, case.constant((70, 9)) if constant else case.input((70, 9))], "", batch + (5, 9)))
    case = Case("matmul broadcast right")
    b = case.call("broadcast", [case.input((1, 9))], "", (70, 9))
    yield case.result(case.call("matmul", [case.input((5, 70)), b], "", (5, 9)))


def conv():
    for image, weights, groups, pad in [
            ((1, 1, 1, 1), (1, 1, 1, 1), 1, 0), ((2, 1, 5, 6), (1, 1, 1, 1), 1, 0), ((1, 1, 5, 5), (3, 1, 3, 3), 1, 1), ((1, 3, 5, 5), (1, 3, 3, 3), 1, 0), ((3, 1, 1, 7), (2, 1, 1, 3), 1, 1),
            ((3, 1, 7, 1), (2, 1, 3, 1), 1, 1), ((0, 3, 4, 4), (2, 3, 3, 3), 1, 0), ((1, 65, 1, 1), (1, 65, 1, 1), 1, 0), ((1, 1, 1, 9), (65, 1, 1, 1), 1, 0), ((1, 2, 4, 4), (2, 1, 1, 1), 2, 0),
            ((1, 2, 4, 4), (2, 1, 3, 3), 2, 1), ((1, 2, 3, 3), (4, 1, 1, 1), 2, 0), ((2, 4, 3, 3), (4, 2, 1, 1), 2, 0), ((1, 3, 4, 4), (0, 3, 1, 1), 1, 0), ((1, 0, 4, 4), (2, 0, 1, 1), 1, 0),
            ((1, 1, 8), (1, 1, 1), 1, 0), ((2, 1, 8), (3, 1, 3), 1, 1), ((1, 3, 1), (1, 3, 1), 1, 0), ((0, 1, 8), (1, 1, 1), 1, 0), ((1, 1, 1, 1), (1, 1, 3, 3), 1, 1), ((1, 2, 1), (2, 1, 3), 2, 1)]:
        for kind in ("f32", "f16"):
            spatial = len(image) - 2
            high = [pad * (k > 1) for k in weights[2:]]
            out = (image[0], weights[0]) + tuple(size + 2 * p - k + 1 for size, p, k in zip(image[2:], high, weights[2:]))
            case = Case(f"conv {image} {weights} {groups} {kind}", "a product over nothing" if image[1] == 0 else None)
            attributes = f"{{strides = {ints([1] * spatial)}, dilations = {ints([1] * spatial)}, low = {ints(high)}, high = {ints(high)}, groups = {groups} : i64}}"
            y = case.call("conv", [case.input(image, kind), case.constant(weights, kind)], attributes, out, kind)
            yield case.result(y, case.call("add", [y, case.constant((weights[0],) + (1,) * spatial, kind)], "", out, kind))
    # Channels that are one.
    for spatial in ((8,), (5, 6)):
        case = Case(f"conv broadcast {spatial}")
        image = case.call("broadcast", [case.input((2, 1) + spatial)], "", (2, 3) + spatial)
        attributes = "{" + ", ".join(f"{key} = {ints([value] * len(spatial))}" for key, value in (("strides", 1), ("dilations", 1), ("low", 1), ("high", 1))) + "}"
        yield case.result(case.call("conv", [image, case.constant((4, 3) + (3,) * len(spatial))], attributes, (2, 4) + spatial))
    for kernel in (1, 3):
        case = Case(f"conv by an input {kernel}", "must be constant")
        attributes = f"{{strides = {ints([1, 1])}, dilations = {ints([1, 1])}, low = {ints([0, 0])}, high = {ints([0, 0])}}}"
        out = (1, 2, 6 - kernel, 6 - kernel)
        yield case.result(case.call("conv", [case.input((1, 1, 5, 5)), case.input((2, 1, kernel, kernel))], attributes, out))
    # The same weights for an image without elements.
    case, w = Case("conv twice"), (2, 3, 1, 1)
    weights = case.constant(w)
    attributes = f"{{strides = {ints([1, 1])}, dilations = {ints([1, 1])}, low = {ints([0, 0])}, high = {ints([0, 0])}}}"
    yield case.result(*(case.call("conv", [case.input((n, 3, 4, 4)), weights], attributes, (n, 2, 4, 4)) for n in (0, 2)))
    # A filter of one element that something else reads, or would.
    for shape in ((0,), (3,)):
        case = Case(f"filter and scalar {shape}", "another was chosen" if shape[0] else None)
        filter, x = case.constant((1, 1, 1, 1)), case.input(shape)
        yield case.result(case.call("conv", [case.input((1, 1, 4, 4)), filter], f"{{strides = {ints([1, 1])}, dilations = {ints([1, 1])}, low = {ints([0, 0])}, high = {ints([0, 0])}}}", (1, 1, 4, 4)),
                          case.call("mul", [x, filter], "", (1, 1, 1, *shape)))
    # The same filter as the right operand of a product, which makes nothing or needs it in another form.
    attributes = f"{{strides = {ints([1])}, dilations = {ints([1])}, low = {ints([0])}, high = {ints([0])}}}"
    for rows in (0, 2):
        for first in (True, False):
            case = Case(f"filter and factor {rows} {first}", "another was chosen" if rows else None)
            weights, image, left = case.constant((2, 3, 4)), case.input((1, 3, 9)), case.input((2, rows, 3))
            calls = [lambda: case.call("conv", [image, weights], attributes, (1, 2, 6)), lambda: case.call("matmul", [left, weights], "", (2, rows, 4))]
            yield case.result(*(call() for call in (calls if first else calls[::-1])))


def pool():
    for kind in ("max", "average"):
        for image, window, pad in [((1, 1, 1, 1), (1, 1), 0), ((2, 1, 4, 4), (2, 2), 0), ((0, 3, 4, 4), (2, 2), 0), ((1, 0, 4, 4), (2, 2), 0), ((1, 3, 1, 5), (1, 3), 0), ((1, 3, 5, 1), (3, 1), 0),
                                   ((1, 1, 6), (2,), 0), ((1, 65, 1), (1,), 0), ((2, 0, 6), (2,), 0), ((1, 1, 1, 1), (3, 3), 1)]:
            n = len(window)
            out = image[:2] + tuple(size + 2 * pad - k + 1 for size, k in zip(image[2:], window))
            attributes = (f"{{window = {ints(window)}, strides = {ints([1] * n)}, dilations = {ints([1] * n)}, low = {ints([pad] * n)}, high = {ints([pad] * n)}, ceilExtra = {ints([0] * n)}}}")
            case = Case(f"pool {kind} {image} {window}")
            yield case.result(case.call(f"pool {kind}", [case.input(image)], attributes, out))


def reduce():
    for kind in ("sum", "mean", "prod", "max", "min"):
        for shape, axes in [((1,), (0,)), ((0,), (0,)), ((7,), (0,)), ((1, 1), (0, 1)), ((3, 1), (1,)), ((3, 1), (0,)), ((0, 3), (0,)), ((0, 3), (1,)), ((3, 0), (0,)), ((3, 0), (1,)), ((0, 0), (0,)),
                            ((1, 65), (1,)), ((65, 1), (0,)), ((2, 1, 3), (0, 2)), ((0, 4, 5, 8), (1, 2, 3)), ((2, 3, 0, 1), (2, 3)), ((1, 3, 1, 5), (0, 2))]:
            for keeps in (True, False):
                out = [1 if axis in axes else dim for axis, dim in enumerate(shape) if keeps or axis not in axes]
                refused = kind in ("max", "min") and 0 in shape and 0 not in out
                case = Case(f"reduce {kind} {shape} {axes} {keeps}", "the extremes of nothing" if refused else None)
                yield case.result(case.call(f"reduce {kind}", [case.input(shape)], f"{{axes = {ints(axes)}, keepDims = {str(keeps).lower()}}}", out))


def rows():
    for shape, axis in [((1,), 0), ((0,), 0), ((1, 1), 1), ((1, 65), 1), ((65, 1), 1), ((65, 1), 0), ((0, 3), 1), ((3, 0), 1), ((3, 0), 0), ((2, 1, 3), 1), ((1, 3, 1, 5), 3), ((2, 0, 3, 4), 3)]:
        case = Case(f"rows {shape} {axis}")
        x = case.input(shape)
        case.result(case.call("softmax", [x], f"{{axis = {axis} : i64}}", shape), case.call("softmax", [x], f"{{axis = {axis} : i64, log = true}}", shape))
        for kind in ("standard", "rms"):
            case.result(case.call(f"normalize {kind}", [x], f"{{axes = {ints([axis])}, epsilon = 1.0e-3 : f64}}", shape))
        yield case


def order():
    """Sizes that a task returns, and branches: what must wait for them shows in no operand, or separates two parts for the card."""
    case = Case("counted", "is not lowered")
    x, image, zero = case.input((3, 5), "i64"), case.input((2, 5, 16)), case.op("dmir.constant dense<0> : tensor<i64>", (), "i64")
    some = case.call("compare ne", [x, zero], "", (3, 5), "i1")
    flags = case.call("cast", [case.call("reshape", [some], "", (15,), "i1")], "", (15,), "i64")
    count = case.call("reduce sum", [flags], "{axes = array<i64: 0>}", (1,), "i64")
    case.op(f'dmir.define_dims {count[0]} {{max = #dmir.dims<"15">, symbols = ["k"]}} : tensor<1xi64>', ())
    turned = case.call("transpose", [image], "{permutation = array<i64: 1, 0, 2>}", (5, 2, 16))
    size = case.op('dmir.dim_tensor {dims = #dmir.dims<"k">, values = array<i64: 2, -9223372036854775808>} : tensor<2xi64>', (2,), "i64")
    # Work for the card that needs the size: no part of what the size needs.
    floats = case.call("cast", [size], "", (2,))
    yield case.result(size, turned, case.call("relu", [floats], "", (2,)))

    case = Case("branched", "is not lowered")
    x, flag, y = case.input((3, 5)), case.input((), "i1"), case.input((3, 5))
    both = case.call("add", [y, x], "", (3, 5))
    case.functions = """func.func private @then(%a: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = dmir.relu %a : (tensor<3x5xf32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}
func.func private @else(%a: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = dmir.neg %a : (tensor<3x5xf32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}
"""
    given = case.op(f"dmir.if {flag[0]} then @then else @else({both[0]}) : (tensor<i1>, tensor<3x5xf32>) -> tensor<3x5xf32>", (3, 5))
    product = case.call("mul", [x, given], "", (3, 5))
    yield case.result(product, case.call("reduce max", [product], "{axes = array<i64: 0, 1>}", (1, 1)))

    # A value of the host that the card reads, and the host again beside what the card made in the same turn.
    case, shape = Case("shared", "integers are divided"), (2, 3)
    x, y = (case.input(shape, "i64", np.arange(1, 7)) for _ in range(2))
    divided = lambda a, b: case.call("div", [a, b], "", shape, "i64")
    first = case.call("add", [divided(x, x), y], "", shape, "i64")
    quotient = divided(y, x)
    yield case.result(divided(quotient, first), case.call("mul", [quotient, first], "", shape, "i64"))


KINDS = {f.__name__: f for f in (order, elementwise, infinite, movement, pad, gather, scatter, matmul, conv, pool, reduce, rows)}


# --- running them -----------------------------------------------------------------------------------------------------------

def tool(name, *arguments):
    command = [str(part) for part in (BIN / name, *arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return f"{name} exits with {result.returncode}: {(result.stderr or result.stdout)[-600:]}" if result.returncode else None


def differs(want, got):
    if want.shape != got.shape or want.dtype != got.dtype:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    if want.dtype.kind != "f":
        return None if np.array_equal(want, got) else f"{got} instead of {want}"
    finite = np.isfinite(want)
    if not np.array_equal(want[~finite], got[~finite], equal_nan=True) or not np.isfinite(got[finite]).all():
        return f"{got} instead of {want}"
    error = np.abs(want[finite].astype(np.float64) - got[finite]).max(initial=0)
    return f"an error of {error}" if error > 0.02 * max(np.abs(want[finite]).max(initial=0), 0.1) else None


def check(case, folder, levels):
    """What is wrong with it, and the reasons for what the host computes."""
    folder.mkdir()
    (folder / "m.mlir").write_text(case.text())
    case.write_inputs(folder / "in")
    wrong = tool("dmxc", folder / "m.mlir", "-q", "-o", folder / "cpu.bundle") or \
        tool("dmx-run", folder / "cpu.bundle", "-q", "--inputs", folder / "in", "--output-dir", folder / "cpu")
    if wrong:
        return wrong, []
    for level in levels:
        wrong = tool("dmxc", folder / "m.mlir", "-q", "-t", "corsair" + level, "-o", folder / "d.bundle", "--placement-report", folder / "report") or \
            tool("dmx-run", folder / "d.bundle", "-q", "--inputs", folder / "in", "--output-dir", folder / "card")
        if wrong:
            return f"corsair{level}: {wrong}", []
        for file in sorted((folder / "cpu").iterdir()):
            if wrong := differs(np.load(file), np.load(folder / "card" / file.name)):
                return f"corsair{level}: {file.stem}: {wrong}", []
    return None, [line for line in (folder / "report").read_text().splitlines() if not line.startswith("#") and "\tcorsair\t" not in line and "\tview\t" not in line]


def misplaced(case, host):
    """Host ops without the reason that the case gives; or none at all where it gives one."""
    left = [line for line in host if not case.host or case.host not in line]
    if left and case.name not in ("counted", "branched"):
        return "on the host: " + "; ".join(left)
    return None if host or not case.host else f"nothing is refused with '{case.host}'"


def run(kind, scratch):
    cases, failures = list(KINDS[kind]()), []
    levels = [":quads=1", ":quads=4"]
    # Together first; one by one where that fails, to name the case.
    apart = [c for c in cases if c.host or c.functions]
    groups = [[c for c in cases if c not in apart]] + [[c] for c in apart]
    for number, group in enumerate(group for group in groups if group):
        whole = joined(kind, group) if len(group) > 1 else group[0]
        wrong, host = check(whole, scratch / f"{kind}{number}", levels)
        wrong = wrong or misplaced(whole, host)
        if not wrong:
            continue
        before = len(failures)
        for i, case in enumerate(group if len(group) > 1 else []):
            own, host = check(case, scratch / f"{kind}{number}.{i}", levels)
            if own := own or misplaced(case, host):
                failures.append(f"{case.name}: {own}")
        if len(failures) == before:
            failures.append(f"{whole.name}: {wrong}")
    print(f"{'FAIL' if failures else 'ok  '} {kind}: {len(cases)} cases, {len(failures)} wrong", flush=True)
    for text in failures:
        print("  " + text, flush=True)
    return not failures


with tempfile.TemporaryDirectory(prefix="dmxc-shapes-") as place:
    sys.exit(0 if all([run(kind, pathlib.Path(place)) for kind in sys.argv[2:] or KINDS]) else 1)
