//===- Functions.cpp - functions of the vector device for several ops -----===//
//
//   x * a + b                                     affine, where a and b are numbers, else fma
//   min(max(x, a), b)                             clip; hard_sigmoid where x is affine, a 0 and b 1
//   x < 0 ? x * a : x                             leaky_relu
//   sum(x * x)                                    reduce_sum_square
//   mask(x)                                       causal_mask, of the bound that softmax has not
//   softmax(mask(x))                              softmax of the columns up to the upper diagonal
//   [x0 cos - x1 sin, x1 cos + x0 sin]            rope, rope_interleaved
//
//===----------------------------------------------------------------------===//
#include "Functions.h"

#include "../dialect/LLDMIR/LLDMIR.h"

#include "dmxc/Dialect/DMIR/Rows.h"

#include <cmath>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;
using hw::SimdFunction;

/// The number that all elements of a constant are, before it is rounded to f16; nullopt for other values.
static std::optional<float> numberOf(Value value) {
  if (auto cast = value.getDefiningOp<dmir::CastOp>())
    value = cast.getInput();
  auto constant = value.getDefiningOp<dmir::ConstantOp>();
  auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  if (!splat || !isa<FloatType>(splat.getElementType()))
    return std::nullopt;
  const double number = splat.getSplatValue<APFloat>().convertToDouble();
  return std::isfinite(number) ? std::optional(static_cast<float>(number)) : std::nullopt;
}

/// An operand of a commutative op and the number that the other one is.
static std::optional<std::pair<Value, float>> withNumber(Operation *op) {
  for (unsigned i : {1u, 0u})
    if (std::optional<float> number = numberOf(op->getOperand(i));
        number && shapeOf(op->getOperand(1 - i)) == shapeOf(op->getResult(0)))
      return std::pair(op->getOperand(1 - i), *number);
  return std::nullopt;
}

/// Whether all parts of an operand are sent to all quads before an op.
static bool gathers(Operation *op, Value operand) {
  auto numbers = op->getAttrOfType<DenseI64ArrayAttr>(lldmir::kGatherAttr);
  return numbers && llvm::any_of(numbers.asArrayRef(), [&](int64_t number) {
           return number >= 0 && number < int64_t(op->getNumOperands()) && op->getOperand(number) == operand;
         });
}

/// The op that makes a value, if `reader` alone reads it and each quad computes the same part of both, of one shape.
static Operation *absorbed(Value value, Operation *reader) {
  Operation *op = gathers(reader, value) ? nullptr : value.getDefiningOp();
  const bool same = op && value.hasOneUse() && op->getBlock() == reader->getBlock() &&
                    value.getType() == reader->getResult(0).getType() &&
                    op->getAttr(lldmir::kDealAttr) == reader->getAttr(lldmir::kDealAttr);
  return same ? op : nullptr;
}

//===----------------------------------------------------------------------===//
// Rotations
//===----------------------------------------------------------------------===//

/// Of a sum or difference of two products the factors of one, which are two operands that stand for halves of a row and
/// for an angle.
static bool multiplies(Value product, Value half, Value &angle) {
  auto mul = product.getDefiningOp<dmir::MulOp>();
  if (!mul || !product.hasOneUse() || (mul.getLhs() != half && mul.getRhs() != half))
    return false;
  Value other = mul.getLhs() == half ? mul.getRhs() : mul.getLhs();
  if (angle && angle != other)
    return false;
  angle = other;
  return true;
}

/// The two values that lie behind one another, or alternate, in a row that an op makes.
static std::optional<std::pair<Value, Value>> joinedBy(Operation *op, bool &alternate) {
  auto concat = dyn_cast<dmir::ConcatOp>(op);
  auto reshape = dyn_cast<dmir::ReshapeOp>(op);
  alternate = static_cast<bool>(reshape);
  if (reshape)
    concat = reshape.getInput().getDefiningOp<dmir::ConcatOp>();
  if (!concat || concat.getInputs().size() != 2 || (reshape && !concat->hasOneUse()) ||
      concat.getAxis() + 1 != shapeOf(concat.getResult()).size())
    return std::nullopt;
  Value parts[] = {concat.getInputs()[0], concat.getInputs()[1]};
  if (!reshape)
    return std::pair(parts[0], parts[1]);
  // Pairs: [.., D/2, 1] of each beside one another.
  SmallVector<int64_t> pairs(shapeOf(reshape.getResult()));
  if (pairs.empty() || pairs.back() % 2)
    return std::nullopt;
  pairs.back() /= 2;
  for (Value &part : parts) {
    auto apart = part.getDefiningOp<dmir::ReshapeOp>();
    if (!apart || !part.hasOneUse() || shapeOf(part).back() != 1 || shapeOf(apart.getInput()) != ArrayRef(pairs))
      return std::nullopt;
    part = apart.getInput();
  }
  return std::pair(parts[0], parts[1]);
}

