//===- Placement.cpp - which target computes what -------------------------===//
#include "Placement.h"
#include "PlacementSizes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace mlir;

namespace dmxc::driver {

bool isComputed(Operation &op) {
  return isa_and_nonnull<dmir::DMIRDialect>(op.getDialect()) && !isa<dmir::ConstantOp, dmir::YieldOp>(op);
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

ModelSizes::ModelSizes(ModuleOp module, Given given) : module(module), given(std::move(given)) {
  if (auto list = module->getAttrOfType<ArrayAttr>(dmir::kComputedDimsAttr))
    for (Attribute row : list)
      computed[cast<StringAttr>(cast<ArrayAttr>(row)[0]).getValue()] = dmir::dimOfAttr(cast<ArrayAttr>(row)[1]);
}

std::optional<int64_t> ModelSizes::of(Dim dim) const {
  return dim.evaluate([&](std::string_view symbol) -> std::optional<int64_t> {
    StringRef name(symbol.data(), symbol.size());
    if (auto row = computed.find(name); row != computed.end())
      return of(row->second);
    return given(name);
  });
}

SmallVector<std::string> ModelSizes::inputsOf(StringRef symbol) const {
  auto row = computed.find(symbol);
  if (row == computed.end())
    return {symbol.str()};
  SmallVector<std::string> names;
  row->second.forEachSymbol(
      [&](std::string_view inner) { llvm::append_range(names, inputsOf({inner.data(), inner.size()})); });
  return names;
}

//===----------------------------------------------------------------------===//
// Counting
//===----------------------------------------------------------------------===//

namespace {

/// How often the graphs of loops run, where the model says it.
llvm::StringMap<double> tripsOf(ModuleOp module) {
  llvm::StringMap<double> trips;
  module.walk([&](dmir::LoopOp loop) {
    DenseElementsAttr count;
    if (loop.getTripCount() && matchPattern(loop.getTripCount(), m_Constant(&count)) && count.getNumElements() == 1)
      trips[loop.getBody()] = static_cast<double>(count.getValues<APInt>()[0].getSExtValue());
  });
  return trips;
}

class Counter {
public:
  Counter(ModuleOp module, const PhaseContext &context, const Options &options)
      : module(module), context(context),
        sizes(module, [module](StringRef symbol) { return dmir::nominalSize(module, symbol); }),
        trips(tripsOf(module)) {
    for (const TargetBackend *target : context.targets) {
      PlacedShare share{target->name().str()};
      share.isNamed = options.targets.empty() ? target == context.targets.front()
                                              : llvm::any_of(options.targets, [&](const TargetChoice &choice) {
                                                  return choice.name == target->name();
                                                });
      placement.shares.push_back(std::move(share));
    }
    reasons.resize(placement.shares.size());
  }

  Placement run() {
    module.walk([&](dmir::RegionOp region) {
      for (auto [i, share] : llvm::enumerate(placement.shares))
        if (share.target == region.getDevice())
          ++share.tasks;
      for (Operation &op : *region.getBlock())
        if (isComputed(op))
          count(op, region.getDevice());
    });
    auto nodes = module->getAttrOfType<IntegerAttr>(dmir::kNodesAttr);
    placement.nodes = std::max<int64_t>(nodes ? nodes.getInt() : 0, placement.placed.size());
    for (size_t i = 0; i < placement.shares.size(); ++i)
      giveReason(placement.shares[i], reasons[i]);
    llvm::erase_if(placement.shares, [](const PlacedShare &share) { return !share.isNamed && share.nodes.empty(); });
    return std::move(placement);
  }

private:
  struct Reason {
    llvm::StringSet<> nodes, products;
  };
  using Reasons = std::map<std::string, Reason>;

  void count(Operation &op, StringRef device) {
    std::string node = dmir::nodeName(&op);
    double work = multiplyAdds(op);
    placement.placed.insert(node);
    placement.multiplyAdds += work;
    bool before = true; // of -t
    for (auto [i, share] : llvm::enumerate(placement.shares)) {
      if (share.target == device) {
        share.nodes.insert(node);
        share.multiplyAdds += work;
        before = false;
      } else if (const TargetBackend &target = *context.targets[i]; !target.runsOnHost()) {
        std::optional<std::string> refusal = context.refusal(target, &op);
        Reason &reason =
            reasons[i][refusal.value_or(before ? "it computes them, but another target was chosen"
                                               : "'" + device.str() + "', which -t names before it, computes them")];
        reason.nodes.insert(node);
        if (work > 0)
          reason.products.insert(node);
        if (refusal)
          dmir::collectSymbols(&op, share.openDims);
      }
    }
  }

  void giveReason(PlacedShare &share, const Reasons &all) {
    bool ofProducts = !share.hasProducts() && placement.multiplyAdds > 0;
    for (const auto &[text, reason] : all) {
      size_t count = (ofProducts ? reason.products : reason.nodes).size();
      if (count > share.refused) {
        share.refused = count;
        share.reason = text;
      }
    }
  }

  /// Of products and convolutions; other ops have none.
  double multiplyAdds(Operation &op) const {
    auto factor = [&](Dim dim) {
      return static_cast<double>(std::max<int64_t>(sizes.of(dim).value_or(dmir::kNominalSize), 0));
    };
    auto all = [&](ArrayRef<Dim> dims) {
      double product = 1;
      for (Dim dim : dims)
        product *= factor(dim);
      return product;
    };
    double terms = 0; // of each element of the result
    if (isa<dmir::MatMulOp, dmir::GroupedMatMulOp>(op))
      terms = factor(dmir::dimsOf(op.getOperand(0)).back());
    else if (auto conv = dyn_cast<dmir::ConvOp>(op))
      terms = all(ArrayRef<Dim>(dmir::dimsOf(conv.getWeights())).drop_front());
    else
      return 0;
    auto graph = op.getParentOfType<func::FuncOp>();
    auto often = graph ? trips.find(graph.getSymName()) : trips.end();
    return terms * all(dmir::dimsOf(op.getResult(0))) * (often == trips.end() ? 1 : often->second);
  }

  ModuleOp module;
  const PhaseContext &context;
  ModelSizes sizes;
  llvm::StringMap<double> trips;
  Placement placement;
  std::vector<Reasons> reasons; ///< a target each
};

} // namespace

Placement placementOf(ModuleOp module, const PhaseContext &context, const Options &options) {
  return Counter(module, context, options).run();
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// 0 and 100 stand for none and all.
static std::string percentText(double part, double whole) {
  double percent = whole > 0 ? 100 * part / whole : 0;
  if (percent <= 0 || percent >= 100)
    return percent <= 0 ? "0 %" : "100 %";
  const char *format = percent >= 1 && percent <= 99 ? "{0:f0} %" : "{0:f1} %";
  return llvm::formatv(format, std::clamp(percent, 0.1, 99.9)).str();
}

std::string Placement::countText(const PlacedShare &share) const {
  std::string text = std::to_string(share.nodes.size()) + " of " + std::to_string(nodes) + " nodes";
  return multiplyAdds > 0 ? text + ", " + percentText(share.multiplyAdds, multiplyAdds) + " of multiply-adds" : text;
}

std::string Placement::summary() const {
  if (placed.empty())
    return "nothing to compute";
  std::string text;
  for (const PlacedShare &share : shares)
    text += (text.empty() ? "" : "; ") + share.target + " " + countText(share) + (multiplyAdds > 0 ? "," : "") +
            " in " + std::to_string(share.tasks) + (share.tasks == 1 ? " task" : " tasks");
  if (int64_t rest = nodes - static_cast<int64_t>(placed.size()))
    text += "; " + std::to_string(rest) + (rest == 1 ? " node is" : " nodes are") +
            " a constant, a view or part of another";
  return text;
}

size_t Placement::nodesAlone(StringRef target) const {
  size_t count = 0;
  for (const auto &node : placed) {
    bool here = false, elsewhere = false;
    for (const PlacedShare &share : shares)
      (share.target == target ? here : elsewhere) |= share.nodes.contains(node.getKey());
    count += here && !elsewhere;
  }
  return count;
}

void keepPlacement(ModuleOp module, const Placement &placement) {
  Builder b(module.getContext());
  SmallVector<Attribute> rows;
  for (const PlacedShare &share : placement.shares) {
    std::string text = placement.countText(share);
    if (!share.reason.empty())
      text += "; of " + std::to_string(share.refused) + " others: " + share.reason;
    rows.push_back(
        b.getDictionaryAttr({b.getNamedAttr("target", b.getStringAttr(share.target)),
                             b.getNamedAttr("nodes", b.getI64IntegerAttr(static_cast<int64_t>(share.nodes.size()))),
                             b.getNamedAttr("reason", b.getStringAttr(text))}));
  }
  module->setAttr(dmir::kPlacementAttr, b.getArrayAttr(rows));
}

} // namespace dmxc::driver
