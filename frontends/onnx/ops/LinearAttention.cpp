//===- LinearAttention.cpp - recurrent and modified attention -------------===//
#include "LinearAttention.h"
#include "Window.h"

#include "frontends/common/ops/Attention.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// Tokens that are still unrolled; more of them are a loop.
constexpr int64_t kMaxTokens = 512;

/// Input and states of CausalConvWithState, as [n, channels, positions] inside.
struct ConvLayout {
  NodeContext &c;
  bool last; ///< outside the channels come last, in one axis or more
  Dims dims; ///< of the input

  explicit ConvLayout(NodeContext &c) : c(c), last(c.attrFlag("channels_last", false)), dims(c.operand(0).dims()) {
    c.requireShape(last ? dims.size() >= 3 : dims.size() == 3,
                   "expected an input [n, c, length], or [n, length, ..] with channels_last, not " +
                       c.operand(0).describe());
  }
  Dim channels() const { return last ? product(llvm::ArrayRef<Dim>(dims).drop_front(2)) : dims[1]; }
  Dim length() const { return last ? dims[1] : dims[2]; }
  Val inside(const Val &x) const {
    return last ? c.e.transpose(c.e.reshape(x, {dims[0], x.extent(1), channels()}), {0, 2, 1}) : x;
  }
  Val outside(const Val &x) const {
    return last ? c.e.reshape(c.e.transpose(x, {0, 2, 1}), outsideDims(x.extent(2))) : x;
  }
  Dims outsideDims(Dim positions) const {
    Dims own = dims;
    own[last ? 1 : 2] = positions;
    return own;
  }
};

/// How many of the last states a state operand and result hold, in an axis in front; 0: one, and no such axis.
int64_t windowOf(NodeContext &c) {
  int64_t window = c.attrInt("state_window", 0);
  c.requireAttr(window >= 0 && window <= 8, "state_window must be 0 to 8, not " + std::to_string(window));
  return window;
}

/// The operand with a state of `dims`: the newest of a window. Null where it is left out.
Val pastState(NodeContext &c, int operand, int64_t window, Dims dims) {
  Val past = c.optional(operand);
  if (!past)
    return past;
  if (window)
    dims.insert(dims.begin(), window);
  c.requireShape(mayEqual(past.dims(), dims),
                 "the state " + past.describe() + " does not fit; expected [" + dimsString(dims) + "]");
  past = c.e.expectDims(past, dims);
  return window ? c.e.reshape(c.e.sliceAxis(past, 0, window - 1, 1), Dims(llvm::ArrayRef<Dim>(dims).drop_front()))
                : past;
}

/// The same where the number of taps is known at run time only: all taps of each position side by side.
Val depthwiseOfOpenTaps(Emitter &e, const Val &x, const Val &weights, const Val &bias, int64_t dilation) {
  const Dim channels = x.extent(1), taps = weights.extent(2), length = x.extent(2) - (taps - 1) * dilation;
  Val tap = e.mul(e.iota(DType::I64, {1, taps}, 1), e.intScalar(DType::I64, dilation));
  Val each = e.gather(x, e.add(e.iota(DType::I64, {length, 1}, 0), tap), 2);
  Val factors = e.reshape(e.expectDims(weights, {channels, 1, taps}), {1, channels, 1, taps});
  Val sum = e.reduce(Reduction::sum, e.mul(each, factors), {3}, /*keepDims=*/false);
  return bias ? e.add(sum, e.reshape(bias, {1, channels, 1})) : sum;
}

/// A product a tap, or one convolution where the number of channels is known; x is [n, channels, positions] in f32.
Val depthwise(Emitter &e, const Val &x, const Val &weights, const Val &bias, int64_t dilation) {
  if (!weights.extent(2).isStatic())
    return depthwiseOfOpenTaps(e, x, weights, bias, dilation);
  int64_t taps = weights.dim(2);
  if (x.extent(1).isStatic()) {
    Window window{{taps}, {1}, {dilation}, {0}, {0}, {0}};
    return convolve(e, x, e.expectDims(weights, {x.extent(1), 1, taps}), bias, window, x.dim(1));
  }
  Dim channels = x.extent(1), length = x.extent(2) - (taps - 1) * dilation;
  Val sum = bias ? e.reshape(bias, {1, channels, 1}) : Val();
  for (int64_t tap = 0; tap < taps; ++tap) {
    Val weight = e.reshape(e.sliceAxis(weights, 2, tap, 1), {1, channels, 1});
    Val term = e.mul(e.sliceAxis(x, 2, tap * dilation, length), weight);
    sum = sum ? e.add(sum, term) : term;
  }
  return sum;
}

