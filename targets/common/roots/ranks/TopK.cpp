//===- TopK.cpp - the k best elements of a line -------------------------------===//
//
// Elements that are no ranks, of a size that a run brings or wider than 32 bits: the best k so far are a heap in
// scratch, the last of them at its root: an element that is not better costs one comparison, another one takes the
// root's place. At the end the heap is sorted from its back. Of equal elements the one with the lower index comes
// first.
//
//===----------------------------------------------------------------------===//

#include "TopKOfRanks.h"
#include "TopKOfTeam.h"
#include "targets/common/roots/KernelTable.h"
#include "targets/common/roots/Loops.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

/// k
static Dim sizeOf(dmir::TopKOp op) { return dmir::dimOf(op.getValues(), op.getAxis()); }

Value dmxc::kernels::comesBefore(KernelBuilder &b, dmir::TopKOp op, Value x, Value y) {
  Type element = getElementTypeOrSelf(op.getInput().getType());
  bool largest = op.getLargest();
  if (!mlir::isa<FloatType>(element)) {
    bool isUnsigned = isUnsignedElement(element);
    using P = arith::CmpIPredicate;
    return arith::CmpIOp::create(b, largest ? (isUnsigned ? P::ugt : P::sgt) : (isUnsigned ? P::ult : P::slt), x, y);
  }
  // before(x, y) = high > low, where a NaN on the high side wins over a number.
  Value high = largest ? x : y, low = largest ? y : x;
  Value greater = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, high, low);
  Value highNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, high, high);
  Value lowNumber = arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, low, low);
  return arith::OrIOp::create(b, greater, arith::AndIOp::create(b, highNaN, lowNumber));
}

namespace {

class TopKEmitter {
public:
  TopKEmitter(KernelBuilder &b, const RegionBody &body)
      : b(b), e(b, body.block), body(body), op(cast<dmir::TopKOp>(body.root)),
        element(getElementTypeOrSelf(op.getInput().getType())), compute(e.computed(element)) {
    indices = b.elementPtr(b.getI64Type(), b.scratch(), b.idx(sizeOf(op)));
  }

  void line(ArrayRef<Value> others);

private:
  /// An element in scratch or on its way there.
  struct Entry {
    Value value, index;
  };
  /// i1: x comes before y (strictly).
  Value before(Value x, Value y) { return comesBefore(b, op, x, y); }
  /// The same where of equal values the one of the lower index comes first.
  Value outranks(const Entry &x, const Entry &y);
  Entry entryAt(Value i) { return {b.load(compute, b.scratch(), i), b.load(b.getI64Type(), indices, i)}; }
  void put(Value i, const Entry &entry) {
    b.store(entry.value, b.scratch(), i);
    b.store(entry.index, indices, i);
  }
  void sink(const Entry &entry, Value from, Value size);
  void scan(Value k, llvm::function_ref<Entry(Value)> elementAt, Value size);
  void sort(Value k);

