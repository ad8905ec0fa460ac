//===- Program.h - tasks for the queues of a quad ---------------*- C++ -*-===//
//
// A program is a dlir.scheduled_graph: a list of tasks, an op of the model each or a part of one. A task has a group in
// one or more queues; the queues run at their own pace. Between queues of one task the task's own tokens give the
// order; between tasks the program finds out from the addresses who must wait for whom, and adds a token where nothing
// else orders the two.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Buffers.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>

namespace dmxc::corsair {

/// What a quad's queues are for.
enum class Queue : uint8_t {
  Load,   ///< DDR and GM to the units
  Array,  ///< products and convolutions
  Store,  ///< OB to GM, GM to DDR and to other quads
  Vector, ///< the vector device and the reshape engine
};
inline constexpr int kQueues = 4;

/// Tokens with fixed meanings inside of products; a pair each, for the halves of a double buffer.
enum Token : int {
  kIbFull = 0,
  kIbFree = 2,
  kObFull = 4,
  kObFree = 6,
  kWbFull = 8,
  kWbFree = 10,
  kObReady = 12,    ///< free, with the bias in it
  kScoresFull = 14, ///< strips of bands (Bands.cpp)
  kScoresFree = 16,
  kWeightsFull = 18,
  kWeightsFree = 20,
  kTilesFull = 22, ///< of an epilogue (Drain.cpp)
  kTilesFree = 24,
  kWindowsFull = 26, ///< whole windows of a convolution; one each
  kWindowsFree = 28,
  kRowsFull = 30, ///< rows of a result that leave while others are computed
  kRowsCome = 31, ///< rows of an argument
  kFirstPairToken = 32,
  kFirstUserToken = 64 ///< of kernels that users wrote, and all from here on
};

/// Registers that a launch sets, each with a value a quad.
using QuadRegisters = std::vector<llvm::SmallVector<int64_t>>;

class Program;

/// Writes one queue's group of the current task.
class QueueWriter {
public:
  /// Begins a task with this op; `create` ends it.
  TaskWriter task(llvm::StringRef op) const;
  /// The next buffer of a task, which it reads or writes.
  void reads(TaskWriter &task, const Address &place) const { buffer(task, place, false); }
  void writes(TaskWriter &task, const Address &place) const { buffer(task, place, true); }
  /// A clause with a number of run time.
  void sum(TaskWriter &task, llvm::StringRef clause, const Address &value) const;
  void sums(TaskWriter &task, llvm::StringRef clause, llvm::ArrayRef<Address> values) const;
  /// A copy, but for clauses of its own.
  TaskWriter copy(const Address &from, const Address &to, const DmaSpec &spec) const;
  mlir::Value descriptor(const DmaSpec &spec) const;
  mlir::Builder &builder() const;
  /// Notes a use of a buffer by a unit that moves data by itself.
  void uses(int buffer, bool writes) const;
  void signal(int token, int64_t count = 1) const;
  void wait(int token, int64_t count = 1) const;

private:
  friend class Program;
  QueueWriter(Program &program, int queue, size_t task) : program(program), queue(queue), number(task) {}
  void buffer(TaskWriter &task, const Address &place, bool writes) const;

  Program &program;
  int queue;
  size_t number; ///< of the task
};

class Program {
public:
  /// Adds the graph to what `writer` writes.
  Program(DlirWriter &writer, Buffers &buffers, llvm::StringRef name, int64_t quads, const QuadRegisters &registers);

  /// Starts a task; reports call it by this name.
  void task(llvm::StringRef name);
  /// What a queue does for the task is reported under another name.
  void name(Queue queue, llvm::StringRef other);
  QueueWriter on(Queue queue) { return {*this, static_cast<int>(queue), tasks.size() - 1}; }
  /// Starts a task, and one before it for what waits for none of its operands.
  void taskWithAhead(llvm::StringRef name);
  /// The queue in the task before, at its first call if no loop is open; else as on().
  QueueWriter ahead(Queue queue);
  /// A loop in all queues for which `body` writes code; it gets the depth, for Address::plusLoop. No trips: nothing.
  void loop(int64_t trips, llvm::function_ref<void(int depth)> body);
  /// A loop whose trips are a number of run time, of no buffer.
  void repeat(const Address &trips, llvm::function_ref<void(int depth)> body);
  /// Code that runs only in quads whose register is not 0 (it is 0 or 1).
  void when(int flagRegister, llvm::function_ref<void()> body);
  /// All queues of all quads meet.
  void meet(llvm::StringRef scope);
  /// The load queues of all quads meet.
  void meetLoading(llvm::StringRef scope);
  /// A buffer that other quads write: from the last meeting on nothing else may lie there.
  void reserve(int buffer) { buffers.touch(buffer, lastMeeting); }

  /// Of a token that nothing has used: so many are there at first.
  void give(int number, int64_t credits) { token(number, credits); }

  /// Tells the buffers in which tasks they are used.
  void noteUses();
  /// How many tokens it has so far.
  size_t tokenCount() const { return tokens.size(); }
  /// Names of the tasks that use a buffer.
  std::vector<std::string> usersOf(int buffer) const;
  /// After the buffers are placed: adds the tokens between tasks, and drops what is empty.
  void finish();

private:
  friend class QueueWriter;
  friend class Ordering;
  struct Access {
    int buffer;
    bool writes;
  };
  /// What one queue does for a task.
  struct Part {
    dlir::TaskGroupOp group;
    std::vector<Access> accesses;
    bool empty() { return group.getBody().front().empty(); }
  };
  struct Task {
    std::string name;
    std::array<Part, kQueues> parts;
    bool meets = false;
  };

  int currentTask() const { return static_cast<int>(tasks.size()) - 1; }
  void open(const Address &count, llvm::function_ref<void()> body);
  /// Where the queue's next op goes.
  mlir::Block &place(int queue, size_t task);
  mlir::Block &place(int queue) { return place(queue, tasks.size() - 1); }
  Sum sumOf(const Address &value, int queue);
  mlir::Value token(int number, int64_t credits = -1);
  mlir::Value registerValue(int number);

  DlirWriter &writer;
  Buffers &buffers;
  const QuadRegisters &registers;
  dlir::ScheduledGraphOp graph;
  std::array<dlir::DispatchQueueOp, kQueues> queues;
  std::array<llvm::SmallVector<dlir::LoopOp>, kQueues> loops; ///< that are open; null: one of a single trip
  std::map<int, mlir::Value> tokens, registerValues;
  std::vector<Task> tasks;
  int lastMeeting = 0, meetings = 0;
  bool hasAhead = false;
};

} // namespace dmxc::corsair
