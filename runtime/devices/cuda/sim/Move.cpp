//===- Move.cpp - moves of registers, words from halves and back --------------===//

#include "Decoder.h"
#include "Lanes.h"
#include "SharedMemory.h"

namespace dmxrt::cuda {
namespace {

bool copy(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]];
  forLanes(w.active, [&](uint32_t i) { to[i] = a[i]; });
  return wrote(w, op.result[0]);
}

/// Parts of op.bytes each, the lowest first.
bool join(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]];
  forLanes(w.active, [&](uint32_t i) {
    uint64_t out = 0;
    for (uint32_t part = op.sources; part-- > 0;)
      out = out << (8 * op.bytes) | w.slots[op.source[part]][i];
    to[i] = out;
  });
  return wrote(w, op.result[0]);
}

/// Results that nobody wants are not in the op: op.immediate has a bit for each part that is.
bool split(Warp &w, const Op &op) {
  auto &a = w.slots[op.source[0]];
  uint64_t mask = (uint64_t(1) << (8 * op.bytes)) - 1;
  uint32_t result = 0;
  for (uint32_t part = 0; op.immediate >> part; ++part) {
    if (!(op.immediate >> part & 1))
      continue;
    auto &to = w.slots[op.result[result]];
    forLanes(w.active, [&](uint32_t i) { to[i] = a[i] >> (8 * op.bytes * part) & mask; });
    wrote(w, op.result[result++]);
  }
  return true;
}

bool copyPredicate(Warp &w, const Op &op) {
  uint32_t value = op.predicateSource[0] < 0 ? op.immediate : w.predicates[op.predicateSource[0]];
  uint32_t &to = w.predicates[op.predicateResult];
  to = (to & ~w.active) | (value & w.active);
  w.predicateWritten[op.predicateResult] |= w.active;
  return true;
}

bool decodeParts(Decoder &d, PtxType t, Op &op) {
  bool joins = d.operand(1).kind == PtxOperand::Vector;
  const PtxOperand &vector = d.operand(joins ? 1 : 0);
  size_t count = vector.parts.size();
  if (count < 2 || count > 4 || t.bits % count || t.kind != 'b')
    return false;
  PtxType part{'b', static_cast<uint8_t>(t.bits / count)};
  op.bytes = static_cast<uint8_t>(part.bits / 8);
  op.step = joins ? join : split;
  if (part.bits < 16)
    return false;
  if (joins ? !d.result(op, 0, t) : !d.source(op, 1, t))
    return false;
  for (size_t i = 0; i < count; ++i) {
    if (!joins && vector.parts[i].kind == PtxOperand::Nothing)
      continue;
    op.immediate |= 1u << i;
    if (joins ? !d.source(op, vector.parts[i], part) : !d.result(op, vector.parts[i], part))
      return false;
  }
  return true;
}

bool decodePredicateMove(Decoder &d, Op &op) {
  op.step = copyPredicate;
  if (!d.predicate(d.operand(0), op.predicateResult))
    return false;
  if (d.operand(1).kind != PtxOperand::Integer)
    return d.predicate(d.operand(1), op.predicateSource[0]);
  op.immediate = d.operand(1).bits ? kAllLanes : 0;
  return true;
}

/// From an address of shared memory to a generic one, or back.
bool toGeneric(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]];
  forLanes(w.active, [&](uint32_t i) { to[i] = a[i] + kSharedWindow; });
  return wrote(w, op.result[0]);
}
bool toShared(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]];
  for (uint32_t left = w.active; left; left &= left - 1) {
    auto lane = static_cast<uint32_t>(std::countr_zero(left));
    if (a[lane] - kSharedWindow >= kWindowBytes)
      return w.fail(lane, "bounds: it takes an address that is none of shared memory for one");
    to[lane] = a[lane] - kSharedWindow;
  }
  return wrote(w, op.result[0]);
}

/// cvta: shared memory has addresses of its own, all other spaces those of all.
bool decodeAddress(Decoder &d, Op &op) {
  bool isTo = d.take("to");
  if (d.takeShared())
    op.step = isTo ? toShared : toGeneric;
  else if (d.takeAny({"global", "const", "local", "param"}))
    op.step = copy;
  else
    return false;
  return d.take("u64") && d.hasOperands(2) && d.result(op, 0, {'u', 64}) && d.source(op, 1, {'u', 64});
}

} // namespace

bool decodeMove(Decoder &d, std::string_view root, Op &op) {
  if (root == "cvta")
    return decodeAddress(d, op);
  if (root != "mov")
    return false;
  PtxType t = d.takeType();
  if (!t.kind || !d.hasOperands(2))
    return false;
  if (t.isPredicate())
    return decodePredicateMove(d, op);
  if (d.operand(0).kind == PtxOperand::Vector || d.operand(1).kind == PtxOperand::Vector)
    return decodeParts(d, t, op);
  op.step = copy;
  return t.bits >= 16 && d.result(op, 0, t) && d.source(op, 1, t);
}

} // namespace dmxrt::cuda
