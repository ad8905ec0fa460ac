//===- Pointwise.h - elementwise and data-movement regions ------*- C++ -*-===//
#pragma once

#include "Loops.h"

namespace dmxc::cpu {

/// How a region without a root is computed. Depends on the region alone, not on the ISA level.
struct PointwisePlan {
  llvm::SmallVector<AxisGroup> groups; ///< loops of the result, joined axes
  unsigned laneGroup = 0;              ///< the group that lanes run along
  int64_t block = 0;                   ///< of a blocked result: its lanes run along the block
  unsigned blockedAxis = 0;
  bool flat = false; ///< every operand has the result's layout, or one element: one loop over memory
  WorkPlan work;
};

PointwisePlan planPointwise(const RegionBody &body);
void emitPointwise(KernelBuilder &b, const RegionBody &body, const PointwisePlan &plan);

} // namespace dmxc::cpu
