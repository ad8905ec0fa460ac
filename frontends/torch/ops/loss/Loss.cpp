//===- Loss.cpp - losses and their gradients ------------------------------===//
#include "../Math.h"
#include "../View.h"

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

/// Classes of a loss: what counts and how much.
struct Targets {
  int64_t axis; ///< of the classes
  Val index;    ///< the class of each element, one that exists where it is ignored
  Val weight;   ///< 0 where it is ignored
};
Targets targetsOf(AtenContext &c, const Val &x) {
  Val target = c.cast(c.tensor("target"), DType::I64);
  c.requireShape(x.rank() >= 1 && target.rank() == x.rank() - 1, "the targets do not fit the classes");
  Val ignored = c.e.compare(Compare::eq, target, c.e.intScalar(DType::I64, c.integer("ignore_index")));
  Targets t{x.rank() == 1 ? 0 : 1, c.e.select(ignored, c.e.intScalar(DType::I64, 0), target), {}};
  Val weight = c.optional("weight");
  t.weight = weight ? c.e.gather(c.cast(weight, x.dtype()), t.index, 0) : c.e.splat(x.dtype(), target.dims(), 1);
  t.weight = c.e.select(ignored, c.like(x, 0), t.weight);
  return t;
}
Val total(Emitter &e, const Val &x) { return sumOver(e, x, axesFrom(0, x.rank()), false); }

/// By kind: the losses, or their sum, which a mean divides by the weights of what counts.
Val reduceWeighted(AtenContext &c, const Val &loss, const Val &divisor) {
  int64_t kind = c.integer("reduction");
  c.require(kind >= 0 && kind <= 2, "the reduction " + std::to_string(kind) + " is unknown");
  return kind == 0 ? loss : kind == 1 ? c.e.div(total(c.e, loss), divisor) : total(c.e, loss);
}
/// The loss of each element, without its weight.
Val negativeLog(AtenContext &c, const Val &x, const Targets &t) {
  Val picked = c.e.emit<GatherElementsOp>({x, unsqueeze(c.e, t.index, t.axis)}, {c.e.attr("axis", t.axis)});
  return negOf(c.e, c.e.reshape(picked, t.index.dims()));
}
/// The loss, and what a mean divides by.
void nllLoss(AtenContext &c, const Val &x) {
  Targets t = targetsOf(c, x);
  Val divisor = total(c.e, t.weight);
  c.result(0, reduceWeighted(c, c.e.mul(negativeLog(c, x, t), t.weight), divisor));
  c.result(1, c.integer("reduction") == 0 ? c.e.scalar(x.dtype(), 0) : divisor);
}
void importNll(AtenContext &c) { nllLoss(c, c.tensor("self")); }

void importNllBackward(AtenContext &c) {
  Val x = c.tensor("self"), g = c.tensor("grad_output");
  Targets t = targetsOf(c, x);
  int64_t kind = c.integer("reduction");
  if (kind == 1)
    g = c.e.div(g, c.tensor("total_weight"));
  Val share = negOf(c.e, c.e.mul(c.e.broadcast(g, t.index.dims()), t.weight));
  Dims line(x.rank(), 1);
  line[t.axis] = x.extent(t.axis);
  Val chosen = c.e.compare(Compare::eq, unsqueeze(c.e, t.index, t.axis), c.e.iota(DType::I64, line, t.axis));
  c.result(c.e.broadcast(whereOrZero(c.e, chosen, unsqueeze(c.e, share, t.axis)), x.dims()));
}

/// The weights of the classes along their axis, of others 1; null where there are none.
Val weightOfClasses(AtenContext &c, const Val &x, int64_t axis) {
  Val weight = c.optional("weight");
  if (!weight)
    return Val();
  Dims line(x.rank() - axis, 1);
  line[0] = weight.elements();
  return c.e.reshape(c.cast(weight, x.dtype()), line);
}

/// A class counts for all of its share that smoothing leaves, and each class for its part of what that takes.
void smoothedCrossEntropy(AtenContext &c, const Val &logs, double smoothing) {
  Targets t = targetsOf(c, logs);
  Val weight = weightOfClasses(c, logs, t.axis), even = weight ? c.e.mul(logs, weight) : logs;
  Val counts = c.e.compare(Compare::ne, c.cast(c.tensor("target"), DType::I64),
                           c.e.intScalar(DType::I64, c.integer("ignore_index")));
  even = whereOrZero(c.e, counts, negOf(c.e, sumOver(c.e, even, {t.axis}, false)));
  Val part = c.e.div(c.like(logs, smoothing), c.cast(c.e.size(logs.extent(t.axis)), logs.dtype()));
  Val hit = c.e.mul(c.e.mul(negativeLog(c, logs, t), t.weight), 1 - smoothing);
  c.result(reduceWeighted(c, c.e.add(hit, c.e.mul(even, part)), total(c.e, t.weight)));
}

