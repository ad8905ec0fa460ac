//===- Order.cpp - running extremes, middles, quantiles, membership -------===//
#include "../Math.h"

#include "frontends/common/ops/Order.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

//===--- Running --------------------------------------------------------------------===//

template <Extremum kind> void importRunningExtremum(AtenContext &c) {
  Val x = c.tensor("self");
  if (x.rank() == 0) {
    c.result(0, x);
    return c.result(1, c.e.intScalar(DType::I64, 0));
  }
  std::vector<Val> both = runningExtremum(c.e, kind, asNumbers(c, x), c.axis("dim", x.rank()));
  c.result(0, c.cast(both[0], x.dtype()));
  c.result(1, both[1]);
}

void importLogCumSumExp(AtenContext &c) {
  Val x = c.tensor("self");
  c.require(isFloat(x.dtype()), "logcumsumexp is taken of floats");
  if (x.rank() == 0)
    return c.result(x);
  auto add = [&](llvm::ArrayRef<Val> earlier, llvm::ArrayRef<Val> later) {
    return std::vector<Val>{logAddExp(c.e, earlier[0], later[0])};
  };
  c.result(c.cast(running(c.e, {c.wide(x)}, c.axis("dim", x.rank()), add)[0], x.dtype()));
}

//===--- One element of an axis -------------------------------------------------------===//

/// self with the axis that an operator orders; a scalar and what has no `dim` are one line.
struct Line {
  Val x;
  int64_t axis = 0;
  Dims kept; ///< of the result
};
Line lineOf(AtenContext &c) {
  Line line{asNumbers(c, c.tensor("self")), 0, {}};
  bool whole = !c.given("dim") || line.x.rank() == 0;
  if (whole) {
    line.x = c.e.reshape(line.x, {line.x.elements()});
    if (c.flag("keepdim", false))
      line.kept = Dims(c.tensor("self").rank(), 1);
  } else {
    line.axis = c.axis("dim", line.x.rank());
    line.kept = line.x.dims();
    line.kept[line.axis] = 1;
    if (!c.flag("keepdim"))
      line.kept.erase(line.kept.begin() + line.axis);
  }
  c.requireShape(line.x.extent(line.axis).valueOr(1) > 0, "the axis has no elements");
  return line;
}
/// One value and, where the operator gives it, its place; both with the axis as 1.
void setElement(AtenContext &c, const Line &line, const Val &value, const Val &place) {
  c.result(0, c.cast(c.e.reshape(value, line.kept), c.tensor("self").dtype()));
  if (c.given("dim"))
    c.result(1, c.e.reshape(place, line.kept));
}

void importKthValue(AtenContext &c) {
  Line line = lineOf(c);
  Dim k = c.dim("k"), count = line.x.extent(line.axis);
  c.require(k.valueOr(1) >= 1 && k.valueOr(0) <= count.valueOr(kMaxDim),
            "k is " + k.str() + ", but must lie in [1, " + count.str() + "]");
  std::vector<Val> both = sorted(c.e, line.x, line.axis, k, false);
  auto last = [&](const Val &value) { return c.e.sliceAxis(value, line.axis, k - 1, 1); };
  setElement(c, line, last(both[0]), last(both[1]));
}

/// The lower of the middle elements; NaN where there is one.
void importMedian(AtenContext &c) {
  Emitter &e = c.e;
  Line line = lineOf(c);
  Dim middle = Dim::floorDiv(line.x.extent(line.axis) - 1, 2);
  std::vector<Val> both = sorted(e, line.x, line.axis, middle + 1, false);
  Val value = e.sliceAxis(both[0], line.axis, middle, 1), place = e.sliceAxis(both[1], line.axis, middle, 1);
  if (isFloat(line.x.dtype())) {
    Val none = c.cast(isNaN(e, line.x), DType::U8), first = argExtremum(e, Extremum::max, none, line.axis, true);
    Val spoilt = c.truth(e.reduce(Reduction::max, none, {line.axis}, true));
    value = e.select(spoilt, c.like(value, NAN), value);
    place = e.select(spoilt, first, place);
  }
  setElement(c, line, value, place);
}

/// How many elements of the axis are numbers, which stays as 1.
Val numbersAlong(AtenContext &c, const Val &x, int64_t axis) {
  return sumOver(c.e, c.cast(notOf(c.e, isNaN(c.e, x)), DType::I64), {axis}, true);
}

