//===- Formulas.cpp - what passes that recognise formulas share -----------===//
#include "Formulas.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace dmxc;

bool dmxc::isSameFormula(Value a, Value b, int depth) {
  if (a == b)
    return true;
  Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  return x && y && depth > 0 && x->getNumResults() == 1 && y->getNumResults() == 1 && x->getNumRegions() == 0 &&
         x->getName() == y->getName() && x->getNumOperands() == y->getNumOperands() && isMemoryEffectFree(x) &&
         x->getAttrDictionary() == y->getAttrDictionary() && x->getResultTypes() == y->getResultTypes() &&
         llvm::all_of(llvm::zip(x->getOperands(), y->getOperands()),
                      [&](auto pair) { return isSameFormula(std::get<0>(pair), std::get<1>(pair), depth - 1); });
}

Value dmxc::withoutOnes(Value value) {
  auto reshape = value.getDefiningOp<dmir::ReshapeOp>();
  auto isOne = [](Dim dim) { return dim.is(1); };
  if (!reshape)
    return value;
  SmallVector<Dim> from(dmir::dimsOf(reshape.getInput().getType())), to(dmir::dimsOf(reshape.getType()));
  llvm::erase_if(from, isOne);
  llvm::erase_if(to, isOne);
  return from == to ? withoutOnes(reshape.getInput()) : value;
}

bool dmxc::isPlacedApart(const PhaseContext &context, Operation *op, Operation *function) {
  if (context.places.empty())
    return false;
  const PlaceRule *place = context.placeOf(op);
  llvm::SetVector<Operation *> formula;
  formula.insert(op);
  for (size_t i = 0; i < formula.size(); ++i) // grows while it runs
    for (Value operand : formula[i]->getOperands())
      if (Operation *maker = operand.getDefiningOp();
          maker && !isa<dmir::ConstantOp>(maker) && !llvm::is_contained(function->getOperands(), operand)) {
        formula.insert(maker);
        if (context.placeOf(maker) != place)
          return true;
      }
  return false;
}

void dmxc::replaceBy(Operation *op, Value value) {
  op->getResult(0).replaceAllUsesWith(value);
  eraseUnused(op);
}

void dmxc::eraseUnused(Operation *op) {
  llvm::SmallSetVector<Operation *, 8> unused;
  unused.insert(op);
  while (!unused.empty()) {
    Operation *last = unused.pop_back_val();
    if (!isOpTriviallyDead(last))
      continue;
    for (Value operand : last->getOperands())
      if (Operation *maker = operand.getDefiningOp())
        unused.insert(maker);
    last->erase();
  }
}
