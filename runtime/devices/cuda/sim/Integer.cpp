//===- Integer.cpp - integers, bits and predicates ----------------------------===//

#include "Decoder.h"
#include "Lanes.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace dmxrt::cuda {
namespace {

template <typename T> using Unsigned = std::make_unsigned_t<T>;
/// Twice as wide, of the same sign.
template <typename T>
using Wide =
    std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
                       std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                                          std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

struct Add {
  template <typename T> static T of(T a, T b) { return static_cast<T>(Unsigned<T>(a) + Unsigned<T>(b)); }
};
struct Sub {
  template <typename T> static T of(T a, T b) { return static_cast<T>(Unsigned<T>(a) - Unsigned<T>(b)); }
};
struct MulLo {
  template <typename T> static T of(T a, T b) { return static_cast<T>(uint64_t(Unsigned<T>(a)) * Unsigned<T>(b)); }
};
struct MulHi {
  template <typename T> static T of(T a, T b) { return static_cast<T>(Wide<T>(a) * Wide<T>(b) >> (8 * sizeof(T))); }
};
struct MulWide {
  template <typename T> static Wide<T> of(T a, T b) { return Wide<T>(a) * Wide<T>(b); }
};
struct MadLo {
  template <typename T> static T of(T a, T b, T c) { return Add::of(MulLo::of(a, b), c); }
};
struct MadHi {
  template <typename T> static T of(T a, T b, T c) { return Add::of(MulHi::of(a, b), c); }
};
/// What is divided by zero is not said; the hardware gives all ones.
struct Div {
  template <typename T> static T of(T a, T b) {
    if (b == 0)
      return static_cast<T>(~Unsigned<T>(0));
    if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return static_cast<T>(0 - Unsigned<T>(a));
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <typename T> static T of(T a, T b) {
    if (b == 0)
      return a;
    return std::is_signed_v<T> && b == static_cast<T>(-1) ? T(0) : static_cast<T>(a % b);
  }
};
struct Min {
  template <typename T> static T of(T a, T b) { return std::min(a, b); }
};
struct Max {
  template <typename T> static T of(T a, T b) { return std::max(a, b); }
};
struct Neg {
  template <typename T> static T of(T a) { return static_cast<T>(0 - Unsigned<T>(a)); }
};
struct Abs {
  template <typename T> static T of(T a) { return a < 0 ? Neg::of(a) : a; }
};
struct And {
  template <typename T> static T of(T a, T b) { return a & b; }
};
struct Or {
  template <typename T> static T of(T a, T b) { return a | b; }
};
struct Xor {
  template <typename T> static T of(T a, T b) { return a ^ b; }
};
struct Not {
  template <typename T> static T of(T a) { return static_cast<T>(~a); }
};
struct Popc {
  template <typename T> static uint32_t of(T a) { return static_cast<uint32_t>(std::popcount(a)); }
};
struct Clz {
  template <typename T> static uint32_t of(T a) { return static_cast<uint32_t>(std::countl_zero(a)); }
};
struct Brev {
  template <typename T> static T of(T a) {
    T out = 0;
    for (size_t i = 0; i < 8 * sizeof(T); ++i)
      out |= static_cast<T>((a >> i & 1) << (8 * sizeof(T) - 1 - i));
    return out;
  }
};

template <typename F> Step pickSigned(PtxType t, bool bytes = false) {
  switch (t.bits) {
  case 16:
    return t.isSigned() ? Step(step2<F, int16_t>) : Step(step2<F, uint16_t>);
  case 32:
    return t.isSigned() ? Step(step2<F, int32_t>) : Step(step2<F, uint32_t>);
  case 64:
    return t.isSigned() ? Step(step2<F, int64_t>) : Step(step2<F, uint64_t>);
  default:
    return nullptr;
  }
}
/// Of bits: signs do not matter.
template <typename F> Step pick2(PtxType t) {
  return t.bits == 16   ? Step(step2<F, uint16_t>)
         : t.bits == 32 ? Step(step2<F, uint32_t>)
         : t.bits == 64 ? Step(step2<F, uint64_t>)
                        : nullptr;
}
template <typename F> Step pick1(PtxType t) {
  return t.bits == 32 ? Step(step1<F, uint32_t>) : t.bits == 64 ? Step(step1<F, uint64_t>) : nullptr;
}
template <typename F> Step pick1Signed(PtxType t) {
  return t.bits == 16   ? Step(step1<F, int16_t>)
         : t.bits == 32 ? Step(step1<F, int32_t>)
         : t.bits == 64 ? Step(step1<F, int64_t>)
                        : nullptr;
}

bool isInteger(PtxType t) { return t.kind == 'u' || t.kind == 's'; }

// --- shifts: by a number of 32 bits, more than the width counts as the width ------------------

template <typename T, bool Left> bool shift(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]], &b = w.slots[op.source[1]];
  constexpr uint32_t width = 8 * sizeof(T);
  forLanes(w.active, [&](uint32_t i) {
    auto by = static_cast<uint32_t>(b[i]);
    T x = fromBits<T>(a[i]), filled = std::is_signed_v<T> && x < 0 ? T(-1) : T(0);
    to[i] = toBits(by >= width ? (Left ? T(0) : filled) : static_cast<T>(Left ? x << by : x >> by));
  });
  return wrote(w, op.result[0]);
}

