//===- Rates.h - what multiprocessors share, what products take -*- C++ -*-===//
//
// By these a compiler chooses tiles and the simulator's clock plays what came of it: the same figures of a machine, the
// same arithmetic.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Machine.h"

namespace dmx::cuda {

/// Sub-partitions of a multiprocessor, each with a scheduler and a tensor core.
inline constexpr uint32_t kSchedulers = 4;

/// Of all multiprocessors together, in bytes a clock.
double l2BytesPerClock(const Machine &machine);
double memoryBytesPerClock(const Machine &machine);

/// What a multiprocessor has of the memories that all share, in bytes a clock.
struct SharedRates {
  double l2 = 0, dram = 0;
};
/// As each of `users` multiprocessors sees them that ask for every byte `sharing` times between them: what neighbours
/// ask for comes once.
SharedRates ratesOf(const Machine &machine, double users, double sharing);

/// A wgmma as one of its four warps sees it: 16 rows on the tensor core of its sub-partition.
struct ProductClocks {
  double multiplying = 0, reading = 0; ///< clocks; of shared memory's port while all four read

  /// With what else passes the port in the meantime. The operands come first.
  double taken(double arriving) const;
};
/// Of operands of 16 bits, or of tf32.
ProductClocks productClocks(const Machine &machine, int64_t columns, int64_t depth, bool isTf32, bool leftInShared);

} // namespace dmx::cuda
