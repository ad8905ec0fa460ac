"""Calls that compute element by element, activations, reductions."""
import math

import torch
import torch.nn.functional as F

from aten.calls import I, L, T, case, generator


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
        case(name + ".default", self=T(5, dtype="f16", lo=0.5, hi=3), tolerance=[2e-3, 1e-3])
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
        case("add.Tensor", self=T(3, dtype=types[0], lo=0, hi=3), other=T(3, dtype=types[1], lo=0, hi=3), tolerance=[1e-2, 1e-2])
    case("add.Tensor", self=T(3), other=T(dtype="f64"))       # a scalar tensor does not widen
    case("mul.Tensor", self=T(3, dtype="i32"), other=T())
    case("mul.Scalar", self=T(3, dtype="i64"), other=2.5)
    case("add.Scalar", self=T(3, dtype="f16"), other=1.5, tolerance=[2e-3, 1e-3])
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
    case("silu.default", self=T(6, dtype="bf16"), tolerance=[1e-2, 1e-2])
    case("gelu.default", self=T(6, dtype="f16"), tolerance=[2e-3, 1e-3])
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
