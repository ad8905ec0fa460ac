"""Modules of one operator, as code that people write has them: what no other list of the tests has. A name, the function or module, its inputs."""

import functools

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def random(*shape):
    return torch.randn(*shape)


def between(low, high, *shape):
    return torch.rand(*shape) * (high - low) + low


def integers(high, *shape, low=0):
    return torch.randint(low, high, shape)


def distinct(*shape):
    """Floats without equals, in no order: which of equal elements an operator names differs."""
    count = int(np.prod(shape))
    return (torch.randperm(count).float() / count - 0.4).reshape(shape)


def regular(size, *batch):
    """Matrices that have an inverse, well away from those that have none."""
    return torch.randn(*batch, size, size) * 0.3 + torch.eye(size) * 2


def positive(size, *batch):
    """Symmetric and positive definite."""
    half = torch.randn(*batch, size, size)
    return half @ half.transpose(-1, -2) / size + torch.eye(size)


def boxes(count, extent):
    corner = torch.rand(count, 2) * extent * 0.6
    return torch.cat([corner, corner + 1 + torch.rand(count, 2) * extent * 0.35], 1)


def rois(count, extent, images):
    return torch.cat([torch.randint(0, images, (count, 1)).float(), boxes(count, extent)], 1)


class Holding(nn.Module):
    """A module of several outputs, of which some are kept."""

    def __init__(self, inner, keep):
        super().__init__()
        self.inner, self.keep = inner, keep

    def forward(self, *inputs):
        return self.keep(self.inner(*inputs))


def changed(name, *arguments, **named):
    """An in-place overload on what the program computed itself."""

    def run(x, *more):
        y = x + 0
        getattr(y, name)(*more, *arguments, **named)
        return y * 1

    return run


def windowed(name, **options):
    return lambda x: x * getattr(torch, name)(x.shape[-1], **options)


def signs_free(function):
    """Of factors whose columns have either sign: what has none."""
    return lambda x: [part.abs() for part in function(x)]


X = functools.partial(random, 3, 4, 6)
IMAGE = functools.partial(random, 2, 3, 9, 10)
LONG = functools.partial(random, 2, 5, 40)
MODULES = {}


def add(name, function, *inputs):
    assert name not in MODULES, name
    MODULES[name] = (function, inputs)


def vision():
    import torchvision

    ops = torchvision.ops
    feature, three = functools.partial(random, 2, 8, 16, 20), functools.partial(rois, 5, 30, 2)
    add("roi_align", ops.RoIAlign((3, 4), 0.5, 2), feature, three)
    add("roi_align_aligned", ops.RoIAlign(4, 0.5, 2, aligned=True), feature, three)
    add("roi_align_adaptive", ops.RoIAlign((3, 3), 0.5, -1, aligned=True), feature, three)
    add("roi_pool", ops.RoIPool((3, 4), 0.5), feature, three)
    add("ps_roi_align", ops.PSRoIAlign(2, 0.5, 2), feature, three)
    add("ps_roi_pool", ops.PSRoIPool(2, 0.5), feature, three)
    offsets = functools.partial(random, 2, 18, 9, 10)
    add("deform_conv2d", ops.DeformConv2d(3, 6, 3, padding=1), IMAGE, offsets)
    add("deform_conv2d_masked", ops.DeformConv2d(3, 6, 3, padding=1), IMAGE, offsets, lambda: torch.rand(2, 9, 9, 10))
    add("deform_conv2d_groups", ops.DeformConv2d(4, 6, 3, stride=2, padding=1, groups=2), lambda: random(2, 4, 9, 10), lambda: random(2, 36, 5, 5))
    add("box_iou", ops.box_iou, lambda: boxes(5, 30), lambda: boxes(4, 30))
    add("generalized_box_iou", ops.generalized_box_iou, lambda: boxes(5, 30), lambda: boxes(4, 30))
    add("box_convert", lambda x: ops.box_convert(x, "xyxy", "cxcywh"), lambda: boxes(5, 30))
    add("focal_loss", lambda x, y: ops.sigmoid_focal_loss(x, y, reduction="mean"), lambda: random(4, 5), lambda: integers(2, 4, 5).float())
    add("frozen_batch_norm", ops.FrozenBatchNorm2d(3), IMAGE)
    add("squeeze_excitation", ops.SqueezeExcitation(8, 4), feature)
    add("nms", lambda b, s: ops.nms(b, s, 0.5), lambda: boxes(12, 30), lambda: distinct(12))


