//===- DeviceOps.cpp - rules of a device's programs -----------------------===//
#include "dmxc/Dialect/DLIR/DLIR.h"

#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/StringSet.h"

#include <set>

using namespace mlir;
using namespace dmxc::dlir;

#include "dmxc/Dialect/DLIR/DLIRDeviceEnums.cpp.inc"

void DLIRDialect::addDeviceOps() {
  addOperations<
#define GET_OP_LIST
#include "dmxc/Dialect/DLIR/DLIRDeviceOps.cpp.inc"
      >();
}

bool dmxc::dlir::canMove(MemoryKind source, MemoryKind target) {
  using M = MemoryKind;
  auto among = [&](std::initializer_list<M> kinds) { return llvm::is_contained(kinds, target); };
  switch (source) {
  case M::DDR:
    return among({M::GM, M::ST});
  case M::GM:
    return among({M::DDR, M::GM, M::ST, M::IB, M::OB, M::WB, M::DRE, M::SIMD});
  case M::ST:
    return among({M::DDR, M::GM, M::IB, M::WB, M::SIMD});
  case M::OB:
    return among({M::GM, M::ST, M::IB, M::DRE, M::SIMD});
  default:
    return false;
  }
}

//===--- the program ------------------------------------------------------------------===//

LogicalResult DmmqOp::verifyRegions() {
  llvm::StringSet<> arguments, memories, graphs;
  std::vector<MemoryOp> fixed;
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
    } else if (!isa<PieceOp, DmaConfigOp, CpuFunctionOp>(op)) {
      return op.emitOpError("C1: does not stand in a dlir.dmmq");
    }
  }
  for (auto [i, a] : llvm::enumerate(fixed))
    for (MemoryOp b : ArrayRef(fixed).take_front(i))
      if (a.getKind() == b.getKind() && *a.getAddress() < *b.getAddress() + b.getSize() &&
          *b.getAddress() < *a.getAddress() + a.getSize())
        return a.emitOpError("C4: overlaps '") << b.getName() << "'";
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
  if (getAddress() && (static_cast<int64_t>(*getAddress()) < 0 || *getAddress() % 64))
    return emitOpError("C2: address ") << static_cast<int64_t>(*getAddress()) << " is not a multiple of 64";
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
  return success();
}

LogicalResult DmaConfigOp::verify() {
  size_t rank = getDims().size();
  if (rank > 4 || llvm::any_of(getDims(), [](int64_t n) { return n < 0; }))
    return emitOpError("C1: has at most four dims, none negative");
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
  return success();
}

//===--- schedules ----------------------------------------------------------------------===//

/// Whether some group or barrier waits for the token, or signals it.
static bool isUsed(TokenOp token, bool wait) {
  return llvm::any_of(token.getResult().getUses(), [&](OpOperand &use) {
    auto among = [&](auto op) { return llvm::is_contained(wait ? op.getWait() : op.getSignal(), token.getResult()); };
    if (auto group = dyn_cast<TaskGroupOp>(use.getOwner()))
      return among(group);
    auto barrier = dyn_cast<TaskBarrierOp>(use.getOwner());
    return barrier && among(barrier);
  });
}

LogicalResult ScheduledGraphOp::verifyRegions() {
  if ((getName() != "init" && getName() != "main") || static_cast<int64_t>(getQuads()) < 1)
    return emitOpError("C1: is \"init\" or \"main\", over one quad or more");
  if (getBody().getNumArguments() != 1 || !getBody().getArgument(0).getType().isIndex())
    return emitOpError("C1: has the quad's number as its argument");
  std::set<uint64_t> queues, registers;
  for (Operation &op : getBody().front()) {
    if (auto queue = dyn_cast<DispatchQueueOp>(op)) {
      if (!queues.insert(queue.getNumber()).second)
        return op.emitOpError("C2: a second queue ") << queue.getNumber();
    } else if (auto token = dyn_cast<TokenOp>(op)) {
      if (isUsed(token, true) && !isUsed(token, false) && !token.getCredits())
        return op.emitOpError("C3: is waited for, but nothing signals it");
    } else if (auto reg = dyn_cast<RegisterOp>(op)) {
      size_t count = reg.getValues().size();
      if ((count != 1 && count != getQuads()) || !registers.insert(reg.getNumber()).second)
        return op.emitOpError("C4: is the only one of register ")
               << reg.getNumber() << ", with one value or " << getQuads();
    } else {
      return op.emitOpError("C2: does not stand in a queue");
    }
  }
  return success();
}

LogicalResult DispatchQueueOp::verifyRegions() {
  if (static_cast<int64_t>(getNumber()) < 0)
    return emitOpError("C2: its number is negative");
  for (Operation &op : getBody().front())
    if (!isa<TaskGroupOp, LoopOp>(op))
      return op.emitOpError("C1: does not stand in a group");
  return success();
}

/// Ops that only stand in groups.
static bool isTask(Operation *op) {
  return isa<DmaCopyOp, DeviceMatmulOp, DeviceConvOp, DeviceSimdOp, DeviceReshapeOp, CpuOp, TaskBarrierOp,
             SignalRemoteOp, WaitRemoteOp, SendOp, ReceiveOp, ResetOp, NopOp>(op);
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
  return success();
}

LogicalResult LoopOp::verify() {
  bool inGroup = (*this)->getParentOfType<TaskGroupOp>() != nullptr;
  if (!inGroup && !(*this)->getParentOfType<DispatchQueueOp>())
    return emitOpError("C1: stands in no queue");
  if (getTimes().getNumResults() != 1 || getTimes().getNumDims() != getIndices().size() || getTimes().getNumSymbols())
    return emitOpError("C1: needs one number of trips");
  for (Operation &op : getBody().front())
    if (!isa<LoopOp>(op) && !(inGroup ? isTask(&op) : isa<TaskGroupOp>(op)))
      return op.emitOpError("does not stand in this loop");
  return success();
}

LogicalResult TaskBarrierOp::verify() {
  if (!(*this)->getParentOfType<TaskGroupOp>())
    return emitOpError("C1: stands in no group");
  if (getWait().empty() && getSignal().empty() && !getScope())
    return emitOpError("C2: neither waits nor signals nor meets");
  if (getScope().has_value() != getQueues().has_value() || (getId() && !getScope()))
    return emitOpError("C2: scope and queues come together");
  return success();
}
