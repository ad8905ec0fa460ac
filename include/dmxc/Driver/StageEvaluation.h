//===- StageEvaluation.h - entry points at any stop -------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Phases/Phases.h"
#include "dmxc/Reference/Stops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc::driver {

/// The evaluators of the targets that have one; the host's kernels are DMIR, which the reference knows.
reference::KernelEvaluators stageEvaluators(const PhaseContext &context);

/// The function that names and types of inputs and outputs are read from: the entry point itself, or `declared`, like
/// the program that it has become. Without a name the first; null where there is none.
mlir::func::FuncOp entryAtAnyStop(mlir::ModuleOp module, llvm::StringRef entry,
                                  mlir::OwningOpRef<mlir::func::FuncOp> &declared);

/// Input `number` as dmx-run's --random-inputs makes it, of open dims as small as they may be.
Result<Tensor> randomInput(mlir::func::FuncOp function, unsigned number, uint64_t seed);
/// The name of an input, or "input3" where it has none.
std::string inputName(mlir::func::FuncOp function, unsigned number);

} // namespace dmxc::driver
