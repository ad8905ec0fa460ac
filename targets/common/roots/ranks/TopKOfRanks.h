//===- TopKOfRanks.h - the k best elements of a line, as numbers -*- C++ -*-===//
#pragma once

#include "targets/common/roots/Plans.h"

namespace dmxc::kernels {

/// The plan of a top_k by one thread a line whose elements are ranks; nothing where they are none, or lanes are one.
std::optional<KernelPlan> planTopKOfRanks(const RegionBody &body, const PlanRequest &request);

} // namespace dmxc::kernels
