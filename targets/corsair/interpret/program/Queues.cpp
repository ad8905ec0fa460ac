//===- Queues.cpp - the queues of a graph, as far as they come ------------===//
#include "Queues.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;
using namespace dmxc::corsair::stages;
using dlir::QueueLine;

namespace {

class GraphRun {
public:
  GraphRun(dlir::ScheduledGraphOp graph, Card &card) : graph(graph), card(card), machine(card.machine) {}

  Status begin(const llvm::DenseMap<uint64_t, int64_t> &registers);
  Status run();

private:
  struct Queue {
    int64_t quad = 0, index = 0;
    const std::vector<QueueLine> *lines = nullptr;
    size_t position = 0, taken = 0; ///< taken: tokens of the line that it stands at
    llvm::SmallVector<int64_t> trips, times;
    Indices indices;
    bool isMeeting = false; ///< at the barrier it stands at
    bool isDone() const { return position >= lines->size(); }
    const QueueLine &line() const { return (*lines)[position]; }
  };

  Status addQueues(int64_t quad, const llvm::DenseMap<uint64_t, int64_t> &registers);
  Result<bool> follow(Queue &queue);
  Result<bool> step(Queue &queue);
  Status enter(Queue &queue, dlir::LoopOp loop);
  void leave(Queue &queue);
  bool wait(Queue &queue);
  Result<bool> meet(Queue &queue, dlir::TaskBarrierOp barrier);
  Status task(Queue &queue);
  Error errorIn(const Queue &queue, Operation *op, const std::string &why) const;
  Error waitsForEver() const;
  int64_t &given(int64_t quad, unsigned token) { return tokens[quad * tokenOps.size() + token]; }
  /// Quads with one number meet in a scope.
  int64_t groupOf(StringRef scope, int64_t quad) const {
    return scope == "card" ? 0 : scope == "chiplet" ? quad / machine.quads : quad;
  }

