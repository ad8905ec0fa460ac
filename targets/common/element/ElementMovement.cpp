//===- ElementMovement.cpp - fused data movement ------------------------------===//
//
// A data-movement op costs nothing but index arithmetic: the value of its result at an index is the
// value of its operand at another one. Positions outside an operand (padding, other parts of a
// concatenation) are not evaluated: whole-vector conditions branch, per-lane ones mask.
//
//===----------------------------------------------------------------------===//

#include "ElementExpr.h"
#include "targets/common/math/VectorMath.h"

#include "dmx/dmx_kernel.h"
#include "dmxc/Dialect/DMIR/Constraints.h"
#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Dialect/DMIR/GatherRule.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

namespace {

SmallVector<Dim> dimsOf(Value tensor) { return dmir::dimsOf(tensor); }

/// if (condition) then() else otherwise(), with a value.
Value choose(KernelBuilder &b, Value condition, Type type, llvm::function_ref<Value()> then,
             llvm::function_ref<Value()> otherwise) {
  if (auto known = KernelBuilder::constantOf(condition))
    return *known ? then() : otherwise();
  auto branch = scf::IfOp::create(b, TypeRange(type), condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, then());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, otherwise());
  return branch.getResult(0);
}

class Movement {
public:
  Movement(ElementExpr &e, ArrayRef<Index> index) : e(e), b(e.builder()), index(index.begin(), index.end()) {}

  Value evaluate(dmir::RelayoutOp op) { return e.evaluate(op.getInput(), index); }
  Value evaluate(dmir::BroadcastOp op) {
    return e.evaluate(op.getInput(), broadcastIndices(e, index, dimsOf(op.getInput()), dimsOf(op.getResult())));
  }
  Value evaluate(dmir::TransposeOp op) {
    Indices from(index.size());
    for (auto [i, axis] : llvm::enumerate(op.getPermutation()))
      from[axis] = index[i];
    return e.evaluate(op.getInput(), from);
  }
  Value evaluate(dmir::SliceOp op) {
    Indices from;
    for (auto [i, start, step] : llvm::zip(index, op.getStartDims(), op.getSteps()))
      from.push_back(e.addC(e.mulC(i, step), start));
    return e.evaluate(op.getInput(), from);
  }
  Value evaluate(dmir::ReshapeOp op);
  Value evaluate(dmir::IotaOp op);
  Value evaluate(dmir::DimTensorOp op);
  Value evaluate(dmir::PadOp op);
  Value evaluate(dmir::ConcatOp op) { return concatFrom(op, op.getInputs(), index[op.getAxis()]); }
  Value evaluate(dmir::GatherOp op);
  Value evaluate(dmir::GatherElementsOp op);
  Value evaluate(dmir::GatherNDOp op);
  Value evaluate(dmir::DequantizeOp op);

private:
  Type valueType(Value tensor) { return b.laneType(e.carried(getElementTypeOrSelf(tensor.getType())), e.lanes()); }
  Value concatFrom(dmir::ConcatOp op, ValueRange parts, Index along);
  Index padAxis(dmir::PadOp op, unsigned axis, Value &inside);
  Value insidePad(dmir::PadOp op, unsigned &along);
  Value evaluatePad(dmir::PadOp op, std::optional<unsigned> within);
  Value guarded(Value input, Value fill, ArrayRef<Index> from, Value scalarInside, Value laneInside);
  std::optional<Index> ruledIndex(dmir::GatherOp op);
  Index readIndex(Value tensor, ArrayRef<Index> at, Dim dim, int32_t failure = DMX_KERNEL_INDEX_OUT_OF_RANGE);
  Value readPicked(Value data, ArrayRef<Index> from, ArrayRef<Dim> picked);
  Value readBits(Value bytes, ArrayRef<Index> at, int64_t bits);

  ElementExpr &e;
  KernelBuilder &b;
  Indices index;
};

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

Value Movement::evaluate(dmir::ReshapeOp op) {
  return e.evaluate(op.getInput(), reshapeIndex(e, dimsOf(op.getResult()), dimsOf(op.getInput()), index));
}

Value Movement::evaluate(dmir::IotaOp op) {
  Type element = getElementTypeOrSelf(op.getType()), carried = e.carried(element);
  Value position = e.vectorOf(index[op.getAxis()]);
  if (auto floatType = dyn_cast<FloatType>(element)) {
    bool tiny = floatType.getWidth() == 8;
    auto wide = cast<FloatType>(tiny ? Type(b.getF32Type()) : element);
    return e.narrow(VectorMath(b, b.processor()).intToFloat(position, wide, false), element);
  }
  if (carried.getIntOrFloatBitWidth() < 64)
    position = arith::TruncIOp::create(b, b.laneType(carried, e.lanes()), position);
  return position;
}

