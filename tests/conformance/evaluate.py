"""ONNX graphs by numpy in float64: an oracle for runs that no data set has. Knows the operators of small recurrent models
with branches; those who use it check it on the data sets of the model first. Needs numpy and onnx."""
import numpy as np
import onnx
from onnx import helper, numpy_helper


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def axes_of(attributes, inputs):
    """An attribute in old opsets, an operand in new ones."""
    if "axes" in attributes:
        return tuple(attributes["axes"])
    return tuple(int(a) for a in inputs[1]) if len(inputs) > 1 and inputs[1] is not None else None


def unsqueeze(x, a):
    axes = axes_of(a, x)
    rank = x[0].ndim + len(axes)
    return np.expand_dims(x[0], tuple(axis % rank for axis in axes))


def slice_(x, a):
    starts, ends = (a["starts"], a["ends"]) if "starts" in a else (x[1], x[2])
    axes = a.get("axes") or (x[3] if len(x) > 3 and x[3] is not None else range(len(starts)))
    steps = x[4] if len(x) > 4 and x[4] is not None else [1] * len(starts)
    index = [slice(None)] * x[0].ndim
    for start, end, axis, step in zip(starts, ends, axes, steps):
        count = x[0].shape[axis]
        # numpy's slices clamp as ONNX's do, but read a negative end as counted from the end: what lies before it is None.
        low = None if step < 0 and end < -count else int(end)
        index[axis] = slice(int(start), low, int(step))
    return x[0][tuple(index)]


def conv(x, a):
    """One axis, no groups."""
    strides, pads, data = a.get("strides", [1])[0], a.get("pads", [0, 0]), x[0]
    assert a.get("group", 1) == 1 and a.get("dilations", [1]) == [1] and data.ndim == 3 and a.get("auto_pad", b"NOTSET") == b"NOTSET"
    data = np.pad(data, ((0, 0), (0, 0), tuple(pads)))
    width = x[1].shape[2]
    windows = np.lib.stride_tricks.sliding_window_view(data, width, axis=2)[:, :, ::strides]
    out = np.einsum("bctk,ock->bot", windows, x[1])
    return out + (x[2][:, None] if len(x) > 2 and x[2] is not None else 0)


def pad(x, a):
    low, high = np.split(np.asarray(x[1] if len(x) > 1 else a["pads"]).astype(int), 2)
    mode = a.get("mode", b"constant").decode()
    assert mode in ("constant", "reflect")
    return np.pad(x[0], list(zip(low, high)), mode=mode)


def lstm(x, a):
    data, w, r = x[:3]
    x = list(x) + [None] * (8 - len(x))
    assert x[4] is None and x[7] is None, "neither lengths nor peepholes"
    hidden, count = a["hidden_size"], w.shape[0]
    b = x[3] if x[3] is not None else np.zeros((count, 8 * hidden))
    start = [np.zeros((count, data.shape[1], hidden)) if part is None else part for part in x[5:7]]
    ys, hs, cs = [], [], []
    for d in range(count):
        h, c, rows = start[0][d], start[1][d], []
        backwards = d == 1 or a.get("direction") == b"reverse"
        for step in data[::-1] if backwards else data:
            gates = step @ w[d].T + h @ r[d].T + b[d][:4 * hidden] + b[d][4 * hidden:]
            i, o, f, g = np.split(gates, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            rows.append(h)
        ys.append(np.stack(rows[::-1] if backwards else rows))
        hs.append(h)
        cs.append(c)
    return np.stack(ys, axis=1), np.stack(hs), np.stack(cs)


def reshape(x, a):
    return x[0].reshape([x[0].shape[i] if d == 0 else int(d) for i, d in enumerate(x[1])])


def cast(x, a):
    dtype = helper.mapping.TENSOR_TYPE_TO_NP_TYPE[a["to"]]
    return x[0].astype(np.float64 if dtype.kind == "f" else dtype)


def reduce_mean(x, a):
    return x[0].mean(axis=axes_of(a, x), keepdims=bool(a.get("keepdims", 1)))


def constant_of_shape(x, a):
    value = numpy_helper.to_array(a["value"]).reshape(()) if "value" in a else np.float64(0)
    return widened(np.full([int(d) for d in x[0]], value))


def widened(array):
    return array.astype(np.float64) if array.dtype.kind == "f" else array


OPS = {
    "Add": lambda x, a: x[0] + x[1], "Sub": lambda x, a: x[0] - x[1], "Mul": lambda x, a: x[0] * x[1], "Pow": lambda x, a: x[0]**x[1],
    "MatMul": lambda x, a: x[0] @ x[1], "Sqrt": lambda x, a: np.sqrt(x[0]), "Not": lambda x, a: ~x[0],
    "Equal": lambda x, a: np.asarray(x[0] == x[1]), "Relu": lambda x, a: np.maximum(x[0], 0), "Sigmoid": lambda x, a: sigmoid(x[0]),
    "Tanh": lambda x, a: np.tanh(x[0]), "Identity": lambda x, a: x[0], "Shape": lambda x, a: np.array(x[0].shape),
    "Size": lambda x, a: np.array(x[0].size), "Concat": lambda x, a: np.concatenate(x, axis=a["axis"]),
    "Transpose": lambda x, a: np.transpose(x[0], a.get("perm")), "Squeeze": lambda x, a: np.squeeze(x[0], axes_of(a, x)),
    "Gather": lambda x, a: np.take(x[0], x[1], axis=a.get("axis", 0)), "Unsqueeze": unsqueeze, "Slice": slice_, "Conv": conv,
    "Pad": pad, "LSTM": lstm, "Reshape": reshape, "Cast": cast, "ReduceMean": reduce_mean, "ConstantOfShape": constant_of_shape,
}


def constant(attributes):
    value = next(iter(attributes.values()))
    return widened(numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value))


def run_graph(graph, outer):
    """The outputs, in order; `outer` has the values that the graph sees."""
    values = dict(outer)
    values.update((t.name, widened(numpy_helper.to_array(t))) for t in graph.initializer)
    for node in graph.node:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        inputs = [values[name] if name else None for name in node.input]
        if node.op_type == "Constant":
            results = constant(attributes)
        elif node.op_type == "If":
            results = tuple(run_graph(attributes["then_branch" if inputs[0].item() else "else_branch"], values))
        else:
            results = OPS[node.op_type](inputs, attributes)
        for name, result in zip(node.output, results if isinstance(results, tuple) else (results,)):
            values[name] = result
    return [values[output.name] for output in graph.output]


def evaluate(model, inputs):
    """Outputs by name."""
    results = run_graph(model.graph, {name: widened(value) for name, value in inputs.items()})
    return {output.name: result for output, result in zip(model.graph.output, results)}
