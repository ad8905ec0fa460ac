//===- Order.h - what is known to have happened before ----------*- C++ -*-===//
//
// Vector clocks. Those who touch a block's shared memory are its actors: each warp's own instructions, its wgmma, its
// bulk stores, and what bulk loads leave for each mbarrier. An actor counts ticks; what happened at tick t of actor a
// is ordered before an access where the one who does that has seen t of a.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace dmxrt::cuda {

/// What one warp, or one who passes it on, knows. `fenced`: up to which ticks writes of warps are visible to the async
/// proxy (TMA, wgmma) as well.
struct Knowledge {
  std::vector<uint32_t> seen, fenced;

  explicit Knowledge(size_t actors = 0) : seen(actors), fenced(actors) {}
  void join(const Knowledge &other) {
    for (size_t i = 0; i < seen.size(); ++i) {
      seen[i] = std::max(seen[i], other.seen[i]);
      fenced[i] = std::max(fenced[i], other.fenced[i]);
    }
  }
};

/// Numbers of a block's actors, among those of all blocks of its cluster.
struct Actors {
  static constexpr uint32_t kMostBarriers = 96; ///< of a cluster; the others share numbers
  uint32_t warps = 0;                           ///< of the cluster
  uint32_t own = 0, first = 0;                  ///< of the block: how many, and which they are

  uint32_t ofWarp(uint32_t warp) const { return first + warp; }
  uint32_t ofProducts(uint32_t warp) const { return warps + first + warp; }
  uint32_t ofStores(uint32_t warp) const { return 2 * warps + first + warp; }
  uint32_t ofBarrier(uint32_t index) const {
    uint32_t each = kMostBarriers * own / warps;
    return 3 * warps + first / own * each + index % each;
  }
  uint32_t count() const { return 3 * warps + kMostBarriers; }
  bool isWarp(uint32_t actor) const { return actor < warps; }
  std::string name(uint32_t actor) const;
};

/// An actor's tick in a word. 0: nobody's.
using Epoch = uint32_t;
constexpr uint32_t kTickBits = 22; ///< the others are the actor's: 864 of a cluster of 8 blocks of 1,024 threads
constexpr Epoch epochOf(uint32_t actor, uint32_t tick) {
  return (actor + 1) << kTickBits | (tick & ((Epoch(1) << kTickBits) - 1));
}
constexpr uint32_t actorOf(Epoch epoch) { return (epoch >> kTickBits) - 1; }
constexpr uint32_t tickOf(Epoch epoch) { return epoch & ((Epoch(1) << kTickBits) - 1); }

} // namespace dmxrt::cuda
