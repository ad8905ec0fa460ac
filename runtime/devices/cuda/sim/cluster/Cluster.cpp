//===- Cluster.cpp - blocks that reach into each other's shared memory --------===//

#include "Cluster.h"
#include "runtime/devices/cuda/sim/clock/Recorder.h"

namespace dmxrt::cuda {

Cluster::Cluster(const Launch &launch, uint64_t &idle) : launch(launch), random(launch.seed) {
  for (uint32_t rank = 0; rank < launch.program->cluster; ++rank)
    seats.push_back({std::make_unique<Block>(launch, idle, this, rank), false, false, 0, {}});
}

bool Cluster::run(uint32_t first, LaunchOutcome &outcome) {
  const Actors &actors = seats[0].block->actors;
  firstBlock = first;
  barrier = {1, 0, launch.threads * static_cast<uint32_t>(seats.size()), Knowledge(actors.count()),
             Knowledge(actors.count())};
  arrivals.assign(actors.warps, 0);
  for (uint32_t rank = 0; rank < seats.size(); ++rank) {
    Seat &seat = seats[rank];
    seat.block->start(first + rank);
    seat.ended = seat.stuck = false;
    seat.remote.assign(actors.warps, 0);
  }
  std::vector<uint32_t> ready;
  while (true) {
    bool ended = true;
    ready.clear();
    for (uint32_t rank = 0; rank < seats.size(); ++rank) {
      const Seat &seat = seats[rank];
      ended &= seat.ended;
      if (!seat.ended && !(seat.stuck && seat.since == events()))
        ready.push_back(rank);
    }
    if (ended)
      return true;
    if (ready.empty()) {
      bool parts = false;
      for (Seat &seat : seats)
        if (!seat.ended && seat.block->partWarps()) {
          parts = true;
          seat.stuck = false;
        }
      if (parts)
        continue;
      return std::find_if(seats.begin(), seats.end(), [](const Seat &seat) { return !seat.ended; })
          ->block->reportStop(outcome);
    }
    if (!go(ready[nextRandom(random) % ready.size()], outcome))
      return false;
  }
}

bool Cluster::go(uint32_t rank, LaunchOutcome &outcome) {
  Seat &seat = seats[rank];
  if (launch.recorder)
    launch.recorder->focus(firstBlock + rank);
  seat.stuck = false;
  switch (seat.block->go(outcome)) {
  case Block::Progress::Failed:
    return false;
  case Block::Progress::Ended:
    seat.ended = true;
    return mayEnd(rank, outcome);
  case Block::Progress::Stuck:
    seat.stuck = true;
    seat.since = events();
    return true;
  case Block::Progress::Goes:
    return true;
  }
  return false;
}

/// A block's shared memory goes with it: what others do there has to be known to it.
bool Cluster::mayEnd(uint32_t rank, LaunchOutcome &outcome) {
  const Seat &seat = seats[rank];
  const Actors &actors = seat.block->actors;
  for (uint32_t actor = 0; actor < actors.warps; ++actor) {
    uint32_t known = 0;
    for (const Knowledge &each : seat.block->knows)
      known = std::max(known, each.seen[actor]);
    if (seat.remote[actor] <= known)
      continue;
    outcome.fault = cat("exit-pending: block ", rank, " of the cluster ends, ", actors.name(actor),
                        " accesses its shared memory, and nothing orders the end behind that");
    outcome.line = launch.program->ops.back().line;
    outcome.thread = (firstBlock + rank) * launch.threads;
    return false;
  }
  return true;
}

std::string Cluster::locate(Warp &w, uint64_t address, const Memory::Access &access, std::byte *&at) {
  uint64_t rank = address / kWindowBytes - 1, own = address % kWindowBytes;
  if (rank >= seats.size() || !seats[rank].block->shared.holds(own, access.bytes))
    return cat("bounds: it accesses ", access.bytes, " bytes at address ", address,
               " of the cluster's shared memory, and not all of them are there");
  Seat &seat = seats[rank];
  if (seat.ended)
    return cat("exit-pending: it accesses shared memory of block ", rank, " of the cluster, which has ended");
  const Knowledge &who = w.block->knows[w.number];
  uint32_t actor = warpOf(w);
  if (who.seen[seat.block->actors.first] == 0)
    return cat("cluster-start: it accesses shared memory of block ", rank,
               " of the cluster, and no barrier tells that the block has begun");
  seat.remote[actor] = std::max(seat.remote[actor], who.seen[actor]);
  at = seat.block->shared.at(own);
  return access.isWrite ? seat.block->shared.write(own, access.bytes, actor, who)
                        : seat.block->shared.read(own, access.bytes, actor, who);
}

void Cluster::endRound() {
  if (barrier.arrived == 0 || barrier.arrived < barrier.threads)
    return;
  barrier.arrived = 0;
  ++barrier.round;
  barrier.done = barrier.coming;
}

std::string Cluster::arrive(Warp &w, bool brings) {
  uint64_t &own = arrivals[warpOf(w)];
  if (own)
    return "bar-count: it arrives at the cluster's barrier again, and did not wait since it arrived";
  own = barrier.round;
  if (brings)
    barrier.coming.join(w.block->knows[w.number]);
  barrier.arrived += static_cast<uint32_t>(std::popcount(w.active));
  endRound();
  w.block->release(w.number);
  return {};
}

void Cluster::join(Warp &w, bool takes) {
  arrivals[warpOf(w)] = 0;
  if (takes)
    w.block->knows[w.number].join(barrier.done);
}

void Cluster::leave(uint32_t threads) {
  barrier.threads -= threads;
  endRound();
}

std::string Cluster::describe() const {
  return cat("at the cluster's barrier, where ", barrier.arrived, " of ", barrier.threads, " threads have come");
}

} // namespace dmxrt::cuda
