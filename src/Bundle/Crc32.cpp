//===- Crc32.cpp - CRC-32 of ZIP entries ----------------------------------===//
#include "WriterImpl.h"

#include <zlib.h>

#include <bit>

namespace dmxc::bundle {

static_assert(std::endian::native == std::endian::little, "bundles are written and read in place, little-endian");

uint32_t updateCrc32(uint32_t crc, std::span<const std::byte> bytes) {
  if (bytes.empty()) // where no address means something else
    return crc;
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
}

} // namespace dmxc::bundle
