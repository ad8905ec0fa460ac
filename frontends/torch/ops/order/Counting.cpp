//===- Counting.cpp - what occurs, how often, and repeating it ------------===//
//
// How many there are is counted by a run and becomes a dim.
//
//===----------------------------------------------------------------------===//
#include "../Math.h"

#include "frontends/common/ops/Counting.h"
#include "frontends/common/ops/order/Groups.h"

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

//===--- Unique -----------------------------------------------------------------------===//

/// What is unique, each element's group where it is asked for, and how many each has, likewise.
void setGroups(AtenContext &c, const Val &x, int64_t axis, const Groups &groups, const Dims &inverse, bool all) {
  Val none = c.e.splat(DType::I64, {0}, 0);
  c.result(0, c.e.gather(x, groups.first, axis));
  c.result(1, all || c.flag("return_inverse") ? c.e.reshape(groups.inverse, inverse) : none);
  c.result(2, all || c.flag("return_counts", false) ? groups.counts : none);
}

/// Of all elements; torch on the CPU sorts them whether it is asked to or not.
void importUnique(AtenContext &c) {
  Val x = c.tensor("self"), flat = c.e.reshape(x, {x.elements()});
  setGroups(c, flat, 0, equalRows(c.e, asNumbers(c, flat), 0), x.dims(), false);
}
template <bool sorted> void importUniqueAlong(AtenContext &c) {
  Val x = c.tensor("self"), numbers = asNumbers(c, x);
  int64_t axis = c.axis("dim", x.rank());
  Groups groups = sorted ? equalRows(c.e, numbers, axis) : runsOfRows(c.e, numbers, axis);
  setGroups(c, x, axis, groups, {x.extent(axis)}, true);
}
void importUniqueConsecutive(AtenContext &c) {
  if (c.given("dim"))
    return importUniqueAlong<false>(c);
  Val x = c.tensor("self"), flat = c.e.reshape(x, {x.elements()});
  setGroups(c, flat, 0, runsOfRows(c.e, flat, 0), x.dims(), false);
}

//===--- Counts -----------------------------------------------------------------------===//

/// How often each integer from 0 on occurs, or the sum of its weights.
void importBincount(AtenContext &c) {
  Emitter &e = c.e;
  Val x = c.cast(c.tensor("self"), DType::I64);
  c.requireShape(x.rank() == 1, "bincount takes a vector");
  Val weights = c.optional("weights"), size = e.add(e.reduce(Reduction::max, x, {0}, true), 1.0);
  Dim count = e.dimsOf(e.max(size, e.size(c.dim("minlength"))))[0];
  if (!weights || x.elements().is(0)) // torch then forgets the weights
    weights = e.splat(DType::I64, x.dims(), 1);
  else if (weights.dtype() != DType::F32)
    weights = c.cast(weights, DType::F64);
  c.requireShape(weights.rank() == 1 && mayEqual(weights.extent(0), x.extent(0)), "there is one weight an element");
  c.result(scatterElements(e, e.splat(weights.dtype(), {count}, 0), x, weights, 0, ScatterMode::add));
}

