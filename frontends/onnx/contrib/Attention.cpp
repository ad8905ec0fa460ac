//===- Attention.cpp - attention of com.microsoft -------------------------===//
#include "../ops/LinearAlgebra.h"
#include "Heads.h"

#include "frontends/common/ops/Attention.h"
#include "frontends/common/ops/Order.h"
#include "frontends/common/ops/Product.h"

#include <limits>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// What is common to the operators once there are heads.
struct Heads {
  Val q, k, v;    ///< [batch, heads, rows, size]; k and v of all rows that a query may see
  Dim past;       ///< how many of these are older than the queries
  int mask, bias; ///< operands

  Dim batch() const { return q.extent(0); }
  Dim queries() const { return q.extent(2); }
  Dim keys() const { return k.extent(2); }
};

Val zeroOrFilter(NodeContext &c, const Val &kept) {
  Emitter &e = c.e;
  return e.select(kept, e.scalar(DType::F32, 0), e.scalar(DType::F32, c.attrFloat("mask_filter_value", -10000)));
}

/// A vector says where the keys of a batch entry end, and then maybe where they start; or it has their numbers and the
/// sums of those of the entries before.
Val vectorMask(NodeContext &c, const Heads &h) {
  Emitter &e = c.e;
  Val mask = c.cast64(h.mask);
  Dim count = mask.extent(0), batch = h.batch();
  c.requireShape(mayEqual(count, batch) || mayEqual(count, batch * 2) || mayEqual(count, batch * 3 + 2),
                 "the mask " + mask.describe() + " has one, two or three numbers for each of " + batch.str() +
                     " batch entries (and two more where it has three)");
  auto column = [&](const Val &values) { return e.reshape(values, {batch, 1, 1, 1}); };
  Val key = e.iota(DType::I64, {1, 1, 1, h.keys()}, 3);
  Val kept = e.compare(Compare::lt, key, column(e.sliceAxis(mask, 0, 0, batch)));
  Val both = e.compare(Compare::eq, e.size(count), e.size(batch * 2));
  if (both.isConstant() && !both.constant().asInt(0))
    return zeroOrFilter(c, kept);
  Val at = e.min(e.iota(DType::I64, {batch}, 0), e.size(count - 1 - batch));
  Val start = e.gather(mask, e.max(e.add(at, e.size(batch)), e.intScalar(DType::I64, 0)), 0);
  start = e.select(both, start, e.intScalar(DType::I64, 0));
  return zeroOrFilter(c, e.emit<AndOp>({kept, e.compare(Compare::ge, key, column(start))}));
}

/// A mask [batch, keys] that may be of the new keys alone: older ones are seen.
Val ofAllKeys(NodeContext &c, const Heads &h, const Val &mask) {
  Emitter &e = c.e;
  const Dim own = mask.extent(1), fresh = h.keys() - h.past;
  if (own.isStatic() && h.keys().isStatic() && !(own == fresh))
    return mask;       // fits nothing
  if (!(own == fresh)) // which of them it is is known at run time only
    c.requireAtRun(e.emit<OrOp>(
        {e.compare(Compare::eq, e.size(own), e.size(fresh)), e.compare(Compare::eq, e.size(own), e.size(h.keys()))}));
  return e.pad(mask, e.scalarLike(mask, 1), {0, own == fresh ? h.past : h.keys() - own}, {0, 0});
}

/// What the mask adds to the scores, f32 [batch, 1, queries or 1, keys]; null where that is nothing.
Val maskOf(NodeContext &c, const Heads &h) {
  Emitter &e = c.e;
  Val mask = c.optional(h.mask);
  if (!mask)
    return mask;
  if (mask.rank() == 1)
    return vectorMask(c, h);
  if (mask.rank() == 2 && mask.extent(1).is(1) && !h.keys().is(1))
    return Val(); // the same for all keys
  if (mask.rank() == 2 && !h.past.is(0) && !(mask.extent(1) == h.keys()))
    mask = ofAllKeys(c, h, mask);
  Dims expected = mask.rank() == 2   ? Dims{h.batch(), h.keys()}
                  : mask.rank() == 3 ? Dims{h.batch(), h.queries(), h.keys()}
                                     : Dims{h.batch(), 1, mask.extent(-1), mask.extent(-1)};
  c.requireShape(mayEqual(mask.dims(), expected) && mask.rank() <= 4,
                 "the mask " + mask.describe() + " does not fit " + h.batch().str() + " batch entries of " +
                     h.queries().str() + " queries and " + h.keys().str() + " keys");
  mask = e.expectDims(mask, expected);
  if (mask.rank() == 4) {
    c.requireAttr(c.attrInt("unidirectional", 0) == 0, "a mask of rank 4 goes with unidirectional=0");
    mask = e.slice(mask, {0, 0, h.past, 0}, {h.batch(), 1, h.queries(), h.keys()}, {1, 1, 1, 1});
  } else {
    mask = e.reshape(mask, {h.batch(), 1, mask.rank() == 2 ? Dim(1) : h.queries(), h.keys()});
  }
  return zeroOrFilter(c, e.compare(Compare::gt, mask, e.scalarLike(mask, 0)));
}

