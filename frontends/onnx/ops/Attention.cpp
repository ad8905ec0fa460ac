//===- Attention.cpp - attention and rotary embedding ---------------------===//
#include "../Differences.h"
#include "../NodeContext.h"

#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/Attention.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// [batch, sequence, heads * size] as [batch, heads, sequence, size]; rank 4
/// stays.
Val splitHeads(NodeContext &c, const Val &x, const char *attribute) {
  if (x.rank() == 4)
    return x;
  c.requireShape(x.rank() == 3, "expected rank 3 or 4, not " + std::to_string(x.rank()));
  int64_t heads = c.attrInt(attribute);
  c.requireShape(heads > 0 && x.extent(2).valueOr(0) % heads == 0,
                 x.extent(2).str() + " numbers do not divide into " + std::to_string(heads) + " heads");
  Dims split{x.extent(0), x.extent(1), heads, Dim::floorDiv(x.extent(2), heads)};
  return c.e.transpose(c.e.reshape(x, split), {0, 2, 1, 3});
}

/// Each key/value head serves a group of query heads.
Val repeatHeads(NodeContext &c, const Val &x, Dim heads) {
  Dim have = x.extent(1);
  if (have == heads)
    return x;
  bool known = have.isStatic() && heads.isStatic();
  c.requireShape(!known || (!have.is(0) && Dim::mod(heads, have).is(0)),
                 heads.str() + " query heads cannot share " + have.str() + " key heads");
  return frontend::repeatHeads(c.e, x, heads);
}

/// What is added to the scores: the mask, causality and padding; null when
/// there is none.
Val biasOf(NodeContext &c, DType type, Dim queries, Dim keys, Dim past) {
  Emitter &e = c.e;
  Val bias, zero = e.scalar(type, 0), masked = e.scalar(type, kMasked);
  auto join = [&](const Val &more) { bias = bias ? e.add(bias, more) : more; };
  if (Val mask = c.optional(3)) {
    mask = additiveMask(e, mask, type, zero, masked);
    if (Dim have = mask.rank() ? mask.extent(-1) : Dim(1); c.since() >= 24 && !have.is(1) && !(have == keys)) {
      c.requireShape(!have.isStatic() || !keys.isStatic() || *have.known() <= *keys.known(),
                     "the mask has more columns than there are keys");
      Dims low(mask.rank(), 0), high(mask.rank(), 0);
      high.back() = keys - have;
      mask = e.pad(mask, masked, low, high);
    }
    join(mask);
  }
  Val lengths = c.since() >= 24 ? c.optional(6) : Val();
  Val column = e.iota(DType::I64, {1, keys}, 1);
  if (lengths) {
    c.requireShape(lengths.rank() == 1, "expected one number of keys a batch entry");
    lengths = e.reshape(e.cast(lengths, DType::I64), {lengths.extent(0), 1, 1, 1});
  }
  if (c.attrInt("is_causal", 0)) {
    Val row = e.iota(DType::I64, {queries, 1}, 0);
    row = e.add(row, lengths ? e.sub(lengths, e.size(queries)) : e.size(past));
    join(e.select(e.compare(Compare::lt, row, column), masked, zero));
  }
  if (lengths)
    join(e.select(e.compare(Compare::lt, column, lengths), zero, masked));
  return bias;
}

Val rootOfScale(NodeContext &c, Dim size) {
  std::optional<double> scale;
  if (c.hasAttr("scale"))
    scale = c.attrFloat("scale", 1);
  c.requireAttr(!scale || *scale >= 0, "a negative scale");
  return frontend::rootOfScale(c.e, scale, size);
}

