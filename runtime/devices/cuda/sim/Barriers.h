//===- Barriers.h - what the warps of a block wait at -----------*- C++ -*-===//
#pragma once

#include "SharedMemory.h"

namespace dmxrt::cuda {

/// A barrier in shared memory: a phase ends when all have arrived and all bytes that were expected are there.
struct Mbarrier {
  uint64_t address = 0;
  uint32_t index = 0;                 ///< among those of the block
  uint32_t expected = 0, pending = 0; ///< arrivals of a phase; that are missing
  int64_t bytes = 0;                  ///< that are missing
  uint32_t phase = 0, ticks = 0;      ///< phases that ended; bulk loads that landed
  uint32_t maker = 0;                 ///< the warp that made it
  uint32_t madeAt = 0;                ///< its tick
  bool fenced = false;                ///< whether the async proxy knows of it
  Knowledge coming, done;             ///< what arrivals bring, what who waits gets

  bool hasEnded(uint32_t parity) const { return (phase & 1) != parity; }
};

/// bar.sync and its like.
struct NamedBarrier {
  uint32_t threads = 0, arrived = 0; ///< of a round; 0: nobody has come yet
  uint64_t round = 1;
  Knowledge coming, done;
};

/// All of a block. Functions return "" or what is wrong, beginning with the check's name.
class Barriers {
public:
  static constexpr uint32_t kNamed = 16;

  void reset(SharedMemory &shared, const Actors &actors);
  /// Times that a round or a phase ended: who waits may look again.
  uint64_t events() const { return ended; }

  std::string make(uint64_t address, uint32_t count, uint32_t warp, const Knowledge &who);
  std::string drop(uint64_t address);
  /// Null, with `problem`, where there is none.
  Mbarrier *find(uint64_t address, std::string &problem);
  /// The one that `who` may use: it has seen that it was made.
  Mbarrier *findFor(uint64_t address, const Knowledge &who, std::string &problem);
  std::string arrive(Mbarrier &barrier, uint32_t count, const Knowledge *bring);
  std::string expect(Mbarrier &barrier, int64_t bytes);
  std::string complete(Mbarrier &barrier, int64_t bytes);
  /// What a warp made is known to the async proxy from now on.
  void fence(uint32_t warp);
  /// Whether `count` more threads end the round.
  std::string arriveNamed(uint32_t id, uint32_t threads, uint32_t count, const Knowledge &bring);
  NamedBarrier &named(uint32_t id) { return rooms[id]; }
  std::string describe(const Mbarrier &barrier) const;

private:
  void endPhase(Mbarrier &barrier);

  SharedMemory *shared = nullptr;
  Actors actors;
  std::vector<Mbarrier> all;
  NamedBarrier rooms[kNamed];
  uint32_t made = 0;
  uint64_t ended = 0;
};

} // namespace dmxrt::cuda
