//===- QueueMachine.cpp - runs programs of queues -------------------------===//
#include "QueueMachine.h"

#include "runtime/Error.h"

#include <cstring>

namespace dmxrt::sim {

using queues::Line;
using queues::Place;
using queues::Walk;
using queues::Word;

QueueMachine::QueueMachine(const queues::Machine &machine, const Engines &engines, const queues::Program &kernel)
    : machine(machine), engines(engines), kernel(kernel) {
  for (const queues::Memory &memory : machine.memories)
    memories.emplace_back(memory.name, memory.size, [this](uint16_t queue) { return nameOf(all[queue]); });
  for (const Line &line : kernel) {
    if (line.word == Word::Buffer)
      buffers.push_back(&line);
    if (line.word == Word::Token)
      tokens.emplace_back(line.n[0]);
    if (line.word == Word::Channel)
      channels.push_back({Counter(line.n[0]), Counter()});
    if (line.word == Word::Queue)
      all.push_back({static_cast<uint16_t>(all.size()), static_cast<size_t>(&line - kernel.data()) + 1});
  }
  for (Queue &queue : all) {
    queue.now.known = VectorClock(all.size());
    queue.now.known[queue.number] = 1;
  }
}

bool QueueMachine::ended(const Queue &queue) const {
  return queue.at == kernel.size() || kernel[queue.at].word == Word::Queue;
}

std::string QueueMachine::nameOf(const Queue &queue) const {
  return cat("'", queue.group, "' of queue ", queue.number);
}

// --- the host's side ------------------------------------------------------------

/// Calls visit(source, target) for each item.
template <typename Visit> static bool eachItem(const Walk &walk, Visit visit) {
  for (int64_t i = 0; i < walk.counts[0]; ++i)
    for (int64_t j = 0; j < walk.counts[1]; ++j)
      for (int64_t k = 0; k < walk.counts[2]; ++k)
        if (!visit(i * walk.source[0] + j * walk.source[1] + k * walk.source[2],
                   i * walk.target[0] + j * walk.target[1] + k * walk.target[2]))
          return false;
  return true;
}

void QueueMachine::write(const Line &argument, const std::byte *tensor) {
  const Line &buffer = *buffers[argument.n[1]];
  CheckedMemory &memory = memories[buffer.n[0]];
  if (std::byte *whole = memory.access(buffer.place[0].base, buffer.n[1], true, {}, fault))
    std::memset(whole, 0, static_cast<size_t>(buffer.n[1]));
  int64_t base = buffer.place[0].base + argument.place[0].base;
  eachItem(argument.walk, [&](int64_t from, int64_t to) {
    std::byte *there = fault.empty() ? memory.access(base + to, argument.walk.bytes, true, {}, fault) : nullptr;
    if (there)
      std::memcpy(there, tensor + from, static_cast<size_t>(argument.walk.bytes));
    return there != nullptr;
  });
}

void QueueMachine::read(const Line &argument, std::byte *tensor) {
  const Line &buffer = *buffers[argument.n[1]];
  int64_t base = buffer.place[0].base + argument.place[0].base;
  eachItem(argument.walk, [&](int64_t to, int64_t from) {
    std::byte *there = memories[buffer.n[0]].access(base + from, argument.walk.bytes, false, {}, fault);
    if (there)
      std::memcpy(tensor + to, there, static_cast<size_t>(argument.walk.bytes));
    return there != nullptr;
  });
}

// --- queues ---------------------------------------------------------------------

void QueueMachine::run() {
  for (bool moves = true; moves && fault.empty();) {
    moves = false;
    for (Queue &queue : all)
      while (fault.empty() && !ended(queue) && step(queue))
        moves = true;
  }
  for (const Queue &queue : all)
    if (fault.empty() && !ended(queue))
      fault = cat("deadlock: ", nameOf(queue), " waits for ever at '", textOf(kernel[queue.at], machine), "'");
}

bool QueueMachine::step(Queue &queue) {
  const Line &line = kernel[queue.at];
  if (!(line.word < Word::Copy ? control(queue, line) : transfer(queue, line)))
    return false;
  ++queue.at;
  ++steps;
  return true;
}

bool QueueMachine::control(Queue &queue, const Line &line) {
  switch (line.word) {
  case Word::Loop:
    queue.loops.emplace_back(queue.at, 0);
    return true;
  case Word::End:
    if (auto &[first, count] = queue.loops.back(); ++count < kernel[first].n[0])
      queue.at = first;
    else
      queue.loops.pop_back();
    return true;
  case Word::Group:
    queue.group = line.name;
    return true;
  case Word::Wait:
    return tokens[line.n[0]].take(line.n[1], queue.now);
  default: // Signal: the reader has seen to it
    give(tokens[line.n[0]], line.n[1], queue);
    return true;
  }
}

/// What the queue did so far is before what the taker does; what it does from now on is not.
void QueueMachine::give(Counter &counter, int64_t count, Queue &queue) {
  counter.give(count, queue.now);
  ++queue.now.known[queue.number];
}

// --- copies and tasks -------------------------------------------------------------

int64_t QueueMachine::valueOf(const Queue &queue, const Place &place) {
  int64_t value = place.base;
  for (size_t i = 0; i < queue.loops.size(); ++i)
    value += place.steps[i] * queue.loops[i].second;
  return value;
}

std::byte *QueueMachine::access(const Queue &queue, int64_t memory, int64_t address, int64_t bytes, bool write) {
  Epoch epoch{queue.now.known.of(queue.number), static_cast<uint32_t>(queue.at), queue.number};
  return memories[memory].access(address, bytes, write, {epoch, &queue.now.known}, fault);
}

bool QueueMachine::gather(const Queue &queue, int64_t memory, int64_t from, const Walk &walk) {
  packet.clear();
  return eachItem(walk, [&](int64_t source, int64_t) {
    const std::byte *item = access(queue, memory, from + source, walk.bytes, false);
    if (item)
      packet.insert(packet.end(), item, item + walk.bytes);
    return item != nullptr;
  });
}

bool QueueMachine::scatter(const Queue &queue, int64_t memory, int64_t to, const Walk &walk) {
  if (packet.size() != static_cast<size_t>(walk.items() * walk.bytes)) {
    fault = cat(nameOf(queue), " gets ", packet.size(), " bytes where it walks over ", walk.items() * walk.bytes);
    return false;
  }
  const std::byte *item = packet.data();
  return eachItem(walk, [&](int64_t, int64_t target) {
    std::byte *there = access(queue, memory, to + target, walk.bytes, true);
    if (there)
      std::memcpy(there, item, static_cast<size_t>(walk.bytes));
    item += walk.bytes;
    return there != nullptr;
  });
}

void QueueMachine::spend(Queue &queue, const Line &line, uint64_t clocks, bool computing) {
  if (keepsTrace)
    intervals.push_back({queue.now.clock, queue.now.clock + clocks, queue.number, &line, queue.group});
  queue.now.clock += clocks;
  (computing ? queue.computing : queue.copying) += clocks;
}

/// The engine's view of a queue that is at one of its tasks.
class QueueMachine::Task final : public EngineTask {
public:
  Task(QueueMachine &owner, const Queue &queue, const Line &line) : owner(owner), queue(queue), line(line) {}
  std::byte *bytes(size_t place, int64_t count, bool write) override {
    return owner.access(queue, line.n[1 + place], valueOf(queue, line.place[place]), count, write);
  }
  int64_t number() override { return valueOf(queue, line.place[3]); }

private:
  QueueMachine &owner;
  const Queue &queue;
  const Line &line;
};

bool QueueMachine::transfer(Queue &queue, const Line &line) {
  auto clocks = [&](int64_t memory) {
    int64_t rate = machine.memories[memory].bytesPerClock;
    return static_cast<uint64_t>((line.walk.items() * line.walk.bytes + rate - 1) / rate);
  };
  int64_t first = valueOf(queue, line.place[0]), second = valueOf(queue, line.place[1]);
  switch (line.word) {
  case Word::Copy:
    if (!gather(queue, line.n[0], first, line.walk) || !scatter(queue, line.n[1], second, line.walk))
      return false;
    spend(queue, line, std::max(clocks(line.n[0]), clocks(line.n[1])), false);
    return true;
  case Word::Put: {
    Channel &channel = channels[line.n[0]];
    if (!channel.room.take(1, queue.now) || !gather(queue, line.n[1], first, line.walk))
      return false;
    spend(queue, line, clocks(line.n[1]), false);
    channel.packets.push_back(packet);
    give(channel.filled, 1, queue);
    return true;
  }
  case Word::Get: {
    Channel &channel = channels[line.n[0]];
    if (!channel.filled.take(1, queue.now))
      return false;
    packet = std::move(channel.packets.front());
    channel.packets.pop_front();
    if (!scatter(queue, line.n[1], first, line.walk))
      return false;
    spend(queue, line, clocks(line.n[1]), false);
    give(channel.room, 1, queue);
    return true;
  }
  default:
    Task task(*this, queue, line);
    std::optional<EngineWork> work = engines.run(static_cast<size_t>(line.n[0]), task);
    if (!work)
      return false;
    macs += work->macs;
    spend(queue, line, work->clocks, true);
    return true;
  }
}

// --- what it cost -----------------------------------------------------------------

QueueCost QueueMachine::cost() const {
  QueueCost out{all.size()};
  for (const Queue &queue : all) {
    out.clocks = std::max(out.clocks, queue.now.clock);
    out.copying = std::max(out.copying, queue.copying);
    out.computing = std::max(out.computing, queue.computing);
  }
  out.macs = macs;
  out.steps = steps;
  for (const CheckedMemory &memory : memories) {
    out.readBytes.push_back(memory.readBytes);
    out.writtenBytes.push_back(memory.writtenBytes);
  }
  return out;
}

} // namespace dmxrt::sim
