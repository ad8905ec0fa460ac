//===- Statistics.cpp - closeness, quantiles, bins, bags ------------------===//
#include "Math.h"

#include "frontends/common/ops/Order.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

//===--- Elementwise ------------------------------------------------------------------===//

void importIsClose(AtenContext &c) {
  std::vector<Val> v = promote(c, {{c.tensor("self"), false}, {c.tensor("other"), false}});
  Emitter &e = c.e;
  bool floats = isFloat(v[0].dtype());
  Val a = c.asFloat(v[0]), b = c.asFloat(v[1]);
  Val error = absOf(e, e.sub(a, b)), allowed = e.add(absOf(e, e.mul(b, c.number("rtol"))), c.number("atol"));
  // Infinities are close to themselves alone: their error is no number or has no end.
  Val finite = e.compare(Compare::lt, error, e.scalarLike(error, INFINITY));
  Val close = either(e, e.compare(Compare::eq, a, b), both(e, finite, e.compare(Compare::le, error, allowed)));
  if (c.flag("equal_nan") && floats)
    close = either(e, close, both(e, isNaN(e, a), isNaN(e, b)));
  c.result(close);
}
template <bool toRadians> void importDegrees(AtenContext &c) {
  c.result(c.e.mul(c.asFloat(c.tensor("self")), toRadians ? M_PI / 180 : 180 / M_PI));
}
void importLogit(AtenContext &c) {
  Val given = c.asFloat(c.tensor("self")), x = c.wide(given);
  if (c.given("eps"))
    x = c.e.min(c.e.max(x, c.like(x, c.number("eps"))), c.like(x, 1 - c.number("eps")));
  c.result(c.cast(logOf(c.e, c.e.div(x, c.e.sub(c.like(x, 1), x))), given.dtype()));
}
/// ln(e^a + e^b), or that of the base 2.
template <bool ofTwo> void importLogAddExp(AtenContext &c) {
  auto [a, b] = floatPair(c, "self", "other");
  Val x = c.wide(a), y = c.wide(b), larger = c.e.max(x, y);
  Val same = c.e.compare(Compare::eq, x, y); // of two infinities too
  Val distance = c.e.select(same, c.like(x, 0), absOf(c.e, c.e.sub(x, y)));
  Val rest = c.e.emit<Log1pOp>({expOf(c.e, c.e.mul(distance, ofTwo ? -M_LN2 : -1.0))});
  c.result(c.cast(c.e.add(larger, ofTwo ? c.e.mul(rest, 1 / M_LN2) : rest), a.dtype()));
}

//===--- Statistics -------------------------------------------------------------------===//

/// Sums and means of what is a number.
template <bool mean> void importNumbersAlone(AtenContext &c) {
  Val x = c.tensor("self");
  x = c.cast(x, c.type("dtype", isFloat(x.dtype()) || mean ? x.dtype() : DType::I64));
  c.require(isFloat(x.dtype()) || !mean, "the mean is taken of floats, not of " + std::string(dtypeName(x.dtype())));
  std::vector<int64_t> axes = c.axes("dim", x.rank());
  if (!isFloat(x.dtype()))
    return c.result(sumOver(c.e, x, axes, c.flag("keepdim")));
  Val wide = c.wide(x), none = isNaN(c.e, wide);
  Val total = sumOver(c.e, c.e.select(none, c.like(wide, 0), wide), axes, c.flag("keepdim"));
  if (mean)
    total = c.e.div(total, sumOver(c.e, c.cast(notOf(c.e, none), wide.dtype()), axes, c.flag("keepdim")));
  c.result(c.cast(total, x.dtype()));
}

void importMsort(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(x.rank() == 0 ? x : sorted(c.e, x, 0, x.extent(0), false)[0]);
}
void importTrace(AtenContext &c) {
  Val x = c.tensor("self");
  c.requireShape(x.rank() == 2, "expected a matrix");
  Val line = called(c, "diagonal.default", {Arg::tensor(x)});
  c.result(called(c, "sum.default", {Arg::tensor(line)}));
}

