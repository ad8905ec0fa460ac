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

dmir::ColumnRange<Value> dmxc::cpu::rangeOf(CpuBuilder &b, ElementExpr &e, dmir::MaskOp mask, const dmir::Rule &rule,
                                            ArrayRef<Index> batch, Value row, Value rows, Value keys) {
  SmallVector<std::pair<Value, Value>> bounds;
  for (const Index &index : batch)
    bounds.emplace_back(index.base, index.base);
  bounds.emplace_back(row, b.addC(b.add(row, rows), -1));
  SmallVector<Value> symbols;
  Indices index(batch);
  index.append({e.at(0), e.at(0)});
  for (const Index &symbol : mask ? symbolsOf(e, mask, index) : Indices())
    symbols.push_back(symbol.base);
  return keptColumns(b, rule, bounds, symbols, keys);
}

AttentionKeys dmxc::cpu::keysOf(CpuBuilder &b, ElementExpr &e, dmir::MaskOp mask, ArrayRef<Index> batch, Value row,
                                Value rows, dmir::TileSize tile, bool all) {
  Value keys = b.idx(keysIn(mask));
  if (all)
    return {b.idx(0), keys, b.idx(0), b.idx(0)};
  dmir::ColumnRange<Value> kept = rangeOf(b, e, mask, dmir::ruleOf(mask), batch, row, rows, keys);
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
  return found;
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
  SmallVector<int64_t> sizes, symbols;
  for (Dim dim : dmir::dimsOf(mask.getInput()))
    sizes.push_back(std::max<int64_t>(1, nominal(block, dim)));
  for (Dim dim : rule.dims)
    symbols.push_back(nominal(block, dim));
  symbols.append(rule.values.size(), sizes.back()); // as where a cache is full
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
    return algorithm.getValue() == "attention-all-tiles";
  auto module = owner->getParentOfType<ModuleOp>();
  auto mode = module ? module->getAttrOfType<StringAttr>("dmir.sparsity") : StringAttr();
  return mode && mode.getValue() == "off";
}
