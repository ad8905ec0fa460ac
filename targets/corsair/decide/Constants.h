//===- Constants.h - packed forms of a model's constants --------*- C++ -*-===//
#pragma once

#include "Spread.h"

#include "dmxc/Support/Result.h"
#include "dmxc/Support/Tensor.h"

#include "mlir/IR/BuiltinAttributes.h"

#include <optional>
#include <span>

namespace dmxc::corsair {

namespace forms {
inline constexpr llvm::StringLiteral kTiles = "bfp16c-tiles"; ///< the right operand of a product
inline constexpr llvm::StringLiteral kBias = "bfp32-bias";    ///< a vector, with zeros up to the last tile
inline constexpr llvm::StringLiteral kPlain = "device";       ///< row-major in the device's kind
} // namespace forms

/// In a form of tiles: TileForm::kept.
inline constexpr llvm::StringLiteral kKeptKey = "kept";

/// Whether a form, which may be null, is that of tiles.
bool isTiles(mlir::DictionaryAttr form);

/// Tiles of a matrix of n columns, slice by slice in the order in which its array controllers read them:
/// [quad][slice][product][round][group][block]. Tiles beyond n are zeros.
struct TileForm {
  int64_t n = 0, kChunks = 0, rounds = 0, slices = 1, groups = 1;
  /// Element (k, n) of the matrix is element n * strideN + offset(k) of the constant: k counts over these extents, the
  /// last fastest, with these strides. Of the last extent `valid` exist; the others, and what is left of the last chunk
  /// behind all extents, are zeros.
  llvm::SmallVector<int64_t> extents, strides;
  int64_t strideN = 0, valid = 0;
  /// Quads with tiles of their own: `n` columns each, or along K, one part after the other.
  int64_t quads = 1;
  int64_t alongK = 0; ///< 1: along K
  /// Products of `n` columns each, one behind the other: the groups of a convolution.
  int64_t products = 1;
  /// Blocks along K of each round that have tiles, in this order; empty: all. Other tiles of the constant are zeros.
  Rounds kept;

  /// How many tiles a group has in a round, and in all rounds before one.
  int64_t blocksOf(int64_t round) const { return kept.empty() ? kChunks : static_cast<int64_t>(kept[round].size()); }
  int64_t blocksBefore(int64_t round) const;
  /// The round that a tile of 64 columns is in.
  int64_t roundOf(int64_t tile) const { return tile / (slices * groups); }
  int64_t productBytes() const { return groups * blocksBefore(rounds) * Spread::kTileBytes; }
  int64_t sliceBytes() const { return productBytes() * products; }
  int64_t quadBytes() const { return sliceBytes() * slices; }
  int64_t bytes() const { return quadBytes() * quads; }

  static TileForm of(const Spread &plan);
  static TileForm read(mlir::DictionaryAttr form);
  /// Of text, which may hold anything; nullopt where it is no form of tiles for a quad of so many slices.
  static std::optional<TileForm> parse(mlir::DictionaryAttr form, const hw::Machine &machine);
  mlir::DictionaryAttr write(mlir::MLIRContext *context) const;
};

/// The forms of a region's constant operands: operand number -> form. `constant(i)`: operand i is one.
mlir::DictionaryAttr packedForms(mlir::Block *body, const Distribution &deal,
                                 llvm::function_ref<bool(unsigned)> constant);
/// Whether a constant argument becomes tiles.
bool becomesTiles(mlir::BlockArgument argument);
/// Writes a form. Fails for one, of changed text, that is not of this constant or has other bytes.
Status packConstant(mlir::DictionaryAttr form, const Tensor &constant, std::span<std::byte> out,
                    const hw::Machine &machine);

} // namespace dmxc::corsair
