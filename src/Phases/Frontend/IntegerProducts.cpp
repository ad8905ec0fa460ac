//===- IntegerProducts.cpp - products of dequantised bytes ----------------===//
//
// (a - za) * sa times (w - zw) * sw, summed over k, is (sum of a * (w - zw) - za * sum of (w - zw)) * (sa * sw): an i32
// product of the bytes, a constant a column, and one multiplication. The sum is exact: k is bounded so that i32 holds
// it. Products of integers minus zero points (MatMulInteger, ConvInteger, QLinear*) are the same without the scales.
// A bias that is added to the product joins the integers where it is a multiple of sa * sw, as quantised models' are:
// in f32 its rounding would often be the largest of the result's.
//
// Done where w is constant and w - zw are bytes, za and sa are one number, and the target that computes the product
// also computes the one of bytes. Others are left as they are.
//
//===----------------------------------------------------------------------===//
#include "Quantised.h"

#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cmath>

namespace dmxc {
#define GEN_PASS_DEF_INTEGERPRODUCTS
#include "dmxc/Phases/Frontend/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
using namespace dmxc::quantised;

namespace {

/// Most terms of a sum: 255 * 255 times this is below 2^31.
constexpr int64_t kMostTerms = 32768;

/// Smallest and largest element; nullopt for no elements.
std::optional<std::pair<int64_t, int64_t>> rangeOf(const Tensor &tensor) {
  if (tensor.numElements() == 0)
    return std::nullopt;
  std::pair<int64_t, int64_t> range{tensor.asInt(0), tensor.asInt(0)};
  for (int64_t i = 1; i < tensor.numElements(); ++i) {
    range.first = std::min(range.first, tensor.asInt(i));
    range.second = std::max(range.second, tensor.asInt(i));
  }
  return range;
}

class Rewriter {
public:
  Rewriter(const PhaseContext &context, Operation *op) : context(context), op(op), b(op) {}

  /// Replaces the op where that is possible.
  void run() {
    Value result = op->getResult(0);
    Type element = elementOf(result);
    bool scaled = element.isF32();
    if ((!scaled && !element.isSignlessInteger(32)) || elementOf(op->getOperand(0)) != element || !sizesFit())
      return;
    std::optional<Quantised> lhs = match(op->getOperand(0)), rhs = match(op->getOperand(1));
    if (!lhs || !rhs || static_cast<bool>(lhs->scale) != scaled || static_cast<bool>(rhs->scale) != scaled ||
        !isConstantExpression(rhs->bytes) || !scalesFit(*lhs, *rhs))
      return;
    std::optional<int64_t> zero = numberOf(lhs->zero);
    Value weights = zero ? signedWeights(*rhs) : Value();
    if (!weights)
      return;
    Value factor = scaled ? productOfScales(*lhs, *rhs) : Value();
    auto biased = scaled && result.hasOneUse() ? dyn_cast<dmir::AddOp>(*result.user_begin()) : dmir::AddOp();
    Value bias = biased ? integerBias(biased, factor) : Value();
    Value sum = product(lhs->bytes, *zero, weights, bias);
    if (!sum)
      return;
    if (scaled)
      sum = dmir::MulOp::create(b, op->getLoc(), cast(sum, b.getF32Type()), factor);
    (bias ? biased.getResult() : result).replaceAllUsesWith(sum);
    if (bias)
      biased->erase();
    op->erase();
  }

private:
  bool isConv() const { return isa<dmir::ConvOp>(op); }

  /// Of a sum.
  int64_t terms() const {
    auto weights = typeOf(op->getOperand(1));
    return isConv() ? weights.getNumElements() / weights.getDimSize(0) : weights.getDimSize(weights.getRank() - 2);
  }

