//===- Archive.h - the records of a PyTorch archive -------------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace dmxc::torchfe {

/// One record: its bytes and where they lie in the model file.
struct Record {
  std::span<const std::byte> bytes;
  uint64_t offset = 0;

  std::string_view text() const { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }
};

/// The directory of a zip archive as torch writes it: stored records, read through the central directory alone, for
/// local headers may lack sizes. Names are those below the common root folder, whatever it is called. The bytes stay in
/// the mapped file.
class Archive {
public:
  /// `bytes` begin at `offset` of the model file (an archive may be a record of another). Every name, bound and
  /// checksum is checked; an error says which record and why.
  static Result<Archive> read(std::span<const std::byte> bytes, uint64_t offset = 0);

  /// Null when there is no such record.
  const Record *find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  const std::map<std::string, Record, std::less<>> &records() const { return byName; }

private:
  std::map<std::string, Record, std::less<>> byName;
};

} // namespace dmxc::torchfe
