#!/usr/bin/env python3
"""A U-Net and a ResNeXt of random weights with --numerics bf16, on the simulator of GPUs: no farther from the f32 answer than the same network whose
convolutions have the same operands rounded (torch where it is installed, else numpy), and at least 90 % of the multiply-adds by wgmma, as the report counts.

Usage: nets.py BIN. A plain run takes one small network, with DMXC_LONG=1 both, larger. Exit 77 where numpy is not there."""

import importlib.util
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import products  # noqa: E402, F401  exits where numpy is not there
from attempts import Attempts  # noqa: E402
import convolutions  # noqa: E402
from models import machine  # noqa: E402
from products import NUMBERS, np, onnx, run  # noqa: E402
from sampling import LONG, SEED  # noqa: E402

FARTHEST, LEAST_BY_CORES = 1.05, 0.9
torch = __import__("torch") if importlib.util.find_spec("torch") else None


def conv2d(x, w, stride, pad, groups):
    if torch:
        return torch.nn.functional.conv2d(torch.from_numpy(x), torch.from_numpy(w), stride=stride, padding=pad, groups=groups).numpy()
    return convolutions.convolve(x, w, [stride] * 2, [1, 1], [pad] * 2, [pad] * 2, groups)[0].astype(np.float32)


def transposed2x2(x, w):
    """Of stride 2: each pixel makes four."""
    y = np.einsum("nchw,coab->nohawb", x.astype(np.float64), w.astype(np.float64))
    return y.reshape(x.shape[0], w.shape[1], 2 * x.shape[2], 2 * x.shape[3]).astype(np.float32)


