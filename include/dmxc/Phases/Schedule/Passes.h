//===- Passes.h - passes of the Schedule phase ---*- C++ -*-===//
#pragma once

#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {

// See Passes.td for what each does. The context outlives the pass.
std::unique_ptr<mlir::Pass> createBuildProgramPass(const PhaseContext &context);
std::unique_ptr<mlir::Pass> createOrderTasksPass(const PhaseContext &context);
std::unique_ptr<mlir::Pass> createScheduleDevicesPass(const PhaseContext &context);

} // namespace dmxc
