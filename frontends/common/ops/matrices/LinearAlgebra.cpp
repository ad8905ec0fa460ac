//===- LinearAlgebra.cpp - systems of equations, functions of matrices ----===//
//
// A column is eliminated in one iteration of a loop for all matrices of a batch: rows and columns are picked by
// comparing their numbers with the iteration's, so that all values keep their shapes.
//
//===----------------------------------------------------------------------===//
#include "LinearAlgebra.h"
#include "../Formulas.h"
#include "../Order.h"
#include "../Require.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::frontend {

/// Iterations that are still unrolled.
static constexpr int64_t kMostUnrolled = 4;

//===--- Parts of matrices ------------------------------------------------------------===//

Dim requireSquare(const Val &x) {
  requireShape(x.rank() >= 2 && mayEqual(x.extent(-1), x.extent(-2)), "expected square matrices, not " + x.describe());
  return x.extent(-1).isStatic() ? x.extent(-1) : x.extent(-2);
}

Val squareMatrices(Emitter &e, const Val &x) {
  const Dim n = requireSquare(x);
  return e.expectDims(x, matrixDims(batchOf(x), n, n));
}

Dims batchOf(const Val &x) {
  Dims dims = x.dims();
  dims.pop_back_n(2);
  return dims;
}

Dims matrixDims(Dims batch, Dim rows, Dim columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

std::pair<Val, Val> broadcastBatches(Emitter &e, const Val &a, const Val &b) {
  std::optional<llvm::SmallVector<Dim>> batch = broadcastDims(batchOf(a), batchOf(b));
  requireShape(batch.has_value(), "the batches of " + a.describe() + " and " + b.describe() + " do not broadcast");
  auto widened = [&](const Val &x) { return e.broadcast(x, matrixDims(*batch, x.extent(-2), x.extent(-1))); };
  return {widened(a), widened(b)};
}

Val rowNumbers(Emitter &e, Dim rows) { return e.iota(DType::I64, {rows, 1}, 0); }
Val columnNumbers(Emitter &e, Dim columns) { return e.iota(DType::I64, {1, columns}, 1); }

static Val onDiagonal(Emitter &e, Dim rows, Dim columns) {
  return e.compare(Compare::eq, rowNumbers(e, rows), columnNumbers(e, columns));
}
Val identityMatrix(Emitter &e, DType type, Dim rows, Dim columns) { return e.cast(onDiagonal(e, rows, columns), type); }

static Val triangle(Emitter &e, const Val &x, Compare kind) {
  return whereOrZero(e, e.compare(kind, rowNumbers(e, x.extent(-2)), columnNumbers(e, x.extent(-1))), x);
}
Val lowerTriangle(Emitter &e, const Val &x) { return triangle(e, x, Compare::ge); }
Val upperTriangle(Emitter &e, const Val &x) { return triangle(e, x, Compare::le); }

Val diagonalOf(Emitter &e, const Val &x) {
  const int64_t row = x.rank() - 2;
  const Dim count = Dim::min(x.extent(-2), x.extent(-1));
  Val square = e.sliceAxis(e.sliceAxis(x, row, 0, count), row + 1, 0, count);
  return sumOver(e, whereOrZero(e, onDiagonal(e, count, count), square), {row + 1}, false);
}

Val elementAt(Emitter &e, const Val &x, int64_t axis, const Val &k) {
  if (k.isConstant())
    return e.sliceAxis(x, axis, k.constant().asInt(0), 1);
  return unsqueeze(e, e.gather(x, k, axis), axis);
}

std::vector<Val> repeat(Emitter &e, Dim count, const std::vector<Val> &carried, Step step) {
  auto next = [&](const Val &k, llvm::ArrayRef<Val> values) {
    std::vector<Val> results = step(k, values);
    for (size_t i = 0; i < results.size(); ++i)
      results[i] = e.expectDims(results[i], carried[i].dims());
    return results;
  };
  if (count.valueOr(kMostUnrolled + 1) <= kMostUnrolled) {
    std::vector<Val> values = carried;
    for (int64_t k = 0; k < count.valueOr(0); ++k)
      values = next(e.intScalar(DType::I64, k), values);
    return values;
  }
  return e.loop(e.size(count), Val(), carried, [&](const Val &k, const Val &, llvm::ArrayRef<Val> values) {
    std::vector<Val> results = next(k, values);
    results.insert(results.begin(), e.scalar(DType::Bool, 1));
    return results;
  });
}

//===--- Elimination ------------------------------------------------------------------===//

namespace {

/// A row that takes the place of row k.
struct Pivot {
  Val place;   ///< [.., 1, 1]: where it was
  Val line;    ///< [.., 1, n]
  Val swapped; ///< all rows
  Val isZero;  ///< [..]
};
/// The row with the largest number of column k, of those from row k on.
Pivot pivotOf(Emitter &e, const Val &x, const Val &k) {
  const int64_t row = x.rank() - 2, column = row + 1;
  Val rows = rowNumbers(e, x.extent(row)), size = absOf(e, elementAt(e, x, column, k));
  Pivot pivot;
  pivot.place = placeOfLargest(e, e.select(e.compare(Compare::ge, rows, k), size, e.scalarLike(size, -1)), row);
  Dims line = x.dims();
  line[row] = 1;
  pivot.line = e.emit<GatherElementsOp>({x, e.broadcast(pivot.place, line)}, {e.attr("axis", row)});
  Val others = e.select(e.compare(Compare::eq, rows, pivot.place), elementAt(e, x, row, k), x);
  pivot.swapped = e.select(e.compare(Compare::eq, rows, k), pivot.line, others);
  Val number = e.reshape(elementAt(e, pivot.line, column, k), batchOf(x));
  pivot.isZero = e.compare(Compare::eq, number, e.scalarLike(number, 0));
  return pivot;
}
/// `info` with k + 1 where `failed` holds for the first time.
Val noted(Emitter &e, const Val &info, const Val &failed, const Val &k) {
  Val first = both(e, failed, e.compare(Compare::eq, info, e.scalarLike(info, 0)));
  return e.select(first, e.cast(e.add(k, 1), info.dtype()), info);
}
Val noFailure(Emitter &e, const Val &x) { return e.splat(DType::I32, batchOf(x), 0); }

} // namespace

LuFactors luFactors(Emitter &e, const Val &x) {
  const int64_t row = x.rank() - 2, column = row + 1;
  const Dim count = Dim::min(x.extent(row), x.extent(column));
  Val rows = rowNumbers(e, x.extent(row)), columns = columnNumbers(e, x.extent(column));
  Val places = e.iota(DType::I64, {count}, 0);
  Dims line = batchOf(x);
  line.push_back(count);
  auto step = [&](const Val &k, llvm::ArrayRef<Val> carried) {
    Pivot pivot = pivotOf(e, carried[0], k);
    Val number = elementAt(e, pivot.line, column, k), one = e.scalarLike(number, 1);
    Val divisor = e.select(e.compare(Compare::eq, number, e.scalarLike(number, 0)), one, number);
    Val factor = e.div(elementAt(e, pivot.swapped, column, k), divisor);
    Val rest = e.select(e.compare(Compare::eq, columns, k), factor, e.sub(pivot.swapped, e.mul(factor, pivot.line)));
    Val below = both(e, e.compare(Compare::gt, rows, k), e.compare(Compare::ge, columns, k));
    Dims each = batchOf(x);
    each.push_back(1);
    Val place = e.cast(e.add(e.reshape(pivot.place, each), 1), DType::I32);
    return std::vector<Val>{e.select(below, rest, pivot.swapped),
                            e.select(e.compare(Compare::eq, places, k), place, carried[1]),
                            noted(e, carried[2], pivot.isZero, k)};
  };
  std::vector<Val> results = repeat(e, count, {x, e.splat(DType::I32, line, 0), noFailure(e, x)}, step);
  return {results[0], results[1], results[2]};
}

Val permutationOf(Emitter &e, const Val &pivots, Dim rows) {
  const int64_t last = pivots.rank() - 1;
  Val places = e.iota(DType::I64, {rows}, 0), swaps = e.cast(pivots, DType::I64);
  Dims line = pivots.dims();
  line.back() = rows;
  auto step = [&](const Val &k, llvm::ArrayRef<Val> carried) {
    const Val &order = carried[0];
    Val other = e.add(elementAt(e, swaps, last, k), -1), here = elementAt(e, order, last, k);
    Val there = e.emit<GatherElementsOp>({order, other}, {e.attr("axis", last)});
    Val next = e.select(e.compare(Compare::eq, places, other), here, order);
    return std::vector<Val>{e.select(e.compare(Compare::eq, places, k), there, next)};
  };
  return repeat(e, pivots.extent(last), {e.broadcast(places, line)}, step)[0];
}

Val permutationMatrix(Emitter &e, DType type, const Val &permutation) {
  Val rows = rowNumbers(e, permutation.extent(-1));
  return e.cast(e.compare(Compare::eq, rows, unsqueeze(e, permutation, permutation.rank() - 1)), type);
}

Val solveByFactors(Emitter &e, const LuFactors &factors, const Val &b, bool transposed) {
  auto [lu, right] = broadcastBatches(e, factors.packed, b);
  const int64_t row = right.rank() - 2;
  Dims line = batchOf(lu);
  line.push_back(factors.pivots.extent(-1));
  Val order = permutationOf(e, e.broadcast(factors.pivots, line), right.extent(row));
  auto picked = [&](const Val &x, const Val &places) {
    return e.emit<GatherElementsOp>({x, e.broadcast(unsqueeze(e, places, row + 1), x.dims())}, {e.attr("axis", row)});
  };
  if (!transposed)
    return solveTriangular(e, lu, solveTriangular(e, lu, picked(right, order), false, true), true);
  Val turned = e.transposeLast(lu), x = solveTriangular(e, turned, right, false);
  Val back = sorted(e, order, row, order.extent(row), false)[1];
  return picked(solveTriangular(e, turned, x, true, true), back);
}

/// Gauss and Jordan's elimination: a column leaves all rows but one, so that in the end the right side is solved.
Solution solve(Emitter &e, const Val &a, const Val &b) {
  const Dim n = requireSquare(a);
  requireShape(b.rank() >= 2 && mayEqual(b.extent(-2), n),
               "the right side " + b.describe() + " does not have the rows of " + a.describe());
  auto [left, right] = broadcastBatches(e, a, b);
  const int64_t row = left.rank() - 2, column = row + 1;
  left = squareMatrices(e, left);
  right = e.expectDims(right, matrixDims(batchOf(right), n, right.extent(column)));
  Val rows = rowNumbers(e, n), beside = e.concat({left, right}, column);
  auto step = [&](const Val &k, llvm::ArrayRef<Val> carried) {
    Pivot pivot = pivotOf(e, carried[0], k);
    Val line = e.div(pivot.line, elementAt(e, pivot.line, column, k));
    Val rest = e.sub(pivot.swapped, e.mul(elementAt(e, pivot.swapped, column, k), line));
    return std::vector<Val>{e.select(e.compare(Compare::eq, rows, k), line, rest),
                            noted(e, carried[1], pivot.isZero, k)};
  };
  std::vector<Val> results = repeat(e, n, {beside, noFailure(e, left)}, step);
  return {e.sliceAxis(results[0], column, n, right.extent(column)), results[1]};
}

Solution inverse(Emitter &e, const Val &x) {
  const Dim n = requireSquare(x);
  return solve(e, x, identityMatrix(e, x.dtype(), n, n));
}

Val solveTriangular(Emitter &e, const Val &a, const Val &b, bool upper, bool ones) {
  const Dim n = requireSquare(a);
  requireShape(b.rank() >= 2 && mayEqual(b.extent(-2), n),
               "the right side " + b.describe() + " does not have the rows of " + a.describe());
  auto [left, right] = broadcastBatches(e, a, b);
  const int64_t row = left.rank() - 2, column = row + 1;
  Val matrix = squareMatrices(e, left), rows = rowNumbers(e, n);
  auto step = [&](const Val &number, llvm::ArrayRef<Val> carried) {
    Val k = upper ? e.sub(e.size(n - 1), number) : number, factor = elementAt(e, matrix, column, k);
    Val line = elementAt(e, carried[0], row, k);
    if (!ones)
      line = e.div(line, elementAt(e, factor, row, k));
    Val open = e.compare(upper ? Compare::lt : Compare::gt, rows, k);
    Val rest = e.select(open, e.sub(carried[0], e.mul(factor, line)), carried[0]);
    return std::vector<Val>{e.select(e.compare(Compare::eq, rows, k), line, rest)};
  };
  return repeat(e, n, {right}, step)[0];
}

//===--- Determinants -----------------------------------------------------------------===//

/// 1, or -1 where the number of swaps is odd.
static Val parity(Emitter &e, const LuFactors &factors) {
  const int64_t last = factors.pivots.rank() - 1;
  Val places = e.cast(e.iota(DType::I64, {factors.pivots.extent(last)}, 0), DType::I32);
  Val stays = e.compare(Compare::eq, factors.pivots, e.add(places, 1));
  Val one = e.scalarLike(factors.packed, 1);
  return e.reduce(Reduction::prod, e.select(stays, one, negOf(e, one)), {last}, false);
}

LogDeterminant logDeterminant(Emitter &e, const LuFactors &factors) {
  Val diagonal = diagonalOf(e, factors.packed);
  const int64_t last = diagonal.rank() - 1;
  Val signs = e.reduce(Reduction::prod, e.emit<SignOp>({diagonal}), {last}, false);
  return {e.mul(parity(e, factors), signs), sumOver(e, logOf(e, absOf(e, diagonal)), {last}, false)};
}

Val determinant(Emitter &e, const LuFactors &factors) {
  Val diagonal = diagonalOf(e, factors.packed);
  return e.mul(parity(e, factors), e.reduce(Reduction::prod, diagonal, {diagonal.rank() - 1}, false));
}

//===--- Symmetric matrices -------------------------------------------------------------===//

Solution cholesky(Emitter &e, const Val &x) {
  const Dim n = requireSquare(x);
  const int64_t row = x.rank() - 2, column = row + 1;
  Val rows = rowNumbers(e, n), columns = columnNumbers(e, n);
  auto step = [&](const Val &k, llvm::ArrayRef<Val> carried) {
    Val numbers = elementAt(e, carried[0], column, k), pivot = elementAt(e, numbers, row, k);
    Val factor = e.div(numbers, sqrtOf(e, pivot));
    Val rest = e.sub(carried[0], e.mul(factor, e.transposeLast(factor)));
    Val next = e.select(e.compare(Compare::gt, columns, k), rest, carried[0]);
    Val good = e.reshape(e.compare(Compare::gt, pivot, e.scalarLike(pivot, 0)), batchOf(x));
    return std::vector<Val>{e.select(e.compare(Compare::eq, columns, k), factor, next),
                            noted(e, carried[1], notOf(e, good), k)};
  };
  std::vector<Val> results = repeat(e, n, {squareMatrices(e, x), noFailure(e, x)}, step);
  return {lowerTriangle(e, results[0]), results[1]};
}

//===--- Functions of matrices ------------------------------------------------------------===//

Val matrixPower(Emitter &e, Val x, int64_t n) {
  x = squareMatrices(e, x);
  if (n == 0)
    return e.broadcast(identityMatrix(e, x.dtype(), x.extent(-1), x.extent(-1)), x.dims());
  if (n < 0)
    x = inverse(e, x).x;
  Val result;
  for (uint64_t rest = n < 0 ? -static_cast<uint64_t>(n) : n; rest; rest >>= 1) {
    if (rest & 1)
      result = result ? e.matmul(result, x) : x;
    if (rest > 1)
      x = e.matmul(x, x);
  }
  return result;
}

/// The exponential of matrices whose norm is at most 1: Taylor's series, its powers in threes (Paterson and
/// Stockmeyer).
static Val exponentialOfSmall(Emitter &e, const Val &x) {
  // 1 / 13! = 1.6e-10 and 1 / 19! = 8.2e-18 bound what the series leaves out.
  const int terms = x.dtype() == DType::F64 ? 18 : 12;
  const Val powers[] = {identityMatrix(e, x.dtype(), x.extent(-1), x.extent(-1)), x, e.matmul(x, x)};
  Val cube = e.matmul(powers[2], x), result;
  for (int first = terms; first >= 0; first -= 3) {
    Val sum = e.mul(powers[0], 1 / std::tgamma(first + 1.0));
    for (int i = 1; i < 3 && first < terms; ++i)
      sum = e.add(sum, e.mul(powers[i], 1 / std::tgamma(first + i + 1.0)));
    if (!result)
      result = e.mul(cube, 1 / std::tgamma(first + 1.0));
    else if (first == 0)
      result = e.add(result, sum);
    else
      result = e.matmul(cube, e.add(result, sum));
  }
  return result;
}

/// By scaling and squaring (Moler and Van Loan): exp(x) = exp(x / 2^s)^(2^s), with an s for each matrix.
Val matrixExponential(Emitter &e, const Val &given) {
  Val x = squareMatrices(e, given);
  const int64_t row = x.rank() - 2, column = row + 1;
  Val norm = e.reduce(Reduction::max, sumOver(e, absOf(e, x), {row}, true), {column}, true);
  // A norm that is no finite number asks for no squaring: NaN comes of it anyway.
  Val most = e.scalarLike(norm, x.dtype() == DType::F64 ? 1e300 : 1e37), one = e.scalarLike(norm, 1);
  Val finite = e.select(e.compare(Compare::lt, norm, most), e.max(norm, one), one);
  Val scale = e.emit<CeilOp>({e.emit<Log2Op>({finite})}), squarings = e.cast(scale, DType::I64);
  Val small = e.mul(x, e.emit<PowOp>({e.scalarLike(x, 2), negOf(e, scale)}));
  Val start = e.expectDims(exponentialOfSmall(e, small), x.dims());
  Val trips = e.reduce(Reduction::max, squarings, axesFrom(0, x.rank()), false);
  return e.loop(trips, Val(), {start}, [&](const Val &k, const Val &, llvm::ArrayRef<Val> carried) {
    Val square = e.expectDims(e.matmul(carried[0], carried[0]), x.dims());
    return std::vector<Val>{e.scalar(DType::Bool, 1),
                            e.select(e.compare(Compare::lt, k, squarings), square, carried[0])};
  })[0];
}

} // namespace dmxc::frontend
