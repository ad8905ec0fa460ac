//===- TopKOfRanks.cpp - the k best elements of a line, as numbers ------------===//
//
// An element's order and place are one number, and no two are equal. Few of many: the best so far are a heap, and of a
// vector of elements one comparison tells that none belongs there. More of them: elements are counted by the first bits
// of their order, those above the bits that hold the k-th best one are collected and sorted digit by digit, in a time
// that does not depend on how they lie.
//
//===----------------------------------------------------------------------===//

#include "TopKOfRanks.h"
#include "Ranks.h"
#include "targets/common/roots/Loops.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

/// Lines that are counted, and the least part of them that pays for it.
static constexpr int64_t kShortest = 512, kLongest = 1 << 18, kFewest = 32, kLeastPart = 128;
/// Bits of an order by which elements are counted, and those of a digit that lists are sorted by.
static constexpr int64_t kCountedBits = 11, kDigitBits = 8, kDigits = 32 / kDigitBits;
static constexpr int64_t kBins = 1 << kCountedBits, kDigitValues = 1 << kDigitBits;
static_assert(kDigits * kDigitValues <= kBins, "the sort counts where the selection did");
/// Orders are stored in whole vectors of at most so many.
static constexpr int64_t kMostLanes = 16;

namespace {

class RanksEmitter {
public:
  RanksEmitter(KernelBuilder &b, const RegionBody &body, bool counts)
      : b(b), e(b, body.block), body(body), op(cast<dmir::TopKOp>(body.root)),
        element(getElementTypeOrSelf(op.getInput().getType())), counts(counts),
        ranks{b, element, /*largest=*/op.getLargest(), /*nanFirst=*/op.getLargest()}, i32(b.getI32Type()),
        i64(b.getI64Type()), zero(b.idx(0)), one(b.idx(1)), k(b.idx(countOf(op))), size(b.idx(sizeOf(op))) {
    lanes = std::min({chooseLanes(op.getInput(), b.processor(), &narrowest), b.processor().lanes(32), kMostLanes});
    if (costAlong(lanes) >= costAlong(1))
      lanes = 1;
    int64_t n = *sizeOf(op).known(), padded = llvm::alignTo(n, kMostLanes);
    orders = b.scratch();
    bins = b.elementPtr(i32, orders, b.idx(counts ? padded : kMostLanes));
    keys = counts ? b.elementPtr(i32, bins, b.idx(kBins)) : bins;
    others = counts ? b.elementPtr(i64, keys, size) : Value();
  }
  static Dim sizeOf(dmir::TopKOp op) { return dmir::dimOf(op.getInput(), op.getAxis()); }
  static Dim countOf(dmir::TopKOp op) { return dmir::dimOf(op.getValues(), op.getAxis()); }
  static int64_t scratchBytes(int64_t size, int64_t k, bool counts) {
    return counts ? 4 * (llvm::alignTo(size, kMostLanes) + kBins) + 16 * size : 4 * kMostLanes + 8 * k;
  }

  void line(ArrayRef<Value> at);

private:
  Indices indexAt(Index position) {
    Indices index;
    for (Value other : outer)
      index.push_back(e.at(other));
    index.insert(index.begin() + static_cast<int64_t>(op.getAxis()), position);
    return index;
  }
  double costAlong(int64_t width) {
    return dryRunCost(body.block, b.processor(), width, [&](ElementExpr &dry, llvm::function_ref<Value()> opaque) {
      Indices index(shapeOf(op.getInput()).size());
      for (Index &one : index)
        one = dry.at(opaque());
      index[op.getAxis()] = dry.at(opaque(), width, width > 1);
      dry.evaluateWide(op.getInput(), index);
    });
  }
  Value orderAt(Index position) {
    e.forget();
    return ranks.orderOf(e.evaluateWide(op.getInput(), indexAt(position)));
  }
  Value keyAt(Value list, Value i) { return b.load(i64, list, i); }
  Value above(Value x, Value y) { return b.cmp(arith::CmpIPredicate::ugt, x, y); }
  void sink(Value key, Value from, Value end);
  void offer(Value order, Value place);
  void offerAll(Index along);
  void heap();
  void count();
  Value collect();
  void countDigits(Value found);
  void sortBy(int64_t digit, Value from, Value to, Value found);
  Value digitOf(Value key, int64_t digit);
  void bump(Value bin) { b.store(arith::AddIOp::create(b, b.load(i32, bins, bin), b.constantInt(i32, 1)), bins, bin); }
  void write();

