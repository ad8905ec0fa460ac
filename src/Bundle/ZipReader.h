//===- ZipReader.h - the archive of a bundle --------------------*- C++ -*-===//
//
// Private to the Bundle room.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Bundle/Reader.h"

namespace dmxc::bundle {

struct ZipContents {
  std::vector<BundleEntry> entries; ///< without the signature
  std::optional<BundleEntry> signature;
  uint64_t entriesEnd = 0;            ///< where the data of the last of `entries` ends
  std::span<const std::byte> records; ///< the central records of `entries`
  std::string comment;
};

/// Reads the archive by the exact rules of FORMAT.md ("Archive"): any byte that
/// is neither data nor as the rules fix it is an error. Errors are
/// ErrorKind::Model.
Result<ZipContents> readZip(std::span<const std::byte> file);

} // namespace dmxc::bundle
