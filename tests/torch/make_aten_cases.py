#!/usr/bin/python3
"""Writes aten_cases.json: operators of ATen with inputs and what torch computes for them (Debian's python3-torch 1.13).
Usage: make_aten_cases.py > aten_cases.json. Operators that this torch does not have are composed of those that it has."""
import json
import math
import sys

import torch
import torch.nn.functional as F

NAMES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64", torch.int32: "i32",
         torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool"}
TYPES = {name: dtype for dtype, name in NAMES.items()}
generator = torch.Generator().manual_seed(1)
torch.manual_seed(1)  # of rand_like
cases = []


def T(*shape, dtype="f32", lo=-2.0, hi=2.0):
    """Random numbers with two digits: short to write down."""
    dtype = TYPES[dtype]
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) > 0.5
    values = torch.rand(shape, generator=generator, dtype=torch.float64) * (hi - lo) + lo
    return (values * 64).round().div(64).to(dtype) if dtype.is_floating_point else values.round().to(dtype)


def I(*shape, hi=4, lo=0, dtype="i64"):
    return torch.randint(lo, hi, shape, generator=generator).to(TYPES[dtype])


def L(values, dtype="f32"):
    return torch.tensor(values, dtype=TYPES[dtype])


def encode(value):
    """An argument of the schema's union tags."""
    if value is None:
        return {"as_none": True}
    if isinstance(value, torch.Tensor):
        return {"tensor": tensor(value)}
    if isinstance(value, torch.dtype):
        return {"dtype": NAMES[value]}
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_int": value}
    if isinstance(value, float):
        return {"as_float": value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}[value]}
    if isinstance(value, str):
        return {"as_string": value}
    items = list(value)
    if any(isinstance(item, torch.Tensor) for item in items):
        return {"tensors": [None if item is None else tensor(item) for item in items]}
    if items and all(isinstance(item, bool) for item in items):
        return {"as_bools": items}
    if any(isinstance(item, float) for item in items):
        return {"as_floats": items}
    return {"as_ints": items}


def tensor(value):
    flat = value.detach().reshape(-1)
    numbers = flat.to(torch.float64).tolist() if value.dtype.is_floating_point else [int(x) for x in flat.tolist()]
    if value.dtype.is_floating_point:
        numbers = [float("%.8g" % x) if value.dtype != torch.float64 else x for x in numbers]
    return {"dtype": NAMES[value.dtype], "shape": list(value.shape), "data": numbers}


def call(operator, values, rest):
    with torch.no_grad():
        try:
            return operator(*[v.clone() if isinstance(v, torch.Tensor) else v for v in values], **rest)
        except RuntimeError as error:
            if "not implemented for 'Half'" not in str(error):
                raise
        widened = operator(*[v.float() if isinstance(v, torch.Tensor) else v for v in values], **rest)
        return widened.half() if widened.dtype == torch.float32 else widened


def case(target, /, instead=None, tol=None, results=None, **arguments):
    """One call; `instead` computes it where torch 1.13 has no such operator, or another library has it, `results` are the ones to
    compare."""
    if instead is None:
        name, overload = target.split(".")
        operator = getattr(getattr(torch.ops.aten, name), overload)
        positional = [a.name for a in operator._schema.arguments if not a.kwarg_only]
        last = max((i for i, n in enumerate(positional) if n in arguments), default=-1)
        defaults = {a.name: a.default_value for a in operator._schema.arguments}
        values = [arguments[n] if n in arguments else defaults[n] for n in positional[:last + 1]]
        rest = {n: v for n, v in arguments.items() if n not in positional}
        got = call(operator, values, rest)
    else:
        with torch.no_grad():
            got = instead(**arguments)
    as_list = isinstance(got, list)
    got = [got] if isinstance(got, torch.Tensor) else list(got)
    entry = {"target": target, "arguments": {n: encode(v) for n, v in arguments.items()}, "list": as_list,
             "results": [tensor(r) if isinstance(r, torch.Tensor) and (results is None or i in results) else None
                         for i, r in enumerate(got)]}
    if tol:
        entry["tol"] = tol
    cases.append(entry)


