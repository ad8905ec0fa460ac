//===- Arithmetic.cpp - numbers that a check by luck never meets ----------===//
#include "Arithmetic.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace dmxfuzz {
namespace {

/// Of an odd number, modulo 2^64 (Newton's iteration doubles the right bits).
uint64_t inverse(uint64_t odd) {
  uint64_t x = odd;
  for (int i = 0; i < 6; ++i)
    x *= 2 - odd * x;
  return x;
}

/// Three factors below 2^31, of which the first two are at most 2^36 together, found by search; their products modulo
/// 2^64 are 1024, 1296 and 3720.
constexpr uint64_t kTriples[][3] = {
    {279040, 246241, 268468226}, {632272, 73371, 1192923487}, {446968, 128603, 641833213}};

} // namespace

uint64_t Arithmetic::edge() {
  static constexpr unsigned widths[] = {0, 1, 3, 4, 7, 8, 12, 15, 16, 20, 24, 28, 31, 32, 33, 36, 40, 47, 48, 62, 63};
  uint64_t power = uint64_t(1) << widths[below(std::size(widths))], beside = below(3);
  switch (below(8)) {
  case 0:
    return 0;
  case 1:
    return 0 - 1 - beside;
  case 2:
    return below(64);
  case 3:
    return 0 - power;
  case 4:
    return random();
  default:
    return power + beside - 1;
  }
}

uint64_t Arithmetic::nearEnd(uint64_t room, uint64_t bytes) {
  static constexpr uint64_t beside[] = {0, 1, 4, 8, 16, 32, 64, 112, 128, 1024, 4096};
  uint64_t by = beside[below(std::size(beside))], end = room - bytes;
  return oneIn(3) ? end : oneIn(2) ? end + by : end - by;
}

uint64_t Arithmetic::wrappingWith(uint64_t count) {
  if (count == 0)
    return edge();
  auto zeros = static_cast<unsigned>(std::countr_zero(count));
  if (oneIn(4)) // to nothing
    return uint64_t(1) << (64 - std::max(zeros, 1u));
  uint64_t mask = ~uint64_t(0) >> zeros;
  return (1 + below(64)) * inverse(count >> zeros) & mask;
}

std::vector<uint64_t> Arithmetic::wrapping(size_t count, unsigned bits) {
  std::vector<uint64_t> factors(count, 1);
  if (bits < 62 && count >= 3 && bits >= 31 && !oneIn(3)) {
    const auto &triple = kTriples[below(std::size(kTriples))];
    size_t first = below(count - 2);
    std::copy(std::begin(triple), std::end(triple), factors.begin() + static_cast<ptrdiff_t>(first));
  } else if (bits < 62) { // powers of two whose exponents are 64 together, as far as they may be
    unsigned left = 64;
    for (size_t i = 0; i < count; ++i) {
      unsigned most = std::min(bits - 1, left),
               least = count - i > 1 ? std::min(most, left / unsigned(count - i)) : most;
      unsigned exponent = least + static_cast<unsigned>(below(most - least + 1));
      factors[i] = (uint64_t(1) << exponent) + below(2);
      left -= exponent;
    }
  } else {
    uint64_t product = 1;
    for (size_t i = 0; i + 1 < count; ++i)
      product *= factors[i] = 1 + 2 * below(uint64_t(1) << (1 + below(24)));
    uint64_t last = wrappingWith(product);
    for (int i = 0; i < 64 && last >> bits; ++i)
      last = wrappingWith(product);
    factors[count - 1] = last;
  }
  if (oneIn(2))
    std::shuffle(factors.begin(), factors.end(), random);
  return factors;
}

uint64_t Arithmetic::stride(uint64_t unit) {
  switch (below(6)) {
  case 0:
    return 0;
  case 1:
    return 0 - unit;
  case 2:
    return uint64_t(0) - 1;
  case 3:
    return unit * (1 + 2 * below(8)); // odd multiples
  case 4:
    return unit * below(1 << 20);
  default:
    return edge();
  }
}

} // namespace dmxfuzz
