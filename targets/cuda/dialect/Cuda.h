//===- Cuda.h - kernels of warpgroups and slots, as text --------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Dialect/DLIR/Device.h"
#include "schemas/cuda/Machine.h"

#include <memory>

#include "targets/cuda/dialect/CudaOpsDialect.h.inc"
#define GET_OP_CLASSES
#include "targets/cuda/dialect/CudaOps.h.inc"

namespace dmxc::cuda {

namespace hw = dmx::cuda;

// What the program of a block is called by in DLIR's texts: the device, its memory, its unit and its engines.
inline constexpr llvm::StringLiteral kDeviceName = "cuda", kSharedMemory = "shared", kBlockUnit = "block",
                                     kCopyEngine = "copy", kMultiplyEngine = "multiply";
/// Registers of that program: tiles of the block, and steps of a tile where a run says how many there are.
inline constexpr int64_t kTilesRegister = 0, kStepsRegister = 1;

/// The machine of the compile, as the dialect in this context knows it.
const hw::Machine &machineOf(mlir::MLIRContext *context);
/// Registers the dialect with a machine, and with DLIR what its blocks have.
void registerMachine(mlir::DialectRegistry &registry, const hw::Machine &machine);

} // namespace dmxc::cuda
