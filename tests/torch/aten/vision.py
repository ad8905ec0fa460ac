"""Operators on images: resampling, unpooling, regions and deformed convolutions of torchvision; and layers that are like others but for
one thing: projected LSTMs, fake quantisation, slopes that training draws."""
import math

import torch

from aten.calls import L, T, case

NAN = math.nan


def lanczos(x):
    """Resampling with Lanczos' kernel as wide as the scale asks for, as a product with a matrix for each axis."""
    def kernel(t):
        return math.sin(math.pi * t) * math.sin(math.pi * t / 3) * 3 / (math.pi * t) ** 2 if t else 1.0

    def matrix(size, out):
        step = size / out
        weights = torch.tensor([[kernel(d) if abs(d) < 3 else 0.0 for d in ((k + 0.5 - step * (i + 0.5)) / max(step, 1) for k in range(size))]
                                for i in range(out)])
        return weights / weights.sum(1, keepdim=True)
    return lambda self, output_size, align_corners: matrix(self.shape[2], output_size[0]) @ self @ matrix(self.shape[3], output_size[1]).T


def resampled():
    x, line, volume = T(2, 3, 7, 9), T(2, 3, 9), T(1, 2, 4, 5, 6)
    for name in ("bilinear", "bicubic"):
        target = f"_upsample_{name}2d_aa"
        for size, corners in (([3, 4], False), ([12, 5], False), ([3, 12], True), ([1, 1], True)):
            case(f"{target}.vec", input=x, output_size=size, align_corners=corners, scale_factors=None)
        case(f"{target}.vec", input=x, output_size=None, align_corners=False, scale_factors=[0.6, 1.7])
        case(f"{target}.default", self=x, output_size=[4, 15], align_corners=False, scales_h=0.6, scales_w=1.7)
        case(f"{target}.default", self=T(1, 2, 8, 8, dtype="f64"), output_size=[3, 3], align_corners=True)
    for size in ([3, 4], [12, 5]):
        case("_upsample_lanczos2d_aa.default", instead=lanczos(x), self=x, output_size=size, align_corners=False)
    # Bytes are weighed in whole numbers (torch 2.15's answers), which torch 1.13 did not do.
    codes = L([[[[3, 200, 17, 90], [255, 0, 128, 64], [9, 8, 250, 251]]]], "u8")
    for target, expected in (("_upsample_bilinear2d_aa", [[106, 92, 74], [73, 105, 188]]), ("upsample_bilinear2d", [[80, 98, 77], [60, 113, 207]]),
                             ("_upsample_bicubic2d_aa", [[112, 91, 63], [70, 102, 197]]), ("upsample_bicubic2d", [[83, 100, 69], [59, 108, 214]])):
        case(f"{target}.vec", instead=lambda expected=L([[expected]], "u8"), **_: expected, input=codes, output_size=[2, 3], align_corners=False,
             scale_factors=None)
    for name, tensor in (("linear1d", line), ("nearest1d", line), ("nearest3d", volume)):  # sizes stay
        more = {"align_corners": False} if name == "linear1d" else {}
        case(f"upsample_{name}.vec", input=tensor, output_size=None, **more, scale_factors=[1.1] * (tensor.dim() - 2))
    scales = ["scales_d", "scales_h", "scales_w"]
    for tensor, names in ((line, ["scales"]), (x, scales[1:]), (volume, scales)):
        axes, larger = len(names), [int(n * 1.7) for n in tensor.shape[2:]]
        for name in ("upsample_nearest", "_upsample_nearest_exact"):
            case(f"{name}{axes}d.default", self=tensor, output_size=[7, 3, 5][:axes])
            case(f"{name}{axes}d.default", self=tensor, output_size=larger, **dict.fromkeys(names, 1.7))
        case(f"_upsample_nearest_exact{axes}d.vec", input=tensor, output_size=[7, 3, 5][:axes], scale_factors=None)
        case(f"_upsample_nearest_exact{axes}d.vec", input=tensor, output_size=None, scale_factors=[0.6, 1.7, 1.3][:axes])
    for name, tensor, size in (("linear1d", line, [5]), ("bilinear2d", x, [5, 12]), ("trilinear3d", volume, [7, 3, 6]), ("bicubic2d", x, [5, 12])):
        for corners in (False, True):
            case(f"upsample_{name}.default", self=tensor, output_size=size, align_corners=corners)
    case("upsample_bilinear2d.default", self=x, output_size=[11, 5], align_corners=False, scales_h=1.6)


