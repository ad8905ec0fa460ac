//===- Rotations.cpp - rotary embeddings ----------------------------------===//
//
// Exporters write x * cos + turned(x) * sin with the angles twice, once for each half of a row or for each of a pair.
//
//===----------------------------------------------------------------------===//
#include "Rotations.h"

#include "Quantised.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Rows.h"

#include <optional>

using namespace mlir;
using namespace dmxc;

namespace {

/// Rows of pairs: of elements half a row apart, or side by side.
enum class Pairs : uint8_t { Halves, Neighbours };

int64_t lastOf(Value value) { return shapeOf(value).empty() ? 1 : shapeOf(value).back(); }

/// Half of each row: the first or the second element of each pair.
Value half(OpBuilder &b, Location loc, Value whole, Pairs pairs, bool second) {
  SmallVector<int64_t> sizes(shapeOf(whole)), starts(sizes.size(), 0), steps(sizes.size(), 1);
  sizes.back() /= 2;
  steps.back() = pairs == Pairs::Neighbours ? 2 : 1;
  if (second)
    starts.back() = pairs == Pairs::Neighbours ? 1 : sizes.back();
  return dmir::SliceOp::create(b, loc, typeOf(whole).clone(sizes), whole, starts, sizes, steps, dmir::DimsAttr());
}

bool isHalf(Value value, Value x, Pairs pairs, bool second) {
  const int64_t size = lastOf(x) / 2;
  const dmir::RowPart part = dmir::partOfRows(value), whole = dmir::partOfRows(x);
  const int64_t stride = pairs == Pairs::Neighbours ? 2 : 1, away = pairs == Pairs::Neighbours ? 1 : size;
  return part.whole == whole.whole && !shapeOf(value).empty() && shapeOf(value).drop_back() == shapeOf(x).drop_back() &&
         lastOf(value) == size && part.step == whole.step * stride &&
         part.start == whole.start + (second ? away * whole.step : 0);
}

/// The op that joins two values along the last axis.
dmir::ConcatOp joinOf(Value value) {
  auto concat = value.getDefiningOp<dmir::ConcatOp>();
  const bool joins = concat && concat.getInputs().size() == 2 && concat.getAxis() + 1 == shapeOf(value).size();
  return joins ? concat : dmir::ConcatOp();
}

/// What a value is before a dim of 1 was put behind its last.
Value withoutLastOne(Value value) {
  auto reshape = value.getDefiningOp<dmir::ReshapeOp>();
  const bool adds = reshape && !shapeOf(value).empty() && lastOf(value) == 1 &&
                    shapeOf(reshape.getInput()) == shapeOf(value).drop_back();
  return adds ? reshape.getInput() : Value();
}

/// How a value pairs the elements of x that it turns by a quarter: [-x1, x0].
std::optional<Pairs> turned(Value value, Value x) {
  auto turns = [&](Value first, Value second, Pairs pairs) {
    auto neg = first ? first.getDefiningOp<dmir::NegOp>() : dmir::NegOp();
    return neg && second && isHalf(neg.getInput(), x, pairs, true) && isHalf(second, x, pairs, false);
  };
  if (dmir::ConcatOp join = joinOf(value))
    return turns(join.getInputs()[0], join.getInputs()[1], Pairs::Halves) ? std::optional(Pairs::Halves) : std::nullopt;
  auto reshape = value.getDefiningOp<dmir::ReshapeOp>();
  dmir::ConcatOp join = reshape ? joinOf(reshape.getInput()) : dmir::ConcatOp();
  if (!join || !turns(withoutLastOne(join.getInputs()[0]), withoutLastOne(join.getInputs()[1]), Pairs::Neighbours))
    return std::nullopt;
  return Pairs::Neighbours;
}

/// Whether both elements of each pair of the constant's rows are the same.
bool isTwice(dmir::ConstantOp constant, Pairs pairs) {
  constexpr int64_t most = int64_t(1) << 22;
  if (isa<SplatElementsAttr>(constant.getValue()))
    return true;
  if (typeOf(constant.getResult()).getNumElements() > most)
    return false;
  Result<Tensor> tensor = dmir::constantTensor(constant.getValue());
  const int64_t row = lastOf(constant.getResult());
  for (int64_t start = 0; tensor && start < tensor->numElements(); start += row)
    for (int64_t i = 0; i < row / 2; ++i) {
      const int64_t a = pairs == Pairs::Halves ? i : 2 * i, b = pairs == Pairs::Halves ? i + row / 2 : 2 * i + 1;
      if (tensor->asDouble(start + a) != tensor->asDouble(start + b))
        return false;
    }
  return static_cast<bool>(tensor);
}

/// Whether each pair of a value's last axis is two times the same number, because of how it is computed.
bool isTwice(Value value, Pairs pairs, int depth = 16) {
  if (lastOf(value) == 1)
    return true; // broadcast
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0 || lastOf(value) % 2)
    return false;
  auto operands = [&] {
    return llvm::all_of(op->getOperands(), [&](Value operand) { return isTwice(operand, pairs, depth - 1); });
  };
  const int64_t rank = static_cast<int64_t>(shapeOf(value).size());
  if (auto constant = dyn_cast<dmir::ConstantOp>(op))
    return isTwice(constant, pairs);
  if (auto join = joinOf(value); join && pairs == Pairs::Halves)
    return join.getInputs()[0] == join.getInputs()[1];
  if (auto reshape = dyn_cast<dmir::ReshapeOp>(op)) {
    if (lastOf(reshape.getInput()) == lastOf(value))
      return operands();
    // [.., D/2, 2] of one value beside itself.
    if (pairs == Pairs::Halves || lastOf(reshape.getInput()) != 2)
      return false;
    auto join = joinOf(reshape.getInput());
    auto spread = reshape.getInput().getDefiningOp<dmir::BroadcastOp>();
    return (join && join.getInputs()[0] == join.getInputs()[1]) || (spread && lastOf(spread.getInput()) == 1);
  }
  if (auto transpose = dyn_cast<dmir::TransposeOp>(op))
    return transpose.getPermutation().back() == rank - 1 && operands();
  if (auto slice = dyn_cast<dmir::SliceOp>(op))
    return slice.getSizes().back() == lastOf(slice.getInput()) && slice.getSteps().back() == 1 && operands();
  if (auto gather = dyn_cast<dmir::GatherOp>(op))
    return static_cast<size_t>(gather.getAxis()) + 1 < shapeOf(gather.getData()).size() &&
           isTwice(gather.getData(), pairs, depth - 1);
  return (op->hasTrait<dmir::Elementwise>() || isa<dmir::BroadcastOp, dmir::CastOp>(op)) && operands();
}

} // namespace

