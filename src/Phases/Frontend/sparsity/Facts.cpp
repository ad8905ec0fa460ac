//===- Facts.cpp - what ops imply of their results ----------------===//
#include "Facts.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/masks/Tiles.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;
using namespace dmxc::sparsity;

static constexpr int64_t kMostRank = 6;

//===----------------------------------------------------------------------===//
// Facts of pieces
//===----------------------------------------------------------------------===//

/// Whether every format of floats holds a number as it is, so that no device has another one in its place.
static bool isExact(double number) {
  constexpr double most = 65504;
  if (std::isinf(number))
    return true;
  APFloat value(number);
  bool inexact = false;
  value.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &inexact);
  return !inexact && std::abs(number) <= most;
}

/// The cases as a fact; nothing where they keep all, or are too many.
static std::optional<Known> factOf(const IndexFunctions &space, ArrayRef<Conditions> cases, double value) {
  SmallVector<Conditions> own;
  for (const Conditions &one : cases)
    if (std::optional<Conditions> where = space.both({}, one); where && !llvm::is_contained(own, *where))
      own.push_back(*where);
  std::optional<Rule> rule = own.size() <= kMostCases ? space.ruleOf(own) : std::nullopt;
  bool fits =
      rule && llvm::all_of(rule->cases, [](IntegerSet set) { return set.getNumConstraints() <= kMostConditions; });
  return fits ? std::optional(Known{*rule, value}) : std::nullopt;
}

/// Zero before -inf before other numbers.
static std::optional<double> numberOf(ArrayRef<Piece> pieces) {
  std::optional<double> found;
  auto order = [](double x) { return x == 0 ? 0 : std::isinf(x) ? 1 : 2; };
  for (const Piece &piece : pieces) {
    auto whole =
        piece.leaf.kind == Leaf::Affine ? dyn_cast<AffineConstantExpr>(piece.leaf.affine) : AffineConstantExpr();
    if (piece.leaf.kind != Leaf::Number && !whole)
      continue;
    double number = whole ? static_cast<double>(whole.getValue()) : piece.leaf.number;
    if (isExact(number) && (!found || order(number) < order(*found)))
      found = number;
  }
  return found;
}

static std::optional<Known> factOf(const IndexFunctions &space, Pieces pieces) {
  std::optional<double> number = numberOf(pieces);
  if (!number)
    return std::nullopt;
  SmallVector<Conditions> cases;
  for (Piece &piece : pieces) {
    auto whole =
        piece.leaf.kind == Leaf::Affine ? dyn_cast<AffineConstantExpr>(piece.leaf.affine) : AffineConstantExpr();
    bool is = whole ? static_cast<double>(whole.getValue()) == *number : piece.leaf.isNumber(*number);
    piece.leaf = is ? Leaf::of(*number) : Leaf();
  }
  IndexFunctions::join(pieces);
  for (const Piece &piece : pieces)
    if (piece.leaf.kind == Leaf::Unknown)
      cases.push_back(piece.where);
  return factOf(space, cases, *number);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

std::optional<Known> Knowledge::of(Value value) const {
  auto found = facts.find(acrossRegions(value));
  return found == facts.end() ? std::nullopt : std::optional(found->second);
}

bool Knowledge::isWorthIt(Value value) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() >= 1 && type.getRank() <= kMostRank &&
         (isa<FloatType>(type.getElementType()) || type.getElementType().isSignlessInteger()) &&
         (!type.hasStaticShape() || type.getNumElements() >= std::max<int64_t>(least, 1));
}

void Knowledge::read(Block &block) {
  for (Operation &op : block)
    read(&op);
}

void Knowledge::read(Operation *op) {
  if (auto region = dyn_cast<RegionOp>(op))
    return read(*region.getBlock());
  if (op->getNumResults() != 1)
    return;
  Value result = op->getResult(0);
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    constexpr int64_t few = 64;
    auto type = typeOf(result);
    if (type.getNumElements() <= few)
      rules.insert(result);
    std::optional<Known> known = isWorthIt(result) ? knownOfConstant(result, least) : std::nullopt;
    if (known)
      facts[result] = *known;
    if (type.getElementType().isInteger(1) && isWorthIt(result)) // both of its values tell
      rules.insert(result), conditional.insert(result);
    return;
  }
  bool isMade = isa<IotaOp, DimTensorOp>(op) ||
                (op->getNumOperands() && (op->hasTrait<Elementwise>() || op->hasTrait<DataMovement>()) &&
                 !isa<MaskOp>(op) && llvm::all_of(op->getOperands(), [&](Value v) { return isRule(v); }));
  if (isMade) {
    rules.insert(result);
    if (isa<CompareOp>(op) ||
        llvm::any_of(op->getOperands(), [&](Value v) { return conditional.contains(acrossRegions(v)); }))
      conditional.insert(result);
    return;
  }
  if (isWorthIt(result))
    if (std::optional<Known> known = implied(op))
      facts[result] = *known;
}

