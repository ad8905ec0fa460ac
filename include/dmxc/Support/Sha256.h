//===- Sha256.h - SHA-256 (FIPS 180-4) --------------------------*- C++ -*-===//
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dmxc {

/// Streaming SHA-256. Not thread-safe; one object a stream.
class Sha256 {
public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  /// Ends the stream; 64 lower-case hex digits.
  std::string finishHex();

  static std::string hexOf(std::span<const std::byte> bytes);

private:
  void blocks(const std::byte *data, size_t count);
  std::array<uint32_t, 8> state;
  std::array<std::byte, 64> pending;
  uint64_t length = 0;
};

} // namespace dmxc