void importCrossEntropy(AtenContext &c) {
  Val x = c.tensor("self"), target = c.tensor("target");
  c.requireShape(x.rank() > 0, "the input is a scalar");
  int64_t axis = x.rank() == 1 ? 0 : 1;
  const double smoothing = c.number("label_smoothing");
  c.require(smoothing >= 0 && smoothing <= 1, "label_smoothing must be 0 to 1");
  Val logs = c.e.softmax(x, axis, /*log=*/true);
  if (isInt(target.dtype()))
    return smoothing == 0 ? nllLoss(c, logs) : smoothedCrossEntropy(c, logs, smoothing);
  Val shares = c.cast(target, x.dtype());
  if (smoothing != 0) {
    Val part = c.e.div(c.like(x, smoothing), c.cast(c.e.size(x.extent(axis)), x.dtype()));
    shares = c.e.add(c.e.mul(shares, 1 - smoothing), part);
  }
  Val terms = c.e.mul(logs, shares);
  if (Val weight = weightOfClasses(c, x, axis))
    terms = c.e.mul(terms, weight);
  c.result(reduceLoss(c, negOf(c.e, sumOver(c.e, terms, {axis}, false))));
}

std::pair<Val, Val> pairOf(AtenContext &c) {
  std::vector<Val> v = promote(c, {{c.tensor("self"), false}, {c.tensor("target"), false}});
  return {v[0], v[1]};
}
void importMse(AtenContext &c) {
  auto [x, y] = pairOf(c);
  c.result(reduceLoss(c, square(c.e, c.e.sub(x, y))));
}
void importMseBackward(AtenContext &c) {
  auto [x, y] = pairOf(c);
  Val slope = c.e.mul(c.e.mul(c.e.sub(x, y), 2.0), c.tensor("grad_output"));
  if (c.integer("reduction") == 1)
    slope = c.e.div(slope, c.cast(c.e.size(x.elements()), x.dtype()));
  c.result(slope);
}
void importL1(AtenContext &c) {
  auto [x, y] = pairOf(c);
  c.result(reduceLoss(c, absOf(c.e, c.e.sub(x, y))));
}
void smoothL1(AtenContext &c, double bound, double factor) {
  auto [x, y] = pairOf(c);
  Val distance = absOf(c.e, c.e.sub(x, y));
  Val line = c.e.add(distance, -0.5 * bound);
  Val bowl = bound == 0 ? distance : c.e.mul(square(c.e, distance), 0.5 / bound);
  Val loss = c.e.select(c.e.compare(Compare::lt, distance, c.like(x, bound)), bowl, line);
  c.result(reduceLoss(c, c.e.mul(loss, factor)));
}
void importSmoothL1(AtenContext &c) { smoothL1(c, c.number("beta"), 1); }
void importHuber(AtenContext &c) { smoothL1(c, c.number("delta"), c.number("delta")); }

Val weighted(AtenContext &c, const Val &loss) {
  Val weight = c.optional("weight");
  return reduceLoss(c, weight ? c.e.mul(loss, weight) : loss);
}
void importBceWithLogits(AtenContext &c) {
  auto [x, y] = pairOf(c);
  // (1 - y) x + (1 + (w - 1) y) ln(1 + exp(-x))
  Val one = c.like(x, 1), zero = c.like(x, 0);
  Val tail = c.e.add(c.e.emit<Log1pOp>({expOf(c.e, negOf(c.e, absOf(c.e, x)))}), c.e.max(negOf(c.e, x), zero));
  if (Val positive = c.optional("pos_weight"))
    tail = c.e.mul(tail, c.e.add(c.e.mul(c.e.add(positive, -1.0), y), 1.0));
  c.result(weighted(c, c.e.add(c.e.mul(c.e.sub(one, y), x), tail)));
}
void importBce(AtenContext &c) {
  auto [x, y] = pairOf(c);
  Val floor = c.like(x, -100), one = c.like(x, 1); // torch bounds the logarithms
  Val hit = c.e.max(logOf(c.e, x), floor), miss = c.e.max(logOf(c.e, c.e.sub(one, x)), floor);
  c.result(weighted(c, negOf(c.e, c.e.add(c.e.mul(y, hit), c.e.mul(c.e.sub(one, y), miss)))));
}
void importKlDiv(AtenContext &c) {
  auto [x, y] = pairOf(c);
  Val loss =
      c.flag("log_target")
          ? c.e.mul(expOf(c.e, y), c.e.sub(y, x))
          : c.e.sub(c.e.select(c.e.compare(Compare::gt, y, c.like(y, 0)), c.e.mul(y, logOf(c.e, y)), c.like(y, 0)),
                    c.e.mul(y, x));
  c.result(reduceLoss(c, loss));
}

