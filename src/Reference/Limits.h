//===- Limits.h - ranges of element types, and means ------------*- C++ -*-===//
#pragma once

#include "dmxc/Support/DType.h"

#include <concepts>
#include <cstdint>
#include <limits>

namespace dmxc::reference {

/// The largest value of an element type, kept in the accumulator A of its native type; infinity for floats. The
/// declared type matters: i4 is evaluated as i8 but ends at 7.
template <typename A> A highestOf(DType type) {
  if constexpr (std::floating_point<A>) {
    return std::numeric_limits<A>::infinity();
  } else {
    if (type == DType::Bool)
      return 1;
    unsigned bits = dtypeBits(type) - (isSignedInt(type) ? 1 : 0);
    return static_cast<A>(~uint64_t(0) >> (64 - bits));
  }
}
template <typename A> A lowestOf(DType type) {
  if constexpr (std::floating_point<A>)
    return -std::numeric_limits<A>::infinity();
  else
    return isSignedInt(type) ? static_cast<A>(-highestOf<int64_t>(type) - 1) : A{};
}

/// sum / count; of nothing NaN for floats and 0 for integers, which truncate.
template <typename A> A meanOf(A sum, int64_t count) {
  if (count == 0)
    return std::floating_point<A> ? std::numeric_limits<A>::quiet_NaN() : A{};
  return sum / static_cast<A>(count);
}

} // namespace dmxc::reference
