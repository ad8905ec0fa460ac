//===- ChooseStrategies.cpp - how each region is computed -----------------===//
#include "dmxc/Phases/Decisions.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {
#define GEN_PASS_DEF_CHOOSESTRATEGIES
#include "dmxc/Phases/Partition/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

std::string textOf(Attribute attr) {
  std::string text;
  llvm::raw_string_ostream(text) << attr;
  return text;
}

/// What of a strategy is not as the target derives it; nullopt where nothing is. `path` is that of the dictionary.
std::optional<std::string> difference(DictionaryAttr given, DictionaryAttr derived, const std::string &path = "") {
  for (NamedAttribute entry : given) {
    std::string key = path + entry.getName().str();
    Attribute needed = derived.get(entry.getName());
    auto inner = dyn_cast<DictionaryAttr>(entry.getValue());
    if (needed == entry.getValue() || (!needed && inner && inner.empty()))
      continue;
    if (!needed)
      return "'" + key + "' of its strategy is " + textOf(entry.getValue()) + ", but it has none; leave it out";
    if (auto other = dyn_cast<DictionaryAttr>(needed); inner && other) {
      if (auto found = difference(inner, other, key + "."))
        return found;
      continue;
    }
    return "'" + key + "' of its strategy is " + textOf(entry.getValue()) + ", but must be " + textOf(needed) +
           "; what is left out is derived";
  }
  return std::nullopt;
}

struct ChooseStrategies : dmxc::impl::ChooseStrategiesBase<ChooseStrategies> {
  explicit ChooseStrategies(const PhaseContext &context) : context(context) {}

  void getDependentDialects(DialectRegistry &registry) const override {
    for (const TargetBackend *target : context.targets)
      target->registerDialects(registry);
  }

  void runOnOperation() override {
    for (auto region : getOperation().getOps<dmir::RegionOp>()) {
      std::optional<std::string> problem = choose(region);
      if (!problem)
        continue;
      region.emitError() << *problem;
      return signalPassFailure();
    }
  }

private:
  /// Gives a region its strategy; the reason where it cannot have one.
  std::optional<std::string> choose(dmir::RegionOp region) {
    const TargetBackend *target = context.target(region.getDevice());
    if (!target)
      return "the region is for the device '" + region.getDevice().str() + "', which is no target of this compile";
    for (Operation &op : region.getBlock()->without_terminator())
      if (auto refusal = context.checkStrategies ? context.refusal(*target, &op) : std::nullopt)
        return "'" + op.getName().getStringRef().str() + "' cannot be in a region of '" + target->name().str() +
               "': " + *refusal;
    DictionaryAttr given = region.getStrategyAttr();
    Result<DictionaryAttr> strategy = completeStrategy(*target, region);
    if (!strategy)
      return strategy.error().message;
    if (given)
      if (std::optional<std::string> found = difference(given, *strategy))
        return found;
    region.setStrategyAttr(*strategy);
    return std::nullopt;
  }

  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createChooseStrategiesPass(const PhaseContext &context) {
  return std::make_unique<ChooseStrategies>(context);
}
} // namespace dmxc
