"""Branches, loops, scans, sequences and optionals, whose bodies are made of random operators and read values around them."""
from builder import op
from dims import Dim
from graph import ANY, NUMPY, Skip, Value, is_float

INNER = ("Add", "Sub", "Mul", "Neg", "Abs", "Relu", "Tanh", "Sigmoid", "Max", "Min", "Where", "Identity", "Softmax", "MatMul", "Transpose", "ReduceSum",
         "Slice", "Concat", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Gather", "Flatten", "Clip", "Equal", "Expand", "If", "LayerNormalization", "Conv")


def allowed(g):
    from builder import OPS
    return [n for n in INNER if n in g.style.allowed[0] and OPS[n].since <= g.graph.opset]


def inner(g, most_):
    """Some random nodes of a body."""
    if len(g.scopes) > 3 or not allowed(g):
        return
    for _ in range(g.random.randint(0, most_)):
        g.grow(allowed(g))


def result(g, like, captured):
    """A value of a body with the type and dims of `like`: one made there, or made of one around it."""
    found = [v for v in g.visible if v not in captured and v.dtype == like.dtype and v.rank == like.rank and all(a.same(b) for a, b in zip(v.dims, like.dims))]
    if found and g.chance(0.7):
        return g.choose(*found)
    if g.chance(0.2):
        return g.like(g.node("Identity", [like]), like)
    if like.dtype == "bool":
        return g.like(g.node("Not", [like]), like)
    if is_float(like.dtype) and like.dtype != "bf16":
        return g.like(g.node("Tanh", [like]), like, lo=-1.0, hi=1.0, step=None, rounding=8)
    return g.like(g.node("Add", [like, like]), like, lo=2 * like.lo, hi=2 * like.hi)


def together(values):
    return dict(lo=min(v.lo for v in values), hi=max(v.hi for v in values), err=max(v.err for v in values),
                step=min(v.step for v in values) if all(v.step for v in values) else None, hazy=any(v.hazy for v in values))


def returned(g, value, captured):
    """The name of a body's output: never a value of the graph around it, nor a parameter, which ONNX Runtime's Scan loses."""
    inside = value not in captured and any(value.name in node.outputs for node in g.scopes[-1])
    return value.name if inside and g.chance(0.95) else g.like(g.node("Identity", [value]), value).name


def returned_all(g, values, captured):
    """The same of several, each a name of its own: ONNX Runtime gives away what a body returns twice."""
    names = []
    for value in values:
        name = returned(g, value, captured)
        names.append(g.node("Identity", [name]) if name in names else name)
    return names


def either(g, condition, likes):
    """An If whose results have the types of `likes`."""
    bodies, results = [], []
    for _ in range(2):
        with g.body() as body:
            captured = list(g.visible)
            inner(g, 3)
            made = [result(g, like, captured) for like in likes]
            body.outputs = returned_all(g, made, captured)
        bodies.append(body)
        results.append(made)
    names = g.node("If", [condition], len(likes), then_branch=bodies[0], else_branch=bodies[1])
    names = [names] if len(likes) == 1 else names
    for name, like, a, b in zip(names, likes, *results):
        about = together([a, b])
        g.value(name, like.dtype, like.dims, rounding=0, **about)


@op("If", since=13, weight=2.0)
def branch(g):
    condition = scalar_bool(g)
    likes = [g.pick(ANY, where=lambda v: v.known and v.dtype in NUMPY) for _ in range(g.choose(1, 1, 2))]
    either(g, condition, likes)


def scalar_bool(g, ranks=(0, 1)):
    """A condition that a run decides."""
    if g.chance(0.3):
        found = [v for v in g.visible if v.dtype == "bool" and all(d.is_one() for d in v.dims) and not v.leaf and v.rank in ranks]
        if found:
            return g.choose(*found)
    return g.fresh("bool", g.statics(1) if g.chance(0.3) and 1 in ranks else [], weight=g.chance(0.1))


@op("If#shapes", since=13, weight=0.7)
def branch_shapes(g):
    """Branches whose results differ in an extent."""
    v = g.pick(("f32", "i64", "i32"), (1, 3), where=lambda v: v.known)
    axis, _ = g.axis(v, where=lambda d: d.least >= 2)
    d = v.dims[axis]
    bodies = []
    with g.body() as body:
        body.outputs = [g.like(g.node("Identity", [v]), v).name]
    bodies.append(body)
    with g.body() as body:
        short = g.like(g.node("Slice", [v, g.ints(1), g.ints(2 ** 31), g.ints(axis)]), v, [x.map(lambda n: n - 1, "({}-1)") if i == axis else x for i, x in enumerate(v.dims)])
        body.outputs = [short.name]
    bodies.append(body)
    dim = Dim(d.values, g.name("d_"), [n - 1 for n in d.floor])
    g.like(g.node("If", [scalar_bool(g)], then_branch=bodies[0], else_branch=bodies[1]), v, [dim if i == axis else x for i, x in enumerate(v.dims)])


def trip_count(g):
    """How often at most; as a value, and the number of results that are stacked."""
    most_ = g.choose(0, 1, 2, 3, 5) if g.chance(0.7) else 1
    if g.chance(0.5):
        return g.scalar(most_), g.static(most_)
    given = g.fresh("i64", g.choose([], g.statics(1)), lo=g.random.randint(0, most_), hi=most_, weight=False)
    return given, Dim([most_] * len(g.graph.bindings), g.name("d_"), [given.lo] * len(g.graph.bindings))


def shaped(g, v):
    """With extents that the graph says: of no results, ONNX tells no others but the first."""
    if not all(d.static for d in v.dims):
        raise Skip
    extents = [d.least for d in v.dims]
    if 0 in extents and g.graph.opset < 14:
        raise Skip
    return g.like(g.node("Reshape", [v, g.ints(*extents)], allowzero=1 if 0 in extents else None), v)


@op("Loop", since=13, weight=1.5)
def loop(g):
    """Carried values stay inside the range that they have at first."""
    trips, count = trip_count(g)
    certain = g.chance(0.7)
    carried = [g.pick(("f32", "f32", "i64", "i32", "bool"), (0, 3), where=lambda v: v.known) for _ in range(g.choose(0, 1, 1, 2))]
    number, go = g.parameter("i64", [], 0, 5, step=1), g.parameter("bool", [], 0, 1, step=1)
    inside = [g.parameter(v.dtype, v.dims, *kept(v), hazy=v.hazy) for v in carried]
    with g.body([number, go] + inside) as body:
        captured = [v for v in g.visible if v not in inside]
        inner(g, 3)
        nexts = [next_value(g, v, captured) for v in inside]
        scanned = []
        if g.chance(0.6):
            like = g.pick(ANY, (0, 3), where=lambda v: v.known and v.dtype in NUMPY)
            scanned.append(shaped(g, result(g, like, captured)) if not certain or count.least == 0 else result(g, like, captured))
        if not nexts and not scanned:
            raise Skip
        body.outputs = [g.node("Identity", [go])] + returned_all(g, nexts + scanned, captured)
    with_condition = g.choose(None, g.scalar(True, "bool")) if certain else scalar_bool(g, (0,))
    names = g.node("Loop", [trips, with_condition] + carried, len(nexts) + len(scanned), body=body)
    names = [names] if len(nexts) + len(scanned) == 1 else names
    hazy = any(v.hazy for v in nexts + scanned)
    for name, v, first in zip(names, inside, carried):
        about = together([v, first])
        g.value(name, v.dtype, v.dims, rounding=0, **{**about, "hazy": about["hazy"] or hazy})
    for name, v in zip(names[len(nexts):], scanned):
        if not certain and count.most:
            count = Dim(count.values, g.name("d_") if count.static else count.key, [0] * len(count.values))
        g.like(name, v, [count] + list(v.dims), rounding=0)


def kept(v):
    """The range, error and grid of a carried value, wide enough for what next_value gives."""
    if v.dtype == "bool":
        return 0, 1, 0.0, 1
    if is_float(v.dtype):
        return -max(v.top, 1.0), max(v.top, 1.0), max(v.err, 1e-3 * max(v.top, 1.0)), None
    return -max(v.top, 8), max(v.top, 8), 0.0, 1


def next_value(g, v, captured):
    """A value with the type and inside the bounds of a carried one."""
    found = [w for w in g.visible if w not in captured and w is not v and w.dtype == v.dtype and w.rank == v.rank and all(a.same(b) for a, b in zip(v.dims, w.dims))
             and v.lo <= w.lo and w.hi <= v.hi and w.err <= v.err]
    if found and g.chance(0.6):
        return g.choose(*found)
    if v.dtype == "bool":
        return g.like(g.node("Not", [v]), v)
    if is_float(v.dtype):
        half = g.node("Mul", [v, g.scalar(0.5, v.dtype)])
        return Value(half, v.dtype, v.dims, v.lo, v.hi, v.err, None, hazy=v.hazy)
    return g.like(g.node("Neg", [v]), v)


@op("Scan", since=11, weight=1.0)
def scan(g):
    """Slices of one or two values along an axis, and a state."""
    x = g.pick(("f32", "i64"), (1, 3), where=lambda v: v.known)
    axis, written = g.axis(x)
    length = x.dims[axis]
    piece_dims = [d for i, d in enumerate(x.dims) if i != axis]
    piece = g.parameter(x.dtype, piece_dims, x.lo, x.hi, x.err, x.step, x.hazy)
    state = g.fresh(x.dtype, piece_dims, lo=-1, hi=1)
    top = max(1.0, x.top) if is_float(x.dtype) else max(8, x.top)
    inside = g.parameter(x.dtype, piece_dims, -top, top, 1e-3 * top + 2 * x.err if is_float(x.dtype) else 0.0, None if is_float(x.dtype) else 1, x.hazy)
    with g.body([inside, piece]) as body:
        captured = [v for v in g.visible if v not in (inside, piece)]
        larger = g.node("Max", [inside, piece]) if g.chance(0.5) or x.dtype != "f32" else None
        after = Value(larger, x.dtype, inside.dims, inside.lo, inside.hi, inside.err, inside.step, hazy=x.hazy) if larger else next_value(g, inside, captured)
        inner(g, 2)
        stacked = result(g, g.choose(piece, inside), captured)
        body.outputs = returned_all(g, [after, stacked], captured)
    attributes = {}
    if g.chance(0.5):
        attributes["scan_input_directions"] = [1]
    out_axis = g.random.randint(0, len(stacked.dims)) if g.chance(0.5) else 0
    if out_axis:
        attributes["scan_output_axes"] = [out_axis]
    last, every = g.node("Scan", [state, x], 2, body=body, num_scan_inputs=1, scan_input_axes=[written] if axis else None, **attributes)
    g.value(last, x.dtype, inside.dims, inside.lo, inside.hi, inside.err, inside.step, rounding=0, hazy=x.hazy)
    dims = list(stacked.dims)
    dims.insert(out_axis, length)
    g.like(every, stacked, dims, rounding=0)


# --- sequences ----------------------------------------------------------------------------------------------------------

@op("SequenceConstruct", "SequenceInsert", "SequenceErase", "SequenceAt", "ConcatFromSequence", since=13, weight=0.4)
def sequence(g, name):
    """A sequence of values of one shape; its last op is the one named."""
    a = g.pick(("f32", "i64", "i32"), (1, 3), where=lambda v: v.known)
    same = [v for v in g.visible if v.dtype == a.dtype and v.rank == a.rank and all(x.same(y) for x, y in zip(v.dims, a.dims)) and not v.leaf]
    members = [a] + [g.choose(*same) for _ in range(g.choose(1, 2))]
    s = g.node("SequenceConstruct", members)
    if name == "SequenceInsert" or g.chance(0.3):
        members.insert(1, g.choose(*same))
        s = g.node("SequenceInsert", [s, members[1], g.scalar(1)])
    if name == "SequenceErase":
        del members[0]
        s = g.node("SequenceErase", [s, g.scalar(0)])
    about = together(members)
    about.pop("hazy")
    hazy = any(v.hazy for v in members)
    if name == "SequenceAt" or g.chance(0.4):
        where = g.fresh("i64", [], lo=-len(members), hi=len(members) - 1) if g.chance(0.5) else g.scalar(g.random.randint(0, len(members) - 1))
        return g.like(g.node("SequenceAt", [s, where]), a, hazy=hazy, rounding=0, **about)
    if g.chance(0.3):
        g.value(g.node("SequenceLength", [s]), "i64", [], 0, 9)
    axis, _ = g.axis(a)
    if g.chance(0.3):
        dims = list(a.dims)
        dims.insert(axis, g.static(len(members)))
        return g.like(g.node("ConcatFromSequence", [s], axis=axis, new_axis=1), a, dims, hazy=hazy, rounding=0, **about)
    n = len(members)
    dims = [d if i != axis or n == 1 else d.map(lambda x: x * n, "({}*%d)" % n) for i, d in enumerate(a.dims)]
    g.like(g.node("ConcatFromSequence", [s], axis=axis), a, dims, hazy=hazy, rounding=0, **about)


@op("SequenceLength", "SequenceEmpty", since=13, weight=0.3)
def sequence_short(g, name):
    a = g.pick(("f32", "i64"), where=lambda v: v.known)
    s = g.node("SequenceEmpty", [], dtype={"f32": 1, "i64": 7}[a.dtype])
    s = g.node("SequenceInsert", [s, a])
    if name == "SequenceLength":
        return g.value(g.node("SequenceLength", [s]), "i64", [], 1, 1)
    g.like(g.node("SequenceAt", [s, g.scalar(0)]), a)


@op("SplitToSequence", since=13, weight=0.5)
def split_to_sequence(g):
    a = g.pick(("f32", "i64"), (1, 3), where=lambda v: v.known)
    axis, written = g.axis(a, where=lambda d: d.static and d.least >= 1)
    n = a.dims[axis].values[0]
    size = g.random.randint(1, min(3, n))
    s = g.node("SplitToSequence", [a, g.scalar(size)], axis=written)
    if g.chance(0.5):
        return g.like(g.node("ConcatFromSequence", [s], axis=axis), a)
    g.like(g.node("SequenceAt", [s, g.scalar(0)]), a, [g.static(size) if i == axis else d for i, d in enumerate(a.dims)])


@op("SequenceMap", since=17, weight=0.3)
def sequence_map(g):
    a = g.pick(("f32",), (1, 3), where=lambda v: v.known)
    s = g.node("SequenceConstruct", [a, a])
    piece = g.parameter("f32", a.dims, a.lo, a.hi, a.err, a.step, a.hazy)
    with g.body([piece]) as body:
        made = g.like(g.node("Neg", [piece]), piece, lo=-piece.hi, hi=-piece.lo)
        body.outputs = [made.name]
    mapped = g.node("SequenceMap", [s], body=body)
    g.like(g.node("SequenceAt", [mapped, g.scalar(1)]), a, lo=-a.hi, hi=-a.lo, rounding=0, hazy=a.hazy)


@op("Optional", "OptionalGetElement", "OptionalHasElement", since=18, weight=0.3)
def optional(g, name):
    a = g.pick(("f32", "i64"), where=lambda v: v.known)
    o = g.node("Optional", [a])
    if name == "OptionalHasElement":
        return g.value(g.node(name, [o]), "bool", [], 1, 1)
    g.like(g.node("OptionalGetElement", [o]), a, hazy=a.hazy)
