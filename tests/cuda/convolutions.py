#!/usr/bin/env python3
"""Random convolutions on the simulator of GPUs against numpy: rounded to bf16 (--numerics bf16), of bf16 and of f16; one to three spatial axes,
strides, dilation, padding, groups, open batches and images, tiles that a schedule decides, and what is computed behind one in its kernel.
Usage: convolutions.py BIN.

Sums of multiples of 1/8 are exact in f32 in any order, so every other case wants the same bits; the others K * 2^-22 * sum |a| |b|.
A plain run takes 14 cases, with DMXC_LONG=1 200. Exit 77 where numpy is not there."""

import itertools
import pathlib
import sys
import tempfile

from products import NUMBERS, SPAN, TILES, np, onnx, run, schedule_of  # which ends with 77 where numpy is not there, and knows the other folders
from models import machine
from sampling import LONG, SEED

SPECIALISED = "conv-specialised"
FEW = 4  # outputs of a group, or pixels, up to which nothing is rounded and each element has a thread
EPILOGUES = ["", "bias", "bias relu", "bias clip", "bias residual relu", "scale bias", "bias sigmoid"]


def convolve(x, w, strides, dilations, low, high, groups):
    """Sums and sums of absolute values, by the definition."""
    spatial = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *zip(low, high)])
    out = [(x.shape[i + 2] - dilations[i] * (w.shape[i + 2] - 1) - 1) // strides[i] + 1 for i in range(spatial)]
    images, outputs, channels = x.shape[0], w.shape[0], w.shape[1]
    total = np.zeros((2, images, outputs, *out))
    each = outputs // groups
    for group in range(groups):
        own = slice(group * each, (group + 1) * each)
        for tap in itertools.product(*map(range, w.shape[2:])):
            view = tuple(slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, o, s in zip(tap, dilations, out, strides))
            part = x[(slice(None), slice(group * channels, (group + 1) * channels), *view)].astype(np.float64)
            weights = w[(own, slice(None), *tap)].astype(np.float64)
            total[0][:, own] += np.einsum("oc,nc...->no...", weights, part)
            total[1][:, own] += np.einsum("oc,nc...->no...", np.abs(weights), np.abs(part))
    return total


class Case:
    def __init__(self, random, number):
        self.random, self.exact = random, bool(number % 2)
        self.numbers = ["rounded", "rounded", "bf16", "f16"][random.integers(4)]
        spatial = [1, 2, 2, 2, 3][random.integers(5)]
        self.groups = [1, 1, 1, 2, 4][random.integers(5)]
        channels, outputs = int(random.integers(1, 40)), int(random.integers(1, 90))
        most = {1: 120, 2: 24, 3: 8}[spatial]
        taps = [[1, 3, 5, 7][random.integers(3 if spatial == 3 else 4)] for _ in range(spatial)]
        if random.random() < 0.3:
            taps = [1] * spatial
        pick = lambda top: [int(random.integers(1, top + 1)) for _ in range(spatial)]
        plain = random.random() < 0.4
        self.strides, self.dilations = ([1] * spatial, [1] * spatial) if plain else (pick(3), pick(2))
        self.low, self.high = ([int(random.integers(0, t)) for t in taps] for _ in range(2))
        self.image = [max(int(random.integers(1, most + 1)), d * (t - 1) + 1) for t, d in zip(taps, self.dilations)]
        if plain and random.random() < 0.5:
            self.image[-1] = (self.image[-1] + 7) // 8 * 8  # as tensor maps read them where windows are pixels
        self.images = int(random.integers(1, 4))
        self.epilogue = EPILOGUES[random.integers(len(EPILOGUES))]
        self.open = [(), (), ("batch",), ("batch", "image")][random.integers(4)]
        self.tile = [None, (TILES[number % len(TILES)], 2 + number % 3)][number // 2 % 2]  # with slots
        self.x = self.values((self.images, channels * self.groups, *self.image))
        self.w = self.values((outputs * self.groups, channels, *taps))
        self.label = (f"{self.numbers} {'x'.join(map(str, self.x.shape))} by {'x'.join(map(str, self.w.shape))}, strides {self.strides}, "
                      f"dilations {self.dilations}, pads {self.low} {self.high}, groups {self.groups}{', ' * bool(self.epilogue)}{self.epilogue}"
                      f"{', exact' * self.exact}{', open ' * bool(self.open)}{' and '.join(self.open)}{f', tile {self.tile[0]} with {self.tile[1]} stages' if self.tile else ''}")  # fmt: skip

    def values(self, shape):
        x = self.random.integers(-8, 9, shape) / 8 if self.exact else self.random.standard_normal(shape)
        return x.astype(np.float32)

    def rounds(self, pixels):
        return self.numbers != "rounded" or min(self.w.shape[0] // self.groups, pixels) > FEW

    def build(self):
        """The model; inputs and what is expected of the output, with its bound."""
        spatial, self.inputs = len(self.image), {"x": self.x}
        dims = ["n" if "batch" in self.open else self.images, self.x.shape[1],
                *([f"i{i}" for i in range(spatial)] if "image" in self.open else self.image)]  # fmt: skip
        given, weights = [onnx.info("x", onnx.FLOAT, dims)], [onnx.tensor("w", onnx.FLOAT, self.w.shape, raw=self.w.tobytes())]
        nodes, name = [], "c"
        kind = {"f16": onnx.FLOAT16, "bf16": onnx.BFLOAT16}.get(self.numbers)
        for each in ("x", "w") if kind else ():
            nodes.append(onnx.node("Cast", each, each + "c", to=kind))
        nodes.append(onnx.node("Conv", "xc wc" if kind else "x w", "c", strides=self.strides, dilations=self.dilations, pads=[*self.low, *self.high],
                               group=self.groups))  # fmt: skip
        if kind:
            nodes.append(onnx.node("Cast", "c", "cf", to=onnx.FLOAT))
            name = "cf"
        exact = convolve(self.x, self.w, self.strides, self.dilations, self.low, self.high, self.groups)
        pixels = int(np.prod(exact.shape[3:]))
        number = NUMBERS[self.numbers] if self.rounds(pixels) and "image" not in self.open or kind else lambda x: x
        if "image" in self.open and self.numbers == "rounded":
            number = NUMBERS["rounded"] if self.w.shape[0] // self.groups > FEW else number
        value, size = convolve(number(self.x), number(self.w), self.strides, self.dilations, self.low, self.high, self.groups)
        bound = SPAN * int(np.prod(self.w.shape[1:])) * size * (not self.exact)
        if kind:
            bound = bound + (2.0**-10 if self.numbers == "f16" else 2.0**-7) * np.abs(value) * (not self.exact)
            value = NUMBERS[self.numbers](value.astype(np.float32))
        value = value.astype(np.float32)
        for step in self.epilogue.split():
            before, name = name, name + step[0]
            if step in ("relu", "sigmoid"):
                nodes.append(onnx.node(step.capitalize(), before, name))
                value = np.maximum(value, 0) if step == "relu" else 1 / (1 + np.exp(-value.astype(np.float64)))
                bound = bound + (step == "sigmoid") * 2.0**-20
            elif step == "clip":
                weights += [onnx.tensor(end, onnx.FLOAT, [], raw=np.float32(x).tobytes()) for end, x in (("lo", -1), ("hi", 1.5))]
                nodes.append(onnx.node("Clip", f"{before} lo hi", name))
                value = np.clip(value, -1, 1.5)
            else:
                whole = step == "residual"
                x = self.values(value.shape if whole else (value.shape[1], *[1] * spatial))
                if step == "scale":  # the compiler may scale the weights before they are rounded: by powers of two that is the same
                    x = (2.0 ** self.random.integers(-2, 3, x.shape)).astype(np.float32)
                if whole:
                    self.inputs["r"] = x
                    given.append(onnx.info("r", onnx.FLOAT, ["n" if "batch" in self.open else self.images, value.shape[1],
                                                             *([f"o{i}" for i in range(spatial)] if "image" in self.open else value.shape[2:])]))  # fmt: skip
                else:
                    weights.append(onnx.tensor(step, onnx.FLOAT, x.shape, raw=x.tobytes()))
                nodes.append(onnx.node("Mul" if step == "scale" else "Add", f"{before} {'r' if whole else step}", name))
                value = value * x if step == "scale" else value + x
                bound = (bound * np.abs(x) if step == "scale" else bound) + 2.0**-22 * np.abs(value) * (not self.exact)
        self.name, self.value, self.bound = name, value, bound
        return onnx.model(nodes, given, [onnx.info(name, onnx.FLOAT, None)], weights=weights)


def check(place, case):
    """The algorithm by which the convolution was computed."""
    (place / "m.onnx").write_bytes(case.build())
    command = ["dmxc", place / "m.onnx", "-q", "-t", "cuda:sm_90a", "--numerics", "bf16" if case.numbers == "rounded" else "strict", "--require-target",
               "cuda:100", "--placement-report", place / "r.tsv"]  # fmt: skip
    run(*command, "-o", place / "m.bundle")
    algorithm = next(line.split("\t")[4] for line in (place / "r.tsv").read_text().splitlines() if "\tdmir.conv\t" in line)
    if case.tile and algorithm == SPECIALISED:
        (place / "s.mlir").write_text(schedule_of(case).replace("matmul-specialised", SPECIALISED))
        text = run(*command, "--schedule", place / "s.mlir", "--emit", "schedule.pipeline", "-o", "-")
        if f"tile {case.tile[0].replace('x', ' x ')} raster" not in text or f"slots {case.tile[1]} " not in text:
            raise RuntimeError("the kernel has another tile than is decided")
        run(*command, "--schedule", place / "s.mlir", "-o", place / "m.bundle")
    words = []
    for name, value in case.inputs.items():
        np.save(place / f"{name}.npy", value)
        words += ["--input", f"{name}={place}/{name}.npy"]
    run("dmx-run", place / "m.bundle", "-q", *words, "--output", f"{case.name}={place}/out.npy", *machine([]), "--device-opt",
        f"cuda.sim_seed={case.random.integers(1000)}")  # fmt: skip
    got = np.load(place / "out.npy")
    if got.shape != case.value.shape:
        raise RuntimeError(f"the result is {got.shape}, not {case.value.shape}")
    off = np.abs(got.astype(np.float64) - case.value)
    if not (off <= case.bound).all():
        raise RuntimeError(f"it differs by {off.max()}, {(off > case.bound).sum()} of {off.size} elements by more than the bound")
    return algorithm


def main():
    bad, by = 0, {}
    for number in range(200 if LONG else 14):
        seed = SEED * 1000 + number
        case = Case(np.random.default_rng(seed), number)
        with tempfile.TemporaryDirectory(prefix="dmxc-cuda-") as folder:
            try:
                algorithm = check(pathlib.Path(folder), case)
                by[algorithm] = by.get(algorithm, 0) + 1
                print(f"ok   {seed} {case.label}: {algorithm}", flush=True)
            except RuntimeError as error:
                bad += 1
                print(f"FAIL {seed} {case.label}: {error}", flush=True)
    print(", ".join(f"{count} by {algorithm}" for algorithm, count in sorted(by.items())))
    return 1 if bad or not by.get(SPECIALISED) else 0


if __name__ == "__main__":
    sys.exit(main())
