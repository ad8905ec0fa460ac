//===- Product.cpp - matrix products and distances ------------------------===//
#include "Math.h"
#include "View.h"

#include "frontends/common/ops/Einsum.h"
#include "frontends/common/ops/Product.h"

#include <algorithm>
#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

void importProduct(AtenContext &c) {
  Val a = c.tensor("self"), b = c.tensor(c.given("mat2") ? "mat2" : c.given("vec") ? "vec" : "other");
  c.require(a.dtype() == b.dtype(), "the operands differ in type");
  c.result(numpyMatMul(c.e, a, b));
}
void importDot(AtenContext &c) {
  c.result(numpyMatMul(c.e, c.tensor("self"), c.tensor(c.target() == "vdot.default" ? "other" : "tensor")));
}
/// Products of bytes, added up in i32.
void importIntegerProduct(AtenContext &c) {
  c.result(numpyMatMul(c.e, c.cast(c.tensor("self"), DType::I32), c.cast(c.tensor("mat2"), DType::I32)));
}
void importOuter(AtenContext &c) {
  Val a = c.tensor("self"), b = c.tensor("vec2");
  std::vector<Val> v = promote(c, {{a, false}, {b, false}});
  c.result(c.e.mul(c.e.reshape(v[0], {a.elements(), 1}), c.e.reshape(v[1], {1, b.elements()})));
}

Val scaledBy(AtenContext &c, const Val &x, const char *name) {
  double factor = c.number(name);
  return factor == 1 ? x : c.e.mul(x, factor);
}
/// beta * self + alpha * product.
void addTo(AtenContext &c, const Val &product) {
  Val bias = c.tensor("self"), given = scaledBy(c, product, "alpha");
  if (c.number("beta") == 0)
    return c.result(given);
  c.result(c.e.expectDims(c.e.add(given, scaledBy(c, bias, "beta")), product.dims()));
}
void addProduct(AtenContext &c, const char *first, const char *second) {
  addTo(c, numpyMatMul(c.e, c.tensor(first), c.tensor(second)));
}
void importAddmm(AtenContext &c) { addProduct(c, "mat1", "mat2"); }
void importAddmv(AtenContext &c) { addProduct(c, "mat", "vec"); }
void importBaddbmm(AtenContext &c) { addProduct(c, "batch1", "batch2"); }
/// The products of a batch are added up: one product of longer rows.
void importAddbmm(AtenContext &c) {
  Val a = c.tensor("batch1"), b = c.tensor("batch2");
  c.requireShape(a.rank() == 3 && b.rank() == 3, "expected batches of matrices");
  const Dim inner = a.extent(0) * a.extent(2);
  addTo(c, c.e.matmul(c.e.reshape(c.e.transpose(a, {1, 0, 2}), {a.extent(1), inner}),
                      c.e.reshape(b, {b.extent(0) * b.extent(1), b.extent(2)})));
}
void importAddr(AtenContext &c) {
  std::vector<Val> v = promote(c, {{c.tensor("self"), false}, {c.tensor("vec1"), false}, {c.tensor("vec2"), false}});
  Val product = c.e.mul(c.e.reshape(v[1], {v[1].elements(), 1}), c.e.reshape(v[2], {1, v[2].elements()}));
  addTo(c, product);
}

/// Rows of `self` and a matrix for each group of them; without `offs` one for each matrix of `self`.
void importGrouped(AtenContext &c) {
  Val a = c.tensor("self"), b = c.tensor("mat2"), product;
  if (c.given("offs")) {
    c.require(a.rank() == 2 && b.rank() == 3, "with offs only rows are grouped here (operands of ranks 2 and 3), not " +
                                                  a.describe() + " and " + b.describe());
    product = groupedProduct(c.e, a, b, c.tensor("offs"));
  } else {
    c.require(a.rank() == 3 && b.rank() == 3, "without offs both operands have rank 3");
    product = numpyMatMul(c.e, a, b);
  }
  c.require(!c.given("bias"), "the operator has no bias in any release of torch");
  c.result(c.cast(product, c.type("out_dtype", product.dtype())));
}

