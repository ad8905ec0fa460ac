//===- SingularValues.cpp - eigenvalues, singular values, what is made of them ------===//
#include "../Math.h"

#include "frontends/common/ops/matrices/Decompositions.h"
#include "frontends/common/ops/matrices/LinearAlgebra.h"

#include <cmath>
#include <limits>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

Val matrices(AtenContext &c, const char *name) {
  Val x = c.tensor(name);
  c.requireShape(x.rank() >= 2, "expected matrices, not " + x.describe());
  c.require(isFloat(x.dtype()), "the matrices must be floats, not " + x.describe());
  return c.wide(x);
}
Val empty(AtenContext &c, const Val &like) { return c.e.splat(like.dtype(), {0}, 0); }

void importEigen(AtenContext &c) {
  const char *name = c.target().starts_with("_") ? "A" : "self";
  const DType type = c.tensor(name).dtype();
  const std::string triangle = c.text("UPLO");
  c.require(triangle == "L" || triangle == "U" || triangle == "l" || triangle == "u",
            "UPLO is 'L' or 'U', not '" + triangle + "'");
  Eigen found = symmetricEigen(c.e, matrices(c, name), triangle == "U" || triangle == "u");
  c.result(0, c.cast(found.values, type));
  if (c.target() == "linalg_eigvalsh.default")
    return;
  const bool vectors = !c.target().starts_with("_") || c.flag("compute_v");
  if (c.wanted(1))
    c.result(1, c.cast(vectors ? found.vectors : empty(c, found.vectors), type));
}

void importSvd(AtenContext &c) {
  const bool old = c.target() == "svd.default", inner = c.target() == "_linalg_svd.default";
  Val given = c.tensor(old ? "self" : "A"), x = matrices(c, old ? "self" : "A");
  const bool full = old ? !c.flag("some") : c.flag("full_matrices");
  const bool vectors = !(old || inner) || c.flag("compute_uv");
  auto results = [&](const Val &u, const Val &values, const Val &v) {
    const Val all[] = {u, values, v};
    for (size_t i = 0; i < 3; ++i)
      if (c.wanted(i))
        c.result(i, c.cast(all[i], given.dtype()));
  };
  if (vectors && (c.wanted(0) || c.wanted(2))) {
    SingularVectors found = singularVectors(c.e, x, full);
    return results(found.u, found.values, old ? c.e.transposeLast(found.vt) : found.vt);
  }
  Val values = singularValues(c.e, x).values, none = empty(c, x);
  auto zeros = [&](int64_t side) {
    return old ? c.e.splat(x.dtype(), matrixDims(batchOf(x), x.extent(side), x.extent(side)), 0) : none;
  };
  results(zeros(-2), values, zeros(-1));
}
void importSingularValues(AtenContext &c) {
  c.result(c.cast(singularValues(c.e, matrices(c, "A")).values, c.tensor("A").dtype()));
}

//===--- Pseudoinverses and ranks ---------------------------------------------------------===//

/// A tolerance that is a number or a tensor; null where it is not given.
Val tolerance(AtenContext &c, const char *name, const Val &like) {
  return c.given(name) ? c.cast(c.operand(name).value, like.dtype()) : Val();
}
/// Which of the sizes, [.., k], are more than max(atol, rtol * the largest). Without rtol that is what rounding of
/// m x n matrices makes, or 0 where there is an atol.
Val counted(AtenContext &c, const Val &sizes, const Val &x, Val atol, Val rtol, DType type) {
  Emitter &e = c.e;
  const int64_t last = sizes.rank() - 1;
  const double epsilon = type == DType::F64   ? std::numeric_limits<double>::epsilon()
                         : type == DType::F32 ? std::numeric_limits<float>::epsilon()
                         : type == DType::F16 ? 0x1p-10
                                              : 0x1p-7;
  if (!rtol) {
    rtol = e.mul(e.cast(e.size(Dim::max(x.extent(-1), x.extent(-2))), sizes.dtype()), epsilon);
    if (atol)
      rtol = e.select(e.compare(Compare::gt, atol, c.like(atol, 0)), c.like(rtol, 0), rtol);
  }
  if (!atol)
    atol = c.like(sizes, 0);
  auto column = [&](const Val &v) { return v.rank() ? unsqueeze(e, v, v.rank()) : v; };
  Val least = e.mul(column(rtol), e.reduce(Reduction::max, sizes, {last}, true));
  return e.compare(Compare::gt, sizes, e.max(column(atol), least));
}
bool isEmpty(const Val &x) { return x.extent(-1).is(0) || x.extent(-2).is(0); }

void importRank(AtenContext &c) {
  const bool old = c.target() == "linalg_matrix_rank.tol_tensor" || c.target() == "linalg_matrix_rank.default";
  const char *name = c.target().ends_with("_tensor") ? "input" : "self";
  Val x = matrices(c, name);
  if (isEmpty(x))
    return c.result(c.e.splat(DType::I64, batchOf(x), 0));
  Val sizes = c.flag("hermitian") ? absOf(c.e, symmetricEigen(c.e, x, false).values) : singularValues(c.e, x).values;
  Val atol = tolerance(c, old ? "tol" : "atol", x), rtol = old ? c.like(x, 0) : tolerance(c, "rtol", x);
  Val hits = counted(c, sizes, x, atol, rtol, c.tensor(name).dtype());
  c.result(sumOver(c.e, c.cast(hits, DType::I64), {hits.rank() - 1}, false));
}

