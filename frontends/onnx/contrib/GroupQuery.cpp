//===- GroupQuery.cpp - GroupQueryAttention of com.microsoft --------------===//
//
// The cache of a batch entry has `seqlens_k` + 1 rows that count after the step; the new ones are the last of them.
// They are scattered to their places: a cache of the past's length is written in place where it is a state. A state of
// an open length has no rows but those that count, so that the new ones are put behind them.
//
// A sliding cache holds the newest rows of a batch entry from row 0 on. The new ones are put behind them in a buffer
// with room for both, where all is as in a cache of the whole sequence; the present is the end of that.
//
//===----------------------------------------------------------------------===//
#include "CacheCodes.h"
#include "Heads.h"

#include "frontends/common/ops/Attention.h"
#include "frontends/common/ops/Norm.h"
#include "frontends/common/ops/Order.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

enum Operand {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kSeqlens,
  kTotal,
  kCosines,
  kSines,
  kPositions,
  kBias,
  kSink,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm,
  kQuerySeqlens
};

class GroupQuery {
public:
  explicit GroupQuery(NodeContext &c) : c(c), e(c.e) {}
  void import();

private:
  void checkAttributes();
  void checkSliding();
  void readHeads();
  void readLengths();
  void readPresent();
  void normalizeHeads();
  void rotate();
  Val rotaryPositions();
  Val present(int pastOperand, const CacheCodes &codes, const Val &added, const Val &places);
  Val visible(const GroupedAttention &attention, Dim columns);
  Val bias(const GroupedAttention &attention);
  void attend(Val k, Val v);
  Val perEntry(int operand, const char *what);
  Val resident(const Val &count);
  Val newest(const Val &buffer);

  NodeContext &c;
  Emitter &e;
  int64_t heads = 0, kvHeads = 0;
  Val q, k, v; ///< [batch, length, heads, size]
  Dim batch, length, size;
  bool hasPast = false, appends = false;
  Dim fresh;          ///< new rows: as many as the query has, or none where all are in the cache
  Dim past, rows;     ///< of the cache before and after the step
  Dim keys;           ///< rows that any query may see
  Val counts;         ///< rows that count after the step, i64 [batch, 1]
  Val before;         ///< and before it
  int64_t window = 0; ///< rows of a sliding cache that are kept, or 0
  Val first;          ///< row of the buffer where the new ones begin, i64 [batch, 1]
};

void GroupQuery::checkAttributes() {
  heads = c.attrInt("num_heads");
  kvHeads = c.attrInt("kv_num_heads");
  c.requireAttr(heads > 0 && kvHeads > 0 && heads % kvHeads == 0,
                "num_heads (" + std::to_string(heads) + ") must be a positive multiple of kv_num_heads (" +
                    std::to_string(kvHeads) + ")");
  int64_t causal = c.attrInt("causal", 1), output = c.attrInt("qk_output", 0);
  c.requireAttr(causal == 0 || causal == 1, "causal must be 0 or 1");
  c.requireAttr(causal == 1 || c.attrInt("local_window_size", -1) == -1, "local_window_size needs causal=1");
  c.requireAttr(c.attrFloat("softcap", 0) >= 0, "softcap must not be negative");
  c.requireAttr(output >= 0 && output <= 2, "qk_output must be 0, 1 or 2");
}

void GroupQuery::checkSliding() {
  if (c.attrInt("sliding_window_cache", 0) == 0)
    return;
  window = c.attrInt("local_window_size", -1);
  c.requireAttr(window > 0, "sliding_window_cache needs local_window_size");
  c.requireShape(hasPast && !fresh.is(0), "sliding_window_cache needs a past and new keys");
  c.requireShape(past.valueOr(INT64_MAX) >= window,
                 "the cache has " + past.str() + " rows, less than the window of " + std::to_string(window));
  if (!past.isStatic())
    c.requireAtRun(e.compare(Compare::ge, e.size(past), e.intScalar(DType::I64, window)));
  if (c.has(kBias) || c.wants(3))
    fail("op-unsupported", "attention_bias and output_qk beside a sliding cache are not supported",
         {"export the model with a cache of the whole sequence"});
}