void importAttention(NodeContext &c) {
  Emitter &e = c.e;
  Val q = splitHeads(c, c.operand(0), "q_num_heads"), k = splitHeads(c, c.operand(1), "kv_num_heads"),
      v = splitHeads(c, c.operand(2), "kv_num_heads");
  c.requireShape(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, "the operands differ in rank");
  Dim past = 0;
  if (c.has(4) && c.has(5)) {
    past = c.operand(4).rank() == 4 ? c.operand(4).extent(2) : Dim(0);
    k = e.concat({c.operand(4), k}, 2);
    v = e.concat({c.operand(5), v}, 2);
  }
  c.result(1, k);
  c.result(2, v);
  k = repeatHeads(c, k, q.extent(1));
  v = repeatHeads(c, v, q.extent(1));
  double softcap = c.attrFloat("softcap", 0);
  Val root = e.cast(rootOfScale(c, q.extent(3)), q.dtype());
  Val scores = scaledScores(e, q, k, root, e.cast(root, k.dtype()));
  int64_t mode = c.attrInt("qk_matmul_output_mode", 0);
  c.requireAttr(mode >= 0 && mode <= 3, "qk_matmul_output_mode must be 0 to 3");
  if (c.wants(3) && mode == 0 && softcap != 0)
    c.noteDifference("attention-capped-scores");
  Val shown = scores;
  if (softcap != 0)
    scores = e.mul(e.emit<TanhOp>({e.mul(scores, 1 / softcap)}), softcap);
  if (mode == 1)
    shown = scores;
  Val bias = biasOf(c, scores.dtype(), q.extent(2), k.extent(2), past);
  if (bias)
    scores = e.add(scores, bias);
  if (mode == 2)
    shown = scores;
  DType type = scores.dtype(), precision = c.attrType("softmax_precision", type);
  Val weights = e.cast(e.softmax(e.cast(scores, precision), 3), type);
  if (bias) { // a query that may see no key gives 0, not NaN
    Val none = e.compare(Compare::eq, e.reduce(Reduction::max, bias, {bias.rank() - 1}, true), e.scalar(type, kMasked));
    weights = e.select(none, e.scalar(type, 0), weights);
  }
  if (mode == 3)
    shown = weights;
  c.result(3, shown);
  Val y = e.matmul(weights, v);
  if (c.operand(0).rank() == 3) {
    y = e.transpose(y, {0, 2, 1, 3});
    y = e.reshape(y, {y.extent(0), y.extent(1), y.extent(2) * y.extent(3)});
  }
  c.result(0, y);
}

/// Rotates pairs of numbers of each head by angles that depend on the position.
void importRotary(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0), cosine = c.operand(1), sine = c.operand(2);
  Dims original = x.dims();
  bool heads4 = x.rank() == 4;
  if (heads4) {
    x = e.transpose(x, {0, 2, 1, 3});
  } else {
    c.requireShape(x.rank() == 3, "expected rank 3 or 4");
    int64_t heads = c.attrInt("num_heads");
    c.requireShape(heads > 0 && x.extent(2).valueOr(0) % heads == 0, "the last axis does not divide into num_heads");
    x = e.reshape(x, {x.extent(0), x.extent(1), heads, Dim::floorDiv(x.extent(2), heads)});
  }
  Dim size = x.extent(3), rotated = c.attrInt("rotary_embedding_dim", 0);
  rotated = rotated.is(0) ? size : rotated;
  int64_t number = rotated.valueOr(2);
  c.requireAttr(number > 0 && number <= size.valueOr(INT64_MAX) && number % 2 == 0,
                "rotary_embedding_dim does not fit heads of " + size.str());
  Dim half = Dim::floorDiv(rotated, 2);
  if (Val positions = c.optional(3)) {
    cosine = e.gather(cosine, positions, 0);
    sine = e.gather(sine, positions, 0);
  }
  c.requireShape(cosine.rank() == 3 && sine.rank() == 3 && cosine.extent(2).valueOr(INT64_MAX) >= half.valueOr(0) &&
                     sine.extent(2).valueOr(INT64_MAX) >= half.valueOr(0),
                 "the caches do not fit");
  auto angles = [&](const Val &cache) {
    return e.reshape(e.sliceAxis(cache, 2, 0, half), {cache.extent(0), cache.extent(1), 1, half});
  };
  Val co = angles(cosine), si = angles(sine);
  Val turned = rotatePairs(e, x, co, si, c.attrInt("interleaved", 0) != 0);
  c.result(heads4 ? e.transpose(turned, {0, 2, 1, 3}) : e.reshape(turned, original));
}

void importSwiGLU(NodeContext &c) {
  Val a = c.operand(0);
  Val gate = silu(c.e, a);
  c.result(c.e.mul(gate, c.operand(1)));
}

} // namespace

std::vector<OpRows> attentionOps() {
  using namespace types;
  std::vector<TypeSet> set{Float, Float, Float, Float | Bool, Float, Float, Index};
  return {
      {"Attention",
       {23},
       "TTU.TU>4",
       importAttention,
       "is_causal,kv_num_heads,q_num_heads,qk_matmul_output_mode,scale,softcap,"
       "softmax_precision",
       set},
      {"Attention",
       {24},
       "TTU.TU.>4",
       importAttention,
       "is_causal,kv_num_heads,q_num_heads,qk_matmul_output_mode,scale,softcap,"
       "softmax_precision",
       set},
      {"RotaryEmbedding",
       {23},
       "TTT.>1",
       importRotary,
       "interleaved,num_heads,rotary_embedding_dim",
       {Float, Float, Float, Index}},
      {"SwiGLU", {28}, "TT>1", importSwiGLU, "", {Float}},
  };
}

std::vector<Difference> attentionDifferences() {
  return {
      {"attention-capped-scores", "Attention", "the fourth result with softcap and qk_matmul_output_mode 0",
       "behind the cap", "before the cap", "", "before the cap", "the definition says so", "", true},
  };
}

} // namespace dmxc::onnxfe
