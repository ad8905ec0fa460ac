//===- OutlineKernel.h - a kernel's function to all quads -------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {

/// Makes a gpu.func of a function that was a kernel, and launches it.
mlir::LogicalResult outlineKernel(mlir::func::FuncOp function);

} // namespace dmxc
