//===- LinearAlgebra.cpp - systems of equations, factors of matrices ------===//
//
// Where torch raises an error of values (a singular matrix, one that is not positive definite) the results are infinite
// or NaN; results named info say what torch's do.
//
//===----------------------------------------------------------------------===//
#include "frontends/common/ops/matrices/LinearAlgebra.h"
#include "../Math.h"

#include "frontends/common/ops/Order.h"
#include "frontends/common/ops/matrices/Decompositions.h"

#include <algorithm>
#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

/// An operand that is matrices, in the type that they are computed in.
Val matrices(AtenContext &c, const char *name) {
  Val x = c.tensor(name);
  c.requireShape(x.rank() >= 2, "'" + std::string(name) + "' must be matrices, not " + x.describe());
  c.require(isFloat(x.dtype()), "'" + std::string(name) + "' must be floats, not " + x.describe());
  return c.wide(x);
}
/// As the operand `like` has it.
void give(AtenContext &c, size_t i, const Val &value, const char *like) {
  c.result(i, c.cast(value, c.tensor(like).dtype()));
}
/// What torch gives for a result that it was not asked for.
Val nothing(AtenContext &c, const Val &like) { return c.e.splat(like.dtype(), {0}, 0); }
Val adjointIf(AtenContext &c, bool turned, const Val &x) { return turned ? c.e.transposeLast(x) : x; }

//===--- Inverses and determinants ------------------------------------------------------===//

void importInverse(AtenContext &c) {
  const char *name = c.target().starts_with("linalg") ? "A" : "self";
  Solution found = inverse(c.e, matrices(c, name));
  give(c, 0, found.x, name);
  if (c.target() == "linalg_inv_ex.default")
    c.result(1, found.info);
}
void importMatrixPower(AtenContext &c) {
  Val x = c.tensor("self");
  c.requireShape(x.rank() >= 2, "expected matrices, not " + x.describe());
  const int64_t n = c.integer("n");
  c.require(isFloat(x.dtype()) || n >= 0, "negative powers are of floats");
  c.result(c.cast(matrixPower(c.e, c.wide(x), n), x.dtype()));
}
void importMatrixExponential(AtenContext &c) { give(c, 0, matrixExponential(c.e, matrices(c, "self")), "self"); }

LuFactors factorsOf(AtenContext &c, const char *name) { return luFactors(c.e, squareMatrices(c.e, matrices(c, name))); }
void importDeterminant(AtenContext &c) {
  const char *name = c.target() == "det.default" ? "self" : "A";
  give(c, 0, determinant(c.e, factorsOf(c, name)), name);
}
void importLogDeterminant(AtenContext &c) {
  const char *name = c.target() == "slogdet.default" ? "self" : "A";
  LogDeterminant found = logDeterminant(c.e, factorsOf(c, name));
  give(c, 0, found.sign, name);
  give(c, 1, found.log, name);
}
/// NaN of a negative determinant.
void importLogdet(AtenContext &c) {
  LogDeterminant found = logDeterminant(c.e, factorsOf(c, "self"));
  Val negative = c.e.compare(Compare::eq, found.sign, c.like(found.sign, -1));
  give(c, 0, c.e.select(negative, c.like(found.log, NAN), found.log), "self");
}

//===--- Systems of equations -----------------------------------------------------------===//

/// Whether the right side is one vector for each matrix: torch's rule.
bool isVectorSide(const Val &a, const Val &b) {
  if (b.rank() == 1)
    return true;
  Dims expected = a.dims();
  expected.pop_back();
  return b.rank() + 1 == a.rank() && Dims(b.dims()) == expected;
}
void importSolve(AtenContext &c) {
  Val a = matrices(c, "A"), b = c.wide(c.tensor("B"));
  c.require(a.dtype() == b.dtype(), "A and B differ in type");
  const bool vector = isVectorSide(a, b), left = c.flag("left");
  c.requireShape(vector || b.rank() >= 2, "B must be matrices or vectors, not " + b.describe());
  c.require(left || !vector, "left=False needs matrices as the right side");
  if (vector)
    b = unsqueeze(c.e, b, b.rank());
  Solution found = solve(c.e, adjointIf(c, !left, a), adjointIf(c, !left, b));
  Val x = adjointIf(c, !left, found.x);
  if (vector) {
    Dims dims = x.dims();
    dims.pop_back();
    x = c.e.reshape(x, dims);
  }
  give(c, 0, x, "A");
  if (c.target() != "linalg_solve.default")
    c.result(c.target() == "linalg_solve_ex.default" ? 1 : 3, found.info);
}

