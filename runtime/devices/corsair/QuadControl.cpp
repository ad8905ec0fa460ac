//===- QuadControl.cpp - loops, tokens, barriers, mailboxes, RESET --------===//

#include "Quad.h"

#include <algorithm>

namespace dmxrt::corsair {

using isa::Opcode;

int64_t Quad::value(Queue &queue, const isa::Instruction &in, int field) {
  const isa::Operand &operand = in.operands[field];
  auto sum = static_cast<uint64_t>(operand.base);
  for (const isa::Term &term : operand.terms) {
    int64_t source = number;
    if (term.source < isa::kTermRegister)
      source = queue.frames[term.source - isa::kTermLoop].counter;
    else if (term.source < isa::kTermQuad)
      readRegister(queue, term.source - isa::kTermRegister, source);
    sum += static_cast<uint64_t>(term.scale) * static_cast<uint64_t>(source);
  }
  return static_cast<int64_t>(sum);
}

/// What has happened in this queue so far, for whoever takes its signal.
std::shared_ptr<const VectorClock> Quad::release(Queue &queue) {
  if (!options.hazards)
    return nullptr;
  auto snapshot = std::make_shared<const VectorClock>(queue.clock);
  ++queue.clock[queue.thread];
  return snapshot;
}

bool Quad::control(Queue &queue, const Decoded &decoded) {
  const isa::Instruction &in = *decoded.in;
  uint32_t next = queue.position + 1;
  switch (in.opcode) {
  case Opcode::Nop:
    queue.time += static_cast<uint64_t>(in.operands[0].base);
    break;
  case Opcode::Mark:
    queue.mark = static_cast<uint32_t>(in.operands[0].base);
    break;
  case Opcode::Halt:
    queue.done = true;
    break;
  case Opcode::Loop: {
    int64_t trips = value(queue, in, 0);
    if (fault)
      return false;
    if (trips > 0)
      queue.frames[queue.depth++] = {queue.position, trips, 0};
    else
      next = decoded.match + 1;
    break;
  }
  case Opcode::EndLoop: {
    Queue::Frame &frame = queue.frames[queue.depth - 1];
    queue.time += ceilClocks(machine.loopClocks);
    if (++frame.counter < frame.trips)
      next = decoded.match + 1;
    else
      --queue.depth;
    break;
  }
  case Opcode::Reset:
    if (!reset(queue, in))
      return false;
    queue.time += 1;
    break;
  default:
    return exchange(queue, in);
  }
  queue.position = next;
  lastTime = std::max(lastTime, queue.time);
  return !fault;
}

/// Instructions that another queue or quad takes part in.
bool Quad::exchange(Queue &queue, const isa::Instruction &in) {
  auto field = [&](std::string_view name) { return value(queue, in, name); };
  using Kind = RemoteWait::Kind;
  RemoteWait wait;
  switch (in.opcode) {
  case Opcode::Signal: {
    auto id = static_cast<uint32_t>(field("id"));
    queue.time += 1;
    tokens[id].put({queue.time, static_cast<uint64_t>(field("n")), release(queue)});
    ++queue.position;
    lastTime = std::max(lastTime, queue.time);
    wakeLocal(id);
    return true;
  }
  case Opcode::Wait:
    queue.local = {true, static_cast<uint32_t>(field("id")), static_cast<uint64_t>(field("n"))};
    wakeLocal(queue.local.id);
    return true;
  case Opcode::SignalRemote: {
    auto mask = static_cast<uint64_t>(field("quads"));
    std::shared_ptr<const VectorClock> clock = release(queue);
    queue.time += 1;
    for (uint32_t to = 0; to < 64; ++to) {
      if (!(mask >> to & 1))
        continue;
      if (to >= static_cast<uint32_t>(machine.quadCount()) || !card.isLaunched(to))
        return raise(queue, FaultKind::BadOperand, cat("quad ", to, " does not take part in this program"));
      card.post(number, to, static_cast<uint32_t>(field("id")),
                {queue.time + card.latency(number, to), static_cast<uint64_t>(field("n")), clock});
    }
    ++queue.position;
    lastTime = std::max(lastTime, queue.time);
    return !fault;
  }
  case Opcode::Barrier:
    return barrier(queue, in);
  case Opcode::WaitRemote:
    wait = {Kind::Tokens, 0, static_cast<uint32_t>(field("id")), static_cast<uint64_t>(field("n")), nullptr, 0};
    break;
  case Opcode::Send:
    wait = {Kind::Room, 0, static_cast<uint32_t>(field("reg")), static_cast<uint64_t>(field("n")), nullptr, 0};
    break;
  default:
    wait = {Kind::Message, 0, static_cast<uint32_t>(field("reg")), static_cast<uint64_t>(field("n")), nullptr, 0};
  }
  int64_t other = field("quad");
  if (fault)
    return false;
  if (other < 0 || other >= machine.quadCount())
    return raise(queue, FaultKind::BadOperand, cat("quad is ", other));
  wait.quad = static_cast<uint32_t>(other);
  queue.remote = wait;
  pollRemote(queue);
  return !fault;
}

void Quad::wakeLocal(uint32_t id) {
  for (;;) {
    Queue *first = nullptr; // waits longest
    for (Queue &queue : queues)
      if (queue.local.active && queue.local.id == id && (!first || queue.time < first->time))
        first = &queue;
    if (!first || !tokens[id].take(first->local.count, first->time, first->clock))
      return;
    first->local.active = false;
    first->time += 1;
    ++first->position;
    lastTime = std::max(lastTime, first->time);
  }
}

bool Quad::barrier(Queue &queue, const isa::Instruction &in) {
  std::string mismatch;
  std::shared_ptr<const VectorClock> clock = release(queue);
  auto mask = static_cast<uint32_t>(in.get("queues"));
  if (!(mask >> queue.index & 1))
    return raise(queue, FaultKind::BarrierMismatch, cat("queue ", queue.index, " is not among queues ", mask));
  auto ticket =
      card.arrive(number, queue.index, static_cast<uint32_t>(in.get("scope")), static_cast<uint32_t>(in.get("id")),
                  mask, queue.time, clock ? *clock : queue.clock, mismatch);
  if (!ticket)
    return raise(queue, FaultKind::BarrierMismatch, mismatch);
  queue.remote.kind = RemoteWait::Kind::Barrier;
  queue.remote.ticket = ticket;
  queue.remote.id = static_cast<uint32_t>(in.get("id"));
  pollRemote(queue);
  return true;
}

bool Quad::takeMessage(Queue &queue) {
  RemoteWait &wait = queue.remote;
  std::optional<Message> message = card.receive(wait.quad, number, queue.time);
  if (!message)
    return false;
  if (message->values.size() != wait.count)
    return raise(
        queue, FaultKind::BadOperand,
        cat("quad ", wait.quad, " sent ", message->values.size(), " registers, ", wait.count, " are expected"));
  queue.time = std::max(queue.time, message->time) + ceilClocks(machine.mailboxClocks);
  if (message->clock)
    queue.clock.join(*message->clock);
  for (uint32_t i = 0; i < wait.count; ++i)
    if (!writeRegister(queue, wait.id + i, message->values[i]))
      return false;
  return true;
}

bool Quad::putMessage(Queue &queue) {
  RemoteWait &wait = queue.remote;
  if (!card.isLaunched(wait.quad))
    return raise(queue, FaultKind::BadOperand, cat("quad ", wait.quad, " does not take part in this program"));
  Message message;
  for (uint32_t i = 0; i < wait.count; ++i)
    if (!readRegister(queue, wait.id + i, message.values.emplace_back()))
      return false;
  if (options.hazards)
    message.clock = std::make_shared<const VectorClock>(queue.clock);
  if (!card.send(number, wait.quad, std::move(message), queue.time))
    return false;
  release(queue);
  queue.time += ceilClocks(machine.mailboxClocks);
  return true;
}

/// Tries to end a queue's wait for another quad.
bool Quad::pollRemote(Queue &queue) {
  RemoteWait &wait = queue.remote;
  bool over = false;
  switch (wait.kind) {
  case RemoteWait::Kind::None:
    return false;
  case RemoteWait::Kind::Tokens:
    over = card.takeTokens(wait.quad, number, wait.id, wait.count, queue.time, queue.clock);
    queue.time += over;
    break;
  case RemoteWait::Kind::Barrier:
    over = card.isOpen(*wait.ticket);
    if (over) {
      queue.time = std::max(queue.time, wait.ticket->time);
      queue.clock.join(wait.ticket->clock);
    }
    break;
  case RemoteWait::Kind::Message:
    over = takeMessage(queue);
    break;
  case RemoteWait::Kind::Room:
    over = putMessage(queue);
    break;
  }
  if (!over)
    return false;
  wait = RemoteWait();
  ++queue.position;
  lastTime = std::max(lastTime, queue.time);
  return true;
}

bool Quad::reset(Queue &queue, const isa::Instruction &in) {
  auto slices = static_cast<uint32_t>(in.get("slices")), units = static_cast<uint32_t>(in.get("units"));
  constexpr std::pair<uint32_t, Memory> kUnits[] = {{isa::kResetIB, Memory::IB},   {isa::kResetWB, Memory::WB},
                                                    {isa::kResetOB, Memory::OB},   {isa::kResetSIMD, Memory::SIMD},
                                                    {isa::kResetDRE, Memory::DRE}, {isa::kResetST, Memory::ST}};
  auto clear = [&](Memory memory, uint32_t unit) {
    return discard(queue, memory, unit, 0, static_cast<int64_t>(card.storage.size(memory)));
  };
  for (int slice = 0; slice < machine.slices; ++slice)
    for (auto [bit, memory] : kUnits) {
      if (!(slices >> slice & 1) || !(units & bit))
        continue;
      int count = memory == Memory::WB ? machine.cores : 1;
      for (int core = 0; core < count; ++core)
        if (!clear(memory, unitOf(memory, slice, core)))
          return false;
    }
  if (units & isa::kResetConfig) {
    queue.gm.fill(nullptr);
    queue.st.fill(nullptr);
    queue.array.fill(nullptr);
    queue.simd.fill(nullptr);
  }
  return !(units & isa::kResetGM) || clear(Memory::GM, number);
}

std::string Quad::describeWaits() const {
  std::string out;
  for (const Queue &queue : queues) {
    if (queue.done || queue.stuck || queue.isReady())
      continue;
    out += cat(" ", where(queue), " waits for ");
    const RemoteWait &wait = queue.remote;
    if (queue.local.active)
      out += cat(queue.local.count, " of token ", queue.local.id, ", there are ", tokens[queue.local.id].available);
    else if (wait.kind == RemoteWait::Kind::Tokens)
      out += cat(wait.count, " of token ", wait.id, " from quad ", wait.quad);
    else if (wait.kind == RemoteWait::Kind::Barrier)
      out += cat("barrier ", wait.id);
    else if (wait.kind == RemoteWait::Kind::Message)
      out += cat("a message from quad ", wait.quad);
    else
      out += cat("room in the mailbox to quad ", wait.quad);
    out += ";";
  }
  return out;
}

} // namespace dmxrt::corsair
