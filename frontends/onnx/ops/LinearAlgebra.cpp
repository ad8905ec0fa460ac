//===- LinearAlgebra.cpp - matrix products, determinants ------------------===//
#include "LinearAlgebra.h"

#include "frontends/common/ops/Product.h"
#include "frontends/common/ops/matrices/LinearAlgebra.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {

namespace {

void importMatMul(NodeContext &c) { c.result(numpyMatMul(c.e, c.operand(0), c.operand(1))); }

} // namespace

Val gemm(NodeContext &c) {
  Val a = c.operand(0), b = c.operand(1);
  c.requireShape(a.rank() == 2 && b.rank() == 2, "expected matrices of rank 2");
  double alpha = c.attrFloat("alpha", 1), beta = c.attrFloat("beta", 1);
  if (!isFloat(a.dtype()))
    c.requireAttr(alpha == std::round(alpha) && beta == std::round(beta),
                  "alpha and beta must be whole numbers for integer operands");
  if (c.attrInt("transA", 0))
    a = c.e.transposeLast(a);
  if (c.attrInt("transB", 0))
    b = c.e.transposeLast(b);
  Val product = c.e.matmul(a, b);
  if (alpha != 1)
    product = c.e.mul(product, alpha);
  if (Val bias = c.optional(2); bias && beta != 0) {
    if (beta != 1)
      bias = c.e.mul(bias, beta);
    Dims dims = product.dims();
    product = c.e.add(product, bias);
    c.requireShape(mayEqual(product.dims(), dims), "operand 2 does not broadcast to the product's shape");
    product = c.e.expectDims(product, dims);
  }
  return product;
}

Val widenedBytes(Emitter &e, const Val &bytes) {
  bool matrix = bytes.isConstant() && bytes.rank() >= 2 && dtypeBits(bytes.dtype()) == 8;
  return e.cast(matrix ? e.fromSSA(e.ssa(bytes)) : bytes, DType::I32);
}

Val withoutZeroPoint(NodeContext &c, int operand, int zeroPoint, bool rows) {
  Val x = widenedBytes(c.e, c.operand(operand));
  if (!c.has(zeroPoint))
    return x;
  Val zero = c.e.cast(c.operand(zeroPoint), DType::I32);
  if (zero.rank() == 1 && zero.extent(0).is(1))
    zero = c.e.reshape(zero, {});
  else if (zero.rank() == 1 && rows)
    zero = c.e.reshape(zero, {zero.extent(0), 1});
  return c.e.sub(x, zero);
}

namespace {

void importGemm(NodeContext &c) { c.result(gemm(c)); }

void importMatMulInteger(NodeContext &c) {
  c.result(numpyMatMul(c.e, withoutZeroPoint(c, 0, 2, true), withoutZeroPoint(c, 1, 3, false)));
}

} // namespace

namespace {

void importDet(NodeContext &c) {
  Val x = squareMatrices(c.e, c.operand(0)), wide = c.e.cast(x, x.dtype() == DType::F64 ? DType::F64 : DType::F32);
  c.result(c.e.cast(determinant(c.e, luFactors(c.e, wide)), x.dtype()));
}

} // namespace

std::vector<OpRows> linearAlgebraOps() {
  using namespace types;
  return {
      {"MatMul", {1, 9, 13}, "TT>1", importMatMul, "", {Number}},
      {"Gemm", {1, 6}, "TTT>1", importGemm, "alpha,beta,broadcast,transA,transB", {Number}},
      {"Gemm", {7, 9, 11, 13}, "TTT>1", importGemm, "alpha,beta,transA,transB", {Number}},
      {"MatMulInteger", {10}, "TUTU>1", importMatMulInteger, "", {Byte}},
      {"Det", {11, 22}, ".>1", importDet, "", {Float}},
  };
}

} // namespace dmxc::onnxfe