Value Movement::evaluate(dmir::DimTensorOp op) {
  Value position = e.vectorOf(index[0]), result;
  for (auto [i, size] : llvm::enumerate(dmir::mixDims(op.getValues(), op.getDims()))) {
    Value value = b.splat(b.idx(size), e.lanes());
    Value here = b.cmp(arith::CmpIPredicate::eq, position, b.splat(b.idx(static_cast<int64_t>(i)), e.lanes()));
    result = result ? Value(arith::SelectOp::create(b, here, value, result)) : value;
  }
  return result ? result : b.constantInt(position.getType(), 0);
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

static Value both(KernelBuilder &b, Value x, Value y) {
  return x && y ? Value(b.createOrFold<arith::AndIOp>(x, y)) : x ? x : y;
}

/// input[from] where the conditions hold (null: always), else `fill` (a rank-0 tensor).
Value Movement::guarded(Value input, Value fill, ArrayRef<Index> from, Value scalarInside, Value laneInside) {
  auto readFill = [&] { return e.evaluate(fill, {}); };
  auto read = [&]() -> Value {
    if (!laneInside)
      return e.evaluate(input, from);
    Value outside = readFill(), value;
    {
      ElementExpr::Lanes masked(e, e.lanes(), both(b, e.mask(), laneInside));
      value = e.evaluate(input, from);
    }
    return arith::SelectOp::create(b, laneInside, value, outside);
  };
  return scalarInside ? choose(b, scalarInside, valueType(input), read, readFill) : read();
}

/// The operand's position for a padded axis; `inside` is null where every position has one.
Index Movement::padAxis(dmir::PadOp op, unsigned axis, Value &inside) {
  Dim low = op.getLowDims()[axis], high = op.getHighDims()[axis], dim = dimsOf(op.getInput())[axis];
  int64_t interior = op.getInterior()[axis];
  if (low.is(0) && high.is(0) && !interior)
    return index[axis];
  Index at = e.addC(index[axis], Dim(0) - low);
  at.multiple = 1; // lanes outside may be negative, of which divRem must not make use
  switch (op.getMode()) {
  case dmir::PadMode::constant: {
    if (!interior) {
      inside = e.inRange(at, 0, dim);
      return at;
    }
    // One element and its gap a step; none without elements.
    Dim extent = Dim::max(dim * (interior + 1) - interior, 0);
    inside = e.inRange(at, 0, extent);
    auto [quotient, rest] = e.divRem(e.clamp(at, 0, Dim::max(extent - 1, 0)), interior + 1);
    inside = both(b, inside, e.inRange(rest, 0, 1));
    return quotient;
  }
  case dmir::PadMode::edge:
    return e.clamp(at, 0, dim - 1);
  case dmir::PadMode::reflect: {
    // |at| below, 2 * (dim - 1) - at above: the largest of at and -at, then the smallest with the mirror.
    Value v = at.uniform() ? at.base : e.vectorOf(at);
    Value negated = arith::SubIOp::create(b, b.constantInt(v.getType(), 0), v);
    Value folded = arith::MaxSIOp::create(b, v, negated);
    Value most = b.idx(dim * 2 - 2);
    if (mlir::isa<VectorType>(v.getType()))
      most = b.splat(most, e.lanes());
    Value mirror = arith::SubIOp::create(b, most, folded);
    Value result = arith::MinSIOp::create(b, folded, mirror);
    return mlir::isa<VectorType>(v.getType()) ? Index{{}, 0, 1, result} : e.at(result);
  }
  case dmir::PadMode::wrap: {
    // Shifted by a multiple of dim that makes it non-negative.
    return e.divRem(e.addC(at, Dim::ceilDiv(low, dim) * dim), dim).second;
  }
  }
  llvm_unreachable("not a pad mode");
}

/// i1: no lane of a mirrored or repeated edge is beyond it; null where that is not asked. `along` is the axis of lanes.
Value Movement::insidePad(dmir::PadOp op, unsigned &along) {
  bool moves = op.getMode() == dmir::PadMode::edge || op.getMode() == dmir::PadMode::reflect;
  for (along = 0; moves && along < index.size(); ++along)
    if (index[along].stride == 1 && !index[along].vec &&
        !(op.getLowDims()[along].is(0) && op.getHighDims()[along].is(0))) {
      Value first = b.sub(index[along].base, b.idx(op.getLowDims()[along])), zero = b.idx(0);
      Value last = b.addC(first, e.lanes()), dim = b.idx(dimsOf(op.getInput())[along]);
      return both(b, b.cmp(arith::CmpIPredicate::sge, first, zero), b.cmp(arith::CmpIPredicate::sle, last, dim));
    }
  return {};
}

Value Movement::evaluate(dmir::PadOp op) {
  unsigned along;
  Value inside = insidePad(op, along);
  if (!inside)
    return evaluatePad(op, std::nullopt);
  // Most vectors are read as they lie.
  return choose(
      b, inside, valueType(op.getInput()), [&] { return evaluatePad(op, along); },
      [&] { return evaluatePad(op, std::nullopt); });
}

/// `within`: the axis of which no lane is beyond an edge.
Value Movement::evaluatePad(dmir::PadOp op, std::optional<unsigned> within) {
  Indices from;
  Value scalarInside, laneInside;
  for (unsigned axis = 0; axis < index.size(); ++axis) {
    Value inside;
    if (within == axis) {
      from.push_back(e.at(b.sub(index[axis].base, b.idx(op.getLowDims()[axis])), 1, 1));
      continue;
    }
    from.push_back(padAxis(op, axis, inside));
    if (!inside)
      continue;
    Value &side = mlir::isa<VectorType>(inside.getType()) ? laneInside : scalarInside;
    side = both(b, side, inside);
  }
  if (llvm::is_contained(shapeOf(op.getInput()), 0))
    return e.evaluate(op.getValue(), {});
  return guarded(op.getInput(), op.getValue(), from, scalarInside, laneInside);
}

/// The element `along` the axis of the parts that are left.
Value Movement::concatFrom(dmir::ConcatOp op, ValueRange parts, Index along) {
  constexpr size_t fewParts = 16; // are asked for one after the other; of more one half is ruled out at a time
  const unsigned axis = op.getAxis();
  if (along.uniform() && parts.size() > fewParts) {
    ValueRange low = parts.take_front(parts.size() / 2), high = parts.drop_front(parts.size() / 2);
    Dim size = 0;
    for (Value part : low)
      size += dimsOf(part)[axis];
    return choose(
        b, e.inRange(along, 0, size), valueType(op.getResult()), [&] { return concatFrom(op, low, along); },
        [&] { return concatFrom(op, high, e.addC(along, Dim(0) - size)); });
  }
  Value part = parts.front();
  Dim dim = dimsOf(part)[axis];
  Indices from(index);
  from[axis] = along;
  bool last = llvm::all_of(parts.drop_front(), [&](Value later) { return shapeOf(later)[axis] == 0; });
  // Lanes along the axis lie in one part together where vectors and parts are aligned to them.
  bool together = !along.vec && along.stride == 1 && along.multiple % e.lanes() == 0 &&
                  (last || (dim.known() && *dim.known() % e.lanes() == 0));
  bool isFirst = parts.size() == op.getInputs().size();
  if (last && (isFirst || along.uniform() || together))
    return e.evaluate(part, from);
  Index beyond = last ? along : e.addC(along, Dim(0) - dim);
  beyond.multiple = together ? e.lanes() : 1; // else lanes that belong to an earlier part are negative
  if (dim.is(0) && !last)
    return concatFrom(op, parts.drop_front(), beyond);
  Value inside = e.inRange(together ? e.at(along.base) : along, 0, dim);
  if (!mlir::isa<VectorType>(inside.getType()))
    return choose(
        b, inside, valueType(part), [&] { return e.evaluate(part, from); },
        [&] { return concatFrom(op, parts.drop_front(), beyond); });
  Value value;
  {
    ElementExpr::Lanes masked(e, e.lanes(), both(b, e.mask(), inside));
    value = e.evaluate(part, from);
  }
  if (last)
    return value;
  return arith::SelectOp::create(b, inside, value, concatFrom(op, parts.drop_front(), beyond));
}

//===----------------------------------------------------------------------===//
// Indices from tensors
//===----------------------------------------------------------------------===//

/// An element of an index tensor as a position on an axis of `dim`: negative ones count from the end,
/// those out of range fail the kernel with `failure` and read an element that exists.
Index Movement::readIndex(Value tensor, ArrayRef<Index> at, Dim dim, int32_t failure) {
  bool uniform = llvm::all_of(llvm::zip(at, shapeOf(tensor)),
                              [](auto pair) { return std::get<0>(pair).uniform() || std::get<1>(pair) == 1; });
  int64_t lanes = uniform ? 1 : e.lanes();
  ElementExpr::Lanes scope(e, lanes, uniform ? Value() : e.mask());
  Value raw = e.evaluate(tensor, at);
  Type i64 = b.laneType(b.getI64Type(), lanes);
  if (raw.getType() != i64)
    raw = arith::ExtSIOp::create(b, i64, raw);
  Value end = b.splat(b.idx(dim), lanes), zero = b.constantInt(i64, 0);
  Value negative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, raw, zero);
  Value wrapped = arith::SelectOp::create(b, negative, arith::AddIOp::create(b, raw, end), raw);
  Value outside = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, wrapped, end);
  e.failIf(outside, failure);
  Value safe = arith::SelectOp::create(b, outside, zero, wrapped);
  return lanes == 1 ? e.at(safe) : Index{{}, 0, 1, safe};
}

