//===- KeptTiles.h - tiles of weights that are not all zero ------*- C++ -*-===//
//
// A product by a constant takes, in each round of its columns, the blocks of 64 along K of which one of the round's
// tiles has something that is not zero: lldmir.kept. Their order is that of K, so that a round that takes all of them,
// those of zeros last, adds up the same bits: blocks of zeros give sums of exactly zero.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Result.h"
#include "dmxc/Support/Tensor.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dmxc::corsair {

struct Spread;

/// Of a matrix of k x n floats, for each block of 64 along K the columns that have other than zeros in it.
class KeptColumns {
public:
  /// Null where the matrix, by a look at some of its elements, has too few zeros for any block.
  static std::shared_ptr<const KeptColumns> of(const Tensor &matrix);
  /// Of quads that have columns of their own, as many each: what any of them has at its columns.
  std::shared_ptr<const KeptColumns> folded(int64_t columns) const;

  int64_t blocks() const { return static_cast<int64_t>(kept.size()); }
  bool any(int64_t block, int64_t from, int64_t to) const;

private:
  std::vector<std::vector<bool>> kept; ///< [block][column]
};

/// Of each round of columns the blocks along K that it takes, in this order; empty: each takes all.
using Rounds = llvm::SmallVector<llvm::SmallVector<int64_t>>;

/// What the rounds of a product take, one block at least; `all`: the blocks of zeros behind the others.
Rounds roundsOf(const Spread &plan, const KeptColumns &columns, bool all);
/// As lldmir.kept, and as it says. Nothing where the text is no list of lists of different blocks, below `blocks`.
mlir::ArrayAttr attributeOf(const Rounds &rounds, mlir::MLIRContext *context);
std::optional<Rounds> readRounds(mlir::Attribute given, int64_t rounds, int64_t blocks);
/// Why blocks are in another order than that of K, with those of zeros behind the others: a clause; nullopt where they
/// are not. A program that is made for them would find others at their places.
std::optional<std::string> outOfOrder(llvm::ArrayRef<int64_t> blocks, llvm::function_ref<bool(int64_t)> isZero);

} // namespace dmxc::corsair
