//===- WarpRun.cpp - how a warp goes through its program ----------------------===//

#include "WarpRun.h"
#include "Block.h"
#include "clock/Recorder.h"

#include <algorithm>

namespace dmxrt::cuda {

WarpRun::WarpRun(const Launch &launch, Block *block, uint64_t &idle)
    : launch(launch), program(*launch.program), idle(idle) {
  slots = std::make_unique<Warp::Slot[]>(program.slots());
  written.resize(program.slots());
  stamps.resize(program.slots());
  flying.resize(program.slots());
  predicates.resize(program.predicates);
  predicateWritten.resize(program.predicates);
  local.resize(program.localBytes * kLanes + 64);
  warp.slots = slots.get();
  warp.written = written.data();
  warp.stamps = stamps.data();
  warp.flying = flying.data();
  warp.predicates = predicates.data();
  warp.predicateWritten = predicateWritten.data();
  warp.memory = launch.memory;
  warp.block = block;
  auto begin = reinterpret_cast<uintptr_t>(local.data());
  warp.local = local.data() + (64 - begin % 64) % 64;
  warp.localBytes = program.localBytes;
  fillConstants();
}

void WarpRun::fill(uint32_t slot, uint64_t value) {
  std::fill(std::begin(slots[slot]), std::end(slots[slot]), value);
  written[slot] = kAllLanes;
}

void WarpRun::fillConstants() {
  for (size_t i = 0; i < program.constants.size(); ++i)
    fill(program.registers + static_cast<uint32_t>(i), program.constants[i]);
  for (size_t i = 0; i < launch.parameters.size(); ++i)
    fill(program.parameterSlot(static_cast<uint32_t>(i)), launch.parameters[i]);
  fill(program.specialSlot(Program::Ntid), launch.threads);
  fill(program.specialSlot(Program::Nctaid), launch.blocks);
  fill(program.specialSlot(Program::ClusterBlocks), program.cluster);
  fill(program.specialSlot(Program::Clusters), launch.blocks / program.cluster);
  for (uint32_t i = 0; i < program.tables; ++i)
    fill(program.tableSlot(i), reinterpret_cast<uintptr_t>(launch.module->tables[i].begin));
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    slots[program.specialSlot(Program::Lane)][lane] = lane;
  written[program.specialSlot(Program::Lane)] = kAllLanes;
  for (size_t i = 0; i < program.localOffsets.size(); ++i) {
    uint32_t slot = program.localSlot(static_cast<uint32_t>(i));
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      slots[slot][lane] = reinterpret_cast<uintptr_t>(warp.local) + lane * program.localBytes + program.localOffsets[i];
    written[slot] = kAllLanes;
  }
}

void WarpRun::start(uint32_t blockNumber, uint32_t warpNumber) {
  std::fill(written.begin(), written.begin() + program.registers, 0u);
  std::fill(stamps.begin(), stamps.end(), 0u);
  std::fill(flying.begin(), flying.end(), 0u);
  std::fill(predicateWritten.begin(), predicateWritten.end(), 0u);
  uint32_t first = warpNumber * kLanes, left = launch.threads - first;
  fill(program.specialSlot(Program::Ctaid), blockNumber);
  fill(program.specialSlot(Program::ClusterRank), blockNumber % program.cluster);
  fill(program.specialSlot(Program::ClusterId), blockNumber / program.cluster);
  uint32_t tid = program.specialSlot(Program::Tid);
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    slots[tid][lane] = first + lane;
  written[tid] = kAllLanes;
  warp.firstThread = blockNumber * launch.threads + first;
  warp.number = warpNumber;
  warp.owner = blockNumber;
  warp.fences = 1;
  warp.anyFlying = false;
  warp.live = left >= kLanes ? kAllLanes : (1u << left) - 1;
  groups.clear();
  current = warp.live;
  nearest = UINT32_MAX;
  at = 0;
  steps = 0;
  ended = failed = false;
}

bool WarpRun::fail(const Op &op, uint32_t lanes, std::string what) {
  faultLine = op.line;
  failed = true;
  return warp.fail(static_cast<uint32_t>(std::countr_zero(lanes)), std::move(what));
}

/// Instructions that could not be done when they were tried last.
bool WarpRun::tryAgain() {
  for (Group &group : groups) {
    if (group.state != Group::Waits)
      continue;
    const Op &op = program.ops[group.at];
    warp.wait = {};
    warp.ticket = group.ticket;
    if (!step(op, group.lanes))
      return false;
    group.ticket = warp.ticket;
    group.wait = warp.wait;
    if (warp.wait.kind == Wait::None) {
      if (launch.recorder)
        launch.recorder->goesOn(warp, op, group.at);
      group.state = Group::Ready;
      ++group.at;
    }
  }
  return true;
}

/// Those that met all that are left: some that were missing have ended.
bool WarpRun::finishMeetings() {
  bool waits = false;
  for (Group &group : groups) {
    waits |= group.state == Group::Waits;
    if (group.state == Group::Meets && (group.lanes & warp.live) == warp.live) {
      group.state = Group::Ready;
      return true;
    }
  }
  if (!waits && !groups.empty())
    fail(program.ops[groups[0].at], groups[0].lanes,
         "diverged: it is for all threads of the warp, and some are at another one that they cannot leave");
  return false;
}

/// The lanes at the lowest place go on; false: none can.
bool WarpRun::regroup() {
  if (current)
    groups.push_back({Group::Ready, current, at, 0, {}});
  current = 0;
  at = nearest = UINT32_MAX;
  for (const Group &group : groups)
    if (group.state == Group::Ready)
      at = std::min(at, group.at);
  if (at == UINT32_MAX)
    return finishMeetings() && regroup();
  size_t kept = 0;
  for (const Group &group : groups) {
    if (group.state == Group::Ready && group.at == at) {
      current |= group.lanes;
      continue;
    }
    if (group.state == Group::Ready)
      nearest = std::min(nearest, group.at);
    groups[kept++] = group;
  }
  groups.resize(kept);
  return true;
}

/// Whether all lanes that an instruction is for are here; if not, those that are stand there.
bool WarpRun::meet(const Op &op) {
  uint32_t wanted = warp.live;
  if (op.meeting == Op::Masked)
    wanted &= static_cast<uint32_t>(slots[op.source[op.sources - 1]][std::countr_zero(current)]);
  if ((current & wanted) == wanted)
    return true;
  for (Group &group : groups)
    if (group.state == Group::Meets && group.at == at) {
      current |= group.lanes;
      group = groups.back();
      groups.pop_back();
      break;
    }
  if ((current & wanted) == wanted)
    return true;
  groups.push_back({Group::Meets, current, at, 0, {}});
  current = 0;
  return false;
}

/// wgmma works on registers of its own accord: nothing else may touch them.
bool WarpRun::checkRegisters(const Op &op, uint32_t active) {
  auto flies = [&](uint32_t slot) { return flying[slot] != 0; };
  for (uint32_t i = 0; i < op.sources; ++i)
    if (flies(op.source[i]))
      return fail(op, active, "wgmma-fence: it reads a register of a wgmma that was not waited for");
  for (uint32_t i = 0; i < op.results; ++i)
    if (flies(op.result[i]))
      return fail(op, active, "wgmma-fence: it writes a register of a wgmma that was not waited for");
  return true;
}

bool WarpRun::checkSources(const Op &op, uint32_t active) {
  if (warp.anyFlying && !checkRegisters(op, active))
    return false;
  for (uint32_t i = 0; i < op.sources; ++i)
    if (uint32_t missing = active & ~written[op.source[i]])
      return fail(op, missing, "uninit: it reads a register that nothing was put into");
  for (int32_t source : op.predicateSource)
    if (source >= 0 && (active & ~predicateWritten[source]))
      return fail(op, active, "uninit: it reads a predicate that nothing was put into");
  return true;
}

bool WarpRun::step(const Op &op, uint32_t active) {
  if (!checkSources(op, active))
    return false;
  warp.active = active;
  if (op.step(warp, op))
    return true;
  faultLine = op.line;
  failed = true;
  return false;
}

bool WarpRun::guardOf(const Op &op, uint32_t &active) {
  active = current;
  if (op.guard < 0)
    return true;
  if (current & ~predicateWritten[op.guard])
    return fail(op, current, "uninit: its guard is a predicate that nothing was put into");
  active &= op.guardNot ? ~predicates[op.guard] : predicates[op.guard];
  if (op.meeting == Op::Whole && active && active != current)
    return fail(op, active, "diverged: it is for all threads of the warp, and its guard holds for some");
  return true;
}

bool WarpRun::exit(const Op &op, uint32_t active) {
  current &= ~active;
  warp.live &= ~active;
  ++at;
  std::string problem;
  if (warp.block && !warp.block->mayEnd(warp, active, problem))
    return fail(op, active, std::move(problem));
  ended = warp.live == 0;
  if (ended)
    idle = 0;
  return true;
}

/// brx.idx: each lane goes to the target of its number; those of one target go together.
bool WarpRun::choose(const Op &op, uint32_t active) {
  if (!checkSources(op, active))
    return false;
  const std::vector<uint32_t> &targets = program.branchLists[op.immediate];
  const Warp::Slot &index = slots[op.source[0]];
  if (uint32_t stay = current & ~active)
    groups.push_back({Group::Ready, stay, at + 1, 0, {}});
  while (active) {
    auto first = static_cast<uint32_t>(std::countr_zero(active));
    if (index[first] >= targets.size())
      return fail(op, active, cat("branch-index: target ", index[first], " of a list of ", targets.size()));
    uint32_t together = 0;
    forLanes(active, [&](uint32_t lane) { together |= uint32_t(index[lane] == index[first]) << lane; });
    groups.push_back({Group::Ready, together, targets[index[first]], 0, {}});
    active &= ~together;
  }
  current = 0;
  return regroup();
}

/// Does the instruction where the current lanes are.
bool WarpRun::take(const Op &op) {
  uint32_t active = 0;
  if (!guardOf(op, active))
    return false;
  if (launch.recorder && active)
    launch.recorder->issue(warp, op, at, active);
  if (!active) {
    ++at;
  } else if (op.flow == Op::Next) {
    warp.wait = {};
    warp.ticket = 0;
    if (op.bytes) // each lane's access is checked
      idle += static_cast<uint32_t>(std::popcount(active)) / 2;
    if (!step(op, active))
      return false;
    ++at;
    if (warp.wait.kind == Wait::None) {
      if (launch.recorder)
        launch.recorder->goesOn(warp, op, at - 1);
      return true;
    }
    groups.push_back({Group::Waits, active, at - 1, warp.ticket, warp.wait});
    current &= ~active;
  } else if (op.flow == Op::Exit) {
    return exit(op, active);
  } else if (op.flow == Op::Indexed) {
    return choose(op, active);
  } else if (active == current) {
    at = op.target;
  } else {
    groups.push_back({Group::Ready, current & ~active, at + 1, 0, {}});
    current = active;
    at = op.target;
    regroup();
  }
  return true;
}

/// Whether the warp stands as a whole because some of its threads wait: while it is recorded, so that what it does
/// comes in one order. Not where nobody else can go on: the others may be what they wait for.
bool WarpRun::stands() const {
  return launch.recorder && warp.block && !warp.block->partsWarps &&
         std::any_of(groups.begin(), groups.end(), [](const Group &each) { return each.state == Group::Waits; });
}

WarpRun::Turn WarpRun::run(uint64_t budget) {
  if (!tryAgain())
    return Turn::Failed;
  if (stands())
    return Turn::Waits;
  if (!groups.empty() && !regroup())
    return failed ? Turn::Failed : Turn::Waits;
  while (true) {
    if (stands())
      return Turn::Waits;
    if ((at >= nearest || !current) && !regroup())
      return failed ? Turn::Failed : Turn::Waits;
    if (budget-- == 0)
      return Turn::Used;
    const Op &op = program.ops[at];
    ++steps;
    if (++idle > launch.mostSteps) {
      fail(op, current,
           cat("endless: the launch has done ", launch.mostSteps,
               " instructions, and none of its warps ended; cuda.sim_steps=N allows more"));
      return Turn::Failed;
    }
    if (op.meeting != Op::Alone && !meet(op))
      continue;
    if (!take(op))
      return Turn::Failed;
    if (ended)
      return Turn::Ended;
  }
}

} // namespace dmxrt::cuda