def algebra():
    for name in ("inv", "det", "slogdet", "pinv"):
        add(name, getattr(torch.linalg, name), lambda: regular(4, 3))
    add("inv_8", torch.linalg.inv, lambda: regular(8, 2))
    add("inv_ex", lambda x: torch.linalg.inv_ex(x)[0], lambda: regular(3, 2))
    add("inverse", torch.inverse, lambda: regular(3))
    add("solve", torch.linalg.solve, lambda: regular(4, 3), lambda: random(3, 4, 2))
    add("solve_vector", torch.linalg.solve, lambda: regular(5), lambda: random(5))
    add("cholesky", torch.linalg.cholesky, lambda: positive(4, 3))
    add("cholesky_old", torch.cholesky, lambda: positive(5))
    add("cholesky_solve", torch.cholesky_solve, lambda: random(4, 2), lambda: torch.linalg.cholesky(positive(4)))
    add("qr", torch.linalg.qr, lambda: random(3, 5, 3))
    add("qr_complete", lambda x: torch.linalg.qr(x, "complete"), lambda: random(5, 3))
    add("svdvals", torch.linalg.svdvals, lambda: random(3, 4, 3))
    add("svd", lambda x: [part.abs() for part in torch.linalg.svd(x, full_matrices=False)], lambda: random(5, 3))
    add("eigvalsh", torch.linalg.eigvalsh, lambda: positive(4, 2))
    add("eigh", signs_free(torch.linalg.eigh), lambda: positive(4))
    add("matrix_power", lambda x: torch.linalg.matrix_power(x, 5), lambda: regular(3, 2))
    add("matrix_power_inverse", lambda x: torch.linalg.matrix_power(x, -2), lambda: regular(3))
    add("matrix_exp", torch.matrix_exp, lambda: random(2, 4, 4))
    add("solve_triangular", lambda a, b: torch.linalg.solve_triangular(a.tril(), b, upper=False), lambda: regular(4, 2), lambda: random(2, 4, 3))
    add("triangular_solve", lambda b, a: torch.triangular_solve(b, a)[0], lambda: random(4, 3), lambda: regular(4).triu())
    add("logdet", torch.logdet, lambda: positive(3, 2))
    add("lu_solve", lambda a, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b), lambda: regular(4), lambda: random(4, 2))
    add("nuclear_norm", lambda x: torch.linalg.norm(x, "nuc"), lambda: random(4, 3))
    add("spectral_norm", lambda x: torch.linalg.norm(x, 2), lambda: random(4, 3))
    add("cond", torch.linalg.cond, lambda: regular(4))
    add("matrix_rank", torch.linalg.matrix_rank, lambda: random(5, 3))
    add("vander", torch.linalg.vander, lambda: between(-1, 1, 5))
    add("vdot", torch.vdot, lambda: random(7), lambda: random(7))
    add("addr", torch.addr, lambda: random(3, 4), lambda: random(3), lambda: random(4))
    add("addbmm", torch.addbmm, lambda: random(4, 5), lambda: random(3, 4, 2), lambda: random(3, 2, 5))
    add("addmv", torch.addmv, lambda: random(3), lambda: random(3, 4), lambda: random(4))
    add("int_mm", torch._int_mm, lambda: integers(20, 24, 16, low=-20).to(torch.int8), lambda: integers(20, 16, 8, low=-20).to(torch.int8))
    add("cdist", torch.cdist, lambda: random(2, 5, 3), lambda: random(2, 4, 3))
    add("cdist_1", lambda a, b: torch.cdist(a, b, 1.0), lambda: random(5, 3), lambda: random(4, 3))
    add("einsum", lambda a, b, c: torch.einsum("bij,bjk,bk->bi", a, b, c), X, lambda: random(3, 6, 5), lambda: random(3, 5))
    add("cov", torch.cov, lambda: random(3, 20))
    add("corrcoef", torch.corrcoef, lambda: random(3, 20))