Val biasOf(NodeContext &c, const Heads &h) {
  Val bias = c.optional(h.bias);
  if (!bias)
    return bias;
  Dim heads = h.q.extent(1);
  c.requireShape(bias.rank() == 4 && (bias.extent(0).is(1) || mayEqual(bias.extent(0), h.batch())) &&
                     (bias.extent(1).is(1) || mayEqual(bias.extent(1), heads)) &&
                     mayEqual(bias.extent(2), h.queries()) && mayEqual(bias.extent(3), h.keys()),
                 "attention_bias " + bias.describe() + " must be [" + h.batch().str() + " or 1, " + heads.str() +
                     " or 1, " + h.queries().str() + ", " + h.keys().str() + "]");
  return c.e.cast(bias, DType::F32);
}

/// Result 0; result `shown` are the scores as the softmax takes them.
void attend(NodeContext &c, const Heads &h, DType type, int shown = -1) {
  Emitter &e = c.e;
  GroupedAttention attention(e, h.q, h.k, h.v);
  Val scores = attention.scores(scaleOrDefault(e, c.attrFloat("scale", 0), h.q.extent(3)), 0);
  Dims all = scores.dims();
  Val mask = maskOf(c, h), bias = biasOf(c, h);
  if (mask && bias)
    mask = e.add(mask, bias);
  if (Val added = mask ? mask : bias) {
    scores = e.add(scores, added);
    scores = e.expectDims(scores, all);
  }
  if (c.attrInt("unidirectional", 0)) {
    Val own = e.add(e.iota(DType::I64, {h.queries(), 1}, 0), e.size(h.past));
    Val seen = e.compare(Compare::le, e.iota(DType::I64, {1, h.keys()}, 1), own);
    scores = e.select(seen, scores, e.scalar(DType::F32, std::numeric_limits<float>::lowest()));
  }
  if (shown >= 0)
    c.result(shown, e.cast(scores, type));
  c.result(0, e.cast(joinHeads(e, attention.weighted(e.softmax(scores, 3))), type));
}

//===--- MultiHeadAttention -----------------------------------------------===//

enum Operand { kQuery, kKey, kValue, kProjection, kMask, kBias, kPastKey, kPastValue, kPastLength, kIndirection };

/// Query, key and value as [batch, rows, heads, size], before anything is added; key and value of rank 4 come with
/// their heads first.
struct Inputs {
  Val q, k, v;
  bool finished = false; ///< key and value
};

Inputs inputsOf(NodeContext &c) {
  Emitter &e = c.e;
  int64_t heads = c.attrInt("num_heads");
  c.requireAttr(heads > 0, "num_heads must be positive");
  Inputs in;
  auto part = [&](const Val &packed, int64_t index) {
    Val one = e.sliceAxis(packed, 3, index, 1);
    return e.reshape(one, {one.extent(0), one.extent(1), one.extent(2), one.extent(4)});
  };
  auto isPacked = [&](const Val &x, int64_t parts) {
    c.requireShape(mayEqual(x.extent(2), heads) && mayEqual(x.extent(3), parts),
                   "the packed operand " + x.describe() + " must have " + std::to_string(heads) + " heads of " +
                       std::to_string(parts) + " vectors");
    return e.expectDims(x, {x.extent(0), x.extent(1), heads, parts, x.extent(4)});
  };
  Val query = c.operand(kQuery), key = c.optional(kKey), value = c.optional(kValue);
  if (query.rank() == 5) {
    c.requireShape(!key && !value, "a packed query has no key and value beside it");
    query = isPacked(query, 3);
    return {part(query, 0), part(query, 1), part(query, 2)};
  }
  in.q = splitHeads(c, query, heads, "the query");
  c.requireShape(static_cast<bool>(key), "the key is missing, and the query " + query.describe() + " is not packed");
  if (key.rank() == 5) {
    c.requireShape(!value, "a packed key has no value beside it");
    key = isPacked(key, 2);
    return {in.q, part(key, 0), part(key, 1)};
  }
  c.requireShape(static_cast<bool>(value) && key.rank() == value.rank() && (key.rank() == 3 || key.rank() == 4),
                 "key and value must both be there and have rank 3 or 4");
  in.finished = key.rank() == 4;
  in.k = in.finished ? key : splitHeads(c, key, heads, "the key");
  in.v = in.finished ? value : splitHeads(c, value, heads, "the value");
  return in;
}

