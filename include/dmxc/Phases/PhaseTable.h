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
/// rows.
struct Phase {
  const char *name;
  const char *summary; ///< one line: what is decided here
  const char *in, *out;
  const char *extension; ///< of its text: ".mlir", ".json"
  /// In the order they run. None for codegen, which makes bytes (runCodegen) instead of IR.
  llvm::ArrayRef<PassRow> passes;

  bool makesIR() const { return !passes.empty(); }
  /// Appends the phase's passes.
  void build(mlir::OpPassManager &pm, const PhaseContext &context) const;
};

/// In the order they run.
llvm::ArrayRef<Phase> phases();
/// Position of a name in phases(), or -1.
int phaseIndex(llvm::StringRef name);
std::vector<std::string> phaseNames();

/// Registers every pass under its own name and every phase as dmxc-NAME for dmx-opt; they see `context`'s targets.
void registerAllPasses(const PhaseContext &context);

} // namespace dmxc
