//===- TestSupport.h - inputs and checksums of the numerics tests -*- C++ -*-===//
#pragma once

#include "schemas/blockfp/DotProduct.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

namespace dmx::blockfp::test {

inline float fromBits(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t toBits(float value) { return std::bit_cast<uint32_t>(value); }

/// CRC-32 as in ZIP, of the values as they lie in memory.
template <typename T> uint32_t crcOf(const std::vector<T> &values) {
  uint32_t crc = 0xffffffff;
  for (std::byte byte : std::as_bytes(std::span(values))) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc;
}

/// The inputs of V17: rows of different magnitudes and a few outliers.
inline std::vector<float> goldenInput(uint32_t seed, int count, int row) {
  uint32_t state = seed;
  auto next = [&] { return state = state * 1664525 + 1013904223; };
  std::vector<float> values;
  for (int i = 0; i < count; ++i) {
    double v = (int32_t(next() >> 8) - (1 << 23)) / double(1 << 23);
    v = std::ldexp(v, i / row % 5 - 2);
    if (next() % 97 == 0)
      v *= 16;
    values.push_back(static_cast<float>(v));
  }
  return values;
}

/// Values of many magnitudes around 2^exponent.
inline std::vector<float> randomMatrix(std::mt19937_64 &random, size_t count, int exponent = 0, int spread = 4) {
  std::vector<float> values(count);
  for (float &value : values) {
    double unit = (int64_t(random() >> 11) - (int64_t(1) << 52)) * 0x1p-52;
    value = static_cast<float>(std::ldexp(unit, exponent + int(random() % (2 * spread + 1)) - spread));
  }
  return values;
}

inline std::vector<float> transposed(const std::vector<float> &values, int64_t rows, int64_t cols) {
  std::vector<float> out(values.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      out[j * rows + i] = values[i * cols + j];
  return out;
}

/// A packed tensor.
struct Packed {
  TensorLayout layout;
  std::vector<std::byte> bytes;

  const std::byte *tile(int64_t i, int64_t j) const { return bytes.data() + layout.tileOffset(i, j); }
};

/// Packs a dense matrix; the format is by name. Aborts on an error.
Packed pack(const char *format, Orientation orientation, const std::vector<float> &values, int64_t rows, int64_t cols,
            const TensorRounding &rounding = {});

/// A[M,K] (R) times W[K,N] (C), both of one tile column or more, in plans of
/// `tiles` tiles accumulated: M x N values of BFP32_1.
std::vector<float> matmul(const Packed &a, const Packed &w, int tiles, SimdLevel level = bestSimdLevel());
/// The same by the single-block functions: the definition.
std::vector<float> matmulByDefinition(const Packed &a, const Packed &w, int tiles);

std::vector<uint16_t> toF16(const std::vector<float> &values);

} // namespace dmx::blockfp::test