/// Adds the parts of a projection's bias to x, [batch, rows, heads, size].
void addProjection(NodeContext &c, Inputs &in) {
  if (!c.has(kProjection))
    return;
  Emitter &e = c.e;
  Val bias = c.operand(kProjection);
  Dim offset = 0;
  auto add = [&](Val &x) {
    Dim size = x.extent(2) * x.extent(3);
    x = e.add(x, e.reshape(e.sliceAxis(bias, 0, offset, size), {1, 1, x.extent(2), x.extent(3)}));
    offset += size;
  };
  Dim own = in.q.extent(2) * in.q.extent(3);
  Dim all = own * 2 + in.v.extent(in.finished ? 1 : 2) * in.v.extent(3);
  c.requireShape(bias.rank() == 1 && (mayEqual(bias.extent(0), all) || (in.finished && mayEqual(bias.extent(0), own))),
                 "the bias " + bias.describe() + " must have " + all.str() + " numbers, for query, key and value");
  add(in.q);
  if (in.finished)
    return;
  add(in.k);
  add(in.v);
}

/// The rows of a past with those of `fresh` [batch, heads, rows, size] behind them, or at row `start` of it.
Val withPast(NodeContext &c, const Val &past, const Val &fresh, const std::optional<Dim> &start) {
  Emitter &e = c.e;
  Dims expected = fresh.dims();
  expected[2] = past.rank() == 4 ? past.extent(2) : Dim(0);
  c.requireShape(past.rank() == 4 && mayEqual(past.dims(), expected),
                 "the past " + past.describe() + " does not fit rows of [" + dimsString(fresh.dims()) + "]");
  Val rows = e.expectDims(past, expected);
  if (!start)
    return e.concat({rows, fresh}, 2);
  c.requireShape((*start + fresh.extent(2)).valueOr(0) <= expected[2].valueOr(INT64_MAX),
                 "the past of " + start->str() + " rows and " + fresh.extent(2).str() + " new ones are more than the " +
                     expected[2].str() + " of the buffer");
  Val places = placesOfRows(e, expected[0], expected[1], fresh.extent(2), e.reshape(e.size(*start), {1, 1}));
  return scatterND(e, rows, places, fresh, ScatterMode::replace);
}

void importMultiHead(NodeContext &c) {
  Emitter &e = c.e;
  Inputs in = inputsOf(c);
  addProjection(c, in);
  Heads h{headsFirst(e, in.q),
          in.finished ? in.k : headsFirst(e, in.k),
          in.finished ? in.v : headsFirst(e, in.v),
          0,
          kMask,
          kBias};
  for (auto [what, x] : {std::pair("key", &h.k), {"value", &h.v}}) {
    Dims expected{h.batch(), h.q.extent(1), h.keys(), x == &h.k ? h.q.extent(3) : x->extent(3)};
    c.requireShape(x->rank() == 4 && mayEqual(x->dims(), expected),
                   std::string("the ") + what + " has the dims " + dimsString(x->dims()) + " where " +
                       dimsString(expected) + " (batch, heads, rows, size) are asked for");
    *x = e.expectDims(*x, expected);
  }
  c.requireShape(c.has(kPastKey) == c.has(kPastValue),
                 "past_key and past_value must both be there or both be left out");
  if (c.has(kIndirection))
    fail("op-unsupported", "cache_indirection (a beam search inside the node) is not supported",
         {"export the decoder without it and reorder the cache between runs"});
  if (c.has(kPastKey)) {
    c.requireShape(!in.finished, "a key of rank 4 has no past beside it");
    std::optional<Dim> start;
    if (c.has(kPastLength))
      start = c.size(kPastLength, "past_sequence_length");
    h.past = start.value_or(c.operand(kPastKey).rank() == 4 ? c.operand(kPastKey).extent(2) : Dim(0));
    Dim keys = h.past + h.keys();
    h.k = withPast(c, c.operand(kPastKey), h.k, start);
    h.v = withPast(c, c.operand(kPastValue), h.v, start);
    c.result(1, h.k);
    c.result(2, h.v);
    h.k = e.sliceAxis(h.k, 2, 0, keys);
    h.v = e.sliceAxis(h.v, 2, 0, keys);
  } else {
    c.result(1, h.k);
    c.result(2, h.v);
  }
  attend(c, h, c.operand(kQuery).dtype(), 3);
}

