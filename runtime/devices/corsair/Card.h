//===- Card.h - quads that run a program together ---------------*- C++ -*-===//
//
// Quads are simulated by several host threads. They interact only through tokens,
// mailboxes and barriers that name both ends, and through memory that these
// order, so what they compute does not depend on the host's schedule. Their
// times do not either: a quad with a queue that waits for another quad goes on
// with its other queues only up to the earliest time at which it could be woken
// (conservative discrete-event simulation).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Program.h"
#include "Storage.h"
#include "Timeline.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <pthread.h>

namespace dmxrt::corsair {

class Quad;
struct ProductScratch;

struct RunOptions {
  uint32_t threads = 1;
  bool hazards = true;
  bool trace = false;
  uint64_t skewSeed = 0; ///< not 0: quads start up to 20,000 clocks late
};

/// What a program needs to run.
struct ProgramRun {
  const isa::Image *image = nullptr;
  const std::vector<Stream> *streams = nullptr;
  const isa::Program *program = nullptr;
  /// Values that replace launches' registers (scalars and dims).
  std::vector<std::pair<uint32_t, int64_t>> registers;
};

struct QuadResult {
  uint32_t quad = 0;
  Usage usage;
  std::vector<TraceEvent> trace;
};

struct RunResult {
  std::optional<Fault> fault;
  uint64_t clocks = 0;
  int chiplets = 0; ///< in use
  std::vector<QuadResult> quads;
  std::map<uint32_t, Usage> marks; ///< by number; kNoMark: before any MARK
};
constexpr uint32_t kNoMark = ~0u;

/// Tokens that became available at one time, with what happened before them.
struct TokenBatch {
  uint64_t time = 0;
  uint64_t count = 0;
  std::shared_ptr<const VectorClock> clock;
};

/// Tokens in order of arrival.
struct TokenQueue {
  std::deque<TokenBatch> batches;
  uint64_t available = 0;
  void put(TokenBatch batch);
  /// Takes `count` if there are so many: raises `time` to the last one's and joins clocks.
  bool take(uint64_t count, uint64_t &time, VectorClock &clock);
};

/// A registers' message.
struct Message {
  uint64_t time = 0;
  std::vector<int64_t> values;
  std::shared_ptr<const VectorClock> clock;
};

/// Where an arrived participant learns that a barrier has opened.
struct BarrierTicket {
  bool open = false;
  uint64_t time = 0;
  VectorClock clock{};
};

/// A queue's wait for something outside of its quad.
struct RemoteWait {
  enum class Kind : uint8_t { None, Tokens, Barrier, Message, Room } kind = Kind::None;
  uint32_t quad = 0, id = 0;
  uint64_t count = 0;
  std::shared_ptr<BarrierTicket> ticket;
  uint32_t scope = 0;
};

class Card {
public:
  Card(const isa::Machine &machine, Storage &storage);
  ~Card();
  RunResult run(const ProgramRun &what, const RunOptions &options);

  const isa::Machine &machine;
  Storage &storage;

  // For quads; thread-safe.
  void post(uint32_t from, uint32_t to, uint32_t id, TokenBatch batch);
  bool takeTokens(uint32_t from, uint32_t to, uint32_t id, uint64_t count, uint64_t &time, VectorClock &clock);
  /// False while the mailbox is full; else the message is in it and `time` is when room was.
  bool send(uint32_t from, uint32_t to, Message message, uint64_t &time);
  std::optional<Message> receive(uint32_t from, uint32_t to, uint64_t time);
  /// Arrives at a barrier; on a mismatch returns null and fills `mismatch`.
  std::shared_ptr<BarrierTicket> arrive(uint32_t quad, uint32_t queue, uint32_t scope, uint32_t id, uint32_t queues,
                                        uint64_t time, const VectorClock &clock, std::string &mismatch);
  bool isOpen(const BarrierTicket &ticket);
  /// No event of these quads that is still to come is earlier.
  uint64_t lowerBound(uint32_t quad) const;
  /// The same for the opening of a barrier at which `quad` waits, whose own next
  /// event is at `time`.
  uint64_t barrierBound(const BarrierTicket &ticket, uint32_t quad, uint64_t time);
  /// Clocks from quad to quad, of signals and messages.
  uint64_t latency(uint32_t from, uint32_t to) const;
  bool isLaunched(uint32_t quad) const { return slots[quad] != nullptr; }

private:
  enum class State : uint8_t { Ready, Running, Blocked, Suspended, Finished };
  struct Slot {
    std::unique_ptr<Quad> quad;
    State state = State::Ready;
    bool poked = false;
  };
  /// A host thread that runs quads; the first is the caller's.
  struct Worker {
    explicit Worker(Card &card);
    ~Worker();
    Card &card;
    std::unique_ptr<ProductScratch> scratch;
    pthread_t thread{};
    void work();
  };
  struct Mailbox {
    std::deque<Message> messages; ///< at most one
    uint64_t emptySince = 0;
  };
  struct Arrival {
    uint32_t quad, queue, queues;
    std::shared_ptr<BarrierTicket> ticket;
  };
  struct BarrierState {
    std::vector<Arrival> arrivals;
    uint64_t time = 0;
    VectorClock clock{};
    uint32_t scope = 0, domain = 0;
  };

  std::vector<std::unique_ptr<Worker>> workers; ///< grows to as many as a run has needed
  std::mutex mutex;
  std::condition_variable changed;
  std::array<std::unique_ptr<Slot>, 32> slots;
  uint32_t running = 0;
  bool finished = false;
  std::exception_ptr failure;                               ///< of a quad's thread, or of another's
  uint64_t grant = 0;                                       ///< suspended quads may go on up to here
  std::map<std::array<uint32_t, 3>, TokenQueue> tokens;     // sender, receiver, id
  std::map<std::array<uint32_t, 2>, Mailbox> mailboxes;     // sender, receiver
  std::map<std::array<uint32_t, 3>, BarrierState> barriers; // scope, domain, id
  VectorClock clocks{kThreads};                             ///< where each thread's clock stands

  void prepare(const ProgramRun &what, const RunOptions &options);
  static void *workMain(void *worker);
  Slot *takeReady();
  bool advance();
  void settle(Slot &slot, int outcome, bool progress);
  void poke(uint32_t quad);
  uint64_t smallestLatency() const;
  bool takesPart(const BarrierState &barrier, uint32_t quad) const;
  RunResult collect();
  Fault deadlock() const;
};

} // namespace dmxrt::corsair
