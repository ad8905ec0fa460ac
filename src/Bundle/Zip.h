//===- Zip.h - the parts of the ZIP format that a bundle uses ---*- C++ -*-===//
//
// Private to the Bundle room. Numbers are those of PKWARE's APPNOTE 6.3.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dmxc::bundle::zip {

inline constexpr uint32_t localSignature = 0x04034b50;
inline constexpr uint32_t centralSignature = 0x02014b50;
inline constexpr uint32_t end64Signature = 0x06064b50;
inline constexpr uint32_t locator64Signature = 0x07064b50;
inline constexpr uint32_t endSignature = 0x06054b50;

inline constexpr uint64_t localSize = 30, centralSize = 46, end64Size = 56, locator64Size = 20, endSize = 22;

inline constexpr uint16_t zip64Extra = 0x0001;
/// Our padding field ("DM"): zero bytes that align the data.
inline constexpr uint16_t paddingExtra = 0x4D44;
inline constexpr uint16_t version45 = 45;
inline constexpr uint16_t dosEpoch = 0x0021; // 1980-01-01

inline constexpr std::string_view commentPrefix = "dmx-manifest-sha256:";

/// Little-endian fields, appended.
struct Fields {
  std::string bytes;
  Fields &u16(uint16_t v) { return raw(v, 2); }
  Fields &u32(uint32_t v) { return raw(v, 4); }
  Fields &u64(uint64_t v) { return raw(v, 8); }
  Fields &text(std::string_view v) {
    bytes += v;
    return *this;
  }

private:
  Fields &raw(uint64_t v, int count) {
    for (int i = 0; i < count; ++i)
      bytes += static_cast<char>(v >> (8 * i));
    return *this;
  }
};

} // namespace dmxc::bundle::zip
