//===- Ops.cpp - which ops the device computes, and how -------------------===//

#include "Ops.h"
#include "../user/UserBody.h"
#include "Constants.h"
#include "scores/Bands.h"
#include "scores/Diagonals.h"

#include "schemas/corsair/Image.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;
using hw::SimdFunction;

std::optional<hw::ElemKind> dmxc::corsair::deviceKind(Type element) {
  if (element.isF32() || element.isF16() || element.isBF16())
    return hw::ElemKind::F16;
  if (element.isInteger(1))
    return hw::ElemKind::Bool;
  if (auto integer = dyn_cast<IntegerType>(element)) {
    if (integer.getWidth() == 64 && !integer.isUnsigned())
      return hw::ElemKind::I64;
    if (integer.getWidth() == 32 && !integer.isUnsigned())
      return hw::ElemKind::I32;
  }
  return std::nullopt;
}

std::optional<SimdFunction> dmxc::corsair::elementwiseFunction(Operation *op) {
  using Answer = std::optional<SimdFunction>;
  return llvm::TypeSwitch<Operation *, Answer>(op)
      .Case<dmir::NegOp>([](auto) { return SimdFunction::Neg; })
      .Case<dmir::AbsOp>([](auto) { return SimdFunction::Abs; })
      .Case<dmir::SignOp>([](auto) { return SimdFunction::Sign; })
      .Case<dmir::CeilOp>([](auto) { return SimdFunction::Ceil; })
      .Case<dmir::FloorOp>([](auto) { return SimdFunction::Floor; })
      .Case<dmir::RoundOp>([](auto) { return SimdFunction::Round; })
      .Case<dmir::SqrtOp>([](auto) { return SimdFunction::Sqrt; })
      .Case<dmir::ReciprocalOp>([](auto) { return SimdFunction::Reciprocal; })
      .Case<dmir::ExpOp>([](auto) { return SimdFunction::Exp; })
      .Case<dmir::LogOp>([](auto) { return SimdFunction::Log; })
      .Case<dmir::SinOp>([](auto) { return SimdFunction::Sin; })
      .Case<dmir::CosOp>([](auto) { return SimdFunction::Cos; })
      .Case<dmir::TanhOp>([](auto) { return SimdFunction::Tanh; })
      .Case<dmir::ErfOp>([](auto) { return SimdFunction::Erf; })
      .Case<dmir::SigmoidOp>([](auto) { return SimdFunction::Sigmoid; })
      .Case<dmir::SiluOp>([](auto) { return SimdFunction::Silu; })
      .Case<dmir::GeluOp>([](auto) { return SimdFunction::Gelu; })
      .Case<dmir::GeluTanhOp>([](auto) { return SimdFunction::GeluTanh; })
      .Case<dmir::HardSwishOp>([](auto) { return SimdFunction::HardSwish; })
      .Case<dmir::SoftplusOp>([](auto) { return SimdFunction::Softplus; })
      .Case<dmir::RsqrtOp>([](auto) { return SimdFunction::Rsqrt; })
      .Case<dmir::ReluOp>([](auto) { return SimdFunction::Relu; })
      .Case<dmir::NotOp>([](auto) { return SimdFunction::Not; })
      .Case<dmir::IsNaNOp>([](auto) { return SimdFunction::IsNaN; })
      .Case<dmir::CastOp>([](auto) { return SimdFunction::Copy; })
      .Case<dmir::AddOp>([](auto) { return SimdFunction::Add; })
      .Case<dmir::SubOp>([](auto) { return SimdFunction::Sub; })
      .Case<dmir::MulOp>([](auto) { return SimdFunction::Mul; })
      .Case<dmir::DivOp>([](auto) { return SimdFunction::Div; })
      .Case<dmir::PowOp>([](auto) { return SimdFunction::Pow; })
      .Case<dmir::ModOp>([](auto) { return SimdFunction::Mod; })
      .Case<dmir::MaxOp>([](auto) { return SimdFunction::Max; })
      .Case<dmir::MinOp>([](auto) { return SimdFunction::Min; })
      .Case<dmir::AndOp>([](auto) { return SimdFunction::And; })
      .Case<dmir::OrOp>([](auto) { return SimdFunction::Or; })
      .Case<dmir::XorOp>([](auto) { return SimdFunction::Xor; })
      .Case<dmir::SelectOp>([](auto) { return SimdFunction::Select; })
      .Case([](dmir::CompareOp compare) {
        static constexpr SimdFunction functions[] = {SimdFunction::Eq, SimdFunction::Ne, SimdFunction::Lt,
                                                     SimdFunction::Le, SimdFunction::Gt, SimdFunction::Ge};
        return functions[static_cast<int>(compare.getKind())];
      })
      .Default([](Operation *) -> Answer { return std::nullopt; });
}

