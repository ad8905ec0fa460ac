"""Products of com.microsoft by their definitions, in float64. Operands are `Tensor`s or None; results are lists of `Tensor`s."""
import numpy as np

from tensors import Tensor, is_float


def at(operands, index):
    return operands[index] if index < len(operands) else None


def unpacked(codes, bits, count):
    """The last axis' bytes as numbers of so many bits, "the first 4 bits are stored in the lower 4 bits of a byte"."""
    codes = codes.astype(np.int64)
    spread = (codes[..., None] >> np.arange(0, 8, bits)) & ((1 << bits) - 1)
    return spread.reshape(*codes.shape[:-1], -1)[..., :count]


def zero_points_of(tensor, bits, shape):
    """One a block: floats as they are, bytes unpacked along the blocks; "2^(bits - 1)" where there are none."""
    if tensor is None:
        return np.full(shape, 1 << (bits - 1))
    if is_float(tensor.kind):
        return tensor.v.reshape(shape)
    return unpacked(tensor.v.reshape(shape[0], -1), bits, shape[1])


def mat_mul_n_bits(operands, attributes, results):
    a, b, scales = operands[:3]
    k, n, block = attributes["K"], attributes["N"], attributes["block_size"]
    bits, blocks = attributes.get("bits", 4), -(-k // block)
    groups, bias = at(operands, 4), at(operands, 5)
    if b.v.size == 0:  # "Y is filled with zeros (or the broadcast bias, if provided)"
        y = np.zeros((*a.shape[:-1], n))
    else:
        codes = unpacked(b.v.reshape(n, -1), bits, blocks * block)
        scale, zero = scales.v.reshape(n, blocks), zero_points_of(at(operands, 3), bits, (n, blocks))
        # Without g_idx an input feature is of the block it lies in; with it, of the one it names.
        block_of = groups.v[:k] if groups is not None else np.arange(k) // block
        weight = (codes[:, :k] - zero[:, block_of]) * scale[:, block_of]
        y = a.v @ weight.T
    return [Tensor(a.kind, y + bias.v if bias is not None else y)]


def transposed_operand(x, swap, batch):
    """`batch`: "transposed on the 1st dimension and batch dimensions (dim-1 to dim-rank-2)"; a vector stays as it is."""
    if x.ndim < 2:
        return x
    x = np.moveaxis(x, 0, -2) if batch else x
    return np.swapaxes(x, -1, -2) if swap else x


def fused_mat_mul(operands, attributes, results):
    a, b = operands
    left = transposed_operand(a.v, attributes.get("transA", 0), attributes.get("transBatchA", 0))
    right = transposed_operand(b.v, attributes.get("transB", 0), attributes.get("transBatchB", 0))
    return [Tensor(a.kind, np.float32(attributes.get("alpha", 1.0)) * np.matmul(left, right))]


def gather_block_quantized(operands, attributes, results):
    data, indices, scales = operands[:3]
    zero_points = at(operands, 3)
    axis, block = attributes.get("gather_axis", 0), attributes.get("block_size", 128)
    values, bits = data.v, attributes.get("bits", 4)
    if data.kind == "u8":  # "packed along the last dimension (low-order bits first)"
        values = unpacked(values, bits, values.shape[-1] * 8 // bits)
    along, axis = attributes.get("quantize_axis", 1) % values.ndim, axis % values.ndim
    extent = values.shape[along]
    block_of = np.arange(extent) // (block or max(extent, 1))
    wide = [d if i == along else values.shape[i] for i, d in enumerate(scales.shape)]
    scale = np.take(np.broadcast_to(scales.v, wide), block_of, along)
    # "the default value is 0 for int4/uint4, or 2^(bits-1) for uint8"
    zero = 1 << (bits - 1) if data.kind == "u8" else 0
    if zero_points is not None:
        zero = zero_points.v
        if data.kind == "u8":
            zero = unpacked(zero, bits, scales.shape[-1])
        zero = np.take(zero, block_of, along)
    table = (values - zero) * scale
    size = table.shape[axis]
    # "an out-of-range index produces zeros for the corresponding output slice"
    inside = (indices.v >= -size) & (indices.v < size)
    picked = np.take(table, np.where(inside, indices.v, 0), axis)
    mask = inside.reshape((1,) * axis + inside.shape + (1,) * (table.ndim - axis - 1))
    return [Tensor(scales.kind, np.where(mask, picked, 0))]


ACTIVATIONS = {
    "Relu": lambda x, a, b, g: np.maximum(x, 0), "Tanh": lambda x, a, b, g: np.tanh(x), "Sigmoid": lambda x, a, b, g: 1 / (1 + np.exp(-x)),
    "LeakyRelu": lambda x, a, b, g: np.where(x < 0, (0.01 if a is None else a) * x, x), "Clip": lambda x, a, b, g: np.clip(x, a, b),
    "HardSigmoid": lambda x, a, b, g: np.clip((0.2 if a is None else a) * x + (0.5 if b is None else b), 0, 1),
    "Elu": lambda x, a, b, g: np.where(x < 0, (1.0 if a is None else a) * np.expm1(np.minimum(x, 0)), x),
    "Softplus": lambda x, a, b, g: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0), "Softsign": lambda x, a, b, g: x / (1 + np.abs(x)),
    "ThresholdedRelu": lambda x, a, b, g: np.where(x > (1.0 if a is None else a), x, 0),
    "ScaledTanh": lambda x, a, b, g: a * np.tanh(b * x), "ParametricSoftplus": lambda x, a, b, g: a * np.logaddexp(0, b * x),
    "Selu": lambda x, a, b, g: (1.0507 if g is None else g) * np.where(x > 0, x, (1.6732 if a is None else a) * np.expm1(np.minimum(x, 0))),
    "HardSwish": lambda x, a, b, g: x * np.clip((1 / 6 if a is None else a) * x + (0.5 if b is None else b), 0, 1),
}


def activated(y, name, parameters):
    alpha, beta, gamma = [*parameters, None, None, None][:3]
    return ACTIVATIONS[name](y, alpha, beta, gamma) if name else y


def fused_gemm(operands, attributes, results):
    a, b = operands[:2]
    y = (a.v.T if attributes.get("transA", 0) else a.v) @ (b.v.T if attributes.get("transB", 0) else b.v)
    y = np.float32(attributes.get("alpha", 1.0)) * y
    if at(operands, 2) is not None:
        y = y + np.float32(attributes.get("beta", 1.0)) * operands[2].v
    named = [attributes.get("activation_" + p) for p in ("alpha", "beta", "gamma")]
    return [Tensor(a.kind, activated(y, attributes.get("activation"), named))]


def centred(tensor, zero_point):
    """Less its zero point, which is one for all or one a column."""
    return tensor.v - (zero_point.v if zero_point is not None else 0)


def column_scales(tensor):
    """One for all, or one a column."""
    return tensor.v.reshape(-1) if tensor.v.size > 1 else tensor.v.reshape(())


def mat_mul_integer_to_float(operands, attributes, results):
    a, b, a_scale, b_scale = operands[:4]
    a_zero, b_zero, bias = (at(operands, i) for i in (4, 5, 6))
    y = np.matmul(centred(a, a_zero), centred(b, b_zero)) * column_scales(a_scale) * column_scales(b_scale)
    return [Tensor(a_scale.kind, y + bias.v if bias is not None else y)]


def dynamically_quantized(x):
    """DynamicQuantizeLinear of ONNX in float32, as that operator's text has it: the range holds 0."""
    x = x.astype(np.float32)
    low, high = np.float32(min(0, x.min(initial=0))), np.float32(max(0, x.max(initial=0)))
    scale = np.float32(high - low) / np.float32(255) if high != low else np.float32(1)
    zero = np.clip(np.rint(np.float32(0) - low / scale), 0, 255)
    return np.clip(np.rint(x / scale) + zero, 0, 255), float(scale), zero


def dynamic_quantize_mat_mul(operands, attributes, results):
    a, b, scale = operands[:3]
    zero, bias = at(operands, 3), at(operands, 4)
    codes, a_scale, a_zero = dynamically_quantized(a.v)
    y = np.matmul(codes - a_zero, centred(b, zero)) * a_scale * column_scales(scale)
    return [Tensor(a.kind, y + bias.v if bias is not None else y)]


DEFINITIONS = {"MatMulNBits": mat_mul_n_bits, "FusedMatMul": fused_mat_mul, "GatherBlockQuantized": gather_block_quantized,
               "FusedGemm": fused_gemm, "MatMulIntegerToFloat": mat_mul_integer_to_float, "DynamicQuantizeMatMul": dynamic_quantize_mat_mul}
