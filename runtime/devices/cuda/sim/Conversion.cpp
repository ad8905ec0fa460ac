//===- Conversion.cpp - cvt ---------------------------------------------------===//

#include "Decoder.h"
#include "Half.h"
#include "Lanes.h"

#include <cmath>
#include <limits>

namespace dmxrt::cuda {
namespace {

/// A value on its way: wide enough for every type that is converted.
struct Between {
  bool isFloat = false, isSigned = false;
  double number = 0; ///< every f16, bf16, f32 and f64 is one
  uint64_t bits = 0; ///< an integer, extended by its sign
};

Between read(uint64_t bits, PtxType t) {
  Between out;
  out.isFloat = t.isFloat();
  out.isSigned = t.isSigned();
  switch (t.kind) {
  case 'f':
    out.number = t.bits == 16   ? widenHalf(static_cast<uint16_t>(bits))
                 : t.bits == 32 ? double(fromBits<float>(bits))
                                : fromBits<double>(bits);
    break;
  case 'h':
    out.number = fromBits<float>(bits << 16);
    break;
  default: {
    uint32_t unused = 64u - t.bits;
    out.bits = t.isSigned() ? uint64_t(int64_t(bits << unused) >> unused) : bits << unused >> unused;
    break;
  }
  }
  return out;
}

enum Rounding : uint8_t { Unsaid, Nearest, Zero, Down, Up }; ///< of floats: .rn ..; of integers: .rni ..

double rounded(double x, uint32_t how) {
  switch (how) {
  case Nearest:
    return std::nearbyint(x);
  case Zero:
    return std::trunc(x);
  case Down:
    return std::floor(x);
  default:
    return std::ceil(x);
  }
}

/// Out of range is the nearest; NaN is 0, or of 64 bits the lowest bit pattern of its sign.
uint64_t integerOf(double x, PtxType t, PtxType from) {
  bool wide = from.bits == 64 || t.bits == 64;
  if (x != x)
    return wide ? uint64_t(1) << (t.bits - 1) : 0;
  double least = t.isSigned() ? -std::ldexp(1.0, t.bits - 1) : 0, beyond = std::ldexp(1.0, t.bits - t.isSigned());
  if (x <= least)
    return t.isSigned() ? ~uint64_t(0) << (t.bits - 1) : 0;
  if (x >= beyond)
    return t.isSigned() ? (uint64_t(1) << (t.bits - 1)) - 1 : ~uint64_t(0) >> (64 - t.bits);
  return t.isSigned() ? uint64_t(static_cast<int64_t>(x)) : static_cast<uint64_t>(x);
}

uint64_t floatOf(const Between &x, PtxType t) {
  if (t.kind == 'h')
    return roundToBf16(static_cast<float>(x.number)); // of f32 alone
  if (x.isFloat)
    return t.bits == 16   ? roundToHalf(x.number)
           : t.bits == 32 ? (std::isnan(x.number) ? 0x7fffffffu : toBits(static_cast<float>(x.number)))
                          : toBits(x.number);
  if (t.bits == 64)
    return toBits(x.isSigned ? double(int64_t(x.bits)) : double(x.bits));
  if (t.bits == 32)
    return toBits(x.isSigned ? float(int64_t(x.bits)) : float(x.bits));
  return roundToHalf(x.isSigned ? double(int64_t(x.bits)) : double(x.bits)); // of 32 bits and fewer: once
}

/// The integer in the range of a type.
uint64_t saturated(const Between &x, PtxType t) {
  uint64_t most = ~uint64_t(0) >> (64 - t.bits + t.isSigned());
  if (x.isSigned && int64_t(x.bits) < 0) {
    int64_t least = t.isSigned() ? -int64_t(most) - 1 : 0;
    return int64_t(x.bits) < least ? uint64_t(least) : x.bits;
  }
  return x.bits > most ? most : x.bits;
}

/// op.immediate: of types and rounding.
struct Form {
  PtxType to, from;
  uint8_t rounding = Unsaid;
  bool toIntegral = false, saturates = false;
};

uint64_t convert(uint64_t bits, const Form &form, uint32_t registerBits) {
  Between x = read(bits, form.from);
  uint64_t out;
  if (form.to.isFloat()) {
    if (form.toIntegral && !std::isnan(x.number))
      x.number = rounded(x.number, form.rounding);
    if (form.saturates) // to [0, 1], NaN to 0
      x.number = x.number > 0 ? std::min(x.number, 1.0) : 0.0;
    out = floatOf(x, form.to);
  } else if (x.isFloat) {
    out = integerOf(!std::isnan(x.number) ? rounded(x.number, form.rounding) : x.number, form.to, form.from);
  } else {
    out = form.saturates ? saturated(x, form.to) : x.bits;
    uint32_t unused = 64u - form.to.bits;
    out = form.to.isSigned() ? uint64_t(int64_t(out << unused) >> unused) : out << unused >> unused;
  }
  uint32_t unused = 64 - registerBits;
  return out << unused >> unused;
}

char kindOf(uint32_t code) { return "bushf"[code]; }
uint32_t codeOf(char kind) { return static_cast<uint32_t>(std::string_view("bushf").find(kind)); }

uint32_t pack(const Form &form) {
  return codeOf(form.to.kind) | codeOf(form.from.kind) << 3 | uint32_t(form.to.bits) << 6 |
         uint32_t(form.from.bits) << 13 | uint32_t(form.rounding) << 20 | uint32_t(form.toIntegral) << 23 |
         uint32_t(form.saturates) << 24;
}
Form unpack(uint32_t word) {
  return {{kindOf(word & 7), static_cast<uint8_t>(word >> 6 & 127)},
          {kindOf(word >> 3 & 7), static_cast<uint8_t>(word >> 13 & 127)},
          static_cast<uint8_t>(word >> 20 & 7),
          (word >> 23 & 1) != 0,
          (word >> 24 & 1) != 0};
}

bool convertAny(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]];
  Form form = unpack(op.immediate);
  forLanes(w.active, [&](uint32_t i) { to[i] = convert(a[i], form, op.wideBytes * 8u); });
  return wrote(w, op.result[0]);
}

