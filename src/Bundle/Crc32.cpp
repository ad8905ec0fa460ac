//===- Crc32.cpp - CRC-32 of ZIP entries ----------------------------------===//
#include "WriterImpl.h"

#include <array>
#include <bit>
#include <cstring>

namespace dmxc::bundle {

static_assert(std::endian::native == std::endian::little, "bundles are written and read in place, little-endian");

namespace {
using Tables = std::array<std::array<uint32_t, 256>, 8>;

// Slicing by eight: eight bytes a step, which keeps up with the disk.
constexpr Tables makeTables() {
  Tables t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit)
      value = (value >> 1) ^ (value & 1 ? 0xEDB88320u : 0u);
    t[0][i] = value;
  }
  for (uint32_t i = 0; i < 256; ++i)
    for (size_t k = 1; k < 8; ++k)
      t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 0xFF];
  return t;
}
constexpr Tables tables = makeTables();
} // namespace

uint32_t updateCrc32(uint32_t crc, std::span<const std::byte> bytes) {
  crc = ~crc;
  const std::byte *p = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; p += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    word ^= crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k)
      crc ^= tables[7 - k][(word >> (8 * k)) & 0xFF];
  }
  for (; left; ++p, --left)
    crc = (crc >> 8) ^ tables[0][(crc ^ static_cast<uint32_t>(*p)) & 0xFF];
  return ~crc;
}

} // namespace dmxc::bundle
