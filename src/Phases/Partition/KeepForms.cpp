//===- KeepForms.cpp - what regions of a target hand over -----------------===//
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {
#define GEN_PASS_DEF_KEEPFORMS
#include "dmxc/Phases/Partition/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

struct KeepForms : dmxc::impl::KeepFormsBase<KeepForms> {
  explicit KeepForms(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    for (auto from : getOperation().getOps<dmir::RegionOp>())
      if (from.getNumResults() == 1 && from.getResult(0).hasOneUse())
        keep(from, *from.getResult(0).use_begin());
  }

private:
  /// The type is that of the value, of what computes it and of what reads it.
  void keep(dmir::RegionOp from, OpOperand &use) {
    auto to = dyn_cast<dmir::RegionOp>(use.getOwner());
    Value computed = from.getYield()->getOperand(0);
    const TargetBackend *target = context.target(from.getDevice());
    auto type = cast<RankedTensorType>(use.get().getType());
    if (!to || to.getDevice() != from.getDevice() || !target || target->runsOnHost() || !computed.getDefiningOp() ||
        !computed.hasOneUse() || type.getEncoding())
      return;
    Attribute form = target->preferredResultLayout(from); // of the host's own layouts AssignLayouts has decided
    if (!form || !target->acceptsLayout(to, use.getOperandNumber(), form))
      return;
    type = RankedTensorType::get(type.getShape(), type.getElementType(), form);
    for (Value value : {use.get(), computed, Value(to.getBlock()->getArgument(use.getOperandNumber()))})
      value.setType(type);
  }

  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createKeepFormsPass(const PhaseContext &context) { return std::make_unique<KeepForms>(context); }
} // namespace dmxc
