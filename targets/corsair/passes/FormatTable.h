//===- FormatTable.h - which node computes in which formats -----*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {

/// One line for each op of a function that computes something: node, op, element types of operands and results.
void printFormats(mlir::func::FuncOp function, llvm::raw_ostream &os);

} // namespace dmxc
