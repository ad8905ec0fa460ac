//===- Norms.h - normalisation that is written out --------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"

#include <optional>

namespace dmxc {

/// What an op gives if it is the last one of (x - mean) / sqrt(variance + epsilon) or x / sqrt(mean(x^2) + epsilon).
struct Norm {
  dmir::Normalization kind;
  mlir::Value input;
  llvm::SmallVector<int64_t> axes;
  double epsilon;
};

/// The normalisation that a division or a product ends, however squares, means and the inverse root are spelt.
std::optional<Norm> matchNorm(mlir::Operation *op);

} // namespace dmxc
