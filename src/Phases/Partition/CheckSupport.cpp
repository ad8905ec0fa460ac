//===- CheckSupport.cpp - every op has a target ---------------------------===//
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {
#define GEN_PASS_DEF_CHECKSUPPORT
#include "dmxc/Phases/Partition/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

struct CheckSupport : dmxc::impl::CheckSupportBase<CheckSupport> {
  explicit CheckSupport(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    for (Operation &op : getOperation().getOps()) {
      // Constants, views, the return, branches and loops are no target's work.
      if (isa<dmir::ConstantOp, dmir::ReshapeOp, dmir::IfOp, dmir::LoopOp, func::ReturnOp>(op))
        continue;
      SmallVector<std::pair<StringRef, std::string>> reasons;
      bool supported = false;
      for (const TargetBackend *target : context.targets) {
        std::optional<std::string> reason = context.refusal(*target, &op);
        supported |= !reason;
        if (reason)
          reasons.emplace_back(target->name(), *reason);
      }
      if (supported)
        continue;
      InFlightDiagnostic diagnostic = op.emitError()
                                      << "no target computes '" << op.getName() << "' here [op-unsupported]";
      for (auto &[target, reason] : reasons)
        diagnostic.attachNote() << target << ": " << reason;
      failed = true;
    }
    if (failed)
      signalPassFailure();
  }

  const PhaseContext &context;
  bool failed = false;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createCheckSupportPass(const PhaseContext &context) {
  return std::make_unique<CheckSupport>(context);
}
} // namespace dmxc