void importLinear(AtenContext &c) {
  Val x = c.tensor("input"), weight = c.tensor("weight");
  c.requireShape(weight.rank() == 2 || weight.rank() == 1, "the weight must be a matrix");
  Val product = numpyMatMul(c.e, x, weight.rank() == 2 ? c.e.transposeLast(weight) : weight);
  if (Val bias = c.optional("bias"))
    product = c.e.add(product, bias);
  c.result(product);
}

void importEinsum(AtenContext &c) { c.result(einsum(c.e, c.text("equation"), c.tensors("tensors"))); }

/// sum over i, j of x1[.., i] * w[o, i, j] * x2[.., j].
void importBilinear(AtenContext &c) {
  Val a = c.tensor("input1"), b = c.tensor("input2"), weight = c.tensor("weight");
  c.requireShape(a.rank() > 0 && b.rank() > 0 && weight.rank() == 3, "expected vectors and a weight of rank 3");
  Dim rows = Dim::floorDiv(a.elements(), Dim::max(a.extent(-1), 1)), out = weight.extent(0);
  Val x = c.e.reshape(a, {rows, 1, 1, a.extent(-1)}), y = c.e.reshape(b, {rows, 1, b.extent(-1), 1});
  Val product = c.e.matmul(c.e.matmul(x, c.e.reshape(weight, {1, out, weight.extent(1), weight.extent(2)})), y);
  Dims dims = a.dims();
  dims.back() = out;
  product = c.e.reshape(product, dims);
  if (Val bias = c.optional("bias"))
    product = c.e.add(product, bias);
  c.result(product);
}

/// Three tensors, each with new axes, multiplied and summed over axes.
void importTrilinear(AtenContext &c) {
  auto expanded = [&](const char *tensor, const char *axes) {
    Val x = c.tensor(tensor);
    std::vector<int64_t> list = c.integers(axes);
    std::sort(list.begin(), list.end());
    for (int64_t axis : list) {
      c.require(axis >= 0 && axis <= x.rank(), "an axis lies outside");
      x = unsqueeze(c.e, x, axis);
    }
    return x;
  };
  Val product = c.e.mul(c.e.mul(expanded("i1", "expand1"), expanded("i2", "expand2")), expanded("i3", "expand3"));
  std::vector<int64_t> axes = c.integers("sumdim");
  for (int64_t &axis : axes)
    axis = AtenContext::normalizeAxis(axis, product.rank());
  std::sort(axes.begin(), axes.end());
  c.result(sumOver(c.e, product, axes, false));
}

void importMultiDot(AtenContext &c) {
  std::vector<Val> all = c.tensors(c.given("matrices") ? "matrices" : "tensors");
  c.require(!all.empty(), "there must be at least one matrix");
  Val product = all[0];
  for (size_t i = 1; i < all.size(); ++i)
    product = numpyMatMul(c.e, product, all[i]);
  c.result(product);
}

//===--- Distances ------------------------------------------------------------------===//

/// The p-norm over the last axis of differences.
Val distance(AtenContext &c, const Val &difference, double p) {
  Val size = absOf(c.e, difference);
  int64_t last = size.rank() - 1;
  if (p == 0)
    return sumOver(c.e, c.cast(c.e.compare(Compare::ne, size, c.like(size, 0)), size.dtype()), {last}, false);
  if (std::isinf(p))
    return c.e.reduce(Reduction::max, size, {last}, false);
  if (p == 1)
    return sumOver(c.e, size, {last}, false);
  return powerOf(c.e, sumOver(c.e, powerOf(c.e, size, p), {last}, false), 1 / p);
}
/// [.., n, 1, d] - [.., 1, m, d].
Val pairwise(AtenContext &c, const Val &a, const Val &b) {
  c.requireShape(a.rank() >= 2 && b.rank() >= 2, "expected matrices");
  return c.e.sub(unsqueeze(c.e, a, a.rank() - 1), unsqueeze(c.e, b, b.rank() - 2));
}
void importCdist(AtenContext &c) { c.result(distance(c, pairwise(c, c.tensor("x1"), c.tensor("x2")), c.number("p"))); }

