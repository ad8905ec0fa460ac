//===- Moe.cpp - mixtures of experts --------------------------------------===//
//
// Which experts a token takes is known at run time only: each token stands once for each of its experts, sorted by
// them, so that an expert's tokens follow one another and are one part of a grouped product.
//
//===----------------------------------------------------------------------===//
#include "Moe.h"

#include "../ops/Elementwise.h"

#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/Counting.h"
#include "frontends/common/ops/Formulas.h"
#include "frontends/common/ops/Order.h"
#include "frontends/common/ops/Product.h"

#include <limits>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {

ExpertActivation expertActivationOf(NodeContext &c) {
  ExpertActivation a;
  a.name = c.attrString("activation_type", "relu");
  a.alpha = c.attrFloat("activation_alpha", 1);
  a.beta = c.attrFloat("activation_beta", 0);
  if (c.hasAttr("swiglu_limit"))
    a.limit = c.attrFloat("swiglu_limit", 0);
  a.limitAfter = c.attrInt("swiglu_limit_after_activation", 0) != 0;
  a.fusion = c.attrInt("swiglu_fusion", 0);
  c.requireAttr(a.fusion >= 0 && a.fusion <= 2, "swiglu_fusion is 0, 1 or 2, not " + std::to_string(a.fusion));
  c.requireAttr(a.name != "geglu" || a.fusion != 0, "geglu needs gate and up in fc1 (swiglu_fusion 1 or 2)");
  return a;
}

namespace {

/// Twice the jitter that the router was trained with: ONNX Runtime's kernel has this constant.
constexpr double kMixerMargin = 2 * 0.01F;

/// The best expert, and the best of the others: each counts its share of those that come near to it.
Route sparselyMixed(Emitter &e, const Val &logits) {
  std::vector<Val> experts, weights;
  Val taken, column = e.iota(DType::I64, {1, logits.extent(1)}, 1);
  for (int i = 0; i < 2; ++i) {
    Val open = taken ? e.select(taken, e.scalarLike(logits, -std::numeric_limits<double>::infinity()), logits) : logits;
    Val best = e.reduce(Reduction::max, open, {1}, true), gap = e.sub(best, logits);
    Val near = e.compare(Compare::le, gap, e.mul(e.max(absOf(e, logits), best), kMixerMargin));
    if (taken)
      near = both(e, near, notOf(e, taken));
    Val sum = sumOver(e, whereOrZero(e, near, expOf(e, negOf(e, gap))), {1}, true);
    experts.push_back(argExtremum(e, Extremum::max, open, 1, /*keep=*/true));
    weights.push_back(e.div(e.scalarLike(sum, 1), sum));
    taken = e.compare(Compare::eq, experts.back(), column);
  }
  return {e.concat(experts, 1), e.concat(weights, 1)};
}

} // namespace

Route routeOf(NodeContext &c, const Val &given) {
  Emitter &e = c.e;
  Val logits = e.cast(c.operand(1), DType::F32);
  c.requireShape(logits.rank() == 2, "router_probs must be [tokens, experts], not " + logits.describe());
  const Dim experts = logits.extent(1);
  const int64_t k = c.attrInt("k", 1);
  c.requireAttr(k > 0 && k <= experts.valueOr(k),
                "k = " + std::to_string(k) + " experts cannot be chosen from " + experts.str());
  if (c.attrInt("use_sparse_mixer", 0)) {
    c.requireAttr(k == 2 && !given, "the sparse mixer chooses k = 2 experts by router_probs alone");
    return sparselyMixed(e, logits);
  }
  // Of equal ones the last is taken first.
  auto backwards = [&](const Val &x) { return e.slice(x, {Dim(0), experts - 1}, x.dims(), {1, -1}); };
  Val scores = backwards(given ? logits : e.softmax(logits, 1));
  std::vector<Val> chosen = sorted(e, scores, 1, k, true);
  Val weights = chosen[0];
  if (given)
    weights = e.emit<GatherElementsOp>({backwards(given), chosen[1]}, {e.attr("axis", int64_t(1))});
  if (c.attrInt("normalize_routing_weights", 0)) {
    Val sum = sumOver(e, weights, {1}, true), none = e.compare(Compare::eq, sum, e.scalarLike(sum, 0));
    weights = e.select(none, e.scalarLike(weights, 0), e.div(weights, sum));
  }
  return {e.sub(e.size(experts - 1), chosen[1]), weights};
}