//===--- Attention --------------------------------------------------------===//

/// The operands of Attention and QAttention behind the projection.
struct Projected {
  int mask, past, bias, pastLength;
};

/// Query and key [batch, rows, heads, size] turned by the angles of their positions, the first of which is `first`.
void rotate(NodeContext &c, Val parts[], Dim first) {
  if (c.attrInt("do_rotary", 0) == 0)
    return;
  Dim size = parts[0].extent(3);
  int64_t turning = c.attrInt("rotary_embedding_dim", 0);
  c.requireShape(turning > 0 || size.isStatic(), "do_rotary needs a size of a head that is known at compile time");
  turning = turning > 0 ? turning : *size.known();
  c.requireAttr(turning > 0 && turning % 2 == 0 && turning <= size.valueOr(INT64_MAX),
                std::to_string(turning) + " numbers of a head of " + size.str() + " cannot be rotated");
  for (int i = 0; i < 2; ++i) {
    Angles angles = anglesFrom(c.e, first, parts[i].extent(1), turning / 2);
    DType type = parts[i].dtype();
    parts[i] = c.e.cast(turned(c.e, c.e.cast(parts[i], DType::F32), angles, 2, false), type);
  }
}

/// `all` [batch, rows, hidden sizes of query, key and value].
void attendProjected(NodeContext &c, const Val &all, const Dims &sizes, const Projected &at) {
  Emitter &e = c.e;
  int64_t heads = c.attrInt("num_heads");
  Dim offset = 0;
  DType type = all.dtype();
  Val parts[3];
  for (int i = 0; i < 3; offset += sizes[i++])
    parts[i] = splitHeads(c, e.sliceAxis(all, 2, offset, sizes[i]), heads, "the projection");
  Val past = c.optional(at.past);
  bool shared = c.attrInt("past_present_share_buffer", 0) != 0 && past;
  c.requireShape(!past || (past.rank() == 5 && mayEqual(past.extent(0), 2)),
                 "the past must be a key and a value, [2, batch, heads, rows, size]");
  c.requireShape(!shared || c.has(at.pastLength), "past_present_share_buffer needs past_sequence_length");
  std::optional<Dim> start;
  if (shared)
    start = c.size(at.pastLength, "past_sequence_length");
  Dim before = past ? start.value_or(past.extent(3)) : Dim(0);
  rotate(c, parts, before);
  Heads h{headsFirst(e, parts[0]), headsFirst(e, parts[1]), headsFirst(e, parts[2]), before, at.mask, at.bias};
  Dim keys = h.past + h.keys();
  if (past) {
    auto half = [&](int64_t i) {
      return e.reshape(e.sliceAxis(past, 0, i, 1), {past.extent(1), past.extent(2), past.extent(3), past.extent(4)});
    };
    h.k = withPast(c, half(0), h.k, start);
    h.v = withPast(c, half(1), h.v, start);
  }
  if (c.wants(1)) {
    c.requireShape(sizes[1] == sizes[2], "a present needs keys and values of one size");
    auto one = [&](const Val &x) { return e.reshape(x, {1, x.extent(0), x.extent(1), x.extent(2), x.extent(3)}); };
    c.result(1, e.concat({one(h.k), one(h.v)}, 0));
  }
  h.k = e.sliceAxis(h.k, 2, 0, keys);
  h.v = e.sliceAxis(h.v, 2, 0, keys);
  attend(c, h, type);
}

