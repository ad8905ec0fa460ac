//===- Answers.cpp - what a target of kernels says to the phases --------------===//

#include "Answers.h"

#include "targets/common/element/ElementExpr.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/masks/IndexFunction.h"
#include "dmxc/Target/TargetBackend.h"

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
    return tensor && tensor.getElementType().isIntOrFloat() && isPacked(tensor.getElementType());
  };
  return llvm::any_of(op->getOperandTypes(), packed) || llvm::any_of(op->getResultTypes(), packed);
}

/// Values that are read many times: only what is a view of memory may be fused.
bool isView(Operation *op) { return mlir::isa<dmir::TransposeOp, dmir::SliceOp, dmir::BroadcastOp>(op); }

/// Elements that all gathers together ask for of a value: taps of an interpolation have one each.
int64_t gathered(Value value) {
  int64_t count = 0;
  for (OpOperand &use : value.getUses())
    if (mlir::isa<dmir::GatherOp>(use.getOwner()) && use.getOperandNumber() == 0)
      count += elements(use.getOwner()->getResult(0));
  return count;
}

/// Bytes of the operands and results.
Dim regionBytes(dmir::RegionOp region) {
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

} // namespace

std::optional<std::string> Answers::refuses(Operation *op) const {
  std::string whose = "the " + target.str() + " target ";
  if (op->getName().getDialectNamespace() != "dmir")
    return whose + "computes DMIR ops only, not '" + op->getName().getStringRef().str() + "'";
  if (mlir::isa<dmir::YieldOp, dmir::RegionOp>(op))
    return std::nullopt;
  SmallVector<Type> types(op->getOperandTypes());
  types.append(op->result_type_begin(), op->result_type_end());
  for (Type type : types) {
    auto tensor = cast<RankedTensorType>(type);
    if (!tensor.getElementType().isIntOrFloat())
      return whose + "has no kernels for elements of type " + text(tensor.getElementType());
    if (isPacked(tensor.getElementType()) && !mlir::isa<dmir::CastOp, dmir::BitcastOp>(op))
      return whose + "has no kernels for elements of type " + text(tensor.getElementType()) +
             "; cast to a type of 8 bits or more";
    if (!tensor.hasStaticShape() && !mlir::isa_and_nonnull<dmir::DimsAttr, ArrayAttr>(tensor.getEncoding()))
      return text(type) + " has dims without a name; say what they are with #dmir.dims<...>";
  }
  if (!table.has(op))
    return whose + "has no kernel for '" + op->getName().getStringRef().str() + "'";
  return std::nullopt;
}

bool Answers::fusesProducer(Operation *root, OpOperand &use, Operation *producer) const {
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
  bool isRead = isView(owner) || (mlir::isa<dmir::CastOp, dmir::RoundBlocksOp>(owner) && table.takes(root, owner));
  if (table.readsViews(owner) || (table.readsViews(root) && isRead))
    return isView(producer) || table.takes(root, producer);
  if (!table.readsOnce(owner) || use.getOperandNumber() >= owner->getNumOperands())
    return false;
  // Index tensors are read for every element of the slice they pick.
  bool picks = mlir::isa<dmir::GatherOp, dmir::GatherElementsOp, dmir::GatherNDOp>(owner);
  if (picks && use.getOperandNumber() == 1)
    return elements(producer->getResult(0)) * 2 >= elements(owner->getResult(0));
  // An operand that is broadcast is computed again for each element it meets: views may, arithmetic may not.
  const int64_t most = 2 * elements(producer->getResult(0));
  bool grows = owner->getNumResults() && !mlir::isa<dmir::ReduceOp, dmir::ArgReduceOp>(owner) &&
               (elements(owner->getResult(0)) > most || (picks && gathered(producer->getResult(0)) > most));
  bool view = mlir::isa<dmir::TransposeOp, dmir::SliceOp, dmir::BroadcastOp, dmir::RelayoutOp>(producer);
  llvm::DenseSet<Operation *> tree;
  return !grows || view || dmir::isOfIndex(producer->getResult(0), tree);
}

bool Answers::yieldsProducer(Operation *root, Operation *producer) const {
  // The same loop has both values at hand.
  return root->hasTrait<dmir::Elementwise>() && producer->hasTrait<dmir::Elementwise>() && !hasPacked(root) &&
         !hasPacked(producer) &&
         typeOf(producer->getResult(0)).getEncoding() == typeOf(root->getResult(0)).getEncoding() &&
         dmir::dimsOf(producer->getResult(0)) == dmir::dimsOf(root->getResult(0));
}

/// Whether a relayout out of blocks is done tile by tile.
static bool turnsFromBlocks(dmir::RelayoutOp op) {
  constexpr int64_t fewest = 16;
  ArrayRef<int64_t> shape = shapeOf(op.getResult());
  int64_t positions = 1;
  for (int64_t size : shape.drop_front(std::min<size_t>(2, shape.size())))
    positions *= ShapedType::isDynamic(size) ? fewest : size;
  return !dmir::layoutOf(op.getResult().getType()) && shape.size() > 2 && shape[1] >= fewest && positions >= fewest;
}

bool Answers::fusesConsumer(Operation *root, Value result, Operation *consumer) const {
  // A relayout only changes where the result is written, but out of blocks of channels each number of a vector would go
  // elsewhere: a kernel of its own turns tiles of them.
  bool moves = mlir::isa<dmir::RelayoutOp>(consumer) &&
               !(mlir::isa<dmir::ConvOp>(root) && turnsFromBlocks(cast<dmir::RelayoutOp>(consumer)));
  bool follows = consumer->hasTrait<dmir::Elementwise>() || moves;
  return table.hasEpilogue(root) && !hasPacked(consumer) && follows && consumer->getNumResults() == 1 &&
         dmir::dimsOf(consumer->getResult(0)) == dmir::dimsOf(result);
}

DictionaryAttr Answers::strategyOf(dmir::RegionOp region, const KernelPlan &plan) const {
  MLIRContext *context = region.getContext();
  Builder b(context);
  NamedAttrList list;
  list.set(strategy::kAlgorithm, b.getStringAttr(plan.algorithm));
  auto set = [&](StringRef key, Dim size) { list.set(key, dmir::dimAttr(context, size)); };
  set(strategy::kWork, plan.work);
  set(strategy::kGrain, plan.grain);
  set(strategy::kScratch, plan.scratch);
  set(strategy::kFlops, table.operations(region.getBlock()) - plan.savedOperations);
  set(strategy::kBytes, regionBytes(region) - plan.savedBytes);
  if (DictionaryAttr sizes = nominalSizes(region.getBlock()); !sizes.empty())
    list.set("nominal", sizes);
  if (!plan.packed.empty())
    list.set(strategy::kPacked, plan.packed.getDictionary(context));
  if (!plan.tile.empty())
    list.set(strategy::kTile, b.getI64ArrayAttr(plan.tile));
  if (!plan.skips.empty())
    list.set(strategy::kSkips, b.getStrArrayAttr(plan.skips));
  if (!plan.inPlace.empty())
    list.set(strategy::kInPlace, b.getI64ArrayAttr(plan.inPlace));
  for (NamedAttribute key : plan.own)
    list.set(key.getName(), key.getValue());
  return list.getDictionary(context);
}
