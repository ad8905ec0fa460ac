//===- Program.h - tasks for the queues of a quad ---------------*- C++ -*-===//
//
// A program is a list of tasks, an op each or a part of one. A task has code for one or more queues; the
// queues run at their own pace. Between queues of one task the task's own tokens give the order; between tasks the
// program finds out from the addresses who must wait for whom, and adds a token where nothing else orders the two.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Buffers.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <list>
#include <map>

namespace dmxc::corsair {

/// The key that stands `by` places after another one of its kind: N0, N1, ...
inline hw::ConfigKey keyAfter(hw::ConfigKey key, size_t by) {
  return static_cast<hw::ConfigKey>(static_cast<size_t>(key) + by);
}

/// What a quad's queues are for.
enum class Queue : uint8_t {
  Load,   ///< DDR and GM to the units
  Array,  ///< MATMUL, CONV
  Store,  ///< OB to GM, GM to DDR and to other quads
  Vector, ///< EXEC_SIMD, EXTRACT, TRANSPOSE
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
  kFirstPairToken = 16
};

/// A configured slot and the last task that used it.
struct ConfigSlot {
  int number;
  std::vector<hw::ConfigPair> keys;
  int task;
};
/// Slots of each queue and unit, the most recently used first.
struct ConfigSlots {
  std::map<std::pair<int, hw::Unit>, std::list<ConfigSlot>> of;
  bool overflow = false; ///< a task used more than there are
};

/// Code of one queue for one task.
class QueueCode {
public:
  QueueCode(ConfigSlots &slots, int queue, int task) : slots(slots), queue(queue), task(task) {}

  /// Appends an instruction; the reference holds until the next one.
  hw::Instruction &emit(hw::Opcode opcode);
  /// Sets an address field of the last instruction; fields whose names start with d are written.
  void address(std::string_view field, const Address &value);
  /// The slot that holds these keys. One that none holds is configured before the task's code: a loop or a branch may
  /// not run.
  int config(hw::Unit unit, std::vector<hw::ConfigPair> keys);
  /// Notes a use of a buffer that no address field names.
  void uses(int buffer, bool writes) { accesses.push_back({buffer, writes}); }
  void signal(int token) { emit(hw::Opcode::Signal).set("id", token); }
  void wait(int token) { emit(hw::Opcode::Wait).set("id", token); }
  bool empty() const { return code.empty(); }

private:
  friend class Program;
  friend class Ordering;
  struct Fixup {
    size_t instruction;
    std::string field;
    Address value;
  };
  struct Access {
    int buffer;
    bool writes;
  };
  ConfigSlots &slots;
  int queue, task;
  std::vector<hw::Instruction> configs, code;
  std::vector<Fixup> fixups;
  std::vector<Access> accesses;
};

class Program {
public:
  explicit Program(Buffers &buffers) : buffers(buffers) {}

  /// Starts a task; reports call it by this name.
  void task(std::string name);
  QueueCode &on(Queue queue);
  /// A loop in all queues for which `body` writes code; it gets the depth, for Address::plusLoop. No trips: nothing.
  void loop(int64_t trips, llvm::function_ref<void(int depth)> body);
  /// Code that runs only in quads whose register is not 0 (it is 0 or 1).
  void when(int flagRegister, llvm::function_ref<void()> body);
  /// All queues of all quads meet.
  void meet(hw::Scope scope);
  /// A buffer that other quads write: from the last meeting on nothing else may lie there.
  void reserve(int buffer) { buffers.touch(buffer, lastMeeting); }

  /// Tells the buffers in which tasks they are used.
  void noteUses();
  /// False if a task has more configurations than a queue has slots.
  bool isSound() const { return !slots.overflow; }
  /// After the buffers are placed: one stream a queue, hw::kNoStream for those without code.
  std::array<uint32_t, kQueues> finish(hw::Image &image, const std::string &name);

private:
  struct Task {
    std::string name;
    std::vector<QueueCode> parts; ///< one a queue
  };
  int currentTask() const { return static_cast<int>(tasks.size()) - 1; }
  void open(hw::Operand count, llvm::function_ref<void()> body);
  friend class Ordering;

  Buffers &buffers;
  ConfigSlots slots;
  std::vector<Task> tasks;
  int depth = 0, lastMeeting = 0, meetings = 0;
};

} // namespace dmxc::corsair