def quantised():
    ties = L([NAN, 1e4, -1e4, 0.05, 0.15, 0.25, -0.05, 1.05, 12.3, 12.45, -13.15, -40])
    channels, steps, zeros = T(3, 4, lo=-20, hi=20), L([0.125, 0.25, 0.0625, 0.5]), L([3, 0, -5, 1], "i32")
    span = {"quant_min": -128, "quant_max": 127}
    for tensor in (ties, ties.double(), T(5, lo=-30, hi=30)):
        case("fake_quantize_per_tensor_affine.default", self=tensor, scale=0.1, zero_point=3, **span)
        case("fake_quantize_per_tensor_affine_cachemask.default", self=tensor, scale=0.1, zero_point=-5, **span)
    for on in (0, 1):
        case("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default", self=channels, scale=L([0.125]), zero_point=L([3], "i32"),
             fake_quant_enabled=L([on]), quant_min=0, quant_max=63)
    case("fake_quantize_per_tensor_affine.tensor_qparams", self=channels, scale=L([0.25]), zero_point=L([7], "i32"), quant_min=0, quant_max=63)
    for zero in (zeros, L([3.5, 0.25, -5.5, 1])):
        case("fake_quantize_per_channel_affine.default", self=channels, scale=steps, zero_point=zero, axis=1, **span)
        case("fake_quantize_per_channel_affine_cachemask.default", self=channels, scale=steps, zero_point=zero, axis=1, **span)
    for zero in (3.25, -2.75, 2.5, 200.0):
        case("_fake_quantize_learnable_per_tensor_affine.default", instead=lambda self, scale, zero_point, quant_min, quant_max:
             torch.ops.aten.fake_quantize_per_tensor_affine(self, scale.item(), int(zero_point.round().clamp(quant_min, quant_max)), quant_min, quant_max),
             self=channels, scale=L([0.125]), zero_point=L([zero]), **span)
    case("_fake_quantize_learnable_per_channel_affine.default", self=channels, scale=steps, zero_point=L([3.25, 0.5, -5.75, 200]), axis=1, **span)


def numbers_at(plane, y, x):
    """Between four elements; what lies more than one element further out is 0."""
    height, width = plane.shape
    if y < -1 or y > height or x < -1 or x > width:
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    low, left = int(y), int(x)
    high, right = min(low + 1, height - 1), min(left + 1, width - 1)
    dy, dx = y - low, x - left
    return float((plane[low, left] * (1 - dx) + plane[low, right] * dx) * (1 - dy) + (plane[high, left] * (1 - dx) + plane[high, right] * dx) * dy)


def bins_of(rois, pooled_height, pooled_width):
    for k, roi in enumerate(rois.tolist()):
        for i in range(pooled_height):
            for j in range(pooled_width):
                yield k, int(roi[0]), i, j, roi[1:]


def sampled(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned=True, own=False):
    channels = input.shape[1] // (pooled_height * pooled_width if own else 1)
    result = torch.zeros(len(rois), channels, pooled_height, pooled_width)
    for k, image, i, j, box in bins_of(rois, pooled_height, pooled_width):
        left, top, right, bottom = (v * spatial_scale - 0.5 * aligned for v in box)
        height, width = ((max(v, 1) if not aligned else v) for v in (bottom - top, right - left))
        rows, columns = (sampling_ratio if sampling_ratio > 0 else max(math.ceil(v / n), 0) for v, n in ((height, pooled_height), (width, pooled_width)))
        for c in range(channels):
            plane = input[image, (c * pooled_height + i) * pooled_width + j if own else c]
            total = sum(numbers_at(plane, top + height * (i + (a + 0.5) / rows) / pooled_height, left + width * (j + (b + 0.5) / columns) / pooled_width)
                        for a in range(rows) for b in range(columns))
            result[k, c, i, j] = total / max(rows * columns, 1)
    return result


def whole(input, rois, spatial_scale, pooled_height, pooled_width, own=False):
    """The largest of each bin's elements, or with `own` channels their mean."""
    channels = input.shape[1] // (pooled_height * pooled_width if own else 1)
    result = torch.zeros(len(rois), channels, pooled_height, pooled_width)
    for k, image, i, j, box in bins_of(rois, pooled_height, pooled_width):
        left, top, right, bottom = (math.floor(abs(v * spatial_scale) + 0.5) * (1 if v > 0 else -1) for v in box)
        def span(start, end, n, count, size):
            step = max(end - start + (not own), 1) / count
            return [min(max(v + start, 0), size - own) for v in (math.floor(n * step), math.ceil((n + 1) * step))]
        rows, columns = span(top, bottom, i, pooled_height, input.shape[2]), span(left, right, j, pooled_width, input.shape[3])
        for c in range(channels):
            plane = input[image, (c * pooled_height + i) * pooled_width + j if own else c]
            inside = plane[slice(*rows), slice(*columns)]
            if inside.numel():
                result[k, c, i, j] = inside.mean() if own else inside.max()
    return result


def with_channels(pool):
    """Beside the result, which channel each number of it is of."""
    def run(**arguments):
        result = pool(own=True, **arguments)
        return result, torch.arange(result[0].numel(), dtype=torch.int32).reshape(result[0].shape).expand(result.shape)
    return run