/// The word in the middle of two that are shifted.
template <bool Left, bool Wrap> bool funnel(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]], &b = w.slots[op.source[1]], &c = w.slots[op.source[2]];
  forLanes(w.active, [&](uint32_t i) {
    uint64_t both = b[i] << 32 | a[i];
    uint32_t by = Wrap ? c[i] & 31 : std::min<uint32_t>(static_cast<uint32_t>(c[i]), 32);
    to[i] = Left ? static_cast<uint32_t>(both << by >> 32) : static_cast<uint32_t>(both >> by);
  });
  return wrote(w, op.result[0]);
}

/// Bytes of two words, picked by nibbles; bit 3 of one repeats the byte's sign.
bool permute(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]], &b = w.slots[op.source[1]], &c = w.slots[op.source[2]];
  forLanes(w.active, [&](uint32_t i) {
    uint64_t both = b[i] << 32 | a[i];
    uint32_t out = 0;
    for (uint32_t n = 0; n < 4; ++n) {
      auto pick = static_cast<uint32_t>(c[i] >> (4 * n));
      auto byte = static_cast<uint32_t>(both >> (8 * (pick & 7)) & 0xff);
      if (pick & 8)
        byte = byte & 0x80 ? 0xff : 0;
      out |= byte << (8 * n);
    }
    to[i] = out;
  });
  return wrote(w, op.result[0]);
}

template <typename T> bool extractField(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]], &b = w.slots[op.source[1]], &c = w.slots[op.source[2]];
  constexpr uint32_t width = 8 * sizeof(T);
  using U = Unsigned<T>;
  forLanes(w.active, [&](uint32_t i) {
    uint32_t at = b[i] & 0xff, length = c[i] & 0xff;
    U x = fromBits<U>(a[i]);
    uint32_t sign = std::min(at + length - 1, width - 1);
    bool negative = std::is_signed_v<T> && length && (x >> sign & 1);
    U field = at >= width ? U(0) : static_cast<U>(x >> at);
    if (length < width) {
      U mask = static_cast<U>((U(1) << length) - 1);
      field = negative ? field | ~mask : field & mask;
    }
    if (negative && at < width && at + length > width) // what lies beyond is the sign
      field |= static_cast<U>(at ? ~U(0) << (width - at) : U(0));
    to[i] = toBits(length ? field : U(0));
  });
  return wrote(w, op.result[0]);
}

template <typename T> bool insertField(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]], &b = w.slots[op.source[1]], &c = w.slots[op.source[2]],
       &d = w.slots[op.source[3]];
  constexpr uint32_t width = 8 * sizeof(T);
  forLanes(w.active, [&](uint32_t i) {
    uint32_t at = c[i] & 0xff, length = std::min<uint32_t>(d[i] & 0xff, width);
    T mask = length == width ? ~T(0) : static_cast<T>((T(1) << length) - 1);
    mask = at >= width ? T(0) : static_cast<T>(mask << at);
    T field = at >= width ? T(0) : static_cast<T>(fromBits<T>(a[i]) << at);
    to[i] = toBits(static_cast<T>((fromBits<T>(b[i]) & ~mask) | (field & mask)));
  });
  return wrote(w, op.result[0]);
}

/// Any function of three bits, by its table.
bool logic3(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]], &b = w.slots[op.source[1]], &c = w.slots[op.source[2]];
  forLanes(w.active, [&](uint32_t i) {
    uint32_t out = 0;
    for (uint32_t row = 0; row < 8; ++row)
      if (op.immediate >> row & 1)
        out |= static_cast<uint32_t>((row & 4 ? a[i] : ~a[i]) & (row & 2 ? b[i] : ~b[i]) & (row & 1 ? c[i] : ~c[i]));
    to[i] = out;
  });
  return wrote(w, op.result[0]);
}

