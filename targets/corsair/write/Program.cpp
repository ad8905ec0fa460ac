//===- Program.cpp - tasks for the queues of a quad -----------------------===//

#include "Program.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

//===----------------------------------------------------------------------===//
// One queue of one task
//===----------------------------------------------------------------------===//

TaskWriter QueueWriter::task(StringRef op) const {
  program.writer.builder.setInsertionPointToEnd(&program.place(queue, number));
  return program.writer.task(op);
}

void QueueWriter::buffer(TaskWriter &task, const Address &place, bool writes) const {
  task.buffer(program.buffers[place.buffer].value, program.sumOf(place, queue));
  if (!program.buffers[place.buffer].isUnit())
    uses(place.buffer, writes);
}

void QueueWriter::sum(TaskWriter &task, StringRef clause, const Address &value) const {
  task.sum(clause, program.sumOf(value, queue));
}

TaskWriter QueueWriter::copy(const Address &from, const Address &to, const DmaSpec &spec) const {
  program.writer.builder.setInsertionPointToEnd(&program.place(queue, number));
  TaskWriter copy = program.writer.copy(program.buffers[from.buffer].memory, program.buffers[to.buffer].memory);
  copy.with(descriptor(spec));
  reads(copy, from);
  writes(copy, to);
  return copy;
}

Value QueueWriter::descriptor(const DmaSpec &spec) const { return program.writer.descriptor(spec); }
Builder &QueueWriter::builder() const { return program.writer.builder; }

void QueueWriter::uses(int buffer, bool writes) const {
  program.tasks[number].parts[queue].accesses.push_back({buffer, writes});
}

void QueueWriter::sums(TaskWriter &task, StringRef clause, ArrayRef<Address> values) const {
  task.sum(clause, llvm::map_to_vector(values, [&](const Address &value) { return program.sumOf(value, queue); }));
}

void QueueWriter::signal(int token, int64_t count) const {
  OpBuilder at = OpBuilder::atBlockEnd(&program.place(queue, number));
  program.writer.tokens(at, {}, program.token(token), count);
}

