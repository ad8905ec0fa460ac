//===- RunMasks.cpp - scores that a run's numbers leave out ---------------===//
#include "RunMasks.h"

#include "../MaskNumbers.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Dialect/DMIR/masks/Where.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

/// What is added to the scores of a caller's, or made of what it brings, and may be as low; null where nothing is, or
/// where something else than a sum lies between.
static Value lowAddend(Value scores) {
  while (auto add = scores.getDefiningOp<AddOp>()) {
    Value next;
    for (unsigned side : {0, 1}) {
      Value addend = add->getOperand(side);
      if (addend.getType() == add.getResult().getType()) {
        next = addend;
        continue;
      }
      SmallVector<Dim> dims = dimsOf(addend);
      bool isOfKeys = !dims.empty() && !dims.back().is(1);
      bool isOneRow = dims.size() < 2 || dims[dims.size() - 2].is(1);
      if (isOfKeys && (isOfCaller(addend) || (isOneRow && holdsFill(addend, kLowScore))))
        return addend;
    }
    if (!next)
      break;
    scores = next;
  }
  return {};
}

/// The cases of a mask, or one that keeps all, each with the condition that a value behind the others is true.
static SmallVector<Attribute> casesWith(MaskOp mask, unsigned rank, MLIRContext *context) {
  Rule rule = mask ? ruleOf(mask) : Rule();
  unsigned symbols = rule.symbols();
  AffineExpr isHigh = getAffineSymbolExpr(symbols, context) - 1;
  if (!mask)
    return {IntegerSetAttr::get(caseOf(rank, 1, {{isHigh, false}}))};
  SmallVector<Attribute> cases;
  for (IntegerSet set : rule.cases) {
    Conditions conditions = conditionsOf(set);
    conditions.push_back({isHigh, false});
    cases.push_back(IntegerSetAttr::get(caseOf(rank, symbols + 1, conditions)));
  }
  return cases;
}

void dmxc::markLowScores(SoftmaxOp softmax, const PhaseContext &context) {
  auto before = softmax.getInput().getDefiningOp<MaskOp>();
  auto type = typeOf(softmax.getInput());
  constexpr size_t most = 16; // conditions of a case
  auto isTight = [](IntegerSet set) { return set.getNumConstraints() >= most; };
  if (!type.getElementType().isF32() || (before && (before.getLow() || before.getAdds())) ||
      (before && cast<FloatAttr>(before.getFill()).getValueAsDouble() > kLowScore) ||
      (before && llvm::any_of(ruleOf(before).cases, isTight)))
    return;
  Value addend = lowAddend(before ? before.getInput() : softmax.getInput());
  if (!addend || !elementOf(addend).isF32())
    return;
  OpBuilder b(softmax);
  Location loc = softmax.getLoc();
  SmallVector<Dim> own = dimsOf(addend), dims(type.getRank() - own.size(), Dim(1));
  dims.append(own);
  Value threshold = ConstantOp::create(
      b, loc, DenseElementsAttr::get(RankedTensorType::get({}, b.getF32Type()), static_cast<float>(kLowScore)));
  Value isHigh = CompareOp::create(b, loc, tensorOf(own, b.getI1Type()), Compare::gt, addend, threshold);
  if (dims.size() != own.size())
    isHigh = ReshapeOp::create(b, loc, tensorOf(dims, b.getI1Type()), isHigh);
  SmallVector<Value> values;
  if (before)
    llvm::append_range(values, before.getValues());
  values.push_back(isHigh);
  auto mask = MaskOp::create(
      b, loc, type, softmax.getInput(), values, b.getArrayAttr(casesWith(before, type.getRank(), b.getContext())),
      b.getF32FloatAttr(static_cast<float>(kLowScore)), before ? before.getDimsAttr() : DimsAttr(),
      before ? before.getTileAttr() : DenseI64ArrayAttr(), before ? before.getTilesAttr() : ArrayAttr(), UnitAttr(),
      b.getUnitAttr());
  const TargetBackend *target = context.responsible(softmax);
  if (target && context.refusal(*target, mask)) {
    SmallVector<Operation *> made{mask};
    for (Value value = isHigh; Operation *op = value.getDefiningOp(); value = op->getOperand(0)) {
      made.push_back(op);
      if (isa<CompareOp>(op))
        break;
    }
    made.push_back(threshold.getDefiningOp());
    for (Operation *op : made)
      op->erase();
    return;
  }
  softmax.getInputMutable().set(mask.getResult());
  softmax->removeAttr(dmir::kMaskUnknownAttr);
  if (!softmax->hasAttr(dmir::kMaskFromAttr))
    softmax->setAttr(dmir::kMaskFromAttr, b.getStringAttr("numbers that a run adds"));
}
