//===- AffineSupport.h - what the affine passes share -----------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace dmxc::transform {

/// True when all memory that ops of a nest touch is touched by affine loads and stores. MLIR's dependence analysis sees
/// nothing else, and would take a nest that it does not understand for a nest without dependences.
inline bool hasOnlyAffineAccesses(mlir::affine::AffineForOp root) {
  return !root.walk([&](mlir::Operation *op) {
                bool known = mlir::isa<mlir::affine::AffineForOp, mlir::affine::AffineReadOpInterface,
                                       mlir::affine::AffineWriteOpInterface>(op) ||
                             mlir::isMemoryEffectFree(op);
                return known ? mlir::WalkResult::advance() : mlir::WalkResult::interrupt();
              })
              .wasInterrupted();
}

/// From lower to upper constants, and no values carried: what can be moved as a whole.
inline bool isPlainLoop(mlir::affine::AffineForOp loop) {
  return loop.hasConstantBounds() && loop.getNumResults() == 0;
}

} // namespace dmxc::transform
