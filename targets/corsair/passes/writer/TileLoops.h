//===- TileLoops.h - what loops over tiles do --------------------*- C++ -*-===//
#pragma once

#include "TileUnits.h"

#include "targets/corsair/decide/Constants.h"
#include "targets/corsair/write/TileOrder.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

#include <functional>
#include <string>

namespace dmxc {

/// Loops around the products of tiles of one matrix, followed trip by trip and op by op: which tile of the result each
/// store is of, and what was added up to it. How the loops are written says nothing but the order.
class TileLoops {
public:
  /// False where the arrays do not compute what the loops do; `problem` says why, of the op `at`.
  bool follow(mlir::affine::AffineForOp loop);
  /// The form of packed weights by their grid, null for others.
  std::function<const corsair::TileForm *(mlir::Value)> formOf = [](mlir::Value) { return nullptr; };

  mlir::Value left, right, out, bias;           ///< grids of tiles; no bias: null
  std::vector<corsair::TileTerms> terms;        ///< that tiles of the result are sums of
  std::vector<corsair::TileOrder::Tile> tiles;  ///< of the result, in their order
  std::vector<std::vector<TileUnit>> epilogues; ///< by the number that terms have
  mlir::SmallVector<mlir::Value, 1> beside;     ///< grids that these read
  mlir::SmallVector<lldmir::MatMulOp> products; ///< the ops
  mlir::affine::AffineStoreOp store;            ///< one of those
  mlir::Operation *at = nullptr;
  std::string problem;

  /// Whether all terms are added in the order of K, each activation to its weight.
  bool isInOrder() const;
  /// As many blocks as most additions have.
  int64_t widest() const;
};

} // namespace dmxc
