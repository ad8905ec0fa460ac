//===- Diagonals.h - masks that keep diagonals of scores --------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/masks/Where.h"

#include <optional>

namespace dmxc::corsair {

/// What a mask keeps of the last two dims: column j of row i where lower <= j - i <= upper; no bound: any. Causal:
/// upper 0. A window of w keys: lower 1 - w.
struct Diagonals {
  std::optional<int64_t> lower, upper;
};

/// The diagonals that a mask's rule is, each row with a column at least; nullopt for other rules.
std::optional<Diagonals> diagonalsOf(dmir::MaskOp mask);

/// Whether kernels compute what masks leave out, too (--sparsity off).
bool computesMasked(mlir::Operation *op);

} // namespace dmxc::corsair
