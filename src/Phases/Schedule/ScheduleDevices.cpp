//===- ScheduleDevices.cpp - kernels to programs of devices ---------------===//
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {
#define GEN_PASS_DEF_SCHEDULEDEVICES
#include "dmxc/Phases/Schedule/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

struct ScheduleDevices : dmxc::impl::ScheduleDevicesBase<ScheduleDevices> {
  explicit ScheduleDevices(const PhaseContext &context) : context(context) {}

  void getDependentDialects(DialectRegistry &registry) const override {
    for (const TargetBackend *target : context.targets)
      target->registerDialects(registry);
  }

  void runOnOperation() override {
    for (const TargetBackend *target : context.targets) {
      SmallVector<dlir::KernelOp> kernels;
      for (auto kernel : getOperation().getOps<dlir::KernelOp>())
        if (kernel.getDevice() == target->name())
          kernels.push_back(kernel);
      if (kernels.empty())
        continue;
      if (Status scheduled = target->schedule(kernels); !scheduled) {
        if (context.report)
          context.report(scheduled.error());
        else
          getOperation().emitError() << scheduled.error().message;
        return signalPassFailure();
      }
    }
  }

  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createScheduleDevicesPass(const PhaseContext &context) {
  return std::make_unique<ScheduleDevices>(context);
}
} // namespace dmxc
