//===- Inverse.cpp - inverses of square matrices --------------------------===//
#include "Contrib.h"

#include "../ops/Elementwise.h"
#include "../ops/LinearAlgebra.h"

#include "frontends/common/ops/Formulas.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// By cofactors, for few rows.
Val byCofactors(Emitter &e, const Val &x) {
  const int64_t n = x.dim(-1), row = x.rank() - 2, column = x.rank() - 1;
  Val scale = reciprocal(e, determinant(e, x));
  if (n == 1)
    return scale;
  std::vector<Val> rows;
  for (int64_t i = 0; i < n; ++i) {
    std::vector<Val> line;
    for (int64_t j = 0; j < n; ++j) {
      Val minor = determinant(e, withoutIndex(e, withoutIndex(e, x, row, j), column, i));
      line.push_back((i + j) % 2 ? negOf(e, minor) : minor);
    }
    rows.push_back(e.concat(line, column));
  }
  return e.mul(e.concat(rows, row), scale);
}

/// One step of the elimination: `both` holds what is left of x, and beside it what becomes the inverse. The row with
/// the largest number of column k takes the place of row k, and leaves column k of all others.
Val eliminated(Emitter &e, const Val &both, const Val &k, const Val &places) {
  const int64_t row = both.rank() - 2, column = both.rank() - 1;
  auto at = [&](const Val &x, int64_t axis) { return unsqueeze(e, e.gather(x, k, axis), axis); };
  Val open = e.compare(Compare::ge, places, k), isK = e.compare(Compare::eq, places, k);
  Val numbers = at(both, column), size = absOf(e, numbers);
  Val hit =
      e.compare(Compare::gt, oneHotOfMax(e, e.select(open, size, e.scalarLike(size, -1)), row), e.scalarLike(size, 0));
  Val pivot = sumOver(e, whereOrZero(e, hit, both), {row}, true);
  Val swapped = e.select(hit, at(both, row), both);
  Val line = e.div(pivot, at(pivot, column));
  return e.select(isK, line, e.sub(swapped, e.mul(at(swapped, column), line)));
}

Val byElimination(Emitter &e, const Val &x, Dim n) {
  const int64_t column = x.rank() - 1;
  Val rows = e.iota(DType::I64, {n, 1}, 0), columns = e.iota(DType::I64, {1, n}, 1);
  Val unit = e.broadcast(e.cast(e.compare(Compare::eq, rows, columns), x.dtype()), x.dims());
  Val beside = e.concat({x, unit}, column);
  auto body = [&](const Val &k, const Val &, llvm::ArrayRef<Val> carried) {
    Val next = e.expectDims(eliminated(e, carried[0], k, rows), beside.dims());
    return std::vector<Val>{e.scalar(DType::Bool, 1), next};
  };
  Val result = e.loop(e.size(n), Val(), {beside}, body)[0];
  return e.sliceAxis(result, column, n, n);
}

// In f32 or f64.
void importInverse(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0);
  c.requireShape(x.rank() >= 2 && mayEqual(x.extent(-1), x.extent(-2)), "expected square matrices");
  const Dim n = x.extent(-1).isStatic() ? x.extent(-1) : x.extent(-2);
  if (n.is(0))
    return c.result(x);
  Dims square = x.dims();
  square[x.rank() - 2] = square.back() = n;
  Val wide = e.expectDims(e.cast(x, x.dtype() == DType::F64 ? DType::F64 : DType::F32), square);
  const bool few = n.valueOr(kMaxDeterminant + 1) <= kMaxDeterminant;
  c.result(e.cast(few ? byCofactors(e, wide) : byElimination(e, wide, n), x.dtype()));
}

} // namespace

std::vector<OpRows> contribInverseOps() {
  constexpr TypeSet Single = bitOf(DType::F16) | bitOf(DType::F32) | bitOf(DType::F64);
  return {{"Inverse", {1}, ".>1", importInverse, "", {Single}, "", kMicrosoft}};
}

} // namespace dmxc::onnxfe
