"""Makes a failing graph small: as long as the same failure stays, outputs go, and values become inputs of the graph."""
import copy
import time

from graph import NUMPY

LIMIT_SECONDS = 120


def reduce_graph(checker, graph, seed, failure):
    """The smallest graph that was found to fail alike."""
    end = time.time() + LIMIT_SECONDS
    saved = checker.refused, checker.noisy
    checker.refused, checker.noisy = [], []

    def fails(candidate):
        if time.time() > end or not candidate.outputs:
            return False
        only = {failure.variant, failure.oracle} if failure.what not in ("oracles", "interpreter") else ()
        return any(failure.like(f) for f in checker.check(candidate, seed, only, bindings))

    bindings = [failure.binding]
    if not fails(graph):
        bindings = None  # it takes another run before, or another variant

    if failure.output:
        one = graph.part([failure.output])
        graph = one if fails(one) else graph
    graph = fewer_outputs(graph, fails)
    changed = True
    while changed and time.time() < end:
        changed = False
        for make in (cut_nodes, bypass_nodes):
            smaller = make(graph, fails)
            changed |= smaller is not graph
            graph = smaller
    graph = fewer_outputs(graph, fails)
    checker.refused, checker.noisy = saved
    return graph


def fewer_outputs(graph, fails):
    size = max(1, len(graph.outputs) // 2)
    while size:
        at = 0
        while at < len(graph.outputs) and len(graph.outputs) > 1:
            candidate = graph.part(graph.outputs[:at] + graph.outputs[at + size:])
            if candidate.outputs and fails(candidate):
                graph = candidate
            else:
                at += size
        size //= 2
    return graph


def cut_nodes(graph, fails):
    """Turns results into inputs: of the first half, a quarter, .. of the nodes, then of each."""
    size = max(1, len(graph.nodes) // 2)
    while size:
        at = 0
        while at < len(graph.nodes):
            candidate = without(graph, graph.nodes[at:at + size])
            if candidate is not None and fails(candidate):
                graph = candidate
            else:
                at += size
        size //= 2
    return graph


def without(graph, nodes):
    """The graph with what these nodes give as inputs; None where that has no type."""
    kept = [n for n in graph.nodes if n not in nodes]
    read = {name for node in kept for name in node.reads()}
    given = [name for node in nodes for name in node.outputs if name in read]
    if any(name not in graph.values or graph.values[name].dtype not in NUMPY or not graph.values[name].known for name in given):
        return None
    outputs = [o for o in graph.outputs if not any(o in node.outputs for node in nodes)]
    if not outputs:
        return None
    if any(not plain(d) for name in given for d in graph.values[name].dims):
        return None
    return graph.part(outputs, kept, graph.inputs + [graph.values[name] for name in given])


def plain(dim):
    """Whether an input can have it: a number or one of the graph's names."""
    return dim.static or dim.key.isalpha()


def bypass_nodes(graph, fails):
    """Reads an operand instead of a result that has its type and dims."""
    at = 0
    while at < len(graph.nodes):
        node = graph.nodes[at]
        candidate = bypass(graph, node)
        if candidate is not None and fails(candidate):
            graph = candidate
        else:
            at += 1
    return graph


def bypass(graph, node):
    if len(node.outputs) != 1 or node.outputs[0] not in graph.values or node.outputs[0] in graph.outputs:
        return None
    result = graph.values[node.outputs[0]]
    for name in node.inputs:
        value = graph.values.get(name)
        if value and value.dtype == result.dtype and value.rank == result.rank and all(a.same(b) for a, b in zip(value.dims, result.dims)) \
                and result.lo <= value.lo and value.hi <= result.hi and value.exact >= result.exact:
            nodes = [renamed(n, result.name, name) for n in graph.nodes if n is not node]
            return graph.part(nodes=nodes)
    return None


def renamed(node, old, new):
    if old not in node.reads():
        return node
    node = copy.copy(node)
    node.inputs = [new if n == old else n for n in node.inputs]
    node.attributes = {k: renamed_body(v, old, new) if hasattr(v, "captured") else v for k, v in node.attributes.items()}
    return node


def renamed_body(body, old, new):
    body = copy.copy(body)
    body.nodes = [renamed(n, old, new) for n in body.nodes]
    body.outputs = [new if o == old else o for o in body.outputs]
    return body