def regions():
    x, own = T(2, 3, 8, 10), T(2, 12, 8, 10)
    rois = L([[0, 1.2, 2.3, 15.6, 9.1], [1, -4, -3, 7.5, 30], [0, 6, 6, 6.4, 6.5], [1, 22, 20, 30, 31], [0, 3, 4, 3, 4]])
    size = {"spatial_scale": 0.5, "pooled_height": 3, "pooled_width": 2}
    for ratio in (2, -1):
        for aligned in (False, True):
            case("torchvision.roi_align.default", instead=sampled, input=x, rois=rois, **size, sampling_ratio=ratio, aligned=aligned)
        case("torchvision.ps_roi_align.default", instead=with_channels(sampled), input=own, rois=rois[:4], **size, sampling_ratio=ratio)
    case("torchvision.roi_pool.default", instead=lambda **a: (whole(**a), torch.zeros(1)), results=[0], input=x, rois=rois, **size)
    case("torchvision.ps_roi_pool.default", instead=with_channels(whole), input=own, rois=rois, **size)


def deformed(input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups, use_mask):
    """The columns that the moved kernels read, an element at a time, times the weights."""
    n, channels = input.shape[:2]
    (filters, each, rows, columns), out = weight.shape, offset.shape[2:]
    padded = torch.nn.functional.pad(input, (1, 1, 1, 1))  # zeros, so that what lies between the border and them fades out
    read = torch.zeros(n, channels, rows * columns, *out)
    for image, channel, tap, i, j in ((a, b, t, i, j) for a in range(n) for b in range(channels) for t in range(rows * columns)
                                      for i in range(out[0]) for j in range(out[1])):
        place = channel // (channels // offset_groups) * rows * columns + tap
        y = i * stride_h - pad_h + tap // columns * dilation_h + float(offset[image, 2 * place, i, j])
        x = j * stride_w - pad_w + tap % columns * dilation_w + float(offset[image, 2 * place + 1, i, j])
        if -1 < y < input.shape[2] and -1 < x < input.shape[3]:
            value = numbers_at(padded[image, channel], y + 1, x + 1)
            read[image, channel, tap, i, j] = value * (float(mask[image, place, i, j]) if use_mask else 1)
    grouped = read.reshape(n, groups, each, rows * columns, *out)
    return torch.einsum("ngctij,gfct->ngfij", grouped, weight.reshape(groups, filters // groups, each, -1)).reshape(n, filters, *out) + bias[:, None, None]


def convolved():
    x = T(2, 4, 5, 6)
    for groups, moves, masked, size in ((1, 1, False, (1, 1)), (2, 2, True, (2, 1))):
        out = ((5 + 2 - 3) // size[0] + 1, 6 - 3 + 1)
        case("torchvision.deform_conv2d.default", instead=deformed, input=x, weight=T(4, 4 // groups, 3, 2), offset=T(2, 12 * moves, *out),
             mask=T(2, 6 * moves, *out) if masked else T(2, 1), bias=T(4), stride_h=size[0], stride_w=size[1], pad_h=1, pad_w=0, dilation_h=1,
             dilation_w=2, groups=groups, offset_groups=moves, use_mask=masked)


def projected(layers, both, biases):
    directions, lists = 2 if both else 1, []
    for layer in range(layers):
        for _ in range(directions):
            shapes = [(16, 5 if layer == 0 else 3 * directions), (16, 3)] + [(16,)] * (2 * biases) + [(3, 4)]
            lists += [T(*shape, lo=-0.5, hi=0.5) for shape in shapes]
    states = [T(layers * directions, 2, size) for size in (3, 4)]
    case("lstm.input", input=T(6, 2, 5), hx=states, params=lists, has_biases=biases, num_layers=layers, dropout=0.0, train=False,
         bidirectional=both, batch_first=False)


def vision():
    """What images are made of, and the layers that came with it."""
    resampled()
    pooled, places = torch.nn.functional.max_pool2d(T(2, 3, 6, 8), 2, return_indices=True)
    case("max_unpool2d.default", self=pooled, indices=places, output_size=[6, 8])
    case("max_unpool2d.default", self=pooled[0], indices=places[0], output_size=[7, 9])
    pooled, places = torch.nn.functional.max_pool3d(T(2, 3, 5, 7, 5, dtype="f64"), 3, 2, return_indices=True)
    case("max_unpool3d.default", self=pooled, indices=places, output_size=[5, 7, 5], stride=[2, 2, 2], padding=[0, 0, 0])
    case("rrelu.default", self=T(3, 4))
    case("rrelu.default", self=T(3, 4), lower=0.1, upper=0.5)
    case("rrelu_with_noise_functional.default", instead=lambda self, noise: (torch.ops.aten.rrelu(self), noise), self=T(3, 4), noise=T(3, 4))
    for mode in (0, 1, 2):
        bags = {"weight": T(5, 3), "indices": L([0, 2, 2, 4, 2, 1], "i64"), "offsets": L([0, 3, 3, 4], "i64"), "scale_grad_by_freq": False, "mode": mode,
                "sparse": False, "per_sample_weights": None, "include_last_offset": False}
        for padding in (2, -3):
            case("embedding_bag.padding_idx", **bags, padding_idx=padding, results=[0])
    quantised()
    regions()
    convolved()
    for layers, both, biases in ((1, False, True), (2, True, False)):
        projected(layers, both, biases)
