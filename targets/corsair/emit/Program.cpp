//===- Program.cpp - tasks for the queues of a quad -----------------------===//

#include "Program.h"

#include "llvm/ADT/STLExtras.h"

using namespace dmxc::corsair;

//===----------------------------------------------------------------------===//
// One queue of one task
//===----------------------------------------------------------------------===//

hw::Instruction &QueueCode::emit(hw::Opcode opcode) { return code.emplace_back(opcode); }

void QueueCode::address(std::string_view field, const Address &value) {
  if (value.buffer >= 0)
    accesses.push_back({value.buffer, field.front() == 'd'});
  fixups.push_back({code.size() - 1, std::string(field), value});
}

int QueueCode::config(hw::Unit unit, std::vector<hw::ConfigPair> keys) {
  llvm::erase_if(keys,
                 [](const hw::ConfigPair &pair) { return pair.second == hw::findConfigKey(pair.first)->byDefault; });
  llvm::sort(keys);
  std::list<ConfigSlot> &known = slots.of[{queue, unit}];
  auto hit = llvm::find_if(known, [&](const ConfigSlot &slot) { return slot.keys == keys; });
  if (hit == known.end()) {
    int number = static_cast<int>(known.size());
    if (number == hw::kConfigSlots) { // the least recently used one
      number = known.back().number;
      slots.overflow |= known.back().task == task;
      known.pop_back();
    }
    static constexpr hw::Opcode opcodes[] = {hw::Opcode::ConfigAC, hw::Opcode::ConfigSIMD, hw::Opcode::ConfigGM,
                                             hw::Opcode::ConfigST};
    hw::Instruction &instruction = configs.emplace_back(opcodes[static_cast<int>(unit)]);
    instruction.set("slot", number);
    for (const hw::ConfigPair &pair : keys)
      instruction.key(pair.first, pair.second);
    hit = known.insert(known.end(), {number, std::move(keys), task});
  }
  hit->task = task;
  known.splice(known.begin(), known, hit);
  return known.front().number;
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

void Program::task(std::string name) {
  tasks.push_back({std::move(name), {}});
  for (int queue = 0; queue < kQueues; ++queue)
    tasks.back().parts.emplace_back(slots, queue, currentTask());
}

QueueCode &Program::on(Queue queue) { return tasks.back().parts[static_cast<int>(queue)]; }

void Program::open(hw::Operand count, llvm::function_ref<void()> body) {
  for (QueueCode &part : tasks.back().parts)
    part.emit(hw::Opcode::Loop).operands[0] = count;
  ++depth;
  body();
  --depth;
  for (QueueCode &part : tasks.back().parts)
    if (part.code.back().opcode == hw::Opcode::Loop)
      part.code.pop_back();
    else
      part.emit(hw::Opcode::EndLoop);
}

void Program::loop(int64_t trips, llvm::function_ref<void(int depth)> body) {
  if (trips > 0)
    open({trips, {}}, [&] { body(depth - 1); });
}

void Program::when(int flagRegister, llvm::function_ref<void()> body) {
  open({0, {hw::registerTerm(flagRegister)}}, body);
}

void Program::meet(hw::Scope scope) {
  task("meeting");
  for (QueueCode &part : tasks.back().parts)
    part.emit(hw::Opcode::Barrier).set("scope", static_cast<int64_t>(scope)).set("id", meetings % 256);
  ++meetings;
  lastMeeting = currentTask();
}

void Program::noteUses() {
  for (size_t i = 0; i < tasks.size(); ++i)
    for (const QueueCode &part : tasks[i].parts)
      for (const QueueCode::Access &access : part.accesses)
        buffers.touch(access.buffer, static_cast<int>(i));
}

//===----------------------------------------------------------------------===//
// Order between tasks
//===----------------------------------------------------------------------===//

namespace dmxc::corsair {

/// Joins the tasks to streams, with a token wherever a queue must wait for another.
class Ordering {
public:
  Ordering(Program &program, hw::Image &image) : program(program), image(image) {
    for (auto &row : known)
      row.fill(-1);
    last.fill(-1);
    labels.fill(-1);
  }

  std::array<hw::Code, kQueues> run() {
    bool multiplies = llvm::any_of(program.tasks, [](const Program::Task &task) {
      const QueueCode &array = task.parts[static_cast<int>(Queue::Array)];
      return !array.empty() && array.code.front().opcode != hw::Opcode::Barrier;
    });
    for (int half = 0; multiplies && half < 2; ++half) { // of double buffers: both are free in the beginning
      signal(static_cast<int>(Queue::Array), kIbFree + half);
      signal(static_cast<int>(Queue::Array), kWbFree + half);
      signal(static_cast<int>(Queue::Store), kObFree + half);
    }
    for (size_t i = 0; i < program.tasks.size(); ++i)
      add(program.tasks[i], static_cast<int>(i));
    return std::move(streams);
  }

private:
  /// Bytes of a memory that a queue used in a task.
  struct Use {
    int64_t begin, end;
    int queue, task;
    bool writes;
  };

  void add(Program::Task &task, int number) {
    // All waits come before all code of the task: its queues may wait for one another inside.
    bool meets = llvm::all_of(task.parts, [](const QueueCode &part) {
      return !part.empty() && part.code.front().opcode == hw::Opcode::Barrier;
    });
    if (!meets)
      for (int queue = 0; queue < kQueues; ++queue)
        if (!task.parts[queue].empty())
          order(task.parts[queue], queue);
    int label = static_cast<int>(image.addMark(task.name));
    for (int queue = 0; queue < kQueues; ++queue)
      if (!task.parts[queue].empty())
        append(task.parts[queue], queue, number, meets ? -1 : label);
    if (meets)
      for (auto &row : known)
        row.fill(number);
  }

  void order(const QueueCode &part, int queue) {
    std::array<bool, kQueues> waits{};
    for (const QueueCode::Access &access : part.accesses) {
      const Buffer &buffer = program.buffers[access.buffer];
      for (const Use &use : uses[static_cast<int>(buffer.memory)])
        if (use.queue != queue && (use.writes || access.writes) && known[queue][use.queue] < use.task &&
            use.begin < buffer.address + buffer.size && buffer.address < use.end)
          waits[use.queue] = true;
    }
    for (int other = 0; other < kQueues; ++other) {
      if (!waits[other])
        continue;
      int token = kFirstPairToken + other * kQueues + queue;
      signal(other, token);
      streams[queue].instructions.emplace_back(hw::Opcode::Wait).set("id", token);
      known[queue][other] = last[other];
      for (int third = 0; third < kQueues; ++third)
        known[queue][third] = std::max(known[queue][third], known[other][third]);
    }
  }

  void signal(int queue, int token) { streams[queue].instructions.emplace_back(hw::Opcode::Signal).set("id", token); }

  void append(QueueCode &part, int queue, int number, int label) {
    for (const QueueCode::Fixup &fixup : part.fixups) {
      int64_t base = fixup.value.buffer >= 0 ? program.buffers[fixup.value.buffer].address : 0;
      part.code[fixup.instruction].set(fixup.field, base + fixup.value.offset,
                                       {fixup.value.terms.begin(), fixup.value.terms.end()});
    }
    std::vector<hw::Instruction> &stream = streams[queue].instructions;
    if (label >= 0 && labels[queue] != label)
      stream.emplace_back(hw::Opcode::Mark).set("label", label);
    labels[queue] = label >= 0 ? label : labels[queue];
    llvm::append_range(stream, part.configs);
    llvm::append_range(stream, part.code);
    last[queue] = number;
    for (const QueueCode::Access &access : part.accesses) {
      const Buffer &buffer = program.buffers[access.buffer];
      uses[static_cast<int>(buffer.memory)].push_back(
          {buffer.address, buffer.address + buffer.size, queue, number, access.writes});
    }
  }

  Program &program;
  hw::Image &image;
  std::array<hw::Code, kQueues> streams;
  std::array<std::vector<Use>, hw::kMemories> uses;
  std::array<int, kQueues> last, labels; ///< the last task of each queue, and the last MARK
  /// known[q][p]: what queue q does next comes after all tasks of queue p up to this one.
  std::array<std::array<int, kQueues>, kQueues> known;
};

} // namespace dmxc::corsair

std::array<uint32_t, kQueues> Program::finish(hw::Image &image, const std::string &name) {
  static constexpr const char *names[] = {"_load", "_array", "_store", "_vector"};
  std::array<hw::Code, kQueues> streams = Ordering(*this, image).run();
  std::array<uint32_t, kQueues> numbers;
  for (int queue = 0; queue < kQueues; ++queue) {
    numbers[queue] = hw::kNoStream;
    if (streams[queue].instructions.empty())
      continue;
    streams[queue].name = name + names[queue];
    streams[queue].instructions.emplace_back(hw::Opcode::Halt);
    numbers[queue] = image.addStream(std::move(streams[queue]));
  }
  return numbers;
}
