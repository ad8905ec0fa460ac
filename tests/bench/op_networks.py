"""Small networks for ops.py: of segmentation, and ten whose time goes into products or convolutions, like those that are named. All weights are
random, scaled so that what runs through keeps its size. Needs numpy."""
import numpy as np

from op_cases import Case


class Network:
    """Layers that are added one after the other; each call gives the name of what it makes."""

    def __init__(self):
        self.nodes, self.constants = [], {}

    def add(self, kind, *inputs, **attributes):
        self.nodes.append((kind, list(inputs), attributes))
        return f"t{len(self.nodes) - 1}"

    def conv(self, x, c, m, k=1, after="Relu", stride=1, dilation=1, groups=1):
        w, b = f"w{len(self.nodes)}", f"b{len(self.nodes)}"
        scale = np.float32(16 * (2 / (c // groups * k * k)) ** 0.5)
        self.constants |= {w: np.random.default_rng(len(self.nodes)).standard_normal((m, c // groups, k, k), np.float32) * scale / 16, b: (m,)}
        x = self.add("Conv", x, w, b, strides=[stride] * 2, pads=[dilation * (k // 2)] * 4, dilations=[dilation] * 2, group=groups)
        return self.add(after, x) if after else x

    def resized(self, x, factor):
        self.constants[f"by{factor}"] = np.array([1, 1, factor, factor], np.float32)
        return self.add("Resize", x, "", f"by{factor}", mode="linear", coordinate_transformation_mode="half_pixel")

    def constant(self, values):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(values)
        return name

    def number(self, value):
        return self.constant(np.float32(value))

    def random(self, *shape, scale=1.0):
        return self.constant(np.random.default_rng(len(self.constants)).standard_normal(shape, np.float32) * np.float32(scale))

    def linear(self, x, k, n, bias=True):
        x = self.add("MatMul", x, self.random(k, n, scale=k ** -0.5))
        return self.add("Add", x, self.random(n, scale=0.1)) if bias else x

    def norm(self, x, size):
        return self.add("LayerNormalization", x, self.random(size, scale=0.1), self.random(size, scale=0.1), axis=-1)

    def rms_norm(self, x, size):
        mean = self.add("ReduceMean", self.add("Mul", x, x), axes=[-1])
        scaled = self.add("Div", x, self.add("Sqrt", self.add("Add", mean, self.number(1e-5))))
        return self.add("Mul", scaled, self.constant(np.ones(size, np.float32)))

    def gelu(self, x):
        erf = self.add("Erf", self.add("Div", x, self.number(2 ** 0.5)))
        return self.add("Mul", self.add("Mul", x, self.add("Add", erf, self.number(1))), self.number(0.5))

    def silu(self, x):
        return self.add("Mul", x, self.add("Sigmoid", x))

    def shaped(self, x, *shape):
        return self.add("Reshape", x, self.constant(np.array(shape, np.int64)))

    def rotated(self, x, tokens, size):
        """x times cosines plus x with its halves swapped times sines, as rotary embeddings are exported."""
        angles = np.outer(np.arange(tokens), 10000.0 ** (-np.arange(size // 2) / (size // 2)))
        angles = np.concatenate([angles, angles], 1).astype(np.float32)
        half = lambda low, high: self.add("Slice", x, *(self.constant(np.array([v], np.int64)) for v in (low, high, 3)))
        swapped = self.add("Concat", self.add("Neg", half(size // 2, size)), half(0, size // 2), axis=-1)
        return self.add("Add", self.add("Mul", x, self.constant(np.cos(angles))), self.add("Mul", swapped, self.constant(np.sin(angles))))

    def attention(self, x, tokens, width, heads, groups=None, added=None, rotary=False, bias=True, scaled=True):
        """Of `heads` heads, whose keys and values `groups` of them have; `added` is the shape of what scores get, "causal" a mask."""
        size, groups = width // heads, groups or heads
        parts = []
        for count in (heads, groups, groups):
            part = self.shaped(self.linear(x, width, count * size, bias), 1, tokens, count, size)
            parts.append(self.add("Transpose", part, perm=[0, 2, 1, 3]))
        if rotary:
            parts[:2] = [self.rotated(part, tokens, size) for part in parts[:2]]
        if groups != heads:
            for i in (1, 2):
                wide = self.add("Expand", self.shaped(parts[i], 1, groups, 1, tokens, size), self.constant(np.array([1, groups, heads // groups, tokens, size], np.int64)))
                parts[i] = self.shaped(wide, 1, heads, tokens, size)
        scores = self.add("MatMul", parts[0], self.add("Transpose", parts[1], perm=[0, 1, 3, 2]))
        if scaled:
            scores = self.add("Mul", scores, self.number(size ** -0.5))
        if added == "causal":
            scores = self.add("Add", scores, self.constant(np.triu(np.full((tokens, tokens), -1e9, np.float32), 1)))
        elif added:
            scores = self.add("Add", scores, self.random(*added))
        mixed = self.add("Transpose", self.add("MatMul", self.add("Softmax", scores, axis=-1), parts[2]), perm=[0, 2, 1, 3])
        return self.linear(self.shaped(mixed, 1, tokens, width), width, width, bias)

    def case(self, name, **inputs):
        return Case(name, self.nodes, inputs, self.constants)


def of_small_blocks():
    """As LR-ASPP on a MobileNet: depthwise convolutions, a gate of the whole image, two heads that are added and enlarged."""
    net = Network()
    x = net.conv("x", 3, 16, 3, "HardSwish", stride=2)
    for c, m, k, stride in ((16, 24, 3, 2), (24, 40, 5, 2), (40, 40, 5, 1), (40, 80, 3, 2), (80, 112, 3, 1)):
        x = net.conv(net.conv(x, c, 4 * c, after="HardSwish"), 4 * c, 4 * c, k, "HardSwish", stride=stride, groups=4 * c)
        x = net.conv(x, 4 * c, m, after=None)
        low = x if m == 40 else low if c > 24 else None
    gate = net.conv(net.add("GlobalAveragePool", x), 112, 128, after="Sigmoid")
    high = net.resized(net.add("Mul", net.conv(x, 112, 128), gate), 2)
    x = net.add("Add", net.conv(high, 128, 21, after=None), net.conv(low, 40, 21, after=None))
    net.resized(x, 8)
    return net.case("Network of segmentation, depthwise, 224x224", x=(1, 3, 224, 224))


def of_dilated_blocks():
    """As DeepLab on a ResNet: residual blocks, dilated ones behind them, branches of several dilations that are joined, a class a pixel."""
    net = Network()
    x = net.add("MaxPool", net.conv("x", 3, 64, 7, stride=2), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for c, m, stride, dilation in ((64, 64, 1, 1), (64, 128, 2, 1), (128, 256, 1, 2), (256, 256, 1, 4)):
        y = net.conv(net.conv(x, c, m, 3, stride=stride, dilation=dilation), m, m, 3, None, dilation=dilation)
        x = net.add("Relu", net.add("Add", y, x if c == m else net.conv(x, c, m, after=None, stride=stride)))
    branches = [net.conv(x, 256, 64), *(net.conv(x, 256, 64, 3, dilation=d) for d in (6, 12))]
    whole = net.conv(net.add("GlobalAveragePool", x), 256, 64)
    joined = net.add("Concat", *branches, net.add("Mul", branches[0], whole), axis=1)
    net.add("ArgMax", net.resized(net.conv(net.conv(joined, 256, 64), 64, 21, after=None), 8), axis=1, keepdims=0)
    return net.case("Network of segmentation, dilated, 224x224", x=(1, 3, 224, 224))


def of_bottlenecks(name, groups, width):
    """As ResNet-50's and ResNeXt-50's last stages but one: 1x1, 3x3 in groups, 1x1, and what goes past them."""
    net = Network()
    x = net.add("MaxPool", net.conv("x", 3, 64, 7, stride=2), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for c, m, inner, stride in ((64, 256, width, 1), (256, 512, 2 * width, 2), (512, 512, 2 * width, 1), (512, 1024, 4 * width, 2)):
        y = net.conv(net.conv(net.conv(x, c, inner), inner, inner, 3, stride=stride, groups=groups), inner, m, after=None)
        x = net.add("Relu", net.add("Add", y, x if c == m else net.conv(x, c, m, after=None, stride=stride)))
    return net.case(name, x=(1, 3, 224, 224))


def of_plain_convolutions():
    """As VGG: 3x3 convolutions one after the other, with poolings between."""
    net = Network()
    x = "x"
    for c, m, pool in ((3, 64, True), (64, 128, True), (128, 256, False), (256, 256, True), (256, 512, False), (512, 512, False)):
        x = net.conv(x, c, m, 3)
        x = net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]) if pool else x
    return net.case("Network like VGG, 160x160", x=(1, 3, 160, 160))


def of_wide_windows():
    """As ConvNeXt: depthwise 7x7 convolutions, then products with channels last."""
    net = Network()
    x = net.conv("x", 3, 96, 7, None, stride=4)
    for c, m in ((96, 96), (96, 192), (192, 192)):
        if c != m:
            x = net.conv(x, c, m, 3, None, stride=2)
        y = net.add("Transpose", net.conv(x, m, m, 7, None, groups=m), perm=[0, 2, 3, 1])
        y = net.linear(net.gelu(net.linear(net.norm(y, m), m, 4 * m)), 4 * m, m)
        x = net.add("Add", x, net.add("Transpose", y, perm=[0, 3, 1, 2]))
    return net.case("Network like ConvNeXt, 224x224", x=(1, 3, 224, 224))


def of_encoders(name, tokens, width, heads, layers, start=None, first=True):
    """Layers of a transformer: norms before what they are for as in ViT and Whisper, or behind it as in BERT."""
    net = Network()
    x = start(net) if start else "x"
    for _ in range(layers):
        if first:
            x = net.add("Add", x, net.attention(net.norm(x, width), tokens, width, heads))
            x = net.add("Add", x, net.linear(net.gelu(net.linear(net.norm(x, width), width, 4 * width)), 4 * width, width))
        else:
            x = net.norm(net.add("Add", x, net.attention(x, tokens, width, heads)), width)
            x = net.norm(net.add("Add", x, net.linear(net.gelu(net.linear(x, width, 4 * width)), 4 * width, width)), width)
    return net.case(name, x=(1, 80, 2 * tokens) if start else (1, tokens, width))


def of_sound(net):
    """Whisper's beginning: two convolutions along time, the second of stride 2."""
    x = "x"
    for c, m, stride in ((80, 384, 1), (384, 384, 2)):
        x = net.gelu(net.add("Conv", x, net.random(m, c, 3, scale=(3 * c) ** -0.5), net.random(m, scale=0.1), strides=[stride], pads=[1, 1]))
    return net.add("Transpose", x, perm=[0, 2, 1])


def of_relative_positions():
    """As T5's encoder: scores are not scaled but get a number for each distance, norms have no mean, nothing has a bias."""
    net, tokens, width, heads = Network(), 256, 512, 8
    x = "x"
    for _ in range(3):
        x = net.add("Add", x, net.attention(net.rms_norm(x, width), tokens, width, heads, added=(1, heads, tokens, tokens), bias=False, scaled=False))
        x = net.add("Add", x, net.linear(net.add("Relu", net.linear(net.rms_norm(x, width), width, 4 * width, False)), 4 * width, width, False))
    return net.case("Network like T5's encoder, 256 tokens", x=(1, tokens, width))


def of_prefill(name, tokens, width, heads, groups, inner, layers, bias):
    """A decoder's prompt, as of Llama and Qwen: rotary embeddings, a causal mask, SwiGLU."""
    net = Network()
    x = "x"
    for _ in range(layers):
        x = net.add("Add", x, net.attention(net.rms_norm(x, width), tokens, width, heads, groups, added="causal", rotary=True, bias=bias))
        y = net.rms_norm(x, width)
        gate = net.add("Mul", net.silu(net.linear(y, width, inner, False)), net.linear(y, width, inner, False))
        x = net.add("Add", x, net.linear(gate, inner, width, False))
    return net.case(name, x=(1, tokens, width))


def networks():
    yield of_small_blocks()
    yield of_dilated_blocks()
    yield of_bottlenecks("Network like ResNet-50, 224x224", 1, 64)
    yield of_bottlenecks("Network like ResNeXt-50, 224x224", 32, 128)
    yield of_plain_convolutions()
    yield of_wide_windows()
    yield of_encoders("Network like ViT, 197 tokens", 197, 384, 6, 4)
    yield of_encoders("Network like BERT, 128 tokens", 128, 512, 8, 4, first=False)
    yield of_encoders("Network like Whisper's encoder, 400 frames", 400, 384, 6, 2, start=of_sound)
    yield of_relative_positions()
    yield of_prefill("Network like Llama's prefill, 256 tokens", 256, 512, 8, 8, 1376, 3, False)
    yield of_prefill("Network like Qwen's prefill, 256 tokens", 256, 896, 14, 2, 2432, 2, True)