def order():
    add("cummax", lambda x: torch.cummax(x, 1), lambda: distinct(3, 7))
    add("cummin", lambda x: torch.cummin(x, 0), lambda: distinct(6, 4))
    add("isin", torch.isin, lambda: integers(9, 3, 4), lambda: integers(9, 4))
    add("isin_inverted", lambda x, y: torch.isin(x, y, invert=True), lambda: integers(9, 3, 4), lambda: integers(9, 4))
    add("aminmax", lambda x: torch.aminmax(x, dim=1), X)
    add("aminmax_all", lambda x: torch.aminmax(x), X)
    add("kthvalue", lambda x: torch.kthvalue(x, 3, 1), lambda: distinct(3, 7))
    add("mode", lambda x: torch.mode(x, 1)[0], lambda: integers(4, 3, 9))
    add("nanmedian", lambda x: torch.nanmedian(torch.where(x > 0.4, torch.nan, x), 1)[0], lambda: distinct(3, 7))
    add("nanmedian_all", lambda x: torch.nanmedian(torch.where(x > 0.4, torch.nan, x)), lambda: distinct(3, 7))
    add("nanquantile", lambda x: torch.nanquantile(torch.where(x > 0.4, torch.nan, x), 0.4, dim=1), lambda: distinct(3, 7))
    add("quantile_several", lambda x, q: torch.quantile(x, q, dim=1), lambda: distinct(3, 7), lambda: torch.tensor([0.1, 0.5, 0.9]))
    add("logcumsumexp", lambda x: torch.logcumsumexp(x, 1), X)
    add("bincount", lambda x: torch.bincount(x, minlength=8), lambda: integers(8, 20))
    add("bincount_weights", lambda x, w: torch.bincount(x, w, minlength=8), lambda: integers(8, 20), lambda: torch.rand(20))
    add("renorm", lambda x: torch.renorm(x, 2, 0, 1.5), X)
    add("unique_consecutive", torch.unique_consecutive, lambda: torch.tensor([1, 1, 2, 2, 2, 0, 3, 3, 1]))
    add("unique", torch.unique, lambda: integers(5, 12))
    add("unique_inverse", lambda x: torch.unique(x, return_inverse=True, return_counts=True), lambda: integers(5, 12))
    add("topk_smallest", lambda x: torch.topk(x, 3, largest=False), lambda: distinct(3, 9))
    add("nonzero_tuple", lambda x: torch.nonzero(x > 0, as_tuple=True), lambda: random(4, 5))
    add("argwhere", lambda x: torch.argwhere(x > 0), lambda: random(4, 5))
    add("histogram", lambda x: torch.histc(x, 6, -1, 1), lambda: between(-1, 1, 50))
    add("cumulative_trapezoid", lambda x: torch.cumulative_trapezoid(x, dx=0.5), X)
    add("gradient", lambda x: torch.gradient(x)[0], lambda: random(7, 5))
    add("diff_2", lambda x: torch.diff(x, 2), X)


def shapes():
    add("repeat_interleave_each", lambda x: torch.repeat_interleave(x, torch.tensor([1, 3, 0, 2]), 1), X)
    add("repeat_interleave_sized", lambda x, r: torch.repeat_interleave(x, r, 1, output_size=6), X, lambda: torch.tensor([1, 3, 0, 2]))
    add("repeat_interleave_open", lambda x, r: torch.repeat_interleave(x, r, 1), X, lambda: torch.tensor([1, 3, 0, 2]))
    add("block_diag", torch.block_diag, lambda: random(2, 3), lambda: random(3, 2), lambda: random(4))
    add("triu_indices", lambda x: x[..., torch.triu_indices(4, 6)[0], torch.triu_indices(4, 6)[1]], X)
    add("tril_indices", lambda x: x[:, torch.tril_indices(4, 6, -1)[0]], X)
    add("rot90", lambda x: torch.rot90(x, 1, (1, 2)), X)
    add("rot90_back", lambda x: torch.rot90(x, -1, (0, 2)), X)
    add("cartesian_prod", torch.cartesian_prod, lambda: random(3), lambda: random(4))
    add("combinations", torch.combinations, lambda: random(5))
    add("diag_embed", lambda x: torch.diag_embed(x, 1), X)
    add("diagonal_scatter", lambda x, y: torch.diagonal_scatter(x, y), lambda: random(4, 4), lambda: random(4))
    add("index_fill", lambda x, i: torch.index_fill(x, 1, i, 2.5), X, lambda: torch.tensor([0, 3]))
    add("index_reduce", lambda x, i, y: torch.index_reduce(x, 0, i, y, "amax"), lambda: random(4, 3), lambda: torch.tensor([0, 3, 0]), lambda: random(3, 3))
    add("put", lambda x, i, y: torch.put(x, i, y), lambda: random(4, 3), lambda: torch.tensor([0, 5, 7]), lambda: random(3))
    add("scatter_multiply", lambda x, i, y: torch.scatter_reduce(x, 1, i, y, "prod"), lambda: random(3, 4), lambda: integers(4, 3, 4), lambda: random(3, 4))
    add("block_view", lambda x: x.unfold(2, 3, 2), X)
    add("hstack_lists", lambda x: torch.hstack([x[:, 0], x[:, 1]]), X)
    add("pad_circular", lambda x: F.pad(x, (2, 1, 1, 2), "circular"), IMAGE)
    add("pad_replicate_3d", lambda x: F.pad(x, (1, 1, 1, 0, 2, 1), "replicate"), lambda: random(1, 2, 4, 5, 6))
    add("pad_sequence", lambda a, b: nn.utils.rnn.pad_sequence([a, b], True), lambda: random(4, 3), lambda: random(6, 3))
    add("tensor_split_indices", lambda x: torch.tensor_split(x, (1, 3), 1), X)
    add("unsafe_split", lambda x: torch.unsafe_split(x, 2, 1), X)
    add("broadcast_to", lambda x: torch.broadcast_to(x, (2, 3, 4, 6)), X)
    add("select_backward", lambda x: torch.narrow_copy(x, 1, 1, 2), X)
    add("constant_pad_negative", lambda x: F.pad(x, (-1, 2, 1, -2), value=1.5), IMAGE)


