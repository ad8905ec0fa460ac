//===- GemmTile.h - how a product is cut for multiprocessors ----*- C++ -*-===//
#pragma once

#include "schemas/cuda/Layouts.h"
#include "schemas/cuda/Machine.h"

#include "targets/common/tiles/Tiles.h"

#include "dmxc/Support/Result.h"

#include <functional>

namespace dmxc::cuda {

namespace hw = dmx::cuda;

/// A block's part of the result, and how many slots of operand tiles it keeps in flight: each has 64 terms of its rows
/// and columns.
struct GemmTile {
  /// Of a slot: one that says that it is full, and one that it is empty.
  static constexpr int64_t kBarrierBytes = 16;

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
  int64_t sharedBytes() const { return barriersAt() + stages * kBarrierBytes; }
  /// The most slots that fit a block.
  int64_t mostStages(const hw::Machine &machine) const { return machine.mostShared / (slotBytes() + kBarrierBytes); }
};

/// Sizes as they are expected, which choices rest on.
struct GemmSizes {
  int64_t batch, m, n, k;
  /// Steps of an operand that lacks some: of the block that has the most of so many, and of all tiles. Null: all.
  struct Steps {
    double busiest, all;
  };
  std::function<Steps(const GemmTile &tile, int64_t blocks)> keptSteps = nullptr;
};

/// Clocks that a product is expected to take, as the simulator's clock will have it (schemas/cuda/Rates.h): of a
/// multiprocessor the longer of its multiplications and its copies, times how often all of them have a tile.
double gemmClocks(const hw::Machine &machine, const GemmSizes &sizes, const GemmTile &tile);
/// The tile of the least clocks with the fields that are decided, and the slots that it is worth.
GemmTile chooseGemmTile(const hw::Machine &machine, const GemmSizes &sizes,
                        const kernels::DecidedFields<GemmTile> &decided = {});
/// What the tile's choice rests on: the clocks of the one with these fields, and of the others. A clause.
std::string explainGemmTile(const hw::Machine &machine, const GemmSizes &sizes, mlir::DictionaryAttr decided,
                            mlir::MLIRContext *context);
/// What is free, of what is `decided` already (may be null).
std::vector<Decision> gemmDecisions(const hw::Machine &machine, const GemmSizes &sizes, mlir::DictionaryAttr decided,
                                    mlir::MLIRContext *context);
/// The chosen tile, but what is `decided` of its domains.
GemmTile decidedGemmTile(const hw::Machine &machine, const GemmSizes &sizes, mlir::DictionaryAttr decided,
                         mlir::MLIRContext *context);

/// Of what writeTile wrote. Fails where text has something else under `key`: a clause that says what it may be.
Result<GemmTile> readGemmTile(const hw::Machine &machine, mlir::Attribute written, llvm::StringRef key,
                              mlir::MLIRContext *context);

} // namespace dmxc::cuda
