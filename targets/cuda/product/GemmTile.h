//===- GemmTile.h - how a product is cut for multiprocessors ----*- C++ -*-===//
#pragma once

#include "schemas/cuda/Layouts.h"

#include "targets/common/tiles/Tiles.h"

#include "dmxc/Support/Result.h"

namespace dmxc::cuda {

/// A block's part of the result, and how many slots of operand tiles it keeps in flight: each has 64 terms of its rows
/// and columns.
struct GemmTile {
  int64_t rows = 128, columns = 128, stages = 4;

  static llvm::ArrayRef<kernels::TileField<GemmTile>> fields();

  /// Warpgroups that multiply, each 64 rows; one more copies.
  int64_t consumers() const { return rows / dmx::cuda::kMmaRows; }
  int64_t threads() const { return (consumers() + 1) * 128; }
  int64_t leftBytes() const { return rows * dmx::cuda::kTileRowBytes; }
  int64_t rightBytes() const { return columns * dmx::cuda::kTileRowBytes; }
  int64_t slotBytes() const { return leftBytes() + rightBytes(); }
  /// Operands, then a full and an empty barrier a slot.
  int64_t barriersAt() const { return stages * slotBytes(); }
  int64_t sharedBytes() const { return barriersAt() + stages * 16; }
  /// The most slots that fit a block, of 8.
  int64_t mostStages() const;
  /// Whether warpgroups give each other registers: where fewer than a thread can have are left for each.
  bool movesRegisters() const { return consumers() > 1; }
};

/// Sizes as they are expected, which choices rest on.
struct GemmSizes {
  int64_t batch, m, n, k;
};

/// The multiprocessors of an H100 (SXM) and an H200, that a persistent kernel has blocks for.
inline constexpr int64_t kMultiprocessors = 132;

/// Clocks that a product is expected to take: of a multiprocessor the longer of its multiplications and its copies,
/// times how often all of them have a tile.
double gemmClocks(const GemmSizes &sizes, const GemmTile &tile);
/// The tile of the least clocks with the fields that are decided, and the slots that it is worth.
GemmTile chooseGemmTile(const GemmSizes &sizes, const kernels::DecidedFields<GemmTile> &decided = {});
/// What is free, of what is `decided` already (may be null).
std::vector<Decision> gemmDecisions(const GemmSizes &sizes, mlir::DictionaryAttr decided, mlir::MLIRContext *context);
/// The chosen tile, but what is `decided` of its domains.
GemmTile decidedGemmTile(const GemmSizes &sizes, mlir::DictionaryAttr decided, mlir::MLIRContext *context);

/// Of what writeTile wrote. Fails where text has something else under `key`: a clause that says what it may be.
Result<GemmTile> readGemmTile(mlir::Attribute written, llvm::StringRef key, mlir::MLIRContext *context);

} // namespace dmxc::cuda
