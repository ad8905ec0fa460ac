//===- LaunchTable.h - what stands before the kernels -----------*- C++ -*-===//
#pragma once

#include "TensorMaps.h"

#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Support/Dim.h"

#include <string>
#include <vector>

namespace dmxc::cuda {

/// A kernel with what a launch of it needs; see schemas/cuda/KERNELS.md.
struct CompiledKernel {
  std::string name;
  std::vector<std::string> nodes, dims; ///< of the model that it computes; names of its dims
  int64_t block = 1;                    ///< threads
  Dim grid = 1;                         ///< blocks
  std::vector<TensorMap> maps;
  bool movesRegisters = false;   ///< warpgroups give registers to each other
  int64_t shared = 0;            ///< bytes of shared memory of a block; where there are some a work item is a block's
  std::vector<int64_t> contract; ///< words of dmx_kernel.h
  std::string ptx;
};

/// What the kernel's strategy says of its launch. Threads that have scratch each are limited in number.
CompiledKernel describeLaunch(dlir::KernelOp kernel, std::vector<int64_t> contract);

/// The comment with the table.
std::string launchTable(const std::vector<CompiledKernel> &kernels);

} // namespace dmxc::cuda
