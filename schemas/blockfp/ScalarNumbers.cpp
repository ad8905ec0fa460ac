//===- ScalarNumbers.cpp - f16, f32 and narrow floats ---------------------===//

#include "ScalarNumbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace dmx::blockfp {
namespace {

constexpr double kF16MinNormal = 0x1p-14, kF32MinNormal = 0x1p-126;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Rounds a finite |value| to `fractionBits`, with `minExponent` as the
/// exponent of the subnormal numbers. The result may exceed every format.
double roundMagnitude(double value, int fractionBits, int minExponent) {
  if (value == 0)
    return 0;
  int ulp = std::max(std::ilogb(value), minExponent) - fractionBits;
  return std::ldexp(std::nearbyint(std::ldexp(value, -ulp)), ulp);
}

struct F8Traits {
  int exponentBits, fractionBits, bias;
};
constexpr F8Traits traitsOf(F8Kind kind) { return kind == F8Kind::E4M3 ? F8Traits{4, 3, 7} : F8Traits{5, 2, 15}; }

/// The code of the largest finite number, without the sign.
constexpr uint8_t maxCode(F8Kind kind, F8Mode mode) {
  if (mode == F8Mode::Compat)
    return 0x7f;
  return kind == F8Kind::E4M3 ? 0x7e : 0x7b;
}
constexpr uint8_t kF8NaN = 0x7f; // in both OCP formats

double codeValue(uint8_t magnitude, const F8Traits &traits) {
  int exponent = magnitude >> traits.fractionBits;
  int fraction = magnitude & ((1 << traits.fractionBits) - 1);
  if (exponent == 0)
    return std::ldexp(fraction, 1 - traits.bias - traits.fractionBits);
  return std::ldexp(fraction + (1 << traits.fractionBits), exponent - traits.bias - traits.fractionBits);
}

float canonicalF32(float value) { return std::isnan(value) ? kNaN : value; }

} // namespace

// --- f16 ---------------------------------------------------------------------

uint16_t f16Round(double value, Overflow overflow) {
  uint64_t bits = std::bit_cast<uint64_t>(value);
  uint16_t sign = static_cast<uint16_t>(bits >> 48 & 0x8000);
  uint64_t magnitude = bits & ~(uint64_t(1) << 63);
  if (std::isnan(value))
    return kF16NaN;
  if (std::fabs(value) < kF16MinNormal)
    return 0;
  // Rounding the 52-bit fraction to 10 bits carries into the exponent.
  constexpr int kDropped = 52 - 10;
  uint64_t half = (uint64_t(1) << (kDropped - 1)) - 1;
  magnitude = (magnitude + half + (magnitude >> kDropped & 1)) >> kDropped;
  uint64_t rebiased = magnitude - (uint64_t(1023 - 15) << 10);
  if (rebiased >= kF16Infinity)
    return sign | (overflow == Overflow::Saturate ? kF16Max : kF16Infinity);
  return sign | static_cast<uint16_t>(rebiased);
}