static SimdFunction reduceFunction(dmir::Reduction kind) {
  static constexpr SimdFunction functions[] = {SimdFunction::ReduceSum, SimdFunction::ReduceMean,
                                               SimdFunction::ReduceProd, SimdFunction::ReduceMax,
                                               SimdFunction::ReduceMin};
  return functions[static_cast<int>(kind)];
}

std::optional<RowsOp> dmxc::corsair::rowsOp(Operation *op) {
  using Answer = std::optional<RowsOp>;
  return llvm::TypeSwitch<Operation *, Answer>(op)
      .Case([](dmir::ReduceOp reduce) {
        return RowsOp{reduceFunction(reduce.getKind()), SmallVector<int64_t>(reduce.getAxes())};
      })
      .Case([](dmir::SoftmaxOp softmax) {
        return RowsOp{softmax.getLog() ? SimdFunction::LogSoftmax : SimdFunction::Softmax,
                      {static_cast<int64_t>(softmax.getAxis())}};
      })
      .Case([](dmir::ArgReduceOp arg) {
        const bool largest = arg.getKind() == dmir::Extremum::max;
        return RowsOp{largest ? SimdFunction::ArgMax : SimdFunction::ArgMin, {static_cast<int64_t>(arg.getAxis())}};
      })
      .Case([](dmir::CumSumOp sum) { return RowsOp{SimdFunction::CumSum, {static_cast<int64_t>(sum.getAxis())}}; })
      .Case([](dmir::NormalizeOp normalize) {
        const bool rms = normalize.getKind() == dmir::Normalization::rms;
        return RowsOp{rms ? SimdFunction::RmsNorm : SimdFunction::LayerNorm, SmallVector<int64_t>(normalize.getAxes()),
                      static_cast<float>(normalize.getEpsilon().convertToDouble())};
      })
      .Default([](Operation *) -> Answer { return std::nullopt; });
}

//===----------------------------------------------------------------------===//
// What is refused
//===----------------------------------------------------------------------===//

static std::optional<std::string> refusesTypes(Operation *op) {
  static constexpr const char *open = "the device's programs have static shapes, and the node has open dims";
  if (op->hasAttr("dims")) // such as where a part of fixed size starts
    return open;
  auto check = [](Type type) -> std::optional<std::string> {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return open;
    if (!deviceKind(tensor.getElementType())) {
      std::optional<DType> dtype = dmir::dtypeOf(tensor.getElementType());
      return "the vector device has no elements of type " + (dtype ? std::string(dtypeName(*dtype)) : "block_fp");
    }
    if (tensor.getRank() > int64_t(hw::kMaxRank))
      return "the device's programs take values of " + std::to_string(hw::kMaxRank) + " dims at most";
    return std::nullopt;
  };
  for (Type type : op->getOperandTypes())
    if (auto reason = check(type))
      return reason;
  for (Type type : op->getResultTypes())
    if (auto reason = check(type))
      return reason;
  return std::nullopt;
}

/// Of how many quads each can have a share of a value of this shape, at most.
static int64_t mostShares(ArrayRef<int64_t> shape, int team, const hw::Machine &machine) {
  int64_t most = 1;
  for (int quads : teamSizes(machine, team))
    if (llvm::any_of(shape, [&](int64_t extent) { return extent && extent % quads == 0; }))
      most = std::max<int64_t>(most, quads);
  return most;
}

