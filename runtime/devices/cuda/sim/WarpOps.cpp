//===- WarpOps.cpp - what the threads of a warp tell each other ---------------===//

#include "Decoder.h"
#include "Lanes.h"

#include <limits>

namespace dmxrt::cuda {
namespace {

/// Lanes that take part: those of the mask, which is the last source.
uint32_t partnersOf(const Warp &w, const Op &op) {
  return w.active & static_cast<uint32_t>(w.slots[op.source[op.sources - 1]][std::countr_zero(w.active)]);
}

bool putPredicate(Warp &w, const Op &op, uint32_t value) {
  if (op.predicateResult < 0)
    return true;
  uint32_t &to = w.predicates[op.predicateResult];
  to = (to & ~w.active) | (value & w.active);
  w.predicateWritten[op.predicateResult] |= w.active;
  return true;
}

/// The same word for all active lanes.
bool putWord(Warp &w, const Op &op, uint32_t value) {
  if (!op.results)
    return true;
  auto &to = w.slots[op.result[0]];
  forLanes(w.active, [&](uint32_t i) { to[i] = value; });
  return wrote(w, op.result[0]);
}

bool elect(Warp &w, const Op &op) {
  auto leader = static_cast<uint32_t>(std::countr_zero(partnersOf(w, op)));
  return putPredicate(w, op, leader < kLanes ? 1u << leader : 0) && putWord(w, op, leader);
}

enum Direction : uint32_t { Up, Down, Butterfly, Index };

/// shfl.sync: the lane that a lane reads of is told by b, within segments that c tells (PTX ISA, shfl.sync).
bool shuffle(Warp &w, const Op &op) {
  uint32_t partners = partnersOf(w, op), inside = 0;
  uint64_t out[kLanes];
  for (uint32_t left = w.active; left; left &= left - 1) {
    auto lane = static_cast<int32_t>(std::countr_zero(left));
    auto by = static_cast<int32_t>(w.slots[op.source[1]][lane] & 31),
         clamp = static_cast<int32_t>(w.slots[op.source[2]][lane] & 31),
         segment = static_cast<int32_t>(w.slots[op.source[2]][lane] >> 8 & 31);
    int32_t last = (lane & segment) | (clamp & ~segment);
    int32_t from = op.immediate == Up          ? lane - by
                   : op.immediate == Down      ? lane + by
                   : op.immediate == Butterfly ? lane ^ by
                                               : (lane & segment) | (by & ~segment);
    bool isInside = op.immediate == Up ? from >= last : from <= last;
    from = isInside ? from : lane;
    if (!(partners >> from & 1))
      return w.fail(static_cast<uint32_t>(lane), cat("diverged: it reads of lane ", from, ", which takes no part"));
    inside |= uint32_t(isInside) << lane;
    out[lane] = w.slots[op.source[0]][from];
  }
  auto &to = w.slots[op.result[0]];
  forLanes(w.active, [&](uint32_t i) { to[i] = out[i]; });
  return wrote(w, op.result[0]) && putPredicate(w, op, inside);
}

enum Vote : uint32_t { All, Any, Uniform, Ballot };

bool vote(Warp &w, const Op &op) {
  uint32_t partners = partnersOf(w, op), yes = w.predicates[op.predicateSource[0]] & partners;
  switch (op.immediate) {
  case All:
    return putPredicate(w, op, yes == partners ? kAllLanes : 0);
  case Any:
    return putPredicate(w, op, yes ? kAllLanes : 0);
  case Uniform:
    return putPredicate(w, op, yes == partners || !yes ? kAllLanes : 0);
  default:
    return putWord(w, op, yes);
  }
}

/// Which lanes have the same value.
bool match(Warp &w, const Op &op) {
  uint32_t partners = partnersOf(w, op);
  auto &a = w.slots[op.source[0]];
  uint32_t same[kLanes] = {};
  forLanes(w.active, [&](uint32_t i) {
    forLanes(partners, [&](uint32_t other) { same[i] |= uint32_t(a[other] == a[i]) << other; });
  });
  bool wantsAll = op.immediate != 0;
  uint32_t all = 0;
  auto &to = w.slots[op.result[0]];
  forLanes(w.active, [&](uint32_t i) {
    all |= uint32_t(same[i] == partners) << i;
    to[i] = wantsAll && same[i] != partners ? 0 : same[i];
  });
  return wrote(w, op.result[0]) && putPredicate(w, op, all);
}

bool tellActive(Warp &w, const Op &op) { return putWord(w, op, w.active); }

enum Reduction : uint32_t { Sum, Least, Most, AllBits, AnyBits, OddBits };

template <typename T> bool reduce(Warp &w, const Op &op) {
  uint32_t partners = partnersOf(w, op);
  auto &a = w.slots[op.source[0]];
  T out = op.immediate == Least     ? std::numeric_limits<T>::max()
          : op.immediate == Most    ? std::numeric_limits<T>::min()
          : op.immediate == AllBits ? static_cast<T>(-1)
                                    : T(0);
  forLanes(partners, [&](uint32_t i) {
    T x = fromBits<T>(a[i]);
    out = op.immediate == Sum       ? static_cast<T>(static_cast<uint32_t>(out) + static_cast<uint32_t>(x))
          : op.immediate == Least   ? std::min(out, x)
          : op.immediate == Most    ? std::max(out, x)
          : op.immediate == AllBits ? static_cast<T>(out & x)
          : op.immediate == AnyBits ? static_cast<T>(out | x)
                                    : static_cast<T>(out ^ x);
  });
  return putWord(w, op, static_cast<uint32_t>(out));
}

/// The number of a word among some; their count where it is none.
template <size_t N> uint32_t indexOf(std::string_view word, const std::string_view (&names)[N]) {
  uint32_t i = 0;
  while (i < N && names[i] != word)
    ++i;
  return i;
}

/// d [| p]: how many operands that is; 0: something else.
size_t takeResult(Decoder &d, Op &op, size_t others) {
  bool isPair = d.operands() == others + 2;
  if (isPair && !d.predicate(d.operand(1), op.predicateResult))
    return 0;
  if (!isPair && !d.hasOperands(others + 1))
    return 0;
  bool sinks = d.operand(0).kind == PtxOperand::Nothing;
  return sinks || d.result(op, 0, {'b', 32}) ? 1 + isPair : 0;
}

bool decodeShuffle(Decoder &d, Op &op) {
  static constexpr std::string_view names[] = {"up", "down", "bfly", "idx"};
  if (!d.take("sync"))
    return false;
  op.immediate = indexOf(d.takeWord(), names);
  op.step = shuffle;
  size_t first = 0;
  return op.immediate < std::size(names) && d.take("b32") && (first = takeResult(d, op, 4)) && op.results &&
         d.source(op, first, {'b', 32}) && d.source(op, first + 1, {'b', 32}) && d.source(op, first + 2, {'b', 32}) &&
         d.source(op, first + 3, {'b', 32});
}

bool decodeVote(Decoder &d, Op &op) {
  static constexpr std::string_view names[] = {"all", "any", "uni", "ballot"};
  if (!d.take("sync"))
    return false;
  op.immediate = indexOf(d.takeWord(), names);
  op.step = vote;
  bool isBallot = op.immediate == Ballot;
  return op.immediate < std::size(names) && d.take(isBallot ? "b32" : "pred") && d.hasOperands(3) &&
         (isBallot ? d.result(op, 0, {'b', 32}) : d.predicate(d.operand(0), op.predicateResult)) &&
         d.predicate(d.operand(1), op.predicateSource[0]) && d.source(op, 2, {'b', 32});
}

bool decodeMatch(Decoder &d, Op &op) {
  bool isAll = d.take("all");
  if ((!isAll && !d.take("any")) || !d.take("sync"))
    return false;
  PtxType t = d.takeType();
  op.immediate = isAll;
  op.step = match;
  size_t first = 0;
  return t.kind == 'b' && t.bits >= 32 && (first = takeResult(d, op, 2)) && op.results && d.source(op, first, t) &&
         d.source(op, first + 1, {'b', 32});
}

bool decodeReduction(Decoder &d, Op &op) {
  static constexpr std::string_view names[] = {"add", "min", "max", "and", "or", "xor"};
  if (!d.take("sync"))
    return false;
  op.immediate = indexOf(d.takeWord(), names);
  PtxType t = d.takeType();
  op.step = t.isSigned() ? reduce<int32_t> : reduce<uint32_t>;
  bool ofBits = op.immediate >= AllBits;
  return op.immediate < std::size(names) && t.bits == 32 && !t.isFloat() && ofBits == (t.kind == 'b') &&
         d.hasOperands(3) && d.result(op, 0, t) && d.source(op, 1, t) && d.source(op, 2, {'b', 32});
}

} // namespace

bool decodeWarp(Decoder &d, std::string_view root, Op &op) {
  if (root == "activemask") {
    op.step = tellActive;
    return d.take("b32") && d.hasOperands(1) && d.result(op, 0, {'b', 32});
  }
  op.meeting = Op::Masked;
  if (root == "elect") {
    op.step = elect;
    size_t first = 0;
    return d.take("sync") && (first = takeResult(d, op, 1)) && d.source(op, first, {'b', 32});
  }
  bool known = root == "shfl"    ? decodeShuffle(d, op)
               : root == "vote"  ? decodeVote(d, op)
               : root == "match" ? decodeMatch(d, op)
               : root == "redux" ? decodeReduction(d, op)
                                 : false;
  if (!known)
    op.meeting = Op::Alone;
  return known;
}

} // namespace dmxrt::cuda
