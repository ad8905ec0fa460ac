//===- Order.cpp - whether queues wait for what they need -----------------===//
#include "OrderChecker.h"

#include "llvm/ADT/MapVector.h"

#include <numeric>

using namespace mlir;
using namespace dmxc::dlir;

ProgramOrder::ProgramOrder(DeviceProgramOp program, ProgramBytes &bytes) : program(program), memory(program, bytes) {}

/// Whether the order of a program follows from its text.
static bool isKnown(DeviceProgramOp program, ProgramBytes &bytes) {
  if (!program.getBody().getOps<ChannelOp>().empty() ||
      llvm::any_of(program.getDimRegisters().value_or(ArrayRef<int64_t>()), [](int64_t reg) { return reg >= 0; }) ||
      llvm::any_of(program.getBody().getOps<ArgumentOp>(),
                   [](ArgumentOp argument) { return argument.getRole() == ArgumentRole::scalar; }))
    return false;
  return !program
              .walk([&](Operation *op) {
                if (auto graph = dyn_cast<ScheduledGraphOp>(op); graph && graph.getUnits().size() != 1)
                  return WalkResult::interrupt();
                if (auto queue = dyn_cast<DispatchQueueOp>(op); isa<RingOp>(op) || (queue && queue.getUnits()))
                  return WalkResult::interrupt();
                std::vector<Touched> touched;
                bool isTask = isa<DeviceTaskOpInterface>(op) && !isa<TaskBarrierOp>(op);
                return isTask && !bytes.touched(op, 0, SmallVector<int64_t>(depthOf(op)), touched)
                           ? WalkResult::interrupt()
                           : WalkResult::advance();
              })
              .wasInterrupted();
}

unsigned dmxc::dlir::depthOf(Operation *op) {
  unsigned depth = 0;
  for (op = op->getParentOp(); op; op = op->getParentOp())
    depth += isa<LoopOp>(op);
  return depth;
}

LogicalResult dmxc::dlir::verifyOrder(DeviceProgramOp program, ProgramBytes &bytes) {
  return isKnown(program, bytes) ? ProgramOrder(program, bytes).run() : success();
}

LogicalResult ProgramOrder::run() {
  if (failed(memory.bring()))
    return failure();
  for (StringRef name : {"init", "main"})
    for (auto graph : program.getBody().getOps<ScheduledGraphOp>())
      if (graph.getName() == name && failed(run(graph)))
        return failure();
  return memory.verifyResults();
}

/// The queues of all units at their begin. False where they have numbers that are no sums.
bool ProgramOrder::makeQueues() {
  numbers.clear();
  tokens.clear();
  registers.clear();
  queues.clear();
  lines.clear();
  meetings.clear();
  for (auto token : graph.getBody().getOps<TokenOp>()) {
    numbers[token] = tokens.size();
    tokens.push_back(token);
  }
  for (auto reg : graph.getBody().getOps<RegisterOp>()) {
    numbers[reg] = registers.size();
    registers.push_back(reg);
  }
  SmallVector<DispatchQueueOp> ops(graph.getBody().getOps<DispatchQueueOp>());
  for (DispatchQueueOp queue : ops) {
    std::optional<std::vector<QueueLine>> code = linesOf(queue, numbers);
    if (!code)
      return false;
    lines.push_back(std::move(*code));
  }
  const uint32_t units = graph.unitCount(), count = units * ops.size();
  given.assign(size_t(units) * tokens.size(), {});
  for (uint32_t unit = 0; unit < units; ++unit) {
    for (auto [i, queue] : llvm::enumerate(ops)) {
      Queue &made = queues.emplace_back();
      made.unit = unit;
      made.index = queue.getIndex();
      made.unitName = queue.getUnit().str() + " " + std::to_string(unit);
      made.lines = &lines[i];
      made.clock.assign(count, 0);
      made.received = made.clock;
      made.clock[queues.size() - 1] = 1;
    }
    for (auto [i, token] : llvm::enumerate(tokens))
      if (token.getCredits())
        given[unit * tokens.size() + i].push_back({Clock(count, 0), static_cast<int64_t>(token.getCredits()), ~0U});
  }
  return true;
}

LogicalResult ProgramOrder::run(ScheduledGraphOp op) {
  graph = op;
  if (!makeQueues())
    return success();
  memory.begin(tokens);
  for (bool moved = true; moved;) {
    moved = false;
    for (Queue &queue : queues) {
      FailureOr<bool> ran = run(queue);
      if (failed(ran))
        return failure();
      moved |= *ran;
    }
  }
  if (llvm::any_of(queues, [](const Queue &queue) { return !queue.isDone(); }))
    return reportWaiting();
  return verifyEnd();
}

