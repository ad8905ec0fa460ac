//===- MaskReasons.h - why a mask is no rule --------------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/masks/IndexFunction.h"

namespace dmxc {

/// The number that masked scores become: the least of those that are one, and low enough to leave scores out.
std::optional<double> fillOf(llvm::ArrayRef<dmir::Piece> pieces);

/// The one reason why a mask is no rule that meets the scores of a softmax in `op`. `functions` are those of the result
/// of `op`, `failure` what was wrong with cases that were read; "" where none were.
std::string reasonAgainst(dmir::IndexFunctions &functions, dmir::SoftmaxOp softmax, mlir::Operation *op,
                          mlir::Value mask, const std::string &failure);

} // namespace dmxc