  /// Static where code depends on it, and few enough terms.
  bool sizesFit() {
    auto weights = typeOf(op->getOperand(1));
    if (!weights.hasStaticShape() || weights.getNumElements() == 0)
      return false;
    auto conv = dyn_cast<dmir::ConvOp>(op);
    if (!conv)
      return terms() <= kMostTerms;
    int64_t groups = conv.getGroups(), channels = weights.getDimSize(1), outputs = weights.getDimSize(0) / groups;
    bool wholeBlocks = groups == 1 || (channels % 16 == 0 && outputs % 16 == 0);
    return typeOf(conv.getInput()).hasStaticShape() && !conv.getDims() && wholeBlocks && terms() <= kMostTerms;
  }

  /// A value that is null (0) or a constant of one number.
  static std::optional<int64_t> numberOf(Value value) {
    if (!value)
      return 0;
    std::optional<Tensor> tensor = typeOf(value).getNumElements() == 1 ? evaluateConstant(value) : std::nullopt;
    return tensor ? std::optional<int64_t>(tensor->asInt(0)) : std::nullopt;
  }

  //--- Matching ---------------------------------------------------------------------

  std::optional<Quantised> match(Value value) {
    if (auto transpose = value.getDefiningOp<dmir::TransposeOp>())
      return matchMoved(transpose, transpose.getInput(), [&](Value v) -> Value {
        return dmir::TransposeOp::create(b, transpose.getLoc(), v, transpose.getPermutation());
      });
    if (auto reshape = value.getDefiningOp<dmir::ReshapeOp>()) {
      std::optional<Quantised> from = match(reshape.getInput());
      if (!from || !isOne(from->zero) || !isOne(from->scale))
        return std::nullopt;
      auto type = typeOf(value);
      from->bytes = dmir::ReshapeOp::create(
          b, reshape.getLoc(), RankedTensorType::get(type.getShape(), elementOf(from->bytes), type.getEncoding()),
          from->bytes);
      return from;
    }
    return matchQuantised(value);
  }

  static bool isOne(Value value) { return !value || typeOf(value).getNumElements() == 1; }

  /// The operand of an op that permutes axes, and what belongs to it permuted in the same way.
  template <typename Op>
  std::optional<Quantised> matchMoved(Op moved, Value input, llvm::function_ref<Value(Value)> move) {
    std::optional<Quantised> from = match(input);
    if (!from)
      return std::nullopt;
    from->bytes = move(from->bytes);
    for (Value *parameter : {&from->zero, &from->scale})
      if (!isOne(*parameter))
        *parameter = move(withRank(*parameter, typeOf(input).getRank()));
    return from;
  }

  /// Leading axes of 1 put before a static tensor's.
  Value withRank(Value value, int64_t rank) {
    SmallVector<int64_t> shape(rank - typeOf(value).getRank(), 1);
    llvm::append_range(shape, shapeOf(value));
    return reshaped(value, shape);
  }

  Value reshaped(Value value, ArrayRef<int64_t> shape) {
    return dmir::ReshapeOp::create(b, value.getLoc(), RankedTensorType::get(shape, elementOf(value)), value);
  }

  /// One scale for the left operand; for the right one too, or one a column or output channel.
  bool scalesFit(const Quantised &lhs, const Quantised &rhs) {
    if (!lhs.scale)
      return true;
    if (!isOne(lhs.scale) || !elementOf(lhs.scale).isF32() || !elementOf(rhs.scale).isF32())
      return false;
    int64_t rank = typeOf(rhs.bytes).getRank();
    return variesAlong(isConv() ? 0 : rank - 1, rank, typeOf(rhs.scale));
  }

  /// Whether no axis but this one of `rank` has more than one element in a tensor that is broadcast to that rank.
  static bool variesAlong(int64_t axis, int64_t rank, RankedTensorType type) {
    int64_t lead = rank - type.getRank();
    for (auto [i, size] : llvm::enumerate(type.getShape()))
      if (size != 1 && lead + static_cast<int64_t>(i) != axis)
        return false;
    return lead >= 0;
  }

  //--- The product of bytes ------------------------------------------------------------

