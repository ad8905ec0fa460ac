"""A case of the extent test: one node, or a few, whose operands' axes have names; each name takes the sizes 0 and 1 in turn."""
import itertools
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fuzz"))
import make_corpus as onnx  # writes ONNX models without the onnx package

TYPES = {"f": (np.float32, onnx.FLOAT), "d": (np.float64, onnx.DOUBLE), "h": (np.float16, onnx.FLOAT16), "i": (np.int64, onnx.INT64),
         "j": (np.int32, onnx.INT32), "u": (np.uint8, onnx.UINT8), "s": (np.int8, onnx.INT8), "b": (np.bool_, onnx.BOOL)}
BASE = {"n": 2, "c": 3, "h": 4, "w": 5, "m": 4, "k": 3, "d": 2, "s": 3, "t": 3, "r": 2, "p": 3, "q": 2, "b": 2}


class Operand:
    """"x:f n c 3": its name, type and axes; a constant of the model has its value; an empty text leaves an operand out."""

    def __init__(self, text, constants):
        self.name, _, rest = text.strip().partition(":")
        kind, *axes = rest.split() or ["f"]
        self.kind, self.axes = kind, [int(a) if a.isdigit() else a for a in axes]
        self.constant = constants.get(self.name)

    def dtype(self):
        return TYPES[self.kind][0]

    def shape(self, sizes):
        return [sizes.get(a, a) for a in self.axes]


class Case:
    """`oracle` takes the operands that are there and returns the results, by the operator's definition. `forbidden` says
    for sizes by which sentence of the definition a node may be refused. `data` gives operands their values: name -> f(random,
    shape, sizes). Operands that stand in `constants` are the model's (an array, or one made of the sizes, which open dims
    do not have). `coarse` says for sizes why a device of f16 cannot have the definition's result."""

    def __init__(self, op, operands, oracle, results=1, opset=21, domain="", constants=None, data=None, base=None,
                 forbidden=None, coarse=None, tolerance=1e-4, name=None, nodes=None, attributes=None, **more):
        self.op, self.name, self.oracle, self.results, self.opset, self.domain = op, name or op, oracle, results, opset, domain
        self.constants = constants or {}
        self.operands = [Operand(text, self.constants) for text in operands.split(";")] if operands else []
        self.data, self.forbidden, self.tolerance, self.nodes = data or {}, forbidden or (lambda s: None), tolerance, nodes
        self.coarse = coarse or (lambda s: None)
        self.attributes = {**(attributes or {}), **more}
        letters = dict.fromkeys(a for o in self.operands for a in o.axes if isinstance(a, str))
        self.base = {letter: (base or {}).get(letter, BASE[letter]) for letter in letters}

    def present(self):
        return [o for o in self.operands if o.name]

    def is_open(self):
        """Whether sizes may be left to a run."""
        return bool(self.base) and not any(callable(value) for value in [*self.constants.values(), *self.attributes.values()])

    def variants(self, cross):
        """Sizes: the base, each axis at 0 and 1, all at 0 and 1; or all combinations."""
        if cross:
            return [dict(zip(self.base, sizes)) for sizes in itertools.product(*([0, 1, size] for size in self.base.values()))]
        found = [self.base, *({**self.base, letter: size} for letter in self.base for size in (0, 1)),
                 *({letter: size for letter in self.base} for size in (0, 1))]
        return list({tuple(sizes.items()): sizes for sizes in found}.values())

    def values(self, sizes):
        """The operands' values by name, the same in every run."""
        random = np.random.default_rng([len(self.name), *self.name.encode(), *sizes.values()])
        result = {}
        for operand in self.present():
            shape, dtype = operand.shape(sizes), operand.dtype()
            if operand.name in self.constants:
                value = operand.constant(sizes) if callable(operand.constant) else operand.constant
            elif operand.name in self.data:
                value = self.data[operand.name](random, shape, sizes)
            elif dtype == np.bool_:
                value = random.integers(0, 2, shape)
            elif np.issubdtype(dtype, np.integer):
                value = random.integers(0 if dtype == np.uint8 else -3, 9, shape)
            else:
                value = random.standard_normal(shape)
            result[operand.name] = np.asarray(value, dtype)
        return result

    def wanted(self, sizes):
        with np.errstate(all="ignore"):
            results = self.oracle(*self.values(sizes).values())
        return [np.asarray(r) for r in (results if isinstance(results, tuple) else (results,))]

    def result_types(self):
        """Floats are of the first operand that is one: oracles compute in float64."""
        floats = [TYPES[o.kind][1] for o in self.present() if np.issubdtype(o.dtype(), np.floating)] + [onnx.FLOAT]
        return [floats[0] if r.dtype == np.float64 else next(t for d, t in TYPES.values() if d == r.dtype)
                for r in self.wanted(self.base)]

    def encoded(self, label, prefix, sizes):
        """The nodes, all of whose values' names begin with the prefix."""
        attributes = {k: v(sizes) if callable(v) else v for k, v in self.attributes.items()}
        inputs = [prefix + o.name if o.name else "" for o in self.operands]
        outputs = [f"{prefix}o{i}" for i in range(self.results)]
        nodes = self.nodes(inputs, outputs) if self.nodes else [(self.op, inputs, outputs, attributes, self.domain)]
        return [node(label + f"/{i}" * (i > 0), *parts) for i, parts in enumerate(nodes)]


def node(label, op, inputs, outputs, attributes=None, domain=""):
    from make_corpus import attribute, field, message
    return (b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in outputs) +
            message((3, label), (4, op)) + b"".join(field(5, attribute(k, v)) for k, v in (attributes or {}).items()) +
            (field(7, domain) if domain else b""))


def tensor(name, value):
    kind = next(onnx_type for dtype, onnx_type in TYPES.values() if dtype == value.dtype)
    return onnx.tensor(name, kind, list(value.shape), raw=value.tobytes())


class Placed:
    """A case in a model: which sizes it has, or that they are open."""

    def __init__(self, case, number, sizes=None, folded=False):
        self.case, self.prefix, self.sizes, self.folded = case, f"v{number}_", sizes, folded
        self.label = case.name + (":" + ",".join(f"{k}={v}" for k, v in sizes.items()) if sizes is not None else "")
        self.label += f"#{number}"


def model(placed):
    """The bytes of a model of such nodes; they share an opset."""
    nodes, inputs, outputs, weights = [], [], [], []
    for p in placed:
        sizes = p.sizes if p.sizes is not None else p.case.base
        values = p.case.values(sizes)
        nodes += p.case.encoded(p.label, p.prefix, sizes)
        for operand in p.case.present():
            if p.folded or operand.name in p.case.constants:
                weights.append(tensor(p.prefix + operand.name, values[operand.name]))
                continue
            dims = list(values[operand.name].shape) if p.sizes is not None else [
                p.prefix + a if isinstance(a, str) else a for a in operand.axes]
            inputs.append(onnx.info(p.prefix + operand.name, TYPES[operand.kind][1], dims))
        outputs += [onnx.info(f"{p.prefix}o{i}", kind, None) for i, kind in enumerate(p.case.result_types())]
    opset = placed[0].case.opset
    domains = b"".join(onnx.field(8, onnx.message((1, domain), (2, 1))) for domain in sorted({p.case.domain for p in placed} - {"", "ai.onnx.ml"}))
    return onnx.model(nodes, inputs, outputs, opset=opset, extra=domains, ml=5 if opset > 21 else 3, weights=weights)
