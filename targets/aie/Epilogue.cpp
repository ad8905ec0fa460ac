//===- Epilogue.cpp - what cores do behind a product ----------------------===//
#include "Epilogue.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Support/Half.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;
using kernels::Chain;
using kernels::Contraction;
using kernels::Follower;

static constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Whether an op adds a row to the product, or subtracts a constant one.
static bool addsRow(const Follower &follower, Operation *product) {
  bool subtracts = isa<dmir::SubOp>(follower.op);
  if (!subtracts && !isa<dmir::AddOp>(follower.op))
    return false;
  Value row = follower.other;
  if (row == follower.value || llvm::is_contained(product->getOperands(), row) ||
      follower.op->getResult(0).getType() != follower.value.getType() ||
      (subtracts && row == follower.op->getOperand(0)))
    return false;
  if (subtracts && isa<FunctionOpInterface>(follower.op->getParentOp()) && !dmir::isConstant(row))
    return false;
  return kernels::spreadOver(product, row) == kernels::Spread::Outputs;
}

static bool isOfFloats(Type type) { return type.isF32() || type.isBF16() || type.isF16(); }

/// Whether the host would make a tensor for its one use alone, where it makes none if that use is its own: then adding
/// it on the array costs a task and a crossing. What products lead to by ops of one shape is none of the host's.
static bool isMadeForOneUse(Value tensor) {
  if (!tensor.getDefiningOp() || !tensor.hasOneUse() || dmir::isConstant(tensor))
    return false;
  for (Operation *op = tensor.getDefiningOp();
       op && op->getNumOperands() && op->getResult(0).getType() == tensor.getType();
       op = op->getOperand(0).getDefiningOp())
    if (Contraction::is(op))
      return false;
  return true;
}

/// Whether an op adds a tensor of floats of the product's shape.
static bool addsTensor(const Follower &follower, Operation *product) {
  return isa<dmir::AddOp>(follower.op) && follower.other != follower.value &&
         !llvm::is_contained(product->getOperands(), follower.other) && !isMadeForOneUse(follower.other) &&
         follower.other.getType() == follower.value.getType() && isOfFloats(typeOf(follower.value).getElementType());
}

/// The number that a constant of one element is; of a NaN nothing.
static std::optional<float> numberOf(Value value) {
  bool isOne = value && isOfFloats(typeOf(value).getElementType()) && typeOf(value).hasStaticShape() &&
               typeOf(value).getNumElements() == 1 && dmir::isConstant(value);
  std::optional<Tensor> tensor = isOne ? dmir::constantTensor(value) : std::nullopt;
  if (!tensor)
    return std::nullopt;
  float number = tensor->dtype() == DType::F32    ? *tensor->as<float>()
                 : tensor->dtype() == DType::BF16 ? bfloatToFloat(*tensor->as<uint16_t>())
                                                  : halfToFloat(*tensor->as<uint16_t>());
  return std::isnan(number) ? std::nullopt : std::optional(number);
}

std::optional<hw::Step> aie::stepOf(const Follower &follower) {
  auto [op, value, other] = follower;
  using Kind = hw::StepKind;
  if (!isOfFloats(typeOf(value).getElementType()) || op->getNumResults() != 1 ||
      op->getResult(0).getType() != value.getType())
    return std::nullopt;
  Kind kind = llvm::TypeSwitch<Operation *, Kind>(op)
                  .Case<dmir::ReluOp>([](auto) { return Kind::Relu; })
                  .Case<dmir::SigmoidOp>([](auto) { return Kind::Sigmoid; })
                  .Case<dmir::SiluOp>([](auto) { return Kind::Silu; })
                  .Case<dmir::TanhOp>([](auto) { return Kind::Tanh; })
                  .Case<dmir::GeluOp>([](auto) { return Kind::Gelu; })
                  .Case<dmir::GeluTanhOp>([](auto) { return Kind::GeluTanh; })
                  .Default([](auto) { return Kind::None; });
  if (kind != Kind::None)
    return hw::Step{kind};
  std::optional<float> number = numberOf(other);
  if (!number)
    return std::nullopt;
  bool isSecond = op->getOperand(0) != value;
  using Found = std::optional<hw::Step>;
  return llvm::TypeSwitch<Operation *, Found>(op)
      .Case<dmir::AddOp>([&](auto) { return hw::Step{Kind::Add, *number}; })
      .Case<dmir::MulOp>([&](auto) { return hw::Step{Kind::Multiply, *number}; })
      .Case<dmir::MaxOp>([&](auto) { return hw::Step{Kind::Clip, *number, kInfinity}; })
      .Case<dmir::MinOp>([&](auto) { return hw::Step{Kind::Clip, -kInfinity, *number}; })
      .Case<dmir::SubOp>([&](auto) { return isSecond ? Found() : hw::Step{Kind::Add, -*number}; })
      .Case<dmir::DivOp>([&](auto) { return isSecond ? Found() : hw::Step{Kind::Divide, *number}; })
      .Default([](auto) { return Found(); });
}

/// Adds a step, or makes one clip of two that follow each other.
static void addStep(std::vector<hw::Step> &steps, const hw::Step &step, bool rounds) {
  hw::Step *last = steps.empty() ? nullptr : &steps.back();
  bool areClips = last && last->kind == hw::StepKind::Clip && step.kind == hw::StepKind::Clip;
  bool isRounded = !last || last->kind == hw::StepKind::Clip || last->kind == hw::StepKind::Relu;
  if (areClips && last->b == kInfinity && step.a == -kInfinity && last->a <= step.b)
    last->b = step.b;
  else if (rounds && !isRounded)
    steps.insert(steps.end(), {hw::Step{hw::StepKind::RoundBf16}, step});
  else
    steps.push_back(step);
}

/// Whether an op makes bf16 or f16 of sums of f32.
static bool castsSums(const Follower &follower) {
  Type from = typeOf(follower.value).getElementType(), to = getElementTypeOrSelf(follower.op->getResult(0));
  return isa<dmir::CastOp>(follower.op) && from.isF32() && (to.isBF16() || to.isF16());
}

std::optional<Epilogue> aie::epilogueOf(const Chain &chain) {
  Epilogue all;
  bool rounds = typeOf(chain.product->getResult(0)).getElementType().isBF16();
  for (const Follower &follower : chain.followers) {
    if (all.casts)
      return std::nullopt;
    if (castsSums(follower))
      all.casts = true;
    else if (&follower == chain.followers.begin() && addsRow(follower, chain.product)) {
      all.bias = follower.other;
      all.negated = isa<dmir::SubOp>(follower.op);
    } else if (!all.residual && !all.relu && all.steps.empty() && addsTensor(follower, chain.product)) {
      all.residual = follower.other;
    } else if (isa<dmir::ReluOp>(follower.op) && !all.relu && all.steps.empty()) {
      all.relu = true;
    } else if (std::optional<hw::Step> step = stepOf(follower)) {
      addStep(all.steps, *step, rounds);
    } else {
      return std::nullopt;
    }
  }
  return all.steps.size() <= hw::kMostSteps ? std::optional(all) : std::nullopt;
}

std::optional<Chain> aie::computedTo(Value value) {
  return kernels::chainTo(value, [](const Chain &chain) { return epilogueOf(chain).has_value(); });
}

bool aie::isEpilogue(Operation *op, Value result) {
  std::optional<Chain> chain = computedTo(result);
  if (!chain)
    return false;
  chain->add(op, result);
  return epilogueOf(*chain).has_value();
}
