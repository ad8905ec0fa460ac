//===- Reduce.cpp - reductions, scans and order statistics ----------------===//
#include "../NodeContext.h"

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

constexpr int kSumSince = 13, kOthersSince = 18;

template <Reduction kind, int operandSince> void plain(NodeContext &c) {
  Axes axes = axesOf(c, operandSince);
  c.result(c.e.reduce(kind, c.operand(0), axes.list, axes.keep));
}

void importL1(NodeContext &c) {
  Axes axes = axesOf(c, kOthersSince);
  c.result(c.e.reduce(Reduction::sum, c.e.emit<AbsOp>({c.operand(0)}), axes.list, axes.keep));
}
void importSumSquare(NodeContext &c) {
  Axes axes = axesOf(c, kOthersSince);
  Val x = c.operand(0);
  c.result(c.e.reduce(Reduction::sum, c.e.mul(x, x), axes.list, axes.keep));
}

/// Integers take roots and logarithms in double and are truncated.
Val asFloat(NodeContext &c, const Val &x) { return isFloat(x.dtype()) ? x : c.e.cast(x, DType::F64); }

void importL2(NodeContext &c) {
  Axes axes = axesOf(c, kOthersSince);
  Val x = asFloat(c, c.operand(0));
  Val norm = c.e.emit<SqrtOp>({c.e.reduce(Reduction::sum, c.e.mul(x, x), axes.list, axes.keep)});
  c.result(c.e.cast(norm, c.operand(0).dtype()));
}
void importLogSum(NodeContext &c) {
  Axes axes = axesOf(c, kOthersSince);
  Val sum = c.e.reduce(Reduction::sum, asFloat(c, c.operand(0)), axes.list, axes.keep);
  c.result(c.e.cast(c.e.emit<LogOp>({sum}), c.operand(0).dtype()));
}
void importLogSumExp(NodeContext &c) {
  Axes axes = axesOf(c, kOthersSince);
  Val x = asFloat(c, c.operand(0));
  Val highest = c.e.reduce(Reduction::max, x, axes.list, true);
  // inf - inf would be NaN: an infinite maximum is not subtracted.
  highest = c.e.select(c.e.emit<IsInfOp>({highest}), c.e.scalarLike(x, 0), highest);
  Val sum = c.e.reduce(Reduction::sum, c.e.emit<ExpOp>({c.e.sub(x, highest)}), axes.list, true);
  Val result = c.e.add(c.e.emit<LogOp>({sum}), highest);
  if (!axes.keep) {
    Shape shape;
    for (int64_t i = 0; i < x.rank(); ++i)
      if (std::find(axes.list.begin(), axes.list.end(), i) == axes.list.end())
        shape.push_back(result.dim(i));
    result = c.e.reshape(result, shape);
  }
  c.result(c.e.cast(result, c.operand(0).dtype()));
}

template <Extremum kind> void arg(NodeContext &c) {
  Val x = c.operand(0);
  int64_t axis = c.normalizeAxis(c.attrInt("axis", 0), x.rank());
  c.result(c.e.emit<ArgReduceOp>({x}, {c.e.attr("kind", ExtremumAttr::get(c.e.context(), kind)), c.e.attr("axis", axis),
                                       c.e.attr("keepDims", c.attrInt("keepdims", 1) != 0),
                                       c.e.attr("selectLast", c.attrInt("select_last_index", 0) != 0)}));
}

void importCumSum(NodeContext &c) {
  Val x = c.operand(0);
  int64_t axis = c.normalizeAxis(c.constantInt(1, "axis"), x.rank());
  c.result(c.e.emit<CumSumOp>({x}, {c.e.attr("axis", axis), c.e.attr("exclusive", c.attrInt("exclusive", 0) != 0),
                                    c.e.attr("reverse", c.attrInt("reverse", 0) != 0)}));
}

