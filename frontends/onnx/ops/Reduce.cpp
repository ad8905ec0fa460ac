//===- Reduce.cpp - reductions, scans and order statistics ----------------===//
#include "../Differences.h"
#include "../NodeContext.h"

#include "frontends/common/ops/Formulas.h"
#include "frontends/common/ops/Order.h"

#include <algorithm>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

struct Axes {
  std::vector<int64_t> list;
  bool keep;
};

/// The axes: an attribute at first, later an operand. None means all of them,
/// or none with noop_with_empty_axes.
Axes axesOf(NodeContext &c, int operandSince) {
  int64_t rank = c.operand(0).rank();
  std::vector<int64_t> axes = c.since() < operandSince ? c.attrInts("axes", {})
                              : c.has(1)               ? c.constantInts(1, "axes")
                                                       : std::vector<int64_t>();
  axes = c.normalizeAxes(axes, rank);
  if (axes.empty() && !c.attrInt("noop_with_empty_axes", 0))
    for (int64_t i = 0; i < rank; ++i)
      axes.push_back(i);
  return {axes, c.attrInt("keepdims", 1) != 0};
}

Dims reducedShape(const Val &x, const std::vector<int64_t> &named, bool keep) {
  Dims dims;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (!named[i])
      dims.push_back(x.extent(i));
    else if (keep)
      dims.push_back(1);
  }
  return dims;
}

constexpr int kSumSince = 13, kOthersSince = 18;

/// Axes that the run names: each axis becomes a pair, (its size, 1) where it stays and (1, its size) where it is
/// reduced. Then the second ones of all pairs are reduced.
template <typename Make> Val reduceAtRun(NodeContext &c, const Val &x, Make make) {
  Emitter &e = c.e;
  int64_t rank = x.rank();
  bool keep = c.attrInt("keepdims", 1) != 0;
  Val named = c.namedAxes(1, rank), one = e.size(1);
  if (!c.attrInt("noop_with_empty_axes", 0)) // none means all
    named = e.select(e.compare(Compare::eq, e.size(c.operand(1).elements()), e.size(0)), one, named);
  Val isNamed = e.compare(Compare::eq, named, one), own = e.sizes(x.dims());
  Dims kept = e.dimsOf(e.select(isNamed, one, own)), gone = e.dimsOf(e.select(isNamed, own, one)), pairs;
  Axes second{{}, false};
  for (int64_t i = 0; i < rank; ++i) {
    pairs.append({kept[i], gone[i]});
    second.list.push_back(2 * i + 1);
  }
  Val result = make(e.reshape(x, pairs), second);
  if (keep)
    return result;
  std::optional<int64_t> left = c.declaredRank();
  if (std::optional<int64_t> count = c.operand(1).elements().known())
    left = rank - *count;
  c.requireShape(left && *left >= 0 && *left <= rank, "the rank of the result must be known at compile time");
  Val order = sorted(e, e.sub(one, named), 0, *left, /*largest=*/true)[1];
  return e.reshape(result, e.dimsOf(e.gather(own, order, 0)));
}

/// Sets the result to `make` of x and the axes. Axes known at run time only are those that give the declared shape, all
/// of them computed where several do, or those that the run names.
template <typename Make> void reduceWith(NodeContext &c, int operandSince, const Val &x, Make make) {
  std::optional<Shape> declared = c.declaredShape();
  if (c.since() < operandSince || !c.has(1) || c.isConstant(1))
    return c.result(make(x, axesOf(c, operandSince)));
  if (!declared || !x.hasStaticShape() || !c.operand(1).hasStaticShape())
    return c.result(reduceAtRun(c, x, make));
  bool keep = c.attrInt("keepdims", 1) != 0;
  auto fits = [&](const std::vector<int64_t> &named) { return reducedShape(x, named, keep) == Dims(*declared); };
  auto sets = NodeContext::axisSets(x.rank(), c.operand(1).numElements(), fits);
  c.result(c.chosen(c.namedAxes(1, x.rank()), sets, [&](const std::vector<int64_t> &named) {
    Axes axes{{}, keep};
    for (int64_t i = 0; i < x.rank(); ++i)
      if (named[i])
        axes.list.push_back(i);
    return make(x, axes);
  }));
}

template <Reduction kind, int operandSince> void plain(NodeContext &c) {
  reduceWith(c, operandSince, c.operand(0),
             [&](const Val &x, const Axes &axes) { return c.e.reduce(kind, x, axes.list, axes.keep); });
}

