//===- HostMemory.h - memory of a session from its allocator ----*- C++ -*-===//
#pragma once

#include "runtime/devices/Device.h"

#include <cstring>

namespace dmxrt {

/// `size` bytes, 64-byte aligned, of the caller's or the device's own allocator; an error where it has none or gives
/// memory that is not aligned.
inline Result<void *> allocateHostMemory(const dmx_allocator &allocator, uint64_t size) {
  void *memory = allocator.allocate(allocator.user, size, 64);
  if (!memory)
    return fail(DMX_STATUS_OUT_OF_MEMORY, "cannot allocate ", size, " bytes");
  if (reinterpret_cast<uintptr_t>(memory) % 64) {
    allocator.release(allocator.user, memory, size);
    return fail(DMX_STATUS_INVALID_ARGUMENT, "the caller's allocator returned memory that is not 64-byte aligned");
  }
  return memory;
}

inline void copyHostMemory(void *destination, const void *source, uint64_t size) {
  if (size)
    std::memcpy(destination, source, size);
}

} // namespace dmxrt
