//===- PlaceBuffers.cpp - where region results live -----------------------===//
#include "dmxc/Dialect/DMIR/Lengths.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Phases/Memory/Layout.h"
#include "dmxc/Phases/Phases.h"

#include "dmxc/Support/ArenaPacking.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {
#define GEN_PASS_DEF_PLACEBUFFERS
#include "dmxc/Phases/Memory/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// One region result and its storage.
struct Slot {
  int64_t output = -1; ///< written straight into this output or state, or
  int64_t range = -1;  ///< a live range of the arena, shared by in-place chains
  int64_t arena = -1;
  StorageSize size;
  int64_t lastUse = 0;
};

/// Buffers whose sizes are multiples of one unit lie in one arena: their offsets are multiples of it too, so that they
/// are packed as numbers whatever the unit's value is in a run.
struct Arena {
  Dim unit = 1;
  std::vector<LiveRange> ranges;
};

class Placement {
public:
  explicit Placement(func::FuncOp function) : function(function) {}

  void run() {
    number();
    assignOutputs();
    assignStates();
    int64_t step = 0;
    for (Operation &op : function.getOps()) {
      if (auto region = dyn_cast<dmir::RegionOp>(op))
        for (OpResult result : region.getResults())
          assignRange(region, result, step);
      ++step;
    }
    record();
  }

private:
  /// Step numbers are positions in the block; a result lives until its last user, views included.
  void number() {
    int64_t step = 0;
    for (Operation &op : function.getOps()) {
      for (Value operand : op.getOperands()) {
        Value base = viewedValue(operand);
        if (base.getDefiningOp<dmir::RegionOp>() && !isa<dmir::ReshapeOp>(op))
          slots[base].lastUse = step;
      }
      ++step;
    }
  }

  /// A result that is returned is computed in place of the output; a second output of the same bytes is a copy
  /// (schedule).
  void assignOutputs() {
    auto ret = cast<func::ReturnOp>(function.getBody().front().getTerminator());
    for (OpOperand &operand : ret->getOpOperands()) {
      Value base = viewedValue(operand.get());
      auto region = base.getDefiningOp<dmir::RegionOp>();
      if (!region || slots[base].output >= 0 || !isKnownBefore(operand.get().getType(), region) ||
          dmir::keptName(function, false, operand.getOperandNumber())) // copied or kept, see schedule
        continue;
      slots[base].output = operand.getOperandNumber();
    }
  }

  /// The next value of a state that may be written over the old one is.
  void assignStates() {
    for (auto region : function.getOps<dmir::RegionOp>())
      if (std::optional<unsigned> output = stateInPlace(region))
        slots[region.getResult(0)].output = *output;
  }

  void assignRange(dmir::RegionOp region, OpResult result, int64_t step) {
    Slot &slot = slots[result];
    slot.size = storageSize(result.getType());
    int64_t last = std::max(slot.lastUse, step); // an unused result is still written
    if (slot.output >= 0)
      return;
    slot.arena = arenaOf(slot.size.unit);
    std::vector<LiveRange> &ranges = arenas[slot.arena].ranges;
    slot.range = result.getResultNumber() == 0 ? reusable(region, slot, step) : -1;
    if (slot.range >= 0) {
      ranges[slot.range].last = last;
      return;
    }
    slot.range = ranges.size();
    ranges.push_back({alignTo(slot.size.count), step, last, 0});
  }

  int64_t arenaOf(Dim unit) {
    auto found = llvm::find_if(arenas, [&](const Arena &arena) { return arena.unit == unit; });
    if (found == arenas.end())
      found = arenas.insert(arenas.end(), Arena{unit, {}});
    return found - arenas.begin();
  }

  /// The arena range of an operand that dies here and that the target can overwrite in place.
  int64_t reusable(dmir::RegionOp region, const Slot &slot, int64_t step) {
    auto candidates = region.getStrategy() ? region.getStrategy()->getAs<ArrayAttr>(strategy::kInPlace) : ArrayAttr();
    if (!candidates)
      return -1;
    for (Attribute candidate : candidates) {
      Value base = viewedValue(region.getInputs()[cast<IntegerAttr>(candidate).getInt()]);
      auto found = slots.find(base);
      if (found == slots.end() || found->second.range < 0 || !(found->second.size == slot.size) ||
          arenas[slot.arena].ranges[found->second.range].last != step)
        continue;
      // The same bytes may be read through another operand at other elements.
      if (llvm::count_if(region.getInputs(), [&](Value v) { return viewedValue(v) == base; }) == 1)
        return found->second.range;
    }
    return -1;
  }

