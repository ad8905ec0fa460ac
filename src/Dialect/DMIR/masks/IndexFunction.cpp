//===- IndexFunction.cpp - values as functions of their index -------------===//
#include "dmxc/Dialect/DMIR/masks/IndexFunction.h"
#include "IndexRules.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Support/Visible.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

// What is longer is no mask that anybody wrote.
static constexpr size_t kMostPieces = 16, kMostConditions = 64;
static constexpr unsigned kMostSteps = 4096, kMostDepth = 64, kMostSymbols = 16;

IndexFunctions::IndexFunctions(Operation *scope, ArrayRef<Dim> extents, bool narrow)
    : scope(scope), narrow(narrow), context(scope->getContext()), extents(extents), rank(extents.size()) {
  for (Dim extent : extents) {
    lasts.push_back(exprOf(extent) - 1);
    dimRanges.push_back({0, std::max<int64_t>(range(lasts.back()).max, 0)});
  }
}

//===----------------------------------------------------------------------===//
// Expressions and conditions
//===----------------------------------------------------------------------===//

/// Sums and multiples of symbols stay what they are, so that what is added and subtracted again goes; any other part of
/// a size is a symbol of its own.
AffineExpr IndexFunctions::exprOf(Dim dim) {
  struct Part {
    Dim dim;
    AffineExpr expr;
  };
  auto symbol = [&](Dim whole) -> Part {
    auto known = llvm::find_if(symbolList, [&](const Symbol &s) { return !s.value && s.dim == whole; });
    size_t position = known - symbolList.begin();
    if (known == symbolList.end()) {
      symbolList.push_back({whole, {}, {}});
      Dim::Bounds bounds = whole.bounds([&](std::string_view name) -> Dim::Bounds {
        DimBounds own = symbolBounds(scope, StringRef(name.data(), name.size()));
        return {own.min, own.max};
      });
      constexpr int64_t most = int64_t(1) << 46;
      symbolRanges.push_back({std::max(bounds.min, -most), std::min(bounds.max, most)});
    }
    return {whole, getAffineSymbolExpr(position, context)};
  };
  Dim::Builder<Part> make;
  make.number = [&](int64_t value) -> Part { return {value, number(value)}; };
  make.symbol = [&](std::string_view name) { return symbol(Dim::symbol(name)); };
  make.add = [&](Part a, Part b) -> Part { return {a.dim + b.dim, a.expr + b.expr}; };
  make.mul = [&](Part a, Part b) -> Part {
    if (a.dim.isStatic() || b.dim.isStatic())
      return {a.dim * b.dim, a.expr * b.expr};
    return symbol(a.dim * b.dim);
  };
  make.call = [&](Dim::Call call, Part a, Part b) {
    switch (call) {
    case Dim::Call::FloorDiv:
      return symbol(Dim::floorDiv(a.dim, b.dim));
    case Dim::Call::Min:
      return symbol(Dim::min(a.dim, b.dim));
    case Dim::Call::Max:
      return symbol(Dim::max(a.dim, b.dim));
    case Dim::Call::Broadcast:
      break;
    }
    return symbol(Dim::broadcast(a.dim, b.dim));
  };
  return dim.build(make).expr;
}

Interval IndexFunctions::range(AffineExpr expr) const { return rangeOf(expr, dimRanges, symbolRanges); }

/// a - b where that is a number.
static std::optional<int64_t> difference(AffineExpr a, AffineExpr b) {
  int64_t constant = 0;
  return termsOf(a - b, constant).empty() ? std::optional(constant) : std::nullopt;
}

bool dmir::addCondition(Conditions &conditions, const Condition &added, Interval range) {
  if (range.max < 0 || (added.isEq && range.min > 0))
    return false;
  if (range.min >= 0 && (!added.isEq || range.max == 0))
    return true;
  for (const Condition &own : conditions) {
    std::optional<int64_t> more = difference(added.expr, own.expr), sum = difference(added.expr, -own.expr);
    if (more && own.isEq)
      return added.isEq ? *more == 0 : *more >= 0; // own.expr is 0
    if ((more && added.isEq && *more > 0) || (sum && *sum < 0 && !(own.isEq && added.isEq)))
      return false;
  }
  for (Condition &own : conditions)
    if (std::optional<int64_t> more = difference(added.expr, own.expr); more && !added.isEq) {
      if (*more < 0) // the lesser expression says all
        own = added;
      return true;
    }
  conditions.push_back(added);
  return true;
}

