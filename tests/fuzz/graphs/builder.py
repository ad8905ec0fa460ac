"""How a random graph grows: operands are found among the values there are, fitted, or made; results are recorded with bounds."""
import contextlib
import math
import random

import numpy as np

from dims import Dim, most, product
from graph import ANY, CODES, MANTISSA, MOST_ELEMENTS, NUMPY, WIDE, Body, Graph, Node, Skip, Value, bounds, draw, is_float

PLAIN = ("f32", "i64", "i32", "bool")  # what ONNX Runtime has nearly everywhere
OPS = {}  # name -> Op; several forms of one operator have a suffix after a dot


class Op:
    def __init__(self, name, make, since, until, weight):
        self.name, self.make, self.since, self.until, self.weight = name, make, since, until, weight

    @property
    def operator(self):
        return self.name.split("#")[0]


def op(*names, since=1, until=99, weight=1.0):
    """Registers what makes one node of an operator (and what it needs); called with the builder, and with the name when the
    function makes several."""
    def register(function):
        for name in names:
            assert name not in OPS, name
            make = (lambda g, f=function, n=name.split("#")[0]: f(g, n)) if len(names) > 1 or function.__code__.co_argcount > 1 else function
            OPS[name] = Op(name, make, since, until, weight)
        return function
    return register


