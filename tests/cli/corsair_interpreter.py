"""A DMIR function in the arithmetic of the Corsair device, under the plan of the code that was compiled: the bits that the
simulated card must give. Written from schemas/corsair/ISA.md ("I" below) and NUMERICS.md ("N"); needs numpy.

What decides the bits is read, not computed again: the ops from `dmxc --emit partition`, the sums of products (num_imc, ppr_mode,
chunks, steps, parts of quads) from the disassembly of `dmx-inspect --what kernels`, where nodes are known by their names."""
import collections
import itertools
import json
import math
import pathlib
import random
import re

import numpy as np

BLOCK = 64


class Unknown(Exception):
    """Text that this interpreter does not understand, or a plan that does not compute the product."""


class OnHost(Exception):
    """A part of the graph is computed by the CPU, whose bits are not those of this arithmetic."""


# --- numbers: N sections 2, 5 and 6 -----------------------------------------------------------------------------------------
# Values between ops are f16 numbers held in f32 arrays. Operations are evaluated in f64, where sums and products of two f32
# are exact or round on to f32 and f16 without harm.

def f32(x):
    """f64 to f32: what is below the smallest normal number is zero, before rounding; one zero."""
    with np.errstate(over="ignore"):
        return np.where(np.abs(x) < 2.0 ** -126, 0.0, x).astype(np.float32)


def f16(x):
    """f64 to f16: likewise, and saturating."""
    rounded = np.clip(np.where(np.abs(x) < 2.0 ** -14, 0.0, x), -65504.0, 65504.0).astype(np.float16).astype(np.float32)
    return np.where(np.isnan(rounded), np.float32(np.nan), rounded)  # one NaN


def bfp32(x):
    """f32 to BFP32_1: 22 bits of fraction, saturating, NaN for infinities."""
    bits = f32(wide(x)).view(np.uint32)
    rounded = ((bits + (bits >> 1 & 1)) & np.uint32(0xfffffffe)).view(np.float32)
    top = np.float32((2 - 2.0 ** -22) * 2.0 ** 127)
    return np.where(np.isfinite(x), np.clip(rounded, -top, top), np.float32(np.nan))


def wide(x):
    return x.astype(np.float64)


def add(a, b):
    return f32(wide(a) + b)


