//===- IntegerPools.cpp - max pools of dequantised bytes ------------------===//
//
// Dequantisation with a positive scale keeps the order of bytes, and quantisation with the same scale and zero point
// gives each byte back: round((v * s) / s) is v for |v| <= 255, two roundings being off by less than a part in 2^22. So
// a max pool between the two is the max pool of the bytes. A window that lies in the padding is the lowest value both
// ways. Left as it is where the target does not pool bytes.
//
// Quantisation with another scale keeps the order too, so it may come before the pool. It does where the bytes are made
// by a device, which makes these of them as well (it rounds behind its products): the host pools bytes then, and
// rounds nothing.
//
//===----------------------------------------------------------------------===//
#include "Quantised.h"

#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {
#define GEN_PASS_DEF_INTEGERPOOLS
#include "dmxc/Phases/Frontend/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
using namespace dmxc::quantised;

namespace {

/// What quantisation does to `real`: cast(clamp(round(real / scale) + zero)), the clamp being the bytes' range.
struct Quantisation {
  Value real;
  double scale, zero = 0;
};

/// The left operand of an op of one kind whose right one is a number.
template <typename Op> std::optional<std::pair<Value, double>> withNumber(Value value) {
  auto op = value.getDefiningOp<Op>();
  std::optional<double> number = op ? evaluateNumber(op.getRhs()) : std::nullopt;
  if (!number || shapeOf(op.getLhs()) != shapeOf(value))
    return std::nullopt;
  return std::pair<Value, double>(op.getLhs(), *number);
}

std::optional<Quantisation> matchQuantisation(dmir::CastOp cast) {
  Type element = elementOf(cast.getResult());
  if (!isByte(element) || !elementOf(cast.getInput()).isF32())
    return std::nullopt;
  double low = element.isUnsignedInteger() ? 0 : -128;
  auto min = withNumber<dmir::MinOp>(cast.getInput());
  auto max = min ? withNumber<dmir::MaxOp>(min->first) : std::nullopt;
  if (!max || max->second != low || min->second != low + 255)
    return std::nullopt;
  Quantisation q;
  Value shifted = max->first;
  if (auto add = withNumber<dmir::AddOp>(shifted)) {
    q.zero = add->second;
    shifted = add->first;
  }
  auto round = shifted.getDefiningOp<dmir::RoundOp>();
  auto div = round ? withNumber<dmir::DivOp>(round.getInput()) : std::nullopt;
  if (!div)
    return std::nullopt;
  q.real = div->first;
  q.scale = div->second;
  return q;
}

/// Scales of ordinary size: products with bytes are neither subnormal nor infinite.
bool isOrdinary(double scale) { return scale > 1e-30 && scale < 1e30; }

/// What is pooled, quantised as the pool's result is by the ops up to `cast`.
Value requantised(OpBuilder &b, dmir::PoolOp pool, dmir::CastOp cast) {
  SmallVector<Operation *> ops{cast};
  while (ops.back()->getOperand(0) != pool.getResult())
    ops.push_back(ops.back()->getOperand(0).getDefiningOp());
  Value value = pool.getInput();
  for (Operation *op : llvm::reverse(ops)) {
    Operation *copy = b.clone(*op);
    copy->setOperand(0, value);
    auto type = typeOf(op->getResult(0));
    copy->getResult(0).setType(RankedTensorType::get(typeOf(value).getShape(), type.getElementType()));
    value = copy->getResult(0);
  }
  return value;
}

void rewrite(const PhaseContext &context, dmir::CastOp cast) {
  std::optional<Quantisation> outer = matchQuantisation(cast);
  auto pool = outer ? outer->real.getDefiningOp<dmir::PoolOp>() : dmir::PoolOp();
  if (!pool || pool.getKind() != dmir::Pooling::max || !isOrdinary(outer->scale))
    return;
  std::optional<Quantised> inner = matchQuantised(pool.getInput());
  if (!inner || !inner->scale || elementOf(inner->bytes) != elementOf(cast.getResult()))
    return;
  std::optional<double> scale = evaluateNumber(inner->scale), zero = inner->zero ? evaluateNumber(inner->zero) : 0.0;
  if (!scale || !zero || !(*scale > 0) || !(outer->scale > 0))
    return;
  OpBuilder b(cast);
  if (*scale != outer->scale || *zero != outer->zero) {
    Operation *made = inner->bytes.getDefiningOp();
    const TargetBackend *device = made ? context.responsible(made) : nullptr;
    if (!device || device->runsOnHost() || !pool.getInput().hasOneUse())
      return;
    inner->bytes = requantised(b, pool, cast);
  }
  Operation *bytes = b.clone(*pool);
  bytes->setOperand(0, inner->bytes);
  bytes->getResult(0).setType(cast.getResult().getType());
  const TargetBackend *target = context.responsible(pool);
  if (!target || context.refusal(*target, bytes))
    return bytes->erase();
  cast.getResult().replaceAllUsesWith(bytes->getResult(0));
  cast.erase();
}

struct IntegerPools : dmxc::impl::IntegerPoolsBase<IntegerPools> {
  explicit IntegerPools(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    SmallVector<dmir::CastOp> casts(getOperation().getOps<dmir::CastOp>());
    for (dmir::CastOp cast : casts)
      rewrite(context, cast);
  }

  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createIntegerPoolsPass(const PhaseContext &context) {
  return std::make_unique<IntegerPools>(context);
}
} // namespace dmxc
