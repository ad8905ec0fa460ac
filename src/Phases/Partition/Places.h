//===- Places.h - where a fused kernel reads its values ---------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace dmxc {

/// The places at which a region's kernel asks for the values of its producers. It computes a value where it is asked
/// for it, once for each place; so a chain of ops of which each reads the one before at two places would double at
/// every step. A place is the way from the root by which it is reached, as far as that changes an index.
class Places {
public:
  /// Enters a producer all of whose readers in the region are in `ops`. False where it would be computed at more places
  /// than pays: it is better kept in memory.
  bool enter(mlir::Operation *producer, const llvm::SetVector<mlir::Operation *> &ops);

private:
  /// Code grows with the places, and so does what is computed again. Networks have up to 4, a forest of decision
  /// trees 16.
  static constexpr size_t kMost = 32;
  using Ways = llvm::SmallSetVector<size_t, 4>; ///< hashes

  llvm::DenseMap<mlir::Operation *, Ways> ways; ///< ops that are not here are read at one place
};

} // namespace dmxc
