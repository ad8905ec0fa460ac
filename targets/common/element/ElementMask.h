//===- ElementMask.h - elements that a rule of their index keeps -*- C++ -*-===//
#pragma once

#include "ElementExpr.h"

#include "dmxc/Dialect/DMIR/masks/Where.h"

namespace dmxc::kernels {

/// What the symbols of a mask's rule stand for at an index: sizes, then the values that operands bring.
Indices symbolsOf(ElementExpr &e, dmir::MaskOp op, llvm::ArrayRef<Index> index);
/// The value of a mask at an index, as ElementExpr::evaluate gives it.
mlir::Value evaluateMask(ElementExpr &e, dmir::MaskOp op, llvm::ArrayRef<Index> index);

} // namespace dmxc::kernels
