//===- Crc32.h - the CRC-32 of ZIP and PNG ----------------------*- C++ -*-===//
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace dmx::corsair {

/// CRC-32 (polynomial 0xEDB88320, reflected).
inline uint32_t crc32(std::span<const uint8_t> bytes) {
  static constexpr auto kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
        value = value >> 1 ^ (value & 1 ? 0xEDB88320u : 0);
      table[i] = value;
    }
    return table;
  }();
  uint32_t crc = ~0u;
  for (uint8_t byte : bytes)
    crc = crc >> 8 ^ kTable[(crc ^ byte) & 255];
  return ~crc;
}

} // namespace dmx::corsair
