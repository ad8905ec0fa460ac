//===- TileUnits.h - what sums become before they are stored -----*- C++ -*-===//
#pragma once

#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include <vector>

namespace dmxc {

/// A function of tiles between a sum and its store.
struct TileUnit {
  static constexpr int kSum = -1; ///< the sum as f16
  lldmir::SimdOp op;
  mlir::SmallVector<int, 3> inputs; ///< units before it by number, the sum, or kSum - 1 - the number of a grid beside

  bool operator==(const TileUnit &other) const;
};

/// The functions that some loops compute, each once, however often the loops reach it.
class TileUnits {
public:
  /// The number of a grid that tiles are loaded from.
  int grid(mlir::Value memref);
  /// The number of a unit; `guess` is looked at first.
  int add(const TileUnit &unit, int guess);
  /// What a unit is made of, the unit last; grids get numbers in `beside`.
  std::vector<TileUnit> epilogue(int last, mlir::SmallVectorImpl<mlir::Value> &beside) const;

private:
  std::vector<mlir::Value> grids;
  std::vector<TileUnit> units;
};

} // namespace dmxc
