//===- Quant.cpp - quantisation -------------------------------------------===//
#include "Quant.h"
#include "../Differences.h"
#include "LinearAlgebra.h"
#include "Window.h"

#include "frontends/common/ops/BlockQuantized.h"
#include "frontends/common/ops/Formulas.h"
#include "frontends/common/ops/Product.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

struct Range {
  double low, high;
};
Range rangeOf(DType type) {
  switch (type) {
  case DType::U2:
    return {0, 3};
  case DType::I2:
    return {-2, 1};
  case DType::U4:
    return {0, 15};
  case DType::I4:
    return {-8, 7};
  case DType::U8:
    return {0, 255};
  case DType::I8:
    return {-128, 127};
  case DType::U16:
    return {0, 65535};
  case DType::I16:
    return {-32768, 32767};
  default:
    fail("op-dtype", "quantised values of type " + std::string(dtypeName(type)) + " are not supported");
  }
}

} // namespace

Val saturated(Emitter &e, const Val &real, const Val &zero, DType type, bool saturate) {
  if (isFloat(type)) // f8 and f4: no zero point, the conversion rounds
    return e.cast(real, type, saturate);
  Val shifted = e.emit<RoundOp>({real});
  if (zero)
    shifted = e.add(shifted, e.cast(zero, real.dtype()));
  Range range = rangeOf(type);
  return e.cast(e.min(e.max(shifted, e.scalarLike(shifted, range.low)), e.scalarLike(shifted, range.high)), type);
}

namespace {

/// A scale or zero point that broadcasts against x: one number, one an index of
/// the axis, or one a block of it.
Val spread(NodeContext &c, const Val &value, const Val &x) {
  int64_t block = c.attrInt("block_size", 0);
  if (value.elements().is(1) && value.rank() <= 1 && block == 0)
    return c.e.reshape(value, {});
  int64_t axis = c.normalizeAxis(c.attrInt("axis", 1), x.rank());
  if (block == 0) {
    c.requireShape(value.rank() == 1 && mayEqual(value.extent(0), x.extent(axis)),
                   value.describe() + " must have one number, or one for each index of axis " + std::to_string(axis));
    Dims shape(x.rank(), 1);
    shape[axis] = value.extent(0);
    return c.e.reshape(value, shape);
  }
  c.requireShape(value.rank() == x.rank() && block > 0 &&
                     mayEqual(Dim::ceilDiv(x.extent(axis), block), value.extent(axis)),
                 value.describe() + " must have one number a block of " + std::to_string(block));
  Dims split = value.dims(), wide, joined = split;
  split.insert(split.begin() + axis + 1, 1);
  wide = split;
  wide[axis + 1] = block;
  joined[axis] *= block;
  return c.e.sliceAxis(c.e.reshape(c.e.broadcast(c.e.reshape(value, split), wide), joined), axis, 0, x.extent(axis));
}

void importQuantize(NodeContext &c) {
  Val x = c.operand(0);
  DType type = DType::U8;
  if (c.has(2))
    type = c.operand(2).dtype();
  else if (c.hasAttr("output_dtype") && c.attrInt("output_dtype") != 0)
    type = c.attrType("output_dtype");
  // Narrower inputs are divided in f32: only the quantised value is rounded.
  DType wide = x.dtype() == DType::F64 ? DType::F64 : DType::F32;
  Val scale = spread(c, c.e.cast(c.operand(1), wide), x);
  Val zero = c.has(2) ? spread(c, c.operand(2), x) : Val();
  c.result(saturated(c.e, c.e.div(c.e.cast(x, wide), scale), zero, type, c.attrInt("saturate", 1) != 0));
}

/// A constant matrix of few bits, or of blocks, as one op that keeps its bits; null where x is none, or where its zero
/// points share bytes.
Val keptBits(NodeContext &c, const Val &x, const Val &scale, DType type) {
  int64_t block = c.attrInt("block_size", 0);
  bool wanted = x.isConstant() && x.rank() == 2 && (block > 0 || isPacked(x.dtype())) && isFloat(scale.dtype());
  Val bytes = wanted && (scale.dtype() == DType::F64) == (type == DType::F64) ? bytesOfConstant(c.e, x) : Val();
  if (!bytes)
    return Val();
  spread(c, scale, x); // checks the shapes
  int64_t axis = c.normalizeAxis(c.attrInt("axis", 1), 2);
  Dequantize d{bytes, scale, {}, static_cast<int64_t>(dtypeBits(x.dtype())), axis, block, 0, x.dims(), type};
  Dims dims = scale.dims();
  if (block == 0) { // one scale for all, or one an index of the axis: a block is all of the other one
    bool one = scale.elements().is(1) && scale.rank() <= 1;
    d.axis = 1 - axis;
    d.block = std::max<int64_t>(x.dim(d.axis), 1);
    dims = {1, 1};
    if (!one)
      dims[axis] = scale.extent(0);
    d.scale = c.e.reshape(scale, dims);
  }
  if (c.has(2)) {
    Val zeros = c.e.reshape(c.operand(2), dims);
    if (isPacked(x.dtype()) && zeros.isConstant() && zeros.elements().is(1))
      d.zero = c.e.cast(zeros, DType::I32).constant().asInt(0);
    else if (d.zeros = bytesOfConstant(c.e, zeros); !d.zeros)
      return Val();
  }
  return dequantize(c.e, d);
}

void importDequantize(NodeContext &c) {
  Val x = c.operand(0), scale = c.operand(1);
  DType type = scale.dtype();
  if (c.hasAttr("output_dtype") && c.attrInt("output_dtype") != 0)
    type = c.attrType("output_dtype");
  if (Val kept = keptBits(c, x, scale, type))
    return c.result(kept);
  DType wide = type == DType::F64 ? DType::F64 : DType::F32;
  Val real;
  if (isFloat(x.dtype())) {
    real = c.e.cast(x, wide);
  } else {
    real = widenedBytes(c.e, x);
    if (c.has(2))
      real = c.e.sub(real, spread(c, c.e.cast(c.operand(2), DType::I32), x));
    real = c.e.cast(real, wide);
  }
  c.result(c.e.cast(c.e.mul(real, spread(c, c.e.cast(scale, wide), x)), type));
}

} // namespace

