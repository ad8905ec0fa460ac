//===- Quantised.cpp - what a dequantisation looks like -------------------===//
#include "Quantised.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Reference/Interpreter.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::quantised;

std::optional<Tensor> quantised::evaluateConstant(Value value) {
  if (std::optional<Tensor> tensor = dmir::constantTensor(value))
    return tensor;
  Operation *op = value.getDefiningOp();
  if (!isConstantExpression(value) || op->getNumResults() != 1 || !typeOf(value).hasStaticShape())
    return std::nullopt;
  SmallVector<Tensor> operands;
  for (Value operand : op->getOperands()) {
    std::optional<Tensor> tensor = evaluateConstant(operand);
    if (!tensor)
      return std::nullopt;
    operands.push_back(std::move(*tensor));
  }
  auto results = reference::evaluateOp(op, operands);
  return results ? std::optional<Tensor>((*results)[0]) : std::nullopt;
}

std::optional<double> quantised::evaluateNumber(Value value) {
  std::optional<Tensor> tensor = typeOf(value).hasStaticShape() && typeOf(value).getNumElements() == 1
                                     ? evaluateConstant(value)
                                     : std::optional<Tensor>();
  return tensor ? std::optional<double>(tensor->asDouble(0)) : std::nullopt;
}

bool quantised::isConstantExpression(Value value, int depth) {
  if (dmir::isConstant(value))
    return true;
  Operation *op = value.getDefiningOp();
  return depth > 0 && op && op->getNumOperands() && reference::canEvaluate(op->getName()) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isConstantExpression(operand, depth - 1); });
}

std::optional<Quantised> quantised::matchQuantised(Value value) {
  Quantised q;
  if (elementOf(value).isF32()) {
    auto mul = value.getDefiningOp<dmir::MulOp>();
    auto cast = mul ? mul.getLhs().getDefiningOp<dmir::CastOp>() : dmir::CastOp();
    if (!cast || shapeOf(cast.getResult()) != shapeOf(value))
      return std::nullopt;
    q.scale = mul.getRhs();
    value = cast.getInput();
  }
  if (auto sub = value.getDefiningOp<dmir::SubOp>()) {
    if (shapeOf(sub.getLhs()) != shapeOf(value))
      return std::nullopt;
    q.zero = sub.getRhs();
    value = sub.getLhs();
  }
  auto widened = value.getDefiningOp<dmir::CastOp>();
  if (!widened || !elementOf(value).isSignlessInteger(32) || !isByte(elementOf(widened.getInput())))
    return std::nullopt;
  q.bytes = widened.getInput();
  return q;
}
