//===- TopK.cpp - the k best elements of a line -------------------------------===//
//
// The best k so far stay sorted in scratch. An element that is not better than the last of them costs
// one comparison; another one is put in its place from the end, after those equal to it, so that of
// equal elements the lower index comes first.
//
//===----------------------------------------------------------------------===//

#include "Select.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

/// k
static Dim sizeOf(dmir::TopKOp op) { return dmir::dimOf(op.getValues(), op.getAxis()); }

TopKPlan dmxc::cpu::planTopK(const RegionBody &body) {
  auto op = cast<dmir::TopKOp>(body.root);
  TopKPlan plan;
  SmallVector<Dim> dims = dmir::dimsOf(op.getInput());
  double line = nominal(body.block, dims[op.getAxis()]), k = nominal(body.block, sizeOf(op));
  dims.erase(dims.begin() + op.getAxis());
  dims.push_back(1);
  plan.work = planWork(body.block, dims, 2.0 * line + 0.5 * k * k + 10);
  plan.scratch = sizeOf(op) * 16;
  return plan;
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
  /// i1: x comes before y (strictly).
  Value before(Value x, Value y);
  Value valueAt(Value i) { return b.load(compute, b.scratch(), i); }
  void put(Value i, Value value, Value index) {
    b.store(value, b.scratch(), i);
    b.store(index, indices, i);
  }
  void insert(Value value, Value index, Value filled);

  KernelBuilder &b;
  ElementExpr e;
  const RegionBody &body;
  dmir::TopKOp op;
  Type element, compute;
  Value indices; ///< of the best, behind the values in scratch
};

Value TopKEmitter::before(Value x, Value y) {
  bool largest = op.getLargest();
  if (!mlir::isa<FloatType>(element)) {
    bool isUnsigned = isUnsignedElement(element);
    using P = arith::CmpIPredicate;
    return arith::CmpIOp::create(b, largest ? (isUnsigned ? P::ugt : P::sgt) : (isUnsigned ? P::ult : P::slt), x, y);
  }
  // NaN is above every number: before(x, y) = high > low, where a NaN on the high side wins over a number.
  Value high = largest ? x : y, low = largest ? y : x;
  Value greater = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, high, low);
  Value highNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, high, high);
  Value lowNumber = arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, low, low);
  return arith::OrIOp::create(b, greater, arith::AndIOp::create(b, highNaN, lowNumber));
}

/// Moves those that come after `value` back by one, from position `filled` on, and puts it there.
void TopKEmitter::insert(Value value, Value index, Value filled) {
  auto loop = scf::WhileOp::create(
      b, TypeRange(filled.getType()), ValueRange(filled),
      [&](OpBuilder &, Location, ValueRange at) {
        // at > 0 and before(value, best[at - 1]); position 0 stands in where there is none
        Value some = b.cmp(arith::CmpIPredicate::sgt, at[0], b.idx(0));
        Value previous = b.maxS(b.addC(at[0], -1), b.idx(0));
        Value moves = arith::AndIOp::create(b, some, before(value, valueAt(previous)));
        scf::ConditionOp::create(b, moves, at);
      },
      [&](OpBuilder &, Location, ValueRange at) {
        Value previous = b.addC(at[0], -1);
        put(at[0], valueAt(previous), b.load(b.getI64Type(), indices, previous));
        scf::YieldOp::create(b, ValueRange(previous));
      });
  b.setInsertionPointAfter(loop);
  put(loop.getResult(0), value, index);
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
  if (k.is(0))
    return;
  b.forLoop(b.idx(0), b.idx(size), b.idx(1), [&](Value i) {
    e.forget();
    Value value = e.evaluateWide(op.getInput(), indexAt(i));
    // Until k are there each is put in; then only what comes before the last one, which falls out.
    Value full = b.cmp(arith::CmpIPredicate::sge, i, b.idx(k));
    Value last = valueAt(b.idx(Dim::max(k - 1, 0)));
    Value notFull = arith::XOrIOp::create(b, full, b.constantInt(b.getI1Type(), 1));
    Value takes = arith::OrIOp::create(b, notFull, before(value, last));
    if (!k.isStatic()) // of none nothing is kept
      takes = arith::AndIOp::create(b, takes, b.cmp(arith::CmpIPredicate::sgt, b.idx(k), b.idx(0)));
    b.ifThen(takes, [&] { insert(value, i, b.minS(i, b.idx(k - 1))); });
  });
  unsigned first = body.block->getNumArguments();
  b.forLoop(b.idx(0), b.idx(k), b.idx(1), [&](Value i) {
    Value value = e.narrow(valueAt(i), element);
    e.store(value, b.buffer(first), body.resultType(0), indexAt(i));
    e.store(b.load(b.getI64Type(), indices, i), b.buffer(first + 1), body.resultType(1), indexAt(i));
  });
}

} // namespace

void dmxc::cpu::emitTopK(KernelBuilder &b, const RegionBody &body, const TopKPlan &plan) {
  TopKEmitter emitter(b, body);
  emitItems(b, plan.work, [&](ArrayRef<Value> outer, Value, Value) { emitter.line(outer); });
}
