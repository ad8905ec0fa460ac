//===- KernelDialects.h - what kernels are made of --------------*- C++ -*-===//
#pragma once

#include "FloatLowering.h"

#include "mlir/IR/BuiltinOps.h"

namespace dmxc::kernels {

/// Adds the dialects that kernels are made of.
void registerKernelDialects(mlir::DialectRegistry &registry);

/// Loads the dialects that kernels are made of, and their translations to LLVM IR. Call once for a context, before
/// kernels are built in it.
void loadKernelDialects(mlir::MLIRContext &context);

/// Lowers a module of host functions written with KernelBuilder to the LLVM dialect. Arithmetic of f16 and bf16 becomes
/// that of f32; `hasHalf`: conversions of f16 and f32 are instructions.
llvm::LogicalResult lowerToLLVMDialect(mlir::ModuleOp module, NarrowFloats has);

} // namespace dmxc::kernels
