//===- GemmRuns.cpp - constant right operands without what is zero --------===//
//
// A group of columns has runs of k (SparseWeights.h). A tile's sums are those of the same stretches and passes as with
// all of k, of which only what is in runs is multiplied: what is left out would add zeros. Runs are visited in order,
// so a tile keeps the number of the next one.
//
//===----------------------------------------------------------------------===//

#include "GemmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace dmxc::cpu;
using namespace mlir;

/// Number `which` of an entry: 0 the first k, 1 the one behind the last, 2 the row of the first.
Value GemmEmitter::runNumber(Value entry, int64_t which) {
  int64_t first = spec.runs->entriesAt(spec.columns()) + which;
  Value word = b.load(b.getI32Type(), right.base, b.addC(b.mulC(entry, WeightRuns::kEntry), first));
  return arith::ExtSIOp::create(b, b.getI64Type(), word);
}

/// Number `which` of a group: 0 of its first entry, 1 of its first row; it is as well that behind the one before.
Value GemmEmitter::groupNumber(Value group, int64_t which) {
  Value word = b.load(b.getI32Type(), right.base, b.addC(b.mulC(group, 2), which));
  return arith::ExtSIOp::create(b, b.getI64Type(), word);
}

/// Gives an item its first run, and the place of its columns in its group's panels.
void GemmEmitter::findRuns(Item &item) {
  const int64_t columns = spec.runs->columns;
  Value group = b.floorDiv(item.column, b.idx(columns)), inGroup = b.rem(item.column, b.idx(columns));
  Value first = groupNumber(group, 1);
  item.run = groupNumber(group, 0);
  item.panelRows = b.sub(groupNumber(group, 3), first);
  Value panel = b.mulC(b.mul(b.floorDiv(inGroup, b.idx(16)), item.panelRows), 16);
  Value at = b.add(b.mulC(first, columns), b.add(panel, b.rem(inGroup, b.idx(16))));
  Value rows = b.elementPtr(b.getI8Type(), right.base, b.idx(spec.runs->rowsAt(spec.columns())));
  item.bBase = b.elementPtr(spec.bType, rows, at);
}

/// The first run from `run` on that goes beyond a k.
Value GemmEmitter::runBeyond(Value run, Value end) {
  auto loop = scf::WhileOp::create(
      b, TypeRange{run.getType()}, ValueRange{run},
      [&](OpBuilder &, Location, ValueRange at) {
        scf::ConditionOp::create(b, b.cmp(arith::CmpIPredicate::sle, runNumber(at[0], 1), end), at);
      },
      [&](OpBuilder &, Location, ValueRange at) { scf::YieldOp::create(b, ValueRange{b.addC(at[0], 1)}); });
  b.setInsertionPointAfter(loop);
  return loop.getResult(0);
}

/// Whether there is a run before a k.
Value GemmEmitter::hasRunBefore(Value run, Value end) {
  return b.cmp(arith::CmpIPredicate::slt, runNumber(run, 0), end);
}

/// A stack slot with the number of the item's first run.
Value GemmEmitter::runSlot(const Item &item) {
  if (!runRoom) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(b.entryBlock());
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    runRoom = LLVM::AllocaOp::create(b, pointer, b.getI64Type(), b.constantInt(b.getI32Type(), 1));
  }
  b.store(item.run, runRoom, b.idx(0));
  return runRoom;
}

/// `init` plus the products of what runs have of depths [low, high) behind k0, `step` at a time. `next` is a stack slot
/// with the number of the first run that goes beyond `low`; afterwards of that beyond `high`.
SmallVector<Value> GemmEmitter::sumOfRuns(Value next, Value k0, Value low, Value high, int64_t step, ValueRange init,
                                          RunSteps steps) {
  Type i64 = b.getI64Type();
  SmallVector<Value> carried{low};
  llvm::append_range(carried, init);
  Value run, start;
  auto loop = scf::WhileOp::create(
      b, ValueRange(carried).getTypes(), carried,
      [&](OpBuilder &, Location, ValueRange at) {
        run = b.load(i64, next, b.idx(0));
        start = b.maxS(b.sub(runNumber(run, 0), k0), at[0]);
        SmallVector<Value> passed(at);
        passed[0] = start;
        scf::ConditionOp::create(b, b.cmp(arith::CmpIPredicate::slt, start, high), passed);
      },
      [&](OpBuilder &, Location, ValueRange at) {
        Value one = b.load(i64, next, b.idx(0)), end = b.sub(runNumber(one, 1), k0), to = b.minS(end, high);
        // Row of the panel of depth 0, which lies before the run's first one.
        Value shift = b.add(b.sub(runNumber(one, 2), runNumber(one, 0)), k0);
        SmallVector<Value> sums = b.forLoop(at[0], to, b.idx(step), at.drop_front(),
                                            [&](Value kk, ValueRange acc) { return steps(shift, kk, acc); });
        Value done = arith::ExtUIOp::create(b, i64, b.cmp(arith::CmpIPredicate::sle, end, high));
        b.store(b.add(one, done), next, b.idx(0));
        sums.insert(sums.begin(), b.maxS(to, at[0])); // a run may end before `low`
        scf::YieldOp::create(b, sums);
      });
  b.setInsertionPointAfter(loop);
  return SmallVector<Value>(loop.getResults().drop_front());
}
