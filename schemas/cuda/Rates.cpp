//===- Rates.cpp - what multiprocessors share, what products take ---------===//

#include "Rates.h"

#include <algorithm>

namespace dmx::cuda {

double l2BytesPerClock(const Machine &machine) { return machine.clock.l2BytesPerSecond / machine.clockHz; }

double memoryBytesPerClock(const Machine &machine) {
  return machine.clock.memoryBytesPerSecond * machine.clock.memoryShare / machine.clockHz;
}

SharedRates ratesOf(const Machine &machine, double users, double sharing) {
  const Machine::Clock &clock = machine.clock;
  double own = 1 / std::max(users, 1.0), most = clock.l2BytesPerClock;
  return {std::min(most, l2BytesPerClock(machine) * own * std::clamp(sharing, 1.0, clock.mergedRequests)),
          std::min(most, memoryBytesPerClock(machine) * own * std::max(sharing, 1.0))};
}

ProductClocks productClocks(const Machine &machine, int64_t columns, int64_t depth, bool isTf32, bool leftInShared) {
  constexpr double rows = 16, rowBytes = 32; // a step of any type has 32 bytes of terms
  double rate = machine.multiplicationsPerClock / kSchedulers / (isTf32 ? 2 : 1);
  // Each warp reads its own rows of the left operand; the right one is read once for all four.
  double bytes = rowBytes * static_cast<double>(columns) / kSchedulers + (leftInShared ? rows * rowBytes : 0);
  return {rows * static_cast<double>(columns * depth) / rate, kSchedulers * bytes / machine.clock.sharedBytesPerClock};
}

double ProductClocks::taken(double arriving) const {
  return std::max(multiplying, reading + std::min(arriving, reading));
}

} // namespace dmx::cuda