  dlir::ScheduledGraphOp graph;
  Card &card;
  const hw::Machine &machine;
  SmallVector<dlir::TokenOp> tokenOps;
  std::vector<std::vector<QueueLine>> code;
  std::vector<Queue> queues;
  std::vector<int64_t> tokens; ///< by quad and number
  std::map<std::tuple<std::string, int64_t, uint64_t>, std::vector<Queue *>> meetings;
};

Status GraphRun::begin(const llvm::DenseMap<uint64_t, int64_t> &registers) {
  if (graph.getUnits().size() != 1 || graph.unitCount() > machine.quadCount())
    return errorAt(graph, "runs on other units than the " + std::to_string(machine.quadCount()) +
                              " quads of the machine, which are in one dim");
  llvm::DenseMap<Value, unsigned> numbers;
  for (auto token : graph.getBody().getOps<dlir::TokenOp>()) {
    numbers[token] = tokenOps.size();
    tokenOps.push_back(token);
  }
  for (auto queue : graph.getBody().getOps<dlir::DispatchQueueOp>()) {
    std::optional<std::vector<QueueLine>> lines = dlir::linesOf(queue, numbers);
    if (!lines)
      return errorAt(queue, "has a loop whose trips are no sum of multiples");
    code.push_back(std::move(*lines));
  }
  for (int64_t quad = 0; quad < graph.unitCount(); ++quad) {
    for (dlir::TokenOp token : tokenOps)
      tokens.push_back(static_cast<int64_t>(token.getCredits()));
    if (Status added = addQueues(quad, registers); !added)
      return added;
  }
  return Status::ok();
}

Status GraphRun::addQueues(int64_t quad, const llvm::DenseMap<uint64_t, int64_t> &registers) {
  Indices indices;
  indices.set(graph.getBody().getArgument(0), quad);
  for (auto reg : graph.getBody().getOps<dlir::RegisterOp>()) {
    const ArrayRef<int64_t> values = reg.getValues();
    const auto launched = registers.find(reg.getNumber());
    indices.set(reg, launched != registers.end() ? launched->second : values[values.size() == 1 ? 0 : quad]);
  }
  for (auto [lines, op] : llvm::zip(code, graph.getBody().getOps<dlir::DispatchQueueOp>())) {
    Queue &queue = queues.emplace_back();
    queue.quad = quad, queue.index = static_cast<int64_t>(op.getIndex());
    queue.lines = &lines;
    queue.indices = indices;
  }
  return Status::ok();
}

Status GraphRun::run() {
  for (bool moved = true; moved;) {
    moved = false;
    for (Queue &queue : queues) {
      Result<bool> went = follow(queue);
      if (!went)
        return went.takeError();
      moved |= *went;
    }
  }
  return llvm::all_of(queues, [](const Queue &queue) { return queue.isDone(); }) ? Status::ok()
                                                                                 : Status(waitsForEver());
}

/// Until it waits or ends; whether it went on at all.
Result<bool> GraphRun::follow(Queue &queue) {
  bool moved = false;
  while (!queue.isDone()) {
    Result<bool> went = step(queue);
    if (!went)
      return went;
    if (!*went)
      break;
    moved = true;
  }
  return moved;
}

/// False while the queue must wait.
Result<bool> GraphRun::step(Queue &queue) {
  const QueueLine &line = queue.line();
  Status done = Status::ok();
  switch (line.kind) {
  case QueueLine::Kind::Loop:
    done = enter(queue, cast<dlir::LoopOp>(line.op));
    break;
  case QueueLine::Kind::End:
    leave(queue);
    break;
  case QueueLine::Kind::Wait:
    if (!wait(queue))
      return false;
    break;
  case QueueLine::Kind::Signal:
    for (auto [token, count] : line.tokens)
      given(queue.quad, token) += count;
    break;
  case QueueLine::Kind::Meet:
    return meet(queue, cast<dlir::TaskBarrierOp>(line.op));
  case QueueLine::Kind::Task:
    done = task(queue);
    break;
  }
  if (!done)
    return done.takeError();
  ++queue.position;
  return true;
}

Status GraphRun::enter(Queue &queue, dlir::LoopOp loop) {
  std::optional<Dims> times = queue.indices.at(loop.getTimes(), loop.getIndices());
  if (!times)
    return errorIn(queue, loop, "has trips that are no number");
  if (times->front() < 1) {
    queue.position = queue.line().other;
    return Status::ok();
  }
  queue.trips.push_back(0);
  queue.times.push_back(times->front());
  queue.indices.set(loop.getBody().getArgument(0), 0);
  return Status::ok();
}

void GraphRun::leave(Queue &queue) {
  if (++queue.trips.back() < queue.times.back()) {
    queue.indices.set(cast<dlir::LoopOp>(queue.line().op).getBody().getArgument(0), queue.trips.back());
    queue.position = queue.line().other;
    return;
  }
  queue.trips.pop_back();
  queue.times.pop_back();
}

/// Takes what a line waits for, token by token.
bool GraphRun::wait(Queue &queue) {
  const auto &counts = queue.line().tokens;
  for (; queue.taken < counts.size(); ++queue.taken) {
    auto [token, count] = counts[queue.taken];
    int64_t &there = given(queue.quad, token);
    if (there < count)
      return false;
    there -= count;
  }
  queue.taken = 0;
  return true;
}

/// Comes to a barrier; the last one lets all of them go on.
Result<bool> GraphRun::meet(Queue &queue, dlir::TaskBarrierOp barrier) {
  if (queue.isMeeting)
    return false;
  const StringRef scope = *barrier.getScope();
  const SmallVector<int64_t> names = dlir::meetingAt(barrier);
  const int64_t group = groupOf(scope, queue.quad);
  if (!llvm::is_contained(names, queue.index))
    return errorIn(queue, barrier, "meets others without being named itself");
  const std::tuple key(scope.str(), group, barrier.getId().value_or(0));
  std::vector<Queue *> &there = meetings[key];
  if (!there.empty() && dlir::meetingAt(cast<dlir::TaskBarrierOp>(there.front()->line().op)) != names)
    return errorIn(queue, barrier, "meets a queue that names others");
  queue.isMeeting = true;
  there.push_back(&queue);
  const auto expected = llvm::count_if(queues, [&](const Queue &one) {
    return groupOf(scope, one.quad) == group && llvm::is_contained(names, one.index);
  });
  if (static_cast<ptrdiff_t>(there.size()) < expected)
    return false;
  for (Queue *one : there) {
    one->isMeeting = false;
    ++one->position;
  }
  meetings.erase(key);
  return true;
}

Status GraphRun::task(Queue &queue) {
  Operation *op = queue.line().op;
  const TaskSite site{card, queue.quad, queue.indices};
  Status done =
      TypeSwitch<Operation *, Status>(op)
          .Case<dlir::DmaCopyOp, engine::MatmulOp, engine::ConvOp, engine::SimdOp, engine::ReshapeOp>(
              [&](auto typed) { return runTask(typed, site); })
          .Case([](engine::NopOp) { return Status::ok(); })
          .Default([](Operation *other) { return notEvaluated(other, "is no task that the interpreter has"); });
  if (done || done.error().kind != ErrorKind::Model)
    return done;
  return errorIn(queue, op, done.error().message);
}

//===----------------------------------------------------------------------===//
// What is wrong
//===----------------------------------------------------------------------===//

Error GraphRun::errorIn(const Queue &queue, Operation *op, const std::string &why) const {
  std::string trips;
  for (int64_t trip : queue.trips)
    trips += (trips.empty() ? ", trip " : ".") + std::to_string(trip);
  return errorAt(op, why + " (" + dlir::placeOf(op) + ", quad " + std::to_string(queue.quad) + trips + ")");
}

/// Of those that wait, one whose token nobody has given; where all have met, one that meets.
Error GraphRun::waitsForEver() const {
  auto waiting = llvm::make_filter_range(queues, [](const Queue &queue) { return !queue.isDone(); });
  for (const Queue &queue : waiting)
    if (queue.line().kind == QueueLine::Kind::Wait)
      return errorIn(queue, queue.line().op,
                     "waits for ever for token " + std::to_string(queue.line().tokens[queue.taken].first) +
                         " of its graph");
  const Queue &first = *waiting.begin();
  return errorIn(first, first.line().op, "meets queues that never come");
}

} // namespace

Status dmxc::corsair::stages::runGraph(dlir::ScheduledGraphOp graph, Card &card,
                                       const llvm::DenseMap<uint64_t, int64_t> &registers) {
  GraphRun run(graph, card);
  if (Status begun = run.begin(registers); !begun)
    return begun;
  return run.run();
}
