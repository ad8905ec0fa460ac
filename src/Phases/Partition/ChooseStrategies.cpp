//===- ChooseStrategies.cpp - how each region is computed -----------------===//
#include "dmxc/Phases/Partition/Passes.h"

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
      if (region.getStrategy()) // a schedule script or an earlier run decided
        continue;
      Result<DictionaryAttr> strategy = context.target(region.getDevice())->chooseStrategy(region);
      if (!strategy) {
        region.emitError() << strategy.error().message;
        return signalPassFailure();
      }
      region.setStrategyAttr(*strategy);
    }
  }

  const PhaseContext &context;
};

} // namespace

std::unique_ptr<Pass> dmxc::createChooseStrategiesPass(const PhaseContext &context) {
  return std::make_unique<ChooseStrategies>(context);
}
