//===- DotProduct.cpp - dot products and their sums, block by block -------===//

#include "DotProduct.h"

#include <array>
#include <cassert>
#include <cmath>
#include <limits>

namespace dmx::blockfp {

Partial dotBlocks(const BlockView &a, const BlockView &b) {
  assert(a.mantissas.size() == b.mantissas.size());
  Partial partial;
  partial.isNaN = a.exponent == kNaNExponent || b.exponent == kNaNExponent;
  partial.exponent = a.exponent + b.exponent - 254 - (a.precision - 2) - (b.precision - 2);
  for (size_t k = 0; k < a.mantissas.size(); ++k)
    partial.accumulator += int64_t(a.mantissas[k]) * b.mantissas[k];
  return partial;
}

int64_t dotInFourPasses(std::span<const int16_t> a, std::span<const int16_t> b) {
  int32_t highHigh = 0, cross = 0, lowLow = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    int aHigh = a[k] >> 8, aLow = a[k] & 255;
    int bHigh = b[k] >> 8, bLow = b[k] & 255;
    highHigh += aHigh * bHigh;
    cross += aHigh * bLow + aLow * bHigh;
    lowLow += aLow * bLow;
  }
  return int64_t(highHigh) * 65536 + int64_t(cross) * 256 + lowLow;
}

float partialToF32(const Partial &partial) {
  if (partial.isNaN)
    return std::numeric_limits<float>::quiet_NaN();
  // Exact in f64: 38 bits, exponents within +-300.
  return f32Round(std::ldexp(static_cast<double>(partial.accumulator), partial.exponent));
}

float reducePartials(std::span<const float> partials) {
  // Entry l waits for its neighbour at level l of the tree; the bits of the
  // count say which entries wait. 64 levels are more than any span has.
  std::array<float, 64> waiting;
  size_t count = 0;
  for (float sum : partials) {
    int level = 0;
    for (; count >> level & 1; ++level)
      sum = f32Add(waiting[level], sum);
    waiting[level] = sum;
    ++count;
  }
  // Missing right neighbours are +0 and leave the left ones as they are.
  float sum = 0;
  bool any = false;
  for (int level = 0; count >> level; ++level)
    if (count >> level & 1) {
      sum = any ? f32Add(waiting[level], sum) : waiting[level];
      any = true;
    }
  return sum;
}

} // namespace dmx::blockfp
