#!/usr/bin/env python3
"""Rows on the array's cores: random chains of joins, steps, softmax and normalisation behind transpositions and slices, to the bit of
schemas/aie/NUMERICS.md, written here in numpy. Usage: rows.py BIN. Exit 77 where numpy is not installed."""
import pathlib
import re
import sys
import tempfile
from random import Random

from checks import BIN, expect, failures, np, onnx_file, run, sampling

COUNT, TOGETHER = 48, 4
F = np.float32


# --- NUMERICS.md's rules: each operation is one of f32, rounded once


def exp(x):
    n = np.rint(x * F(1.44269504))
    r = x - n * F(0.693359375)
    r = r - n * F(-2.12194440e-4)
    factorials = [F(1)]
    for term in range(1, 8):
        factorials.append(factorials[-1] * F(term))
    terms = np.full_like(x, F(1) / factorials[7])
    for factorial in reversed(factorials[:7]):
        terms = terms * r + F(1) / factorial
    return np.where(x >= -87, terms * np.ldexp(F(1), n.astype(int)).astype(F), F(0)).astype(F)


def total(x):
    """Sixteen partial sums, joined by halves."""
    lanes = np.zeros((*x.shape[:-1], 16), F)
    for first in range(0, x.shape[-1], 16):
        part = x[..., first:first + 16]
        lanes[..., :part.shape[-1]] += part
    for half in (8, 4, 2, 1):
        lanes = lanes[..., :half] + lanes[..., half:2 * half]
    return lanes


def softmax(x):
    e = exp(x - x.max(-1, keepdims=True))
    return e * (F(1) / total(e))


def layer_norm(x, epsilon=1e-5):
    count = F(x.shape[-1])
    apart = x - total(x) / count
    return apart * (F(1) / np.sqrt(total(apart * apart) / count + F(epsilon)))


def rounded(function):
    """Steps are computed in f64 and rounded."""
    return lambda x: function(x.astype(np.float64)).astype(F)


class Model:
    def __init__(self):
        self.nodes, self.inputs, self.outputs, self.weights, self.values, self.count = [], [], [], [], {}, 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def input(self, value):
        name = self.name()
        self.inputs.append(onnx_file.info(name, onnx_file.FLOAT, value.shape))
        self.values[f"in_{name}"] = value
        return name

    def weight(self, value, kind=onnx_file.FLOAT):
        name = self.name()
        self.weights.append(onnx_file.tensor(name, kind, list(value.shape), raw=value.tobytes()))
        return name

    def node(self, op, given, **attributes):
        name = self.name()
        self.nodes.append(onnx_file.node(op, given, name, **attributes))
        return name

    def output(self, name, value):
        self.nodes.append(onnx_file.node("Identity", name, f"y{name}"))
        self.outputs.append(onnx_file.info(f"y{name}", onnx_file.FLOAT, value.shape))
        self.values[f"out_y{name}"] = value


JOINS = {"Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Div": lambda a, b: a / b}
STEPS = {"Relu": lambda x: np.maximum(x, F(0)), "Sigmoid": rounded(lambda x: 1 / (1 + np.exp(-x))), "Tanh": rounded(np.tanh)}


def add_view(model, random, name, x):
    """Some dims turned round, or a part of each, which begins somewhere."""
    kind = random.choice(("none", "transpose", "slice", "both"))
    if kind in ("slice", "both"):
        starts = [random.randint(0, min(2, size - 1)) for size in x.shape]
        ends = [random.randint(start + 1, size) for start, size in zip(starts, x.shape)]
        given = [name] + [model.weight(np.array(value, np.int64), onnx_file.INT64) for value in (starts, ends)]
        name = model.node("Slice", " ".join(given))
        x = x[tuple(slice(start, end) for start, end in zip(starts, ends))]
    if kind in ("transpose", "both"):
        order = random.sample(range(x.ndim), x.ndim)
        name, x = model.node("Transpose", name, perm=order), x.transpose(order)
    return name, np.ascontiguousarray(x)


