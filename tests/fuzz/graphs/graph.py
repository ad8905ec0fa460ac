"""Random graphs as they grow: values with their types and the bounds that make comparisons sound, nodes, bodies.

Every value carries what its elements can be: a range, a bound of the error that its computation may have, and a grid whose
multiples its elements are exactly, as long as there is one. Ops whose results jump (rounding, comparisons, sorting) take values
on a grid only; then every right computation gives the same bits. What would leave the range of its type, or would have too
large an error, is not made (Skip)."""
import copy
import math

import numpy as np

import onnx_file as wire

CODES = {"f32": 1, "u8": 2, "i8": 3, "u16": 4, "i16": 5, "i32": 6, "i64": 7, "bool": 9, "f16": 10, "f64": 11, "u32": 12,
         "u64": 13, "bf16": 16, "f8e4m3fn": 17, "f8e4m3fnuz": 18, "f8e5m2": 19, "f8e5m2fnuz": 20, "u4": 21, "i4": 22, "f4e2m1": 23}
NUMPY = {"f32": np.float32, "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "i32": np.int32,
         "i64": np.int64, "bool": np.bool_, "f16": np.float16, "f64": np.float64, "u32": np.uint32, "u64": np.uint64}
FLOATS = ("f32", "f16", "f64", "bf16")
WIDE = ("f32", "f64")
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTS
ANY = NUMBERS + ("bool",)
MANTISSA = {"f32": 24, "f64": 53, "f16": 11, "bf16": 8, "f8e4m3fn": 4, "f8e5m2": 3}
LIMIT = {"f32": 1e7, "f64": 1e9, "f16": 8000.0, "bf16": 1e7, "f8e4m3fn": 400.0, "f8e5m2": 5e4}
MOST_ELEMENTS = 40000


class Skip(Exception):
    """The op cannot be made here."""


def bounds(dtype):
    if dtype == "bool":
        return 0, 1
    if dtype in ("u4", "i4"):
        return (0, 15) if dtype == "u4" else (-8, 7)
    if dtype in LIMIT:
        return -LIMIT[dtype], LIMIT[dtype]
    info = np.iinfo(NUMPY[dtype])
    return int(info.min), int(info.max)


def is_float(dtype):
    return dtype in MANTISSA


class Value:
    """A tensor. `leaf`: no op may read it. `hazy`: numbers of fewer bits may give a result that is far away."""

    def __init__(self, name, dtype, dims, lo, hi, err=0.0, step=None, leaf=False, hazy=False):
        self.name, self.dtype, self.dims, self.lo, self.hi = name, dtype, tuple(dims), lo, hi
        self.err, self.step, self.leaf, self.hazy, self.uses = err, step, leaf, hazy, 0

    rank = property(lambda self: len(self.dims))
    top = property(lambda self: max(abs(self.lo), abs(self.hi)))
    exact = property(lambda self: self.err == 0)
    static = property(lambda self: all(d.static for d in self.dims))
    known = property(lambda self: all(d.exact for d in self.dims))

    def shape(self, binding):
        return tuple(d.values[binding] for d in self.dims)


class Node:
    def __init__(self, op, inputs, outputs, domain, attributes, name):
        self.op, self.inputs, self.outputs, self.domain, self.attributes, self.name = op, inputs, outputs, domain, attributes, name
        self.rank, self.extents = 0, set()  # of its first operand

    kind = property(lambda self: (self.domain + "." if self.domain else "") + self.op)

    def bodies(self):
        return [a for a in self.attributes.values() if isinstance(a, Body)]

    def reads(self):
        """All names that it or its bodies read."""
        names = set(n for n in self.inputs if n)
        for body in self.bodies():
            names |= body.captured()
        return names


class Body:
    """A graph that is an attribute; inputs are Values, outputs names."""

    def __init__(self, inputs, nodes=(), outputs=()):
        self.inputs, self.nodes, self.outputs = list(inputs), list(nodes), list(outputs)

    def captured(self):
        made = {v.name for v in self.inputs} | {o for n in self.nodes for o in n.outputs}
        return (set(n for node in self.nodes for n in node.reads()) | set(self.outputs)) - made