void requireLayer(NodeContext &c, const ExpertLayer &layer, const Dims &dims, const char *what) {
  c.requireShape(mayEqual(layer.weights.dims(), dims),
                 std::string("the weights of ") + what + " hold " + dimsString(layer.weights.dims()) +
                     " numbers where " + dimsString(dims) + " (experts, results, operands) are " + "expected");
  if (layer.bias)
    c.requireShape(layer.bias.rank() == 2 && mayEqual(layer.bias.dims(), llvm::ArrayRef<Dim>(dims).take_front(2)),
                   std::string("the bias of ") + what + " " + layer.bias.describe() +
                       " must have one number for each expert and result");
}

namespace {

/// Rows sorted by the expert that takes them: i64 [rows], and where each expert's rows end, [experts].
struct Sorted {
  Val expert, ends;
};

/// x [rows, k] through the layer of each row's expert.
Val through(Emitter &e, const ExpertLayer &layer, const Sorted &by, const Val &x) {
  Val y = groupedProduct(e, x, e.transposeLast(layer.weights), by.ends);
  return layer.bias ? e.add(y, e.gather(e.cast(layer.bias, DType::F32), by.expert, 0)) : y;
}

Val atMost(Emitter &e, const Val &x, const std::optional<double> &limit) {
  return limit ? e.min(x, e.scalarLike(x, *limit)) : x;
}
Val within(Emitter &e, const Val &x, const std::optional<double> &limit) {
  return limit ? e.max(atMost(e, x, limit), e.scalarLike(x, -*limit)) : x;
}

Val swiglu(Emitter &e, const ExpertActivation &a, Val gate, const Val &up) {
  if (!a.limitAfter)
    gate = atMost(e, gate, a.limit);
  Val open = e.mul(gate, sigmoid(e, a.alpha == 1 ? gate : e.mul(gate, a.alpha)));
  Val line = within(e, up, a.limit);
  return e.mul(a.limitAfter ? atMost(e, open, a.limit) : open, a.beta == 0 ? line : e.add(line, a.beta));
}

Val gated(Emitter &e, const ExpertActivation &a, const Val &gate, const Val &up) {
  return a.name == "geglu" ? e.mul(geluTanh(e, gate), up) : swiglu(e, a, gate, up);
}

/// One function of a row; `gelu` is its approximation by tanh, as ONNX Runtime's kernels have it.
Val plain(Emitter &e, const std::string &name, const Val &x) {
  if (name == "relu")
    return e.emit<ReluOp>({x});
  if (name == "relu2")
    return square(e, e.emit<ReluOp>({x}));
  if (name == "gelu")
    return geluTanh(e, x);
  if (name == "silu")
    return silu(e, x);
  if (name == "identity")
    return x;
  fail("op-attribute",
       "the activation_type '" + name + "' is unknown (relu, relu2, gelu, silu, identity, swiglu and geglu are known)");
}

Val activated(Emitter &e, const Experts &experts, const ExpertActivation &a, const Sorted &by, const Val &x) {
  Val h = through(e, experts.fc1, by, x);
  if (!a.gated()) {
    Val y = plain(e, a.name, h);
    return experts.fc3 ? e.mul(y, through(e, experts.fc3, by, x)) : y;
  }
  if (a.fusion == 0)
    return gated(e, a, h, through(e, experts.fc3, by, x));
  const Dim inner = experts.fc2.weights.extent(2);
  if (a.fusion == 1)
    return gated(e, a, e.sliceAxis(h, 1, 0, inner, 2), e.sliceAxis(h, 1, 1, inner, 2));
  return gated(e, a, e.sliceAxis(h, 1, 0, inner), e.sliceAxis(h, 1, inner, inner));
}

void requireExperts(NodeContext &c, const Experts &experts, const ExpertActivation &a, const Val &x) {
  const Dim count = experts.fc1.weights.extent(0), hidden = x.extent(-1), inner = experts.fc2.weights.extent(2);
  c.requireShape(mayEqual(c.operand(1).extent(1), count), "the router chooses from " + c.operand(1).extent(1).str() +
                                                              " experts, but there are weights of " + count.str());
  requireLayer(c, experts.fc1, {count, inner * a.rows(), hidden}, "fc1");
  requireLayer(c, experts.fc2, {count, hidden, inner}, "fc2");
  const bool needsThird = a.gated() && a.fusion == 0;
  c.requireAttr(experts.fc3 || !needsThird, "swiglu that is not fused (swiglu_fusion 0) needs the weights of fc3");
  c.requireAttr(!experts.fc3 || !a.gated() || needsThird,
                "gate and up are in fc1 (swiglu_fusion " + std::to_string(a.fusion) + "), but fc3 has weights too");
  if (experts.fc3)
    requireLayer(c, experts.fc3, {count, inner, hidden}, "fc3");
}

} // namespace

