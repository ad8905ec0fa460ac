//===- MarginLoss.cpp - losses of margins and of counts -------------------===//
#include "../Math.h"

#include "frontends/common/ops/Order.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

/// A batch of scores [n, classes]; one row alone counts as a batch, whose losses are a scalar.
struct Scores {
  Val x;
  bool single = false;
};
Scores scoresOf(AtenContext &c) {
  Val x = c.tensor("self");
  c.require(isFloat(x.dtype()), "the scores must be floats");
  c.requireShape(x.rank() == 1 || x.rank() == 2, "expected scores [classes] or [n, classes], not " + x.describe());
  return {x.rank() == 2 ? x : unsqueeze(c.e, x, 0), x.rank() == 1};
}
Val reduceRows(AtenContext &c, const Val &loss, bool scalar) {
  return reduceLoss(c, scalar ? c.e.reshape(loss, {}) : loss);
}
Val asNumber(AtenContext &c, Dim size, DType type) { return c.cast(c.e.size(size), type); }

void importMultiMargin(AtenContext &c) {
  Emitter &e = c.e;
  auto [x, single] = scoresOf(c);
  Val target = c.cast(c.tensor("target"), DType::I64), one = c.like(x, 1);
  const double power = c.number("p");
  c.require(power == 1 || power == 2, "p must be 1 or 2");
  c.requireShape(target.rank() <= 1 && mayEqual(target.elements(), x.extent(0)), "there must be one target a row");
  const bool scalar = single && target.rank() == 0;
  target = e.reshape(target, {x.extent(0), 1});
  Val picked = e.emit<GatherElementsOp>({x, target}, {e.attr("axis", int64_t(1))});
  Val lack = e.max(e.add(e.sub(x, picked), c.number("margin")), c.like(x, 0));
  lack = power == 2 ? square(e, lack) : lack;
  if (Val weight = c.optional("weight"))
    lack = e.mul(lack, e.gather(c.cast(weight, x.dtype()), target, 0));
  Val other = e.compare(Compare::ne, target, e.iota(DType::I64, {1, x.extent(1)}, 1));
  Val loss = sumOver(e, whereOrZero(e, other, lack), {1}, false);
  c.result(reduceRows(c, e.div(loss, asNumber(c, x.extent(1), x.dtype())), scalar));
}

/// Each class of a row's list, which ends at its first negative number, against each class that is not in it.
void importMultilabelMargin(AtenContext &c) {
  Emitter &e = c.e;
  auto [x, single] = scoresOf(c);
  Val given = c.cast(c.tensor("target"), DType::I64), zero = e.intScalar(DType::I64, 0);
  Dim rows = x.extent(0), classes = x.extent(1);
  c.requireShape(mayEqual(given.elements(), rows * classes), "scores and targets differ in shape");
  Val target = e.reshape(given, {rows, classes});
  Val ended = cumulativeSum(e, e.cast(e.compare(Compare::lt, target, zero), DType::I64), 1);
  Val listed = e.compare(Compare::eq, ended, zero), index = e.select(listed, target, zero);
  Val picked = e.emit<GatherElementsOp>({x, index}, {e.attr("axis", int64_t(1))});
  // [n, places of the list, classes]
  Val inList = unsqueeze(e, listed, 2),
      at = e.compare(Compare::eq, unsqueeze(e, index, 2), e.iota(DType::I64, {1, 1, classes}, 2));
  Val hits = sumOver(e, e.cast(both(e, inList, at), DType::I64), {1}, false);
  Val isTarget = e.compare(Compare::gt, hits, zero);
  Val lack = e.add(e.sub(unsqueeze(e, x, 1), unsqueeze(e, picked, 2)), 1.0);
  Val counts = both(e, inList, unsqueeze(e, notOf(e, isTarget), 1));
  Val loss = sumOver(e, whereOrZero(e, counts, e.max(lack, c.like(x, 0))), {1, 2}, false);
  c.result(0, reduceRows(c, e.div(loss, asNumber(c, classes, x.dtype())), single));
  c.result(1, e.reshape(c.cast(isTarget, x.dtype()), given.dims()));
}

void importTripletMargin(AtenContext &c) {
  auto distance = [&](const char *a, const char *b) {
    return called(c, "pairwise_distance.default", {c.arg(a), c.arg(b), c.arg("p"), c.arg("eps")});
  };
  Val near = distance("anchor", "positive"), far = distance("anchor", "negative");
  if (c.flag("swap"))
    far = c.e.min(far, distance("positive", "negative"));
  c.result(reduceLoss(c, c.e.max(c.e.add(c.e.sub(near, far), c.number("margin")), c.like(near, 0))));
}

/// Without what does not depend on the scores, or `full` with Stirling's approximation of it.
void importPoisson(AtenContext &c) {
  Emitter &e = c.e;
  auto [x, y] = floatPair(c, "input", "target");
  Val loss =
      c.flag("log_input") ? e.sub(expOf(e, x), e.mul(y, x)) : e.sub(x, e.mul(y, logOf(e, e.add(x, c.number("eps")))));
  if (c.flag("full")) {
    Val many = e.compare(Compare::gt, y, c.like(y, 1)), count = e.select(many, y, c.like(y, 1));
    Val rest = e.add(e.sub(e.mul(count, logOf(e, count)), count), e.mul(logOf(e, e.mul(count, 2 * M_PI)), 0.5));
    loss = e.add(loss, whereOrZero(e, many, rest));
  }
  c.result(reduceLoss(c, loss));
}

void importSoftMargin(AtenContext &c) {
  auto [x, y] = floatPair(c, "self", "target");
  c.result(reduceLoss(c, c.e.emit<Log1pOp>({expOf(c.e, negOf(c.e, c.e.mul(x, y)))})));
}

} // namespace

std::vector<AtenRow> marginLossOps() {
  return {
      {"multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int "
       "reduction=1) -> Tensor",
       importMultiMargin},
      {"multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", importMultilabelMargin},
      {"multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor "
       "is_target)",
       importMultilabelMargin},
      {"triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, float "
       "eps=1e-06, bool swap=False, int reduction=1) -> Tensor",
       importTripletMargin},
      {"poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
       importPoisson},
      {"soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", importSoftMargin},
  };
}

} // namespace dmxc::torchfe
