//===- Norms.h - normalisation that is written out --------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "mlir/IR/Builders.h"

#include <optional>

namespace dmxc {

/// What an op gives if it is the last one of (x - mean) / sqrt(variance + epsilon) or x / sqrt(mean(x^2) + epsilon).
struct Norm {
  dmir::Normalization kind;
  mlir::Value input;
  llvm::SmallVector<int64_t> axes;
  double epsilon;
  mlir::Value scale = {}; ///< of the normalised value, where the formula has it inside; null for none
};

/// The normalisation that a division or a product ends, however squares, means and the inverse root are spelt.
std::optional<Norm> matchNorm(mlir::Operation *op);

/// x / sqrt(sum(x^2)), the divisor perhaps kept above a number that is small: `input` times `scale` after a
/// normalisation `norm.kind` over `norm.axes`.
struct UnitLength {
  Norm norm;
  double scale; ///< of the normalised value
};
std::optional<UnitLength> matchUnitLength(mlir::Operation *op);

/// sqrt(sum(x^2)) or sqrt(mean(x^2)) of an op that ends it, from x divided by its largest magnitude, so that no square
/// overflows; null for other ops.
mlir::Operation *createScaledRoot(mlir::OpBuilder &builder, mlir::Operation *op);

} // namespace dmxc
