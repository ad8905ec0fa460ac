//===- Loss.cpp - classification losses -----------------------------------===//
#include "../NodeContext.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// The negative log likelihood of `logProbabilities` [N, C, d..] at the classes
/// `target` [N, d..].
void emitLoss(NodeContext &c, const Val &logProbabilities) {
  Val target = c.cast64(1), weight = c.optional(2);
  int64_t channel = 1;
  c.requireShape(logProbabilities.rank() >= 2 && target.rank() == logProbabilities.rank() - 1,
                 "expected scores of rank 2 or more and classes of one rank less");
  std::string reduction = c.attrString("reduction", "mean");
  c.requireAttr(reduction == "none" || reduction == "sum" || reduction == "mean",
                "reduction '" + reduction + "' is unknown");
  Emitter &e = c.e;
  Val ignored;
  if (c.hasAttr("ignore_index")) {
    ignored = e.compare(Compare::eq, target, e.intScalar(DType::I64, c.attrInt("ignore_index")));
    target = e.select(ignored, e.intScalar(DType::I64, 0), target);
  }
  Dims picked = target.dims(), index = picked;
  index.insert(index.begin() + 1, 1);
  Val loss = e.emit<GatherElementsOp>({logProbabilities, e.reshape(target, index)}, {e.attr("axis", channel)});
  loss = e.emit<NegOp>({e.reshape(loss, picked)});
  Val zero = e.scalarLike(loss, 0), share;
  if (weight) {
    share = e.gather(weight, target, 0);
    loss = e.mul(loss, share);
  } else if (ignored) {
    share = e.splat(loss.dtype(), picked, 1);
  }
  if (ignored) {
    loss = e.select(ignored, zero, loss);
    share = e.select(ignored, zero, share);
  }
  std::vector<int64_t> all(picked.size());
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = i;
  if (reduction == "sum")
    loss = e.reduce(Reduction::sum, loss, all, false);
  else if (reduction == "mean" && share)
    loss = e.div(e.reduce(Reduction::sum, loss, all, false), e.reduce(Reduction::sum, share, all, false));
  else if (reduction == "mean")
    loss = e.reduce(Reduction::mean, loss, all, false);
  c.result(0, loss);
}

void importNegativeLogLikelihood(NodeContext &c) { emitLoss(c, c.operand(0)); }

void importSoftmaxCrossEntropy(NodeContext &c) {
  c.requireShape(c.operand(0).rank() >= 2, "expected scores of rank 2 or more");
  Val logProbabilities = c.e.softmax(c.operand(0), 1, true);
  emitLoss(c, logProbabilities);
  c.result(1, logProbabilities);
}

} // namespace

std::vector<OpRows> lossOps() {
  using namespace types;
  return {
      {"NegativeLogLikelihoodLoss",
       {12, 13, 22},
       "T.T>1",
       importNegativeLogLikelihood,
       "ignore_index,reduction",
       {Float, Index, Float}},
      {"SoftmaxCrossEntropyLoss",
       {12, 13},
       "T.T>2",
       importSoftmaxCrossEntropy,
       "ignore_index,reduction",
       {Float, Index, Float}},
  };
}

} // namespace dmxc::onnxfe