/// What is left for the next call: the last `held` positions of `whole`, or the last ones at each of some positions.
Val stateAfter(NodeContext &c, const ConvLayout &layout, const Val &whole, Dim held, int64_t window) {
  Emitter &e = c.e;
  Dim length = layout.length();
  if (!window)
    return layout.outside(e.sliceAxis(whole, 2, length, held));
  Val zero = e.scalarLike(whole, 0);
  Val padded = e.pad(whole, zero, {0, 0, window}, {0, 0, 0});
  Dims slot = layout.outsideDims(held);
  slot.insert(slot.begin(), 1);
  std::vector<Val> slots;
  for (int64_t j = 0; j < window; ++j) { // zeros where the call has not so many positions
    Val there = e.compare(Compare::ge, e.size(length), e.intScalar(DType::I64, window - j));
    Val state = e.select(there, e.sliceAxis(padded, 2, length + (j + 1), held), zero);
    slots.push_back(e.reshape(layout.outside(state), slot));
  }
  return e.concat(slots, 0);
}

} // namespace

/// Depthwise, over what the last call left and the input.
void importCausalConv(NodeContext &c) {
  Emitter &e = c.e;
  Val weights = c.operand(1);
  std::string activation = c.attrString("activation", "none");
  c.requireAttr(activation == "none" || activation == "silu" || activation == "swish",
                "activation '" + activation + "' is unknown");
  int64_t dilation = c.attrInt("dilation", 1), window = windowOf(c);
  c.requireAttr(dilation >= 1 && dilation <= kMaxExtent, "dilation must be at least 1");
  ConvLayout layout(c);
  Dim channels = layout.channels();
  c.requireShape(weights.rank() == 3 && mayEqual(weights.extent(0), channels) && mayEqual(weights.extent(1), 1) &&
                     weights.extent(2).valueOr(1) > 0 && weights.extent(2).valueOr(1) <= kMaxExtent,
                 "expected weights [" + channels.str() + ", 1, k], not " + weights.describe());
  Val bias = c.optional(2);
  c.requireShape(!bias || mayEqual(bias.dims(), Dims{channels}), "the bias must have one number a channel");
  const Dim held = (weights.extent(2) - 1) * dilation;
  Val x = layout.inside(c.operand(0)), past = pastState(c, 3, window, layout.outsideDims(held));
  past = past ? layout.inside(past) : e.splat(x.dtype(), {x.extent(0), channels, held}, 0);
  Val whole = e.concat({past, x}, 2);
  c.result(1, stateAfter(c, layout, whole, held, window));
  if (channels.is(0)) // no channel, no group
    return c.result(0, c.operand(0));
  // In f32: product, bias and activation are rounded once.
  auto wide = [&](const Val &value) { return e.cast(value, DType::F32); };
  Val y = depthwise(e, wide(whole), wide(weights), bias ? wide(bias) : Val(), dilation);
  if (activation != "none")
    y = e.mul(y, e.emit<SigmoidOp>({y}));
  c.result(0, layout.outside(e.cast(y, x.dtype())));
}

namespace {

/// What LinearAttention's recurrence reads, in f32, with time as the second axis.
struct Recurrence {
  Val q;           ///< [b, t, kv heads, group, k]
  Val k, v;        ///< [b, t, kv heads, k], [b, t, kv heads, v]
  Val decay, beta; ///< [b, t, kv heads, k or 1, 1], [b, t, kv heads or 1, 1, 1], or null
  Dim b, t, sizeK, sizeV;
  int64_t heads, group;

