"""Small models with what faults need: a convolution network, a transformer, weights of any size."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


class Builder:
    """Nodes and weights in order; names are numbers."""

    def __init__(self, seed=0):
        self.nodes, self.weights, self.random = [], [], np.random.default_rng(seed)

    def weight(self, *shape, scale=0.1):
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def __call__(self, op, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"{op}_{len(self.nodes)}", **attributes))
        return name

    def model(self, x, y):
        nodes = self.nodes + [helper.make_node("Identity", [y], ["y"], name="out")]
        graph = helper.make_graph(nodes, "g", [x], [helper.make_tensor_value_info("y", F32, None)], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def lenet():
    b = Builder()
    v = "x"
    for channels, before in ((6, 1), (16, 6)):
        v = b("Conv", v, b.weight(channels, before, 5, 5), b.weight(channels), pads=[2, 2, 2, 2])
        v = b("MaxPool", b("Relu", v), kernel_shape=[2, 2], strides=[2, 2])
    v = b("Flatten", v)
    for width, before in ((120, 16 * 49), (84, 120), (10, 84)):
        v = b("Gemm", v, b.weight(before, width), b.weight(width))
        v = b("Relu", v) if width != 10 else b("Softmax", v, axis=1)
    return b.model(helper.make_tensor_value_info("x", F32, [1, 1, 28, 28]), v)


def bert_toy(length=16, width=32, heads=2, layers=2):
    b = Builder(1)

    def norm(v):
        mean = b("ReduceMean", v, axes=[-1])
        d = b("Sub", v, mean)
        root = b("Sqrt", b("Add", b("ReduceMean", b("Mul", d, d), axes=[-1]), b.constant(np.float32(1e-5))))
        return b("Add", b("Mul", b("Div", d, root), b.weight(width, scale=1)), b.weight(width))

    def dense(v, before, after):
        return b("Add", b("MatMul", v, b.weight(before, after)), b.weight(after))

    split = b.constant(np.array([1, length, heads, width // heads], np.int64))
    join = b.constant(np.array([1, length, width], np.int64))
    v = "x"
    for _ in range(layers):
        q, k, w = (b("Transpose", b("Reshape", dense(v, width, width), split), perm=perm)
                   for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scores = b("Softmax", b("Mul", b("MatMul", q, k), b.constant(np.float32((width // heads) ** -0.5))), axis=-1)
        attended = b("Reshape", b("Transpose", b("MatMul", scores, w), perm=[0, 2, 1, 3]), join)
        v = norm(b("Add", v, dense(attended, width, width)))
        h = dense(v, width, 2 * width)
        gelu = b("Mul", b("Mul", h, b.constant(np.float32(0.5))),
                 b("Add", b("Erf", b("Mul", h, b.constant(np.float32(0.5 ** 0.5)))), b.constant(np.float32(1))))
        v = norm(b("Add", v, dense(gelu, 2 * width, width)))
    return b.model(helper.make_tensor_value_info("x", F32, [1, length, width]), v)


def products(width, layers):
    """y = x w w ...: layers * width^2 weights that cost little to compile."""
    b = Builder(2)
    v = "x"
    for _ in range(layers):
        v = b("MatMul", v, b.weight(width, width))
    return b.model(helper.make_tensor_value_info("x", F32, [1, width]), v)


def scaled(width=1536):
    """A chain of constants to fold, 9 MB each."""
    b = Builder(3)
    w = b.weight(width, width)
    for _ in range(4):
        w = b("Mul", w, b.weight(width, scale=1))
    return b.model(helper.make_tensor_value_info("x", F32, [1, width]), b("MatMul", "x", w))


def dynamic():
    """y = x + x over a symbolic dim."""
    b = Builder()
    return b.model(helper.make_tensor_value_info("x", F32, ["s", 1]), b("Add", "x", "x"))


def card():
    """What a device task, a host task between two of them and transfers need, small enough that a simulated run takes a millisecond."""
    b = Builder(3)
    v = b("Relu", b("Conv", "x", b.weight(4, 2, 3, 3), b.weight(4), pads=[1, 1, 1, 1]))
    v = b("Flatten", b("MaxPool", v, kernel_shape=[2, 2], strides=[2, 2]))
    v = b("CumSum", b("MatMul", v, b.weight(16, 8)), b.constant(np.int64(1)))
    v = b("Softmax", b("Add", b("MatMul", v, b.weight(8, 4)), b.weight(4)), axis=1)
    return b.model(helper.make_tensor_value_info("x", F32, [1, 2, 4, 4]), v)
