//===- Passes.h - from kernels to how they are made -------------*- C++ -*-===//
#pragma once

#include "targets/cuda/dialect/Cuda.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/Pass.h"

namespace dmxc {

#define GEN_PASS_DECL
#include "targets/cuda/passes/Passes.h.inc"

struct TargetStage;
/// The stages that kernels of the target go through in phase schedule.
llvm::ArrayRef<TargetStage> stagesCudaTarget();

/// Registers the passes under their names, and the dialect of the stages.
void registerCudaPasses(mlir::DialectRegistry &registry);

} // namespace dmxc
