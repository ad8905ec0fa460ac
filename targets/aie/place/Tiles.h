//===- Tiles.h - what is placed on the tiles of a device --------*- C++ -*-===//
#pragma once

#include "targets/aie/dialect/Aie.h"

namespace dmxc::aie {

/// What a DMA channel does: walks over a buffer, from an element on, with at most one lock taken before and one given
/// behind.
struct Step {
  mlir::Value buffer, acquire, release;
  int64_t times = 1;              ///< that they are taken and given
  int64_t offset = 0, length = 0; ///< elements
  BDDimLayoutArrayAttr walk;      ///< null: as they lie
};

/// Makes the ops of tiles, where they are asked for first; gives out BDs; writes the DMA programs.
class Tiles {
public:
  Tiles(mlir::OpBuilder &builder, mlir::Location where, const hw::Machine &machine)
      : builder(builder), where(where), machine(machine) {}

  mlir::Value tile(hw::Tile at);
  mlir::Value buffer(hw::Tile at, const std::string &name, mlir::MemRefType type, int64_t address);
  mlir::Value lock(hw::Tile at, const std::string &name, uint32_t number, int64_t value);
  /// A channel that does these steps, from one on again and again; false where the tile has not so many BDs.
  bool channel(hw::Tile at, DMAChannelDir direction, uint32_t number, std::vector<Step> steps, size_t again);
  void flow(hw::Tile from, uint32_t channel, hw::Tile to, uint32_t toChannel);
  /// The DMA programs of all tiles.
  void writeChannels();

private:
  static constexpr uint32_t kOddBds = 24; ///< the first one that odd channels of a memory tile have
  struct Channel {
    DMAChannelDir direction;
    uint32_t number;
    std::vector<Step> steps;
    size_t again = 0;          ///< the step behind the last one
    std::vector<uint32_t> bds; ///< of each step
  };
  struct Use {
    mlir::Value tile;
    uint32_t bds[2] = {0, kOddBds}; ///< of a memory tile's even and odd channels; of others the first alone
    std::map<std::string, mlir::Value> named;
    std::vector<Channel> programs;
  };
  void write(hw::Tile at, const Use &use);

  mlir::OpBuilder &builder;
  mlir::Location where;
  const hw::Machine &machine;
  std::map<hw::Tile, Use> uses;
};

} // namespace dmxc::aie
