//===- Zip.h - the parts of the ZIP format that a bundle uses ---*- C++ -*-===//
//
// Private to the Bundle room.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/ZipFormat.h"

#include <string_view>

namespace dmxc::bundle::zip {

using namespace dmxc::zip;

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
