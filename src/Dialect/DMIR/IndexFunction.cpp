//===- IndexFunction.cpp - values as functions of their index -------------===//
#include "dmxc/Dialect/DMIR/IndexFunction.h"
#include "IndexRules.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

// What is longer is no mask that anybody wrote.
static constexpr size_t kMostPieces = 16, kMostConditions = 64;
static constexpr const char *kDims = "its dims do not broadcast to those of the scores";
static constexpr unsigned kMostSteps = 4096, kMostDepth = 64, kMostDims = 12, kMostSymbols = 16;

IndexFunctions::IndexFunctions(Operation *scope, ArrayRef<Dim> extents)
    : scope(scope), context(scope->getContext()), extents(extents) {
  for (Dim extent : extents)
    dimRanges.push_back({0, std::max<int64_t>(range(exprOf(extent)).max - 1, 0)});
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
    auto known = llvm::find(symbolDims, whole);
    size_t position = known - symbolDims.begin();
    if (known == symbolDims.end()) {
      symbolDims.push_back(whole);
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

/// Adds a condition to others; false where they exclude it.
static bool addCondition(Conditions &conditions, const Condition &added, Interval range) {
  if (range.max < 0 || (added.isEq && range.min > 0))
    return false;
  if (range.min >= 0 && (!added.isEq || range.max == 0))
    return true;
  for (Condition &own : conditions) {
    std::optional<int64_t> more = difference(added.expr, own.expr), sum = difference(added.expr, -own.expr);
    if (more && own.isEq)
      return added.isEq ? *more == 0 : *more >= 0; // own.expr is 0
    if (more && added.isEq && *more > 0)
      return false;
    if (more && !added.isEq) { // the lesser expression says all
      if (*more < 0)
        own = added;
      return true;
    }
    if (sum && *sum < 0 && !(own.isEq && added.isEq))
      return false;
  }
  conditions.push_back(added);
  return true;
}

std::optional<Conditions> IndexFunctions::both(const Conditions &a, const Conditions &b) const {
  Conditions result = a;
  for (const Condition &condition : b)
    if (!addCondition(result, condition, range(condition.expr)))
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
  return name ? "the input '" + name.str() + "'" : "an input";
}

Pieces IndexFunctions::limited(Pieces pieces, Operation *op) {
  size_t conditions = 0;
  for (const Piece &piece : pieces)
    conditions += piece.where.size();
  if (pieces.empty() || pieces.size() > kMostPieces || conditions > kMostConditions)
    return unknown(op, "it has more than 16 pieces, or more than 64 conditions");
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
  Operation *op = tensor.getDefiningOp();
  if (!op) {
    bool isWhole = !reader;
    return unknown(reader, (isWhole ? "it is " : "it reads ") + inputName(cast<BlockArgument>(tensor)));
  }
  if (depth >= kMostDepth || symbolDims.size() > kMostSymbols)
    return unknown(op, "it is behind more than 64 ops, or more than 16 sizes");
  auto key = std::make_pair(tensor, AffineMap::get(kMostDims, kMostSymbols + 8, index, context));
  if (auto known = memo.find(key); known != memo.end())
    return known->second;
  if (++steps > kMostSteps)
    return unknown(op, "it takes more than 4096 steps to get there");
  ++depth;
  Operation *outer = std::exchange(reader, op);
  Pieces pieces = read(tensor, index);
  reader = outer;
  --depth;
  memo[key] = pieces;
  return pieces;
}

Pieces IndexFunctions::read(Value tensor, const Index &index) {
  Operation *op = tensor.getDefiningOp();
  if (isa<ConstantOp>(op))
    return readConstant(tensor, index);
  if (auto iota = dyn_cast<IotaOp>(op)) {
    ElementRules rules(*this, op);
    Leaf leaf = rules.exactly(index[iota.getAxis()], elementOf(tensor));
    return leaf.kind == Leaf::Unknown ? unknown(op, "its type does not count that far exactly") : Pieces{Piece{{}, leaf}};
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
  SmallVector<Pieces> operands;
  for (Value operand : op->getOperands()) {
    std::optional<Index> own = broadcastIndex(index, dimsOf(operand), dimsOf(tensor));
    operands.push_back(own ? at(operand, *own) : unknown(op, kDims));
  }
  return ElementRules(*this, op).apply(operands);
}

Pieces IndexFunctions::readMovement(Operation *op, const Index &index) {
  return llvm::TypeSwitch<Operation *, Pieces>(op)
      .Case([&](BroadcastOp o) {
        std::optional<Index> own = broadcastIndex(index, dimsOf(o.getInput()), dimsOf(o.getResult()));
        return own ? at(o.getInput(), *own) : unknown(op, kDims);
      })
      .Case([&](TransposeOp o) {
        Index own(index.size());
        for (auto [axis, from] : llvm::enumerate(o.getPermutation()))
          own[from] = index[axis];
        return at(o.getInput(), own);
      })
      .Case([&](SliceOp o) { return readSlice(o, index); })
      .Case([&](ReshapeOp o) { return readReshape(o, index); })
      .Case([&](ConcatOp o) { return readConcat(o, index); })
      .Case([&](PadOp o) { return readPad(o, index); })
      .Case([&](GatherOp o) { return readGather(o, index); })
      .Case([&](ReduceOp o) { return readGreatest(o, index); })
      .Default([&](Operation *) { return unknown(op, "rules are not read through this op"); });
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

Pieces IndexFunctions::readSlice(SliceOp op, const Index &index) {
  Index own;
  for (auto [axis, start] : llvm::enumerate(op.getStartDims()))
    own.push_back(exprOf(start) + index[axis] * op.getSteps()[axis]);
  return at(op.getInput(), own);
}

/// Only axes of one element come and go.
Pieces IndexFunctions::readReshape(ReshapeOp op, const Index &index) {
  SmallVector<Dim> from = dimsOf(op.getInput()), to = dimsOf(op.getResult());
  Index own(from.size(), number(0));
  size_t axis = 0;
  for (auto [i, dim] : llvm::enumerate(to)) {
    if (dim.is(1))
      continue;
    while (axis < from.size() && from[axis].is(1))
      ++axis;
    if (axis == from.size() || !(from[axis] == dim))
      return unknown(op, "it joins or splits axes");
    own[axis++] = index[i];
  }
  for (; axis < from.size(); ++axis)
    if (!from[axis].is(1))
      return unknown(op, "it joins or splits axes");
  return at(op.getInput(), own);
}

Pieces IndexFunctions::readConcat(ConcatOp op, const Index &index) {
  Pieces result;
  AffineExpr begin = number(0);
  size_t axis = op.getAxis();
  for (Value part : op.getInputs()) {
    AffineExpr size = exprOf(dimOf(part, axis)), place = index[axis] - begin;
    Conditions inside;
    Index own = index;
    own[axis] = place;
    if (addCondition(inside, {place, false}, range(place)) &&
        addCondition(inside, {size - 1 - place, false}, range(size - 1 - place)))
      for (const Piece &piece : at(part, own))
        if (std::optional<Conditions> where = both(inside, piece.where))
          result.push_back({*where, piece.leaf});
    begin = begin + size;
  }
  return limited(std::move(result), op);
}

Pieces IndexFunctions::readPad(PadOp op, const Index &index) {
  if (op.getMode() != PadMode::constant || llvm::any_of(op.getInterior(), [](int64_t n) { return n != 0; }))
    return unknown(op, "it pads with something else than a constant");
  Pieces fill = at(op.getValue(), {}), result;
  Conditions inside; // of the axes so far
  Index own = index;
  for (auto [axis, low] : llvm::enumerate(op.getLowDims())) {
    own[axis] = index[axis] - exprOf(low);
    AffineExpr rest = exprOf(dimOf(op.getInput(), axis)) - 1 - own[axis];
    for (AffineExpr edge : {own[axis], rest}) {
      Conditions outside = inside;
      if (addCondition(outside, {-edge - 1, false}, range(-edge - 1)))
        result.push_back({outside, fill[0].leaf});
      if (!addCondition(inside, {edge, false}, range(edge)))
        return limited(std::move(result), op);
    }
  }
  for (const Piece &piece : at(op.getInput(), own))
    if (std::optional<Conditions> where = both(inside, piece.where))
      result.push_back({*where, piece.leaf});
  return limited(std::move(result), op);
}

/// Where the place that is picked is an expression that counts from the beginning.
Pieces IndexFunctions::readGather(GatherOp op, const Index &index) {
  size_t axis = op.getAxis(), count = dimsOf(op.getIndices()).size();
  Index picks(index.begin() + axis, index.begin() + axis + count);
  Pieces places = at(op.getIndices(), picks);
  if (places.size() == 1 && places[0].leaf.kind == Leaf::Unknown)
    return places;
  if (places.size() != 1 || places[0].leaf.kind != Leaf::Affine || range(places[0].leaf.affine).min < 0)
    return unknown(op, "where it reads is no expression that counts from the beginning");
  Index own(index.begin(), index.begin() + axis);
  own.push_back(places[0].leaf.affine);
  own.append(index.begin() + axis + count, index.end());
  return at(op.getData(), own);
}

/// Whether each row has an index along the axis that meets the conditions: its first, its last, or the row's own
/// number, counted from either end.
bool IndexFunctions::reaches(const Conditions &conditions, AffineDimExpr axis, Dim extent) const {
  SmallVector<AffineExpr> places{number(0)};
  for (unsigned dim = 0; dim < axis.getPosition(); ++dim)
    if (extents[dim] == extent)
      places.push_back(getAffineDimExpr(dim, context));
  if (std::optional<int64_t> size = extent.known(); size && *size > 0)
    places.push_back(number(*size - 1));
  return llvm::any_of(places, [&](AffineExpr place) {
    return llvm::all_of(conditions, [&](const Condition &condition) {
      Interval values = range(condition.expr.replace(axis, place));
      return values.min >= 0 && (!condition.isEq || values.max == 0);
    });
  });
}

/// The greatest number along one axis, where each row is seen to have it. An axis without elements has none, unless it
/// is as long as the space: there is no index to ask for then.
Pieces IndexFunctions::readGreatest(ReduceOp op, const Index &index) {
  SmallVector<Dim> dims = dimsOf(op.getInput());
  if (op.getKind() != Reduction::max || op.getAxes().size() != 1 || dimRanges.size() >= kMostDims)
    return unknown(op, "rules are not read through this op");
  size_t axis = op.getAxes()[0];
  if (range(exprOf(dims[axis])).min < 1 && !llvm::is_contained(extents, dims[axis]))
    return unknown(op, "its axis may have no elements");
  auto fresh = cast<AffineDimExpr>(getAffineDimExpr(dimRanges.size(), context));
  Index own = index;
  if (op.getKeepDims())
    own[axis] = fresh;
  else
    own.insert(own.begin() + axis, fresh);
  extents.push_back(dims[axis]);
  dimRanges.push_back({0, std::max<int64_t>(range(exprOf(dims[axis])).max - 1, 0)});
  Pieces pieces = at(op.getInput(), own);
  std::optional<Leaf> greatest;
  if (llvm::all_of(pieces, [](const Piece &piece) { return piece.leaf.kind == Leaf::Number; })) {
    double most = pieces[0].leaf.number;
    for (const Piece &piece : pieces)
      most = std::max(most, piece.leaf.number);
    for (const Piece &piece : pieces)
      if (piece.leaf.number == most && reaches(piece.where, fresh, dims[axis]))
        greatest = piece.leaf;
  }
  extents.pop_back();
  dimRanges.pop_back();
  memo.clear(); // the dim is another one next time
  return greatest ? Pieces{Piece{{}, *greatest}} : unknown(op, "not each row is seen to hold the greatest number");
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

Pieces IndexFunctions::readConstant(Value value, const Index &index) {
  Operation *op = value.getDefiningOp();
  std::optional<Tensor> tensor = hostFormOf(value.getType()) ? constantTensor(value) : std::nullopt;
  constexpr int64_t most = int64_t(1) << 30;
  if (!tensor || tensor->numElements() == 0 || tensor->numElements() > most || dtypeBits(tensor->dtype()) < 8)
    return unknown(op, "the constant is empty, larger than 2^30 elements, or of a type that is not looked at");
  SmallVector<size_t> axes; // that have elements
  for (auto [axis, dim] : llvm::enumerate(tensor->shape()))
    if (dim > 1)
      axes.push_back(axis);
  if (axes.empty())
    return {Piece{{}, elementLeaf(*tensor, 0, context)}};
  if (axes.size() > 2)
    return unknown(op, "the constant has more than two axes");
  int64_t columns = tensor->shape()[axes.back()], rows = tensor->numElements() / columns;
  bool isInt = !isFloat(tensor->dtype()) && tensor->dtype() != DType::Bool;
  if (isInt && axes.size() == 1)
    if (std::optional<int64_t> step = stepAlong(*tensor, columns, 1))
      return {Piece{{}, Leaf::of(index[axes[0]] * *step + tensor->asInt(0))}};
  if (isInt)
    return unknown(op, "the constant's integers do not grow by equal steps");
  AffineExpr row = axes.size() == 2 ? index[axes[0]] : number(0);
  std::optional<Pieces> pieces = readTwoValues(*tensor, rows, columns, row, index[axes.back()]);
  if (!pieces)
    return unknown(op, "the constant is not two values, with one run of one of them in each row between ends that are "
                       "fixed or move by 1 a row");
  runsOfConstants = true;
  Pieces kept;
  for (const Piece &piece : *pieces)
    if (std::optional<Conditions> where = both({}, piece.where))
      kept.push_back({*where, piece.leaf});
  return limited(std::move(kept), op);
}
