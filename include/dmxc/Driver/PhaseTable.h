//===- PhaseTable.h - the one table of phases -------------------*- C++ -*-===//
#pragma once

#include "dmxc/Phases/Phases.h"

#include "llvm/ADT/ArrayRef.h"

namespace dmxc::driver {

/// One phase. --emit, --from, --dump-phases, --print-phases, progress, time
/// report and README come from these rows.
struct Phase {
  const char *name;
  const char *summary; ///< one line: what is decided here
  const char *in, *out;
  /// Appends the phase's passes. Null for codegen, which makes bytes
  /// (runCodegen) instead of IR.
  void (*build)(mlir::OpPassManager &, const PhaseContext &);
  const char *extension; ///< of its text: ".mlir", ".json"
};

/// In the order they run.
llvm::ArrayRef<Phase> phases();
/// Position of a name in phases(), or -1.
int phaseIndex(llvm::StringRef name);
std::vector<std::string> phaseNames();

} // namespace dmxc::driver
