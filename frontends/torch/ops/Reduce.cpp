//===- Reduce.cpp - reductions, scans, sorting ----------------------------===//
#include "Math.h"

#include "frontends/common/ops/Counting.h"
#include "frontends/common/ops/Order.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::torchfe {

namespace {

bool keepDim(AtenContext &c) { return c.flag("keepdim", false); }

/// The type that sums and products are made in: integers in i64.
Val summand(AtenContext &c, const Val &x) {
  return c.cast(x, c.type("dtype", isFloat(x.dtype()) ? x.dtype() : DType::I64));
}
template <Reduction kind> void importReduce(AtenContext &c) {
  Val x = summand(c, c.tensor("self"));
  c.result(c.e.reduce(kind, x, c.axes("dim", x.rank()), keepDim(c)));
}
void importMean(AtenContext &c) {
  Val x = c.tensor("self");
  x = c.cast(x, c.type("dtype", x.dtype()));
  c.require(isFloat(x.dtype()), "the mean is taken of floats, not of " + std::string(dtypeName(x.dtype())));
  c.result(c.e.reduce(Reduction::mean, x, c.axes("dim", x.rank()), keepDim(c)));
}

/// max and min, of bools any and all.
Val extreme(AtenContext &c, Reduction kind, const Val &x, llvm::ArrayRef<int64_t> axes, bool keep) {
  if (x.dtype() != DType::Bool)
    return c.e.reduce(kind, x, axes, keep);
  return c.cast(c.e.reduce(kind, c.cast(x, DType::U8), axes, keep), DType::Bool);
}
template <Reduction kind> void importExtreme(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(extreme(c, kind, x, c.axes("dim", x.rank()), keepDim(c)));
}
template <Reduction kind> void importAnyAll(AtenContext &c) {
  Val x = c.truth(c.tensor("self"));
  c.result(extreme(c, kind, x, c.axes("dim", x.rank()), keepDim(c)));
}

/// Values and where they stand. A NaN is an extreme of its own in torch.
template <Reduction kind> void importExtremeDim(AtenContext &c) {
  Val x = c.tensor("self");
  if (x.rank() == 0) {
    c.result(0, x);
    return c.result(1, c.e.intScalar(DType::I64, 0));
  }
  int64_t axis = c.axis("dim", x.rank());
  c.result(0, extreme(c, kind, x, {axis}, keepDim(c)));
  c.result(1,
           argExtremum(c.e, kind == Reduction::max ? Extremum::max : Extremum::min, asNumbers(c, x), axis, keepDim(c)));
}
template <Extremum kind> void importArg(AtenContext &c) {
  Val x = asNumbers(c, c.tensor("self"));
  if (!c.given("dim")) {
    Val at = argExtremum(c.e, kind, c.e.reshape(x, {x.elements()}), 0, false);
    return c.result(keepDim(c) ? c.e.reshape(at, Dims(x.rank(), 1)) : at);
  }
  if (x.rank() == 0)
    return c.result(c.e.intScalar(DType::I64, 0));
  c.result(argExtremum(c.e, kind, x, c.axis("dim", x.rank()), keepDim(c)));
}

//===--- Moments --------------------------------------------------------------------===//

/// Variance with `correction` taken off the count, and the mean, both with the axes kept.
std::pair<Val, Val> moments(AtenContext &c, const Val &x, llvm::ArrayRef<int64_t> axes, double correction) {
  Val mean = meanOver(c.e, x, axes, true);
  Val total = sumOver(c.e, square(c.e, c.e.sub(x, mean)), axes, true);
  Dim count = 1;
  for (int64_t axis : axes)
    count *= x.extent(axis);
  Val divisor = c.cast(c.e.size(count), x.dtype());
  if (correction != 0)
    divisor = c.e.max(c.e.add(divisor, -correction), c.like(x, 0));
  return {c.e.div(total, divisor), mean};
}
Val withoutAxes(Emitter &e, const Val &x, llvm::ArrayRef<int64_t> axes, bool keep) {
  Dims dims;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (keep || llvm::find(axes, i) == axes.end())
      dims.push_back(x.extent(i));
  return e.reshape(x, dims);
}
double correctionOf(AtenContext &c) {
  if (c.given("unbiased"))
    return c.flag("unbiased") ? 1 : 0;
  return c.number("correction", 1);
}
template <bool root, bool withMean> void importVariance(AtenContext &c) {
  Val given = c.tensor("self"), x = c.wide(given);
  c.require(isFloat(x.dtype()), "the variance is taken of floats");
  std::vector<int64_t> axes = c.axes("dim", x.rank());
  auto [variance, mean] = moments(c, x, axes, correctionOf(c));
  if (root)
    variance = sqrtOf(c.e, variance);
  c.result(0, c.cast(withoutAxes(c.e, variance, axes, keepDim(c)), given.dtype()));
  if (withMean)
    c.result(1, c.cast(withoutAxes(c.e, mean, axes, keepDim(c)), given.dtype()));
}

void importLogSumExp(AtenContext &c) {
  Val given = c.asFloat(c.tensor("self")), x = c.wide(given);
  std::vector<int64_t> axes = c.axes("dim", x.rank());
  c.result(c.cast(withoutAxes(c.e, logSumExp(c.e, x, axes), axes, keepDim(c)), given.dtype()));
}

/// The norm of order p over axes.
void normOf(AtenContext &c, double p) {
  Val given = c.asFloat(c.tensor("self"));
  given = c.cast(given, c.type("dtype", given.dtype()));
  Val x = absOf(c.e, c.wide(given));
  std::vector<int64_t> axes = c.axes("dim", x.rank());
  bool keep = keepDim(c);
  Val result;
  if (std::isinf(p))
    result = c.e.reduce(p > 0 ? Reduction::max : Reduction::min, x, axes, keep);
  else if (p == 0)
    result = sumOver(c.e, c.cast(c.e.compare(Compare::ne, x, c.like(x, 0)), x.dtype()), axes, keep);
  else if (p == 1)
    result = sumOver(c.e, x, axes, keep);
  else
    result = powerOf(c.e, sumOver(c.e, powerOf(c.e, x, p), axes, keep), 1 / p);
  c.result(c.cast(result, given.dtype()));
}
void importNorm(AtenContext &c) { normOf(c, c.number("p", 2)); }
void importVectorNorm(AtenContext &c) { normOf(c, c.number("ord")); }
void importCountNonzero(AtenContext &c) {
  Val x = c.cast(c.truth(c.tensor("self")), DType::I64);
  c.result(sumOver(c.e, x, c.axes("dim", x.rank()), false));
}

//===--- Scans ------------------------------------------------------------------------===//

void importCumsum(AtenContext &c) {
  Val x = summand(c, c.tensor("self"));
  if (x.rank() == 0)
    return c.result(x);
  c.result(c.cast(cumulativeSum(c.e, c.wide(x), c.axis("dim", x.rank())), x.dtype()));
}
void importCumprod(AtenContext &c) {
  Val x = summand(c, c.tensor("self"));
  if (x.rank() == 0)
    return c.result(x);
  c.result(cumulativeProduct(c.e, x, c.axis("dim", x.rank())));
}

//===--- Sorting ------------------------------------------------------------------------===//

void sortResult(AtenContext &c, bool values, bool indices) {
  Val x = c.tensor("self"), numbers = asNumbers(c, x);
  if (x.rank() == 0) {
    if (values)
      c.result(0, x);
    return c.result(values, c.e.intScalar(DType::I64, 0));
  }
  int64_t axis = c.axis("dim", x.rank());
  std::vector<Val> both = sorted(c.e, numbers, axis, x.extent(axis), c.flag("descending"));
  if (values)
    c.result(0, c.cast(both[0], x.dtype()));
  if (indices)
    c.result(values, both[1]);
}
void importSort(AtenContext &c) { sortResult(c, true, true); }
void importArgsort(AtenContext &c) { sortResult(c, false, true); }
void importTopk(AtenContext &c) {
  Val x = c.tensor("self");
  c.requireShape(x.rank() > 0, "topk takes no scalar");
  std::vector<Val> both = sorted(c.e, x, c.axis("dim", x.rank()), c.dim("k"), c.flag("largest"));
  c.result(0, both[0]);
  c.result(1, both[1]);
}
/// How many elements lie in each of `bins` equal parts of a range, the upper end in the last; NaN and what lies outside
/// count nowhere. Without a range (min equal to max) the elements' own.
void importHistc(AtenContext &c) {
  Counting n(c.e);
  Emitter &e = c.e;
  Val x = n.flat(c.tensor("self"));
  c.require(isFloat(x.dtype()), "histc counts floats, not " + std::string(dtypeName(x.dtype())));
  const int64_t bins = c.integer("bins");
  const double min = c.number("min"), max = c.number("max");
  c.require(bins > 0, "bins is " + std::to_string(bins) + ", but must be positive");
  c.require(min <= max, "max is less than min");
  Val low = c.like(x, min), high = c.like(x, max), one = c.like(x, 1);
  if (min == max) {
    low = extreme(c, Reduction::min, x, {0}, false), high = extreme(c, Reduction::max, x, {0}, false);
    Val same = e.compare(Compare::eq, low, high);
    low = e.select(same, e.sub(low, one), low), high = e.select(same, e.add(high, one), high);
  }
  Val inside = e.emit<AndOp>({e.compare(Compare::le, low, x), e.compare(Compare::le, x, high)});
  Val place = e.div(e.mul(e.sub(x, low), static_cast<double>(bins)), e.sub(high, low));
  Val last = e.intScalar(DType::I64, bins - 1), outside = e.intScalar(DType::I64, bins);
  Val bin = e.select(inside, e.min(e.cast(e.select(inside, place, c.like(x, 0)), DType::I64), last), outside);
  Val counts = scatterElements(e, e.splat(DType::I64, {bins + 1}, 0), bin, e.splat(DType::I64, x.dims(), 1), 0,
                               ScatterMode::add);
  c.result(e.cast(e.sliceAxis(counts, 0, 0, bins), x.dtype()));
}

} // namespace