bool IndexFunctions::add(Conditions &conditions, const Condition &added) const {
  for (size_t axis = 0; crosses && axis < lasts.size(); ++axis) {
    AffineExpr room = lasts[axis] - getAffineDimExpr(axis, context); // is not negative
    std::optional<int64_t> more = difference(added.expr, room), sum = difference(added.expr, -room);
    if (more && *more >= 0 && !added.isEq)
      return true;
    if (sum && *sum < 0)
      return false;
  }
  return addCondition(conditions, added, range(added.expr));
}

std::optional<Conditions> IndexFunctions::both(const Conditions &a, const Conditions &b) const {
  Conditions result = a;
  for (const Condition &condition : b)
    if (!add(result, condition))
      return std::nullopt;
  return result;
}

Pieces IndexFunctions::within(ArrayRef<Piece> pieces, const Conditions &conditions) const {
  Pieces result;
  for (const Piece &piece : pieces)
    if (both(conditions, piece.where))
      result.push_back(piece);
  return result;
}

Pieces IndexFunctions::within(ArrayRef<Piece> pieces) const {
  Pieces result;
  for (const Piece &piece : pieces)
    if (std::optional<Conditions> where = both({}, piece.where))
      result.push_back({*where, piece.leaf});
  return result;
}

Pieces IndexFunctions::unknown(Operation *op, const std::string &why) {
  cause = op;
  reason = why;
  return {Piece{}};
}

std::string IndexFunctions::unreadable() const {
  if (!cause)
    return reason;
  return "'" + nodeName(cause) + "' (" + cause->getName().getStringRef().str() + "): " + reason;
}

/// The name of a graph's input.
static std::string inputName(BlockArgument argument) {
  auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  auto name = function ? function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kNameAttr) : StringAttr();
  return name ? "the input '" + visible(name.getValue()) + "'" : "an input";
}

/// The condition of `a` whose opposite `b` has beside the same others; null where there is none.
static const Condition *oppositeIn(const Conditions &a, const Conditions &b) {
  if (a.size() != b.size())
    return nullptr;
  const Condition *only = nullptr;
  for (const Condition &x : a) {
    if (llvm::is_contained(b, x))
      continue;
    bool turned =
        !x.isEq && llvm::any_of(b, [&](const Condition &y) { return !y.isEq && difference(x.expr, -y.expr) == -1; });
    if (only || !turned)
      return nullptr;
    only = &x;
  }
  return only;
}

/// Pieces of one value that differ in a condition and its opposite are one piece.
void IndexFunctions::join(Pieces &pieces) {
  for (size_t i = 0; i < pieces.size(); ++i)
    for (size_t j = i + 1; j < pieces.size(); ++j)
      if (pieces[i].leaf == pieces[j].leaf)
        if (const Condition *same = oppositeIn(pieces[i].where, pieces[j].where)) {
          pieces[i].where.erase(same);
          pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(j));
          return join(pieces);
        }
}

