//===- Decompositions.cpp - orthogonal factors of matrices ----------------===//
//
// Eigenvalues and singular values by Jacobi's rotations of rows until all are orthogonal (Hestenes 1958). In a round
// half of the rows is rotated against the other half, all pairs at once; then the rows change places as the players of
// a tournament do, of whom the first stays, so that in one less than as many rounds each has met each (Brent and Luk
// 1985).
//
//===----------------------------------------------------------------------===//
#include "Decompositions.h"
#include "../Formulas.h"
#include "../Order.h"
#include "../Require.h"
#include "LinearAlgebra.h"

#include <cmath>
#include <limits>

using namespace dmxc::dmir;

namespace dmxc::frontend {

//===--- Reflections ------------------------------------------------------------------===//

Reflections reflectionsOf(Emitter &e, const Val &x) {
  requireShape(x.rank() >= 2, "expected matrices, not " + x.describe());
  const int64_t row = x.rank() - 2, column = row + 1;
  const Dim count = Dim::min(x.extent(row), x.extent(column));
  Val rows = rowNumbers(e, x.extent(row)), columns = columnNumbers(e, x.extent(column));
  Val places = columnNumbers(e, count);
  auto step = [&](const Val &k, llvm::ArrayRef<Val> carried) {
    const Val &a = carried[0];
    Val below = e.compare(Compare::gt, rows, k), isRow = e.compare(Compare::eq, rows, k);
    Val numbers = elementAt(e, a, column, k), first = elementAt(e, numbers, row, k);
    Val rest = whereOrZero(e, below, numbers), length = sumOver(e, square(e, rest), {row}, true);
    // Nothing below the diagonal: no reflection, as of LAPACK.
    Val none = e.compare(Compare::eq, length, e.scalarLike(length, 0)), one = e.scalarLike(length, 1);
    Val whole = sqrtOf(e, e.add(square(e, first), length));
    Val corner = e.select(e.compare(Compare::lt, first, e.scalarLike(first, 0)), whole, negOf(e, whole));
    Val factor = whereOrZero(e, notOf(e, none), e.div(e.sub(corner, first), corner));
    Val vector = e.select(isRow, one, e.div(rest, e.select(none, one, e.sub(first, corner))));
    Val product = sumOver(e, e.mul(vector, a), {row}, true);
    Val turned = e.sub(a, e.mul(e.mul(factor, vector), product));
    Val line = e.select(below, vector, e.select(isRow, e.select(none, first, corner), a));
    Val next =
        e.select(e.compare(Compare::gt, columns, k), turned, e.select(e.compare(Compare::eq, columns, k), line, a));
    return std::vector<Val>{next, e.select(e.compare(Compare::eq, places, k), factor, carried[1])};
  };
  Val none = e.splat(x.dtype(), matrixDims(batchOf(x), 1, count), 0);
  std::vector<Val> results = repeat(e, count, {x, none}, step);
  Dims line = batchOf(x);
  line.push_back(count);
  return {results[0], e.reshape(results[1], line)};
}

Val productOf(Emitter &e, const Reflections &reflections, Dim columns) {
  const Val &packed = reflections.packed;
  const int64_t row = packed.rank() - 2, column = row + 1;
  const Dim rows = packed.extent(row), count = reflections.factors.extent(row);
  Val numbers = rowNumbers(e, rows);
  auto step = [&](const Val &number, llvm::ArrayRef<Val> carried) {
    Val k = e.sub(e.size(count - 1), number);
    Val rest = whereOrZero(e, e.compare(Compare::gt, numbers, k), elementAt(e, packed, column, k));
    Val vector = e.select(e.compare(Compare::eq, numbers, k), e.scalarLike(rest, 1), rest);
    Val factor = unsqueeze(e, elementAt(e, reflections.factors, row, k), column);
    Val product = sumOver(e, e.mul(vector, carried[0]), {row}, true);
    return std::vector<Val>{e.sub(carried[0], e.mul(e.mul(factor, vector), product))};
  };
  Val start = e.broadcast(identityMatrix(e, packed.dtype(), rows, columns), matrixDims(batchOf(packed), rows, columns));
  return repeat(e, count, {start}, step)[0];
}

//===--- Jacobi's rotations -------------------------------------------------------------===//

namespace {

/// Sweeps after which nothing changes any more, by far: about 10 are enough for 256 rows of f64.
constexpr int64_t kMostSweeps = 24;

/// The players of a tournament: `count` rows of matrices, and in front of an odd number of them one of zeros, which
/// never changes.
struct Tournament {
  int64_t count, half;
  Val order; ///< where the row of each place comes from
  bool padded() const { return 2 * half != count; }