/// Query, key and value, which may be packed as the heads of one operand.
void GroupQuery::readHeads() {
  c.requireShape(c.has(kKey) == c.has(kValue), "key and value must both be there, or both packed into the query");
  if (c.has(kKey)) {
    q = splitHeads(c, c.operand(kQuery), heads, "the query");
    k = splitHeads(c, c.operand(kKey), kvHeads, "the key");
    v = splitHeads(c, c.operand(kValue), kvHeads, "the value");
  } else {
    Val all = splitHeads(c, c.operand(kQuery), heads + 2 * kvHeads, "the packed query, key and value");
    q = e.sliceAxis(all, 2, 0, heads);
    k = e.sliceAxis(all, 2, heads, kvHeads);
    v = e.sliceAxis(all, 2, heads + kvHeads, kvHeads);
  }
  batch = q.extent(0);
  length = q.extent(1);
  size = q.extent(3);
  hasPast = c.has(kPastKey);
  c.requireShape(!size.is(0), "the heads have no numbers");
  Dim own = k.extent(1);
  bool open = hasPast && !(own == length) && !(own.isStatic() && length.isStatic());
  fresh = open || (hasPast && own.is(0)) ? own : length;
  Dims expected{batch, fresh, kvHeads, size};
  for (auto [what, value] : {std::pair("key", &k), {"value", &v}}) {
    c.requireShape(mayEqual(value->dims(), expected), std::string("the ") + what + " has the dims " +
                                                          dimsString(value->dims()) + " where the query asks for " +
                                                          dimsString(expected) + " (batch, rows, heads, size)");
    *value = e.expectDims(*value, expected);
  }
  if (open) { // as many rows as the query has, or none: nothing is added then, which a run checks
    Val nothing = e.splat(k.dtype(), {batch, own * (length - own), kvHeads, size}, 0);
    k = e.expectDims(e.concat({k, nothing}, 1), expected);
  }
}

/// An i32 operand of one number a batch entry, as i64 [batch, 1].
Val GroupQuery::perEntry(int operand, const char *what) {
  Val value = c.cast64(operand);
  c.requireShape(value.rank() <= 2 && mayEqual(value.elements(), batch), std::string(what) + " " + value.describe() +
                                                                             " must have one number for each of " +
                                                                             batch.str() + " batch entries");
  return e.reshape(value, {batch, 1});
}

void GroupQuery::readLengths() {
  counts = e.add(perEntry(kSeqlens, "seqlens_k"), 1.0);
  if (appends)
    counts = c.required(counts, e.compare(Compare::eq, counts, e.size(rows)),
                        "a state with a length takes no padding, so that seqlens_k must count all rows that are there "
                        "and those of the run");
  Val steps = e.size(length);
  if (c.has(kQuerySeqlens)) {
    c.requireShape(hasPast && !fresh.is(0) && c.attrInt("causal", 1) == 1,
                   "query_seqlens needs a past, new keys and causal=1");
    steps = perEntry(kQuerySeqlens, "query_seqlens");
  }
  Val least = e.intScalar(DType::I64, 0);
  before = hasPast ? e.max(e.sub(counts, steps), least) : e.broadcast(least, {batch, 1});
  first = window ? resident(before) : before;
  if (c.operand(kSeqlens).isConstant())
    for (int64_t last : c.constantInts(kSeqlens, "seqlens_k"))
      c.requireShape(last >= 0 && (window || last < keys.valueOr(INT64_MAX)),
                     "seqlens_k has " + std::to_string(last) + ", which is outside of " + keys.str() + " rows");
}

/// How many of `count` rows a sliding cache holds: where it is full, as many are dropped as it has beyond the window.
Val GroupQuery::resident(const Val &count) {
  Dim dropped = Dim::max(past - window + 1, 1);
  Val over = e.max(e.sub(count, e.size(past)), e.intScalar(DType::I64, 0));
  Val times = e.div(e.add(over, e.size(dropped - 1)), e.size(dropped));
  return e.sub(count, e.mul(times, e.size(dropped)));
}

/// The rows of a buffer that stay in a sliding cache.
Val GroupQuery::newest(const Val &buffer) {
  if (!window)
    return buffer;
  Val gone = e.sub(e.sub(counts, resident(counts)), e.sub(before, first));
  Val places = placesOfRows(e, batch, kvHeads, past, gone, rows - 1);
  return e.emit<GatherNDOp>({buffer, places}, {e.attr("batchDims", int64_t(0))});
}