void importReduceMean(NodeContext &c) {
  reduceWith(c, kOthersSince, c.operand(0), [&](const Val &x, const Axes &axes) {
    if (llvm::any_of(axes.list, [&](int64_t axis) { return x.extent(axis).is(0); }))
      c.noteDifference("reducemean-empty");
    return c.e.reduce(Reduction::mean, x, axes.list, axes.keep);
  });
}

Val sumOf(NodeContext &c, const Val &x, const Axes &axes) {
  return c.e.reduce(Reduction::sum, x, axes.list, axes.keep);
}

void importL1(NodeContext &c) {
  reduceWith(c, kOthersSince, c.e.emit<AbsOp>({c.operand(0)}),
             [&](const Val &x, const Axes &axes) { return sumOf(c, x, axes); });
}
void importSumSquare(NodeContext &c) {
  reduceWith(c, kOthersSince, c.e.mul(c.operand(0), c.operand(0)),
             [&](const Val &x, const Axes &axes) { return sumOf(c, x, axes); });
}

/// Integers take roots and logarithms in double and are truncated.
Val asFloat(NodeContext &c, const Val &x) { return isFloat(x.dtype()) ? x : c.e.cast(x, DType::F64); }

void importL2(NodeContext &c) {
  Val x = widened(c.e, asFloat(c, c.operand(0)));
  reduceWith(c, kOthersSince, c.e.mul(x, x), [&](const Val &square, const Axes &axes) {
    return c.e.cast(c.e.emit<SqrtOp>({sumOf(c, square, axes)}), c.operand(0).dtype());
  });
}
void importLogSum(NodeContext &c) {
  reduceWith(c, kOthersSince, asFloat(c, c.operand(0)), [&](const Val &x, const Axes &axes) {
    return c.e.cast(c.e.emit<LogOp>({sumOf(c, x, axes)}), c.operand(0).dtype());
  });
}

Val logSumExp(NodeContext &c, const Val &x, const Axes &axes) {
  Val result = frontend::logSumExp(c.e, x, axes.list);
  std::vector<int64_t> named(x.rank(), 0);
  for (int64_t axis : axes.list)
    named[axis] = 1;
  return c.e.cast(c.e.reshape(result, reducedShape(result, named, axes.keep)), c.operand(0).dtype());
}
void importLogSumExp(NodeContext &c) {
  reduceWith(c, kOthersSince, asFloat(c, c.operand(0)),
             [&](const Val &x, const Axes &axes) { return logSumExp(c, x, axes); });
}

template <Extremum kind> void arg(NodeContext &c) {
  Val x = c.operand(0);
  int64_t axis = c.normalizeAxis(c.attrInt("axis", 0), x.rank());
  bool keep = c.attrInt("keepdims", 1) != 0, last = c.attrInt("select_last_index", 0) != 0;
  c.result(argExtremum(c.e, kind, x, axis, keep, last));
}

/// A scan along an axis that may be known at run time only: then along each, and the one asked for is picked.
template <typename Make> void scanWith(NodeContext &c, Make make) {
  int64_t rank = c.operand(0).rank();
  if (c.isConstant(1))
    return c.result(make(c.normalizeAxis(c.constantInt(1, "axis"), rank)));
  c.requireShape(mayEqual(c.operand(1).elements(), 1), "the axis (operand 1) must be one number");
  auto any = [](const std::vector<int64_t> &) { return true; };
  c.result(c.chosen(c.namedAxes(1, rank), NodeContext::axisSets(rank, 1, any), [&](const std::vector<int64_t> &named) {
    return make(std::find(named.begin(), named.end(), 1) - named.begin());
  }));
}

void importCumSum(NodeContext &c) {
  bool exclusive = c.attrInt("exclusive", 0) != 0, reverse = c.attrInt("reverse", 0) != 0;
  scanWith(c, [&](int64_t axis) { return cumulativeSum(c.e, c.operand(0), axis, exclusive, reverse); });
}

void importCumProd(NodeContext &c) {
  bool exclusive = c.attrInt("exclusive", 0) != 0, reverse = c.attrInt("reverse", 0) != 0;
  scanWith(c, [&](int64_t axis) { return cumulativeProduct(c.e, c.operand(0), axis, exclusive, reverse); });
}

void importTopK(NodeContext &c) {
  Val x = c.operand(0);
  int64_t axis = c.normalizeAxis(c.attrInt("axis", -1), x.rank());
  Dim k = c.since() == 1 ? Dim(c.attrInt("k")) : c.size(1, "k", c.declaredDim(0, axis));
  std::vector<Val> results = sorted(c.e, x, axis, k, c.attrInt("largest", 1) != 0);
  c.result(0, results[0]);
  c.result(1, results[1]);
}

} // namespace

