//===- ElfImage.h - loads a kernel object -----------------------*- C++ -*-===//
//
// The dynamic linker is not used: it runs constructors, resolves symbols
// against the process and needs a file. A kernel object needs none of that
// (dmx_kernel.h), so everything beyond it is refused.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmx/dmx_kernel.h"
#include "runtime/bundle/Contract.h"
#include "runtime/devices/Device.h"

#include <map>

namespace dmxrt {

/// A kernel object copied to its own pages, never writable and executable at
/// once. Immutable; the code lives as long as the object.
class ElfImage final : public CodeImage {
public:
  /// Checks and loads an ELF64 x86-64 shared object and reads its kernel table.
  static Result<std::shared_ptr<const CodeImage>> load(std::span<const std::byte> bytes);
  /// Loads it without making any of it executable. Objects before version 3, whose table only a call gives, are
  /// DMX_STATUS_UNSUPPORTED.
  static Result<std::shared_ptr<const CodeImage>> inspect(std::span<const std::byte> bytes);
  /// Everything `load` checks short of calling into the object, which before version 3 alone has the table.
  static Status check(std::span<const std::byte> bytes, int32_t &contracts);
  ~ElfImage() override;
  ElfImage(const ElfImage &) = delete;
  ElfImage &operator=(const ElfImage &) = delete;

  /// A dmx_kernel_fn as a data pointer.
  const void *findKernel(std::string_view name) const override;
  /// The level that it says it was built for; "" where it says none.
  std::string_view level() const { return isa; }
  const ContractTable *contracts() const override { return version >= 3 ? &promises : nullptr; }

private:
  ElfImage() = default;
  std::byte *base = nullptr;
  uint64_t span = 0;
  uint32_t version = 0; // of the table
  std::string_view isa;
  std::map<std::string_view, dmx_kernel_fn> kernels;
  ContractTable promises;
  friend class ElfLoader;
};

} // namespace dmxrt