Operation *dmxc::createRotation(OpBuilder &b, Operation *op) {
  auto add = dyn_cast<dmir::AddOp>(op);
  if (!add || !isa<FloatType>(elementOf(add.getResult())) || !typeOf(add.getResult()).hasStaticShape() ||
      lastOf(add.getResult()) % 2)
    return nullptr;
  for (bool swapped : {false, true}) {
    auto plain = add->getOperand(swapped).getDefiningOp<dmir::MulOp>(),
         quarter = add->getOperand(!swapped).getDefiningOp<dmir::MulOp>();
    if (!plain || !quarter)
      return nullptr;
    for (bool i : {false, true})
      for (bool j : {false, true}) {
        Value x = plain->getOperand(i), cosine = plain->getOperand(!i), sine = quarter->getOperand(!j);
        std::optional<Pairs> pairs =
            x.getType() == add.getType() ? turned(quarter->getOperand(j), x) : std::optional<Pairs>();
        if (!pairs || lastOf(cosine) != lastOf(x) || lastOf(sine) != lastOf(x) || !isTwice(cosine, *pairs) ||
            !isTwice(sine, *pairs))
          continue;
        const Location loc = op->getLoc();
        Value x0 = half(b, loc, x, *pairs, false), x1 = half(b, loc, x, *pairs, true),
              c = half(b, loc, cosine, *pairs, false), s = half(b, loc, sine, *pairs, false);
        auto times = [&](Value left, Value right) { return dmir::MulOp::create(b, loc, left, right); };
        Value y0 = dmir::SubOp::create(b, loc, times(x0, c), times(x1, s)),
              y1 = dmir::AddOp::create(b, loc, times(x1, c), times(x0, s));
        const auto axis = typeOf(x).getRank() - 1;
        if (*pairs == Pairs::Halves)
          return dmir::ConcatOp::create(b, loc, typeOf(x), ValueRange{y0, y1}, b.getI64IntegerAttr(axis));
        SmallVector<int64_t> shape(shapeOf(y0));
        shape.push_back(1);
        auto apart = [&](Value y) { return dmir::ReshapeOp::create(b, loc, typeOf(x).clone(shape), y).getResult(); };
        Value parts[] = {apart(y0), apart(y1)};
        shape.back() = 2;
        Value both =
            dmir::ConcatOp::create(b, loc, typeOf(x).clone(shape), parts, b.getI64IntegerAttr(axis + 1)).getResult();
        return dmir::ReshapeOp::create(b, loc, typeOf(x), both);
      }
  }
  return nullptr;
}
