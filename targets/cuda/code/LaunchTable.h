//===- LaunchTable.h - what stands before the kernels -----------*- C++ -*-===//
#pragma once

#include "targets/common/roots/Plans.h"
#include "targets/cuda/user/UserPtx.h"

#include "dmxc/Dialect/DLIR/DLIR.h"

#include <string>
#include <vector>

namespace dmxc::cuda {

/// A kernel with what a launch of it needs; see schemas/cuda/KERNELS.md.
struct CompiledKernel {
  std::string name;
  std::vector<std::string> nodes, dims; ///< of the model that it computes; names of its dims
  kernels::Launch launch;
  bool hasBlocks = false;        ///< a work item is a block's
  Dim multiplyAdds = 0;          ///< of the products in it, as the model has them
  std::vector<int64_t> contract; ///< words of dmx_kernel.h
  std::string ptx;
  std::optional<UserText> user; ///< instead, of a kernel that a user wrote
};

/// A kernel with its plan's launch, or where it has none one of threads for its work items; those that have scratch
/// each are limited in number.
CompiledKernel describeLaunch(dlir::KernelOp kernel, const kernels::KernelPlan &plan, std::vector<int64_t> contract);

/// The comment with the table.
std::string launchTable(const std::vector<CompiledKernel> &kernels);
/// All of the entry: the table, and the kernels as one text. Fails with what is wrong with a user's one.
Result<std::string> entryText(const std::vector<CompiledKernel> &kernels);

} // namespace dmxc::cuda
