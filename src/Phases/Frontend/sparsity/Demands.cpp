//===- Demands.cpp - which elements outputs depend on -------------===//
#include "Facts.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;
using namespace dmxc::sparsity;

/// Parts that users demand of one value: of more, as of steps of a recurrence, all is demanded, for the complement of a
/// union takes time that doubles with each.
static constexpr size_t kMostParts = 2;

namespace {

/// The index space of an operand, and of axes of the result that it has not.
class Image {
public:
  Image(Operation *op, Value input, ArrayRef<Dim> fresh) : op(op), rank(typeOf(input).getRank()), dims(dimsOf(input)) {
    dims.append(fresh.begin(), fresh.end());
    space.emplace(op, dims);
    space->crossRegions();
  }

  AffineExpr dim(size_t axis) const { return getAffineDimExpr(axis, op->getContext()); }
  AffineExpr freshDim(size_t at) const { return dim(rank + at); }
  AffineExpr exprOf(Dim size) { return space->exprOf(size); }
  AffineExpr number(int64_t value) const { return getAffineConstantExpr(value, op->getContext()); }
  SmallVector<AffineExpr> own() const {
    SmallVector<AffineExpr> index;
    for (size_t axis = 0; axis < rank; ++axis)
      index.push_back(dim(axis));
    return index;
  }

  /// Elements of the operand that some element of the result is made of that its rule keeps. `index` is the result's;
  /// nothing where that is all, or too long.
  std::optional<Rule> of(const std::optional<Rule> &result, ArrayRef<AffineExpr> index, const Conditions &also = {}) {
    SmallVector<Conditions> cases, whole{{}};
    for (const Conditions &one : result ? space->casesAt(*result, index) : whole) {
      std::optional<Conditions> where = space->both(one, also);
      for (size_t axis = rank; where && axis < dims.size(); ++axis) {
        where = space->without(cast<AffineDimExpr>(dim(axis)), *where);
        if (!where)
          return std::nullopt;
        where = space->both({}, *where);
      }
      if (where && !llvm::is_contained(cases, *where))
        cases.push_back(*where);
    }
    return ruleOf(cases);
  }

  IndexFunctions &functions() { return *space; }

  /// A rule of these cases over the operand; nothing where they are all of it.
  std::optional<Rule> ruleOf(ArrayRef<Conditions> cases) {
    std::optional<SmallVector<Conditions>> rest = space->outside(cases);
    bool fits = rest && !rest->empty() && cases.size() <= kMostCases &&
                llvm::all_of(cases, [](const Conditions &c) { return c.size() <= kMostConditions; });
    if (!fits)
      return std::nullopt;
    std::optional<Rule> rule = space->ruleOf(cases);
    if (!rule)
      return std::nullopt;
    rule->rank = rank;
    for (IntegerSet &set : rule->cases)
      set = caseOf(rank, set.getNumSymbols(), conditionsOf(set));
    return rule;
  }

private:
  Operation *op;
  size_t rank;
  SmallVector<Dim> dims;
  std::optional<IndexFunctions> space;
};

} // namespace

//===----------------------------------------------------------------------===//
// What is demanded
//===----------------------------------------------------------------------===//

std::optional<Demand> Demands::of(Value value) const {
  auto found = rules.find(acrossRegions(value));
  bool isPart = found != rules.end() && found->second;
  return isPart ? std::optional(Demand{*found->second}) : std::nullopt;
}

void Demands::demand(Value value, const std::optional<Rule> &rule) {
  value = acrossRegions(value);
  auto [found, isNew] = rules.try_emplace(value, rule);
  if (isNew || !found->second)
    return;
  if (!rule) {
    found->second.reset();
    return;
  }
  // Both: of one space, so that sizes that both name are one symbol.
  IndexFunctions space(value.getParentBlock()->getParentOp(), dimsOf(value));
  space.crossRegions();
  SmallVector<AffineExpr> index;
  for (unsigned axis = 0; axis < rule->rank; ++axis)
    index.push_back(getAffineDimExpr(axis, value.getContext()));
  SmallVector<Conditions> cases = space.casesAt(*found->second, index);
  for (const Conditions &one : space.casesAt(*rule, index))
    if (!llvm::is_contained(cases, one))
      cases.push_back(one);
  std::optional<SmallVector<Conditions>> rest;
  if (cases.size() <= kMostParts)
    rest = space.outside(cases);
  found->second = rest && !rest->empty() ? space.ruleOf(cases) : std::nullopt;
}