void importSolveTriangular(AtenContext &c) {
  Val a = matrices(c, "self"), b = matrices(c, "B");
  const bool left = c.flag("left"), upper = c.flag("upper");
  Val x = solveTriangular(c.e, adjointIf(c, !left, a), adjointIf(c, !left, b), upper == left, c.flag("unitriangular"));
  give(c, 0, adjointIf(c, !left, x), "self");
}
void importTriangularSolve(AtenContext &c) {
  Val b = matrices(c, "self"), a = matrices(c, "A");
  const bool turned = c.flag("transpose");
  auto [left, right] = broadcastBatches(c.e, a, b);
  Val x = solveTriangular(c.e, adjointIf(c, turned, left), right, c.flag("upper") != turned, c.flag("unitriangular"));
  give(c, 0, x, "self");
  give(c, 1, left, "self");
}
/// tensorinv: an inverse of the first `ind` axes against the others.
void importTensorInverse(AtenContext &c) {
  Val x = c.tensor("self");
  const int64_t count = c.integer("ind");
  c.require(count > 0, "ind must be positive");
  c.requireShape(x.rank() > count, "the tensor has too few axes");
  Dims dims = x.dims(), front(llvm::ArrayRef<Dim>(dims).take_front(count)),
       back(llvm::ArrayRef<Dim>(dims).drop_front(count));
  Dim rows = 1, columns = 1;
  for (Dim dim : front)
    rows *= dim;
  for (Dim dim : back)
    columns *= dim;
  c.requireShape(mayEqual(rows, columns), "the axes of both sides must have equally many elements");
  back.append(front.begin(), front.end());
  Val flat = c.e.reshape(x, {rows, columns});
  c.result(c.e.reshape(called(c, "linalg_inv.default", {Arg::tensor(flat)}), back));
}
void importTensorSolve(AtenContext &c) {
  Val a = c.tensor("self"), b = c.tensor("other");
  std::vector<int64_t> order = axesFrom(0, a.rank());
  for (int64_t axis : c.integers("dims")) {
    axis = AtenContext::normalizeAxis(axis, a.rank());
    order.erase(std::remove(order.begin(), order.end(), axis), order.end());
    order.push_back(axis);
  }
  c.requireShape(order.size() == static_cast<size_t>(a.rank()), "an axis is named twice");
  a = c.e.transpose(a, order);
  c.requireShape(a.rank() >= b.rank(), "the tensor has fewer axes than the right side");
  Dims dims = a.dims(), back(llvm::ArrayRef<Dim>(dims).drop_front(b.rank()));
  Val flat = c.e.reshape(a, {b.elements(), b.elements()}), right = c.e.reshape(b, {b.elements()});
  c.result(c.e.reshape(called(c, "linalg_solve.default", {Arg::tensor(flat), Arg::tensor(right)}), back));
}

//===--- LU -----------------------------------------------------------------------------===//

void importFactors(AtenContext &c) {
  const char *name = c.target() == "_lu_with_info.default" ? "self" : "A";
  c.require(c.flag("pivot"), "the factors are computed with pivots (pivot=True)");
  LuFactors factors = luFactors(c.e, matrices(c, name));
  give(c, 0, factors.packed, name);
  c.result(1, factors.pivots);
  if (c.target() != "linalg_lu_factor.default")
    c.result(2, factors.info);
}
/// P, L and U of what luFactors packs.
void unpack(AtenContext &c, const LuFactors &factors, bool permutation, bool triangles, const char *name) {
  Emitter &e = c.e;
  const Val &lu = factors.packed;
  const int64_t row = lu.rank() - 2;
  const Dim rows = lu.extent(row), columns = lu.extent(row + 1), count = Dim::min(rows, columns);
  Val p = nothing(c, lu), l = p, u = p;
  if (permutation && c.wanted(0))
    p = permutationMatrix(e, lu.dtype(), permutationOf(e, factors.pivots, rows));
  if (triangles) {
    Val below = lowerTriangle(e, e.sliceAxis(lu, row + 1, 0, count));
    Val isDiagonal = e.compare(Compare::eq, rowNumbers(e, rows), columnNumbers(e, count));
    l = e.select(isDiagonal, c.like(lu, 1), below);
    u = upperTriangle(e, e.sliceAxis(lu, row, 0, count));
  }
  const Val results[] = {p, l, u};
  for (size_t i = 0; i < 3; ++i)
    give(c, i, results[i], name);
}
void importLu(AtenContext &c) {
  c.require(c.flag("pivot"), "the factors are computed with pivots (pivot=True)");
  unpack(c, luFactors(c.e, matrices(c, "A")), true, true, "A");
}
void importUnpack(AtenContext &c) {
  unpack(c, {matrices(c, "LU_data"), c.tensor("LU_pivots"), Val()}, c.flag("unpack_pivots"), c.flag("unpack_data"),
         "LU_data");
}
void importLuSolve(AtenContext &c) {
  const bool old = c.target() == "lu_solve.default", left = old || c.flag("left");
  Val lu = matrices(c, old ? "LU_data" : "LU"), b = matrices(c, old ? "self" : "B");
  Val pivots = c.tensor(old ? "LU_pivots" : "pivots");
  requireSquare(lu);
  const bool turned = (!old && c.flag("adjoint")) != !left;
  Val x = solveByFactors(c.e, {lu, pivots, Val()}, adjointIf(c, !left, b), turned);
  give(c, 0, adjointIf(c, !left, x), old ? "self" : "B");
}