  Tournament(Emitter &e, int64_t count) : count(count), half((count + 1) / 2) {
    std::vector<int64_t> from;
    for (int64_t i = 0; i < half; ++i)
      from.push_back(i == 0 ? 0 : i == 1 ? half : i - 1);
    for (int64_t i = half; i < 2 * half; ++i)
      from.push_back(i + 1 < 2 * half ? i + 1 : half == 1 ? i : half - 1);
    order = e.ints(from);
  }
  int64_t rounds() const { return std::max<int64_t>(2 * half - 1, 1); }
  Val withFirst(Emitter &e, const Val &x) const {
    Dims low(x.rank(), 0);
    low[x.rank() - 2] = 1;
    return padded() ? e.pad(x, e.scalarLike(x, 0), low, Dims(x.rank(), 0)) : x;
  }
  Val withoutFirst(Emitter &e, const Val &x) const { return padded() ? e.sliceAxis(x, x.rank() - 2, 1, count) : x; }
};

/// The halves of an axis rotated against each other by an angle whose sine it is, and their places changed. With the
/// tangent of half of it (Rutishauser 1966) the lengths stay over thousands of rounds.
struct Rotation {
  Val sine, half;
};
/// [.., half, 1]: the rotations that make vectors of such squared lengths and products orthogonal.
Rotation rotationOf(Emitter &e, const Val &first, const Val &second, const Val &product) {
  Val zero = e.scalarLike(product, 0), one = e.scalarLike(product, 1);
  Val none = e.compare(Compare::eq, product, zero);
  Val ratio = e.div(e.sub(second, first), e.mul(e.select(none, one, product), 2));
  Val size = reciprocal(e, e.add(absOf(e, ratio), sqrtOf(e, e.add(square(e, ratio), one))));
  Val tangent = e.select(e.compare(Compare::lt, ratio, zero), negOf(e, size), size);
  Val root = sqrtOf(e, e.add(square(e, tangent), one));
  return {whereOrZero(e, notOf(e, none), e.div(tangent, root)),
          whereOrZero(e, notOf(e, none), e.div(tangent, e.add(root, one)))};
}
Val rotated(Emitter &e, const Val &x, const Rotation &by, const Tournament &players) {
  const int64_t row = x.rank() - 2;
  Val first = e.sliceAxis(x, row, 0, players.half), second = e.sliceAxis(x, row, players.half, players.half);
  Val top = e.sub(first, e.mul(by.sine, e.add(second, e.mul(by.half, first))));
  Val bottom = e.add(second, e.mul(by.sine, e.sub(first, e.mul(by.half, second))));
  return e.gather(e.concat({top, bottom}, row), players.order, row);
}

double epsilonOf(DType type) {
  return type == DType::F64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}

/// The shorter side of matrices that are swept.
int64_t sweptRows(const Val &x, const char *what) {
  if (!x.extent(-1).isStatic() || !x.extent(-2).isStatic())
    failOpen("op-unsupported", std::string(what) + " are computed of matrices whose size is known",
             {x.extent(-2), x.extent(-1)});
  const int64_t n = std::min(x.dim(-2), x.dim(-1));
  if (n > kMostSweptRows)
    fail("op-unsupported", std::string(what) + " are computed of matrices with a side of up to " +
                               std::to_string(kMostSweptRows) + ", not of " + x.describe());
  return n;
}

/// [..] of x's batch, and `count`.
Dims lineDims(const Val &x, Dim count) {
  Dims dims = batchOf(x);
  dims.push_back(count);
  return dims;
}

/// Rows in the order of `places`, [.., n].
Val rowsAt(Emitter &e, const Val &x, const Val &places) {
  const int64_t row = x.rank() - 2;
  return e.emit<GatherElementsOp>({x, e.broadcast(unsqueeze(e, places, row + 1), x.dims())}, {e.attr("axis", row)});
}

Val squaredLengths(Emitter &e, const Val &rows) { return sumOver(e, square(e, rows), {rows.rank() - 1}, true); }
/// The largest size of a matrix's elements, 1 of zeros.
Val largestOf(Emitter &e, const Val &x) {
  Val most = e.reduce(Reduction::max, absOf(e, x), {x.rank() - 2, x.rank() - 1}, true);
  return e.select(e.compare(Compare::gt, most, e.scalarLike(most, 0)), most, e.scalarLike(most, 1));
}

/// Rows [.., n, m] that were rotated until they are orthogonal, and the rows of the rotation, which have the length 1.
struct Swept {
  Val rows, rotation;
};
Swept swept(Emitter &e, const Val &x) {
  const int64_t row = x.rank() - 2, n = x.dim(row), m = x.dim(row + 1);
  Val unit = e.broadcast(identityMatrix(e, x.dtype(), n, n), matrixDims(batchOf(x), n, n));
  if (n < 2)
    return {x, unit};
  const Tournament players(e, n);
  const double allowed = epsilonOf(x.dtype()) * std::sqrt(static_cast<double>(m)); // what rounding makes of a product
  Val start = players.withFirst(e, x), turned = players.withFirst(e, unit);
  // The last carried value counts rounds in which nothing was rotated; a sweep of them is the end.
  auto round = [&](const Val &, const Val &, llvm::ArrayRef<Val> values) {
    Val first = e.sliceAxis(values[0], row, 0, players.half);
    Val second = e.sliceAxis(values[0], row, players.half, players.half);
    Val a = squaredLengths(e, first), b = squaredLengths(e, second);
    Val product = sumOver(e, e.mul(first, second), {row + 1}, true);
    Rotation by = rotationOf(e, a, b, product);
    Val least = e.mul(e.mul(sqrtOf(e, a), sqrtOf(e, b)), allowed);
    Val busy = e.cast(e.compare(Compare::gt, absOf(e, product), least), DType::U8);
    Val any = e.reduce(Reduction::max, busy, axesFrom(0, busy.rank()), false);
    Val quiet = e.select(e.cast(any, DType::Bool), e.intScalar(DType::I64, 0), e.add(values[2], 1));
    return std::vector<Val>{e.compare(Compare::lt, quiet, e.intScalar(DType::I64, players.rounds())),
                            e.expectDims(rotated(e, values[0], by, players), start.dims()),
                            e.expectDims(rotated(e, values[1], by, players), turned.dims()), quiet};
  };
  Val trips = e.intScalar(DType::I64, kMostSweeps * players.rounds()), none = e.intScalar(DType::I64, 0);
  std::vector<Val> results = e.loop(trips, Val(), {start, turned, none}, round);
  Val rotation = players.withoutFirst(e, results[1]), length = sqrtOf(e, squaredLengths(e, rotation));
  return {e.div(players.withoutFirst(e, results[0]), length), e.div(rotation, length)};
}

} // namespace

//===--- Eigenvalues ------------------------------------------------------------------===//

/// Of a positive definite matrix the rotation that makes its rows orthogonal has its eigenvectors. What is added to the
/// diagonal to make it so is at least the largest eigenvalue, and at most 1.1 * n^(1/8) times it: Frobenius' norm of
/// the fourth power.
Eigen symmetricEigen(Emitter &e, const Val &x, bool upper) {
  requireSquare(x);
  const int64_t row = x.rank() - 2, column = row + 1, n = sweptRows(x, "eigenvalues");
  Val mirror = e.transposeLast(x), lower = e.compare(Compare::ge, rowNumbers(e, n), columnNumbers(e, n));
  Val whole = upper ? e.select(lower, mirror, x) : e.select(lower, x, mirror);
  Val unit = identityMatrix(e, x.dtype(), n, n);
  if (n <= 1)
    return {diagonalOf(e, whole), e.broadcast(unit, whole.dims())};
  Val scaled = e.div(whole, largestOf(e, whole)), second = e.matmul(scaled, scaled), fourth = e.matmul(second, second);
  Val norm = sqrtOf(e, sqrtOf(e, sqrtOf(e, sumOver(e, square(e, fourth), {row, column}, true))));
  Val vectors = swept(e, e.add(scaled, e.mul(unit, e.mul(norm, 1.1)))).rotation;
  Val values = sumOver(e, e.mul(e.matmul(vectors, whole), vectors), {column}, false); // Rayleigh's quotients
  std::vector<Val> order = sorted(e, values, row, n, /*largest=*/false);
  return {order[0], e.transposeLast(rowsAt(e, vectors, order[1]))};
}

//===--- Singular values --------------------------------------------------------------===//

SingularValues singularValues(Emitter &e, const Val &x) {
  requireShape(x.rank() >= 2, "expected matrices, not " + x.describe());
  const int64_t row = x.rank() - 2, n = sweptRows(x, "singular values");
  const bool turned = x.dim(row) < x.dim(row + 1);
  Val rows = turned ? x : e.transposeLast(x); // the columns of the higher one of x and its transpose
  if (n == 0)
    return {e.splat(x.dtype(), lineDims(x, n), 0), rows, e.splat(x.dtype(), matrixDims(batchOf(x), n, n), 0), turned};
  Val most = largestOf(e, rows);
  Swept found = swept(e, e.div(rows, most)); // none is larger than 1: squares stay finite
  Val values = sqrtOf(e, e.reshape(squaredLengths(e, found.rows), lineDims(x, n)));
  std::vector<Val> order = sorted(e, values, row, n, /*largest=*/true);
  return {e.mul(order[0], e.reshape(most, lineDims(x, 1))), e.mul(rowsAt(e, found.rows, order[1]), most),
          rowsAt(e, found.rotation, order[1]), turned};
}

/// The vectors of `scaled` are orthogonal: their QR's R is diagonal but for signs. What belongs to a value of 0 and
/// what completes a square comes of it too.
SingularVectors singularVectors(Emitter &e, const Val &x, bool full) {
  SingularValues of = singularValues(e, x);
  Val columns = e.transposeLast(of.scaled);
  Reflections reflections = reflectionsOf(e, columns);
  const Dim height = columns.extent(-2), n = columns.extent(-1);
  Val q = productOf(e, reflections, full ? height : n);
  Val diagonal = diagonalOf(e, reflections.packed);
  Val one = e.scalarLike(diagonal, 1);
  Val signs = e.select(e.compare(Compare::lt, diagonal, e.scalarLike(diagonal, 0)), negOf(e, one), one);
  if (full) {
    Dims low(diagonal.rank(), 0), high(diagonal.rank(), 0);
    high.back() = height - n;
    signs = e.pad(signs, one, low, high);
  }
  q = e.mul(q, unsqueeze(e, signs, signs.rank() - 1));
  return of.turned ? SingularVectors{e.transposeLast(of.right), of.values, e.transposeLast(q)}
                   : SingularVectors{q, of.values, of.right};
}

} // namespace dmxc::frontend
