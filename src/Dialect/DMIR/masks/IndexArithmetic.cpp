//===- IndexArithmetic.cpp - values that are cheaper computed than read ---===//
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/masks/IndexFunction.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

static constexpr size_t kMostOps = 16;
static constexpr uint64_t kMostBytes = 256 << 10; ///< of what is read

static bool isSmall(RankedTensorType type) {
  std::optional<DType> dtype = dtypeOf(type.getElementType());
  return dtype && type.hasStaticShape() && dtypeBytes(*dtype, type.getNumElements()) <= kMostBytes;
}

bool dmir::isOfIndex(Value value, llvm::DenseSet<Operation *> &tree) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumResults() != 1 || tree.size() > kMostOps)
    return false;
  if (isa<IotaOp>(op)) {
    tree.insert(op);
    return true;
  }
  if (!isa<AddOp, SubOp, MulOp, NegOp, AbsOp, MinOp, MaxOp, CastOp, CompareOp, AndOp, OrOp, NotOp, SelectOp,
           BroadcastOp, ConstantOp>(op))
    return false;
  if (isa<ConstantOp>(op))
    return isSmall(cast<RankedTensorType>(value.getType()));
  size_t before = tree.size();
  for (Value operand : op->getOperands())
    if (!isOfIndex(operand, tree))
      return false;
  if (tree.size() > before || !isSmall(cast<RankedTensorType>(value.getType()))) // else it is a constant itself
    tree.insert(op);
  return tree.size() <= kMostOps;
}
