//===- Simplify.cpp - canonical form of DMIR ------------------------------===//
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/masks/Where.h"
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

/// concat(.., concat(parts)[range], ..) = concat(.., the parts in the range, ..). Rows that a recurrence writes one by
/// one make a chain of these, in which each step would copy all rows.
struct MergeConcats : OpRewritePattern<dmir::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(dmir::ConcatOp op, PatternRewriter &rewriter) const override {
    if (isa<dmir::BlockFpType>(elementOf(op.getResult())) || dmir::layoutOf(op.getType()))
      return failure();
    SmallVector<Value> parts;
    bool isMerged = false;
    for (Value input : op.getInputs()) {
      auto slice = input.getDefiningOp<dmir::SliceOp>();
      auto inner = slice ? slice.getInput().getDefiningOp<dmir::ConcatOp>() : dmir::ConcatOp();
      if (!inner || !isRange(slice, op.getAxis()) || !isAlike(inner, op)) {
        parts.push_back(input);
        continue;
      }
      isMerged = true;
      appendRange(inner, slice.getStarts()[op.getAxis()], slice.getSizes()[op.getAxis()], parts, rewriter);
    }
    if (!isMerged)
      return failure();
    rewriter.replaceOpWithNewOp<dmir::ConcatOp>(op, op.getType(), parts, op.getAxis());
    return success();
  }

private:
  /// Whether a slice takes one range of known places along the axis, and all of the others.
  static bool isRange(dmir::SliceOp slice, size_t axis) {
    SmallVector<Dim> from = dmir::dimsOf(slice.getInput()), to = dmir::dimsOf(slice.getResult()),
                     starts = slice.getStartDims();
    for (size_t i = 0; i < from.size(); ++i)
      if (slice.getSteps()[i] != 1 || (i != axis && (!starts[i].is(0) || from[i] != to[i])))
        return false;
    return starts[axis].isStatic() && to[axis].valueOr(0) > 0;
  }

  /// Whether all parts of a concat can be parts of another one as they are, at known places.
  static bool isAlike(dmir::ConcatOp inner, dmir::ConcatOp outer) {
    const size_t axis = outer.getAxis();
    auto dimsBesides = [&](Value value) {
      SmallVector<Dim> dims = dmir::dimsOf(value);
      dims[axis] = 1;
      return dims;
    };
    SmallVector<Dim> dims = dimsBesides(outer.getResult());
    return inner.getAxis() == outer.getAxis() && llvm::all_of(inner.getInputs(), [&](Value part) {
             return dmir::dimOf(part, axis).isStatic() && dimsBesides(part) == dims;
           });
  }

  static void appendRange(dmir::ConcatOp inner, int64_t start, int64_t size, SmallVector<Value> &parts,
                          PatternRewriter &rewriter) {
    const auto axis = static_cast<int64_t>(inner.getAxis());
    int64_t first = 0; // of the part in the whole
    for (Value part : inner.getInputs()) {
      const int64_t extent = cast<RankedTensorType>(part.getType()).getDimSize(axis);
      const int64_t from = std::max(start, first), to = std::min(start + size, first + extent);
      if (from < to)
        parts.push_back(to - from == extent ? part : sliceOf(part, axis, from - first, to - from, inner, rewriter));
      first += extent;
    }
  }

  static Value sliceOf(Value part, int64_t axis, int64_t start, int64_t size, Operation *at,
                       PatternRewriter &rewriter) {
    // A range of a range is one of the whole.
    for (auto slice = part.getDefiningOp<dmir::SliceOp>(); slice && isRange(slice, axis);
         slice = part.getDefiningOp<dmir::SliceOp>()) {
      start += slice.getStarts()[axis];
      part = slice.getInput();
    }
    SmallVector<Dim> dims = dmir::dimsOf(part), dynamic;
    dims[axis] = size;
    SmallVector<int64_t> starts(dims.size(), 0), steps(dims.size(), 1), sizes = dmir::splitDims(dims, dynamic);
    starts[axis] = start;
    return dmir::SliceOp::create(rewriter, at->getLoc(), dmir::tensorOf(dims, elementOf(part)), part, starts, sizes,
                                 steps, dmir::dimsAttr(rewriter.getContext(), dynamic));
  }
};

struct Simplify : dmxc::impl::SimplifyBase<Simplify> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add<DropBroadcastOperand, KeepRowsOfProduct, MergeConcats>(context);
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
