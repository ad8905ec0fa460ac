#!/usr/bin/env python3
"""Attention by tensor cores, on the simulator of GPUs against numpy. Masks that are rules: the same bits whether or not tiles of keys are left out, fewer
products, clocks in proportion. Lengths, heads, groups, layouts: near f32, nearly all multiply-adds by wgmma, no scores and no repeated heads in memory.
Random ones: the same bits in any order of turns.

Usage: attention.py BIN. A plain run takes two masks, two lengths and a random one; with DMXC_LONG=1 all and 100. Exit 77 where numpy is not there."""

import dataclasses
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import decode  # noqa: E402  exits where numpy is not there
from decode import Graph, compile_model, described, machine, np, onnx, products, softmax  # noqa: E402
from attempts import Attempts  # noqa: E402
from sampling import LONG, SEED  # noqa: E402

decode.TYPES[np.dtype("?")] = 9  # BOOL
LEAST, INF = np.finfo(np.float32).min, np.float32(np.inf)


@dataclasses.dataclass(frozen=True)
class Case:
    heads: int
    groups: int
    rows: int
    keys: int
    depth: int
    width: int
    rule: str = ""
    fill: float = -np.inf
    open: str = ""  # "", "open" or "1 or more": what is known of the number of keys
    layouts: tuple = (0, 0)  # of keys and values, in LAYOUTS

    def label(self):
        return (f"{self.heads} heads in {self.groups}, {self.rows} x {self.depth} on {self.keys} to {self.width}"
                f"{f', {self.rule} {self.fill:.3g}' * bool(self.rule)}{f', {self.open}' * bool(self.open)}, layouts {self.layouts}")  # fmt: skip