Pieces IndexFunctions::limited(Pieces pieces, Operation *op) {
  join(pieces);
  size_t conditions = 0;
  for (const Piece &piece : pieces)
    conditions += piece.where.size();
  if (pieces.size() > kMostPieces)
    return unknown(op, "it has more than 16 pieces");
  if (pieces.empty() || conditions > kMostConditions)
    return unknown(op, pieces.empty() ? "it has no elements" : "it has more than 64 conditions");
  // select(anything, c, c) is c.
  if (llvm::all_of(pieces, [&](const Piece &piece) { return piece.leaf == pieces[0].leaf; }))
    return {Piece{{}, pieces[0].leaf}};
  return pieces;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Pieces IndexFunctions::of(Value tensor) { return ofBroadcast(tensor); }

Pieces IndexFunctions::ofBroadcast(Value tensor) {
  Index index;
  for (unsigned axis = 0; axis < extents.size(); ++axis)
    index.push_back(getAffineDimExpr(axis, context));
  std::optional<Index> own = broadcastIndex(index, dimsOf(tensor), extents);
  return own ? at(tensor, *own) : unknown(tensor.getDefiningOp(), kDims);
}

Pieces IndexFunctions::at(Value tensor, const Index &index) {
  if (crosses)
    tensor = acrossRegions(tensor);
  Operation *op = tensor.getDefiningOp();
  if (!op) {
    if (std::optional<Pieces> symbol = asSymbol(tensor, index, /*isUnknown=*/true))
      return *symbol;
    bool isWhole = !reader;
    return unknown(reader, (isWhole ? "it is " : "it reads ") + inputName(cast<BlockArgument>(tensor)));
  }
  if (depth >= kMostDepth || symbolList.size() > kMostSymbols)
    return unknown(op, depth >= kMostDepth ? "it is behind more than 64 ops" : "it takes more than 16 sizes to say");
  auto key = std::make_pair(tensor, AffineMap::get(kMostDims, kMostSymbols + 8, index, context));
  if (auto known = memo.find(key); known != memo.end())
    return known->second;
  if (++steps > kMostSteps)
    return unknown(op, "it takes more than 4096 steps to get there");
  if (std::optional<Known> fact = facts ? facts(tensor) : std::nullopt)
    return memo[key] = chosen(fact->keep, index, Leaf(), ElementRules::leafOf(fact->value, elementOf(tensor)), op);
  ++depth;
  Operation *outer = std::exchange(reader, op);
  Pieces pieces = read(tensor, index);
  reader = outer;
  --depth;
  // A number for each matrix that takes cases or several others to be said is one of its own, as one that is not known.
  bool isUnknown = llvm::any_of(pieces, [](const Piece &piece) { return piece.leaf.kind == Leaf::Unknown; });
  if (pieces.size() > 1 || isUnknown || readsValues(pieces[0].leaf) > 1)
    pieces = asSymbol(tensor, index, isUnknown).value_or(pieces);
  memo[key] = pieces;
  return pieces;
}

/// How many numbers that tensors have for each matrix an expression is made of.
unsigned IndexFunctions::readsValues(const Leaf &leaf) const {
  unsigned count = 0;
  for (auto [position, symbol] : llvm::enumerate(symbolList))
    count += leaf.kind == Leaf::Affine && symbol.value && leaf.affine.isFunctionOfSymbol(position);
  return count;
}

/// The symbol of a tensor whose elements are read one by one along some axes of the space; nothing for others.
std::optional<Symbol> IndexFunctions::symbolOf(Value tensor, const Index &index, bool isUnknown) const {
  SmallVector<Dim> dims = dimsOf(tensor);
  Symbol symbol{1, tensor, {}};
  std::optional<unsigned> last;
  unsigned ofMatrix = 0; // axes of these two
  for (auto [axis, expr] : llvm::enumerate(index)) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (expr == number(0) && dims[axis].is(1)) {
      symbol.axes.push_back(std::nullopt);
      continue;
    }
    if (!dim || dim.getPosition() >= rank || (last && dim.getPosition() <= *last) ||
        !(dims[axis] == extents[dim.getPosition()]))
      return std::nullopt;
    ofMatrix += dim.getPosition() + 2 >= rank;
    symbol.axes.push_back(last = dim.getPosition());
  }
  bool isNew = ofMatrix || isConstant(tensor) || elementOf(tensor).isInteger(1);
  bool isRead = ofMatrix < 2 || isa<BlockArgument>(tensor); // nothing is computed for each element
  return !isNew || (vectors && isUnknown && isRead) ? std::optional(symbol) : std::nullopt;
}

Interval IndexFunctions::valuesOf(Value tensor) const {
  Type element = elementOf(tensor);
  if (element.isInteger(1))
    return {0, 1};
  int64_t most = element.isInteger(32) ? int64_t(1) << 31 : kMostValue;
  Interval values{-most, element.isInteger(32) ? most - 1 : most};
  std::optional<Tensor> known = isConstant(tensor) ? constantTensor(tensor) : std::nullopt;
  if (!known || known->numElements() == 0)
    return values;
  Interval own{values.max, values.min};
  for (int64_t i = 0; i < known->numElements(); ++i)
    own = {std::min(own.min, known->asInt(i)), std::max(own.max, known->asInt(i))};
  return {std::max(own.min, values.min), std::min(own.max, values.max)};
}

