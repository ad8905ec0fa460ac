#!/usr/bin/env python3
"""60 random convolutions on the array: groups, dilations, strides, pads, of bytes and of f32 whose sums are exact, so that all bits are those
of the definition. Usage: convolutions.py BIN. Exit 77 where numpy is not installed."""
import pathlib
import re
import sys
import tempfile
from random import Random

from checks import BIN, expect, failures, np, onnx_file, run, sampling

COUNT, TOGETHER = 60, 4  # in all; in a model
KINDS = {"float": (onnx_file.FLOAT, np.float32, 64), "signed": (onnx_file.INT8, np.int8, 128), "unsigned": (onnx_file.UINT8, np.uint8, 256)}


def definition(x, w, groups, strides, dilations, pads):
    """A tap at a time: in int64, where nothing rounds."""
    axes = len(strides)
    x = np.pad(x.astype(np.int64), [(0, 0), (0, 0)] + list(zip(pads[:axes], pads[axes:])))
    outs = [(have - dilation * (taps - 1) - 1) // stride + 1 for have, dilation, taps, stride in zip(x.shape[2:], dilations, w.shape[2:], strides)]
    inside, outside = w.shape[1], w.shape[0] // groups
    y = np.zeros((x.shape[0], w.shape[0], *outs), np.int64)
    for at in np.ndindex(*w.shape[2:]):
        part = x[(slice(None), slice(None), *(slice(a * d, a * d + s * (size - 1) + 1, s) for a, d, s, size in zip(at, dilations, strides, outs)))]
        for group in range(groups):
            rows = slice(group * outside, (group + 1) * outside)
            y[:, rows] += np.einsum("nc...,oc->no...", part[:, group * inside:(group + 1) * inside], w[(rows, slice(None), *at)].astype(np.int64))
    return y


def draw(random, number):
    """Sizes of a convolution that has at least one output pixel; every fourth is depthwise."""
    axes = 1 if number % 5 == 4 else 2
    groups = random.choice((1, 2, 3, 4, 6))
    inside = 1 if number % 4 == 0 else random.randint(1, 9)
    pick = lambda most: [random.randint(1, most) for _ in range(axes)]
    taps, strides, dilations = pick(4), pick(3), pick(3)
    pads = [random.randint(0, 3) for _ in range(2 * axes)]
    image = [max(1, d * (t - 1) + 1 - before - after) + random.randint(0, 9)
             for d, t, before, after in zip(dilations, taps, pads[:axes], pads[axes:])]
    return ((random.randint(1, 2), groups * inside, *image), (groups * random.randint(1, 5), inside, *taps), groups, strides, dilations, pads)


def add_convolution(number, nodes, inputs, outputs, weights, values):
    random, rng = Random(number), np.random.default_rng(number)
    kind, element, range_of = KINDS[random.choice(list(KINDS))]
    x_shape, w_shape, groups, strides, dilations, pads = draw(random, number)
    is_float = kind == onnx_file.FLOAT
    low = 0 if element == np.uint8 else -range_of
    x = rng.integers(low, low + (256 if not is_float else 2 * range_of), x_shape).astype(element)
    w = rng.integers(-range_of if is_float else -128, range_of if is_float else 128, w_shape).astype(element if is_float else np.int8)
    y = definition(x, w, groups, strides, dilations, pads)
    given = f"x{number} w{number}"
    weights.append(onnx_file.tensor(f"w{number}", kind if is_float else onnx_file.INT8, list(w_shape), raw=w.tobytes()))
    attributes = dict(strides=strides, dilations=dilations, pads=pads, group=groups)
    if is_float:
        r = rng.integers(-1000, 1000, w_shape[:1]).astype(np.float32)
        weights.append(onnx_file.tensor(f"r{number}", kind, list(r.shape), raw=r.tobytes()))
        y = np.maximum(y + r.astype(np.int64).reshape(-1, *[1] * len(strides)), 0)
        nodes += [onnx_file.node("Conv", given + f" r{number}", f"s{number}", **attributes), onnx_file.node("Relu", f"s{number}", f"y{number}")]
    else:
        nodes.append(onnx_file.node("ConvInteger", given, f"y{number}", **attributes))
    result = np.float32 if is_float else np.int32
    inputs.append(onnx_file.info(f"x{number}", kind, x_shape))
    outputs.append(onnx_file.info(f"y{number}", onnx_file.FLOAT if is_float else onnx_file.INT32, y.shape))
    values |= {f"in_x{number}": x, f"out_y{number}": y.astype(result)}
    return f"{number}: {np.dtype(element).name} {x_shape} by {w_shape}, groups {groups}, strides {strides}, dilations {dilations}, pads {pads}"


def check(folder, numbers):
    nodes, inputs, outputs, weights, values = [], [], [], [], {}
    named = [add_convolution(number, nodes, inputs, outputs, weights, values) for number in numbers]
    model, data, bundle = folder / "c.onnx", folder / f"c{numbers[0]}", folder / "c.bundle"
    model.write_bytes(onnx_file.model(nodes, inputs, outputs, weights=weights))
    data.mkdir()
    for key, value in values.items():
        np.save(data / f"{key}.npy", value)
    for level in ("aie", "aie:cols=2+rows=2")[:2 if sampling.LONG else 1]:
        said = run(BIN / "dmxc", model, "-t", level, "-o", bundle, "--placement-report", "-")
        placed = re.findall(r"dmir.conv\taie", said)
        expect(len(placed) == len(numbers), f"{named}: {len(placed)} of {len(numbers)} convolutions on the array:\n{said}")
        out = run(BIN / "dmx-run", bundle, "--inputs", data, "--expect", data, "--rtol", "0", "--atol", "0")
        expect("PASS" in out, f"{level}: {named}: {out}")


with tempfile.TemporaryDirectory(prefix="dmxc-aie-") as scratch:
    numbers = list(range(COUNT))
    for some in sampling.sample([numbers[at:at + TOGETHER] for at in range(0, COUNT, TOGETHER)], 5):
        check(pathlib.Path(scratch), some)
sys.exit(1 if failures else 0)