std::optional<Known> Knowledge::implied(Operation *op) {
  bool concerns = isa<MaskOp>(op) || llvm::any_of(op->getOperands(), [&](Value value) {
                    Value source = acrossRegions(value);
                    return facts.contains(source) || conditional.contains(source);
                  });
  if (!concerns)
    return std::nullopt;
  return llvm::TypeSwitch<Operation *, std::optional<Known>>(op)
      .Case([&](SoftmaxOp o) { return ofSoftmax(o); })
      .Case([&](MatMulOp o) { return ofProduct(o); })
      .Case([&](ReduceOp o) { return ofReduction(o); })
      .Case([&](GatherOp o) {
        std::optional<Known> known = ofElements(o);
        return known ? known : ofGather(o);
      })
      .Default([&](Operation *o) {
        bool reads = o->hasTrait<Elementwise>() || o->hasTrait<DataMovement>();
        return reads && !isa<BitcastOp>(o) ? ofElements(o) : std::nullopt;
      });
}

std::optional<Known> Knowledge::ofElements(Operation *op) {
  if (isa<BlockFpType>(elementOf(op->getResult(0))))
    return std::nullopt;
  IndexFunctions space(op, dimsOf(op->getResult(0)));
  // Of values that are rules more is read than one number.
  space.believe([&](Value value) { return rules.contains(value) ? std::nullopt : of(value); });
  return factOf(space, space.of(op->getResult(0)));
}

/// Whether each row along an axis has an index that the rule keeps: its first, its last, or the row's own number. Of
/// the last axis of known sizes every row is looked at.
static bool everyRowKeeps(IndexFunctions &space, const Rule &rule, ArrayRef<Dim> dims, size_t axis,
                          MLIRContext *context) {
  SmallVector<AffineExpr> index;
  for (size_t at = 0; at < dims.size(); ++at)
    index.push_back(getAffineDimExpr(at, context));
  SmallVector<AffineExpr> places{getAffineConstantExpr(0, context), space.exprOf(dims[axis]) - 1};
  for (size_t other = 0; other < dims.size(); ++other)
    if (other != axis && space.range(space.exprOf(dims[axis]) - space.exprOf(dims[other])).min >= 0)
      places.push_back(index[other]);
  if (space.range(space.exprOf(dims[axis])).min < 1)
    return false;
  auto always = [&](const Conditions &conditions) {
    return llvm::any_of(places, [&](AffineExpr place) {
      return llvm::all_of(conditions, [&](const Condition &condition) {
        Interval values = space.range(condition.expr.replace(index[axis], place));
        return values.min >= 0 && (!condition.isEq || values.max == 0);
      });
    });
  };
  if (llvm::any_of(space.casesAt(rule, index), always))
    return true;
  std::optional<SmallVector<int64_t>> symbols = symbolsOf(rule);
  int64_t rows = 1;
  constexpr int64_t most = 1 << 16;
  for (Dim dim : dims.drop_back())
    rows = std::min<int64_t>(most + 1, rows * std::clamp<int64_t>(dim.valueOr(most + 1), 0, most + 1));
  if (!symbols || axis + 1 != dims.size() || !dims.back().known() || rows > most)
    return false;
  RowRuns runs(rule, *symbols, *dims.back().known());
  if (runs.byColumn())
    return false;
  SmallVector<int64_t> row(dims.size() - 1, 0);
  for (int64_t at = 0; at < rows; ++at) {
    int64_t rest = at;
    for (size_t i = row.size(); i-- > 0; rest /= *dims[i].known())
      row[i] = rest % *dims[i].known();
    if (runs.of(row).empty())
      return false;
  }
  return true;
}

std::optional<Known> Knowledge::ofSoftmax(SoftmaxOp op) {
  std::optional<Known> input = of(op.getInput());
  if (!input || op.getLog() || !std::isinf(input->value) || input->value > 0)
    return std::nullopt;
  SmallVector<Dim> dims = dimsOf(op.getInput());
  IndexFunctions space(op, dims);
  space.crossRegions();
  if (!everyRowKeeps(space, input->keep, dims, op.getAxis(), op.getContext()))
    return std::nullopt;
  return Known{input->keep, 0};
}

/// The cases of an operand's rule at an index; one that keeps all where nothing is known of it.
static SmallVector<Conditions> casesOf(IndexFunctions &space, const std::optional<Known> &known, ArrayRef<Dim> dims,
                                       ArrayRef<AffineExpr> index) {
  if (!known)
    return {Conditions()};
  SmallVector<AffineExpr> own(index);
  for (size_t axis = 0; axis < own.size(); ++axis)
    if (dims[axis].is(1))
      own[axis] = getAffineConstantExpr(0, own[axis].getContext());
  return space.casesAt(known->keep, own);
}

