//===- Sha256.h - SHA-256 and CRC-32 ----------------------------*- C++ -*-===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dmxrt {

/// SHA-256 (FIPS 180-4) as 64 lower-case hex digits. Uses the CPU's SHA
/// instructions where they exist: verifying a model is bound by this.
std::string sha256Hex(std::span<const std::byte> bytes);
/// The same as CPUs without them compute it; for tests.
std::string sha256HexPortable(std::span<const std::byte> bytes);

/// CRC-32 as in ZIP (polynomial 0xEDB88320).
uint32_t crc32(std::span<const std::byte> bytes);

} // namespace dmxrt
