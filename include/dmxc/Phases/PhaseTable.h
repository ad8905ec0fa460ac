//===- PhaseTable.h - the one table of phases and their passes --*- C++ -*-===//
#pragma once

#include "dmxc/Phases/Phases.h"

namespace dmxc {

/// A pass of a phase.
struct PassRow {
  std::unique_ptr<mlir::Pass> (*create)(const PhaseContext &);
  /// When it runs; null: always.
  bool (*when)(const PhaseContext &) = nullptr;
};

/// One phase. --emit, --from, --dump-phases, --print-phases, progress, time report, dmx-opt and README come from these
/// rows, and from the stages of targets.
struct Phase {
  const char *name;
  const char *summary; ///< one line: what is decided here
  const char *in, *out;
  const char *extension; ///< of its text: ".mlir", ".json"
  /// In the order they run. None for codegen, which makes bytes (runCodegen) instead of IR.
  llvm::ArrayRef<PassRow> passes;
  /// Behind the stages of targets; none where these do not belong.
  llvm::ArrayRef<PassRow> afterStages = {};

  bool makesIR() const { return !passes.empty(); }
  bool hasStages() const { return !afterStages.empty(); }
  /// Appends the phase's passes, and its targets' stages.
  void build(mlir::OpPassManager &pm, const PhaseContext &context) const;
};

/// In the order they run.
llvm::ArrayRef<Phase> phases();
/// Position in phases() of a phase, or of the one that a stop belongs to; or -1.
int phaseIndex(llvm::StringRef name);
std::vector<std::string> phaseNames();

/// Where a compile can stop and go on: behind a stage of a target, or at the end of a phase.
struct Stop {
  const Phase *phase;
  const TargetStage *stage = nullptr; ///< null: the phase's end
  size_t target = 0;                  ///< whose stage it is
  bool opensPhase = true;             ///< nothing of the phase comes before
  std::string name;                   ///< "schedule.tiles", "schedule"
  std::string file;                   ///< "4b-tiles.mlir", "4-schedule.mlir"

  const char *summary() const { return stage ? stage->summary : phase->summary; }
  /// Appends the passes from the stop before to this one. `context` has the targets whose stages they are.
  void build(mlir::OpPassManager &pm, const PhaseContext &context) const;
};

/// In the order they come, with the stages of these targets, one after the other.
std::vector<Stop> stops(llvm::ArrayRef<llvm::ArrayRef<TargetStage>> stages);
std::vector<Stop> stops(const PhaseContext &context);

/// Registers every pass under its own name and every phase as dmxc-NAME for dmx-opt, and the steps to the stages of
/// `context`'s targets as dmxc-PHASE.STAGE; they see those targets.
void registerAllPasses(const PhaseContext &context);

/// Registers every pass under its own name for whoever `current` says the targets of.
void registerPhasePasses(const PhaseContext &(*current)());
std::vector<std::string> phasePassNames(const PhaseContext &context);

} // namespace dmxc
