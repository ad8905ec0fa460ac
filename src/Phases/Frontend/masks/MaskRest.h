//===- MaskRest.h - what is left of a mask beside its rule ------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/masks/IndexFunction.h"

namespace dmxc {

/// Erases ops that nobody reads, and what they alone read.
void eraseUnread(llvm::ArrayRef<mlir::Value> values);

/// An operand of the type of an op's result; null if there is none.
mlir::OpOperand *operandOfSameType(mlir::Operation *op);

/// Takes away before a mask what it says now: selects that choose the scores wherever it keeps them, sums with 0,
/// products with 1. What is no rule is left, of fewer elements where the rule has said the rest.
void simplifyBehind(dmir::MaskOp mask, dmir::IndexFunctions &functions, llvm::ArrayRef<dmir::Conditions> cases);

} // namespace dmxc
