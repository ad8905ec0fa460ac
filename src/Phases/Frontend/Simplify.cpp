//===- Simplify.cpp - canonical form of DMIR ------------------------------===//
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Phases/Frontend/Passes.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace dmxc {
#define GEN_PASS_DEF_SIMPLIFY
#include "dmxc/Phases/Frontend/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// elementwise(broadcast(x), y) = elementwise(x, y) where the result keeps its shape: elementwise ops broadcast
/// by themselves.
struct DropBroadcastOperand : RewritePattern {
  explicit DropBroadcastOperand(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!op->hasTrait<dmir::Elementwise>() || op->getNumOperands() < 2)
      return failure();
    for (OpOperand &operand : op->getOpOperands()) {
      auto broadcast = operand.get().getDefiningOp<dmir::BroadcastOp>();
      if (!broadcast || !keepsShape(op, operand, broadcast.getInput()))
        continue;
      rewriter.modifyOpInPlace(op, [&] { operand.set(broadcast.getInput()); });
      return success();
    }
    return failure();
  }

  static bool keepsShape(Operation *op, OpOperand &changed, Value replacement) {
    SmallVector<Dim> dims;
    for (OpOperand &operand : op->getOpOperands()) {
      auto next = dmir::broadcastDims(dims, dmir::dimsOf(&operand == &changed ? replacement : operand.get()));
      if (!next)
        return false;
      dims = *next;
    }
    return dims == dmir::dimsOf(op->getResult(0));
  }
};

struct Simplify : dmxc::impl::SimplifyBase<Simplify> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add<DropBroadcastOperand>(context);
    for (RegisteredOperationName name : context->getRegisteredOperations())
      if (name.getDialectNamespace() == dmir::DMIRDialect::getDialectNamespace())
        name.getCanonicalizationPatterns(patterns, context);
    GreedyRewriteConfig config;
    config.setUseTopDownTraversal(true);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      return signalPassFailure();
    IRRewriter rewriter(context);
    DominanceInfo dominance(getOperation());
    eliminateCommonSubExpressions(rewriter, dominance, getOperation());
  }
};

} // namespace

std::unique_ptr<Pass> dmxc::createSimplifyPass(const PhaseContext &) { return std::make_unique<Simplify>(); }