  KernelBuilder &b;
  ElementExpr e;
  const RegionBody &body;
  dmir::TopKOp op;
  Type element;
  bool counts;
  Ranks ranks;
  Type i32, i64;
  Value zero, one, k, size;
  int64_t lanes = 1;
  unsigned narrowest = 8;
  Value orders; ///< of all elements, or of a vector of them
  Value bins, keys, others;
  SmallVector<Value> outer;
};

//===----------------------------------------------------------------------===//
// Few of many
//===----------------------------------------------------------------------===//

/// Puts a key into the heap of the first `end` places, of which place `from` is free: worse ones move up.
void RanksEmitter::sink(Value key, Value from, Value end) {
  Value last = b.addC(end, -1);
  auto loop = scf::WhileOp::create(
      b, TypeRange{i64, i64}, ValueRange(from),
      [&](OpBuilder &, Location, ValueRange at) {
        // The worse one of the two places below; a last place without a neighbour is its own.
        Value left = b.addC(b.mulC(at[0], 2), 1), some = b.cmp(arith::CmpIPredicate::slt, left, end);
        Value first = b.minS(left, last), second = b.minS(b.addC(left, 1), last);
        Value x = keyAt(keys, first), y = keyAt(keys, second), isSecond = above(x, y);
        Value worse = arith::SelectOp::create(b, isSecond, y, x);
        Value moves = arith::AndIOp::create(b, some, above(key, worse));
        Value place = arith::SelectOp::create(b, isSecond, second, first);
        scf::ConditionOp::create(b, moves, ValueRange{at[0], place});
      },
      [&](OpBuilder &, Location, ValueRange at) {
        b.store(keyAt(keys, at[1]), keys, at[0]);
        scf::YieldOp::create(b, ValueRange(at[1]));
      });
  b.setInsertionPointAfter(loop);
  b.store(key, keys, loop.getResult(0));
}

void RanksEmitter::offer(Value order, Value place) {
  Value key = ranks.pack(order, place);
  b.ifThen(above(key, keyAt(keys, zero)), [&] { sink(key, zero, k); });
}

/// Elements come in order, so that an equal one is never better.
void RanksEmitter::offerAll(Index along) {
  Value order = orderAt(along);
  if (e.lanes() == 1)
    return offer(order, along.base);
  Value worst = arith::TruncIOp::create(b, i32, arith::ShRUIOp::create(b, keyAt(keys, zero), b.idx(32)));
  Value better = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, order, b.splat(worst, e.lanes()));
  if (e.mask())
    better = arith::AndIOp::create(b, better, e.mask());
  b.ifThen(vector::ReductionOp::create(b, vector::CombiningKind::OR, better), [&] {
    b.store(order, orders, zero);
    b.forLoop(zero, b.minS(b.idx(e.lanes()), b.sub(size, along.base)), one,
              [&](Value i) { offer(b.load(i32, orders, i), b.add(along.base, i)); });
  });
}

void RanksEmitter::heap() {
  b.forLoop(zero, k, one, [&](Value i) { b.store(ranks.pack(orderAt(e.at(i)), i), keys, i); });
  Value inner = b.floorDiv(k, b.idx(2)); // places with others below them
  b.forLoop(zero, inner, one, [&](Value i) {
    Value place = b.sub(b.addC(inner, -1), i);
    sink(keyAt(keys, place), place, k);
  });
  laneLoop(e, k, size, lanes, narrowest, 1, [&](Index along) { offerAll(along); });
  // The worst one of those that are left goes to their end.
  b.forLoop(one, k, one, [&](Value i) {
    Value end = b.sub(k, i), worst = keyAt(keys, zero), moved = keyAt(keys, end);
    b.store(worst, keys, end);
    sink(moved, zero, end);
  });
}

//===----------------------------------------------------------------------===//
// More of them
//===----------------------------------------------------------------------===//

/// Stores all orders, and how many begin with which bits.
void RanksEmitter::count() {
  laneLoop(e, zero, size, lanes, narrowest, 64,
           [&](Index along) { b.store(orderAt(along), orders, along.base); }); // whole vectors, there is room
  b.forLoop(zero, b.idx(kBins), one, [&](Value i) { b.store(b.constantInt(i32, 0), bins, i); });
  b.forLoop(zero, size, one, [&](Value i) {
    Value order = arith::ExtUIOp::create(b, i64, b.load(i32, orders, i));
    Value bin = arith::ShRUIOp::create(b, order, b.idx(32 - kCountedBits));
    bump(bin);
  });
}

/// Lists the elements from the bin on that has the k-th best one, in order: how many they are.
Value RanksEmitter::collect() {
  auto walk = scf::WhileOp::create(
      b, TypeRange{i64, i64}, ValueRange{b.idx(kBins), zero},
      [&](OpBuilder &, Location, ValueRange c) {
        scf::ConditionOp::create(b, b.cmp(arith::CmpIPredicate::slt, c[1], k), c);
      },
      [&](OpBuilder &, Location, ValueRange c) {
        Value bin = b.addC(c[0], -1);
        Value has = arith::ExtUIOp::create(b, i64, b.load(i32, bins, bin));
        scf::YieldOp::create(b, ValueRange{bin, b.add(c[1], has)});
      });
  b.setInsertionPointAfter(walk);
  Value least = arith::ShLIOp::create(b, walk.getResult(0), b.idx(32 - kCountedBits));
  least = arith::TruncIOp::create(b, i32, least);
  b.forLoop(zero, size, one, zero, [&](Value i, ValueRange found) -> SmallVector<Value> {
    Value order = b.load(i32, orders, i);
    b.store(ranks.pack(order, i), keys, found[0]); // overwritten where it does not belong there
    Value belongs = b.cmp(arith::CmpIPredicate::uge, order, least);
    return {b.add(found[0], arith::ExtUIOp::create(b, i64, belongs))};
  });
  return walk.getResult(1);
}

