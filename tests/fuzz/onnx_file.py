"""ONNX models as bytes, without the onnx package: the messages of onnx.proto are written field by field, so that invalid ones
can be written too. Needs Python alone."""
import struct

FLOAT, UINT8, INT8, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE, BFLOAT16, UINT4 = 1, 2, 3, 6, 7, 8, 9, 10, 11, 16, 21


# --- protobuf ---------------------------------------------------------------------------------------------------------
def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """One field: an int is a number, a float 32 bits, text and bytes are themselves, a list is packed."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, list):
        value = b"".join(struct.pack("<f", v) if isinstance(v, float) else varint(v) for v in value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(*fields):
    return b"".join(field(number, value) for number, value in fields)


# --- onnx.proto -------------------------------------------------------------------------------------------------------
def tensor(name, dtype, dims, values=None, raw=None, extra=b""):
    where = {FLOAT: 4, INT64: 7, DOUBLE: 10}.get(dtype, 5)
    data = b"" if values is None else field(where, values)
    if raw is not None:
        data = field(9, raw)
    return b"".join(field(1, d) for d in dims) + message((2, dtype), (8, name)) + data + extra


def external(name, dtype, dims, **entries):
    listed = b"".join(field(13, message((1, key), (2, value))) for key, value in entries.items())
    return tensor(name, dtype, dims, extra=listed + field(14, 1))


def floats(name, dims, value=0.5):
    count = 1
    for dim in dims:
        count *= dim
    return tensor(name, FLOAT, dims, raw=struct.pack("<f", value) * count)


def ints(name, values):
    return tensor(name, INT64, [len(values)], values)


def sparse(values, indices, dims):
    return field(1, values) + field(2, indices) + b"".join(field(3, d) for d in dims)


def info(name, dtype, dims):
    """dims: numbers, names, None for unknown; None alone for no shape."""
    shape = b"" if dims is None else field(2, b"".join(
        field(1, b"" if d is None else field(2 if isinstance(d, str) else 1, d)) for d in dims))
    return message((1, name), (2, field(1, field(1, dtype) + shape)))


class Ref(str):
    """The name of a function's attribute."""


def attribute(name, value):
    name = name.rstrip("_")  # for names that Python has taken
    if isinstance(value, Ref):
        return message((1, name), (21, str(value)))
    if isinstance(value, float):
        return message((1, name), (2, value), (20, 1))
    if isinstance(value, int):
        return message((1, name), (3, value), (20, 2))
    if isinstance(value, str):
        return message((1, name), (4, value), (20, 3))
    if isinstance(value, tuple):  # ("t", bytes) a tensor, ("g", bytes) a graph, ("s", ..) a sparse tensor
        number, kind = {"t": (5, 4), "g": (6, 5), "s": (22, 11)}[value[0]]
        return message((1, name), (number, value[1]), (20, kind))
    number, kind = (7, 6) if value and isinstance(value[0], float) else (8, 7)
    if value and isinstance(value[0], str):
        number, kind = 9, 8
    return message((1, name), *((number, v) for v in value), (20, kind))


def node(op, inputs, outputs, domain="", **attributes):
    return (b"".join(field(1, name) for name in inputs.split()) + b"".join(field(2, name) for name in outputs.split()) +
            message((3, op + "_0"), (4, op)) + b"".join(field(5, attribute(k, v)) for k, v in attributes.items()) +
            (field(7, domain) if domain else b""))


def node_of(op, inputs, outputs, **attributes):
    """As node, with inputs in a list: "" leaves one out."""
    return b"".join(field(1, name) for name in inputs) + node(op, "", outputs, **attributes)


def graph(nodes, inputs=(), outputs=(), weights=(), sparse_weights=(), infos=()):
    return (b"".join(field(1, n) for n in nodes) + field(2, "g") + b"".join(field(5, w) for w in weights) +
            b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs) +
            b"".join(field(13, i) for i in infos) + b"".join(field(15, s) for s in sparse_weights))


def model(nodes, inputs=(), outputs=(), opset=17, extra=b"", ml=3, **parts):
    return (message((1, 8), (2, "seed"), (7, graph(nodes, inputs, outputs, **parts)), (8, field(2, opset)),
                    (8, message((1, "local"), (2, 1))), (8, message((1, "ai.onnx.ml"), (2, ml)))) + extra)


def unary(op, dims, out="y", dtype=FLOAT, weights=(), more="", opset=17, **attributes):
    """One node that reads x and weights."""
    return model([node(op, "x " + more, out, **attributes)], [info("x", dtype, dims)],
                 [info(name, dtype, None) for name in out.split()], opset, weights=weights)
