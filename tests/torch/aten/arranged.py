"""Diagonals, arrangements of lists, the bits of floats, windows of signals, margins."""
import math

import torch
import torch.nn.functional as F

from aten.calls import I, L, T, case


def arranged():
    """What exporters leave whole of diagonals, lists, bits, windows and losses of margins."""
    diagonals()
    lists()
    positions()
    bits()
    integers()
    tapers()
    margins()
    whole()


def diagonals():
    for offset in (0, 2, -1):
        case("diag_embed.default", self=T(2, 3), offset=offset)
        case("diag_embed.default", self=T(2, 3, 4), offset=offset, dim1=2, dim2=0)
        case("diagonal_scatter.default", self=T(3, 5), src=T(*torch.zeros(3, 5).diagonal(offset).shape), offset=offset)
        case("diagonal_scatter.default", self=T(6, 4, 3), src=T(4, *torch.zeros(3, 6).diagonal(offset).shape), offset=offset, dim1=2, dim2=0)
        for name in ("triu_indices", "tril_indices"):
            case(f"{name}.default", row=3, col=5, offset=offset)
            case(f"{name}.default", row=5, col=3, offset=offset, dtype=torch.int32)
    case("diagonal_scatter.default", self=T(3, 5), src=T(0), offset=7)
    for shape in ((7, 3), (3, 7), (3, 3, 3)):
        for wrap in (False, True):
            case("fill_diagonal_.default", self=T(*shape), fill_value=5, wrap=wrap)
    case("block_diag.default", tensors=[T(2, 3), T(3), L(1.5), T(0, 2)])


def lists():
    for k in (-1, 0, 1, 2, 3):
        case("rot90.default", self=T(2, 3, 4), k=k, dims=[2, 0])
    case("cartesian_prod.default", tensors=[T(3)])
    case("cartesian_prod.default", tensors=[I(3), I(2), I(4)])
    for r in (0, 1, 2, 4, 5):
        for with_replacement in (False, True):
            case("combinations.default", self=T(4), r=r, with_replacement=with_replacement)
    sequences = [T(3, 2), T(5, 2), T(1, 2)]
    for batch_first in (False, True):
        case("pad_sequence.default", sequences=sequences, batch_first=batch_first, padding_value=-1.5)
        case("pad_sequence.default", sequences=sequences, batch_first=batch_first, padding_side="left", instead=padded_left)
    case("flatten_dense_tensors.default", tensors=[T(2, 3), T(4), L(0.5)])
    case("unflatten_dense_tensors.default", flat=T(10), tensors=[T(2, 3), T(4)])
    for x in (T(4), I(4, lo=-3)):
        for increasing in (False, True):
            case("vander.default", x=x, increasing=increasing)
            case("vander.default", x=x, N=6, increasing=increasing)
    case("vander.default", x=T(3), N=0)
    case("_dim_arange.default", like=T(2, 3), dim=-1)
    case("unsafe_split.Tensor", self=T(2, 5), split_size=2, dim=1)
    case("unsafe_split_with_sizes.default", self=T(2, 5), split_sizes=[1, 4], dim=1)
    case("narrow_copy.default", self=T(2, 5), dim=1, start=-3, length=2)
    for mode in range(4):
        case("_pad_enum.default", self=T(1, 2, 4, 5), pad=[1, 2, 0, 1], mode=mode)


def padded_left(sequences, batch_first, padding_side):
    longest = max(len(x) for x in sequences)
    padded = [F.pad(x, (0, 0, longest - len(x), 0)) for x in sequences]
    return torch.stack(padded, 0 if batch_first else 1)