/// An element at indices that readIndex made for axes of `picked` elements: where one has none, no element exists.
Value Movement::readPicked(Value data, ArrayRef<Index> from, ArrayRef<Dim> picked) {
  Value filled = b.constantInt(b.getI1Type(), 1);
  for (Dim dim : picked) {
    // Bounds of symbols are the module's, of which a kernel knows nothing: its plan may not rest on them.
    if (dim.valueOr(0) > 0)
      continue;
    filled = both(b, filled, b.cmp(arith::CmpIPredicate::ne, b.idx(dim), b.idx(0)));
  }
  Type type = valueType(data);
  return choose(b, filled, type, [&] { return e.evaluate(data, from); }, [&] { return b.constantInt(type, 0); });
}

/// The position that is gathered, where it follows a rule and always exists.
std::optional<Index> Movement::ruledIndex(dmir::GatherOp op) {
  std::optional<dmir::GatherRule> rule = dmir::gatherRuleOf(op);
  if (!rule)
    return std::nullopt;
  Index number = e.divRem(index[op.getAxis()], rule->run).first;
  return e.addC(e.mulC(number, rule->step), rule->first);
}

Value Movement::evaluate(dmir::GatherOp op) {
  int64_t axis = op.getAxis(), count = shapeOf(op.getIndices()).size();
  Indices from(index.begin(), index.begin() + axis);
  if (std::optional<Index> ruled = ruledIndex(op)) {
    from.push_back(*ruled);
    from.append(index.begin() + axis + 1, index.end());
    return e.evaluate(op.getData(), from);
  }
  bool isRequirement = op->hasAttr(dmir::kRequirementAttr);
  from.push_back(readIndex(op.getIndices(), ArrayRef(index).slice(axis, count), dimsOf(op.getData())[axis],
                           isRequirement ? DMX_KERNEL_INVALID_ARGUMENT : DMX_KERNEL_INDEX_OUT_OF_RANGE));
  from.append(index.begin() + axis + count, index.end());
  return readPicked(op.getData(), from, dimsOf(op.getData())[axis]);
}