std::optional<DeviceFunction> dmxc::corsair::matchRotation(Operation *op) {
  bool alternate = false;
  auto parts = joinedBy(op, alternate);
  if (!parts || !isa<FloatType>(elementOf(op->getResult(0))))
    return std::nullopt;
  auto difference = parts->first.getDefiningOp<dmir::SubOp>();
  auto sum = parts->second.getDefiningOp<dmir::AddOp>();
  if (!difference || !sum || !parts->first.hasOneUse() || !parts->second.hasOneUse())
    return std::nullopt;
  auto left = difference.getLhs().getDefiningOp<dmir::MulOp>(),
       right = difference.getRhs().getDefiningOp<dmir::MulOp>();
  if (!left || !right)
    return std::nullopt;
  for (Value x0 : left->getOperands())
    for (Value x1 : right->getOperands()) {
      const dmir::RowPart first = dmir::partOfRows(x0), second = dmir::partOfRows(x1);
      if (first.whole != second.whole || x0.getType() != x1.getType() || shapeOf(x0).empty() ||
          first.step != (alternate ? 2 : 1) || second.step != first.step ||
          shapeOf(x0).drop_back() != shapeOf(op->getResult(0)).drop_back() ||
          shapeOf(x0).back() * 2 != shapeOf(op->getResult(0)).back() ||
          second.start != first.start + (alternate ? 1 : shapeOf(x0).back()))
        continue;
      Value cosine, sine;
      if (!multiplies(difference.getLhs(), x0, cosine) || !multiplies(difference.getRhs(), x1, sine))
        continue;
      for (bool swapped : {false, true}) {
        Value c = cosine, s = sine;
        if (multiplies(sum->getOperand(swapped), x1, c) && multiplies(sum->getOperand(!swapped), x0, s))
          return DeviceFunction{alternate ? SimdFunction::RopeInterleaved : SimdFunction::Rope,
                                {first.whole, cosine, sine},
                                0,
                                0,
                                {},
                                first.start};
      }
    }
  return std::nullopt;
}

/// Whether each quad computes the same part of all that a rotation takes the place of.
static bool isDealtAlike(Operation *rotation) {
  auto isPart = [&](Value value) {
    Operation *op = value.getDefiningOp();
    return op->getBlock() == rotation->getBlock() &&
           (isa<dmir::ReshapeOp>(op) || op->getAttr(lldmir::kDealAttr) == rotation->getAttr(lldmir::kDealAttr));
  };
  auto concat = dyn_cast<dmir::ConcatOp>(rotation);
  if (!concat)
    concat = rotation->getOperand(0).getDefiningOp<dmir::ConcatOp>();
  return llvm::all_of(concat.getInputs(), [&](Value half) {
    if (auto apart = half.getDefiningOp<dmir::ReshapeOp>())
      half = apart.getInput();
    return isPart(half) && llvm::all_of(half.getDefiningOp()->getOperands(), isPart);
  });
}

//===----------------------------------------------------------------------===//
// Numbers in an instruction
//===----------------------------------------------------------------------===//

