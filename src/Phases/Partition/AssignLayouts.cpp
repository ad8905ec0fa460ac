//===- AssignLayouts.cpp - physical layouts of values ---------------------===//
//
// One forward walk. The target says in which layout an op should produce its result, seeing
// the layouts its operands already have, and which layouts it can read; the pass puts a dmir.relayout where
// a value arrives in a layout its user cannot read. Function arguments and results are row-major.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {
#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "dmxc/Phases/Partition/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

RankedTensorType withLayout(Type type, Attribute layout) {
  return dmir::tensorOf(dmir::dimsOf(type), cast<RankedTensorType>(type).getElementType(), layout);
}

struct AssignLayouts : dmxc::impl::AssignLayoutsBase<AssignLayouts> {
  explicit AssignLayouts(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    // One relayout a value and layout; made where the value is first wanted so, usable by all later users.
    llvm::DenseMap<std::pair<Value, Attribute>, Value> relayouts;
    for (Operation &op : llvm::make_early_inc_range(getOperation().getOps())) {
      if (isa<dmir::ConstantOp, dmir::RelayoutOp>(op))
        continue;
      const TargetBackend *target = responsible(&op);
      if (target && op.getNumResults() == 1)
        if (Attribute layout = target->preferredResultLayout(&op))
          op.getResult(0).setType(withLayout(op.getResult(0).getType(), layout));
      for (OpOperand &operand : op.getOpOperands()) {
        Attribute wanted = wantedLayout(target, &op, operand);
        Attribute have = dmir::layoutOf(operand.get().getType());
        if (wanted == have)
          continue;
        Value &changed = relayouts[{operand.get(), wanted}];
        if (!changed) {
          OpBuilder builder(&op);
          // No node of the model, so that a node's name means what computes it.
          changed = dmir::RelayoutOp::create(builder, builder.getUnknownLoc(),
                                             withLayout(operand.get().getType(), wanted), operand.get());
        }
        operand.set(changed);
      }
    }
  }

  /// The operand's own layout if the op can read it, else the result's, else row-major.
  Attribute wantedLayout(const TargetBackend *target, Operation *op, OpOperand &operand) {
    Attribute have = dmir::layoutOf(operand.get().getType());
    if (!target)
      return {};
    unsigned number = operand.getOperandNumber();
    if (target->acceptsLayout(op, number, have))
      return have;
    if (op->getNumResults() == 1)
      if (Attribute result = dmir::layoutOf(op->getResult(0).getType());
          result && target->acceptsLayout(op, number, result))
        return result;
    return {};
  }

  /// Who computes the op; null for what is row-major: views, the return, operands of branches and loops.
  const TargetBackend *responsible(Operation *op) {
    return isa<dmir::ReshapeOp, dmir::IfOp, dmir::LoopOp, func::ReturnOp>(op) ? nullptr : context.responsible(op);
  }

  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createAssignLayoutsPass(const PhaseContext &context) {
  return std::make_unique<AssignLayouts>(context);
}
} // namespace dmxc
