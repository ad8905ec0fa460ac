//===- Accesses.cpp - what ops in loops touch -----------------------------===//
#include "Accesses.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace dmxc::transform;
using affine::AffineForOp;

Value dmxc::transform::baseOf(Value memref) {
  while (Operation *op = memref.getDefiningOp()) {
    auto memrefs = llvm::make_filter_range(op->getOperands(),
                                           [](Value operand) { return isa<BaseMemRefType>(operand.getType()); });
    if (op->getNumResults() != 1 || !isMemoryEffectFree(op) || !llvm::hasSingleElement(memrefs))
      break;
    memref = *memrefs.begin();
  }
  return memref;
}

/// Whether nothing else is known by another name to be the same memory.
static bool isItsOwn(Value base) {
  if (auto argument = dyn_cast<BlockArgument>(base))
    return isa<FunctionOpInterface>(argument.getOwner()->getParentOp()) || isa<RankedTensorType>(base.getType());
  auto effects = dyn_cast<MemoryEffectOpInterface>(base.getDefiningOp());
  return effects && effects.getEffectOnValue<MemoryEffects::Allocate>(base);
}

bool dmxc::transform::mayBeSame(Value a, Value b) { return a == b || !isItsOwn(a) || !isItsOwn(b); }

Accesses::Accesses(AffineForOp root) : root(root) {
  root.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!unknown)
      add(op);
  });
  for (auto [argument, yielded] :
       llvm::zip_equal(root.getRegionIterArgs(), root.getBody()->getTerminator()->getOperands()))
    addCarried(argument, yielded);
}

void Accesses::add(Operation *op) {
  if (auto load = dyn_cast<affine::AffineLoadOp>(op))
    return addBox(op, load.getMemref(), false, load.getAffineMap(), load.getMapOperands(), {});
  if (auto store = dyn_cast<affine::AffineStoreOp>(op))
    return addBox(op, store.getMemref(), true, store.getAffineMap(), store.getMapOperands(), {});
  if (auto load = dyn_cast<affine::AffineVectorLoadOp>(op))
    return addBox(op, load.getMemref(), false, load.getAffineMap(), load.getMapOperands(),
                  load.getVectorType().getShape());
  if (auto store = dyn_cast<affine::AffineVectorStoreOp>(op))
    return addBox(op, store.getMemref(), true, store.getAffineMap(), store.getMapOperands(),
                  store.getVectorType().getShape());
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  if (!interface) {
    if (!op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      unknown = op;
    return;
  }
  SmallVector<MemoryEffects::EffectInstance> effects;
  interface.getEffects(effects);
  for (const MemoryEffects::EffectInstance &effect : effects) {
    if (!effect.getValue()) {
      unknown = op;
      return;
    }
    if (effect.getValue().getDefiningOp() == op)
      continue; // what it allocates is of its trip
    addWhole(op, effect.getValue(), !isa<MemoryEffects::Read>(effect.getEffect()));
  }
}

/// The loops around an op, the outermost first.
static SmallVector<AffineForOp> loopsAround(Operation *op, AffineForOp root) {
  SmallVector<AffineForOp> loops;
  for (Operation *parent = op->getParentOp(); parent && root->isAncestor(parent); parent = parent->getParentOp())
    if (auto loop = dyn_cast<AffineForOp>(parent))
      loops.push_back(loop);
  std::reverse(loops.begin(), loops.end());
  return loops;
}

void Accesses::addWhole(Operation *op, Value of, bool writes) {
  all.push_back({op, of, baseOf(of), writes, true, {}, {}, {}, loopsAround(op, root)});
}

void Accesses::addBox(Operation *op, Value of, bool writes, AffineMap map, ValueRange operands,
                      ArrayRef<int64_t> sizes) {
  SmallVector<Value> all(operands);
  affine::fullyComposeAffineMapAndOperands(&map, &all);
  // An index that an op of the nest makes in another way may be any.
  for (Value operand : all) {
    Operation *maker = operand.getDefiningOp();
    auto argument = dyn_cast<BlockArgument>(operand);
    Operation *around = argument ? argument.getOwner()->getParentOp() : maker;
    if (around && root->isAncestor(around) &&
        !(argument && isa<AffineForOp>(around) && operand == cast<AffineForOp>(around).getInductionVar()))
      return addWhole(op, of, writes);
  }
  Access access{op, of, baseOf(of), writes, false, map, all, {}, loopsAround(op, root)};
  access.sizes.assign(map.getNumResults() - sizes.size(), 1);
  llvm::append_range(access.sizes, sizes);
  this->all.push_back(std::move(access));
}

void Accesses::addSlice(OffsetSizeAndStrideOpInterface op, Value of, bool writes) {
  MLIRContext *context = op->getContext();
  SmallVector<AffineExpr> begins;
  SmallVector<Value> operands;
  for (OpFoldResult offset : op.getMixedOffsets()) {
    if (std::optional<int64_t> constant = getConstantIntValue(offset)) {
      begins.push_back(getAffineConstantExpr(*constant, context));
      continue;
    }
    if (!affine::isValidDim(cast<Value>(offset)))
      return addWhole(op, of, writes);
    begins.push_back(getAffineDimExpr(operands.size(), context));
    operands.push_back(cast<Value>(offset));
  }
  auto isOne = [](OpFoldResult stride) { return getConstantIntValue(stride) == 1; };
  if (!llvm::all_of(op.getMixedStrides(), isOne) || ShapedType::isDynamicShape(op.getStaticSizes()))
    return addWhole(op, of, writes);
  addBox(op, of, writes, AffineMap::get(operands.size(), 0, begins, context), operands, op.getStaticSizes());
}

/// A tensor that all trips hand on: slices that are inserted are writes of it, all else that is made of it is not known
/// to be it.
void Accesses::addCarried(Value argument, Value yielded) {
  llvm::SetVector<Value> versions;
  versions.insert(argument);
  for (size_t i = 0; i < versions.size(); ++i)
    for (OpOperand &use : versions[i].getUses()) {
      Operation *op = use.getOwner();
      if (auto insert = dyn_cast<tensor::InsertSliceOp>(op); insert && use.get() == insert.getDest()) {
        versions.insert(insert.getResult());
        addSlice(insert, argument, true);
      } else if (auto extract = dyn_cast<tensor::ExtractSliceOp>(op)) {
        addSlice(extract, argument, false);
      } else if (auto loop = dyn_cast<AffineForOp>(op); loop && loop.getTiedLoopRegionIterArg(&use)) {
        versions.insert(loop.getTiedLoopRegionIterArg(&use));
      } else if (isa<affine::AffineYieldOp>(op) && op->getParentOp() != root) {
        versions.insert(op->getParentOp()->getResult(use.getOperandNumber()));
      } else if (op != root.getBody()->getTerminator()) {
        addWhole(op, argument, false);
      }
    }
  if (!versions.contains(yielded))
    addWhole(root.getBody()->getTerminator(), argument, true);
}
