//===- Cluster.h - blocks that reach into each other's shared memory -*- C++ -*-===//
#pragma once

#include "runtime/devices/cuda/sim/Block.h"

namespace dmxrt::cuda {

/// Blocks of one cluster, in turns; their warps' knowledge is of all warps of the cluster.
class Cluster {
public:
  Cluster(const Launch &launch, uint64_t &idle);
  /// Runs the blocks from `first` on. False: `outcome` says what went wrong.
  bool run(uint32_t first, LaunchOutcome &outcome);

  // --- for instructions -----------------------------------------------------------------
  /// Where a block's shared memory lies among the cluster's addresses; its own addresses are below the first.
  static uint64_t windowOf(uint64_t rank) { return (rank + 1) * kWindowBytes; }
  /// An access of a warp to shared memory of another block: "" and the place, or what is wrong with it.
  std::string locate(Warp &w, uint64_t address, const Memory::Access &access, std::byte *&at);
  /// barrier.cluster.arrive for a warp, and whether what it arrived for has ended.
  std::string arrive(Warp &w, bool brings);
  bool hasEnded(const Warp &w) const { return barrier.round != arrivals[warpOf(w)]; }
  bool hasArrived(const Warp &w) const { return arrivals[warpOf(w)] != 0; }
  void join(Warp &w, bool takes);
  /// Threads end.
  void leave(uint32_t threads);
  /// Times that a round ended.
  uint64_t events() const { return barrier.round; }
  std::string describe() const;

private:
  static uint32_t warpOf(const Warp &w) { return w.block->actors.ofWarp(w.number); }
  bool go(uint32_t rank, LaunchOutcome &outcome);
  bool mayEnd(uint32_t rank, LaunchOutcome &outcome);
  void endRound();

  const Launch &launch;
  uint64_t random;
  struct Seat {
    std::unique_ptr<Block> block;
    bool ended = false, stuck = false;
    uint64_t since = 0;           ///< events when nobody of it could go on
    std::vector<uint32_t> remote; ///< by warp of the cluster: the tick of its last access to it
  };
  std::vector<Seat> seats;
  uint32_t firstBlock = 0;
  struct {
    uint64_t round = 1;
    uint32_t arrived = 0, threads = 0; ///< of the round; that have not ended
    Knowledge coming, done;
  } barrier;
  std::vector<uint64_t>
      arrivals; ///< by warp of the cluster: the round that it arrived for and does not know the end of; 0: none
};

} // namespace dmxrt::cuda