/// A share of a value that is computed or given lies in GM, of what cannot be dealt all of it.
static std::optional<std::string> refusesSizes(Operation *op, const hw::Machine &machine, int team) {
  const auto room = static_cast<int64_t>(machine.memory(hw::Memory::GM).size);
  auto check = [&](Value value) -> std::optional<std::string> {
    auto type = cast<RankedTensorType>(value.getType());
    int64_t bytes = type.getNumElements() * hw::elementBytes(*deviceKind(type.getElementType()));
    if (bytes > room && mayBeStrip(value))
      bytes = 2 * kBandRows * type.getShape().back() * 4;
    const int64_t quads = bytes <= room ? 1 : mostShares(type.getShape(), team, machine);
    if (bytes <= room * quads)
      return std::nullopt;
    return "GM holds " + std::to_string(room) + " bytes, and a value takes " + std::to_string(bytes) +
           (quads > 1 ? " on " + std::to_string(quads) + " quads" : "");
  };
  for (Value operand : op->getOperands()) {
    auto argument = dyn_cast<BlockArgument>(operand); // of a region: a constant, or checked where it is defined
    if (!operand.getDefiningOp<dmir::ConstantOp>() &&
        !(argument && !isa<FunctionOpInterface>(argument.getOwner()->getParentOp())))
      if (auto reason = check(operand))
        return reason;
  }
  for (Value result : op->getResults())
    if (auto reason = isa<dmir::ConstantOp>(op) ? std::nullopt : check(result))
      return reason;
  return std::nullopt;
}

static bool holdsFloats(Value value) { return isa<FloatType>(elementOf(value)); }

/// The op that computes a value, where that crosses into a region too; null for inputs.
static Operation *makerOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto region = dyn_cast<dmir::RegionOp>(argument.getOwner()->getParentOp());
    return region ? makerOf(region.getInputs()[argument.getArgNumber()]) : nullptr;
  }
  auto region = value.getDefiningOp<dmir::RegionOp>();
  const unsigned number = cast<OpResult>(value).getResultNumber();
  return region ? makerOf(region.getBody().front().getTerminator()->getOperand(number)) : value.getDefiningOp();
}

/// The constant that a value is, where that crosses into a region too; null if it is none.
static dmir::ConstantOp constantOf(Value value) { return dyn_cast_or_null<dmir::ConstantOp>(makerOf(value)); }

static std::optional<std::string> refusesConv(dmir::ConvOp op) {
  auto input = cast<RankedTensorType>(op.getInput().getType());
  if (!holdsFloats(op.getInput()))
    return "the arrays convolve floats only";
  if (input.getRank() > 4)
    return "convolutions over three dims are not lowered";
  if (isDepthwise(op))
    return std::nullopt;
  if (!constantOf(op.getWeights()))
    return "the weights of a convolution must be constant";
  if (!servesAsTiles(op.getWeights()))
    return "the weights of a convolution have other uses too";
  return std::nullopt;
}

static std::optional<std::string> refusesScatter(dmir::ScatterElementsOp op) {
  auto broadcast = op.getIndices().getDefiningOp<dmir::BroadcastOp>();
  auto shape = shapeOf(op.getIndices());
  if (op.getMode() != dmir::ScatterMode::replace)
    return "only replacing scatters are lowered";
  if (!broadcast || cast<RankedTensorType>(broadcast.getInput().getType()).getNumElements() != shape[op.getAxis()])
    return "the reshape engine scatters whole rows: the indices must be the same for all elements of one";
  return std::nullopt;
}

/// The device's own results are infinite where they saturated. What others give it is not: their infinities are exact.
static std::optional<std::string> refusesIsInf(dmir::IsInfOp op, const hw::Machine &machine, int team) {
  Operation *source = op.getInput().getDefiningOp();
  auto region = dyn_cast<dmir::RegionOp>(op->getParentOp());
  if (source ? !refusal(source, machine, team) : region && region.getDevice() == "corsair")
    return std::nullopt;
  return "the host knows which of its values are infinite, f16 saturates";
}