void Demands::demandAll(Operation *op) {
  for (Value operand : op->getOperands())
    demand(operand, std::nullopt);
}

void Demands::read(func::FuncOp function) {
  for (Block &block : function.getBody())
    for (Operation &op : llvm::reverse(block))
      read(&op);
}

void Demands::read(Operation *op) {
  if (auto region = dyn_cast<RegionOp>(op)) {
    for (Operation &inner : llvm::reverse(region.getBlock()->without_terminator()))
      read(&inner);
    return;
  }
  auto isTensor = [](Type type) {
    return isa<RankedTensorType>(type) && !isa<BlockFpType>(cast<RankedTensorType>(type).getElementType());
  };
  auto found = op->getNumResults() == 1 ? rules.find(op->getResult(0)) : rules.end();
  bool reads =
      found != rules.end() && llvm::all_of(op->getOperandTypes(), isTensor) && isTensor(op->getResult(0).getType());
  if (!reads)
    return demandAll(op);
  auto isWhole = [&](Value value) {
    auto demanded = rules.find(acrossRegions(value));
    return demanded != rules.end() && !demanded->second;
  };
  if (llvm::all_of(op->getOperands(), isWhole)) // no more can be
    return;
  const std::optional<Rule> own = found->second;
  if (auto mask = dyn_cast<MaskOp>(op))
    return ofMask(mask, own);
  if (auto select = dyn_cast<SelectOp>(op))
    return ofSelect(select, own);
  if (auto slice = dyn_cast<SliceOp>(op))
    return ofSlice(slice, own);
  if (!own)
    return demandAll(op);
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](ConcatOp o) { ofConcat(o, *own); })
      .Case([&](MatMulOp o) { ofProduct(o, *own); })
      .Case([&](SoftmaxOp o) { along(o, {static_cast<int64_t>(o.getAxis())}, *own, true); })
      .Case([&](NormalizeOp o) { along(o, o.getAxes(), *own, true); })
      .Case([&](ReduceOp o) { along(o, o.getAxes(), *own, o.getKeepDims()); })
      .Case([&](TransposeOp o) {
        Image image(o, o.getInput(), {});
        SmallVector<AffineExpr> index;
        for (int64_t from : o.getPermutation())
          index.push_back(image.dim(from));
        demand(o.getInput(), image.of(own, index));
      })
      .Case([&](ReshapeOp o) {
        Image image(o, o.getInput(), {});
        auto index = reshapedIndex(dimsOf(o.getResult()), dimsOf(o.getInput()), image.own());
        demand(o.getInput(), index && !index->empty() ? image.of(own, *index) : std::nullopt);
      })
      .Default([&](Operation *o) {
        if (o->hasTrait<Elementwise>() || isa<BroadcastOp>(o))
          ofElements(o, *own);
        else
          demandAll(o);
      });
}

/// Operands that broadcast are read wherever some element along their axes is.
void Demands::ofElements(Operation *op, const Rule &own) {
  SmallVector<Dim> whole = dimsOf(op->getResult(0));
  for (Value operand : op->getOperands()) {
    SmallVector<Dim> dims = dimsOf(operand), fresh;
    size_t missing = whole.size() - dims.size();
    SmallVector<bool> spreads;
    for (size_t axis = 0; axis < whole.size(); ++axis) {
      spreads.push_back(axis < missing || !(dims[axis - missing] == whole[axis]));
      if (spreads.back())
        fresh.push_back(whole[axis]);
    }
    Image image(op, operand, fresh);
    SmallVector<AffineExpr> index;
    size_t next = 0;
    for (size_t axis = 0; axis < whole.size(); ++axis)
      index.push_back(spreads[axis] ? image.freshDim(next++) : image.dim(axis - missing));
    demand(operand, image.of(own, index));
  }
}

void Demands::ofMask(MaskOp op, const std::optional<Rule> &own) {
  if (op.getAdds()) { // what it adds to is read everywhere
    for (Value operand : op->getOperands())
      demand(operand, operand == op.getInput() ? own : std::nullopt);
    return;
  }
  Image image(op, op.getInput(), {});
  SmallVector<Conditions> cases;
  for (const Conditions &kept : image.functions().casesAt(dmir::ruleOf(op), image.own()))
    for (const Conditions &one : own ? image.functions().casesAt(*own, image.own()) : SmallVector<Conditions>{{}})
      if (std::optional<Conditions> both = image.functions().both(kept, one))
        cases.push_back(*both);
  if (op.getLow())
    demand(op.getInput(), own);
  else
    demand(op.getInput(), image.ruleOf(cases));
  for (Value value : op.getValues())
    demand(value, std::nullopt);
}

