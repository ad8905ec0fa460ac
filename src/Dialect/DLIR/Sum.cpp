//===- Sum.cpp - numbers that a device's program computes -----------------===//
#include "dmxc/Dialect/DLIR/Sum.h"

using namespace mlir;
using namespace dmxc::dlir;

static void addTerm(Sum &sum, Value index, int64_t scale) {
  auto *at = llvm::find_if(sum.terms, [&](auto &term) { return term.first == index; });
  if (at == sum.terms.end())
    sum.terms.push_back({index, scale});
  else
    at->second += scale;
}

Sum Sum::operator+(const Sum &other) const {
  Sum result = *this;
  result.base += other.base;
  for (auto [index, scale] : other.terms)
    addTerm(result, index, scale);
  return result;
}

Sum Sum::operator*(int64_t scale) const {
  Sum result(base * scale);
  for (auto [index, factor] : terms)
    if (factor != 0 && scale != 0)
      result.terms.push_back({index, factor * scale});
  return result;
}

static bool add(Sum &sum, AffineExpr expr, int64_t scale, ValueRange indices) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    int64_t part;
    return !__builtin_mul_overflow(constant.getValue(), scale, &part) &&
           !__builtin_add_overflow(sum.base, part, &sum.base);
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    addTerm(sum, indices[dim.getPosition()], scale);
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (expr.getKind() == AffineExprKind::Add)
    return add(sum, binary.getLHS(), scale, indices) && add(sum, binary.getRHS(), scale, indices);
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  int64_t product;
  return expr.getKind() == AffineExprKind::Mul && factor &&
         !__builtin_mul_overflow(factor.getValue(), scale, &product) && add(sum, binary.getLHS(), product, indices);
}

std::optional<Sum> dmxc::dlir::sumOf(AffineMap map, ValueRange indices, unsigned result) {
  Sum sum;
  return add(sum, map.getResult(result), 1, indices) ? std::optional(sum) : std::nullopt;
}

std::optional<unsigned> dmxc::dlir::loopDepth(Value index) {
  auto argument = dyn_cast<BlockArgument>(index);
  if (!argument || !isa<LoopOp>(argument.getOwner()->getParentOp()))
    return std::nullopt;
  unsigned depth = 0;
  for (Operation *at = argument.getOwner()->getParentOp()->getParentOp(); at; at = at->getParentOp())
    depth += isa<LoopOp>(at);
  return depth;
}
