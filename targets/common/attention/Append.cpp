//===- Append.cpp - rows put into a tensor that has room for them -------------===//
//
// concat(x[.. at], rows, x[at + n ..]) is x with other rows in one place. Where the result has x's buffer, these rows
// are all that is written: a cache that grows.
//
//===----------------------------------------------------------------------===//

#include "Append.h"

#include "targets/common/roots/Loops.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Lengths.h"
#include "dmxc/Target/TargetBackend.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

static constexpr StringLiteral kAppend = "append";

/// Whether a slice takes all of its operand but along `axis`, and there from `start` on.
static bool takesFrom(dmir::SliceOp slice, size_t axis, Dim start) {
  SmallVector<Dim> from = dmir::dimsOf(slice.getInput()), to = dmir::dimsOf(slice.getResult()),
                   starts = slice.getStartDims();
  for (size_t i = 0; i < from.size(); ++i)
    if (slice.getSteps()[i] != 1 || !(starts[i] == (i == axis ? start : Dim(0))) || (i != axis && from[i] != to[i]))
      return false;
  return true;
}

std::optional<Append> kernels::matchAppend(Operation *op) {
  auto concat = dyn_cast_or_null<dmir::ConcatOp>(op);
  if (!concat || concat.getInputs().size() != 3)
    return std::nullopt;
  Append found{concat, {}, concat.getInputs()[1], concat.getAxis(), 0};
  auto before = concat.getInputs()[0].getDefiningOp<dmir::SliceOp>();
  auto after = concat.getInputs()[2].getDefiningOp<dmir::SliceOp>();
  if (!before || !after || before.getInput() != after.getInput() ||
      before.getInput().getType() != concat.getResult().getType() || dmir::layoutOf(concat.getResult().getType()))
    return std::nullopt;
  found.whole = before.getInput();
  found.at = dmir::dimOf(before.getResult(), static_cast<int64_t>(found.axis));
  Dim end = found.at + dmir::dimOf(found.rows, static_cast<int64_t>(found.axis));
  bool fits = takesFrom(before, found.axis, 0) && takesFrom(after, found.axis, end);
  return fits ? std::optional(found) : std::nullopt;
}

namespace {

class AppendEmitter {
public:
  AppendEmitter(KernelBuilder &b, const RegionBody &body, const Append &append, ArrayRef<AxisGroup> groups,
                const WorkPlan &work)
      : b(b), body(body), append(append), groups(groups), work(work), e(b, body.block),
        target(b.buffer(body.block->getNumArguments())) {}

  void emit() {
    copyWhole();
    int64_t rank = body.resultType().getRank();
    unsigned narrowest;
    int64_t lanes = chooseLanes(append.rows, b.processor(), &narrowest);
    emitItems(b, work, [&](ArrayRef<Value> outer, Value lo, Value hi) {
      laneLoop(e, lo, hi, lanes, narrowest, 64, [&](Index along) {
        SmallVector<Index> at;
        for (Value position : outer)
          at.push_back(e.at(position));
        at.push_back(along);
        Indices index = spread(e, groups, at, rank);
        Value value = e.evaluate(append.rows, index);
        index[append.axis] = e.add(index[append.axis], e.at(b.idx(append.at)));
        e.store(value, target, body.resultType(), index);
        e.forget();
      });
    });
  }

private:
  /// What is not replaced, by the first of the items, where the result has a buffer of its own.
  void copyWhole() {
    auto copy = [&] {
      Value end = b.idx(append.at + dmir::dimOf(append.rows, static_cast<int64_t>(append.axis)));
      copyRange(b.idx(0), b.idx(append.at));
      copyRange(end, b.idx(dmir::dimOf(append.whole, static_cast<int64_t>(append.axis))));
    };
    Value isFirst = b.cmp(arith::CmpIPredicate::eq, b.begin(), b.idx(0));
    Type i64 = b.getI64Type();
    Value from = LLVM::PtrToIntOp::create(b, i64, b.buffer(cast<BlockArgument>(append.whole).getArgNumber()));
    Value to = LLVM::PtrToIntOp::create(b, i64, target);
    Value isApart = b.cmp(arith::CmpIPredicate::ne, from, to);
    b.ifThen(arith::AndIOp::create(b, isFirst, isApart), copy);
  }

