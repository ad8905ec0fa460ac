//===- Block.cpp - the threads of a block, and what they share ----------------===//

#include "Block.h"
#include "cluster/Cluster.h"

#include <algorithm>

namespace dmxrt::cuda {

Block::Block(const Launch &launch, uint64_t &idle, Cluster *cluster, uint32_t rank)
    : launch(launch), cluster(cluster), rank(rank), random(launch.seed + rank), idle(idle) {
  uint32_t warps = (launch.threads + kLanes - 1) / kLanes;
  actors.own = warps;
  actors.warps = warps * launch.program->cluster;
  actors.first = warps * rank;
  for (uint32_t i = 0; i < warps; ++i)
    seats.push_back({std::make_unique<WarpRun>(launch, this, idle), false, 0});
}

void Block::start(uint32_t number) {
  shared.reset(launch.program->sharedBegin + launch.shared, actors, launch.checks);
  barriers.reset(shared, actors);
  bulk.reset(shared, barriers, *launch.memory, actors);
  products.reset(*this);
  knows.assign(actors.own, Knowledge(actors.count()));
  registers.assign(actors.own, launch.program->firstRegisters);
  pool = 0;
  partsWarps = false;
  for (uint32_t i = 0; i < actors.own; ++i) {
    knows[i].seen[actors.ofWarp(i)] = 1;
    seats[i].run->start(number, i);
    seats[i].waits = false;
  }
}

bool Block::mayEnd(const Warp &warp, uint32_t lanes, std::string &problem) {
  if (cluster)
    cluster->leave(static_cast<uint32_t>(std::popcount(lanes)));
  if (products.isBusy(warp.number))
    problem = "exit-pending: the warp ends, and it did not wait for its wgmma";
  for (; lanes; lanes &= lanes - 1) {
    uint32_t thread = warp.firstThread + static_cast<uint32_t>(std::countr_zero(lanes));
    const BulkEngine::Groups *stores = bulk.groupsOf(thread);
    if (stores && (stores->open || stores->waited < stores->committed))
      problem = cat("exit-pending: thread ", thread, " ends, and it did not wait until its bulk store of line ",
                    stores->line, " had read shared memory");
  }
  return problem.empty();
}

bool Block::setRegisters(Warp &warp, uint32_t count, bool more) {
  uint32_t &own = registers[warp.number];
  if (more ? count < own : count > own)
    return warp.fail(
        static_cast<uint32_t>(std::countr_zero(warp.active)),
        cat("regs: it ", more ? "raises" : "lowers", " the registers of a thread to ", count, ", and they are ", own));
  if (more && count - own > pool) {
    warp.wait = {Wait::Registers, count, 0};
    return true;
  }
  pool = more ? pool - (count - own) : pool + (own - count);
  given += !more;
  own = count;
  return true;
}

bool Block::turn(WarpRun &run, LaunchOutcome &outcome) {
  // Mostly long turns, for the caches; short ones find what long ones hide.
  uint64_t chance = nextRandom(random), budget = chance % 8 ? 64 + chance / 8 % 512 : 1 + chance / 8 % 8;
  WarpRun::Turn how = run.run(budget);
  if (how == WarpRun::Turn::Failed) {
    outcome.fault = std::move(run.warp.fault);
    outcome.line = run.faultLine;
    outcome.thread = run.warp.firstThread + run.warp.faultLane;
    return false;
  }
  Seat &seat = seats[run.warp.number];
  seat.waits = how == WarpRun::Turn::Waits;
  seat.since = events();
  if (how == WarpRun::Turn::Ended)
    outcome.steps += run.steps;
  return true;
}

bool Block::land(LaunchOutcome &outcome) {
  idle += 64;
  std::string problem = bulk.land(nextRandom(random));
  if (problem.empty())
    return true;
  outcome.fault = std::move(problem);
  outcome.line = bulk.faulty.line;
  outcome.thread = bulk.faulty.thread;
  return false;
}

/// A warp that may go on; null: none.
WarpRun *Block::pick() {
  ready.clear();
  for (Seat &seat : seats)
    if (!seat.run->ended && (!seat.waits || seat.since != events()))
      ready.push_back(&seat);
  return ready.empty() ? nullptr : ready[nextRandom(random) % ready.size()]->run.get();
}

uint64_t Block::events() const { return barriers.events() + bulk.events() + given + (cluster ? cluster->events() : 0); }

bool Block::partWarps() {
  if (!launch.recorder || partsWarps)
    return false;
  partsWarps = true;
  for (Seat &seat : seats)
    seat.waits = false;
  return true;
}

Block::Progress Block::go(LaunchOutcome &outcome) {
  WarpRun *next = pick();
  if (next && !turn(*next, outcome))
    return Progress::Failed;
  bool ended = true;
  for (const Seat &seat : seats)
    ended &= seat.run->ended;
  if (ended)
    return finish(outcome) ? Progress::Ended : Progress::Failed;
  if (!next && bulk.isIdle())
    return Progress::Stuck;
  // Copies take their time while there is something else to do.
  for (uint64_t pieces = next ? nextRandom(random) % 4 : 1; pieces && !bulk.isIdle(); --pieces)
    if (!land(outcome))
      return Progress::Failed;
  return Progress::Goes;
}

bool Block::run(uint32_t number, LaunchOutcome &outcome) {
  start(number);
  while (true)
    switch (go(outcome)) {
    case Progress::Ended:
      return true;
    case Progress::Failed:
      return false;
    case Progress::Stuck:
      if (!partWarps())
        return reportStop(outcome);
      break;
    case Progress::Goes:
      break;
    }
}

/// What flies when all warps have ended.
bool Block::finish(LaunchOutcome &outcome) {
  while (!bulk.isIdle()) {
    if (const BulkCopy &left = bulk.first(); !left.stores) {
      outcome.fault = "exit-pending: the block ends, and nobody waited for this bulk load";
      outcome.line = left.line;
      outcome.thread = left.thread;
      return false;
    }
    if (!land(outcome))
      return false;
  }
  return true;
}

std::string Block::describe(const Wait &wait, std::string &check) {
  std::string none;
  switch (wait.kind) {
  case Wait::Phase: {
    const Mbarrier *barrier = barriers.find(wait.what, none);
    if (barrier && barrier->pending == 0 && barrier->bytes > 0)
      check = "tx-mismatch";
    return barrier ? cat("for the phase of parity ", wait.parity, " of ", barriers.describe(*barrier)) : none;
  }
  case Wait::Round:
    return cat("at barrier ", wait.what, ", where ", barriers.named(static_cast<uint32_t>(wait.what)).arrived, " of ",
               barriers.named(static_cast<uint32_t>(wait.what)).threads, " threads have come");
  case Wait::Cluster:
    return cluster->describe();
  case Wait::Registers:
    check = "regs";
    return cat("for ", wait.what, " registers a thread, and the block has ", pool, " that others gave");
  default:
    return "for bulk stores";
  }
}

bool Block::reportStop(LaunchOutcome &outcome) {
  struct Group { ///< warps that wait at one line for the same
    uint32_t warp, line, others;
    std::string what;
  };
  std::string check = "deadlock", text;
  std::vector<Group> groups;
  for (const Seat &seat : seats)
    seat.run->forEachWait([&](const Wait &wait, uint32_t lanes, uint32_t line) {
      std::string what = describe(wait, check);
      if (groups.empty()) {
        outcome.line = line;
        outcome.thread = seat.run->warp.firstThread + static_cast<uint32_t>(std::countr_zero(lanes));
      }
      auto same = std::find_if(groups.begin(), groups.end(),
                               [&](const Group &group) { return group.line == line && group.what == what; });
      if (same != groups.end())
        ++same->others;
      else
        groups.push_back({seat.run->warp.number, line, 0, std::move(what)});
    });
  constexpr size_t most = 8;
  for (size_t i = 0; i < groups.size() && i < most; ++i) {
    const Group &group = groups[i];
    text += cat(i ? "; " : "", "warp ", group.warp, cluster ? cat(" of block ", rank) : "",
                group.others ? cat(" and ", group.others, " more wait") : " waits", " at line ", group.line, " ",
                group.what);
  }
  outcome.fault = cat(check, ": no thread of the ", cluster ? "cluster" : "block", " can go on: ", text,
                      groups.size() > most ? "; and others" : "");
  return false;
}

} // namespace dmxrt::cuda
