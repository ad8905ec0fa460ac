//===- Nest.h - loops in one another ----------------------------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/IR/PatternMatch.h"

#include <string>

namespace dmxc::transform {

/// Whether an op is a loop that a target deals out, by a mark of its own: it holds nests and is of none.
bool isDealt(mlir::Operation *op);
/// Whether a loop is in no other loop but dealt ones.
bool isNest(mlir::Operation *op);
/// The nests in an op; a loop is the root of one itself.
mlir::SmallVector<mlir::affine::AffineForOp> nestsIn(mlir::Operation *op);
/// "'prod'", by its node, or "at f.mlir:3:5".
std::string placeOf(mlir::Operation *op);

/// The loop that stands directly in another one; null where there is none, or several.
mlir::affine::AffineForOp onlyLoopIn(mlir::affine::AffineForOp outer);
/// Loops from `root` on, each the only one in the one before, whatever else is there.
mlir::SmallVector<mlir::affine::AffineForOp> chainFrom(mlir::affine::AffineForOp root);
/// An op beside the only loop of another one, or what ends that where it does not hand on what is carried; null
/// where there is none.
mlir::Operation *besideLoop(mlir::affine::AffineForOp outer, mlir::affine::AffineForOp inner);

/// A loop of a nest that is made anew: of an old one all trips, the first trip of each tile, or the trips of a tile.
struct LoopPlan {
  enum class Part : uint8_t { Whole, Tiles, Points };
  unsigned of = 0; ///< the number of the old loop
  Part part = Part::Whole;
  int64_t size = 0; ///< of a tile, in trips
};

/// Why perfectly nested loops cannot be made anew so: bounds that rest on what comes further inside; "" where they can.
std::string problemOf(mlir::ArrayRef<mlir::affine::AffineForOp> loops, mlir::ArrayRef<LoopPlan> plan);
/// Makes perfectly nested loops anew, around the same body; returns the loops, the outermost first.
mlir::SmallVector<mlir::affine::AffineForOp>
rebuild(mlir::RewriterBase &rewriter, mlir::ArrayRef<mlir::affine::AffineForOp> loops, mlir::ArrayRef<LoopPlan> plan);
/// Makes indices of the ops in a nest sums of its counters alone, without an affine.apply of another one.
void composeIndices(mlir::RewriterBase &rewriter, mlir::Operation *root);

} // namespace dmxc::transform
