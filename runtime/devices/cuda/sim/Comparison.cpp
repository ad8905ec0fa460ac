//===- Comparison.cpp - comparisons and choices -------------------------------===//

#include "Decoder.h"
#include "Half.h"
#include "Lanes.h"

#include <cmath>

namespace dmxrt::cuda {
namespace {

enum class Relation : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };

template <Relation R, typename T> bool holds(T a, T b) {
  bool unordered = a != a || b != b;
  switch (R) {
  case Relation::Eq:
    return a == b;
  case Relation::Ne:
    return !unordered && a != b;
  case Relation::Lt:
    return a < b;
  case Relation::Le:
    return a <= b;
  case Relation::Gt:
    return a > b;
  case Relation::Ge:
    return a >= b;
  case Relation::Equ:
    return unordered || a == b;
  case Relation::Neu:
    return a != b;
  case Relation::Ltu:
    return !(a >= b);
  case Relation::Leu:
    return !(a > b);
  case Relation::Gtu:
    return !(a <= b);
  case Relation::Geu:
    return !(a < b);
  case Relation::Num:
    return !unordered;
  default:
    return unordered;
  }
}

/// How a comparison is combined with a predicate.
enum Combine : uint32_t { Alone, WithAnd, WithOr, WithXor };

/// A float of 16 bits, by its value.
struct HalfFloat {
  uint16_t bits;
};
template <Relation R> bool holdsOf(HalfFloat a, HalfFloat b) { return holds<R>(widenHalf(a.bits), widenHalf(b.bits)); }
template <Relation R, typename T> bool holdsOf(T a, T b) { return holds<R>(a, b); }

template <Relation R, typename T> bool compare(Warp &w, const Op &op) {
  auto &a = w.slots[op.source[0]], &b = w.slots[op.source[1]];
  uint32_t value = 0;
  forLanes(w.active, [&](uint32_t i) { value |= uint32_t(holdsOf<R>(fromBits<T>(a[i]), fromBits<T>(b[i]))) << i; });
  if (op.immediate != Alone) {
    uint32_t other = w.predicates[op.predicateSource[0]];
    value = op.immediate == WithAnd ? value & other : op.immediate == WithOr ? value | other : value ^ other;
  }
  uint32_t &to = w.predicates[op.predicateResult];
  to = (to & ~w.active) | (value & w.active);
  w.predicateWritten[op.predicateResult] |= w.active;
  return true;
}

template <Relation R> Step pick(PtxType t) {
  constexpr bool ofFloats = R >= Relation::Equ;
  if (t.isFloat())
    return t.kind == 'h'  ? nullptr
           : t.bits == 16 ? Step(compare<R, HalfFloat>)
           : t.bits == 32 ? Step(compare<R, float>)
                          : Step(compare<R, double>);
  if constexpr (!ofFloats) {
    bool s = t.isSigned();
    switch (t.bits) {
    case 16:
      return s ? Step(compare<R, int16_t>) : Step(compare<R, uint16_t>);
    case 32:
      return s ? Step(compare<R, int32_t>) : Step(compare<R, uint32_t>);
    case 64:
      return s ? Step(compare<R, int64_t>) : Step(compare<R, uint64_t>);
    default:
      break;
    }
  }
  return nullptr;
}

Step pickByName(std::string_view name, PtxType t) {
  struct Named {
    std::string_view name;
    Step (*pick)(PtxType);
  };
  static constexpr Named all[] = {
      {"eq", pick<Relation::Eq>},   {"ne", pick<Relation::Ne>},   {"lt", pick<Relation::Lt>},
      {"le", pick<Relation::Le>},   {"gt", pick<Relation::Gt>},   {"ge", pick<Relation::Ge>},
      {"lo", pick<Relation::Lt>},   {"ls", pick<Relation::Le>},   {"hi", pick<Relation::Gt>},
      {"hs", pick<Relation::Ge>},   {"equ", pick<Relation::Equ>}, {"neu", pick<Relation::Neu>},
      {"ltu", pick<Relation::Ltu>}, {"leu", pick<Relation::Leu>}, {"gtu", pick<Relation::Gtu>},
      {"geu", pick<Relation::Geu>}, {"num", pick<Relation::Num>}, {"nan", pick<Relation::Nan>}};
  bool ofBits = t.kind == 'b' && name != "eq" && name != "ne";
  for (const Named &each : all)
    if (each.name == name)
      return ofBits ? nullptr : each.pick(t);
  return nullptr;
}

bool choose(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]], &b = w.slots[op.source[1]];
  uint32_t first = w.predicates[op.predicateSource[0]];
  forLanes(w.active, [&](uint32_t i) { to[i] = first >> i & 1 ? a[i] : b[i]; });
  return wrote(w, op.result[0]);
}

/// testp: a property of a float.
template <typename T> bool test(Warp &w, const Op &op) {
  auto &a = w.slots[op.source[0]];
  uint32_t value = 0;
  forLanes(w.active, [&](uint32_t i) {
    T x = fromBits<T>(a[i]);
    bool properties[] = {std::isfinite(x), std::isinf(x),    !std::isnan(x),
                         std::isnan(x),    std::isnormal(x), x != 0 && std::isfinite(x) && !std::isnormal(x)};
    value |= uint32_t(properties[op.immediate]) << i;
  });
  uint32_t &to = w.predicates[op.predicateResult];
  to = (to & ~w.active) | (value & w.active);
  w.predicateWritten[op.predicateResult] |= w.active;
  return true;
}

bool decodeTest(Decoder &d, Op &op) {
  static constexpr std::string_view names[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  std::string_view name = d.takeWord();
  PtxType t = d.takeType();
  for (uint32_t i = 0; i < std::size(names); ++i)
    if (names[i] == name && t.kind == 'f' && t.bits >= 32) {
      op.immediate = i;
      op.step = t.bits == 32 ? Step(test<float>) : Step(test<double>);
      return d.hasOperands(2) && d.predicate(d.operand(0), op.predicateResult) && d.source(op, 1, t);
    }
  return false;
}

} // namespace

bool decodeComparison(Decoder &d, std::string_view root, Op &op) {
  if (root == "selp") {
    PtxType t = d.takeType();
    op.step = choose;
    return t.bits >= 16 && d.hasOperands(4) && d.result(op, 0, t) && d.source(op, 1, t) && d.source(op, 2, t) &&
           d.predicate(d.operand(3), op.predicateSource[0]);
  }
  if (root == "testp")
    return decodeTest(d, op);
  if (root != "setp")
    return false;
  std::string_view relation = d.takeWord();
  op.immediate = d.take("and") ? WithAnd : d.take("or") ? WithOr : d.take("xor") ? WithXor : Alone;
  PtxType t = d.takeType();
  op.step = t.kind && !t.isPredicate() ? pickByName(relation, t) : nullptr;
  bool combined = op.immediate != Alone;
  return op.step && d.hasOperands(combined ? 4 : 3) && d.predicate(d.operand(0), op.predicateResult) &&
         d.source(op, 1, t) && d.source(op, 2, t) && (!combined || d.predicate(d.operand(3), op.predicateSource[0]));
}

} // namespace dmxrt::cuda
