//===- RowChain.cpp - ops that cores do row by row ------------------------===//
#include "RowChain.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;
using Kernel = hw::KernelId;

size_t RowChain::others() const {
  return llvm::count_if(ops, [](const RowOp &op) { return bool(op.other); });
}

std::vector<hw::Step> RowChain::steps() const {
  std::vector<hw::Step> steps;
  for (const RowOp &op : ops)
    if (op.kernel == Kernel::StepsF32)
      steps.push_back(op.step);
  return steps;
}

bool aie::isView(Operation *op) {
  return isa_and_nonnull<dmir::TransposeOp, dmir::SliceOp, dmir::ReshapeOp, dmir::BroadcastOp>(op);
}

static bool isLast(int64_t axis, Value value) { return axis + 1 == typeOf(value).getRank(); }

/// The operand of a join whose shape is the result's; of two the one that is computed, in a function as in a region of
/// it, whose arguments are what is not.
static std::optional<unsigned> spineNumber(Operation *op) {
  SmallVector<unsigned> whole;
  for (unsigned number : {0, 1})
    if (op->getOperand(number).getType() == op->getResult(0).getType())
      whole.push_back(number);
  if (whole.size() > 1 && (!op->getOperand(0).getDefiningOp() || dmir::isConstant(op->getOperand(0))) &&
      op->getOperand(1).getDefiningOp() && !dmir::isConstant(op->getOperand(1)))
    return 1;
  return whole.empty() ? std::nullopt : std::optional(whole[0]);
}

static std::optional<RowOp> joinOf(Operation *op) {
  std::optional<unsigned> spine = spineNumber(op);
  bool isItself = op->getOperand(0) == op->getOperand(1);
  if (spine && isItself && isa<dmir::AddOp, dmir::MulOp>(op))
    return RowOp{op, 0, isa<dmir::AddOp>(op) ? Kernel::AddF32 : Kernel::MultiplyF32};
  if (!spine || isItself)
    return std::nullopt;
  RowOp row{op, *spine};
  row.other = op->getOperand(1 - *spine);
  if (!typeOf(row.other).getElementType().isF32() || !typeOf(row.other).hasStaticShape() ||
      typeOf(row.other).getNumElements() == 1)
    return std::nullopt;
  row.kernel = llvm::TypeSwitch<Operation *, Kernel>(op)
                   .Case<dmir::AddOp>([](auto) { return Kernel::AddF32; })
                   .Case<dmir::MulOp>([](auto) { return Kernel::MultiplyF32; })
                   .Case<dmir::SubOp>([&](auto) { return *spine ? Kernel::SubtractFromF32 : Kernel::SubtractF32; })
                   .Case<dmir::DivOp>([&](auto) { return *spine ? Kernel::DivideIntoF32 : Kernel::DivideF32; })
                   .Default([](auto) { return Kernel::Count; });
  return row.kernel == Kernel::Count ? std::nullopt : std::optional(row);
}

std::optional<RowOp> aie::rowOpOf(Operation *op) {
  if (!op || op->getNumResults() != 1 || op->getNumOperands() < 1 || op->getNumOperands() > 2)
    return std::nullopt;
  for (Value value : {op->getOperand(0), Value(op->getResult(0))}) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || !type.getElementType().isF32() || !type.hasStaticShape() || type.getNumElements() == 0)
      return std::nullopt;
  }
  if (auto softmax = dyn_cast<dmir::SoftmaxOp>(op)) {
    if (softmax.getLog() || !isLast(static_cast<int64_t>(softmax.getAxis()), softmax.getInput()))
      return std::nullopt;
    return RowOp{op, 0, Kernel::SoftmaxF32};
  }
  if (auto normalize = dyn_cast<dmir::NormalizeOp>(op)) {
    if (normalize.getAxes().size() != 1 || !isLast(normalize.getAxes()[0], normalize.getInput()))
      return std::nullopt;
    RowOp row{op, 0, normalize.getKind() == dmir::Normalization::rms ? Kernel::RmsNormF32 : Kernel::LayerNormF32};
    row.epsilon = static_cast<float>(normalize.getEpsilon().convertToDouble());
    return row;
  }
  std::optional<unsigned> spine = op->getNumOperands() == 2 ? spineNumber(op) : std::optional(0U);
  if (!spine)
    return std::nullopt;
  Value other = op->getNumOperands() == 2 ? op->getOperand(1 - *spine) : Value();
  if (std::optional<hw::Step> step = stepOf({op, op->getOperand(*spine), other}))
    return RowOp{op, *spine, Kernel::StepsF32, {}, *step};
  return other ? joinOf(op) : std::nullopt;
}

RowChain aie::chainTo(Value value, Value first) {
  RowChain chain;
  Block *block = value.getParentBlock();
  while (value != first) {
    Operation *op = value.getDefiningOp();
    std::optional<RowOp> row = op && op->getBlock() == block ? rowOpOf(op) : std::nullopt;
    if (!row)
      break;
    chain.ops.push_back(*row);
    value = spineOf(*row);
  }
  chain.first = value;
  std::reverse(chain.ops.begin(), chain.ops.end());
  return chain;
}

std::optional<std::string> aie::refuses(const RowChain &chain) {
  if (chain.others() > kMostOthers)
    return "cores join rows with up to " + std::to_string(kMostOthers) + " other tensors, not with " +
           std::to_string(chain.others());
  size_t groups = 0, normalisations = 0;
  for (size_t i = 0; i < chain.ops.size(); ++i) {
    bool isStep = chain.ops[i].kernel == Kernel::StepsF32;
    groups += isStep && (i == 0 || chain.ops[i - 1].kernel != Kernel::StepsF32);
    normalisations += chain.ops[i].kernel == Kernel::LayerNormF32 || chain.ops[i].kernel == Kernel::RmsNormF32;
  }
  if (groups > 1 || chain.steps().size() > static_cast<size_t>(hw::kMostSteps))
    return "cores have parameters for " + std::to_string(hw::kMostSteps) + " steps beside each other";
  if (normalisations > 1)
    return "cores have a parameter for one normalisation";
  return std::nullopt;
}
