//===- Rings.cpp - rules of rings, their fills and drains -----------------===//
#include "Rings.h"

#include "llvm/ADT/StringSet.h"

#include <numeric>
#include <set>

using namespace mlir;
using namespace dmxc::dlir;

static constexpr int64_t kMostSlots = 1 << 20;

std::string dmxc::dlir::nameOf(RingOp ring) { return "ring '" + ring.getName().str() + "'"; }

ValueRange dmxc::dlir::ringsOf(Operation *op) {
  return isa<FillOp, DrainOp>(op) ? ValueRange(op->getOperands()) : ValueRange();
}
bool dmxc::dlir::isTask(Operation *op) { return isa<DeviceTaskOpInterface, FillOp, DrainOp>(op); }
bool dmxc::dlir::isAmongTasks(Operation *op) {
  for (op = op->getParentOp(); op; op = op->getParentOp())
    if (isa<TaskGroupOp, FillOp, DrainOp>(op))
      return true;
  return false;
}

//===--- text --------------------------------------------------------------------------===//

ParseResult dmxc::dlir::parseQueues(OpAsmParser &parser, ArrayAttr &engines, DenseI64ArrayAttr &numbers) {
  SmallVector<Attribute> names;
  SmallVector<int64_t> all;
  auto one = [&]() -> ParseResult {
    StringAttr name;
    if (parser.parseAttribute(name) || parser.parseInteger(all.emplace_back()))
      return failure();
    names.push_back(name);
    return success();
  };
  if (parser.parseCommaSeparatedList(one))
    return failure();
  engines = parser.getBuilder().getArrayAttr(names);
  numbers = parser.getBuilder().getDenseI64ArrayAttr(all);
  return success();
}

void dmxc::dlir::printQueues(OpAsmPrinter &printer, Operation *, ArrayAttr engines, DenseI64ArrayAttr numbers) {
  for (size_t i = 0; i < engines.size(); ++i) {
    printer << (i ? ", " : "") << engines[i];
    if (i < static_cast<size_t>(numbers.size()))
      printer << " " << numbers[static_cast<int64_t>(i)];
  }
}

//===--- a ring ------------------------------------------------------------------------===//

/// C4: queues of one end.
static LogicalResult verifyQueues(RingOp ring, ArrayAttr engines, ArrayRef<int64_t> numbers, StringRef key,
                                  const UnitModel *unit) {
  std::set<std::pair<StringRef, int64_t>> seen;
  auto wrong = [&] { return ring.emitOpError("C4: ") << nameOf(ring) << " "; };
  if (engines.empty() || engines.size() != numbers.size())
    return wrong() << "has " << engines.size() << " `" << key << "` and " << numbers.size()
                   << " numbers of queues, each end is one queue or more, by engine and number";
  for (auto [attribute, number] : llvm::zip(engines.getAsRange<StringAttr>(), numbers)) {
    StringRef engine = attribute.getValue();
    if (!seen.insert({engine, number}).second)
      return wrong() << "names the queue \"" << engine << "\" " << number << " twice, by `" << key
                     << "` the second time";
    const UnitModel::Engine *known = unit ? unit->engine(engine) : nullptr;
    if (unit && !known)
      return wrong() << "names \"" << engine << "\" by `" << key << "`; engines of a " << unit->name << " are "
                     << unit->engineNames();
    if (number < 0 || (known && number >= known->queues))
      return wrong() << "names queue " << number << " of \"" << engine << "\" by `" << key << "`, there are 0 to "
                     << (known ? known->queues : int64_t(1)) - 1;
  }
  return success();
}

LogicalResult RingOp::verify() {
  const DeviceModel *model = modelOf(*this);
  int64_t slots = getSlots(), size = getSize();
  const MemoryModel *memory = model ? model->memory(getKind()) : nullptr;
  if (model && !memory)
    return emitOpError("C2: ") << nameOf(*this) << " lies in " << getKind()
                               << ", which the device does not have; it has " << model->memoryNames();
  if (size < 1 || (memory && size > memory->size))
    return emitOpError("C2: ") << nameOf(*this) << " has a `size` of " << size << " bytes, it is 1 to "
                               << (memory ? memory->size : INT64_MAX) << " in " << getKind();
  int64_t most = memory ? std::min(memory->size / size, kMostSlots) : kMostSlots;
  if (slots < 1 || slots > most)
    return emitOpError("C1: ") << nameOf(*this) << " has `slots` " << slots << ", they are 1 to " << most << " of "
                               << size << " bytes in " << getKind();
  if (int64_t uses = getUses(); uses < 1 || (uses > 1 && slots > 1))
    return emitOpError("C8: ") << nameOf(*this) << " has `uses` " << uses << " and `slots` " << slots
                               << ", what is drained several times is of one slot";
  const UnitModel *unit = model ? model->unit(getHome()) : nullptr;
  if (model && (!unit || unit->tokens < 1))
    return emitOpError("C3: ") << nameOf(*this) << " is on \"" << getHome()
                               << "\", of which the device has none, or which hold no tokens; it has "
                               << model->unitNames();
  return failure(failed(verifyQueues(*this, getProducers(), getProducerQueues(), "from", unit)) ||
                 failed(verifyQueues(*this, getConsumers(), getConsumerQueues(), "to", unit)));
}

