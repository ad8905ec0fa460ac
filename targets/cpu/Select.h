//===- Select.h - top_k and scatters ----------------------------*- C++ -*-===//
#pragma once

#include "Loops.h"

namespace dmxc::cpu {

/// dmir.top_k: one work item is a number of lines along the axis. Producers may be fused.
struct TopKPlan {
  WorkPlan work;
  Dim scratch = 0; ///< bytes: the best k values and their indices
};
TopKPlan planTopK(const RegionBody &body);
void emitTopK(KernelBuilder &b, const RegionBody &body, const TopKPlan &plan);

/// dmir.greedy_select: one work item a row. Scratch holds the positions taken so far. What excludes may be fused: it is
/// computed for those alone.
TopKPlan planGreedySelect(const RegionBody &body);
void emitGreedySelect(KernelBuilder &b, const RegionBody &body, const TopKPlan &plan);

/// dmir.scatter_elements and dmir.scatter_nd: the data is copied (unless the result shares its buffer),
/// then updates are applied in order. One work item. Null if the op is well formed, else why not.
std::optional<std::string> scatterProblem(mlir::Operation *op);
void emitScatter(KernelBuilder &b, const RegionBody &body);

} // namespace dmxc::cpu
