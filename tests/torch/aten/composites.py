"""Second names, operators of other libraries, and what torch.export leaves whole although torch composes it of others."""
import math

import torch

from aten.calls import I, L, T, case


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
