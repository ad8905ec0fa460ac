//===- Names.cpp - names of values in DLIR's texts ------------------------===//
//
// A buffer, a memory and a ring have their own names, a descriptor that of its kinds, a register its number, a token
// the name of the group that gives it, a task's token that of the model's node.
//
//===----------------------------------------------------------------------===//
#include "Names.h"

#include "dmxc/Dialect/DLIR/Device.h"
#include "dmxc/Dialect/DMIR/Names.h"

using namespace mlir;
using namespace dmxc::dlir;
using dmxc::dmir::NamesArguments;
using dmxc::dmir::NamesResults;
using dmxc::dmir::valueName;

//===--- programs ---------------------------------------------------------------------===//

static void nameBuffer(BufferOp op, OpAsmSetValueNameFn setName) {
  setName(op.getResult(), valueName(op.getName(), stringifyBufferKind(op.getKind())));
}

/// By the first of the model's nodes that the task computes.
template <typename Task> static void nameDone(Task task, OpAsmSetValueNameFn setName) {
  StringRef node;
  if (!task.getNodes().empty())
    if (auto text = dyn_cast<StringAttr>(task.getNodes()[0]))
      node = text;
  setName(task.getDone(), valueName(node, task->getName().stripDialect()) + "_done");
}

//===--- programs of devices ------------------------------------------------------------===//

static void nameMemory(MemoryOp op, OpAsmSetValueNameFn setName) {
  setName(op.getResult(), valueName(op.getName(), "memory"));
}

static void nameRing(RingOp op, OpAsmSetValueNameFn setName) {
  setName(op.getResult(), valueName(op.getName(), "slots") + "_ring");
}

static void nameDescriptor(DescriptorOp op, OpAsmSetValueNameFn setName) {
  std::string kinds = op.getKind().str() + (op.getTo() ? "_to_" + op.getTo()->str() : "");
  setName(op.getResult(), valueName(kinds, "descriptor"));
}

static void nameRegister(RegisterOp op, OpAsmSetValueNameFn setName) {
  setName(op.getResult(), "r" + std::to_string(op.getNumber()));
}

/// Whether `a` comes before `b`, of two ops of one graph.
static bool comesBefore(Operation *a, Operation *b) {
  for (; a; a = a->getParentOp())
    if (Operation *other = a->getBlock()->findAncestorOpInBlock(*b))
      return a != other && a->isBeforeInBlock(other);
  return false;
}

static bool isSignalledBy(Value token, Operation *op) {
  if (auto group = dyn_cast<TaskGroupOp>(op))
    return llvm::is_contained(group.getSignal(), token);
  auto barrier = dyn_cast<TaskBarrierOp>(op);
  return barrier && llvm::is_contained(barrier.getSignal(), token);
}

/// The first group that signals it, itself or by a barrier in it; the order of users in memory is another one.
static void nameToken(TokenOp op, OpAsmSetValueNameFn setName) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers())
    if (isSignalledBy(op.getResult(), user) && (!first || comesBefore(user, first)))
      first = user;
  while (first && !isa<TaskGroupOp>(first))
    first = first->getParentOp();
  setName(op.getResult(), valueName(first ? cast<TaskGroupOp>(first).getName() : "", "token"));
}

template <typename Grid> static void namePlace(Grid op, OpAsmSetValueNameFn setName) {
  for (BlockArgument place : op.getBody().getArguments())
    setName(place, "unit");
}

/// %i, and %j, %k .. of what is inside.
static void nameIndex(LoopOp op, OpAsmSetValueNameFn setName) {
  int depth = 0;
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    depth += isa<LoopOp>(parent);
  for (BlockArgument index : op.getBody().getArguments())
    setName(index, std::string(1, static_cast<char>('i' + std::min(depth, 5))));
}

void dmxc::dlir::nameValues(MLIRContext &context) {
  BufferOp::attachInterface<NamesResults<BufferOp, nameBuffer>>(context);
  DispatchOp::attachInterface<NamesResults<DispatchOp, nameDone<DispatchOp>>>(context);
  CopyOp::attachInterface<NamesResults<CopyOp, nameDone<CopyOp>>>(context);
  IfOp::attachInterface<NamesResults<IfOp, nameDone<IfOp>>>(context);
  WhileOp::attachInterface<NamesResults<WhileOp, nameDone<WhileOp>>>(context);
  MemoryOp::attachInterface<NamesResults<MemoryOp, nameMemory>>(context);
  RingOp::attachInterface<NamesResults<RingOp, nameRing>>(context);
  DescriptorOp::attachInterface<NamesResults<DescriptorOp, nameDescriptor>>(context);
  RegisterOp::attachInterface<NamesResults<RegisterOp, nameRegister>>(context);
  TokenOp::attachInterface<NamesResults<TokenOp, nameToken>>(context);
  ScheduledGraphOp::attachInterface<NamesArguments<ScheduledGraphOp, namePlace<ScheduledGraphOp>>>(context);
  DispatchQueueOp::attachInterface<NamesArguments<DispatchQueueOp, namePlace<DispatchQueueOp>>>(context);
  LoopOp::attachInterface<NamesArguments<LoopOp, nameIndex>>(context);
}
