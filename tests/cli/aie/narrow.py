#!/usr/bin/env python3
"""Results that leave the cores of target aie as bytes: 60 random products and convolutions to the bit of numpy's definition (sums of
integers, one factor of f32, to the nearest, to even where two are, a zero point, the range of a byte), with nothing of it on the host; and 30
chains of two to five layers, bytes and f32, that stay in the array's form from layer to layer. Usage: narrow.py BIN [ZOO] [unittest arguments]. Exit 77 where numpy is not installed."""
import pathlib
import re
import shutil
import sys
import unittest

from checks import np, onnx_file, sampling
from tools_case import ToolsCase

ZOO = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
KINDS = {np.int8: onnx_file.INT8, np.uint8: onnx_file.UINT8, np.float32: onnx_file.FLOAT, np.int32: onnx_file.INT32}
MODELS, PRODUCTS, CHAINS = 12, 5, 30


def quantised(real, zero, kind):
    """ONNX's QuantizeLinear behind the division."""
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    return np.clip(np.rint(real.astype(np.float32)) + np.float32(zero), least, most).astype(kind)


def windows(x, w, strides, pads, zero):
    """A convolution's sums; what lies around the image is its zero point."""
    x = np.pad(x.astype(np.int64) - zero, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    sizes = [(have - kernel) // stride + 1 for have, kernel, stride in zip(x.shape[2:], w.shape[2:], strides)]
    y = np.zeros((x.shape[0], w.shape[0], *sizes), np.int64)
    for i, j in np.ndindex(*w.shape[2:]):
        part = x[:, :, i:i + strides[0] * (sizes[0] - 1) + 1:strides[0], j:j + strides[1] * (sizes[1] - 1) + 1:strides[1]]
        y += np.einsum("nchw,oc->nohw", part, w[:, :, i, j].astype(np.int64))
    return y


class Model:
    """Products beside each other: nodes, constants, inputs with values, outputs with what they are."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.inputs, self.outputs = [], [], {}, {}

    def constant(self, name, value):
        value = np.asarray(value)
        self.weights.append(onnx_file.tensor(name, KINDS[value.dtype.type], list(value.shape), raw=value.tobytes()))

    def number(self, kind, shape=()):
        return self.rng.integers(np.iinfo(kind).min, int(np.iinfo(kind).max) + 1, shape).astype(kind)

    def scale(self, columns, per_column, size=0.01):
        return (size * self.rng.uniform(0.5, 1.5, (columns,) if per_column else ())).astype(np.float32)

    def linear(self, i):
        """QLinearMatMul or QLinearConv."""
        rng, kind, to = self.rng, *self.rng.choice([np.int8, np.uint8], 2)
        isConv, per_column = bool(rng.integers(2)), bool(rng.integers(2))
        columns, depth = int(rng.integers(2, 140)), int(rng.integers(1, 200))
        a_scale, a_zero = self.scale(1, False), self.number(kind)
        b_scale, y_zero = self.scale(columns, per_column), self.number(to)
        y_scale = np.float32(a_scale * b_scale.mean() * rng.uniform(80, 250) * depth**0.5)
        if rng.integers(2):  # many sums lie in the middle between two integers
            a_scale, b_scale, y_scale = (np.exp2(np.rint(np.log2(scale))).astype(np.float32) for scale in (a_scale, b_scale, y_scale))
        if isConv:
            channels, taps = 1 + depth % 12, tuple(int(size) for size in rng.integers(1, 4, 2))
            a, b = self.number(kind, (1, channels, *(int(size) for size in rng.integers(4, 15, 2)))), self.number(np.int8, (columns, channels, *taps))
            strides, pads, bias = [int(s) for s in rng.integers(1, 3, 2)], [int(p) for p in rng.integers(0, 2, 4)], rng.integers(-20000, 20000, columns).astype(np.int32)
            sums = windows(a, b, strides, pads, int(a_zero)) + bias.reshape(-1, 1, 1)
            factor = self.factor(a_scale, b_scale, y_scale).reshape(-1, 1, 1)
        else:
            rows = int(rng.integers(1, 300))
            a, b = self.number(kind, (rows, depth)), self.number(np.int8, (depth, columns))
            sums = (a.astype(np.int64) - int(a_zero)) @ b.astype(np.int64)
            factor = self.factor(a_scale, b_scale, y_scale)
        for name, value in (("as", a_scale), ("az", a_zero), ("b", b), ("bs", b_scale), ("bz", np.zeros(b_scale.shape, np.int8)),
                            ("ys", y_scale), ("yz", y_zero), *([("r", bias)] if isConv else [])):
            self.constant(f"{name}{i}", value)
        given = " ".join(f"{name}{i}" for name in ("a", "as", "az", "b", "bs", "bz", "ys", "yz"))
        self.nodes.append(onnx_file.node("QLinearConv", f"{given} r{i}", f"y{i}", strides=strides, pads=pads) if isConv
                          else onnx_file.node("QLinearMatMul", given, f"y{i}"))
        self.inputs[f"a{i}"] = a
        self.outputs[f"y{i}"] = quantised(sums.astype(np.float32) * factor, y_zero, to)

    @staticmethod
    def factor(a_scale, b_scale, y_scale):
        return ((a_scale * b_scale).astype(np.float32) / y_scale).astype(np.float32)

    def floats(self, i):
        """f32, quantised behind a relu or a clip: numbers of which bf16 and sums of f32 hold all."""
        rng, to = self.rng, self.rng.choice([np.int8, np.uint8])
        rows, depth, columns = (int(size) for size in rng.integers(1, (300, 200, 140)))
        a, b = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((rows, depth), (depth, columns)))
        y_scale, y_zero, ceiling = np.float32(rng.uniform(0.5, 3) * depth**0.5), self.number(to), np.float32(rng.integers(50, 200))
        op, real = [(("Relu", f"p{i}"), lambda x: np.maximum(x, 0)), (("Clip", f"p{i} lo{i} hi{i}"), lambda x: np.clip(x, -9, ceiling))][int(rng.integers(2))]
        for name, value in (("b", b), ("ys", y_scale), ("yz", y_zero), ("lo", np.float32(-9)), ("hi", ceiling)):
            self.constant(f"{name}{i}", value)
        self.nodes += [onnx_file.node("MatMul", f"a{i} b{i}", f"p{i}"), onnx_file.node(*op, f"q{i}"),
                       onnx_file.node("QuantizeLinear", f"q{i} ys{i} yz{i}", f"y{i}")]
        self.inputs[f"a{i}"] = a
        self.outputs[f"y{i}"] = quantised(real((a @ b).astype(np.float32)) / y_scale, y_zero, to)

    def save(self, folder):
        info = lambda values: [onnx_file.info(name, KINDS[value.dtype.type], value.shape) for name, value in values.items()]
        (folder / "m.onnx").write_bytes(onnx_file.model(self.nodes, info(self.inputs), info(self.outputs), weights=self.weights))
        data = folder / "data"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir()
        for key, values in (("in", self.inputs), ("out", self.outputs)):
            for name, value in values.items():
                np.save(data / f"{key}_{name}.npy", value)


class Narrow(ToolsCase):
    def compare(self, model, *options):
        model.save(self.dir)
        said = self.tool("dmxc", "m.onnx", "-t", *options, "-o", "m.bundle", "--placement-report", "-")
        self.tool("dmx-run", "m.bundle", "--inputs", "data", "--expect", "data", "--rtol", 0, "--atol", 0)
        return said

    def test_products(self):
        """What is on the host is the sign of operands alone: no sum leaves the array as it is."""
        for seed in sampling.sample(range(MODELS), 6):
            with self.subTest(seed=seed):
                model = Model(seed)
                for i in range(PRODUCTS):
                    (model.floats if i == PRODUCTS - 1 else model.linear)(i)
                inside = sum(float(np.mean((value > np.iinfo(value.dtype).min) & (value < np.iinfo(value.dtype).max))) > 0.3 for value in model.outputs.values())
                self.assertGreaterEqual(inside, PRODUCTS - 2, "most results are not at an end of their range")
                said = self.compare(model, "aie" if seed % 3 else "aie:cols=2+rows=2")
                for op in ("round", "mul", "div", "max", "min", "matmul", "conv"):
                    self.assertNotRegex(said, rf"dmir\.{op}\tcpu", said)
                self.assertEqual(len(re.findall(r"dmir\.(?:matmul|conv)\taie\t\d+\t\S+ tiles of \S+ to i8", said)), PRODUCTS, said)

    def convolution(self, model, i, x, to):
        """A convolution of the bytes x, as (name with scale and zero point, values, scale, zero point): what it is."""
        name, values, scale, zero = x
        w, w_scale = model.number(np.int8, (to, values.shape[1], 3, 3)), model.scale(to, True)
        bias = model.rng.integers(-20000, 20000, to).astype(np.int32)
        unit = (scale * w_scale).astype(np.float32)
        for key, value in (("w", w), ("ws", w_scale), ("wz", np.zeros(to, np.int8)), ("r", bias), ("rs", unit), ("rz", np.zeros(to, np.int32))):
            model.constant(f"{key}{i}", value)
        model.nodes += [onnx_file.node("DequantizeLinear", name, f"f{i}"), onnx_file.node("DequantizeLinear", f"w{i} ws{i} wz{i}", f"v{i}", axis=0),
                        onnx_file.node("DequantizeLinear", f"r{i} rs{i} rz{i}", f"b{i}", axis=0),
                        onnx_file.node("Conv", f"f{i} v{i} b{i}", f"c{i}", pads=[1] * 4)]
        sums = windows(values, w, (1, 1), [1] * 4, int(zero)) + bias.reshape(-1, 1, 1)
        return sums.astype(np.float32) * unit.reshape(-1, 1, 1)

    def quantise(self, model, i, before, real, zero):
        scale = np.float32(np.std(real) / 50)
        model.constant(f"s{i}", scale)
        model.constant(f"z{i}", zero)
        model.nodes.append(onnx_file.node("QuantizeLinear", f"{before} s{i} z{i}", f"q{i}"))
        return f"q{i} s{i} z{i}", quantised(real / scale, zero, np.uint8), scale, zero

    def test_residuals(self):
        """Two blocks of a quantised residual network: bytes are added in the cores, before and behind which there are others of the same."""
        model = Model(7)
        x = model.inputs["x"] = model.number(np.uint8, (1, 9, 11, 13))
        scale, zero = np.float32(0.02), np.uint8(100)
        model.constant("xs", scale)
        model.constant("xz", zero)
        q = ("x xs xz", x, scale, zero)
        for i in (0, 3):
            real = np.maximum(self.convolution(model, i, q, 16), 0)
            model.nodes.append(onnx_file.node("Relu", f"c{i}", f"l{i}"))
            inner = self.quantise(model, i, f"l{i}", real, np.uint8(0))
            second = self.quantise(model, i + 1, f"c{i + 1}", self.convolution(model, i + 1, inner, 9), np.uint8(117))
            stand = [((part[1].astype(np.float32) - np.float32(part[3])) * part[2]).astype(np.float32) for part in (second, q)]
            model.nodes += [onnx_file.node("DequantizeLinear", second[0], f"m{i}"), onnx_file.node("DequantizeLinear", q[0], f"n{i}"),
                            onnx_file.node("Add", f"m{i} n{i}", f"t{i}"), onnx_file.node("Relu", f"t{i}", f"u{i}")]
            q = self.quantise(model, i + 2, f"u{i}", np.maximum(stand[0] + stand[1], 0), np.uint8(3))
        model.outputs["q5"] = q[1]
        self.assertGreater(len(np.unique(q[1])), 50)
        for target in ("aie", "aie:rows=3", "aie:cols=1+rows=2"):
            with self.subTest(target):
                said = self.compare(model, target)
                on_host = {line.split("\t")[1] for line in said.splitlines() if "\tcpu\t" in line}
                self.assertLessEqual(on_host, {"dmir.pad"}, said)
                self.assertEqual(len(re.findall(r"dmir\.conv\taie\t\d+\ti8 tiles of \S+ to i8", said)), 4, said)

    def chain(self, model, length):
        """Layers of bytes: each QLinearMatMul takes the bytes of the one before."""
        rng, rows, width = model.rng, int(model.rng.integers(1, 300)), int(model.rng.integers(1, 300))
        value, a_scale, a_zero = model.number(np.uint8, (rows, width)), model.scale(1, False), model.number(np.uint8)
        model.inputs["x0"] = value
        for i in range(length):
            columns, to, per_column = int(rng.integers(1, 300)), rng.choice([np.int8, np.uint8]), bool(rng.integers(2))
            b, b_scale, y_zero = model.number(np.int8, (width, columns)), model.scale(columns, per_column), model.number(to)
            y_scale = np.float32(a_scale * b_scale.mean() * rng.uniform(80, 250) * width**0.5)
            for name, number in (("as", a_scale), ("az", a_zero), ("b", b), ("bs", b_scale), ("bz", np.zeros(b_scale.shape, np.int8)), ("ys", y_scale), ("yz", y_zero)):
                model.constant(f"{name}{i}", number)
            model.nodes.append(onnx_file.node("QLinearMatMul", f"x{i} as{i} az{i} b{i} bs{i} bz{i} ys{i} yz{i}", f"x{i + 1}"))
            sums = (value.astype(np.int64) - int(a_zero)) @ b.astype(np.int64)
            value, a_scale, a_zero, width = quantised(sums.astype(np.float32) * model.factor(a_scale, b_scale, y_scale), y_zero, to), y_scale, y_zero, columns
        model.outputs[f"x{length}"] = value

    def float_chain(self, model, length):
        """Layers of f32 whose values bf16 and sums of f32 hold, so that numpy's are the bits: small integers, few of which are not 0."""
        rng, rows, width = model.rng, int(model.rng.integers(1, 300)), int(model.rng.integers(1, 300))
        value = model.inputs["x0"] = rng.integers(-3, 4, (rows, width)).astype(np.float32)
        for i in range(length):
            columns, ceiling = int(rng.integers(1, 300)), np.float32(rng.integers(3, 9))
            b = (rng.integers(-2, 3, (width, columns)) * (rng.random((width, columns)) < 4 / width)).astype(np.float32)
            r = rng.integers(-2, 3, columns).astype(np.float32)
            for name, number in (("b", b), ("r", r), ("lo", np.float32(-4)), ("hi", ceiling)):
                model.constant(f"{name}{i}", number)
            model.nodes += [onnx_file.node("MatMul", f"x{i} b{i}", f"p{i}"), onnx_file.node("Add", f"p{i} r{i}", f"q{i}"),
                            onnx_file.node("Clip", f"q{i} lo{i} hi{i}", f"x{i + 1}")]
            value, width = np.clip(value @ b + r, -4, ceiling), columns
        model.outputs[f"x{length}"] = value

    def test_chains(self):
        """What a layer hands to the next stays in the array's form: nothing of it is on the host, and its type says so."""
        for seed in sampling.sample(range(CHAINS), 10):
            with self.subTest(seed=seed):
                model, length = Model(100 + seed), 2 + seed % 4
                (self.chain if seed % 2 else self.float_chain)(model, length)
                [value] = model.outputs.values()
                self.assertGreater(len(np.unique(value)), 3)
                said = self.compare(model, "aie" if seed % 3 else "aie:cols=2+rows=2", "--require-target", "aie:100")
                self.assertIn(f"in {length} tasks", said)
                shown = self.tool("dmx-inspect", "m.bundle", "--what", "kernels")
                self.assertTrue('"c" kept output' in shown and '"a" kept input' in shown, shown[:2000])
                text = self.tool("dmxc", "m.onnx", "-t", "aie", "--emit", "partition", "-o", "-")
                element = "i8" if seed % 2 else "bf16"
                kept = re.findall(rf'-> \(tensor<\S+, {{bytes = (\d+) : i64, element = "{element}", pitch = (\d+) : i64, rows = (\d+) : i64}}>\)', text)
                self.assertEqual(len(kept), length - 1, text)
                for size, pitch, rows in kept:
                    self.assertGreaterEqual(int(size), int(pitch) * int(rows) * (1 if seed % 2 else 2))

    def test_models(self):
        """Quantised models have the host's bits; the host rounds what comes in and what it averages, and no sum of the array's."""
        for name, least, rounds in (("lenet_qdq", 4, 2), *((("resnet18_qdq", 20, 2),) if sampling.LONG else ())):
            model = ZOO / name if ZOO else None
            if not model or not (model / "meta.json").exists():
                print(f"SKIPPED {name}: {model} is not there (conformance.zoo makes it)")
                continue
            with self.subTest(name):
                values = []
                for target in ("cpu", "aie"):
                    said = self.tool("dmxc", model / "model.onnx", "-t", target, "-o", f"{target}.bundle", "--placement-report", "-")
                    self.tool("dmx-run", f"{target}.bundle", "--inputs", model / "set0", "--output-dir", f"{name}-{target}")
                    values.append({path.name: np.load(path) for path in (self.dir / f"{name}-{target}").glob("*.npy")})
                self.assertTrue(values[0] and all(np.array_equal(values[0][key], values[1][key]) for key in values[0]), "other bits than the host's")
                self.assertGreaterEqual(len(re.findall(r"dmir\.(?:matmul|conv)\taie\t\d+\t\S+ tiles of \S+ to i8", said)), least, said)
                self.assertLessEqual(len(re.findall(r"dmir\.round\tcpu", said)), rounds, said)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
