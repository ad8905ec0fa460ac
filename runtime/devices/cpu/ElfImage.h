//===- ElfImage.h - loads a kernel object -----------------------*- C++ -*-===//
//
// The dynamic linker is not used: it runs constructors, resolves symbols
// against the process and needs a file. A kernel object needs none of that
// (dmx_kernel.h), so everything beyond it is refused.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../Device.h"
#include "dmx/dmx_kernel.h"

#include <map>

namespace dmxrt {

/// A kernel object copied to its own pages, never writable and executable at
/// once. Immutable; the code lives as long as the object.
class ElfImage final : public CodeImage {
public:
  /// Checks and loads an ELF64 x86-64 shared object and reads its kernel table.
  static Result<std::shared_ptr<const CodeImage>> load(std::span<const std::byte> bytes);
  /// Everything `load` checks short of calling into the object.
  static Status check(std::span<const std::byte> bytes);
  ~ElfImage() override;
  ElfImage(const ElfImage &) = delete;
  ElfImage &operator=(const ElfImage &) = delete;

  /// A dmx_kernel_fn as a data pointer.
  const void *findKernel(std::string_view name) const override;

private:
  ElfImage() = default;
  std::byte *base = nullptr;
  uint64_t span = 0;
  std::map<std::string_view, dmx_kernel_fn> kernels;

  using Range = std::pair<uint64_t, uint64_t>; // addresses, half-open
  /// Calls the query function and checks that what it returns lies inside.
  Status readTable(uint64_t query, std::span<const Range> executable, std::span<const Range> readable);
  friend class ElfLoader;
};

} // namespace dmxrt
