//===- Formulas.h - what passes that recognise formulas share ---*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Phases/Phases.h"

namespace dmxc {

/// Whether two values are one, or two of the same ops: equal ops are not merged yet.
bool isSameFormula(mlir::Value a, mlir::Value b, int depth = 4);
/// What a value is but for dims of 1.
mlir::Value withoutOnes(mlir::Value value);

/// Whether the user places some op of a formula, which `op` ends, otherwise than `op`.
bool isPlacedApart(const PhaseContext &context, mlir::Operation *op, mlir::Operation *function);
/// Puts a value in the place of an op. What only that read goes with it.
void replaceBy(mlir::Operation *op, mlir::Value value);
/// Erases an op that nothing reads, with what is read by nothing else.
void eraseUnused(mlir::Operation *op);

} // namespace dmxc
