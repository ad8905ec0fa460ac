//===- Loops.cpp - loop nests of fused kernels --------------------------------===//

#include "Loops.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/masks/Where.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <numeric>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Joining axes
//===----------------------------------------------------------------------===//

namespace {

/// Decides whether axes `axis` and `axis + 1` of a value may be iterated as one.
class Joiner {
public:
  explicit Joiner(ArrayRef<Value> leaves) : leaves(leaves) {}

  bool joins(Value value, unsigned axis) {
    ArrayRef<int64_t> shape = shapeOf(value);
    if (shape[axis] == 1 && shape[axis + 1] == 1)
      return true;
    if (llvm::is_contained(leaves, value))
      return true;
    if (mlir::isa<BlockArgument>(value) || mlir::isa<dmir::ConstantOp>(value.getDefiningOp()))
      return joinsInMemory(typeOf(value), axis);
    if (!seen.insert({value, axis}).second)
      return true; // decided by the first visit
    Operation *op = value.getDefiningOp();
    if (mlir::isa<dmir::MaskOp>(op)) // asks for each index of its own
      return false;
    if (op->hasTrait<dmir::Elementwise>() || mlir::isa<dmir::BroadcastOp, dmir::RelayoutOp>(op))
      return llvm::all_of(op->getOperands(),
                          [&](Value operand) { return joinsAligned(operand, dmir::dimsOf(value), axis); });
    return llvm::TypeSwitch<Operation *, bool>(op)
        .Case([&](dmir::TransposeOp o) {
          ArrayRef<int64_t> p = o.getPermutation();
          return p[axis + 1] == p[axis] + 1 && joins(o.getInput(), p[axis]);
        })
        .Case([&](dmir::SliceOp o) {
          return o.getSteps()[axis] == 1 && o.getSteps()[axis + 1] == 1 && whole(o, axis + 1) &&
                 joins(o.getInput(), axis);
        })
        .Case([&](dmir::ConcatOp o) {
          return !touches(o.getAxis(), axis) && llvm::all_of(o.getInputs(), [&](Value v) { return joins(v, axis); });
        })
        .Case([&](dmir::PadOp o) {
          auto plain = [&](unsigned a) { return !o.getLow()[a] && !o.getHigh()[a] && !o.getInterior()[a]; };
          return plain(axis) && plain(axis + 1) && joins(o.getInput(), axis);
        })
        .Case([&](dmir::GatherOp o) { return joinsGather(o, axis); })
        .Default([](Operation *) { return false; });
  }

private:
  static bool touches(int64_t at, unsigned axis) { return at == axis || at == axis + 1; }
  static bool whole(dmir::SliceOp o, unsigned axis) {
    return o.getStarts()[axis] == 0 && o.getSizeDims()[axis] == dmir::dimOf(o.getInput(), axis);
  }
  static bool joinsInMemory(RankedTensorType type, unsigned axis) {
    auto blocked = dyn_cast_or_null<dmir::BlockedAttr>(dmir::layoutOf(type));
    return !blocked || !touches(blocked.getAxis(), axis);
  }
  /// An operand broadcast to `shape`: it has both axes whole, or neither.
  bool joinsAligned(Value operand, ArrayRef<Dim> shape, unsigned axis) {
    SmallVector<Dim> own = dmir::dimsOf(operand);
    int64_t missing = shape.size() - own.size(), at = static_cast<int64_t>(axis) - missing;
    Dim outer = at < 0 ? Dim(1) : own[at], inner = at + 1 < 0 ? Dim(1) : own[at + 1];
    if (outer.is(1) && inner.is(1))
      return true;
    return at >= 0 && outer == shape[axis] && inner == shape[axis + 1] && joins(operand, at);
  }
  bool joinsGather(dmir::GatherOp o, unsigned axis) {
    unsigned at = o.getAxis(), count = shapeOf(o.getIndices()).size();
    if (axis + 1 < at)
      return joins(o.getData(), axis);
    if (axis >= at + count)
      return joins(o.getData(), axis - count + 1);
    return axis >= at && axis + 1 < at + count && joins(o.getIndices(), axis - at);
  }

  ArrayRef<Value> leaves;
  llvm::DenseSet<std::pair<Value, unsigned>> seen;
};

} // namespace

bool dmxc::kernels::axesJoin(Value value, unsigned axis, ArrayRef<Value> leaves) {
  return Joiner(leaves).joins(value, axis);
}

