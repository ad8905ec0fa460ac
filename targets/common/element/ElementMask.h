//===- ElementMask.h - elements that a rule of their index keeps -*- C++ -*-===//
#pragma once

#include "ElementExpr.h"

#include "dmxc/Dialect/DMIR/masks/Columns.h"

namespace dmxc::kernels {

/// What the symbols of a mask's rule stand for at an index: sizes, then the values that operands bring.
Indices symbolsOf(ElementExpr &e, dmir::MaskOp op, llvm::ArrayRef<Index> index);
/// The value of a mask at an index, as ElementExpr::evaluate gives it.
mlir::Value evaluateMask(ElementExpr &e, dmir::MaskOp op, llvm::ArrayRef<Index> index);
/// The same by another rule of the same dims and values.
mlir::Value evaluateMask(ElementExpr &e, dmir::MaskOp op, llvm::ArrayRef<Index> index, const dmir::Rule &rule);

/// Inclusive bounds of numbers.
using ValueBounds = llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>>;
/// The columns, of `columns`, that a block of rows keeps; `rows` has the bounds of all indices before them. Ends may
/// lie outside of [0, columns].
dmir::ColumnRange<mlir::Value> keptColumns(KernelBuilder &b, const dmir::Rule &rule, ValueBounds rows,
                                           ValueBounds symbols, mlir::Value columns);
/// i1s: whether the rule may keep an index of a box, and whether it keeps all.
std::pair<mlir::Value, mlir::Value> whetherKept(KernelBuilder &b, const dmir::Rule &rule, ValueBounds box,
                                                ValueBounds symbols);

} // namespace dmxc::kernels
