//===- Launch.cpp - a kernel's threads, one warp after the other --------------===//
//
// The threads of a warp have program counters of their own. Those at the lowest one go on together, so that threads
// that parted at a branch meet again where its ways do. Blocks and warps come in an order that the seed says.
//
//===----------------------------------------------------------------------===//

#include "Launch.h"

#include <algorithm>
#include <numeric>

namespace dmxrt::cuda {
namespace {

/// splitmix64
uint64_t random(uint64_t &state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

class Runner {
public:
  explicit Runner(const Launch &launch) : launch(launch), program(*launch.program) {
    slots = std::make_unique<Warp::Slot[]>(program.slots());
    written.resize(program.slots());
    predicates.resize(program.predicates);
    predicateWritten.resize(program.predicates);
    local.resize(program.localBytes * kLanes + 64);
    warp.slots = slots.get();
    warp.written = written.data();
    warp.predicates = predicates.data();
    warp.predicateWritten = predicateWritten.data();
    warp.memory = launch.memory;
    auto at = reinterpret_cast<uintptr_t>(local.data());
    warp.local = local.data() + (64 - at % 64) % 64;
    warp.localBytes = program.localBytes;
    fillConstants();
  }

  LaunchOutcome run();

private:
  void fill(uint32_t slot, uint64_t value) {
    std::fill(std::begin(slots[slot]), std::end(slots[slot]), value);
    written[slot] = kAllLanes;
  }
  void fillConstants();
  void startWarp(uint32_t block, uint32_t first);
  bool runWarp(uint32_t lanes);
  bool step(const Op &op, uint32_t active);
  void regroup();
  bool fail(const Op &op, uint32_t lanes, std::string what) {
    outcome.line = op.line;
    warp.fail(static_cast<uint32_t>(std::countr_zero(lanes)), std::move(what));
    return false;
  }

  const Launch &launch;
  const Program &program;
  std::unique_ptr<Warp::Slot[]> slots;
  std::vector<uint32_t> written, predicates, predicateWritten;
  std::vector<std::byte> local;
  Warp warp;
  struct Group {
    uint32_t lanes, at;
  };
  std::vector<Group> waiting; // at other places
  uint32_t current = 0, at = 0,
           nearest = UINT32_MAX; // lanes that go on, where, and where the first of the others waits
  uint64_t steps = 0;
  LaunchOutcome outcome;
};

void Runner::fillConstants() {
  for (size_t i = 0; i < program.constants.size(); ++i)
    fill(program.registers + static_cast<uint32_t>(i), program.constants[i]);
  for (size_t i = 0; i < launch.parameters.size(); ++i)
    fill(program.parameterSlot(static_cast<uint32_t>(i)), launch.parameters[i]);
  fill(program.specialSlot(Program::Ntid), launch.threads);
  fill(program.specialSlot(Program::Nctaid), launch.blocks);
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

void Runner::startWarp(uint32_t block, uint32_t first) {
  std::fill(written.begin(), written.begin() + program.registers, 0u);
  std::fill(predicateWritten.begin(), predicateWritten.end(), 0u);
  fill(program.specialSlot(Program::Ctaid), block);
  uint32_t tid = program.specialSlot(Program::Tid);
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    slots[tid][lane] = first + lane;
  written[tid] = kAllLanes;
  warp.firstThread = block * launch.threads + first;
  waiting.clear();
  nearest = UINT32_MAX;
  at = 0;
  steps = 0;
}

/// The lanes at the lowest place go on.
void Runner::regroup() {
  if (current)
    waiting.push_back({current, at});
  uint32_t lowest = UINT32_MAX;
  for (const Group &group : waiting)
    lowest = std::min(lowest, group.at);
  current = 0;
  nearest = UINT32_MAX;
  size_t kept = 0;
  for (const Group &group : waiting)
    if (group.at == lowest) {
      current |= group.lanes;
    } else {
      nearest = std::min(nearest, group.at);
      waiting[kept++] = group;
    }
  waiting.resize(kept);
  at = lowest;
}

bool Runner::step(const Op &op, uint32_t active) {
  for (uint32_t i = 0; i < op.sources; ++i)
    if (uint32_t missing = active & ~written[op.source[i]])
      return fail(op, missing, "uninit: it reads a register that nothing was put into");
  for (int32_t source : op.predicateSource)
    if (source >= 0 && (active & ~predicateWritten[source]))
      return fail(op, active, "uninit: it reads a predicate that nothing was put into");
  warp.active = active;
  if (op.step(warp, op))
    return true;
  outcome.line = op.line;
  return false;
}

bool Runner::runWarp(uint32_t lanes) {
  current = lanes;
  while (true) {
    if (at >= nearest)
      regroup();
    const Op &op = program.ops[at];
    if (++steps > launch.mostSteps)
      return fail(op, current, cat("endless: a warp has done ", launch.mostSteps, " instructions and does not end"));
    uint32_t active = current;
    if (op.guard >= 0) {
      if (current & ~predicateWritten[op.guard])
        return fail(op, current, "uninit: its guard is a predicate that nothing was put into");
      active &= op.guardNot ? ~predicates[op.guard] : predicates[op.guard];
    }
    if (op.flow == Op::Next) {
      if (active && !step(op, active))
        return false;
      ++at;
    } else if (!active) {
      ++at;
    } else if (op.flow == Op::Exit) {
      current &= ~active;
      ++at;
      if (!current && waiting.empty())
        return true;
      if (!current)
        regroup();
    } else if (active == current) {
      at = op.target;
    } else {
      waiting.push_back({current & ~active, at + 1});
      current = active;
      at = op.target;
      regroup();
    }
  }
}

LaunchOutcome Runner::run() {
  uint64_t state = launch.seed;
  std::vector<uint32_t> blocks(launch.blocks), warps((launch.threads + kLanes - 1) / kLanes);
  std::iota(blocks.begin(), blocks.end(), 0u);
  std::iota(warps.begin(), warps.end(), 0u);
  auto shuffle = [&](std::vector<uint32_t> &order) {
    for (size_t i = order.size(); launch.seed && i > 1; --i)
      std::swap(order[i - 1], order[random(state) % i]);
  };
  shuffle(blocks);
  for (uint32_t block : blocks) {
    shuffle(warps);
    for (uint32_t number : warps) {
      startWarp(block, number * kLanes);
      uint32_t left = launch.threads - number * kLanes;
      if (!runWarp(left >= kLanes ? kAllLanes : (1u << left) - 1)) {
        outcome.fault = std::move(warp.fault);
        outcome.thread = warp.firstThread + warp.faultLane;
        return std::move(outcome);
      }
      outcome.steps += steps;
    }
  }
  std::string problem;
  if (!launch.memory->findUnwritten(problem)) {
    outcome.fault = std::move(problem);
    outcome.line = program.line;
  }
  return std::move(outcome);
}

} // namespace

LaunchOutcome runLaunch(const Launch &launch) { return Runner(launch).run(); }

} // namespace dmxrt::cuda
