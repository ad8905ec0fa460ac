//===- DeviceTasks.cpp - tasks that every device has: copies --------------===//
#include "Channels.h"
#include "Rings.h"
#include "TokenCounts.h"

#include "dmxc/Dialect/DLIR/TaskSyntax.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dmxc::dlir;

#include "dmxc/Dialect/DLIR/DLIRDeviceInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "dmxc/Dialect/DLIR/DLIRDeviceOps.cpp.inc"

//===--- what all tasks keep ----------------------------------------------------------===//

/// Loop counters, registers and the unit's place.
static bool isIndexSource(Value index) {
  if (auto argument = dyn_cast<BlockArgument>(index))
    return isa<LoopOp, DispatchQueueOp, ScheduledGraphOp>(argument.getOwner()->getParentOp());
  return index.getDefiningOp<RegisterOp>() != nullptr;
}

static LogicalResult verifyBuffers(const TaskParts &task) {
  const DeviceModel *model = modelOf(task.op);
  if (task.places.size() != task.buffers.size())
    return task.op->emitOpError("needs a place for each buffer");
  if (!llvm::all_of(task.buffers,
                    [](Value buffer) { return isa_and_present<MemoryOp, RingOp>(buffer.getDefiningOp()); }) ||
      (task.descriptor && !task.descriptor.getDefiningOp<DescriptorOp>()))
    return task.op->emitOpError("has a buffer or descriptor that the program does not declare");
  for (Value buffer : task.buffers)
    if (!model || !model->memory(memoryOf(buffer)))
      return task.op->emitOpError("has a buffer in ") << memoryOf(buffer) << ", which is no memory of the device";
  return success();
}

LogicalResult dmxc::dlir::verifyTask(const TaskParts &task, StringRef several, unsigned results) {
  if (failed(verifySlots(task.op, task.buffers)))
    return failure();
  if (!isAmongTasks(task.op))
    return task.op->emitOpError("stands in no group of a queue");
  if (failed(verifyBuffers(task)))
    return failure();
  if (!llvm::all_of(task.indices, isIndexSource))
    return task.op->emitOpError("has a place that is not of loop counters, registers and the unit's place");
  auto fits = [&](Attribute attribute, unsigned results) {
    AffineMap map = cast<AffineMapAttr>(attribute).getValue();
    return map.getNumResults() == results && map.getNumDims() == task.indices.size() && !map.getNumSymbols();
  };
  for (Attribute place : task.places)
    if (!fits(place, 1))
      return task.op->emitOpError("needs one expression for a place");
  for (NamedAttribute named : task.op->getAttrs())
    if (isa<AffineMapAttr>(named.getValue()) && !fits(named.getValue(), named.getName() == several ? results : 1))
      return task.op->emitOpError("has the wrong number of expressions in '") << named.getName().getValue() << "'";
  return success();
}

//===--- copies with both ends --------------------------------------------------------===//

namespace {

constexpr StringLiteral kCopyPlaces[] = {"", "to"}, kPutPlaces[] = {""}, kGetPlaces[] = {"to"};
constexpr Clause kCopy[] = {{"units", Clause::Integer},
                            {"subunits", Clause::Integer},
                            {"rows", Clause::Map},
                            {"count", Clause::Map},
                            {"peers", Clause::Map}};
constexpr Clause kEnd[] = {{"units", Clause::Integer}, {"count", Clause::Map}};
constexpr TaskSyntax kCopySyntax{TaskSyntax::Route, "", kCopyPlaces, kCopy};
constexpr TaskSyntax kPutSyntax{TaskSyntax::Symbol, "channel", kPutPlaces, kEnd, "element"};
constexpr TaskSyntax kGetSyntax{TaskSyntax::Symbol, "channel", kGetPlaces, kEnd, "element"};

} // namespace

DMXC_TASK_SYNTAX(DmaCopyOp, kCopySyntax)
DMXC_TASK_SYNTAX(PutOp, kPutSyntax)
DMXC_TASK_SYNTAX(GetOp, kGetSyntax)

/// "A, B": where copies from a memory go; or "no copies".
static std::string movesOf(const MemoryModel &memory) {
  std::string moves = llvm::join(llvm::map_range(memory.moves, [](const MemoryModel::Move &m) { return m.to; }), ", ");
  return moves.empty() ? "no copies" : moves;
}