def elementwise():
    x = T(3, 4)
    for name in ("abs neg sign sgn relu ceil floor round trunc frac square exp exp2 expm1 sin cos tan atan sinh cosh tanh asinh erf erfc "
                 "sigmoid isnan isinf isfinite logical_not positive").split():
        case(name + ".default", self=x)
    for name in "sqrt rsqrt reciprocal log log1p log2 log10".split():
        case(name + ".default", self=T(3, 4, lo=0.1))
    for name in "asin acos atanh erfinv".split():
        case(name + ".default", self=T(3, 4, lo=-0.9, hi=0.9))
    case("acosh.default", self=T(3, 4, lo=1.1, hi=4))
    special = L([math.inf, -math.inf, math.nan, 0.0, -0.0, 1.5, -1.5, 2.5])
    for name in "abs neg sign relu floor round trunc exp tanh sigmoid isnan isinf isfinite sqrt reciprocal erf".split():
        case(name + ".default", self=special)
    for name in "exp sqrt sigmoid reciprocal erf log2".split():
        case(name + ".default", self=T(5, dtype="i32", lo=1, hi=3))
        case(name + ".default", self=T(5, dtype="f16", lo=0.5, hi=3), tol=[2e-3, 1e-3])
    case("bitwise_not.default", self=I(4, lo=-9, hi=9))
    case("bitwise_not.default", self=T(4, dtype="bool"))
    case("nan_to_num.default", self=special, nan=1.0, posinf=7.0)
    case("round.decimals", self=T(6, lo=-3, hi=3), decimals=1)
    a, b, row = T(3, 4), T(3, 4), T(4)
    for name in "add sub mul div maximum minimum fmod remainder atan2 hypot".split():
        overload = ".default" if name in ("maximum", "minimum", "atan2", "hypot") else ".Tensor"
        case(name + overload, self=a, other=b)
        case(name + overload, self=a, other=row)
    for name in "eq ne lt le gt ge".split():
        case(name + ".Tensor", self=I(3, 4), other=I(4))
        case(name + ".Scalar", self=T(6, dtype="i32"), other=1)
        case(name + ".Scalar", self=T(6), other=0.5)
    for name in "add sub rsub mul div fmod remainder".split():
        case(name + ".Scalar", self=a, other=1.5)
    case("add.Tensor", self=a, other=b, alpha=2)
    case("sub.Tensor", self=I(4), other=I(4), alpha=3)
    case("rsub.Tensor", self=a, other=b, alpha=0.5)
    case("add.Tensor", self=T(4, dtype="bool"), other=T(4, dtype="bool"))
    case("mul.Tensor", self=T(4, dtype="bool"), other=T(4, dtype="bool"))
    case("maximum.default", self=T(4, dtype="bool"), other=T(4, dtype="bool"))
    for types in (("i32", "f32"), ("u8", "i8"), ("f16", "f32"), ("bool", "i64"), ("f16", "bf16"), ("i64", "f16"), ("u8", "i32")):
        case("add.Tensor", self=T(3, dtype=types[0], lo=0, hi=3), other=T(3, dtype=types[1], lo=0, hi=3), tol=[1e-2, 1e-2])
    case("add.Tensor", self=T(3), other=T(dtype="f64"))       # a scalar tensor does not widen
    case("mul.Tensor", self=T(3, dtype="i32"), other=T())
    case("mul.Scalar", self=T(3, dtype="i64"), other=2.5)
    case("add.Scalar", self=T(3, dtype="f16"), other=1.5, tol=[2e-3, 1e-3])
    for mode in (None, "floor", "trunc"):
        case("div.Tensor_mode", self=T(8, lo=-9, hi=9), other=L([2, -2, 3, -3, .5, -.5, 7, -7]), rounding_mode=mode)
        case("div.Tensor_mode", self=I(8, lo=-9, hi=9), other=L([2, -2, 3, -3, 1, -1, 7, -7], "i64"), rounding_mode=mode)
        case("div.Scalar_mode", self=T(8, lo=-9, hi=9), other=2.0, rounding_mode=mode)
    case("div.Tensor", self=I(4), other=I(4, lo=1, hi=5))
    case("floor_divide.default", self=T(8, lo=-9, hi=9), other=L([2, -2, 3, -3, .5, -.5, 7, -7]))
    case("floor_divide.default", self=I(4, lo=-9, hi=9), other=L([2, -2, 3, -3], "i64"))
    case("remainder.Tensor", self=I(4, lo=-9, hi=9), other=L([2, -2, 3, -3], "i64"))
    case("fmod.Tensor", self=I(4, lo=-9, hi=9), other=L([2, -2, 3, -3], "i64"))
    case("atan2.default", self=L([0, 0, 0, 1, -1, 1, -1, -0.0]), other=L([1, -1, 0, 0, 0, -1, -1, -1]))
    case("atan2.default", self=L([math.inf, -math.inf, math.inf, 1, math.nan]), other=L([math.inf, math.inf, -math.inf, -math.inf, 1]))
    case("copysign.Tensor", self=T(4), other=L([1, -1, 0.0, -0.0]))
    case("xlogy.Tensor", self=L([0, 1, 2, 0]), other=L([0, 2, 3, 5]))
    case("fmax.default", self=L([1, math.nan, 2]), other=L([math.nan, 3, 1]))
    case("pow.Tensor_Tensor", self=T(5, lo=0.1), exponent=T(5))
    for exponent in (2, 3, 0.5, -1, -0.5, 1.7, 0):
        case("pow.Tensor_Scalar", self=T(5, lo=0.2), exponent=exponent)
    case("pow.Tensor_Scalar", self=I(5), exponent=2)
    case("pow.Tensor_Scalar", self=I(5), exponent=0.5)
    case("pow.Scalar", self=2, exponent=T(5))
    for name in "and or xor".split():
        case(f"bitwise_{name}.Tensor", self=I(6, hi=16), other=I(6, hi=16))
        case(f"bitwise_{name}.Scalar", self=I(6, hi=16), other=5)
        case(f"logical_{name}.default", self=T(6), other=I(6, hi=2))
    case("bitwise_left_shift.Tensor", self=I(6, hi=16), other=I(6, hi=4))
    case("bitwise_right_shift.Tensor", self=I(6, lo=-64, hi=64), other=I(6, hi=4))
    case("where.self", condition=T(3, 4, dtype="bool"), self=a, other=row)
    case("where.ScalarOther", condition=T(3, 4, dtype="bool"), self=a, other=2.0, instead=lambda condition, self, other: torch.where(condition, self, torch.tensor(other)))
    case("clamp.default", self=a, min=-0.5, max=1)
    case("clamp.default", self=a, max=0.5)
    case("clamp.default", self=I(6), min=1, max=2)
    case("clamp.Tensor", self=a, min=T(4, lo=-1, hi=0), max=T(4, lo=0, hi=1))
    case("masked_fill.Scalar", self=a, mask=T(3, 4, dtype="bool"), value=-math.inf)
    case("addcmul.default", self=a, tensor1=b, tensor2=row, value=0.5)
    case("addcdiv.default", self=a, tensor1=b, tensor2=T(4, lo=1), value=2)
    case("lerp.Scalar", self=a, end=b, weight=0.75)
    case("lerp.Tensor", self=a, end=b, weight=T(4, lo=0, hi=1))
    for dtype in (torch.float64, torch.float16, torch.int32, torch.bool, torch.uint8):
        case("_to_copy.default", self=T(4, lo=0, hi=3), dtype=dtype)
    case("fill.Scalar", self=a, value=3)
    case("zero.default", self=a)
    case("copy.default", self=a, src=I(4), instead=lambda self, src: self.clone().copy_(src))
    case("atan2.out", self=a, other=b, out=T(3, 4))
    case("to.dtype", self=a, dtype=torch.int64, instead=lambda self, dtype: self.to(dtype))
    case("to.dtype_layout", self=a, dtype=torch.float64, instead=lambda self, dtype: self.to(dtype))
    case("to.device", self=a, device="cpu", dtype=torch.float16, instead=lambda self, device, dtype: self.to(dtype))
    case("type_as.default", self=I(4), other=T(1), instead=lambda self, other: self.type_as(other))


def activations():
    x, g = T(3, 5, lo=-4, hi=4), T(3, 5)
    for approximate in ("none", "tanh"):
        case("gelu.default", self=x, approximate=approximate)
        case("gelu_backward.default", grad_output=g, self=x, approximate=approximate)
    for name in "silu mish softplus elu selu celu leaky_relu hardtanh relu6 hardsigmoid hardswish softshrink hardshrink log_sigmoid".split():
        case(name + ".default", self=x)
    for name, function in (("softsign", F.softsign), ("tanhshrink", F.tanhshrink)):
        case(name + ".default", self=x, instead=lambda self, function=function: function(self))
    case("softplus.default", self=T(6, lo=-30, hi=30), beta=2, threshold=10)
    case("elu.default", self=x, alpha=0.5, scale=2, input_scale=1.5)
    case("leaky_relu.default", self=x, negative_slope=0.2)
    case("prelu.default", self=T(2, 3, 2), weight=T(3))
    case("prelu.default", self=x, weight=T(1))
    case("hardtanh.default", self=x, min_val=-0.5, max_val=2)
    case("threshold.default", self=x, threshold=0.5, value=-1)
    case("glu.default", self=T(3, 6), dim=1)
    case("silu.default", self=T(6, dtype="bf16"), tol=[1e-2, 1e-2])
    case("gelu.default", self=T(6, dtype="f16"), tol=[2e-3, 1e-3])
    case("threshold_backward.default", grad_output=g, self=x, threshold=0)
    case("hardtanh_backward.default", grad_output=g, self=x, min_val=-1, max_val=1)
    case("leaky_relu_backward.default", grad_output=g, self=x, negative_slope=0.1, self_is_result=False)
    case("silu_backward.default", grad_output=g, self=x)
    case("sigmoid_backward.default", grad_output=g, output=torch.sigmoid(x))
    case("tanh_backward.default", grad_output=g, output=torch.tanh(x))
    for name in ("_softmax", "_log_softmax"):
        case(name + ".default", self=x, dim=1, half_to_float=False)
        case(name + ".default", self=x, dim=0, half_to_float=False)
        function = torch.softmax if name == "_softmax" else torch.log_softmax
        case(name + "_backward_data.default", grad_output=g, output=function(x, 1), dim=1, input_dtype=torch.float32)
    case("softmax.int", self=x, dim=-1)
    case("log_softmax.int", self=x, dim=-1)
    masked = torch.where(L([[0, 1, 0], [1, 1, 1]], "bool"), L(-math.inf), T(2, 3))
    case("_safe_softmax.default", self=masked, dim=-1, instead=lambda self, dim: torch.nan_to_num(torch.softmax(self, dim), nan=0.0))


