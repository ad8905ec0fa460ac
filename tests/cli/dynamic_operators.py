#!/usr/bin/env python3
"""ONNX operators with dims and operands that are known at run time only: one bundle, many sizes, against the
operators' definitions in numpy. Usage: dynamic_operators.py BIN [unittest arguments]. Exit 77 where numpy or onnx is not
installed."""
import itertools
import math
import sys
import unittest

try:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    print("SKIPPED: numpy or onnx is not installed (python3-numpy python3-onnx)")
    sys.exit(77)

from dynamic_shapes import BundleTest
from sampling import sampled


# --- The operators' definitions ---------------------------------------------------------------------------------------


def reflect(x, low, high):
    """x mirrored at low and high until it lies between them."""
    if high == low:
        return low
    while not low <= x <= high:
        x = 2 * low - x if x < low else 2 * high - x
    return x


def cubic(d, a=-0.75):
    d = abs(d)
    if d <= 1:
        return (a + 2) * d ** 3 - (a + 3) * d ** 2 + 1
    return a * d ** 3 - 5 * a * d ** 2 + 8 * a * d - 4 * a if d < 2 else 0.0


def triangle(d):
    return max(0.0, 1 - abs(d))


def grid_sample(x, grid, mode, padding, align):
    n, c, *dims = x.shape
    result = np.zeros((n, c, *grid.shape[1:-1]))
    kernel = {"nearest": None, "linear": triangle, "cubic": cubic}[mode]
    for at in itertools.product(*(range(d) for d in (n, *grid.shape[1:-1]))):
        places = []
        for size, g in zip(dims, grid[at][::-1].astype(np.float64)):
            p = (g + 1) / 2 * (size - 1) if align else ((g + 1) * size - 1) / 2
            ends = (0, size - 1) if align else (-0.5, size - 0.5)
            if mode == "nearest":
                p = float(np.rint(p))
            if mode != "cubic":  # which takes each of its pixels from inside: PyTorch and ONNX Runtime agree, ONNX's reference moves the point
                p = min(max(p, 0), size - 1) if padding == "border" else reflect(p, *ends) if padding == "reflection" else p
            reach = range(math.floor(p) - 1, math.floor(p) + 3) if kernel else [int(p)]
            taps = []
            for t in reach:
                weight = kernel(t - p) if kernel else 1.0
                if padding == "zeros" and not 0 <= t < size:
                    continue
                t = reflect(t, *ends) if padding == "reflection" else t
                taps.append((int(min(max(t, 0), size - 1)), weight))
            places.append(taps)
        for taps in itertools.product(*places):
            index = (at[0], slice(None), *(t for t, _ in taps))
            result[(at[0], slice(None), *at[1:])] += x[index] * math.prod(w for _, w in taps)
    return result


def torch_places(size, scale, mode, corners):
    """Where PyTorch takes the results of an axis from: numbers of f32, whose step is one over the scale as a Python float."""
    out = int(size * scale)
    i, step = np.arange(out, dtype=np.float32), np.float32(1 / scale)
    if mode != "cubic" and out == size:
        return i
    if mode == "nearest":
        return np.float32(np.floor(i / np.float32(2))) if out == 2 * size else i * step
    if corners:
        return i * (np.float32(size - 1) / np.float32(out - 1) if out > 1 else np.float32(0))
    return step * (i + np.float32(0.5)) - np.float32(0.5)


def torch_resize(x, scales, mode, corners):
    for axis, scale in zip((2, 3), scales):
        size = x.shape[axis]
        places = torch_places(size, scale, mode, corners).astype(np.float64)
        matrix = np.zeros((len(places), size))
        for row, at in zip(matrix, places):
            if mode == "nearest":
                row[min(int(np.floor(at)), size - 1)] = 1
            elif mode == "linear":
                at = max(at, 0)
                low = min(int(at), size - 1)
                row[low] += 1 - (at - low)
                row[min(low + 1, size - 1)] += at - low
            else:
                for t in range(math.floor(at) - 1, math.floor(at) + 3):
                    row[min(max(t, 0), size - 1)] += cubic(t - at)
        x = np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)
    return x