/// Of pairs that are alike (1) or not (-1).
void importHingeEmbedding(AtenContext &c) {
  auto [x, y] = pairOf(c);
  Val zero = c.like(x, 0), far = c.e.max(c.e.sub(c.like(x, c.number("margin")), x), zero);
  Val alike = c.e.select(c.e.compare(Compare::eq, y, c.like(x, -1)), zero, x);
  Val other = c.e.select(c.e.compare(Compare::eq, y, c.like(x, 1)), zero, far);
  c.result(reduceLoss(c, c.e.add(alike, other)));
}
void importMarginRanking(AtenContext &c) {
  auto [a, b] = floatPair(c, "input1", "input2");
  Val wrong = c.e.mul(c.cast(c.tensor("target"), a.dtype()), c.e.sub(b, a));
  c.result(reduceLoss(c, c.e.max(c.e.add(wrong, c.number("margin")), c.like(a, 0))));
}
void importCosineEmbedding(AtenContext &c) {
  auto [a, b] = floatPair(c, "input1", "input2");
  Val y = c.cast(c.tensor("target"), a.dtype());
  int64_t last = a.rank() - 1;
  auto length = [&](const Val &v) { return c.e.add(sumOver(c.e, square(c.e, v), {last}, false), 1e-12); };
  Val product = sumOver(c.e, c.e.mul(a, b), {last}, false);
  Val cosine = c.e.div(product, sqrtOf(c.e, c.e.mul(length(a), length(b)))), zero = c.like(a, 0);
  Val alike = c.e.sub(c.like(a, 1), cosine), other = c.e.max(c.e.add(cosine, -c.number("margin")), zero);
  Val loss = c.e.add(c.e.select(c.e.compare(Compare::eq, y, c.like(a, 1)), alike, zero),
                     c.e.select(c.e.compare(Compare::eq, y, c.like(a, -1)), other, zero));
  c.result(reduceLoss(c, loss));
}

} // namespace

std::vector<AtenRow> lossOps() {
#define NLL "Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index"
#define NLL_DEFAULTS "Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100"
  return {
      {"nll_loss_forward(" NLL ") -> (Tensor output, Tensor total_weight)", importNll},
      {"nll_loss2d_forward(" NLL ") -> (Tensor output, Tensor total_weight)", importNll},
      {"nll_loss(" NLL_DEFAULTS ") -> Tensor", importNll},
      {"hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor",
       importHingeEmbedding},
      {"margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor",
       importMarginRanking},
      {"cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor",
       importCosineEmbedding},
      {"nll_loss2d(" NLL_DEFAULTS ") -> Tensor", importNll},
      {"nll_loss_nd(" NLL_DEFAULTS ") -> Tensor", importNll},
      {"nll_loss_backward(Tensor grad_output, " NLL ", Tensor total_weight) -> Tensor", importNllBackward},
      {"nll_loss2d_backward(Tensor grad_output, " NLL ", Tensor total_weight) -> Tensor", importNllBackward},
      {"cross_entropy_loss(" NLL_DEFAULTS ", float label_smoothing=0.0) -> Tensor", importCrossEntropy},
      {"mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", importMse},
      {"mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor", importMseBackward},
      {"l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", importL1},
      {"smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor", importSmoothL1},
      {"huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor", importHuber},
      {"binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor", importBce},
      {"binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int "
       "reduction=1) -> Tensor",
       importBceWithLogits},
      {"kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor", importKlDiv},
  };
#undef NLL
#undef NLL_DEFAULTS
}

} // namespace dmxc::torchfe
