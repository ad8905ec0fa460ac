//===- VerifyProgram.cpp - overlap and hazard rules of dlir.program -------===//
#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Model.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace dmxc::dlir;

namespace {

/// One task's view of memory.
struct Task {
  Operation *op;
  SmallVector<BufferOp> reads, writes;
  ValueRange after;
};

/// The tasks of a program in issue order, with what must be done before each.
struct Order {
  std::vector<Task> tasks;
  std::vector<llvm::BitVector> before; ///< before[t][s]: s is complete when t starts
  bool ordered(unsigned a, unsigned b) const { return before[b].test(a) || before[a].test(b); }
};

SmallVector<BufferOp> definitions(ValueRange values) {
  SmallVector<BufferOp> buffers;
  for (Value value : values)
    buffers.push_back(value.getDefiningOp<BufferOp>());
  return buffers;
}

FailureOr<Order> collect(ProgramOp program) {
  Order order;
  llvm::DenseMap<Value, unsigned> taskOf;
  for (Operation &op : program.getBody().front()) {
    if (isa<BufferOp>(op)) {
      if (!order.tasks.empty())
        return op.emitOpError("C1: comes after a task");
      continue;
    }
    auto inner = dyn_cast<TaskInterface>(op);
    if (!inner)
      return op.emitOpError("is neither a buffer nor a task");
    Task task{&op, definitions(inner.reads()), definitions(inner.writes()), inner.getAfter()};
    if (llvm::is_contained(task.reads, BufferOp()) || llvm::is_contained(task.writes, BufferOp()))
      return op.emitOpError("C1: reads or writes what is no dlir.buffer");
    llvm::BitVector done(order.tasks.size());
    for (Value token : task.after) {
      auto known = taskOf.find(token); // not yet dominated by it: MLIR looks at that later
      if (known == taskOf.end())
        return op.emitOpError("C2: waits for a task that does not stand before it");
      unsigned index = known->second;
      done |= order.before[index];
      done.resize(order.tasks.size());
      done.set(index);
    }
    taskOf[op.getResult(0)] = order.tasks.size();
    order.before.push_back(std::move(done));
    order.tasks.push_back(std::move(task));
    for (llvm::BitVector &bits : order.before)
      bits.resize(order.tasks.size());
  }
  return order;
}

/// C3: two tasks that touch the same bytes, one writing, are ordered.
LogicalResult verifyHazards(const Order &order) {
  auto conflict = [](ArrayRef<BufferOp> a, ArrayRef<BufferOp> b) -> BufferOp {
    for (BufferOp x : a)
      for (BufferOp y : b)
        if (byteRange(x).overlaps(byteRange(y)))
          return x;
    return nullptr;
  };
  for (unsigned b = 0; b < order.tasks.size(); ++b)
    for (unsigned a = 0; a < b; ++a) {
      if (order.ordered(a, b))
        continue;
      const Task &s = order.tasks[a], &t = order.tasks[b];
      BufferOp shared = conflict(s.writes, t.writes);
      shared = shared ? shared : conflict(s.writes, t.reads);
      shared = shared ? shared : conflict(s.reads, t.writes);
      if (shared)
        return t.op->emitOpError("C3: touches the bytes of '")
               << shared.getName() << "' without waiting for an earlier task that does";
    }
  return success();
}

/// First and last access of each arena buffer, aliases counted with their base.
struct Lifetime {
  SmallVector<unsigned> accesses;
};

/// C2: of two overlapping arena buffers, one is dead before the other is born. A task may end one and begin
/// the other (an in-place result).
LogicalResult verifyOverlaps(const Order &order) {
  llvm::MapVector<Operation *, Lifetime> lives;
  for (unsigned t = 0; t < order.tasks.size(); ++t)
    for (const auto &list : {order.tasks[t].reads, order.tasks[t].writes})
      for (BufferOp buffer : list) {
        BufferOp base = buffer.getBase() ? buffer.getBase().getDefiningOp<BufferOp>() : buffer;
        if (base.getKind() == BufferKind::arena && base.getSize()) // one without bytes may lie anywhere
          lives[base].accesses.push_back(t);
      }
  auto precedes = [&](const Lifetime &a, const Lifetime &b) {
    for (unsigned s : a.accesses)
      for (unsigned t : b.accesses)
        if (s != t && !order.before[t].test(s))
          return false;
    return true;
  };
  for (auto i = lives.begin(); i != lives.end(); ++i)
    for (auto j = lives.begin(); j != i; ++j) {
      auto a = cast<BufferOp>(i->first), b = cast<BufferOp>(j->first);
      if (byteRange(a).overlaps(byteRange(b)) && !precedes(i->second, j->second) && !precedes(j->second, i->second))
        return a.emitOpError("C2: overlaps '") << b.getName() << "' while both are live";
    }
  return success();
}

/// C4: what callers bind has a name and a type that a bundle can say.
LogicalResult verifyPorts(ProgramOp program, ArrayAttr ports, StringRef what) {
  llvm::StringSet<> names;
  for (auto [index, port] : llvm::enumerate(ports)) {
    auto entry = dyn_cast<DictionaryAttr>(port);
    auto type = entry ? entry.getAs<TypeAttr>("type") : TypeAttr();
    auto tensor = type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
    if (!entry || !entry.getAs<StringAttr>("name") || !tensor || !dmxc::dmir::dtypeOf(tensor.getElementType()))
      return program.emitOpError("C4: ") << what << " " << index << " must be {name, type of a tensor}, not " << port;
    if (StringRef name = entry.getAs<StringAttr>("name").getValue(); !program.getOwned() && !names.insert(name).second)
      return program.emitOpError("C4: two ") << what << "s are named '" << name << "'";
  }
  return success();
}

} // namespace

/// C5: where numbers depend on symbols, there are as many dims as there are numbers.
static LogicalResult verifyDims(DispatchOp dispatch) {
  auto fits = [](Attribute attr, size_t count) {
    auto dims = dyn_cast_or_null<dmxc::dmir::DimsAttr>(attr);
    return !attr || (dims && dims.getDims().size() == count);
  };
  if (!fits(dispatch.getDimsAttr(), 5))
    return dispatch.emitOpError("C5: 'dims' must be #dmir.dims of work, grain, scratch, flops and bytes, not ")
           << dispatch.getDimsAttr();
  size_t symbols = dispatch.getSymbols() ? dispatch.getSymbols()->size() : 0;
  if (!fits(dispatch.getMaxAttr(), symbols))
    return dispatch.emitOpError("C5: 'max' must be #dmir.dims of the ")
           << symbols << " symbols' bounds, not " << dispatch.getMaxAttr();
  return success();
}

LogicalResult ProgramOp::verify() {
  if (getBody().front().getNumArguments())
    return emitOpError("C1: a program's buffers are those of dlir.buffer, it takes none");
  for (auto dispatch : getBody().getOps<DispatchOp>())
    if (failed(verifyDims(dispatch)))
      return failure();
  for (Attribute arena : getArenas())
    if (!dmxc::dmir::isArena(arena))
      return emitOpError("C4: an arena must be {size, lower_bound}, and a unit where they are multiples of it, not ")
             << arena;
  return failure(failed(verifyPorts(*this, getInputs(), "input")) ||
                 failed(verifyPorts(*this, getOutputs(), "output")));
}

LogicalResult ProgramOp::verifyRegions() {
  FailureOr<Order> order = collect(*this);
  if (failed(order) || failed(verifyHazards(*order)))
    return failure();
  return verifyOverlaps(*order);
}