  void record() {
    Builder builder(function.getContext());
    auto entries = [&](std::initializer_list<std::pair<StringRef, int64_t>> values, Dim unit) -> Attribute {
      SmallVector<NamedAttribute> list;
      for (auto [name, value] : values)
        list.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(value)));
      if (!unit.isStatic())
        list.push_back(builder.getNamedAttr("unit", dmir::dimAttr(builder.getContext(), unit)));
      return builder.getDictionaryAttr(list);
    };
    if (arenas.empty())
      arenas.emplace_back();
    SmallVector<Attribute> table;
    for (Arena &arena : arenas) {
      int64_t bound = arenaLowerBound(arena.ranges);
      table.push_back(entries({{"size", packArena(arena.ranges)}, {"lower_bound", bound}}, arena.unit));
    }
    function->setAttr(dmir::kArenasAttr, builder.getArrayAttr(table));
    for (auto region : function.getOps<dmir::RegionOp>()) {
      SmallVector<Attribute> placement;
      for (Value result : region.getResults()) {
        const Slot &slot = slots[result];
        if (slot.output >= 0)
          placement.push_back(entries({{"output", slot.output}, {"size", slot.size.count}}, slot.size.unit));
        else
          placement.push_back(entries({{"arena", slot.arena},
                                       {"offset", arenas[slot.arena].ranges[slot.range].offset},
                                       {"size", slot.size.count}},
                                      slot.size.unit));
      }
      region.setPlacementAttr(builder.getArrayAttr(placement));
    }
  }

  func::FuncOp function;
  llvm::DenseMap<Value, Slot> slots;
  std::vector<Arena> arenas;
};

struct PlaceBuffers : dmxc::impl::PlaceBuffersBase<PlaceBuffers> {
  void runOnOperation() override { Placement(getOperation()).run(); }
};

} // namespace

std::optional<unsigned> dmxc::stateInPlace(dmir::RegionOp region) {
  auto candidates = region.getStrategy() ? region.getStrategy()->getAs<ArrayAttr>(strategy::kInPlace) : ArrayAttr();
  auto function = region->getParentOfType<func::FuncOp>();
  auto ret = function.getBody().front().getTerminator();
  if (!candidates)
    return std::nullopt;
  for (Attribute candidate : candidates) {
    auto old = dyn_cast<BlockArgument>(region.getInputs()[cast<IntegerAttr>(candidate).getInt()]);
    // The old value must be read nowhere else: not before either, as tasks are ordered by bytes.
    if (!old || !old.hasOneUse() || old.getType() != region.getResult(0).getType())
      continue;
    StringAttr kept = dmir::keptName(function, true, old.getArgNumber());
    for (OpOperand &operand : ret->getOpOperands())
      if (kept && operand.get() == region.getResult(0) &&
          dmir::keptName(function, false, operand.getOperandNumber()) == kept)
        return operand.getOperandNumber();
  }
  return std::nullopt;
}

bool dmxc::isKnownBefore(Type type, dmir::RegionOp region) {
  dmir::SymbolSet known = dmir::symbolsOf(region.getBlock());
  auto function = region->getParentOfType<func::FuncOp>();
  auto add = [&](Type given, auto into) {
    for (Dim dim : dmir::dimsOf(given))
      dim.forEachSymbol([&](std::string_view symbol) { into(StringAttr::get(region.getContext(), symbol)); });
  };
  for (TypeRange types : {TypeRange(function.getArgumentTypes()), TypeRange(region->getResultTypes())})
    for (Type given : types)
      add(given, [&](StringAttr symbol) { known.insert(symbol); });
  bool all = true;
  add(type, [&](StringAttr symbol) { all &= known.contains(symbol); });
  return all;
}

namespace dmxc {
std::unique_ptr<Pass> createPlaceBuffersPass(const PhaseContext &) { return std::make_unique<PlaceBuffers>(); }
} // namespace dmxc
