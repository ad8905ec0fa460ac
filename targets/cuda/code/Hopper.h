//===- Hopper.h - the processor that kernels are written for ----*- C++ -*-===//
#pragma once

#include "targets/common/code/Processor.h"
#include "targets/cuda/dialect/Cuda.h"

namespace dmxc::cuda {

using namespace kernels;

/// Compute capability 9.0 as a thread sees it: a lane, fused multiply-add, no masks. Threads are the lanes of a GPU, so
/// each element of a result is a work item where it can be.
struct Hopper final : Processor {
  Hopper() {
    name = "sm_90a";
    hasFma = true;
  }
  /// That a kernel of this launch is written for.
  explicit Hopper(const Launch &launch) : Hopper() {
    blockMaps = launch.maps.size();
    team = {launch.block, launch.cluster, launch.columns};
  }
  /// That plans are made for. `given`: the dictionary that has what is decided of teams, may be null; `obeyed`: all of
  /// them, so that where it has none there are none.
  Hopper(const hw::Machine &machine, mlir::DictionaryAttr given, bool obeyed) : Hopper() {
    this->machine = &machine;
    this->given = given;
    this->obeyed = obeyed;
  }
  std::optional<unsigned> blockMaps; ///< tensor maps of kernels whose work items are blocks'; nothing: threads'
  Team team;                         ///< whose work items these are
  const hw::Machine *machine = nullptr;
  mlir::DictionaryAttr given;
  bool obeyed = false;

  std::unique_ptr<KernelBuilder> makeBuilder(mlir::ModuleOp module, mlir::Location loc, llvm::StringRef name,
                                             unsigned buffers, unsigned dims,
                                             llvm::ArrayRef<bool> noalias = {}) const override;
  int64_t neighboursOf(int64_t size, unsigned bits) const override;
  Team teamOf(const RowShape &shape) const override;
  int64_t mostTeamScratch(const Team &team) const override;
  Launch launchOfTeams(Dim items, const Team &team, int64_t scratch) const override;
  WorkPlan planWork(mlir::Block *block, llvm::ArrayRef<Dim> dims, double cost) const override;
};

/// Threads of a block, and most blocks of kernels whose threads have scratch each.
constexpr int64_t kBlock = 128, kMostBlocksWithScratch = 64;

/// What is free of the teams of rows of that shape; `chosen` is what a region has.
std::vector<Decision> teamDecisions(const hw::Machine &machine, const Team &chosen, mlir::DictionaryAttr decided,
                                    mlir::MLIRContext *context);
/// What is wrong with what text has for a team; "" where nothing is.
std::string problemOfTeam(const hw::Machine &machine, mlir::Attribute written, mlir::MLIRContext *context);

/// Bytes at the beginning of a block's shared memory in which a team's threads tell each other values.
int64_t roomOf(const Team &team);

} // namespace dmxc::cuda
