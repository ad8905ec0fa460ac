//===- Hopper.h - the processor that kernels are written for ----*- C++ -*-===//
#pragma once

#include "targets/common/code/Processor.h"

namespace dmxc::cuda {

using namespace kernels;

/// Compute capability 9.0 as a thread sees it: a lane, fused multiply-add, no masks. Threads are the lanes of a GPU, so
/// each element of a result is a work item where it can be.
struct Hopper final : Processor {
  explicit Hopper(std::optional<unsigned> blockMaps = {}, int64_t threads = 1)
      : blockMaps(blockMaps), threads(threads) {
    name = "sm_90a";
    hasFma = true;
  }
  std::optional<unsigned> blockMaps; ///< tensor maps of kernels whose work items are blocks'; nothing: threads'
  int64_t threads;                   ///< of a block whose work items these are

  static const Hopper &get();
  std::unique_ptr<KernelBuilder> makeBuilder(mlir::ModuleOp module, mlir::Location loc, llvm::StringRef name,
                                             unsigned buffers, unsigned dims,
                                             llvm::ArrayRef<bool> noalias = {}) const override;
  int64_t teamOf(Dim count, int64_t size, int64_t rows, bool areNeighbours) const override;
  int64_t mostTeamScratch() const override;
  Launch launchOfTeams(Dim items, int64_t team, int64_t scratch) const override;
  WorkPlan planWork(mlir::Block *block, llvm::ArrayRef<Dim> dims, double cost) const override;
};

/// Threads of a block, and most blocks of kernels whose threads have scratch each.
constexpr int64_t kBlock = 128, kMostBlocksWithScratch = 64;

/// Bytes at the beginning of a team's shared memory in which its warps tell each other values.
constexpr int64_t kTeamRoom = 1024;

} // namespace dmxc::cuda
