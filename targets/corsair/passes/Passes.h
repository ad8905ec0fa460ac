//===- Passes.h - from DMIR to a kernel over quads --------------*- C++ -*-===//
//
// The stages of kernels, in order: corsair-kernel-functions and corsair-assign-formats, corsair-tile-products,
// corsair-bufferize, corsair-fuse-epilogues, corsair-lower-tiles, corsair-outline-spmd, corsair-band-rows,
// corsair-band-transfers. The text between any two can be read back. corsair-encode is for dmx-opt.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DLIR/Device.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/Pass.h"

namespace dmxc {

#define GEN_PASS_DECL
#include "Passes.h.inc"

struct TargetStage;
/// The stages that kernels of the target go through in phase schedule.
llvm::ArrayRef<TargetStage> stagesCorsairTarget();

/// Registers the passes under their names, and the dialects of the stages.
void registerCorsairPasses(mlir::DialectRegistry &registry);

} // namespace dmxc