template <char Kind> bool predicateLogic(Warp &w, const Op &op) {
  uint32_t a = w.predicates[op.predicateSource[0]],
           b = op.predicateSource[1] < 0 ? 0 : w.predicates[op.predicateSource[1]];
  uint32_t value = Kind == '&' ? a & b : Kind == '|' ? a | b : Kind == '^' ? a ^ b : ~a;
  uint32_t &to = w.predicates[op.predicateResult];
  to = (to & ~w.active) | (value & w.active);
  w.predicateWritten[op.predicateResult] |= w.active;
  return true;
}

bool takeSources(Decoder &d, Op &op, PtxType result, std::initializer_list<PtxType> sources) {
  if (!op.step)
    return d.refuseForm();
  if (!d.hasOperands(sources.size() + 1) || !d.result(op, 0, result))
    return false;
  size_t i = 1;
  for (PtxType source : sources)
    if (!d.source(op, i++, source))
      return false;
  return true;
}

bool decodeMultiply(Decoder &d, std::string_view root, Op &op) {
  bool lo = d.take("lo"), hi = !lo && d.take("hi"), wide = !lo && !hi && d.take("wide");
  PtxType t = d.takeType(), to{t.kind, static_cast<uint8_t>(wide ? 2 * t.bits : t.bits)};
  if ((!lo && !hi && !wide) || !isInteger(t) || t.bits < 16 || to.bits > 64)
    return false;
  bool sum = root == "mad";
  if (lo)
    op.step = pickSigned<MulLo>(t);
  else if (hi)
    op.step = pickSigned<MulHi>(t);
  else
    op.step = t.bits == 16   ? (t.isSigned() ? Step(step2<MulWide, int16_t>) : Step(step2<MulWide, uint16_t>))
              : t.isSigned() ? Step(step2<MulWide, int32_t>)
                             : Step(step2<MulWide, uint32_t>);
  if (!sum)
    return takeSources(d, op, to, {t, t});
  if (wide)
    op.step = [](Warp &w, const Op &op) {
      auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]], &b = w.slots[op.source[1]],
           &c = w.slots[op.source[2]];
      forLanes(w.active, [&](uint32_t i) {
        uint64_t product =
            op.signExtends ? uint64_t(int64_t(fromBits<int32_t>(a[i])) * fromBits<int32_t>(b[i])) : a[i] * b[i];
        to[i] = product + c[i];
      });
      return wrote(w, op.result[0]);
    };
  else if (lo)
    op.step = t.bits == 16   ? Step(step3<MadLo, uint16_t>)
              : t.bits == 32 ? Step(step3<MadLo, uint32_t>)
                             : Step(step3<MadLo, uint64_t>);
  else
    op.step = t.bits == 32 ? (t.isSigned() ? Step(step3<MadHi, int32_t>) : Step(step3<MadHi, uint32_t>)) : nullptr;
  op.signExtends = t.isSigned();
  if (wide && t.bits != 32)
    op.step = nullptr;
  return takeSources(d, op, to, {t, t, to});
}

bool decodeShift(Decoder &d, std::string_view root, Op &op) {
  PtxType t = d.takeType();
  bool left = root == "shl";
  if (!t.kind || t.isFloat() || t.isPredicate())
    return false;
  switch (t.bits) {
  case 16:
    op.step = left ? shift<uint16_t, true> : t.isSigned() ? shift<int16_t, false> : shift<uint16_t, false>;
    break;
  case 32:
    op.step = left ? shift<uint32_t, true> : t.isSigned() ? shift<int32_t, false> : shift<uint32_t, false>;
    break;
  case 64:
    op.step = left ? shift<uint64_t, true> : t.isSigned() ? shift<int64_t, false> : shift<uint64_t, false>;
    break;
  default:
    return false;
  }
  return takeSources(d, op, t, {t, {'u', 32}});
}

