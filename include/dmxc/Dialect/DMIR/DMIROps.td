//===- DMIROps.td - the ops of DMIR -----------------------------*- tablegen -*-===//
#ifndef DMXC_DIALECT_DMIR_OPS
#define DMXC_DIALECT_DMIR_OPS

include "dmxc/Dialect/DMIR/DMIRBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

//===--- Constants ------------------------------------------------------------===//

def DMIR_ConstantOp : DMIR_BaseOp<"constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a tensor known at compile time";
  let description = [{
    The value is `dense<...>` (small), `dense_resource<...>` (computed by the compiler) or
    `#dmir.file<...>` (bytes that stay in the model's file); the bytes of a block_fp constant are its wire format.
    C1: the value's type is the result's type. C2: a block_fp tensor is static and has a wire format.
  }];
  let arguments = (ins TypedAttrInterface:$value);
  let results = (outs DMIR_AnyTensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def DMIR_UndefOp : DMIR_BaseOp<"undef", [Pure]> {
  let summary = "a tensor whose elements nobody has written yet";
  let description = "What loops over tiles start from. Nothing reads an element before it is inserted; the interpreter has 0 there. C1: static shape.";
  let results = (outs DMIR_AnyTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def DMIR_DimTensorOp : DMIR_Op<"dim_tensor"> {
  let summary = "sizes as a tensor";
  let description = [{
    An i64 vector of `values`; where one is dynamic, of the next of `dims`. C1: as many dims as dynamic values.
  }];
  let arguments = (ins DenseI64ArrayAttr:$values, OptionalAttr<DMIR_DimsAttr>:$dims);
  let results = (outs DMIR_Tensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def DMIR_DefineDimsOp : DMIR_BaseOp<"define_dims", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "symbols whose values are elements of a tensor";
  let description = [{
    Symbol i is element i; the run fails unless it lies in `[0, max i]`. Types after this op may mention the symbols, types before may not.
    C1: one symbol and one max an element of the i64 vector; no symbol is named twice.
  }];
  let arguments = (ins RankedTensorOf<[I64]>:$input, StrArrayAttr:$symbols, DMIR_DimsAttr:$max);
  let assemblyFormat = "$input attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def DMIR_IotaOp : DMIR_TypedOp<"iota"> {
  let summary = "the index along one axis";
  let description = "`result[i0, ..] = i_axis`, converted to the element type. C1: 0 <= axis < rank.";
  let arguments = (ins I64Attr:$axis);
  let results = (outs DMIR_NumberTensor:$result);
}

//===--- Elementwise, one operand ---------------------------------------------===//

def DMIR_NegOp   : DMIR_UnaryOp<"neg", DMIR_NumberTensor, "-x (integers wrap)">;
def DMIR_AbsOp   : DMIR_UnaryOp<"abs", DMIR_NumberTensor, "|x| (the smallest integer wraps to itself)">;
def DMIR_SignOp  : DMIR_UnaryOp<"sign", DMIR_NumberTensor, "sign(x): -1, 0 or 1; NaN stays NaN">;
def DMIR_CeilOp  : DMIR_UnaryOp<"ceil", DMIR_FloatTensor, "ceil(x)">;
def DMIR_FloorOp : DMIR_UnaryOp<"floor", DMIR_FloatTensor, "floor(x)">;
def DMIR_RoundOp : DMIR_UnaryOp<"round", DMIR_FloatTensor, "x rounded to the nearest integer, ties to even">;
def DMIR_SqrtOp  : DMIR_UnaryOp<"sqrt", DMIR_FloatTensor, "sqrt(x)">;
def DMIR_ReciprocalOp : DMIR_UnaryOp<"reciprocal", DMIR_FloatTensor, "1/x">;
def DMIR_ExpOp   : DMIR_UnaryOp<"exp", DMIR_FloatTensor, "exp(x)">;
def DMIR_LogOp   : DMIR_UnaryOp<"log", DMIR_FloatTensor, "ln(x)">;
def DMIR_Log2Op  : DMIR_UnaryOp<"log2", DMIR_FloatTensor, "log2(x), exact for powers of two">;
def DMIR_Log1pOp : DMIR_UnaryOp<"log1p", DMIR_FloatTensor, "ln(1 + x), accurate near 0">;
def DMIR_Expm1Op : DMIR_UnaryOp<"expm1", DMIR_FloatTensor, "exp(x) - 1, accurate near 0">;
def DMIR_SinOp   : DMIR_UnaryOp<"sin", DMIR_FloatTensor, "sin(x)">;
def DMIR_CosOp   : DMIR_UnaryOp<"cos", DMIR_FloatTensor, "cos(x)">;
def DMIR_TanOp   : DMIR_UnaryOp<"tan", DMIR_FloatTensor, "tan(x)">;
def DMIR_AsinOp  : DMIR_UnaryOp<"asin", DMIR_FloatTensor, "asin(x)">;
def DMIR_AcosOp  : DMIR_UnaryOp<"acos", DMIR_FloatTensor, "acos(x)">;
def DMIR_AtanOp  : DMIR_UnaryOp<"atan", DMIR_FloatTensor, "atan(x)">;
def DMIR_SinhOp  : DMIR_UnaryOp<"sinh", DMIR_FloatTensor, "sinh(x)">;
def DMIR_CoshOp  : DMIR_UnaryOp<"cosh", DMIR_FloatTensor, "cosh(x)">;
def DMIR_TanhOp  : DMIR_UnaryOp<"tanh", DMIR_FloatTensor, "tanh(x)">;
def DMIR_AsinhOp : DMIR_UnaryOp<"asinh", DMIR_FloatTensor, "asinh(x)">;
def DMIR_AcoshOp : DMIR_UnaryOp<"acosh", DMIR_FloatTensor, "acosh(x)">;
def DMIR_AtanhOp : DMIR_UnaryOp<"atanh", DMIR_FloatTensor, "atanh(x)">;
def DMIR_ErfOp   : DMIR_UnaryOp<"erf", DMIR_FloatTensor, "erf(x)">;
def DMIR_SigmoidOp : DMIR_UnaryOp<"sigmoid", DMIR_FloatTensor, "1 / (1 + exp(-x))">;
def DMIR_SiluOp  : DMIR_UnaryOp<"silu", DMIR_FloatTensor, "x * sigmoid(x)">;
def DMIR_GeluOp  : DMIR_UnaryOp<"gelu", DMIR_FloatTensor, "x * (1 + erf(x / sqrt(2))) / 2">;
def DMIR_GeluTanhOp : DMIR_UnaryOp<"gelu_tanh", DMIR_FloatTensor, "x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2">;
def DMIR_HardSwishOp : DMIR_UnaryOp<"hard_swish", DMIR_FloatTensor, "x * min(max(x + 3, 0), 6) / 6">;
def DMIR_SoftplusOp : DMIR_UnaryOp<"softplus", DMIR_FloatTensor, "ln(1 + exp(x))">;
def DMIR_RsqrtOp : DMIR_UnaryOp<"rsqrt", DMIR_FloatTensor, "1 / sqrt(x)">;
def DMIR_ReluOp  : DMIR_UnaryOp<"relu", DMIR_NumberTensor, "max(x, 0); NaN stays NaN">;
def DMIR_NotOp   : DMIR_UnaryOp<"not", DMIR_LogicTensor, "logical not of bools, bitwise not of integers">;

class DMIR_TestOp<string mnemonic, string formula> : DMIR_Op<mnemonic, [DMIR_Elementwise]> {
  let summary = formula;
  let description = "Elementwise `" # formula # "`. C1: the result is i1 of the operand's shape.";
  let arguments = (ins DMIR_FloatTensor:$input);
  let results = (outs DMIR_BoolTensor:$result);
  let extraClassDefinition = "DMIR_INFER($cppClass) { return inferTest(context, op.getInput(), results); }";
}
def DMIR_IsNaNOp : DMIR_TestOp<"is_nan", "x is NaN">;
def DMIR_IsInfOp : DMIR_TestOp<"is_inf", "x is plus or minus infinity">;

def DMIR_CastOp : DMIR_TypedOp<"cast", [DMIR_Elementwise]> {
  let summary = "conversion to another element type";
  let description = [{
    float -> narrower float rounds to nearest even, once; float -> int truncates toward zero (out of range and NaN:
    see bundle numerics; never undefined behaviour); int -> narrower int wraps; anything -> bool is `x != 0`. For
    float -> f8/f4, `saturate` clamps out-of-range values to the largest finite one.
    float -> block_fp quantizes to nearest even, f64 through f32. block_fp -> f32 is exact; to f16 it is the array's
    rounding: subnormals flushed, overflow saturated; other floats go through f32. block_fp -> block_fp goes through
    exact values. That rounds twice, which the verifier warns of unless the attribute `dmir.rounds_twice` says that it
    is meant.
    C1: equal shapes. C2: block_fp is cast from and to floats and block_fp only. C3: a block_fp tensor is static and
    has a wire format. C4: f8E8M0FNU is not cast; its bits are an exponent that `dmir.bitcast` gives.
  }];
  let arguments = (ins DMIR_AnyTensor:$input, DefaultValuedAttr<BoolAttr, "true">:$saturate);
  let results = (outs DMIR_AnyTensor:$result);
  let hasFolder = 1;
}

def DMIR_BitcastOp : DMIR_TypedOp<"bitcast", [DMIR_Elementwise]> {
  let summary = "the same bits as another element type";
  let description = [{
    Each element keeps its bits, NaN payloads included. C1: equal shapes. C2: elements of equal width, none of them bool.
  }];
  let arguments = (ins RankedTensorOf<[DMIR_Int, DMIR_Float, F8E8M0FNU]>:$input);
  let results = (outs RankedTensorOf<[DMIR_Int, DMIR_Float, F8E8M0FNU]>:$result);
}

//===--- Elementwise, two and three operands ----------------------------------===//

def DMIR_AddOp : DMIR_BinaryOp<"add", DMIR_SumTensor, "a + b",
    "Integers wrap; BFP32_1 is added in f32 and rounded, as the array accumulates."> { let hasFolder = 1; }
def DMIR_SubOp : DMIR_BinaryOp<"sub", DMIR_NumberTensor, "a - b", "Integers wrap."> { let hasFolder = 1; }
def DMIR_MulOp : DMIR_BinaryOp<"mul", DMIR_NumberTensor, "a * b", "Integers wrap."> { let hasFolder = 1; }
def DMIR_DivOp : DMIR_BinaryOp<"div", DMIR_NumberTensor, "a / b",
    "Integers truncate toward zero; division by zero is a run-time error."> { let hasFolder = 1; }
def DMIR_ModOp : DMIR_BinaryOp<"mod", DMIR_NumberTensor, "a - floor(a / b) * b",
    "The result has the divisor's sign (Python's %).">;
def DMIR_FmodOp : DMIR_BinaryOp<"fmod", DMIR_NumberTensor, "a - trunc(a / b) * b",
    "The result has the dividend's sign (C's fmod and %); exact for floats.">;
def DMIR_PowOp : DMIR_BinaryOp<"pow", DMIR_NumberTensor, "a ** b",
    "Floats as C99 pow; integers by repeated multiplication, wrapping, a negative exponent gives 0 unless |a| is 1.">;
def DMIR_MaxOp : DMIR_BinaryOp<"max", DMIR_NumberTensor, "max(a, b)", "NaN if either is NaN.">;
def DMIR_MinOp : DMIR_BinaryOp<"min", DMIR_NumberTensor, "min(a, b)", "NaN if either is NaN.">;
def DMIR_AndOp : DMIR_BinaryOp<"and", DMIR_LogicTensor, "a & b">;
def DMIR_OrOp  : DMIR_BinaryOp<"or", DMIR_LogicTensor, "a | b">;
def DMIR_XorOp : DMIR_BinaryOp<"xor", DMIR_LogicTensor, "a ^ b">;
def DMIR_ShlOp : DMIR_BinaryOp<"shl", RankedTensorOf<[DMIR_Int]>, "a << b", "0 when b >= the width.">;
def DMIR_ShrOp : DMIR_BinaryOp<"shr", RankedTensorOf<[DMIR_Int]>, "a >> b",
    "Arithmetic for signed types, logical for unsigned ones; b >= the width shifts everything out.">;

def DMIR_CompareOp : DMIR_Op<"compare", [DMIR_Elementwise]> {
  let summary = "elementwise comparison";
  let description = "IEEE ordered comparison (`ne` is true for NaN). C1: equal element types. C2: shapes broadcast.";
  let arguments = (ins DMIR_CompareAttr:$kind, DMIR_Tensor:$lhs, DMIR_Tensor:$rhs);
  let results = (outs DMIR_BoolTensor:$result);
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
}

def DMIR_SelectOp : DMIR_Op<"select", [DMIR_Elementwise]> {
  let summary = "condition ? a : b";
  let description = "C1: equal element types of the two values. C2: the three shapes broadcast.";
  let arguments = (ins DMIR_BoolTensor:$condition, DMIR_Tensor:$onTrue, DMIR_Tensor:$onFalse);
  let results = (outs DMIR_Tensor:$result);
}

//===--- Data movement --------------------------------------------------------===//

def DMIR_ReshapeOp : DMIR_TypedOp<"reshape", [DMIR_DataMovement]> {
  let summary = "the same elements in row-major order under another shape";
  let description = "C1: equal element types. C2: equal element counts.";
  let arguments = (ins DMIR_Tensor:$input);
  let results = (outs DMIR_Tensor:$result);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def DMIR_BroadcastOp : DMIR_TypedOp<"broadcast", [DMIR_DataMovement]> {
  let summary = "numpy broadcast to a larger shape";
  let description = "C1: equal element types. C2: the operand's shape, aligned right, has the result's dim or 1 on each axis.";
  let arguments = (ins DMIR_Tensor:$input);
  let results = (outs DMIR_Tensor:$result);
  let hasFolder = 1;
}

def DMIR_TransposeOp : DMIR_Op<"transpose", [DMIR_DataMovement]> {
  let summary = "permutation of axes";
  let description = [{
    `result.dim(i) = input.dim(permutation[i])`. Exchanging the last two dimensions of block_fp turns R into C and back and
    moves nothing.
    C1: permutation is one of 0..rank-1. C2: the last two dimensions of a block_fp tensor stay the last two.
  }];
  let arguments = (ins DMIR_AnyTensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs DMIR_AnyTensor:$result);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def DMIR_SliceOp : DMIR_Op<"slice", [DMIR_DataMovement]> {
  let summary = "regular sub-tensor";
  let description = [{
    `result[i] = input[starts + i * steps]` with `sizes` elements an axis. Steps may be negative, not zero.
    Dynamic starts and then dynamic sizes are the `dims`.
    C1: one start, size and step an axis, a dim for each dynamic one. C2: every index read lies inside the operand. C3: along its blocked dimension
    block_fp is cut at multiples of the block, with step 1; the size is a multiple too or reaches the end.
  }];
  let arguments = (ins DMIR_AnyTensor:$input, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$sizes,
                       DenseI64ArrayAttr:$steps, OptionalAttr<DMIR_DimsAttr>:$dims);
  let results = (outs DMIR_AnyTensor:$result);
  let hasFolder = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::dmxc::Dim> getStartDims();
    ::llvm::SmallVector<::dmxc::Dim> getSizeDims();
  }];
}

def DMIR_PadOp : DMIR_Op<"pad", [DMIR_DataMovement]> {
  let summary = "padding around and between elements";
  let description = [{
    Adds `low[i]`/`high[i]` elements at the ends of axis i and `interior[i]` between neighbours (constant mode
    only). Dynamic ones of `low` and then of `high` are the `dims`. Modes: constant (the scalar `value`), edge, reflect (without repeating the edge), wrap.
    C1: one low, high, interior an axis, none negative, a dim for each dynamic one. C2: the value is a rank-0 tensor of the operand's element type.
    C3: reflect needs low, high < dim; edge and wrap need dim > 0 where they pad; interior is 0 unless constant.
  }];
  let arguments = (ins DMIR_Tensor:$input, DMIR_Tensor:$value, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DenseI64ArrayAttr:$interior, DefaultValuedAttr<DMIR_PadModeAttr, "PadMode::constant">:$mode,
                       OptionalAttr<DMIR_DimsAttr>:$dims);
  let results = (outs DMIR_Tensor:$result);
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::dmxc::Dim> getLowDims();
    ::llvm::SmallVector<::dmxc::Dim> getHighDims();
  }];
}

def DMIR_ConcatOp : DMIR_Op<"concat", [DMIR_DataMovement]> {
  let summary = "tensors joined along an axis";
  let description = [{
    C1: at least one operand. C2: equal element types, ranks and dims but along `axis`. C3: 0 <= axis < rank.
    C4: along the blocked dimension of block_fp every operand but the last has a multiple of the block.
  }];
  let arguments = (ins Variadic<DMIR_AnyTensor>:$inputs, I64Attr:$axis);
  let results = (outs DMIR_AnyTensor:$result);
  let hasFolder = 1;
}

def DMIR_PadBlocksOp : DMIR_TypedOp<"pad_blocks", [DMIR_DataMovement]> {
  let summary = "block floating point continued with zeros to a larger shape";
  let description = [{
    Zeros change no block's scale and no product. The wire format is padded to whole tiles anyway, so that growing to
    them moves nothing.
    C1: equal element types, block_fp with a wire format, and equal ranks. C2: static shapes, and only the last two dimensions grow.
  }];
  let arguments = (ins DMIR_AnyTensor:$input);
  let results = (outs DMIR_AnyTensor:$result);
  let hasFolder = 1;
}

def DMIR_GatherOp : DMIR_Op<"gather", [DMIR_DataMovement]> {
  let summary = "slices picked along an axis by index";
  let description = [{
    `result[p.., i.., q..] = data[p.., indices[i..], q..]`; negative indices count from the end; out of range is a
    run-time error. C1: 0 <= axis < rank of data.
  }];
  let arguments = (ins DMIR_Tensor:$data, DMIR_IndexTensor:$indices, I64Attr:$axis);
  let results = (outs DMIR_Tensor:$result);
}

def DMIR_GatherElementsOp : DMIR_Op<"gather_elements", [DMIR_DataMovement]> {
  let summary = "elements picked along an axis, one index a result element";
  let description = [{
    `result[i..] = data[i.. with axis replaced by indices[i..]]`. Negative indices count from the end.
    C1: equal ranks, 0 <= axis < rank. C2: dims of indices <= dims of data off the axis.
  }];
  let arguments = (ins DMIR_Tensor:$data, DMIR_IndexTensor:$indices, I64Attr:$axis);
  let results = (outs DMIR_Tensor:$result);
}

def DMIR_GatherNDOp : DMIR_Op<"gather_nd", [DMIR_DataMovement]> {
  let summary = "slices picked by index tuples";
  let description = [{
    The last axis of indices holds tuples into data's axes after `batchDims` common leading axes (ONNX GatherND).
    C1: batchDims < both ranks and the leading dims are equal. C2: the tuple length is static and <= rank of data - batchDims.
  }];
  let arguments = (ins DMIR_Tensor:$data, DMIR_IndexTensor:$indices, DefaultValuedAttr<I64Attr, "0">:$batchDims);
  let results = (outs DMIR_Tensor:$result);
}

def DMIR_DequantizeOp : DMIR_TypedOp<"dequantize"> {
  let summary = "integers of few bits as floats, with a scale a block";
  let description = [{
    `result[i..] = (q[i..] - zero - zero_points[b..]) * scale[b..]`, computed in f32 (f64) and rounded once; b is i with
    `i[axis] / block` at the axis, and 0 where scale has one element. q are integers of `bits` bits that lie densely in the bytes of
    x along its last axis, the first one in the lowest bits, each row in bytes of its own: two's complement where x is i8, else
    unsigned. zero_points are such integers too, or floats, where they are there. Constants are not folded where a product reads
    the result: they keep their bits in the bundle.
    C1: bits is 2, 4 or 8; x has the result's dims, but for the last one, which has the bytes. C2: 0 <= axis < rank, block > 0; scale is
    a float, f64 if and only if the result is, and has its rank; each of its dims is 1 or the result's, at the axis the number of blocks.
    C3: zero_points have the type of scale, or x's element type and scale's dims, the last one in bytes.
  }];
  let arguments = (ins RankedTensorOf<[I8, UI8]>:$input, DMIR_FloatTensor:$scale,
                       Optional<RankedTensorOf<[I8, UI8, DMIR_Float]>>:$zeroPoints, I64Attr:$bits, I64Attr:$axis, I64Attr:$block,
                       DefaultValuedAttr<I64Attr, "0">:$zero);
  let results = (outs DMIR_FloatTensor:$result);
}

def DMIR_RoundBlocksOp : DMIR_Op<"round_blocks"> {
  let summary = "numbers as 8-bit multiples of a scale a block of their row";
  let description = [{
    Blocks are `block` numbers that follow one another along the last axis; a row's last one may be shorter. Of the greatest magnitude m of a block the scale is
    `m / 127`, or 0 where that is no normal number; each number becomes `round(x / scale) * scale`, ties to even, of a scale of 0 it becomes 0. Of a block with
    a number that is not finite all become NaN. Computed in f32, each step rounded. C1: f32, of rank 1 or more. C2: block > 0.
  }];
  let arguments = (ins DMIR_FloatTensor:$input, I64Attr:$block);
  let results = (outs DMIR_FloatTensor:$result);
}

def DMIR_ScatterElementsOp : DMIR_Op<"scatter_elements"> {
  let summary = "a copy of data with elements replaced or combined along an axis";
  let description = [{
    For each i of updates, in row-major order: `result[i with axis = indices[i]] (mode)= updates[i]`.
    C1: equal ranks, 0 <= axis < rank. C2: indices and updates have equal shapes. C3: equal element types of data and updates.
  }];
  let arguments = (ins DMIR_Tensor:$data, DMIR_IndexTensor:$indices, DMIR_Tensor:$updates, I64Attr:$axis,
                       DefaultValuedAttr<DMIR_ScatterModeAttr, "ScatterMode::replace">:$mode);
  let results = (outs DMIR_Tensor:$result);
}

def DMIR_ScatterNDOp : DMIR_Op<"scatter_nd"> {
  let summary = "a copy of data with slices replaced or combined at index tuples";
  let description = [{
    The last axis of indices holds tuples into data's leading axes; updates has shape
    `indices.shape[:-1] + data.shape[tuple length:]`. Applied in row-major order.
    C1: tuple length <= rank of data. C2: updates has that shape. C3: equal element types of data and updates.
  }];
  let arguments = (ins DMIR_Tensor:$data, DMIR_IndexTensor:$indices, DMIR_Tensor:$updates,
                       DefaultValuedAttr<DMIR_ScatterModeAttr, "ScatterMode::replace">:$mode);
  let results = (outs DMIR_Tensor:$result);
}

//===--- Reductions and scans -------------------------------------------------===//

def DMIR_ReduceOp : DMIR_Op<"reduce"> {
  let summary = "reduction over axes";
  let description = [{
    f16 and bf16 accumulate in f32 and round once. max/min are NaN if any element is. An empty reduction
    gives 0 (sum), 1 (prod), the lowest/highest value (max/min; -inf/+inf for floats), NaN (mean of floats), 0 (mean of integers).
    Integer mean truncates toward zero. With `keepDims` reduced axes stay as 1.
    C1: axes sorted, unique, in range.
  }];
  let arguments = (ins DMIR_ReductionAttr:$kind, DMIR_Tensor:$input, DenseI64ArrayAttr:$axes, DefaultValuedAttr<BoolAttr, "true">:$keepDims);
  let results = (outs DMIR_Tensor:$result);
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
}

def DMIR_ArgReduceOp : DMIR_Op<"arg_reduce"> {
  let summary = "index of the largest or smallest element along an axis";
  let description = [{
    i64 result; of equal elements the first, or the last with `selectLast`. The axis stays as 1 with `keepDims`.
    C1: 0 <= axis < rank. C2: the axis is not empty.
  }];
  let arguments = (ins DMIR_ExtremumAttr:$kind, DMIR_NumberTensor:$input, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "true">:$keepDims,
                       DefaultValuedAttr<BoolAttr, "false">:$selectLast);
  let results = (outs DMIR_Tensor:$result);
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
}

def DMIR_CumSumOp : DMIR_Op<"cumsum"> {
  let summary = "running sum along an axis";
  let description = "`exclusive` leaves out the element itself, `reverse` runs from the end. C1: 0 <= axis < rank.";
  let arguments = (ins DMIR_NumberTensor:$input, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$exclusive,
                       DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs DMIR_NumberTensor:$result);
}

def DMIR_TopKOp : DMIR_Op<"top_k"> {
  let summary = "the k largest or smallest elements along an axis, sorted, and their indices";
  let description = "Of equal elements the lower index comes first. Results: values, i64 indices. A dynamic k is the one of `dims`. C1: 0 <= axis < rank. C2: 0 <= k <= dim.";
  let arguments = (ins DMIR_NumberTensor:$input, I64Attr:$k, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "true">:$largest,
                       OptionalAttr<DMIR_DimsAttr>:$dims);
  let results = (outs DMIR_NumberTensor:$values, DMIR_Tensor:$indices);
}

def DMIR_GreedySelectOp : DMIR_Op<"greedy_select"> {
  let summary = "candidates taken in order, each unless one taken before excludes it";
  let description = [{
    For each row b, with i rising: `result[b, i] = candidates[b, i] and fewer than limit are taken and no j < i has
    result[b, j] and excludes[b, j, i]`. Non-maximum suppression is this op over candidates sorted by score.
    C1: candidates `[b, n]`, excludes `[b, n, n]`, limit a scalar.
  }];
  let arguments = (ins DMIR_BoolTensor:$candidates, DMIR_BoolTensor:$excludes, RankedTensorOf<[I64]>:$limit);
  let results = (outs DMIR_BoolTensor:$result);
}

//===--- Linear algebra -------------------------------------------------------===//

def DMIR_MatMulOp : DMIR_Op<"matmul"> {
  let summary = "batched matrix product";
  let description = [{
    `result[b.., m, n] = sum_k lhs[b.., m, k] * rhs[b.., k, n]`; leading axes broadcast. f16/bf16 accumulate in f32 and
    round once, or the f32 sum is the result; integers wrap. Integers of 8 bits may be summed in i32, and then one may be signed and the other not.
    block_fp operands multiply as schemas/blockfp/NUMERICS.md says: `dmir.tree_tiles` (default 16) tiles along k
    are reduced by a balanced tree in f32 and rounded to BFP32_1; longer k adds chunk after chunk, each sum rounded to
    BFP32_1. The result is that BFP32_1, or it as f32 (exact) or f16 (rounded once, saturated).
    C1: ranks >= 2. C2: equal element types (an f32 result of f16/bf16 is the sum), or block_fp both, or i8 and ui8 with an i32 result. C3: the k dims agree. C4: leading axes broadcast.
    C5: a block_fp lhs is R, its rhs C. C6: block_fp operands have equal p and block, p is 4, 8 or 16. C7: their result is BFP32_1,
    f32 or f16. C8: `dmir.tree_tiles` is an integer from 1 to 64.
  }];
  let arguments = (ins DMIR_NumberOrBlockTensor:$lhs, DMIR_NumberOrBlockTensor:$rhs);
  let results = (outs DMIR_NumberOrBlockTensor:$result);
  let hasVerifier = 1;
}

def DMIR_GroupedMatMulOp : DMIR_Op<"grouped_matmul"> {
  let summary = "product of each row with the matrix of its group";
  let description = [{
    `result[i, n] = sum_k lhs[i, k] * rhs[g, k, n]` where g is the group of row i, the first with `i < ends[g]`: groups are
    rows that follow one another, as tokens sorted by the expert that takes them. Rows from the largest of `ends` on belong
    to no group and give 0; a group whose end is not above those before it has no rows. f16/bf16 accumulate in f32 and round once.
    C1: lhs `[m, k]`, rhs `[groups, k, n]`, ends `[groups]`, groups >= 1. C2: lhs and rhs are floats of one type. C3: k and groups agree.
  }];
  let arguments = (ins DMIR_FloatTensor:$lhs, DMIR_FloatTensor:$rhs, RankedTensorOf<[I64]>:$ends);
  let results = (outs DMIR_FloatTensor:$result);
  let hasVerifier = 1;
}

def DMIR_ConvOp : DMIR_Op<"conv"> {
  let summary = "convolution (cross-correlation)";
  let description = [{
    input `N x C x spatial..`, weights `O x C/groups x kernel..`, result `N x O x spatial..` with
    `out = floor((in + low + high - dilation * (kernel - 1) - 1) / stride) + 1`. Padding reads as zero.
    Types are computed as matmul's. Dynamic ones of `low` and then of `high` are the `dims`.
    C1: equal ranks >= 3. C2: one stride, dilation, low and high pad a spatial axis, a dim for each dynamic one; strides and dilations > 0. C3: C = groups * weights' C;
    groups divides O. C4: equal element types, or i8 and ui8 with an i32 result.
  }];
  let arguments = (ins DMIR_NumberTensor:$input, DMIR_NumberTensor:$weights, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DefaultValuedAttr<I64Attr, "1">:$groups, OptionalAttr<DMIR_DimsAttr>:$dims);
  let results = (outs DMIR_NumberTensor:$result);
}

def DMIR_PoolOp : DMIR_Op<"pool"> {
  let summary = "windowed reduction over spatial axes";
  let description = [{
    input `N x C x spatial..`; result dims and `dims` as conv's. Padding is never a maximum and adds 0 to a sum. `average` divides by the
    number of window elements inside the input, or with `countPadding` inside the padded input (whose extent is
    dim + low + high; a window may reach past that when `high` was enlarged by a ceil mode: `ceilExtra` elements of high do not count).
    C1: one window, stride, dilation, low, high, ceilExtra a spatial axis; rank >= 3. C2: window, strides, dilations > 0.
  }];
  let arguments = (ins DMIR_PoolingAttr:$kind, DMIR_NumberTensor:$input, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DenseI64ArrayAttr:$ceilExtra, DefaultValuedAttr<BoolAttr, "false">:$countPadding,
                       OptionalAttr<DMIR_DimsAttr>:$dims);
  let results = (outs DMIR_NumberTensor:$result);
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
}

def DMIR_ArgMaxPoolOp : DMIR_Op<"arg_max_pool"> {
  let summary = "where each maximum of a max pool lies";
  let description = [{
    i64 result: the row-major flat index into the whole input tensor of the first maximum of each window
    (with `columnMajor`, spatial indices are flattened with the first spatial axis fastest). C1, C2 as pool.
  }];
  let arguments = (ins DMIR_NumberTensor:$input, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DefaultValuedAttr<BoolAttr, "false">:$columnMajor,
                       OptionalAttr<DMIR_DimsAttr>:$dims);
  let results = (outs DMIR_Tensor:$result);
}

//===--- Normalisations -------------------------------------------------------===//

def DMIR_SoftmaxOp : DMIR_Op<"softmax"> {
  let summary = "softmax or log-softmax along an axis";
  let description = "`exp(x - max) / sum(exp(x - max))`, or its logarithm with `log`; computed in f32 for f16/bf16. C1: 0 <= axis < rank.";
  let arguments = (ins DMIR_FloatTensor:$input, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$log);
  let results = (outs DMIR_FloatTensor:$result);
}

def DMIR_NormalizeOp : DMIR_Op<"normalize"> {
  let summary = "normalisation over axes, without scale and bias";
  let description = [{
    standard: `(x - mean) / sqrt(variance + epsilon)` with the population variance; rms: `x / sqrt(mean(x^2) + epsilon)`. Computed in f32 for
    f16/bf16. Layer, instance, group and RMS normalisation are this op and elementwise ops. C1: axes sorted, unique, in range.
  }];
  let arguments = (ins DMIR_NormalizationAttr:$kind, DMIR_FloatTensor:$input, DenseI64ArrayAttr:$axes, F64Attr:$epsilon);
  let results = (outs DMIR_FloatTensor:$result);
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
}

//===--- Layout and regions ---------------------------------------------------===//

def DMIR_RelayoutOp : DMIR_TypedOp<"relayout", [DMIR_DataMovement]> {
  let summary = "the same tensor in another physical layout";
  let description = "C1: operand and result differ in their encoding alone.";
  let arguments = (ins DMIR_Tensor:$input);
  let results = (outs DMIR_Tensor:$result);
  let hasFolder = 1;
}

def DMIR_RegionOp : DMIR_BaseOp<"region", [IsolatedFromAbove, SingleBlock, RecursiveMemoryEffects]> {
  let summary = "a fused group of ops that one task of one device computes";
  let description = [{
    The body's arguments are the operands; `dmir.yield` ends it. `device` names the target. `strategy` records how the
    target will compute it (algorithm, tiles, packed forms of constants, scratch bytes); it is chosen in the partition phase and obeyed
    by all later ones. `placement` is filled by the memory phase: for each result
    `{arena = n, offset = bytes, size = bytes}` or `{output = n, size = bytes}`.
    C1: the body's argument types are the operands' types. C2: the yield's types are the result types. C3: the body holds DMIR ops only, no nested region.
    C4: `placement`, where there is one, is such a dictionary for each result, with `unit` (`#dmir.dims` of one) where its numbers are multiples of that.
  }];
  let arguments = (ins Variadic<DMIR_AnyTensor>:$inputs, StrAttr:$device, OptionalAttr<DictionaryAttr>:$strategy,
                       OptionalAttr<ArrayAttr>:$placement);
  let results = (outs Variadic<DMIR_AnyTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block *getBlock() { return &getBody().front(); }
    ::mlir::Operation *getYield() { return getBlock()->getTerminator(); }
  }];
}

//===--- Control flow that a run decides ----------------------------------------===//

def DMIR_IfOp : DMIR_BaseOp<"if", [MemoryEffects<[MemRead, MemWrite]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one of two graphs, by a condition known at run time";
  let description = [{
    The graphs are private functions of the module that take the captures. Result dims that differ between them, or that
    they make, are symbols of the results' types which no op before has: they get their values here.
    C1: the functions exist, take the captures' types and give as many results, of the results' element types and ranks.
  }];
  let arguments = (ins DMIR_BoolTensor:$condition, Variadic<DMIR_AnyTensor>:$captures, FlatSymbolRefAttr:$thenGraph,
                       FlatSymbolRefAttr:$elseGraph);
  let results = (outs Variadic<DMIR_AnyTensor>:$results);
  let assemblyFormat = "$condition `then` $thenGraph `else` $elseGraph `(` $captures `)` attr-dict `:` functional-type(operands, results)";
}

def DMIR_LoopOp : DMIR_BaseOp<"loop", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>,
                                       DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a graph run again and again, as often as a run decides";
  let description = [{
    The body is a private function of the module; it takes the iteration's number (i64 scalar), the condition (i1 scalar), the carried
    values and the captures, and gives the next condition, the next carried values and the scanned values. It runs while the condition holds
    and the number is less than `tripCount`; without them there is no such limit. Results are the carried values after
    the last iteration, then each scanned value of all iterations along a new first axis. Dims that a run makes are
    symbols of the results' types which no op before has: they get their values here.
    C1: the function exists and takes and gives such types.
  }];
  let arguments = (ins Optional<RankedTensorOf<[I64]>>:$tripCount, Optional<DMIR_BoolTensor>:$condition,
                       Variadic<DMIR_AnyTensor>:$carried, Variadic<DMIR_AnyTensor>:$captures, FlatSymbolRefAttr:$body);
  let results = (outs Variadic<DMIR_AnyTensor>:$results);
  let assemblyFormat = "$body (`trips` $tripCount^)? (`while` $condition^)? `carries` `(` $carried `)` `(` $captures `)` attr-dict `:` functional-type(operands, results)";
}

def DMIR_YieldOp : DMIR_BaseOp<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "the results of a region";
  let arguments = (ins Variadic<DMIR_AnyTensor>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

#endif // DMXC_DIALECT_DMIR_OPS