//===--- fills and drains ----------------------------------------------------------------===//

/// Whether a queue is one of these ends of a ring.
static bool isEnd(DispatchQueueOp queue, RingOp ring, bool fills) {
  ArrayAttr engines = fills ? ring.getProducers() : ring.getConsumers();
  ArrayRef<int64_t> numbers = fills ? ring.getProducerQueues() : ring.getConsumerQueues();
  if (queue.getUnit() != ring.getHome())
    return false;
  for (auto [engine, number] : llvm::zip(engines.getAsRange<StringAttr>(), numbers))
    if (engine.getValue() == queue.getEngine() && number == static_cast<int64_t>(queue.getIndex()))
      return true;
  return false;
}

static std::string nameOf(DispatchQueueOp queue) {
  return "\"" + queue.getUnit().str() + "\" \"" + queue.getEngine().str() + "\" " + std::to_string(queue.getIndex());
}

template <typename OpTy> static LogicalResult verifyUse(OpTy op) {
  Operation *parent = op->getParentOp();
  while (isa_and_present<LoopOp>(parent))
    parent = parent->getParentOp();
  auto queue = op->template getParentOfType<DispatchQueueOp>();
  if (!queue || !isa<DispatchQueueOp, TaskGroupOp, FillOp, DrainOp>(parent))
    return op.emitOpError("C1: stands in no queue");
  constexpr bool fills = std::is_same_v<OpTy, FillOp>;
  llvm::SmallPtrSet<Operation *, 4> named;
  if (op.getRings().empty())
    return op.emitOpError("C2: names no ring");
  for (Value value : op.getRings()) {
    auto ring = value.getDefiningOp<RingOp>();
    if (!ring)
      return op.emitOpError("C2: names what is no dlir.ring");
    if (!named.insert(ring).second)
      return op.emitOpError("C2: names ") << nameOf(ring) << " twice";
    for (Operation *around = op->getParentOp(); around; around = around->getParentOp())
      if (llvm::is_contained(ringsOf(around), value))
        return op.emitOpError("C2: names ") << nameOf(ring) << ", a slot of which is held already";
    if (!isEnd(queue, ring, fills))
      return op.emitOpError("C3: is of ")
             << nameOf(ring) << ", which queue " << nameOf(queue)
             << (fills ? " does not fill: `from` says" : " does not drain: `to` says") << " which do";
  }
  for (Operation &inner : op.getBody().front())
    if (!isTask(&inner) && !isa<LoopOp>(inner))
      return inner.emitOpError("C4: is no task");
  return success();
}

LogicalResult FillOp::verifyRegions() { return verifyUse(*this); }
LogicalResult DrainOp::verifyRegions() { return verifyUse(*this); }

LogicalResult dmxc::dlir::verifySlots(Operation *task, ValueRange buffers) {
  for (Value buffer : buffers) {
    auto ring = buffer.getDefiningOp<RingOp>();
    if (!ring)
      continue;
    Operation *holder = task->getParentOp();
    while (holder && !llvm::is_contained(ringsOf(holder), buffer))
      holder = holder->getParentOp();
    if (!holder)
      return task->emitOpError("takes a slot of ") << nameOf(ring) << " outside of a dlir.fill or dlir.drain of it";
    auto inner = dyn_cast<DeviceTaskOpInterface>(task);
    if (inner && isa<DrainOp>(holder) && llvm::is_contained(inner.memoriesWritten(), buffer))
      return task->emitOpError("C5: writes into a slot of ") << nameOf(ring) << " that it drains";
  }
  return success();
}

//===--- whose turn it is ------------------------------------------------------------------===//

std::optional<int64_t> dmxc::dlir::turnsOf(Block &body, RingOp ring) {
  int64_t turns = 0;
  for (Operation &op : body) {
    std::optional<int64_t> more = turnsOf(&op, ring);
    if (!more)
      return std::nullopt;
    turns = (turns + *more) % static_cast<int64_t>(ring.getSlots());
  }
  return turns;
}

