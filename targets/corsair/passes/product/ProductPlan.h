//===- ProductPlan.h - how a quad works off its result tiles ----*- C++ -*-===//
#pragma once

#include "ProductKernel.h"

namespace dmxc {

/// Decisions on one product, after num_imc, ppr_mode and the split over quads are given.
struct ProductPlan {
  int64_t rows = 1, columns = 1; ///< result tiles of a quad that the plan shares out
  /// Cores: `groups` of num_imc side by side, 64 columns each. Slices: they share either rows or columns.
  int64_t groups = 1, sliceRows = 1, sliceColumns = 1;
  /// Weights are streamed from the stash by the product itself, `steps` columns of tiles (of each group and slice) an
  /// instruction: where loading a tile takes longer than its rows compute. Else copies load them while the product
  /// before computes.
  bool streamed = false;
  int64_t steps = 1;
  int64_t inputHalves = 1, weightHalves = 1, resultHalves = 1; ///< buffers that alternate

  int64_t sliceMask() const { return (int64_t(1) << (sliceRows * sliceColumns)) - 1; }
  int64_t rowRounds() const { return rows / sliceRows; }
  int64_t columnRounds() const { return columns / (groups * sliceColumns); }
  int64_t columnUnits() const { return columnRounds() / steps; }
};

/// The plan with the fewest array clocks for a quad with that many result tiles each way.
ProductPlan planProduct(const hw::Machine &machine, const ProductKernel &kernel, int64_t rows, int64_t columns);

} // namespace dmxc
