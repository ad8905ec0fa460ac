//===- KernelFunctions.h - functions made of kernels ------------*- C++ -*-===//
#pragma once

#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>

namespace dmxc {

using lldmir::kBatchAttr, lldmir::kFormAttr, lldmir::kOrderAttr, lldmir::kQuadsAttr, lldmir::kStateAttr,
    lldmir::kTableAttr, lldmir::kTilesAttr, lldmir::kTypeAttr;

/// The order of an argument's dims in memory, row by row where none is given; nothing where what is given is none.
std::optional<llvm::SmallVector<unsigned>> orderOfDims(mlir::func::FuncOp function, unsigned argument, int64_t rank);

} // namespace dmxc
