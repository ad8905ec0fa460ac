//===- ListedMasks.cpp - constant masks as lists of tiles -----------------===//
#include "ListedMasks.h"

#include "../MaskNumbers.h"
#include "../Quantised.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"

#include <cmath>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

namespace {

constexpr int64_t kLeastTile = 64, kLeastExtent = 256, kMostElements = int64_t(1) << 26;
/// Of all tiles, listed ones: where more are, leaving out the others is not worth it.
constexpr double kMostListed = 0.8;

/// A constant matrix that meets scores of these dims.
std::optional<Tensor> matrixFor(Value mask, ArrayRef<Dim> scores) {
  SmallVector<Dim> dims = dimsOf(mask);
  if (dims.size() < 2 || !elementsOf(mask.getType()).isStatic() || *elementsOf(mask.getType()).known() > kMostElements)
    return std::nullopt;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const bool isOuter = axis + 2 < dims.size();
    if (isOuter ? !dims[axis].is(1) : !(dims[axis] == scores[scores.size() - dims.size() + axis]))
      return std::nullopt;
    if (!isOuter && *dims[axis].known() < kLeastExtent)
      return std::nullopt;
  }
  return quantised::isConstantExpression(mask) ? quantised::evaluateConstant(mask) : std::nullopt;
}

/// How many elements of each square of a matrix are kept.
class Squares {
public:
  Squares(const Tensor &mask, llvm::function_ref<bool(double)> keeps)
      : rows(mask.shape()[mask.shape().size() - 2]), columns(mask.shape().back()), along(count(columns)),
        kept(count(rows) * along) {
    for (int64_t row = 0, at = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column, ++at)
        kept[row / side * along + column / side] += keeps(mask.asDouble(at));
  }

  bool areWhole() const {
    return llvm::all_of(llvm::seq<int64_t>(kept.size()), [&](int64_t at) {
      const int64_t down = std::min(side, rows - at / along * side),
                    across = std::min(side, columns - at % along * side);
      return kept[at] == 0 || kept[at] == down * across;
    });
  }

  /// Four squares as one, where all such fours are alike.
  bool merge() {
    if (rows % (2 * side) || columns % (2 * side))
      return false;
    const int64_t half = along / 2;
    std::vector<int64_t> next(kept.size() / 4);
    for (size_t at = 0; at < kept.size(); ++at) {
      const int64_t row = static_cast<int64_t>(at) / along, column = static_cast<int64_t>(at) % along;
      const int64_t *first = &kept[row / 2 * 2 * along + column / 2 * 2];
      if ((*first != 0) != (kept[at] != 0))
        return false;
      next[row / 2 * half + column / 2] += kept[at];
    }
    kept = std::move(next);
    side *= 2, along = half;
    return true;
  }

  ArrayAttr lists(MLIRContext *context) const {
    SmallVector<Attribute> all;
    for (int64_t row = 0; row * side < rows; ++row) {
      SmallVector<int64_t> own;
      for (int64_t column = 0; column < along; ++column)
        if (kept[row * along + column])
          own.push_back(column);
      all.push_back(DenseI64ArrayAttr::get(context, own));
    }
    return ArrayAttr::get(context, all);
  }
  double listed() const {
    return static_cast<double>(kept.size() - llvm::count(kept, 0)) / static_cast<double>(kept.size());
  }
  int64_t size() const { return side; }

private:
  int64_t count(int64_t extent) const { return (extent + side - 1) / side; }

  int64_t rows, columns, side = kLeastTile, along;
  std::vector<int64_t> kept;
};

std::optional<ListedMask> listed(ListedMask found, const Tensor &mask, llvm::function_ref<bool(double)> keeps) {
  Squares squares(mask, keeps);
  if (squares.listed() > kMostListed)
    return std::nullopt;
  found.isWhole = squares.areWhole();
  while (found.isWhole && squares.merge())
    ;
  found.tile = {squares.size(), squares.size()};
  found.lists = squares.lists(found.scores.getContext());
  return found;
}

/// The one number that elements of a mask are which is added to scores, beside 0 and others that keep them.
std::optional<double> fillOf(const Tensor &mask) {
  std::optional<double> fill;
  for (int64_t at = 0; at < mask.numElements(); ++at) {
    const double x = mask.asDouble(at);
    if (std::isnan(x) || (x <= kMostFill && fill && x != *fill))
      return std::nullopt;
    if (x <= kMostFill)
      fill = x;
  }
  return fill;
}

std::optional<ListedMask> ofSum(AddOp sum) {
  for (unsigned i : {0, 1}) {
    std::optional<Tensor> mask = matrixFor(sum->getOperand(1 - i), dimsOf(sum.getResult()));
    Value scores = sum->getOperand(i);
    std::optional<double> fill = mask && scores.getType() == sum.getType() ? fillOf(*mask) : std::nullopt;
    if (!fill)
      continue;
    std::optional<ListedMask> found =
        listed({scores, *fill, std::isfinite(*fill), false, {}, {}}, *mask, [&](double x) { return x != *fill; });
    bool isPlain = true; // nothing is added to what is kept
    for (int64_t at = 0; at < mask->numElements() && isPlain; ++at)
      isPlain = mask->asDouble(at) == 0 || mask->asDouble(at) == *fill;
    if (found && (!isPlain || !found->isWhole)) {
      if (found->adds) // would be added twice
        return std::nullopt;
      found->isWhole = false, found->scores = sum.getResult();
    }
    return found;
  }
  return std::nullopt;
}

std::optional<ListedMask> ofSelect(SelectOp select) {
  std::optional<Tensor> mask = matrixFor(select.getCondition(), dimsOf(select.getResult()));
  if (!mask)
    return std::nullopt;
  for (bool keptWhere : {true, false}) {
    Value scores = keptWhere ? select.getOnTrue() : select.getOnFalse(),
          other = keptWhere ? select.getOnFalse() : select.getOnTrue();
    std::optional<double> fill =
        isConstant(other) && elementsOf(other.getType()).is(1) ? quantised::evaluateNumber(other) : std::nullopt;
    if (!fill || std::isnan(*fill) || *fill > 0 || scores.getType() != select.getType())
      continue;
    std::optional<ListedMask> found =
        listed({scores, *fill, false, false, {}, {}}, *mask, [&](double x) { return (x != 0) == keptWhere; });
    if (found && !found->isWhole)
      found->scores = select.getResult();
    return found;
  }
  return std::nullopt;
}

} // namespace

std::optional<ListedMask> dmxc::listTiles(Operation *op) {
  if (auto sum = dyn_cast_or_null<AddOp>(op); sum && elementOf(sum.getResult()).isF32())
    return ofSum(sum);
  auto select = dyn_cast_or_null<SelectOp>(op);
  return select ? ofSelect(select) : std::nullopt;
}