//===--- Cholesky -----------------------------------------------------------------------===//

void importCholesky(AtenContext &c) {
  const bool upper = c.flag("upper");
  Solution found = cholesky(c.e, adjointIf(c, upper, matrices(c, "self")));
  give(c, 0, adjointIf(c, upper, found.x), "self");
  if (c.target() == "linalg_cholesky_ex.default")
    c.result(1, found.info);
}
/// Of L L^T X = B, or U^T U X = B.
Val solveByCholesky(AtenContext &c, const Val &factor, const Val &b, bool upper) {
  Val lower = adjointIf(c, upper, factor);
  return solveTriangular(c.e, c.e.transposeLast(lower), solveTriangular(c.e, lower, b, false), true);
}
void importCholeskySolve(AtenContext &c) {
  give(c, 0, solveByCholesky(c, matrices(c, "input2"), matrices(c, "self"), c.flag("upper")), "self");
}
void importCholeskyInverse(AtenContext &c) {
  Val factor = matrices(c, "self");
  const Dim n = requireSquare(factor);
  give(c, 0, solveByCholesky(c, factor, identityMatrix(c.e, factor.dtype(), n, n), c.flag("upper")), "self");
}

//===--- QR -----------------------------------------------------------------------------===//

void importQr(AtenContext &c) {
  Val x = matrices(c, "A");
  const std::string mode = c.text("mode");
  c.require(mode == "reduced" || mode == "complete" || mode == "r", "the mode '" + mode + "' is unknown");
  const int64_t row = x.rank() - 2;
  const Dim rows = x.extent(row), count = mode == "complete" ? rows : Dim::min(rows, x.extent(row + 1));
  Reflections found = reflectionsOf(c.e, x);
  if (c.wanted(0))
    give(c, 0, mode == "r" ? nothing(c, x) : productOf(c.e, found, count), "A");
  give(c, 1, upperTriangle(c.e, c.e.sliceAxis(found.packed, row, 0, count)), "A");
}
void importGeqrf(AtenContext &c) {
  Reflections found = reflectionsOf(c.e, matrices(c, "self"));
  give(c, 0, found.packed, "self");
  give(c, 1, found.factors, "self");
}
void importHouseholderProduct(AtenContext &c) {
  const char *name = c.target() == "orgqr.default" ? "self" : "input";
  Val x = matrices(c, name), factors = c.wide(c.tensor(c.target() == "orgqr.default" ? "input2" : "tau"));
  c.requireShape(factors.rank() + 1 == x.rank(), "tau has one axis less than the matrices");
  give(c, 0, productOf(c.e, {x, factors}, x.extent(-1)), name);
}
/// Q of m rows times other matrices, from the left or from the right.
void importOrmqr(AtenContext &c) {
  Val x = matrices(c, "self"), other = matrices(c, "input3"), factors = c.wide(c.tensor("input2"));
  c.requireShape(factors.rank() + 1 == x.rank(), "tau has one axis less than the matrices");
  Val q = adjointIf(c, c.flag("transpose"), productOf(c.e, {x, factors}, x.extent(-2)));
  give(c, 0, c.flag("left") ? c.e.matmul(q, other) : c.e.matmul(other, q), "self");
}