class Net:
    """Layers that are written as ONNX and computed, exactly and with the operands of convolutions rounded: of each value both answers."""

    def __init__(self, random, shape):
        self.random, self.nodes, self.weights = random, [], []
        self.x = random.standard_normal(shape).astype(np.float32)
        self.count = 0

    def input(self):
        return "x", self.x, self.x

    def add(self, op, sources, compute, weights=(), **attributes):
        self.count += 1
        name = f"v{self.count}"
        words = [source[0] for source in sources]
        for i, value in enumerate(weights):
            words.append(f"{name}w{i}")
            self.weights.append(onnx.tensor(words[-1], onnx.FLOAT, value.shape, raw=value.tobytes()))
        self.nodes.append(onnx.node(op, " ".join(words), name, **attributes))
        return name, compute(lambda x: x, *(source[1] for source in sources)), compute(NUMBERS["rounded"], *(source[2] for source in sources))

    def conv(self, x, outputs, taps=3, stride=1, groups=1, relu=True, transposed=False):
        channels, size = x[1].shape[1], (1 if transposed else taps * taps)
        shape = (channels, outputs, 2, 2) if transposed else (outputs, channels // groups, taps, taps)
        w = (self.random.standard_normal(shape) * np.sqrt(2 / (channels // groups * size))).astype(np.float32)
        bias = (self.random.standard_normal(outputs) * 0.1).astype(np.float32)

        def compute(number, value):
            rounded = number if outputs > convolutions.FEW else lambda x: x
            value, own = (np.ascontiguousarray(rounded(each).astype(np.float32)) for each in (value, w))
            y = transposed2x2(value, own) if transposed else conv2d(value, own, stride, taps // 2, groups)
            return y + bias[:, None, None]

        if transposed:
            y = self.add("ConvTranspose", [x], compute, [w, bias], strides=[2, 2])
        else:
            y = self.add("Conv", [x], compute, [w, bias], strides=[stride] * 2, pads=[taps // 2] * 4, group=groups)
        return self.add("Relu", [y], lambda _, v: np.maximum(v, 0)) if relu else y

    def pool(self, x):
        return self.add("MaxPool", [x], lambda _, v: v.reshape(*v.shape[:2], v.shape[2] // 2, 2, v.shape[3] // 2, 2).max((3, 5)), kernel_shape=[2, 2], strides=[2, 2])

    def join(self, x, y):
        return self.add("Concat", [x, y], lambda _, a, b: np.concatenate([a, b], 1), axis=1)

    def sum(self, x, y):
        return self.add("Relu", [self.add("Add", [x, y], lambda _, a, b: a + b)], lambda _, v: np.maximum(v, 0))

    def model(self, result):
        return onnx.model(self.nodes, [onnx.info("x", onnx.FLOAT, self.x.shape)], [onnx.info(result[0], onnx.FLOAT, None)], weights=self.weights)


def unet(random, size, width, levels):
    net = Net(random, (1, 3, size, size))
    x, kept = net.input(), []
    for level in range(levels):
        x = net.conv(net.conv(x, width << level), width << level)
        kept.append(x)
        x = net.pool(x)
    x = net.conv(net.conv(x, width << levels), width << levels)
    for level in reversed(range(levels)):
        x = net.join(kept[level], net.conv(x, width << level, relu=False, transposed=True))
        x = net.conv(net.conv(x, width << level), width << level)
    return net, net.conv(x, 2, taps=1, relu=False)


def resnext(random, size, blocks):
    """Of 32 groups of 4 channels in the first stage, twice as many in each later one."""
    net = Net(random, (1, 3, size, size))
    x = net.pool(net.conv(net.input(), 64, taps=7, stride=2))
    for stage, count in enumerate(blocks):
        for block in range(count):
            stride = 2 if stage and not block else 1
            y = net.conv(net.conv(x, 128 << stage, taps=1), 128 << stage, groups=32, stride=stride)
            y = net.conv(y, 256 << stage, taps=1, relu=False)
            x = net.sum(y, x if block else net.conv(x, 256 << stage, taps=1, stride=stride, relu=False))
    return net, x


def far(value, exact):
    return np.sqrt(((value.astype(np.float64) - exact) ** 2).mean())


def check(place, make, *sizes):
    net, (name, exact, rounded) = make(np.random.default_rng([7, *np.ravel(sizes[-1])]), *sizes)
    (place / "m.onnx").write_bytes(net.model((name,)))
    np.save(place / "x.npy", net.x)
    run("dmxc", place / "m.onnx", "-q", "-t", "cuda:sm_90a", "--numerics", "bf16", "--require-target", "cuda:100", "-o", place / "m.bundle")
    run("dmx-run", place / "m.bundle", "-q", "--input", f"x={place}/x.npy", "--output", f"{name}={place}/out.npy", *machine([]), "--device-opt",
        f"cuda.report={place}/r.json", "--device-opt", f"cuda.sim_seed={SEED % 1000}")  # fmt: skip
    macs = {"specialised": 0, "other": 0}
    for kernel in json.loads((place / "r.json").read_text())["last"]:
        macs["specialised" if kernel["main"]["wgmma"] else "other"] += kernel["main"].get("model_macs", 0)
    share = macs["specialised"] / sum(macs.values())
    own, other = far(np.load(place / "out.npy"), exact), far(rounded, exact)
    print(f"     {share:.1%} of {sum(macs.values()) / 1e6:.0f} M multiply-adds by wgmma; {own:.3e} from f32, {other:.3e} with operands rounded", flush=True)
    if share < LEAST_BY_CORES or not own <= FARTHEST * other:
        raise RuntimeError(f"by wgmma {share:.1%}, {own / other:.3f} times as far")


def main():
    attempts = Attempts()
    cases = {"a U-Net": (check, unet, 64, 16, 3), "a ResNeXt": (check, resnext, 64, (2, 2, 2))}
    small = [("a small U-Net", (check, unet, 16, 16, 1)), ("a small ResNeXt", (check, resnext, 32, (1,)))]
    for name, case in cases.items() if LONG else [small[SEED % 2]]:
        attempts.run(name, *case)
    return attempts.status()


if __name__ == "__main__":
    sys.exit(main())
