//===- ProductNest.h - what fills the tiles of a product's result -*- C++ -*-===//
#pragma once

#include "../KernelFunctions.h"
#include "../Views.h"

#include "targets/corsair/decide/Spread.h"
#include "targets/corsair/dialect/AffineExt/AffineExt.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {

template <typename Effect> bool has(mlir::Operation *op, mlir::Value buffer) {
  auto effects = mlir::dyn_cast<mlir::MemoryEffectOpInterface>(op);
  return effects && effects.getEffectOnValue<Effect>(buffer);
}

/// Ops that use a buffer or a view of it, which are no views.
void usersOf(mlir::Value buffer, llvm::SmallVectorImpl<std::pair<mlir::Operation *, mlir::Value>> &users);

/// The loops of a product whose tiles are all stored by one op, or a convolution.
struct Nest {
  mlir::Operation *root = nullptr; ///< in the function's body
  lldmir::ConvOp conv;             ///< null: loops
  mlir::affine::AffineForOp quads; ///< that over the quads, if there is one
  llvm::SmallVector<mlir::affine::AffineForOp> batch;
  mlir::affine::AffineStoreOp store;
  llvm::SmallVector<mlir::Operation *> views; ///< from the buffer to the grid, which is the last
  mlir::Value buffer;

  /// False where it is neither.
  bool read(mlir::Operation *op);
  mlir::MemRefType type() const { return mlir::cast<mlir::MemRefType>(buffer.getType()); }
  bool isDealt();
  /// Whether every matrix of the batch has weights of its own.
  bool hasOwnWeights();
  /// Whether functions are done sooner on the way out of OB than as ops of their own; so they are where no plan says
  /// how the product is spread.
  bool pays(const corsair::hw::Machine &machine);

private:
  bool readLoops(mlir::affine::AffineForOp loop);
  /// Whether the product weighs values by rows that come in bands.
  bool readsBands();
};

} // namespace dmxc
