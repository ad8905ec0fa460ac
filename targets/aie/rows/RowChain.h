//===- RowChain.h - ops that cores do row by row ----------------*- C++ -*-===//
//
// A chain begins with rows that a shim reads out of a tensor, through whatever views of it, and each of its ops makes
// other rows of them: joined with another tensor or a row, a step for each number, softmax, normalisation.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/aie/Epilogue.h"

namespace dmxc::aie {

/// What an op does to rows.
struct RowOp {
  mlir::Operation *op = nullptr;
  unsigned spine = 0;                          ///< the operand whose rows it changes
  hw::KernelId kernel = hw::KernelId::CopyF32; ///< of a join the one of whole tensors; StepsF32 for a step
  mlir::Value other;                           ///< of a join; without one it is with the rows themselves
  hw::Step step;
  float epsilon = 0; ///< of a normalisation
};

/// With what they meet as many tasks as the queue of a shim's channel holds.
inline constexpr size_t kMostOthers = 3;

struct RowChain {
  mlir::Value first;      ///< the rows that are read
  std::vector<RowOp> ops; ///< in their order

  size_t others() const;
  /// The steps, which are beside each other.
  std::vector<hw::Step> steps() const;
};

/// Whether an op moves numbers and computes nothing.
bool isView(mlir::Operation *op);
/// Null of an op that cores do not do row by row.
std::optional<RowOp> rowOpOf(mlir::Operation *op);
inline mlir::Value spineOf(const RowOp &op) { return op.op->getOperand(op.spine); }
/// The chain that computes a value, from `first` on or as far up as there are row ops in its block.
RowChain chainTo(mlir::Value value, mlir::Value first = {});
/// nullopt where a core's program, BDs and queues hold the chain.
std::optional<std::string> refuses(const RowChain &chain);

} // namespace dmxc::aie
