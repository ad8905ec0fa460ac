//===- Access.h - which bytes code touches, before it runs ------*- C++ -*-===//
//
// A static reading of ISA.md: for every instruction that a launch executes, the
// ranges it reads and writes, as far as fields, descriptors, loop counters and a
// launch's registers say. Ranges are hulls: all trips of the enclosing loops and
// all items of a descriptor in one. For people and for maps of memory; whether a
// program is correct is for the device to say.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../Image.h"

namespace dmx::corsair {

/// Bytes begin..end-1 of one unit of a memory.
struct ByteRange {
  int64_t begin = 0, end = 0;
  bool operator==(const ByteRange &) const = default;
};

/// Equal runs of bytes: `bytes` from `begin` on, and again after each multiple of each step.
struct Runs {
  struct Step {
    int64_t count, bytes;
  };
  int64_t begin = 0, bytes = 0;
  std::vector<Step> steps;
};

struct Access {
  Memory memory = Memory::GM;
  bool write = false;
  std::vector<uint32_t> units;    ///< numbers in the card, ascending
  std::optional<ByteRange> range; ///< nothing: known at run time only (registers that change, indices)
  uint32_t queue = 0, position = 0;
  /// What of the range it is, where counters and registers have one value; none: not known.
  std::vector<Runs> runs;
  /// Whether all bytes of the runs are touched: of a table that indices choose from, of columns behind the valid ones
  /// and of a window's image perhaps not.
  bool all = true;
};

/// What one quad's part of a program touches: queue by queue, in the order of the code, an
/// instruction's reads before its writes (what it reads of its own results is not listed). A loop's body counts once;
/// one that is never entered not at all.
std::vector<Access> accessesOf(const Image &image, const Kernel &kernel, const Launch &launch);

} // namespace dmx::corsair
