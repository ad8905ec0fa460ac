//===- ProductNest.h - the loops of one product, read ------------*- C++ -*-===//
#pragma once

#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

#include <string>

namespace dmxc {

/// Loops over the tiles of one product, as corsair-lower-tiles leaves them: what they read, and in which order.
class ProductNest {
public:
  /// False where the loops are no product; `problem` says why.
  bool read(mlir::affine::AffineForOp loop);

  mlir::affine::AffineStoreOp store;
  mlir::SmallVector<lldmir::MatMulOp> chain; ///< in the order in which they are added
  mlir::affine::AffineLoadOp bias;
  bool columnsOutside = false;
  mlir::Value left, right; ///< grids
  std::string problem;

private:
  bool refuse(const std::string &why);
  /// 0: a constant index, 1: the outer loop's, 2: the inner loop's; -1: another.
  int counterOf(mlir::AffineMap map, mlir::ValueRange operands, unsigned position);
  bool runsOver(int counter, int64_t extent);
  bool readStore();
  bool readChain();
  /// Whether a tile is number k along K of the operand's row or column.
  bool reads(mlir::Value tile, int counter, int64_t k, bool isLeft);

  mlir::affine::AffineForOp outer, inner;
  int row = 0, column = 0;
  int64_t kTiles = 0;
};

} // namespace dmxc
