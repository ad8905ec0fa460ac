//===- Half.h - floats of 16 bits -------------------------------*- C++ -*-===//
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace dmxrt::cuda {

inline double widenHalf(uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31)
    return mantissa ? std::bit_cast<double>(uint64_t(0x7ff8) << 48) : sign * HUGE_VAL;
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

/// To the nearest, ties to even; one NaN.
inline uint16_t roundToHalf(double x) {
  if (x != x)
    return 0x7fff;
  auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
  double magnitude = std::fabs(x);
  if (magnitude >= 65520) // half way to 2^16, and above
    return sign | 0x7c00;
  if (magnitude == 0)
    return sign;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  int unit = std::max(exponent - 11, -24); // of the last place
  auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, -unit)));
  // Below 2^-14 the steps are the number; above, the leading one adds to the exponent, and so does a carry.
  return sign | static_cast<uint16_t>(unit == -24 ? steps : (uint32_t(unit + 24) << 10) + steps);
}

inline uint16_t roundToBf16(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  if (x != x)
    return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

} // namespace dmxrt::cuda