/// Running product by doubling: after step s each element holds the product of
/// the last 2s.
void importCumProd(NodeContext &c) {
  Val x = c.operand(0);
  int64_t axis = c.normalizeAxis(c.constantInt(1, "axis"), x.rank()), dim = x.dim(axis);
  bool reverse = c.attrInt("reverse", 0) != 0;
  auto shifted = [&](const Val &v, int64_t by) { // ones come in
    Shape low(x.rank(), 0), high(x.rank(), 0);
    (reverse ? high : low)[axis] = by;
    return c.e.pad(c.e.sliceAxis(v, axis, reverse ? by : 0, dim - by), c.e.scalarLike(x, 1), low, high);
  };
  if (c.attrInt("exclusive", 0) && dim > 0)
    x = shifted(x, 1);
  for (int64_t step = 1; step < dim; step *= 2)
    x = c.e.mul(x, shifted(x, step));
  c.result(x);
}

void importTopK(NodeContext &c) {
  Val x = c.operand(0);
  int64_t axis = c.normalizeAxis(c.attrInt("axis", -1), x.rank());
  int64_t k = c.since() == 1 ? c.attrInt("k") : c.constantInt(1, "k");
  bool largest = c.attrInt("largest", 1) != 0;
  std::vector<Val> results =
      c.e.emitAll<TopKOp>({x}, {c.e.attr("k", k), c.e.attr("axis", axis), c.e.attr("largest", largest)});
  c.result(0, results[0]);
  c.result(1, results[1]);
}

} // namespace

std::vector<OpRows> reduceOps() {
  using namespace types;
  std::vector<OpRows> rows;
  const char *note = "the axes must be known at compile time";
  auto family = [&](const char *name, ImportFn fn, std::vector<int> before, std::vector<int> after, TypeSet set) {
    rows.push_back({name, std::move(before), fn, "axes,keepdims", {set}});
    rows.push_back({name, std::move(after), fn, "keepdims,noop_with_empty_axes", {set, Index}, note});
  };
  family("ReduceSum", plain<Reduction::sum, kSumSince>, {1, 11}, {13}, Number);
  family("ReduceMean", plain<Reduction::mean, kOthersSince>, {1, 11, 13}, {18}, Number);
  family("ReduceProd", plain<Reduction::prod, kOthersSince>, {1, 11, 13}, {18}, Number);
  family("ReduceMax", plain<Reduction::max, kOthersSince>, {1, 11, 12, 13}, {18, 20}, Number | Bool);
  family("ReduceMin", plain<Reduction::min, kOthersSince>, {1, 11, 12, 13}, {18, 20}, Number | Bool);
  family("ReduceL1", importL1, {1, 11, 13}, {18}, Number);
  family("ReduceL2", importL2, {1, 11, 13}, {18}, Number);
  family("ReduceLogSum", importLogSum, {1, 11, 13}, {18}, Number);
  family("ReduceLogSumExp", importLogSumExp, {1, 11, 13}, {18}, Number);
  family("ReduceSumSquare", importSumSquare, {1, 11, 13}, {18}, Number);
  rows.insert(rows.end(), {
                              {"ArgMax", {1, 11}, arg<Extremum::max>, "axis,keepdims", {Number}},
                              {"ArgMax", {12, 13}, arg<Extremum::max>, "axis,keepdims,select_last_index", {Number}},
                              {"ArgMin", {1, 11}, arg<Extremum::min>, "axis,keepdims", {Number}},
                              {"ArgMin", {12, 13}, arg<Extremum::min>, "axis,keepdims,select_last_index", {Number}},
                              {"CumSum",
                               {11, 14},
                               importCumSum,
                               "exclusive,reverse",
                               {Number, Index},
                               "the axis must be known at compile time"},
                              {"CumProd",
                               {26},
                               importCumProd,
                               "exclusive,reverse",
                               {Number, Index},
                               "the axis must be known at compile time"},
                              {"TopK", {1}, importTopK, "axis,k", {Float}},
                              {"TopK", {10}, importTopK, "axis", {Float, Index}, "k must be known at compile time"},
                              {"TopK",
                               {11, 24},
                               importTopK,
                               "axis,largest,sorted",
                               {Number, Index},
                               "k must be known at compile time; always sorted"},
                          });
  return rows;
}

} // namespace dmxc::onnxfe
