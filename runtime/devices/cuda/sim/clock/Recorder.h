//===- Recorder.h - keeps what the clock needs of a launch ------*- C++ -*-===//
//
// Counts what all warps do, and keeps the instructions of a few blocks for the clock to play. What it keeps of a warp
// is in the order of its program, whatever turns the warps take: a warp that waits stands until it may go on.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Trace.h"
#include "runtime/devices/cuda/sim/Launch.h"

namespace dmxrt::cuda {

struct BulkCopy;

class Recorder {
public:
  /// Blocks whose instructions are kept, spread over the grid.
  static constexpr uint32_t kTraced = 3;
  /// Instructions of a block that are kept at most; one that has more is no block to play.
  static constexpr uint64_t kMostEvents = uint64_t(1) << 24;

  explicit Recorder(const Launch &launch, uint64_t mostEvents = kMostEvents);

  void beginBlock(uint32_t number);
  /// What follows is done by that block, of the cluster that began last.
  void focus(uint32_t number);
  /// Before a warp does an instruction for `active` lanes, the first time that it tries.
  void issue(const Warp &warp, const Op &op, uint32_t index, uint32_t active);
  /// A warp that had to wait goes on.
  void goesOn(const Warp &warp, const Op &op, uint32_t index);
  void bulk(const Warp &warp, const BulkCopy &copy);

  const LaunchCounts &counts() const { return all; }
  const std::vector<BlockTrace> &traces() const { return kept; }
  /// Of a region: sectors that blocks which were run read or wrote, each once, and all that it has.
  struct Footprint {
    uint64_t readSectors = 0, writtenSectors = 0, sectors = 0;
  };
  std::vector<Footprint> footprints() const; ///< by region
  /// So many of the blocks of a grid, spread over it.
  static std::vector<uint32_t> chosen(uint32_t blocks, uint32_t count);
  /// The blocks that are run, of each cluster the first one.
  static std::vector<uint32_t> firstBlocks(const Launch &launch);

private:
  /// The lanes' addresses of one access.
  struct Lanes {
    uint64_t at[kLanes];
    uint32_t count = 0;
  };
  void add(uint32_t warp, uint32_t op, uint32_t detail = 0);
  void access(const Warp &warp, const Op &op, uint32_t index, uint32_t active);
  void atCluster(const Warp &warp, const Op &op, uint32_t index);
  void matrices(const Warp &warp, const Op &op, uint32_t index);
  void barrier(const Warp &warp, const Op &op, uint32_t index, uint32_t active);
  void global(const Lanes &lanes, uint32_t bytes, bool isWrite, WarpAccess &out);
  static void shared(const Lanes &lanes, uint32_t bytes, uint32_t &wavefronts, uint32_t &least);
  /// A global address as a region's number and an offset.
  uint64_t place(uint64_t address, uint32_t bytes);
  void touch(uint64_t sector, bool isWrite);
  uint32_t keepSectors(WarpAccess &out);

  struct Touched {
    std::vector<uint64_t> read, written; ///< a bit a sector
  };
  const Launch &launch;
  uint64_t mostEvents;
  std::vector<uint32_t> wanted;
  std::vector<BlockTrace> kept;
  BlockTrace *block = nullptr;  ///< null: not kept
  uint32_t latest = UINT32_MAX; ///< number of the one that was kept last and is not given up
  LaunchCounts all;
  std::vector<Touched> touched;                              ///< by region
  uint32_t hint = 0, bulkOp = 0;                             ///< the instruction of bulk copies that is at hand
  std::vector<uint64_t> sectors;                             ///< of the access at hand
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> waiting; ///< (warp, op) -> barriers[i]
};

} // namespace dmxrt::cuda
