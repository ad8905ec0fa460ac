//===- Temporary.h - output files with a temporary name ---------*- C++ -*-===//
//
// Private to the Bundle room.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Result.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dmxc::bundle {

/// Remembers a path for removal by removeTemporariesFromSignal. Directories
/// must be registered before what they hold.
class TemporaryName {
public:
  explicit TemporaryName(std::string path);
  ~TemporaryName() { release(); }
  TemporaryName(const TemporaryName &) = delete;
  TemporaryName &operator=(const TemporaryName &) = delete;
  /// The path is no longer a temporary.
  void release();

private:
  struct Node *node;
};

/// A file being written through a buffer. Errors name the path and say how
/// much room was needed and left when the disk is full.
class OutputFile {
public:
  /// Creates `path` exclusively.
  static Result<std::unique_ptr<OutputFile>> create(const std::string &path);
  /// Closes and, unless keep() was called, removes it.
  ~OutputFile();

  Status write(std::span<const std::byte> bytes);
  /// Overwrites bytes that were written before.
  Status writeAt(uint64_t offset, std::span<const std::byte> bytes);
  uint64_t position() const { return written + buffer.size(); }
  Status close();
  /// The file has its final name or belongs to somebody else now.
  void keep();

private:
  explicit OutputFile(std::string path) : path(std::move(path)) {}
  Status flush();
  Status writeRaw(const std::byte *data, size_t size, uint64_t offset);
  Error failure(int reason) const;

  std::string path;
  std::unique_ptr<TemporaryName> temporary;
  std::vector<std::byte> buffer;
  uint64_t written = 0;
  int fd = -1;
  bool kept = false;
};

/// A name beside `path` that nobody uses: "path.tmp-<pid>-<n>".
std::string temporaryPath(const std::string &path, unsigned attempt);

} // namespace dmxc::bundle