Value RanksEmitter::digitOf(Value key, int64_t digit) {
  Value low = arith::ShRUIOp::create(b, key, b.idx(32 + digit * kDigitBits));
  return arith::AndIOp::create(b, low, b.idx(kDigitValues - 1));
}

/// Of each digit, where keys with each of its values begin.
void RanksEmitter::countDigits(Value found) {
  Value none = b.constantInt(i32, 0);
  b.forLoop(zero, b.idx(kDigits * kDigitValues), one, [&](Value i) { b.store(none, bins, i); });
  b.forLoop(zero, found, one, [&](Value i) {
    Value key = keyAt(keys, i);
    for (int64_t digit = 0; digit < kDigits; ++digit)
      bump(b.addC(digitOf(key, digit), digit * kDigitValues));
  });
  for (int64_t digit = 0; digit < kDigits; ++digit)
    b.forLoop(zero, b.idx(kDigitValues), one, none, [&](Value i, ValueRange before) -> SmallVector<Value> {
      Value bin = b.sub(b.idx((digit + 1) * kDigitValues - 1), i), has = b.load(i32, bins, bin);
      b.store(before[0], bins, bin);
      return {arith::AddIOp::create(b, before[0], has)};
    });
}

/// Higher digits first; keys of the same digit stay in order.
void RanksEmitter::sortBy(int64_t digit, Value from, Value to, Value found) {
  b.forLoop(zero, found, one, [&](Value i) {
    Value key = keyAt(from, i), bin = b.addC(digitOf(key, digit), digit * kDigitValues);
    Value place = b.load(i32, bins, bin);
    b.store(key, to, arith::ExtUIOp::create(b, i64, place));
    b.store(arith::AddIOp::create(b, place, b.constantInt(i32, 1)), bins, bin);
  });
}

void RanksEmitter::write() {
  unsigned first = body.block->getNumArguments();
  b.forLoop(zero, k, one, [&](Value i) {
    Value place = ranks.placeOf(keyAt(keys, i));
    e.forget();
    Value value = e.evaluateWide(op.getInput(), indexAt(e.at(place)));
    e.store(e.narrow(value, element), b.buffer(first), body.resultType(0), indexAt(e.at(i)));
    e.store(place, b.buffer(first + 1), body.resultType(1), indexAt(e.at(i)));
  });
}

void RanksEmitter::line(ArrayRef<Value> at) {
  outer.assign(at.begin(), at.end());
  if (counts) {
    count();
    Value found = collect();
    countDigits(found);
    for (int64_t digit = 0; digit < kDigits; ++digit)
      sortBy(digit, digit % 2 ? others : keys, digit % 2 ? keys : others, found);
  } else {
    heap();
  }
  write();
}

} // namespace

/// One work item is a number of lines along the axis. Producers may be fused.
std::optional<KernelPlan> dmxc::kernels::planTopKOfRanks(const RegionBody &body, const PlanRequest &request) {
  auto op = cast<dmir::TopKOp>(body.root);
  Dim size = RanksEmitter::sizeOf(op), count = RanksEmitter::countOf(op);
  if (request.nominal.lanes(32) == 1 || !count.isStatic() || count.is(0) ||
      !Ranks::fit(getElementTypeOrSelf(op.getInput().getType()), size))
    return std::nullopt;
  int64_t n = *size.known(), k = *count.known();
  bool counts = n >= kShortest && n <= kLongest && k >= kFewest && k * kLeastPart >= n;
  SmallVector<Dim> dims = dmir::dimsOf(op.getInput());
  dims.erase(dims.begin() + static_cast<int64_t>(op.getAxis()));
  dims.push_back(1);
  auto elements = static_cast<double>(n), wanted = static_cast<double>(k);
  double cost = counts ? 3 * elements + 10 * wanted + kBins : elements + 5 * wanted * std::log2(wanted + 1) + 10;
  WorkPlan work = request.nominal.planWork(body.block, dims, cost);
  KernelPlan plan(counts ? "top-k-counted" : "top-k", work);
  plan.scratch = RanksEmitter::scratchBytes(n, k, counts);
  plan.emit = [body, work, counts](KernelBuilder &b) {
    RanksEmitter emitter(b, body, counts);
    emitItems(b, work, [&](ArrayRef<Value> outer, Value, Value) { emitter.line(outer); });
  };
  return plan;
}
