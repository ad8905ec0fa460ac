//===- Kernel.cpp - which ops the array computes --------------------------===//
#include "Kernel.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The row that a sum adds to a value; null where it adds something else.
Value biasOf(dmir::AddOp sum, Value to) {
  if (sum.getLhs() == sum.getRhs() || (sum.getLhs() != to && sum.getRhs() != to) ||
      sum.getResult().getType() != to.getType())
    return {};
  Value bias = sum.getLhs() == to ? sum.getRhs() : sum.getLhs();
  RankedTensorType type = typeOf(bias), whole = typeOf(to);
  bool row = type.hasStaticShape() && type.getRank() > 0 && type.getShape().back() == whole.getShape().back() &&
             type.getNumElements() == whole.getShape().back() && type.getNumElements() > 1;
  return row ? bias : Value();
}

/// Leading dims of the left operand are rows like others, for the right one has none.
void setSizes(Product &out, dmir::MatMulOp product) {
  ArrayRef<int64_t> lhs = typeOf(product.getLhs()).getShape(), rhs = typeOf(product.getRhs()).getShape();
  out.numbers = numbersOf(typeOf(product.getResult()).getElementType());
  out.m = ShapedType::getNumElements(lhs.drop_back());
  out.k = lhs.back();
  out.n = rhs[1];
}

std::optional<std::string> refuses(const hw::Machine &machine, const Herd &herd, dmir::MatMulOp product) {
  Type element = typeOf(product.getResult()).getElementType();
  for (Value value : {product.getLhs(), product.getRhs(), product.getResult()}) {
    RankedTensorType type = typeOf(value);
    if (!numbersOf(element) || type.getElementType() != element)
      return "the array multiplies f32 (as bf16) and i32 so far";
    if (!type.hasStaticShape() || type.getNumElements() == 0)
      return "the array multiplies matrices of fixed sizes";
    if (dmir::isConstant(value) && type.getNumElements() == 1) // it would be part of the kernel
      return "the array has no numbers in its kernels";
  }
  if (typeOf(product.getRhs()).getRank() != 2)
    return "the array multiplies by one matrix so far, not by a batch of them";
  if (product.getLhs() == product.getRhs())
    return "the array multiplies two matrices, not one with itself";
  Product out;
  out.herd = herd;
  setSizes(out, product);
  return aie::refuses(machine, out);
}

/// The product behind which an op is computed; null where there is none.
dmir::MatMulOp rootOf(Operation *op) {
  for (Value operand : op->getOperands()) {
    Operation *before = operand.getDefiningOp();
    if (!before || !operand.hasOneUse() || !isEpilogue(op, operand))
      continue;
    if (auto product = dyn_cast<dmir::MatMulOp>(before))
      return product;
    if (isa<dmir::ReluOp>(op) && isa<dmir::AddOp>(before))
      if (dmir::MatMulOp product = rootOf(before))
        return product;
  }
  return {};
}

} // namespace

bool aie::isEpilogue(Operation *op, Value result) {
  if (isa<dmir::ReluOp>(op))
    return true;
  auto sum = dyn_cast<dmir::AddOp>(op);
  auto product = result.getDefiningOp<dmir::MatMulOp>();
  Value bias = sum && product ? biasOf(sum, result) : Value();
  return bias && bias != product.getLhs() && bias != product.getRhs();
}

std::optional<std::string> aie::refuses(const hw::Machine &machine, const Herd &herd, Operation *op) {
  if (auto product = dyn_cast<dmir::MatMulOp>(op))
    return ::refuses(machine, herd, product);
  dmir::MatMulOp product = isa<dmir::AddOp, dmir::ReluOp>(op) ? rootOf(op) : dmir::MatMulOp();
  if (product && !::refuses(machine, herd, product))
    return std::nullopt;
  return isa<dmir::ConvOp>(op) ? "the array computes no convolutions so far"
                               : "the array only multiplies matrices, with a row added and a relu behind";
}

Result<Product> aie::productOf(Block *block, const Herd &herd) {
  auto wrong = [](const char *why) { return Error{ErrorKind::Model, why}; };
  auto product = dyn_cast<dmir::MatMulOp>(block->front());
  if (!product || typeOf(product.getRhs()).getRank() != 2 || !numbersOf(typeOf(product.getResult()).getElementType()))
    return wrong("it is no product by one matrix, with a row added and a relu");
  Product out;
  out.herd = herd;
  setSizes(out, product);
  Value result = product.getResult(), bias;
  for (Operation &op : llvm::drop_begin(block->without_terminator())) {
    if (!isEpilogue(&op, result) || (op.getOperand(0) != result && op.getOperand(op.getNumOperands() - 1) != result) ||
        out.relu)
      return wrong("it computes something else behind its product than the sum with a row and a relu");
    if (auto sum = dyn_cast<dmir::AddOp>(op))
      bias = biasOf(sum, result);
    else
      out.relu = true;
    result = op.getResult(0);
  }
  Operation *end = block->getTerminator();
  if (end->getNumOperands() != 1 || end->getOperand(0) != result)
    return wrong("it has other results than its last op's");
  for (BlockArgument argument : block->getArguments()) {
    RankedTensorType type = typeOf(argument);
    if (argument == product.getLhs())
      out.operands.push_back({Part::A, type});
    else if (argument == product.getRhs())
      out.operands.push_back({Part::B, type});
    else if (argument == bias)
      out.operands.push_back({Part::Bias, type});
  }
  if (out.operands.size() != block->getNumArguments() || out.operands.size() != (bias ? 3u : 2u))
    return wrong("it does not multiply its arguments");
  out.operands.push_back({Part::C, typeOf(result)});
  return out;
}