SmallVector<AxisGroup> dmxc::kernels::groupAxes(ArrayRef<Value> values, ArrayRef<Value> leaves,
                                                llvm::function_ref<bool(unsigned)> mayJoin) {
  SmallVector<AxisGroup> groups;
  SmallVector<Dim> shape = dmir::dimsOf(values.front());
  for (unsigned axis = 0; axis < shape.size(); ++axis) {
    auto joins = [&](Value value) { return axesJoin(value, axis - 1, leaves); };
    // Joining is decided for neighbours. Across an axis of size 1 it says nothing: an operand may have both neighbours
    // of the axis joined to it and yet be broadcast along one of them.
    bool adjacent = axis && (groups.back().size.is(1) || shape[axis].is(1) || groups.back().at + 1 == axis);
    if (adjacent && (!mayJoin || mayJoin(axis - 1)) && llvm::all_of(values, joins)) {
      groups.back().last = axis;
      groups.back().size *= shape[axis];
      // Indices of axes of size 1 count for nothing, so the position must not be put there.
      if (!shape[axis].is(1))
        groups.back().at = axis;
    } else {
      groups.push_back({axis, axis, shape[axis], axis});
    }
  }
  return groups;
}

std::optional<unsigned> dmxc::kernels::joinedAxis(ArrayRef<Value> values, ArrayRef<Value> leaves, unsigned first,
                                                  unsigned last) {
  auto inside = [&](unsigned axis) { return axis >= first && axis < last; };
  for (AxisGroup &group : groupAxes(values, leaves, inside))
    if (group.first == first && group.last == last)
      return group.at;
  return std::nullopt;
}

Indices dmxc::kernels::spread(ElementExpr &e, ArrayRef<AxisGroup> groups, ArrayRef<Index> positions, unsigned rank) {
  Indices index(rank, e.at(0));
  for (auto [group, position] : llvm::zip(groups, positions))
    if (rank) // a scalar's only group has no axis
      index[group.at] = position;
  return index;
}

//===----------------------------------------------------------------------===//
// Work items
//===----------------------------------------------------------------------===//

void dmxc::kernels::emitItems(KernelBuilder &b, const WorkPlan &plan,
                              llvm::function_ref<void(ArrayRef<Value>, Value, Value)> body) {
  size_t loops = plan.dims.size() - 1;
  SmallVector<Value> outer(loops);
  auto inside = [&](auto &&self, size_t axis, Value lo, Value hi) -> void {
    if (axis == loops)
      return body(outer, lo, hi);
    b.forLoop(b.idx(0), b.idx(plan.dims[axis]), b.idx(1), [&](Value i) {
      outer[axis] = i;
      self(self, axis + 1, lo, hi);
    });
  };
  auto item = [&](Value work) {
    Value lo = b.idx(0), hi = b.idx(plan.dims.back());
    if (plan.chunk) {
      Value runs = b.idx(Dim::ceilDiv(plan.dims.back(), plan.chunk));
      lo = b.mulC(b.rem(work, runs), plan.chunk);
      hi = b.minS(b.addC(lo, plan.chunk), hi);
      work = b.floorDiv(work, runs);
    }
    for (size_t axis = plan.split; axis-- > 0;) {
      outer[axis] = axis ? b.rem(work, b.idx(plan.dims[axis])) : work;
      if (axis)
        work = b.floorDiv(work, b.idx(plan.dims[axis]));
    }
    inside(inside, plan.split, lo, hi);
  };
  b.forItems(plan.items, item);
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

void dmxc::kernels::laneLoop(ElementExpr &e, Value lo, Value hi, int64_t lanes, unsigned bits, int64_t multiple,
                             llvm::function_ref<void(Index)> body) {
  KernelBuilder &b = e.builder();
  auto scalars = [&](Value from) {
    ElementExpr::Lanes one(e, 1);
    b.forLoop(from, hi, b.idx(1), [&](Value i) { body(e.at(i)); });
  };
  if (lanes == 1)
    return scalars(lo);
  Value count = b.sub(hi, lo);
  Value full = b.add(lo, b.mulC(b.floorDiv(count, b.idx(lanes)), lanes));
  {
    ElementExpr::Lanes all(e, lanes);
    b.forLoop(lo, full, b.idx(lanes), [&](Value i) { body(e.at(i, std::gcd(multiple, lanes), 1)); });
  }
  if (!b.processor().hasMasks(bits))
    return scalars(full);
  b.ifThen(b.cmp(arith::CmpIPredicate::slt, full, hi), [&] {
    ElementExpr::Lanes some(e, lanes, b.headMask(lanes, b.sub(hi, full)));
    body(e.at(full, std::gcd(multiple, lanes), 1));
  });
}

Value dmxc::kernels::combineLanes(KernelBuilder &b, Value vector, llvm::function_ref<Value(Value, Value)> combine) {
  auto type = dyn_cast<VectorType>(vector.getType());
  if (!type)
    return vector;
  int64_t half = type.getNumElements() / 2;
  if (half == 1)
    return combine(vector::ExtractOp::create(b, vector, 0), vector::ExtractOp::create(b, vector, 1));
  Value low = b.narrowed(vector, half);
  Value high = vector::ExtractStridedSliceOp::create(b, vector, ArrayRef<int64_t>{half}, ArrayRef<int64_t>{half},
                                                     ArrayRef<int64_t>{1});
  return combineLanes(b, combine(low, high), combine);
}

/// Calls `visit` once for every value that `values` are computed from in the body, themselves included.
static void forEachValue(ArrayRef<Value> values, llvm::function_ref<void(Value)> visit) {
  SmallVector<Value> work(values.begin(), values.end());
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    visit(value);
    if (Operation *op = value.getDefiningOp())
      work.append(op->operand_begin(), op->operand_end());
  }
}

