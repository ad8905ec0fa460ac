//===- Contract.h - what a kernel relies on ---------------------*- C++ -*-===//
#pragma once

#include "Plans.h"

#include "dmxc/Dialect/DLIR/DLIR.h"

namespace dmxc::kernels {

/// The words of a kernel's contract (dmx_kernel.h) with the work and scratch of its plan: buffers are the operands and
/// results of its body, dims its symbols.
std::vector<int64_t> contractWords(dlir::KernelOp kernel, const KernelPlan &plan);

} // namespace dmxc::kernels
