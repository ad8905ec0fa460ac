#!/usr/bin/env python3
"""What a decoder does for a token, on the simulator of GPUs against numpy: attention of few rows, random ones, grouped heads, open lengths, masks, each way to
cut them, the same bits for any order of turns; a layer of a decoder, in f32 and in bf16; and by the clock a layer of 2,048 with 1,023 tokens before.

Usage: decode.py BIN. A plain run takes 3 attentions, the small layer in one of the two, and of the large one its kernels; with DMXC_LONG=1 100 attentions and
all. Exit 77 where numpy is not there."""

import dataclasses
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import products  # noqa: E402  exits where numpy is not there
from attempts import Attempts  # noqa: E402
from machines import described  # noqa: E402
from models import machine  # noqa: E402
from products import np, onnx  # noqa: E402
from sampling import LONG, SEED  # noqa: E402

MOST_KERNELS, MOST_TIMES, LEAST_BLOCKS = 8, 3, 100
SCHEDULE = """module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %p = transform.dmx.match {algorithm = "attention-by-warps"} in %m expect 1 : !transform.any_op -> !transform.any_op
    transform.dmx.decide %p {DECIDED} : !transform.any_op
    transform.yield
  }
}
"""
TYPES = {np.dtype("f4"): onnx.FLOAT, np.dtype("i8"): onnx.INT64}