//===--- Powers of numbers ----------------------------------------------------------------===//

/// [.., n] as [.., n, N] of powers 0, 1, .. of each number; vander has them from the last one on.
void importVander(AtenContext &c) {
  const bool old = c.target() == "vander.default";
  Val x = c.tensor("x");
  if (!isFloat(x.dtype()))
    x = c.cast(x, DType::I64);
  if (x.rank() == 0)
    x = c.e.reshape(x, {1});
  c.requireShape(!old || x.rank() == 1, "expected a vector");
  const int64_t n = c.given("N") ? c.integer("N") : x.dim(-1), last = x.rank();
  c.require(n >= 0, "N must not be negative");
  Dims dims = x.dims();
  dims.push_back(n);
  Val line = c.e.iota(DType::I64, {n}, 0), each = c.e.broadcast(unsqueeze(c.e, c.wide(x), last), dims);
  Val factors = c.e.select(c.e.compare(Compare::eq, line, c.e.intScalar(DType::I64, 0)), c.like(each, 1), each);
  Val powers = cumulativeProduct(c.e, factors, last);
  if (old && !c.flag("increasing"))
    powers = called(c, "flip.default", {Arg::tensor(powers), Arg::intList({last})});
  c.result(c.cast(powers, x.dtype()));
}

constexpr const char *kValues = "NaN or infinite where torch raises an error of values";

} // namespace

std::vector<AtenRow> linearAlgebraOps() {
  const char *values = kValues;
  const char *factors = "without the factors, which gradients alone read: torch's are those of one or another layout";
  return {
      {"linalg_inv(Tensor A) -> Tensor", importInverse, values},
      {"linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)", importInverse, values},
      {"inverse(Tensor self) -> Tensor", importInverse, values},
      {"matrix_power(Tensor self, int n) -> Tensor", importMatrixPower},
      {"linalg_matrix_power(Tensor self, int n) -> Tensor", importMatrixPower},
      {"matrix_exp(Tensor self) -> Tensor", importMatrixExponential},
      {"linalg_matrix_exp(Tensor self) -> Tensor", importMatrixExponential},
      {"det(Tensor self) -> Tensor", importDeterminant},
      {"linalg_det(Tensor A) -> Tensor", importDeterminant},
      {"_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)", importDeterminant, factors},
      {"slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", importLogDeterminant},
      {"linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", importLogDeterminant},
      {"_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)", importLogDeterminant,
       factors},
      {"logdet(Tensor self) -> Tensor", importLogdet},
      {"linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", importSolve, values},
      {"linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor "
       "info)",
       importSolve, values},
      {"_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, "
       "Tensor pivots, Tensor info)",
       importSolve, factors},
      {"linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> "
       "Tensor",
       importSolveTriangular},
      {"triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
       "(Tensor solution, Tensor cloned_coefficient)",
       importTriangularSolve},
      {"linalg_tensorinv(Tensor self, int ind=2) -> Tensor", importTensorInverse, values},
      {"linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", importTensorSolve, values},
      {"vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", importVander},
      {"linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", importVander},
  };
}

std::vector<AtenRow> factorisationOps() {
  const char *values = kValues, *pivots = "with pivots";
  return {
      {"linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", importLu, pivots},
      {"linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", importFactors, pivots},
      {"linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, "
       "Tensor info)",
       importFactors, pivots},
      {"_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)",
       importFactors, pivots},
      {"lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, "
       "Tensor L, Tensor U)",
       importUnpack},
      {"lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", importLuSolve},
      {"linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
       importLuSolve},
      {"cholesky(Tensor self, bool upper=False) -> Tensor", importCholesky, values},
      {"linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", importCholesky, values},
      {"linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
       importCholesky, values},
      {"cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", importCholeskySolve},
      {"cholesky_inverse(Tensor self, bool upper=False) -> Tensor", importCholeskyInverse},
      {"linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)", importQr},
      {"geqrf(Tensor self) -> (Tensor a, Tensor tau)", importGeqrf},
      {"linalg_householder_product(Tensor input, Tensor tau) -> Tensor", importHouseholderProduct},
      {"orgqr(Tensor self, Tensor input2) -> Tensor", importHouseholderProduct},
      {"ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor", importOrmqr},
  };
}

} // namespace dmxc::torchfe
