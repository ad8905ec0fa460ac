//===- Norms.cpp - normalisation that is written out ----------------------===//
//
// Exporters below ONNX's opset 17, and all of torch, write LayerNorm and RMSNorm as five ops. Computed one by one in a
// format of few bits the squares of large values and a small epsilon are lost, which the function keeps inside.
//
//===----------------------------------------------------------------------===//
#include "Norms.h"

#include "Formulas.h"
#include "Quantised.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include <cmath>

using namespace mlir;
using namespace dmxc;

namespace {

bool isNumber(Value value, double number) {
  std::optional<double> known = quantised::evaluateNumber(value);
  return known && std::abs(*known - number) <= 1e-6 * std::abs(number);
}

/// The other operand of a commutative op of which one is a number that `takes`; null if none is.
template <typename OpTy> Value besideNumber(Value value, llvm::function_ref<bool(double)> takes) {
  auto op = value.getDefiningOp<OpTy>();
  for (unsigned i = 0; op && i < 2; ++i)
    if (std::optional<double> number = quantised::evaluateNumber(op->getOperand(i)); number && takes(*number))
      return op->getOperand(1 - i);
  return {};
}

/// What a value is the square of; null if of nothing.
Value squared(Value value) {
  if (auto mul = value.getDefiningOp<dmir::MulOp>())
    return isSameFormula(mul.getLhs(), mul.getRhs()) ? mul.getLhs() : Value();
  auto pow = value.getDefiningOp<dmir::PowOp>();
  return pow && isNumber(pow.getRhs(), 2) ? pow.getLhs() : Value();
}

/// A mean over axes that stay as 1 (or with `mayDrop` go): the reduction itself, or a sum over the number of its terms.
dmir::ReduceOp meanOf(Value value, bool mayDrop = false) {
  double count = 0;
  dmir::ReduceOp reduce = value.getDefiningOp<dmir::ReduceOp>();
  if (auto div = value.getDefiningOp<dmir::DivOp>()) {
    reduce = div.getLhs().getDefiningOp<dmir::ReduceOp>();
    count = quantised::evaluateNumber(div.getRhs()).value_or(0);
    if (count <= 0) // by what only a run knows
      return {};
  } else if (Value sum = besideNumber<dmir::MulOp>(value, [&](double by) { return count = 1 / by, by > 0; })) {
    reduce = sum.getDefiningOp<dmir::ReduceOp>();
  }
  if (!reduce || (!mayDrop && !reduce.getKeepDims()) || !isa<FloatType>(elementOf(reduce.getInput())))
    return {};
  if (count == 0)
    return reduce.getKind() == dmir::Reduction::mean ? reduce : dmir::ReduceOp();
  Dim terms = 1;
  for (int64_t axis : reduce.getAxes())
    terms *= dmir::dimOf(reduce.getInput(), axis);
  bool fits = terms.isStatic() && std::abs(static_cast<double>(*terms.known()) - count) <= 1e-6 * count;
  return fits && reduce.getKind() == dmir::Reduction::sum ? reduce : dmir::ReduceOp();
}

/// What a value is the root of; null if of nothing.
Value underRoot(Value value) {
  if (auto root = value.getDefiningOp<dmir::SqrtOp>())
    return root.getInput();
  auto pow = value.getDefiningOp<dmir::PowOp>();
  return pow && isNumber(pow.getRhs(), 0.5) ? pow.getLhs() : Value();
}

/// What a value is one over the root of; null if of nothing.
Value underInverseRoot(Value value) {
  if (auto rsqrt = value.getDefiningOp<dmir::RsqrtOp>())
    return rsqrt.getInput();
  if (auto inverse = value.getDefiningOp<dmir::ReciprocalOp>())
    return underRoot(inverse.getInput());
  if (auto div = value.getDefiningOp<dmir::DivOp>(); div && isNumber(div.getLhs(), 1))
    return underRoot(div.getRhs());
  auto pow = value.getDefiningOp<dmir::PowOp>();
  return pow && isNumber(pow.getRhs(), -0.5) ? pow.getLhs() : Value();
}

/// (x - mean) * (1 / sqrt(max(mean(x^2) - mean^2, 0) + epsilon) * scale), as JAX writes it.
std::optional<Norm> matchFastVariance(Value centred, Value factor) {
  auto sub = centred.getDefiningOp<dmir::SubOp>();
  Value scale, inverse = factor;
  if (auto mul = factor.getDefiningOp<dmir::MulOp>(); mul && !underInverseRoot(withoutOnes(factor)))
    for (unsigned i = 0; i < 2; ++i)
      if (underInverseRoot(withoutOnes(mul->getOperand(i))))
        inverse = mul->getOperand(i), scale = mul->getOperand(1 - i);
  Value variance = underInverseRoot(withoutOnes(inverse));
  if (!sub || !variance)
    return std::nullopt;
  double epsilon = 0;
  Value rest =
      besideNumber<dmir::AddOp>(withoutOnes(variance), [&](double by) { return epsilon = by, by >= 0 && by < 1; });
  rest = withoutOnes(rest ? rest : variance);
  if (Value above = besideNumber<dmir::MaxOp>(rest, [](double by) { return by == 0; }))
    rest = above;
  else if (auto relu = rest.getDefiningOp<dmir::ReluOp>())
    rest = relu.getInput();
  auto difference = withoutOnes(rest).getDefiningOp<dmir::SubOp>();
  dmir::ReduceOp squares = difference ? meanOf(withoutOnes(difference.getLhs()), true) : dmir::ReduceOp(),
                 center = meanOf(withoutOnes(sub.getRhs()), true);
  Value square = squares ? squared(squares.getInput()) : Value(),
        mean = difference ? squared(withoutOnes(difference.getRhs())) : Value();
  if (!square || !center || !mean || !isSameFormula(square, sub.getLhs()) ||
      !isSameFormula(center.getInput(), sub.getLhs()) || squares.getAxes() != center.getAxes() ||
      meanOf(withoutOnes(mean), true) != center)
    return std::nullopt;
  // The mean must stand where it was taken: dims of 1 on the axes.
  SmallVector<Dim> kept(dmir::dimsOf(sub.getLhs().getType()));
  for (int64_t axis : center.getAxes())
    kept[axis] = 1;
  if (kept != dmir::dimsOf(sub.getRhs().getType()) || kept != dmir::dimsOf(inverse.getType()))
    return std::nullopt;
  return Norm{dmir::Normalization::standard, sub.getLhs(), SmallVector<int64_t>(center.getAxes()), epsilon, scale};
}

/// x / sqrt(mean(x^2) + epsilon), in which x may be what is left of a mean.
std::optional<Norm> matchQuotient(Value x, Value mean) {
  double epsilon = 0;
  if (Value rest = besideNumber<dmir::AddOp>(mean, [&](double by) { return epsilon = by, by >= 0 && by < 1; }))
    mean = rest;
  else
    epsilon = 0;
  dmir::ReduceOp squares = meanOf(mean);
  Value base = squares ? squared(squares.getInput()) : Value();
  if (!base || !isSameFormula(base, x))
    return std::nullopt;
  SmallVector<int64_t> axes(squares.getAxes());
  if (auto sub = x.getDefiningOp<dmir::SubOp>())
    if (dmir::ReduceOp center = meanOf(sub.getRhs());
        center && isSameFormula(center.getInput(), sub.getLhs()) && center.getAxes() == squares.getAxes())
      return Norm{dmir::Normalization::standard, sub.getLhs(), axes, epsilon};
  return Norm{dmir::Normalization::rms, x, axes, epsilon};
}

/// The sum or mean of squares, over axes that may go, of which a value is the root; null if it is none.
dmir::ReduceOp rootOfSquares(Value value) {
  Value under = underRoot(value);
  auto reduce = under ? under.getDefiningOp<dmir::ReduceOp>() : dmir::ReduceOp();
  const bool adds = reduce && llvm::is_contained({dmir::Reduction::sum, dmir::Reduction::mean}, reduce.getKind());
  return adds && squared(reduce.getInput()) && isa<FloatType>(elementOf(value)) ? reduce : dmir::ReduceOp();
}

} // namespace