void importCdistBackward(AtenContext &c) {
  Val difference = pairwise(c, c.tensor("x1"), c.tensor("x2"));
  double p = c.number("p");
  int64_t last = difference.rank() - 1;
  Val g = unsqueeze(c.e, c.tensor("grad"), last), dist = unsqueeze(c.e, c.tensor("cdist"), last);
  Val zero = c.like(difference, 0), sign = c.e.emit<SignOp>({difference}), size = absOf(c.e, difference), slope;
  if (p == 0)
    return c.result(c.e.splat(difference.dtype(), c.tensor("x1").dims(), 0));
  if (p == 1)
    slope = sign;
  else if (std::isinf(p))
    slope = c.e.mul(sign, c.cast(c.e.compare(Compare::eq, size, dist), size.dtype()));
  else
    slope = c.e.select(c.e.compare(Compare::eq, dist, zero), zero,
                       c.e.div(c.e.mul(sign, powerOf(c.e, size, p - 1)), powerOf(c.e, dist, p - 1)));
  c.result(sumTo(c.e, sumOver(c.e, c.e.mul(g, slope), {last - 1}, false), c.tensor("x1").dims()));
}

/// Distances of rows i < j, in order.
void importPdist(AtenContext &c) {
  Val x = c.tensor("self");
  c.requireShape(x.rank() == 2, "expected a matrix");
  int64_t n = x.dim(0);
  c.requireShape(n <= 1024, "more than 1024 rows");
  std::vector<int64_t> first, second;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j) {
      first.push_back(i);
      second.push_back(j);
    }
  Val a = c.e.gather(x, c.e.ints(first), 0), b = c.e.gather(x, c.e.ints(second), 0);
  c.result(distance(c, c.e.sub(a, b), c.number("p")));
}

} // namespace

std::vector<AtenRow> productOps() {
  return {
      {"mm(Tensor self, Tensor mat2) -> Tensor", importProduct},
      {"bmm(Tensor self, Tensor mat2) -> Tensor", importProduct},
      {"mv(Tensor self, Tensor vec) -> Tensor", importProduct},
      {"matmul(Tensor self, Tensor other) -> Tensor", importProduct},
      {"dot(Tensor self, Tensor tensor) -> Tensor", importDot},
      {"vdot(Tensor self, Tensor other) -> Tensor", importDot},
      {"_int_mm(Tensor self, Tensor mat2) -> Tensor", importIntegerProduct},
      {"outer(Tensor self, Tensor vec2) -> Tensor", importOuter},
      {"addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", importAddmm},
      {"addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", importAddmv},
      {"baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", importBaddbmm},
      {"addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", importAddbmm},
      {"addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", importAddr},
      {"_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> "
       "Tensor",
       importGrouped},
      {"linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", importLinear},
      {"einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", importEinsum},
      {"bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", importBilinear},
      {"_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int "
       "unroll_dim=1) -> Tensor",
       importTrilinear},
      {"_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor", importCdist},
      {"cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor", importCdist},
      {"_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor", importCdistBackward},
      {"linalg_multi_dot(Tensor[] tensors) -> Tensor", importMultiDot},
      {"chain_matmul(Tensor[] matrices) -> Tensor", importMultiDot},
      {"pdist(Tensor self, float p=2.) -> Tensor", importPdist},
      {"_pdist_forward(Tensor self, float p=2.) -> Tensor", importPdist},
  };
}

} // namespace dmxc::torchfe