  Dims matrix() const { return {b, heads, sizeK, sizeV}; }
};

/// What the update rule asks for beside query, key and value.
void readGates(NodeContext &c, Recurrence &r) {
  Emitter &e = c.e;
  std::string rule = c.attrString("update_rule", "gated_delta");
  c.requireAttr(rule == "linear" || rule == "gated" || rule == "delta" || rule == "gated_delta",
                "update_rule '" + rule + "' is unknown");
  bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  c.requireAttr((!gated || c.has(4)) && (!delta || c.has(5)),
                "update_rule '" + rule + "' does not fit the operands given");
  auto gate = [&](int operand, const Dims &split) {
    Val value = e.cast(c.operand(operand), DType::F32);
    return e.reshape(e.expectDims(value, {r.b, r.t, value.extent(2)}), split);
  };
  if (gated) {
    Val decay = c.operand(4);
    c.requireShape(decay.rank() == 3 && mayEqual(decay.extent(0), r.b) && mayEqual(decay.extent(1), r.t) &&
                       (mayEqual(decay.extent(2), r.heads) || mayEqual(decay.extent(2), r.sizeK * r.heads)),
                   "the decay must have one number a head, or one a head and key dimension");
    r.decay = gate(4, {r.b, r.t, r.heads, Dim::floorDiv(decay.extent(2), r.heads), 1});
  }
  if (delta) {
    Val beta = c.operand(5);
    c.requireShape(beta.rank() == 3 && mayEqual(beta.extent(0), r.b) && mayEqual(beta.extent(1), r.t) &&
                       (mayEqual(beta.extent(2), r.heads) || mayEqual(beta.extent(2), 1)),
                   "beta must have one number, or one a head");
    r.beta = gate(5, {r.b, r.t, beta.extent(2), 1, 1});
  }
}

/// `inverse`: there may be more key heads than query heads, which then share those.
Recurrence recurrenceOf(NodeContext &c, bool inverse) {
  Emitter &e = c.e;
  Recurrence r;
  Val q = c.operand(0), k = c.operand(1), v = c.operand(2);
  int64_t queries = c.attrInt("q_num_heads");
  r.heads = c.attrInt("kv_num_heads");
  bool more = inverse && queries > 0 && r.heads > queries && r.heads % queries == 0;
  c.requireAttr(r.heads > 0 && queries > 0 && (queries % r.heads == 0 || more),
                "q_num_heads must be a positive multiple of kv_num_heads");
  r.group = more ? 1 : queries / r.heads;
  c.requireShape(q.rank() == 3 && k.rank() == 3 && v.rank() == 3 && q.extent(2).valueOr(0) % queries == 0 &&
                     v.extent(2).valueOr(0) % r.heads == 0,
                 "expected query, key and value of rank 3 that divide into heads");
  r.b = q.extent(0);
  r.t = q.extent(1);
  r.sizeK = Dim::floorDiv(q.extent(2), queries);
  r.sizeV = Dim::floorDiv(v.extent(2), r.heads);
  Dims keys{r.b, r.t, r.sizeK * r.heads}, values{r.b, r.t, v.extent(2)};
  c.requireShape(mayEqual(k.dims(), keys) && mayEqual(v.dims(), values),
                 "query, key and value differ in batch, length or head size");
  auto wide = [&](const Val &value, const Dims &dims) { return e.reshape(e.cast(value, DType::F32), dims); };
  if (more) {
    Dims shared{r.b, r.t, queries, r.heads / queries, r.sizeK};
    r.q = e.broadcast(wide(q, {r.b, r.t, queries, 1, r.sizeK}), shared);
    r.q = e.reshape(r.q, {r.b, r.t, r.heads, 1, r.sizeK});
  } else {
    r.q = wide(q, {r.b, r.t, r.heads, r.group, r.sizeK});
  }
  r.k = wide(e.expectDims(k, keys), {r.b, r.t, r.heads, r.sizeK});
  r.v = wide(e.expectDims(v, values), {r.b, r.t, r.heads, r.sizeV});
  readGates(c, r);
  return r;
}

/// One token: changes the state, [b, heads, k, v], and gives what is read from it, [b, heads * group * v]. `take` gives
/// the token's part of a value in other dims.
Val stepOf(Emitter &e, const Recurrence &r, const Val &scale, Val &state,
           llvm::function_ref<Val(const Val &, const Dims &)> take) {
  if (r.decay) {
    Val gate = e.emit<ExpOp>({take(r.decay, {r.b, r.heads, r.decay.extent(3), 1})});
    state = e.expectDims(e.mul(state, gate), r.matrix());
  }
  Dims row{r.b, r.heads, 1, r.sizeV};
  Val v = take(r.v, row);
  if (r.beta) { // what the state does not say yet
    Val known = e.matmul(take(r.k, {r.b, r.heads, 1, r.sizeK}), state);
    v = e.expectDims(e.mul(take(r.beta, {r.b, r.beta.extent(2), 1, 1}), e.sub(v, known)), row);
  }
  state = e.add(state, e.mul(take(r.k, {r.b, r.heads, r.sizeK, 1}), v));
  Val o = e.mul(e.matmul(take(r.q, {r.b, r.heads, r.group, r.sizeK}), state), scale);
  return e.reshape(o, {r.b, r.sizeV * (r.heads * r.group)});
}

/// The last states, oldest first, each with an axis of 1 in front; zeros before there are so many.
using States = std::vector<Val>;

/// Outputs [b, t, n] of all tokens; `state` and `last` become what they are behind them.
Val unrolled(Emitter &e, const Recurrence &r, const Val &scale, Val &state, States &last) {
  std::vector<Val> outputs;
  Dims kept = r.matrix();
  kept.insert(kept.begin(), 1);
  for (int64_t t = 0; t < *r.t.known(); ++t) {
    auto take = [&](const Val &value, const Dims &dims) { return e.reshape(e.sliceAxis(value, 1, t, 1), dims); };
    Val o = stepOf(e, r, scale, state, take);
    outputs.push_back(e.reshape(o, {r.b, 1, o.extent(1)}));
    if (!last.empty()) {
      last.push_back(e.reshape(state, kept));
      last.erase(last.begin());
    }
  }
  return outputs.empty() ? e.splat(DType::F32, {r.b, 0, r.sizeV * (r.heads * r.group)}, 0) : e.concat(outputs, 1);
}

/// The same in a loop, for many tokens or as many as a run has.
Val looped(Emitter &e, const Recurrence &r, const Val &scale, Val &state, States &last) {
  Dims kept = r.matrix();
  kept.insert(kept.begin(), 1);
  std::vector<Val> carried{state};
  carried.insert(carried.end(), last.begin(), last.end());
  auto body = [&](const Val &t, const Val &, llvm::ArrayRef<Val> before) -> std::vector<Val> {
    auto take = [&](const Val &value, const Dims &dims) {
      return e.reshape(e.gather(value, e.reshape(t, {1}), 1), dims);
    };
    Val now = before[0], o = stepOf(e, r, scale, now, take);
    std::vector<Val> results{e.scalar(DType::Bool, 1), now};
    results.insert(results.end(), before.size() > 1 ? before.begin() + 2 : before.end(), before.end());
    if (before.size() > 1)
      results.push_back(e.reshape(now, kept));
    results.push_back(o);
    return results;
  };
  std::vector<Val> results = e.loop(e.size(r.t), Val(), carried, body);
  state = results[0];
  last.assign(results.begin() + 1, results.end() - 1);
  return e.expectDims(e.transpose(results.back(), {1, 0, 2}), {r.b, r.t, r.sizeV * (r.heads * r.group)});
}

} // namespace

