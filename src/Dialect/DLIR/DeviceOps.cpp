//===- DeviceOps.cpp - rules of a device's programs -----------------------===//
#include "Channels.h"
#include "Rings.h"

#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <set>

using namespace mlir;
using namespace dmxc::dlir;

#include "dmxc/Dialect/DLIR/DLIRDeviceEnums.cpp.inc"

/// Whether an op is of this dialect; other symbols of a program are a target's functions.
static bool isDlir(Operation *op) { return isa_and_present<DLIRDialect>(op->getDialect()); }

void DLIRDialect::addDeviceOps() {
  addOperations<
#define GET_OP_LIST
#include "dmxc/Dialect/DLIR/DLIRDeviceOps.cpp.inc"
      >();
}

//===--- the program ------------------------------------------------------------------===//

std::vector<DeviceArgument> DeviceProgramOp::deviceArguments() {
  std::vector<DeviceArgument> arguments;
  for (auto argument : getBody().getOps<ArgumentOp>())
    arguments.push_back({argument.getName(), argument.getRole(), argument.getTensor(), argument.getForm()});
  return arguments;
}

/// C4: permanent memories at fixed addresses do not overlap.
static LogicalResult verifyFixed(ArrayRef<MemoryOp> fixed) {
  for (size_t i = 0; i < fixed.size(); ++i) {
    MemoryOp a = fixed[i];
    for (MemoryOp b : fixed.take_front(i))
      if (a.getKind() == b.getKind() && *a.getAddress() < *b.getAddress() + b.getSize() &&
          *b.getAddress() < *a.getAddress() + a.getSize())
        return a.emitOpError("C4: overlaps '") << b.getName() << "'";
  }
  return success();
}

LogicalResult DeviceProgramOp::verifyRegions() {
  const DeviceModel *model = modelOf(*this);
  if (!model)
    return emitOpError("C5: no target of this build is called '") << getDevice() << "', or it has no programs";
  llvm::StringSet<> arguments, memories, graphs;
  SmallVector<MemoryOp> fixed;
  for (Operation &op : getBody().front()) {
    if (auto argument = dyn_cast<ArgumentOp>(op)) {
      if (!arguments.insert(argument.getName()).second)
        return op.emitOpError("C2: a second argument named '") << argument.getName() << "'";
    } else if (auto memory = dyn_cast<MemoryOp>(op)) {
      if (!memories.insert(memory.getName()).second)
        return op.emitOpError("C2: a second memory named '") << memory.getName() << "'";
      if (memory.getPermanent() && memory.getAddress())
        fixed.push_back(memory);
    } else if (auto graph = dyn_cast<ScheduledGraphOp>(op)) {
      if (!graphs.insert(graph.getName()).second)
        return op.emitOpError("C3: a second graph \"") << graph.getName() << "\"";
    } else if (!isa<PieceOp, DescriptorOp, ChannelOp>(op) && !(isa<SymbolOpInterface>(op) && !isDlir(&op))) {
      return op.emitOpError("C1: does not stand in a dlir.device_program");
    }
  }
  if (failed(verifyFixed(fixed)) || failed(verifyChannels(*this, *model)))
    return failure();
  for (auto graph : getBody().getOps<ScheduledGraphOp>())
    if (failed(verifyBalance(graph)))
      return failure();
  return success();
}

LogicalResult ArgumentOp::verify() {
  if ((getRole() == ArgumentRole::scalar) != getToRegister().has_value())
    return emitOpError("C1: a scalar, and nothing else, goes to a register");
  if (getData() && getRole() != ArgumentRole::constant)
    return emitOpError("C2: only a constant has data");
  return success();
}

LogicalResult MemoryOp::verify() {
  if (static_cast<int64_t>(getSize()) < 1)
    return emitOpError("C1: has ") << static_cast<int64_t>(getSize()) << " bytes";
  const DeviceModel *model = modelOf(*this);
  if (!model)
    return emitOpError("stands in a program of '")
           << cast<DeviceProgramOp>((*this)->getParentOp()).getDevice() << "', which is no target of this build";
  const MemoryModel *memory = model->memory(getKind());
  if (!memory)
    return emitOpError("C3: the device has no memory ") << getKind() << "; it has " << model->memoryNames();
  if (getAddress() && (static_cast<int64_t>(*getAddress()) < 0 || *getAddress() % memory->alignment))
    return emitOpError("C2: address ") << static_cast<int64_t>(*getAddress()) << " is not a multiple of "
                                       << memory->alignment;
  int64_t address = getAddress().value_or(0), size = getSize();
  if (size > memory->size || address > memory->size - size)
    return emitOpError("C4: over capacity: '")
           << getName() << "' is " << size << " bytes at " << address << ", " << getKind() << " holds " << memory->size;
  return success();
}

