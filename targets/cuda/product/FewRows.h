//===- FewRows.h - products of few rows with a constant matrix --*- C++ -*-===//
//
// What such a product takes is the time in which the matrix comes from memory. Warps have columns of the result; their
// lanes have parts of the terms, which lie side by side, 16 bytes of a column a load and several loads under way. Rows
// come to shared memory once a block.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Gemm.h"

namespace dmxc::cuda {

/// A block's part of the result, and who of it has which terms.
struct FewTile {
  /// Loads of a thread that are under way together, of the matrix and of rows.
  static constexpr int64_t kLoads = 8, kRowLoads = 8;

  int64_t rows = 1, columns = 1, together = 1, warps = 4;

  static llvm::ArrayRef<kernels::TileField<FewTile>> fields();
  int64_t threads() const { return warps * 32; }
  /// Columns of a block.
  int64_t wide() const { return warps / together * columns; }
};

/// A product of rows and a constant matrix that is packed by columns.
struct FewRows {
  mlir::Operation *op = nullptr; ///< a dmir.matmul
  mlir::Value left, result;
  mlir::Operation *norm = nullptr; ///< a dmir.normalize of the left rows that the kernel computes
  unsigned buffer = 0;             ///< of the matrix
  int64_t n = 0, k = 0;
  Dim rows = 1;
  mlir::Type element;             ///< of the matrix
  llvm::SmallVector<Dim> strides; ///< of the matrix: terms, columns
  Dim offset = 0;

  /// Nothing where the kernel cannot compute it.
  static std::optional<FewRows> of(const RegionBody &body, llvm::function_ref<bool(unsigned)> constant);
  /// Whether it is the default.
  bool pays() const;

  int64_t elementBytes() const { return element.getIntOrFloatBitWidth() / 8; }
  /// Terms of a load.
  int64_t vector() const { return 16 / elementBytes(); }
  /// Elements from a packed column to the next.
  int64_t pitch() const { return llvm::divideCeil(k, vector()) * vector(); }
  /// Terms that warps which share a column have at a time.
  int64_t step(const FewTile &tile) const { return tile.together * 32 * vector(); }
  /// Steps whose terms a block keeps of its rows at a time, and the bytes of shared memory that this and the warps'
  /// sums take.
  int64_t chunk(const FewTile &tile) const;
  int64_t rowBytes(const FewTile &tile) const { return chunk(tile) * step(tile) * tile.rows * 4; }
  int64_t sumBytes(const FewTile &tile) const { return tile.warps * tile.rows * tile.columns * 4; }
  int64_t sharedBytes(const FewTile &tile) const {
    return rowBytes(tile) + sumBytes(tile) + (norm ? 2 * tile.rows * 4 : 0);
  }
  Dim blocks(const FewTile &tile) const;
  Launch launch(const FewTile &tile) const { return {blocks(tile), tile.threads(), sharedBytes(tile)}; }
  mlir::DictionaryAttr packedForm(mlir::MLIRContext *context) const;

  /// The tile of the least clocks, but what is decided of its domains.
  FewTile choose(const hw::Machine &machine, mlir::DictionaryAttr decided) const;
  std::vector<Decision> decisions(const hw::Machine &machine, mlir::DictionaryAttr decided) const;
  /// Clocks that it is expected to take.
  double clocks(const hw::Machine &machine, const FewTile &tile) const;
  /// Of what a strategy has for a tile.
  Result<FewTile> read(const hw::Machine &machine, mlir::Attribute written, llvm::StringRef key) const;

private:
  int64_t nominalRows() const;
  FewTile cheapest(const hw::Machine &machine, const kernels::DecidedFields<FewTile> &decided) const;
  kernels::FreeTile<FewTile> freeTile(const hw::Machine &machine, mlir::DictionaryAttr decided) const;
};

/// The norm, and what is elementwise behind it, that makes a product's left operand and that its kernel may compute; in
/// order, empty where there is none.
llvm::SmallVector<mlir::Operation *> normBefore(mlir::Operation *product);

void emitFewRows(CudaBuilder &b, const RegionBody &body, const FewRows &product, const FewTile &tile);

} // namespace dmxc::cuda
