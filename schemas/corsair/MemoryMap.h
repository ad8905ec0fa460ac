//===- MemoryMap.h - what lies where in a kernel's memories -----*- C++ -*-===//
//
// An image says where its arguments lie; what its code writes says the rest:
// what `init` leaves in GM and ST, and the temporaries of `main` with the steps
// between their first write and their last read.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "verify/Access.h"

namespace dmx::corsair {

enum class RangeKind : uint8_t {
  Input,
  Output,
  State,
  Const,
  Resident, ///< written by `init`: weights and tables that stay over all dispatches
  Temporary ///< written and read by `main`
};
std::string_view nameOf(RangeKind kind); ///< "resident"

/// One thing in one place, the same in every unit listed.
struct MapRange {
  Memory memory = Memory::GM;
  RangeKind kind = RangeKind::Temporary;
  std::vector<uint32_t> units; ///< ascending
  ByteRange bytes;
  /// Of the argument, of those that `init` made it from, or of the task (MARK) that first writes a temporary.
  std::string name;
  int argument = -1;
  /// Steps (Schedule.h) of the kernel from the first to the last use: those of `init`, then those of `main`.
  uint32_t first = 0, last = 0;
};

struct KernelMap {
  uint32_t initSteps = 0, mainSteps = 0;
  /// Whether the steps are those of a schedule; else every temporary is there all the time.
  bool ordered = true;
  /// By memory; then what stays before temporaries; then by address.
  std::vector<MapRange> ranges;
  /// Accesses per memory whose place is known at run time only.
  std::array<uint32_t, kMemories> unknown{};
};

/// Temporaries in memories of slices and cores are those of the first quad of each set of streams: quads that share
/// code use theirs alike.
KernelMap memoryMap(const Image &image, const Kernel &kernel);

} // namespace dmx::corsair