int64_t ProgramOrder::valueOf(const LinearValue &value, const Queue &queue) {
  int64_t sum = value.base;
  for (const LinearValue::Term &term : value.terms) {
    int64_t source = queue.unit;
    if (term.source == LinearValue::Source::Loop) {
      source = queue.trips[term.number];
    } else if (term.source == LinearValue::Source::Register) {
      ArrayRef<int64_t> values = registers[term.number].getValues();
      source = values.size() == 1 ? values.front() : values[queue.unit];
    }
    int64_t part;
    if (__builtin_mul_overflow(term.scale, source, &part) || __builtin_add_overflow(sum, part, &sum))
      return 0;
  }
  return sum;
}

/// Follows a queue until it waits. Whether it went on at all.
FailureOr<bool> ProgramOrder::run(Queue &queue) {
  size_t steps = 0;
  for (; !queue.isDone(); ++steps) {
    FailureOr<bool> done = step(queue, (*queue.lines)[queue.position]);
    if (failed(done))
      return failure();
    if (!*done)
      break;
    ++queue.position;
  }
  return steps > 0;
}

/// False while the queue must wait.
FailureOr<bool> ProgramOrder::step(Queue &queue, const QueueLine &line) {
  switch (line.kind) {
  case QueueLine::Kind::Loop:
    enterLoop(queue, line);
    return true;
  case QueueLine::Kind::End:
    if (++queue.trips.back() < queue.times.back()) {
      queue.position = line.other;
    } else {
      queue.trips.pop_back();
      queue.times.pop_back();
    }
    return true;
  case QueueLine::Kind::Wait:
    if (!wait(queue, line))
      return false;
    for (auto [token, count] : line.tokens)
      if (failed(memory.freed(token, queue.unit, line.op)))
        return failure();
    return true;
  case QueueLine::Kind::Signal:
    signal(queue, line);
    return true;
  case QueueLine::Kind::Meet:
    return meet(queue, cast<TaskBarrierOp>(line.op));
  case QueueLine::Kind::Task:
    break;
  }
  Actor actor{static_cast<uint32_t>(&queue - queues.data()), queue.unit, queue.clock, queue.waitedFor, queue.received};
  queue.lastWait = nullptr;
  if (failed(memory.task(line.op, actor, queue.trips)))
    return failure();
  return true;
}

void ProgramOrder::enterLoop(Queue &queue, const QueueLine &line) {
  int64_t times = valueOf(line.times, queue);
  if (times < 1) {
    queue.position = line.other;
    return;
  }
  queue.trips.push_back(0);
  queue.times.push_back(times);
}

static void join(Clock &mine, const Clock &other) {
  for (auto [a, b] : llvm::zip(mine, other))
    a = std::max(a, b);
}

void ProgramOrder::signal(Queue &queue, const QueueLine &line) {
  const uint32_t number = &queue - queues.data();
  queue.lastWait = nullptr;
  for (auto [token, count] : line.tokens)
    given[queue.unit * tokens.size() + token].push_back({queue.clock, count, number});
  ++queue.clock[number];
}

/// Takes what a line waits for, if it is all there.
bool ProgramOrder::wait(Queue &queue, const QueueLine &line) {
  // What a group waits for is no part of what its tasks hand to each other.
  if (!queue.lastWait || isa<TaskGroupOp>(queue.lastWait->op) != isa<TaskGroupOp>(line.op))
    queue.waitedFor.clear();
  queue.lastWait = &line;
  for (; queue.taken < line.tokens.size(); ++queue.taken) {
    auto [token, count] = line.tokens[queue.taken];
    Given &have = given[queue.unit * tokens.size() + token];
    int64_t there = 0;
    for (const Signal &signal : have)
      there += signal.count;
    if (there < count)
      return false;
    while (count) {
      Signal &oldest = have.front();
      join(queue.clock, oldest.clock);
      queue.waitedFor.push_back(oldest.queue);
      if (isa<TaskBarrierOp>(line.op) && oldest.queue < queue.received.size())
        queue.received[oldest.queue] = std::max(queue.received[oldest.queue], oldest.clock[oldest.queue]);
      int64_t taken = std::min(count, oldest.count);
      count -= taken;
      oldest.count -= taken;
      if (!oldest.count)
        have.pop_front();
    }
  }
  queue.taken = 0;
  return true;
}

