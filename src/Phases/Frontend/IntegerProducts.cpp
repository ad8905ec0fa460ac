//===- IntegerProducts.cpp - products of dequantised bytes ----------------===//
//
// (a - za) * sa times (w - zw) * sw, summed over k, is (sum of a * (w - zw) - za * sum of (w - zw)) * (sa * sw): an i32
// product of the bytes, a constant a column, and one multiplication. The sum is exact: k is bounded so that i32 holds
// it. Products of integers minus zero points (MatMulInteger, ConvInteger, QLinear*) are the same without the scales;
// they wrap as their definition does, whatever k is. A bias that is added to the product joins the integers where it is
// a multiple of sa * sw, as quantised models' are: in f32 its rounding would often be the largest of the result's.
//
// za and sa may be known when compiling or be brought by a run (dynamic quantisation). Where w - zw are no bytes, the
// product is that of w - c, which are, and (zw - c) * sum of a is subtracted, a sum a row or window. Static f32
// products of such weights stay f32.
//
// Weights may be what a run brings too, of products of integers for a target that wants them (matrices of i8, or ui8
// less 128): their sums are then computed in each run.
//
// Else done where w is constant, za and sa are one number (of a matrix of integers za may be one a row), and the target
// that computes the product also computes the one of bytes. Others are left as they are.
//
//===----------------------------------------------------------------------===//
#include "Quantised.h"

#include "dmxc/Phases/Phases.h"
#include "dmxc/Target/WholeBlocks.h"

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

/// Fewest output channels of a convolution that is worth the sums a run adds to it.
constexpr int64_t kFewestChannels = 8;

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

/// Of the left operand: a number, or an i32 value of a run, one for all or one a row.
struct ZeroPoint {
  int64_t number = 0;
  Value atRun;
  bool mayPad = true; ///< has the type of the bytes
  bool isZero() const { return !atRun && number == 0; }
};

/// Weights as w - zw = bytes - rest. A null rest is 0; else it broadcasts against the product.
struct Weights {
  Value bytes, rest;
  bool ofRun = false;
};

class Rewriter {
public:
  Rewriter(const PhaseContext &context, Operation *op) : context(context), op(op), b(op) {}