def functions():
    for name in ("lgamma", "digamma", "log_ndtr", "ndtr", "i0", "i0e", "i1", "sinc", "entr", "erfcx", "bessel_j0", "bessel_j1"):
        add(name, getattr(torch.special, {"lgamma": "gammaln"}.get(name, name)), lambda: between(0.1, 4, 3, 5))
    add("lgamma_negative", torch.lgamma, lambda: between(-3.9, -3.1, 3, 5))
    add("digamma_negative", torch.digamma, lambda: between(-3.9, -3.1, 3, 5))
    add("polygamma", lambda x: torch.polygamma(1, x), lambda: between(0.3, 4, 3, 5))
    add("mvlgamma", lambda x: torch.mvlgamma(x, 2), lambda: between(1, 4, 3, 5))
    add("ndtri", torch.special.ndtri, lambda: between(0.01, 0.99, 3, 5))
    add("xlog1py", torch.special.xlog1py, lambda: between(0, 2, 3, 5), lambda: between(0, 2, 3, 5))
    add("sinc_zero", torch.sinc, lambda: torch.tensor([0.0, 0.5, -0.25, 1.0, 2.5]))
    add("lshift", lambda x, y: x << y, lambda: integers(50, 3, 4), lambda: integers(5, 3, 4))
    add("rshift", lambda x, y: x >> y, lambda: integers(5000, 3, 4), lambda: integers(5, 3, 4))
    add("heaviside", torch.heaviside, lambda: integers(3, 3, 4).float() - 1, lambda: random(3, 4))
    add("nextafter", torch.nextafter, X, X)
    add("logaddexp2", torch.logaddexp2, X, X)
    add("ldexp", torch.ldexp, X, lambda: integers(6, 3, 4, 6))
    add("frexp", torch.frexp, X)
    add("gcd", torch.gcd, lambda: integers(60, 3, 4), lambda: integers(60, 3, 4))
    add("lcm", torch.lcm, lambda: integers(30, 3, 4, low=1), lambda: integers(30, 3, 4, low=1))
    add("signbit", torch.signbit, X)
    add("dist", lambda a, b: torch.dist(a, b, 3), X, X)
    add("clamp_tensors", torch.clamp, X, lambda: between(-1, 0, 6), lambda: between(0, 1, 6))
    add("float_power_scalar", lambda x: torch.float_power(x, 2), X)
    add("fmin", torch.fmin, X, X)
    add("isposinf", lambda x: torch.isposinf(torch.where(x > 0, torch.inf, x)), X)
    add("logical_reduce", lambda x: (x > 0).all(1) | (x > 1).any(1), X)
    add("square_root_of_sum", lambda x: torch.linalg.vector_norm(x, 3, dim=(1, 2)), X)
    add("complex_product", lambda a, b: torch.view_as_real(torch.view_as_complex(a) * torch.view_as_complex(b)), lambda: random(3, 2), lambda: random(3, 2))
    add("complex_matmul", lambda a, b: torch.view_as_real(torch.view_as_complex(a) @ torch.view_as_complex(b)), lambda: random(3, 4, 2), lambda: random(4, 3, 2))
    add("rfft2", lambda x: torch.view_as_real(torch.fft.rfft2(x)), lambda: random(3, 8, 6))
    add("irfft_filter", lambda x: torch.fft.irfft(torch.fft.rfft(x) * 0.5, n=x.shape[-1]), LONG)
    add("stft", lambda x: torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True).abs(), lambda: random(2, 64))
    add("istft", lambda x: torch.istft(torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True), 16, 4, window=torch.hann_window(16)), lambda: random(2, 64))
    for window in ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"):
        add(window, windowed(window), LONG)
    add("hann_symmetric", windowed("hann_window", periodic=False), LONG)