class Graph:
    """Nodes and constants of a model."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def constant(self, array):
        array, name = np.asarray(array), f"c{len(self.weights)}"
        self.weights.append(onnx.tensor(name, TYPES[array.dtype], list(array.shape), raw=array.tobytes()))
        return name

    def __call__(self, kind, *inputs, out=None, **attributes):
        out = out or f"t{len(self.nodes)}"
        names = " ".join(one if isinstance(one, str) else self.constant(one) for one in inputs)
        self.nodes.append(onnx.node(kind, names, out, **attributes))
        return out

    def repeated(self, x, heads, groups, width):
        if heads == groups:
            return x
        wide = self("Expand", self("Unsqueeze", x, np.array([2])), np.array([1, 1, heads // groups, 1, 1]))
        return self("Reshape", wide, np.array([0, heads, -1, width]))

    def model(self, given, results):
        shapes = lambda values: [onnx.info(name, onnx.FLOAT, shape) for name, shape in values.items()]
        return onnx.model(self.nodes, shapes(given), shapes(results), weights=self.weights)


def softmax(x):
    power = np.exp(x - x.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)


def compile_model(place, text, *options, level="sm_90a"):
    (place / "m.onnx").write_bytes(text)
    products.run("dmxc", place / "m.onnx", "-q", "-t", f"cuda:{level}", "--require-target", "cuda:100", "--placement-report", place / "r.tsv", "-o",
                 place / "m.bundle", *options)  # fmt: skip


def results(place, inputs, outputs, seed):
    words = []
    for name, value in inputs.items():
        np.save(place / f"{name}.npy", value)
        words += ["--input", f"{name}={place}/{name}.npy"]
    for name in outputs:
        words += ["--output", f"{name}={place}/{name}.out.npy"]
    products.run("dmx-run", place / "m.bundle", "-q", *words, *machine([]), "--device-opt", f"cuda.sim_seed={seed}")
    return [np.load(place / f"{name}.out.npy") for name in outputs]


# --- attention --------------------------------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class Case:
    heads: int
    groups: int
    rows: int
    keys: int
    depth: int
    width: int
    mask: bool
    open: bool
    tile: tuple  # warps, blocks; none: by tensor cores, in bf16

    def label(self):
        tile = f"{self.tile[0]} warps, {self.tile[1]} blocks" if self.tile else "tensor cores"
        return (f"attention of {self.heads} heads in {self.groups}, {self.rows} x {self.depth} on {self.keys} to {self.width}{', mask' * self.mask}"
                f"{', open' * self.open}, {tile}")  # fmt: skip


def random_case(random, cores):
    groups = int(random.integers(1, 4))
    if cores:
        return Case(groups * int(random.integers(1, 3)), groups, int(random.integers(17, 140)), int(random.integers(*[(1, 65), (130, 200)][int(random.integers(5) > 0)])),
                    int([64, 128, 40, 20][random.integers(4)]), int([64, 128, 64, 24][random.integers(4)]), bool(random.integers(2)), bool(random.integers(2)), ())  # fmt: skip
    return Case(groups * int(random.integers(1, 5)), groups, int([1, 1, random.integers(1, 9)][random.integers(3)]), int(random.integers(1, 300)),
                int([64, 128, 16, 24][random.integers(4)]), int([64, 128, 64, 8][random.integers(4)]), bool(random.integers(2)), bool(random.integers(2)),
                (int(2 ** random.integers(4)), int(2 ** random.integers(4))))  # fmt: skip


def check_attention(place, case, random):
    g = Graph()
    k, v = g.repeated("k", case.heads, case.groups, case.depth), g.repeated("v", case.heads, case.groups, case.width)
    scores = g("Mul", g("MatMul", "q", g("Transpose", k, perm=[0, 1, 3, 2])), np.float32(case.depth**-0.5))
    scores = g("Add", scores, "bias") if case.mask else scores
    g("MatMul", g("Softmax", scores, axis=-1), v, out="y")
    shapes = {"q": [1, case.heads, case.rows, case.depth], "k": [1, case.groups, case.keys, case.depth], "v": [1, case.groups, case.keys, case.width]}
    if case.mask:
        shapes["bias"] = [1, 1, case.rows, case.keys]
    inputs = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    if case.mask:  # a row sees its first key
        inputs["bias"] = np.where((random.random(shapes["bias"]) < 0.4) & (np.arange(case.keys) > 0), np.float32(-np.inf), inputs["bias"])
    if case.open:
        for name in ("k", "v"):
            shapes[name][2] = "keys"
        if case.mask:
            shapes["bias"][3] = "keys"
    options, level = ["--numerics", "bf16"], place / "long_start.json"
    level.write_text(json.dumps(described({"kernel.launch_clocks": 100000})))  # so that one kernel pays
    if case.tile:
        (place / "s.mlir").write_text(SCHEDULE.replace("DECIDED", f"warps = {case.tile[0]}, blocks = {case.tile[1]}"))
        options = ["--schedule", place / "s.mlir"]
    compile_model(place, g.model(shapes, {"y": None}), *options, level=level)
    if not case.tile and "\tattention-specialised\t" not in (place / "r.tsv").read_text():
        raise RuntimeError("it is not by tensor cores")
    taken = {name: (inputs[name] if case.tile else products.bf16(inputs[name])).astype(np.float64) for name in "qkv"}
    k, v = (np.repeat(taken[name], case.heads // case.groups, 1) for name in "kv")
    scores = taken["q"] @ np.swapaxes(k, 2, 3) * case.depth**-0.5
    wanted = softmax(scores + inputs["bias"] if case.mask else scores) @ v
    got = results(place, inputs, ["y"], random.integers(1000))[0]
    most = 1e-5 if case.tile else 5e-3  # of the largest one; the weights are rounded, too
    if got.shape != wanted.shape or not np.abs(got - wanted).max() <= most * np.abs(wanted).max():
        raise RuntimeError(f"it differs by {np.abs(got - wanted).max()}")
    if results(place, inputs, ["y"], random.integers(1000))[0].tobytes() != got.tobytes():
        raise RuntimeError("another order of turns gives other bits")


# --- a layer ----------------------------------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class Sizes:
    width: int
    heads: int
    groups: int
    head: int
    inner: int
    past: int


SMALL, LARGE = Sizes(512, 8, 2, 64, 512, 45), Sizes(2048, 32, 8, 64, 8192, 1023)


def weights_of(sizes, random):
    """By name, with their values: of the large layer zeros, as it is not computed."""
    shapes = {"q": (sizes.width, sizes.heads * sizes.head), "k": (sizes.width, sizes.groups * sizes.head), "v": (sizes.width, sizes.groups * sizes.head),
              "o": (sizes.heads * sizes.head, sizes.width), "gate": (sizes.width, sizes.inner), "up": (sizes.width, sizes.inner),
              "down": (sizes.inner, sizes.width), "first": (sizes.width,), "second": (sizes.width,)}  # fmt: skip
    if sizes is LARGE:
        return {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    return {name: (random.standard_normal(shape) / (np.sqrt(shape[0]) if len(shape) > 1 else 1)).astype(np.float32) for name, shape in shapes.items()}


def layer(sizes, made):
    g, width = Graph(), sizes.head
    half = np.array([width // 2])

    def norm(x, scale):
        mean = g("ReduceMean", g("Mul", x, x), axes=[-1], keepdims=1)
        return g("Mul", g("Div", x, g("Sqrt", g("Add", mean, np.float32(1e-5)))), made[scale])

    def heads(x, name, count):
        return g("Transpose", g("Reshape", g("MatMul", x, made[name]), np.array([0, 0, count, width])), perm=[0, 2, 1, 3])

    def turned(x):
        first, second = g("Slice", x, np.array([0]), half, np.array([3])), g("Slice", x, half, np.array([width]), np.array([3]))
        return g("Add", g("Mul", x, "cos"), g("Mul", g("Concat", g("Neg", second), first, axis=-1), "sin"))

    x = norm("x", "first")
    q, k, v = turned(heads(x, "q", sizes.heads)), turned(heads(x, "k", sizes.groups)), heads(x, "v", sizes.groups)
    k, v = g("Concat", "past_k", k, axis=2, out="keys"), g("Concat", "past_v", v, axis=2, out="values")
    k, v = (g.repeated(one, sizes.heads, sizes.groups, width) for one in (k, v))
    scores = g("Mul", g("MatMul", q, g("Transpose", k, perm=[0, 1, 3, 2])), np.float32(width**-0.5))
    y = g("Transpose", g("MatMul", g("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    x = g("Add", "x", g("MatMul", g("Reshape", y, np.array([0, 0, sizes.heads * width])), made["o"]))
    y = norm(x, "second")
    gate, up = g("MatMul", y, made["gate"]), g("MatMul", y, made["up"])
    g("Add", x, g("MatMul", g("Mul", g("Mul", gate, g("Sigmoid", gate)), up), made["down"]), out="y")
    cache = [1, sizes.groups, sizes.past, width]
    given = {"x": [1, 1, sizes.width], "cos": [1, 1, 1, width], "sin": [1, 1, 1, width], "past_k": cache, "past_v": cache}
    return g.model(given, {"y": None, "keys": None, "values": None}), given


def wanted_of(sizes, made, given):
    w, x = ({name: value.astype(np.float64) for name, value in values.items()} for values in (made, given))
    norm = lambda x, scale: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w[scale]
    heads = lambda y, name, count: (y @ w[name]).reshape(1, 1, count, sizes.head).transpose(0, 2, 1, 3)
    half = sizes.head // 2
    turned = lambda y: y * x["cos"] + np.concatenate([-y[..., half:], y[..., :half]], -1) * x["sin"]
    y = norm(x["x"], "first")
    keys = np.concatenate([x["past_k"], turned(heads(y, "k", sizes.groups))], 2)
    values = np.concatenate([x["past_v"], heads(y, "v", sizes.groups)], 2)
    k, v = (np.repeat(one, sizes.heads // sizes.groups, 1) for one in (keys, values))
    y = softmax(turned(heads(y, "q", sizes.heads)) @ np.swapaxes(k, 2, 3) * sizes.head**-0.5) @ v
    y = x["x"] + y.transpose(0, 2, 1, 3).reshape(1, 1, -1) @ w["o"]
    z = norm(y, "second")
    gate = z @ w["gate"]
    return y + (gate / (1 + np.exp(-gate)) * (z @ w["up"])) @ w["down"], keys, values


def check_layer(place, numerics, random):
    made = weights_of(SMALL, random)
    text, shapes = layer(SMALL, made)
    compile_model(place, text, "--numerics", numerics)
    algorithms = (place / "r.tsv").read_text()
    for name, count in (("attention-by-warps", 1), ("matmul-by-warps", 5)):
        if algorithms.count(f"\t{name}\t") < count:
            raise RuntimeError(f"fewer than {count} {name}: {algorithms}")
    inputs = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    most = {"strict": 1e-5, "bf16": 1e-2}[numerics]
    for name, got, wanted in zip(("y", "keys", "values"), results(place, inputs, ["y", "keys", "values"], 3), wanted_of(SMALL, made, inputs)):
        off = np.abs(got - wanted).max() / np.abs(wanted).max()
        if got.shape != wanted.shape or not off <= most:
            raise RuntimeError(f"{name} differs by {off} of its largest element")


def check_large(place):
    """By the clock: how many kernels, of how many blocks, and how long beside the memory's time, of bf16 weights and a cache that is read and written."""
    text, _ = layer(LARGE, weights_of(LARGE, None))
    compile_model(place, text, "--numerics", "bf16")
    products.run("dmx-run", place / "m.bundle", "--random-inputs", 1, "-q", *machine([]), "--device-opt", f"cuda.report={place}/r.json", "--device-opt",
                 "cuda.sim_blocks=3", "--device-opt", "cuda.sim_checks=0")  # fmt: skip
    kernels = [kernel["main"] for kernel in json.loads((place / "r.json").read_text())["last"]]
    bandwidth = json.loads((products.pathlib.Path(__file__).resolve().parents[3] / "schemas/cuda/h100.json").read_text())["memory"]["bytes_per_second"]["value"]
    width, cache = LARGE.width, 4 * 2 * LARGE.groups * LARGE.head * (LARGE.past + 1)
    columns = (LARGE.heads + 2 * LARGE.groups) * LARGE.head
    memory = (2 * (width * columns + LARGE.heads * LARGE.head * width + 3 * width * LARGE.inner) + 2 * cache) / bandwidth
    times = sum(kernel["seconds"] for kernel in kernels) / memory
    few = [kernel["blocks"] for kernel in kernels if kernel["blocks"] < LEAST_BLOCKS and kernel["read_bytes"]["DRAM"] > 1 << 20]
    print(f"{len(kernels)} kernels, {times * memory * 1e6:.0f} us, {times:.2f} times the memory's {memory * 1e6:.0f}", flush=True)
    if len(kernels) > MOST_KERNELS or times > MOST_TIMES or few:
        raise RuntimeError(f"more than {MOST_KERNELS} kernels, than {MOST_TIMES} times, or some of {few} blocks")


def main():
    attempts = Attempts()
    for number in range(100 if LONG else 3):
        random = np.random.default_rng([0 if LONG else SEED, number])
        case = random_case(random, cores=number % 3 == 2)
        if number % 3 == 0:  # each warp has keys several times
            case = dataclasses.replace(case, keys=200 + case.keys % 100, tile=(1, 1 + case.tile[1] % 2))
        attempts.run(case.label(), check_attention, case, random)
    for numerics in ["strict", "bf16"] if LONG else [["strict", "bf16"][SEED % 2]]:
        attempts.run(f"a small layer, {numerics}", check_layer, numerics, np.random.default_rng(5))
    attempts.run("a layer of 2,048 by the clock", check_large)
    return attempts.status()


if __name__ == "__main__":
    sys.exit(main())
