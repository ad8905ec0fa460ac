//===- Norm.cpp - normalisations of com.microsoft -------------------------===//
#include "../ops/Norm.h"
#include "Families.h"

#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/Formulas.h"
#include "frontends/common/ops/Norm.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// A vector operand of `size` numbers, in f32.
Val vectorOf(NodeContext &c, int operand, const char *what, Dim size) {
  Val value = c.operand(operand);
  c.requireShape(value.rank() == 1 && mayEqual(value.extent(0), size),
                 std::string(what) + " (operand " + std::to_string(operand) + ") is " + value.describe() +
                     "; expected a vector of " + size.str() + " numbers");
  return c.e.cast(value, DType::F32);
}

/// What is added to x, where its leading axes may be left out or 1.
Val skipOf(NodeContext &c, const Val &x) {
  Val skip = c.operand(1);
  Dims own = skip.dims(), dims = x.dims();
  bool fits = skip.rank() <= x.rank() && skip.rank() >= 2;
  for (int64_t i = 1; fits && i <= skip.rank(); ++i) {
    Dim have = own[own.size() - i], want = dims[dims.size() - i];
    fits = mayEqual(have, want) || (i == 3 && have.is(1));
  }
  c.requireShape(fits, "skip " + skip.describe() + " does not fit the input " + x.describe());
  return c.e.broadcast(c.e.cast(skip, DType::F32), dims);
}

/// The input, `skip` and the bias added, in f32; result 3 is that sum.
Val sumOf(NodeContext &c, int bias) {
  Val x = c.operand(0);
  c.requireShape(x.rank() == 2 || x.rank() == 3, "expected an input of rank 2 or 3, not " + x.describe());
  Val sum = c.e.add(c.e.cast(x, DType::F32), skipOf(c, x));
  if (c.has(bias))
    sum = c.e.add(sum, vectorOf(c, bias, "bias", x.extent(-1)));
  c.result(3, c.e.cast(sum, x.dtype()));
  return sum;
}

void importSkipLayerNorm(NodeContext &c) {
  Val sum = sumOf(c, 4);
  std::vector<int64_t> last{sum.rank() - 1};
  double epsilon = c.attrFloat("epsilon", 1e-12);
  Val y = normalize(c.e, Normalization::standard, sum, last, epsilon);
  y = c.e.mul(y, vectorOf(c, 2, "gamma", sum.extent(-1)));
  if (c.has(3))
    y = c.e.add(y, vectorOf(c, 3, "beta", sum.extent(-1)));
  c.result(0, c.e.cast(y, c.operand(0).dtype()));
  if (!c.wants(1) && !c.wants(2))
    return;
  Moments moments = momentsOf(c.e, sum, last);
  c.result(1, moments.mean);
  c.result(2, inverseDeviation(c.e, moments.variance, epsilon));
}

void importSkipRMSNorm(NodeContext &c) {
  Val sum = sumOf(c, 3);
  std::vector<int64_t> last{sum.rank() - 1};
  double epsilon = c.attrFloat("epsilon", 1e-12);
  Val y = normalize(c.e, Normalization::rms, sum, last, epsilon);
  y = c.e.mul(y, vectorOf(c, 2, "gamma", sum.extent(-1)));
  c.result(0, c.e.cast(y, c.operand(0).dtype()));
  if (c.wants(2))
    c.result(2, inverseDeviation(c.e, meanOver(c.e, square(c.e, sum), last, true), epsilon));
}

/// x [n, .., c] or [n, c, ..], as the attribute says, with the channels as the second axis, and back.
struct Channels {
  NodeContext &c;
  bool last;
  int64_t rank;

  explicit Channels(NodeContext &c) : c(c), last(c.attrFlag("channels_last", true)), rank(c.operand(0).rank()) {
    c.requireShape(rank >= 3, "expected an input of rank 4, not " + c.operand(0).describe());
  }
  Val second(const Val &x) const {
    std::vector<int64_t> order{0, rank - 1};
    for (int64_t axis = 1; axis + 1 < rank; ++axis)
      order.push_back(axis);
    return last ? c.e.transpose(x, order) : x;
  }
  Val back(const Val &x) const {
    std::vector<int64_t> order{0};
    for (int64_t axis = 2; axis < rank; ++axis)
      order.push_back(axis);
    order.push_back(1);
    return last ? c.e.transpose(x, order) : x;
  }
  Dim count() const { return c.operand(0).extent(last ? rank - 1 : 1); }
};