class Blocks:
    """BFP16_64 along the last dim, padded with zeros to whole blocks: mantissas [.., block, 64] and steps [.., block]."""

    def __init__(self, values):
        missing = -values.shape[-1] % BLOCK
        padded = np.pad(wide(values), [(0, 0)] * (values.ndim - 1) + [(0, missing)])
        padded = padded.reshape(*values.shape[:-1], padded.shape[-1] // BLOCK, BLOCK)
        largest = np.abs(padded).max(-1)
        empty, bad = largest < 2.0 ** -126, ~np.isfinite(largest)
        # frexp's fraction is in [0.5, 1): floor(log2) is one less than its exponent.
        steps = np.ldexp(1.0, np.frexp(np.where(empty | bad, 1.0, largest))[1] - 1 - 6)
        mantissas = np.clip(np.rint(padded / steps[..., None]), -127, 127)
        self.mantissas = np.where((empty | bad)[..., None], 0, mantissas).astype(np.float32)
        self.steps = np.where(bad, np.nan, steps)


# --- products: N sections 4 and 5 -------------------------------------------------------------------------------------------
# runs: the chunks of 64 along K that one instruction adds up, (first chunk, steps); the first overwrites OB, the others add.
# parts: quads that have a part of K each; their sums, in f32, are added in the quads' order. biased: OB holds a vector before.
Plan = collections.namedtuple("Plan", "imc ppr chunks runs parts biased")


def reduced(a, b, first, plan, chunks):
    """The partial products of num_imc cores, through the tree. a: [.., M, block], b: [.., N, block]."""
    level = []
    for chunk in chunks:
        at = first + chunk
        # Sums of 64 products of 8-bit numbers are exact in f32, in any order.
        exact = np.matmul(a.mantissas[..., at, :], np.swapaxes(b.mantissas[..., at, :], -1, -2))
        level.append(f32(wide(exact) * a.steps[..., :, None, at] * b.steps[..., None, :, at]))
    level += [np.float32(0)] * (2 ** plan.ppr - len(level))
    while len(level) > 1:
        level = [add(x, y) if np.ndim(y) else x for x, y in zip(level[::2], level[1::2])]
    return bfp32(level[0])


def product(a, b, plan, bias=None):
    """bias: BFP32_1 for each column."""
    total = None
    for part in range(plan.parts):
        ob = bias
        for first, steps in plan.runs:
            for step in range(steps):
                chunk = first + step * plan.imc
                new = reduced(a, b, part * plan.chunks, plan, range(chunk, min(chunk + plan.imc, plan.chunks)))
                ob = new if ob is None else bfp32(add(ob, new))
        total = ob if total is None else add(total, ob)
    return f16(total)


def checked(plan, chunks):
    """The plan, if it adds every chunk once, in order."""
    done = [chunk for first, steps in plan.runs for chunk in range(first, min(first + steps * plan.imc, plan.chunks))]
    good = done == list(range(plan.chunks)) and plan.parts * plan.chunks == chunks and plan.imc <= 2 ** plan.ppr
    if not good or (plan.biased and plan.parts > 1):
        raise Unknown(f"{plan} does not add {chunks} chunks")
    return plan


def plans_of(disassembly):
    """{node: Plan} of a kernel's MATMUL and CONV instructions; of scores in bands, whose two products are in the softmax's tasks,
    {(node, chunks): Plan}."""
    runs, plans, parts = collections.defaultdict(list), {}, collections.Counter()
    label, slots = None, {}
    for line in disassembly.splitlines():
        opcode = line.split()[0] if line.strip() else ""
        fields = dict(re.findall(r"(\w+)=(\S+)", line))
        slot = fields.get("slot", "0")
        number = lambda name, default: int(fields.get(name, default), 0)
        if opcode == ".stream":
            label, slots = None, {}
        elif opcode == "MARK":
            label = re.search(r'label="(.*)"', line)[1]
        elif opcode.startswith("CONFIG_"):
            slots[opcode, slot] = fields
        elif opcode == "MOVE_OB2GM" and slots["CONFIG_GM", slot].get("to") == "f32":
            parts[label] = max(parts[label], 1)
        elif opcode == "EXEC_SIMD" and fields.get("fn") == "add" and slots["CONFIG_SIMD", slot].get("ak") == "f32":
            parts[label] += 1
        elif opcode in ("MATMUL", "CONV"):
            config = slots["CONFIG_AC", slot]
            steps = number("steps", "1")
            if {"kind", "wkind"} & config.keys() or (steps > 1 and config.get("step_acc") != "1"):
                raise Unknown(line)
            cores = (number("imc", "1"), number("ppr", "0"), int(config["k_chunks"]))
            first, adds, place = number("k0", "0"), number("acc", "0") != 0, number("ob", "0")
            of = runs[label, cores]
            if first == 0:
                of.append([place, adds])
            if of[-1][0] != place or (first and not adds):
                raise Unknown(f"node {label} does not add to the sums before")
            of[-1].append((first, steps))
    for (label, cores), found in runs.items():
        orders = {tuple(run[1:]) for run in found}
        if len(orders) != 1:
            raise Unknown(f"node {label} adds up in more than one order")
        biased, *order = orders.pop()
        plan = Plan(*cores, tuple(order), max(parts[label], 1), biased)
        if plans.setdefault(label, plan) is not plan and plans[label] != plan:
            plans[label, plan.chunks] = plan
            plans[label, plans[label].chunks] = plans[label]
    return plans


def band_plan(plans, names, lines, chunks):
    """Of a product around a softmax that is computed band by band, the first in these lines: that of so many chunks in its tasks."""
    for line in lines:
        match = OP.match(line)
        if match and match[2] == "softmax" and "lldmir.bands" in line:
            return plans.get((names.get(match.groups()[-1]), chunks))
    return None


def functions_of(disassembly):
    """{node: names of the vector device's functions that compute it}."""
    functions, label = collections.defaultdict(set), None
    for line in disassembly.splitlines():
        if match := re.match(r'\s*MARK .*label="(.*)"', line):
            label = match[1]
        elif match := re.match(r"\s*EXEC_SIMD .*\bfn=(\w+)", line):
            functions[label].add(match[1])
    return functions


# --- ops of the vector device: I section 7 ----------------------------------------------------------------------------------

def lanes(rows, neutral, combine):
    """Lane l takes elements l, l + 64, ... in order; then the upper half of the lanes is combined with the lower."""
    missing = -rows.shape[-1] % 64
    rows = np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, missing)], constant_values=neutral)
    rows = rows.reshape(*rows.shape[:-1], rows.shape[-1] // 64, 64)
    result = rows[..., 0, :]
    for i in range(1, rows.shape[-2]):
        result = combine(result, rows[..., i, :])
    while result.shape[-1] > 1:
        half = result.shape[-1] // 2
        result = combine(result[..., :half], result[..., half:])
    return result


def row_sum(rows):
    return lanes(rows, 0, add)


def row_mean(rows):
    return f32(wide(row_sum(rows)) / rows.shape[-1])


def softmax(rows):
    counts = ~(rows <= -65504.0)
    peak = np.where(counts, rows, -np.inf).max(-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        weights = np.where(counts, f32(np.exp(wide(f32(wide(rows) - peak)))), np.float32(0))
        return f16(np.where(counts, f32(wide(weights) / row_sum(weights)), 0.0))


def standardize(rows, epsilon):
    rows = f32(wide(rows) - row_mean(rows))
    variance = row_mean(f32(wide(rows) * rows))
    scale = f32(1 / np.sqrt(wide(add(variance, np.float32(epsilon)))))
    return f16(f32(wide(rows) * scale))


def root_mean_square(rows, epsilon):
    scale = f32(1 / np.sqrt(wide(add(row_mean(f32(wide(rows) * rows)), np.float32(epsilon)))))
    return f16(f32(wide(rows) * scale))


def along(axes, function, values):
    if len(axes) != 1:  # the order of a row's elements would be that of memory
        raise Unknown(f"rows over {len(axes)} dims")
    if not values.shape[axes[0]]:
        raise Unknown("rows of nothing")
    return np.moveaxis(function(np.moveaxis(values, axes[0], -1)), -1, axes[0])


def erf(x):
    values, places = np.unique(x, return_inverse=True)
    return np.array([math.erf(value) for value in values])[places].reshape(x.shape)


def sigmoid(x):
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def taps(image, attributes, kernel, outside):
    """[.., oh, ow] of an image [.., h, w] for each place of the kernel, in order."""
    low, high = attributes["low"], attributes["high"]
    (sh, sw), (dh, dw) = attributes["strides"], attributes["dilations"]
    image = np.pad(image, [(0, 0)] * (image.ndim - 2) + [(low[0], high[0]), (low[1], high[1])], constant_values=outside)
    oh, ow = ((size - d * (k - 1) - 1) // s + 1 for size, k, s, d in zip(image.shape[-2:], kernel, (sh, sw), (dh, dw)))
    for y in range(kernel[0]):
        for x in range(kernel[1]):
            yield image[..., y * dh:y * dh + (oh - 1) * sh + 1:sh, x * dw:x * dw + (ow - 1) * sw + 1:sw]


def pool(kind, image, attributes):
    if attributes.get("ceilExtra", [0, 0]) != [0, 0]:
        raise Unknown("a window beyond the padding")
    if kind == "max":
        return np.maximum.reduce(list(taps(image, attributes, attributes["window"], -np.inf)))
    total, count = np.float32(0), 0
    inside = np.ones_like(image)
    for value, one in zip(taps(image, attributes, attributes["window"], 0), taps(inside, attributes, attributes["window"], 0)):
        total, count = add(total, value), count + one
    return f16(f32(wide(total) / count))


def by_windows(image, weights, attributes, plan, bias):
    """A product whose rows are the windows of output pixels, [kh, kw, c] of numbers in blocks of 64."""
    places = np.stack(list(taps(image, attributes, weights.shape[2:], 0)))  # [place, n, c, oh, ow]
    count, n, c, oh, ow = places.shape
    rows = Blocks(places.transpose(1, 3, 4, 0, 2).reshape(n, oh * ow, count * c))
    columns = Blocks(weights.transpose(0, 2, 3, 1).reshape(weights.shape[0], -1))
    result = product(rows, columns, checked(plan, rows.steps.shape[-1]), bias)
    return result.transpose(0, 2, 1).reshape(n, weights.shape[0], oh, ow)


def convolution(image, weights, attributes, plan, bias):
    """A product whose rows are output pixels: K goes over the kernel's places, then over blocks of 64 channels; where the plan has as
    many chunks as whole windows, over those."""
    if weights.ndim != 4:
        raise Unknown("a convolution of other than two axes")
    if plan.chunks == -(-weights[0].size // BLOCK):
        return by_windows(image, weights, attributes, plan, bias)
    columns = Blocks(weights.transpose(0, 2, 3, 1))  # [cout, kh, kw, block]
    pixels = Blocks(image.transpose(0, 2, 3, 1))  # [n, h, w, block]
    kernel, n, cout, count = weights.shape[2:], image.shape[0], weights.shape[0], pixels.steps.shape[-1]
    columns.mantissas = columns.mantissas.reshape(cout, -1, BLOCK)
    columns.steps = columns.steps.reshape(cout, -1)
    # Outside the image mantissas are zero; steps are finite, so that the products are zero too.
    mantissas = np.stack(list(taps(pixels.mantissas.transpose(0, 3, 4, 1, 2), attributes, kernel, 0)))  # [place, n, block, 64, oh, ow]
    steps = np.stack(list(taps(pixels.steps.transpose(0, 3, 1, 2), attributes, kernel, 1)))
    places, (oh, ow) = mantissas.shape[0], mantissas.shape[-2:]
    pixels.mantissas = mantissas.transpose(1, 4, 5, 0, 2, 3).reshape(n, oh * ow, places * count, BLOCK)
    pixels.steps = steps.transpose(1, 3, 4, 0, 2).reshape(n, oh * ow, places * count)
    result = product(pixels, columns, checked(plan, places * count), bias)
    return result.transpose(0, 2, 1).reshape(n, cout, oh, ow)


def depthwise(image, weights, attributes):
    """By the vector device: f32 sums over the places of the kernel, in order, of each channel."""
    total = np.float32(0)
    for value, weight in zip(taps(image, attributes, weights.shape[2:], 0), wide(weights).reshape(len(weights), -1).T):
        total = add(total, f32(wide(value) * weight[:, None, None]))
    return f16(total)


def gated(gate):
    """x times a gate between 0 and 1, which is nothing where the gate is closed, also of an infinite x."""
    return lambda x: np.where(np.isinf(x), np.maximum(x, 0), x * gate(np.where(np.isinf(x), 0, x)))


ELEMENTWISE = {
    "silu": gated(sigmoid), "gelu": gated(lambda x: 0.5 * (1 + erf(x / math.sqrt(2)))),
    "gelu_tanh": gated(lambda x: sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    "hard_swish": gated(lambda x: np.clip(x / 6 + 0.5, 0, 1)), "softplus": lambda x: np.logaddexp(0, x), "rsqrt": lambda x: 1 / np.sqrt(x),
    "relu": lambda x: np.where(x < 0, 0, x), "abs": np.abs, "tanh": np.tanh, "sigmoid": sigmoid, "erf": erf,
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def compute(name, kind, operands, attributes, shape, plan, bias):
    """One op; `kind` is the word after its name. A product has a plan, and perhaps a vector that is added to it."""
    if name in ELEMENTWISE:
        return f16(ELEMENTWISE[name](*map(wide, operands)))
    if name == "matmul":
        a, b = Blocks(operands[0]), Blocks(np.swapaxes(operands[1], -1, -2))
        return product(a, b, checked(plan, a.steps.shape[-1]), bias)
    x = operands[0]
    if name == "conv":
        one = attributes.get("groups", 1) == 1
        return convolution(x, operands[1], attributes, plan, bias) if one else depthwise(x, operands[1], attributes)
    if name == "pool":
        return pool(kind, x, attributes)
    if name == "softmax" and not kind:
        return along([attributes["axis"]], softmax, x)
    if name == "normalize" and kind == "standard":
        return along(attributes["axes"], lambda rows: standardize(rows, attributes["epsilon"]), x)
    if name == "normalize" and kind == "rms":
        return along(attributes["axes"], lambda rows: root_mean_square(rows, attributes["epsilon"]), x)
    if name == "reduce" and kind == "mean":
        return along(attributes["axes"], lambda rows: f16(row_mean(rows)), x).reshape(shape)
    if name == "reduce" and kind == "max":
        if not x.size:
            raise Unknown("rows of nothing")
        return x.max(tuple(attributes["axes"]), keepdims=True).reshape(shape)
    if name == "transpose":
        return x.transpose(attributes["permutation"])
    if name == "reshape":
        return x.reshape(shape)
    if name == "broadcast":
        return np.broadcast_to(x, shape)
    if name == "concat":
        return np.concatenate(operands, attributes["axis"])
    if name == "slice":
        return x[np.ix_(*(start + step * np.arange(size) for start, size, step in
                          zip(attributes["starts"], attributes["sizes"], attributes["steps"])))]
    raise Unknown(f"dmir.{name} {kind}")


# --- the text of --emit partition -------------------------------------------------------------------------------------------

def resources_of(text):
    """{name: bytes} of the blobs behind the module; the first four bytes are an alignment."""
    return {name: bytes.fromhex(digits[8:]) for name, digits in re.findall(r'^ *(\w+): "0x([0-9A-Fa-f]*)"', text, re.M)}


def constant_of(kind, text, shape, resources, folder):
    """`folder`: where the model is that `dmir.file` names."""
    if kind == "dense_resource":
        return np.frombuffer(resources[text], "<f4").reshape(shape)
    if kind == "#dmir.file":
        name, offset, size = re.match(r'"(.*)", (\d+), (\d+)$', text).groups()
        with open(folder / name, "rb") as file:
            file.seek(int(offset))
            return np.frombuffer(file.read(int(size)), "<f4").reshape(shape)
    if text.startswith('"0x'):
        return np.resize(np.frombuffer(bytes.fromhex(text[3:-1]), "<f4"), shape)  # resize: one number may stand for all
    return np.broadcast_to(np.array(json.loads(text or "[]"), np.float32).reshape(() if text and text[0] != "[" else shape), shape)


def shape_of(tensor):
    return tuple(int(dim) for dim in re.findall(r"(\d+)x", tensor))


def attributes_of(text):
    found = {name: [int(value) for value in values.split(",")] for name, values in re.findall(r"(\w+) = array<i64: ([^>]*)>", text)}
    found.update((name, int(value)) for name, value in re.findall(r"(\w+) = (-?\d+) : i64", text))
    found.update((name, float(value)) for name, value in re.findall(r"(\w+) = (\S+) : f64", text))
    return found


def names_of(text):
    """{location alias: name}: a node's name is its location's, or that of the first of several which has one."""
    names = dict(re.findall(r'^(#loc\d*) = loc\("([^"]*)"\)$', text, re.M))
    for alias, members in re.findall(r"^(#loc\d*) = loc\(fused\[(.*)\]\)$", text, re.M):
        names.setdefault(alias, next((names[member] for member in members.split(", ") if member in names), None))
    return names


OP = re.compile(r"\s*(%\w+) = dmir\.(\w+)\s+([^{%]*?)\s*(%[^{]*?)\s*(\{.*\})? : \(.*\) -> (tensor\S*) loc\((.*)\)$")
CONSTANT = re.compile(r"\s*(%\w+) = dmir\.constant (dense|dense_resource|#dmir\.file)<(.*)> : (tensor\S*) loc\(.*\)$")
REGION = re.compile(r'\s*(%\w+)(?::\d+)? = dmir\.region "corsair" \((.*?)\) -> \(.*\) attributes \{(.*)\} \{$')


def form_of(constant, form):
    """A constant as the device has it: packed by the compiler, from f32, or else f16."""
    if form == "bfp16c-tiles":
        return constant  # quantised where it is multiplied
    return bfp32(constant).reshape(-1) if form == "bfp32-bias" else f16(wide(constant))


def added_to(lines):
    """{value: the other operand of an addition that reads it}, in a region that begins there: other regions reuse its names."""
    text = "\n".join(itertools.takewhile(lambda line: not line.lstrip().startswith("dmir.yield"), lines))
    pairs = re.findall(r"= dmir\.add (%\w+), (%\w+)", text)
    return dict(pairs) | {b: a for a, b in pairs}


def crosses_as_tiles(name, value, lines, forms, arguments):
    """A matrix that the host brings and one product alone reads, by packed weights, is quantised from the host's numbers."""
    body = "\n".join(itertools.takewhile(lambda line: not line.lstrip().startswith("dmir.yield"), lines[1:]))
    if value.ndim != 2 or len(re.findall(rf"{name}\b", body)) != 1:
        return False
    product = re.search(rf"= dmir\.matmul {name}, (%\w+) ", body)
    inner = [a for a, _ in re.findall(r"(%\w+)(?: loc\([^)]*\))? = (%\w+(?:#\d+)?)", arguments)]
    return bool(product) and product[1] in inner and forms.get(str(inner.index(product[1]))) == "bfp16c-tiles"


def multiplied_and_added(name, node, sources, values, products, numbers, functions):
    """A sum whose product is not rounded: by the code a node's function is fma or affine, or it is part of another, and the product has none.
    The numbers of affine are the model's, in f32."""
    inner = [i for i in (0, 1) if sources[i] in products and "mul" not in functions[products[sources[i]][0]]]
    if len(inner) != 1:
        raise Unknown(f"the product that node {node} adds to")
    factors, rest = products[sources[inner[0]]][1], sources[1 - inner[0]]
    if functions[node] != {"fma"}:
        values = {**values, **numbers}
    product, other = wide(values[factors[0]]) * values[factors[1]], wide(values[rest])
    return f16(product + other if name == "add" else product - other if inner[0] == 0 else other - product)


def interpret(partition, disassembly, inputs, change=lambda plan: plan, folder=pathlib.Path()):
    """{name: result} of the function, for f32 inputs by name. `change`: another plan for each product; `folder`: the model's."""
    plans, names, resources, functions = plans_of(disassembly), names_of(partition), resources_of(partition), functions_of(disassembly)
    values, biases, added, results, region = {}, set(), {}, None, None
    products, numbers = {}, {}  # of values: the node and factors of a product; a constant before it is f16
    lines = partition.splitlines()
    for at, line in enumerate(lines):
        words = line.split()
        if line.startswith("#") or not words or words[0] in ("module", "}"):
            continue
        operands = re.findall(r"%\w+(?:#\d+)?", line.split(" : ")[0])
        if words[0] == "func.func":
            arguments, results = (re.findall(r'dmir\.name = "(\w+)"', part) for part in line.split(" -> "))
            values.update((f"%arg{i}", inputs[name]) for i, name in enumerate(arguments))
        elif match := CONSTANT.match(line):
            number = numbers[match[1]] = constant_of(match[2], match[3], shape_of(match[4]), resources, folder)
            values[match[1]] = number if region is None else f16(wide(number))
        elif match := REGION.match(line):
            region, forms = match[1], dict(re.findall(r'"(\d+)" = \{[^}]*form = "([^"]*)"', match[3]))
            biases, added = set(), added_to(lines[at:])
            products, numbers = {}, {}
            for i, (inner, outer) in enumerate(re.findall(r"(%\w+)(?: loc\([^)]*\))? = (%\w+(?:#\d+)?)", match[2])):
                tiles = str(i) not in forms and crosses_as_tiles(inner, values[outer], lines[at:], forms, match[2])
                values[inner] = values[outer] if tiles else form_of(values[outer], forms.get(str(i)))
                biases |= {inner} if forms.get(str(i)) == "bfp32-bias" else set()
        elif "= dmir.region " in line:
            raise OnHost
        elif words[0] == "dmir.yield":
            yielded = [values[name] for name in operands]
            values.update((f"{region}#{i}", value) for i, value in enumerate(yielded))
            values[region], region = yielded[0], None
        elif words[0] == "return":
            return dict(zip(results, (values[name] for name in operands)))
        elif match := OP.match(line):
            result, name, kind, sources, attributes, tensor, location = match.groups()
            sources, plan, bias = sources.split(", "), None, None
            if region is None and name != "reshape":
                raise OnHost
            if name == "matmul" or (name == "conv" and "groups = " not in (attributes or "")):
                plan = plans.pop(names.get(location), None)
                if plan is None and name == "matmul":
                    behind = [other for other in lines[:at] if re.match(rf"\s*{re.escape(sources[0])}\b.*= dmir\.softmax", other)]
                    plan = band_plan(plans, names, behind or lines[at:], -(-values[sources[0]].shape[-1] // BLOCK))
                if plan is None or plan.biased != (added.get(result) in biases):
                    raise Unknown(f"the plan {plan} of node {names.get(location)}")
                plan, bias = change(plan), values[added[result]] if plan.biased else None
            if name == "add" and biases & set(sources):  # in the product already
                values[result] = next(values[source] for source in sources if source not in biases)
                continue
            if {"rope", "rope_interleaved"} & functions[names.get(location)]:
                raise Unknown("a rotation")
            if name == "mul":
                products[result] = names.get(location), sources
            # A node's own code may stand with what it is fused with; a sum of no products is a sum.
            if name in ("add", "sub") and not (functions[names.get(location)] & {name}) and products.keys() & set(sources):
                values[result] = multiplied_and_added(name, names.get(location), sources, values, products, numbers, functions)
                continue
            values[result] = compute(name, kind, [values[source] for source in sources], attributes_of(attributes or ""),
                                     shape_of(tensor), plan, bias)
        else:
            raise Unknown(line[:200])
    raise Unknown("no return")


# --- bfp_ref.py -------------------------------------------------------------------------------------------------------------

def differs_from(ref, seed=1):
    """Where the numbers above differ from bfp_ref.py's on samples; None where they do not."""
    r = random.Random(seed)
    samples = [r.choice([-1, 1]) * r.choice([r.random() + 1, (2048 + r.randrange(2048)) / 2048.0]) * 2.0 ** r.randint(-30, 30) for _ in range(2000)]
    samples += [sign * x for sign in (-1, 1) for x in (0.0, 2.0 ** -14, 2.0 ** -14 - 2.0 ** -26, 65519.0, 65520.0, 1e30, 2.0 ** -126, 1e-38)]
    for ours, theirs, dtype in ((f16, ref.f16, np.float64), (f32, ref.f32, np.float64), (bfp32, ref.bfp32, np.float32)):
        numbers = np.array(samples, dtype)
        for x, y in zip(numbers, ours(numbers)):
            if float(theirs(ref.Fr(float(x)))) != y:
                return f"{ours.__name__} of {x}"
    # Rows whose magnitudes differ, a part of a block, 5 chunks by 3 cores in two instructions on two quads, or behind a bias.
    a, b = (np.array([[r.gauss(0, 1) * 2.0 ** r.randint(-8, 8) for _ in range(2 * 5 * BLOCK - 20)] for _ in range(4)], np.float32) for _ in "ab")
    bias = bfp32(np.array([r.gauss(0, 100) for _ in range(4)], np.float32))
    quads = product(Blocks(a), Blocks(b), checked(Plan(3, 2, 5, ((0, 1), (3, 1)), 2, False), 10))
    biased = product(Blocks(a), Blocks(b), checked(Plan(3, 2, 10, ((0, 1), (3, 3)), 1, True), 10), bias)
    blocks = [[[ref.quant_block([float(x) for x in row[at:at + BLOCK]]) for at in range(0, len(row), BLOCK)] for row in m] for m in (a, b)]
    for i, row in enumerate(blocks[0]):
        for j, column in enumerate(blocks[1]):
            dots = [ref.dimc_dot(e, m, f, n[:len(m)]) for (e, m), (f, n) in zip(row, column)]
            sums = [ref.ob_acc(ref.ppr(dots[at:at + 3], 2), ref.ppr(dots[at + 3:at + 5], 2)) for at in (0, 5)]
            ob = ref.Fr(float(bias[j]))
            for at in range(0, 10, 3):
                ob = ref.ob_acc(ob, ref.ppr(dots[at:at + 3], 2))
            if (quads[i, j], biased[i, j]) != (float(ref.f16(ref.f32(sums[0] + sums[1]))), float(ref.f16(ob))):
                return f"the product of row {i} and column {j}"
    return None
