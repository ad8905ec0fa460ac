//===- MatmulPlan.h - how a product is computed -----------------*- C++ -*-===//
#pragma once

#include "Distribution.h"

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

struct ProductDims;

/// How a product is spread over the slices of a quad and over the cores of a slice, and in which order its terms are
/// added: all that decides its bits and its time.
struct MatmulPlan {
  int64_t m = 0, n = 0, k = 0; ///< of one product
  int64_t kChunks = 0;         ///< blocks of 64 along k
  Sharing sharing = Sharing::Columns;
  int slices = 1;                   ///< that take part
  int imc = 1, ppr = 0, groups = 1; ///< num_imc, ppr_mode; tiles of 64 columns side by side
  int64_t pitch = kTileBytes;       ///< bytes of a chunk of rows in IB
  int64_t segment = kSegment;       ///< chunks that half of IB holds; of a convolution: all

  static constexpr int64_t kTileBytes = 4160, kSegment = 8;
  /// The exponents of 64 rows come first, then the rows; those that do not exist need no room.
  static int64_t pitchOf(int64_t rows) { return std::min<int64_t>(kTileBytes, 64 + 64 * rows); }
  /// The most chunks of so many rows for which half of IB has room.
  static int64_t longestSegment(int64_t rows) { return kSegment * kTileBytes / pitchOf(rows); }
  bool sharesBand = false; ///< the slices share 64 rows
  /// Rows that a slice has at a time.
  int64_t sliceRows() const { return sharesBand ? (m + rowSlices() - 1) / rowSlices() : 64; }
  int columnSlices() const { return sharing == Sharing::Columns ? slices : 1; }
  int rowSlices() const { return sharing == Sharing::Rows ? slices : 1; }
  int mask() const { return (1 << slices) - 1; }
  int64_t tilesN() const { return (n + 63) / 64; }
  /// Tiles of 64 columns that all slices compute at once.
  int64_t tilesARound() const { return static_cast<int64_t>(groups) * columnSlices(); }
  /// Rounds over the columns until all slices have seen all of theirs.
  int64_t rounds() const { return (tilesN() + tilesARound() - 1) / tilesARound(); }
  /// Times that an array is given 64 rows, one slice after another of a batch of products.
  double steps(int64_t batch) const;
  /// Whether the loop over columns is the outer one: by itself where their tiles can stay while several bands of rows
  /// pass.
  std::optional<bool> columnsOutside;
  static bool passesRows(int64_t imc, int64_t kChunks, int64_t m, int64_t rowSlices) {
    return imc == kChunks && m > 64 * rowSlices;
  }
  bool hasColumnsOutside() const { return columnsOutside.value_or(passesRows(imc, kChunks, m, rowSlices())); }
  /// Whether a round's tiles stay in WB while bands of rows pass: one tile a core.
  bool isStationary() const { return imc == kChunks && hasColumnsOutside(); }
  int64_t segments() const { return (kChunks + segment - 1) / segment; }
  /// Bytes of B's tiles in one slice: [round][group][chunk].
  int64_t bytesPerSlice() const { return rounds() * groups * kChunks * kTileBytes; }
  /// Rows of sums for which half of OB has room.
  int64_t rowsAtOnce() const { return groups > 2 ? 32 : 64; }

  bool operator==(const MatmulPlan &) const = default;
  /// lldmir.plan, and a product of these dims that is computed as it says.
  lldmir::PlanAttr write(mlir::MLIRContext *context) const;
  static MatmulPlan read(lldmir::PlanAttr plan, const ProductDims &dims);
};

/// What of a product its plan depends on.
struct ProductDims {
  int64_t m = 0, n = 0, k = 0;
  int64_t kChunks = 0; ///< blocks of 64 along k
  int64_t batch = 0;   ///< products that slices may share; 0: B is constant, or there is one product
  bool conv = false;
  bool ofBand = false; ///< of a strip of weights: slices that share rows have a part of 64
};

/// A dim of a batch of products: how many, and how far it is from one to the next.
struct BatchDim {
  int64_t extent, a, b, out;
};

/// The rows of a product, and how far it is from one to the next in A and in the result.
struct ProductRows {
  int64_t count, a, out;
  /// Takes from a batch those of its last dims along which B stays and the rows go on.
  void join(llvm::SmallVectorImpl<BatchDim> &batch);
};

/// Of a product under a deal: what a quad has of it. Of a constant B the rows are the most that it meets in its uses;
/// batch dims along which B stays are rows where A's and the result's go on.
ProductDims dimsOf(mlir::Operation *product, const Distribution &deal);
/// M and what of the batch slices may share, of rows and a batch that are joined.
void setRows(ProductDims &dims, const ProductRows &rows, llvm::ArrayRef<BatchDim> batch);
/// Whether an op is computed on the arrays.
bool isProduct(mlir::Operation *op);
/// How many rows of an argument that crosses as tiles begin at a tile of their own: those of a quad, or all.
int64_t rowsOfTiles(mlir::BlockArgument argument, const Distribution &deal);
/// How a product is computed, as its lldmir.plan says.
MatmulPlan planOf(mlir::Operation *product, const Distribution &deal);
/// Why no product of these dims can be computed so on the machine: a clause; nullopt if it can.
std::optional<std::string> unfit(lldmir::PlanAttr plan, const ProductDims &dims, const hw::Machine &machine);
/// Rows of all products of a result.
int64_t packedRows(llvm::ArrayRef<int64_t> resultShape);

} // namespace dmxc::corsair
