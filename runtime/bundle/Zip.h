//===- Zip.h - stored ZIP64 archives ----------------------------*- C++ -*-===//
#pragma once

#include "runtime/Error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace dmxrt {

struct ZipEntry {
  std::string_view name;
  std::span<const std::byte> data;
  uint32_t crc;
};

struct ZipContents {
  std::vector<ZipEntry> entries; // in file order
  std::string_view comment;
};

/// Reads the directory of a stored ZIP or ZIP64 as schemas/FORMAT.md narrows
/// it: every byte outside the entries' data has one allowed value, so damage
/// there is always found. Views point into `bytes`.
Result<ZipContents> readStoredZip(std::span<const std::byte> bytes);

} // namespace dmxrt