void importPseudoinverse(AtenContext &c) {
  Emitter &e = c.e;
  Val given = c.tensor("self"), x = matrices(c, "self");
  if (isEmpty(x))
    return c.result(e.transposeLast(given));
  const bool bySize = c.target().starts_with("linalg_pinv.atol");
  Val atol = bySize ? tolerance(c, "atol", x) : Val(), rtol = tolerance(c, bySize ? "rtol" : "rcond", x);
  const bool symmetric = c.target() != "pinverse.default" && c.flag("hermitian");
  auto inverted = [&](const Val &values, const Val &sizes) { // as a column
    Val hits = counted(c, sizes, x, atol, rtol, given.dtype());
    Val numbers = whereOrZero(e, hits, reciprocal(e, e.select(hits, values, c.like(values, 1))));
    return unsqueeze(e, numbers, numbers.rank());
  };
  if (symmetric) {
    Eigen found = symmetricEigen(e, x, false);
    Val rows = e.transposeLast(found.vectors), scaled = e.mul(rows, inverted(found.values, absOf(e, found.values)));
    return c.result(c.cast(e.matmul(found.vectors, scaled), given.dtype()));
  }
  SingularValues found = singularValues(e, x);
  Val scale = inverted(found.values, found.values);
  Val left = e.mul(found.scaled, scale), right = e.mul(found.right, scale);
  Val result = found.turned ? e.matmul(e.transposeLast(left), right) : e.matmul(e.transposeLast(right), left);
  c.result(c.cast(result, given.dtype()));
}

//===--- Norms ------------------------------------------------------------------------===//

/// The norm of A times the norm of its inverse; of the orders 2 and -2 the quotient of singular values.
void importCondition(AtenContext &c) {
  Emitter &e = c.e;
  Val x = c.tensor("self"), wide = matrices(c, "self");
  const bool named = c.target() == "linalg_cond.p_str";
  const double order = named || !c.given("p") ? 2 : c.number("p");
  if (isEmpty(wide))
    return c.result(e.splat(x.dtype(), batchOf(x), 0));
  if (!named && std::abs(order) == 2) {
    Val values = singularValues(e, wide).values;
    const int64_t last = values.rank() - 1;
    Val first = e.sliceAxis(values, last, 0, 1), end = e.sliceAxis(values, last, values.dim(last) - 1, 1);
    Val quotient = order > 0 ? e.div(first, end) : e.div(end, first);
    return c.result(c.cast(e.reshape(quotient, batchOf(x)), x.dtype()));
  }
  auto norm = [&](const Val &of) {
    if (named)
      return called(c, "linalg_matrix_norm.str_ord", {Arg::tensor(of), c.arg("p")});
    return called(c, "linalg_matrix_norm.default", {Arg::tensor(of), Arg::number(order)});
  };
  c.result(c.cast(e.mul(norm(wide), norm(inverse(e, wide).x)), x.dtype()));
}
void importNuclearNorm(AtenContext &c) {
  Arg axes = Arg::intList({-2, -1});
  if (c.target() == "nuclear_norm.dim")
    axes = c.arg("dim");
  c.result(called(c, "linalg_matrix_norm.str_ord", {c.arg("self"), Arg::string("nuc"), axes, c.arg("keepdim")}));
}

} // namespace

std::vector<AtenRow> singularValueOps() {
#define HERMITIAN "bool hermitian=False) -> Tensor"
  const char *size = "of up to 256 rows or columns, whose number is known",
             *signs = "of up to 256 rows; signs may differ";
  return {
      {"linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)", importEigen, signs},
      {"_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
       importEigen, signs},
      {"linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor", importEigen, size},
      {"linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
       importSvd, signs},
      {"_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, "
       "Tensor S, Tensor Vh)",
       importSvd, signs},
      {"svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)", importSvd, signs},
      {"linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", importSingularValues, size},
      {"linalg_matrix_rank(Tensor self, float tol, " HERMITIAN, importRank, size},
      {"linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, " HERMITIAN, importRank, size},
      {"linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, " HERMITIAN,
       importRank, size},
      {"linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, " HERMITIAN, importRank,
       size},
      {"linalg_pinv(Tensor self, float rcond, " HERMITIAN, importPseudoinverse, size},
      {"linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, " HERMITIAN, importPseudoinverse, size},
      {"linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, " HERMITIAN,
       importPseudoinverse, size},
      {"linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, " HERMITIAN,
       importPseudoinverse, size},
      {"pinverse(Tensor self, float rcond=1e-15) -> Tensor", importPseudoinverse, size},
      {"linalg_cond(Tensor self, Scalar? p=None) -> Tensor", importCondition, size},
      {"linalg_cond.p_str(Tensor self, str p) -> Tensor", importCondition, size},
      {"nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", importNuclearNorm, size},
      {"nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", importNuclearNorm, size},
  };
#undef HERMITIAN
}

} // namespace dmxc::torchfe
