//===- Attention.h - regions of attention -----------------------*- C++ -*-===//
#pragma once

#include "targets/common/attention/AttentionPattern.h"
#include "targets/common/roots/Loops.h"
#include "targets/cpu/Kernels.h"

namespace dmxc::cpu {

using kernels::Attention;
using kernels::innerOpsOf;
using kernels::matchAttention;
using kernels::ZeroRows;

/// Plans the kernel of a region whose root is an attention's last product. A work item is a block of rows of one
/// matrix: their scores, whole rows, stay in the thread's scratch.
Result<KernelPlan> planAttention(const RegionBody &body, const Attention &attention, const Choice &choice);

} // namespace dmxc::cpu