/// x * a + b, x * a - b and b - x * a.
static std::optional<DeviceFunction> scaled(Operation *op) {
  if (!isa<dmir::AddOp, dmir::SubOp>(op))
    return std::nullopt;
  const bool subtracts = isa<dmir::SubOp>(op);
  for (unsigned i : {0u, 1u}) {
    auto mul = dyn_cast_if_present<dmir::MulOp>(absorbed(op->getOperand(i), op));
    if (!mul)
      continue;
    std::optional<std::pair<Value, float>> product = withNumber(mul);
    std::optional<float> number = numberOf(op->getOperand(1 - i));
    if (product && number)
      return DeviceFunction{SimdFunction::Affine,
                            {product->first},
                            subtracts && i == 1 ? -product->second : product->second,
                            subtracts && i == 0 ? -*number : *number};
    if (!subtracts)
      return DeviceFunction{SimdFunction::Fma, {mul.getLhs(), mul.getRhs(), op->getOperand(1 - i)}};
  }
  return std::nullopt;
}

/// x below 0 times a number.
static std::optional<DeviceFunction> leaky(dmir::SelectOp select) {
  auto compare = select.getCondition().getDefiningOp<dmir::CompareOp>();
  if (!compare || numberOf(compare.getRhs()) != 0.0F)
    return std::nullopt;
  const bool below = llvm::is_contained({dmir::Compare::lt, dmir::Compare::le}, compare.getKind());
  if (!below && !llvm::is_contained({dmir::Compare::gt, dmir::Compare::ge}, compare.getKind()))
    return std::nullopt;
  Value x = compare.getLhs(), kept = select->getOperand(below ? 2 : 1), other = select->getOperand(below ? 1 : 2);
  auto mul = dyn_cast_if_present<dmir::MulOp>(absorbed(other, select));
  std::optional<std::pair<Value, float>> product = mul ? withNumber(mul) : std::nullopt;
  if (!product || product->first != x || kept != x)
    return std::nullopt;
  return DeviceFunction{SimdFunction::LeakyRelu, {x}, product->second};
}

static std::optional<DeviceFunction> sumOfSquares(dmir::ReduceOp reduce) {
  auto square = reduce.getInput().getDefiningOp<dmir::MulOp>();
  if (reduce.getKind() != dmir::Reduction::sum || !square || square.getLhs() != square.getRhs() ||
      !square->hasOneUse() || square->getBlock() != reduce->getBlock() || reduce.getAxes().empty())
    return std::nullopt;
  auto own = square->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr),
       wanted = reduce->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr);
  // Dims that are reduced away are missing in front of the one that is dealt.
  if (static_cast<bool>(own) != static_cast<bool>(wanted))
    return std::nullopt;
  if (own && wanted) {
    int64_t dim = own.getDim();
    if (shapeOf(reduce.getResult()).size() < shapeOf(square.getResult()).size())
      for (int64_t axis : reduce.getAxes())
        dim -= axis < own.getDim();
    if (dim != wanted.getDim())
      return std::nullopt;
  }
  return DeviceFunction{SimdFunction::ReduceSumSquare, {square.getLhs()}, 0, 0, SmallVector<int64_t>(reduce.getAxes())};
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

const DeviceFunction *FunctionChoice::at(Operation *op) const {
  auto found = chosen.find(op);
  return found == chosen.end() ? nullptr : &found->second;
}

/// The value and its two bounds, in the order in which they are taken.
std::optional<DeviceFunction> FunctionChoice::clamp(Operation *op) const {
  if (!isa<dmir::MaxOp, dmir::MinOp>(op))
    return std::nullopt;
  std::optional<std::pair<Value, float>> last = withNumber(op);
  if (!last)
    return std::nullopt;
  const bool isUpper = isa<dmir::MinOp>(op);
  Operation *inner = absorbed(last->first, op);
  if (!inner)
    return std::nullopt;
  std::optional<std::pair<Value, float>> first;
  if (isUpper && isa<dmir::ReluOp>(inner))
    first = std::pair(inner->getOperand(0), 0.0F);
  else if (isUpper ? isa<dmir::MaxOp>(inner) : isa<dmir::MinOp>(inner))
    first = withNumber(inner);
  if (!first)
    return std::nullopt;
  const float low = isUpper ? first->second : last->second, high = isUpper ? last->second : first->second;
  if (low > high) // which of them wins is the order's
    return std::nullopt;
  Operation *maker = first->first.getDefiningOp();
  const DeviceFunction *line = maker ? at(maker) : nullptr;
  if (low == 0 && high == 1 && line && line->function == SimdFunction::Affine && absorbed(first->first, op))
    return DeviceFunction{SimdFunction::HardSigmoid, line->operands, line->imm0, line->imm1};
  return DeviceFunction{SimdFunction::Clip, {first->first}, low, high};
}

