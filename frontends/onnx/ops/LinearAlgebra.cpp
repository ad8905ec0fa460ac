//===- LinearAlgebra.cpp - matrix products --------------------------------===//
#include "LinearAlgebra.h"

#include "frontends/common/ops/Product.h"

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

Val withoutIndex(Emitter &e, const Val &x, int64_t axis, int64_t index) {
  const int64_t n = x.dim(axis);
  std::vector<Val> parts;
  if (index > 0)
    parts.push_back(e.sliceAxis(x, axis, 0, index));
  if (index + 1 < n)
    parts.push_back(e.sliceAxis(x, axis, index + 1, n - index - 1));
  return e.concat(parts, axis);
}

/// Laplace expansion along the first row.
Val determinant(Emitter &e, const Val &x) {
  int64_t n = x.dim(-1), row = x.rank() - 2, column = x.rank() - 1;
  if (n == 1)
    return x;
  Val sum;
  for (int64_t k = 0; k < n; ++k) {
    Val pivot = e.sliceAxis(e.sliceAxis(x, row, 0, 1), column, k, 1);
    Val below = e.sliceAxis(x, row, 1, n - 1);
    Val term = e.mul(pivot, determinant(e, withoutIndex(e, below, column, k)));
    sum = !sum ? term : k % 2 ? e.sub(sum, term) : e.add(sum, term);
  }
  return sum;
}

namespace {

/// Square matrices of up to kMaxDeterminant rows, enlarged to that size without changing the determinant: by ones on
/// the diagonal.
Val enlarged(Emitter &e, const Val &x, Dim rows) {
  Dims square = x.dims(), low(x.rank(), 0), high(x.rank(), 0);
  square[x.rank() - 2] = square.back() = rows;
  high[x.rank() - 2] = high.back() = Dim(kMaxDeterminant) - rows;
  Val row = e.iota(DType::I64, {kMaxDeterminant, 1}, 0), column = e.iota(DType::I64, {1, kMaxDeterminant}, 1);
  Val added = e.emit<AndOp>({e.compare(Compare::eq, row, column), e.compare(Compare::ge, row, e.size(rows))});
  return e.select(added, e.scalarLike(x, 1), e.pad(e.expectDims(x, square), e.scalarLike(x, 0), low, high));
}

void importDet(NodeContext &c) {
  Val x = c.operand(0);
  c.requireShape(x.rank() >= 2 && mayEqual(x.extent(-1), x.extent(-2)), "expected square matrices");
  Dim rows = x.extent(-1).isStatic() ? x.extent(-1) : x.extent(-2);
  if (rows.valueOr(0) > kMaxDeterminant)
    fail("op-unsupported", "determinants of more than " + std::to_string(kMaxDeterminant) + " rows are not supported");
  Dims shape = x.dims();
  shape.pop_back_n(2);
  if (rows.is(0)) // a product of no factors
    return c.result(c.e.broadcast(c.e.scalarLike(x, 1), shape));
  x = x.extent(-1) == x.extent(-2) && rows.isStatic() ? x : enlarged(c.e, x, rows);
  c.result(c.e.reshape(determinant(c.e, x), shape));
}

} // namespace

std::vector<OpRows> linearAlgebraOps() {
  using namespace types;
  return {
      {"MatMul", {1, 9, 13}, "TT>1", importMatMul, "", {Number}},
      {"Gemm", {1, 6}, "TTT>1", importGemm, "alpha,beta,broadcast,transA,transB", {Number}},
      {"Gemm", {7, 9, 11, 13}, "TTT>1", importGemm, "alpha,beta,transA,transB", {Number}},
      {"MatMulInteger", {10}, "TUTU>1", importMatMulInteger, "", {Byte}},
      {"Det", {11, 22}, ".>1", importDet, "", {Float}, "up to 4 rows"},
  };
}

} // namespace dmxc::onnxfe
