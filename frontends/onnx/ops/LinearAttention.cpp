//===- LinearAttention.cpp - recurrent and modified attention -------------===//
#include "Window.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// Tokens that are still unrolled.
constexpr int64_t kMaxTokens = 512;

/// Depthwise, over what the last call left and the input.
void importCausalConv(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0), weights = c.operand(1);
  std::string activation = c.attrString("activation", "none");
  c.requireAttr(activation == "none" || activation == "silu" || activation == "swish",
                "activation '" + activation + "' is unknown");
  c.requireShape(x.rank() == 3 && weights.rank() == 3 && weights.dim(0) == x.dim(1) && weights.dim(1) == 1 &&
                     weights.dim(2) > 0,
                 "expected an input [n, c, length] and weights [c, 1, k]");
  int64_t before = weights.dim(2) - 1;
  Dims state{x.extent(0), x.dim(1), before};
  Val past = c.has(3) ? c.operand(3) : e.splat(x.dtype(), state, 0);
  c.requireShape(mayEqual(past.dims(), state), "the state " + past.describe() + " does not fit");
  past = e.expectDims(past, state);
  Val whole = e.concat({past, x}, 2);
  if (x.dim(1) == 0) // no channel, no group
    return c.result(0, x), c.result(1, past);
  c.result(1, e.sliceAxis(whole, 2, whole.extent(2) - before, before));
  // In f32: product, bias and activation are rounded once.
  auto wide = [&](const Val &value) { return e.cast(value, DType::F32); };
  Val bias = c.has(2) ? wide(c.operand(2)) : Val();
  Window window{{before + 1}, {1}, {1}, {0}, {0}, {0}};
  Val y = convolve(e, wide(whole), wide(weights), bias, window, x.dim(1));
  if (activation != "none")
    y = e.mul(y, e.emit<SigmoidOp>({y}));
  c.result(0, e.cast(y, x.dtype()));
}

/// What LinearAttention's recurrence reads, in f32, with time as the second axis.
struct Recurrence {
  Val q;           ///< [b, t, kv heads, group, k]
  Val k, v;        ///< [b, t, kv heads, k], [b, t, kv heads, v]
  Val decay, beta; ///< [b, t, kv heads, k or 1, 1], [b, t, kv heads or 1, 1, 1], or null
  Dim b;
  int64_t t, heads, group, sizeK, sizeV;
};

Recurrence recurrenceOf(NodeContext &c) {
  Emitter &e = c.e;
  Recurrence r;
  Val q = c.operand(0), k = c.operand(1), v = c.operand(2);
  int64_t queries = c.attrInt("q_num_heads");
  r.heads = c.attrInt("kv_num_heads");
  c.requireAttr(r.heads > 0 && queries > 0 && queries % r.heads == 0,
                "q_num_heads must be a positive multiple of kv_num_heads");
  r.group = queries / r.heads;
  c.requireShape(q.rank() == 3 && k.rank() == 3 && v.rank() == 3 && q.dim(2) % queries == 0 && v.dim(2) % r.heads == 0,
                 "expected query, key and value of rank 3 that divide into heads");
  r.b = q.extent(0);
  r.t = q.dim(1);
  r.sizeK = q.dim(2) / queries;
  r.sizeV = v.dim(2) / r.heads;
  c.requireShape(k.dim(2) == r.heads * r.sizeK && mayEqual(k.extent(0), r.b) && k.dim(1) == r.t &&
                     mayEqual(v.extent(0), r.b) && v.dim(1) == r.t,
                 "query, key and value differ in batch, length or head size");
  auto wide = [&](const Val &value, const Dims &dims) { return e.reshape(e.cast(value, DType::F32), dims); };
  r.q = wide(q, {r.b, r.t, r.heads, r.group, r.sizeK});
  r.k = wide(k, {r.b, r.t, r.heads, r.sizeK});
  r.v = wide(v, {r.b, r.t, r.heads, r.sizeV});
  std::string rule = c.attrString("update_rule", "gated_delta");
  c.requireAttr(rule == "linear" || rule == "gated" || rule == "delta" || rule == "gated_delta",
                "update_rule '" + rule + "' is unknown");
  bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  c.requireAttr(gated == c.has(4) && delta == c.has(5), "update_rule '" + rule + "' does not fit the operands given");
  if (gated) {
    Val decay = c.operand(4);
    c.requireShape(decay.rank() == 3 && (decay.dim(2) == r.heads || decay.dim(2) == r.heads * r.sizeK),
                   "the decay must have one number a head, or one a head and key dimension");
    r.decay = wide(decay, {r.b, r.t, r.heads, decay.dim(2) / r.heads, 1});
  }
  if (delta) {
    Val beta = c.operand(5);
    c.requireShape(beta.rank() == 3 && (beta.dim(2) == r.heads || beta.dim(2) == 1),
                   "beta must have one number, or one a head");
    r.beta = wide(beta, {r.b, r.t, beta.dim(2), 1, 1});
  }
  return r;
}