/// x [n, c, ..] in f32.
void finishGroupNorm(NodeContext &c, const Channels &channels, const Val &x) {
  Emitter &e = c.e;
  Val y = normalize(e, Normalization::standard, groupsOfChannels(e, x, c.attrInt("groups")), {2},
                    c.attrFloat("epsilon", 1e-5));
  y = e.mul(e.reshape(y, x.dims()), perChannel(e, vectorOf(c, 1, "gamma", channels.count()), x.rank()));
  y = e.add(y, perChannel(e, vectorOf(c, 2, "beta", channels.count()), x.rank()));
  int64_t activation = c.attrInt("activation");
  c.requireAttr(activation == 0 || activation == 1, "activation must be 0 (none) or 1 (silu)");
  if (activation == 1)
    y = silu(e, y);
  c.result(0, channels.back(e.cast(y, c.operand(0).dtype())));
}

void importGroupNorm(NodeContext &c) {
  Channels channels(c);
  finishGroupNorm(c, channels, channels.second(c.e.cast(c.operand(0), DType::F32)));
}

void importSkipGroupNorm(NodeContext &c) {
  Emitter &e = c.e;
  Channels channels(c);
  Val x = c.operand(0), skip = c.operand(3);
  Dims expected = x.dims(), flat{x.extent(0), channels.count()}, column(x.rank(), 1);
  column.front() = x.extent(0);
  column[channels.last ? x.rank() - 1 : 1] = channels.count();
  c.requireShape(mayEqual(skip.dims(), expected) || mayEqual(skip.dims(), flat) || mayEqual(skip.dims(), column),
                 "skip " + skip.describe() + " does not fit the input " + x.describe());
  if (skip.rank() == 2)
    skip = e.reshape(skip, column);
  Val sum = e.add(e.cast(x, DType::F32), e.cast(skip, DType::F32));
  if (c.has(4)) {
    Val bias = vectorOf(c, 4, "bias", channels.count());
    sum = e.add(sum, channels.last ? bias : perChannel(e, bias, x.rank()));
  }
  c.result(1, e.cast(sum, x.dtype()));
  finishGroupNorm(c, channels, channels.second(sum));
}

/// Half of what is summed, times the GELU of the other half.
void importBiasSplitGelu(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0);
  c.requireShape(x.rank() >= 1 && x.extent(-1).valueOr(0) % 2 == 0, "the last axis of " + x.describe() + " is odd");
  Val sum = e.add(e.cast(x, DType::F32), vectorOf(c, 1, "bias", x.extent(-1)));
  Dim half = Dim::floorDiv(x.extent(-1), 2);
  Val left = e.sliceAxis(sum, x.rank() - 1, 0, half), right = e.sliceAxis(sum, x.rank() - 1, half, half);
  c.result(e.cast(e.mul(left, e.mul(right, normalCdf(e, right))), x.dtype()));
}

} // namespace

std::vector<OpRows> contribNormOps() {
  using namespace types;
  constexpr TypeSet Half = kContribFloat;
  constexpr const char *domain = kMicrosoft, *groups = "activation=int,channels_last,epsilon,groups";
  return {
      {"SimplifiedLayerNormalization", {1}, "..>2", importRMSNorm, "axis,epsilon,stash_type", {Float}},
      {"SimplifiedLayerNormalization", {1}, "..>2", importRMSNorm, "axis,epsilon,stash_type", {Float}, "", domain},
      {"SkipSimplifiedLayerNormalization", {1}, "TTTT>4", importSkipRMSNorm, "epsilon", {Half}, "", domain},
      {"SkipLayerNormalization", {1}, "TTTTT>4", importSkipLayerNorm, "epsilon", {Half}, "", domain},
      {"GroupNorm", {1}, ".TT>1", importGroupNorm, groups, {Half}, "", domain},
      {"SkipGroupNorm", {1}, "TUUTT>2", importSkipGroupNorm, groups, {Half}, "", domain},
      {"BiasSplitGelu", {1}, "TT>1", importBiasSplitGelu, "", {Half}, "", domain},
  };
}

} // namespace dmxc::onnxfe
