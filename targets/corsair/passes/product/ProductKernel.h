//===- ProductKernel.h - a product's kernel over quads, read ----*- C++ -*-===//
#pragma once

#include "schemas/corsair/Machine.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace dmxc {

namespace hw = dmx::corsair;

/// A dim of the grid of result tiles.
struct ProductDim {
  int64_t trips = 1;  ///< of all quads together
  bool split = false; ///< quad q has indices q, q + quads, ..
  /// Bytes from index to index in the whole activations, weights and result; 0: does not depend on it.
  int64_t a = 0, w = 0, o = 0;
  int64_t b = 0; ///< of the bias
};

/// What corsair-outline-spmd left: one product a thread, tile by tile.
struct ProductKernel {
  mlir::gpu::LaunchFuncOp launch;
  std::string name;
  int64_t quads = 1;
  llvm::SmallVector<ProductDim> batch;
  ProductDim row, column;                   ///< of tiles
  mlir::Value activations, weights, result; ///< operands of the launch
  mlir::Value bias;                         ///< the same, or null: a number a column, added to the sums
  hw::ElemKind activationKind, weightKind, resultKind;
  int64_t kTiles = 0;
  struct Chunk {
    int64_t first, imc, ppr;
  };
  llvm::SmallVector<Chunk> chunks; ///< in the order in which they are added
  int64_t rows = 64;               ///< of a tile that matter

  int64_t activationTile() const { return hw::tileOf(activationKind)->bytes(); }
  int64_t weightTile() const { return hw::tileOf(weightKind)->bytes(); }
  int64_t band() const { return kTiles * activationTile(); }    ///< bytes of 64 activation rows
  int64_t columnBytes() const { return kTiles * weightTile(); } ///< of 64 columns of weights
  int64_t element() const { return hw::elementBytes(resultKind); }
};

/// Reads the kernel of a launch; on failure the error is on the op that is not understood.
mlir::FailureOr<ProductKernel> readProductKernel(mlir::gpu::LaunchFuncOp launch);

} // namespace dmxc
