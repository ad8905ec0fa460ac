"""Models in bf16 whose results numpy gives in f64: an MLP, a block of a transformer, a stack of convolutions. For `make`: what a GPU's times are put
beside the simulator's clock for."""

import numpy as np
import onnx_file as onnx
from products import bf16

MOST = 2e-2  # of the result's RMS; each value between ops is rounded to 8 bits


class Model:
    """Nodes with the values that they give. Weights and inputs are bf16, and so is every value between nodes; what goes in and out is f32."""

    def __init__(self, name, shape, seed):
        self.name, self.random, self.nodes, self.weights = name, np.random.default_rng(seed), [], []
        self.input = self.random.standard_normal(shape).astype(np.float32)
        self.values = {"xf": self.input, "x": bf16(self.input).astype(np.float64)}
        self.nodes.append(onnx.node("Cast", "xf", "x", to=onnx.BFLOAT16))
        self.last = "x"

    def weight(self, scale, *shape):
        value = bf16((self.random.standard_normal(shape) * scale).astype(np.float32))
        return self.constant(onnx.BFLOAT16, value, (value.view(np.uint32) >> 16).astype(np.uint16))

    def constant(self, kind, value, stored):
        name = f"w{len(self.weights)}"
        self.weights.append(onnx.tensor(name, kind, value.shape, raw=stored.tobytes()))
        self.values[name] = value.astype(np.float64)
        return name

    def op(self, op, inputs, value, **attributes):
        """A node of these values; its name becomes the last one."""
        self.last = f"v{len(self.nodes)}"
        self.nodes.append(onnx.node(op, " ".join(inputs), self.last, **attributes))
        self.values[self.last] = value
        return self.last

    def product(self, a, b):
        return self.op("MatMul", (a, b), self.values[a] @ self.values[b])

    def add(self, a, b):
        return self.op("Add", (a, b), self.values[a] + self.values[b])

    def relu(self, a):
        return self.op("Relu", (a,), np.maximum(self.values[a], 0))

    def linear(self, a, width):
        depth = self.values[a].shape[-1]
        return self.add(self.product(a, self.weight(depth**-0.5, depth, width)), self.weight(0.1, width))

    def norm(self, a):
        x = self.values[a]
        centred = x - x.mean(-1, keepdims=True)
        value = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        scale, shift = self.weight(1, x.shape[-1]), self.weight(0.1, x.shape[-1])
        return self.op("LayerNormalization", (a, scale, shift), value * self.values[scale] + self.values[shift], epsilon=1e-5)

    def heads(self, a, count, last):
        """[rows, count * width] as [count, rows, width], or with `last` as [count, width, rows]."""
        rows, width = self.values[a].shape
        shape = np.array([rows, count, width // count], np.int64)
        cut = self.op("Reshape", (a, self.constant(onnx.INT64, shape, shape)), self.values[a].reshape(shape))
        order = (1, 2, 0) if last else (1, 0, 2)
        return self.op("Transpose", (cut,), self.values[cut].transpose(order), perm=list(order))

    def softmax(self, a):
        e = np.exp(self.values[a] - self.values[a].max(-1, keepdims=True))
        return self.op("Softmax", (a,), e / e.sum(-1, keepdims=True), axis=-1)

    def convolution(self, a, outputs, taps):
        x, pad = self.values[a], taps // 2
        w = self.weight((x.shape[1] * taps**2) ** -0.5, outputs, x.shape[1], taps, taps)
        around = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        windows = np.lib.stride_tricks.sliding_window_view(around, (taps, taps), (2, 3))
        value = np.einsum("nchwij,ocij->nohw", windows, self.values[w], optimize=True)
        return self.op("Conv", (a, w), value, pads=[pad] * 4, kernel_shape=[taps, taps])

    def bytes(self):
        self.nodes.append(onnx.node("Cast", self.last, "yf", to=onnx.FLOAT))
        given, wanted = onnx.info("xf", onnx.FLOAT, self.input.shape), onnx.info("yf", onnx.FLOAT, None)
        return onnx.model(self.nodes, [given], [wanted], opset=17, weights=self.weights)

    def problem(self, got):
        """What is wrong with a result; "" where nothing is."""
        wanted = self.values[self.last]
        if got.shape != wanted.shape:
            return f"the result is {got.shape}, not {wanted.shape}"
        off = np.sqrt(((got - wanted) ** 2).mean() / (wanted**2).mean())
        return "" if off <= MOST else f"the result is {off:.2%} RMS from numpy's"


def mlp(rows, width):
    m = Model("bf16-mlp", (rows, width), 1)
    m.linear(m.relu(m.linear(m.relu(m.linear("x", width)), width)), width)
    return m


def transformer(rows, width, count):
    m = Model("bf16-transformer", (rows, width), 2)
    normed = m.norm("x")
    q, k, v = (m.linear(normed, width) for _ in range(3))
    scale = m.constant(onnx.BFLOAT16, np.array(0.125), np.array([0x3E00], np.uint16))  # of heads of 64
    scores = m.product(m.heads(q, count, False), m.heads(k, count, True))
    weights = m.softmax(m.op("Mul", (scores, scale), m.values[scores] * 0.125))
    mixed = m.product(weights, m.heads(v, count, False))
    rowwise = m.op("Transpose", (mixed,), m.values[mixed].transpose(1, 0, 2), perm=[1, 0, 2])
    shape = np.array([rows, width], np.int64)
    joined = m.op("Reshape", (rowwise, m.constant(onnx.INT64, shape, shape)), m.values[rowwise].reshape(shape))
    first = m.add("x", m.linear(joined, width))
    m.add(first, m.linear(m.relu(m.linear(m.norm(first), 4 * width)), width))
    return m


def convolutions(size, channels):
    m = Model("bf16-convolutions", (1, channels, size, size), 3)
    inner = m.relu(m.convolution("x", channels, 3))
    m.relu(m.add(m.convolution(inner, channels, 1), "x"))
    return m


def models(small):
    if small:
        return [mlp(48, 128), transformer(32, 128, 2), convolutions(12, 16)]
    return [mlp(512, 1024), transformer(256, 512, 8), convolutions(28, 64)]
