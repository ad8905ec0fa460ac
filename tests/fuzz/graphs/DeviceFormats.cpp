//===- DeviceFormats.cpp - DMIR in the numbers of a device ----------------===//

#include "DeviceFormats.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "schemas/blockfp/ScalarNumbers.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

#include <numeric>

using namespace mlir;

namespace dmxc::fuzz {
namespace {

bool isDevice(Operation *op) {
  auto region = dyn_cast_or_null<dmir::RegionOp>(op);
  return region && region.getDevice() == "corsair";
}

/// To a type of elements and back.
Value through(OpBuilder &b, Location loc, Value value, Type element) {
  auto type = typeOf(value);
  Value narrow = dmir::CastOp::create(b, loc, RankedTensorType::get(type.getShape(), element), value);
  return dmir::CastOp::create(b, loc, type, narrow);
}

Value transposed(OpBuilder &b, Location loc, Value value, ArrayRef<int64_t> order) {
  auto type = typeOf(value);
  SmallVector<int64_t> shape;
  for (int64_t axis : order)
    shape.push_back(type.getDimSize(static_cast<unsigned>(axis)));
  return dmir::TransposeOp::create(b, loc, RankedTensorType::get(shape, type.getElementType()), value,
                                   b.getDenseI64ArrayAttr(order));
}

bool fits(Value value) {
  auto type = typeOf(value);
  return type.getElementType().isF32() && type.hasStaticShape() && type.getRank() >= 2 && type.getNumElements() &&
         !type.getEncoding();
}

/// Blocks of an operand run along the terms of a sum: the last dim of a left matrix, the second-last of a right one,
/// the channels of an image and of a filter.
void quantize(OpBuilder &b, Operation *product, unsigned number) {
  OpOperand &operand = product->getOpOperand(number);
  if (!fits(operand.get()))
    return;
  bool channels = isa<dmir::ConvOp>(product);
  const char *form = number == 0 || channels ? "!dmir.block_fp<BFP16_64R>" : "!dmir.block_fp<BFP16_64C>";
  Type element = parseType(form, b.getContext());
  Value value = operand.get();
  b.setInsertionPoint(product);
  if (!channels) {
    operand.set(through(b, product->getLoc(), value, element));
    return;
  }
  SmallVector<int64_t> order(static_cast<size_t>(typeOf(value).getRank())), back(order.size());
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  Value last = through(b, product->getLoc(), transposed(b, product->getLoc(), value, order), element);
  operand.set(transposed(b, product->getLoc(), last, back));
}

} // namespace

void castToDeviceFormats(ModuleOp module) {
  OpBuilder b(module.getContext());
  SmallVector<Operation *> products;
  module.walk([&](dmir::RegionOp region) {
    if (!isDevice(region))
      return;
    b.setInsertionPointToStart(region.getBlock());
    for (BlockArgument argument : region.getBlock()->getArguments())
      if (elementOf(argument).isF32() && typeOf(argument).hasStaticShape()) {
        Value rounded = through(b, region.getLoc(), argument, b.getF16Type());
        argument.replaceAllUsesExcept(rounded, rounded.getDefiningOp()->getOperand(0).getDefiningOp());
      }
    for (Operation &op : *region.getBlock())
      if (isa<dmir::MatMulOp, dmir::ConvOp>(op))
        products.push_back(&op);
  });
  for (Operation *product : products)
    for (unsigned number : {0u, 1u})
      quantize(b, product, number);
}

reference::OpObserver narrowing() {
  return [](Operation *op, llvm::MutableArrayRef<Tensor> results) {
    if (!isDevice(op->getParentOp()))
      return;
    for (Tensor &result : results) {
      if (result.dtype() != DType::F32)
        continue;
      Tensor rounded(DType::F32, result.shape());
      const float *from = result.as<float>();
      std::transform(from, from + result.numElements(), rounded.as<float>(),
                     [](float x) { return static_cast<float>(dmx::blockfp::f16Read(dmx::blockfp::f16Round(x))); });
      result = std::move(rounded);
    }
  };
}

} // namespace dmxc::fuzz
