//===- RowBlocks.cpp - rows beside each other, folded line by line ------------===//
//
// Rows across a tensor's outer axis: what one lane reads lies far apart, on pages of their own. A block of such rows is
// folded together, so that each line of the tensor is read in long pieces, while partial results wait in scratch. They
// are those of a walk row by row, chain by chain, so the bits are the same.
//
//===----------------------------------------------------------------------===//

#include "targets/common/roots/Rows.h"

#include "dmxc/Dialect/DMIR/Dims.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

/// Fewer elements of a row, or rows beside each other, leave the walk row by row. A block has so many rows.
static constexpr int64_t kFewestLines = 128, kFewestRows = 64, kBlockRows = 512;

void RowPlan::chooseBlocks(const RegionBody &body) {
  if (team.shares() || !lanesAcross() || llvm::count(reduced, true) != 1)
    return;
  int64_t rows = nominal(body.block, groups[laneGroup].size);
  inBlocks = nominal(body.block, count) >= kFewestLines && rows >= kFewestRows;
  if (!inBlocks || !work.chunk)
    return;
  // Items of whole blocks, where there are four.
  work.chunk = std::max(work.chunk, std::min<int64_t>(llvm::alignTo(llvm::divideCeil(rows, 4), 64), kBlockRows));
  work.items = Dim::ceilDiv(work.dims.back(), work.chunk);
  for (Dim dim : ArrayRef(work.dims).drop_back())
    work.items *= dim;
}

Dim RowPlan::blockBytes() const { return inBlocks ? kBlockRows * kChains * 8 : 0; }

void RowWalker::foldBlocks(Type scalar, llvm::function_ref<Value(Type)> start,
                           llvm::function_ref<Value(Value, Value)> combine, llvm::function_ref<Value()> element,
                           llvm::function_ref<void(Value)> finish) {
  constexpr int64_t chains = RowPlan::kChains;
  unsigned line = llvm::find(plan.reduced, true) - plan.reduced.begin();
  Value zero = b.idx(0), one = b.idx(1), partial = b.scratch();
  emitItems(b, plan.work, [&](ArrayRef<Value> positions, Value lo, Value hi) {
    for (auto [g, position] : llvm::zip(plan.kept, positions))
      at[g] = e.at(position);
    b.forLoop(lo, hi, b.idx(kBlockRows), [&](Value first) {
      Value last = b.minS(b.addC(first, kBlockRows), hi);
      auto each = [&](llvm::function_ref<void(llvm::function_ref<Value(int64_t)> slot)> bodyFn) {
        laneLoop(e, first, last, lanes, narrowest, 64, [&](Index along) {
          at[plan.laneGroup] = along;
          e.forget();
          Value inBlock = b.sub(along.base, first);
          bodyFn([&](int64_t chain) { return b.addC(inBlock, chain * kBlockRows); });
        });
      };
      auto sumAt = [&](Value slot) { return b.load(scalar, partial, slot, e.lanes()); };
      auto add = [&](Value from, int64_t count) {
        each([&](llvm::function_ref<Value(int64_t)> slot) {
          for (int64_t chain = 0; chain < count; ++chain) {
            at[line] = e.at(b.addC(from, chain));
            b.store(combine(sumAt(slot(chain)), element()), partial, slot(chain));
          }
        });
      };
      each([&](llvm::function_ref<Value(int64_t)> slot) {
        for (int64_t chain = 0; chain < chains; ++chain)
          b.store(start(b.laneType(scalar, e.lanes())), partial, slot(chain));
      });
      Dim size = plan.groups[line].size, whole = Dim::floorDiv(size, chains) * chains;
      b.forLoop(zero, b.idx(whole), b.idx(chains), [&](Value from) { add(from, chains); });
      b.forLoop(b.idx(whole), b.idx(size), one, [&](Value from) { add(from, 1); });
      each([&](llvm::function_ref<Value(int64_t)> slot) {
        Carried sums;
        for (int64_t chain = 0; chain < chains; ++chain)
          sums.push_back(sumAt(slot(chain)));
        finish(combineChains(sums, combine));
      });
    });
  });
}
