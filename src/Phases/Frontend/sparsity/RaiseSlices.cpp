//===- RaiseSlices.cpp - rows that nobody reads are not computed ----------===//
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Dialect/DMIR/masks/Where.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace dmxc {
#define GEN_PASS_DEF_RAISESLICES
#include "dmxc/Phases/Frontend/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

namespace {

/// The part that a slice takes of each axis.
struct Part {
  SmallVector<Dim> starts, sizes;
  SmallVector<int64_t> steps;

  explicit Part(SliceOp op) : starts(op.getStartDims()), sizes(op.getSizeDims()), steps(op.getSteps()) {}
  explicit Part(ArrayRef<Dim> whole) : starts(whole.size(), Dim(0)), sizes(whole), steps(whole.size(), 1) {}

  bool operator==(const Part &) const = default;
  bool isWhole(ArrayRef<Dim> dims, size_t axis) const {
    return starts[axis].is(0) && steps[axis] == 1 && sizes[axis] == dims[axis];
  }
  bool isWhole(ArrayRef<Dim> dims) const {
    return llvm::all_of(llvm::seq<size_t>(dims.size()), [&](size_t axis) { return isWhole(dims, axis); });
  }
  void take(size_t axis, const Part &from, size_t other) {
    starts[axis] = from.starts[other], sizes[axis] = from.sizes[other], steps[axis] = from.steps[other];
  }
};

/// A part of a value, asked of the op that makes it.
class Raise {
public:
  Raise(Value whole, const Part &part) : whole(whole), part(part), op(whole.getDefiningOp()) {}

  /// Whether nobody but `reader` and slices that take this part reads the value, and each element of it is made of the
  /// same part of the operands.
  bool isPossible(Operation *reader) const {
    auto isAlike = [&](Operation *user) {
      auto other = dyn_cast<SliceOp>(user);
      return user == reader || (other && Part(other) == part);
    };
    return op && op->getNumResults() == 1 && !layoutOf(whole.getType()) && !isa<BlockFpType>(elementOf(whole)) &&
           llvm::all_of(whole.getUsers(), isAlike) && partsOfOperands();
  }

  /// Whether, here or above, something is computed whose cost is in proportion to what is asked of it.
  bool pays(Operation *reader, unsigned depth = 0) const {
    constexpr unsigned most = 24;
    if (depth > most || !isPossible(reader))
      return false;
    auto parts = *partsOfOperands();
    return isa<MatMulOp, SoftmaxOp, NormalizeOp>(op) ||
           llvm::any_of(llvm::zip(op->getOperands(), parts), [&](auto pair) {
             auto &[operand, own] = pair;
             return !own.isWhole(dimsOf(operand)) && Raise(operand, own).pays(op, depth + 1);
           });
  }

  /// Computes the part alone; slices that took it go.
  void run() {
    auto parts = *partsOfOperands();
    OpBuilder b(op);
    SmallVector<Value> values;
    for (auto [operand, own] : llvm::zip(op->getOperands(), parts))
      values.push_back(sliced(b, operand, own));
    Operation *clone = b.clone(*op);
    clone->setOperands(values);
    if (auto mask = dyn_cast<MaskOp>(clone))
      shiftRule(mask);
    clone->getResult(0).setType(tensorOf(part.sizes, elementOf(whole)));
    for (Operation *user : llvm::make_early_inc_range(whole.getUsers())) {
      user->getResult(0).replaceAllUsesWith(clone->getResult(0));
      user->erase();
    }
    op->erase();
  }

private:
  using Parts = std::optional<SmallVector<Part>>;
  Parts partsOfOperands() const;

  /// Behind the value, so that slices of one part are one.
  Value sliced(OpBuilder &b, Value value, const Part &own) {
    if (own.isWhole(dimsOf(value)))
      return value;
    OpBuilder::InsertionGuard guard(b);
    if (Operation *definition = value.getDefiningOp())
      b.setInsertionPointAfter(definition);
    else
      b.setInsertionPointToStart(value.getParentBlock());
    for (Operation *user : value.getUsers())
      if (auto other = dyn_cast<SliceOp>(user); other && Part(other) == own) {
        other->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
        return other;
      }
    SmallVector<Dim> dynamic;
    SmallVector<int64_t> starts = splitDims(own.starts, dynamic), sizes = splitDims(own.sizes, dynamic);
    return SliceOp::create(b, op->getLoc(), tensorOf(own.sizes, elementOf(value)), value, starts, sizes, own.steps,
                           dimsAttr(b.getContext(), dynamic));
  }

  /// The rule of the part's own index.
  void shiftRule(MaskOp mask) const {
    SmallVector<AffineExpr> index;
    for (size_t axis = 0; axis < part.starts.size(); ++axis)
      index.push_back(getAffineDimExpr(axis, mask.getContext()) * part.steps[axis] + *part.starts[axis].known());
    SmallVector<Attribute> cases;
    for (IntegerSet set : mask.getKeep().getAsValueRange<IntegerSetAttr>()) {
      Conditions conditions;
      for (const Condition &condition : conditionsOf(set))
        conditions.push_back({condition.expr.replaceDims(index), condition.isEq});
      cases.push_back(IntegerSetAttr::get(caseOf(set.getNumDims(), set.getNumSymbols(), conditions)));
    }
    mask.setKeepAttr(ArrayAttr::get(mask.getContext(), cases));
  }

  /// Operands that broadcast are whole along their axes of one element.
  std::optional<Part> broadcastPart(Value operand) const {
    SmallVector<Dim> dims = dimsOf(operand), whole = dimsOf(this->whole);
    Part own{ArrayRef<Dim>(dims)};
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      size_t of = whole.size() - dims.size() + axis;
      if (dims[axis] == whole[of] && !dims[axis].is(1))
        own.take(axis, part, of);
      else if (!dims[axis].is(1))
        return std::nullopt;
    }
    return own;
  }

  Parts ofElements() const;
  Parts ofProduct(MatMulOp product) const;
  Parts ofReshape(ReshapeOp reshape) const;
  Parts alongOthers(ArrayRef<int64_t> axes) const;

  Value whole;
  Part part;
  Operation *op;
};

Raise::Parts Raise::ofElements() const {
  SmallVector<Part> parts;
  SmallVector<Dim> dims = dimsOf(whole);
  if (auto mask = dyn_cast<MaskOp>(op))
    for (size_t axis = 0; axis < dims.size(); ++axis)
      if (!part.starts[axis].known() ||
          (!mask.getValues().empty() && axis + 2 < dims.size() && !part.isWhole(dims, axis)) ||
          (mask.getTiles() && axis + 2 >= dims.size() && !part.isWhole(dims, axis)))
        return std::nullopt;
  for (Value operand : op->getOperands()) {
    std::optional<Part> own = broadcastPart(operand);
    if (!own)
      return std::nullopt;
    parts.push_back(*own);
  }
  return parts;
}

/// Rows and matrices, but no columns: weights stay whole, as they are packed once.
Raise::Parts Raise::ofProduct(MatMulOp product) const {
  SmallVector<Dim> all = dimsOf(product.getResult()), left = dimsOf(product.getLhs()), right = dimsOf(product.getRhs());
  size_t rank = all.size();
  if (!part.isWhole(all, rank - 1))
    return std::nullopt;
  Part ofLeft{ArrayRef<Dim>(left)}, ofRight{ArrayRef<Dim>(right)};
  ofLeft.take(left.size() - 2, part, rank - 2);
  for (size_t axis = 0; axis + 2 < rank; ++axis)
    for (auto [dims, own] :
         {std::make_pair(ArrayRef<Dim>(left), &ofLeft), std::make_pair(ArrayRef<Dim>(right), &ofRight)}) {
      size_t missing = rank - dims.size();
      if (axis < missing || dims[axis - missing].is(1))
        continue;
      if (!(dims[axis - missing] == all[axis]))
        return std::nullopt;
      own->take(axis - missing, part, axis);
    }
  return SmallVector<Part>{ofLeft, ofRight};
}

/// Axes that are cut stay the axes that they are, between others that are joined or split.
Raise::Parts Raise::ofReshape(ReshapeOp reshape) const {
  SmallVector<Dim> from = dimsOf(reshape.getInput()), to = dimsOf(reshape.getResult());
  Part own{ArrayRef<Dim>(from)};
  for (size_t axis = 0; axis < to.size(); ++axis) {
    if (part.isWhole(to, axis))
      continue;
    Dim before = dmir::product(ArrayRef<Dim>(to).take_front(axis)), prefix = 1;
    size_t other = 0;
    while (other < from.size() && !(prefix == before && from[other] == to[axis]))
      prefix = prefix * from[other++];
    if (other == from.size())
      return std::nullopt;
    own.take(other, part, axis);
  }
  return SmallVector<Part>{own};
}

Raise::Parts Raise::alongOthers(ArrayRef<int64_t> axes) const {
  SmallVector<Dim> dims = dimsOf(whole);
  if (llvm::any_of(axes, [&](int64_t axis) { return !part.isWhole(dims, axis); }))
    return std::nullopt;
  return SmallVector<Part>{part};
}

Raise::Parts Raise::partsOfOperands() const {
  return llvm::TypeSwitch<Operation *, Parts>(op)
      .Case([&](MatMulOp o) { return ofProduct(o); })
      .Case([&](SoftmaxOp o) { return alongOthers({static_cast<int64_t>(o.getAxis())}); })
      .Case([&](NormalizeOp o) { return alongOthers(o.getAxes()); })
      .Case([&](ReduceOp o) { return o.getKeepDims() ? alongOthers(o.getAxes()) : Parts(); })
      .Case([&](TransposeOp o) {
        Part own{ArrayRef<Dim>(dimsOf(o.getInput()))};
        for (auto [axis, from] : llvm::enumerate(o.getPermutation()))
          own.take(from, part, axis);
        return Parts(SmallVector<Part>{own});
      })
      .Case([&](ReshapeOp o) { return ofReshape(o); })
      .Default(
          [&](Operation *o) { return o->hasTrait<Elementwise>() || isa<BroadcastOp>(o) ? ofElements() : Parts(); });
}

struct RaiseSlices : dmxc::impl::RaiseSlicesBase<RaiseSlices> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    for (GatherOp pick : llvm::make_early_inc_range(getOperation().getOps<GatherOp>()))
      asSlice(pick);
    constexpr int most = 1 << 12; // ops that slices go by
    for (int steps = 0; steps < most && raiseOne(); ++steps)
      continue;
  }

