//===- RowRanges.cpp - of rows the columns that a mask keeps -----------------===//
//
// Walks begin and end at whole steps of all chains, so that an element meets the same partial result whatever is left
// out. The rest of a row that is no such step is always visited.
//
//===----------------------------------------------------------------------===//

#include "targets/common/roots/Rows.h"

#include "targets/common/element/ElementMask.h"

#include "dmxc/Dialect/DMIR/Dims.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

bool dmxc::kernels::hasRanges(const RowPlan &plan, dmir::MaskOp mask) {
  const SmallVector<Dim> dims = dmir::dimsOf(mask.getInput());
  const unsigned last = dims.size() - 1;
  if (plan.team.shares() || plan.groups.empty() || plan.lanesAcross() || llvm::count(plan.reduced, true) != 1 ||
      plan.groups[plan.laneGroup].first != last)
    return false;
  return llvm::all_of(mask.getValues(), [](Value value) { return dmir::dimsOf(value).back().is(1); });
}

void RowWalker::narrow(dmir::MaskOp mask) {
  const int64_t step = lanes * chains();
  at[plan.laneGroup] = e.at(0);
  Indices index = operandIndex();
  SmallVector<std::pair<Value, Value>> row;
  for (const Index &one : ArrayRef(index).drop_back())
    row.emplace_back(one.base, one.base);
  SmallVector<Value> symbols;
  for (const Index &symbol : symbolsOf(e, mask, index))
    symbols.push_back(symbol.base);
  Value size = b.idx(plan.groups[plan.laneGroup].size), zero = b.idx(0);
  dmir::ColumnRange<Value> kept = keptColumns(b, dmir::ruleOf(mask), row, dmir::pointsOf<Value>(symbols), size);
  auto within = [&](Value x, Value low, Value high) { return b.minS(b.maxS(x, low), high); };
  auto down = [&](Value x) { return b.mulC(b.floorDiv(x, b.idx(step)), step); };
  auto up = [&](Value x) { return down(b.addC(x, step - 1)); };
  Value first = down(within(kept.first, zero, size)), last = b.maxS(up(within(kept.last, zero, size)), first);
  Value firstFull = within(up(within(kept.firstFull, zero, size)), first, last);
  range = {mask, first, last, firstFull, within(down(within(kept.lastFull, zero, size)), firstFull, last)};
}

/// walk(from, to) for what is visited before `end`, a multiple of whole steps or all whole vectors. Where elements are
/// read the mask is asked at the ends alone.
RowWalker::Carried RowWalker::inRange(Value end, bool reads, ValueRange init,
                                      llvm::function_ref<Carried(Value, Value, ValueRange)> walk) {
  Value last = b.minS(range->last, end);
  if (!reads)
    return walk(range->first, last, init);
  Carried carried = walk(range->first, b.minS(range->firstFull, end), init);
  Value all = range->mask.getResult();
  e.forget();
  e.bind(all, [this](ArrayRef<Index> index) { return e.evaluate(range->mask.getInput(), index); });
  Value lastFull = b.minS(range->lastFull, end);
  carried = walk(range->firstFull, lastFull, carried);
  e.unbind(all);
  e.forget();
  return walk(lastFull, last, carried);
}

void RowWalker::eachLeftOut(llvm::function_ref<void()> body) {
  Value end = b.idx(Dim::floorDiv(plan.groups[plan.laneGroup].size, lanes) * lanes);
  ElementExpr::Lanes all(e, lanes);
  auto walk = [&](Value from, Value to) {
    b.forLoop(from, to, b.idx(lanes), [&](Value i) {
      at[plan.laneGroup] = e.at(i, lanes, lanes > 1);
      body();
    });
  };
  walk(b.idx(0), b.minS(range->first, end));
  walk(b.minS(range->last, end), end);
}
