//===- CheckPlacement.cpp - whether results may live where a text says ----===//
#include "dmxc/Dialect/DMIR/Lengths.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Phases/Memory/Layout.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {
#define GEN_PASS_DEF_CHECKPLACEMENT
#include "dmxc/Phases/Memory/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// A result in an arena, and the steps of the function while its bytes are its own.
struct Live {
  OpResult value;
  int64_t arena, begin, end, from, to;
};

/// A clause: what is wrong.
using Problem = std::optional<std::string>;

class Checker {
public:
  explicit Checker(func::FuncOp function) : function(function) {
    int64_t step = 0;
    for (Operation &op : function.getOps()) {
      steps[&op] = step;
      for (Value operand : op.getOperands())
        if (!isa<dmir::ReshapeOp>(op))
          lastUse[viewedValue(operand)] = step;
      ++step;
    }
    if (auto table = function->getAttrOfType<ArrayAttr>(dmir::kArenasAttr))
      llvm::append_range(arenas, table.getAsRange<DictionaryAttr>());
  }

  LogicalResult run() {
    for (auto region : function.getOps<dmir::RegionOp>()) {
      if (!region.getPlacementAttr())
        return region.emitError("the region has no placement, which the phase memory gives it");
      for (OpResult result : region->getResults())
        if (Problem problem = check(region, result))
          return region.emitError() << "the placement of result " << result.getResultNumber() << " " << *problem;
    }
    return success();
  }

private:
  Problem check(dmir::RegionOp region, OpResult result) {
    auto place = cast<DictionaryAttr>(region.getPlacementAttr()[result.getResultNumber()]);
    auto number = [&](StringRef key) { return place.getAs<IntegerAttr>(key).getInt(); };
    StorageSize needed = storageSize(result.getType()), has{number("size"), dmir::dimOfAttr(place.get("unit"), 1)};
    if (!(needed == has))
      return "has 'size' = " + textOf(has) + ", but its type takes " + textOf(needed);
    if (place.get("output"))
      return checkOutput(region, result, number("output"));
    Live live{result, number("arena"), number("offset"), 0, steps.at(region), steps.at(region)};
    if (live.arena >= static_cast<int64_t>(arenas.size()))
      return "is in the arena " + std::to_string(live.arena) + ", but the function has " +
             std::to_string(arenas.size()) + " ('" + dmir::kArenasAttr.str() + "')";
    DictionaryAttr arena = arenas[live.arena];
    int64_t size = arena.getAs<IntegerAttr>("size").getInt();
    if (Dim unit = dmir::dimOfAttr(arena.get("unit"), 1); !(unit == has.unit))
      return "has 'unit' = " + has.unit.str() + ", and its arena " + unit.str();
    if (live.begin % kBufferAlign || live.begin > size || has.count > size - live.begin)
      return "has 'offset' = " + std::to_string(live.begin) + "; it must be a multiple of " +
             std::to_string(kBufferAlign) + " with room for " + std::to_string(has.count) + " in the arena of " +
             std::to_string(size);
    live.end = live.begin + has.count;
    if (auto last = lastUse.find(result); last != lastUse.end())
      live.to = last->second;
    for (const Live &other : all)
      if (Problem problem = overlap(other, live))
        return problem;
    all.push_back(live);
    return std::nullopt;
  }

  Problem checkOutput(dmir::RegionOp region, OpResult result, int64_t output) {
    Operation *ret = function.getBody().front().getTerminator();
    if (output >= static_cast<int64_t>(ret->getNumOperands()))
      return "is the output " + std::to_string(output) + ", but the function has " +
             std::to_string(ret->getNumOperands());
    Value returned = ret->getOperand(static_cast<unsigned>(output));
    if (result.getResultNumber() == 0 && stateInPlace(region) == static_cast<unsigned>(output))
      return std::nullopt;
    if (viewedValue(returned) != result || dmir::keptName(function, false, static_cast<unsigned>(output)) ||
        !isKnownBefore(returned.getType(), region))
      return "is the output " + std::to_string(output) +
             ", whose bytes are not the result's; an arena has those of others";
    if (!outputs.insert(output).second)
      return "is the output " + std::to_string(output) + ", where another result is already";
    return std::nullopt;
  }

  Problem overlap(const Live &a, const Live &b) {
    bool apart = a.arena != b.arena || a.end <= b.begin || b.end <= a.begin || a.begin == a.end || b.begin == b.end;
    if (apart || a.to < b.from || (a.to == b.from && mayOverwrite(a, b)))
      return std::nullopt;
    return "has 'offset' = " + std::to_string(b.begin) + ", where the result of node '" +
           dmir::nodeName(a.value.getOwner()) + "' is still needed";
  }

  /// Whether the region of b reads each element of a before it writes the same one of b.
  bool mayOverwrite(const Live &a, const Live &b) {
    auto region = cast<dmir::RegionOp>(b.value.getOwner());
    auto inPlace = region.getStrategy() ? region.getStrategy()->getAs<ArrayAttr>(strategy::kInPlace) : ArrayAttr();
    unsigned reads = 0;
    bool allowed = false;
    for (auto [i, input] : llvm::enumerate(region.getInputs()))
      if (viewedValue(input) == a.value) {
        ++reads;
        allowed = inPlace && llvm::any_of(inPlace, [&, i = i](Attribute candidate) {
                    return cast<IntegerAttr>(candidate).getInt() == static_cast<int64_t>(i);
                  });
      }
    return reads == 1 && allowed && b.value.getResultNumber() == 0 && a.begin == b.begin && a.end == b.end;
  }

  static std::string textOf(const StorageSize &size) {
    return std::to_string(size.count) + (size.unit.isStatic() ? "" : " of unit '" + size.unit.str() + "'");
  }

  func::FuncOp function;
  SmallVector<DictionaryAttr> arenas;
  llvm::DenseMap<Operation *, int64_t> steps;
  llvm::DenseMap<Value, int64_t> lastUse;
  std::vector<Live> all;
  llvm::DenseSet<int64_t> outputs;
};

struct CheckPlacement : dmxc::impl::CheckPlacementBase<CheckPlacement> {
  void runOnOperation() override {
    if (failed(Checker(getOperation()).run()))
      signalPassFailure();
  }
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createCheckPlacementPass(const PhaseContext &) { return std::make_unique<CheckPlacement>(); }
} // namespace dmxc
