//===- OwnWeights.cpp - weights of few bits as part of each product -------===//
//
// A product's kernel reads the bits of its weights only where nothing else reads the numbers that they become: those
// would be made in memory, in each run. Copies that are the same would be made one again, so this comes behind what
// does that.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace dmxc {
#define GEN_PASS_DEF_OWNWEIGHTS
#include "dmxc/Phases/Partition/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// The views up to a product's right operand and the dmir.dequantize of constants before them, from the product on,
/// where its kernel takes all of them; else nothing.
SmallVector<Operation *> weightsOf(Operation *product, const TargetBackend &target) {
  SmallVector<Operation *> ops;
  for (OpOperand *use = &product->getOpOperand(1);; use = &ops.back()->getOpOperand(0)) {
    Operation *op = use->get().getDefiningOp();
    if (!isa_and_nonnull<dmir::DequantizeOp, dmir::TransposeOp, dmir::SliceOp>(op) ||
        !target.fusesProducer(product, *use, op))
      return {};
    ops.push_back(op);
    if (isa<dmir::DequantizeOp>(op))
      break;
  }
  bool isKnown = llvm::all_of(ops.back()->getOperands(), [](Value value) { return dmir::isConstant(value); });
  return isKnown ? ops : SmallVector<Operation *>();
}

struct OwnWeights : dmxc::impl::OwnWeightsBase<OwnWeights> {
  explicit OwnWeights(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    for (Operation &op : getOperation().getOps()) {
      const TargetBackend *target = isa<dmir::MatMulOp, dmir::GroupedMatMulOp>(op) ? context.responsible(&op) : nullptr;
      if (!target || target->computesWholeGraphs())
        continue;
      SmallVector<Operation *> weights = weightsOf(&op, *target);
      // The last reader keeps what is there.
      if (llvm::all_of(weights, [](Operation *one) { return one->hasOneUse(); }))
        continue;
      OpBuilder b(&op);
      IRMapping mapping;
      for (Operation *one : llvm::reverse(weights))
        b.clone(*one, mapping);
      op.setOperand(1, mapping.lookup(op.getOperand(1)));
      for (Operation *one : weights)
        if (one->use_empty())
          one->erase();
    }
  }

private:
  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createOwnWeightsPass(const PhaseContext &context) {
  return std::make_unique<OwnWeights>(context);
}
} // namespace dmxc