class Builder:
    def __init__(self, seed, style):
        self.random = random.Random(seed)
        self.numpy = np.random.default_rng(seed)
        self.style = style
        self.graph = Graph(style.opset, style.bindings)
        self.symbols = [Dim([b[name] for b in style.bindings], name) for name in sorted(style.bindings[0])]
        self.scopes = [self.graph.nodes]
        self.visible = []  # values that a new node may read
        self.count = 0
        self.hazy = False  # whether a value that the last node read is

    # --- choices --------------------------------------------------------------------------------------------------
    def chance(self, p):
        return self.random.random() < p

    def choose(self, *options):
        return self.random.choice(options)

    def extent(self, low=0, high=9):
        """An extent of a new tensor."""
        if low <= 0 and high >= 2 and self.symbols and self.chance(self.style.open):
            return self.choose(*self.symbols)
        if low <= 0 and self.chance(self.style.empty):
            return self.static(0)
        if low <= 1 <= high and self.chance(self.style.single):
            return self.static(1)
        if high >= 9 and self.chance(0.12):
            return self.static(self.choose(16, 17, 31, 33, 64, 65))
        return self.static(self.random.randint(max(low, min(2, high)), high))

    def static(self, number):
        return Dim([number] * len(self.graph.bindings))

    def statics(self, *numbers):
        return [self.static(n) for n in numbers]

    def dims(self, rank, low=0, high=9):
        return [self.extent(low, high) for _ in range(rank)]

    def rank(self, low=0, high=5):
        return max(low, min(high, self.choose(0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5)))

    # --- nodes ----------------------------------------------------------------------------------------------------
    def name(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def node(self, operator, inputs, outputs=1, domain="", **attributes):
        """Appends a node; inputs are values, names or None. Gives the names of its outputs: one, or a list."""
        self.hazy = any(v.hazy for v in inputs if isinstance(v, Value))
        for v in inputs:
            if isinstance(v, Value):
                v.uses += 1
        names = [self.name("v") for _ in range(outputs)]
        attributes = {k: v for k, v in attributes.items() if v is not None}
        node = Node(operator, [v.name if isinstance(v, Value) else v for v in inputs], names, domain, attributes, f"{operator}_{self.count}")
        self.scopes[-1].append(node)
        first = self.graph.values.get(inputs[0].name if isinstance(inputs[0], Value) else inputs[0]) if inputs else None
        if first:
            node.rank, node.extents = first.rank, set().union(*(d.kinds for d in first.dims))
        return names[0] if outputs == 1 else names

    def value(self, name, dtype, dims, lo, hi, err=0.0, step=None, rounding=1.0, leaf=False, hazy=False):
        """Records a node's result. `err` is what the operands' errors become; a result that is on no grid is rounded."""
        lo, hi = (min(lo, hi), max(lo, hi))
        if math.isnan(lo) or math.isnan(hi):
            raise Skip
        if not leaf:
            low, high = bounds(dtype)
            if lo < low or hi > high:
                raise Skip
        if most(dims) > MOST_ELEMENTS or len(dims) > 6:
            raise Skip
        top = max(abs(lo), abs(hi))
        if is_float(dtype) and not leaf:
            if err or not step or top / step > 2 ** MANTISSA[dtype]:
                step = None
                err += rounding * top * 2.0 ** -MANTISSA[dtype] + 1e-30
            if err > 0.02 * max(top, 1e-3):
                raise Skip
        else:
            step = None if is_float(dtype) else 1
        value = Value(name, dtype, dims, lo, hi, err, step, leaf, hazy or self.hazy)
        self.graph.values[name] = value
        if not leaf:
            self.visible.append(value)
        else:
            self.graph.outputs.append(name) if len(self.scopes) == 1 else None
        return value

    def like(self, name, v, dims=None, **changes):
        """A result with elements of `v` alone."""
        about = dict(lo=v.lo, hi=v.hi, err=v.err, step=v.step, rounding=0)
        about.update(changes)
        return self.value(name, about.pop("dtype", v.dtype), v.dims if dims is None else dims, **about)

    # --- operands -------------------------------------------------------------------------------------------------
    def constant(self, array, dtype=None):
        """The name of a weight, or of a Constant node's output, with these numbers."""
        array = np.asarray(array, NUMPY[dtype] if dtype else None)
        name = self.name("c")
        self.graph.weights[name] = array
        low, high = (array.min(), array.max()) if array.size else (0, 0)
        number = float if array.dtype.kind == "f" else int
        dtype = next(d for d, n in NUMPY.items() if n == array.dtype.type)
        value = Value(name, dtype, self.statics(*array.shape), number(low), number(high), 0.0, 2.0 ** -3 if is_float(dtype) else 1)
        self.graph.values[name] = value
        return value

    def ints(self, *numbers, dtype="i64"):
        return self.constant(np.array(numbers, NUMPY[dtype]))

    def scalar(self, number, dtype="i64"):
        return self.constant(np.array(number, NUMPY[dtype]))

    def range_of(self, dtype):
        """A range and a grid for new numbers."""
        if dtype == "bool":
            return 0, 1, 1
        if not is_float(dtype):
            high = self.choose(3, 7, 12, 100)
            return (0 if dtype.startswith("u") or self.chance(0.3) else -high), high, 1
        if self.chance(0.25) and dtype in WIDE:
            return -1.0, 1.0, None
        return (self.choose(0.0, -2.0, -4.0), self.choose(1.0, 2.0, 4.0), 0.25)

    def fresh(self, dtype, dims, lo=None, hi=None, step="any", weight=None):
        """A new input of the graph, or a weight."""
        if dtype not in NUMPY:
            source = self.fresh("f32", dims, lo, hi, step, weight)
            return self.cast(source, dtype)
        if most(dims) > MOST_ELEMENTS or not all(d.exact for d in dims):
            raise Skip  # too large, or of an extent that only a run decides
        low, high, grid = self.range_of(dtype)
        lo, hi = low if lo is None else lo, high if hi is None else hi
        step = step if step != "any" else grid if is_float(dtype) else 1
        static = all(d.static for d in dims)
        name = self.name("x")
        value = Value(name, dtype, dims, lo, hi, 0.0, step)
        if step is None and is_float(dtype):
            value.err = 1e-30  # the input's own numbers are exact, but what is made of them is rounded
        if static and (self.chance(0.35) if weight is None else weight):
            self.graph.weights[name] = draw(self.numpy, value, value.shape(0))
        else:
            self.graph.inputs.append(value)
        self.graph.values[name] = value
        self.visible.append(value)
        return value

    def cast(self, v, dtype):
        if v.dtype == dtype:
            return v
        name = self.node("Cast", [v], to=CODES[dtype])
        return self.like(name, v, dtype=dtype, rounding=1.0)

    def pick(self, dtypes=ANY, rank=(0, 5), where=None, fresh=0.12, **about):
        """A value of one of the types and ranks for which `where` holds: one that is there, one that is fitted, or a new one."""
        dtypes = [d for d in dtypes if d in self.style.types] or dtypes

        def fits(v):
            return v.dtype in dtypes and rank[0] <= v.rank <= rank[1] and not v.leaf and (where is None or where(v))
        if not self.chance(fresh):
            found = [v for v in self.visible if fits(v)]
            if found:  # late values, and those that nothing reads, more often
                weights = [(i + 1) * (3 if v.uses == 0 else 1) for i, v in enumerate(found)]
                return self.random.choices(found, weights)[0]
            fitted = self.fitted(dtypes, rank)
            if fitted is not None and fits(fitted):
                return fitted
        for _ in range(8):
            dtype = self.choose(*[d for d in dtypes if d in ("f32", "i64")] * 3 + list(dtypes))
            about_ = {k: v(dtype) if callable(v) else v for k, v in about.items()}
            dims = about_.pop("dims", None) or self.dims(self.rank(*rank))
            value = self.fresh(dtype, dims, **about_)
            if fits(value):
                return value
        raise Skip

    def fitted(self, dtypes, rank):
        """A value there is with its type or its rank changed."""
        near = [v for v in self.visible if not v.leaf and v.known and (v.dtype in dtypes or rank[0] <= v.rank <= rank[1])]
        if not near:
            return None
        v = self.choose(*near[-12:])
        if v.dtype not in dtypes:
            target = self.choose(*dtypes)
            if v.dtype == "bool" or (is_float(v.dtype) and is_float(target)):
                return self.cast(v, target)
            return None
        if v.rank < rank[0]:
            axes = sorted(self.random.sample(range(rank[0]), rank[0] - v.rank))
            return self.unsqueeze(v, axes)
        if v.rank > rank[1] and rank[1] >= 1:
            keep = rank[1] - 1
            dims = list(v.dims[:keep]) + [product(v.dims[keep:])]
            if sum(not d.static for d in dims) > 1 or any(d.least == 0 for d in dims):
                return None
            target = [d.values[0] if d.static else -1 for d in dims]
            return self.like(self.node("Reshape", [v, self.ints(*target)]), v, dims)
        return None

    def unsqueeze(self, v, axes):
        dims = list(v.dims)
        for axis in axes:
            dims.insert(axis, self.static(1))
        if self.graph.opset >= 13:
            return self.like(self.node("Unsqueeze", [v, self.ints(*axes)]), v, dims)
        return self.like(self.node("Unsqueeze", [v], axes=list(axes)), v, dims)

    def within(self, v, lo, hi):
        """`v`, clipped to a range where it leaves it; the ends lie on its grid."""
        if v.lo >= lo and v.hi <= hi:
            return v
        if self.graph.opset < 12 or v.dtype not in NUMPY or v.dtype == "bool":
            raise Skip
        if is_float(v.dtype) and v.step:
            lo, hi = math.ceil(lo / v.step) * v.step, math.floor(hi / v.step) * v.step
            if lo > hi:
                raise Skip
        name = self.node("Clip", [v, self.scalar(lo, v.dtype), self.scalar(hi, v.dtype)])
        return self.like(name, v, lo=max(lo, min(v.lo, hi)), hi=min(hi, max(v.hi, lo)))

    def floats(self, rank=(0, 5), lo=-8.0, hi=8.0, dtypes=None, exact=False, where=None, **about):
        """A float operand inside a range; on a grid where `exact`."""
        dtypes = dtypes or (("f32",) * 6 + ("f16", "f64") if self.graph.opset >= 13 else ("f32",))
        v = self.pick(dtypes, rank, where=lambda v: (not exact or v.exact) and (where is None or where(v)), **about,
                      **({"step": lambda d: 0.25, "lo": lambda d: -2.0, "hi": lambda d: 2.0} if exact else {}))
        return self.within(v, lo, hi)

    def broadcast(self, a, b):
        """The dims of a result of two operands, by numpy's rule where it holds whatever a run brings."""
        a, b = list(a), list(b)
        n = max(len(a), len(b))
        a, b = [self.static(1)] * (n - len(a)) + a, [self.static(1)] * (n - len(b)) + b
        result = []
        for x, y in zip(a, b):
            if not (x.same(y) or x.is_one() or y.is_one()):
                raise Skip
            result.append(y if x.is_one() else x)
        return result

    def fits(self, a, b):
        try:
            self.broadcast(a, b)
            return True
        except Skip:
            return False

    def partner(self, v, dtypes=None, **about):
        """Another operand for an op that broadcasts."""
        def dims(_):
            some = [d if self.chance(0.7) else self.static(1) for d in v.dims]
            return some[self.random.randint(0, len(some)) if self.chance(0.5) and some else 0:] or [self.static(1)]
        return self.pick(dtypes or (v.dtype,), where=lambda w: self.fits(v.dims, w.dims) and w.known, dims=dims, fresh=0.25, **about)

    def axis(self, v, negative=True, where=None):
        """A random axis, and how it is written."""
        axes = [i for i in range(v.rank) if where is None or where(v.dims[i])]
        if not axes:
            raise Skip
        axis = self.choose(*axes)
        return axis, axis - v.rank if negative and self.chance(0.4) else axis

    # --- bodies ---------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def body(self, inputs=()):
        """What is made inside belongs to the body that this gives. `inputs`: values that it has as parameters."""
        body = Body(inputs)
        before = list(self.visible)
        for v in inputs:
            self.graph.values[v.name] = v
            self.visible.append(v)
        self.scopes.append(body.nodes)
        try:
            yield body
        finally:
            self.scopes.pop()
            inside = set(map(id, before))
            inputs_now = {v.name for v in self.graph.inputs} | set(self.graph.weights)
            self.visible = before + [v for v in self.visible if id(v) not in inside and v.name in inputs_now]

    def parameter(self, dtype, dims, lo, hi, err=0.0, step=None, hazy=False):
        value = Value(self.name("p"), dtype, dims, lo, hi, err, step, hazy=hazy)
        return value

    # --- growth ---------------------------------------------------------------------------------------------------
    def attempt(self, make):
        """Makes a node, or nothing: what was begun is undone."""
        before = (len(self.scopes[-1]), list(self.visible), list(self.graph.inputs), dict(self.graph.weights), list(self.graph.outputs),
                  len(self.scopes))
        try:
            make(self)
            return True
        except Skip:
            length, self.visible, self.graph.inputs, self.graph.weights, self.graph.outputs, depth = before
            del self.scopes[depth:]
            del self.scopes[-1][length:]
            return False

    def grow(self, names=None):
        """One more op; a few are tried."""
        allowed = self.style.allowed
        for _ in range(20):
            name = self.random.choices(allowed[0], allowed[1])[0] if names is None else self.choose(*names)
            if self.attempt(OPS[name].make):
                return name
        return None