def positions():
    case("index_fill.int_Scalar", self=T(3, 4), dim=-1, index=L([0, -1], "i64"), value=2.5)
    case("index_fill.int_Scalar", self=I(3), dim=0, index=L(1, "i64"), value=7)
    case("index_fill.int_Scalar", self=T(), dim=0, index=L([0], "i64"), value=7)
    case("index_fill.int_Tensor", self=T(3, 4), dim=0, index=L([2], "i64"), value=L(3.5))
    for reduce in ("prod", "mean", "amax", "amin"):
        for include_self in (False, True):
            case("index_reduce.default", self=T(4, 3), dim=0, index=L([0, 3, 0], "i64"), source=T(3, 3), reduce=reduce, include_self=include_self)
    case("index_reduce.default", self=I(3, 4), dim=1, index=L([0, 3, 0], "i64"), source=I(3, 3), reduce="amin", include_self=False)
    for accumulate in (False, True):
        case("put.default", self=T(4, 3), index=L([[0, -1], [7, 2]], "i64"), source=T(4), accumulate=accumulate)


def bits():
    odd = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, -3.75, 1.1754944e-38, 1e-40, 3e38]
    case("signbit.default", self=L(odd))
    case("signbit.default", self=L([-2, 0, 3], "i32"))
    # Of f64, whose numbers are written out in full: the step from one to the next is compared exactly.
    case("nextafter.default", self=L(odd, "f64").reshape(-1, 1), other=L([2.0, -2.0, 0.0], "f64"), tolerance=[0, 0])
    case("nextafter.default", self=L([1.0, -1.0, 0.0]), other=L([2.0, -2.0, 1.0]))
    case("frexp.Tensor", self=L(odd[:4] + odd[7:]))
    case("frexp.Tensor", self=T(5, dtype="f64", lo=-1e300, hi=1e300))
    case("ldexp.Tensor", self=T(3, 4), other=I(4, lo=-9, hi=9))
    case("ldexp.Tensor", self=I(3), other=I(3))
    case("view.dtype", self=T(4), dtype=torch.int32)
    case("view_copy.dtype", self=I(4, dtype="i32"), dtype=torch.float32, instead=lambda self, dtype: self.view(dtype))
    case("heaviside.default", self=L([-1.0, 0.0, 2.0]), values=T(2, 3))
    for name in ("isposinf", "isneginf"):
        case(f"{name}.default", self=L(odd))
        case(f"{name}.default", self=I(3))
    for p in (0.0, 1.0, 2.0, 3.0, math.inf):
        case("dist.default", self=T(3, 4), other=T(4), p=p)
    case("logaddexp2.default", self=L([-math.inf, 3.0, 100.0]).reshape(3, 1), other=L([-math.inf, 2.0, math.inf]))
    case("copysign.Scalar", self=T(4), other=-1.5)
    case("xlogy.Scalar_Other", self=T(4), other=2.5)
    case("xlogy.Scalar_Self", self=1.5, other=T(4, lo=0.1))
    case("special_round.default", self=T(4, lo=-9, hi=9), decimals=1)
    for name, dtype in {"Byte": "u8", "Char": "i8", "Double": "f64", "Float": "f32", "Half": "f16", "Int": "i32", "Long": "i64", "Short": "i16"}.items():
        case(f"_cast_{name}.default", self=T(4, lo=0, hi=90))


def integers():
    for name in ("gcd", "lcm"):
        case(f"{name}.default", self=I(3, 4, lo=-60, hi=60), other=I(4, lo=-60, hi=60))
        case(f"{name}.default", self=L([0, 0, 12, -7], "i32"), other=L([0, 5, 0, -7], "i32"))
    case("gcd.default", self=L([7540113804746346429], "i64"), other=L([4660046610375530309], "i64"))
    for name in ("__lshift__", "__rshift__"):
        case(f"{name}.Tensor", self=I(3, 4, hi=90), other=I(4))
        case(f"{name}.Scalar", self=I(3, hi=90), other=2)
    for name in ("bitwise_left_shift", "bitwise_right_shift", "bitwise_and", "bitwise_or", "bitwise_xor"):
        case(f"{name}.Scalar_Tensor", self=77, other=I(5, hi=6))
    case("remainder.Scalar_Tensor", self=77, other=I(5, lo=1, hi=9))