DynamicCodes dynamicCodes(Emitter &e, const Val &x) {
  std::vector<int64_t> all = axesFrom(0, x.rank());
  Val zero = e.scalarLike(x, 0);
  Val high = e.max(zero, e.reduce(Reduction::max, x, all, false)),
      low = e.min(zero, e.reduce(Reduction::min, x, all, false));
  Val span = e.sub(high, low);
  // All elements 0: any scale but 0 will do.
  Val scale = e.select(e.compare(Compare::eq, span, zero), e.scalarLike(x, 1), e.div(span, e.scalarLike(x, 255)));
  Val point = saturated(e, e.div(e.sub(zero, low), scale), Val(), DType::U8);
  return {saturated(e, e.div(x, scale), point, DType::U8), scale, point};
}

Val scalarOperand(NodeContext &c, int operand, const char *what) {
  c.requireShape(mayEqual(c.operand(operand).elements(), 1), std::string("the ") + what + " must be one number");
  return c.e.reshape(c.operand(operand), {});
}

namespace {

void importDynamicQuantize(NodeContext &c) {
  DynamicCodes codes = dynamicCodes(c.e, c.operand(0));
  c.result(0, codes.codes);
  c.result(1, codes.scale);
  c.result(2, codes.zero);
}

Val integers(NodeContext &c, int operand) { return widenedBytes(c.e, c.operand(operand)); }

void importQLinearConv(NodeContext &c) {
  Emitter &e = c.e;
  Val x = e.sub(integers(c, 0), e.cast(scalarOperand(c, 2, "input's zero point"), DType::I32)),
      weights = integers(c, 3);
  const bool last = c.attrFlag("channels_last", false);
  if (last)
    x = channelsFirst(e, x);
  c.requireShape(weights.rank() > 2 && weights.rank() == x.rank(),
                 "the weights must have the input's rank, at least 3, not " + std::to_string(weights.rank()));
  Dims first(weights.rank(), 1);
  first[0] = c.operand(5).elements();
  weights = e.sub(weights, e.reshape(integers(c, 5), first));
  Dims kernel(llvm::ArrayRef<Dim>(weights.dims()).drop_front(2));
  Val sum = convolve(e, x, weights, c.optional(8), windowOf(c, x.dims(), kernel), c.attrInt("group", 1));
  Val scale = c.operand(4);
  scale = scale.elements().is(1) ? e.reshape(scale, {}) : perChannel(e, scale, x.rank());
  Val factor = e.div(e.mul(scale, scalarOperand(c, 1, "input's scale")), scalarOperand(c, 6, "result's scale"));
  Val real = e.mul(e.cast(sum, DType::F32), factor);
  Val y = saturated(e, real, scalarOperand(c, 7, "result's zero point"), c.operand(7).dtype());
  c.result(last ? channelsLast(e, y) : y);
}

/// A parameter of a matrix operand: one number, or one a row or column.
Val matrixParameter(NodeContext &c, const Val &value, bool rows) {
  if (value.elements().is(1))
    return c.e.reshape(value, {});
  return value.rank() == 1 && rows ? c.e.reshape(value, {value.extent(0), 1}) : value;
}

void importQLinearMatMul(NodeContext &c) {
  Emitter &e = c.e;
  Val a = e.sub(integers(c, 0), matrixParameter(c, integers(c, 2), true));
  Val b = e.sub(integers(c, 3), matrixParameter(c, integers(c, 5), false));
  Val sum = e.cast(numpyMatMul(e, a, b), DType::F32);
  auto scale = [&](int i, bool rows) { return matrixParameter(c, e.cast(c.operand(i), DType::F32), rows); };
  Val factor = e.div(e.mul(scale(1, true), scale(4, false)), scale(6, true));
  c.result(saturated(e, e.mul(sum, factor), matrixParameter(c, c.operand(7), true), c.operand(7).dtype()));
}

} // namespace

