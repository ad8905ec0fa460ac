//===- QueueMachine.h - runs programs of queues -----------------*- C++ -*-===//
#pragma once

#include "CheckedMemory.h"
#include "Counter.h"

#include "schemas/queues/Program.h"

#include <deque>
#include <optional>

namespace dmxrt::sim {

namespace queues = dmx::queues;

/// What a task of an engine works on.
class EngineTask {
public:
  virtual ~EngineTask() = default;
  /// So many bytes from one of its places on, to read or to write; null when the access is wrong.
  virtual std::byte *bytes(size_t place, int64_t count, bool write) = 0;
  /// Its last place, which is a number.
  virtual int64_t number() = 0;
};

/// What a task of an engine cost.
struct EngineWork {
  uint64_t clocks = 0, macs = 0;
};

/// The engines of a machine; nullopt when an access was wrong.
class Engines {
public:
  virtual ~Engines() = default;
  virtual std::optional<EngineWork> run(size_t task, EngineTask &on) const = 0;
};

/// What a run cost.
struct QueueCost {
  uint64_t queues = 0, clocks = 0, macs = 0, steps = 0;
  uint64_t copying = 0, computing = 0;           ///< clocks of the busiest queue
  std::vector<uint64_t> readBytes, writtenBytes; ///< by memory
};

/// One run of a kernel. Queues go on as far as tokens and channels let them; what they do unordered, or with bytes that
/// nobody wrote, is a fault. Copies take the clocks of the slower port, nothing else is modelled.
class QueueMachine {
public:
  QueueMachine(const queues::Machine &machine, const Engines &engines, const queues::Program &kernel);
  /// From the host's tensor to an argument, whose other bytes become zeros; and back.
  void write(const queues::Line &argument, const std::byte *tensor);
  void read(const queues::Line &argument, std::byte *tensor);
  void run();
  QueueCost cost() const;
  /// An interval of a queue, for a trace.
  struct Interval {
    uint64_t start, end;
    uint16_t queue;
    const queues::Line *line;
    const char *group;
  };

  std::string fault;       ///< the first one; nothing goes on after it
  bool keepsTrace = false; ///< set before the run: whether it keeps its intervals
  std::vector<Interval> intervals;

private:
  struct Queue {
    uint16_t number;
    size_t at;
    std::vector<std::pair<size_t, int64_t>> loops = {}; ///< first line, count
    Moment now = {};
    const char *group = "";
    uint64_t copying = 0, computing = 0; ///< clocks
  };
  struct Channel {
    Counter room, filled;
    std::deque<std::vector<std::byte>> packets = {};
  };
  class Task;

  bool ended(const Queue &queue) const;
  std::string nameOf(const Queue &queue) const;
  /// False when the queue has to wait, or something is wrong.
  bool step(Queue &queue);
  bool control(Queue &queue, const queues::Line &line);
  bool transfer(Queue &queue, const queues::Line &line);
  void next(Queue &queue);
  void give(Counter &counter, int64_t count, Queue &queue);
  void spend(Queue &queue, const queues::Line &line, uint64_t clocks, bool computing);
  static int64_t valueOf(const Queue &queue, const queues::Place &place);
  std::byte *access(const Queue &queue, int64_t memory, int64_t address, int64_t bytes, bool write);
  /// The items of a walk's side, between a memory and `packet`.
  bool gather(const Queue &queue, int64_t memory, int64_t from, const queues::Walk &walk);
  bool scatter(const Queue &queue, int64_t memory, int64_t to, const queues::Walk &walk);

  const queues::Machine &machine;
  const Engines &engines;
  const queues::Program &kernel;
  std::vector<const queues::Line *> buffers;
  std::vector<Queue> all;
  std::vector<CheckedMemory> memories;
  std::vector<Counter> tokens;
  std::vector<Channel> channels;
  std::vector<std::byte> packet; ///< on its way
  uint64_t macs = 0, steps = 0;
};

} // namespace dmxrt::sim