void QueueWriter::wait(int token, int64_t count) const {
  OpBuilder at = OpBuilder::atBlockEnd(&program.place(queue, number));
  program.writer.tokens(at, program.token(token), {}, count);
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

Program::Program(DlirWriter &writer, Buffers &buffers, StringRef name, int64_t quads, const QuadRegisters &registers)
    : writer(writer), buffers(buffers), registers(registers), graph(writer.graph(name, quads)) {
  for (int queue = 0; queue < kQueues; ++queue)
    writer.queue(
        queue, [&] { queues[queue] = cast<dlir::DispatchQueueOp>(writer.builder.getInsertionBlock()->getParentOp()); });
}

void Program::task(StringRef name) {
  hasAhead = false;
  Task &task = tasks.emplace_back();
  task.name = name.str();
  for (int queue = 0; queue < kQueues; ++queue) {
    writer.builder.setInsertionPointToEnd(&queues[queue].getBody().front());
    writer.group(name, {}, {}, [&] {
      task.parts[queue].group = cast<dlir::TaskGroupOp>(writer.builder.getInsertionBlock()->getParentOp());
    });
  }
}

void Program::name(Queue queue, StringRef other) { tasks.back().parts[static_cast<int>(queue)].group.setName(other); }

void Program::taskWithAhead(StringRef name) {
  task(name);
  task(name);
  hasAhead = true;
}

QueueWriter Program::ahead(Queue queue) {
  QueueWriter writer = on(queue);
  if (hasAhead && llvm::none_of(loops[writer.queue], [](dlir::LoopOp loop) { return loop; }))
    --writer.number;
  hasAhead = false;
  return writer;
}

Block &Program::place(int queue, size_t task) {
  for (dlir::LoopOp loop : llvm::reverse(loops[queue]))
    if (loop)
      return loop.getBody().front();
  return tasks[task].parts[queue].group.getBody().front();
}

void Program::open(const Address &count, llvm::function_ref<void()> body) {
  for (int queue = 0; queue < kQueues; ++queue) {
    writer.builder.setInsertionPointToEnd(&place(queue));
    loops[queue].push_back(writer.openLoop(sumOf(count, queue)));
  }
  body();
  for (auto &open : loops)
    if (dlir::LoopOp loop = open.pop_back_val(); loop.getBody().front().empty())
      loop.erase();
}

void Program::loop(int64_t trips, llvm::function_ref<void(int depth)> body) {
  const int depth = static_cast<int>(loops[0].size());
  if (trips > 1)
    return open({-1, trips, {}}, [&] { body(depth); });
  if (trips < 1)
    return;
  for (auto &open : loops)
    open.push_back(nullptr);
  body(depth);
  for (auto &open : loops)
    open.pop_back();
}

void Program::repeat(const Address &trips, llvm::function_ref<void(int depth)> body) {
  const int depth = static_cast<int>(loops[0].size());
  open(trips, [&] { body(depth); });
}

void Program::when(int flagRegister, llvm::function_ref<void()> body) {
  open({-1, 0, {hw::registerTerm(flagRegister)}}, body);
}

void Program::meet(llvm::StringRef scope) {
  task("meeting");
  tasks.back().meets = true;
  for (Part &part : tasks.back().parts) {
    writer.builder.setInsertionPointToEnd(&part.group.getBody().front());
    writer.barrier(scope, meetings % 256, {0, 1, 2, 3});
  }
  ++meetings;
  lastMeeting = currentTask();
}

void Program::meetLoading(llvm::StringRef scope) {
  constexpr int load = static_cast<int>(Queue::Load);
  task("meeting");
  writer.builder.setInsertionPointToEnd(&tasks.back().parts[load].group.getBody().front());
  writer.barrier(scope, meetings++ % 256, {load});
}

Sum Program::sumOf(const Address &value, int queue) {
  Sum sum(value.offset);
  for (const hw::Term &term : value.terms) {
    if (term.source == hw::kTermQuad)
      sum = sum + Sum(graph.getBody().getArgument(0)) * term.scale;
    else if (term.source >= hw::kTermRegister)
      sum = sum + Sum(registerValue(term.source - hw::kTermRegister)) * term.scale;
    else if (dlir::LoopOp loop = loops[queue][term.source - hw::kTermLoop])
      sum = sum + Sum(loop.getBody().getArgument(0)) * term.scale;
  }
  return sum;
}

Value Program::token(int number, int64_t credits) {
  Value &token = tokens[number];
  if (token)
    return token;
  // The halves of double buffers are free in the beginning.
  if (credits < 0)
    credits = llvm::is_contained({kIbFree, kObFree, kWbFree, kScoresFree, kWeightsFree, kTilesFree, kWindowsFree},
                                 number & ~1);
  OpBuilder at(queues[0]);
  return token = dlir::TokenOp::create(at, writer.loc, dlir::TokenType::get(at.getContext()),
                                       at.getI64IntegerAttr(credits), /*home=*/StringAttr());
}

Value Program::registerValue(int number) {
  Value &value = registerValues[number];
  if (value)
    return value;
  OpBuilder at(queues[0]);
  return value = dlir::RegisterOp::create(at, writer.loc, at.getIndexType(), at.getI64IntegerAttr(number),
                                          at.getDenseI64ArrayAttr(registers[number]));
}

void Program::noteUses() {
  for (size_t i = 0; i < tasks.size(); ++i)
    for (const Part &part : tasks[i].parts)
      for (const Access &access : part.accesses)
        buffers.touch(access.buffer, static_cast<int>(i));
}

std::vector<std::string> Program::usersOf(int buffer) const {
  std::vector<std::string> names;
  for (const Task &task : tasks)
    if (llvm::any_of(task.parts, [&](const Part &part) {
          return llvm::any_of(part.accesses, [&](const Access &access) { return access.buffer == buffer; });
        }))
      names.push_back(task.name);
  return names;
}

//===----------------------------------------------------------------------===//
// Order between tasks
//===----------------------------------------------------------------------===//

namespace dmxc::corsair {

/// Adds a token wherever a queue must wait for another.
class Ordering {
public:
  explicit Ordering(Program &program) : program(program) {
    for (auto &row : known)
      row.fill(-1);
    last.fill(-1);
  }

  void run() {
    for (size_t i = 0; i < program.tasks.size(); ++i)
      add(program.tasks[i], static_cast<int>(i));
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
    for (int queue = 0; queue < kQueues && !task.meets; ++queue)
      if (!task.parts[queue].empty())
        order(task.parts[queue], queue);
    for (int queue = 0; queue < kQueues; ++queue)
      if (!task.parts[queue].empty())
        append(task.parts[queue], queue, number);
    if (task.meets)
      for (auto &row : known)
        row.fill(number);
  }

  void order(Program::Part &part, int queue) {
    std::array<bool, kQueues> waits{};
    for (const Program::Access &access : part.accesses) {
      const Buffer &buffer = program.buffers[access.buffer];
      for (const Use &use : uses[static_cast<int>(buffer.memory)])
        if (use.queue != queue && (use.writes || access.writes) && known[queue][use.queue] < use.task &&
            use.begin < buffer.address + buffer.size && buffer.address < use.end)
          waits[use.queue] = true;
    }
    for (int other = 0; other < kQueues; ++other) {
      if (!waits[other])
        continue;
      Value token = program.token(kFirstPairToken + other * kQueues + queue);
      program.tasks[last[other]].parts[other].group.getSignalMutable().append(token);
      part.group.getWaitMutable().append(token);
      known[queue][other] = last[other];
      for (int third = 0; third < kQueues; ++third)
        known[queue][third] = std::max(known[queue][third], known[other][third]);
    }
  }

  void append(Program::Part &part, int queue, int number) {
    last[queue] = number;
    for (const Program::Access &access : part.accesses) {
      const Buffer &buffer = program.buffers[access.buffer];
      uses[static_cast<int>(buffer.memory)].push_back(
          {buffer.address, buffer.address + buffer.size, queue, number, access.writes});
    }
  }

  Program &program;
  std::array<std::vector<Use>, hw::kMemories> uses;
  std::array<int, kQueues> last; ///< the last task of each queue
  /// known[q][p]: what queue q does next comes after all tasks of queue p up to this one.
  std::array<std::array<int, kQueues>, kQueues> known;
};

} // namespace dmxc::corsair

void Program::finish() {
  Ordering(*this).run();
  for (Task &task : tasks)
    for (Part &part : task.parts)
      if (part.empty())
        part.group.erase();
  for (dlir::DispatchQueueOp queue : queues)
    if (queue.getBody().front().empty())
      queue.erase();
}