std::vector<OpRows> quantOps() {
  using namespace types;
  constexpr TypeSet I32 = bitOf(DType::I32), Single = bitOf(DType::F16) | bitOf(DType::F32),
                    Codes = Byte | bitOf(DType::I16) | bitOf(DType::U16) | bitOf(DType::I4) | bitOf(DType::U4);
  constexpr const char *microsoft = "com.microsoft";
  const std::vector<TypeSet> convTypes = {Byte, Float, Byte, Byte, Float, Byte, Float, Byte, I32};
  return {
      {"QuantizeLinear", {10}, "...>1", importQuantize, "", {Float | I32, Float, Any}},
      {"QuantizeLinear", {13}, "...>1", importQuantize, "axis", {Float | I32, Float, Any}},
      {"QuantizeLinear", {19}, "TT.>1", importQuantize, "axis,saturate", {Float | I32, Float, Any}},
      {"QuantizeLinear",
       {21},
       "TT.>1",
       importQuantize,
       "axis,block_size,output_dtype,saturate",
       {Float | I32, Float, Any}},
      {"QuantizeLinear",
       {23, 24, 25},
       "...>1",
       importQuantize,
       "axis,block_size,output_dtype,precision,saturate",
       {Float | I32, Float, Any}},
      {"DequantizeLinear", {10}, "T.T>1", importDequantize, "", {Int | Narrow, Float, Any}},
      {"DequantizeLinear", {13, 19}, "T.T>1", importDequantize, "axis", {Int | Narrow, Float, Any}},
      {"DequantizeLinear", {21}, "T.T>1", importDequantize, "axis,block_size", {Int | Narrow, Float, Any}},
      {"DequantizeLinear",
       {23, 24, 25},
       "T.T>1",
       importDequantize,
       "axis,block_size,output_dtype",
       {Int | Narrow, Float, Any}},
      {"DynamicQuantizeLinear", {11}, ".>3", importDynamicQuantize, "", {bitOf(DType::F32)}},
      {"QLinearConv",
       {10},
       "T.TU.U...>1",
       importQLinearConv,
       "auto_pad,dilations,group,kernel_shape,pads,strides",
       convTypes},
      {"QLinearConv",
       {1},
       "T.TU.U...>1",
       importQLinearConv,
       "auto_pad,channels_last,dilations,group,kernel_shape,pads,strides",
       convTypes,
       "",
       microsoft},
      {"QLinearMatMul",
       {10},
       "T.TU.U..>1",
       importQLinearMatMul,
       "",
       {Byte, Float, Byte, Byte, Float, Byte, Float, Byte}},
      {"QLinearMatMul",
       {21},
       "TUTVUVU.>1",
       importQLinearMatMul,
       "",
       {Byte, Float, Byte, Byte, Float, Byte, Float, Byte}},
      {"QuantizeLinear", {1}, "TT.>1", importQuantize, "axis", {Single, Single, Codes}, "", microsoft},
      {"DequantizeLinear", {1}, "T.T>1", importDequantize, "axis", {Codes | I32, Single, Codes | I32}, "", microsoft},
  };
}

std::vector<Difference> quantDifferences() {
  return {
      {"quantize-range", "QuantizeLinear", "quotients beyond 32 bits, and infinity", "the smallest number",
       "the largest number", "the largest number", "the largest number", "the definition saturates"},
      {"quantize-nan", "QuantizeLinear", "NaN", "the smallest number", "the smallest number", "the largest number",
       "the smallest number", "the definition leaves it open"},
      {"quantize-reciprocal", "QuantizeLinear", "quotients half way between two numbers, up to rounding",
       "of the quotient", "of the quotient", "of the product with the rounded 1 / scale", "of the quotient",
       "they differ by one step at most, and rewrites of quantised graphs know the quotient"},
      {"quantize-half", "QuantizeLinear", "f16", "divided in f16", "divided in f32", "", "divided in f32",
       "only what is quantised is rounded"},
      {"dynamicquantize-zeros", "DynamicQuantizeLinear", "nothing but 0", "a scale of 1 / 255", "a scale of 1", "",
       "a scale of 1", "any scale but 0 will do"},
  };
}

} // namespace dmxc::onnxfe