/// How many elements, or which sum of weights, lie between neighbours of the edges, the last one included.
void setHistogram(AtenContext &c, const Val &edges) {
  Counting n(c.e);
  Emitter &e = c.e;
  Val x = n.flat(c.tensor("self"));
  Dim bins = edges.extent(0) - 1;
  Val line = e.reshape(edges, {edges.extent(0), 1});
  Val reached = sumOver(e, c.cast(e.compare(Compare::ge, x, line), DType::I64), {0}, false); // edges
  Val last = e.compare(Compare::eq, x, e.sliceAxis(edges, 0, bins, 1)), none = e.intScalar(DType::I64, 0);
  Val bin = e.add(e.select(last, e.size(bins), reached), -1.0);
  Val outside = either(e, e.compare(Compare::lt, bin, none), e.compare(Compare::ge, bin, e.size(bins)));
  Val weights = c.given("weight") ? n.flat(c.cast(c.tensor("weight"), x.dtype())) : e.splat(x.dtype(), x.dims(), 1);
  Val counts = scatterElements(e, e.splat(x.dtype(), {bins + 1}, 0), e.select(outside, e.size(bins), bin), weights, 0,
                               ScatterMode::add);
  counts = e.sliceAxis(counts, 0, 0, bins);
  if (c.flag("density")) {
    Val widths = e.sub(e.sliceAxis(edges, 0, 1, bins), e.sliceAxis(edges, 0, 0, bins));
    counts = e.div(counts, e.mul(sumOver(e, counts, {0}, true), widths));
  }
  c.result(0, counts);
  c.result(1, edges);
}
void importHistogramOfEdges(AtenContext &c) {
  Val edges = c.tensor("bins");
  c.requireShape(edges.rank() == 1 && edges.extent(0).valueOr(2) >= 2, "edges are a vector of two or more");
  setHistogram(c, edges);
}
/// Equal parts of a range, without one of what the elements span.
void importHistogram(AtenContext &c) {
  Emitter &e = c.e;
  Val x = c.tensor("self");
  int64_t bins = c.integer("bins");
  c.require(bins > 0 && bins <= 1 << 20, "bins is " + std::to_string(bins) + ", but must lie in [1, 2^20]");
  c.require(isFloat(x.dtype()), "a histogram is made of floats");
  Val low, high;
  if (c.given("range")) {
    std::vector<double> range = c.numbers("range");
    c.require(range.size() == 2 && range[0] <= range[1], "the range is two numbers in order");
    low = c.like(x, range[0]), high = c.like(x, range[1]);
  } else {
    std::vector<int64_t> all = axesFrom(0, x.rank());
    low = e.reduce(Reduction::min, x, all, false), high = e.reduce(Reduction::max, x, all, false);
  }
  Val same = e.compare(Compare::eq, low, high);
  low = e.select(same, e.add(low, -0.5), low);
  high = e.select(same, e.add(high, 0.5), high);
  // From the nearer end, as torch's linspace is, so that both ends are exact.
  Val step = e.div(e.sub(high, low), c.like(x, static_cast<double>(bins)));
  Val place = e.iota(x.dtype(), {bins + 1}, 0), rest = e.sub(c.like(x, static_cast<double>(bins)), place);
  const int64_t middle = (bins + 1) / 2;
  Val near = e.compare(Compare::lt, place, c.like(x, static_cast<double>(middle)));
  setHistogram(c, e.select(near, e.add(low, e.mul(place, step)), e.sub(high, e.mul(rest, step))));
}

//===--- Repeating --------------------------------------------------------------------===//

/// Which element stands at each place where each is repeated as often as `repeats` has it.
Val repeatedPlaces(AtenContext &c, const Val &repeats) {
  Val counts = c.cast(repeats, DType::I64);
  Dim total = c.given("output_size") ? c.dim("output_size") : c.e.dimsOf(sumOver(c.e, counts, {0}, true))[0];
  return repeated(c.e, counts, total);
}
void importRepeatedPlaces(AtenContext &c) {
  c.requireShape(c.tensor("repeats").rank() == 1, "repeats is a vector");
  c.result(c.cast(repeatedPlaces(c, c.tensor("repeats")), c.tensor("repeats").dtype()));
}
void importRepeatEach(AtenContext &c) {
  Val x = c.tensor("self"), repeats = c.tensor("repeats");
  if (!c.given("dim") || x.rank() == 0)
    x = c.e.reshape(x, {x.elements()});
  int64_t axis = c.given("dim") ? c.axis("dim", x.rank()) : 0;
  c.requireShape(repeats.rank() <= 1, "repeats is a number or a vector");
  c.requireShape(repeats.elements().is(1) || mayEqual(repeats.elements(), x.extent(axis)),
                 "an axis of " + x.extent(axis).str() + " does not go with " + repeats.elements().str() + " repeats");
  c.result(c.e.gather(x, repeatedPlaces(c, c.e.broadcast(repeats, {x.extent(axis)})), axis));
}

} // namespace

std::vector<AtenRow> countingOps() {
#define UNIQUE ", bool return_inverse=False, bool return_counts=False"
#define THREE ") -> (Tensor, Tensor, Tensor)"
#define HISTOGRAM "Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)"
  return {
      {"_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)", importUnique},
      {"_unique2(Tensor self, bool sorted=True" UNIQUE THREE, importUnique, "always sorted"},
      {"unique_dim(Tensor self, int dim, bool sorted=True" UNIQUE THREE, importUniqueAlong<true>, "always sorted"},
      {"unique_consecutive(Tensor self" UNIQUE ", int? dim=None" THREE, importUniqueConsecutive},
      {"unique_dim_consecutive(Tensor self, int dim" UNIQUE THREE, importUniqueAlong<false>},
      {"bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor", importBincount},
      {"histogram.bins_tensor(Tensor self, Tensor bins, *, " HISTOGRAM, importHistogramOfEdges},
      {"histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, " HISTOGRAM, importHistogram},
      {"repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor", importRepeatedPlaces},
      {"repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> "
       "Tensor",
       importRepeatEach},
  };
#undef UNIQUE
#undef THREE
#undef HISTOGRAM
}

} // namespace dmxc::torchfe