float f16Widen(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16;
  uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 0) {
    float value = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -value : value;
  }
  if (exponent == 31)
    return fraction ? kNaN : std::bit_cast<float>(sign | 0x7f800000u);
  return std::bit_cast<float>(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

double f16Read(uint16_t bits) { return (bits & 0x7c00) == 0 ? 0.0 : f16Widen(bits); }

float bf16Widen(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

// Sums and products of two f16 numbers are exact in f64 (the span of a sum is
// 40 bits), and a quotient rounded to 53 bits rounds on to 11 without harm.
uint16_t f16Add(uint16_t a, uint16_t b, Overflow overflow) { return f16Round(f16Read(a) + f16Read(b), overflow); }
uint16_t f16Sub(uint16_t a, uint16_t b, Overflow overflow) { return f16Round(f16Read(a) - f16Read(b), overflow); }
uint16_t f16Mul(uint16_t a, uint16_t b, Overflow overflow) { return f16Round(f16Read(a) * f16Read(b), overflow); }
uint16_t f16Div(uint16_t a, uint16_t b, Overflow overflow) {
  double x = f16Read(a), y = f16Read(b);
  // One zero: the sign of an infinite quotient is that of the dividend.
  return f16Round(y == 0 ? x / 0.0 : x / y, overflow);
}
uint16_t f16Fma(uint16_t a, uint16_t b, uint16_t c, Overflow overflow) {
  return f16Round(sumToOdd(f16Read(a) * f16Read(b), f16Read(c)), overflow);
}

namespace {
uint16_t select(uint16_t a, uint16_t b, bool larger) {
  double x = f16Read(a), y = f16Read(b);
  if (std::isnan(x) || std::isnan(y))
    return kF16NaN;
  return f16Round((x > y) == larger ? x : y, Overflow::Infinity);
}
} // namespace

uint16_t f16Max(uint16_t a, uint16_t b) { return select(a, b, true); }
uint16_t f16Min(uint16_t a, uint16_t b) { return select(a, b, false); }

// --- f32 ---------------------------------------------------------------------

float f32Round(double value) {
  if (std::fabs(value) < kF32MinNormal)
    return 0;
  return canonicalF32(static_cast<float>(value));
}

// A sum in the subnormal range is exact, and the double rounding f64 -> f32 is
// harmless for sums, quotients and square roots; products are exact in f64.
float f32Add(float a, float b) { return f32Round(double(a) + double(b)); }
float f32Sub(float a, float b) { return f32Round(double(a) - double(b)); }
float f32Mul(float a, float b) { return f32Round(double(a) * double(b)); }
float f32Div(float a, float b) { return f32Round(b == 0 ? double(a) / 0.0 : double(a) / double(b)); }
float f32Fma(float a, float b, float c) { return f32Round(sumToOdd(double(a) * double(b), c)); }

double sumToOdd(double a, double b) {
  double sum = a + b;
  if (!std::isfinite(sum))
    return sum;
  // Knuth's error of a sum.
  double fromB = sum - a;
  double error = (a - (sum - fromB)) + (b - fromB);
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  if (error == 0 || (bits & 1))
    return sum;
  bool away = (error > 0) == (sum > 0);
  return std::bit_cast<double>(away ? bits + 1 : bits - 1);
}

// --- narrow floats -----------------------------------------------------------

double roundToFormat(double value, const FloatFormat &format, bool compatRange) {
  if (std::isnan(value))
    return kNaN;
  int minExponent = 1 - format.bias;
  int maxExponent = compatRange ? 1 << (format.exponentBits - 1) : (1 << format.exponentBits) - 1 - format.bias;
  double magnitude = std::fabs(value);
  double largest = std::ldexp(2 - std::ldexp(1, -format.fractionBits), maxExponent);
  if (format.flushSubnormals && magnitude < std::ldexp(1, minExponent))
    return 0;
  double rounded = magnitude > largest ? largest : roundMagnitude(magnitude, format.fractionBits, minExponent);
  rounded = std::min(rounded, largest);
  return rounded != 0 && format.isSigned && value < 0 ? -rounded : rounded;
}

uint8_t f8Round(double value, F8Kind kind, F8Mode mode, bool flushSubnormals) {
  F8Traits traits = traitsOf(kind);
  bool compat = mode == F8Mode::Compat;
  if (std::isnan(value))
    return compat ? maxCode(kind, mode) : kF8NaN;
  uint8_t sign = std::signbit(value) ? 0x80 : 0;
  double magnitude = std::fabs(value);
  double largest = codeValue(maxCode(kind, mode), traits);
  // Above twice the largest number all overflow alike.
  double rounded =
      magnitude > 2 * largest ? 2 * largest : roundMagnitude(magnitude, traits.fractionBits, 1 - traits.bias);
  if (flushSubnormals && magnitude < std::ldexp(1, 1 - traits.bias))
    rounded = 0;
  if (rounded == 0)
    return compat ? 0 : sign;
  if (rounded > largest) {
    if (mode == F8Mode::OcpOverflow)
      return sign | (kind == F8Kind::E4M3 ? kF8NaN : maxCode(kind, mode) + 1);
    return sign | maxCode(kind, mode);
  }
  int exponent = std::max(std::ilogb(rounded), 1 - traits.bias);
  int scaled = static_cast<int>(std::ldexp(rounded, traits.fractionBits - exponent));
  // A normal number's leading one adds one to the exponent field.
  return sign | static_cast<uint8_t>(((exponent + traits.bias - 1) << traits.fractionBits) + scaled);
}

float f8Widen(uint8_t bits, F8Kind kind, F8Mode mode) {
  uint8_t magnitude = bits & 0x7f;
  double value = codeValue(magnitude, traitsOf(kind));
  if (mode != F8Mode::Compat && magnitude > maxCode(kind, mode))
    value =
        kind == F8Kind::E5M2 && magnitude == maxCode(kind, mode) + 1 ? std::numeric_limits<double>::infinity() : kNaN;
  return static_cast<float>(bits & 0x80 ? -value : value);
}

// --- stochastic rounding -----------------------------------------------------

uint16_t StochasticStream::at(uint64_t linearIndex) const {
  // The finaliser of splitmix64.
  uint64_t z = seed ^ tensorId << 40 ^ linearIndex;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return static_cast<uint16_t>((z ^ z >> 31) >> 48);
}

} // namespace dmx::blockfp
