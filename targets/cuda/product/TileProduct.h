//===- TileProduct.h - f32 products by tiles in shared memory ---*- C++ -*-===//
//
// Products and convolutions that tensor cores cannot compute exactly enough: f32, or with few outputs of a group. A
// block has a tile of the result; some terms of its rows and columns at a time come to shared memory, while it
// multiplies those before, each thread a square of sums in registers.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Gemm.h"

#include "targets/common/roots/Contraction.h"

namespace dmxc::cuda {

/// A block's part of the result.
struct SumTile {
  /// Buffers in shared memory: one is filled while the other is read.
  static constexpr int64_t kBuffers = 2;
  /// Floats between rows of shared memory, so that neighbours along the terms are in other banks.
  static constexpr int64_t kPad = 4;

  int64_t rows = 64, columns = 64;

  static llvm::ArrayRef<kernels::TileField<SumTile>> fields();
  /// Rows, and columns, of a thread; terms of a step.
  int64_t own() const { return rows >= 64 ? 8 : 4; }
  int64_t terms() const { return 64 / own(); }
  int64_t threads() const { return rows / own() * (columns / own()); }
  int64_t rowPitch() const { return rows + kPad; }
  int64_t columnPitch() const { return columns + kPad; }
  /// Floats of a buffer.
  int64_t buffer() const { return terms() * (rowPitch() + columnPitch()); }
  int64_t sharedBytes() const { return kBuffers * buffer() * 4; }
};

/// A product of f32 whose operands lie in memory.
struct TileProduct : Contraction {
  /// One side: `rows` (m on the left, n on the right) times k. Strides are elements.
  struct Side {
    unsigned buffer;
    Dim rows, rowStride = 0, kStride = 1, offset;
    llvm::ArrayRef<Dim> batch;
    const Windows *windows = nullptr; ///< what it is read out of where its rows overlap
  };

  /// Nothing where the kernel cannot compute it.
  static std::shared_ptr<const TileProduct> of(mlir::Operation *root);
  /// Whether it is the default.
  bool pays(const hw::Machine &machine) const;
  Side left() const;
  Side right() const;
  Dim tiles(const SumTile &tile) const;
  /// Of a table of the windows' terms, behind the tiles.
  int64_t tableBytes() const;
  Launch launch(const SumTile &tile) const { return {tiles(tile), tile.threads(), tile.sharedBytes() + tableBytes()}; }

  /// The tile of the least clocks, but what is decided of its domains.
  SumTile choose(const hw::Machine &machine, mlir::DictionaryAttr decided) const;
  std::vector<Decision> decisions(const hw::Machine &machine, mlir::DictionaryAttr decided) const;
  double clocks(const hw::Machine &machine, const SumTile &tile) const;
  Result<SumTile> read(const hw::Machine &machine, mlir::Attribute written, llvm::StringRef key) const;

private:
  explicit TileProduct(mlir::Operation *root) : Contraction(Contraction::of(root)) {}
  int64_t nominally(Dim size) const { return std::max<int64_t>(nominal(op->getBlock(), size), 1); }
  SumTile cheapest(const hw::Machine &machine, const kernels::DecidedFields<SumTile> &decided) const;
  kernels::FreeTile<SumTile> freeTile(const hw::Machine &machine, mlir::DictionaryAttr decided) const;
};

/// Of an element a thread: instructions of it and of its terms, with their share of loops and places, and the wait for
/// operands from the second cache.
double plainClocks(const hw::Machine &machine, mlir::Operation *product);
/// The algorithm's name.
llvm::StringRef tiledOf(mlir::Operation *product);
KernelPlan planTiles(const RegionBody &body, const std::shared_ptr<const TileProduct> &product, const SumTile &tile);
/// The same as a strategy says.
Result<KernelPlan> tilesIn(const RegionBody &body, const CudaRequest &request);
void emitTiles(CudaBuilder &b, const RegionBody &body, const TileProduct &product, const SumTile &tile);

} // namespace dmxc::cuda