Val mixedExperts(NodeContext &c, const Experts &experts, const ExpertActivation &activation, const Route &route) {
  Emitter &e = c.e;
  Counting n(e);
  Val x = c.operand(0);
  c.requireShape(x.rank() == 2 || x.rank() == 3,
                 "the input must be [tokens, hidden] or [batch, sequence, hidden], not " + x.describe());
  requireExperts(c, experts, activation, x);
  const Dim tokens = x.rank() == 2 ? x.extent(0) : x.extent(0) * x.extent(1), hidden = x.extent(-1);
  c.requireShape(mayEqual(route.experts.extent(0), tokens),
                 "the router has " + route.experts.extent(0).str() + " rows for " + tokens.str() + " tokens");
  const Dim each = route.experts.extent(1), pairs = tokens * each, count = experts.fc1.weights.extent(0);
  Val chosen = n.flat(e.expectDims(route.experts, {tokens, each}));
  std::vector<Val> order = n.sorted(chosen, 0);
  Val upTo = e.compare(Compare::le, e.reshape(chosen, {1, pairs}), e.iota(DType::I64, {count, 1}, 0));
  Sorted by{order[0], sumOver(e, e.cast(upTo, DType::I64), {1}, false)};
  Val rows = e.gather(e.reshape(e.cast(x, DType::F32), {tokens, hidden}), n.divide(order[1], each), 0);
  Val y = through(e, experts.fc2, by, activated(e, experts, activation, by, rows));
  // Back to the order of the tokens, where each sums what its experts give.
  Val place = n.scatter(e.splat(DType::I64, {pairs}, 0), order[1], n.positions(pairs));
  Val back = e.reshape(e.gather(y, place, 0), {tokens, each, hidden});
  Val shares = unsqueeze(e, e.expectDims(route.weights, {tokens, each}), 2);
  return e.cast(e.reshape(sumOver(e, e.mul(back, shares), {1}, false), x.dims()), x.dtype());
}

namespace {

ExpertLayer layerOf(NodeContext &c, int weights, int bias) {
  if (!c.has(weights)) {
    c.requireShape(!c.has(bias), "operand " + std::to_string(bias) + " is the bias of weights that are missing");
    return {};
  }
  Val w = c.operand(weights);
  c.requireShape(w.rank() == 3, "the weights " + w.describe() + " must be [experts, results, operands]");
  return {c.e.cast(w, DType::F32), c.optional(bias)};
}

void importMoE(NodeContext &c) {
  ExpertActivation activation = expertActivationOf(c);
  c.requireShape(c.has(2) && c.has(4), "the weights of fc1 and fc2 must be there");
  Experts experts{layerOf(c, 2, 3), layerOf(c, 4, 5), layerOf(c, 6, 7)};
  c.result(mixedExperts(c, experts, activation, routeOf(c)));
}

} // namespace

std::vector<OpRows> contribMoeOps() {
  return {{"MoE",
           {1},
           "TTTTTTTT>1",
           importMoE,
           "activation_alpha=float,activation_beta=float,activation_type,k,normalize_routing_weights,swiglu_fusion,"
           "swiglu_limit,"
           "swiglu_limit_after_activation,use_sparse_mixer",
           {kContribFloat},
           "",
           kMicrosoft}};
}

} // namespace dmxc::onnxfe
