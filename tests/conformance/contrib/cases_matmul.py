"""Cases of the products with quantized weights and of FusedMatMul."""
from build import Cases, Random, Tensor, held, np
from definitions_matmul import DEFINITIONS

CASES = Cases(DEFINITIONS)


def n_bits(variant, rows=(3,), k=64, n=24, block=32, bits=4, zero=None, groups=False, bias=False, kind="f32", weights=True, flat=False,
           grouped="shuffled", **attributes):
    """`rows`: the extents before K, or a list of such; `bits`: None leaves them to their default. `zero`: None, "packed" or "float"."""
    if bits:
        attributes["_bits"] = bits
    blocks, bits = -(-k // block), bits or 4
    keep = held if weights else (lambda t: t)

    def shaped(tensor):
        return Tensor(tensor.kind, tensor.v.reshape(-1)) if flat else tensor

    def constants(r):
        b = r.bytes(n, blocks, block * bits // 8)
        scales = shaped(r.uniform(kind, 0.01, 0.06, n, blocks))
        zeros = None
        if zero == "packed":
            zeros = shaped(r.bytes(n, -(-blocks * bits // 8)))
        elif zero == "float":
            zeros = shaped(r.uniform(kind, 0, (1 << bits) - 1, n, blocks))
        order = np.arange(k) // block
        if grouped == "shuffled":
            order = r.random.permutation(order)
        return [keep(b), keep(scales), keep(zeros) if zeros is not None else None, keep(Tensor("i32", order)) if groups else None,
                keep(r.normal(kind, n)) if bias else None]

    def make(extents):
        def one(r):
            if isinstance(rows, list) and weights:  # the model's weights are the same in all its sets
                return [r.normal(kind, *extents, k), *constants(Random(variant))]
            return [r.normal(kind, *extents, k), *constants(r)]
        return one
    makes = [make(e) for e in rows] if isinstance(rows, list) else make(rows)
    CASES.add("MatMulNBits", variant, makes, _K=k, _N=n, _block_size=block, **attributes)


for bits in (2, 4, 8):
    for block in (16, 32, 64, 128, 256):
        zero = (None, "packed", "float")[(block // 16 + bits) % 3]
        n_bits(f"{bits}bits_block{block}", k=2 * block, block=block, bits=bits, zero=zero)
    for zero in ("packed", "float"):
        n_bits(f"{bits}bits_zero_{zero}", bits=bits, zero=zero, k=96)  # an odd number of blocks: a zero point's byte is not full
    n_bits(f"{bits}bits_tail", bits=bits, k=40, zero="packed")  # "blocks that do not divide K": ceil(K / block_size) of them
    n_bits(f"{bits}bits_groups", bits=bits, groups=True, zero="packed", k=128)
    n_bits(f"{bits}bits_f16", bits=bits, kind="f16", zero="packed")
    n_bits(f"{bits}bits_bf16", bits=bits, kind="bf16", zero="float" if bits == 4 else None)
    n_bits(f"{bits}bits_one_row", bits=bits, rows=(1,), n=40, k=128)
n_bits("tail_block16", k=17, block=16)
n_bits("tail_float_zero", k=72, block=64, zero="float")
n_bits("one_row_tail", rows=(1, 1), k=200, n=33, block=128, zero="packed")
n_bits("default_bits_bias", bits=None, bias=True)
n_bits("default_bits_zero", bits=None, zero="packed")
n_bits("bias_and_groups", bias=True, groups=True)
n_bits("bias_and_zero", bias=True, zero="packed", rows=(2, 3))
n_bits("everything", bias=True, zero="float", groups=True, rows=(2, 5), k=96, n=17)
n_bits("groups_in_order", groups=True, grouped="in order", zero="packed")
n_bits("groups_alone_tail", groups=True, k=40)
for level in range(5):
    n_bits(f"accuracy{level}", _accuracy_level=level, zero="packed" if level % 2 else None, rows=(1 + level,))
n_bits("f16_float_zero", kind="f16", zero="float", bias=True)
n_bits("accuracy4_8bits", _accuracy_level=4, bits=8, k=128)
n_bits("not_prepacked", _weight_prepacked=0)
n_bits("rank1", rows=())
n_bits("rank4", rows=(2, 1, 3))
n_bits("many_rows", rows=(37,), k=256, n=70, zero="packed")
n_bits("no_rows", rows=(0,))
n_bits("one_column", n=1, zero="packed")
n_bits("open_rows", rows=[(1, 1), (1, 7), (3, 2)], zero="packed", bias=True)
n_bits("open_rows_f16", rows=[(1, 1), (2, 5)], kind="f16", block=128, k=128)
n_bits("weights_at_run", weights=False, zero="packed")
n_bits("weights_at_run_everything", weights=False, zero="float", groups=True, bias=True)
n_bits("weights_at_run_8bits", weights=False, bits=8)
n_bits("flat_scales", flat=True, zero="packed", k=96)
n_bits("flat_scales_float", flat=True, zero="float")
CASES.add("MatMulNBits", "no_weights", lambda r: [r.normal("f32", 3, 64), held(r.bytes(0, 2, 16)), held(r.uniform("f32", 0, 1, 24, 2))],
          _K=64, _N=24, _block_size=32, group="extended")
CASES.add("MatMulNBits", "no_weights_bias", lambda r: [r.normal("f32", 3, 64), held(r.bytes(24, 0, 16)),
                                                       held(r.uniform("f32", 0, 1, 24, 2)),
          None, None, held(r.normal("f32", 24))], _K=64, _N=24, _block_size=32, group="extended")


def fused(variant, a, b, kind="f32", constant=False, **attributes):
    CASES.add("FusedMatMul", variant, lambda r: [r.normal(kind, *a), (held if constant else lambda t: t)(r.normal(kind, *b))], **attributes)


fused("plain", (3, 4), (4, 5))
fused("alpha", (3, 4), (4, 5), _alpha=0.125)
fused("alpha_constant", (3, 40), (40, 33), _alpha=-1.5, constant=True)
fused("trans_a", (4, 3), (4, 5), _transA=1)
fused("trans_b", (3, 4), (5, 4), _transB=1)
fused("trans_both", (4, 3), (5, 4), _transA=1, _transB=1, _alpha=2.0)
fused("trans_b_batched", (2, 3, 4), (2, 5, 4), _transB=1)
fused("trans_a_broadcast", (2, 1, 4, 3), (6, 4, 5), _transA=1)
fused("batch_a", (3, 2, 4), (2, 4, 5), _transBatchA=1)
fused("batch_b", (2, 3, 4), (4, 2, 5), _transBatchB=1)
fused("batch_a_trans", (4, 2, 3), (2, 4, 5), _transBatchA=1, _transA=1)
fused("batch_b_trans", (2, 3, 4), (5, 2, 4), _transBatchB=1, _transB=1)
fused("batch_both_rank4", (3, 2, 6, 4), (4, 2, 6, 5), _transBatchA=1, _transBatchB=1, _alpha=0.5)
fused("everything", (4, 2, 6, 3), (5, 2, 6, 4), _transBatchA=1, _transBatchB=1, _transA=1, _transB=1, _alpha=0.25)
fused("vector_left", (4,), (4, 5), _transA=1)
fused("vector_right", (3, 4), (4,), _transB=1)
fused("zeros", (3, 4), (4, 5), _transA=0, _transB=0, _transBatchA=0, _transBatchB=0, _alpha=1.0)
for kind in ("f16", "f64", "bf16"):
    fused(kind, (2, 3, 4), (5, 4), kind=kind, _transB=1, _alpha=0.5)
CASES.add("FusedMatMul", "open", [lambda r, b=b, s=s: [r.normal("f32", b, s, 8), r.normal("f32", b, s, 8)] for b, s in ((1, 5), (2, 3))],
          _transB=1, _alpha=0.35)


def gather(variant, data, indices, scales, zeros=None, results=(1,), **more):
    keep = held if more.pop("constant", True) else (lambda t: t)
    CASES.add("GatherBlockQuantized", variant, lambda r: [keep(data(r)), indices(r),
                                                          keep(scales(r))] + ([keep(zeros(r))] if zeros else []), results, **more)


def codes(kind, *shape):
    low, high = {"u4": (0, 15), "i4": (-8, 7), "u8": (0, 255)}[kind]
    return lambda r: r.integers(kind, low, high, *shape)


def some(*shape, high=9, low=0, kind="i64"):
    return lambda r: r.integers(kind, low, high, *shape)


def scale(*shape, kind="f32"):
    return lambda r: r.uniform(kind, 0.01, 0.1, *shape)


for kind in ("u4", "i4"):
    gather(f"{kind}", codes(kind, 10, 64), some(3), scale(10, 2), _block_size=32)
    gather(f"{kind}_zero", codes(kind, 10, 64), some(2, 3, kind="i32"), scale(10, 2), codes(kind, 10, 2), _block_size=32)
    gather(f"{kind}_axis1", codes(kind, 4, 10, 32), some(3), scale(4, 10, 2), _block_size=16, _gather_axis=1, _quantize_axis=2)
    gather(f"{kind}_quantized_rows", codes(kind, 32, 10), some(3), scale(2, 10), codes(kind, 2, 10), _block_size=16, _gather_axis=1,
           _quantize_axis=0)
    gather(f"{kind}_negative_axes", codes(kind, 4, 10, 32), some(2), scale(4, 10, 1), _block_size=32, _gather_axis=-2, _quantize_axis=-1)
    gather(f"{kind}_f16", codes(kind, 10, 32), some(3), scale(10, 2, kind="f16"), codes(kind, 10, 2), _block_size=16)
for bits in (2, 4, 8):
    width = 64 * bits // 8
    gather(f"u8_{bits}bits", codes("u8", 10, width), some(2, 2), scale(10, 2), _bits=bits, _block_size=32)
    gather(f"u8_{bits}bits_zero", codes("u8", 10, width), some(4), scale(10, 4), codes("u8", 10, 4 * bits // 8), _bits=bits, _block_size=16)
gather("u8_default_bits", codes("u8", 10, 64), some(3), scale(10, 1))
gather("default_block", codes("u4", 10, 256), some(3), scale(10, 2))
gather("tail", codes("u4", 10, 40), some(3), scale(10, 2), codes("u4", 10, 2), _block_size=32)
gather("u8_tail", codes("u8", 10, 20), some(3), scale(10, 2), codes("u8", 10, 1), _block_size=32)
gather("scalar_index", codes("u4", 10, 32), some(), scale(10, 2), _block_size=16)
gather("negative_indices", codes("i4", 10, 32), some(2, 4, low=-10), scale(10, 2), _block_size=16)
gather("beyond", codes("u4", 10, 32), lambda r: Tensor("i64", [3, 10, -11, 9]), scale(10, 2), _block_size=16, group="extended")
gather("bf16", codes("u4", 10, 32), some(3), scale(10, 2, kind="bf16"), codes("u4", 10, 2), _block_size=16)
gather("u8_bf16", codes("u8", 10, 16), some(3), scale(10, 2, kind="bf16"), _block_size=16)
gather("u8_f16", codes("u8", 10, 16), some(3, kind="i32"), scale(10, 2, kind="f16"), _block_size=16)
gather("data_at_run", codes("u8", 10, 16), some(3), scale(10, 2), codes("u8", 10, 1), _block_size=16, constant=False, group="extended")
def opened(*shape):
    data, scales = np.arange(160).reshape(10, 16), np.arange(1, 21).reshape(10, 2) / 64
    return lambda r: [held(Tensor("u8", data)), r.integers("i64", 0, 9, *shape), held(Tensor("f32", scales))]


CASES.add("GatherBlockQuantized", "open", [opened(1, 1), opened(2, 5)], _block_size=16)
for kind in ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1"):
    gather(kind, lambda r, k=kind: r.codes(k, 10, 32), some(3), scale(10, 2), _block_size=16, opset=23, group="extended")
gather("f8e4m3fn_rows", lambda r: r.codes("f8e4m3fn", 10, 32), some(3), scale(10, 1), _block_size=0, opset=23, group="extended")
gather("f4e2m1_one_scale", lambda r: r.codes("f4e2m1", 10, 32), some(3), scale(1, 1, kind="f16"), _block_size=0, opset=23, group="extended")