LogicalResult PieceOp::verify() {
  ArgumentOp found;
  for (auto argument : (*this)->getParentOp()->getRegion(0).getOps<ArgumentOp>())
    if (argument.getName() == getArgument())
      found = argument;
  if (!found || found.getRole() == ArgumentRole::scalar)
    return emitOpError("C1: there is no argument '") << getArgument() << "' that has pieces";
  auto shaped = dyn_cast<ShapedType>(found.getTensor());
  size_t rank = found.getRole() == ArgumentRole::constant || !shaped ? 1 : shaped.getRank();
  if (getBegin().size() != rank || getExtent().size() != rank)
    return emitOpError("C2: needs a begin and an extent for each of ") << rank << " dims";
  auto memory = getMemory().getDefiningOp<MemoryOp>();
  int64_t offset = getOffset(), bytes = found.getRole() == ArgumentRole::constant ? getExtent().front() : 1;
  if (!memory)
    return emitOpError("C3: lies in no buffer");
  if (offset < 0 || bytes < 0 || offset + bytes > static_cast<int64_t>(memory.getSize()))
    return emitOpError("C3: leaves the ")
           << static_cast<int64_t>(memory.getSize()) << " bytes of '" << memory.getName() << "'";
  const DeviceModel *model = modelOf(*this);
  const MemoryModel *row = model ? model->memory(memory.getKind()) : nullptr;
  if (int64_t unit = getUnit(); row && (unit < 0 || unit >= row->units))
    return emitOpError("C4: there is no unit ") << unit << ", the device has " << row->units << " of " << row->name;
  return success();
}

/// A descriptor's numbers against what the device's have room for.
static LogicalResult verifyLimits(DescriptorOp op, const DeviceModel &model) {
  if (op.getDims().size() > model.descriptorDims)
    return op.emitOpError("C1: has ") << op.getDims().size() << " dims, the device's descriptors "
                                      << model.descriptorDims;
  for (int64_t count : op.getDims())
    if (count > model.largestCount)
      return op.emitOpError("C1: counts ") << count << " items, the device's descriptors " << model.largestCount;
  for (ArrayRef<int64_t> steps : {op.getSource(), op.getTarget()})
    for (int64_t step : steps)
      if (step > model.largestStep || step < -model.largestStep)
        return op.emitOpError("C2: has a step of ")
               << step << ", the device's descriptors at most " << model.largestStep;
  return success();
}

LogicalResult DescriptorOp::verify() {
  size_t rank = getDims().size();
  if (llvm::any_of(getDims(), [](int64_t n) { return n < 0; }))
    return emitOpError("C1: has a negative dim");
  if (getSource().size() != rank || getTarget().size() != rank)
    return emitOpError("C2: needs a source and a target step for each of ") << rank << " dims";
  for (auto list : {getLow(), getHigh()})
    if (list && list->size() != rank)
      return emitOpError("C3: low and high have one number a dim");
  if (getLow() && getHigh())
    for (auto [low, high] : llvm::zip(*getLow(), *getHigh()))
      if (low > high)
        return emitOpError("C3: low ") << low << " is above high " << high;
  if (static_cast<int64_t>(getUnit()) < 1)
    return emitOpError("C4: a unit of ") << static_cast<int64_t>(getUnit());
  const DeviceModel *model = modelOf(*this);
  return model ? verifyLimits(*this, *model) : success();
}

//===--- schedules ----------------------------------------------------------------------===//

/// Counts of tokens, or one of each.
static std::vector<TokenCount> counted(OperandRange tokens, std::optional<ArrayRef<int64_t>> counts) {
  std::vector<TokenCount> all;
  for (auto [i, token] : llvm::enumerate(tokens))
    all.push_back({token, counts && i < counts->size() ? (*counts)[i] : 1});
  return all;
}
std::vector<TokenCount> TaskGroupOp::waits() { return counted(getWait(), getWaitCounts()); }
std::vector<TokenCount> TaskGroupOp::signals() { return counted(getSignal(), getSignalCounts()); }
std::vector<TokenCount> TaskBarrierOp::waits() { return counted(getWait(), getWaitCounts()); }
std::vector<TokenCount> TaskBarrierOp::signals() { return counted(getSignal(), getSignalCounts()); }