class Graph:
    """A finished or growing graph. `inputs` are Values, `weights` arrays by name; `values` all tensors by name."""

    def __init__(self, opset, bindings):
        self.opset, self.bindings = opset, bindings
        self.inputs, self.weights, self.nodes, self.outputs, self.values = [], {}, [], [], {}

    def live(self):
        """The nodes, inputs and weights that outputs need."""
        wanted, nodes = set(self.outputs), []
        for node in reversed(self.nodes):
            if wanted & set(node.outputs):
                nodes.append(node)
                wanted |= node.reads()
        return nodes[::-1], [v for v in self.inputs if v.name in wanted], {n: w for n, w in self.weights.items() if n in wanted}

    def part(self, outputs=None, nodes=None, inputs=None):
        """A graph of the same values with other outputs, nodes or inputs, without what these do not need."""
        other = copy.copy(self)
        other.nodes = list(self.nodes if nodes is None else nodes)
        other.inputs = list(self.inputs if inputs is None else inputs)
        other.outputs = list(self.outputs if outputs is None else outputs)
        other.tidy()
        return other

    def tidy(self):
        self.nodes, self.inputs, self.weights = self.live()

    def bytes(self):
        """The model file."""
        outputs = [self.info(self.values[name], declared=True) for name in self.outputs]
        graph = wire.graph([encode(n, self.values) for n in self.nodes], [self.info(v) for v in self.inputs], outputs,
                           weights=[weight(name, array) for name, array in self.weights.items()])
        versions = {"": self.opset, "ai.onnx.ml": 5 if self.opset > 20 else 3}  # of other domains there is one
        domains = {""} | {n.domain for n in walk(self.nodes)}
        opsets = [(8, (wire.field(1, d) if d else b"") + wire.field(2, versions.get(d, 1))) for d in sorted(domains)]
        return wire.message((1, 8 if self.opset < 19 else 10), (2, "graphs"), (7, graph), *opsets)

    def info(self, value, declared=False):
        dims = [d.values[0] if d.static else d.key if d.key.isalpha() and not declared else None for d in value.dims]
        return wire.info(value.name, CODES[value.dtype], dims)

    def data(self, value, binding, seed):
        """An input's numbers in one run."""
        return draw(np.random.default_rng([seed, binding, sum(map(ord, value.name))]), value, value.shape(binding))


def walk(nodes):
    for node in nodes:
        yield node
        for body in node.bodies():
            yield from walk(body.nodes)


def encode(node, values):
    """A node; outputs of its bodies have types where these are known."""
    attributes = {}
    for name, value in node.attributes.items():
        if isinstance(value, Body):
            inner = value
            value = ("g", wire.graph([encode(n, values) for n in inner.nodes], [body_info(i) for i in inner.inputs],
                                     [wire.info(o, CODES[values[o].dtype], None) if o in values else wire.message((1, o)) for o in inner.outputs]))
        attributes[name] = value
    return wire.message(*((1, n or "") for n in node.inputs), *((2, n) for n in node.outputs), (3, node.name), (4, node.op)) + \
        b"".join(wire.field(5, wire.attribute(k, v)) for k, v in attributes.items()) + \
        (wire.field(7, node.domain) if node.domain else b"")


def body_info(given):
    return wire.info(given.name, CODES[given.dtype], [d.values[0] if d.static else None for d in given.dims])


def weight(name, array):
    dtype = next(d for d, n in NUMPY.items() if n == array.dtype.type)
    return wire.tensor(name, CODES[dtype], array.shape, raw=array.tobytes())


def draw(random, value, shape):
    """Numbers of a value's range and grid."""
    if value.dtype == "bool":
        return random.integers(0, 2, shape).astype(np.bool_)
    if not is_float(value.dtype):
        return random.integers(int(value.lo), int(value.hi), shape, dtype=NUMPY[value.dtype], endpoint=True) if value.hi < 2 ** 63 \
            else random.integers(0, 2 ** 62, shape).astype(np.uint64)
    if value.step:
        low, high = math.ceil(value.lo / value.step), math.floor(value.hi / value.step)
        return (random.integers(low, high, shape, endpoint=True) * value.step).astype(NUMPY[value.dtype])
    return random.uniform(value.lo, value.hi, shape).astype(NUMPY[value.dtype])