bool decodeLogic(Decoder &d, std::string_view root, Op &op) {
  PtxType t = d.takeType();
  bool unary = root == "not";
  if (t.isPredicate()) {
    op.step = root == "and"   ? predicateLogic<'&'>
              : root == "or"  ? predicateLogic<'|'>
              : root == "xor" ? predicateLogic<'^'>
                              : predicateLogic<'~'>;
    return d.hasOperands(unary ? 2 : 3) && d.predicate(d.operand(0), op.predicateResult) &&
           d.predicate(d.operand(1), op.predicateSource[0]) &&
           (unary || d.predicate(d.operand(2), op.predicateSource[1]));
  }
  if (t.kind != 'b')
    return false;
  if (unary) {
    op.step = t.bits == 16   ? Step(step1<Not, uint16_t>)
              : t.bits == 32 ? Step(step1<Not, uint32_t>)
              : t.bits == 64 ? Step(step1<Not, uint64_t>)
                             : nullptr;
    return takeSources(d, op, t, {t});
  }
  op.step = root == "and" ? pick2<And>(t) : root == "or" ? pick2<Or>(t) : pick2<Xor>(t);
  return takeSources(d, op, t, {t, t});
}

bool decodeField(Decoder &d, std::string_view root, Op &op) {
  PtxType t = d.takeType(), number{'u', 32};
  if (root == "bfe") {
    op.step = !isInteger(t)  ? nullptr
              : t.bits == 32 ? (t.isSigned() ? Step(extractField<int32_t>) : Step(extractField<uint32_t>))
              : t.bits == 64 ? (t.isSigned() ? Step(extractField<int64_t>) : Step(extractField<uint64_t>))
                             : nullptr;
    return takeSources(d, op, t, {t, number, number});
  }
  op.step = t.kind != 'b'  ? nullptr
            : t.bits == 32 ? Step(insertField<uint32_t>)
            : t.bits == 64 ? Step(insertField<uint64_t>)
                           : nullptr;
  return takeSources(d, op, t, {t, t, number, number});
}

bool decodeWord(Decoder &d, std::string_view root, Op &op) {
  const PtxType word{'b', 32};
  if (root == "shf") {
    bool left = d.take("l");
    if (!left && !d.take("r"))
      return false;
    bool wraps = d.take("wrap");
    if (!wraps && !d.take("clamp"))
      return false;
    op.step = left ? (wraps ? funnel<true, true> : funnel<true, false>)
                   : (wraps ? funnel<false, true> : funnel<false, false>);
  } else if (root == "prmt") {
    op.step = permute;
  } else {
    op.step = logic3;
    if (d.operands() != 5 || d.operand(4).kind != PtxOperand::Integer || d.operand(4).bits > 255)
      return d.refuseForm();
    op.immediate = static_cast<uint32_t>(d.operand(4).bits);
  }
  if (d.takeType() != word)
    return false;
  if (root != "lop3")
    return takeSources(d, op, word, {word, word, word});
  return d.result(op, 0, word) && d.source(op, 1, word) && d.source(op, 2, word) && d.source(op, 3, word);
}

} // namespace

bool decodeInteger(Decoder &d, std::string_view root, Op &op) {
  if (root == "and" || root == "or" || root == "xor" || root == "not")
    return decodeLogic(d, root, op);
  if (root == "shl" || root == "shr")
    return decodeShift(d, root, op);
  if (root == "mul" || root == "mad")
    return decodeMultiply(d, root, op);
  if (root == "bfe" || root == "bfi")
    return decodeField(d, root, op);
  if (root == "shf" || root == "prmt" || root == "lop3")
    return decodeWord(d, root, op);
  PtxType t = d.takeType();
  if (root == "popc" || root == "clz" || root == "brev") {
    op.step = t.kind != 'b'    ? nullptr
              : root == "popc" ? pick1<Popc>(t)
              : root == "clz"  ? pick1<Clz>(t)
                               : pick1<Brev>(t);
    return takeSources(d, op, root == "brev" ? t : PtxType{'u', 32}, {t});
  }
  if (!isInteger(t))
    return false;
  if (root == "neg" || root == "abs") {
    op.step = !t.isSigned() ? nullptr : root == "neg" ? pick1Signed<Neg>(t) : pick1Signed<Abs>(t);
    return takeSources(d, op, t, {t});
  }
  op.step = root == "add"   ? pick2<Add>(t)
            : root == "sub" ? pick2<Sub>(t)
            : root == "div" ? pickSigned<Div>(t)
            : root == "rem" ? pickSigned<Rem>(t)
            : root == "min" ? pickSigned<Min>(t)
            : root == "max" ? pickSigned<Max>(t)
                            : nullptr;
  return op.step && takeSources(d, op, t, {t, t});
}

} // namespace dmxrt::cuda