/// Comes to a barrier; true for the last one, after which all go on.
FailureOr<bool> ProgramOrder::meet(Queue &queue, TaskBarrierOp barrier) {
  if (queue.arrived)
    return false;
  auto group = [&](const Queue &one) { return memory.bytes.groupOf(*barrier.getScope(), one.unit); };
  auto key = std::make_tuple(barrier.getScope()->str(), group(queue), barrier.getId().value_or(0));
  std::vector<Queue *> &there = meetings[key];
  const SmallVector<int64_t> names = meetingAt(barrier);
  auto barrierOf = [](const Queue &one) { return cast<TaskBarrierOp>((*one.lines)[one.position].op); };
  const bool isNamed = llvm::is_contained(names, queue.index);
  if (!isNamed || (!there.empty() && meetingAt(barrierOf(*there.front())) != names))
    return barrier.emitOpError("O1: ") << placeOf(barrier) << " on " << queue.unitName
                                       << (isNamed ? " meets a queue that names others"
                                                   : " meets others without being named itself");
  queue.arrived = true;
  there.push_back(&queue);
  auto expected = llvm::count_if(
      queues, [&](const Queue &one) { return group(one) == group(queue) && llvm::is_contained(names, one.index); });
  if (static_cast<ptrdiff_t>(there.size()) < expected)
    return false;
  Clock all(queue.clock.size(), 0);
  for (Queue *one : there)
    join(all, one->clock);
  for (Queue *one : there) {
    one->clock = one->received = all;
    one->lastWait = nullptr;
    one->waitedFor.resize(queues.size());
    std::iota(one->waitedFor.begin(), one->waitedFor.end(), 0);
    ++one->clock[one - queues.data()];
    one->arrived = false;
    one->position += one != &queue; // this one's caller goes on
  }
  if (there.size() == queues.size())
    memory.settle();
  meetings.erase(key);
  return true;
}

//===--- what is wrong with the tokens --------------------------------------------------===//

/// Nobody can go on: says what nothing signals any more.
LogicalResult ProgramOrder::reportWaiting() {
  auto signalsLater = [&](const Queue &queue, unsigned token) {
    size_t from = queue.trips.empty() ? queue.position : 0; // a loop comes back
    return llvm::any_of(ArrayRef(*queue.lines).drop_front(std::min(from, queue.lines->size())),
                        [&](const QueueLine &line) {
                          return line.kind == QueueLine::Kind::Signal &&
                                 llvm::any_of(line.tokens, [&](auto &entry) { return entry.first == token; });
                        });
  };
  const Queue *any = nullptr;
  for (const Queue &queue : queues) {
    if (queue.isDone())
      continue;
    any = any ? any : &queue;
    const QueueLine &line = (*queue.lines)[queue.position];
    if (line.kind != QueueLine::Kind::Wait)
      continue;
    any = (*any->lines)[any->position].kind == QueueLine::Kind::Wait ? any : &queue;
    unsigned token = line.tokens[queue.taken].first;
    if (llvm::none_of(queues, [&](const Queue &other) {
          return other.unit == queue.unit && !other.isDone() && signalsLater(other, token);
        }))
      return line.op->emitOpError("O1: ")
             << placeOf(line.op) << " on " << queue.unitName
             << " waits for a token that nothing signals any more: group " << groupsOf(token);
  }
  Operation *op = (*any->lines)[any->position].op;
  if (isa<TaskBarrierOp>(op) && any->arrived)
    return op->emitOpError("O1: ") << placeOf(op) << " on " << any->unitName
                                   << " meets queues that never come: each of them names the same queues and id";
  return op->emitOpError("O1: ") << placeOf(op) << " on " << any->unitName
                                 << " waits for ever, for a token of which group "
                                 << groupsOf((*any->lines)[any->position].tokens[any->taken].first);
}

/// The groups whose signals of a token and waits for it are not as many, or else all that have it.
std::string ProgramOrder::groupsOf(unsigned token) {
  llvm::MapVector<StringRef, std::pair<int64_t, int64_t>> counts;
  for (Operation *user : tokens[token]->getUsers()) {
    auto group = isa<TaskGroupOp>(user) ? cast<TaskGroupOp>(user) : user->getParentOfType<TaskGroupOp>();
    auto barrier = dyn_cast<TaskBarrierOp>(user);
    auto &[signalled, waited] = counts[group.getName()];
    for (const TokenCount &count : barrier ? barrier.signals() : group.signals())
      signalled += count.token == tokens[token].getResult() ? count.count : 0;
    for (const TokenCount &count : barrier ? barrier.waits() : group.waits())
      waited += count.token == tokens[token].getResult() ? count.count : 0;
  }
  bool differ = llvm::any_of(counts, [](auto &entry) { return entry.second.first != entry.second.second; });
  std::string text;
  for (auto &[name, count] : counts)
    if (!differ || count.first != count.second)
      text += (text.empty() ? "\"" : ", \"") + name.str() + "\" signals " + std::to_string(count.first) +
              " and waits for " + std::to_string(count.second);
  return text;
}

LogicalResult ProgramOrder::verifyEnd() {
  for (size_t at = 0; at < given.size(); ++at) {
    const unsigned number = at % tokens.size(), unit = at / tokens.size();
    TokenOp token = tokens[number];
    int64_t more = -static_cast<int64_t>(token.getCredits());
    for (const Signal &signal : given[at])
      more += signal.count;
    if (more)
      return token.emitOpError("O1: is signalled ")
             << std::abs(more) << (more > 0 ? " times more" : " times less") << " than it is waited for, on unit "
             << unit << ": group " << groupsOf(number);
    if (failed(memory.freed(number, unit, nullptr)))
      return failure();
  }
  return success();
}
