//===- InferElementwise.cpp - result types of elementwise ops -------------===//
#include "Infer.h"

using namespace dmxc;
using namespace dmxc::dmir;

namespace {

/// Broadcast of all operands' shapes with the given element type.
LogicalResult inferBroadcast(OptLoc loc, mlir::ValueRange operands, Type element, llvm::StringRef rule,
                             SmallVectorImpl<Type> &results) {
  SmallVector<Dim> dims;
  for (Value operand : operands) {
    std::optional<SmallVector<Dim>> next = broadcastDims(dims, dimsOf(operand));
    if (!next)
      return emitOptionalError(loc, rule, ": shapes ", operands[0].getType(), " and ", operand.getType(),
                               " do not broadcast");
    dims = *next;
  }
  results.push_back(tensorOf(dims, element, commonLayout(operands, dims)));
  return success();
}

} // namespace

LogicalResult dmxc::dmir::inferBinary(OptLoc loc, Value lhs, Value rhs, SmallVectorImpl<Type> &results) {
  Type element = elementOf(lhs);
  if (element != elementOf(rhs))
    return emitOptionalError(loc, "C1: element types differ: ", element, " and ", elementOf(rhs));
  return inferBroadcast(loc, {lhs, rhs}, element, "C2", results);
}

LogicalResult dmxc::dmir::inferTest(MLIRContext *context, Value input, SmallVectorImpl<Type> &results) {
  auto type = typeOf(input);
  results.push_back(RankedTensorType::get(type.getShape(), mlir::IntegerType::get(context, 1), type.getEncoding()));
  return success();
}

DMIR_INFER(CompareOp) {
  SmallVector<Type> operands;
  if (failed(inferBinary(loc, op.getLhs(), op.getRhs(), operands)))
    return failure();
  auto type = cast<RankedTensorType>(operands[0]);
  results.push_back(RankedTensorType::get(type.getShape(), mlir::IntegerType::get(context, 1), type.getEncoding()));
  return success();
}

DMIR_INFER(SelectOp) {
  Type element = elementOf(op.getOnTrue());
  if (element != elementOf(op.getOnFalse()))
    return emitOptionalError(loc, "C1: element types differ: ", element, " and ", elementOf(op.getOnFalse()));
  return inferBroadcast(loc, op.getOperands(), element, "C2", results);
}

LogicalResult BitcastOp::verify() {
  Type from = elementOf(getInput()), to = elementOf(getResult());
  if (!llvm::equal(shapeOf(getInput()), shapeOf(getResult())))
    return emitOpError("C1: shapes differ: ") << getInput().getType() << " and " << getType();
  if (from.getIntOrFloatBitWidth() != to.getIntOrFloatBitWidth())
    return emitOpError("C2: elements differ in width: ") << from << " and " << to;
  return success();
}

LogicalResult CastOp::verify() {
  if (!llvm::equal(shapeOf(getInput()), shapeOf(getResult())))
    return emitOpError("C1: shapes differ: ") << getInput().getType() << " and " << getType();
  for (Value value : {getInput(), getResult()})
    if (isa<mlir::Float8E8M0FNUType>(elementOf(value)) && getInput().getType() != getType())
      return emitOpError("C4: f8E8M0FNU is not cast, its bits are: ") << getInput().getType() << " to " << getType();
  BlockFpType from = blockFpOf(getInput().getType()), to = blockFpOf(getType());
  if (!from && !to)
    return success();
  for (Value value : {getInput(), getResult()})
    if (!isa<BlockFpType, mlir::FloatType>(elementOf(value)))
      return emitOpError("C2: block_fp is cast from and to floats only, got ") << value.getType();
  for (Value value : {getInput(), getResult()})
    if (failed(checkWireFormat([&] { return emitOpError(); }, "C3", value.getType())))
      return failure();
  if (from && to && from.hasBlocks() && to.hasBlocks() && !(*this)->hasAttr(kRoundsTwiceAttr))
    emitWarning() << "values rounded to " << from.getName() << " are rounded again to " << to.getName()
                  << "; the attribute '" << kRoundsTwiceAttr << "' says that it is meant";
  return success();
}
