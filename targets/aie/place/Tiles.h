//===- Tiles.h - what is placed on the tiles of a device --------*- C++ -*-===//
#pragma once

#include "targets/aie/dialect/Aie.h"

namespace dmxc::aie {

/// Buffers of one matrix in a tile, with the locks that say how many are empty and how many full.
struct Ring {
  llvm::SmallVector<mlir::Value> buffers;
  mlir::Value empty, full;
};
/// Gives out memory, locks, channels and BDs of the tiles, in order; writes their ops into a device.
class Tiles {
public:
  Tiles(mlir::OpBuilder &builder, mlir::Location where, const hw::Machine &machine)
      : builder(builder), where(where), machine(machine) {}

  mlir::Value tile(hw::Tile at);
  mlir::Value buffer(hw::Tile at, const std::string &name, mlir::MemRefType type);
  mlir::Value lock(hw::Tile at, const std::string &name, int64_t value);
  /// So many buffers; `bank`: they begin at the next bank of a core's memory.
  Ring ring(hw::Tile at, const std::string &name, mlir::MemRefType type, int64_t depth, bool bank = false);
  /// A channel that fills (S2MM) or empties the buffers of rings in turn, buffer after buffer; its number.
  uint32_t channel(hw::Tile at, DMAChannelDir direction, llvm::ArrayRef<Ring> rings, BDDimLayoutArrayAttr walk = {});
  void flow(hw::Tile from, uint32_t channel, hw::Tile to, uint32_t toChannel);
  /// The DMA programs of all tiles.
  void writeChannels();

private:
  struct Step {
    mlir::Value buffer, acquire, release;
    uint32_t bd;
  };
  struct Channel {
    DMAChannelDir direction;
    uint32_t number;
    std::vector<Step> steps;
    BDDimLayoutArrayAttr walk;
  };
  struct Use {
    mlir::Value tile;
    int64_t bytes = 0;
    uint32_t locks = 0;
    uint32_t channels[2] = {}; ///< by direction
    uint32_t bds[2] = {0, 24}; ///< of a memory tile's even and odd channels; of others the first alone
    std::vector<Channel> programs;
  };
  void write(hw::Tile at, const Use &use);

  mlir::OpBuilder &builder;
  mlir::Location where;
  const hw::Machine &machine;
  std::map<hw::Tile, Use> uses;
};

} // namespace dmxc::aie