/// The lower of the middle elements of what is a number.
void importNanMedian(AtenContext &c) {
  Line line = lineOf(c);
  if (!isFloat(line.x.dtype()))
    return importMedian(c);
  std::vector<Val> both = sorted(c.e, line.x, line.axis, line.x.extent(line.axis), false); // NaN last
  Val last = c.e.max(c.e.add(numbersAlong(c, line.x, line.axis), -1.0), c.e.intScalar(DType::I64, 0));
  Val middle = c.e.div(last, c.e.intScalar(DType::I64, 2));
  setElement(c, line, gatherElements(c.e, both[0], middle, line.axis), gatherElements(c.e, both[1], middle, line.axis));
}

/// The most frequent element, of several the least, and the last place where it stands.
void importMode(AtenContext &c) {
  Emitter &e = c.e;
  Line line = lineOf(c);
  Dim count = line.x.extent(line.axis);
  std::vector<Val> both = sorted(e, line.x, line.axis, count, false);
  Dims along(line.x.rank(), 1);
  along[line.axis] = count;
  Val places = e.iota(DType::I64, along, line.axis), zero = e.intScalar(DType::I64, 0);
  Val before = e.gather(both[0], e.max(e.add(e.iota(DType::I64, {count}, 0), -1.0), zero), line.axis);
  // How long the run of equals has become at each element: the longest one ends where that is largest first.
  Val isNew = either(e, e.compare(Compare::eq, places, zero), e.compare(Compare::ne, both[0], before));
  Val begun = runningExtremum(e, Extremum::max, e.select(isNew, places, zero), line.axis)[0];
  Val end = argExtremum(e, Extremum::max, e.sub(places, begun), line.axis, true);
  setElement(c, line, gatherElements(e, both[0], end, line.axis), gatherElements(e, both[1], end, line.axis));
}

void importMsort(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(x.rank() == 0 ? x : sorted(c.e, x, 0, x.extent(0), false)[0]);
}

//===--- Quantiles ----------------------------------------------------------------------===//

/// q as a vector, in the type's numbers.
Val quantilesOf(AtenContext &c, DType type) {
  Val q = c.cast(c.operand("q").value, type);
  c.requireShape(q.rank() <= 1, "q is a number or a vector");
  if (q.isConstant())
    for (int64_t i = 0; i < q.numElements(); ++i)
      c.require(q.constant().asDouble(i) >= 0 && q.constant().asDouble(i) <= 1, "q must lie in [0, 1]");
  return c.e.reshape(q, {q.elements()});
}

/// Elements of rows at places [.., q], between two of them as the mode has it.
Val interpolated(AtenContext &c, const Val &rows, const Val &place) {
  Emitter &e = c.e;
  const std::string mode = c.text("interpolation");
  auto taken = [&](const Val &at) {
    Val index = e.cast(at, DType::I64);
    return at.rank() == 1 ? e.gather(rows, index, rows.rank() - 1) : gatherElements(e, rows, index, rows.rank() - 1);
  };
  Val below = e.emit<FloorOp>({place}), above = e.emit<CeilOp>({place});
  if (mode == "lower" || mode == "higher" || mode == "nearest")
    return taken(mode == "lower" ? below : mode == "higher" ? above : e.emit<RoundOp>({place}));
  c.require(mode == "linear" || mode == "midpoint", "the interpolation '" + mode + "' is unknown");
  Val first = taken(below), second = taken(above);
  // From the nearer side, as torch does: an infinite end then stays what it is.
  Val weight = mode == "linear" ? e.cast(e.sub(place, below), rows.dtype()) : c.like(rows, 0.5);
  Val distance = e.sub(second, first), rest = e.sub(c.like(rows, 1), weight);
  Val near = e.compare(Compare::lt, weight, c.like(rows, 0.5));
  return e.select(near, e.add(first, e.mul(distance, weight)), e.sub(second, e.mul(distance, rest)));
}