Value Movement::evaluate(dmir::GatherElementsOp op) {
  Indices from(index);
  Dim dim = dimsOf(op.getData())[op.getAxis()];
  from[op.getAxis()] = readIndex(op.getIndices(), index, dim);
  return readPicked(op.getData(), from, dim);
}

Value Movement::evaluate(dmir::GatherNDOp op) {
  ArrayRef<int64_t> tuples = shapeOf(op.getIndices());
  SmallVector<Dim> data = dimsOf(op.getData());
  int64_t batch = op.getBatchDims(), width = tuples.back(), lead = tuples.size() - 1;
  Indices from(index.begin(), index.begin() + batch);
  for (int64_t j = 0; j < width; ++j) {
    Indices at(index.begin(), index.begin() + lead);
    at.push_back(e.at(j));
    from.push_back(readIndex(op.getIndices(), at, data[batch + j]));
  }
  from.append(index.begin() + lead, index.end());
  return readPicked(op.getData(), from, ArrayRef<Dim>(data).slice(batch, width));
}

//===----------------------------------------------------------------------===//
// Integers of few bits
//===----------------------------------------------------------------------===//

/// An integer of `bits` bits, of which several lie in a byte along the last axis, as i32.
Value Movement::readBits(Value bytes, ArrayRef<Index> at, int64_t bits) {
  bool isSigned = !isUnsignedElement(getElementTypeOrSelf(bytes.getType()));
  Indices from(at);
  Value byte, shift;
  Type i32 = b.laneType(b.getI32Type(), e.lanes());
  if (bits < 8) {
    auto [place, inByte] = e.divRem(at.back(), 8 / bits);
    from.back() = place;
    shift = arith::TruncIOp::create(b, i32, e.vectorOf(e.mulC(inByte, bits)));
  }
  byte = arith::ExtUIOp::create(b, i32, e.evaluate(bytes, from));
  if (shift)
    byte = arith::ShRUIOp::create(b, byte, shift);
  Value unused = b.constantInt(i32, 32 - bits);
  Value high = arith::ShLIOp::create(b, byte, unused);
  return isSigned ? Value(arith::ShRSIOp::create(b, high, unused)) : Value(arith::ShRUIOp::create(b, high, unused));
}