/// Integers and bools that nothing is known of, but that elements read the same one along some axes, as those of a
/// matrix lengths of batch entries, and those of a column what says whether it is padding.
std::optional<Pieces> IndexFunctions::asSymbol(Value tensor, const Index &index, bool isUnknown) {
  Type element = elementOf(tensor);
  if ((!element.isInteger(1) && !element.isInteger(32) && !element.isInteger(64)) || element.isUnsignedInteger() ||
      rank < 2 || symbolList.size() > kMostSymbols)
    return std::nullopt;
  std::optional<Symbol> symbol = symbolOf(tensor, index, isUnknown);
  if (!symbol)
    return std::nullopt;
  auto known = llvm::find_if(symbolList, [&](const Symbol &s) { return s.value == tensor && s.axes == symbol->axes; });
  size_t position = known - symbolList.begin();
  if (known == symbolList.end()) {
    symbolList.push_back(*symbol);
    symbolRanges.push_back(valuesOf(tensor));
  }
  AffineExpr expr = getAffineSymbolExpr(position, context);
  if (element.isInteger(1))
    return Pieces{Piece{{{expr - 1, false}}, Leaf::of(1.0)}, Piece{{{-expr, false}}, Leaf::of(0.0)}};
  return Pieces{Piece{{}, Leaf::of(expr)}};
}

Pieces IndexFunctions::read(Value tensor, const Index &index) {
  Operation *op = tensor.getDefiningOp();
  if (isa<ConstantOp>(op))
    return readConstant(tensor, index);
  if (auto iota = dyn_cast<IotaOp>(op)) {
    ElementRules rules(*this, op);
    Leaf leaf = rules.exactly(index[iota.getAxis()], elementOf(tensor));
    return leaf.kind == Leaf::Unknown ? unknown(op, "its type does not count that far exactly")
                                      : Pieces{Piece{{}, leaf}};
  }
  if (auto sizes = dyn_cast<DimTensorOp>(op)) {
    SmallVector<Dim> values = mixDims(sizes.getValues(), sizes.getDims());
    auto which = index.size() == 1 ? dyn_cast<AffineConstantExpr>(index[0]) : AffineConstantExpr();
    bool inside = which && which.getValue() >= 0 && which.getValue() < static_cast<int64_t>(values.size());
    return inside ? Pieces{Piece{{}, Leaf::of(exprOf(values[which.getValue()]))}}
                  : unknown(op, "which of its sizes is read depends on the index");
  }
  if (!op->hasTrait<Elementwise>())
    return readMovement(op, index);
  if (auto mask = dyn_cast<MaskOp>(op); mask && facts)
    return readMask(mask, index);
  SmallVector<Pieces> operands;
  for (Value operand : op->getOperands()) {
    std::optional<Index> own = broadcastIndex(index, dimsOf(operand), dimsOf(tensor));
    operands.push_back(own ? at(operand, *own) : unknown(op, kDims));
  }
  return ElementRules(*this, op).apply(operands);
}

