//===- Fusion.cpp - what the CPU target computes and fuses --------------------===//

#include "Fusion.h"

#include "Kernels.h"

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "targets/common/element/ElementExpr.h"
#include "targets/cpu/conv/ConvRegion.h"
#include "targets/cpu/product/BlockWeights.h"
#include "targets/cpu/product/MatmulRegion.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

#include "llvm/Support/raw_ostream.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

namespace {

/// Elements of a value, symbols taken as middling sizes: for what pays, not for what is right.
int64_t elements(Value v) {
  return dmir::elementsOf(v.getType())
      .evaluate([](std::string_view) { return std::optional<int64_t>(64); })
      .value_or(64);
}

std::string text(Type type) {
  std::string s;
  llvm::raw_string_ostream(s) << type;
  return s;
}

/// Elements of 4 and 2 bits share bytes: the ops that read or write them stand alone, so that no other kernel has to.
bool hasPacked(Operation *op) {
  auto packed = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getElementType().isIntOrFloat() && cpu::isPacked(tensor.getElementType());
  };
  return llvm::any_of(op->getOperandTypes(), packed) || llvm::any_of(op->getResultTypes(), packed);
}

bool isProduct(Operation *op) { return mlir::isa<dmir::MatMulOp, dmir::GroupedMatMulOp>(op); }

/// Whether a product may take the bits of the constants that `producer` makes its right operand of.
bool isOfFewBits(Operation *root, Operation *producer) {
  if (!isProduct(root) || !mlir::isa<dmir::DequantizeOp>(producer) || !cpu::computedWith(root).empty() ||
      !llvm::all_of(producer->getOperands(), [](Value v) { return dmir::isConstant(v); }))
    return false;
  std::optional<cpu::BlockWeights> weights = cpu::matchBlockWeights(root->getOperand(1));
  return weights && weights->op == producer && weights->grouped() == mlir::isa<dmir::GroupedMatMulOp>(root) &&
         typeOf(root->getOperand(0)).getElementType() == typeOf(root->getOperand(1)).getElementType();
}

/// Values inside a matrix product are read many times: only what is a view of memory may be fused.
bool isView(Operation *op) { return mlir::isa<dmir::TransposeOp, dmir::SliceOp, dmir::BroadcastOp>(op); }

} // namespace

std::optional<std::string> cpu::refuses(Operation *op) {
  if (op->getName().getDialectNamespace() != "dmir")
    return "the cpu target computes DMIR ops only, not '" + op->getName().getStringRef().str() + "'";
  if (mlir::isa<dmir::YieldOp, dmir::RegionOp>(op))
    return std::nullopt;
  SmallVector<Type> types(op->getOperandTypes());
  types.append(op->result_type_begin(), op->result_type_end());
  for (Type type : types) {
    auto tensor = cast<RankedTensorType>(type);
    if (!tensor.getElementType().isIntOrFloat())
      return "the cpu target has no kernels for elements of type " + text(tensor.getElementType());
    if (cpu::isPacked(tensor.getElementType()) && !mlir::isa<dmir::CastOp, dmir::BitcastOp>(op))
      return "the cpu target has no kernels for elements of type " + text(tensor.getElementType()) +
             "; cast to a type of 8 bits or more";
    if (!tensor.hasStaticShape() && !mlir::isa_and_nonnull<dmir::DimsAttr, ArrayAttr>(tensor.getEncoding()))
      return text(type) + " has dims without a name; say what they are with #dmir.dims<...>";
  }
  if (!cpuKernels().has(op))
    return "the cpu target has no kernel for '" + op->getName().getStringRef().str() + "'";
  return std::nullopt;
}

SmallVector<Operation *> cpu::computedWith(Operation *root) { return cpuKernels().computedWith(root); }

