//===- Storage.cpp - the memories of a simulated card ---------------------===//

#include "Storage.h"

#include <sys/mman.h>

namespace dmxrt::corsair {

Storage::~Storage() {
  for (Space &space : spaces)
    if (space.base)
      munmap(space.base, space.reserved);
}

Status Storage::reserve(const isa::Machine &machine, const std::array<uint64_t, isa::kMemories> &bytes) {
  for (int i = 0; i < isa::kMemories; ++i) {
    auto memory = static_cast<Memory>(i);
    Space &space = spaces[i];
    auto units = static_cast<uint64_t>(machine.unitCount(memory));
    space.size = bytes[i];
    space.stride = (bytes[i] + 4095) / 4096 * 4096;
    space.reserved = space.stride * units;
    space.shadows.resize(units);
    for (Shadow &shadow : space.shadows)
      shadow.resize(space.size);
    if (memory == Memory::DDR || memory == Memory::GM)
      space.locks = std::make_unique<std::mutex[]>(units);
    if (!space.reserved)
      continue;
    void *base =
        mmap(nullptr, space.reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
      return fail(DMX_STATUS_OUT_OF_MEMORY, "cannot reserve ", space.reserved, " bytes for the simulated ",
                  isa::nameOf(memory));
    space.base = static_cast<std::byte *>(base);
  }
  return {};
}

void Storage::forget(Memory memory) {
  for (Shadow &shadow : spaces[static_cast<int>(memory)].shadows)
    shadow.forget();
}

} // namespace dmxrt::corsair