std::optional<IndexFunctions::Index> IndexFunctions::broadcastIndex(const Index &index, ArrayRef<Dim> own,
                                                                    ArrayRef<Dim> whole) const {
  if (own.size() > index.size() || whole.size() != index.size())
    return std::nullopt;
  Index result;
  size_t missing = index.size() - own.size();
  for (auto [axis, dim] : llvm::enumerate(own)) {
    if (!dim.is(1) && !(dim == whole[missing + axis]))
      return std::nullopt;
    result.push_back(dim.is(1) ? number(0) : index[missing + axis]);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

static Leaf elementLeaf(const Tensor &tensor, int64_t at, MLIRContext *context) {
  if (isFloat(tensor.dtype()) || tensor.dtype() == DType::Bool)
    return Leaf::of(tensor.asDouble(at));
  constexpr int64_t most = int64_t(1) << 40;
  int64_t value = tensor.asInt(at);
  return value < most && value > -most ? Leaf::of(getAffineConstantExpr(value, context)) : Leaf();
}

/// Integers that grow by the same step along one axis alone.
static std::optional<int64_t> stepAlong(const Tensor &tensor, int64_t count, int64_t inner) {
  constexpr int64_t most = int64_t(1) << 40;
  if (std::abs(tensor.asDouble(0)) > most || std::abs(tensor.asDouble(inner)) > most)
    return std::nullopt;
  int64_t step = tensor.asInt(inner) - tensor.asInt(0);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    if (tensor.asInt(i) != tensor.asInt(0) + i / inner % count * step)
      return std::nullopt;
  return step;
}

/// Integers that grow by 1 after equal numbers of elements, as numbers of chunks: base + (place + shift) floordiv by.
/// The first and the last chunk may be a part of one.
struct Staircase {
  int64_t base, shift, by;
};
static std::optional<Staircase> staircaseOf(const Tensor &tensor) {
  constexpr int64_t most = int64_t(1) << 40;
  int64_t count = tensor.numElements(), first = 1, second = 0;
  if (std::abs(tensor.asDouble(0)) > most)
    return std::nullopt;
  while (first < count && tensor.asInt(first) == tensor.asInt(0))
    ++first;
  while (first + second < count && tensor.asInt(first + second) == tensor.asInt(0) + 1)
    ++second;
  Staircase stairs{tensor.asInt(0), 0, std::max(first, second)};
  stairs.shift = stairs.by - first;
  for (int64_t i = 0; i < count; ++i)
    if (tensor.asInt(i) != stairs.base + (i + stairs.shift) / stairs.by)
      return std::nullopt;
  return stairs;
}

Pieces IndexFunctions::readConstant(Value value, const Index &index) {
  Operation *op = value.getDefiningOp();
  std::optional<Tensor> tensor = hostFormOf(value.getType()) ? constantTensor(value) : std::nullopt;
  constexpr int64_t most = int64_t(1) << 30;
  if (!tensor || dtypeBits(tensor->dtype()) < 8)
    return unknown(op, "the constant is of a type that is not looked at");
  if (tensor->numElements() == 0 || tensor->numElements() > most)
    return unknown(op, tensor->numElements() ? "the constant has more than 2^30 elements" : "the constant is empty");
  SmallVector<size_t> axes; // that have elements
  for (auto [axis, dim] : llvm::enumerate(tensor->shape()))
    if (dim > 1)
      axes.push_back(axis);
  if (axes.empty()) {
    Leaf leaf = elementLeaf(*tensor, 0, context);
    return leaf.kind == Leaf::Unknown ? unknown(op, "its number is not within 2^40") : Pieces{Piece{{}, leaf}};
  }
  if (axes.size() > 2)
    return unknown(op, "the constant differs along " + std::to_string(axes.size()) + " axes, of which 2 are the most");
  int64_t columns = tensor->shape()[axes.back()], rows = tensor->numElements() / columns;
  bool isInt = !isFloat(tensor->dtype()) && tensor->dtype() != DType::Bool;
  if (isInt && axes.size() == 1)
    if (std::optional<int64_t> step = stepAlong(*tensor, columns, 1))
      return {Piece{{}, Leaf::of(index[axes[0]] * *step + tensor->asInt(0))}};
  if (isInt && axes.size() == 1)
    if (std::optional<Staircase> stairs = staircaseOf(*tensor))
      return {Piece{{}, Leaf::of((index[axes[0]] + stairs->shift).floorDiv(stairs->by) + stairs->base)}};
  if (axes.size() == 1)
    if (std::optional<Pieces> pieces = readPeriodic(*tensor, isInt, index[axes[0]]))
      return within(*pieces);
  AffineExpr row = axes.size() == 2 ? index[axes[0]] : number(0);
  std::optional<Pieces> pieces = readTwoValues(*tensor, rows, columns, row, index[axes.back()]);
  constexpr double mostInt = 1e12;
  bool isHuge =
      isInt && pieces && llvm::any_of(*pieces, [](const Piece &p) { return std::abs(p.leaf.number) > mostInt; });
  if (!pieces || isHuge)
    return unknown(op, isHuge ? "the constant has integers beyond 10^12" : whyNoRuns(*tensor, rows, columns));
  runsOfConstants = true;
  for (Piece &piece : *pieces)
    if (isInt)
      piece.leaf = Leaf::of(number(static_cast<int64_t>(piece.leaf.number)));
  return limited(within(*pieces), op);
}
