//===- RecognizeFunctions.cpp - formulas that are functions of DMIR -------===//
//
// Formats without a logarithm to base 2 write log(x) / ln 2, or log(x) * (1 / ln 2), whose roundings give 2.9999998 for
// 8: a floor after it, as detection models choose a level of their pyramid, is one too low.
//
//===----------------------------------------------------------------------===//
#include "Quantised.h"

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
    getOperation()->walk([&](Operation *op) {
      dmir::LogOp log = logToBase2(op);
      if (!log)
        return;
      OpBuilder b(op);
      auto log2 = dmir::Log2Op::create(b, op->getLoc(), log.getInput());
      // A target that has one of the two only keeps what it has.
      const TargetBackend *target = context.responsible(log);
      if (target && context.refusal(*target, log2))
        return log2.erase();
      op->getResult(0).replaceAllUsesWith(log2.getResult());
      op->erase();
      if (log->use_empty())
        log.erase();
    });
  }
  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createRecognizeFunctionsPass(const PhaseContext &context) {
  return std::make_unique<RecognizeFunctions>(context);
}
} // namespace dmxc