def views():
    x = T(2, 3, 4)
    case("view.default", self=x, size=[4, -1])
    case("view.default", self=T(1), size=[])
    case("_unsafe_view.default", self=x, size=[6, 4])
    case("reshape.default", self=x, shape=[-1])
    case("flatten.using_ints", self=x, start_dim=1)
    case("unflatten.int", self=x, dim=2, sizes=[2, -1], instead=lambda self, dim, sizes: self.unflatten(dim, sizes))
    case("permute.default", self=x, dims=[2, 0, -2])
    case("transpose.int", self=x, dim0=0, dim1=-1)
    case("t.default", self=T(2, 3))
    case("movedim.int", self=x, source=0, destination=2)
    case("movedim.intlist", self=x, source=[0, 1], destination=[2, 0])
    case("squeeze.default", self=T(1, 3, 1))
    case("squeeze.dim", self=T(1, 3, 1), dim=2)
    case("squeeze.dim", self=T(1, 3, 1), dim=1)
    case("squeeze.dims", self=T(1, 3, 1, 2), dim=[0, 1, -2], instead=lambda self, dim: self.reshape(3, 2))
    case("unsqueeze.default", self=x, dim=-1)
    case("expand.default", self=T(3, 1), size=[2, -1, 4])
    case("expand_as.default", self=T(3, 1), other=T(2, 3, 4))
    for arguments in ({}, {"dim": 1, "start": 1}, {"dim": 2, "start": -3, "end": -1}, {"dim": 2, "start": 0, "end": 2 ** 63 - 1, "step": 2},
                      {"dim": 0, "start": 5, "end": 9}, {"dim": 1, "start": 2, "end": 1}):
        case("slice.Tensor", self=x, **arguments)
    case("select.int", self=x, dim=1, index=-1)
    case("narrow.default", self=x, dim=2, start=1, length=2)
    for offset in (0, 1, -1, 3, 7, -7):
        case("diagonal.default", self=T(3, 4), offset=offset)
    case("diagonal.default", self=x, offset=1, dim1=0, dim2=2)
    case("as_strided.default", self=T(12), size=[3, 2], stride=[2, 3], storage_offset=1)
    case("unfold.default", self=T(2, 7), dimension=1, size=3, step=2)
    case("split.Tensor", self=T(7, 2), split_size=3)
    case("split_with_sizes.default", self=T(2, 7), split_sizes=[1, 2, 4], dim=1)
    case("chunk.default", self=T(7), chunks=3)
    case("tensor_split.indices", self=T(7), indices=[1, 5])
    case("tensor_split.sections", self=T(7), sections=3)
    case("unbind.int", self=x, dim=1)
    for name in "alias detach clone contiguous lift_fresh_copy".split():
        case(name + ".default", self=x)


def joins():
    x = T(2, 3, 4)
    case("cat.default", tensors=[T(2, 3), T(1, 3), T(3, 3)])
    case("cat.default", tensors=[T(2, 3), T(2, 1)], dim=-1)
    case("cat.default", tensors=[T(3), T(0)])
    case("cat.default", tensors=[T(2, dtype="i32"), T(2)])
    case("stack.default", tensors=[T(2, 3), T(2, 3)], dim=1)
    case("constant_pad_nd.default", self=x, pad=[1, 2, 0, 1], value=0.5)
    case("constant_pad_nd.default", self=x, pad=[-1, 2], value=3)
    for n in (1, 2, 3):
        shape = [2] + [4] * n
        for mode in ("reflection", "replication"):
            case(f"{mode}_pad{n}d.default", self=T(1, *shape), padding=[1, 2] * n)
    case("pad.default", self=x, pad=[1, 1], mode="circular")
    case("pad.default", self=x, pad=[1, 1], mode="constant", value=2.0)
    case("flip.default", self=x, dims=[0, 2])
    case("roll.default", self=x, shifts=[1, -2], dims=[0, 2])
    case("roll.default", self=x, shifts=[5])
    case("repeat.default", self=T(2, 3), repeats=[2, 1, 3])
    case("tile.default", self=T(2, 3), dims=[2])
    case("repeat_interleave.self_int", self=T(2, 3), repeats=2, dim=1)
    case("repeat_interleave.self_int", self=T(2, 3), repeats=3)
    case("pixel_shuffle.default", self=T(1, 8, 2, 3), upscale_factor=2)
    case("pixel_unshuffle.default", self=T(1, 2, 4, 6), downscale_factor=2)
    case("channel_shuffle.default", self=T(1, 6, 2), groups=2)
    for diagonal in (0, 1, -1):
        case("tril.default", self=T(3, 4), diagonal=diagonal)
        case("triu.default", self=T(3, 4), diagonal=diagonal)
    case("slice_scatter.default", self=x, src=T(2, 2, 4), dim=1, start=1)
    case("slice_scatter.default", self=x, src=T(2, 3, 2), dim=2, start=0, end=4, step=2)
    case("select_scatter.default", self=x, src=T(2, 4), dim=1, index=-1)
    case("diff.default", self=T(5))
    case("diff.default", self=T(3, 5), n=2, dim=1)


def creations():
    x = T(2, 3)
    case("zeros.default", size=[2, 2])
    case("ones.default", size=[2], dtype=torch.int32)
    case("zeros_like.default", self=x)
    case("ones_like.default", self=x, dtype=torch.bool)
    case("full_like.default", self=x, fill_value=2.5)
    case("new_zeros.default", self=x, size=[3])
    case("new_ones.default", self=I(2), size=[3])
    case("new_full.default", self=x, size=[3], fill_value=2)
    case("full.default", size=[2], fill_value=3)
    case("full.default", size=[2], fill_value=3.5)
    case("full.default", size=[2], fill_value=True, instead=torch.full)
    case("scalar_tensor.default", s=2)
    case("scalar_tensor.default", s=2, dtype=torch.int64)
    case("arange.default", end=5)
    case("arange.default", end=2.5)
    case("arange.start", start=2, end=6)
    case("arange.start_step", start=1, end=8, step=3)
    case("arange.start_step", start=5, end=0, step=-2)
    case("arange.start_step", start=0.5, end=2.0, step=0.25)
    case("arange.start_step", start=0, end=4, step=1, dtype=torch.float32)
    # What torch leaves undefined is 0 here.
    case("empty.memory_format", size=[2, 3], instead=torch.zeros)
    case("empty_strided.default", size=[2, 3], stride=[3, 1], dtype=torch.int32, instead=lambda size, stride, dtype: torch.zeros(size, dtype=dtype))
    case("empty_like.default", self=x, instead=lambda self: torch.zeros_like(self))
    case("linspace.default", start=0, end=1, steps=5)
    case("eye.default", n=3)
    case("eye.m", n=2, m=3)