std::vector<AtenRow> reduceOps() {
  return {
      {"sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", importReduce<Reduction::sum>},
      {"sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       importReduce<Reduction::sum>},
      {"prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", importReduce<Reduction::prod>},
      {"prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       importReduce<Reduction::prod>},
      {"mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", importMean},
      {"mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", importMean},
      {"histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", importHistc},
      {"amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", importExtreme<Reduction::max>},
      {"amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", importExtreme<Reduction::min>},
      {"max(Tensor self) -> Tensor", importExtreme<Reduction::max>},
      {"min(Tensor self) -> Tensor", importExtreme<Reduction::min>},
      {"max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       importExtremeDim<Reduction::max>},
      {"min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       importExtremeDim<Reduction::min>},
      {"any(Tensor self) -> Tensor", importAnyAll<Reduction::max>},
      {"any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", importAnyAll<Reduction::max>},
      {"any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", importAnyAll<Reduction::max>},
      {"all(Tensor self) -> Tensor", importAnyAll<Reduction::min>},
      {"all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", importAnyAll<Reduction::min>},
      {"all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", importAnyAll<Reduction::min>},
      {"argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", importArg<Extremum::max>},
      {"argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", importArg<Extremum::min>},
      {"var(Tensor self, bool unbiased=True) -> Tensor", importVariance<false, false>},
      {"var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
       importVariance<false, false>},
      {"var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
       importVariance<false, false>},
      {"std(Tensor self, bool unbiased=True) -> Tensor", importVariance<true, false>},
      {"std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
       importVariance<true, false>},
      {"std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
       importVariance<true, false>},
      {"var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, "
       "Tensor)",
       importVariance<false, true>},
      {"var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", importVariance<false, true>},
      {"var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
       importVariance<false, true>},
      {"std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", importVariance<true, true>},
      {"std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
       importVariance<true, true>},
      {"std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, "
       "Tensor)",
       importVariance<true, true>},
      {"logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", importLogSumExp},
      {"norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", importNorm},
      {"norm.Scalar(Tensor self, Scalar p=2) -> Tensor", importNorm},
      {"linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
       "-> "
       "Tensor",
       importVectorNorm},
      {"count_nonzero(Tensor self, int? dim=None) -> Tensor", importCountNonzero},
      {"count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", importCountNonzero},
      {"cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", importCumsum},
      {"cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", importCumprod},
      {"sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", importSort},
      {"sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor "
       "indices)",
       importSort},
      {"argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", importArgsort},
      {"argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor", importArgsort},
      {"topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor "
       "indices)",
       importTopk, "always sorted"},
  };
}

} // namespace dmxc::torchfe
