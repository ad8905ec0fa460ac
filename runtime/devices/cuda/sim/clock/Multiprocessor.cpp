//===- Multiprocessor.cpp - plays blocks on one multiprocessor ----------------===//

#include "Multiprocessor.h"

#include <algorithm>

namespace dmxrt::cuda {

using dmx::cuda::ProductClocks;

Multiprocessor::Multiprocessor(const Program &program, const std::vector<BlockTrace> &traces, const Machine &machine,
                               SharedRates rates, uint64_t cacheBytes)
    : program(program), traces(traces), machine(machine), rates(rates), cache(cacheBytes) {
  std::unordered_map<uint64_t, size_t> owner;
  for (size_t i = 0; i < traces.size(); ++i)
    for (uint64_t sector : traces[i].sectors)
      if (owner.emplace(sector, i).first->second != i)
        common.insert(sector);
}

uint64_t Multiprocessor::numberOf(uint64_t sector, const Block &block) const {
  constexpr uint32_t above = 48; // bits of a region's number and offset
  return common.contains(sector) ? sector : sector ^ block.number / traces.size() << above;
}

void Multiprocessor::push(WarpState &warp, double at) { turns.push({at, pushed++, &warp}); }

void Multiprocessor::start(double at) {
  auto block = std::make_unique<Block>();
  block->trace = &traces[started % traces.size()];
  block->number = static_cast<uint32_t>(started++);
  block->left = static_cast<uint32_t>(block->trace->warps.size());
  block->warps.resize(block->left);
  for (uint32_t i = 0; i < block->warps.size(); ++i) {
    WarpState &warp = block->warps[i];
    warp.block = block.get();
    warp.events = &block->trace->warps[i];
    warp.number = i;
    warp.part = static_cast<uint32_t>(dealt++ % kSchedulers);
    warp.time = at;
    warp.ready.resize(program.slots());
    warp.predicates.resize(program.predicates);
    push(warp, at);
  }
  blocks.push_back(std::move(block));
}

double Multiprocessor::play(uint64_t count, uint64_t atATime) {
  wanted = count;
  while (started < std::min(count, atATime))
    start(0);
  while (!turns.empty()) {
    Turn next = turns.top();
    turns.pop();
    turn(*next.warp, next.at);
  }
  return last;
}

double Multiprocessor::readyAt(const WarpState &warp, const Op &op) const {
  double at = warp.time;
  for (uint32_t i = 0; i < op.sources; ++i)
    at = std::max(at, warp.ready[op.source[i]]);
  for (int32_t predicate : {op.guard, op.predicateSource[0], op.predicateSource[1]})
    if (predicate >= 0)
      at = std::max(at, warp.predicates[static_cast<uint32_t>(predicate)]);
  return at;
}

void Multiprocessor::setReady(WarpState &warp, const Op &op, double at) const {
  for (uint32_t i = 0; i < op.results; ++i)
    warp.ready[op.result[i]] = at;
  if (op.predicateResult >= 0)
    warp.predicates[static_cast<uint32_t>(op.predicateResult)] = at;
}

/// One instruction, or that the warp's turn comes later: whoever may issue earlier goes first.
void Multiprocessor::turn(WarpState &warp, double now) {
  if (warp.at == warp.events->size())
    return end(warp, now);
  const TraceEvent &event = (*warp.events)[warp.at];
  const Op &op = program.ops[event.op];
  uint32_t part = warp.part;
  double at = readyAt(warp, op);
  auto number = static_cast<size_t>(op.cost.unit);
  bool hasUnit = op.cost.unit != Unit::None && op.cost.unit != Unit::Memory && op.cost.unit != Unit::Tensor;
  if (op.cost.issues) {
    at = std::max(at, scheduler[part]);
    if (hasUnit)
      at = std::max(at, unit[part][number]);
  }
  if (at > now)
    return push(warp, at);
  ++warp.at;
  if (op.cost.issues) {
    scheduler[part] = at + op.cost.issues;
    busy.issue += op.cost.issues;
    if (hasUnit) {
      unit[part][number] = at + op.cost.clocks;
      busy.units[number] += op.cost.clocks;
    }
  }
  warp.time = at + op.cost.issues;
  if (take(warp, op, event, at))
    push(warp, warp.time);
}

/// When all but so many groups have ended.
static double endOf(const std::vector<double> &groups, size_t left, double at) {
  return groups.size() > left ? groups[groups.size() - 1 - left] : at;
}

bool Multiprocessor::take(WarpState &warp, const Op &op, const TraceEvent &event, double at) {
  const BlockTrace &trace = *warp.block->trace;
  double done = at + op.cost.issues + op.cost.latency - (op.cost.issues ? 1 : 0);
  switch (op.cost.effect) {
  case Effect::Access:
  case Effect::Atomic:
  case Effect::Matrices:
    done = access(trace.accesses[event.detail], *warp.block, at);
    break;
  case Effect::Exchange:
    done = takeShared(op.cost.clocks, at) + op.cost.latency;
    break;
  case Effect::BulkCopy:
    bulk(warp, trace.bulks[event.detail], at);
    break;
  case Effect::BulkCommit:
    warp.stores.push_back(std::exchange(warp.store, 0));
    break;
  case Effect::BulkWait:
    return waitUntil(warp, at, endOf(warp.stores, op.immediate & 0xffff, at));
  case Effect::Initialize: {
    const BarrierUse &use = trace.barriers[event.detail];
    warp.block->phases[use.at] = {use.count, use.count, 0, 0, {}, {}};
    takeShared(1, at);
    break;
  }
  case Effect::Arrive:
  case Effect::Expect:
  case Effect::ArriveExpecting: {
    const BarrierUse &use = trace.barriers[event.detail];
    done = takeShared(1, at) + machine.clock.sharedLatency;
    arrive(warp.block->phases[use.at], use.count, use.bytes, at + machine.clock.barrierLatency / 2);
    break;
  }
  case Effect::ClusterArrive:
    arriveAtCluster(*warp.block, at);
    break;
  case Effect::ClusterAwait:
    return await(warp, trace.barriers[event.detail], at);
  case Effect::Await:
    setReady(warp, op, at);
    return await(warp, trace.barriers[event.detail], takeShared(1, at));
  case Effect::Meet:
  case Effect::MeetOnly:
    return meet(warp, trace.barriers[event.detail], op.cost.effect == Effect::Meet, at);
  case Effect::Multiply:
    multiply(warp, op, at);
    return true;
  case Effect::ProductsEnd:
    warp.groups.push_back(std::exchange(warp.products, 0));
    break;
  case Effect::ProductsWait:
    return waitUntil(warp, at, endOf(warp.groups, op.immediate, at));
  case Effect::Plain:
    break;
  }
  setReady(warp, op, done);
  return true;
}

/// The load/store unit: shared memory, and the first cache's lines.
double Multiprocessor::takeShared(double wavefronts, double at) {
  loadStore = std::max(loadStore, at) + wavefronts;
  busy.shared += wavefronts;
  return loadStore;
}

double Multiprocessor::access(const WarpAccess &access, const Block &block, double at) {
  double through = takeShared(std::max<double>(access.wavefronts, 1), at);
  if (access.place == WarpAccess::Shared)
    return through + machine.clock.sharedLatency;
  if (access.place == WarpAccess::Cluster)
    return through + machine.clock.clusterLatency;
  if (access.place == WarpAccess::Local)
    return through + machine.clock.cacheLatency;
  return fetch(block, access.first, access.sectors, access.isWrite, /*cached=*/!access.isWrite, through);
}

/// When sectors have come, or have gone.
double Multiprocessor::fetch(const Block &block, uint32_t first, uint32_t sectors, bool isWrite, bool cached,
                             double at) {
  double fromL2 = 0, fromDram = 0;
  for (uint32_t i = first; i < first + sectors; ++i) {
    uint64_t sector = numberOf(block.trace->sectors[i], block);
    if (cached && cache.take(sector))
      continue;
    ++fromL2;
    fromDram += fetched.insert(sector << 1 | uint64_t(isWrite)).second;
  }
  if (fromL2 == 0)
    return at + machine.clock.cacheLatency;
  double clocks = fromL2 * kSectorBytes / rates.l2;
  l2 = std::max(l2, at) + clocks;
  busy.l2 += clocks;
  double done = l2 + machine.clock.l2Latency;
  if (fromDram > 0) {
    clocks = fromDram * kSectorBytes / rates.dram;
    dram = std::max(dram, at) + clocks;
    busy.dram += clocks;
    done = std::max(done, dram + machine.clock.memoryLatency);
  }
  return done;
}

/// A warp's 16 rows on its sub-partition's tensor core; operands in shared memory pass its port.
void Multiprocessor::multiply(WarpState &warp, const Op &op, double at) {
  const ProductForm &form = program.products[op.immediate];
  const ProductClocks own =
      productClocks(machine, form.columns, form.depth(), form.type == ProductForm::Tf32, !form.aInRegisters);
  uint32_t part = warp.part;
  double &tensor = unit[part][static_cast<size_t>(Unit::Tensor)];
  // The four sub-partitions share shared memory's port, and what bulk copies bring is written in between. They read
  // when they come to it, so the port is not taken ahead of what others do before.
  busy.shared += own.reading / kSchedulers;
  double &arriving = landing[part];
  arriving = std::max(0.0, arriving - std::max(0.0, at - tensor));
  double taken = own.taken(arriving);
  arriving = std::max(0.0, arriving - (taken - own.reading));
  tensor = std::max(tensor, at) + taken;
  busy.units[static_cast<size_t>(Unit::Tensor)] += own.multiplying;
  warp.products = tensor + machine.clock.productLatency;
}

void Multiprocessor::bulk(WarpState &warp, const BulkMove &move, double at) {
  double wavefronts = static_cast<double>(move.bytes) / machine.clock.sharedBytesPerClock;
  if (move.stores) {
    double read = takeShared(wavefronts, at);
    fetch(*warp.block, move.first, move.sectors, /*isWrite=*/true, /*cached=*/false, read);
    warp.store = std::max(warp.store, read + machine.clock.bulkLatency);
    return;
  }
  double there = fetch(*warp.block, move.first, move.sectors, false, /*cached=*/false, at);
  busy.shared += wavefronts;
  for (double &each : landing)
    each += wavefronts;
  arrive(warp.block->phases[move.barrier], 0, -static_cast<int64_t>(move.bytes),
         (move.sectors ? there : at + machine.clock.l2Latency) + machine.clock.bulkLatency);
}

/// Arrivals, bytes that are expected (above zero) or that have come.
void Multiprocessor::arrive(Phases &barrier, uint32_t count, int64_t bytes, double at) {
  barrier.pending -= std::min(count, barrier.pending);
  barrier.bytes += bytes;
  barrier.latest = std::max(barrier.latest, at);
  if (barrier.pending || barrier.bytes)
    return;
  barrier.ended.push_back(barrier.latest);
  barrier.pending = barrier.expected;
  barrier.latest = 0;
  for (WarpState *warp : std::exchange(barrier.waiting, {}))
    goOn(*warp, std::max(warp->time, barrier.ended.back()) + machine.clock.barrierLatency);
}

/// The other blocks are taken to come when this one does.
void Multiprocessor::arriveAtCluster(Block &block, double at) {
  Phases &barrier = block.phases[kClusterBarrier];
  if (barrier.expected == 0)
    barrier.expected = barrier.pending = kLanes * static_cast<uint32_t>(block.warps.size());
  arrive(barrier, kLanes, 0, at + machine.clock.clusterLatency);
}

bool Multiprocessor::await(WarpState &warp, const BarrierUse &use, double at) {
  Phases &barrier = warp.block->phases[use.at];
  if (!use.isKnown)
    return true;
  if (use.phase < barrier.ended.size())
    return waitUntil(warp, at, barrier.ended[use.phase] + machine.clock.barrierLatency);
  warp.since = at;
  warp.time = std::max(warp.time, at);
  barrier.waiting.push_back(&warp);
  return false;
}

bool Multiprocessor::meet(WarpState &warp, const BarrierUse &use, bool waits, double at) {
  Meeting &meeting = warp.block->meetings[use.at];
  meeting.arrived += kLanes;
  meeting.latest = std::max(meeting.latest, at);
  bool all = meeting.arrived >= use.count;
  warp.since = at;
  if (waits && !all)
    meeting.waiting.push_back(&warp);
  if (!all)
    return !waits;
  double until = meeting.latest + machine.clock.barrierLatency;
  std::vector<WarpState *> waiting = std::exchange(meeting, {}).waiting;
  for (WarpState *each : waiting)
    goOn(*each, until);
  return !waits || waitUntil(warp, at, until);
}

/// True: the warp may be pushed at its time.
bool Multiprocessor::waitUntil(WarpState &warp, double at, double until) {
  if (until <= warp.time)
    return true;
  warp.since = at;
  goOn(warp, until);
  return false;
}

void Multiprocessor::goOn(WarpState &warp, double at) {
  if (waits && at > warp.since)
    waits->push_back(
        {warp.block->number, warp.number, program.ops[(*warp.events)[warp.at - 1].op].line, warp.since, at});
  warp.time = std::max(warp.time, at);
  push(warp, warp.time);
}

void Multiprocessor::end(WarpState &warp, double at) {
  last = std::max(last, at);
  if (--warp.block->left)
    return;
  ends.push_back(at);
  warp.block->trace = nullptr;
  warp.block->phases.clear();
  if (started < wanted)
    start(at);
}

} // namespace dmxrt::cuda