def reductions():
    x = T(2, 3, 4)
    for name in "sum prod mean amax amin max min any all argmax argmin".split():
        case(name + ".default", self=x)
    case("sum.default", self=T(3, dtype="bool"))
    case("sum.default", self=T(3, dtype="i32"))
    case("sum.dim_IntList", self=x, dim=[0, 2])
    case("sum.dim_IntList", self=x, dim=[-1], keepdim=True)
    case("sum.dim_IntList", self=x, dim=None)
    case("sum.dim_IntList", self=T(4, 3, dtype="i32"), dim=[0], dtype=torch.float32)
    case("mean.dim", self=x, dim=[1], keepdim=True)
    case("prod.dim_int", self=x, dim=1)
    for name in ("amax", "amin"):
        case(name + ".default", self=x, dim=[0, 1], keepdim=True)
    for name in ("max", "min"):
        case(name + ".dim", self=x, dim=1)
        case(name + ".dim", self=x, dim=-1, keepdim=True)
        case(f"arg{name}.default", self=x, dim=1, keepdim=True)
    case("any.dim", self=T(3, 4) > 1.5, dim=1)
    case("all.dim", self=T(3, 4) < 1.0, dim=0)
    case("any.dims", self=T(2, 2, 2) > 1, dim=[0, 1], instead=lambda self, dim: self.any(0).any(0))
    case("var.correction", self=x, dim=[1], correction=1)
    case("var.correction", self=x, dim=[0, 2], correction=0, keepdim=True)
    case("var.dim", self=x, dim=[1], unbiased=False)
    case("std.correction", self=x, dim=[2], correction=1)
    case("var_mean.correction", self=x, dim=[1], correction=1)
    case("logsumexp.default", self=x, dim=[1])
    for p in (1, 2, 3, 0, math.inf):
        case("linalg_vector_norm.default", self=x, ord=p, dim=[1])
    case("norm.ScalarOpt_dim", self=x, p=2, dim=[0, 1], keepdim=True)
    case("count_nonzero.default", self=I(3, 4, hi=2))
    case("cumsum.default", self=x, dim=1)
    case("cumsum.default", self=I(5), dim=0)
    case("cumprod.default", self=x, dim=2)
    distinct = torch.randperm(12, generator=generator).float().reshape(3, 4)
    case("sort.default", self=distinct, dim=1)
    case("sort.default", self=distinct, dim=0, descending=True)
    case("argsort.default", self=distinct)
    case("topk.default", self=distinct, k=2)
    case("topk.default", self=distinct, k=2, dim=0, largest=False)
    case("median.default", self=distinct)
    case("median.dim", self=distinct, dim=1)


def indexing():
    x, i = T(4, 5), I(3)
    case("embedding.default", weight=x, indices=I(2, 3))
    case("embedding_dense_backward.default", grad_output=T(2, 3, 5), indices=I(2, 3), num_weights=4, padding_idx=1, scale_grad_by_freq=False)
    case("index_select.default", self=x, dim=1, index=i)
    case("take.default", self=x, index=I(2, 2, hi=20))
    case("gather.default", self=x, dim=1, index=I(4, 2))
    case("gather.default", self=x, dim=0, index=I(2, 5))
    case("index.Tensor", self=x, indices=[I(2, 3)])
    case("index.Tensor", self=x, indices=[None, I(3, lo=-4)])
    case("index.Tensor", self=x, indices=[I(3), I(3)])
    case("index.Tensor", self=T(3, 4, 5), indices=[None, I(2, 1), I(2)])
    case("index.Tensor", self=T(3, 4, 5), indices=[I(2, hi=3), None, I(2)])
    case("index.Tensor", self=x, indices=[L([1, 0, 1, 1], "bool")])
    case("index.Tensor", self=x, indices=[x > 0.5])
    case("index_put.default", self=x, indices=[L([0, 2], "i64")], values=T(2, 5))
    case("index_put.default", self=x, indices=[None, L([0, 2], "i64")], values=T(4, 2))
    case("index_put.default", self=x, indices=[L([0, 2, 0], "i64"), L([1, 1, 1], "i64")], values=T(3), accumulate=True)
    case("index_put.default", self=T(3, 4, 5), indices=[None, L([0, 1], "i64"), L([2, 3], "i64")], values=T(1))
    case("index_put.default", self=x, indices=[x > 0], values=T(1).reshape([]))
    case("index_add.default", self=x, dim=0, index=L([0, 2, 0], "i64"), source=T(3, 5), alpha=2)
    case("index_copy.default", self=x, dim=1, index=L([0, 2], "i64"), source=T(4, 2))
    case("scatter.src", self=x, dim=1, index=L([[0, 3], [1, 2]], "i64"), src=T(3, 4))
    case("scatter.value", self=x, dim=0, index=L([[0, 3], [1, 2]], "i64"), value=7)
    case("scatter_add.default", self=x, dim=1, index=I(4, 3), src=T(4, 3))
    for reduce in "sum prod mean amax amin".split():
        for include in (True, False):
            case("scatter_reduce.two", self=x, dim=1, index=I(4, 3), src=T(4, 3), reduce=reduce, include_self=include)
    case("nonzero.default", self=x > 0)
    case("masked_select.default", self=x, mask=x > 0)
    case("masked_scatter.default", self=x, mask=x > 0, source=T(20))
    case("one_hot.default", self=I(2, 3), num_classes=5)
    for mode in (0, 1, 2):
        case("_embedding_bag.default", weight=x, indices=I(6), offsets=L([0, 2, 2, 5], "i64"), mode=mode, results=[0])
    case("_embedding_bag.default", weight=x, indices=I(6), offsets=L([0, 2], "i64"), per_sample_weights=T(6), results=[0])


