//===- ZipFormat.h - the parts of the ZIP format that we use ----*- C++ -*-===//
//
// What the archives of bundles and those of PyTorch have in common. Numbers are those of PKWARE's APPNOTE 6.3.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace dmxc::zip {

inline constexpr uint32_t localSignature = 0x04034b50;
inline constexpr uint32_t centralSignature = 0x02014b50;
inline constexpr uint32_t end64Signature = 0x06064b50;
inline constexpr uint32_t locator64Signature = 0x07064b50;
inline constexpr uint32_t endSignature = 0x06054b50;

inline constexpr uint64_t localSize = 30, centralSize = 46, end64Size = 56, locator64Size = 20, endSize = 22;

inline constexpr uint16_t zip64Extra = 0x0001;

/// Bounded little-endian reads; outside the file they give zero, and every caller compares against a non-zero
/// signature first.
class View {
public:
  explicit View(std::span<const std::byte> bytes) : bytes(bytes) {}
  uint64_t size() const { return bytes.size(); }
  bool has(uint64_t at, uint64_t count) const { return at <= bytes.size() && count <= bytes.size() - at; }
  uint16_t u16(uint64_t at) const { return read<uint16_t>(at); }
  uint32_t u32(uint64_t at) const { return read<uint32_t>(at); }
  uint64_t u64(uint64_t at) const { return read<uint64_t>(at); }
  std::string text(uint64_t at, uint64_t count) const {
    if (!has(at, count))
      return {};
    return {reinterpret_cast<const char *>(bytes.data()) + at, count};
  }
  std::span<const std::byte> slice(uint64_t at, uint64_t count) const { return bytes.subspan(at, count); }

private:
  template <typename T> T read(uint64_t at) const {
    T value{};
    if (has(at, sizeof(T)))
      std::memcpy(&value, bytes.data() + at, sizeof(T));
    return value;
  }
  std::span<const std::byte> bytes;
};

} // namespace dmxc::zip
