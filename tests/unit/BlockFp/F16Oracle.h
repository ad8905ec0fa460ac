//===- F16Oracle.h - f16 by search ------------------------------*- C++ -*-===//
//
// The oracle rounds by search: the f16 numbers in order, and the midpoint
// between two neighbours. Nothing of it is shared with the library.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "schemas/blockfp/ScalarNumbers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace dmx::blockfp::test {

using Real = long double;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The positive normal f16 numbers in order; index i is pattern 0x400 + i.
inline const std::vector<Real> &normals() {
  static const std::vector<Real> all = [] {
    std::vector<Real> out;
    for (int bits = 0x400; bits < 0x7c00; ++bits)
      out.push_back(std::ldexp(Real(1024 + (bits & 1023)), (bits >> 10) - 25));
    return out;
  }();
  return all;
}

/// Flush, round to nearest even, overflow.
inline uint16_t oracle(Real value, Overflow overflow) {
  if (std::isnan(value))
    return 0x7e00;
  uint16_t sign = value < 0 ? 0x8000 : 0;
  Real magnitude = std::fabs(value);
  const std::vector<Real> &all = normals();
  if (magnitude < all[0])
    return 0;
  if (magnitude >= 65520) // the midpoint above the largest number, whose code is odd
    return sign | (overflow == Overflow::Saturate ? 0x7bff : 0x7c00);
  size_t above = std::upper_bound(all.begin(), all.end(), magnitude) - all.begin();
  size_t index = above - 1;
  if (above < all.size()) {
    Real middle = (all[index] + all[above]) / 2; // exact
    if (magnitude > middle || (magnitude == middle && index % 2 == 1))
      index = above;
  }
  return sign | static_cast<uint16_t>(0x400 + index);
}

/// An operand as the device reads it.
inline Real read(uint16_t bits) {
  Real sign = bits & 0x8000 ? -1 : 1;
  int magnitude = bits & 0x7fff;
  if (magnitude < 0x400)
    return 0;
  if (magnitude > 0x7c00)
    return std::numeric_limits<Real>::quiet_NaN();
  return sign * (magnitude == 0x7c00 ? Real(kInfinity) : normals()[magnitude - 0x400]);
}

constexpr Overflow kModes[] = {Overflow::Saturate, Overflow::Infinity};

} // namespace dmx::blockfp::test
