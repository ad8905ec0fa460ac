//===- Size.h - sizes that cannot wrap --------------------------*- C++ -*-===//
//
// What readers of bytes that somebody else wrote compute with: counts, bytes, places from a beginning on. A sum or a
// product that leaves 63 bits does not come back as a small number: it is too large from then on, whatever it is added
// to or multiplied by, and so is what was negative. One comparison with a bound at the end refuses it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

namespace dmx {

class Size {
public:
  static constexpr uint64_t kMost = INT64_MAX, kTooLarge = UINT64_MAX;

  constexpr Size() = default;
  template <std::integral T>
  constexpr Size(T from)
      : number(static_cast<uint64_t>(from) > kMost || from < T(0) ? kTooLarge : static_cast<uint64_t>(from)) {}

  constexpr Size &operator+=(Size other) {
    // Both fit 63 bits where they are known, so that 64 hold their sum.
    number = isKnown() && other.isKnown() && number + other.number <= kMost ? number + other.number : kTooLarge;
    return *this;
  }
  constexpr Size &operator*=(Size other) {
    uint64_t product = 0;
    bool fits = isKnown() && other.isKnown() && !__builtin_mul_overflow(number, other.number, &product);
    number = fits && product <= kMost ? product : kTooLarge;
    return *this;
  }
  friend constexpr Size operator+(Size a, Size b) { return a += b; }
  friend constexpr Size operator*(Size a, Size b) { return a *= b; }
  friend constexpr bool operator==(Size, Size) = default;

  /// Whether it is a number.
  constexpr bool isKnown() const { return number != kTooLarge; }
  /// Whether it is one that is at most `most`, which is not too large itself.
  constexpr bool fits(Size most) const { return isKnown() && most.isKnown() && number <= most.number; }
  /// kTooLarge, which is above each bound, where it is none.
  constexpr uint64_t value() const { return number; }
  /// For people.
  std::string text() const { return isKnown() ? std::to_string(number) : "more than 2^63"; }

private:
  uint64_t number = 0;
};

/// Whether `count` from `at` on lie within `room`.
constexpr bool liesWithin(Size at, Size count, Size room) { return (at + count).fits(room); }

} // namespace dmx
