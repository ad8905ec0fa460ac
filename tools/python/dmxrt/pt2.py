"""Archives of exported programs that torch.export.save does not write: with flex_attention.

    from dmxrt import pt2
    pt2.save(torch.export.export(model, inputs), "model.pt2")                # instead of torch.export.save

torch.export makes a program of flex_attention, and torch.export.save (of 2.15) fails on it: an archive's arguments are lists of one
type, and a block mask is a tuple of sizes, tables and a graph. Here the call's arguments stand one by one: query, key, value, the graph of
score_mod, that of mask_mod, the scale, and what the graphs read besides. Tables of blocks are left out: mask_mod says all that they say.
Reading a captured tensor by an index, which torch wraps in a call of its own, is the operator `aten.index` again, and a number that is kept
beside a graph as a tensor stands in it."""
import contextlib
import os


def _arguments(node):
    """flex_attention(query, key, value, score_mod, block_mask, scale, options, buffers of score_mod, of mask_mod), one by one."""
    query, key, value, score_mod, block_mask, scale, _, *buffers = node.args
    return (query, key, value, score_mod, block_mask[-1], scale, *(value for values in buffers for value in values))


def _changes(module, torch):
    """(node, target, arguments) of the calls that a graph shall have."""
    for node in module.graph.nodes:
        if node.op == "get_attr" and node.users and isinstance(number := getattr(module, node.target, None), torch.Tensor) and number.dim() == 0:
            node.meta.setdefault("val", number)
            yield node, torch.ops.aten.scalar_tensor.default, (number.item(),), {"dtype": number.dtype}
        elif node.op != "call_function":
            continue
        elif node.target is torch.ops.higher_order.flex_attention and len(node.args) >= 7 and isinstance(node.args[4], (tuple, list)):
            yield node, node.target, _arguments(node), {}
        elif str(node.target) == "flat_apply" and len(node.args) > 4 and str(node.args[2]).endswith(".ModIndex"):
            yield node, torch.ops.aten.index.Tensor, (node.args[3], list(node.args[4:])), {}


@contextlib.contextmanager
def _writable(program, torch):
    """The program with calls that an archive can hold; it is as before behind the context."""
    before = []
    try:
        for module in program.graph_module.modules():
            for node, *call in list(_changes(module, torch)) if hasattr(module, "graph") else []:
                before.append((node, node.op, node.target, node.args, node.kwargs))
                node.op = "call_function"
                node.target, node.args, node.kwargs = call
        yield
    finally:
        for node, *call in before:
            node.op, node.target, node.args, node.kwargs = call


def save(program, path, **more):
    """torch.export.save, of programs with flex_attention too."""
    import torch

    with _writable(program, torch):
        torch.export.save(program, os.fspath(path), **more)
