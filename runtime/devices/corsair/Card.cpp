//===- Card.cpp - quads that run a program together -----------------------===//

#include "Card.h"
#include "Quad.h"

#include <algorithm>
#include <bit>
#include <pthread.h>
#include <utility>

namespace dmxrt::corsair {
namespace {

/// splitmix64: skews that depend on the seed and the quad alone.
uint64_t mix(uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9u;
  value = (value ^ value >> 27) * 0x94D049BB133111EBu;
  return value ^ value >> 31;
}

/// Which fault is reported: the earlier, but a race before the poison that it explains.
bool precedes(const Fault &a, const Fault &b) {
  bool poisonA = a.kind == FaultKind::PoisonRead, poisonB = b.kind == FaultKind::PoisonRead;
  return poisonA != poisonB ? poisonB : a.time < b.time;
}

uint64_t ceilLatency(double clocks) { return std::max<uint64_t>(ceilClocks(clocks), 1); }

} // namespace

Card::Card(const isa::Machine &machine, Storage &storage) : machine(machine), storage(storage) {}
Card::~Card() = default;

// --- running -----------------------------------------------------------------

void Card::prepare(const ProgramRun &what, const RunOptions &options) {
  for (auto &slot : slots)
    slot.reset();
  tokens.clear();
  mailboxes.clear();
  barriers.clear();
  finished = false;
  grant = 0;
  running = 0;
  auto perChiplet = static_cast<uint32_t>(machine.quads);
  std::array<int, 32> ddrUsers{};
  for (const isa::Launch &launch : what.program->launches) {
    bool uses = false;
    for (uint32_t stream : launch.streams)
      uses |= stream != isa::kNoStream && (*what.streams)[stream].usesDdr;
    ddrUsers[launch.quad / perChiplet] += uses;
  }
  for (const isa::Launch &launch : what.program->launches) {
    auto slot = std::make_unique<Slot>();
    uint64_t start = options.skewSeed ? mix(options.skewSeed * 1000003 + launch.quad) % 20000 : 0;
    slot->quad =
        std::make_unique<Quad>(*this, what, options, launch, ddrUsers[launch.quad / perChiplet], clocks, start);
    slots[launch.quad] = std::move(slot);
  }
}

Card::Slot *Card::takeReady() {
  for (auto &slot : slots)
    if (slot && slot->state == State::Ready)
      return slot.get();
  return nullptr;
}

/// Nothing runs and nothing is ready: lets the suspended quads with the earliest
/// events go on. What could wake their waiting queues lies at least a link's
/// latency after the earliest event of all. False when there is no event left.
bool Card::advance() {
  uint64_t earliest = ~uint64_t(0);
  for (auto &slot : slots)
    if (slot && slot->state == State::Suspended)
      earliest = std::min(earliest, slot->quad->candidate);
  if (earliest == ~uint64_t(0))
    return false;
  grant = earliest + smallestLatency() - 1;
  for (auto &slot : slots)
    if (slot && slot->state == State::Suspended && slot->quad->candidate <= grant)
      slot->state = State::Ready;
  return true;
}

void Card::settle(Slot &slot, int outcome, bool progress) {
  bool ended = outcome == Quad::Done || outcome == Quad::Faulted;
  slot.state = ended ? State::Finished : outcome == Quad::Blocked ? State::Blocked : State::Suspended;
  if (slot.poked && !ended)
    slot.state = State::Ready;
  slot.poked = false;
  // This quad's time went on: others may ask again how far they may go.
  for (auto &other : slots)
    if (progress && other && other.get() != &slot && other->state == State::Suspended)
      other->state = State::Ready;
}

Card::Worker::Worker(Card &card) : card(card), scratch(std::make_unique<ProductScratch>()) {}
Card::Worker::~Worker() = default;

void Card::Worker::work() {
  std::unique_lock lock(card.mutex);
  while (!card.finished) {
    if (Slot *slot = card.takeReady()) {
      slot->state = State::Running;
      uint64_t limit = card.grant;
      ++card.running;
      lock.unlock();
      int outcome = Quad::Faulted;
      std::exception_ptr thrown; // out of memory; it goes on in run(), on the session's thread
      try {
        outcome = slot->quad->run(limit, *scratch);
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      --card.running;
      card.settle(*slot, outcome, slot->quad->madeProgress);
      if (thrown) {
        card.failure = thrown;
        card.finished = true;
      }
      card.changed.notify_all();
    } else if (card.running) {
      card.changed.wait(lock);
    } else if (!card.advance()) {
      card.finished = true;
      card.changed.notify_all();
    }
  }
}

void *Card::workMain(void *worker) {
  static_cast<Worker *>(worker)->work();
  return nullptr;
}

RunResult Card::run(const ProgramRun &what, const RunOptions &options) {
  prepare(what, options);
  size_t count = std::max<size_t>(std::min<size_t>(options.threads, what.program->launches.size()), 1);
  while (workers.size() < count)
    workers.push_back(std::make_unique<Worker>(*this));
  size_t started = 1;
  while (started < count && pthread_create(&workers[started]->thread, nullptr, workMain, workers[started].get()) == 0)
    ++started; // fewer threads give the same result
  workers.front()->work();
  for (size_t i = 1; i < started; ++i)
    pthread_join(workers[i]->thread, nullptr);
  // What the quads did stays in the memories' shadows, whatever became of the run.
  for (auto &slot : slots)
    if (slot)
      slot->quad->saveClocks(clocks);
  if (failure)
    std::rethrow_exception(std::exchange(failure, nullptr));
  return collect();
}

RunResult Card::collect() {
  RunResult out;
  bool stuck = false;
  uint32_t chiplets = 0;
  for (auto &slot : slots) {
    if (!slot)
      continue;
    Quad &quad = *slot->quad;
    stuck |= slot->state != State::Finished;
    out.clocks = std::max(out.clocks, quad.lastTime);
    chiplets |= 1u << quad.chiplet();
    if (!quad.fault)
      quad.fault = quad.poison;
    if (quad.fault && (!out.fault || precedes(*quad.fault, *out.fault)))
      out.fault = quad.fault;
    for (auto &[mark, usage] : quad.marks)
      out.marks[mark].add(usage);
    out.quads.push_back(std::move(quad.result));
  }
  out.chiplets = std::popcount(chiplets);
  if (stuck && !out.fault)
    out.fault = deadlock();
  return out;
}

Fault Card::deadlock() const {
  Fault fault{FaultKind::Deadlock, 0, 0, "deadlock:"};
  for (auto &slot : slots)
    if (slot && slot->state != State::Finished) {
      fault.text += slot->quad->describeWaits();
      fault.time = std::max(fault.time, slot->quad->lastTime);
    }
  for (auto &[key, barrier] : barriers)
    if (!barrier.arrivals.empty()) {
      fault.text += cat(" barrier ", key[2], " misses");
      for (uint32_t quad = 0; quad < slots.size(); ++quad)
        if (takesPart(barrier, quad))
          for (uint32_t queue = 0; queue < 4; ++queue) {
            bool wanted = slots[quad]->quad->launchedMask() & barrier.arrivals.front().queues & 1u << queue,
                 there = false;
            for (const Arrival &arrival : barrier.arrivals)
              there |= arrival.quad == quad && arrival.queue == queue;
            if (wanted && !there)
              fault.text += cat(" quad ", quad, " queue ", queue);
          }
      fault.text += ";";
    }
  return fault;
}

// --- tokens and mailboxes ----------------------------------------------------

void TokenQueue::put(TokenBatch batch) {
  available += batch.count;
  batches.push_back(std::move(batch));
}

bool TokenQueue::take(uint64_t count, uint64_t &time, VectorClock &clock) {
  if (available < count)
    return false;
  available -= count;
  while (count) {
    TokenBatch &batch = batches.front();
    uint64_t taken = std::min(count, batch.count);
    time = std::max(time, batch.time);
    if (batch.clock)
      clock.join(*batch.clock);
    count -= taken;
    batch.count -= taken;
    if (!batch.count)
      batches.pop_front();
  }
  return true;
}

void Card::poke(uint32_t quad) {
  Slot *slot = slots[quad].get();
  if (!slot)
    return;
  if (slot->state == State::Blocked || slot->state == State::Suspended)
    slot->state = State::Ready;
  else
    slot->poked = true;
  changed.notify_all();
}

void Card::post(uint32_t from, uint32_t to, uint32_t id, TokenBatch batch) {
  std::lock_guard lock(mutex);
  tokens[{from, to, id}].put(std::move(batch));
  poke(to);
}

bool Card::takeTokens(uint32_t from, uint32_t to, uint32_t id, uint64_t count, uint64_t &time, VectorClock &clock) {
  std::lock_guard lock(mutex);
  return tokens[{from, to, id}].take(count, time, clock);
}

bool Card::send(uint32_t from, uint32_t to, Message message, uint64_t &time) {
  std::lock_guard lock(mutex);
  Mailbox &box = mailboxes[{from, to}];
  if (!box.messages.empty())
    return false;
  time = std::max(time, box.emptySince);
  message.time = time + latency(from, to);
  box.messages.push_back(std::move(message));
  poke(to);
  return true;
}

std::optional<Message> Card::receive(uint32_t from, uint32_t to, uint64_t time) {
  std::lock_guard lock(mutex);
  Mailbox &box = mailboxes[{from, to}];
  if (box.messages.empty())
    return std::nullopt;
  Message message = std::move(box.messages.front());
  box.messages.pop_front();
  box.emptySince = std::max(time, message.time) + latency(to, from);
  poke(from);
  return message;
}

// --- barriers ----------------------------------------------------------------

bool Card::takesPart(const BarrierState &barrier, uint32_t quad) const {
  if (!slots[quad])
    return false;
  switch (static_cast<isa::Scope>(barrier.scope)) {
  case isa::Scope::Queues:
  case isa::Scope::Quad:
    return quad == barrier.domain;
  case isa::Scope::Chiplet:
    return quad / static_cast<uint32_t>(machine.quads) == barrier.domain;
  case isa::Scope::Card:
    return true;
  }
  return false;
}

std::shared_ptr<BarrierTicket> Card::arrive(uint32_t quad, uint32_t queue, uint32_t scope, uint32_t id, uint32_t queues,
                                            uint64_t time, const VectorClock &clock, std::string &mismatch) {
  std::lock_guard lock(mutex);
  uint32_t domain = scope <= 1 ? quad : scope == 2 ? quad / static_cast<uint32_t>(machine.quads) : 0;
  BarrierState &barrier = barriers[{scope, domain, id}];
  barrier.scope = scope;
  barrier.domain = domain;
  if (!barrier.arrivals.empty() && barrier.arrivals.front().queues != queues) {
    const Arrival &other = barrier.arrivals.front();
    mismatch =
        cat("quad ", other.quad, " queue ", other.queue, " came with queues ", other.queues, ", this one has ", queues);
    return nullptr;
  }
  auto ticket = std::make_shared<BarrierTicket>();
  barrier.arrivals.push_back({quad, queue, queues, ticket});
  barrier.time = std::max(barrier.time, time);
  barrier.clock.join(clock);
  size_t expected = 0;
  for (uint32_t i = 0; i < slots.size(); ++i)
    if (takesPart(barrier, i))
      expected += static_cast<size_t>(std::popcount(slots[i]->quad->launchedMask() & queues));
  if (barrier.arrivals.size() == expected) {
    for (Arrival &arrival : barrier.arrivals) {
      arrival.ticket->time = barrier.time + ceilLatency(machine.barrierClocks);
      arrival.ticket->clock = barrier.clock;
      arrival.ticket->open = true;
      poke(arrival.quad);
    }
    barriers.erase({scope, domain, id});
  }
  return ticket;
}

bool Card::isOpen(const BarrierTicket &ticket) {
  std::lock_guard lock(mutex);
  return ticket.open;
}

uint64_t Card::barrierBound(const BarrierTicket &ticket, uint32_t self, uint64_t time) {
  std::lock_guard lock(mutex);
  for (auto &[key, barrier] : barriers) {
    bool mine = false;
    for (const Arrival &arrival : barrier.arrivals)
      mine |= arrival.ticket.get() == &ticket;
    if (!mine)
      continue;
    // Any participant may be the last to come.
    uint64_t bound = barrier.time;
    uint64_t latest = 0;
    for (uint32_t quad = 0; quad < slots.size(); ++quad)
      if (takesPart(barrier, quad)) {
        uint32_t missing = slots[quad]->quad->launchedMask() & barrier.arrivals.front().queues;
        for (const Arrival &arrival : barrier.arrivals)
          if (arrival.quad == quad)
            missing &= ~(1u << arrival.queue);
        if (missing)
          latest = std::max(latest, quad == self ? time : slots[quad]->quad->lowerBound());
      }
    return std::max(bound, latest) + ceilLatency(machine.barrierClocks);
  }
  return 0;
}

// --- times -------------------------------------------------------------------

uint64_t Card::lowerBound(uint32_t quad) const { return slots[quad] ? slots[quad]->quad->lowerBound() : ~uint64_t(0); }

uint64_t Card::latency(uint32_t from, uint32_t to) const {
  auto perChiplet = static_cast<uint32_t>(machine.quads);
  return ceilLatency(from / perChiplet == to / perChiplet ? machine.noc.latency
                                                          : machine.noc.latency + machine.d2d.latency);
}

uint64_t Card::smallestLatency() const {
  return std::min(ceilLatency(machine.noc.latency), ceilLatency(machine.barrierClocks));
}

} // namespace dmxrt::corsair