# From what the caller has to heads x keys x numbers.
LAYOUTS = [(0, 1, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)]
# What rules keep of rows and keys, by nodes and by numpy; `few` are keys that a run brings.
RULES = {
    "causal": (lambda g, i, j: g("LessOrEqual", j, i), lambda i, j, few: j <= i),
    "window": (lambda g, i, j: g("And", g("LessOrEqual", j, i), g("Greater", j, g("Sub", i, np.int64(70)))), lambda i, j, few: (j <= i) & (j > i - 70)),
    "padding": (lambda g, i, j: g("Less", j, "few"), lambda i, j, few: (j < few) & (i >= 0)),
    "blind": (lambda g, i, j: g("Greater", j, i), lambda i, j, few: j > i),  # the last row sees nothing
    "blocks": (None, lambda i, j, few: (((i // 64) * 7 + (j // 64) * 5) % 4 == 0) | (j < 8)),
    "padded causal": (lambda g, i, j: g("And", g("LessOrEqual", j, i), g("Less", j, "few")), lambda i, j, few: (j <= i) & (j < few)),
}  # fmt: skip


def kept(case, few):
    return np.broadcast_to(RULES[case.rule][1](np.arange(case.rows)[:, None], np.arange(case.keys)[None], few), (case.rows, case.keys))


def build(case):
    """The model, and what a run gives it."""
    g, shapes, types = Graph(), {}, {}

    def operand(name, groups, length, size, layout):
        order = LAYOUTS[layout]
        whole = [1, groups, length, size]
        shapes[name] = [whole[axis] for axis in np.argsort(order)] if layout else whole
        return name if layout == 0 else g("Transpose", name, perm=list(order))

    operand("q", case.heads, case.rows, case.depth, 0)
    length = "keys" if case.open else case.keys
    k, v = operand("k", case.groups, length, case.depth, case.layouts[0]), operand("v", case.groups, length, case.width, case.layouts[1])
    own, k, v = k, g.repeated(k, case.heads, case.groups, case.depth), g.repeated(v, case.heads, case.groups, case.width)
    scores = g("Mul", g("MatMul", "q", g("Transpose", k, perm=[0, 1, 3, 2])), np.float32(case.depth**-0.5))
    if case.rule:
        size = lambda of, axis: g("Squeeze", g("Shape", of, start=axis, end=axis + 1))
        ranged = lambda count: g("Range", np.int64(0), count, np.int64(1))
        if "pad" in case.rule:
            shapes["few"], types["few"] = [1, 1], onnx.INT64
        if RULES[case.rule][0]:
            keep = RULES[case.rule][0](g, g("Unsqueeze", ranged(size("q", 2)), np.array([1])), ranged(size(own, 2)))
        else:
            keep = g.constant(np.ascontiguousarray(kept(case, 0)))
        scores = g("Where", keep, scores, np.float32(case.fill))
    g("MatMul", g("Softmax", scores, axis=-1), v, out="y")
    infos = [onnx.info(name, types.get(name, onnx.FLOAT), shape) for name, shape in shapes.items()]
    return onnx.model(g.nodes, infos, [onnx.info("y", onnx.FLOAT, None)], weights=g.weights), shapes


def inputs_of(case, shapes, random):
    numbers = lambda shape: [case.keys if size == "keys" else size for size in shape]
    return {name: np.array([[1 + case.keys // 2]]) if name == "few" else random.standard_normal(numbers(shape)).astype(np.float32) for name, shape in shapes.items()}


def wanted(case, inputs, rounds):
    taken = lambda name: (products.bf16(inputs[name]) if rounds else inputs[name]).astype(np.float64)
    q, k, v = taken("q"), np.transpose(taken("k"), LAYOUTS[case.layouts[0]]), np.transpose(taken("v"), LAYOUTS[case.layouts[1]])
    k, v = (np.repeat(one, case.heads // case.groups, 1) for one in (k, v))
    scores = q @ np.swapaxes(k, 2, 3) * case.depth**-0.5
    if case.rule:
        few = inputs["few"].item() if "few" in inputs else 0
        scores = np.where(kept(case, few), scores, case.fill)
    with np.errstate(invalid="ignore"):
        return softmax(scores) @ v


def long_start(place, units=132):
    """A machine on which one kernel pays, and of few multiprocessors whose blocks have rows from both ends."""
    level = place / "long_start.json"
    level.write_text(json.dumps(described({"kernel.launch_clocks": 100000, "multiprocessors": units})))
    return level


def compile_case(place, case, *options, units=132):
    text, shapes = build(case)
    if case.open == "1 or more":
        options = [*options, "--dim", "keys=1..8192"]
    compile_model(place, text, "--numerics", "bf16", *options, level=long_start(place, units))
    return shapes


def run(place, inputs, seed, *options):
    words = []
    for name, value in inputs.items():
        np.save(place / f"{name}.npy", value)
        words += ["--input", f"{name}={place}/{name}.npy"]
    products.run("dmx-run", place / "m.bundle", "-q", *words, "--output", f"y={place}/y.npy", *machine([]), "--device-opt", f"cuda.sim_seed={seed}", "--device-opt",
                 f"cuda.report={place}/r.json", *options)  # fmt: skip
    return np.load(place / "y.npy"), [kernel["main"] | {"name": kernel["kernel"]} for kernel in json.loads((place / "r.json").read_text())["last"]]


def off(got, expected):
    """The greatest difference, as a part of the greatest number; rows that see nothing are NaN in both."""
    if got.shape != expected.shape or not (np.isnan(got) == np.isnan(expected)).all():
        return np.inf
    return np.nanmax(np.abs(got - expected)) / np.nanmax(np.abs(expected))


def algorithm(place):
    names = [line.split("\t")[4] for line in (place / "r.tsv").read_text().splitlines() if "\tdmir.softmax\t" in line]
    return names[0] if names else ""


def products_of(kernels):
    return sum(kernel["macs"]["f16"] for kernel in kernels)


# --- masks ------------------------------------------------------------------------------------------------------------
ALL_KEYS = decode.SCHEDULE.replace("attention-by-warps", "attention-specialised-ranges").replace("{DECIDED}", '{algorithm = "attention-specialised"}')
# Cases, and what part of the products is left at most: of the tiles of 64 keys that 128 rows see some of, and a tile of scores more for each block.
MASKS = [
    (Case(2, 1, 300, 300, 64, 64, "causal"), 0.82), (Case(1, 1, 320, 320, 64, 64, "window"), 0.75), (Case(2, 2, 200, 640, 64, 128, "padding"), 0.62),
    (Case(1, 1, 256, 256, 64, 64, "blind", LEAST), 1.6), (Case(1, 1, 200, 256, 64, 64, "blind"), 0.9), (Case(2, 1, 320, 448, 64, 64, "blocks"), 0.75),
    (Case(1, 1, 320, 448, 64, 64, "blocks", LEAST), 0.75), (Case(2, 1, 384, 384, 128, 64, "causal", LEAST), 0.75), (Case(1, 1, 320, 320, 64, 64, "window", -1e4), 0.75),
    (Case(2, 2, 300, 300, 64, 64, "padded causal", LEAST, "open"), 0.75), (Case(2, 2, 300, 300, 40, 64, "causal", -np.inf, "1 or more"), 0.76),
    (Case(4, 1, 100, 300, 64, 64, "causal"), 0.75),
]  # fmt: skip


def check_mask(place, case, most, units):
    random = np.random.default_rng(3)
    shapes = compile_case(place, case, units=units)
    if algorithm(place) != "attention-specialised-ranges":
        raise RuntimeError(f"it is {algorithm(place)}")
    inputs = inputs_of(case, shapes, random)
    got, some = run(place, inputs, 1)
    if off(got, wanted(case, inputs, True)) > 5e-3:
        raise RuntimeError(f"it differs by {off(got, wanted(case, inputs, True))}")
    (place / "s.mlir").write_text(ALL_KEYS)
    compile_case(place, case, *(["--sparsity", "off"] if case.heads > 1 else ["--schedule", place / "s.mlir"]), units=units)
    if algorithm(place) != "attention-specialised":
        raise RuntimeError(f"where all keys are asked for it is {algorithm(place)}")
    all_keys, whole = run(place, inputs, 2)
    if all_keys.tobytes() != got.tobytes():
        raise RuntimeError("with all keys it has other bits")
    if products_of(some) > most * products_of(whole):
        raise RuntimeError(f"{products_of(some)} multiply-adds of {products_of(whole)} are done")


def check_clocks(place):
    """By the clock: 4,096 rows and keys, causal, take no more than 0.6 of what they take without a mask."""
    clocks = {}
    for rule in ("causal", ""):
        case = Case(8, 8, 4096, 4096, 64, 64, rule)
        compile_case(place, case)
        products.run("dmx-run", place / "m.bundle", "--random-inputs", 1, "-q", *machine([]), "--device-opt", f"cuda.report={place}/r.json", "--device-opt",
                     "cuda.sim_blocks=3", "--device-opt", "cuda.sim_checks=0")  # fmt: skip
        clocks[rule] = json.loads((place / "r.json").read_text())["last"][-1]["main"]["clocks"]
    print(f"causal {clocks['causal']}, all {clocks['']} clocks: {clocks['causal'] / clocks['']:.3f}", flush=True)
    if clocks["causal"] > 0.6 * clocks[""]:
        raise RuntimeError("causal takes more than 0.6 of the clocks")


# --- sizes ------------------------------------------------------------------------------------------------------------
def sizes():
    for depth in (64, 128):
        for rule in ("", "causal"):
            for length in (1, 17, 64, 100, 129, 512, 1000, 4096):
                heads, groups = (4, 2) if length <= 512 else (2, 1) if length <= 1000 else (1, 1)
                yield Case(heads, groups, length, length, depth, depth, rule, -np.inf, "1 or more" if length % 2 else "")


def check_size(place, case):
    """Against f32 that nothing is rounded of."""
    shapes = compile_case(place, case)
    inputs = inputs_of(case, shapes, np.random.default_rng(5))
    got, kernels = run(place, inputs, 1)
    if off(got, wanted(case, inputs, False)) > 1e-2:
        raise RuntimeError(f"it is {off(got, wanted(case, inputs, False))} from f32")
    bytes_of = lambda name: inputs[name].nbytes
    rounded, result = (bytes_of("k") + bytes_of("v")) // 2, got.nbytes
    written = sum(kernel["written_bytes"]["DRAM"] for kernel in kernels)
    if written > rounded + result + 4096:
        raise RuntimeError(f"{written} bytes are written: its rounded keys and values have {rounded}, its result {result}")
    done = {unit: sum(kernel["macs"][unit] for kernel in kernels) for unit in ("f16", "f32")}
    if case.rows > 16 and done["f16"] < 9 * done["f32"]:
        raise RuntimeError(f"of {done} multiply-adds fewer than 90 % are by wgmma")


def check_no_keys(place, rows):
    """A run may have none, where their number is open: then a result is the sum of nothing."""
    case = Case(2, 1, rows, 0, 64, 64, "causal", -np.inf, "open")
    shapes = compile_case(place, case)
    got, _ = run(place, inputs_of(case, shapes, np.random.default_rng(1)), 1)
    if got.shape != (1, 2, rows, 64) or got.any():
        raise RuntimeError(f"it is {got.ravel()[:4]} of {got.shape}")


# --- exact ones -------------------------------------------------------------------------------------------------------
# A score is 0 or so low that its power is 0 beside that, so a row's result is the mean of some values: a sum that is exact, times what 1 over their number is, or
# of few rows, which warps compute, divided by it.
FEW = 16
EXACT = [
    Case(2, 1, 200, 200, 64, 64), Case(1, 1, 260, 260, 128, 128, "causal"), Case(1, 1, 96, 96, 128, 128, "causal"), Case(1, 1, 200, 200, 64, 64, "blind", LEAST),
    Case(4, 2, 190, 260, 40, 24, "padding", LEAST, "open"), Case(2, 1, 90, 160, 128, 40, "window", -np.inf, "1 or more", (1, 1)),
    Case(2, 1, 96, 160, 256, 256, "blocks", -np.inf, "", (2, 2)), Case(8, 2, 1, 300, 64, 64), Case(8, 2, 4, 200, 128, 128, "padding", -np.inf, "open"),
]  # fmt: skip


def exact_inputs(case, shapes, random):
    inputs = inputs_of(case, shapes, random)
    chosen = random.integers(0, case.depth, (1, case.heads, case.rows, 1))
    inputs["q"] = np.where(np.arange(case.depth) == chosen, np.float32(64), np.float32(0))
    inputs["k"] = np.where(random.random(inputs["k"].shape) < 0.4, np.float32(0), np.float32(-64))
    inputs["v"] = random.integers(-16, 17, inputs["v"].shape).astype(np.float32) / 8
    return inputs


def exact_wanted(case, inputs):
    k, v = (np.transpose(inputs[name], LAYOUTS[layout]) for name, layout in zip("kv", case.layouts))
    k, v = (np.repeat(one, case.heads // case.groups, 1) for one in (k, v))
    scores = inputs["q"] @ np.swapaxes(k, 2, 3)
    if case.rule:
        scores = np.where(kept(case, inputs["few"].item() if "few" in inputs else 0), scores, np.float32(case.fill))
    most = scores.max(-1, keepdims=True)
    taken = (scores == most) & (most > -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        sums, count = taken.astype(np.float32) @ v, taken.sum(-1, keepdims=True).astype(np.float32)
        return sums / count if case.rows <= FEW else sums * (np.float32(1) / count)


def check_exact(place, case, number):
    shapes = compile_case(place, case)
    inputs = exact_inputs(case, shapes, np.random.default_rng(number))
    got, _ = run(place, inputs, number)
    if got.shape != (expected := exact_wanted(case, inputs)).shape or not np.array_equal(got, expected, equal_nan=True):
        raise RuntimeError(f"it differs by {np.nanmax(np.abs(got - expected))}")


# --- random ones ------------------------------------------------------------------------------------------------------
def random_case(random):
    groups, pick = int(random.integers(1, 4)), lambda *all: all[int(random.integers(len(all)))]
    rule = pick("", "", *RULES)
    return Case(groups * int(random.integers(1, 4)), groups, int(random.integers(17, 200)), int(random.integers(1, 300)), pick(64, 128, 40, 20, 96),
                pick(64, 128, 64, 24, 40), rule, float(pick(-np.inf, LEAST, -1e4)), pick("", "1 or more", "open") if rule != "blocks" else "",
                (pick(0, 1, 2), pick(0, 1, 2)))  # fmt: skip


def check_random(place, case, random):
    shapes = compile_case(place, case, units=int(random.integers(1, 5)))
    if not algorithm(place).startswith("attention-specialised"):
        raise RuntimeError(f"it is {algorithm(place)}")
    inputs = inputs_of(case, shapes, random)
    got, _ = run(place, inputs, random.integers(1000))
    if off(got, wanted(case, inputs, True)) > 5e-3:
        raise RuntimeError(f"it differs by {off(got, wanted(case, inputs, True))}")
    if run(place, inputs, random.integers(1000))[0].tobytes() != got.tobytes():
        raise RuntimeError("another order of turns gives other bits")


def main():
    attempts = Attempts()
    some = lambda all, count: all if LONG else [all[(SEED * count + i) % len(all)] for i in range(count)]
    for case, most in some(MASKS, 2):
        for units in (132, 1) if LONG else [(132, 1)[SEED % 2]]:
            attempts.run(f"{case.label()}, {units} multiprocessors", check_mask, case, most, units)
    attempts.run("causal by the clock", check_clocks)
    for case in sizes() if LONG else some([case for case in sizes() if case.rows < 200], 2):
        attempts.run(case.label(), check_size, case)
    for rows in some([1, 40], 1):
        attempts.run(f"no keys, {rows} rows", check_no_keys, rows)
    for number, case in some(list(enumerate(EXACT)), 1):
        attempts.run(f"exact, {case.label()}", check_exact, case, number)
    for number in range(100 if LONG else 1):
        random = np.random.default_rng([11 if LONG else SEED, number])
        case = random_case(random)
        attempts.run(case.label(), check_random, case, random)
    return attempts.status()


if __name__ == "__main__":
    sys.exit(main())
