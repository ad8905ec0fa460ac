//===- Quad.cpp - scheduling of a quad's queues ---------------------------===//

#include "Quad.h"

#include <algorithm>

namespace dmxrt::corsair {

Quad::Quad(Card &card, const ProgramRun &what, const RunOptions &options, const isa::Launch &launch, int ddrUsers,
           const VectorClock &clocks, uint64_t start)
    : card(card), machine(card.machine), number(launch.quad), timeline(card.machine, ddrUsers), what(what),
      options(options), registers(launch.registers) {
  result.quad = number;
  for (auto [reg, value] : what.registers)
    registers[reg] = value;
  registerShadow.resize(sizeof registers);
  Problem none;
  registerShadow.write(0, sizeof registers, byteKind(ElemKind::I64), Actor(), none);
  for (uint32_t i = 0; i < queues.size(); ++i) {
    Queue &queue = queues[i];
    queue.index = i;
    queue.stream = launch.streams[i];
    queue.done = queue.stream == isa::kNoStream;
    launched |= queue.done ? 0 : 1u << i;
    queue.thread = threadOf(number, i);
    queue.time = start;
    // Everything before this program is over.
    queue.clock = clocks;
    ++queue.clock[queue.thread];
  }
  published.store(start);
}

void Quad::saveClocks(VectorClock &out) const {
  for (const Queue &queue : queues)
    out[queue.thread] = queue.clock.of(queue.thread);
}

/// When the next instruction of a queue can start.
uint64_t Quad::issueTime(const Queue &queue) const {
  isa::Group group = (*what.streams)[queue.stream].code[queue.position].in->info().group;
  if (!queue.issuedBefore || group == isa::Group::Control || group == isa::Group::Config)
    return queue.time;
  return std::max(queue.time, queue.lastIssue + ceilClocks(machine.issueClocks));
}

Queue *Quad::earliest() {
  Queue *best = nullptr;
  uint64_t bestTime = 0;
  for (Queue &queue : queues) {
    if (!queue.isReady())
      continue;
    uint64_t time = issueTime(queue);
    if (!best || time < bestTime) {
      best = &queue;
      bestTime = time;
    }
  }
  return best;
}

bool Quad::anyRemote() const {
  for (const Queue &queue : queues)
    if (queue.remote.kind != RemoteWait::Kind::None)
      return true;
  return false;
}

bool Quad::pollRemote() {
  bool woken = false;
  for (Queue &queue : queues)
    if (queue.remote.kind != RemoteWait::Kind::None && !fault)
      woken |= pollRemote(queue);
  return woken;
}

/// The earliest time at which a queue that waits for another quad could go on.
/// `time` is the earliest event of this quad itself.
uint64_t Quad::horizon(uint64_t time) const {
  uint64_t bound = ~uint64_t(0);
  for (const Queue &queue : queues) {
    const RemoteWait &wait = queue.remote;
    if (wait.kind == RemoteWait::Kind::None)
      continue;
    uint64_t mine;
    if (wait.kind == RemoteWait::Kind::Barrier) {
      mine = card.barrierBound(*wait.ticket, number, time);
    } else {
      mine = wait.quad == number ? time : card.lowerBound(wait.quad);
      if (mine != ~uint64_t(0))
        mine += card.latency(wait.quad, number);
    }
    bound = std::min(bound, mine);
  }
  return bound;
}

Quad::Outcome Quad::run(uint64_t grant, ProductScratch &room) {
  scratch = &room;
  madeProgress = false;
  for (;;) {
    bool remote = anyRemote();
    if (remote)
      madeProgress |= pollRemote();
    Queue *next = fault ? nullptr : earliest();
    if (!next) {
      bool done = std::all_of(queues.begin(), queues.end(), [](const Queue &queue) { return queue.done; });
      bool over =
          std::all_of(queues.begin(), queues.end(), [](const Queue &queue) { return queue.done || queue.stuck; });
      if (over && !done && !fault)
        fault = poison;
      if (done || fault)
        published.store(~uint64_t(0), std::memory_order_release);
      return fault ? Faulted : done ? Done : Blocked;
    }
    uint64_t time = issueTime(*next);
    if (remote && anyRemote()) {
      // First the bound, then what may have arrived meanwhile: what arrives later is beyond the bound.
      uint64_t bound = horizon(time);
      if (pollRemote())
        continue;
      if (time >= bound && time > grant) {
        published.store(std::max(published.load(), std::min(time, bound)), std::memory_order_release);
        candidate = time;
        return Suspended;
      }
    }
    published.store(std::max(published.load(), time), std::memory_order_release);
    madeProgress = true;
    (void)step(*next); // a fault ends the loop above
  }
}

bool Quad::step(Queue &queue) {
  const Decoded &decoded = (*what.streams)[queue.stream].code[queue.position];
  isa::Group group = decoded.in->info().group;
  ++result.usage.instructions;
  if (group == isa::Group::Control)
    return control(queue, decoded);
  if (group == isa::Group::Config)
    return configure(queue, decoded);
  uint64_t issue = issueTime(queue);
  Interval when;
  queue.pending = Usage();
  queue.pending.instructions = 1;
  bool good = false;
  switch (decoded.in->opcode) {
  case isa::Opcode::Move:
    good = executeMove(*this, queue, *decoded.in, issue, when);
    break;
  case isa::Opcode::Matmul:
  case isa::Opcode::Conv:
    good = executeProduct(*this, queue, *decoded.in, issue, when);
    break;
  case isa::Opcode::ExecSimd:
    good = executeSimd(*this, queue, *decoded.in, issue, when);
    break;
  case isa::Opcode::Transpose:
    good = executeTranspose(*this, queue, *decoded.in, issue, when);
    break;
  case isa::Opcode::Extract:
  case isa::Opcode::Insert:
    good = executeReshape(*this, queue, *decoded.in, issue, when);
    break;
  default:
    good = executeCpu(*this, queue, *decoded.in, issue, when);
  }
  if (!good)
    return false;
  account(queue, when.start, when.end);
  queue.lastIssue = issue;
  queue.issuedBefore = true;
  queue.time = when.end;
  lastTime = std::max(lastTime, queue.time);
  ++queue.position;
  return true;
}

/// Adds the instruction in hand to the figures of the quad and of its task.
void Quad::account(Queue &queue, uint64_t start, uint64_t end) {
  queue.pending.first = start;
  queue.pending.last = end;
  queue.pending.instructions = 0; // counted by step, with the control instructions
  result.usage.add(queue.pending);
  queue.pending.instructions = 1;
  marks[queue.mark].add(queue.pending);
}

void Quad::record(Queue &queue, Engine engine, int instance, uint64_t start, uint64_t end) {
  queue.pending.busy[static_cast<int>(engine)][instance] += end - start;
  if (options.trace)
    result.trace.push_back(
        {start, end, engine, static_cast<uint8_t>(instance), queue.stream, queue.position, queue.mark});
}

bool Quad::configure(Queue &queue, const Decoded &decoded) {
  int64_t slot = decoded.in->operands[0].base;
  switch (*isa::configUnit(decoded.in->opcode)) {
  case isa::Unit::AC:
    queue.array[slot] = decoded.array.get();
    break;
  case isa::Unit::SIMD:
    queue.simd[slot] = decoded.simd.get();
    break;
  case isa::Unit::GM:
    queue.gm[slot] = decoded.move.get();
    break;
  case isa::Unit::ST:
    queue.st[slot] = decoded.move.get();
    break;
  }
  queue.time += 1;
  lastTime = std::max(lastTime, queue.time);
  ++queue.position;
  return true;
}

} // namespace dmxrt::corsair
