//===- Half.cpp - narrow float conversions --------------------------------===//
#include "dmxc/Support/Half.h"

#include <bit>
#include <cmath>

namespace dmxc {

namespace {

/// A binary float format narrower than f32.
struct Format {
  int exponentBits, mantissaBits, bias;
  bool hasInf; // all-ones exponent with zero mantissa is infinity
  bool hasNaN;
  bool fnuz; // NaN is the pattern of minus zero; no negative zero
};

constexpr Format f16{5, 10, 15, true, true, false};
constexpr Format bf16{8, 7, 127, true, true, false};

constexpr Format formatOf(DType type) {
  switch (type) {
  case DType::F8E4M3FN:
    return {4, 3, 7, false, true, false};
  case DType::F8E4M3FNUZ:
    return {4, 3, 8, false, true, true};
  case DType::F8E5M2:
    return {5, 2, 15, true, true, false};
  case DType::F8E5M2FNUZ:
    return {5, 2, 16, false, true, true};
  case DType::F4E2M1:
    return {2, 1, 1, false, false, false};
  case DType::BF16:
    return bf16;
  default:
    return f16;
  }
}

/// Largest finite magnitude pattern (sign excluded).
uint32_t maxFinite(const Format &f) {
  uint32_t ones = (1u << (f.exponentBits + f.mantissaBits)) - 1;
  if (f.fnuz || !f.hasNaN)
    return ones;
  if (f.hasInf) // exponent all ones minus one, mantissa all ones
    return ones - (1u << f.mantissaBits);
  return ones - 1; // e4m3fn: S.1111.111 is NaN
}

uint32_t nanPattern(const Format &f) {
  if (f.fnuz)
    return 1u << (f.exponentBits + f.mantissaBits);
  uint32_t ones = (1u << (f.exponentBits + f.mantissaBits)) - 1;
  if (f.hasInf)
    return ones - (1u << f.mantissaBits) + 1 + (1u << (f.mantissaBits - 1));
  return ones;
}

uint32_t encode(const Format &f, double value, bool saturate) {
  uint32_t sign = std::signbit(value) ? 1u << (f.exponentBits + f.mantissaBits) : 0;
  if (std::isnan(value)) // a format without one has minus zero for it, as ONNX's reference has
    return f.hasNaN ? (f.fnuz ? nanPattern(f) : sign | nanPattern(f)) : 1u << (f.exponentBits + f.mantissaBits);
  double magnitude = std::fabs(value);
  uint32_t pattern = maxFinite(f) + 1; // past the end: overflow
  if (std::isfinite(magnitude)) {
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    exponent = magnitude == 0 ? 1 - f.bias : std::max(exponent - 1, 1 - f.bias);
    // Scale so that one unit in the last place is 1, then round to even.
    double scaled = std::ldexp(magnitude, f.mantissaBits - exponent);
    double rounded = std::nearbyint(scaled);
    uint64_t mantissa = rounded < 4294967296.0 ? static_cast<uint64_t>(rounded) : ~0ull;
    if (exponent + f.bias <= (1 << f.exponentBits)) {
      uint64_t wide = (static_cast<uint64_t>(exponent + f.bias - 1) << f.mantissaBits) + mantissa;
      pattern = wide > maxFinite(f) ? maxFinite(f) + 1 : static_cast<uint32_t>(wide);
    }
  }
  if (pattern > maxFinite(f)) {
    if (saturate || !f.hasNaN)
      pattern = maxFinite(f);
    else if (f.hasInf)
      pattern = maxFinite(f) + 1;
    else
      return f.fnuz ? nanPattern(f) : sign | nanPattern(f);
  }
  if (f.fnuz && pattern == 0)
    return 0;
  return sign | pattern;
}

float decode(const Format &f, uint32_t bits) {
  uint32_t signBit = 1u << (f.exponentBits + f.mantissaBits);
  uint32_t magnitude = bits & (signBit - 1);
  if (f.fnuz && bits == signBit)
    return std::nanf("");
  double value;
  if (f.hasNaN && !f.fnuz && magnitude > maxFinite(f)) {
    if (f.hasInf && magnitude == maxFinite(f) + 1)
      value = INFINITY;
    else
      value = NAN;
  } else {
    uint32_t exponent = magnitude >> f.mantissaBits;
    uint32_t mantissa = magnitude & ((1u << f.mantissaBits) - 1);
    value = exponent == 0
                ? std::ldexp(mantissa, 1 - f.bias - f.mantissaBits)
                : std::ldexp(mantissa + (1u << f.mantissaBits), static_cast<int>(exponent) - f.bias - f.mantissaBits);
  }
  return static_cast<float>(bits & signBit ? -value : value);
}

/// E8M0 has the exponents of 2^-127 to 2^127 and NaN.
constexpr uint8_t scaleNaN = 255;

float decodeScale(uint8_t bits) { return bits == scaleNaN ? NAN : std::ldexp(1.0f, bits - 127); }

/// Rounds up, as ONNX does where nothing else is asked for. There is no sign.
uint8_t encodeScale(double value, bool saturate) {
  double magnitude = std::fabs(value);
  if (std::isnan(value))
    return scaleNaN;
  if (magnitude <= 0x1p-127)
    return saturate || magnitude == 0x1p-127 ? 0 : scaleNaN;
  if (magnitude > 0x1p127)
    return saturate ? scaleNaN - 1 : scaleNaN;
  int exponent = 0; // magnitude is fraction * 2^exponent with a fraction in [0.5, 1)
  double fraction = std::frexp(magnitude, &exponent);
  return static_cast<uint8_t>(127 + exponent - (fraction == 0.5));
}

} // namespace

float halfToFloat(uint16_t bits) { return decode(f16, bits); }
uint16_t doubleToHalf(double value) { return static_cast<uint16_t>(encode(f16, value, false)); }
float bfloatToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
uint16_t doubleToBfloat(double value) { return static_cast<uint16_t>(encode(bf16, value, false)); }
float narrowToFloat(DType type, uint8_t bits) {
  return type == DType::F8E8M0 ? decodeScale(bits) : decode(formatOf(type), bits);
}
uint8_t doubleToNarrow(DType type, double value, bool saturate) {
  if (type == DType::F8E8M0)
    return encodeScale(value, saturate);
  return static_cast<uint8_t>(encode(formatOf(type), value, saturate));
}

} // namespace dmxc
