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
    Result<DictionaryAttr> strategy = checkedStrategy(context, region);
    if (!strategy)
      return strategy.error().message;
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