/// Token by token; the state is a matrix [k, v] a head.
void importLinearAttention(NodeContext &c) {
  Emitter &e = c.e;
  Recurrence r = recurrenceOf(c);
  if (r.t > kMaxTokens)
    fail("op-unsupported",
         std::to_string(r.t) + " tokens are more than the " + std::to_string(kMaxTokens) + " that are unrolled");
  double scale = c.attrFloat("scale", 0);
  scale = scale == 0 ? 1 / std::sqrt(static_cast<double>(r.sizeK)) : scale;
  Dims matrix{r.b, r.heads, r.sizeK, r.sizeV};
  Val past = c.optional(3);
  c.requireShape(!past || mayEqual(past.dims(), matrix), "the past state does not fit");
  Val state = past ? e.expectDims(e.cast(past, DType::F32), matrix) : e.splat(DType::F32, matrix, 0);
  auto token = [&](const Val &value, int64_t t, const Dims &dims) {
    return e.reshape(e.sliceAxis(value, 1, t, 1), dims);
  };
  std::vector<Val> outputs;
  for (int64_t t = 0; t < r.t; ++t) {
    if (r.decay)
      state = e.mul(state, e.emit<ExpOp>({token(r.decay, t, {r.b, r.heads, r.decay.dim(3), 1})}));
    Val v = token(r.v, t, {r.b, r.heads, 1, r.sizeV});
    if (r.beta) { // what the state does not say yet
      Val known = e.matmul(token(r.k, t, {r.b, r.heads, 1, r.sizeK}), state);
      v = e.mul(token(r.beta, t, {r.b, r.beta.dim(2), 1, 1}), e.sub(v, known));
    }
    state = e.add(state, e.mul(token(r.k, t, {r.b, r.heads, r.sizeK, 1}), v));
    Val o = e.mul(e.matmul(token(r.q, t, {r.b, r.heads, r.group, r.sizeK}), state), scale);
    outputs.push_back(e.reshape(o, {r.b, 1, r.heads * r.group * r.sizeV}));
  }
  Val y = outputs.empty() ? e.splat(DType::F32, {r.b, 0, r.heads * r.group * r.sizeV}, 0) : e.concat(outputs, 1);
  c.result(0, e.cast(y, c.operand(0).dtype()));
  c.result(1, e.cast(state, past ? past.dtype() : c.operand(0).dtype()));
}

/// Scores or weights as the model's graph changes them.
Val modified(NodeContext &c, const char *graph, const Val &value) {
  if (!c.hasAttr(graph))
    return value;
  std::vector<Val> results = c.inlineGraph(c.attrGraph(graph), {value}, std::string("/") + graph);
  c.requireAttr(results.size() == 1 && c.attrGraph(graph).input_size() == 1,
                std::string("'") + graph + "' must have one input and one output");
  if (results[0].isPoison())
    fail("op-unsupported", std::string("'") + graph + "' could not be imported");
  c.requireShape(results[0].isTensor() && results[0].dims() == value.dims() && results[0].dtype() == value.dtype(),
                 std::string("'") + graph + "' must give what it gets: " + value.describe());
  return results[0];
}

void importFlexAttention(NodeContext &c) {
  Emitter &e = c.e;
  Val q = c.operand(0), k = c.operand(1), v = c.operand(2);
  c.requireShape(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, "expected rank 4");
  int64_t heads = q.dim(1), kvHeads = k.dim(1), size = q.dim(3);
  Dim b = q.extent(0), keys = k.extent(2);
  c.requireShape(mayEqual(k.extent(0), b) && mayEqual(v.extent(0), b) && v.dim(1) == kvHeads &&
                     mayEqual(v.extent(2), keys) && k.dim(3) == size && (kvHeads ? heads % kvHeads : heads) == 0,
                 "query, key and value do not fit each other");
  int64_t group = kvHeads ? heads / kvHeads : 1;
  double scale = c.attrFloat("scale", 1 / std::sqrt(static_cast<double>(size)));
  c.requireAttr(scale >= 0, "a negative scale");
  DType wide = c.attrType("softmax_precision", q.dtype() == DType::F64 ? DType::F64 : DType::F32);
  c.requireAttr(isFloat(wide), "softmax_precision must be a float type");
  // The query heads of a group share their keys: they stand as further rows of queries.
  Dims grouped{b, kvHeads, q.extent(2) * group, size}, scored{b, heads, q.extent(2), keys};
  Val root = e.scalarLike(q, std::sqrt(scale));
  Val scores = e.matmul(e.reshape(e.mul(q, root), grouped), e.transposeLast(e.mul(k, root)));
  scores = modified(c, "score_mod", e.cast(e.reshape(scores, scored), wide));
  Val weights = modified(c, "prob_mod", e.softmax(scores, 3));
  Val y = e.matmul(e.reshape(weights, {b, kvHeads, q.extent(2) * group, keys}), e.cast(v, wide));
  c.result(e.cast(e.reshape(y, {b, heads, q.extent(2), v.extent(3)}), q.dtype()));
}

} // namespace

std::vector<OpRows> linearAttentionOps() {
  using namespace types;
  constexpr TypeSet Half = bitOf(DType::F16) | bitOf(DType::BF16) | bitOf(DType::F32);
  return {
      {"CausalConvWithState", {27}, importCausalConv, "activation", {Half}},
      {"LinearAttention",
       {27},
       importLinearAttention,
       "chunk_size,kv_num_heads,q_num_heads,scale,update_rule",
       {Half},
       "unrolled: up to 512 tokens"},
      {"FlexAttention",
       {1},
       importFlexAttention,
       "prob_mod,scale,score_mod,softmax_precision",
       {Float},
       "",
       "ai.onnx.preview"},
  };
}

} // namespace dmxc::onnxfe