  Value cast(Value value, Type element) {
    auto type = typeOf(value);
    return dmir::CastOp::create(b, op->getLoc(), RankedTensorType::get(type.getShape(), element, type.getEncoding()),
                                value);
  }
  Value number(Type element, int64_t value) {
    auto type = RankedTensorType::get({}, element);
    Attribute attr = b.getIntegerAttr(element, value);
    return dmir::ConstantOp::create(b, op->getLoc(), DenseElementsAttr::get(type, attr));
  }
  Type i32() { return b.getI32Type(); }
  Type ui8() { return b.getIntegerType(8, /*isSigned=*/false); }

  /// The weights without their zero points as s8; null where they do not fit.
  Value signedWeights(const Quantised &rhs) {
    std::optional<Tensor> zeros = rhs.zero ? evaluateConstant(rhs.zero) : std::nullopt;
    std::pair<int64_t, int64_t> zero{0, 0};
    if (rhs.zero) {
      if (!zeros || !rangeOf(*zeros))
        return {};
      zero = *rangeOf(*zeros);
    }
    bool shifted = zero.first != 0 || zero.second != 0;
    if (!shifted && elementOf(rhs.bytes).isSignlessInteger(8))
      return rhs.bytes;
    std::optional<Tensor> bytes = evaluateConstant(rhs.bytes);
    auto range = bytes ? rangeOf(*bytes) : std::nullopt;
    if (!range || range->first - zero.second < -128 || range->second - zero.first > 127)
      return {};
    Value wide = cast(rhs.bytes, i32());
    if (shifted)
      wide = dmir::SubOp::create(b, op->getLoc(), wide, rhs.zero);
    return cast(wide, b.getIntegerType(8));
  }

  /// The i32 sums of (bytes - zero) * weights, plus a bias if there is one; null when the target does not compute them.
  Value product(Value bytes, int64_t zero, Value weights, Value bias) {
    if (!elementOf(bytes).isUnsignedInteger(8)) {
      Value wide = dmir::AddOp::create(b, op->getLoc(), cast(bytes, i32()), number(i32(), 128));
      bytes = cast(wide, ui8());
      zero += 128;
    }
    Operation *narrow = b.clone(*op);
    if (zero != 0)
      bytes = padded(narrow, bytes, zero);
    narrow->setOperands({bytes, weights});
    auto type = typeOf(op->getResult(0));
    narrow->getResult(0).setType(RankedTensorType::get(type.getShape(), i32(), type.getEncoding()));
    const TargetBackend *target = context.responsible(op);
    if (!target || context.refusal(*target, narrow)) {
      narrow->erase();
      return {};
    }
    Value sum = narrow->getResult(0);
    if (zero == 0)
      return bias ? Value(dmir::AddOp::create(b, op->getLoc(), sum, bias)) : sum;
    Value excess = correction(weights, zero);
    if (bias)
      excess = dmir::SubOp::create(b, op->getLoc(), excess, bias);
    return dmir::SubOp::create(b, op->getLoc(), sum, excess);
  }

  /// Padding is the zero point, so that all results have the same correction: the input gets it before.
  Value padded(Operation *product, Value bytes, int64_t zero) {
    auto conv = dyn_cast<dmir::ConvOp>(product);
    auto isZero = [](int64_t pad) { return pad == 0; };
    if (!conv || (llvm::all_of(conv.getLow(), isZero) && llvm::all_of(conv.getHigh(), isZero)))
      return bytes;
    SmallVector<int64_t> low{0, 0}, high{0, 0}, none(conv.getLow().size() + 2, 0);
    llvm::append_range(low, conv.getLow());
    llvm::append_range(high, conv.getHigh());
    conv.setLow(ArrayRef<int64_t>(none).drop_front(2));
    conv.setHigh(ArrayRef<int64_t>(none).drop_front(2));
    b.setInsertionPoint(product);
    Value fill = number(ui8(), zero);
    Value result =
        dmir::PadOp::create(b, op->getLoc(), bytes, fill, low, high, none, dmir::PadMode::constant, dmir::DimsAttr());
    b.setInsertionPoint(op);
    return result;
  }