/// C3 of groups and barriers: as many counts as tokens, all positive.
template <typename OpTy> static LogicalResult verifyCounts(OpTy op) {
  auto wrong = [](OperandRange tokens, std::optional<ArrayRef<int64_t>> counts) {
    return counts && (counts->size() != tokens.size() || llvm::any_of(*counts, [](int64_t n) { return n < 1; }));
  };
  if (wrong(op.getWait(), op.getWaitCounts()) || wrong(op.getSignal(), op.getSignalCounts()))
    return op.emitOpError("C3: waits and signals count from 1, one number a token");
  return success();
}

/// Whether some group or task waits for the token, or signals it.
static bool isUsed(TokenOp token, bool wait) {
  return llvm::any_of(token.getResult().getUsers(), [&](Operation *user) {
    std::vector<TokenCount> counts;
    if (auto group = dyn_cast<TaskGroupOp>(user))
      counts = wait ? group.waits() : group.signals();
    else if (auto task = dyn_cast<DeviceTaskOpInterface>(user))
      counts = wait ? task.waits() : task.signals();
    return llvm::any_of(counts, [&](const TokenCount &count) { return count.token == token.getResult(); });
  });
}

int64_t ScheduledGraphOp::unitCount() {
  int64_t count = 1;
  for (int64_t extent : getUnits())
    count *= extent;
  return count;
}

/// Where a token is; null where the table has no such units.
static const UnitModel *homeOf(TokenOp token) {
  const DeviceModel *model = modelOf(token);
  if (!model || model->units.empty())
    return nullptr;
  return token.getHome() ? model->unit(*token.getHome()) : &model->units.front();
}

/// C5 of graphs.
static LogicalResult verifyTokensFit(ScheduledGraphOp graph) {
  llvm::DenseMap<const UnitModel *, int64_t> held;
  const DeviceModel *model = modelOf(graph);
  for (auto token : graph.getBody().getOps<TokenOp>())
    if (const UnitModel *home = homeOf(token); home && ++held[home] > home->tokens)
      return token.emitOpError("C5: is one too many: a ") << home->name << " holds " << home->tokens << " tokens";
  for (auto ring : graph.getBody().getOps<RingOp>())
    if (const UnitModel *home = model ? model->unit(ring.getHome()) : nullptr; home && (held[home] += 2) > home->tokens)
      return ring.emitOpError("C5: ") << nameOf(ring) << " is one too many: it takes two tokens, a " << home->name
                                      << " holds " << home->tokens;
  return success();
}

/// A grid that a machine may have.
static bool isGrid(ArrayRef<int64_t> units) {
  constexpr int64_t most = 1 << 20;
  return !units.empty() && units.size() <= 3 && llvm::all_of(units, [](int64_t n) { return n >= 1 && n <= most; });
}
static bool hasIndices(Region &body, size_t count) {
  return body.getNumArguments() == count &&
         llvm::all_of(body.getArgumentTypes(), [](Type type) { return type.isIndex(); });
}

LogicalResult ScheduledGraphOp::verifyRegions() {
  if ((getName() != "init" && getName() != "main") || !isGrid(getUnits()))
    return emitOpError("C1: is \"init\" or \"main\", over one unit or more");
  if (!hasIndices(getBody(), getUnits().size()))
    return emitOpError("C1: has an index for each dim of its units");
  std::set<std::tuple<StringRef, StringRef, int64_t>> queues;
  std::set<uint64_t> registers;
  for (Operation &op : getBody().front()) {
    if (auto queue = dyn_cast<DispatchQueueOp>(op)) {
      if (!queues.insert({queue.getUnit(), queue.getEngine(), queue.getIndex()}).second)
        return op.emitOpError("C2: a second queue ") << queue.getIndex() << " of " << queue.getEngine();
    } else if (auto token = dyn_cast<TokenOp>(op)) {
      if (isUsed(token, true) && !isUsed(token, false) && !token.getCredits())
        return op.emitOpError("C3: is waited for, but nothing signals it");
    } else if (auto reg = dyn_cast<RegisterOp>(op)) {
      size_t count = reg.getValues().size();
      if ((count != 1 && count != static_cast<size_t>(unitCount())) || !registers.insert(reg.getNumber()).second)
        return op.emitOpError("C4: is the only one of register ")
               << reg.getNumber() << ", with one value or " << unitCount();
    } else if (!isa<RingOp>(op)) {
      return op.emitOpError("C2: does not stand in a queue");
    }
  }
  return failure(failed(verifyTokensFit(*this)) || failed(verifyRings(*this)));
}

