//===- ElementMask.h - elements that a rule of their index keeps -*- C++ -*-===//
#pragma once

#include "ElementExpr.h"

#include "dmxc/Dialect/DMIR/masks/Columns.h"

namespace dmxc::kernels {

/// What the symbols of a mask's rule stand for at an index: sizes, then the values that operands bring.
Indices symbolsOf(ElementExpr &e, dmir::MaskOp op, llvm::ArrayRef<Index> index);
/// The value of a mask at an index, as ElementExpr::evaluate gives it.
mlir::Value evaluateMask(ElementExpr &e, dmir::MaskOp op, llvm::ArrayRef<Index> index);

/// The columns, of `columns`, that a block of rows keeps; `rows` has the bounds of all indices before them, inclusive.
/// Ends may lie outside of [0, columns].
dmir::ColumnRange<mlir::Value> keptColumns(KernelBuilder &b, const dmir::Rule &rule,
                                           llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> rows,
                                           llvm::ArrayRef<mlir::Value> symbols, mlir::Value columns);

} // namespace dmxc::kernels