/// Elements of nothing but padding, or picked from nothing.
static std::optional<std::string> refusesNothing(Operation *op) {
  if (makesNothing(op) || !isa<dmir::MatMulOp, dmir::ConvOp, dmir::PoolOp, dmir::GatherOp, dmir::ReduceOp>(op) ||
      cast<RankedTensorType>(op->getOperand(0).getType()).getNumElements() != 0)
    return std::nullopt;
  if (auto reduce = dyn_cast<dmir::ReduceOp>(op)) {
    const bool extreme = llvm::is_contained({dmir::Reduction::max, dmir::Reduction::min}, reduce.getKind());
    return extreme ? std::optional<std::string>("the extremes of nothing are infinite, and f16 saturates")
                   : std::nullopt;
  }
  if (isa<dmir::MatMulOp, dmir::ConvOp>(op))
    return "a product over nothing";
  return isa<dmir::PoolOp>(op) ? "a window over nothing" : "rows of nothing are gathered on the host";
}

//--- constants: f16 has nothing below 2^-14 and nothing above 65504

/// The first finite number of a constant beyond f16's, or its largest where all are below; nullopt if f16 has it.
static std::optional<double> notInF16(dmir::ConstantOp constant) {
  constexpr int64_t most = int64_t(1) << 22;
  auto type = cast<RankedTensorType>(constant.getType());
  if (!isa<FloatType>(type.getElementType()) || type.getNumElements() > most)
    return std::nullopt;
  Result<Tensor> tensor = dmir::constantTensor(constant.getValue());
  double largest = 0;
  for (int64_t i = 0; tensor && i < tensor->numElements(); ++i)
    if (double number = tensor->asDouble(i); std::isfinite(number))
      largest = std::abs(number) > std::abs(largest) ? number : largest;
  const bool fits = largest == 0 || (std::abs(largest) >= 0x1p-14 && std::abs(largest) <= 65519);
  return fits ? std::nullopt : std::optional(largest);
}

static std::string numberText(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << "f16 has no number " << llvm::format("%g", number);
  return text;
}

/// Whether a value comes to an op that accepts it, through roots, casts and moves, and from region to region.
static bool comesTo(Value value, llvm::function_ref<bool(OpOperand &)> accepts, int depth = 8) {
  return depth > 0 && llvm::any_of(value.getUses(), [&](OpOperand &use) {
           Operation *reader = use.getOwner();
           const unsigned number = use.getOperandNumber();
           if (auto region = dyn_cast<dmir::RegionOp>(reader))
             return comesTo(region.getBody().getArgument(number), accepts, depth - 1);
           if (auto region = dyn_cast<dmir::RegionOp>(reader->getParentOp()); region && isa<dmir::YieldOp>(reader))
             return comesTo(region.getResult(number), accepts, depth - 1);
           const bool passes =
               isa<dmir::SqrtOp, dmir::CastOp, dmir::ReshapeOp, dmir::BroadcastOp, dmir::TransposeOp, dmir::SliceOp>(
                   reader);
           return accepts(use) || (passes && comesTo(reader->getResult(0), accepts, depth - 1));
         });
}

/// What f16 would make of a constant changes the result: a factor, or what keeps a divisor from zero. A large negative
/// number that is added, or a factor whose product is, fills a mask: any that saturates is as good.
static std::optional<std::string> refusesNumbers(Operation *op) {
  if (!isa<dmir::AddOp, dmir::SubOp, dmir::MulOp, dmir::DivOp, dmir::MaxOp, dmir::MinOp, dmir::PowOp>(op))
    return std::nullopt;
  auto adds = [](OpOperand &use) { return isa<dmir::AddOp, dmir::SubOp, dmir::SelectOp>(use.getOwner()); };
  auto divides = [](OpOperand &use) {
    Operation *reader = use.getOwner();
    return isa<dmir::ReciprocalOp, dmir::RsqrtOp, dmir::LogOp, dmir::PowOp>(reader) ||
           (isa<dmir::DivOp>(reader) && use.getOperandNumber() == 1);
  };
  for (Value operand : op->getOperands()) {
    dmir::ConstantOp constant = constantOf(operand);
    std::optional<double> number = constant ? notInF16(constant) : std::nullopt;
    if (!number)
      continue;
    const bool large = std::abs(*number) > 1, fills = large && *number < 0;
    bool matters = true;
    if (isa<dmir::AddOp, dmir::SubOp, dmir::MaxOp, dmir::MinOp>(op) && !large)
      matters = comesTo(op->getResult(0), divides);
    else if (isa<dmir::MaxOp, dmir::MinOp>(op)) // unless no value is below, or above
      matters = isa<dmir::MaxOp>(op) != fills;
    else if (fills && isa<dmir::AddOp>(op))
      matters = false;
    else if (fills && isa<dmir::MulOp>(op))
      matters = !comesTo(op->getResult(0), adds);
    if (matters)
      return numberText(*number) + ", a constant of the node";
  }
  return std::nullopt;
}