/// The cache has the past's length, or the new rows behind it.
void GroupQuery::readPresent() {
  c.requireShape(c.has(kPastKey) == c.has(kPastValue),
                 "past_key and past_value must both be there or both be left out");
  if (!hasPast) {
    rows = keys = length;
    if (c.isConstant(kTotal))
      c.requireShape(mayEqual(c.size(kTotal, "total_sequence_length"), length),
                     "without a past, total_sequence_length must be the query's length " + length.str());
    return;
  }
  c.requireShape(c.operand(kPastKey).rank() == 4, "the past " + c.operand(kPastKey).describe() + " must have rank 4");
  past = c.operand(kPastKey).extent(2);
  checkSliding();
  if (window) {
    rows = keys = past + fresh;
    return;
  }
  appends = !past.isStatic() && fresh == length && !c.has(kQuerySeqlens) && c.isState(kPastKey, 1) &&
            c.isState(kPastValue, 2);
  if (appends) {
    rows = keys = past + fresh;
    return;
  }
  bool fixed = past.isStatic() && c.declaredDim(1, 2) == past.known();
  if (fixed && !c.isConstant(kTotal) && !c.has(kBias) && !c.wants(3)) {
    rows = keys = past;
    return;
  }
  keys = c.size(kTotal, "total_sequence_length");
  if (keys.isStatic() && past.isStatic()) {
    Dim grown = past + fresh;
    c.requireShape(*keys.known() <= *past.known() || mayEqual(keys, grown),
                   "total_sequence_length " + keys.str() + " is neither the past's " + past.str() +
                       " rows and the new ones, nor within the past");
  }
  rows = fixed ? past : Dim::max(keys, past);
  if (keys == past + fresh)
    rows = keys;
}

void GroupQuery::normalizeHeads() {
  c.requireShape(c.has(kQueryNorm) == c.has(kKeyNorm), "q_norm_weight and k_norm_weight must both be there");
  if (!c.has(kQueryNorm))
    return;
  double both = c.attrFloat("qk_norm_epsilon", 1e-6);
  auto normalized = [&](const Val &x, int operand, const char *epsilon) {
    Val weight = c.operand(operand);
    c.requireShape(weight.rank() == 1 && mayEqual(weight.extent(0), size),
                   "the weights of heads' norms must be " + size.str() + " numbers, not " + weight.describe());
    double own = c.attrFloat(epsilon, both);
    c.requireAttr(own > 0, std::string(epsilon) + " must be positive");
    Val y = normalize(e, Normalization::rms, e.cast(x, DType::F32), {3}, own);
    return e.mul(y, e.cast(weight, DType::F32));
  };
  q = normalized(q, kQueryNorm, "q_norm_epsilon");
  k = e.cast(normalized(k, kKeyNorm, "k_norm_epsilon"), k.dtype());
}

/// Of the rows of the queries: as given, but for a first prompt counted from the first one.
Val GroupQuery::rotaryPositions() {
  Val count = e.iota(DType::I64, {1, length}, 1);
  if (!c.has(kPositions)) {
    Val own = e.add(before, count);
    if (!c.has(kQuerySeqlens))
      return own;
    // Rows behind the valid ones may lie beyond the caches.
    return e.min(own, e.sub(e.size(c.operand(kCosines).extent(0)), e.intScalar(DType::I64, 1)));
  }
  Val ids = c.operand(kPositions);
  Dims expected{batch, length};
  c.requireShape(ids.rank() == 2 && mayEqual(ids.dims(), expected),
                 "position_ids " + ids.describe() + " must be [" + dimsString(expected) + "]");
  Val given = e.expectDims(c.cast64(kPositions), expected);
  Val total = c.cast64(kTotal);
  Val prompt = e.compare(Compare::eq, e.reshape(total, {}), e.size(length));
  if (prompt.isConstant() && !prompt.constant().asInt(0))
    return given;
  Val first = e.add(e.slice(given, {0, 0}, {1, 1}, {1, 1}), count);
  return prompt.isConstant() ? first : e.select(prompt, first, given);
}