bool cpu::fusesProducer(Operation *root, OpOperand &use, Operation *producer) {
  Operation *owner = use.getOwner();
  if (hasPacked(root) || hasPacked(owner) || hasPacked(producer))
    return false;
  if (mlir::isa<dmir::ConcatOp>(producer)) {
    // A part is chosen by a branch where lanes do not run along the axis, or lie in one part together (the halves that
    // rotary embeddings swap); else by masks.
    auto concat = cast<dmir::ConcatOp>(producer);
    unsigned axis = concat.getAxis();
    bool aligned = concat.getInputs().size() <= 4 && llvm::all_of(concat.getInputs(), [&](Value part) {
                     return typeOf(part).getDimSize(axis) > 0 && typeOf(part).getDimSize(axis) % 16 == 0;
                   });
    if (axis + 1 == typeOf(concat.getResult()).getRank() && !aligned)
      return false;
  }
  if (isProduct(owner) || (isProduct(root) && isView(owner)))
    return isView(producer) || isOfFewBits(root, producer);
  if (!cpuKernels().readsOnce(owner) || use.getOperandNumber() >= owner->getNumOperands())
    return false;
  // Index tensors are read for every element of the slice they pick.
  bool picks = mlir::isa<dmir::GatherOp, dmir::GatherElementsOp, dmir::GatherNDOp>(owner);
  if (picks && use.getOperandNumber() == 1)
    return elements(producer->getResult(0)) * 2 >= elements(owner->getResult(0));
  // An operand that is broadcast is computed again for each element it meets: views may, arithmetic may not.
  bool grows = owner->getNumResults() && !mlir::isa<dmir::ReduceOp, dmir::ArgReduceOp>(owner) &&
               elements(owner->getResult(0)) > 2 * elements(producer->getResult(0));
  bool view = mlir::isa<dmir::TransposeOp, dmir::SliceOp, dmir::BroadcastOp, dmir::RelayoutOp>(producer);
  return !grows || view;
}

bool cpu::yieldsProducer(Operation *root, Operation *producer) {
  // The same loop has both values at hand.
  return root->hasTrait<dmir::Elementwise>() && producer->hasTrait<dmir::Elementwise>() && !hasPacked(root) &&
         !hasPacked(producer) &&
         typeOf(producer->getResult(0)).getEncoding() == typeOf(root->getResult(0)).getEncoding() &&
         dmir::dimsOf(producer->getResult(0)) == dmir::dimsOf(root->getResult(0));
}

bool cpu::fusesConsumer(Operation *root, Value result, Operation *consumer) {
  // A relayout only changes where the result is written.
  bool follows = consumer->hasTrait<dmir::Elementwise>() || mlir::isa<dmir::RelayoutOp>(consumer);
  return cpuKernels().hasEpilogue(root) && !hasPacked(consumer) && follows && consumer->getNumResults() == 1 &&
         dmir::dimsOf(consumer->getResult(0)) == dmir::dimsOf(result);
}

Status cpu::packConstant(DictionaryAttr form, const Tensor &constant, std::span<std::byte> out) {
  StringRef name = formName(form);
  if (isMatmulForm(form))
    return packMatmulOperand(form, constant, out);
  if (name.starts_with("conv"))
    return packConvOperand(form, constant, out);
  return Error{ErrorKind::Internal, "the cpu target knows no packed form '" + name.str() + "'"};
}

Dim cpu::regionBytes(dmir::RegionOp region) {
  Dim bytes = 0;
  auto add = [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    std::optional<DType> dtype = dmir::dtypeOf(tensor.getElementType());
    if (dtype && tensor.hasStaticShape())
      bytes += static_cast<int64_t>(dtypeBytes(*dtype, tensor.getNumElements()));
    else if (dtype)
      bytes += Dim::ceilDiv(dmir::elementsOf(type) * static_cast<int64_t>(dtypeBits(*dtype)), 8);
  };
  for (Type type : region->getOperandTypes())
    add(type);
  for (Type type : region->getResultTypes())
    add(type);
  return bytes;
}