def resample(x, axis, out, scale, kernel, antialias, exclude):
    size, squeeze = x.shape[axis], min(scale, 1.0) if antialias else 1.0
    matrix = np.zeros((out, size))
    for i in range(out):
        at = (i + 0.5) / scale - 0.5
        reach = math.ceil(2 / squeeze) + 1
        taps = {j: kernel((j - at) * squeeze) for j in range(math.floor(at) - reach, math.floor(at) + reach + 1)}
        if exclude:
            taps = {j: w for j, w in taps.items() if 0 <= j < size}
        for j, w in taps.items():
            matrix[i, min(max(j, 0), size - 1)] += w / sum(taps.values())
    return np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)


def resize(x, sizes, kernel, antialias=False, exclude=False, policy="stretch"):
    scales = [s / d for s, d in zip(sizes, x.shape[2:])]
    if policy != "stretch":
        scales = [min(scales) if policy == "not_larger" else max(scales)] * len(scales)
        sizes = [math.floor(scales[0] * d + 0.5) for d in x.shape[2:]]
    for i, (out, scale) in enumerate(zip(sizes, scales)):
        x = resample(x, i + 2, int(out), scale, kernel, antialias, exclude)
    return x


def crop_and_resize(x, roi, sizes, extrapolation):
    result = np.full((*x.shape[:2], *sizes), extrapolation)
    for at in itertools.product(*(range(s) for s in sizes)):
        places = []
        for i, (out, start, end, size) in enumerate(zip(sizes, roi, roi[2:], x.shape[2:])):
            p = start * (size - 1) + at[i] * (end - start) * (size - 1) / (out - 1) if out > 1 else 0.5 * (start + end) * (size - 1)
            places.append(p)
        if all(0 <= p <= d - 1 for p, d in zip(places, x.shape[2:])):
            result[(slice(None), slice(None), *at)] = bilinear(x, *places)
    return result


def bilinear(x, y0, x0):
    """x [.., h, w] at a place; zero outside."""
    value = np.zeros(x.shape[:-2])
    for i in (math.floor(y0), math.floor(y0) + 1):
        for j in (math.floor(x0), math.floor(x0) + 1):
            if 0 <= i < x.shape[-2] and 0 <= j < x.shape[-1]:
                value = value + x[..., i, j] * triangle(i - y0) * triangle(j - x0)
    return value


def roi_align(x, rois, batch, height, width, ratio, scale):
    result = np.zeros((len(rois), x.shape[1], height, width))
    for r, (left, top, right, bottom) in enumerate(rois.astype(np.float64) * scale - 0.5):
        h, w = (bottom - top) / height, (right - left) / width
        for i, j, p, q in itertools.product(range(height), range(width), range(ratio), range(ratio)):
            y, z = top + (i + (p + 0.5) / ratio) * h, left + (j + (q + 0.5) / ratio) * w
            if -1 <= y <= x.shape[2] and -1 <= z <= x.shape[3]:
                y, z = min(max(y, 0), x.shape[2] - 1), min(max(z, 0), x.shape[3] - 1)
                result[r, :, i, j] += bilinear(x[batch[r]], y, z) / ratio ** 2
    return result


def affine_grid(theta, size, corners):
    axes = [np.linspace(-1, 1, n) if corners and n > 1 else (2 * np.arange(n) + 1) / n - 1 for n in size[2:]]
    points = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(size[2:])], -1)
    return np.einsum("nij,hwj->nhwi", theta, points)


