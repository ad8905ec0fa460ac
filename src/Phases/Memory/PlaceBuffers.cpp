//===- PlaceBuffers.cpp - where region results live -----------------------===//
#include "dmxc/Phases/Memory/Layout.h"
#include "dmxc/Phases/Memory/Passes.h"
#include "dmxc/Support/ArenaPacking.h"

namespace dmxc {
#define GEN_PASS_DEF_PLACEBUFFERS
#include "dmxc/Phases/Memory/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// The value whose bytes `value` is a view of.
Value viewedValue(Value value) {
  while (auto reshape = value.getDefiningOp<dmir::ReshapeOp>())
    value = reshape.getInput();
  return value;
}

/// One region result and its storage.
struct Slot {
  int64_t output = -1; ///< written straight into this output, or
  int64_t range = -1;  ///< a live range of the arena, shared by in-place chains
  int64_t bytes = 0;
  int64_t lastUse = 0;
};

class Placement {
public:
  explicit Placement(func::FuncOp function) : function(function) {}

  void run() {
    number();
    assignOutputs();
    int64_t step = 0;
    for (Operation &op : function.getOps()) {
      if (auto region = dyn_cast<dmir::RegionOp>(op))
        for (OpResult result : region.getResults())
          assignRange(region, result, step);
      ++step;
    }
    int64_t bound = arenaLowerBound(ranges);
    int64_t size = packArena(ranges);
    record(size, bound);
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
      if (!base.getDefiningOp<dmir::RegionOp>() || slots[base].output >= 0 ||
          function.getResultAttr(operand.getOperandNumber(), dmir::kStateAttr)) // copied or kept, see schedule
        continue;
      slots[base].output = operand.getOperandNumber();
    }
  }

  void assignRange(dmir::RegionOp region, OpResult result, int64_t step) {
    Slot &slot = slots[result];
    slot.bytes = storageBytes(result.getType());
    int64_t last = std::max(slot.lastUse, step); // an unused result is still written
    if (slot.output >= 0)
      return;
    slot.range = result.getResultNumber() == 0 ? reusable(region, slot.bytes, step) : -1;
    if (slot.range >= 0) {
      ranges[slot.range].last = last;
      return;
    }
    slot.range = ranges.size();
    ranges.push_back({alignTo(slot.bytes), step, last, 0});
  }

  /// The arena range of an operand that dies here and that the target can overwrite in place.
  int64_t reusable(dmir::RegionOp region, int64_t bytes, int64_t step) {
    auto candidates = region.getStrategy() ? region.getStrategy()->getAs<ArrayAttr>(strategy::kInPlace) : ArrayAttr();
    if (!candidates)
      return -1;
    for (Attribute candidate : candidates) {
      Value base = viewedValue(region.getInputs()[cast<IntegerAttr>(candidate).getInt()]);
      auto found = slots.find(base);
      if (found == slots.end() || found->second.range < 0 || found->second.bytes != bytes ||
          ranges[found->second.range].last != step)
        continue;
      // The same bytes may be read through another operand at other elements.
      if (llvm::count_if(region.getInputs(), [&](Value v) { return viewedValue(v) == base; }) == 1)
        return found->second.range;
    }
    return -1;
  }

  void record(int64_t size, int64_t bound) {
    Builder builder(function.getContext());
    auto entry = [&](StringRef name, int64_t value) {
      return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
    };
    for (auto region : function.getOps<dmir::RegionOp>()) {
      SmallVector<Attribute> placement;
      for (Value result : region.getResults()) {
        const Slot &slot = slots[result];
        if (slot.output >= 0)
          placement.push_back(builder.getDictionaryAttr({entry("output", slot.output), entry("size", slot.bytes)}));
        else
          placement.push_back(builder.getDictionaryAttr(
              {entry("arena", 0), entry("offset", ranges[slot.range].offset), entry("size", slot.bytes)}));
      }
      region.setPlacementAttr(builder.getArrayAttr(placement));
    }
    function->setAttr("dmir.arenas", builder.getArrayAttr(builder.getDictionaryAttr(
                                         {entry("size", size), entry("lower_bound", bound)})));
  }

  func::FuncOp function;
  llvm::DenseMap<Value, Slot> slots;
  std::vector<LiveRange> ranges;
};

struct PlaceBuffers : dmxc::impl::PlaceBuffersBase<PlaceBuffers> {
  void runOnOperation() override { Placement(getOperation()).run(); }
};

} // namespace

std::unique_ptr<Pass> dmxc::createPlaceBuffersPass(const PhaseContext &) { return std::make_unique<PlaceBuffers>(); }