/// Whether a value has numbers that f16 has not, because of a constant that it comes from: what reads it is computed
/// where it is.
static bool leavesF16(Value value, int depth = 6) {
  Operation *op = makerOf(value);
  if (!op || depth == 0)
    return false;
  if (refusesNumbers(op))
    return true;
  const bool passes = isa<dmir::SqrtOp, dmir::CastOp, dmir::ReshapeOp, dmir::BroadcastOp, dmir::TransposeOp,
                          dmir::SliceOp, dmir::NegOp, dmir::AbsOp, dmir::ReluOp, dmir::AddOp, dmir::SubOp>(op);
  return passes && llvm::any_of(op->getOperands(), [&](Value operand) { return leavesF16(operand, depth - 1); });
}

static std::optional<std::string> refusesElementwise(Operation *op, bool floats) {
  if (isa<dmir::DivOp, dmir::PowOp>(op) && !floats)
    return "integers are divided and raised on the host";
  if (isa<dmir::ModOp>(op) && floats)
    return "a remainder of rounded floats may be off by the whole divisor";
  if (isa<dmir::NotOp>(op) && !elementOf(op->getOperand(0)).isInteger(1))
    return "the bits of integers are turned over on the host";
  if (std::optional<std::string> number = floats ? refusesNumbers(op) : std::nullopt)
    return number;
  const bool leaves = floats && llvm::any_of(op->getOperands(), [](Value operand) { return leavesF16(operand); });
  return leaves ? std::optional<std::string>("an operand has numbers that f16 has not") : std::nullopt;
}

static std::optional<std::string> refusesOp(Operation *op, const hw::Machine &machine, int team) {
  if (auto reason = refusesTypes(op))
    return reason;
  if (auto reason = refusesNothing(op))
    return reason;
  if (auto reason = refusesSizes(op, machine, team))
    return reason;
  bool floats = op->getNumOperands() && holdsFloats(op->getOperand(0));
  if (elementwiseFunction(op))
    return refusesElementwise(op, floats);
  return llvm::TypeSwitch<Operation *, std::optional<std::string>>(op)
      .Case<dmir::ConstantOp, dmir::TransposeOp, dmir::SliceOp, dmir::BroadcastOp, dmir::ReshapeOp, dmir::ConcatOp>(
          [](auto) { return std::nullopt; })
      .Case([](dmir::PadOp pad) -> std::optional<std::string> {
        return pad.getMode() == dmir::PadMode::constant
                   ? std::nullopt
                   : std::optional<std::string>("only constant padding is lowered");
      })
      .Case([](dmir::GatherOp) { return std::nullopt; })
      .Case([&](dmir::IsInfOp test) { return refusesIsInf(test, machine, team); })
      .Case([](dmir::ScatterElementsOp scatter) { return refusesScatter(scatter); })
      .Case([&](dmir::MatMulOp) {
        return floats ? std::nullopt : std::optional<std::string>("the arrays multiply floats only");
      })
      .Case([](dmir::ConvOp conv) { return refusesConv(conv); })
      .Case([&](dmir::PoolOp pool) -> std::optional<std::string> {
        if (!floats || cast<RankedTensorType>(pool.getInput().getType()).getRank() > 4)
          return "pooling is lowered for images of floats";
        if (pool.getKind() == dmir::Pooling::sum)
          return "pooling by sums is not lowered";
        return std::nullopt;
      })
      .Case<dmir::ReduceOp, dmir::SoftmaxOp>([&](auto) -> std::optional<std::string> {
        return floats ? std::nullopt : std::optional<std::string>("rows of integers are reduced on the host");
      })
      .Case([&](dmir::ArgReduceOp arg) -> std::optional<std::string> {
        if (!floats)
          return "rows of integers are reduced on the host";
        return arg.getSelectLast() ? std::optional<std::string>("of equal elements the device takes the first")
                                   : std::nullopt;
      })
      .Case([&](dmir::CumSumOp sum) -> std::optional<std::string> {
        if (!floats)
          return "rows of integers are summed on the host";
        const bool plain = !sum.getExclusive() && !sum.getReverse();
        return plain ? std::nullopt : std::optional<std::string>("the device's running sums are inclusive and forward");
      })
      .Case([](dmir::NormalizeOp) { return std::nullopt; })
      .Case([&](dmir::ExternOp user) { return whyNoBody(user, machine); })
      .Case([](dmir::MaskOp mask) {
        return diagonalsOf(mask) ? std::nullopt : std::optional<std::string>("the device masks by diagonals alone");
      })
      .Default([](Operation *other) {
        return "'" + other->getName().getStringRef().str() + "' is not lowered to the device";
      });
}