def losses():
    scores, classes = functools.partial(random, 6, 5), functools.partial(integers, 5, 6)
    add("cross_entropy_smooth", nn.CrossEntropyLoss(label_smoothing=0.1), scores, classes)
    add("cross_entropy_smooth_weights", nn.CrossEntropyLoss(torch.rand(5), label_smoothing=0.2), scores, classes)
    add("cross_entropy_shares", nn.CrossEntropyLoss(), scores, lambda: torch.softmax(random(6, 5), 1))
    add("cross_entropy_images", nn.CrossEntropyLoss(reduction="none"), lambda: random(2, 5, 4, 4), lambda: integers(5, 2, 4, 4))
    add("multi_margin", nn.MultiMarginLoss(), scores, classes)
    add("multilabel_soft_margin", nn.MultiLabelSoftMarginLoss(), scores, lambda: integers(2, 6, 5).float())
    add("multilabel_margin", nn.MultiLabelMarginLoss(), lambda: random(2, 4), lambda: torch.tensor([[3, 0, -1, 1], [1, -1, 2, 0]]))
    add("triplet_margin", nn.TripletMarginLoss(), scores, scores, scores)
    add("triplet_distance", nn.TripletMarginWithDistanceLoss(), scores, scores, scores)
    add("poisson_nll", nn.PoissonNLLLoss(), scores, lambda: integers(4, 6, 5).float())
    add("poisson_nll_full", nn.PoissonNLLLoss(full=True), scores, lambda: integers(4, 6, 5).float())
    add("gaussian_nll", nn.GaussianNLLLoss(), scores, scores, lambda: torch.rand(6, 5) + 0.1)
    add("soft_margin", nn.SoftMarginLoss(), scores, lambda: integers(2, 6, 5).float() * 2 - 1)
    add("kl_div_log", nn.KLDivLoss(reduction="batchmean", log_target=True), scores, scores)
    add("ctc", lambda x, y: F.ctc_loss(x.log_softmax(2), y, torch.tensor([8, 8]), torch.tensor([3, 2])), lambda: random(8, 2, 5), lambda: integers(5, 2, 3, low=1))