  /// zero times the weights' sums over k.
  Value correction(Value weights, int64_t zero) {
    SmallVector<int64_t> axes;
    int64_t rank = typeOf(weights).getRank();
    for (int64_t axis = 1; axis < rank && isConv(); ++axis)
      axes.push_back(axis);
    if (!isConv())
      axes.push_back(rank - 2);
    Value sums = dmir::ReduceOp::create(b, op->getLoc(), dmir::Reduction::sum, cast(weights, i32()), axes, true);
    if (isConv())
      sums = reshaped(sums, channelShape(typeOf(weights).getDimSize(0)));
    return dmir::MulOp::create(b, op->getLoc(), sums, number(i32(), zero));
  }

  /// One number an output channel of a convolution's result.
  SmallVector<int64_t> channelShape(int64_t channels) {
    SmallVector<int64_t> shape(typeOf(op->getResult(0)).getRank() - 1, 1);
    shape[0] = channels;
    return shape;
  }

  Value productOfScales(const Quantised &lhs, const Quantised &rhs) {
    Value right = rhs.scale;
    if (isConv() && !isOne(right))
      right = reshaped(right, channelShape(typeOf(right).getNumElements()));
    else if (isOne(right))
      right = reshaped(right, {});
    return dmir::MulOp::create(b, op->getLoc(), reshaped(lhs.scale, {}), right);
  }

  //--- Biases -----------------------------------------------------------------------------

  /// The constant added to the product as multiples of the factor, in i32. Null where none is added, where it is not
  /// one number a channel, where a multiple is further from it than its own rounding, or where sums with it may not
  /// fit.
  Value integerBias(dmir::AddOp add, Value factor) {
    Value value = add.getLhs() == op->getResult(0) ? add.getRhs() : add.getLhs();
    auto type = typeOf(value), unitType = typeOf(factor), result = typeOf(op->getResult(0));
    int64_t rank = result.getRank(), channel = isConv() ? 1 : rank - 1;
    if (add.getResult().getType() != result || !variesAlong(channel, rank, type) ||
        !variesAlong(channel, rank, unitType) || !isConstantExpression(value))
      return {};
    std::optional<Tensor> bias = evaluateConstant(value), unit = evaluateConstant(factor);
    if (!bias || !unit)
      return {};
    auto at = [](const Tensor &tensor, int64_t i) { return tensor.asDouble(tensor.numElements() == 1 ? 0 : i); };
    double room = 0x1p31 - 256.0 * 128.0 * static_cast<double>(terms());
    SmallVector<int32_t> multiples;
    for (int64_t i = 0; i < std::max(bias->numElements(), unit->numElements()); ++i) {
      double x = at(*bias, i), one = at(*unit, i), multiple = std::nearbyint(x / one);
      if (!(std::abs(multiple) < room && std::abs(multiple * one - x) <= std::abs(x) * 0x1p-23))
        return {};
      multiples.push_back(static_cast<int32_t>(multiple));
    }
    auto integers = RankedTensorType::get((isOne(value) ? unitType : type).getShape(), i32());
    return dmir::ConstantOp::create(b, op->getLoc(), DenseElementsAttr::get(integers, ArrayRef<int32_t>(multiples)));
  }

  const PhaseContext &context;
  Operation *op;
  OpBuilder b;
};

struct IntegerProducts : dmxc::impl::IntegerProductsBase<IntegerProducts> {
  explicit IntegerProducts(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    SmallVector<Operation *> products;
    for (Operation &op : getOperation().getOps())
      if (isa<dmir::MatMulOp, dmir::ConvOp>(op))
        products.push_back(&op);
    for (Operation *op : products)
      Rewriter(context, op).run();
  }

  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createIntegerProductsPass(const PhaseContext &context) {
  return std::make_unique<IntegerProducts>(context);
}
} // namespace dmxc
