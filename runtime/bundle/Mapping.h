//===- Mapping.h - bytes of a file, mapped or copied ------------*- C++ -*-===//
#pragma once

#include "runtime/Error.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace dmxrt {

/// How bytes come into memory.
enum class Load {
  Map, // pages of the file, which follow what happens to it
  Copy // private memory, read once
};

/// A read-only range of bytes, 64-byte aligned where it is not a part of a file; released with its owner.
class Mapping {
public:
  static Result<std::shared_ptr<const Mapping>> openFile(const std::string &path, Load load);
  /// `size` 0: up to the end. The descriptor stays the caller's. `what`
  /// names the file in errors.
  static Result<std::shared_ptr<const Mapping>> openDescriptor(int fd, uint64_t offset, uint64_t size, Load load,
                                                               const std::string &what);
  /// A private copy of bytes that may change afterwards. `what` names them.
  static Result<std::shared_ptr<const Mapping>> copyOf(std::span<const std::byte> bytes, std::string_view what);
  /// One private copy of several such pieces: each begins where the one before it ends, rounded up by padded().
  static Result<std::shared_ptr<const Mapping>> copyOf(std::span<const std::span<const std::byte>> pieces,
                                                       std::string_view what);
  /// Entries of a bundle begin at multiples of 64 bytes.
  static constexpr uint64_t padded(uint64_t size) { return (size + 63) / 64 * 64; }
  ~Mapping();
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;

  std::span<const std::byte> bytes() const { return view; }

private:
  Mapping() = default;
  Result<std::byte *> reserve(uint64_t size, std::string_view what);
  void protect();
  Status readFrom(int fd, uint64_t offset, const std::string &what);
  void *base = nullptr; // start of the mapping, or of memory from the heap
  size_t length = 0;
  bool isHeap = false;
  std::span<const std::byte> view; // the asked-for range inside it
};

/// True when `path` names a directory.
bool isDirectory(const std::string &path);
/// True when there is something of that name.
bool fileExists(const std::string &path);

} // namespace dmxrt