/// Token by token; the state is a matrix [k, v] a head.
void importLinearAttention(NodeContext &c, bool inverse) {
  Emitter &e = c.e;
  Recurrence r = recurrenceOf(c, inverse);
  int64_t window = windowOf(c);
  Val past = pastState(c, 3, window, r.matrix()), scale = scaleOrDefault(e, c.attrFloat("scale", 0), r.sizeK);
  Val state = past ? e.cast(past, DType::F32) : e.splat(DType::F32, r.matrix(), 0);
  Dims kept = r.matrix();
  kept.insert(kept.begin(), 1);
  States last(window, e.splat(DType::F32, kept, 0));
  bool few = r.t.isStatic() && *r.t.known() <= kMaxTokens;
  Val y = few ? unrolled(e, r, scale, state, last) : looped(e, r, scale, state, last);
  c.result(0, e.cast(y, c.operand(0).dtype()));
  c.result(1, e.cast(window ? e.concat(last, 0) : state, past ? past.dtype() : c.operand(0).dtype()));
}

namespace {

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

void importLinear(NodeContext &c) { importLinearAttention(c, false); }

} // namespace

std::vector<OpRows> linearAttentionOps() {
  using namespace types;
  constexpr TypeSet Half = bitOf(DType::F16) | bitOf(DType::BF16) | bitOf(DType::F32);
  return {
      {"CausalConvWithState", {27}, "TTTT>2", importCausalConv, "activation", {Half}},
      {"LinearAttention",
       {27},
       "TTT.TT>2",
       importLinear,
       "chunk_size,kv_num_heads,q_num_heads,scale,update_rule",
       {Half}},
      {"FlexAttention",
       {1},
       "TTT>1",
       importFlexAttention,
       "prob_mod,scale,score_mod,softmax_precision",
       {Float},
       "",
       "ai.onnx.preview"},
  };
}

} // namespace dmxc::onnxfe