int64_t dmxc::kernels::chooseLanes(ArrayRef<Value> values, const Processor &processor, unsigned *narrowest) {
  unsigned widest = 8, memory = 64;
  bool has32 = false, packed = false;
  forEachValue(values, [&](Value value) {
    Type element = elementOf(value);
    unsigned bits = element.getIntOrFloatBitWidth();
    memory = std::min(memory, std::max(bits, 8u));
    packed |= isPacked(element);
    if (dmir::elementsOf(value.getType()).is(1))
      return;
    if (mlir::isa<FloatType>(element))
      bits = std::max(bits, 32u);
    has32 |= bits == 32;
    widest = std::max(widest, bits);
  });
  if (narrowest)
    *narrowest = memory;
  // Of one element there is one lane: its type did not count, and a vector of another width would outgrow its scratch.
  bool single = llvm::all_of(values, [](Value value) { return dmir::elementsOf(value.getType()).is(1); });
  return packed || single ? 1 : processor.lanes(widest == 64 && has32 ? 32 : widest);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

ResultWriter::ResultWriter(ElementExpr &e, const RegionBody &body) : e(e), body(body) {
  Value rootResult = body.root ? body.root->getResult(0) : Value();
  for (Value result : body.results) {
    Value value = result;
    if (rootResult)
      while (value != rootResult &&
             mlir::isa_and_nonnull<dmir::ReshapeOp, dmir::TransposeOp, dmir::RelayoutOp>(value.getDefiningOp())) {
        moves |= !mlir::isa<dmir::RelayoutOp>(value.getDefiningOp());
        value = value.getDefiningOp()->getOperand(0);
      }
    computed.push_back(value);
  }
}

/// Index in `result` of the element that has `index` in `from`, of which it is a chain of moves.
static Indices pushIndex(ElementExpr &e, Value result, Value from, ArrayRef<Index> index) {
  if (result == from)
    return Indices(index.begin(), index.end());
  Operation *op = result.getDefiningOp();
  Indices before = pushIndex(e, op->getOperand(0), from, index);
  if (auto transpose = dyn_cast<dmir::TransposeOp>(op)) {
    Indices after;
    for (int64_t axis : transpose.getPermutation())
      after.push_back(before[axis]);
    return after;
  }
  if (mlir::isa<dmir::ReshapeOp>(op))
    return reshapeIndex(e, dmir::dimsOf(op->getOperand(0)), dmir::dimsOf(result), before);
  return before;
}

SmallVector<Value> ResultWriter::evaluate(ArrayRef<Index> index) {
  SmallVector<Value> values;
  for (Value value : computed)
    values.push_back(e.evaluate(value, index));
  return values;
}

void ResultWriter::store(ArrayRef<Value> evaluated, ArrayRef<Index> index) {
  unsigned first = body.block->getNumArguments();
  for (auto [i, value] : llvm::enumerate(evaluated))
    e.store(value, e.builder().buffer(first + i), body.resultType(i),
            pushIndex(e, body.results[i], computed[i], index));
}

void ResultWriter::write(ArrayRef<Index> index) {
  // All values before the first store, which may overwrite an operand.
  store(evaluate(index), index);
  e.forget();
}
