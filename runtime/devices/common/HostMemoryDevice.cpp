//===- HostMemoryDevice.cpp - what a session keeps is host memory ---------===//
#include "HostMemoryDevice.h"
#include "HostMemory.h"

#include "runtime/bundle/Manifest.h"

#include <cstdlib>

namespace dmxrt {
namespace {

void *defaultAllocate(void *, size_t size, size_t alignment) {
  size_t rounded = (size + alignment - 1) / alignment * alignment;
  return rounded < size ? nullptr : std::aligned_alloc(alignment, rounded);
}
void defaultRelease(void *, void *memory, size_t) { std::free(memory); }

} // namespace

HostMemoryDevice::HostMemoryDevice(const DeviceKind &kind, const dmx_allocator *given)
    : kind(kind), allocator(given ? *given : dmx_allocator{nullptr, defaultAllocate, defaultRelease}) {}

Result<const TargetCode *> HostMemoryDevice::selectCode(std::span<const TargetCode> codes, std::string_view isa) const {
  std::string have;
  for (const TargetCode &code : codes) {
    if (code.target != kind.target)
      continue;
    if (isa.empty() || code.arch == isa)
      return &code;
    have += cat(have.empty() ? "" : ", ", code.arch);
  }
  if (have.empty())
    return fail(DMX_STATUS_UNSUPPORTED, "the bundle has no code for target '", kind.target,
                "'; compile the model with -t ", kind.target);
  return fail(DMX_STATUS_UNSUPPORTED, "the bundle has no ", kind.target, " code for machine '", isa,
              "'; it has: ", have);
}

Result<void *> HostMemoryDevice::allocate(uint64_t size) {
  if (size > uint64_t(1) << 46)
    return fail(DMX_STATUS_OUT_OF_MEMORY, "cannot allocate ", size, " bytes");
  return allocateHostMemory(allocator, size);
}

void HostMemoryDevice::release(void *memory, uint64_t size) { allocator.release(allocator.user, memory, size); }

void HostMemoryDevice::copy(void *destination, const void *source, uint64_t size) {
  copyHostMemory(destination, source, size);
}

} // namespace dmxrt