void GroupQuery::rotate() {
  if (c.attrInt("do_rotary", 0) == 0)
    return;
  c.requireShape(c.has(kCosines) && c.has(kSines), "do_rotary needs cos_cache and sin_cache");
  Dim half = c.operand(kCosines).rank() == 2 ? c.operand(kCosines).extent(1) : Dim(0);
  c.requireShape(half.valueOr(1) > 0 && half.valueOr(1) * 2 <= size.valueOr(INT64_MAX),
                 "cos_cache " + c.operand(kCosines).describe() + " does not fit heads of " + size.str() + " numbers");
  Dim most = window ? Dim(0) : keys;
  c.requireShape(c.operand(kCosines).extent(0).valueOr(INT64_MAX) >= most.valueOr(0) || c.has(kPositions),
                 "cos_cache " + c.operand(kCosines).describe() + " has fewer than " + most.str() + " positions");
  Angles angles = anglesAt(c, kCosines, kSines, rotaryPositions(), half);
  bool neighbours = c.attrInt("rotary_interleaved", 0) != 0;
  DType type = k.dtype();
  q = turned(e, e.cast(q, DType::F32), angles, 2, neighbours);
  if (fresh.is(0))
    return;
  for (Val *value : {&angles.cosine, &angles.sine})
    *value = fresh == length ? *value : e.sliceAxis(*value, 1, 0, fresh);
  k = e.cast(turned(e, e.cast(k, DType::F32), angles, 2, neighbours), type);
}

/// The cache with the new rows [batch, kv heads, fresh, size].
Val GroupQuery::present(int pastOperand, const CacheCodes &codes, const Val &added, const Val &places) {
  if (!hasPast)
    return added;
  Dims expected{batch, kvHeads, past, codes.width()};
  c.requireShape(mayEqual(c.operand(pastOperand).dims(), expected),
                 "the past " + c.operand(pastOperand).describe() + " must be [" + dimsString(expected) + "]");
  Val cache = e.expectDims(c.operand(pastOperand), expected);
  if (appends)
    return e.concat({cache, codes.encoded(added)}, 2);
  if (!(rows == past)) { // rows that do not count are zeros in a new buffer
    Val zero = e.scalarLike(cache, 0);
    cache = e.pad(cache, zero, {0, 0, 0, 0}, {0, 0, rows - past, 0});
    Val row = e.iota(DType::I64, {1, 1, rows, 1}, 2);
    Val old = e.add(e.reshape(first, {batch, 1, 1, 1}), e.size(length - fresh));
    cache = e.select(e.compare(Compare::lt, row, old), cache, zero);
  }
  return places ? scatterND(e, cache, places, codes.encoded(added), ScatterMode::replace) : cache;
}

/// Which of the first `keys` columns a row may see; a column behind them is the sink, which all do.
Val GroupQuery::visible(const GroupedAttention &attention, Dim columns) {
  Val column = e.iota(DType::I64, {1, 1, 1, columns}, 3), seen;
  if (c.attrInt("causal", 1) == 0) {
    seen = e.compare(Compare::lt, column, e.reshape(counts, {batch, 1, 1, 1}));
  } else {
    Val place = e.add(e.reshape(first, {batch, 1, 1, 1}), e.iota(DType::I64, {1, 1, length, 1}, 2));
    seen = e.compare(Compare::le, column, attention.rows(place));
    if (int64_t near = c.attrInt("local_window_size", -1); near > 0) {
      // Rows of padding, which may lie behind all keys, see something too: what they give must not be NaN.
      Val own = attention.rows(e.min(place, e.sub(e.size(keys), e.intScalar(DType::I64, 1))));
      Val last = e.sub(own, e.intScalar(DType::I64, near));
      seen = e.emit<AndOp>({seen, e.compare(Compare::gt, column, last)});
    }
  }
  return seen;
}

/// What is added to the scores, by rows; null where nothing is.
Val GroupQuery::bias(const GroupedAttention &attention) {
  Val bias = c.optional(kBias);
  if (!bias)
    return bias;
  c.requireShape(bias.rank() == 4 && (bias.extent(0).is(1) || mayEqual(bias.extent(0), batch)) &&
                     (bias.extent(1).is(1) || mayEqual(bias.extent(1), heads)) && mayEqual(bias.extent(2), length) &&
                     mayEqual(bias.extent(3), keys),
                 "attention_bias " + bias.describe() + " must be [" + batch.str() + " or 1, " + std::to_string(heads) +
                     " or 1, " + length.str() + ", " + keys.str() + "]");
  Dims expected{bias.extent(0), bias.extent(1).is(1) ? 1 : heads, length, keys};
  return attention.rows(e.cast(e.expectDims(bias, expected), DType::F32));
}

