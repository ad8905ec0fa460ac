//===- Plan.h - how a region without a root is computed ---------*- C++ -*-===//
#pragma once

#include "targets/common/roots/Loops.h"

#include <optional>

namespace dmxc::kernels {

/// How a region without a root is computed. Depends on the region alone, not on the ISA level.
struct PointwisePlan {
  llvm::SmallVector<AxisGroup> groups; ///< loops of the result, joined axes
  unsigned laneGroup = 0;              ///< the group that lanes run along
  int64_t block = 0;                   ///< of a blocked result: its lanes run along the block
  unsigned blockedAxis = 0;
  int64_t wide = 1;               ///< elements beside each other that a thread takes at a time; of a flat one
  std::optional<unsigned> across; ///< the group that lanes run along before tiles of them are turned to the lane group
  bool inOrder = false;           ///< such tiles follow one another along the lane group, as operands in blocks lie
  bool joined = false;            ///< turned tiles go along the last two groups as if they were one
  bool flat = false;              ///< every operand has the result's layout, or one element: one loop over memory
  WorkPlan work;
};

/// Positions of the lane group that a work item of turned tiles has: a multiple of every level's lanes.
inline constexpr int64_t kTurned = 16;

/// Whether elements of the last group are few; turned tiles are interleaved vectors of the group before it, or go along
/// both.
bool hasFewLast(const PointwisePlan &plan);
/// The kernel of a blocked result; and of one in tiles that are turned.
void emitBlocks(KernelBuilder &b, const RegionBody &body, const PointwisePlan &plan);
void emitTurned(KernelBuilder &b, const RegionBody &body, const PointwisePlan &plan);

} // namespace dmxc::kernels
