//===- IndexMovement.cpp - ops that move elements, on pieces ---------------===//
#include "IndexRules.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

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
      .Case([&](ScatterNDOp o) { return readScatter(o, index); })
      .Default([&](Operation *) { return unknown(op, "rules are not read through this op"); });
}

Pieces IndexFunctions::readSlice(SliceOp op, const Index &index) {
  Index own;
  for (auto [axis, start] : llvm::enumerate(op.getStartDims()))
    own.push_back(exprOf(start) + index[axis] * op.getSteps()[axis]);
  return at(op.getInput(), own);
}

/// Axes of one element come and go; axes that are joined or split are of numbers, but for the outermost.
std::optional<SmallVector<AffineExpr, 4>> dmir::reshapedIndex(ArrayRef<Dim> from, ArrayRef<Dim> to,
                                                              ArrayRef<AffineExpr> index) {
  if (index.empty())
    return SmallVector<AffineExpr, 4>();
  AffineExpr zero = getAffineConstantExpr(0, index[0].getContext());
  SmallVector<AffineExpr, 4> own(from.size(), zero);
  size_t axis = 0, i = 0;
  auto skip = [](ArrayRef<Dim> dims, size_t &at) {
    while (at < dims.size() && dims[at].is(1))
      ++at;
  };
  for (skip(from, axis), skip(to, i); axis < from.size() && i < to.size(); skip(from, axis), skip(to, i)) {
    if (from[axis] == to[i]) {
      own[axis++] = index[i++];
      continue;
    }
    size_t inner = axis + 1, split = i + 1;
    skip(from, inner), skip(to, split);
    std::optional<int64_t> few = inner < from.size() ? from[inner].known() : std::nullopt,
                           more = split < to.size() ? to[split].known() : std::nullopt;
    if (few && *few > 0 && from[axis] * from[inner] == to[i]) {
      own[axis] = index[i].floorDiv(*few), own[inner] = index[i] % *few;
      axis = inner + 1, ++i;
    } else if (more && *more > 0 && to[i] * to[split] == from[axis]) {
      own[axis++] = index[i] * *more + index[split];
      i = split + 1;
    } else {
      return std::nullopt;
    }
  }
  return axis < from.size() || i < to.size() ? std::nullopt : std::optional(own);
}

Pieces IndexFunctions::readReshape(ReshapeOp op, const Index &index) {
  SmallVector<Dim> from = dimsOf(op.getInput()), to = dimsOf(op.getResult());
  if (index.empty())
    return at(op.getInput(), Index(from.size(), number(0)));
  std::optional<Index> own = reshapedIndex(from, to, index);
  if (own)
    return at(op.getInput(), *own);
  auto isOpen = [](Dim dim) { return !dim.isStatic(); };
  return unknown(op, llvm::any_of(from, isOpen) || llvm::any_of(to, isOpen) ? "it joins or splits axes of open sizes"
                                                                            : "it joins or splits more than two axes");
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

/// The tuple of indices, by fresh dims from `first` on for the axes before the last; nothing where it is no expression.
std::optional<IndexFunctions::Index> IndexFunctions::tuplesOf(ScatterNDOp op, unsigned first) {
  SmallVector<Dim> dims = dimsOf(op.getIndices());
  std::optional<int64_t> length = dims.pop_back_val().known();
  if (!length || first + dims.size() > kMostDims)
    return std::nullopt;
  Index place, tuple;
  for (auto [axis, dim] : llvm::enumerate(dims)) {
    place.push_back(dim.is(1) ? number(0) : getAffineDimExpr(first + axis, context));
    extents.push_back(dim);
    dimRanges.push_back({0, std::max<int64_t>(range(exprOf(dim)).max - 1, 0)});
  }
  place.push_back(number(0));
  for (int64_t i = 0; i < *length; ++i) {
    place.back() = number(i);
    Pieces pieces = at(op.getIndices(), place);
    if (pieces.size() == 1 && pieces[0].leaf.kind == Leaf::Affine && range(pieces[0].leaf.affine).min >= 0)
      tuple.push_back(pieces[0].leaf.affine);
  }
  extents.truncate(first);
  dimRanges.truncate(first);
  memo.clear(); // the dims are other ones next time
  return static_cast<int64_t>(tuple.size()) == *length ? std::optional(tuple) : std::nullopt;
}

/// A box of data that is replaced: each index of a tuple counts along an axis of the indices, or is the same in all.
Pieces IndexFunctions::readScatter(ScatterNDOp op, const Index &index) {
  constexpr const char *why = "its indices do not fill a box";
  unsigned first = dimRanges.size();
  SmallVector<Dim> dims = dimsOf(op.getIndices());
  std::optional<Index> tuple = op.getMode() == ScatterMode::replace ? tuplesOf(op, first) : std::nullopt;
  if (!tuple)
    return unknown(op, why);
  Index own(dims.size() - 1, number(0));
  Conditions box;
  SmallVector<bool> found(own.size(), false);
  for (auto [axis, expr] : llvm::enumerate(*tuple)) {
    std::optional<unsigned> counts;
    for (unsigned of = 0; of < own.size(); ++of)
      if (expr.isFunctionOfDim(first + of)) {
        if (counts || found[of])
          return unknown(op, why);
        counts = of;
      }
    AffineExpr rest = counts ? expr - getAffineDimExpr(first + *counts, context) : expr;
    if (counts && rest.isFunctionOfDim(first + *counts))
      return unknown(op, why);
    AffineExpr place = index[axis] - rest;
    if (!counts) {
      box.push_back({place, true});
      continue;
    }
    found[*counts] = true;
    own[*counts] = place;
    box.push_back({place, false});
    box.push_back({exprOf(dims[*counts]) - 1 - place, false});
  }
  for (auto [axis, is] : llvm::enumerate(found))
    if (!is && !dims[axis].is(1))
      return unknown(op, why);
  own.append(index.begin() + tuple->size(), index.end());
  Pieces result, data = at(op.getData(), index);
  Conditions inside;
  auto outside = [&](AffineExpr expr) { // what does not meet a condition, where those before are met
    Conditions where = inside;
    if (addCondition(where, {expr, false}, range(expr)))
      for (const Piece &piece : data)
        if (std::optional<Conditions> all = both(where, piece.where))
          result.push_back({*all, piece.leaf});
  };
  for (const Condition &condition : box) {
    outside(-condition.expr - 1);
    if (condition.isEq)
      outside(condition.expr - 1);
    if (!addCondition(inside, condition, range(condition.expr)))
      return limited(std::move(result), op);
  }
  for (const Piece &piece : at(op.getUpdates(), own))
    if (std::optional<Conditions> all = both(inside, piece.where))
      result.push_back({*all, piece.leaf});
  return limited(std::move(result), op);
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
