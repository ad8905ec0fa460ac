//===- GemmStreams.cpp - one row times a matrix that lies as it is ---------===//
//
// Memory gives what it can where few long pieces are read one after the other: the hardware foresees what comes on a
// page, not where the next row's page is. So rows of B are read as far as the call's columns go, several beside each
// other, and sums wait in scratch, in a near cache. They are those of a register tile: the same chains and stretches.
//
//===----------------------------------------------------------------------===//

#include "GemmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace dmxc::cpu;
using namespace mlir;

/// Where sums of `count` columns wait: of a stretch, then those of all stretches before it, each chain by chain.
Value GemmEmitter::streamSums(bool ofAll, int64_t chain) {
  return b.elementPtr(spec.accType, partials, b.idx(((ofAll ? chains() : 0) + chain) * spec.streamColumns(t)));
}

/// Runs `body` for every vector of the columns [0, count) behind the item's first, the last of which may be masked.
void GemmEmitter::forVectors(Value count, llvm::function_ref<void(Value at, Value mask)> body) {
  Value whole = b.mulC(b.floorDiv(count, b.idx(t.lanes)), t.lanes);
  b.forLoop(b.idx(0), whole, b.idx(t.lanes), [&](Value at) { body(at, {}); });
  if (t.lanes == 1 || (spec.columns() >= 0 && spec.columns() % t.lanes == 0))
    return;
  b.ifThen(b.cmp(arith::CmpIPredicate::slt, whole, count),
           [&] { body(whole, b.headMask(t.lanes, b.sub(count, whole))); });
}

/// Adds what `depths` rows of B from depth kk on give to the sums of a stretch, or of all: those of a stretch's rows
/// take turns with the chains.
void GemmEmitter::addStreams(const Item &item, Value kk, int64_t depths, Value count, bool ofAll) {
  SmallVector<Value> factors, rows;
  for (int64_t r = 0; r < depths; ++r) {
    Value depth = b.addC(kk, r);
    factors.push_back(b.splat(loadLeft(item.aBase, leftDepth(depth)), t.lanes));
    rows.push_back(b.elementPtr(spec.bType, item.bBase, b.add(b.mul(depth, right.rowStride), item.column)));
  }
  const int64_t used = std::min(depths, chains());
  forVectors(count, [&](Value at, Value mask) {
    SmallVector<Value> sums;
    for (int64_t chain = 0; chain < used; ++chain)
      sums.push_back(b.load(spec.accType, streamSums(ofAll, chain), at, t.lanes));
    for (int64_t r = 0; r < depths; ++r) {
      Value raw = mask ? b.maskedLoad(spec.bType, rows[r], at, mask) : b.load(spec.bType, rows[r], at, t.lanes);
      Value x = convertElements(b, {spec.bType, spec.accType, spec.bUnsigned}, raw);
      if (callbacks.mapB)
        x = callbacks.mapB(x, b.add(item.column, at));
      Value &sum = sums[r % used];
      sum = multiplyAdd(b, factors[r], x, sum);
    }
    for (int64_t chain = 0; chain < used; ++chain)
      b.store(sums[chain], streamSums(ofAll, chain), at);
  });
}

/// The sums of a stretch become part of those of all, and begin anew.
void GemmEmitter::endStretch(Value count) {
  Value zero = b.constant(b.laneType(spec.accType, t.lanes), 0);
  const bool isFloat = isa<FloatType>(spec.accType);
  b.forLoop(b.idx(0), count, b.idx(t.lanes), [&](Value at) {
    for (int64_t chain = 0; chain < chains(); ++chain) {
      Value all = b.load(spec.accType, streamSums(true, chain), at, t.lanes),
            part = b.load(spec.accType, streamSums(false, chain), at, t.lanes);
      Value sum = isFloat ? Value(arith::AddFOp::create(b, all, part)) : Value(arith::AddIOp::create(b, all, part));
      b.store(sum, streamSums(true, chain), at);
      b.store(zero, streamSums(false, chain), at);
    }
  });
}

/// All of k for the columns [item.column, item.column + count).
void GemmEmitter::streamItem(const Item &item, Value count) {
  constexpr int64_t beside = 8;
  Value zero = b.constant(b.laneType(spec.accType, t.lanes), 0);
  b.forLoop(b.idx(0), count, b.idx(t.lanes), [&](Value at) {
    for (int64_t chain = 0; chain < 2 * chains(); ++chain)
      b.store(zero, streamSums(false, chain), at);
  });
  const int64_t stretch =
      stepsOfStretch(productStretch(spec.depth(), /*fewRows=*/true) * chains(), 1, std::max(t.unroll, beside));
  Value main = b.mulC(b.floorDiv(k, b.idx(t.unroll)), t.unroll);
  b.forLoop(b.idx(0), main, b.idx(stretch), [&](Value from) {
    Value to = b.minS(b.addC(from, stretch), main), rest = b.sub(to, b.rem(b.sub(to, from), b.idx(beside)));
    b.forLoop(from, rest, b.idx(beside), [&](Value kk) { addStreams(item, kk, beside, count, false); });
    b.forLoop(rest, to, b.idx(t.unroll), [&](Value kk) { addStreams(item, kk, t.unroll, count, false); });
    endStretch(count);
  });
  b.forLoop(main, k, b.idx(1), [&](Value kk) { addStreams(item, kk, 1, count, true); });
  const RegisterTile regs{1, 1, t.lanes, spec.accType, /*fours=*/false, chains()};
  forVectors(count, [&](Value at, Value mask) {
    SmallVector<Value> sums;
    for (int64_t chain = 0; chain < chains(); ++chain)
      sums.push_back(b.load(spec.accType, streamSums(true, chain), at, t.lanes));
    callbacks.store(item.batch, b.idx(0), b.add(item.column, at), sumChains(b, regs, sums).front(), mask);
  });
}

/// The call's items: of each batch item its columns, as many at a time as sums have room for.
void GemmEmitter::emitStreams() {
  Value columns = b.idx(t.columns()), groups = b.maxS(b.ceilDiv(n, columns), b.idx(1));
  b.forLoop(b.floorDiv(b.begin(), groups), b.ceilDiv(b.end(), groups), b.idx(1), [&](Value index) {
    Value before = b.mul(index, groups);
    Value first = b.mulC(b.maxS(b.sub(b.begin(), before), b.idx(0)), t.columns());
    Value last = b.minS(b.mulC(b.minS(b.sub(b.end(), before), groups), t.columns()), n);
    Item item;
    item.batch = index;
    item.aBase = batchBase(a, spec.aType, index);
    item.bBase = batchBase(right, spec.bType, index);
    b.forLoop(first, last, b.idx(spec.streamColumns(t)), [&](Value column) {
      item.column = column;
      streamItem(item, b.minS(b.idx(spec.streamColumns(t)), b.sub(last, column)));
    });
  });
}