/// A mask that softmax alone reads, or the rest of one: bounds below are written to the scores before.
static std::optional<DeviceFunction> maskOf(dmir::MaskOp mask) {
  std::optional<Diagonals> diagonals = diagonalsOf(mask);
  if (!diagonals)
    return std::nullopt;
  const double fill = cast<FloatAttr>(mask.getFill()).getValueAsDouble();
  return DeviceFunction{
      SimdFunction::CausalMask, {mask.getInput()}, static_cast<float>(std::max(fill, -65504.0)), 0, {}, 0, *diagonals};
}

std::optional<DeviceFunction> FunctionChoice::masked(dmir::SoftmaxOp softmax) const {
  auto mask = dyn_cast_if_present<dmir::MaskOp>(absorbed(softmax.getInput(), softmax));
  const std::optional<Diagonals> diagonals = mask ? diagonalsOf(mask) : std::nullopt;
  const int64_t last = typeOf(softmax.getInput()).getRank() - 1;
  if (!diagonals || !diagonals->upper || softmax.getLog() || static_cast<int64_t>(softmax.getAxis()) != last ||
      computesMasked(softmax))
    return std::nullopt;
  const Value scores = diagonals->lower ? mask.getResult() : mask.getInput();
  return DeviceFunction{SimdFunction::Softmax, {scores}, 0, 0, {last}, 0, {std::nullopt, diagonals->upper}};
}

std::optional<DeviceFunction> FunctionChoice::activation(Operation *op) const {
  if (auto select = dyn_cast<dmir::SelectOp>(op))
    return leaky(select);
  if (std::optional<DeviceFunction> line = scaled(op))
    return line;
  return clamp(op);
}

void FunctionChoice::choose(Operation *op) {
  if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()) || !isHalf(op->getResult(0)))
    return;
  std::optional<DeviceFunction> function;
  if (auto reduce = dyn_cast<dmir::ReduceOp>(op))
    function = sumOfSquares(reduce);
  else if (auto softmax = dyn_cast<dmir::SoftmaxOp>(op))
    function = masked(softmax);
  else if (auto mask = dyn_cast<dmir::MaskOp>(op))
    function = maskOf(mask);
  else
    function = activation(op);
  const bool known = function && llvm::all_of(function->operands, [&](Value value) { return isHalf(value); });
  if (known)
    chosen[op] = *function;
}

bool FunctionChoice::isHalf(Value value) const {
  return elementOf(value).isF16() || (areHosts && isa<FloatType>(elementOf(value)));
}

FunctionChoice::FunctionChoice(Block &body, bool areHosts) : areHosts(areHosts) {
  // Rotations first: their sums are no products that are added to.
  for (Operation &op : body)
    if (std::optional<DeviceFunction> rotation = matchRotation(&op);
        rotation && isDealtAlike(&op) && isHalf(op.getResult(0)))
      chosen[&op] = *rotation;
  findUnused(body);
  for (Operation &op : body)
    if (!isUnused(&op) && !chosen.contains(&op))
      choose(&op);
  // What softmax does of a mask, the mask need not.
  for (auto &[op, function] : chosen)
    if (function.function == SimdFunction::Softmax &&
        isa_and_present<dmir::MaskOp>(function.operands[0].getDefiningOp()))
      chosen.find(function.operands[0].getDefiningOp())->second.diagonals.upper.reset();
  findUnused(body);
}

void FunctionChoice::findUnused(Block &body) {
  llvm::DenseSet<Value> read;
  unused.clear();
  for (Operation &op : llvm::reverse(body)) {
    const bool isPure = op.getNumResults() && !op.getNumRegions() && op.getName().getDialectNamespace() == "dmir";
    if (isPure && llvm::none_of(op.getResults(), [&](Value result) { return read.contains(result); })) {
      unused.insert(&op);
      continue;
    }
    if (const DeviceFunction *function = at(&op))
      read.insert(function->operands.begin(), function->operands.end());
    else
      op.walk([&](Operation *inner) { read.insert(inner->operand_begin(), inner->operand_end()); });
  }
}