Value Movement::evaluate(dmir::DequantizeOp op) {
  Type element = getElementTypeOrSelf(op.getType());
  auto wide = cast<FloatType>(e.computed(element));
  SmallVector<Dim> scales = dimsOf(op.getScale());
  Indices block;
  for (auto [axis, at] : llvm::enumerate(index)) {
    bool cut = axis == op.getAxis();
    block.push_back(scales[axis].is(1) ? e.at(0) : cut ? e.divRem(at, op.getBlock()).first : at);
  }
  auto toFloat = [&](Value integer) { return Value(arith::SIToFPOp::create(b, b.laneType(wide, e.lanes()), integer)); };
  Value q = readBits(op.getInput(), index, op.getBits());
  if (op.getZero())
    q = arith::SubIOp::create(b, q, b.constantInt(q.getType(), static_cast<int64_t>(op.getZero())));
  Value zero = op.getZeroPoints(), x;
  if (zero && !mlir::isa<FloatType>(getElementTypeOrSelf(zero.getType())))
    q = arith::SubIOp::create(b, q, readBits(zero, block, op.getBits()));
  x = toFloat(q);
  if (zero && mlir::isa<FloatType>(getElementTypeOrSelf(zero.getType())))
    x = arith::SubFOp::create(b, x, e.evaluateWide(zero, block));
  return e.narrow(arith::MulFOp::create(b, x, e.evaluateWide(op.getScale(), block)), element);
}

} // namespace

std::pair<size_t, size_t> dmxc::kernels::equalRuns(ArrayRef<Dim> to, ArrayRef<Dim> from, size_t i, size_t j) {
  for (size_t length = 2; i + j + length <= to.size() + from.size(); ++length)
    for (size_t iEnd = i + 1; iEnd < i + length && iEnd <= to.size(); ++iEnd) {
      size_t jEnd = j + length - (iEnd - i);
      if (jEnd <= from.size() && dmir::product(to.slice(i, iEnd - i)) == dmir::product(from.slice(j, jEnd - j)))
        return {iEnd, jEnd};
    }
  return {to.size(), from.size()};
}

Indices dmxc::kernels::reshapeIndex(ElementExpr &e, ArrayRef<Dim> to, ArrayRef<Dim> from, ArrayRef<Index> index) {
  Indices source(from.size(), e.at(0));
  // Shapes are cut into the shortest runs of axes with equal element counts; each run is linearised and delinearised on
  // its own, so untouched axes keep their lanes.
  size_t i = 0, j = 0;
  while (i < to.size() && j < from.size()) {
    auto [iEnd, jEnd] = equalRuns(to, from, i, j);
    Index linear = e.at(0);
    for (size_t k = i; k < iEnd; ++k)
      linear = e.add(e.mulC(linear, to[k]), to[k].is(1) ? e.at(0) : index[k]);
    for (size_t k = jEnd; k-- > j + 1;)
      std::tie(linear, source[k]) = e.divRem(linear, from[k].is(0) ? Dim(1) : from[k]);
    source[j] = linear;
    i = iEnd, j = jEnd;
  }
  return source;
}

Value ElementExpr::evaluateMovement(Operation *op, ArrayRef<Index> index) {
  if (auto rounded = dyn_cast<dmir::RoundBlocksOp>(op))
    return evaluateRoundBlocks(*this, rounded, index);
  Movement movement(*this, index);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<dmir::RelayoutOp, dmir::BroadcastOp, dmir::TransposeOp, dmir::SliceOp, dmir::ReshapeOp, dmir::IotaOp,
            dmir::DimTensorOp, dmir::PadOp, dmir::ConcatOp, dmir::GatherOp, dmir::GatherElementsOp, dmir::GatherNDOp,
            dmir::DequantizeOp>([&](auto o) { return movement.evaluate(o); })
      .Default([](Operation *) -> Value { llvm_unreachable("checked by Answers::refuses"); });
}