/// Between the two elements around the place q * (n - 1) of the sorted axis; one NaN makes all NaN, or is left out.
template <bool numbersAlone> void importQuantile(AtenContext &c) {
  Emitter &e = c.e;
  Line line = lineOf(c);
  c.require(line.x.dtype() == DType::F32 || line.x.dtype() == DType::F64, "quantiles are taken of f32 and f64");
  const int64_t last = line.x.rank() - 1;
  Val q = quantilesOf(c, line.x.dtype()), x = moveAxis(e, line.x, line.axis, last);
  Val count = numbersAlone ? numbersAlong(c, x, last) : e.size(x.extent(last));
  Val farthest = e.cast(e.add(count, -1.0), DType::F64);
  Val place = e.max(e.mul(e.cast(q, DType::F64), farthest), e.scalar(DType::F64, 0)); // exact: it may lie on a half
  Val result = interpolated(c, sorted(e, x, last, x.extent(last), false)[0], place);
  if (!numbersAlone) {
    Val spoilt = e.reduce(Reduction::max, e.cast(isNaN(e, x), DType::U8), {last}, true);
    result = e.select(e.cast(spoilt, DType::Bool), c.like(result, NAN), result);
  }
  result = moveAxis(e, result, last, 0);
  Dims dims = line.kept;
  if (c.operand("q").value.rank() == 1)
    dims.insert(dims.begin(), q.extent(0));
  c.result(e.reshape(result, dims));
}

//===--- Extremes and membership ----------------------------------------------------------===//

void importExtremes(AtenContext &c) {
  Arg axes = Arg::intList(c.given("dim") ? Dims{c.integer("dim")} : Dims());
  Arg keep = c.arg("keepdim").isNone() ? Arg::flag(false) : c.arg("keepdim");
  c.result(0, called(c, "amin.default", {c.arg("self"), axes, keep}));
  c.result(1, called(c, "amax.default", {c.arg("self"), axes, keep}));
}

/// Whether each element is among the others.
template <const char *elements, const char *others> void importIsIn(AtenContext &c) {
  std::vector<Val> v = promote(c, {c.operand(elements), c.operand(others)});
  Val x = unsqueeze(c.e, v[0], v[0].rank()), tests = c.e.reshape(v[1], {v[1].elements()});
  Val equal = c.cast(c.e.compare(Compare::eq, x, tests), DType::U8);
  Val found = c.truth(c.e.reduce(Reduction::max, equal, {equal.rank() - 1}, false));
  c.result(c.flag("invert") ? notOf(c.e, found) : found);
}
constexpr char kElements[] = "elements", kElement[] = "element", kTests[] = "test_elements", kTest[] = "test_element";

} // namespace

std::vector<AtenRow> orderOps() {
#define BOTH ") -> (Tensor values, Tensor indices)"
#define QUANTILE ", int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor"
#define MEMBER ", *, bool assume_unique=False, bool invert=False) -> Tensor"
  return {
      {"cummax(Tensor self, int dim" BOTH, importRunningExtremum<Extremum::max>},
      {"cummin(Tensor self, int dim" BOTH, importRunningExtremum<Extremum::min>},
      {"logcumsumexp(Tensor self, int dim) -> Tensor", importLogCumSumExp},
      {"kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False" BOTH, importKthValue},
      {"median(Tensor self) -> Tensor", importMedian},
      {"median.dim(Tensor self, int dim, bool keepdim=False" BOTH, importMedian},
      {"nanmedian(Tensor self) -> Tensor", importNanMedian},
      {"nanmedian.dim(Tensor self, int dim, bool keepdim=False" BOTH, importNanMedian},
      {"mode(Tensor self, int dim=-1, bool keepdim=False" BOTH, importMode},
      {"msort(Tensor self) -> Tensor", importMsort},
      {"quantile(Tensor self, Tensor q" QUANTILE, importQuantile<false>},
      {"quantile.scalar(Tensor self, float q" QUANTILE, importQuantile<false>},
      {"nanquantile(Tensor self, Tensor q" QUANTILE, importQuantile<true>},
      {"nanquantile.scalar(Tensor self, float q" QUANTILE, importQuantile<true>},
      {"aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", importExtremes},
      {"_aminmax(Tensor self) -> (Tensor, Tensor)", importExtremes},
      {"_aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)", importExtremes},
      {"isin.Tensor_Tensor(Tensor elements, Tensor test_elements" MEMBER, importIsIn<kElements, kTests>},
      {"isin.Tensor_Scalar(Tensor elements, Scalar test_element" MEMBER, importIsIn<kElements, kTest>},
      {"isin.Scalar_Tensor(Scalar element, Tensor test_elements" MEMBER, importIsIn<kElement, kTests>},
  };
#undef BOTH
#undef QUANTILE
#undef MEMBER
}

} // namespace dmxc::torchfe
