//===- Spread.h - a quad's product over slices and cores --------*- C++ -*-===//
#pragma once

#include "Distribution.h"
#include "kept/KeptTiles.h"

#include "schemas/corsair/simd/SimdJob.h"

#include <algorithm>
#include <optional>
#include <string>

namespace dmxc::corsair {

/// What the slices of a quad share of a product.
enum class Sharing : uint8_t {
  Columns, ///< each slice has columns of its own and all rows
  Rows,    ///< each slice has 64 rows of its own, or a part of 64, and all columns
  Batch,   ///< each slice has a product of its own
};
/// Their names in text.
inline constexpr llvm::StringLiteral kShares[] = {"columns", "rows", "batch"};

/// What a quad has of a product, and how it is spread over the quad's slices and the cores of a slice, and in which
/// order its terms are added: all that decides its bits and its time. The rows of a convolution are output pixels.
struct Spread {
  int64_t m = 0, n = 0, k = 0; ///< of one product
  int64_t kChunks = 0;         ///< blocks of 64 along k
  int64_t batch = 0;           ///< products that slices may share; 0: B is constant, or there is one product
  bool conv = false;
  bool sharesBand = false; ///< of a strip of weights: slices that share rows have a part of 64
  /// Of constant weights that have zeros, a quad's columns; null of others.
  std::shared_ptr<const KeptColumns> columns;
  Rounds kept; ///< what its rounds take of K; empty: all

  Sharing sharing = Sharing::Columns;
  int slices = 1;                   ///< that take part
  int imc = 1, ppr = 0, groups = 1; ///< num_imc, ppr_mode; tiles of 64 columns side by side
  int64_t pitch = kTileBytes;       ///< bytes of a chunk of rows in IB
  int64_t segment = kSegment;       ///< chunks that half of IB holds at once; of a convolution: all

  /// What a convolution's windows are as rows along K without gaps.
  struct Windows {
    int64_t chunks = 0;   ///< blocks of 64; 0: they cannot be
    int64_t image = 0;    ///< numbers of an image
    int64_t tiles = 0;    ///< rows of tiles that it takes as channels in blocks of their own
    int64_t perPixel = 0; ///< numbers that are laid out for each output pixel
    bool operator==(const Windows &) const = default;
  };
  Windows rows;
  bool windows = false; ///< they are

  static constexpr int64_t kTileBytes = 4160, kSegment = 8;

  static Spread ofSizes(int64_t m, int64_t n, int64_t k);
  /// Of a convolution of so many output pixels, columns and channels of one group.
  static Spread ofWindow(int64_t m, int64_t n, const hw::Window &window, int64_t channels);
  /// The same by whole windows along K.
  Spread byWindows() const;
  /// As lldmir.plan, and the same product computed as one says.
  lldmir::PlanAttr plan(mlir::MLIRContext *context) const;
  Spread by(lldmir::PlanAttr plan) const;

  /// The exponents of 64 rows come first, then the rows; those that do not exist need no room.
  static int64_t pitchOf(int64_t rows) { return std::min<int64_t>(kTileBytes, 64 + 64 * rows); }
  /// The most chunks for which half of IB has room.
  int64_t longestSegment() const { return conv ? kChunks : kSegment * kTileBytes / pitch; }
  /// Rows that a slice has at a time.
  int64_t sliceRows() const { return sharesBand ? (m + rowSlices() - 1) / rowSlices() : 64; }
  int columnSlices() const { return sharing == Sharing::Columns ? slices : 1; }
  int rowSlices() const { return sharing == Sharing::Rows ? slices : 1; }
  int mask() const { return (1 << slices) - 1; }
  int64_t tilesM() const { return (m + 63) / 64; }
  int64_t tilesN() const { return (n + 63) / 64; }
  /// Tiles of 64 columns that all slices compute at once.
  int64_t tilesARound() const { return static_cast<int64_t>(groups) * columnSlices(); }
  /// Rounds over the columns until all slices have seen all of theirs.
  int64_t rounds() const { return (tilesN() + tilesARound() - 1) / tilesARound(); }
  /// Times that an array is given 64 rows, one slice after another of a batch of products.
  double steps() const;
  static bool passesRows(int64_t imc, int64_t kChunks, int64_t m, int64_t rowSlices) {
    return imc == kChunks && m > 64 * rowSlices;
  }
  /// Whether the loop over columns is the outer one: a round's tiles stay in WB, one a core, while bands of rows pass.
  bool isStationary() const { return kept.empty() && passesRows(imc, kChunks, m, rowSlices()); }
  int64_t segments() const { return (kChunks + segment - 1) / segment; }
  /// Bytes of B's tiles of a group of columns, and of all in one slice: [round][group][chunk].
  int64_t bytesPerGroup() const { return kChunks * kTileBytes; }
  int64_t bytesPerSlice() const { return groups * kTileBytes * blocks(); }
  /// Blocks along K that all rounds take.
  int64_t blocks() const {
    int64_t sum = kept.empty() ? rounds() * kChunks : 0;
    for (const auto &round : kept)
      sum += static_cast<int64_t>(round.size());
    return sum;
  }
  /// Whether a function of the sums takes hardly longer (a quarter) behind the last ones that leave OB, in the slices
  /// that have these, than of the whole result in all slices of a quad: of so many products.
  bool leavesNoMore(int64_t products, int64_t quadSlices) const;
  /// Rows of sums for which half of OB has room.
  int64_t rowsAtOnce() const { return groups > 2 ? 32 : 64; }

  bool operator==(const Spread &) const = default;
};

/// A dim of a batch of products: how many, and how far it is from one to the next.
struct BatchDim {
  int64_t extent, a, b, out;
  llvm::SmallVector<int64_t, 1> beside = {}; ///< what lies beside the result
};
/// The rows of a product, and how far it is from one to the next in A, in the result and in what lies beside it.
struct ProductRows {
  int64_t count, a, out;
  llvm::SmallVector<int64_t, 1> beside = {};
};
/// Takes from a batch those of its last dims along which B stays and the rows go on; what slices may share is left.
void joinRows(ProductRows &rows, llvm::SmallVectorImpl<BatchDim> &batch, Spread &product);

/// Of a product under a deal: what a quad has of it, not spread yet. Of a constant B the rows are the most that it
/// meets in its uses; batch dims along which B stays are rows where A's and the result's go on.
Spread productOf(mlir::Operation *product, const Distribution &deal);
/// The same as its lldmir.plan says.
Spread planOf(mlir::Operation *product, const Distribution &deal);
/// Whether an op is computed on the arrays.
bool isProduct(mlir::Operation *op);
/// How many rows of an argument that crosses as tiles begin at a tile of their own: those of a quad, or all.
int64_t rowsOfTiles(mlir::BlockArgument argument, const Distribution &deal);
/// Why a product cannot be computed by a plan on the machine: a clause; nullopt if it can.
std::optional<std::string> unfit(const Spread &product, lldmir::PlanAttr plan, const hw::Machine &machine);
/// Rows of all products of a result.
int64_t packedRows(llvm::ArrayRef<int64_t> resultShape);

} // namespace dmxc::corsair
