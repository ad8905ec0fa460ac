//===- FoldScaling.cpp - batch norm into weights --------------------------===//
//
// conv(x, W) * s with a constant s per output channel is conv(x, W * s), and (y + b) * s is
// y * s + b * s for constants b and s. Both leave constant arithmetic behind for FoldConstants.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace dmxc {
#define GEN_PASS_DEF_FOLDSCALING
#include "dmxc/Phases/Partition/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// A constant, or arithmetic on constants that this pass left for FoldConstants.
bool isConstantExpression(Value value) {
  if (dmir::isConstant(value))
    return true;
  Operation *op = value.getDefiningOp();
  return op && isa<dmir::MulOp, dmir::AddOp, dmir::ReshapeOp>(op) &&
         llvm::all_of(op->getOperands(), isConstantExpression);
}

/// True for a constant that varies along `axis` of a tensor of `rank` axes at most.
bool perChannelConstant(Value value, int64_t rank, int64_t axis, int64_t channels) {
  if (!isConstantExpression(value) || !isa<FloatType>(elementOf(value)))
    return false;
  ArrayRef<int64_t> shape = shapeOf(value);
  int64_t lead = rank - static_cast<int64_t>(shape.size());
  if (lead < 0)
    return false;
  for (auto [i, dim] : llvm::enumerate(shape))
    if (dim != 1 && (lead + static_cast<int64_t>(i) != axis || dim != channels))
      return false;
  return true;
}

/// Splits a commutative op into (varying, constant per channel of axis 1) operands.
template <typename OpTy> std::pair<Value, Value> splitConstant(OpTy op) {
  auto type = typeOf(op.getResult());
  if (type.getRank() < 3)
    return {};
  for (auto [x, c] :
       {std::pair<Value, Value>(op.getLhs(), op.getRhs()), std::pair<Value, Value>(op.getRhs(), op.getLhs())})
    if (shapeOf(x) == type.getShape() && !isConstantExpression(x) &&
        perChannelConstant(c, type.getRank(), 1, type.getDimSize(1)))
      return {x, c};
  return {};
}

/// conv(x, W) * s -> conv(x, W * s)
struct ScaleIntoWeights : OpRewritePattern<dmir::MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(dmir::MulOp op, PatternRewriter &rewriter) const override {
    auto [x, scale] = splitConstant(op);
    auto conv = x ? x.getDefiningOp<dmir::ConvOp>() : dmir::ConvOp();
    if (!conv || !conv->hasOneUse() || !isConstantExpression(conv.getWeights()) || !isa<FloatType>(elementOf(x)))
      return failure();
    // The scale as a column over the weights' first axis.
    auto weights = typeOf(conv.getWeights());
    SmallVector<int64_t> column(weights.getRank(), 1);
    column[0] = typeOf(scale).getNumElements();
    rewriter.setInsertionPoint(conv);
    Value reshaped =
        dmir::ReshapeOp::create(rewriter, op.getLoc(), RankedTensorType::get(column, weights.getElementType()), scale);
    Value scaled = dmir::MulOp::create(rewriter, op.getLoc(), conv.getWeights(), reshaped);
    rewriter.modifyOpInPlace(conv, [&] {
      conv.getWeightsMutable().assign(scaled);
      conv->setLoc(rewriter.getFusedLoc({conv.getLoc(), op.getLoc()}));
    });
    rewriter.replaceOp(op, conv.getResult());
    return success();
  }
};

/// (conv + b) * s -> conv * s + b * s
struct DistributeScale : OpRewritePattern<dmir::MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(dmir::MulOp op, PatternRewriter &rewriter) const override {
    auto [x, scale] = splitConstant(op);
    auto add = x ? x.getDefiningOp<dmir::AddOp>() : dmir::AddOp();
    if (!add || !add->hasOneUse() || !isa<FloatType>(elementOf(x)))
      return failure();
    auto [y, bias] = splitConstant(add);
    auto conv = y ? y.getDefiningOp<dmir::ConvOp>() : dmir::ConvOp();
    if (!conv || !conv->hasOneUse() || !isConstantExpression(conv.getWeights()))
      return failure();
    Value scaled = dmir::MulOp::create(rewriter, op.getLoc(), y, scale);
    Value offset = dmir::MulOp::create(rewriter, op.getLoc(), bias, scale);
    rewriter.replaceOpWithNewOp<dmir::AddOp>(op, scaled, offset);
    return success();
  }
};

/// (conv + a) + b -> conv + (a + b) for constants, so that one bias remains.
struct MergeBiases : OpRewritePattern<dmir::AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(dmir::AddOp op, PatternRewriter &rewriter) const override {
    auto [x, second] = splitConstant(op);
    auto inner = x ? x.getDefiningOp<dmir::AddOp>() : dmir::AddOp();
    if (!inner || !inner->hasOneUse())
      return failure();
    auto [y, first] = splitConstant(inner);
    if (!y || !y.getDefiningOp<dmir::ConvOp>())
      return failure();
    Value bias = dmir::AddOp::create(rewriter, op.getLoc(), first, second);
    rewriter.replaceOpWithNewOp<dmir::AddOp>(op, y, bias);
    return success();
  }
};

struct FoldScaling : dmxc::impl::FoldScalingBase<FoldScaling> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ScaleIntoWeights, DistributeScale, MergeBiases>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createFoldScalingPass(const PhaseContext &) { return std::make_unique<FoldScaling>(); }
} // namespace dmxc
