//===- OrderChecker.h - a program's queues and memories, followed -*- C++ -*-===//
#pragma once

#include "ByteHistory.h"
#include "dmxc/Dialect/DLIR/QueueCode.h"

#include "llvm/ADT/StringSet.h"

#include <deque>

namespace dmxc::dlir {

/// How many loops are around an op.
unsigned depthOf(mlir::Operation *op);

/// A queue that does a task.
struct Actor {
  uint32_t queue = 0, unit = 0;
  const Clock &clock;                 ///< what has happened before
  llvm::ArrayRef<uint32_t> waitedFor; ///< whose tokens it took last
  const Clock &received;              ///< up to when queues have given it tokens themselves, inside of its groups
};

/// All memories of a program in all units: O2 to O6.
class MemoryOrder {
public:
  MemoryOrder(DeviceProgramOp program, ProgramBytes &bytes);

  /// What the host writes before all graphs.
  mlir::LogicalResult bring();
  /// A graph begins: what was before has happened.
  void begin(llvm::ArrayRef<TokenOp> tokens);
  mlir::LogicalResult task(mlir::Operation *op, const Actor &actor, llvm::ArrayRef<int64_t> trips);
  /// A token was waited for: if it has credits, its slot is free.
  mlir::LogicalResult freed(unsigned token, uint32_t unit, mlir::Operation *by);
  /// All queues of all units have met.
  void settle();
  mlir::LogicalResult verifyResults();

  ProgramBytes &bytes;

private:
  struct Buffer {
    mlir::Operation *op = nullptr;
    std::string name, kind;
    int64_t address = 0, size = 0;
    unsigned kindNumber = 0;
    bool isSlot = false;
  };
  /// A buffer in one unit of its memory.
  struct Cell {
    explicit Cell(int64_t size) : history(size) {}
    ByteHistory history;
    bool isLive = false;                  ///< its bytes are there
    bool isSettled = true;                ///< not touched since all have met
    llvm::SmallVector<Moment, 4> touches; ///< the last one of each queue
  };
  /// Runs of buffers in units of their memories.
  using Slot = std::map<std::pair<int32_t, int64_t>, std::pair<int64_t, int64_t>>;
  /// Who touches what, for the checks and their messages.
  struct Touch {
    int32_t buffer;
    int64_t unit;
    bool writes, all;
    const Actor &actor;
    Moment moment;
  };

  mlir::FailureOr<llvm::SmallVector<ByteRuns, 2>> runsOf(PieceOp piece);
  Cell &cellOf(int32_t buffer, int64_t unit);
  mlir::LogicalResult touch(const Touch &touch, llvm::ArrayRef<ByteRuns> runs);
  mlir::LogicalResult read(const Touch &touch, Cell &cell, const ByteRuns &runs);
  mlir::LogicalResult readSome(const Touch &touch, Cell &cell, llvm::ArrayRef<ByteRuns> runs);
  mlir::LogicalResult write(const Touch &touch, Cell &cell, const ByteRuns &runs);
  mlir::LogicalResult takeRoom(const Touch &touch, Cell &cell);
  /// A buffer that lies where another would, if one does.
  std::optional<int32_t> inTheWay(int32_t buffer, int64_t unit);
  static bool isBefore(const Moment &moment, const Touch &touch) {
    return moment.queue == touch.moment.queue || touch.actor.clock[moment.queue] >= moment.time;
  }
  std::string nameOf(const Touch &touch, int64_t at) const;
  mlir::LogicalResult race(const Touch &touch, const Moment &other, bool writes, int64_t at) const;
  mlir::LogicalResult missing(const Touch &touch, const Stretch &found, int64_t at);
  mlir::LogicalResult notHandedOver(const Touch &touch, const Stretch &found, int64_t at) const;
  std::vector<Slot> takersOf(unsigned token, uint32_t unit, std::vector<unsigned> *passed);
  const Slot &slotOf(unsigned token, uint32_t unit);
  Slot writesAfter(mlir::Operation *wait, uint32_t unit);

  DeviceProgramOp program;
  std::vector<Buffer> buffers;
  llvm::DenseMap<mlir::Value, int32_t> numbers;
  llvm::StringSet<> results;                             ///< names of arguments
  std::vector<std::vector<std::unique_ptr<Cell>>> cells; ///< by buffer and unit
  /// By number of the kind and unit: the buffers whose bytes are there, by address.
  std::map<std::pair<unsigned, int64_t>, std::map<int64_t, int32_t>> live;
  std::vector<std::pair<Cell *, bool>> unsettled; ///< and whether they are of slots
  std::vector<bool> wasRead;                      ///< by number of write
  std::vector<TokenOp> tokens;
  std::map<std::pair<unsigned, uint32_t>, Slot> slots;
};

/// The queues of all units of a program, one graph after the other: O1.
class ProgramOrder {
public:
  ProgramOrder(DeviceProgramOp program, ProgramBytes &bytes);
  mlir::LogicalResult run();

private:
  struct Queue {
    uint32_t unit = 0;
    uint64_t index = 0;   ///< of the engine's queues
    std::string unitName; ///< "quad 3"
    const std::vector<QueueLine> *lines = nullptr;
    size_t position = 0, taken = 0; ///< taken: tokens of the line that it stands at
    llvm::SmallVector<int64_t> trips, times;
    Clock clock, received;
    llvm::SmallVector<uint32_t, 4> waitedFor; ///< whose tokens it took last, in its group or before
    const QueueLine *lastWait = nullptr;      ///< with which it took them, if nothing was done since
    bool arrived = false;                     ///< at the barrier it stands at
    bool isDone() const { return position >= lines->size(); }
  };
  /// What was signalled of a token and not taken, the oldest first.
  struct Signal {
    Clock clock;
    int64_t count;
    uint32_t queue;
  };
  using Given = std::deque<Signal>;

  mlir::LogicalResult run(ScheduledGraphOp graph);
  bool makeQueues();
  mlir::FailureOr<bool> run(Queue &queue);
  mlir::FailureOr<bool> step(Queue &queue, const QueueLine &line);
  void enterLoop(Queue &queue, const QueueLine &line);
  bool wait(Queue &queue, const QueueLine &line);
  void signal(Queue &queue, const QueueLine &line);
  mlir::FailureOr<bool> meet(Queue &queue, TaskBarrierOp barrier);
  int64_t valueOf(const LinearValue &value, const Queue &queue);
  std::string groupsOf(unsigned token);
  mlir::LogicalResult reportWaiting();
  mlir::LogicalResult verifyEnd();

  DeviceProgramOp program;
  MemoryOrder memory;
  ScheduledGraphOp graph;
  llvm::DenseMap<mlir::Value, unsigned> numbers;
  std::vector<TokenOp> tokens;
  std::vector<RegisterOp> registers;
  std::vector<std::vector<QueueLine>> lines;
  std::vector<Queue> queues;
  std::vector<Given> given; ///< by unit and token
  std::map<std::tuple<std::string, int64_t, uint64_t>, std::vector<Queue *>> meetings;
};

} // namespace dmxc::dlir
