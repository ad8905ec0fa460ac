//===- Statistics.cpp - closeness, sums, bins, bags -----------------------===//
#include "Math.h"

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
  Val x = c.wide(a), y = c.wide(b);
  if (ofTwo)
    return c.result(c.cast(c.e.mul(logAddExp(c.e, c.e.mul(x, M_LN2), c.e.mul(y, M_LN2)), 1 / M_LN2), a.dtype()));
  c.result(c.cast(logAddExp(c.e, x, y), a.dtype()));
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

void importTrace(AtenContext &c) {
  Val x = c.tensor("self");
  c.requireShape(x.rank() == 2, "expected a matrix");
  Val line = called(c, "diagonal.default", {Arg::tensor(x)});
  c.result(called(c, "sum.default", {Arg::tensor(line)}));
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
  if (c.given("padding_idx")) { // which counts from the end where it is negative
    int64_t padding = c.integer("padding_idx"), rows = c.tensor("weight").dim(0);
    c.require(padding >= -rows && padding < rows, "padding_idx is outside of the table");
    arguments.push_back(Arg::integer(padding < 0 ? padding + rows : padding));
  }
  std::vector<Arg> results = call(c, "_embedding_bag.default", std::move(arguments));
  c.result(results[0]);
}

} // namespace

std::vector<AtenRow> statisticsOps() {
#define BAG(rest)                                                                                                      \
  "Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq" rest ") -> (Tensor, Tensor, Tensor, "       \
  "Tensor)"
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
      {"trace(Tensor self) -> Tensor", importTrace},
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
#undef NORM
}

} // namespace dmxc::torchfe
