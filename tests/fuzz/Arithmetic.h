//===- Arithmetic.h - numbers that a check by luck never meets --*- C++ -*-===//
//
// What bounds are made of: products and sums that come back as small numbers where they wrap, the ends of memories,
// strides of 0 and of -1.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace dmxfuzz {

class Arithmetic {
public:
  explicit Arithmetic(uint64_t seed) : random(seed) {}

  uint64_t below(uint64_t bound) { return random() % bound; }
  bool oneIn(uint64_t count) { return below(count) == 0; }
  template <typename List> auto &pick(List &list) { return list[below(list.size())]; }

  /// At an edge of what numbers of some width hold, or of what is usual: 0, -1, 1, powers of two and beside them.
  uint64_t edge();
  /// One that ends with `room` where `bytes` follow it, or a little before or behind that.
  uint64_t nearEnd(uint64_t room, uint64_t bytes = 0);
  /// `count` factors below 2^bits, 2 at least, whose product is small modulo 2^64, or 0; edges where there are none.
  std::vector<uint64_t> wrapping(size_t count, unsigned bits);
  /// What a count has to be multiplied by for the product to be small modulo 2^64.
  uint64_t wrappingWith(uint64_t count);
  /// A step from one thing to the next, of `unit` bytes at least where it is sound.
  uint64_t stride(uint64_t unit);

  std::mt19937_64 random;
};

} // namespace dmxfuzz
