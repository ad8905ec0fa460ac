//===- Hopper.h - the processor that kernels are written for ----*- C++ -*-===//
#pragma once

#include "targets/common/code/Processor.h"

namespace dmxc::cuda {

using namespace kernels;

/// Compute capability 9.0 as a thread sees it: a lane, fused multiply-add, no masks. Threads are the lanes of a GPU, so
/// each element of a result is a work item where it can be.
struct Hopper final : Processor {
  explicit Hopper(std::optional<unsigned> blockMaps = {}) : blockMaps(blockMaps) {
    name = "sm_90a";
    hasFma = true;
  }
  std::optional<unsigned> blockMaps; ///< tensor maps of kernels whose work items are blocks'; nothing: threads'

  static const Hopper &get();
  std::unique_ptr<KernelBuilder> makeBuilder(mlir::ModuleOp module, mlir::Location loc, llvm::StringRef name,
                                             unsigned buffers, unsigned dims,
                                             llvm::ArrayRef<bool> noalias = {}) const override;
  WorkPlan planWork(mlir::Block *block, llvm::ArrayRef<Dim> dims, double cost) const override;
};

/// Threads of a block, and most blocks of kernels whose threads have scratch each.
constexpr int64_t kBlock = 128, kMostBlocksWithScratch = 64;

} // namespace dmxc::cuda
