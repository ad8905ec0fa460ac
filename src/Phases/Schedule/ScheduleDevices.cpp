//===- ScheduleDevices.cpp - kernels to programs of devices ---------------===//
#include "dmxc/Phases/Phases.h"

#include "dmxc/Dialect/DLIR/Device.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {
#define GEN_PASS_DEF_SCHEDULEDEVICES
#include "dmxc/Phases/Schedule/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// A device's kernels, and what its target's stages made of such.
SmallVector<Operation *> kernelsOf(ModuleOp module, StringRef device) {
  SmallVector<Operation *> kernels;
  for (Operation &op : *module.getBody()) {
    auto kernel = dyn_cast<dlir::KernelOp>(op);
    auto program = dyn_cast<dlir::DeviceProgramOp>(op);
    auto made = op.getAttrOfType<StringAttr>(dlir::kDeviceAttr);
    if (kernel    ? kernel.getDevice() == device
        : program ? program.getDevice() == device
                  : made && made.getValue() == device && isa<SymbolOpInterface>(op))
      kernels.push_back(&op);
  }
  return kernels;
}

struct ScheduleDevices : dmxc::impl::ScheduleDevicesBase<ScheduleDevices> {
  explicit ScheduleDevices(const PhaseContext &context) : context(context) {}

  void getDependentDialects(DialectRegistry &registry) const override {
    for (const TargetBackend *target : context.targets)
      target->registerDialects(registry);
  }

  /// What a text says of it is anybody's.
  bool checkDevices() {
    for (Operation &op : *getOperation().getBody())
      if (Attribute device = op.getAttr(dlir::kDeviceAttr)) {
        auto name = dyn_cast<StringAttr>(device);
        if (name && context.target(name.getValue()))
          continue;
        op.emitError() << "'" << dlir::kDeviceAttr << "' is " << device << ", which is no target of this compile";
        return false;
      }
    return true;
  }

  void runOnOperation() override {
    if (!checkDevices())
      return signalPassFailure();
    for (const TargetBackend *target : context.targets) {
      SmallVector<Operation *> kernels = kernelsOf(getOperation(), target->name());
      if (kernels.empty())
        continue;
      if (Status scheduled = target->schedule(kernels); !scheduled) {
        if (context.report)
          context.report(*target, scheduled.error());
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