def products():
    a, b = T(3, 4), T(4, 5)
    case("mm.default", self=a, mat2=b)
    case("mm.default", self=I(3, 4), mat2=I(4, 5))
    case("bmm.default", self=T(2, 3, 4), mat2=T(2, 4, 5))
    case("mv.default", self=a, vec=T(4))
    case("dot.default", self=T(5), tensor=T(5))
    case("outer.default", self=T(3), vec2=T(4))
    for shapes in (((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2))):
        case("matmul.default", self=T(*shapes[0]), other=T(*shapes[1]))
    case("addmm.default", self=T(5), mat1=a, mat2=b)
    case("addmm.default", self=T(3, 5), mat1=a, mat2=b, beta=0.5, alpha=2)
    case("baddbmm.default", self=T(2, 3, 5), batch1=T(2, 3, 4), batch2=T(2, 4, 5), beta=2)
    case("linear.default", input=T(2, 3, 4), weight=T(5, 4), bias=T(5))
    case("linear.default", input=T(4), weight=T(5, 4))
    case("einsum.default", equation="bij,bjk->bik", tensors=[T(2, 3, 4), T(2, 4, 5)])
    case("bilinear.default", input1=T(2, 3), input2=T(2, 4), weight=T(5, 3, 4), bias=T(5))
    case("_trilinear.default", i1=T(2, 3), i2=T(2, 3), i3=T(3), expand1=[], expand2=[], expand3=[0], sumdim=[1])
    for p in (0.0, 1.0, 2.0, 3.0, math.inf):
        case("_cdist_forward.default", x1=T(2, 3, 4), x2=T(2, 5, 4), p=p, compute_mode=None)
        case("_pdist_forward.default", self=T(4, 3), p=p)
    for p in (1.0, 2.0, 3.0):
        x1, x2 = T(3, 4), T(5, 4)
        case("_cdist_backward.default", grad=T(3, 5), x1=x1, x2=x2, p=p, cdist=torch.cdist(x1, x2, p))
    q, k, v = T(2, 2, 3, 4), T(2, 2, 5, 4), T(2, 2, 5, 4)

    def attention(query, key, value, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
        if enable_gqa:
            key, value = (t.repeat_interleave(query.shape[-3] // t.shape[-3], -3) for t in (key, value))
        scores = query @ key.transpose(-1, -2) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        if attn_mask is not None:
            scores = scores.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
        return scores.softmax(-1) @ value
    name = "scaled_dot_product_attention.default"
    case(name, instead=attention, query=q, key=k, value=v)
    case(name, instead=attention, query=q, key=k, value=v, is_causal=True)
    case(name, instead=attention, query=q, key=k, value=v, attn_mask=T(3, 5), scale=0.3)
    case(name, instead=attention, query=q, key=k, value=v, attn_mask=L([[1, 0, 1, 1, 0]] * 3, "bool"))
    case("_scaled_dot_product_flash_attention_for_cpu.default", query=q, key=k, value=v, is_causal=True, scale=0.4,
         instead=lambda **arguments: (attention(**arguments), None))
    case(name, instead=attention, query=T(1, 4, 3, 4), key=T(1, 2, 3, 4), value=T(1, 2, 3, 4), enable_gqa=True)


def convolutions():
    settings = dict(stride=[2, 1], padding=[1, 0], dilation=[1, 2], transposed=False, output_padding=[0, 0], groups=1)
    x, w = T(2, 4, 6, 7), T(6, 4, 3, 2)
    case("convolution.default", input=x, weight=w, bias=T(6), **settings)
    case("convolution.default", input=x, weight=T(6, 2, 3, 2), bias=None, **{**settings, "groups": 2})
    case("convolution.default", input=T(2, 4, 5), weight=T(3, 4, 2), bias=T(3), stride=[1], padding=[1], dilation=[1], transposed=False,
         output_padding=[0], groups=1)
    case("convolution.default", input=T(1, 2, 3, 4, 5), weight=T(3, 2, 2, 2, 2), bias=None, stride=[1, 2, 1], padding=[0, 1, 0],
         dilation=[1, 1, 1], transposed=False, output_padding=[0, 0, 0], groups=1)
    case("convolution.default", input=x, weight=T(4, 3, 3, 3), bias=T(3), stride=[2, 2], padding=[1, 1], dilation=[1, 1], transposed=True,
         output_padding=[1, 0], groups=1)
    case("convolution.default", input=x, weight=T(4, 3, 2, 2), bias=T(6), stride=[1, 2], padding=[0, 0], dilation=[1, 1], transposed=True,
         output_padding=[0, 0], groups=2)
    case("conv1d.default", input=T(2, 4, 5), weight=T(3, 4, 2))
    case("conv2d.default", input=x, weight=w, bias=T(6), stride=[2, 2], padding=[1, 1])
    case("conv2d.default", input=T(4, 6, 7), weight=w)
    case("conv2d.padding", input=x, weight=w, padding="same")
    case("conv2d.padding", input=x, weight=w, padding="valid", stride=[2, 2])
    case("conv3d.default", input=T(1, 2, 3, 4, 5), weight=T(3, 2, 2, 2, 2))
    case("conv_transpose2d.input", input=x, weight=T(4, 3, 3, 3), bias=T(3), stride=[2, 2], output_padding=[1, 1])
    for groups, extra in ((1, {}), (2, {"stride": [1, 1]})):
        weight = T(6, 4 // groups, 3, 2)
        s = {**settings, "groups": groups, **extra}
        g = torch.rand_like(torch.ops.aten.convolution(x, weight, None, *[s[n] for n in ("stride", "padding", "dilation", "transposed",
                                                                                          "output_padding", "groups")]))
        g = (g * 64).round() / 64
        case("convolution_backward.default", grad_output=g, input=x, weight=weight, bias_sizes=[6], **s, output_mask=[True, True, True])
    case("col2im.default", self=T(1, 8, 9), output_size=[4, 4], kernel_size=[2, 2], dilation=[1, 1], padding=[0, 0], stride=[1, 1])
    case("col2im.default", self=T(1, 8, 4), output_size=[4, 4], kernel_size=[2, 2], dilation=[2, 1], padding=[1, 0], stride=[2, 2])


def pools():
    x = T(2, 3, 6, 7)
    window = dict(kernel_size=[3, 2], stride=[2, 2], padding=[1, 0])
    case("max_pool2d.default", self=x, **window)
    case("max_pool2d_with_indices.default", self=x, **window)
    case("max_pool2d_with_indices.default", self=x, kernel_size=[2, 2], stride=[2, 2], ceil_mode=True)
    case("max_pool2d_with_indices.default", self=T(3, 6, 7), kernel_size=[2], dilation=[2])
    case("max_pool1d.default", self=T(2, 3, 7), kernel_size=[2])
    case("max_pool3d_with_indices.default", self=T(1, 2, 4, 4, 4), kernel_size=[2, 2, 2])
    y, at = torch.ops.aten.max_pool2d_with_indices(x, [3, 2], [2, 2], [1, 0])
    case("max_pool2d_with_indices_backward.default", grad_output=T(*y.shape), self=x, dilation=[1, 1], ceil_mode=False, indices=at, **window)
    for include in (True, False):
        for ceil in (True, False):
            case("avg_pool2d.default", self=x, ceil_mode=ceil, count_include_pad=include, **window)
            shape = torch.ops.aten.avg_pool2d(x, [3, 2], [2, 2], [1, 0], ceil, include).shape
            case("avg_pool2d_backward.default", grad_output=T(*shape), self=x, ceil_mode=ceil, count_include_pad=include,
                 divisor_override=None, **window)
    case("avg_pool2d.default", self=x, divisor_override=5, **window)
    case("avg_pool1d.default", self=T(2, 3, 7), kernel_size=[3])
    case("avg_pool3d.default", self=T(1, 2, 4, 4, 4), kernel_size=[2, 2, 2])
    case("avg_pool3d_backward.default", grad_output=T(1, 2, 2, 2, 2), self=T(1, 2, 4, 4, 4), kernel_size=[2, 2, 2], stride=[2, 2, 2],
         padding=[0, 0, 0], ceil_mode=False, count_include_pad=True, divisor_override=None)
    for size in ([1, 1], [3, 7], [4, 3]):
        case("_adaptive_avg_pool2d.default", self=x, output_size=size)
    case("adaptive_avg_pool2d.default", self=T(3, 6, 7), output_size=[2, 2])
    case("adaptive_avg_pool1d.default", self=T(2, 3, 7), output_size=[3])
    case("_adaptive_avg_pool3d.default", self=T(1, 2, 4, 5, 4), output_size=[2, 3, 4])
    case("_adaptive_avg_pool2d_backward.default", grad_output=T(2, 3, 4, 3), self=x)


def norms():
    x, w, b, m, v = T(2, 3, 4, 2), T(3), T(3), T(3), T(3, lo=0.5)
    case("batch_norm.default", input=x, weight=w, bias=b, running_mean=m, running_var=v, training=False, momentum=0.1, eps=1e-5,
         cudnn_enabled=True)
    case("_native_batch_norm_legit_no_training.default", input=x, weight=w, bias=b, running_mean=m, running_var=v, momentum=0.1, eps=1e-5,
         results=[0], instead=lambda input, weight, bias, running_mean, running_var, momentum, eps:
         torch.native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps))
    case("_native_batch_norm_legit.default", input=x, weight=w, bias=b, running_mean=m, running_var=v, training=False, momentum=0.1, eps=1e-5,
         results=[0], instead=lambda input, weight, bias, running_mean, running_var, training, momentum, eps:
         torch.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps))
    case("_native_batch_norm_legit_functional.default", input=x, weight=w, bias=b, running_mean=m, running_var=v, training=True, momentum=0.1,
         eps=1e-5, instead=lambda input, weight, bias, running_mean, running_var, training, momentum, eps:
         (*torch.native_batch_norm(input, weight, bias, mean := running_mean.clone(), var := running_var.clone(), training, momentum, eps), mean, var))
    case("_native_batch_norm_legit.no_stats", input=x, weight=w, bias=b, training=True, momentum=0.1, eps=1e-5,
         instead=lambda input, weight, bias, training, momentum, eps: torch.native_batch_norm(input, weight, bias, None, None, True, momentum, eps))
    case("instance_norm.default", input=x, weight=w, bias=b, running_mean=None, running_var=None, use_input_stats=True, momentum=0.1,
         eps=1e-5, cudnn_enabled=True)
    case("layer_norm.default", input=x, normalized_shape=[4, 2], weight=T(4, 2), bias=T(4, 2))
    case("layer_norm.default", input=x, normalized_shape=[2])
    case("native_layer_norm.default", input=x, normalized_shape=[2], weight=T(2), bias=T(2), eps=1e-5)
    case("group_norm.default", input=T(2, 6, 3), num_groups=3, weight=T(6), bias=T(6))
    case("native_group_norm.default", input=T(2, 6, 3), weight=T(6), bias=T(6), N=2, C=6, HxW=3, group=3, eps=1e-5)

    def rms(input, normalized_shape, weight=None, eps=None):
        y = input * torch.rsqrt(input.pow(2).mean(-1, keepdim=True) + (torch.finfo(input.dtype).eps if eps is None else eps))
        return y if weight is None else y * weight
    case("rms_norm.default", instead=rms, input=T(2, 5), normalized_shape=[5], weight=T(5), eps=1e-6)
    case("rms_norm.default", instead=rms, input=T(2, 5), normalized_shape=[5])
    y, mean, rstd = torch.ops.aten.native_layer_norm(x, [4, 2], None, None, 1e-5)
    case("native_layer_norm_backward.default", grad_out=T(2, 3, 4, 2), input=x, normalized_shape=[4, 2], mean=mean, rstd=rstd,
         weight=T(4, 2), bias=T(4, 2), output_mask=[True, True, True])
    x = T(2, 6, 3)
    y, mean, rstd = torch.ops.aten.native_group_norm(x, None, None, 2, 6, 3, 3, 1e-5)
    case("native_group_norm_backward.default", grad_out=T(2, 6, 3), input=x, mean=mean, rstd=rstd, weight=T(6), N=2, C=6, HxW=3, group=3,
         output_mask=[True, True, True])


def losses():
    x, t = torch.log_softmax(T(4, 3), 1), L([0, 2, -100, 1], "i64")
    for reduction in (0, 1, 2):
        for weight in (None, T(3, lo=0.5)):
            case("nll_loss_forward.default", self=x, target=t, weight=weight, reduction=reduction, ignore_index=-100)
            total = torch.ops.aten.nll_loss_forward(x, t, weight, reduction, -100)[1]
            case("nll_loss_backward.default", grad_output=T(4) if reduction == 0 else T(), self=x, target=t, weight=weight,
                 reduction=reduction, ignore_index=-100, total_weight=total)
        case("cross_entropy_loss.default", self=T(4, 3), target=t, reduction=reduction)
        for name in "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits kl_div".split():
            case(name + ".default", self=T(4, 3), target=T(4, 3, lo=0.1, hi=0.9), reduction=reduction)
    case("cross_entropy_loss.default", self=T(4, 3), target=torch.softmax(T(4, 3), 1))
    case("cross_entropy_loss.default", self=T(2, 3, 5), target=I(2, 5, hi=3))
    case("nll_loss_nd.default", self=x, target=t)
    case("binary_cross_entropy.default", self=T(4, lo=0.1, hi=0.9), target=T(4, lo=0, hi=1))
    case("binary_cross_entropy_with_logits.default", self=T(4, 3), target=T(4, 3, lo=0, hi=1), weight=T(3, lo=0.5), pos_weight=T(3, lo=0.5))


def resampling():
    x = T(1, 2, 4, 5)
    for size, scales in (([8, 10], None), ([3, 7], None), (None, [2.0, 1.5])):
        case("upsample_nearest2d.vec", input=x, output_size=size, scale_factors=scales)
        for corners in (True, False):
            case("upsample_bilinear2d.vec", input=x, output_size=size, align_corners=corners, scale_factors=scales)
            case("upsample_bicubic2d.vec", input=x, output_size=size, align_corners=corners, scale_factors=scales, tol=[1e-3, 1e-4])
    case("upsample_nearest2d_backward.vec", grad_output=T(1, 2, 8, 10), output_size=[8, 10], input_size=[1, 2, 4, 5], scale_factors=None)
    for corners in (True, False):
        case("upsample_bilinear2d_backward.vec", grad_output=T(1, 2, 7, 10), output_size=[7, 10], input_size=[1, 2, 4, 5],
             align_corners=corners, scale_factors=None)
    for mode in (0, 1, 2):
        for padding in (0, 1, 2) if mode != 2 else (0,):
            case("grid_sampler_2d.default", input=x, grid=T(1, 3, 3, 2, lo=-1.2, hi=1.2), interpolation_mode=mode, padding_mode=padding,
                 align_corners=bool(padding % 2), tol=[1e-3, 1e-4])


def parameters(gates, layers, directions, features, hidden):
    """The weights and biases of a recurrent network, as torch lists them."""
    made = []
    for layer in range(layers):
        for _ in range(directions):
            inputs = features if layer == 0 else hidden * directions
            made += [T(gates * hidden, inputs), T(gates * hidden, hidden), T(gates * hidden), T(gates * hidden)]
    return made


def recurrent():
    common = dict(has_biases=True, dropout=0.0, train=False)
    case("lstm.input", input=T(5, 2, 3), hx=[T(2, 2, 4), T(2, 2, 4)], params=parameters(4, 2, 1, 3, 4), num_layers=2, bidirectional=False,
         batch_first=False, **common)
    case("lstm.input", input=T(2, 5, 3), hx=[T(2, 2, 4), T(2, 2, 4)], params=parameters(4, 1, 2, 3, 4), num_layers=1, bidirectional=True,
         batch_first=True, **common)
    case("gru.input", input=T(5, 2, 3), hx=T(1, 2, 4), params=parameters(3, 1, 1, 3, 4), num_layers=1, bidirectional=False,
         batch_first=False, **common)


def dropouts():
    case("dropout.default", input=T(3), p=0.5, train=False)
    case("feature_dropout.default", input=T(3), p=0.5, train=False)
    case("native_dropout.default", input=T(3), p=0.5, train=False)


def aliases():
    """Other names of operators above, and what exporters leave whole. Last, so that the random numbers of the others stay."""
    x = T(2, 3, 4)
    for name in ("max.other", "min.other"):
        case(name, self=T(2, 3), other=T(3))
        case(name, self=I(2, 3), other=I(2, 1))
    case("swapaxes.default", self=x, axis0=0, axis1=-1)
    case("swapdims.default", self=x, dim0=1, dim1=2)
    case("moveaxis.int", self=x, source=0, destination=2)
    case("moveaxis.intlist", self=x, source=[0, 1], destination=[2, 0])
    case("meshgrid.default", tensors=[T(3), T(2)])
    for indexing in ("ij", "xy"):
        case("meshgrid.indexing", tensors=[T(3), T(2), T(4)], indexing=indexing)
    case("_weight_norm.default", v=T(4, 3, 5), g=T(4, 1, 1), dim=0)
    case("_weight_norm.default", v=T(4, 3, 5), g=T(1, 1, 5), dim=2)


def plain_recurrent():
    for name in ("rnn_tanh.input", "rnn_relu.input"):
        case(name, input=T(5, 2, 3), hx=T(4, 2, 4), params=parameters(1, 2, 2, 3, 4), num_layers=2, bidirectional=True, batch_first=False,
             has_biases=True, dropout=0.0, train=False)


def kept_boxes(dets, scores, iou_threshold):
    """torchvision's nms, box by box."""
    kept = []
    for i in sorted(range(len(scores)), key=lambda i: -scores[i]):
        def overlap(j):
            sides = (torch.minimum(dets[i][2:], dets[j][2:]) - torch.maximum(dets[i][:2], dets[j][:2])).clamp(min=0)
            area = [float((dets[k][2:] - dets[k][:2]).prod()) for k in (i, j)]
            shared = float(sides.prod())
            return shared / (area[0] + area[1] - shared)
        if all(overlap(j) <= iou_threshold for j in kept):
            kept.append(i)
    return torch.tensor(kept)


def grouped(self, mat2, offs):
    result, first = torch.zeros(self.shape[0], mat2.shape[2]), 0
    for group, last in enumerate(offs.tolist()):
        result[first:last] = self[first:last] @ mat2[group]
        first = last
    return result


def libraries():
    """Histograms, products of grouped rows, and operators that other libraries than torch define."""
    x = T(40, lo=-1, hi=9)
    for arguments in ({}, {"bins": 8}, {"bins": 8, "min": 0, "max": 7}, {"bins": 5, "min": -0.5, "max": 2.5}, {"bins": 3, "min": 4, "max": 4}):
        case("histc.default", self=x, **arguments)
    case("histc.default", self=T(3, dtype="f64", lo=2, hi=2), bins=4)
    # NaN counts nowhere; torch 1.13 took it for the least.
    case("histc.default", instead=lambda **_: L([0, 1, 1, 0, 1]), self=L([math.nan, 1, 2, math.inf, 5]), bins=5, min=0, max=5)
    corners = T(30, 2, lo=0, hi=8)
    boxes, scores = torch.cat([corners, corners + T(30, 2, lo=0.5, hi=4)], 1), T(30)
    for threshold in (0.0, 0.3, 0.7):
        case("torchvision.nms.default", instead=kept_boxes, dets=boxes, scores=scores, iou_threshold=threshold)
    for offs in ([3, 3, 9], [0, 5, 7], [9, 9, 9]):
        rows, matrices, ends = T(9, 6), T(3, 6, 5), L(offs, "i32")
        case("_grouped_mm.default", instead=grouped, self=rows, mat2=matrices, offs=ends)
        case("transformers.grouped_mm_fallback.default", instead=lambda input, weight, offs: grouped(input, weight, offs), input=rows, weight=matrices, offs=ends)


def composites():
    """What torch.export leaves whole although torch composes it of others, and second names."""
    a, b, x = T(3, 4), T(3, 4), T(2, 3, 4)
    for name in "multiply divide subtract greater greater_equal less less_equal not_equal".split():
        case(name + ".Tensor", self=a, other=T(4))
        case(name + ".Scalar", self=a, other=1.5)
    case("divide.Tensor_mode", self=a, other=b, rounding_mode="floor")
    case("true_divide.Scalar", self=I(4), other=3)
    for name in "negative absolute arcsin arccos arctan arcsinh arctanh".split():
        case(name + ".default", self=T(5, lo=-0.9, hi=0.9))
    case("arccosh.default", self=T(5, lo=1.1, hi=3))
    case("arctan2.default", self=a, other=b)
    for name in "special_erf special_erfc special_exp2 special_expit special_expm1 special_log1p".split():
        case(name + ".default", self=T(4, lo=-0.9, hi=2))
    case("special_erfinv.default", self=T(4, lo=-0.9, hi=0.9))
    case("special_logsumexp.default", self=a, dim=[1])
    case("special_logit.default", self=T(4, lo=0.1, hi=0.9))
    case("logit.default", self=L([0.0, 0.3, 1.0]), eps=0.1)
    case("clip.default", self=a, min=-0.5, max=0.5)
    case("clip.Tensor", self=a, max=b)
    case("concatenate.default", tensors=[a, b], dim=1)
    case("ger.default", self=T(3), vec2=T(2))
    case("linalg_matmul.default", self=x, other=T(4, 2))
    for name in ("adjoint", "mH", "matrix_H"):
        case(name + ".default", self=T(2, 3))
    case("native_channel_shuffle.default", self=T(1, 6, 2, 2), groups=3)
    for name in "vstack hstack dstack column_stack row_stack".split():
        case(name + ".default", tensors=[T(3), T(3)])
        case(name + ".default", tensors=[T(2, 3), T(2, 3)])
    case("hstack.default", tensors=[T(2, 3), T(2, 1)])
    case("dstack.default", tensors=[L(1.5), L(2.5)])
    for name in "hsplit vsplit dsplit".split():
        case(name + ".int", self=T(4, 4, 4), sections=2)
        case(name + ".array", self=T(4, 5, 6), indices=[1, 3])
    case("hsplit.int", self=T(6), sections=3)
    for rank in (1, 2, 3):
        for value in (L(0.5), T(3), T(2, 3), T(1, 2, 3, 1)):
            case(f"atleast_{rank}d.default", self=value)
        case(f"atleast_{rank}d.Sequence", tensors=[L(0.5), T(3)])
    case("broadcast_tensors.default", tensors=[T(3, 1), T(4), L(2.0)])
    case("fliplr.default", self=x)
    case("flipud.default", self=x)
    case("ravel.default", self=x)
    for diagonal in (0, 2, -1):
        case("diag.default", self=T(3), diagonal=diagonal)
        case("diag.default", self=T(3, 4), diagonal=diagonal)
    case("linalg_diagonal.default", A=x, offset=1)
    for name in ("fft_fftshift", "fft_ifftshift"):
        case(name + ".default", self=T(5, 4))
        case(name + ".default", self=T(5, 4), dim=[0])
    case("take_along_dim.default", self=a, indices=I(3, 2), dim=1)
    case("take_along_dim.default", self=a, indices=I(1, 2), dim=1)
    case("take_along_dim.default", self=a, indices=I(2, 3, hi=12))
    case("tensordot.default", self=x, other=T(4, 3, 5), dims_self=[2, 1], dims_other=[0, 1])
    case("tensordot.default", self=T(2, 3), other=T(4), dims_self=[], dims_other=[])
    case("inner.default", self=x, other=T(5, 4))
    case("inner.default", self=a, other=L(2.0))
    case("linalg_vecdot.default", x=x, y=T(3, 4))
    case("kron.default", self=T(2, 3), other=T(4))
    case("kron.default", self=T(2), other=T(2, 2, 3))
    case("cross.default", self=T(2, 3, 3), other=T(2, 3, 3))
    case("cross.default", self=T(3, 2), other=T(3, 2), dim=0)
    case("linalg_cross.default", self=T(2, 3), other=T(1, 3))
    case("cosine_similarity.default", x1=x, x2=T(2, 3, 4))
    case("cosine_similarity.default", x1=T(2, 3), x2=torch.zeros(3), dim=-1)
    for p in (2.0, 1.0, math.inf):
        case("pairwise_distance.default", x1=a, x2=b, p=p)
    case("pairwise_distance.default", x1=a, x2=T(4), keepdim=True)
    case("linalg_norm.default", self=x)
    case("linalg_norm.default", self=x, dim=[1], keepdim=True)
    case("linalg_norm.default", self=T(5), ord=3)
    for order in (1, -1, math.inf, -math.inf):
        case("linalg_norm.default", self=a, ord=order)
        case("linalg_matrix_norm.default", self=x, ord=order, dim=[0, 2], keepdim=True)
    case("linalg_norm.ord_str", self=a, ord="fro")
    case("linalg_matrix_norm.str_ord", self=x)
    close = L([1.0, 1.0 + 1e-6, math.nan, math.inf, -math.inf, 0.0])
    for equal in (False, True):
        case("isclose.default", self=close, other=L([1.0, 1.0, math.nan, math.inf, math.inf, 1e-9]), equal_nan=equal)
    case("isclose.default", self=L([16777217, 5], "i64"), other=L([16777216, 5], "i64"), rtol=0.0)
    case("deg2rad.default", self=a)
    case("rad2deg.default", self=a)
    case("logaddexp.default", self=L([1.0, math.inf, -math.inf, 90.0]), other=L([2.0, math.inf, -math.inf, -90.0]))
    holes = torch.where(T(3, 4) > 0, T(3, 4), torch.tensor(math.nan))
    for name in ("nanmean", "nansum"):
        case(name + ".default", self=holes, dim=[0])
        case(name + ".default", self=holes, keepdim=True)
    case("msort.default", self=T(4, 3))
    case("argsort.stable", self=I(3, 6), stable=True, dim=1)
    case("trace.default", self=T(3, 4))
    for name in ("var_mean", "std_mean"):
        case(name + ".default", self=x)
        case(name + ".dim", self=x, dim=[1], unbiased=False, keepdim=True)
        case(name + ".correction", self=x, dim=[0, 2], correction=2)
    for mode in "linear lower higher nearest midpoint".split():
        case("quantile.scalar", self=T(7), q=0.4, interpolation=mode)
        case("quantile.default", self=a, q=L([0.1, 0.5, 1.0]), dim=1, interpolation=mode)
    case("quantile.scalar", self=a, q=0.25, keepdim=True)
    case("quantile.default", self=holes, q=L(0.5), dim=0, keepdim=True)
    edges = L([-1.0, 0.0, 0.5, 1.5])
    for right in (False, True):
        case("bucketize.Tensor", self=L([-2.0, 0.0, 0.25, 1.5, 3.0, math.nan]), boundaries=edges, right=right)
        case("searchsorted.Tensor", sorted_sequence=T(2, 5).sort().values, self=T(2, 3), right=right, out_int32=True)
    case("searchsorted.Tensor", sorted_sequence=L([3.0, 1.0, 2.0]), self=L([1.5, 2.0]), side="right", sorter=L([1, 2, 0], "i64"))
    bags = {"weight": T(6, 3), "indices": I(7, hi=6), "offsets": L([0, 2, 5], "i64")}
    for mode in (0, 1, 2):
        case("embedding_bag.default", results=[0], mode=mode, **bags)
    case("embedding_bag.padding_idx", results=[0], scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None,
         include_last_offset=False, padding_idx=None, **bags)
    for arguments in ({"kernel_size": [2, 3], "dilation": [1, 1], "padding": [0, 0], "stride": [1, 1]},
                      {"kernel_size": [3, 2], "dilation": [2, 1], "padding": [1, 2], "stride": [2, 3]}):
        columns = torch.ops.aten.im2col(T(2, 3, 7, 8), **arguments)
        case("im2col.default", self=T(2, 3, 7, 8), **arguments)
        case("im2col.default", self=T(3, 7, 8), **arguments)
        case("col2im.default", self=T(*columns.shape), output_size=[7, 8], **arguments)
        case("col2im.default", self=T(*columns.shape[1:]), output_size=[7, 8], **arguments)
    for corners in (False, True):
        case("affine_grid_generator.default", theta=T(2, 2, 3), size=[2, 3, 4, 5], align_corners=corners)
        case("affine_grid_generator.default", theta=T(1, 3, 4), size=[1, 1, 2, 3, 1], align_corners=corners)
        case("grid_sampler.default", input=T(1, 2, 5, 4), grid=T(1, 3, 3, 2, lo=-1.2, hi=1.2), interpolation_mode=0, padding_mode=0,
             align_corners=corners)
    case("grid_sampler.default", input=T(1, 2, 4, 3, 5), grid=T(1, 2, 2, 2, 3, lo=-1, hi=1), interpolation_mode=1, padding_mode=1,
         align_corners=False)
    w4, r4, b4 = T(16, 3, lo=-1, hi=1), T(16, 4, lo=-1, hi=1), T(16)
    case("lstm_cell.default", input=T(2, 3), hx=[T(2, 4), T(2, 4)], w_ih=w4, w_hh=r4, b_ih=b4, b_hh=T(16))
    case("lstm_cell.default", input=T(2, 3), hx=[T(2, 4), T(2, 4)], w_ih=w4, w_hh=r4)
    case("gru_cell.default", input=T(2, 3), hx=T(2, 4), w_ih=w4[:12], w_hh=r4[:12], b_ih=b4[:12], b_hh=T(12))
    for name in ("rnn_tanh_cell", "rnn_relu_cell"):
        case(name + ".default", input=T(2, 3), hx=T(2, 4), w_ih=w4[:4], w_hh=r4[:4], b_ih=b4[:4], b_hh=T(4))
    for size in (1, 3, 4, 7):
        case("adaptive_max_pool1d.default", self=T(2, 3, 7), output_size=[size])
    case("adaptive_max_pool2d.default", self=T(2, 3, 7, 5), output_size=[3, 4])
    case("adaptive_max_pool2d.default", self=T(3, 6, 4), output_size=[3, 2])
    case("adaptive_max_pool3d.default", self=T(1, 2, 4, 5, 3), output_size=[2, 3, 2])
    for name in "__and__ __or__ __xor__".split():
        case(name + ".Scalar", self=I(4, hi=16), other=5)
    case("__xor__.Tensor", self=I(4, hi=16), other=I(4, hi=16))
    case("special_softmax.default", self=a, dim=1)
    case("special_log_softmax.default", self=a, dim=0)
    case("special_xlogy.default", self=T(4, lo=0), other=T(4, lo=0.1))
    case("special_xlogy.other_scalar", self=T(4, lo=0), other=2.5)
    case("split.sizes", self=T(7, 2), split_size=[1, 2, 4], instead=lambda self, split_size: list(self.split(split_size)))
    case("unsafe_chunk.default", self=T(7), chunks=3)
    for name, first, second in (("hinge_embedding_loss", "self", None), ("margin_ranking_loss", "input1", "input2"), ("cosine_embedding_loss", "input1", "input2")):
        for reduction in (0, 1, 2):
            shape = (4, 3) if name == "cosine_embedding_loss" else (4,)
            given = {first: T(*shape), **({second: T(*shape)} if second else {}), "target": L([1.0, -1.0, 1.0, -1.0])}
            case(name + ".default", margin=0.3, reduction=reduction, **given)
    case("linalg_multi_dot.default", tensors=[T(2, 3), T(3, 4), T(4, 2)])
    case("chain_matmul.default", matrices=[T(2, 3), T(3, 4)])
    case("diagflat.default", self=T(2, 2), offset=1)
    case("sum_to_size.default", self=x, size=[3, 1])
    for name, arguments in (("Tensor_Tensor", {"self": T(4, lo=0.1), "exponent": T(4)}), ("Tensor_Scalar", {"self": I(4, lo=1), "exponent": 0.5}),
                            ("Scalar", {"self": 2, "exponent": T(4)})):
        case("float_power." + name, **arguments)
    case("trapezoid.dx", y=a, dx=0.5)
    case("trapezoid.x", y=x, x=T(3), dim=1)
    case("trapz.x", y=a, x=T(3, 4))
    case("frobenius_norm.dim", self=x, dim=[1, 2], keepdim=True)
    case("isreal.default", self=a)
    case("pdist.default", self=T(5, 3))


for family in (elementwise, activations, views, joins, creations, reductions, indexing, products, convolutions, pools, norms, losses,
               resampling, recurrent, dropouts, aliases, plain_recurrent, libraries, composites):
    first = len(cases)
    family()
    for entry in cases[first:]:
        entry["family"] = family.__name__
sys.stdout.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
