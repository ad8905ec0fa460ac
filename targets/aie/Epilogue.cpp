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

/// Of one shape and elements, in whatever form.
static bool areAlike(Value one, Value other) {
  return typeOf(one).getShape() == typeOf(other).getShape() &&
         typeOf(one).getElementType() == typeOf(other).getElementType();
}

/// Whether an op adds a row to the product, or subtracts a constant one.
static bool addsRow(const Follower &follower, Operation *product) {
  bool subtracts = isa<dmir::SubOp>(follower.op);
  if (!subtracts && !isa<dmir::AddOp>(follower.op))
    return false;
  Value row = follower.other;
  if (row == follower.value || llvm::is_contained(product->getOperands(), row) ||
      !areAlike(follower.op->getResult(0), follower.value) || (subtracts && row == follower.op->getOperand(0)))
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
         areAlike(follower.other, follower.value) && isOfFloats(typeOf(follower.value).getElementType());
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
  if (!isOfFloats(typeOf(value).getElementType()) || op->getNumResults() != 1 || !areAlike(op->getResult(0), value))
    return std::nullopt;
  Kind kind = llvm::TypeSwitch<Operation *, Kind>(op)
                  .Case<dmir::ReluOp>([](auto) { return Kind::Relu; })
                  .Case<dmir::SigmoidOp>([](auto) { return Kind::Sigmoid; })
                  .Case<dmir::SiluOp>([](auto) { return Kind::Silu; })
                  .Case<dmir::TanhOp>([](auto) { return Kind::Tanh; })
                  .Case<dmir::GeluOp>([](auto) { return Kind::Gelu; })
                  .Case<dmir::GeluTanhOp>([](auto) { return Kind::GeluTanh; })
                  .Case<dmir::RoundOp>([](auto) { return Kind::Round; })
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

/// Whether an op makes bf16 or f16 of sums of f32.
static bool castsSums(const Follower &follower) {
  Type from = typeOf(follower.value).getElementType(), to = getElementTypeOrSelf(follower.op->getResult(0));
  return isa<dmir::CastOp>(follower.op) && from.isF32() && (to.isBF16() || to.isF16());
}

namespace {

/// A tensor of bytes as what it stands for, by ops of one reader each.
struct Dequantised {
  Value bytes;
  float zero = 0, scale = 0;
};

/// mul(cast(sub(cast(bytes), zero)), scale), with or without a zero point.
std::optional<Dequantised> dequantisedOf(Value value) {
  auto scaled = value ? value.getDefiningOp<dmir::MulOp>() : dmir::MulOp();
  std::optional<float> scale = scaled ? numberOf(scaled.getRhs()) : std::nullopt;
  auto cast = scale ? scaled.getLhs().getDefiningOp<dmir::CastOp>() : dmir::CastOp();
  if (!cast || !value.hasOneUse() || !cast->hasOneUse() || !typeOf(value).getElementType().isF32())
    return std::nullopt;
  Dequantised all{cast.getInput(), 0, *scale};
  if (auto less = all.bytes.getDefiningOp<dmir::SubOp>()) {
    std::optional<Tensor> zero = dmir::isConstant(less.getRhs()) ? dmir::constantTensor(less.getRhs()) : std::nullopt;
    if (!zero || zero->numElements() != 1 || !typeOf(all.bytes).getElementType().isInteger(32) || !less->hasOneUse())
      return std::nullopt;
    all.zero = static_cast<float>(zero->asInt(0));
    all.bytes = less.getLhs();
  }
  if (auto wide = all.bytes.getDefiningOp<dmir::CastOp>();
      wide && typeOf(all.bytes).getElementType().isInteger(32) && wide->hasOneUse())
    all.bytes = wide.getInput();
  bool isWhole = typeOf(all.bytes).getElementType().isUnsignedInteger(8) &&
                 typeOf(all.bytes).getShape() == typeOf(value).getShape();
  return isWhole ? std::optional(all) : std::nullopt;
}

/// Reads a chain from its product on.
class Reader {
public:
  explicit Reader(const Chain &chain) : chain(chain), type(typeOf(chain.product->getResult(0)).getElementType()) {}

  std::optional<Epilogue> read() {
    for (const Follower &follower : chain.followers)
      if (all.casts || (!addSum(follower) && !addTensorOfBytes(follower) && !addCast(follower) &&
                        !addToBytes(follower) && !addScales(follower) && !addStep(follower)))
        return std::nullopt;
    return std::move(all);
  }

private:
  bool isFirst(const Follower &follower) const { return &follower == chain.followers.begin(); }
  bool addSum(const Follower &follower);
  bool addCast(const Follower &follower);
  bool addToBytes(const Follower &follower);
  bool addScales(const Follower &follower);
  bool addTensorOfBytes(const Follower &follower);
  bool addStep(const Follower &follower);
  void mergeClips();
  void mergeQuantise();

  const Chain &chain;
  Type type; ///< of what the chain has come to
  Epilogue all;
  /// Of numbers that are integers: the least and the most that they may be.
  std::optional<std::pair<float, float>> range;
};

/// What is done to sums in their own type.
bool Reader::addSum(const Follower &follower) {
  bool own = typeOf(chain.product->getResult(0)).getElementType() == type && !all.floats && all.steps.empty();
  if (!own || all.relu)
    return false;
  if (isFirst(follower) && addsRow(follower, chain.product)) {
    all.bias = follower.other;
    all.negated = isa<dmir::SubOp>(follower.op);
  } else if (!all.residual && addsTensor(follower, chain.product)) {
    all.residual = follower.other;
  } else if (isa<dmir::ReluOp>(follower.op)) {
    all.relu = true;
  } else {
    return false;
  }
  return true;
}

bool isInteger(float number) { return std::floor(number) == number && std::abs(number) < 1 << 16; }
bool isByte(Type type) { return type.isInteger(8); }
std::pair<float, float> rangeOf(Type byte) {
  return byte.isUnsignedInteger() ? std::pair(0.f, 255.f) : std::pair(-128.f, 127.f);
}

/// i32 to f32; that to bytes, where it is an integer that they hold; bytes to what they stand for.
bool Reader::addCast(const Follower &follower) {
  if (!isa<dmir::CastOp>(follower.op))
    return false;
  Type to = typeOf(follower.op->getResult(0)).getElementType();
  bool isWord = to.isF32() || (to.isInteger(32) && !to.isUnsignedInteger());
  if (castsSums(follower) && typeOf(chain.product->getResult(0)).getElementType().isF32()) {
    all.casts = true;
  } else if (isByte(to) && range) {
    auto [low, high] = rangeOf(to);
    if (range->first < low || range->second > high)
      return false;
  } else if (type.isInteger(32) && to.isF32() && !all.floats && !range) {
    all.floats = true;
  } else if (!range || !isWord) {
    return false;
  }
  type = to;
  return true;
}

/// A number added to, or subtracted from, integers that came of bytes.
bool Reader::addToBytes(const Follower &follower) {
  bool subtracts = isa<dmir::SubOp>(follower.op) && follower.op->getOperand(0) == follower.value;
  if (!range || !type.isInteger(32) || !(subtracts || isa<dmir::AddOp>(follower.op)) || !follower.other ||
      !dmir::isConstant(follower.other) || typeOf(follower.other).getNumElements() != 1)
    return false;
  std::optional<Tensor> tensor = dmir::constantTensor(follower.other);
  if (!tensor || std::abs(tensor->asInt(0)) > 1 << 16)
    return false;
  auto number = static_cast<float>(subtracts ? -tensor->asInt(0) : tensor->asInt(0));
  all.steps.push_back({hw::StepKind::Add, number});
  range = std::pair(range->first + number, range->second + number);
  return isInteger(range->first) && isInteger(range->second);
}

/// A factor a column of what sums of i32 have become.
bool Reader::addScales(const Follower &follower) {
  bool ofBytes = isByte(typeOf(chain.product->getOperand(0)).getElementType());
  if (!isa<dmir::MulOp>(follower.op) || !all.floats || !ofBytes || !all.steps.empty() || all.scales || !type.isF32() ||
      follower.other == follower.value || !areAlike(follower.op->getResult(0), follower.value) ||
      !typeOf(follower.other).hasStaticShape() || typeOf(follower.other).getNumElements() == 1 ||
      kernels::spreadOver(chain.product, follower.other) != kernels::Spread::Outputs)
    return false;
  all.scales = follower.other;
  return true;
}

/// Bytes of another result, as what they stand for.
bool Reader::addTensorOfBytes(const Follower &follower) {
  if (!isa<dmir::AddOp>(follower.op) || !all.floats || all.bytes || !type.isF32() ||
      !isByte(typeOf(chain.product->getOperand(0)).getElementType()))
    return false;
  std::optional<Dequantised> added = dequantisedOf(follower.other);
  if (!added || !areAlike(follower.other, follower.value))
    return false;
  all.bytes = added->bytes;
  for (Operation *op = follower.other.getDefiningOp(); op != added->bytes.getDefiningOp();
       op = op->getOperand(0).getDefiningOp())
    ++all.opsOfBytes;
  all.steps.push_back({hw::StepKind::AddBytes, added->zero, added->scale});
  range.reset();
  return true;
}

bool Reader::addStep(const Follower &follower) {
  std::optional<hw::Step> step = isOfFloats(type) ? stepOf(follower) : std::nullopt;
  if (!step)
    return false;
  using Kind = hw::StepKind;
  const hw::Step *last = all.steps.empty() ? nullptr : &all.steps.back();
  if (type.isBF16() && last && last->kind != Kind::Clip && last->kind != Kind::Relu)
    all.steps.push_back({Kind::RoundBf16}); // what the op before has made
  all.steps.push_back(*step);
  if (!type.isF32()) {
    mergeClips();
    return true;
  }
  bool keeps = step->kind == Kind::Add && range && isInteger(step->a);
  if (step->kind == Kind::Round)
    range = std::pair(-kInfinity, kInfinity);
  else if (keeps)
    range = std::pair(range->first + step->a, range->second + step->a);
  else if (step->kind == Kind::Clip && range && (std::isinf(step->a) || isInteger(step->a)) &&
           (std::isinf(step->b) || isInteger(step->b)))
    range = std::pair(std::max(range->first, step->a), std::min(range->second, step->b));
  else
    range.reset();
  mergeClips();
  mergeQuantise();
  return true;
}

/// Makes one clip of two that follow each other.
void Reader::mergeClips() {
  if (all.steps.size() < 2)
    return;
  hw::Step &last = all.steps.end()[-2], step = all.steps.back();
  bool areClips = last.kind == hw::StepKind::Clip && step.kind == hw::StepKind::Clip;
  if (areClips && last.b == kInfinity && step.a == -kInfinity && last.a <= step.b) {
    last.b = step.b;
    all.steps.pop_back();
  }
}

/// Makes one step of a division, rounding, a zero point and the range of bytes; and one of a zero point less and a
/// factor.
void Reader::mergeQuantise() {
  using Kind = hw::StepKind;
  size_t count = all.steps.size();
  const hw::Step last = all.steps.back(), none;
  const hw::Step before = count > 1 ? all.steps.end()[-2] : none;
  if (last.kind == Kind::Multiply && before.kind == Kind::Add && count > 2 &&
      (all.steps.end()[-3].kind == Kind::QuantiseI8 || all.steps.end()[-3].kind == Kind::QuantiseUi8)) {
    all.steps.resize(count - 2);
    all.steps.push_back({Kind::Dequantise, -before.a, last.a});
    return;
  }
  bool isSigned = last.a == -128 && last.b == 127, isUnsigned = last.a == 0 && last.b == 255;
  if (last.kind != Kind::Clip || !(isSigned || isUnsigned))
    return;
  bool hasZero = before.kind == Kind::Add && count > 2;
  size_t round = count - (hasZero ? 3 : 2);
  if (count < 2 || all.steps[round].kind != Kind::Round)
    return;
  all.steps.resize(round);
  hw::Step step{isSigned ? Kind::QuantiseI8 : Kind::QuantiseUi8, hasZero ? before.a : 0, 1};
  if (!all.steps.empty() && all.steps.back().kind == Kind::Divide) {
    step.b = all.steps.back().a;
    all.steps.pop_back();
  }
  all.steps.push_back(step);
}

} // namespace

std::optional<Epilogue> aie::epilogueOf(const Chain &chain) { return Reader(chain).read(); }

bool aie::isResult(const Chain &chain) {
  Type from = typeOf(chain.product->getResult(0)).getElementType(), to = from;
  bool wereBytes = false;
  for (const Follower &follower : chain.followers) {
    to = typeOf(follower.op->getResult(0)).getElementType();
    wereBytes = wereBytes || isByte(to);
  }
  std::optional<Epilogue> all = epilogueOf(chain);
  if (!all || all->steps.size() > hw::kMostSteps || (all->bytes && !isByte(to)))
    return false;
  return isByte(to) || (!wereBytes && (to.isF32() || to == from || all->casts));
}

std::optional<Chain> aie::computedTo(Value value) {
  return kernels::chainTo(value, [](const Chain &chain) { return epilogueOf(chain).has_value(); });
}

bool aie::isAddedByCores(Operation *op) {
  for (Operation *next = op; isa<dmir::CastOp, dmir::SubOp, dmir::MulOp>(next) && next->hasOneUse();) {
    Value value = next->getResult(0);
    next = *value.user_begin();
    if (!isa<dmir::AddOp>(next))
      continue;
    std::optional<Dequantised> added = dequantisedOf(value);
    Value sum = next->getOperand(next->getOperand(0) == value);
    if (!added || !isEpilogue(next, sum))
      return false;
    for (Operation *at = value.getDefiningOp(); at != added->bytes.getDefiningOp();
         at = at->getOperand(0).getDefiningOp())
      if (at == op)
        return true;
    return false;
  }
  return false;
}

bool aie::reachesResult(Chain chain) {
  while (epilogueOf(chain)) {
    if (isResult(chain))
      return true;
    Value last = chain.followers.empty() ? chain.product->getResult(0) : chain.followers.back().op->getResult(0);
    if (!last.hasOneUse() || (*last.user_begin())->getNumResults() != 1)
      return false;
    chain.add(*last.user_begin(), last);
  }
  return false;
}

bool aie::isEpilogue(Operation *op, Value result) {
  std::optional<Chain> chain = op->getNumResults() == 1 ? computedTo(result) : std::nullopt;
  if (!chain)
    return false;
  chain->add(op, result);
  return reachesResult(std::move(*chain));
}