void GroupQuery::attend(Val k, Val v) {
  Val sink = c.optional(kSink);
  if (sink)
    c.requireShape(sink.rank() == 1 && mayEqual(sink.extent(0), heads), "head_sink " + sink.describe() +
                                                                            " must have one number for each of " +
                                                                            std::to_string(heads) + " heads");
  else if (c.attrInt("smooth_softmax", -1) == 1)
    sink = e.splat(DType::F32, {heads}, 0);
  Val zero = e.scalar(DType::F32, 0);
  if (sink) { // one key more, whose score is the sink and whose value is 0
    k = e.pad(e.cast(k, DType::F32), zero, {0, 0, 0, 0}, {0, 0, 1, 0});
    v = e.pad(e.cast(v, DType::F32), zero, {0, 0, 0, 0}, {0, 0, 1, 0});
  }
  GroupedAttention attention(e, headsFirst(e, q), k, v);
  Dim columns = sink ? keys + 1 : keys;
  Val scores = attention.scores(scaleOrDefault(e, c.attrFloat("scale", 0), size), c.attrFloat("softcap", 0)),
      added = bias(attention);
  if (added)
    scores = e.add(scores, sink ? e.pad(added, zero, {0, 0, 0, 0}, {0, 0, 0, 1}) : added);
  Val seen = visible(attention, columns), shown = scores;
  scores = e.select(seen, scores, e.scalar(DType::F32, kMasked));
  if (sink) {
    Val last = e.compare(Compare::eq, e.iota(DType::I64, {1, 1, 1, columns}, 3), e.size(keys));
    Val own = attention.rows(e.broadcast(e.reshape(e.cast(sink, DType::F32), {1, heads, 1, 1}), {1, heads, length, 1}));
    scores = e.select(last, own, scores);
  }
  Val weights = e.softmax(scores, 3);
  DType type = c.operand(kQuery).dtype();
  c.result(0, e.cast(joinHeads(e, attention.weighted(weights)), type));
  if (int64_t output = c.attrInt("qk_output", 0); output != 0 && c.wants(3)) {
    shown = output == 1 ? e.select(seen, shown, zero) : weights;
    c.result(3, e.cast(attention.queries(sink ? e.sliceAxis(shown, 3, 0, keys) : shown), type));
  }
}

void GroupQuery::import() {
  checkAttributes();
  readHeads();
  readPresent();
  readLengths();
  normalizeHeads();
  rotate();
  Val places = hasPast && !appends && !fresh.is(0) ? placesOfRows(e, batch, kvHeads, fresh, first) : Val();
  CacheCodes keyCodes(c, "k_quant_type", kPastKey, kKeyScale, kvHeads, size);
  CacheCodes valueCodes(c, "v_quant_type", kPastValue, kValueScale, kvHeads, size);
  k = present(kPastKey, keyCodes, headsFirst(e, k), places);
  v = present(kPastValue, valueCodes, headsFirst(e, v), places);
  c.result(1, newest(k));
  c.result(2, newest(v));
  auto seen = [&](const Val &cache) { return keys == rows ? cache : e.sliceAxis(cache, 2, 0, keys); };
  attend(keyCodes.decoded(seen(k)), valueCodes.decoded(seen(v)));
}

void importGroupQuery(NodeContext &c) { GroupQuery(c).import(); }

} // namespace

std::vector<OpRows> contribGroupQueryOps() {
  using namespace types;
  constexpr TypeSet F = kContribFloat;
  return {{"GroupQueryAttention",
           {1},
           "TTTUUVVTT.TTWWTTV>4",
           importGroupQuery,
           "causal,do_rotary,k_norm_epsilon,k_quant_type,kv_cache_bit_width,kv_num_heads,local_window_size,num_heads,"
           "q_norm_epsilon,qk_norm_epsilon,qk_output,rotary_interleaved,scale,sliding_window_cache,smooth_softmax,"
           "softcap,v_quant_type",
           {F, F, F, Any, Any, Index, Index, F, F, Index, F, F, F, F, F, F, Index},
           "caches of floats, i8 or packed 4 bits",
           kMicrosoft}};
}

} // namespace dmxc::onnxfe