private:
  bool raiseOne() {
    for (SliceOp slice : getOperation().getOps<SliceOp>()) {
      Raise raise(slice.getInput(), Part(slice));
      if (slice.use_empty() || !leavesHalf(dimsOf(slice.getInput()), Part(slice)) || !raise.pays(slice))
        continue;
      raise.run();
      return true;
    }
    return false;
  }

  /// Of a value that is there anyway a part of more than half saves little.
  static bool leavesHalf(ArrayRef<Dim> whole, const Part &part) {
    double share = 1;
    auto size = [](Dim dim) { return static_cast<double>(std::max<int64_t>(dim.valueOr(kNominalSize), 1)); };
    for (auto [all, own] : llvm::zip(whole, part.sizes))
      share *= size(own) / size(all);
    constexpr double most = 0.5;
    return share <= most;
  }

  /// A row that is picked by a known number, as the last one, is a slice.
  static void asSlice(GatherOp pick) {
    std::optional<Tensor> number = constantTensor(pick.getIndices());
    SmallVector<Dim> dims = dimsOf(pick.getData());
    if (!number || number->numElements() != 1)
      return;
    size_t axis = pick.getAxis();
    int64_t at = number->asInt(0);
    Part part{ArrayRef<Dim>(dims)};
    part.starts[axis] = at < 0 ? dims[axis] + at : Dim(at);
    part.sizes[axis] = 1;
    bool isInside =
        at < 0 ? !dims[axis].known() || *dims[axis].known() + at >= 0 : dims[axis].known() && at < *dims[axis].known();
    if (!isInside || !leavesHalf(dims, part) || !Raise(pick.getData(), part).pays(pick))
      return;
    OpBuilder b(pick);
    SmallVector<Dim> dynamic;
    SmallVector<int64_t> starts = splitDims(part.starts, dynamic), sizes = splitDims(part.sizes, dynamic);
    Value row = SliceOp::create(b, pick.getLoc(), tensorOf(part.sizes, elementOf(pick.getData())), pick.getData(),
                                starts, sizes, part.steps, dimsAttr(b.getContext(), dynamic));
    if (row.getType() != pick.getType())
      row = ReshapeOp::create(b, pick.getLoc(), pick.getType(), row);
    pick.getResult().replaceAllUsesWith(row);
    pick.erase();
  }
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createRaiseSlicesPass(const PhaseContext &) { return std::make_unique<RaiseSlices>(); }
} // namespace dmxc
