//===- TileForms.cpp - values of loops over tiles -------------------------===//
#include "TileForms.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "targets/corsair/dialect/AffineExt/AffineExt.h"

#include "mlir/IR/IntegerSet.h"

using namespace mlir;
using namespace dmxc;
using affine_ext::VecExtType;

std::optional<TileForm> dmxc::formOf(Type type) {
  auto tile = dyn_cast<VecExtType>(type);
  if (!tile)
    return std::nullopt;
  const Type element = tile.getElementType();
  if (tile.getShape() == ArrayRef<int64_t>{64} && dmir::isBfp32(element))
    return TileForm::Bias;
  if (tile.getShape() != ArrayRef<int64_t>{64, 64})
    return std::nullopt;
  if (dmir::isBfp32(element))
    return TileForm::Sum;
  if (auto block = dyn_cast<dmir::BlockFpType>(element))
    return block.getName() == "BFP16_64R"   ? std::optional(TileForm::Activations)
           : block.getName() == "BFP16_64C" ? std::optional(TileForm::Weights)
                                            : std::nullopt;
  return element.isF16() || element.isF32() ? std::optional(TileForm::Number) : std::nullopt;
}

int64_t dmxc::evaluate(AffineExpr expr, ArrayRef<int64_t> dims, ArrayRef<int64_t> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  const int64_t a = evaluate(binary.getLHS(), dims, symbols), b = evaluate(binary.getRHS(), dims, symbols);
  const auto wrapped = [](uint64_t value) { return static_cast<int64_t>(value); };
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return wrapped(uint64_t(a) + uint64_t(b));
  case AffineExprKind::Mul:
    return wrapped(uint64_t(a) * uint64_t(b));
  case AffineExprKind::Mod:
    return b < 1 ? -1 : llvm::mod(a, b);
  case AffineExprKind::FloorDiv:
    return b < 1 ? -1 : llvm::divideFloorSigned(a, b);
  default:
    return b < 1 ? -1 : llvm::divideCeilSigned(a, b);
  }
}

bool dmxc::holds(IntegerSet set, ArrayRef<int64_t> operands) {
  return llvm::all_of(llvm::seq(set.getNumConstraints()), [&](unsigned i) {
    const int64_t value =
        evaluate(set.getConstraint(i), operands.take_front(set.getNumDims()), operands.drop_front(set.getNumDims()));
    return set.isEq(i) ? value == 0 : value >= 0;
  });
}

bool dmxc::isOfNestBehind(affine::AffineLoadOp load) {
  Operation *next = load->getNextNode();
  while (isa_and_present<affine::AffineLoadOp>(next))
    next = next->getNextNode();
  return isa_and_present<affine::AffineForOp>(next) &&
         llvm::all_of(load->getUsers(), [&](Operation *user) { return next->isProperAncestor(user); });
}

SmallVector<affine::AffineLoadOp> dmxc::loadsBefore(affine::AffineForOp nest) {
  SmallVector<affine::AffineLoadOp> loads;
  for (Operation *op = nest->getPrevNode(); isa_and_present<affine::AffineLoadOp>(op); op = op->getPrevNode())
    loads.push_back(cast<affine::AffineLoadOp>(op));
  return SmallVector<affine::AffineLoadOp>(llvm::reverse(loads));
}
