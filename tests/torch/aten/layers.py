"""Calls that are layers of networks: products, convolutions, pools, norms, losses, recurrence."""
import math

import torch

from aten.calls import I, L, T, case


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
            case("upsample_bicubic2d.vec", input=x, output_size=size, align_corners=corners, scale_factors=scales, tolerance=[1e-3, 1e-4])
    case("upsample_nearest2d_backward.vec", grad_output=T(1, 2, 8, 10), output_size=[8, 10], input_size=[1, 2, 4, 5], scale_factors=None)
    for corners in (True, False):
        case("upsample_bilinear2d_backward.vec", grad_output=T(1, 2, 7, 10), output_size=[7, 10], input_size=[1, 2, 4, 5],
             align_corners=corners, scale_factors=None)
    for mode in (0, 1, 2):
        for padding in (0, 1, 2) if mode != 2 else (0,):
            case("grid_sampler_2d.default", input=x, grid=T(1, 3, 3, 2, lo=-1.2, hi=1.2), interpolation_mode=mode, padding_mode=padding,
                 align_corners=bool(padding % 2), tolerance=[1e-3, 1e-4])


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


def plain_recurrent():
    for name in ("rnn_tanh.input", "rnn_relu.input"):
        case(name, input=T(5, 2, 3), hx=T(4, 2, 4), params=parameters(1, 2, 2, 3, 4), num_layers=2, bidirectional=True, batch_first=False,
             has_biases=True, dropout=0.0, train=False)
