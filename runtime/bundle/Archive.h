//===- Archive.h - the entries of a bundle ----------------------*- C++ -*-===//
//
// Reads the archive layer of schemas/FORMAT.md: a stored ZIP64 in one piece of
// memory, or the same tree in a directory. Nothing is extracted.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Mapping.h"
#include "runtime/Error.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dmxrt {

/// The entry (in a directory: the file) with a bundle's signature. The manifest does not list it: it is of the
/// manifest.
inline constexpr std::string_view kSignatureName = "manifest.sig";

/// Immutable once open; entries live as long as the archive.
class Archive {
public:
  struct Entry {
    std::span<const std::byte> data;
    uint32_t crc = 0;    // 0 in a directory, where nothing records one
    bool isHeld = false; // in private memory
  };

  /// A bundle file or directory, its entries got as `load` says. A directory's entries, manifest.json
  /// and the signature excepted, become visible through `load`.
  static Result<Archive> openPath(const std::string &path, Load load);
  /// A bundle in memory; `owner` keeps it alive (may be null). The start must
  /// be 64-byte aligned, or else the entries would not be. `load` says whose memory it
  /// is: Copy for what nobody else writes.
  static Result<Archive> openMemory(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                    Load load = Load::Map);

  /// Makes the entry `name` visible and checks its size. In a file all entries
  /// are visible from the start.
  Status load(const std::string &name, uint64_t size);
  /// Moves visible entries into private memory, where no one changes them between a check and a use.
  Status hold(std::span<const std::string_view> names);

  /// Null when there is no such entry.
  const Entry *find(std::string_view name) const;
  const std::map<std::string, Entry, std::less<>> &entries() const { return table; }
  /// The manifest's recorded checksum, 64 hex digits.
  const std::string &manifestSha256() const { return manifestHash; }
  bool isArchiveFile() const { return directory.empty(); }

private:
  std::string directory; // path of a directory bundle, else empty
  Load mode = Load::Map;
  std::string manifestHash;
  std::map<std::string, Entry, std::less<>> table;
  std::vector<std::shared_ptr<const void>> owners;

  Status openDirectory(const std::string &path);
  Status addFile(const std::string &name, Load load);
  Status readZip(std::span<const std::byte> bytes);
};

/// Whether `name` is a relative path of plain parts, as the format demands.
bool isEntryName(std::string_view name);

} // namespace dmxrt
