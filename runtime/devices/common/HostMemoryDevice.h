//===- HostMemoryDevice.h - what a session keeps is host memory -*- C++ -*-===//
//
// What devices have in common that have one code for all of their kind, chosen by the machine's name, and share the
// host's memory with the session, whatever they keep beside it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/devices/Device.h"

namespace dmxrt {

class HostMemoryDevice : public Device {
public:
  Result<const TargetCode *> selectCode(std::span<const TargetCode> codes, std::string_view isa) const override;
  Result<std::shared_ptr<const CodeImage>> loadCode(std::span<const std::byte> bytes) override {
    return kind.inspect(bytes);
  }
  Result<void *> allocate(uint64_t size) override;
  void release(void *memory, uint64_t size) override;
  void copy(void *destination, const void *source, uint64_t size) override;
  uint32_t threads() const override { return 1; }
  uint64_t scratchBytes() const override { return 0; }
  uint32_t sliceCount(uint32_t) const override { return 1; }

protected:
  HostMemoryDevice(const DeviceKind &kind, const dmx_allocator *given);

private:
  const DeviceKind &kind;
  dmx_allocator allocator;
};

} // namespace dmxrt