def tapers():
    for length in (0, 1, 2, 7):
        for name in ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"):
            case(f"{name}.default", window_length=length)
            for periodic in (False, True):
                case(f"{name}.periodic", window_length=length, periodic=periodic)
    case("hamming_window.periodic_alpha", window_length=6, periodic=True, alpha=0.6)
    case("hamming_window.periodic_alpha_beta", window_length=6, periodic=True, alpha=0.6, beta=0.3)
    for beta in (0.0, 5.0, 60.0):
        case("kaiser_window.beta", window_length=6, periodic=True, beta=beta, dtype=torch.float64)


def margins():
    for reduction in (0, 1, 2):
        for smoothing, ignored in ((0.2, -100), (0.2, 1), (1.0, -100)):
            for weight in (None, T(5, lo=0.1)):
                case("cross_entropy_loss.default", self=T(4, 5), target=I(4, hi=5), weight=weight, reduction=reduction, ignore_index=ignored,
                     label_smoothing=smoothing)
                case("cross_entropy_loss.default", self=T(2, 5, 3), target=T(2, 5, 3, lo=0), weight=weight, reduction=reduction,
                     label_smoothing=smoothing)
        for p in (1, 2):
            for weight in (None, T(5, lo=0.1)):
                case("multi_margin_loss.default", self=T(4, 5), target=I(4, hi=5), p=p, margin=0.7, weight=weight, reduction=reduction)
            case("multi_margin_loss.default", self=T(5), target=L(2, "i64"), p=p, reduction=reduction)
            case("multi_margin_loss.default", self=T(5), target=L([2], "i64"), p=p, reduction=reduction)
        labels = L([[3, 0, -1, 1], [-1, 1, 2, 0], [1, 1, 2, 0]], "i64")
        for x, y in ((T(3, 4), labels), (T(4), labels[0])):
            case("multilabel_margin_loss.default", self=x, target=y, reduction=reduction)
            case("multilabel_margin_loss_forward.default", self=x, target=y, reduction=reduction)
        for swap in (False, True):
            case("triplet_margin_loss.default", anchor=T(3, 4), positive=T(3, 4), negative=T(3, 4), margin=1.5, swap=swap, reduction=reduction)
        for log_input in (False, True):
            for full in (False, True):
                case("poisson_nll_loss.default", input=T(3, 4, lo=0.1), target=I(3, 4).float(), log_input=log_input, full=full, eps=1e-8,
                     reduction=reduction)
        case("soft_margin_loss.default", self=T(3, 4), target=T(3, 4).sign(), reduction=reduction)


def whole():
    """Second forms of operators that others have."""
    for norm in ("backward", "ortho", "forward"):
        case("fft_hfft.default", self=T(3, 5), norm=norm)
        case("fft_hfft.default", self=T(3, 5), n=6, dim=0, norm=norm)
        case("fft_hfft2.default", self=T(2, 3, 4), norm=norm)
        case("fft_hfftn.default", self=T(2, 3, 4), s=[3, 5], norm=norm)
    for padding in ("same", "valid"):
        case("_convolution_mode.default", input=T(1, 2, 6, 7), weight=T(3, 2, 3, 3), bias=T(3), stride=[1, 1], padding=padding, dilation=[1, 2], groups=1)
    for dim in (-1, 0, 1, 2):
        case("norm_except_dim.default", v=T(2, 3, 4), dim=dim)
    case("norm_except_dim.default", v=T(4), pow=1)
    q, k, v, mask = T(2, 3, 4), T(2, 5, 4), T(2, 5, 6), T(3, 5)
    case("_scaled_dot_product_attention_math.default", query=q, key=k, value=v, attn_mask=mask, instead=attention)
    case("_fused_rms_norm.default", input=T(2, 3, 4), normalized_shape=[3, 4], weight=T(3, 4), eps=1e-3, instead=rms_norm)


def attention(query, key, value, attn_mask):
    weights = torch.softmax(query @ key.mT / math.sqrt(query.shape[-1]) + attn_mask, -1)
    return weights @ value, weights


def rms_norm(input, normalized_shape, weight, eps):
    root = torch.rsqrt((input * input).mean([-2, -1], keepdim=True) + eps)
    return input * root * weight, root