/// Between the two elements around the place q * (n - 1) of the sorted axis; one NaN makes all NaN.
void importQuantile(AtenContext &c) {
  Emitter &e = c.e;
  Val x = c.tensor("self");
  c.require(x.dtype() == DType::F32 || x.dtype() == DType::F64, "quantiles are taken of f32 and f64");
  bool isNumber = c.arg("q").kind != Arg::Kind::Tensor;
  Val q = c.cast(c.operand("q").value, x.dtype());
  c.requireShape(q.rank() <= 1, "q is a number or a vector");
  if (q.isConstant())
    for (int64_t i = 0; i < q.numElements(); ++i)
      c.require(q.constant().asDouble(i) >= 0 && q.constant().asDouble(i) <= 1, "q must lie in [0, 1]");
  Dims kept = Dims(x.rank(), 1);
  int64_t axis = 0;
  if (c.given("dim")) {
    axis = c.axis("dim", x.rank());
    kept = x.dims();
    kept[axis] = 1;
  } else {
    x = e.reshape(x, {x.elements()});
  }
  if (!c.flag("keepdim")) {
    if (c.given("dim"))
      kept.erase(kept.begin() + axis);
    else
      kept.clear();
  }
  Val line = sorted(e, x, axis, x.extent(axis), false)[0];
  Val place = e.mul(e.reshape(q, {q.elements()}), e.cast(e.size(x.extent(axis) - 1), x.dtype()));
  std::string mode = c.text("interpolation");
  Val below = e.emit<FloorOp>({place}), above = e.emit<CeilOp>({place}), weight = e.sub(place, below);
  if (mode == "lower")
    above = below;
  else if (mode == "higher")
    below = above;
  else if (mode == "nearest")
    above = below = e.emit<RoundOp>({place});
  else if (mode == "midpoint")
    weight = e.splat(x.dtype(), weight.dims(), 0.5);
  else
    c.require(mode == "linear", "the interpolation '" + mode + "' is unknown");
  auto taken = [&](const Val &at) { return moveAxis(e, e.gather(line, e.cast(at, DType::I64), axis), axis, 0); };
  Val first = taken(below), second = taken(above);
  Dims column(first.rank(), 1);
  column[0] = weight.extent(0);
  Val result = e.add(first, e.mul(e.sub(second, first), e.reshape(weight, column)));
  Val spoilt = e.reduce(Reduction::max, e.cast(isNaN(e, x), DType::U8), {axis}, false);
  result = e.select(e.cast(spoilt, DType::Bool), e.scalarLike(result, NAN), result);
  if (!isNumber && q.rank() == 1)
    kept.insert(kept.begin(), q.extent(0));
  c.result(e.reshape(result, kept));
}

/// Before which of the sorted numbers each value stands: how many are less than it, or with `right` not more.
void countBelow(AtenContext &c, const Val &sequence, const Operand &values, bool right) {
  std::vector<Val> v = promote(c, {{sequence, false}, values});
  Val line = v[0], x = unsqueeze(c.e, v[1], v[1].rank());
  if (line.rank() > 1) {
    c.requireShape(line.rank() == v[1].rank(), "the sorted numbers are one line, or have the axes of the values");
    line = unsqueeze(c.e, line, line.rank() - 1);
  }
  c.requireShape(line.rank() > 0, "the sorted numbers have no axis");
  // Turned round, so that a NaN stands behind all numbers.
  Val counts = c.cast(notOf(c.e, c.e.compare(right ? Compare::gt : Compare::ge, line, x)), DType::I64);
  Val total = sumOver(c.e, counts, {counts.rank() - 1}, false);
  c.result(c.cast(total, c.flag("out_int32") ? DType::I32 : DType::I64));
}
void importBucketize(AtenContext &c) { countBelow(c, c.tensor("boundaries"), c.operand("self"), c.flag("right")); }
void importSearchsorted(AtenContext &c) {
  Val sequence = c.tensor("sorted_sequence");
  if (Val sorter = c.optional("sorter"))
    sequence = called(c, "gather.default", {Arg::tensor(sequence), Arg::integer(-1), Arg::tensor(sorter)});
  std::string side = c.text("side", "left");
  c.require(side == "left" || side == "right", "side is 'left' or 'right', not '" + side + "'");
  countBelow(c, sequence, c.operand("self"), c.flag("right") || side == "right");
}

void importEmbeddingBag(AtenContext &c) {
  std::vector<Arg> arguments;
  for (const char *name : {"weight", "indices", "offsets", "scale_grad_by_freq", "mode", "sparse", "per_sample_weights",
                           "include_last_offset"})
    arguments.push_back(c.arg(name));
  if (c.given("padding_idx"))
    arguments.push_back(c.arg("padding_idx"));
  std::vector<Arg> results = call(c, "_embedding_bag.default", std::move(arguments));
  c.result(results[0]);
}

} // namespace

std::vector<AtenRow> statisticsOps() {
#define BAG(rest)                                                                                                      \
  "Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq" rest ") -> (Tensor, Tensor, Tensor, "       \
  "Tensor)"
#define QUANTILE ", int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor"
#define NORM ", bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"
  return {
      {"isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
       importIsClose},
      {"deg2rad(Tensor self) -> Tensor", importDegrees<true>},
      {"rad2deg(Tensor self) -> Tensor", importDegrees<false>},
      {"logit(Tensor self, float? eps=None) -> Tensor", importLogit},
      {"logaddexp(Tensor self, Tensor other) -> Tensor", importLogAddExp<false>},
      {"logaddexp2(Tensor self, Tensor other) -> Tensor", importLogAddExp<true>},
      {"nanmean(Tensor self, int[1]? dim=None" NORM, importNumbersAlone<true>},
      {"nansum(Tensor self, int[1]? dim=None" NORM, importNumbersAlone<false>},
      {"msort(Tensor self) -> Tensor", importMsort},
      {"trace(Tensor self) -> Tensor", importTrace},
      {"quantile(Tensor self, Tensor q" QUANTILE, importQuantile},
      {"quantile.scalar(Tensor self, float q" QUANTILE, importQuantile},
      {"bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
       importBucketize},
      {"searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? "
       "side=None, Tensor? sorter=None) -> Tensor",
       importSearchsorted},
      {"embedding_bag(" BAG(
           "=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False"),
       importEmbeddingBag, "the first result alone"},
      {"embedding_bag.padding_idx(" BAG(
           ", int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx"),
       importEmbeddingBag, "the first result alone"},
  };
#undef BAG
#undef QUANTILE
#undef NORM
}

} // namespace dmxc::torchfe