def col2im(x, image, block, stride, pad):
    steps = [(d + 2 * pad - b) // stride + 1 for d, b in zip(image, block)]
    columns = x.reshape(x.shape[0], -1, *block, *steps)
    result = np.zeros((*columns.shape[:2], *(d + 2 * pad for d in image)))
    for i, j, p, q in itertools.product(*(range(d) for d in (*block, *steps))):
        result[:, :, i + p * stride, j + q * stride] += columns[:, :, i, j, p, q]
    return result[:, :, pad:pad + image[0], pad:pad + image[1]]


def deform_conv(x, w, offset, mask):
    n, _, height, width = offset.shape
    kh, kw = w.shape[2:]
    offset, mask = offset.reshape(n, kh, kw, 2, height, width), mask.reshape(n, kh, kw, height, width)
    result = np.zeros((n, w.shape[0], height, width))
    for b, i, j, p, q in itertools.product(*(range(d) for d in (n, kh, kw, height, width))):
        dy, dx = offset[b, i, j, :, p, q]
        result[b, :, p, q] += w[:, :, i, j] @ bilinear(x[b], p - 1 + i + dy, q - 1 + j + dx) * mask[b, i, j, p, q]
    return result


def mel_weights(bands, length, rate, low, high):
    mel = lambda f: 2595 * np.log10(1 + f / 700)
    mels = mel(low) + np.arange(bands + 2) * (mel(high) - mel(low)) / (bands + 2)
    edges = np.floor((length + 1) * 700 * (10 ** (mels / 2595) - 1) / rate).astype(int)
    result = np.zeros((length // 2 + 1, bands))
    for i in range(bands):
        low, center, high = edges[i:i + 3]
        for j in range(low, center + 1):
            result[j, i] = (j - low) / (center - low) if center > low else 1
        for j in range(center, high):
            result[j, i] = (high - j) / (high - center)
    return result


def conv(x, w, bias, strides, dilations, pads, groups):
    x = np.pad(x, ((0, 0), (0, 0), *zip(pads, pads[len(strides):]))).astype(np.float64)
    dims = [(d - (k - 1) * t - 1) // s + 1 for d, k, s, t in zip(x.shape[2:], w.shape[2:], strides, dilations)]
    x, w = x.reshape(x.shape[0], groups, -1, *x.shape[2:]), w.reshape(groups, -1, *w.shape[1:])
    result = np.zeros((x.shape[0], groups, w.shape[1], *dims))
    for tap in itertools.product(*(range(k) for k in w.shape[3:])):
        taken = tuple(slice(k * t, k * t + (d - 1) * s + 1, s) for k, t, d, s in zip(tap, dilations, dims, strides))
        result += np.einsum("ngc...,goc->ngo...", x[(..., *taken)], w[(..., *tap)])
    return result.reshape(x.shape[0], -1, *dims) + bias.reshape(-1, *[1] * len(dims))


def complex_parts(x):
    return np.stack([x.real, x.imag], -1)


# --- Models -----------------------------------------------------------------------------------------------------------

TYPES = {"f": TensorProto.FLOAT, "i": TensorProto.INT64}


@sampled(3)
class Operators(BundleTest):
    def compile_op(self, op, inputs, rank, opset=20, producer="", **attributes):
        """`inputs`: name -> its type and dims, e.g. "f n 3", or its value. Underscores stand for no operand."""
        infos, constants = [], []
        for name, text in inputs.items():
            if isinstance(text, np.ndarray):
                constants.append(numpy_helper.from_array(text, name))
                continue
            kind, *dims = text.split()
            infos.append(helper.make_tensor_value_info(name, TYPES[kind], [int(d) if d.isdigit() else d for d in dims]))
        operands = [name.rstrip("_") and name for name in inputs]
        infos = [info for info in infos if info.name.rstrip("_")]
        node = helper.make_node(op, operands, ["out"], **attributes)
        out = helper.make_tensor_value_info("out", TensorProto.FLOAT, [f"out{i}" for i in range(rank)])
        model = helper.make_model(helper.make_graph([node], "g", infos, [out], constants), opset_imports=[helper.make_opsetid("", opset)])
        model.ir_version, model.producer_name = 8, producer
        (self.dir / "m.onnx").write_bytes(model.SerializeToString())
        self.compile_file(self.dir / "m.onnx")

    def check(self, wanted, rtol=2e-5, atol=2e-5, **values):
        values = {n: np.asarray(v, np.int64 if np.asarray(v).dtype.kind == "i" else np.float32) for n, v in values.items()}
        with self.subTest(**{n: v.shape or int(v) for n, v in values.items()}):
            result = self.run_bundle(values)
            self.assertEqual(result.returncode, 0, result.stderr)
            got = np.load(next((self.dir / "out").glob("*.npy")))
            self.assertEqual(got.shape, wanted.shape)
            np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol)

    def refused(self, **values):
        self.assertNotEqual(self.run_bundle(values).returncode, 0)

    def random(self, *shape):
        return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)

    def test_grid_sample(self):
        for mode, padding, align in itertools.product(("linear", "nearest", "cubic"), ("zeros", "border", "reflection"), (0, 1)):
            self.compile_op("GridSample", {"x": "f n c h w", "grid": "f n p q 2"}, 4, mode=mode, padding_mode=padding, align_corners=align)
            for n, c, h, w, p, q in ((1, 1, 1, 1, 3, 2), (2, 3, 5, 7, 4, 6), (1, 2, 8, 3, 1, 9)):
                x, grid = self.random(n, c, h, w), self.random(n, p, q, 2) * 0.9
                self.check(grid_sample(x, grid, mode, padding, align), x=x, grid=grid)
        self.refused(x=self.random(2, 1, 4, 4), grid=self.random(3, 2, 2, 2))

    def test_resize_of_pytorch(self):
        """A file that PyTorch wrote means what PyTorch does; others what ONNX's reference does, where corners are those of the size before it is rounded."""
        x = self.random(1, 2, 7, 10)
        for mode, places in (("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners"), ("cubic", "half_pixel"), ("cubic", "align_corners")):
            for scales in ((1.7, 1.7), (0.6, 0.45), (2, 3), (0.3, 1.09), (1.25, 0.75), (3.3, 0.9), (1.1, 0.2)):
                options = {"mode": mode, "coordinate_transformation_mode": places, "nearest_mode": "floor"}
                inputs = {"x": "f 1 2 7 10", "_": "f", "scales": np.array((1, 1, *scales), np.float32)}
                with self.subTest(mode=mode, places=places, scales=scales):
                    self.compile_op("Resize", inputs, 4, producer="pytorch", **options)
                    self.check(torch_resize(x, scales, mode, places == "align_corners"), rtol=1e-4, atol=1e-4, x=x)
        wanted = torch_resize(x, (1.7, 1.7), "linear", True)
        self.compile_op("Resize", {"x": "f 1 2 7 10", "_": "f", "scales": np.array((1, 1, 1.7, 1.7), np.float32)}, 4, mode="linear",
                        coordinate_transformation_mode="align_corners")
        self.assertEqual(self.run_bundle({"x": x}).returncode, 0)
        got = np.load(next((self.dir / "out").glob("*.npy")))
        self.assertGreater(np.abs(got[..., 1:, :] - wanted[..., 1:, :]).max(), 0.1)

    def test_squeeze_of_open_dims(self):
        self.compile_op("Squeeze", {"x": "f 1 n 1 m"}, 2)
        for n, m in ((2, 3), (7, 2)):
            x = self.random(1, n, 1, m)
            self.check(x[0, :, 0], x=x)
        self.refused(x=self.random(1, 1, 1, 4))
        self.compile_op("Squeeze", {"x": "f n 3 1"}, 1)  # as converters declare it that think of one frame
        self.check(self.random(4, 3, 1)[:, :, 0], x=self.random(4, 3, 1))
        self.assertIn("n", self.run_bundle({"x": self.random(1, 3, 1)}).stderr)
        self.refused(x=self.random(1, 3, 1))

    def test_resize(self):
        for mode, kernel, options in (("linear", triangle, {"antialias": 1}), ("cubic", cubic, {"antialias": 1, "exclude_outside": 1}),
                                      ("cubic", cubic, {}), ("linear", triangle, {"keep_aspect_ratio_policy": "not_larger"}),
                                      ("linear", triangle, {"keep_aspect_ratio_policy": "not_smaller"})):
            self.compile_op("Resize", {"x": "f n c h w", "_": "f", "__": "f", "sizes": "i 2"}, 4, mode=mode, axes=[2, 3], **options)
            for n, c, h, w, sizes in ((1, 1, 9, 7, (3, 2)), (2, 3, 4, 4, (4, 9)), (1, 2, 16, 5, (7, 5)), (1, 1, 40, 3, (2, 6))):
                x = self.random(n, c, h, w)
                wanted = resize(x, sizes, kernel, "antialias" in options, "exclude_outside" in options,
                                options.get("keep_aspect_ratio_policy", "stretch"))
                self.check(wanted, x=x, sizes=sizes)

    def test_crop_and_resize(self):
        self.compile_op("Resize", {"x": "f n c h w", "roi": "f r", "_": "f", "sizes": "i s"}, 4, mode="linear", axes=[2, 3],
                        coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=9.0)
        for h, w, sizes, roi in ((4, 5, (3, 3), (0.4, 0.6, 0.6, 0.8)), (7, 6, (1, 4), (0.1, -0.3, 0.9, 1.2)), (4, 4, (4, 4), (0, 0, 1, 0.5))):
            x, roi = self.random(1, 2, h, w), np.array(roi, np.float32)
            self.check(crop_and_resize(x, roi.astype(np.float64), sizes, 9.0), x=x, roi=roi, sizes=sizes)

    def test_dft(self):
        self.compile_op("DFT", {"x": "f n m c", "length": "i", "axis": "i"}, 3)
        for shape, length, axis in (((2, 5, 2), 5, 1), ((3, 8, 2), 6, 0), ((1, 4, 1), 7, -2), ((4, 3, 2), 9, -3)):
            x = self.random(*shape)
            values = x[..., 0] + (1j * x[..., 1] if shape[-1] == 2 else 0)
            self.check(complex_parts(np.fft.fft(values, length, axis % 3)), x=x, length=length, axis=axis)
        self.refused(x=self.random(2, 5, 2), length=np.array(5), axis=np.array(2))

    def test_real_dft(self):
        self.compile_op("DFT", {"x": "f n m 1"}, 3, opset=17, onesided=1)
        for n, m in ((1, 1), (2, 6), (3, 9)):
            x = self.random(n, m, 1)
            self.check(complex_parts(np.fft.rfft(x[..., 0])), x=x)
        self.compile_op("DFT", {"x": "f n m c", "length": "i"}, 3, onesided=1, inverse=1)
        for n, m, length in ((1, 4, 6), (2, 4, 7), (1, 3, 9)):
            x = self.random(n, m, 2)
            x[:, 0, 1] = x[:, -1, 1] = 0
            self.check(np.fft.irfft(x[..., 0] + 1j * x[..., 1], length)[..., None], x=x, length=length)

    def test_stft(self):
        self.compile_op("STFT", {"x": "f n m 1", "step": "i", "window": "f k", "length": "i"}, 4)
        for n, m, step, length in ((1, 16, 4, 8), (2, 21, 3, 5), (1, 9, 1, 9)):
            x, window = self.random(n, m, 1), self.random(length)
            frames = np.stack([x[:, i:i + length, 0] * window for i in range(0, m - length + 1, step)], 1)
            self.check(complex_parts(np.fft.rfft(frames)), x=x, step=step, window=window, length=length)
        self.refused(x=self.random(1, 4, 1), step=np.array(1), window=self.random(8), length=np.array(8))

    def test_windows(self):
        terms = {"HannWindow": (0.5, 0.5, 0), "HammingWindow": (25 / 46, 21 / 46, 0), "BlackmanWindow": (0.42, 0.5, 0.08)}
        for (op, (a, b, c)), periodic in itertools.product(terms.items(), (0, 1)):
            self.compile_op(op, {"size": "i"}, 1, periodic=periodic)
            for size in (1, 2, 10, 33):
                angle = 2 * np.pi * np.arange(size) / max(size if periodic else size - 1, 1)
                values = a - b * np.cos(angle) + c * np.cos(2 * angle)
                self.check(values if size > 1 or periodic else np.ones(1), size=size)  # one element is the middle, as numpy has it

    def test_mel_weights(self):
        self.compile_op("MelWeightMatrix", {"bands": "i", "length": "i", "rate": "i", "low": "f", "high": "f"}, 2)
        for bands, length, rate, low, high in ((8, 16, 8192, 0, 4096), (20, 256, 16000, 80, 7600), (5, 9, 44100, 0, 20000)):
            self.check(mel_weights(bands, length, rate, low, high), bands=bands, length=length, rate=rate, low=float(low), high=float(high))
        self.refused(**{n: np.asarray(v) for n, v in dict(bands=8, length=16, rate=8192).items()}, low=np.float32(0), high=np.float32(9000))

    def test_roi_align(self):
        self.compile_op("RoiAlign", {"x": "f n c h w", "rois": "f r 4", "batch": "i r"}, 4, opset=16, output_height=3, output_width=2,
                        sampling_ratio=2, spatial_scale=0.5)
        for n, c, h, w, r in ((1, 1, 6, 6, 1), (3, 2, 9, 5, 4), (2, 5, 4, 12, 7)):
            corners = np.sort(np.random.default_rng(r).uniform(0, 2 * min(h, w), (r, 2, 2)), 1).reshape(r, 4).astype(np.float32)
            x, batch = self.random(n, c, h, w), np.arange(r) % n
            self.check(roi_align(x, corners, batch, 3, 2, 2, 0.5), x=x, rois=corners, batch=batch)

    def test_affine_grid(self):
        for corners in (0, 1):
            self.compile_op("AffineGrid", {"theta": "f n 2 3", "size": "i 4"}, 4, align_corners=corners)
            for n, h, w in ((1, 2, 3), (3, 5, 4)):
                theta = self.random(n, 2, 3)
                self.check(affine_grid(theta, (n, 1, h, w), corners), theta=theta, size=(n, 1, h, w))

    def test_col2im(self):
        self.compile_op("Col2Im", {"x": "f n k l", "image": "i 2", "block": "i 2"}, 4, strides=[2, 2], pads=[1, 1, 1, 1])
        for n, c, image, block in ((1, 1, (5, 5), (1, 5)), (2, 3, (6, 9), (3, 2)), (1, 2, (4, 4), (4, 4))):
            steps = [(d + 2 - b) // 2 + 1 for d, b in zip(image, block)]
            x = self.random(n, c * math.prod(block), math.prod(steps))
            self.check(col2im(x, image, block, 2, 1), x=x, image=image, block=block)
        self.refused(x=self.random(1, 5, 9), image=np.array((6, 6)), block=np.array((2, 2)))

    def test_deform_conv(self):
        self.compile_op("DeformConv", {"x": "f n c h w", "weights": "f o c 3 3", "offset": "f n k p q", "_": "f", "mask": "f n t p q"}, 4,
                        pads=[1, 1, 1, 1])
        for n, c, h, w, o in ((1, 1, 3, 3, 1), (2, 3, 5, 4, 2)):
            x, weights, offset, mask = self.random(n, c, h, w), self.random(o, c, 3, 3), self.random(n, 18, h, w), self.random(n, 9, h, w)
            self.check(deform_conv(x, weights, offset, mask), x=x, weights=weights, offset=offset, mask=mask)

    def check_conv(self, weights, groups, strides, dilations, pads, sizes):
        w, bias = self.random(*weights), self.random(weights[0])
        axes = len(weights) - 2
        self.compile_op("Conv", {"x": "f n c " + " ".join("dhw"[-axes:]), "weights": w, "bias": bias}, axes + 2, strides=strides,
                        dilations=dilations, pads=pads, group=groups)
        for n, *dims in sizes:
            x = self.random(n, weights[1] * groups, *dims)
            self.check(conv(x, w, bias, strides, dilations, pads, groups), atol=1e-4, x=x)

    def test_conv(self):
        sizes = [(1, 1, 1), (2, 5, 7), (1, 9, 24), (1, 3, 25), (2, 4, 60)]
        self.check_conv((16, 3, 3, 3), 1, [1, 1], [1, 1], [1, 1, 1, 1], sizes)
        self.check_conv((10, 4, 3, 2), 1, [1, 2], [2, 1], [2, 1, 0, 1], [(1, 5, 5), (2, 7, 33), (1, 3, 52)])
        self.check_conv((3, 2, 1, 5), 1, [1, 3], [1, 2], [0, 3, 0, 4], [(1, 2, 9), (2, 1, 40)])
        self.check_conv((24, 5, 1, 1), 1, [1, 1], [1, 1], [0, 0, 0, 0], sizes)

    def test_grouped_conv(self):
        self.check_conv((6, 1, 3, 3), 6, [1, 1], [1, 1], [1, 1, 1, 1], [(1, 2, 2), (2, 8, 35)])
        self.check_conv((12, 2, 3, 3), 3, [2, 2], [1, 1], [1, 1, 1, 1], [(1, 4, 6), (2, 7, 71)])

    def test_conv_of_other_ranks(self):
        self.check_conv((5, 4, 7), 1, [2], [1], [3, 3], [(1, 1), (2, 30), (1, 131)])
        self.check_conv((4, 2, 2, 3, 3), 1, [1, 2, 1], [1, 1, 1], [0, 1, 1, 1, 1, 1], [(1, 2, 3, 4), (2, 3, 5, 28)])

    def test_det(self):
        self.compile_op("Det", {"x": "f n m m"}, 1)
        for n, m in ((1, 1), (3, 2), (2, 3), (5, 4), (2, 9)):
            x = self.random(n, m, m)
            self.check(np.linalg.det(x), x=x)

    def test_diagonal(self):
        self.compile_op("Einsum", {"x": "f n m m"}, 2, equation="bii->bi")
        for n, m in ((1, 1), (3, 4), (2, 7)):
            x = self.random(n, m, m)
            self.check(np.einsum("bii->bi", x), x=x)

    def test_cumulative_product(self):
        self.compile_op("CumProd", {"x": "f n m", "axis": "i"}, 2, opset=26)
        for n, m in ((1, 1), (3, 9), (6, 2)):
            x = self.random(n, m)
            for axis in (0, 1):
                self.check(np.cumprod(x, axis), x=x, axis=axis)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