  KernelBuilder &b;
  ElementExpr e;
  const RegionBody &body;
  dmir::TopKOp op;
  Type element, compute;
  Value indices; ///< of the best, behind the values in scratch
};

Value TopKEmitter::outranks(const Entry &x, const Entry &y) {
  Value lower = b.cmp(arith::CmpIPredicate::slt, x.index, y.index);
  Value no = b.constantInt(b.getI1Type(), 0);
  Value notAfter = b.cmp(arith::CmpIPredicate::eq, before(y.value, x.value), no);
  return arith::OrIOp::create(b, before(x.value, y.value), arith::AndIOp::create(b, notAfter, lower));
}

/// Puts an entry into the heap of the first `size` places, of which place `from` is free: lower ones that it outranks
/// move up.
void TopKEmitter::sink(const Entry &entry, Value from, Value size) {
  Value last = b.addC(size, -1);
  auto loop = scf::WhileOp::create(
      b, TypeRange{from.getType(), from.getType()}, ValueRange(from),
      [&](OpBuilder &, Location, ValueRange at) {
        // The one of the two places below that is outranked; a last place without a neighbour is its own.
        Value left = b.addC(b.mulC(at[0], 2), 1), some = b.cmp(arith::CmpIPredicate::slt, left, size);
        Value one = b.minS(left, last), other = b.minS(b.addC(left, 1), last);
        Entry first = entryAt(one), second = entryAt(other);
        Value isSecond = outranks(first, second);
        auto choose = [&](Value x, Value y) -> Value { return arith::SelectOp::create(b, isSecond, x, y); };
        Entry worse{choose(second.value, first.value), choose(second.index, first.index)};
        Value moves = arith::AndIOp::create(b, some, outranks(entry, worse));
        scf::ConditionOp::create(b, moves, ValueRange{at[0], choose(other, one)});
      },
      [&](OpBuilder &, Location, ValueRange at) {
        put(at[0], entryAt(at[1]));
        scf::YieldOp::create(b, ValueRange(at[1]));
      });
  b.setInsertionPointAfter(loop);
  put(loop.getResult(0), entry);
}

/// Leaves the best k of a line of `size` elements, k at least 1, as a heap.
void TopKEmitter::scan(Value k, llvm::function_ref<Entry(Value)> elementAt, Value size) {
  Value zero = b.idx(0), one = b.idx(1);
  b.forLoop(zero, k, one, [&](Value i) { put(i, elementAt(i)); });
  Value inner = b.floorDiv(k, b.idx(2)); // places with others below them
  b.forLoop(zero, inner, one, [&](Value i) {
    Value place = b.sub(b.addC(inner, -1), i);
    sink(entryAt(place), place, k);
  });
  b.forLoop(k, size, one, [&](Value i) {
    Entry entry = elementAt(i);
    b.ifThen(before(entry.value, entryAt(zero).value), [&] { sink(entry, zero, k); });
  });
}

/// Takes the root, the last of those that are left, to the end again and again.
void TopKEmitter::sort(Value k) {
  b.forLoop(b.idx(1), k, b.idx(1), [&](Value i) {
    Value end = b.sub(k, i);
    Entry root = entryAt(b.idx(0)), moved = entryAt(end);
    put(end, root);
    sink(moved, b.idx(0), end);
  });
}

void TopKEmitter::line(ArrayRef<Value> others) {
  int64_t axis = op.getAxis();
  Dim k = sizeOf(op), size = dmir::dimOf(op.getInput(), axis);
  auto indexAt = [&](Value position) {
    Indices index;
    for (Value other : others)
      index.push_back(e.at(other));
    index.insert(index.begin() + axis, e.at(position));
    return index;
  };
  auto elementAt = [&](Value i) -> Entry {
    e.forget();
    return {e.evaluateWide(op.getInput(), indexAt(i)), i};
  };
  if (k.is(0))
    return;
  auto select = [&] {
    scan(b.idx(k), elementAt, b.idx(size));
    sort(b.idx(k));
  };
  if (k.isStatic())
    select();
  else // of none nothing is kept
    b.ifThen(b.cmp(arith::CmpIPredicate::sgt, b.idx(k), b.idx(0)), select);
  unsigned first = body.block->getNumArguments();
  b.forLoop(b.idx(0), b.idx(k), b.idx(1), [&](Value i) {
    Entry entry = entryAt(i);
    e.store(e.narrow(entry.value, element), b.buffer(first), body.resultType(0), indexAt(i));
    e.store(entry.index, b.buffer(first + 1), body.resultType(1), indexAt(i));
  });
}

} // namespace

/// One work item is a number of lines along the axis. Producers may be fused.
static Result<KernelPlan> planTopK(const RegionBody &body, const PlanRequest &request) {
  if (std::optional<KernelPlan> shared = planTopKOfTeam(body, request))
    return std::move(*shared);
  if (std::optional<KernelPlan> ranks = planTopKOfRanks(body, request))
    return std::move(*ranks);
  auto op = cast<dmir::TopKOp>(body.root);
  SmallVector<Dim> dims = dmir::dimsOf(op.getInput());
  double line = nominal(body.block, dims[op.getAxis()]), k = nominal(body.block, sizeOf(op));
  dims.erase(dims.begin() + op.getAxis());
  dims.push_back(1);
  WorkPlan work = request.nominal.planWork(body.block, dims, 2.0 * line + 5.0 * k * std::log2(k + 1) + 10);
  KernelPlan plan("top-k", work);
  plan.scratch = sizeOf(op) * 16; // the best k values and their indices
  plan.emit = [body, work](KernelBuilder &b) {
    TopKEmitter emitter(b, body);
    emitItems(b, work, [&](ArrayRef<Value> outer, Value, Value) { emitter.line(outer); });
  };
  return plan;
}

void dmxc::kernels::registerTopK(KernelTable &table) { table.add<dmir::TopKOp>({.plan = planTopK}); }
