//===- RecognizeFunctions.cpp - formulas that are functions of DMIR -------===//
//
// Formats without a logarithm to base 2 write log(x) / ln 2, or log(x) * (1 / ln 2), whose roundings give 2.9999998 for
// 8: a floor after it, as detection models choose a level of their pyramid, is one too low. Norms: Norms.cpp; what
// targets have instructions for: Functions.cpp, Rotations.cpp.
//
//===----------------------------------------------------------------------===//
#include "Formulas.h"
#include "Functions.h"
#include "Norms.h"
#include "Quantised.h"
#include "Rotations.h"

#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <numbers>

namespace dmxc {
#define GEN_PASS_DEF_RECOGNIZEFUNCTIONS
#include "dmxc/Phases/Frontend/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// Whether a value is `number`, as its element type has that.
bool isNumber(Value value, double number) {
  auto type = dyn_cast<FloatType>(elementOf(value));
  std::optional<double> known = type ? quantised::evaluateNumber(value) : std::nullopt;
  if (!known)
    return false;
  bool inexact;
  APFloat rounded(number);
  rounded.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
  rounded.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
  return rounded.convertToDouble() == *known;
}

/// The logarithm that an op takes to base 2; null if it does not.
dmir::LogOp logToBase2(Operation *op) {
  auto scaled = [&](unsigned log, double by) {
    auto found = op->getOperand(log).getDefiningOp<dmir::LogOp>();
    bool same = found && found.getResult().getType() == op->getResult(0).getType();
    return same && isNumber(op->getOperand(1 - log), by) ? found : dmir::LogOp();
  };
  if (isa<dmir::DivOp>(op))
    return scaled(0, std::numbers::ln2);
  if (!isa<dmir::MulOp>(op))
    return {};
  dmir::LogOp left = scaled(0, std::numbers::log2e);
  return left ? left : scaled(1, std::numbers::log2e);
}

struct RecognizeFunctions : dmxc::impl::RecognizeFunctionsBase<RecognizeFunctions> {
  explicit RecognizeFunctions(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    isNarrow = llvm::any_of(context.targets, [](const TargetBackend *target) { return target->hasNarrowRange(); });
    getOperation()->walk([&](Operation *op) {
      OpBuilder b(op);
      if (dmir::LogOp log = logToBase2(op))
        replace(op, log, dmir::Log2Op::create(b, op->getLoc(), log.getInput()));
      else if (std::optional<Norm> norm = matchNorm(op))
        replace(op, op,
                dmir::NormalizeOp::create(b, op->getLoc(), norm->kind, norm->input, norm->axes, APFloat(norm->epsilon)),
                norm->scale);
      else
        recogniseForTarget(b, op);
    });
    if (!isNarrow)
      return;
    // What is left of roots of squares: no quotient has them in it.
    getOperation()->walk([&](Operation *op) {
      const TargetBackend *target = context.responsible(op);
      OpBuilder b(op);
      if (target && target->hasNarrowRange())
        if (Operation *scaled = createScaledRoot(b, op))
          replaceBy(op, scaled->getResult(0));
    });
  }

private:
  /// Whether a target has an instruction for a function, and no target before it computes the op that ends the formula.
  bool isWanted(Operation *op, Operation *function) const {
    if (isPlacedApart(context, op, function))
      return false;
    for (const TargetBackend *target : context.targets)
      if (target->hasFunction(function) && !context.refusal(*target, function))
        return true;
      else if (!context.refusal(*target, op))
        return false;
    return false;
  }

  /// What the target that computes an op has an instruction for, or would lose where it computes op by op.
  void recogniseForTarget(OpBuilder &b, Operation *op) {
    if (op->getNumResults() != 1)
      return;
    Location loc = op->getLoc();
    if (std::optional<UnitLength> unit = isNarrow ? matchUnitLength(op) : std::nullopt) {
      auto norm = dmir::NormalizeOp::create(b, loc, unit->norm.kind, unit->norm.input, unit->norm.axes,
                                            APFloat(unit->norm.epsilon));
      if (!isWanted(op, norm))
        return norm->erase();
      Type element = elementOf(norm.getResult());
      auto scale = dmir::ConstantOp::create(
          b, loc, DenseElementsAttr::get(RankedTensorType::get({}, element), b.getFloatAttr(element, unit->scale)));
      return replaceBy(op, dmir::MulOp::create(b, loc, norm, scale));
    }
    Operation *function = createRotation(b, op);
    if (!function)
      function = createFunction(b, op);
    if (function && isWanted(op, function))
      return replaceBy(op, function->getResult(0));
    if (function)
      eraseUnused(function);
  }

  /// Puts a function in the place of the op that ends its formula, unless the target that computes `part` of that has
  /// the formula alone. What only the formula read goes with it.
  void replace(Operation *op, Operation *part, Operation *function, Value scale = {}) {
    const TargetBackend *target = context.responsible(part);
    if ((target && context.refusal(*target, function)) || isPlacedApart(context, op, function))
      return function->erase();
    OpBuilder b(op);
    Value value = function->getResult(0);
    if (scale)
      value = dmir::MulOp::create(b, op->getLoc(), value, scale);
    replaceBy(op, value);
  }

  const PhaseContext &context;
  bool isNarrow = false; ///< whether any target's values lose squares
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createRecognizeFunctionsPass(const PhaseContext &context) {
  return std::make_unique<RecognizeFunctions>(context);
}
} // namespace dmxc
