//===- Mapping.h - read-only file mappings ----------------------*- C++ -*-===//
#pragma once

#include "Error.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace dmxrt {

/// A byte range of a regular file, mapped read-only; unmapped with its owner.
class Mapping {
public:
  static Result<std::shared_ptr<const Mapping>> openFile(const std::string &path);
  /// `size` 0 maps up to the end. The descriptor stays the caller's. `what`
  /// names the file in errors.
  static Result<std::shared_ptr<const Mapping>> openDescriptor(int fd, uint64_t offset, uint64_t size,
                                                               const std::string &what);
  ~Mapping();
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;

  std::span<const std::byte> bytes() const { return view; }

private:
  Mapping() = default;
  void *base = nullptr; // page-aligned start of the mapping
  size_t length = 0;
  std::span<const std::byte> view; // the asked-for range inside it
};

/// True when `path` names a directory.
bool isDirectory(const std::string &path);

} // namespace dmxrt
