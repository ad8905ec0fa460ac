//===- Passes.h - passes of the Frontend phase ---*- C++ -*-===//
#pragma once

#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {

// See Passes.td for what each does. The context outlives the pass.
std::unique_ptr<mlir::Pass> createIntegerProductsPass(const PhaseContext &context);
std::unique_ptr<mlir::Pass> createIntegerPoolsPass(const PhaseContext &context);
std::unique_ptr<mlir::Pass> createFoldConstantsPass(const PhaseContext &context);
std::unique_ptr<mlir::Pass> createSimplifyPass(const PhaseContext &context);
std::unique_ptr<mlir::Pass> createBindStatesPass(const PhaseContext &context);
std::unique_ptr<mlir::Pass> createCollectConstraintsPass(const PhaseContext &context);

} // namespace dmxc
