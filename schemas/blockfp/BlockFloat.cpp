//===- BlockFloat.cpp - quantization of one block -------------------------===//

#include "BlockFloat.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

namespace dmx::blockfp {
namespace {

constexpr uint32_t kMagnitude = 0x7fffffff, kF32Infinity = 0x7f800000;
constexpr uint32_t kF32MinNormal = 0x00800000;
constexpr uint32_t kBfp32Max = 0x7f7ffffe;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// The mantissa bounds of a format.
struct Bounds {
  int low, high;
};
Bounds boundsOf(const QuantizeMode &mode) {
  int high = (1 << (mode.precision - 1)) - 1;
  return {mode.asymmetric ? -high - 1 : -high, high};
}

/// |x| of the largest element as bits; not below infinity when an element is
/// infinite or NaN, for their bits are larger than all others.
uint32_t largestMagnitude(std::span<const float> x) {
  uint32_t largest = 0;
  for (float value : x)
    largest = std::max(largest, std::bit_cast<uint32_t>(value) & kMagnitude);
  return largest;
}

/// floor(x / 2^shift + u / 2^16) of x = +-significand * 2^0, exactly, where u
/// is the rounding's share: a half for nearest (ties corrected), 0 for down.
int roundShifted(uint32_t significand, bool negative, int shift, Rounding rounding, uint32_t u) {
  // Beyond 40 places even the sum with u = 0xffff/2^16 is decided by the sign.
  constexpr int kFar = 40;
  int64_t value = negative ? -int64_t(significand) : int64_t(significand);
  shift = std::min(shift, kFar);
  int64_t floor = value >> shift;
  int64_t remainder = value - (floor << shift); // in [0, 2^shift)
  switch (rounding) {
  case Rounding::Down:
    break;
  case Rounding::Up:
    floor += remainder != 0;
    break;
  case Rounding::Nearest: {
    int64_t half = int64_t(1) << (shift - 1);
    floor += remainder > half || (remainder == half && (floor & 1));
    break;
  }
  case Rounding::Stochastic:
    floor += ((remainder << 16) + (int64_t(u) << shift)) >> (shift + 16);
    break;
  }
  return static_cast<int>(floor);
}

/// One element in integer arithmetic, for all roundings and all exponents.
int quantizeElement(float x, int blockExponent, const QuantizeMode &mode, uint32_t u) {
  uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & kMagnitude;
  uint32_t significand = magnitude & 0x7fffff;
  int exponent = std::max<int>(magnitude >> 23, 1); // biased
  if (magnitude >= kF32MinNormal)
    significand |= 0x800000;
  // One mantissa step is 2^(E - (p-2)), the significand's 2^(exponent - 23).
  int shift = blockExponent - exponent + 23 - (mode.precision - 2);
  return roundShifted(significand, bits >> 31, shift, mode.rounding, u);
}

/// Nearest rounding of a block whose step is far from f32's limits: scaling by
/// a power of two is exact, and adding 1.5 * 2^23 rounds to an integer. A plain
/// loop, which the compiler makes vector code of.
void quantizeNearest(std::span<const float> x, float scale, Bounds bounds, int16_t *mantissas) {
  constexpr float kRound = 0x1.8p23f;
  int32_t base = std::bit_cast<int32_t>(kRound);
  for (size_t i = 0; i < x.size(); ++i) {
    int32_t m = std::bit_cast<int32_t>(x[i] * scale + kRound) - base;
    m = m < bounds.low ? bounds.low : m;
    mantissas[i] = static_cast<int16_t>(m > bounds.high ? bounds.high : m);
  }
}

float powerOfTwo(int exponent) { // -126..127
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

} // namespace

uint8_t quantizeBlock(std::span<const float> x, const QuantizeMode &mode, std::span<int16_t> mantissas,
                      std::span<const uint16_t> u) {
  assert(mode.precision >= 2 && mode.precision <= 16);
  assert(mantissas.size() >= x.size());
  uint32_t largest = largestMagnitude(x);
  if (largest >= kF32Infinity || largest < kF32MinNormal) {
    std::fill_n(mantissas.begin(), x.size(), int16_t(0));
    return largest >= kF32Infinity ? kNaNExponent : 0;
  }
  int exponent = static_cast<int>(largest >> 23); // biased, 1..254
  // Up to here no f32-subnormal element can round away from zero, so that the
  // fast path does not depend on how the host treats them.
  constexpr int kMaxScale = 110;
  int scale = mode.precision - 2 - (exponent - 127);
  Bounds bounds = boundsOf(mode);
  if (mode.rounding == Rounding::Nearest && scale <= kMaxScale && scale >= -126) {
    quantizeNearest(x, powerOfTwo(scale), bounds, mantissas.data());
    return static_cast<uint8_t>(exponent);
  }
  bool stochastic = mode.rounding == Rounding::Stochastic;
  assert(!stochastic || u.size() >= x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    int m = quantizeElement(x[i], exponent, mode, stochastic ? u[i] : 0);
    mantissas[i] = static_cast<int16_t>(std::clamp(m, bounds.low, bounds.high));
  }
  return static_cast<uint8_t>(exponent);
}

void dequantizeBlock(uint8_t exponent, std::span<const int16_t> mantissas, int precision, std::span<float> out) {
  if (exponent == kNaNExponent) {
    std::fill_n(out.begin(), mantissas.size(), kNaN);
    return;
  }
  int scale = exponent - 127 - (precision - 2);
  if (scale >= -126) {
    float step = powerOfTwo(scale);
    for (size_t i = 0; i < mantissas.size(); ++i)
      out[i] = static_cast<float>(mantissas[i]) * step;
    return;
  }
  double step = std::ldexp(1.0, scale);
  for (size_t i = 0; i < mantissas.size(); ++i)
    out[i] = static_cast<float>(mantissas[i] * step);
}

float roundToBfp32(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & kMagnitude;
  if (magnitude >= kF32Infinity)
    return kNaN;
  if (magnitude < kF32MinNormal)
    return 0;
  // One bit is dropped: a set one is a tie and goes to the even neighbour.
  magnitude = (magnitude + (magnitude >> 1 & 1)) & ~1u;
  return std::bit_cast<float>((bits & ~kMagnitude) | std::min(magnitude, kBfp32Max));
}

uint8_t quantizeSbfpBlock(std::span<const float> x, int bias, std::span<int16_t> mantissas) {
  float largest = 0;
  for (float value : x)
    largest = std::max(largest, std::fabs(value));
  // Both quotients are f32 roundings of f64 quotients, which is the rounding of
  // the exact ones for normal numbers.
  float scale = static_cast<float>(largest / 7.0);
  if (scale == 0) {
    std::fill_n(mantissas.begin(), x.size(), int16_t(0));
    return 0;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    float t = static_cast<float>(double(x[i]) / double(scale));
    mantissas[i] = static_cast<int16_t>(std::clamp(std::nearbyint(t), -7.0f, 7.0f));
  }
  FloatFormat format{false, 4, 4, static_cast<int16_t>(bias), true};
  double rounded = roundToFormat(scale, format);
  if (rounded == 0)
    return 0;
  int exponent = std::ilogb(rounded);
  int fraction = static_cast<int>(std::ldexp(rounded, 4 - exponent)) - 16;
  return static_cast<uint8_t>((exponent + bias) << 4 | fraction);
}

float sbfpScale(uint8_t code, int bias) {
  if (code < 16)
    return 0; // exponent field 0: flushed
  return std::ldexp(static_cast<float>(16 + (code & 15)), (code >> 4) - bias - 4);
}

} // namespace dmx::blockfp