/// The sizes of query, key and value for weights with `columns` columns.
Dims hiddenSizes(NodeContext &c, Dim columns) {
  int64_t heads = c.attrInt("num_heads");
  c.requireAttr(heads > 0, "num_heads must be positive");
  std::vector<int64_t> given = c.attrInts("qkv_hidden_sizes", {});
  if (given.empty()) {
    c.requireShape(columns.valueOr(0) % 3 == 0,
                   "the " + columns.str() + " columns do not divide into query, key and value");
    return Dims(3, Dim::floorDiv(columns, 3));
  }
  c.requireAttr(given.size() == 3 && given[0] == given[1],
                "qkv_hidden_sizes must be three numbers, of which the first two are equal");
  for (int64_t size : given)
    c.requireAttr(size > 0 && size % heads == 0, "the hidden size " + std::to_string(size) + " does not divide into " +
                                                     std::to_string(heads) + " heads");
  Dim all = given[0] + given[1] + given[2];
  c.requireShape(mayEqual(columns, all),
                 "the weights have " + columns.str() + " columns where qkv_hidden_sizes ask for " + all.str());
  return Dims(given);
}

void requireProjection(NodeContext &c, int bias) {
  Val x = c.operand(0), weights = c.operand(1);
  c.requireShape(x.rank() == 3 && weights.rank() == 2 && mayEqual(x.extent(2), weights.extent(0)),
                 "the input " + x.describe() + " and the weights " + weights.describe() +
                     " must be [batch, rows, n] and [n, columns]");
  c.requireShape(!c.has(bias) ||
                     (c.operand(bias).rank() == 1 && mayEqual(c.operand(bias).extent(0), weights.extent(1))),
                 "the bias must have one number for each of " + weights.extent(1).str() + " columns");
}

void importAttention(NodeContext &c) {
  requireProjection(c, 2);
  Dims sizes = hiddenSizes(c, c.operand(1).extent(1));
  Val all = frontend::numpyMatMul(c.e, c.operand(0), c.operand(1));
  if (c.has(2))
    all = c.e.add(all, c.operand(2));
  attendProjected(c, all, sizes, {3, 4, 5, 6});
}

/// With bytes as operands and weights; their scales are one number, or for weights one a column.
void importQAttention(NodeContext &c) {
  Emitter &e = c.e;
  requireProjection(c, 2);
  Dims sizes = hiddenSizes(c, c.operand(1).extent(1));
  DType type = c.operand(3).dtype();
  auto scale = [&](int operand) {
    Val value = e.cast(c.operand(operand), DType::F32);
    c.requireShape(value.elements().is(1) ||
                       (operand == 4 && value.rank() == 1 && mayEqual(value.extent(0), c.operand(1).extent(1))),
                   "the scale (operand " + std::to_string(operand) + ") is " + value.describe() +
                       "; expected one number, or for weights one a column");
    return value.elements().is(1) ? e.reshape(value, {}) : value;
  };
  Val product = frontend::numpyMatMul(e, withoutZeroPoint(c, 0, 6, true), withoutZeroPoint(c, 1, 7, false));
  Val all = e.mul(e.cast(product, DType::F32), e.mul(scale(3), scale(4)));
  all = e.add(all, e.cast(c.operand(2), DType::F32));
  attendProjected(c, e.cast(all, type), sizes, {5, 8, -1, -1});
}

} // namespace

std::vector<OpRows> contribAttentionOps() {
  using namespace types;
  constexpr TypeSet F = kContribFloat;
  return {
      {"MultiHeadAttention",
       {1},
       "TTTTUTTTUU>4",
       importMultiHead,
       "mask_filter_value,num_heads,scale,unidirectional",
       {F, F, F, F, Index, F, F, F, Index},
       "without cache_indirection",
       kMicrosoft},
      {"Attention",
       {1},
       "TTTUTTU>2",
       importAttention,
       "do_rotary,mask_filter_value,num_heads,past_present_share_buffer,qkv_hidden_sizes,rotary_embedding_dim,scale,"
       "unidirectional",
       {F, F, F, Index, F, F, Index},
       "",
       kMicrosoft},
      {"QAttention",
       {1},
       "TUVVV.TUV>2",
       importQAttention,
       "do_rotary,mask_filter_value,num_heads,past_present_share_buffer,scale,unidirectional",
       {Byte, Byte, F, F, F, Index, Byte, Byte, F},
       "",
       kMicrosoft},
  };
}

} // namespace dmxc::onnxfe
