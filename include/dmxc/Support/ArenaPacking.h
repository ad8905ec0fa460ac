//===- ArenaPacking.h - offsets for live ranges -----------------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <vector>

namespace dmxc {

/// A block of bytes that is needed from step `first` to step `last`, both included.
struct LiveRange {
  int64_t size = 0; ///< bytes, a multiple of the alignment
  int64_t first = 0, last = 0;
  int64_t offset = 0; ///< set by packArena
};

/// Gives every range an offset such that no two that are live at the same step overlap. Tries several greedy orders and
/// keeps the smallest result; deterministic. Returns the arena's size in bytes.
int64_t packArena(std::vector<LiveRange> &ranges);

/// The largest sum of sizes over all steps: no packing can be smaller.
int64_t arenaLowerBound(const std::vector<LiveRange> &ranges);

} // namespace dmxc
