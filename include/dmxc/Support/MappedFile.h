//===- MappedFile.h - a read-only file mapping ------------------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Result.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace dmxc {

/// A whole regular file mapped read-only; unmapped with the last owner.
/// Immutable and thread-safe.
class MappedFile {
public:
  /// Refuses directories and special files; an empty file maps to no bytes.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  std::span<const std::byte> bytes() const { return {base, size}; }
  const std::string &path() const { return name; }

private:
  MappedFile() = default;
  const std::byte *base = nullptr;
  size_t size = 0;
  std::string name;
};

} // namespace dmxc