std::vector<OpRows> reduceOps() {
  using namespace types;
  std::vector<OpRows> rows;
  const char *note = "the axes must be known at compile time or the shape declared";
  auto family = [&](const char *name, ImportFn fn, std::vector<int> before, std::vector<int> after, TypeSet set) {
    rows.push_back({name, std::move(before), ".>1", fn, "axes,keepdims", {set}});
    rows.push_back({name, std::move(after), "..>1", fn, "keepdims,noop_with_empty_axes", {set, Index}, note});
  };
  family("ReduceSum", plain<Reduction::sum, kSumSince>, {1, 11}, {13}, Number);
  family("ReduceMean", importReduceMean, {1, 11, 13}, {18}, Number);
  family("ReduceProd", plain<Reduction::prod, kOthersSince>, {1, 11, 13}, {18}, Number);
  family("ReduceMax", plain<Reduction::max, kOthersSince>, {1, 11, 12, 13}, {18, 20}, Number | Bool);
  family("ReduceMin", plain<Reduction::min, kOthersSince>, {1, 11, 12, 13}, {18, 20}, Number | Bool);
  family("ReduceL1", importL1, {1, 11, 13}, {18}, Number);
  family("ReduceL2", importL2, {1, 11, 13}, {18}, Number);
  family("ReduceLogSum", importLogSum, {1, 11, 13}, {18}, Number);
  family("ReduceLogSumExp", importLogSumExp, {1, 11, 13}, {18}, Number);
  family("ReduceSumSquare", importSumSquare, {1, 11, 13}, {18}, Number);
  rows.insert(rows.end(),
              {
                  {"ArgMax", {1, 11}, ".>1", arg<Extremum::max>, "axis,keepdims", {Number}},
                  {"ArgMax", {12, 13}, ".>1", arg<Extremum::max>, "axis,keepdims,select_last_index", {Number}},
                  {"ArgMin", {1, 11}, ".>1", arg<Extremum::min>, "axis,keepdims", {Number}},
                  {"ArgMin", {12, 13}, ".>1", arg<Extremum::min>, "axis,keepdims,select_last_index", {Number}},
                  {"CumSum",
                   {11, 14},
                   "..>1",
                   importCumSum,
                   "exclusive,reverse",
                   {Number, Index},
                   "an axis known at run time costs a scan along each"},
                  {"CumProd",
                   {26},
                   "..>1",
                   importCumProd,
                   "exclusive,reverse",
                   {Number, Index},
                   "an axis known at run time costs a scan along each"},
                  {"TopK", {1}, ".>2", importTopK, "axis,k", {Float}},
                  {"TopK",
                   {10},
                   "..>2",
                   importTopK,
                   "axis",
                   {Float, Index},
                   "k must be known at compile time or the shape declared"},
                  {"TopK",
                   {11, 24},
                   "..>2",
                   importTopK,
                   "axis,largest,sorted",
                   {Number, Index},
                   "k must be known at compile time or the shape declared; always sorted"},
              });
  return rows;
}

std::vector<Difference> reduceDifferences() {
  return {
      {"reducelogsumexp-minus-infinity", "ReduceLogSumExp", "nothing but -infinity", "NaN", "-infinity", "-infinity",
       "-infinity", "the logarithm of 0"},
      {"reducemean-empty", "ReduceMean", "an axis of size 0", "NaN", "0", "NaN", "NaN", "0 / 0", "", true},
      {"reducemax-nan", "ReduceMax, ReduceMin", "NaN behind a number", "NaN", "the largest number", "NaN", "NaN",
       "as Max and Min"},
      {"argmax-nan", "ArgMax, ArgMin", "NaN behind a number", "the first NaN", "the largest number", "the first NaN",
       "the first NaN", "as ReduceMax"},
      {"reduce-integer-overflow", "ReduceSum, ReduceProd, ReduceL1", "integers whose result is beyond their type",
       "the lowest bits", "the largest number", "the lowest bits", "the lowest bits",
       "as a sum or product of integers"},
      {"reducemean-half", "ReduceMean", "f16 whose sum is beyond its range", "infinity", "the mean", "the mean",
       "the mean", "sums are taken in f32"},
      {"reducel2-half", "ReduceL2", "f16 whose squares are beyond its range", "infinity", "the norm", "the norm",
       "the norm", "squares are taken in f32"},
      {"topk-ties", "TopK", "equal numbers", "the first of them first", "the first of them first", "any of them first",
       "the first of them first", "torch promises no order"},
  };
}

} // namespace dmxc::onnxfe
