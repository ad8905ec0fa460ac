//===- Drain.h - sums from OB to a product's result --------------*- C++ -*-===//
//
// Sums leave OB as f16. What becomes of them elementwise, an epilogue, the vector device computes on the way: tiles go
// to its memory instead, of which there are two halves, too, and the last function writes the result:
//
//     queue Store    OB half 0 -> tiles 0    OB half 1 -> tiles 1    OB half 0 -> tiles 0
//     queue Vector                           tiles 0 -> C            tiles 1 -> C
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Operands.h"

namespace dmxc::corsair {

inline constexpr int64_t kObHalf = 32768;

/// From a tile of columns to the next one in OB.
inline int64_t obGroup(const Spread &plan) { return kObHalf / (plan.rowsAtOnce() == 64 ? 2 : 4); }

/// Tiles of columns that slices of a mask store; `skipped` are the tiles of slices before the mask's first.
struct Share {
  int mask;
  int64_t skipped, tiles, lastColumns;
};

/// So many rows of sums in a half of OB to the result, from the operands' first row on.
void drain(Program &program, const ArrayUnits &units, const Spread &plan, const MatmulOperands &at,
           llvm::ArrayRef<Share> shares, int64_t rows, int half);

} // namespace dmxc::corsair