def layers():
    sequence = functools.partial(random, 2, 7, 6)
    first = lambda result: result[0]
    add("lstm_projected", Holding(nn.LSTM(6, 8, proj_size=5, batch_first=True), first), sequence)
    add("lstm_projected_two_ways", Holding(nn.LSTM(6, 8, 2, proj_size=5, batch_first=True, bidirectional=True), first), sequence)
    add("lstm_two_layers", Holding(nn.LSTM(6, 8, 2, bias=False), first), sequence)
    add("gru_two_ways", Holding(nn.GRU(6, 8, bidirectional=True), first), sequence)
    add("attention_masked", Holding(nn.MultiheadAttention(6, 2, batch_first=True), first), sequence, sequence, sequence)
    add("encoder_layer", nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), lambda: random(2, 5, 8))
    add("decoder_layer", nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), lambda: random(2, 5, 8), lambda: random(2, 6, 8))
    for kind in ("bilinear", "bicubic"):
        add(f"{kind}_antialias_down", lambda x, kind=kind: F.interpolate(x, (5, 4), mode=kind, antialias=True), IMAGE)
        add(f"{kind}_antialias_up", lambda x, kind=kind: F.interpolate(x, scale_factor=1.7, mode=kind, antialias=True), IMAGE)
    add("bilinear_antialias_corners", lambda x: F.interpolate(x, (5, 7), mode="bilinear", antialias=True, align_corners=True), IMAGE)
    add("lanczos_antialias", lambda x: F.interpolate(x, (5, 7), mode="lanczos", antialias=True), IMAGE)
    add("nearest_exact", lambda x: F.interpolate(x, (5, 7), mode="nearest-exact"), IMAGE)
    add("nearest_exact_scale", lambda x: F.interpolate(x, scale_factor=1.5, mode="nearest-exact"), IMAGE)
    add("nearest_exact_1d", lambda x: F.interpolate(x, 17, mode="nearest-exact"), LONG)
    add("linear_1d", lambda x: F.interpolate(x, 17, mode="linear"), LONG)
    add("trilinear", lambda x: F.interpolate(x, (3, 7, 4), mode="trilinear", align_corners=True), lambda: random(1, 2, 4, 5, 6))
    add("max_unpool2d", lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), lambda: random(2, 3, 8, 10))
    add("max_unpool1d", lambda x: F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2), LONG)
    add("max_unpool3d", lambda x: F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2), lambda: random(1, 2, 4, 4, 6))
    add("lp_pool2d", nn.LPPool2d(2, 3, 2), lambda: between(0, 1, 2, 3, 9, 10))
    add("adaptive_max_pool2d_indices", nn.AdaptiveMaxPool2d((3, 4), return_indices=True), IMAGE)
    add("adaptive_avg_pool3d", nn.AdaptiveAvgPool3d((2, 2, 3)), lambda: random(1, 2, 4, 5, 6))
    add("avg_pool_uncounted", nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False), IMAGE)
    add("local_response", nn.LocalResponseNorm(3), IMAGE)
    add("instance_norm_1d", nn.InstanceNorm1d(5, affine=True), LONG)
    add("spectral_parametrised", nn.utils.parametrizations.spectral_norm(nn.Linear(6, 5)), X)
    add("weight_parametrised", nn.utils.parametrizations.weight_norm(nn.Conv1d(5, 4, 3)), LONG)
    add("orthogonal_parametrised", nn.utils.parametrizations.orthogonal(nn.Linear(6, 6)), X)
    add("bilinear_layer", nn.Bilinear(6, 6, 4), X, X)
    add("conv_reflect", nn.Conv2d(3, 4, 3, padding=2, padding_mode="reflect"), IMAGE)
    add("conv_circular", nn.Conv1d(5, 4, 3, padding=1, padding_mode="circular"), LONG)
    add("conv_same", nn.Conv2d(3, 4, 4, padding="same", dilation=2), IMAGE)
    add("conv_transpose_3d", nn.ConvTranspose3d(2, 3, 3, 2, 1, 1, groups=1, dilation=1), lambda: random(1, 2, 3, 4, 4))
    add("rrelu", nn.RReLU(), X)
    add("softmax2d", nn.Softmax2d(), IMAGE)
    add("gumbel_free_softmin", nn.Softmin(1), X)
    add("embedding_bag_max", nn.EmbeddingBag(9, 4, mode="max"), lambda: integers(9, 3, 5))
    add("embedding_bag_offsets", nn.EmbeddingBag(9, 4, mode="mean"), lambda: integers(9, 8), lambda: torch.tensor([0, 3, 5]))
    add("embedding_renorm", nn.Embedding(9, 4, padding_idx=0), lambda: integers(9, 3, 5))
    add("zero_pad", nn.ZeroPad2d((1, 2, 0, 1)), IMAGE)
    add("channel_shuffle_layer", nn.ChannelShuffle(3), lambda: random(2, 6, 4, 4))
    add("fake_quantize", lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127), X)
    add("fake_quantize_channels", lambda x: torch.fake_quantize_per_channel_affine(x, torch.tensor([0.1, 0.2, 0.05, 0.3]), torch.zeros(4, dtype=torch.int32), 1, -128, 127), X)