/// C6: what copies at an end in this memory walk over.
static LogicalResult verifyWalk(Operation *op, DescriptorOp descriptor, ArrayRef<int64_t> steps,
                                const MemoryModel &memory) {
  auto over = [&](const char *what, int64_t number, int64_t most) {
    return op->emitOpError("C6: its descriptor ")
           << what << " " << number << ", copies at an end in " << memory.name << " at most " << most;
  };
  if (memory.descriptorDims && descriptor.getDims().size() > memory.descriptorDims)
    return over("has dims", static_cast<int64_t>(descriptor.getDims().size()), memory.descriptorDims);
  for (int64_t count : descriptor.getDims())
    if (memory.largestCount && count > memory.largestCount)
      return over("counts", count, memory.largestCount);
  for (int64_t step : steps)
    if (memory.largestStep && (step > memory.largestStep || step < -memory.largestStep))
      return over("steps over", step, memory.largestStep);
  if (!memory.padding && (descriptor.getLow() || descriptor.getHigh()))
    return op->emitOpError("C6: its descriptor has items that do not exist, which copies at an end in ")
           << memory.name << " do not make";
  return success();
}

/// C5 and C6: what a copy touches at one end.
static LogicalResult verifyTouched(Operation *op, Attribute place, DescriptorOp descriptor, ArrayRef<int64_t> steps,
                                   const MemoryModel &memory) {
  if (failed(verifyWalk(op, descriptor, steps, memory)))
    return failure();
  auto says = [&](StringRef what) {
    return op->emitOpError("C5: ") << what << " in " << memory.name << " is no multiple of " << memory.element
                                   << " bytes, which copies cannot divide";
  };
  if (memory.element == 1)
    return success();
  if (!cast<AffineMapAttr>(place).getValue().getResult(0).isMultipleOf(memory.element))
    return says("its place");
  if (llvm::any_of(steps, [&](int64_t step) { return step % memory.element; }))
    return says("a step of its descriptor");
  return success();
}

LogicalResult DmaCopyOp::verify() {
  if (failed(verifyTask(partsOf(*this), "rows")))
    return failure();
  const DeviceModel &model = *modelOf(*this);
  const MemoryModel *source = model.memory(getFrom()), *target = model.memory(getTo());
  if (!source || !target)
    return emitOpError("C1: the device has no memory ")
           << (source ? getTo() : getFrom()) << "; it has " << model.memoryNames();
  const MemoryModel::Move *move = source->moveTo(target->name);
  if (!move)
    return emitOpError("C1: the device does not move from ")
           << getFrom() << " to " << getTo() << "; from " << getFrom() << " go " << movesOf(*source);
  if (getBuffers().size() != 2 || memoryOf(getBuffers()[0]) != getFrom() || memoryOf(getBuffers()[1]) != getTo())
    return emitOpError("C2: its buffers do not lie in ") << getFrom() << " and " << getTo();
  if (!getDescriptor())
    return emitOpError("C3: needs a descriptor");
  if (getSubunits() && !target->subunits)
    return emitOpError("C4: ") << getTo() << " has no subunits";
  if (getPeers() && !move->toPeers)
    return emitOpError("C4: no copy from ") << getFrom() << " to " << getTo() << " reaches other units of the graph";
  auto descriptor = getDescriptor().getDefiningOp<DescriptorOp>();
  TaskParts parts = partsOf(*this);
  return success(succeeded(verifyTouched(*this, parts.places[0], descriptor, descriptor.getSource(), *source)) &&
                 succeeded(verifyTouched(*this, parts.places[1], descriptor, descriptor.getTarget(), *target)));
}

//===--- copies with one end ----------------------------------------------------------===//

template <typename OpTy> static LogicalResult verifyEnd(OpTy op) {
  auto program = op->template getParentOfType<DeviceProgramOp>();
  auto channel = dyn_cast_or_null<ChannelOp>(program ? program.lookupSymbol(op.getChannelAttr().getAttr()) : nullptr);
  if (!channel)
    return op.emitOpError("C1: there is no channel ") << op.getChannelAttr();
  unsigned rank = op.getElement() ? op.getElement()->getNumResults() : 0;
  if (failed(verifyTask(partsOf(op), "element", rank)) ||
      failed(verifyElement(op, channel, op.getElementAttr(), op.getIndices())))
    return failure();
  if (op.getBuffers().size() != 1 || !op.getDescriptor())
    return op.emitOpError("C2: has one buffer and a descriptor");
  auto descriptor = op.getDescriptor().template getDefiningOp<DescriptorOp>();
  return verifyTouched(op, partsOf(op).places[0], descriptor,
                       isa<PutOp>(op) ? descriptor.getSource() : descriptor.getTarget(),
                       *modelOf(op)->memory(memoryOf(op.getBuffers()[0])));
}

LogicalResult PutOp::verify() { return verifyEnd(*this); }
LogicalResult GetOp::verify() { return verifyEnd(*this); }
