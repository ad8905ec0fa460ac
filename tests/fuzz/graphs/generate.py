"""A random graph from a seed: generate(seed) gives the same graph on every machine."""
import random

import ops_control, ops_elementwise, ops_move, ops_net, ops_nn, ops_quant, ops_reduce  # noqa: F401, E401 - they register their operators
from builder import OPS, PLAIN, Builder
from graph import ANY

OPSETS = {9: 3, 11: 3, 13: 10, 17: 20, 18: 15, 21: 20, 22: 12, 24: 10, 26: 4, 27: 5, 28: 6}
MANY = (2, 3, 4, 5, 7, 8, 16, 17, 33)
# What the simulated card computes and the interpreter of its bits knows; of convolutions those of images, of rows those of one axis.
CARD = ("Relu", "Abs", "Tanh", "Sigmoid", "Erf", "Add", "Sub", "Mul", "Max", "MatMul", "Conv", "Softmax", "ReduceMean", "ReduceMax",
        "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Concat", "Slice", "LayerNormalization", "Identity")


class Style:
    """What a graph is like. `runs`: how many bindings its named extents have."""

    def __init__(self, seed, runs=3, only=None):
        r = random.Random(f"style{seed}")
        self.opset = r.choices(list(OPSETS), list(OPSETS.values()))[0]
        self.open = r.choice([0.0, 0.15, 0.35])
        self.empty = r.choice([0.0, 0.0, 0.03, 0.1])
        self.single = r.choice([0.05, 0.2, 0.4])
        names = ["n", "m"][:r.choice([1, 2])] if self.open else []
        few = lambda: r.choice((0, 1, 1, r.choice(MANY)))
        self.bindings = [{n: r.choice(MANY) for n in names}]
        self.bindings += [{n: few() for n in names} for _ in range(runs - 1)]
        if not names:
            self.bindings = [{}]
        card = self.card = only is None and r.random() < 0.12  # of what the simulated card computes bit by bit
        self.types = ("f32",) if card else PLAIN if r.random() < 0.65 else ANY
        if card:
            self.open, self.bindings, only = 0.0, [{}], CARD
        self.size = r.randint(20, 60)
        names = [n for n, o in OPS.items() if o.since <= self.opset <= o.until and (only is None or n in only)]
        # A graph dwells on some operators, so that they meet.
        self.allowed = (names, [OPS[n].weight * r.choice([0.3, 1, 1, 3]) for n in names])


def generate(seed, only=None):
    """The graph of a seed; `only`: the operators that it is made of."""
    g = Builder(seed, Style(seed, only=only))
    for _ in range(g.random.randint(1, 3)):
        g.attempt(lambda g: g.fresh(g.choose("f32", "f32", *(t for t in PLAIN if t in g.style.types)), g.dims(g.rank(1, 4)), weight=False))
    for _ in range(4 * g.style.size):
        if len(g.graph.nodes) >= g.style.size:
            break
        g.grow()
    finish(g)
    return g.graph


def finish(g):
    """Outputs: what nothing reads, and some values that are read too, views among them."""
    graph = g.graph
    read = {name for node in graph.nodes for name in node.reads()}
    made = [name for node in graph.nodes for name in node.outputs if name in graph.values]
    last = [n for n in made if n not in read and g.chance(0.9)]
    middle = [n for n in made if n in read]
    views = [node.outputs[0] for node in graph.nodes if node.op in VIEWS and node.outputs[0] in middle]
    chosen = set(graph.outputs) | set(last) | set(g.random.sample(middle, min(len(middle), 2))) | set(g.random.sample(views, min(len(views), 2)))
    graph.outputs = []
    for name in made:
        if name in chosen:
            value = graph.values[name]
            if value.dtype == "bf16" or value.dtype not in graph_types():
                name = g.like(g.node("Cast", [value], to=1), value, dtype="f32").name
            graph.outputs.append(name)
    graph.tidy()


VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Transpose")


def graph_types():
    from graph import NUMPY
    return NUMPY