def in_place():
    whole = functools.partial(integers, 9, 3, 4, low=1)
    add("floor_divide_", changed("floor_divide_"), whole, whole)
    add("pow_", changed("pow_"), lambda: between(0.5, 2, 3, 4), lambda: random(3, 4))
    add("transpose_", changed("transpose_", 1, 2), X)
    for name, arguments in {
        "squeeze_": (), "unsqueeze_": (1,), "t_": None, "swapaxes_": (0, 1), "clamp_min_": (0.1,), "clamp_max_": (0.1,), "xlogy_": (2.0,),
        "fmod_": (0.7,), "remainder_": (0.7,), "tril_": (1,), "triu_": (-1,), "cumsum_": (1,), "logit_": (0.2,), "renorm_": (2, 0, 1.0),
        "index_fill_": (1, torch.tensor([0, 2]), 3.0), "nan_to_num_": (), "sgn_": (), "erf_": (), "frac_": (), "copysign_": (-1.0,), "hardtanh_": None,
    }.items():  # fmt: skip
        if arguments is not None:
            add(name, changed(name, *arguments), X)
    add("t_", changed("t_"), lambda: random(3, 4))
    add("bitwise_and_", changed("bitwise_and_"), whole, whole)
    add("lshift_", changed("__ilshift__", 2), whole)
    add("logical_or_", changed("logical_or_"), lambda: random(3, 4) > 0, lambda: random(3, 4) > 0)
    add("masked_scatter_", changed("masked_scatter_"), lambda: random(3, 4), lambda: torch.arange(12).reshape(3, 4) % 3 == 0, lambda: random(12))
    add("addcmul_", changed("addcmul_", value=0.5), X, X, X)
    add("lerp_", changed("lerp_", 0.3), X, X)
    add("addmm_", changed("addmm_"), lambda: random(3, 5), lambda: random(3, 4), lambda: random(4, 5))
    add("baddbmm_", changed("baddbmm_"), lambda: random(2, 3, 5), lambda: random(2, 3, 4), lambda: random(2, 4, 5))
    add("atan2_", changed("atan2_"), X, X)
    add("hypot_", changed("hypot_"), X, X)
    add("fill_diagonal_", changed("fill_diagonal_", 2.0), lambda: random(4, 4))
    add("index_add_", lambda x, y: (x + 0).index_add_(0, torch.tensor([0, 2]), y), lambda: random(3, 4), lambda: random(2, 4))
    add("diagonal_written", lambda x: _diagonal(x + 0), lambda: random(4, 4))


def _diagonal(x):
    x.diagonal().mul_(3)
    return x


def higher_order():
    from torch._higher_order_ops.associative_scan import associative_scan
    from torch._higher_order_ops.map import map as over
    from torch._higher_order_ops.scan import scan

    step = lambda carry, x: (carry * 0.5 + x, carry + x)
    add("scan", lambda init, xs: scan(step, init, xs)[1], lambda: random(4), lambda: random(6, 4))
    add("scan_carry", lambda init, xs: scan(step, init, xs), lambda: random(4), lambda: random(6, 4))
    add("scan_reversed", lambda init, xs: scan(step, init, xs, reverse=True)[1], lambda: random(4), lambda: random(6, 4))
    add("associative_scan", lambda x: associative_scan(torch.add, x, 0, combine_mode="generic"), lambda: random(8, 3))
    add("map", lambda x, y: over(lambda row, other: row.sin() + other, x, y), lambda: random(5, 4), lambda: random(4))
    add("vmap", lambda x, y: torch.vmap(lambda a, b: (a * b).sum())(x, y), lambda: random(5, 4), lambda: random(5, 4))
    attend = lambda q, k, v: (q @ k.T).softmax(-1) @ v
    add("vmap_loop", torch.vmap(attend), *[functools.partial(random, 20, 5, 4)] * 3)
    add("vmap_shared", torch.vmap(attend, in_dims=(0, None, None)), X, *[functools.partial(random, 5, 6)] * 2)
    add("vmap_axes", torch.vmap(lambda a, b: a.cumsum(0) * b, (1, 0), 1), lambda: random(4, 3), lambda: random(3, 4))
    add("vmap_nested", lambda a, b: torch.vmap(lambda x: torch.vmap(lambda y: (x * y).sum())(b))(a), lambda: random(3, 4), lambda: random(5, 4))
    inside = lambda q, k: torch.vmap(torch.vmap(lambda i, j: (j <= i) & (i - j < 3), (None, 0)), (0, None))(q, k)
    add("vmap_mask", lambda x: torch.where(inside(torch.arange(7), torch.arange(7)), x, -1.0), lambda: random(7, 7))
    add("vmap_split", torch.vmap(lambda a: torch.stack(a.chunk(2), 1).amax(0)), lambda: random(3, 6))
    add("vmap_matrix", lambda x, w: torch.vmap(lambda a, b: b @ a, (0, None))(x, w), lambda: random(5, 4), lambda: random(3, 4))
    add("condition", lambda x: torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,)), X)


for part in (vision, algebra, order, shapes, functions, losses, layers, in_place, higher_order):
    part()
