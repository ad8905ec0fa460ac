//===- Bands.h - rows of scores that are computed band by band --*- C++ -*-===//
//
// Scores, what is done to them, and the product of their softmax: each quad computes 64 rows of all three before the
// next 64, so that nothing of rows times columns lies in GM, and a mask by diagonals shortens what is multiplied.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../Distribution.h"

namespace dmxc::corsair {

/// Rows of a band: those of a tile.
inline constexpr int64_t kBandRows = 64;
/// Columns of scores whose weights a strip has in f16; half of the weights of twice as many are below 2^-14, where f16
/// ends.
inline constexpr int64_t kMostHalfWeights = 1024;

/// The ops between two products of values whose rows are independent: elementwise ones, of which `softmax` is the last.
struct Scores {
  dmir::MatMulOp product;                          ///< makes them
  llvm::SmallVector<mlir::Operation *, 4> between; ///< from the product to the softmax, without both
  dmir::SoftmaxOp softmax;
  dmir::MatMulOp weighted; ///< the product of what softmax makes
};

/// The scores that a softmax is of; nullopt where others read them too, where one of the products is by a constant, or
/// where an op between is none of elements.
std::optional<Scores> scoresOf(dmir::SoftmaxOp softmax);

/// Why a quad cannot compute scores band by band under a deal: a clause; nullopt if it can.
std::optional<std::string> unfitForBands(Scores scores, const Distribution &deal);

/// Takes up `lldmir.bands` of a body's softmaxes; fails, by node, where one cannot be obeyed.
Status readBands(mlir::Block *body, Distribution &deal);
/// Adds the softmaxes whose scores are large enough for bands.
void chooseBands(mlir::Block *body, Distribution &deal);

/// Folds rows where a mask keeps columns up to a diagonal: of queries that the host brings for such scores alone, of
/// the scores, and of the result that goes back to it. The inputs are dealt.
void chooseFolds(mlir::Block *body, Distribution &deal, llvm::function_ref<bool(mlir::Value)> isInput);
/// Fails, by node, where a value is folded and what belongs to it is not.
Status checkFolds(mlir::Block *body, const Distribution &deal);

/// Whether a product makes scores that are computed band by band, or weights values by them.
bool isInBands(dmir::MatMulOp product, const Distribution &deal);
/// Whether a product in bands is of scores of which a mask keeps a window of fewer than 1,024 columns: the fewer of
/// them are multiplied at once, the fewer are multiplied in vain.
bool isOfWindow(dmir::MatMulOp product, const Distribution &deal);
/// Columns that both products around scores take at a time where a mask ends them, of the first such scores of a body
/// whose products have their plans; 0 where none are ended.
int64_t columnsAtOnce(mlir::Block *body, const Distribution &deal);
/// Whether a value of a graph is one of scores that a quad could compute band by band, whatever they are dealt by.
bool mayBeStrip(mlir::Value value);
/// Whether a value has a band's rows alone in GM.
bool isStrip(mlir::Value value, const Distribution &deal);

} // namespace dmxc::corsair
