//===- Diagonals.cpp - masks that keep diagonals of scores ----------------===//
#include "Diagonals.h"

#include "dmxc/Dialect/DMIR/Model.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

/// Takes up a condition, sign * (j - i) + constant >= 0; false for others.
static bool narrow(Diagonals &diagonals, const dmir::Condition &condition, unsigned rank) {
  int64_t constant = 0, ofRow = 0, ofColumn = 0;
  for (const dmir::AffineTerm &term : dmir::termsOf(condition.expr, constant)) {
    auto dim = dyn_cast<AffineDimExpr>(term.atom);
    if (!dim || dim.getPosition() + 2 < rank)
      return false;
    (dim.getPosition() + 1 == rank ? ofColumn : ofRow) = term.factor;
  }
  if (condition.isEq || ofRow != -ofColumn || (ofColumn != 1 && ofColumn != -1))
    return false;
  if (ofColumn < 0)
    diagonals.upper = std::min(diagonals.upper.value_or(constant), constant);
  else
    diagonals.lower = std::max(diagonals.lower.value_or(-constant), -constant);
  return true;
}

std::optional<Diagonals> dmxc::corsair::diagonalsOf(dmir::MaskOp mask) {
  const dmir::Rule rule = dmir::ruleOf(mask);
  ArrayRef<int64_t> shape = shapeOf(mask.getInput());
  constexpr double mostFill = -1000; // what a softmax of a triangle leaves out weighs nothing
  if (rule.rank < 2 || rule.tiles || mask.getAdds() || mask.getLow() ||
      cast<FloatAttr>(mask.getFill()).getValueAsDouble() > mostFill || rule.symbols() || rule.cases.size() != 1 ||
      !typeOf(mask.getInput()).hasStaticShape())
    return std::nullopt;
  Diagonals diagonals;
  for (const dmir::Condition &condition : dmir::conditionsOf(rule.cases.front()))
    if (!narrow(diagonals, condition, rule.rank))
      return std::nullopt;
  const int64_t rows = shape[rule.rank - 2], columns = shape.back();
  // The first row has a column up to `upper`, the last one from `lower` on, and no row has less than none.
  const bool seesSome = diagonals.upper.value_or(0) >= 0 && rows - 1 + diagonals.lower.value_or(1 - rows) < columns &&
                        diagonals.lower.value_or(0) <= diagonals.upper.value_or(columns);
  return seesSome && (diagonals.lower || diagonals.upper) ? std::optional(diagonals) : std::nullopt;
}

bool dmxc::corsair::computesMasked(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  return module && module->hasAttr(dmir::kSparsityAttr);
}
