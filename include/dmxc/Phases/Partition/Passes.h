//===- Passes.h - passes of the Partition phase ---*- C++ -*-===//
#pragma once

#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {

// See Passes.td for what each does. The context outlives the pass.
std::unique_ptr<mlir::Pass> createCheckSupportPass(const PhaseContext &context);
std::unique_ptr<mlir::Pass> createFoldScalingPass(const PhaseContext &context);
std::unique_ptr<mlir::Pass> createAssignLayoutsPass(const PhaseContext &context);
std::unique_ptr<mlir::Pass> createFormRegionsPass(const PhaseContext &context);
std::unique_ptr<mlir::Pass> createChooseStrategiesPass(const PhaseContext &context);

} // namespace dmxc
