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

/// Numbers of a block's actors.
struct Actors {
  static constexpr uint32_t kMostBarriers = 96; ///< the others share numbers
  uint32_t warps = 0;

  uint32_t ofWarp(uint32_t warp) const { return warp; }
  uint32_t ofProducts(uint32_t warp) const { return warps + warp; }
  uint32_t ofStores(uint32_t warp) const { return 2 * warps + warp; }
  uint32_t ofBarrier(uint32_t index) const { return 3 * warps + index % kMostBarriers; }
  uint32_t count() const { return 3 * warps + kMostBarriers; }
  bool isWarp(uint32_t actor) const { return actor < warps; }
  std::string name(uint32_t actor) const;
};

/// An actor's tick in a word. 0: nobody's.
using Epoch = uint32_t;
constexpr Epoch epochOf(uint32_t actor, uint32_t tick) { return (actor + 1) << 23 | (tick & 0x7fffff); }
constexpr uint32_t actorOf(Epoch epoch) { return (epoch >> 23) - 1; }
constexpr uint32_t tickOf(Epoch epoch) { return epoch & 0x7fffff; }

} // namespace dmxrt::cuda
