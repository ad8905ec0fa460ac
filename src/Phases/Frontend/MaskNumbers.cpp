//===- MaskNumbers.cpp - what is added to scores: masks and biases --------===//
#include "MaskNumbers.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <cmath>
#include <limits>
#include <set>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

namespace {

/// exp of what is below is no normal number of f32: beside 0 alone it leaves out too, as -100 of windows of images.
constexpr double kVanishing = -88;
/// Values that are looked at; what is made of more is no mask that anybody wrote.
constexpr size_t kMostValues = 256;

/// Fills are few numbers; a bias that grows with the distance of keys has as many as there are distances.
class Numbers {
public:
  explicit Numbers(double most) : most(most) {}
  /// False where no more need to be seen.
  bool add(double value) {
    isTwoValued &= value == 0 || value == low || (low == 0 && value < 0);
    low = std::min(low, value);
    if (value <= most)
      fills.insert(value);
    return fills.size() <= kMostFills;
  }
  bool haveFill() const {
    if (!fills.empty() || most < kMostFill)
      return !fills.empty() && fills.size() <= kMostFills;
    return isTwoValued && low <= kVanishing;
  }

private:
  static constexpr size_t kMostFills = 4;
  std::set<double> fills;
  const double most;
  double low = 0;
  bool isTwoValued = true; ///< 0 and `low`
};

/// The elements of a constant of floats; false where there is none, or `seen` says enough.
bool forEachNumber(Value value, llvm::function_ref<bool(double)> seen) {
  if (!isConstant(value) || !isa<FloatType>(typeOf(value).getElementType()) || !hostFormOf(value.getType()))
    return false;
  std::optional<Tensor> tensor = constantTensor(value);
  constexpr unsigned least = 8; // bits that Tensor can look at
  if (!tensor || dtypeBits(tensor->dtype()) < least)
    return false;
  for (int64_t i = 0; i < tensor->numElements(); ++i)
    if (!seen(tensor->asDouble(i)))
      return false;
  return true;
}

/// The number of a constant of one element, of any type of numbers.
std::optional<double> oneNumber(Value value) {
  if (!isConstant(value) || !elementsOf(value.getType()).is(1) || !hostFormOf(value.getType()))
    return std::nullopt;
  std::optional<Tensor> tensor = constantTensor(value);
  return tensor ? std::optional(tensor->asDouble(0)) : std::nullopt;
}

/// What a value's numbers are those of: operands of an op that moves or computes elements, without indices and
/// conditions.
SmallVector<Value> partsOf(Operation *op) {
  if (auto select = dyn_cast<SelectOp>(op))
    return {select.getOnTrue(), select.getOnFalse()};
  if (isa<GatherOp, GatherElementsOp, GatherNDOp>(op))
    return {op->getOperand(0)};
  if (auto scatter = dyn_cast<ScatterNDOp>(op))
    return {op->getOperand(0), op->getOperand(2)};
  if (auto scatter = dyn_cast<ScatterElementsOp>(op))
    return {op->getOperand(0), op->getOperand(2)};
  if (op->hasTrait<Elementwise>() || op->hasTrait<DataMovement>())
    return op->getOperands();
  return {};
}

/// Whether an op puts a fill among numbers that have none, as (mask - 1) * 10000 does.
bool makesFill(Operation *op, double most = kMostFill) {
  if (isa<MulOp>(op))
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      std::optional<double> factor = oneNumber(operand);
      return factor && std::abs(*factor) >= -most;
    });
  Numbers numbers(most);
  if (auto select = dyn_cast<SelectOp>(op)) {
    bool known = true;
    for (Value branch : {select.getOnTrue(), select.getOnFalse()}) {
      std::optional<double> number = oneNumber(branch);
      if (number && *number <= most)
        return true;
      known &= number.has_value() && numbers.add(*number);
    }
    return known && numbers.haveFill();
  }
  return false;
}

bool isOneElement(Value value) { return elementsOf(value.getType()).is(1); }

/// All values that `from` are computed from element by element, themselves among them.
void elementsFrom(Value from, llvm::SmallPtrSetImpl<void *> &all) {
  SmallVector<Value> work{from};
  while (!work.empty() && all.size() < kMostValues) {
    Value value = work.pop_back_val();
    if (isConstant(value) || !all.insert(value.getAsOpaquePointer()).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (op && (op->hasTrait<Elementwise>() || isa<ReshapeOp>(op)))
      llvm::append_range(work, op->getOperands());
  }
}

} // namespace

bool dmxc::holdsFill(Value addend, double most) {
  SmallVector<Value> work{addend};
  llvm::SmallPtrSet<void *, 16> seen;
  while (!work.empty() && seen.size() < kMostValues) {
    Value value = work.pop_back_val();
    if (!seen.insert(value.getAsOpaquePointer()).second)
      continue;
    Numbers numbers(most);
    if (forEachNumber(value, [&](double x) { return numbers.add(x); }) && numbers.haveFill())
      return true;
    Operation *op = value.getDefiningOp();
    if (!op)
      continue;
    if (makesFill(op, most))
      return true;
    // A number that is added to all, or is their least, moves all alike.
    bool isForAll = op->hasTrait<Elementwise>() && op->getNumOperands() > 1;
    llvm::copy_if(partsOf(op), std::back_inserter(work), [&](Value part) { return !isForAll || !isOneElement(part); });
  }
  return false;
}

std::optional<double> dmxc::leastNumber(Value value) {
  double least = std::numeric_limits<double>::infinity();
  bool isKnown = forEachNumber(value, [&](double x) {
    least = std::min(least, x);
    return !std::isnan(x);
  });
  return isKnown ? std::optional(least) : std::nullopt;
}

bool dmxc::isMaskingSelect(SelectOp select) {
  if (makesFill(select) || holdsFill(select.getOnTrue()) || holdsFill(select.getOnFalse()))
    return true;
  llvm::SmallPtrSet<void *, 16> scores, condition;
  for (Value branch : {select.getOnTrue(), select.getOnFalse()})
    if (dimsOf(branch) == dimsOf(select.getResult()))
      elementsFrom(branch, scores);
  elementsFrom(select.getCondition(), condition);
  return llvm::none_of(condition, [&](void *value) { return scores.contains(value); });
}

bool dmxc::isOfCaller(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!op->hasTrait<DataMovement>() && !isa<CastOp>(op))
      return false;
    value = op->getOperand(0);
  }
  auto function = dyn_cast<func::FuncOp>(cast<BlockArgument>(value).getOwner()->getParentOp());
  return function && !function.isPrivate();
}
