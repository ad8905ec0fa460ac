//===- Block.h - the threads of a block, and what they share ----*- C++ -*-===//
#pragma once

#include "Bulk.h"
#include "Product.h"
#include "WarpRun.h"

namespace dmxrt::cuda {

class Cluster;

/// splitmix64
inline uint64_t nextRandom(uint64_t &state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/// A block whose warps take turns: of random length, in random order, while copies land.
class Block {
public:
  /// `cluster`: the one that it is of, and which of its blocks it is; null where there is none.
  Block(const Launch &launch, uint64_t &idle, Cluster *cluster = nullptr, uint32_t rank = 0);
  /// False: `outcome` says what went wrong.
  bool run(uint32_t number, LaunchOutcome &outcome);

  // --- for a cluster --------------------------------------------------------------------
  enum class Progress : uint8_t { Goes, Stuck, Ended, Failed };
  void start(uint32_t number);
  /// A turn of one warp.
  Progress go(LaunchOutcome &outcome);
  /// Where nobody can go on: threads of a warp part while others of it wait, which a recorder would rather not have.
  bool partWarps();
  /// All wait for each other: says who for what.
  bool reportStop(LaunchOutcome &outcome);

  // --- for instructions -----------------------------------------------------------------
  const Launch &launch;
  Actors actors;
  SharedMemory shared;
  Barriers barriers;
  BulkEngine bulk;
  ProductUnit products;
  std::vector<Knowledge> knows; ///< by warp
  Cluster *cluster;
  uint32_t rank;
  uint64_t random = 0;
  uint64_t &idle;          ///< WarpRun's; what takes as long as many instructions counts as those
  bool partsWarps = false; ///< while it is recorded: threads of a warp go on while others of it wait

  uint32_t threads() const { return (launch.threads + kLanes - 1) / kLanes * kLanes; }
  /// What a warp does from now on is not what it passed on before.
  void release(uint32_t warp) { ++knows[warp].seen[actors.ofWarp(warp)]; }
  /// A shared address, from one of its own space or a generic one.
  static uint64_t ofShared(uint64_t address) {
    return address - kSharedWindow < kWindowBytes ? address - kSharedWindow : address;
  }
  /// setmaxnreg: what a warp gives goes to the block's pool, what it takes comes from there, or it waits.
  bool setRegisters(Warp &warp, uint32_t count, bool more);
  /// Whether lanes of a warp may end as things are.
  bool mayEnd(const Warp &warp, uint32_t lanes, std::string &problem);

private:
  bool turn(WarpRun &run, LaunchOutcome &outcome);
  bool land(LaunchOutcome &outcome);
  WarpRun *pick();
  bool finish(LaunchOutcome &outcome);
  std::string describe(const Wait &wait, std::string &check);
  uint64_t events() const;

  struct Seat {
    std::unique_ptr<WarpRun> run;
    bool waits = false;
    uint64_t since = 0; ///< events when it looked last
  };
  std::vector<Seat> seats;
  std::vector<uint32_t> registers; ///< of a thread, by warp
  uint32_t pool = 0;               ///< registers that warps gave, counted as `registers` is
  uint64_t given = 0;              ///< how often
  std::vector<Seat *> ready;
};

} // namespace dmxrt::cuda