/// Zero where no k has both operands kept.
std::optional<Known> Knowledge::ofProduct(MatMulOp op) {
  std::optional<Known> lhs = of(op.getLhs()), rhs = of(op.getRhs());
  if (lhs && lhs->value != 0)
    lhs.reset();
  if (rhs && rhs->value != 0)
    rhs.reset();
  if ((!lhs && !rhs) || isa<BlockFpType>(elementOf(op.getResult())))
    return std::nullopt;
  MLIRContext *context = op.getContext();
  SmallVector<Dim> dims = dimsOf(op.getResult()), left = dimsOf(op.getLhs()), right = dimsOf(op.getRhs());
  size_t rank = dims.size();
  dims.push_back(left.back());
  IndexFunctions space(op, dims);
  space.crossRegions();
  auto dim = [&](size_t axis) { return getAffineDimExpr(axis, context); };
  SmallVector<AffineExpr> ofLeft, ofRight;
  for (size_t axis = 0; axis + 2 < left.size(); ++axis)
    ofLeft.push_back(dim(rank - left.size() + axis));
  for (size_t axis = 0; axis + 2 < right.size(); ++axis)
    ofRight.push_back(dim(rank - right.size() + axis));
  ofLeft.append({dim(rank - 2), dim(rank)});
  ofRight.append({dim(rank), dim(rank - 1)});
  SmallVector<Conditions> cases;
  for (const Conditions &a : casesOf(space, lhs, left, ofLeft))
    for (const Conditions &b : casesOf(space, rhs, right, ofRight)) {
      std::optional<Conditions> where = space.both(a, b);
      std::optional<Conditions> seen = where ? space.without(cast<AffineDimExpr>(dim(rank)), *where) : Conditions();
      if (!seen)
        return std::nullopt;
      if (where)
        cases.push_back(*seen);
    }
  std::optional<Known> known = factOf(space, cases, 0);
  if (known) // the space has one more axis
    for (IntegerSet &set : known->keep.cases)
      set = caseOf(rank, set.getNumSymbols(), conditionsOf(set));
  if (known)
    known->keep.rank = rank;
  return known;
}

/// The rule where it is asked for any index along axes, as a rule of what has no such axes, or 1 in their places.
static std::optional<Known> withoutAxes(Operation *op, Value input, const Known &known, ArrayRef<int64_t> axes,
                                        ArrayRef<AffineExpr> index, size_t rank) {
  SmallVector<Dim> dims = dimsOf(op->getResult(0));
  for (int64_t axis : axes)
    dims.push_back(dimOf(input, axis));
  IndexFunctions space(op, dims);
  space.crossRegions();
  SmallVector<Conditions> cases;
  for (Conditions one : space.casesAt(known.keep, index)) {
    for (size_t at = 0; at < axes.size(); ++at) {
      auto dim = cast<AffineDimExpr>(getAffineDimExpr(rank + at, op->getContext()));
      std::optional<Conditions> rest = space.without(dim, one);
      if (!rest)
        return std::nullopt;
      one = *rest;
    }
    cases.push_back(one);
  }
  std::optional<Known> result = factOf(space, cases, known.value);
  if (!result)
    return std::nullopt;
  for (IntegerSet &set : result->keep.cases)
    set = caseOf(rank, set.getNumSymbols(), conditionsOf(set));
  result->keep.rank = rank;
  return result;
}

std::optional<Known> Knowledge::ofReduction(ReduceOp op) {
  std::optional<Known> input = of(op.getInput());
  bool isSum = op.getKind() == Reduction::sum || op.getKind() == Reduction::mean,
       isExtremum = op.getKind() == Reduction::max || op.getKind() == Reduction::min;
  if (!input || !(isExtremum || (isSum && input->value == 0)))
    return std::nullopt;
  SmallVector<Dim> dims = dimsOf(op.getInput());
  size_t rank = typeOf(op.getResult()).getRank(), next = 0, fresh = rank;
  SmallVector<AffineExpr> index;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    bool isReduced = llvm::is_contained(op.getAxes(), axis);
    if (isReduced && dims[axis].valueOr(0) < 1)
      return std::nullopt; // of nothing there are other numbers
    index.push_back(getAffineDimExpr(isReduced ? fresh++ : next, op.getContext()));
    next += !isReduced || op.getKeepDims();
  }
  return withoutAxes(op, op.getInput(), *input, op.getAxes(), index, rank);
}

/// Of rows that a run picks what is known of all rows.
std::optional<Known> Knowledge::ofGather(GatherOp op) {
  std::optional<Known> data = of(op.getData());
  if (!data)
    return std::nullopt;
  size_t axis = op.getAxis(), count = typeOf(op.getIndices()).getRank(), rank = typeOf(op.getResult()).getRank();
  SmallVector<AffineExpr> index;
  for (size_t at = 0; at < static_cast<size_t>(typeOf(op.getData()).getRank()); ++at)
    index.push_back(getAffineDimExpr(at < axis ? at : at == axis ? rank : at + count - 1, op.getContext()));
  return withoutAxes(op, op.getData(), *data, {static_cast<int64_t>(axis)}, index, rank);
}