std::optional<std::string> dmxc::corsair::refusal(Operation *op, const hw::Machine &machine, int team) {
  constexpr const char *layouts = "the device knows no layout but its own";
  if (isa<dmir::RelayoutOp>(op))
    return layouts;
  if (auto reason = refusesOp(op, machine, team))
    return reason;
  // Last: another target has layouts where it computes what was refused for another reason.
  auto hasLayout = [](Type type) { return dmir::layoutOf(type) != nullptr; };
  bool any = llvm::any_of(op->getOperandTypes(), hasLayout) || llvm::any_of(op->getResultTypes(), hasLayout);
  return any ? std::optional<std::string>(layouts) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

/// Whether the region's strategy has an argument as the bias of a product.
static bool isBias(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto region = argument ? dyn_cast<dmir::RegionOp>(argument.getOwner()->getParentOp()) : dmir::RegionOp();
  auto packed = region && region.getStrategy() ? region.getStrategyAttr().getAs<DictionaryAttr>(strategy::kPacked)
                                               : DictionaryAttr();
  auto form = packed ? packed.getAs<DictionaryAttr>(std::to_string(argument.getArgNumber())) : DictionaryAttr();
  return form && form.getAs<StringAttr>("form").getValue() == forms::kBias;
}

OpFormats dmxc::corsair::formatsOf(Operation *op) {
  OpFormats formats;
  auto nameOf = [](Value value) {
    std::optional<hw::ElemKind> kind = deviceKind(elementOf(value));
    assert(kind && "a kernel has no op of a type that the device lacks");
    return std::string(hw::nameOf(*kind));
  };
  const bool adds = llvm::any_of(op->getOperands(), isBias);
  auto conv = dyn_cast<dmir::ConvOp>(op);
  if (isa<dmir::MatMulOp>(op) || (conv && !isDepthwise(conv)))
    formats.operands = {"BFP16_64R", "BFP16_64C"};
  else
    for (Value operand : op->getOperands())
      formats.operands.push_back(adds ? "BFP32_1" : nameOf(operand));
  const bool biased = !formats.operands.empty() && formats.operands.front() == "BFP16_64R" && op->hasOneUse() &&
                      llvm::any_of((*op->getUsers().begin())->getOperands(), isBias);
  formats.result = biased ? "BFP32_1" : nameOf(op->getResult(0));
  return formats;
}

hw::Window dmxc::corsair::windowOf(ArrayRef<int64_t> image, ArrayRef<int64_t> result, ArrayRef<int64_t> kernel,
                                   ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations, ArrayRef<int64_t> low) {
  const bool flat = image.size() == 3;
  auto row = [&](ArrayRef<int64_t> of, int64_t missing) { return flat ? missing : of[of.size() - 2]; };
  hw::Window window;
  window.h = row(image, 1), window.w = image.back();
  window.kh = row(kernel, 1), window.kw = kernel.back();
  window.sh = row(strides, 1), window.sw = strides.back();
  window.dh = row(dilations, 1), window.dw = dilations.back();
  window.ph = row(low, 0), window.pw = low.back();
  window.ow = result.back();
  return window;
}
