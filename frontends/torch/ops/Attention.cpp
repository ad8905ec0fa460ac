//===- Attention.cpp - scaled dot product attention and dropout -----------===//
#include "Math.h"

#include "frontends/common/ops/Attention.h"

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

/// What is added to the scores; null where nothing is.
Val biasOf(AtenContext &c, DType type, Dim queries, Dim keys) {
  Emitter &e = c.e;
  Val zero = e.scalar(type, 0), masked = e.scalar(type, kMasked), bias;
  if (Val mask = c.optional("attn_mask"))
    bias = additiveMask(e, mask, type, zero, masked);
  if (c.flag("is_causal")) {
    c.require(!bias, "a mask and is_causal exclude each other");
    Val row = e.iota(DType::I64, {queries, 1}, 0), column = e.iota(DType::I64, {1, keys}, 1);
    bias = e.select(e.compare(Compare::lt, row, column), masked, zero);
  }
  return bias;
}

/// With `both` also the weights of the values.
template <bool both> void importAttention(AtenContext &c) {
  Emitter &e = c.e;
  Val q = c.tensor("query"), k = c.tensor("key"), v = c.tensor("value");
  c.requireShape(q.rank() >= 2 && k.rank() >= 2 && v.rank() >= 2, "the operands must be matrices");
  c.require(c.number("dropout_p") == 0 && !c.given("dropout_mask"),
            "dropout is for training; export the model in eval mode");
  if (c.given("enable_gqa") && c.flag("enable_gqa")) {
    c.requireShape(q.rank() >= 3 && k.rank() == q.rank() && v.rank() == q.rank() && !k.extent(-3).is(0) &&
                       !v.extent(-3).is(0),
                   "shared key heads need an axis of heads");
    k = repeatHeads(e, k, q.extent(-3));
    v = repeatHeads(e, v, q.extent(-3));
  }
  std::optional<double> scale;
  if (c.given("scale"))
    scale = c.number("scale");
  Val root = c.cast(rootOfScale(e, scale, q.extent(-1)), q.dtype());
  Val scores = scaledScores(e, q, k, root, root);
  Val bias = biasOf(c, scores.dtype(), q.extent(-2), k.extent(-2));
  if (bias)
    scores = e.add(scores, bias);
  Val weights = e.softmax(scores, scores.rank() - 1);
  c.requireShape(!c.given("attn_mask") || bias.rank() >= 1, "the mask must have an axis of keys");
  if (c.given("attn_mask"))
    if (Val blind = rowsWithoutKeys(e, bias))
      weights = e.select(blind, e.scalar(weights.dtype(), 0), weights);
  c.result(0, e.matmul(weights, v));
  if (both)
    c.result(1, weights);
}

/// Nothing in an inference program.
void importDropout(AtenContext &c) {
  Val x = c.tensor(c.given("input") ? "input" : "self");
  bool train = c.given("train") && c.flag("train");
  c.require(!train || c.number("p") == 0, "dropout is random in training; export the model in eval mode");
  c.result(0, x);
  c.result(1, c.e.splat(DType::Bool, x.dims(), 1));
}

} // namespace

std::vector<AtenRow> attentionOps() {
  const char *evalOnly = "without dropout";
  return {
      {"scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
       "dropout_p=0.0, "
       "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
       importAttention<false>, evalOnly},
      {"_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool "
       "is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
       importAttention<false>, "without dropout; the first result alone"},
      {"_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
       "dropout_p=0.0, bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) "
       "-> (Tensor, Tensor)",
       importAttention<true>, evalOnly},
      {"dropout(Tensor input, float p, bool train) -> Tensor", importDropout, "train=False"},
      {"feature_dropout(Tensor input, float p, bool train) -> Tensor", importDropout, "train=False"},
      {"alpha_dropout(Tensor input, float p, bool train) -> Tensor", importDropout, "train=False"},
      {"native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", importDropout, "train=False"},
  };
}

} // namespace dmxc::torchfe