/// The conversions of indices.
bool extend32(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]];
  if (op.signExtends)
    forLanes(w.active, [&](uint32_t i) { to[i] = uint64_t(int64_t(static_cast<int32_t>(a[i]))); });
  else
    forLanes(w.active, [&](uint32_t i) { to[i] = static_cast<uint32_t>(a[i]); });
  return wrote(w, op.result[0]);
}

/// Two f32 to halves of a word: the first operand is the upper one.
bool packHalves(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &high = w.slots[op.source[0]], &low = w.slots[op.source[1]];
  auto narrow = [&](uint64_t bits) -> uint32_t {
    auto x = fromBits<float>(bits);
    return op.immediate ? roundToBf16(x) : roundToHalf(double(x));
  };
  forLanes(w.active, [&](uint32_t i) { to[i] = narrow(high[i]) << 16 | narrow(low[i]); });
  return wrote(w, op.result[0]);
}

/// To the 19 bits that products of tf32 read, to the nearest, ties away from zero.
bool roundToTf32(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]];
  forLanes(w.active, [&](uint32_t i) {
    auto bits = static_cast<uint32_t>(a[i]);
    bool isFinite = (bits & 0x7f800000) != 0x7f800000;
    to[i] = isFinite ? (bits + 0x1000) & 0xffffe000u : bits;
  });
  return wrote(w, op.result[0]);
}

/// cvt.rn.bf16x2.f32, cvt.rn.f16x2.f32, cvt.rna.tf32.f32
bool decodePacked(Decoder &d, Op &op) {
  const PtxType single{'f', 32}, word{'b', 32};
  if (d.take("rna")) {
    op.step = roundToTf32;
    return d.take("tf32") && d.take("f32") && d.hasOperands(2) && d.result(op, 0, word) && d.source(op, 1, single);
  }
  d.take("rn");
  op.immediate = d.take("bf16x2");
  op.step = packHalves;
  return (op.immediate || d.take("f16x2")) && d.take("f32") && d.hasOperands(3) && d.result(op, 0, word) &&
         d.source(op, 1, single) && d.source(op, 2, single);
}

} // namespace

bool decodeConversion(Decoder &d, std::string_view root, Op &op) {
  if (root != "cvt")
    return false;
  if (d.has("bf16x2") || d.has("f16x2") || d.has("tf32"))
    return decodePacked(d, op);
  Form form;
  static constexpr std::string_view floats[] = {"rn", "rz", "rm", "rp"}, integers[] = {"rni", "rzi", "rmi", "rpi"};
  for (uint8_t i = 0; i < 4; ++i) {
    if (d.take(floats[i]))
      form.rounding = static_cast<uint8_t>(i + 1);
    else if (d.take(integers[i]))
      form.rounding = static_cast<uint8_t>(i + 1), form.toIntegral = true;
  }
  form.saturates = d.take("sat");
  form.to = d.takeType();
  form.from = d.takeType();
  auto usable = [](PtxType t) { return t.kind && t.kind != 'b' && !t.isPredicate(); };
  if (!usable(form.to) || !usable(form.from))
    return false;
  bool toInteger = form.from.isFloat() && !form.to.isFloat(),
       narrows =
           form.to.isFloat() && !form.toIntegral &&
           (!form.from.isFloat() || form.from.bits > form.to.bits || (form.to.kind == 'h' && form.from.kind == 'f'));
  bool roundsAtAll = toInteger || narrows || form.toIntegral;
  if (roundsAtAll != (form.rounding != Unsaid) || (toInteger && !form.toIntegral) ||
      (form.toIntegral && !form.from.isFloat()) || (narrows && form.rounding != Nearest) ||
      (form.to.kind == 'h' && !(form.from == PtxType{'f', 32})) ||
      (form.to.bits == 16 && form.to.isFloat() && !form.from.isFloat() && form.from.bits == 64))
    return false;
  if (!d.hasOperands(2) || !d.result(op, 0, form.to, /*wider=*/true) || !d.source(op, 1, form.from, /*wider=*/true))
    return false;
  op.wideBytes = static_cast<uint8_t>(d.registerBits(d.operand(0)) / 8);
  op.immediate = pack(form);
  op.step = convertAny;
  if (!form.to.isFloat() && !form.from.isFloat() && form.to.bits == 64 && form.from.bits == 32 && !form.saturates) {
    op.step = extend32;
    op.signExtends = form.from.isSigned();
  }
  return true;
}

} // namespace dmxrt::cuda