std::optional<int64_t> dmxc::dlir::turnsOf(Operation *op, RingOp ring) {
  if (op->getNumRegions() != 1 || op->getRegion(0).empty())
    return 0;
  const int64_t slots = ring.getSlots();
  std::optional<int64_t> turns = turnsOf(op->getRegion(0).front(), ring);
  if (!turns)
    return std::nullopt;
  auto loop = dyn_cast<LoopOp>(op);
  if (!loop)
    return (*turns + llvm::is_contained(ringsOf(op), ring.getResult())) % slots;
  if (!*turns)
    return 0;
  if (!loop.getTimes().isSingleConstant())
    return std::nullopt;
  int64_t times = std::max<int64_t>(loop.getTimes().getSingleConstantResult(), 0);
  return times % slots * *turns % slots;
}

int64_t dmxc::dlir::tripsAround(LoopOp loop) {
  int64_t trips = 1;
  llvm::SmallPtrSet<Operation *, 8> seen;
  loop->walk([&](Operation *op) {
    for (Value value : ringsOf(op))
      if (auto ring = value.getDefiningOp<RingOp>(); ring && seen.insert(ring).second) {
        const int64_t slots = ring.getSlots();
        int64_t around = slots / std::gcd(slots, turnsOf(loop.getBody().front(), ring).value_or(0));
        trips = std::min<int64_t>(std::lcm(trips, around), 1 << 20);
      }
  });
  return trips;
}

/// Where code names slots by address: each loop but the endless one leaves each ring at the slot at which it began, or
/// runs a number of trips that is known and goes round whole rings.
static LogicalResult verifyTurns(ScheduledGraphOp graph) {
  WalkResult done = graph->walk([&](LoopOp loop) {
    bool known = loop.getTimes().isSingleConstant();
    int64_t times = known ? loop.getTimes().getSingleConstantResult() : 0;
    for (auto ring : graph.getBody().getOps<RingOp>()) {
      const int64_t slots = ring.getSlots();
      std::optional<int64_t> turns = turnsOf(loop.getBody().front(), ring);
      if (!turns) // a loop inside of it is the one
        continue;
      bool goesRound = known && (times == kForever || *turns * (times % slots) % slots == 0);
      if (*turns % slots == 0 || goesRound)
        continue;
      loop.emitOpError("C2: takes ") << nameOf(ring) << " " << *turns << (*turns == 1 ? " slot" : " slots")
                                     << " further in each trip, and all its trips do not go round it: what fills or "
                                        "drains it in a trip is a multiple of its `slots`, "
                                     << slots;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(done.wasInterrupted());
}

//===--- all rings of a graph ---------------------------------------------------------------===//

/// C5: each queue of an end is there and does it, and all have the same units.
static LogicalResult verifyEnds(ScheduledGraphOp graph, RingOp ring) {
  std::optional<ArrayRef<int64_t>> grid;
  for (bool fills : {true, false}) {
    ArrayAttr engines = fills ? ring.getProducers() : ring.getConsumers();
    ArrayRef<int64_t> numbers = fills ? ring.getProducerQueues() : ring.getConsumerQueues();
    for (auto [engine, number] : llvm::zip(engines.getAsRange<StringAttr>(), numbers)) {
      DispatchQueueOp found;
      for (auto queue : graph.getBody().getOps<DispatchQueueOp>())
        if (queue.getUnit() == ring.getHome() && queue.getEngine() == engine.getValue() &&
            static_cast<int64_t>(queue.getIndex()) == number)
          found = queue;
      bool does = llvm::any_of(ring.getResult().getUsers(), [&](Operation *user) {
        return (fills ? isa<FillOp>(user) : isa<DrainOp>(user)) && user->getParentOfType<DispatchQueueOp>() == found;
      });
      if (!found || !does)
        return ring.emitOpError("C5: ") << nameOf(ring) << " is never " << (fills ? "filled" : "drained")
                                        << " by queue \"" << engine.getValue() << "\" " << number << ", which `"
                                        << (fills ? "from" : "to")
                                        << "` names: " << (fills ? "a dlir.fill" : "a dlir.drain")
                                        << " is missing there";
      if (grid && *grid != found.grid())
        return ring.emitOpError("C5: ") << nameOf(ring) << " is of queues that different units have";
      grid = found.grid();
    }
  }
  return success();
}

LogicalResult dmxc::dlir::verifyRings(ScheduledGraphOp graph) {
  llvm::StringSet<> names;
  for (auto ring : graph.getBody().getOps<RingOp>()) {
    if (!names.insert(ring.getName()).second)
      return ring.emitOpError("C6: is a second ring named '") << ring.getName() << "'";
    if (failed(verifyEnds(graph, ring)))
      return failure();
  }
  const DeviceModel *model = modelOf(graph);
  return model && model->fixedSlots ? verifyTurns(graph) : success();
}
