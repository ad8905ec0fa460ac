//===- Barriers.cpp - what the warps of a block wait at -----------------------===//

#include "Barriers.h"

#include "runtime/Error.h"

namespace dmxrt::cuda {
namespace {

/// Arrivals that a phase may have, and bytes that may be missing: PTX's bounds.
constexpr uint32_t kMostArrivals = (1 << 20) - 1;
constexpr int64_t kMostBytes = (1 << 20) - 1;

} // namespace

void Barriers::reset(SharedMemory &memory, const Actors &who) {
  shared = &memory;
  actors = who;
  all.clear();
  made = 0;
  for (NamedBarrier &each : rooms)
    each = {0, 0, 1, Knowledge(who.count()), Knowledge(who.count())};
}

std::string Barriers::make(uint64_t address, uint32_t count, uint32_t warp, const Knowledge &who) {
  if (address % 8 || !shared->holds(address, 8))
    return cat("mbar-init: an mbarrier of 8 bytes cannot be at byte ", address, " of shared memory");
  if (count == 0 || count > kMostArrivals)
    return cat("mbar-init: an mbarrier cannot wait for ", count, " arrivals");
  for (const Mbarrier &each : all)
    if (each.address == address)
      return cat("mbar-init: there is an mbarrier at byte ", address, " of shared memory already");
  if (std::string problem = shared->write(address, 8, warp, who); !problem.empty())
    return problem;
  Mbarrier &barrier = all.emplace_back();
  barrier.address = address;
  barrier.index = made++;
  barrier.expected = barrier.pending = count;
  barrier.maker = warp;
  barrier.madeAt = who.seen[warp];
  barrier.coming = barrier.done = Knowledge(actors.count());
  shared->setBarrier(address, true);
  return {};
}

std::string Barriers::drop(uint64_t address) {
  std::string problem;
  Mbarrier *barrier = find(address, problem);
  if (!barrier)
    return problem;
  shared->setBarrier(address, false);
  all.erase(all.begin() + (barrier - all.data()));
  return {};
}

Mbarrier *Barriers::find(uint64_t address, std::string &problem) {
  for (Mbarrier &each : all)
    if (each.address == address)
      return &each;
  problem = cat("mbar-init: there is no mbarrier at byte ", address, " of shared memory");
  return nullptr;
}

Mbarrier *Barriers::findFor(uint64_t address, const Knowledge &who, std::string &problem) {
  Mbarrier *barrier = find(address, problem);
  if (barrier && who.seen[barrier->maker] < barrier->madeAt) {
    problem = cat("mbar-init: warp ", barrier->maker, " made the mbarrier at byte ", address,
                  " of shared memory, and nothing orders its use behind that");
    return nullptr;
  }
  return barrier;
}

void Barriers::endPhase(Mbarrier &barrier) {
  if (barrier.pending || barrier.bytes)
    return;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  barrier.done.join(barrier.coming);
  ++ended;
}

std::string Barriers::arrive(Mbarrier &barrier, uint32_t count, const Knowledge *bring) {
  if (count > barrier.pending)
    return cat("mbar-overrun: it arrives ", count, " times at ", describe(barrier));
  if (bring)
    barrier.coming.join(*bring);
  barrier.pending -= count;
  if (barrier.pending == 0 && barrier.bytes < 0)
    return cat("tx-mismatch: the last arrival finds ", -barrier.bytes, " bytes more than were expected at ",
               describe(barrier));
  endPhase(barrier);
  return {};
}

std::string Barriers::expect(Mbarrier &barrier, int64_t bytes) {
  barrier.bytes += bytes;
  if (barrier.bytes > kMostBytes)
    return cat("tx-mismatch: it expects more than 1048575 bytes at ", describe(barrier));
  return {};
}

std::string Barriers::complete(Mbarrier &barrier, int64_t bytes) {
  barrier.bytes -= bytes;
  if (barrier.bytes < -kMostBytes)
    return cat("tx-mismatch: more than 1048575 bytes that nobody expected came to ", describe(barrier));
  if (barrier.pending == 0 && barrier.bytes < 0)
    return cat("tx-mismatch: ", -barrier.bytes, " bytes more than were expected came to ", describe(barrier));
  endPhase(barrier);
  return {};
}

void Barriers::fence(uint32_t warp) {
  for (Mbarrier &each : all)
    each.fenced |= each.maker == warp;
}

std::string Barriers::arriveNamed(uint32_t id, uint32_t threads, uint32_t count, const Knowledge &bring) {
  NamedBarrier &room = rooms[id];
  if (room.arrived && room.threads != threads)
    return cat("bar-count: it comes to barrier ", id, " with ", threads, " threads, and others with ", room.threads);
  room.threads = threads;
  room.arrived += count;
  if (room.arrived > threads)
    return cat("bar-count: ", room.arrived, " threads come to barrier ", id, " of ", threads);
  room.coming.join(bring);
  if (room.arrived == threads) {
    room.arrived = 0;
    ++room.round;
    room.done = room.coming;
    ++ended;
  }
  return {};
}

std::string Barriers::describe(const Mbarrier &barrier) const {
  return cat("the mbarrier at byte ", barrier.address, " of shared memory (phase ", barrier.phase, ", ",
             barrier.pending, " of ", barrier.expected, " arrivals and ", barrier.bytes, " bytes are missing)");
}

} // namespace dmxrt::cuda
