//===- AttentionKeys.cpp - the keys that a block of rows looks at -------------===//

#include "AttentionKeys.h"

#include "targets/common/element/ElementMask.h"
#include "targets/common/roots/Plans.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/masks/Columns.h"
#include "dmxc/Target/TargetBackend.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::kernels;
using namespace mlir;

static Dim keysIn(dmir::MaskOp mask) { return dmir::dimsOf(mask.getInput()).back(); }

static Value roundDown(CpuBuilder &b, Value x, int64_t to) { return b.mulC(b.floorDiv(x, b.idx(to)), to); }

/// From the first tile to the last that is kept some of in a run.
static AttentionKeys between(CpuBuilder &b, KeyTests &tests, AttentionKeys keys, dmir::TileSize tile) {
  SmallVector<Value> ends = b.forLoop(keys.first, keys.last, b.idx(tile.columns), {keys.last, keys.first},
                                      [&](Value at, ValueRange before) -> SmallVector<Value> {
                                        Value end = b.minS(b.addC(at, tile.columns), keys.last);
                                        Value some = tests.ask(at, end).first;
                                        return {arith::SelectOp::create(b, some, b.minS(before[0], at), before[0]),
                                                arith::SelectOp::create(b, some, end, before[1])};
                                      });
  Value lastPass = roundDown(b, b.maxS(b.addC(keys.last, -1), b.idx(0)), tile.pass);
  keys.first = b.minS(roundDown(b, ends[0], tile.pass), lastPass);
  keys.last = b.minS(b.maxS(ends[1], b.addC(keys.first, tile.columns)), keys.last);
  keys.firstFull = b.minS(b.maxS(keys.firstFull, keys.first), keys.last);
  keys.lastFull = b.minS(b.maxS(keys.lastFull, keys.firstFull), keys.last);
  return keys;
}

AttentionKeys dmxc::cpu::keysOf(CpuBuilder &b, KeyTests &tests, dmir::MaskOp mask, dmir::TileSize tile, bool asks) {
  Value keys = b.idx(keysIn(mask));
  dmir::ColumnRange<Value> kept = keptColumns(b, dmir::ruleOf(mask), tests.rows(), tests.symbols(), keys);
  // One tile at least: a row that sees nothing has its own answer, which takes a score.
  Value lastPass = roundDown(b, b.maxS(b.addC(keys, -1), b.idx(0)), tile.pass);
  AttentionKeys found;
  found.first = b.minS(roundDown(b, b.maxS(kept.first, b.idx(0)), tile.pass), lastPass);
  Value last = roundDown(b, b.addC(b.maxS(kept.last, b.idx(0)), tile.columns - 1), tile.columns);
  found.last = b.minS(b.maxS(last, b.addC(found.first, tile.columns)), keys);
  Value firstFull = roundDown(b, b.addC(b.maxS(kept.firstFull, b.idx(0)), tile.columns - 1), tile.columns);
  found.firstFull = b.minS(b.maxS(firstFull, found.first), found.last);
  Value ends = b.cmp(arith::CmpIPredicate::slt, kept.lastFull, keys);
  Value lastFull = arith::SelectOp::create(b, ends, roundDown(b, b.maxS(kept.lastFull, b.idx(0)), tile.columns), keys);
  found.lastFull = b.minS(b.maxS(lastFull, found.firstFull), found.last);
  return asks ? between(b, tests, found, tile) : found;
}

bool dmxc::cpu::isOneForHeads(dmir::MaskOp mask) {
  size_t rank = dmir::dimsOf(mask.getInput()).size();
  if (rank < 3)
    return true;
  for (IntegerSet set : dmir::ruleOf(mask).cases)
    for (const dmir::Condition &condition : dmir::conditionsOf(set))
      if (condition.expr.isFunctionOfDim(rank - 3))
        return false;
  return llvm::all_of(mask.getValues(), [](Value value) {
    SmallVector<Dim> dims = dmir::dimsOf(value);
    return dims.size() < 3 || dims[dims.size() - 3].is(1);
  });
}

int64_t dmxc::cpu::widestKeys(Block *block, dmir::MaskOp mask) {
  constexpr int64_t rows = 16;
  dmir::Rule rule = dmir::ruleOf(mask);
  SmallVector<int64_t> sizes;
  SmallVector<dmir::Columns<int64_t>::Bounds> symbols;
  for (Dim dim : dmir::dimsOf(mask.getInput()))
    sizes.push_back(std::max<int64_t>(1, nominal(block, dim)));
  for (Dim dim : rule.dims)
    symbols.emplace_back(nominal(block, dim), nominal(block, dim));
  for (const dmir::RuleValue &value : rule.values) {
    int64_t full = sizes.back(); // as where a cache is
    symbols.emplace_back(value.ofRows || value.ofColumns ? -dmir::kMostValue : full,
                         value.ofRows || value.ofColumns ? dmir::kMostValue : full);
  }
  int64_t keys = sizes.pop_back_val(), last = std::max<int64_t>(0, sizes.back() - rows), widest = kKeyTile;
  for (int64_t row : {int64_t(0), last / 2, last}) {
    SmallVector<std::pair<int64_t, int64_t>> bounds(sizes.size(), {0, 0});
    bounds.back() = {row, row + rows - 1};
    auto kept = dmir::Columns<int64_t>(dmir::plainIntegers(), bounds, symbols, keys).of(rule);
    widest = std::max(widest, kept.last - kept.first);
  }
  return std::min(keys, widest + kKeyPass);
}

bool dmxc::cpu::looksAtAllKeys(Block *block) {
  Operation *owner = block->getParentOp();
  auto strategy = owner->getAttrOfType<DictionaryAttr>("strategy");
  auto algorithm = strategy ? strategy.getAs<StringAttr>(strategy::kAlgorithm) : StringAttr();
  if (algorithm)
    return algorithm.getValue().starts_with(kLooksAtAll);
  auto module = owner->getParentOfType<ModuleOp>();
  auto mode = module ? module->getAttrOfType<StringAttr>("dmir.sparsity") : StringAttr();
  return mode && mode.getValue() == "off";
}