/// The quotient of select(length == 0, 0, quotient); null for other ops.
static dmir::DivOp guardedQuotient(Operation *op) {
  auto select = dyn_cast<dmir::SelectOp>(op);
  auto isNone = select ? select->getOperand(0).getDefiningOp<dmir::CompareOp>() : dmir::CompareOp();
  auto div = select ? select->getOperand(2).getDefiningOp<dmir::DivOp>() : dmir::DivOp();
  const bool guards = isNone && div && isNone.getKind() == dmir::Compare::eq && isNone->getOperand(0) == div.getRhs() &&
                      isNumber(isNone->getOperand(1), 0) && isNumber(select->getOperand(1), 0);
  return guards ? div : dmir::DivOp();
}

std::optional<UnitLength> dmxc::matchUnitLength(Operation *op) {
  dmir::DivOp guarded = guardedQuotient(op), div = guarded ? guarded : dyn_cast<dmir::DivOp>(op);
  if (!guarded && div && div->hasOneUse() && guardedQuotient(*div->user_begin())) // the select will be one
    return std::nullopt;
  if (!div || div.getLhs().getType() != div.getResult().getType())
    return std::nullopt;
  Value divisor = div.getRhs();
  double least = 0;
  auto isSmall = [&](double by) { return least = by, by >= 0 && by <= 1e-3; };
  if (Value rest = besideNumber<dmir::MaxOp>(divisor, isSmall))
    divisor = rest;
  else if (Value rest = besideNumber<dmir::AddOp>(divisor, isSmall))
    divisor = rest;
  else
    least = 0;
  dmir::ReduceOp squares = rootOfSquares(divisor);
  if (!squares || !squares.getKeepDims() || !isSameFormula(squared(squares.getInput()), div.getLhs()))
    return std::nullopt;
  Dim terms = 1;
  if (squares.getKind() == dmir::Reduction::sum)
    for (int64_t axis : squares.getAxes())
      terms *= dmir::dimOf(squares.getInput(), axis);
  if (!terms.isStatic() || *terms.known() < 1)
    return std::nullopt;
  const auto count = static_cast<double>(*terms.known());
  if (guarded)
    least = std::max(least, 1e-15); // whose square keeps a row of zeros zero in f32
  return UnitLength{
      {dmir::Normalization::rms, div.getLhs(), SmallVector<int64_t>(squares.getAxes()), least * least / count},
      1 / std::sqrt(count)};
}