/// Where a rule chooses, each side is read where it is chosen.
void Demands::ofSelect(SelectOp op, const std::optional<Rule> &own) {
  demand(op.getCondition(), std::nullopt);
  for (bool side : {true, false}) {
    Value operand = side ? op.getOnTrue() : op.getOnFalse();
    if (dimsOf(operand) != dimsOf(op.getResult())) {
      demand(operand, std::nullopt);
      continue;
    }
    Image image(op, operand, {});
    SmallVector<Conditions> cases;
    for (const Piece &piece : image.functions().ofBroadcast(op.getCondition()))
      if (!piece.leaf.isNumber(side ? 0 : 1))
        for (const Conditions &one : own ? image.functions().casesAt(*own, image.own()) : SmallVector<Conditions>{{}})
          if (std::optional<Conditions> both = image.functions().both(piece.where, one))
            cases.push_back(*both);
    demand(operand, image.ruleOf(cases));
  }
}

void Demands::ofSlice(SliceOp op, const std::optional<Rule> &own) {
  Image image(op, op.getInput(), {});
  SmallVector<AffineExpr> index;
  Conditions inside;
  SmallVector<Dim> sizes = op.getSizeDims();
  for (auto [axis, start] : llvm::enumerate(op.getStartDims())) {
    int64_t step = op.getSteps()[axis], by = std::abs(step);
    AffineExpr place = (image.dim(axis) - image.exprOf(start)) * (step < 0 ? -1 : 1);
    index.push_back(by == 1 ? place : place.floorDiv(by));
    inside.push_back({place, false});
    inside.push_back({(image.exprOf(sizes[axis]) - 1) * by - place, false});
    std::optional<int64_t> from = start.known();
    if (by > 1 && from) // the same rest, written as other slices of the tensor have it
      inside.push_back({image.dim(axis) % by - *from % by, true});
    else if (by > 1)
      inside.push_back({place % by, true});
  }
  demand(op.getInput(), image.of(own, index, inside));
}

void Demands::ofConcat(ConcatOp op, const Rule &own) {
  Dim begin = 0;
  for (Value part : op.getInputs()) {
    Image image(op, part, {});
    SmallVector<AffineExpr> index = image.own();
    index[op.getAxis()] = index[op.getAxis()] + image.exprOf(begin);
    demand(part, image.of(own, index));
    begin = begin + dimOf(part, op.getAxis());
  }
}

/// Rows of the left operand and columns of the right one that the result is demanded of, whatever their k.
void Demands::ofProduct(MatMulOp op, const Rule &own) {
  SmallVector<Dim> whole = dimsOf(op.getResult());
  size_t rank = whole.size();
  for (bool left : {true, false}) {
    Value operand = left ? op.getLhs() : op.getRhs();
    SmallVector<Dim> dims = dimsOf(operand), fresh;
    size_t missing = rank - dims.size();
    auto isOwn = [&](size_t axis) {
      return axis + 2 < rank ? axis >= missing && dims[axis - missing] == whole[axis] : (axis + 2 == rank) == left;
    };
    for (size_t axis = 0; axis < rank; ++axis)
      if (!isOwn(axis))
        fresh.push_back(whole[axis]);
    Image image(op, operand, fresh);
    SmallVector<AffineExpr> index;
    size_t next = 0;
    for (size_t axis = 0; axis < rank; ++axis)
      index.push_back(isOwn(axis) ? image.dim(axis - missing) : image.freshDim(next++));
    demand(operand, image.of(own, index));
  }
}

/// An element is made of all along the axes.
void Demands::along(Operation *op, ArrayRef<int64_t> axes, const Rule &own, bool keepDims) {
  Value input = op->getOperand(0);
  SmallVector<Dim> dims = dimsOf(input), fresh;
  bool keepsExtents = !isa<ReduceOp>(op);
  for (int64_t axis : axes)
    fresh.push_back(keepsExtents ? dims[axis] : Dim(1));
  Image image(op, input, fresh);
  SmallVector<AffineExpr> index;
  size_t next = 0;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (!llvm::is_contained(axes, static_cast<int64_t>(axis)))
      index.push_back(image.dim(axis));
    else if (keepDims)
      index.push_back(image.freshDim(next++));
  }
  demand(input, image.of(own, index));
}