def add_chain(model, number):
    random, rng = Random(number), np.random.default_rng(number)
    draw = lambda shape: (rng.standard_normal(shape) * 3).astype(F)
    x = draw([random.randint(1, most) for most in ([70, 200], [5, 40, 60], [3, 4, 20, 90], [300])[number % 4]])
    name, x = add_view(model, random, model.input(x), x)
    said, earlier = [f"{x.shape}"], []
    for _ in range(random.randint(1, 5)):
        kind = random.choice(("tensor", "row", "row", "part", "number", "step", "square", "earlier", "softmax", "norm"))
        said.append(kind)
        earlier.append((name, x))
        if kind == "earlier":  # the same value or one before
            other, value = random.choice(earlier)
            name, x = model.node("Add", random.choice((f"{name} {other}", f"{other} {name}"))), x + value
        elif kind == "softmax":
            name, x = model.node("Softmax", name, axis=-1), softmax(x)
        elif kind == "norm":
            scale, bias = draw(x.shape[-1:]), draw(x.shape[-1:])
            name = model.node("LayerNormalization", f"{name} {model.weight(scale)} {model.weight(bias)}", axis=-1, epsilon=1e-5)
            x = layer_norm(x) * scale + bias
        elif kind == "square":
            name, x = model.node("Mul", f"{name} {name}"), x * x
        elif kind == "step":
            op = random.choice(list(STEPS))
            name, x = model.node(op, name), STEPS[op](x)
        else:
            op = random.choice(list(JOINS))
            shape = {"tensor": x.shape, "row": x.shape[-1:], "part": [random.choice((1, size)) for size in x.shape[:-1]] + [x.shape[-1]], "number": ()}[kind]
            other = draw(shape)
            other = np.where(np.abs(other) < 0.1, F(0.5), other).astype(F)
            named = model.weight(other) if kind == "number" or random.random() < 0.5 else model.input(other)
            first = op in ("Add", "Mul") or kind == "number" or random.random() < 0.5
            name = model.node(op, f"{name} {named}" if first else f"{named} {name}")
            with np.errstate(all="ignore"):
                x = (JOINS[op](x, other) if first else JOINS[op](other, x)).astype(F)
    model.output(name, x)
    return f"{number}: " + " ".join(said)


def add_twice(model, number):
    """One tensor that two walks read."""
    x = np.random.default_rng(number).standard_normal((2, 9, 70)).astype(F)
    name = model.input(x)
    parts = []
    for first in (0, 35):
        given = [model.weight(np.array([value], np.int64), onnx_file.INT64) for value in (first, first + 35, 2)]
        parts.append(model.node("Slice", " ".join([name, *given])))
    model.output(model.node("Tanh", model.node("Mul", " ".join(parts))), rounded(np.tanh)(x[..., :35] * x[..., 35:]))
    return f"{number}: one tensor read twice"


def check_long(folder):
    """Rows longer than a core's memory: cut where numbers are computed one by one, on the host where they are not, with the reason."""
    model, rng = Model(), np.random.default_rng(1)
    x, y = (rng.standard_normal((3, 20001)).astype(F) for _ in range(2))
    model.output(model.node("Tanh", model.node("Add", f"{model.input(x)} {model.input(y)}")), rounded(np.tanh)(x + y))
    run_model(folder, "cut", model, "aie")
    model = Model()
    model.output(model.node("Softmax", model.input(x), axis=-1), x)
    path = folder / "long.onnx"
    path.write_bytes(onnx_file.model(model.nodes, model.inputs, model.outputs, weights=model.weights))
    said = run(BIN / "dmxc", path, "-t", "aie", "-o", folder / "long.bundle", "--placement-report", "-")
    expect("a row of 20001 numbers and what comes of it, each twice, are more than a core's memory of 65536 bytes" in said, said)


def run_model(folder, name, model, level):
    path, data, bundle = folder / f"{name}.onnx", folder / name, folder / f"{name}.bundle"
    path.write_bytes(onnx_file.model(model.nodes, model.inputs, model.outputs, weights=model.weights))
    data.mkdir(exist_ok=True)
    for key, value in model.values.items():
        np.save(data / f"{key}.npy", value)
    placed = run(BIN / "dmxc", path, "-t", level, "-o", bundle)
    expect(re.search(r"placement: aie \d+ of", placed) and "cpu" not in placed, f"{name}: not all on the array:\n{placed}")
    out = run(BIN / "dmx-run", bundle, "--inputs", data, "--expect", data, "--rtol", "0", "--atol", "0")
    expect("PASS" in out, f"{name}, {level}: {out}")


def check(folder, numbers):
    model = Model()
    said = [add_chain(model, number) for number in numbers] + [add_twice(model, numbers[0])]
    before = len(failures)
    for level in ("aie", "aie:cols=2+rows=3")[:2 if sampling.LONG else 1]:
        run_model(folder, f"r{numbers[0]}", model, level)
    if len(failures) > before:
        print(said)


with tempfile.TemporaryDirectory(prefix="dmxc-aie-") as scratch:
    numbers = list(range(COUNT))
    for some in sampling.sample([numbers[at:at + TOGETHER] for at in range(0, COUNT, TOGETHER)], 4):
        check(pathlib.Path(scratch), some)
    check_long(pathlib.Path(scratch))
sys.exit(1 if failures else 0)