LogicalResult TokenOp::verify() {
  if (static_cast<int64_t>(getCredits()) < 0)
    return emitOpError("C2: has ") << static_cast<int64_t>(getCredits()) << " credits";
  const UnitModel *home = homeOf(*this);
  if (const DeviceModel *model = modelOf(*this); !home && model)
    return emitOpError("C1: the device has no units of class ")
           << getHome().value_or("any") << "; it has " << model->unitNames();
  if (home && home->tokens < 1)
    return emitOpError("C1: units of class ") << home->name << " hold no tokens";
  return success();
}

ArrayRef<int64_t> DispatchQueueOp::grid() {
  return getUnits() ? *getUnits() : cast<ScheduledGraphOp>((*this)->getParentOp()).getUnits();
}

LogicalResult DispatchQueueOp::verifyRegions() {
  const DeviceModel *model = modelOf(*this);
  const UnitModel *unit = model ? model->unit(getUnit()) : nullptr;
  if (!unit)
    return emitOpError("C2: the device has no units of class ")
           << getUnit() << "; it has " << (model ? model->unitNames() : "none");
  const UnitModel::Engine *engine = unit->engine(getEngine());
  if (!engine)
    return emitOpError("C2: ") << getUnit() << " has no queues of " << getEngine() << "; those that have are "
                               << unit->engineNames();
  if (int64_t index = getIndex(); index < 0 || index >= engine->queues)
    return emitOpError("C2: there is no queue ") << index << ", " << getEngine() << " has " << engine->queues;
  if (getUnits() && !model->arrays)
    return emitOpError("C3: has a grid of units, queues of the device have that of their graph");
  if ((getUnits() && !isGrid(*getUnits())) || !hasIndices(getBody(), getUnits() ? getUnits()->size() : 0))
    return emitOpError("C3: has a grid of one unit or more, and an index for each dim of it");
  for (Operation &op : getBody().front())
    if (!isa<TaskGroupOp, LoopOp, FillOp, DrainOp>(op))
      return op.emitOpError("C1: does not stand in a group");
  return success();
}

LogicalResult TaskGroupOp::verifyRegions() {
  Operation *parent = (*this)->getParentOp();
  while (isa<LoopOp>(parent))
    parent = parent->getParentOp();
  if (!isa<DispatchQueueOp>(parent))
    return emitOpError("C1: stands in no queue");
  for (Operation &op : getBody().front())
    if (!isTask(&op) && !isa<LoopOp>(op))
      return op.emitOpError("C2: is no task");
  return verifyCounts(*this);
}

LogicalResult LoopOp::verify() {
  bool inGroup = isAmongTasks(*this);
  if (!inGroup && !(*this)->getParentOfType<DispatchQueueOp>())
    return emitOpError("C1: stands in no queue");
  if (getTimes().getNumResults() != 1 || getTimes().getNumDims() != getIndices().size() || getTimes().getNumSymbols())
    return emitOpError("C1: needs one number of trips");
  for (Operation &op : getBody().front())
    if (!isa<LoopOp>(op) && !(inGroup ? isTask(&op) : isa<TaskGroupOp, FillOp, DrainOp>(op)))
      return failed(verifySlots(&op, op.getOperands())) ? failure() : op.emitOpError("does not stand in this loop");
  return success();
}

LogicalResult TaskBarrierOp::verify() {
  if (!(*this)->getParentOfType<TaskGroupOp>())
    return emitOpError("C1: stands in no group");
  if (getWait().empty() && getSignal().empty() && !getScope())
    return emitOpError("C2: neither waits nor signals nor meets");
  if (getScope().has_value() != getQueues().has_value() || (getId() && !getScope()))
    return emitOpError("C2: scope and queues come together");
  const DeviceModel *model = modelOf(*this);
  if (getScope() && model && !llvm::is_contained(model->scopes, *getScope()))
    return emitOpError("C4: the device has no scope \"")
           << *getScope() << "\"; it has " << llvm::join(model->scopes, ", ");
  return verifyCounts(*this);
}
