//===- Shares.cpp - what a quad has of a value that is dealt --------------===//
#include "Shares.h"
#include "KernelFunctions.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

using namespace mlir;
using namespace dmxc;

static bool isOverQuads(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop = argument ? dyn_cast<affine::AffineForOp>(argument.getOwner()->getParentOp()) : affine::AffineForOp();
  return loop && loop->hasAttr(kQuadsAttr);
}

static bool followsQuad(OpFoldResult offset) {
  auto value = dyn_cast<Value>(offset);
  auto apply = value ? value.getDefiningOp<affine::AffineApplyOp>() : affine::AffineApplyOp();
  return value && (isOverQuads(value) || (apply && llvm::any_of(apply.getMapOperands(), isOverQuads)));
}

std::optional<int64_t> dmxc::dimOfQuads(tensor::InsertSliceOp insert) {
  for (auto [dim, offset] : llvm::enumerate(insert.getMixedOffsets()))
    if (followsQuad(offset))
      return static_cast<int64_t>(dim);
  return std::nullopt;
}

FailureOr<OpFoldResult> dmxc::inShare(OpBuilder &builder, Operation *op, OpFoldResult offset, Piece piece,
                                      const IRMapping &mapping) {
  auto foreign = [&] { return op->emitError("reads or writes shares of other quads than its own"); };
  if (!followsQuad(offset))
    return foreign();
  auto value = cast<Value>(offset);
  if (isOverQuads(value))
    return piece.share == 1 ? FailureOr<OpFoldResult>(builder.getIndexAttr(0)) : foreign();
  auto apply = value.getDefiningOp<affine::AffineApplyOp>();
  SmallVector<Value> operands(apply.getMapOperands());
  const auto number = static_cast<unsigned>(llvm::find_if(operands, isOverQuads) - operands.begin());
  const AffineExpr expr = apply.getAffineMap().getResult(0), quad = builder.getAffineDimExpr(number);
  const unsigned dims = apply.getAffineMap().getNumDims();
  const AffineExpr own = simplifyAffineExpr(expr.replace(quad, builder.getAffineConstantExpr(0)), dims, 0);
  if (simplifyAffineExpr(own + quad * piece.share - expr, dims, 0) != builder.getAffineConstantExpr(0))
    return foreign();
  if (auto constant = dyn_cast<AffineConstantExpr>(own)) {
    if (constant.getValue() < 0 || constant.getValue() + piece.size > piece.share)
      return foreign();
    return OpFoldResult(builder.getIndexAttr(constant.getValue()));
  }
  for (Value &operand : operands)
    operand = mapping.lookupOrDefault(operand);
  if (auto dim = dyn_cast<AffineDimExpr>(own))
    return OpFoldResult(operands[dim.getPosition()]);
  AffineMap map = AffineMap::get(dims, 0, own);
  return OpFoldResult(affine::AffineApplyOp::create(builder, op->getLoc(), map, operands).getResult());
}
