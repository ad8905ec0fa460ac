//===- Indices.cpp - numbers of loops and maps ----------------------------===//
#include "Indices.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IntegerSet.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair::stages;

/// Nothing where it divides by what is not positive.
static std::optional<int64_t> valueOf(AffineExpr expr, ArrayRef<int64_t> dims, ArrayRef<int64_t> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  std::optional<int64_t> a = valueOf(binary.getLHS(), dims, symbols), b = valueOf(binary.getRHS(), dims, symbols);
  int64_t result = 0;
  if (!a || !b)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Add)
    return llvm::AddOverflow(*a, *b, result) ? std::nullopt : std::optional(result);
  if (expr.getKind() == AffineExprKind::Mul)
    return llvm::MulOverflow(*a, *b, result) ? std::nullopt : std::optional(result);
  if (*b <= 0)
    return std::nullopt;
  const int64_t floor = llvm::divideFloorSigned(*a, *b);
  if (expr.getKind() == AffineExprKind::FloorDiv)
    return floor;
  return expr.getKind() == AffineExprKind::Mod ? *a - floor * *b : llvm::divideCeilSigned(*a, *b);
}

std::optional<int64_t> Indices::at(Value value) const {
  if (auto found = numbers.find(value); found != numbers.end())
    return found->second;
  if (IntegerAttr constant; matchPattern(value, m_Constant(&constant)))
    return constant.getInt();
  auto apply = value.getDefiningOp<affine::AffineApplyOp>();
  std::optional<Dims> made = apply ? at(apply.getAffineMap(), apply.getMapOperands()) : std::nullopt;
  return made ? std::optional(made->front()) : std::nullopt;
}

std::optional<int64_t> Indices::at(OpFoldResult value) const {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return constant;
  auto dynamic = dyn_cast<Value>(value);
  return dynamic ? at(dynamic) : std::nullopt;
}

std::optional<Dims> Indices::at(ArrayRef<OpFoldResult> values) const {
  Dims all;
  for (OpFoldResult value : values) {
    std::optional<int64_t> number = at(value);
    if (!number)
      return std::nullopt;
    all.push_back(*number);
  }
  return all;
}

std::optional<Dims> Indices::at(AffineMap map, ValueRange operands) const {
  Dims numbers, all;
  for (Value operand : operands) {
    std::optional<int64_t> number = at(operand);
    if (!number)
      return std::nullopt;
    numbers.push_back(*number);
  }
  for (AffineExpr expr : map.getResults()) {
    const auto dims = ArrayRef(numbers).take_front(map.getNumDims());
    std::optional<int64_t> number = valueOf(expr, dims, ArrayRef(numbers).drop_front(map.getNumDims()));
    if (!number)
      return std::nullopt;
    all.push_back(*number);
  }
  return all;
}

std::optional<std::pair<int64_t, int64_t>> Indices::bounds(affine::AffineForOp loop) const {
  std::optional<Dims> first = at(loop.getLowerBoundMap(), loop.getLowerBoundOperands()),
                      last = at(loop.getUpperBoundMap(), loop.getUpperBoundOperands());
  if (!first || !last)
    return std::nullopt;
  return std::pair(*std::max_element(first->begin(), first->end()), *std::min_element(last->begin(), last->end()));
}

std::optional<bool> Indices::holds(affine::AffineIfOp condition) const {
  const IntegerSet set = condition.getIntegerSet();
  std::optional<Dims> values =
      at(AffineMap::get(set.getNumDims(), set.getNumSymbols(), set.getConstraints(), set.getContext()),
         condition.getOperands());
  if (!values)
    return std::nullopt;
  return llvm::all_of(llvm::enumerate(*values),
                      [&](auto each) { return set.isEq(each.index()) ? each.value() == 0 : each.value() >= 0; });
}

static std::string described(Operation *op, const std::string &why) {
  return "node '" + dmir::nodeName(op) + "' ('" + op->getName().getStringRef().str() + "') " + why;
}

Error dmxc::corsair::stages::errorAt(Operation *op, const std::string &why) { return modelError(described(op, why)); }

Error dmxc::corsair::stages::notEvaluated(Operation *op, const std::string &why) {
  return {ErrorKind::Constraint, described(op, why)};
}
