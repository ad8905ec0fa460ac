#!/usr/bin/env python3
"""Models of bf16 and of f16 on the array, and what --numerics says of them: floats.py BIN. Exit 77 where numpy is not installed.

The rule is written in numpy: products of bf16 summed in f32 with k ascending, what each op of a bf16 model gives rounded to bf16, what
f16 has rounded to bf16 before a product and to f16 behind the last op. Bit by bit."""
import pathlib
import sys
import tempfile

from checks import BIN, expect, failures, np, onnx_file as onnx, run

def bf16(values):
    """f32 to the nearest bf16, to even where two are as near; finite ones."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def product(a, b):
    """Of values that are bf16, as f32: each sum goes up in k."""
    c = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), np.float32)
    for k in range(a.shape[-1]):
        c += a[..., :, k : k + 1] * b[..., k : k + 1, :]
    return c


def image(x, w, pad):
    """A convolution of stride 1, as the array sums it: over rows of the kernel, columns, channels."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    height, width = (have - taps + 1 for have, taps in zip(x.shape[2:], w.shape[2:]))
    y = np.zeros((x.shape[0], w.shape[0], height, width), np.float32)
    for row in range(w.shape[2]):
        for column in range(w.shape[3]):
            for channel in range(w.shape[1]):
                y += x[:, channel : channel + 1, row : row + height, column : column + width] * w[:, channel, row, column].reshape(1, -1, 1, 1)
    return y


class Numbers:
    """bf16 or f16: how a file has them, and what is rounded when."""

    def __init__(self, name):
        self.name, self.own = name, name == "bf16"
        self.kind = onnx.BFLOAT16 if self.own else onnx.FLOAT16
        self.random = np.random.default_rng(len(name))

    def values(self, *shape):
        """f32 that the type has."""
        made = self.random.standard_normal(shape).astype(np.float32)
        return bf16(made) if self.own else made.astype(np.float16).astype(np.float32)

    def stored(self, values):
        if not self.own:
            return values.astype(np.float16)
        return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16).view("V2")

    def between(self, values):
        """What an op makes of f32, where another one follows."""
        return bf16(values) if self.own else values.astype(np.float32)

    def info(self, name, shape):
        return onnx.info(name, self.kind, shape)

    def tensor(self, name, values):
        return onnx.tensor(name, self.kind, list(values.shape), raw=self.stored(values).tobytes())


def cases(of):
    """Name, nodes, inputs, weights, the result as f32 before its last rounding."""
    then, relu = of.between, lambda x: np.maximum(x, 0)
    a, b, r = of.values(70, 100), of.values(100, 130), of.values(130)
    x, y, z = of.values(2, 3, 40, 70), of.values(2, 3, 70, 50), of.values(70, 130)
    v, w, q = of.values(2, 5, 9, 11), of.values(20, 5, 3, 3), of.values(20)
    node = onnx.node
    dot = then(product(bf16(a), bf16(b)))
    yield "row", [node("MatMul", "a b", "p"), node("Add", "p r", "s"), node("Relu", "s", "o")], {"a": a}, {"b": b, "r": r}, relu(then(dot + r))
    yield "two values", [node("MatMul", "x y", "o")], {"x": x, "y": y}, {}, product(bf16(x), bf16(y))
    yield "residual", [node("MatMul", "a b", "p"), node("Add", "p z", "s"), node("Tanh", "s", "o")], {"a": a, "z": z}, {"b": b}, \
        np.tanh(then(dot + z).astype(np.float64)).astype(np.float32)
    three, half = of.values(1)[0], of.values(1)[0]
    yield "steps", [node("MatMul", "a b", "p"), node("Mul", "p three", "s"), node("Add", "s half", "o")], {"a": a}, \
        {"b": b, "three": np.full((), three), "half": np.full((), half)}, then(dot * three) + half
    yield "image", [node("Conv", "v w q", "s", pads=[1] * 4), node("Relu", "s", "o")], {"v": v}, {"w": w, "q": q}, \
        relu(then(image(bf16(v), bf16(w), 1)) + q.reshape(-1, 1, 1))


def check(folder, of):
    for name, nodes, inputs, weights, result in cases(of):
        model, data, bundle = folder / "m.onnx", folder / f"{of.name} {name}", folder / "m.bundle"
        model.write_bytes(onnx.model(nodes, [of.info(key, value.shape) for key, value in inputs.items()], [of.info("o", result.shape)],
                                     weights=[of.tensor(key, value) for key, value in weights.items()], opset=22))
        data.mkdir()
        for key, value in inputs.items():
            np.save(data / f"in_{key}.npy", of.stored(value))
        np.save(data / "out_o.npy", of.stored(bf16(result) if of.own else result))
        for mode in ((), ("--numerics", "strict")) if of.own else ((), ("--numerics", "bf16")):
            said = run(BIN / "dmxc", model, "-t", "aie", *mode, "--require-target", "aie:100", "-o", bundle)
            expect("in 1 task" in said, f"{of.name}, {name}: {said}")
            run(BIN / "dmx-run", bundle, "--inputs", data, "--expect", data, "--rtol", "0", "--atol", "0")
    said = run(BIN / "dmxc", model, "-t", "aie", "--numerics", "strict", "-o", bundle, "--placement-report", "-")
    why = "the array multiplies f16 as bf16, which --numerics strict does not allow and --numerics bf16 does"
    expect((why in said) != of.own, f"{of.name}, strict: {said}")


def check_borders(folder):
    """Each number of 16 bits through the border, by a product with the unit matrix: what f16 has that bf16 has not is rounded, the rest stays."""
    all_bits = np.arange(65536, dtype=np.uint32)
    for name in ("bf16", "f16"):
        of = Numbers(name)
        values = (all_bits << 16).astype(np.uint32).view(np.float32) if of.own else all_bits.astype(np.uint16).view(np.float16).astype(np.float32)
        keep = np.isfinite(values) & (np.abs(values) < 2.0**100)
        square = np.where(keep, values, 0).astype(np.float32).reshape(256, 256)
        model, data, bundle = folder / "b.onnx", folder / f"border {name}", folder / "b.bundle"
        unit = of.tensor("b", np.eye(256, dtype=np.float32))
        model.write_bytes(onnx.model([onnx.node("MatMul", "a b", "o")], [of.info("a", square.shape)], [of.info("o", square.shape)],
                                     weights=[unit], opset=22))
        data.mkdir()
        with np.errstate(over="ignore"):
            expected = of.stored(bf16(square) + np.float32(0))  # a sum begins with 0, so no -0 stays
        for key, value in (("in_a", of.stored(square)), ("out_o", expected)):
            np.save(data / f"{key}.npy", value)
        run(BIN / "dmxc", model, "-t", "aie", "--require-target", "aie:100", "-o", bundle)
        run(BIN / "dmx-run", bundle, "--inputs", data, "--expect", data, "--rtol", "0", "--atol", "0")


with tempfile.TemporaryDirectory(prefix="dmxc-aie-") as scratch:
    for name in ("bf16", "f16"):
        check(pathlib.Path(scratch), Numbers(name))
    check_borders(pathlib.Path(scratch))
sys.exit(1 if failures else 0)