Operation *dmxc::createScaledRoot(OpBuilder &b, Operation *op) {
  dmir::ReduceOp reduce = op->getNumResults() == 1 ? rootOfSquares(op->getResult(0)) : dmir::ReduceOp();
  if (!reduce)
    return nullptr;
  Value x = squared(reduce.getInput());
  Location loc = op->getLoc();
  auto axes = reduce.getAxes();
  Value largest = dmir::ReduceOp::create(b, loc, dmir::Reduction::max, dmir::AbsOp::create(b, loc, x), axes, true);
  // What is below the smallest normal number of f16 is none there.
  auto number = DenseElementsAttr::get(RankedTensorType::get({}, elementOf(x)),
                                       b.getFloatAttr(elementOf(x), std::ldexp(1.0, -14)));
  Value scale = dmir::MaxOp::create(b, loc, largest, dmir::ConstantOp::create(b, loc, number));
  Value scaled = dmir::DivOp::create(b, loc, x, scale);
  Value squares = dmir::MulOp::create(b, loc, scaled, scaled);
  Value sum = dmir::ReduceOp::create(b, loc, reduce.getKind(), squares, axes, reduce.getKeepDims());
  Value root = dmir::SqrtOp::create(b, loc, sum);
  if (!reduce.getKeepDims())
    scale = dmir::ReshapeOp::create(b, loc, root.getType(), scale);
  return dmir::MulOp::create(b, loc, root, scale);
}

std::optional<Norm> dmxc::matchNorm(Operation *op) {
  if (!isa<dmir::DivOp, dmir::MulOp>(op) || !isa<FloatType>(elementOf(op->getResult(0))))
    return std::nullopt;
  for (unsigned i = 0; i < 2; ++i) {
    Value x = op->getOperand(i), other = op->getOperand(1 - i);
    if (x.getType() != op->getResult(0).getType())
      continue;
    if (std::optional<Norm> fast = isa<dmir::MulOp>(op) ? matchFastVariance(x, other) : std::nullopt;
        fast && fast->input.getType() == x.getType())
      return fast;
    Value mean = isa<dmir::MulOp>(op) ? underInverseRoot(other) : i == 0 ? underRoot(other) : Value();
    if (std::optional<Norm> found = mean ? matchQuotient(x, mean) : std::nullopt)
      if (found->input.getType() == x.getType())
        return found;
  }
  return std::nullopt;
}