  /// Places [from, to) along the axis.
  void copyRange(Value from, Value to) {
    SmallVector<Dim> dims = dmir::dimsOf(append.whole);
    SmallVector<Index> at;
    auto nest = [&](auto &&self) -> void {
      size_t axis = at.size();
      bool isAxis = axis == append.axis;
      Value lo = isAxis ? from : b.idx(0), hi = isAxis ? to : b.idx(dims[axis]);
      if (axis + 1 < dims.size())
        return b.forLoop(lo, hi, b.idx(1), [&](Value i) {
          at.push_back(e.at(i));
          self(self);
          at.pop_back();
        });
      unsigned narrowest;
      int64_t lanes = isAxis ? 1 : chooseLanes(append.whole, b.processor(), &narrowest);
      auto put = [&](Index along) {
        Indices index(at.begin(), at.end());
        index.push_back(along);
        e.store(e.evaluate(append.whole, index), target, body.resultType(), index);
        e.forget();
      };
      if (lanes > 1)
        return laneLoop(e, lo, hi, lanes, narrowest, 64, put);
      b.forLoop(lo, hi, b.idx(1), [&](Value i) { put(e.at(i)); });
    };
    nest(nest);
  }

  KernelBuilder &b;
  const RegionBody &body;
  const Append &append;
  ArrayRef<AxisGroup> groups;
  const WorkPlan &work;
  ElementExpr e;
  Value target;
};

} // namespace

/// A state with a length, or a cache of the caller.
static bool hasRoom(const RegionBody &body, BlockArgument argument) {
  auto region = dyn_cast<dmir::RegionOp>(body.block->getParentOp());
  auto state = region ? dyn_cast<BlockArgument>(region.getInputs()[argument.getArgNumber()]) : BlockArgument();
  auto function = region ? region->getParentOfType<func::FuncOp>() : func::FuncOp();
  return state && function &&
         (function.getArgAttr(state.getArgNumber(), dmir::kLengthAttr) ||
          function.getArgAttr(state.getArgNumber(), dmir::kRoomAttr));
}

std::optional<Append> kernels::appendOf(const RegionBody &body, const PlanRequest &request) {
  if (body.root || body.results.size() != 1)
    return std::nullopt;
  std::optional<Append> found = matchAppend(body.results.front().getDefiningOp());
  auto argument = found ? dyn_cast<BlockArgument>(found->whole) : BlockArgument();
  if (!argument || !argument.hasNUses(2))
    return std::nullopt;
  auto algorithm = request.strategy ? request.strategy.getAs<StringAttr>(strategy::kAlgorithm) : StringAttr();
  bool isAppend = algorithm ? algorithm.getValue() == kAppend : hasRoom(body, argument);
  return isAppend ? found : std::nullopt;
}

KernelPlan kernels::planAppend(const RegionBody &body, const Append &append, const PlanRequest &request) {
  unsigned axis = append.axis;
  SmallVector<AxisGroup> groups = groupAxes(append.rows, {}, [&](unsigned a) { return a != axis && a + 1 != axis; });
  SmallVector<Dim> dims;
  for (const AxisGroup &group : groups)
    dims.push_back(group.size);
  double lanes = static_cast<double>(chooseLanes(append.rows, request.nominal));
  WorkPlan work = request.nominal.planWork(body.block, dims, 2 / lanes);
  KernelPlan plan(kAppend.str(), work);
  plan.inPlace = {cast<BlockArgument>(append.whole).getArgNumber()};
  int64_t bytes = elementOf(append.whole).getIntOrFloatBitWidth() / 8;
  plan.savedBytes = (dmir::elementsOf(append.whole.getType()) * 2 - dmir::elementsOf(append.rows.getType())) * bytes;
  plan.emit = [body, append, groups, work](KernelBuilder &b) { AppendEmitter(b, body, append, groups, work).emit(); };
  return plan;
}
