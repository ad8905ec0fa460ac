//===- QMatMul.cpp - products of bytes with scales ------------------------===//
#include "Contrib.h"

#include "../ops/LinearAlgebra.h"
#include "../ops/Quant.h"

#include "frontends/common/ops/Product.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// A scale that broadcasts against a matrix: one number, or one for each of its columns.
Val scaleOfColumns(NodeContext &c, int i, Dim columns, const char *what) {
  Val scale = c.operand(i);
  if (scale.elements().is(1))
    return c.e.reshape(scale, {});
  c.requireShape(scale.rank() > 0 && mayEqual(scale.extent(-1), columns),
                 std::string("the ") + what + " " + scale.describe() + " must be one number, or one for each of the " +
                     columns.str() + " columns");
  return scale;
}

Dim columnsOf(const Val &matrix) { return matrix.rank() < 2 ? Dim(1) : matrix.extent(-1); }

Val plusBias(NodeContext &c, const Val &y, int bias) {
  if (!c.has(bias))
    return y;
  Val b = c.operand(bias);
  c.requireShape(b.rank() == 1 && mayEqual(b.extent(0), columnsOf(c.operand(1))),
                 "the bias " + b.describe() + " must have one number for each of the " + columnsOf(c.operand(1)).str() +
                     " columns");
  return c.e.expectDims(c.e.add(y, c.e.cast(b, y.dtype())), y.dims());
}

/// The bytes of A are made of each run's numbers, by one scale.
void importDynamicQuantizeMatMul(NodeContext &c) {
  Emitter &e = c.e;
  DynamicCodes a = dynamicCodes(e, c.operand(0));
  Val left = e.sub(e.cast(a.codes, DType::I32), e.cast(a.zero, DType::I32));
  Val sum = numpyMatMul(e, left, withoutZeroPoint(c, 1, 3, false));
  Val scale = e.mul(a.scale, scaleOfColumns(c, 2, columnsOf(c.operand(1)), "scale of B"));
  c.result(plusBias(c, e.mul(e.cast(sum, DType::F32), scale), 4));
}

void importMatMulIntegerToFloat(NodeContext &c) {
  Emitter &e = c.e;
  const DType type = c.operand(2).dtype();
  c.requireShape(c.operand(0).rank() > 0, "a scalar is no matrix");
  Val a = withoutZeroPoint(c, 0, 4, false), b = withoutZeroPoint(c, 1, 5, false);
  Val ofA = e.cast(scaleOfColumns(c, 2, c.operand(0).extent(-1), "scale of A"), DType::F32);
  Val ofB = e.cast(scaleOfColumns(c, 3, columnsOf(c.operand(1)), "scale of B"), DType::F32);
  Val y;
  if (ofA.rank() == 0) {
    y = e.mul(e.cast(numpyMatMul(e, a, b), DType::F32), e.mul(ofA, ofB));
  } else { // a sum of columns with scales of their own is none of integers
    y = e.mul(numpyMatMul(e, e.mul(e.cast(a, DType::F32), ofA), e.cast(b, DType::F32)), ofB);
  }
  c.result(e.cast(plusBias(c, y, 6), type));
}

/// A or B of QGemm as i32 without its zero point, which is input `zero` where that is there, transposed where the
/// attribute says so.
Val gemmMatrix(NodeContext &c, int i, int zero, const char *turned) {
  Val x = widenedBytes(c.e, c.operand(i));
  c.requireShape(x.rank() == 2, "expected matrices of rank 2, not " + std::to_string(x.rank()));
  bool isTurned = c.attrInt(turned, 0);
  if (c.has(zero)) {
    Dim columns = x.extent(isTurned ? 0 : 1);
    Val z = i == 0 ? scalarOperand(c, zero, "zero point of A") : scaleOfColumns(c, zero, columns, "zero point of B");
    z = c.e.cast(z, DType::I32);
    x = c.e.sub(x, isTurned && z.rank() ? c.e.reshape(z, {columns, 1}) : z);
  }
  return isTurned ? c.e.transposeLast(x) : x;
}

/// alpha * (A B + C) with the scales of A and B; C counts in their product.
void importQGemm(NodeContext &c) {
  Emitter &e = c.e;
  Val a = gemmMatrix(c, 0, 2, "transA"), b = gemmMatrix(c, 3, 5, "transB");
  const Dim columns = b.extent(1);
  Val sum = e.matmul(a, b);
  if (c.has(6)) {
    Dims dims = sum.dims();
    sum = e.expectDims(e.add(sum, c.operand(6)), dims);
  }
  Val scale = e.mul(scalarOperand(c, 1, "scale of A"), scaleOfColumns(c, 4, columns, "scale of B"));
  Val y = e.mul(e.cast(sum, DType::F32), e.mul(scale, c.attrFloat("alpha", 1)));
  if (!c.has(7)) {
    c.requireShape(!c.has(8), "the result's zero point needs its scale");
    return c.result(y);
  }
  c.requireShape(c.has(8), "the result's scale needs its zero point");
  Val zero = scalarOperand(c, 8, "result's zero point");
  c.result(saturated(e, e.div(y, scalarOperand(c, 7, "result's scale")), zero, zero.dtype()));
}

void importMatMulInteger16(NodeContext &c) {
  Emitter &e = c.e;
  bool natural = c.operand(0).dtype() == DType::U16 && c.operand(1).dtype() == DType::U16;
  DType type = natural ? DType::U32 : DType::I32;
  c.result(numpyMatMul(e, e.cast(c.operand(0), type), e.cast(c.operand(1), type)));
}

} // namespace

std::vector<OpRows> contribQMatMulOps() {
  using namespace types;
  constexpr TypeSet F32 = bitOf(DType::F32), Half = F32 | bitOf(DType::F16);
  constexpr TypeSet Short = bitOf(DType::I16) | bitOf(DType::U16);
  return {
      {"DynamicQuantizeMatMul",
       {1},
       "TUTUT>1",
       importDynamicQuantizeMatMul,
       "",
       {F32, Byte, F32, Byte, F32},
       "",
       kMicrosoft},
      {"MatMulIntegerToFloat",
       {1},
       "TUVVTUV>1",
       importMatMulIntegerToFloat,
       "",
       {Byte, Byte, Half, Half, Byte, Byte, Half},
       "",
       kMicrosoft},
      {"QGemm",
       {1},
       "TUTVUV.U.>1",
       importQGemm,
       "alpha,transA,transB",
       {Byte, F32, Byte, Byte, F32, Byte, bitOf(DType::I32), F32, Byte},
       "",
       kMicrosoft},
      {"MatMulInteger16", {1}, "..>1", importMatMulInteger16, "", {Short}, "", kMicrosoft},
  };
}

} // namespace dmxc::onnxfe
