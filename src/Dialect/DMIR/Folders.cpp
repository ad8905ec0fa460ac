//===- Folders.cpp - folders and canonical patterns -----------------------===//
//
// Only rewrites that need no arithmetic: constants are folded by the interpreter
// (Phases/Frontend/FoldConstants). Arithmetic identities hold for every value,
// NaN, infinities and signed zeros included, or they are not here.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

namespace {

/// True if every element of a small constant equals `wanted`, the sign of zero included.
bool isSplat(Value value, double wanted) {
  if (!value.getDefiningOp<ConstantOp>())
    return false;
  std::optional<Tensor> tensor = constantTensor(value);
  if (!tensor || tensor->numElements() == 0 || tensor->numElements() > kInlineElements)
    return false;
  for (int64_t i = 0; i < tensor->numElements(); ++i)
    if (double x = tensor->asDouble(i); x != wanted || std::signbit(x) != std::signbit(wanted))
      return false;
  return true;
}

/// `keep` when op(keep, other) is keep for every value: shapes must not grow.
template <typename OpTy> OpFoldResult foldNeutral(OpTy op, Value keep, Value other, double neutral) {
  if (keep.getType() == op.getType() && isSplat(other, neutral))
    return keep;
  return {};
}

/// Whether equal types mean equal shapes: dims without a name may differ.
bool isKnown(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.hasStaticShape() || isa_and_nonnull<DimsAttr, mlir::ArrayAttr>(tensor.getEncoding());
}

bool hasFloats(Value value) { return isa<FloatType>(elementOf(value)); }

} // namespace

// x + (-0.0) is x for every float; x + 0.0 is not, for x = -0.0. For integers both zeros are one.
OpFoldResult AddOp::fold(FoldAdaptor) {
  if (isBfp32(cast<RankedTensorType>(getType()).getElementType()))
    return {};
  double zero = hasFloats(getLhs()) ? -0.0 : 0.0;
  if (OpFoldResult kept = foldNeutral(*this, getLhs(), getRhs(), zero))
    return kept;
  return foldNeutral(*this, getRhs(), getLhs(), zero);
}
OpFoldResult SubOp::fold(FoldAdaptor) { return foldNeutral(*this, getLhs(), getRhs(), 0.0); }
OpFoldResult MulOp::fold(FoldAdaptor) {
  if (OpFoldResult kept = foldNeutral(*this, getLhs(), getRhs(), 1.0))
    return kept;
  return foldNeutral(*this, getRhs(), getLhs(), 1.0);
}
OpFoldResult DivOp::fold(FoldAdaptor) { return foldNeutral(*this, getLhs(), getRhs(), 1.0); }

OpFoldResult CastOp::fold(FoldAdaptor) { return getInput().getType() == getType() ? getInput() : OpFoldResult(); }

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType() && isKnown(getType()))
    return getInput();
  // A chain of reshapes is its last one.
  if (auto inner = getInput().getDefiningOp<ReshapeOp>()) {
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  return {};
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) { return getInput().getType() == getType() ? getInput() : OpFoldResult(); }

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (llvm::is_sorted(getPermutation()) && getInput().getType() == getType())
    return getInput();
  return {};
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  bool whole = getInput().getType() == getType() && isKnown(getType()) &&
               llvm::all_of(getStarts(), [](int64_t s) { return s == 0; }) &&
               llvm::all_of(llvm::zip(getSteps(), getSizes()),
                            [](auto p) { return std::get<0>(p) == 1 || std::get<1>(p) <= 1; });
  return whole ? getInput() : OpFoldResult();
}

OpFoldResult PadBlocksOp::fold(FoldAdaptor) { return getInput().getType() == getType() ? getInput() : OpFoldResult(); }

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getInputs().size() == 1 && getInputs()[0].getType() == getType() ? getInputs()[0] : OpFoldResult();
}

OpFoldResult RelayoutOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto inner = getInput().getDefiningOp<RelayoutOp>()) {
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  return {};
}

namespace {

/// transpose(transpose(x, p), q) = transpose(x, p o q)
struct MergeTransposes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<TransposeOp>();
    if (!inner)
      return failure();
    SmallVector<int64_t> merged;
    for (int64_t axis : op.getPermutation())
      merged.push_back(inner.getPermutation()[axis]);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), inner.getInput(), merged);
    return success();
  }
};

/// A transpose that only moves axes of size 1 past others is a reshape, which costs nothing.
struct TransposeOfUnitAxes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    auto input = cast<RankedTensorType>(op.getInput().getType());
    if (!isKnown(input) || isa<BlockFpType>(input.getElementType()) || layoutOf(input) || layoutOf(op.getType()))
      return failure();
    int64_t last = -1;
    for (int64_t axis : op.getPermutation()) {
      if (input.getDimSize(axis) == 1)
        continue;
      if (axis < last)
        return failure();
      last = axis;
    }
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getInput());
    return success();
  }
};

/// A broadcast between shapes of equal element count only adds axes of size 1.
struct ReshapeOfConstant : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    std::optional<Tensor> tensor = constantTensor(op.getInput());
    if (!tensor || !type.hasStaticShape() || type.getEncoding())
      return failure();
    Attribute value = op.getInput().getDefiningOp<ConstantOp>().getValue();
    if (auto file = dyn_cast<FileDataAttr>(value))
      rewriter.replaceOpWithNewOp<ConstantOp>(
          op, FileDataAttr::get(op.getContext(), file.getPath(), file.getOffset(), file.getSize(), type));
    else
      rewriter.replaceOpWithNewOp<ConstantOp>(
          op, constantAttr(tensor->reshaped(Shape(type.getShape().begin(), type.getShape().end())), type));
    return success();
  }
};

} // namespace

void TransposeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<MergeTransposes, TransposeOfUnitAxes>(context);
}

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ReshapeOfConstant>(context);
}
