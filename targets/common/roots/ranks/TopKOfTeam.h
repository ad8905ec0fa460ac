//===- TopKOfTeam.h - the k best elements of a line, by a team --*- C++ -*-===//
#pragma once

#include "targets/common/roots/Plans.h"

#include "targets/common/element/ElementExpr.h"

namespace dmxc::kernels {

/// How a team computes the best k of a line.
struct TopKOfTeam {
  Team team;
  WorkPlan work;       ///< an item a line
  bool keeps = false;  ///< a copy of the elements' order in scratch
  bool packed = false; ///< order and place of an element are one number
};

/// The plan of a region whose lines teams share; nothing where each line is one thread's.
std::optional<KernelPlan> planTopKOfTeam(const RegionBody &body, const PlanRequest &request);

/// i1: x comes before y among the best elements (strictly). NaN is above every number.
mlir::Value comesBefore(KernelBuilder &b, dmir::TopKOp op, mlir::Value x, mlir::Value y);

} // namespace dmxc::kernels