  /// Replaces the op where that is possible.
  void run() {
    Value result = op->getResult(0);
    Type element = elementOf(result);
    bool scaled = element.isF32();
    if ((!scaled && !element.isSignlessInteger(32)) || elementOf(op->getOperand(0)) != element || !sizesFit(scaled))
      return;
    std::optional<Quantised> lhs = match(op->getOperand(0)), rhs = match(op->getOperand(1));
    if (!lhs || !rhs || static_cast<bool>(lhs->scale) != scaled || static_cast<bool>(rhs->scale) != scaled ||
        (!isConstant(*rhs) && !takesOfRun()) || !scalesFit(*lhs, *rhs))
      return;
    std::optional<ZeroPoint> zero = zeroOf(lhs->zero, elementOf(lhs->bytes));
    std::optional<Weights> weights = !zero ? std::nullopt : isConstant(*rhs) ? signedWeights(*rhs) : weightsOfRun(*rhs);
    if (!weights || !worthSums(*lhs, *zero, *weights))
      return;
    Value factor = scaled ? productOfScales(*lhs, *rhs) : Value();
    auto biased = result.hasOneUse() ? dyn_cast<dmir::AddOp>(*result.user_begin()) : dmir::AddOp();
    Value bias = !biased ? Value() : scaled ? integerBias(biased, factor) : rowOf(biased);
    Value sum = product(lhs->bytes, *zero, *weights, bias);
    if (!sum)
      return;
    if (scaled)
      sum = dmir::MulOp::create(b, op->getLoc(), cast(sum, b.getF32Type()), factor);
    if (sum.getType() != result.getType())
      return;
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
  bool sizesFit(bool scaled) {
    auto weights = typeOf(op->getOperand(1));
    if (!weights.hasStaticShape() || weights.getNumElements() == 0)
      return false;
    if (scaled && terms() > kMostTerms)
      return false;
    auto conv = dyn_cast<dmir::ConvOp>(op);
    if (!conv)
      return true;
    if (typeOf(conv.getInput()).hasStaticShape() && !conv.getDims() && hasWholeBlocks(conv))
      return true;
    const TargetBackend *target = context.responsible(op);
    return target && target->convolvesBytes(op);
  }

  /// Whether sums of what a run brings pay, if there are any. Static f32 products of weights that are no bytes stay
  /// f32.
  bool worthSums(const Quantised &lhs, const ZeroPoint &zero, const Weights &weights) {
    if (!zero.atRun && !weights.rest)
      return true;
    bool isStatic = !zero.atRun && lhs.scale && isConstantExpression(lhs.scale);
    return !isStatic && (!isConv() || typeOf(weights.bytes).getDimSize(0) >= kFewestChannels);
  }

  /// Whether the right operand may be one of a run: of a product of integers for a target that wants it.
  bool takesOfRun() const {
    const TargetBackend *target = context.responsible(op);
    return !isConv() && elementOf(op->getResult(0)).isInteger(32) && target && target->multipliesBytesOfRuns();
  }

  static bool isConstant(const Quantised &q) {
    return isConstantExpression(q.bytes) && (!q.zero || isConstantExpression(q.zero)) &&
           (!q.scale || isConstantExpression(q.scale));
  }

  /// Of a value that is null (0), one number, or one a row of the matrix of bytes of a type.
  std::optional<ZeroPoint> zeroOf(Value value, Type byte) {
    if (!value)
      return ZeroPoint();
    if (isOne(value)) {
      std::optional<Tensor> tensor = evaluateConstant(value);
      int64_t low = byte.isUnsignedInteger() ? 0 : -128, x = tensor ? tensor->asInt(0) : 0;
      return tensor ? ZeroPoint{x, {}, x >= low && x <= low + 255}
                    : ZeroPoint{0, reshaped(value, {}), isWidened(value, byte)};
    }
    bool rows = !isConv() && typeOf(value).hasStaticShape() && shapeOf(value).back() == 1;
    return rows ? std::optional<ZeroPoint>({0, value, false}) : std::nullopt;
  }

  static bool isWidened(Value value, Type byte) {
    while (auto reshape = value.getDefiningOp<dmir::ReshapeOp>())
      value = reshape.getInput();
    auto widened = value.getDefiningOp<dmir::CastOp>();
    return widened && elementOf(widened.getInput()) == byte;
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

  static bool isOne(Value value) {
    return !value || (typeOf(value).hasStaticShape() && typeOf(value).getNumElements() == 1);
  }

  /// The operand of an op that permutes axes, and what belongs to it permuted in the same way.
  template <typename Op>
  std::optional<Quantised> matchMoved(Op moved, Value input, llvm::function_ref<Value(Value)> move) {
    std::optional<Quantised> from = match(input);
    if (!from)
      return std::nullopt;
    from->bytes = move(from->bytes);
    for (Value *parameter : {&from->zero, &from->scale}) {
      if (isOne(*parameter))
        continue;
      if (!typeOf(*parameter).hasStaticShape())
        return std::nullopt;
      *parameter = move(withRank(*parameter, typeOf(input).getRank()));
    }
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

  Value plus(Value integers, int64_t value) {
    return dmir::AddOp::create(b, op->getLoc(), integers, number(i32(), value));
  }

  /// The weights without their zero points as s8, or as far as s8 holds them; nullopt where zero points vary in a
  /// column.
  std::optional<Weights> signedWeights(const Quantised &rhs) {
    std::optional<Tensor> zeros = rhs.zero ? evaluateConstant(rhs.zero) : std::nullopt;
    std::pair<int64_t, int64_t> zero{0, 0};
    if (rhs.zero) {
      if (!zeros || !rangeOf(*zeros))
        return std::nullopt;
      zero = *rangeOf(*zeros);
    }
    bool shifted = zero.first != 0 || zero.second != 0, isSigned = elementOf(rhs.bytes).isSignlessInteger(8);
    if (!shifted && isSigned)
      return Weights{rhs.bytes, {}};
    std::optional<Tensor> bytes = evaluateConstant(rhs.bytes);
    auto range = bytes ? rangeOf(*bytes) : std::nullopt;
    if (!range)
      return std::nullopt;
    Value wide = cast(rhs.bytes, i32());
    if (range->first - zero.second >= -128 && range->second - zero.first <= 127) {
      if (shifted)
        wide = dmir::SubOp::create(b, op->getLoc(), wide, rhs.zero);
      return Weights{cast(wide, b.getIntegerType(8)), {}};
    }
    int64_t middle = isSigned ? 0 : 128, rank = typeOf(rhs.bytes).getRank();
    Value rest = rhs.zero ? rhs.zero : number(i32(), 0);
    auto conv = dyn_cast<dmir::ConvOp>(op);
    if (!variesAlong(conv ? 0 : rank - 1, rank, typeOf(rest)) || (conv && conv.getGroups() != 1))
      return std::nullopt;
    return Weights{isSigned ? rhs.bytes : cast(plus(wide, -middle), b.getIntegerType(8)),
                   besideResult(middle ? plus(rest, -middle) : rest)};
  }

  /// Those of a run as s8: nullopt where zero points vary in a column.
  std::optional<Weights> weightsOfRun(const Quantised &rhs) {
    int64_t rank = typeOf(rhs.bytes).getRank();
    std::optional<Tensor> zero = rhs.zero ? evaluateConstant(rhs.zero) : std::nullopt;
    bool isSigned = elementOf(rhs.bytes).isSignlessInteger(8);
    bool none = !rhs.zero || (zero && rangeOf(*zero) == std::pair<int64_t, int64_t>(0, 0));
    if (!none && !variesAlong(rank - 1, rank, typeOf(rhs.zero)))
      return std::nullopt;
    Value rest = none ? Value() : besideResult(rhs.zero);
    if (isSigned)
      return Weights{rhs.bytes, rest, true};
    Value bytes = cast(plus(cast(rhs.bytes, i32()), -128), b.getIntegerType(8));
    return Weights{bytes, rest ? plus(rest, -128) : number(i32(), -128), true};
  }

  /// The i32 sums of (bytes - zero) * weights, plus a bias if there is one; null when the target does not compute them.
  Value product(Value bytes, ZeroPoint zero, const Weights &weights, Value bias) {
    if (!elementOf(bytes).isUnsignedInteger(8) && !weights.ofRun) {
      bytes = cast(plus(cast(bytes, i32()), 128), ui8());
      zero.atRun ? void(zero.atRun = plus(zero.atRun, 128)) : void(zero.number += 128);
    }
    Operation *narrow = b.clone(*op);
    Value input = zero.isZero() ? bytes : padded(narrow, bytes, zero);
    auto type = typeOf(op->getResult(0));
    if (input) {
      narrow->setOperands({input, weights.bytes});
      narrow->getResult(0).setType(RankedTensorType::get(type.getShape(), i32(), type.getEncoding()));
    }
    const TargetBackend *target = context.responsible(op);
    if (!input || !target || context.refusal(*target, narrow)) {
      narrow->erase();
      return {};
    }
    Value sum = narrow->getResult(0);
    if (weights.rest)
      sum = dmir::SubOp::create(b, op->getLoc(), sum,
                                dmir::MulOp::create(b, op->getLoc(), sumsOfBytes(narrow), weights.rest));
    if (zero.isZero())
      return bias ? Value(dmir::AddOp::create(b, op->getLoc(), sum, bias)) : sum;
    Value excess = correction(weights, zero);
    if (bias)
      excess = dmir::SubOp::create(b, op->getLoc(), excess, bias);
    return dmir::SubOp::create(b, op->getLoc(), sum, excess);
  }

  /// Padding is the zero point, so that all results have the same correction: the input gets it before. Null where the
  /// zero point is no byte.
  Value padded(Operation *product, Value bytes, const ZeroPoint &zero) {
    auto conv = dyn_cast<dmir::ConvOp>(product);
    auto isZero = [](int64_t pad) { return pad == 0; };
    if (!conv || (llvm::all_of(conv.getLow(), isZero) && llvm::all_of(conv.getHigh(), isZero)))
      return bytes;
    if (!zero.mayPad)
      return {};
    SmallVector<int64_t> low{0, 0}, high{0, 0}, none(conv.getLow().size() + 2, 0);
    llvm::append_range(low, conv.getLow());
    llvm::append_range(high, conv.getHigh());
    conv.setLow(ArrayRef<int64_t>(none).drop_front(2));
    conv.setHigh(ArrayRef<int64_t>(none).drop_front(2));
    b.setInsertionPoint(product);
    Value fill = zero.atRun ? cast(zero.atRun, ui8()) : number(ui8(), zero.number);
    Value result =
        dmir::PadOp::create(b, op->getLoc(), bytes, fill, low, high, none, dmir::PadMode::constant, dmir::DimsAttr());
    b.setInsertionPoint(op);
    return result;
  }

  /// What the product's left operand has in each of its sums: of a row, or of a window.
  Value sumsOfBytes(Operation *product) {
    Value wide = cast(product->getOperand(0), i32());
    int64_t axis = isConv() ? 1 : typeOf(wide).getRank() - 1;
    Value sums = dmir::ReduceOp::create(b, op->getLoc(), dmir::Reduction::sum, wide, axis, true);
    auto conv = dyn_cast<dmir::ConvOp>(product);
    if (!conv)
      return sums;
    ArrayRef<int64_t> window = shapeOf(conv.getWeights()).drop_front(2);
    SmallVector<int64_t> none(window.size(), 0);
    return dmir::PoolOp::create(b, op->getLoc(), dmir::Pooling::sum, sums, window, conv.getStrides(),
                                conv.getDilations(), conv.getLow(), conv.getHigh(), none, false, dmir::DimsAttr());
  }

  /// The zero point times the weights' sums over k.
  Value correction(const Weights &weights, const ZeroPoint &zero) {
    SmallVector<int64_t> axes;
    int64_t rank = typeOf(weights.bytes).getRank();
    for (int64_t axis = 1; axis < rank && isConv(); ++axis)
      axes.push_back(axis);
    if (!isConv())
      axes.push_back(rank - 2);
    Value sums = dmir::ReduceOp::create(b, op->getLoc(), dmir::Reduction::sum, cast(weights.bytes, i32()), axes, true);
    if (isConv())
      sums = reshaped(sums, channelShape(typeOf(weights.bytes).getDimSize(0)));
    if (weights.rest)
      sums = dmir::SubOp::create(b, op->getLoc(), sums,
                                 dmir::MulOp::create(b, op->getLoc(), weights.rest, number(i32(), terms())));
    return dmir::MulOp::create(b, op->getLoc(), sums, zero.atRun ? zero.atRun : number(i32(), zero.number));
  }

  /// Numbers of the right operand, one for all or one a column or output channel, as they broadcast against the result.
  Value besideResult(Value value) {
    if (isOne(value))
      return reshaped(value, {});
    return isConv() ? reshaped(value, channelShape(typeOf(value).getNumElements())) : value;
  }

  /// One number an output channel of a convolution's result.
  SmallVector<int64_t> channelShape(int64_t channels) {
    SmallVector<int64_t> shape(typeOf(op->getResult(0)).getRank() - 1, 1);
    shape[0] = channels;
    return shape;
  }

  Value productOfScales(const Quantised &lhs, const Quantised &rhs) {
    return dmir::MulOp::create(b, op->getLoc(), reshaped(lhs.scale, {}), besideResult(rhs.scale));
  }

  //--- Biases -----------------------------------------------------------------------------

  /// What is added to a product of integers, where it is a constant, one number a channel.
  Value rowOf(dmir::AddOp add) {
    Value value = add.getLhs() == op->getResult(0) ? add.getRhs() : add.getLhs();
    auto type = typeOf(value), result = typeOf(op->getResult(0));
    bool isRow = add.getResult().getType() == result && type.hasStaticShape() &&
                 variesAlong(isConv() ? 1 : result.getRank() - 1, result.getRank(), type);
    std::optional<Tensor> row = isRow && isConstantExpression(value) ? evaluateConstant(value) : std::nullopt;
    if (!row)
      return {};
    SmallVector<int32_t> numbers;
    for (int64_t i = 0; i < row->numElements(); ++i)
      numbers.push_back(static_cast<int32_t>(row->asInt(i)));
    return dmir::ConstantOp::create(b, op->getLoc(), DenseElementsAttr::get(type, ArrayRef<int32_t>(numbers)));
  }

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
