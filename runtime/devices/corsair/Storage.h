//===- Storage.h - the memories of a simulated card -------------*- C++ -*-===//
#pragma once

#include "Shadow.h"
#include "runtime/Error.h"
#include "schemas/corsair/Machine.h"

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace dmxrt::corsair {

/// Bytes and shadows of every unit of every memory. A memory is one reservation
/// of address space; the host commits pages when they are written.
class Storage {
public:
  Storage() = default;
  ~Storage();
  Storage(const Storage &) = delete;
  Storage &operator=(const Storage &) = delete;

  /// `bytes`: of one unit of each memory, at most the machine's size.
  Status reserve(const isa::Machine &machine, const std::array<uint64_t, isa::kMemories> &bytes);

  uint64_t size(Memory memory) const { return spaces[static_cast<int>(memory)].size; }
  std::byte *data(Memory memory, uint32_t unit) const {
    const Space &space = spaces[static_cast<int>(memory)];
    return space.base + uint64_t(unit) * space.stride;
  }
  Shadow &shadow(Memory memory, uint32_t unit) { return spaces[static_cast<int>(memory)].shadows[unit]; }
  /// Holds the lock of a unit that several quads reach; of the others there is none.
  std::unique_lock<std::mutex> lock(Memory memory, uint32_t unit) {
    Space &space = spaces[static_cast<int>(memory)];
    return space.locks ? std::unique_lock(space.locks[unit]) : std::unique_lock<std::mutex>();
  }
  /// Undefined contents of a whole memory, e.g. the buffers of slices between dispatches.
  void forget(Memory memory);

private:
  struct Space {
    std::byte *base = nullptr;
    uint64_t size = 0, stride = 0, reserved = 0; ///< bytes: of a unit, from unit to unit, of all
    std::vector<Shadow> shadows;
    std::unique_ptr<std::mutex[]> locks;
  };
  std::array<Space, isa::kMemories> spaces;
};

} // namespace dmxrt::corsair
