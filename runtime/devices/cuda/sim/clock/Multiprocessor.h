//===- Multiprocessor.h - plays blocks on one multiprocessor ----*- C++ -*-===//
//
// What warps did, in clocks: four schedulers that issue one instruction a clock of a warp that can go on, their units,
// and what the multiprocessor has once: the load/store unit with shared memory and a cache, its way to the second
// cache and its share of the device's memory. Times only: no value is computed again.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Cache.h"
#include "Trace.h"
#include "runtime/devices/cuda/sim/Program.h"
#include "schemas/cuda/Rates.h"

#include <array>
#include <map>
#include <queue>
#include <unordered_set>

namespace dmxrt::cuda {

using dmx::cuda::kSchedulers;
using dmx::cuda::Machine;
using dmx::cuda::SharedRates;

/// For how many clocks something worked: issue and units summed over sub-partitions.
struct BusyClocks {
  double issue = 0;
  std::array<double, kUnits> units{};
  double shared = 0, l2 = 0, dram = 0;

  void scale(double by) {
    for (double *each : {&issue, &shared, &l2, &dram})
      *each *= by;
    for (double &each : units)
      each *= by;
  }
};

/// A warp's wait, for a trace.
struct WarpStretch {
  uint32_t block = 0, warp = 0, line = 0;
  double begin = 0, end = 0;
};

class Multiprocessor {
public:
  Multiprocessor(const Program &program, const std::vector<BlockTrace> &traces, const Machine &machine,
                 SharedRates rates, uint64_t cacheBytes);

  /// Plays `count` blocks, `atATime` of them; they have the traces one after the other, again and again. The clock at
  /// which the last ends.
  double play(uint64_t count, uint64_t atATime);

  BusyClocks busy;
  std::vector<double> ends;                  ///< of blocks, in the order in which they ended
  std::vector<WarpStretch> *waits = nullptr; ///< where they are wanted

private:
  struct Block;
  struct WarpState {
    Block *block = nullptr;
    const std::vector<TraceEvent> *events = nullptr;
    uint32_t number = 0, at = 0;
    uint32_t part = 0;                     ///< sub-partition that issues for it
    double time = 0;                       ///< not before
    std::vector<double> ready, predicates; ///< registers
    double products = 0;                   ///< when the last wgmma that is not committed ends
    std::vector<double> groups, stores;    ///< ends of committed groups of wgmma, of bulk stores
    double store = 0;                      ///< of bulk stores that are not committed
    double since = 0;                      ///< when it began to wait
  };
  /// An mbarrier.
  struct Phases {
    uint32_t expected = 0, pending = 0;
    int64_t bytes = 0;
    double latest = 0;         ///< of what came for the phase at hand
    std::vector<double> ended; ///< when each phase did
    std::vector<WarpState *> waiting;
  };
  struct Meeting {
    uint32_t arrived = 0;
    double latest = 0;
    std::vector<WarpState *> waiting;
  };
  struct Block {
    const BlockTrace *trace = nullptr;
    std::vector<WarpState> warps;
    std::map<uint64_t, Phases> phases;
    std::map<uint64_t, Meeting> meetings;
    uint32_t number = 0, left = 0;
  };

  void start(double at);
  void push(WarpState &warp, double at);
  void turn(WarpState &warp, double now);
  double readyAt(const WarpState &warp, const Op &op) const;
  void setReady(WarpState &warp, const Op &op, double at) const;
  /// False: the warp waits, and somebody pushes it.
  bool take(WarpState &warp, const Op &op, const TraceEvent &event, double at);
  double access(const WarpAccess &access, const Block &block, double at);
  double fetch(const Block &block, uint32_t first, uint32_t sectors, bool isWrite, bool cached, double at);
  /// A sector of a block: a trace that is played again has other addresses, but for those that all blocks have.
  uint64_t numberOf(uint64_t sector, const Block &block) const;
  double takeShared(double wavefronts, double at);
  void multiply(WarpState &warp, const Op &op, double at);
  void bulk(WarpState &warp, const BulkMove &move, double at);
  bool await(WarpState &warp, const BarrierUse &use, double at);
  void arrive(Phases &barrier, uint32_t count, int64_t bytes, double at);
  void arriveAtCluster(Block &block, double at);
  bool meet(WarpState &warp, const BarrierUse &use, bool waits, double at);
  bool waitUntil(WarpState &warp, double at, double until);
  void goOn(WarpState &warp, double at);
  void end(WarpState &warp, double at);

  const Program &program;
  const std::vector<BlockTrace> &traces;
  const Machine &machine;
  SharedRates rates;
  SectorCache cache;
  std::unordered_set<uint64_t> common;  ///< sectors that several traces have
  std::unordered_set<uint64_t> fetched; ///< sectors that came out of the device's memory
  std::array<double, kSchedulers> scheduler{};
  std::array<std::array<double, kUnits>, kSchedulers> unit{};
  std::array<double, kSchedulers> landing{}; ///< clocks of shared memory's port for what bulk copies brought
  double loadStore = 0, l2 = 0, dram = 0;    ///< free from then on
  struct Turn {
    double at;
    uint64_t order;
    WarpState *warp;
    bool operator>(const Turn &other) const { return at != other.at ? at > other.at : order > other.order; }
  };
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
  uint64_t pushed = 0, started = 0, wanted = 0, dealt = 0; ///< the last: warps, to sub-partitions in turn
  std::vector<std::unique_ptr<Block>> blocks;
  double last = 0;
};

} // namespace dmxrt::cuda
