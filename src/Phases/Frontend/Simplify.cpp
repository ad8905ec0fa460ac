//===- Simplify.cpp - canonical form of DMIR ------------------------------===//
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Where.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
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

/// reshape(f(x . w)) = f(reshape(x) . w) where w is a matrix, f works element by element with operands that vary along
/// columns alone, and the reshape keeps columns. Exporters flatten a product's rows to one axis and shape them again
/// afterwards; without that what follows (a residual, an activation) can join the product.
struct KeepRowsOfProduct : OpRewritePattern<dmir::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(dmir::ReshapeOp reshape, PatternRewriter &rewriter) const override {
    auto flat = reshape.getInput().getType(), type = reshape.getType();
    SmallVector<Dim> dims = dmir::dimsOf(type);
    if (flat.getRank() != 2 || dims.size() < 3 || dims.back() != dmir::dimsOf(flat)[1])
      return failure();
    SmallVector<OpOperand *> chain; // from the reshape to the product: where each op takes the rows
    Value rows = reshape.getInput();
    while (OpOperand *operand = rowsOperand(rows)) {
      chain.push_back(operand);
      rows = operand->get();
    }
    auto product = rows.getDefiningOp<dmir::MatMulOp>();
    if (!product || !product->hasOneUse() || rankOf(product.getLhs()) != 2 || rankOf(product.getRhs()) != 2 ||
        dmir::layoutOf(product.getLhs().getType()))
      return failure();
    dims.back() = dmir::dimsOf(product.getLhs())[1];
    auto lhs = cast<RankedTensorType>(product.getLhs().getType());
    Value value = dmir::ReshapeOp::create(rewriter, reshape.getLoc(), dmir::tensorOf(dims, lhs.getElementType()),
                                          product.getLhs());
    value = again(rewriter, product->getOpOperand(0), value, type);
    for (OpOperand *operand : llvm::reverse(chain))
      value = again(rewriter, *operand, value, type);
    rewriter.replaceOp(reshape, value);
    return success();
  }

  static int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

  /// The operand that alone makes the rows of an elementwise op whose result is used once; null if there is none.
  static OpOperand *rowsOperand(Value result) {
    Operation *op = result.getDefiningOp();
    if (!op || !op->hasTrait<dmir::Elementwise>() || isa<dmir::MaskOp>(op) || !result.hasOneUse())
      return nullptr;
    OpOperand *rows = nullptr;
    for (OpOperand &operand : op->getOpOperands()) {
      SmallVector<Dim> dims = dmir::dimsOf(operand.get());
      if (dims.size() < 2 || dims[0].is(1))
        continue;
      if (rows || dims != dmir::dimsOf(result))
        return nullptr;
      rows = &operand;
    }
    return rows;
  }

  /// The operand's op with another value, and with the dims of `shape` as its result's.
  static Value again(PatternRewriter &rewriter, OpOperand &operand, Value value, RankedTensorType shape) {
    Operation *op = rewriter.clone(*operand.getOwner());
    op->setOperand(operand.getOperandNumber(), value);
    Type element = elementOf(op->getResult(0));
    op->getResult(0).setType(shape.clone(element));
    return op->getResult(0);
  }
};

struct Simplify : dmxc::impl::SimplifyBase<Simplify> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add<DropBroadcastOperand, KeepRowsOfProduct>(context);
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

namespace dmxc {
std::unique_ptr<Pass> createSimplifyPass(const PhaseContext &) { return std::make_unique<Simplify>(); }
} // namespace dmxc
