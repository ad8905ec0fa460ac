//===- Scatter.cpp - scatter_elements and scatter_nd --------------------------===//

#include "KernelTable.h"
#include "Loops.h"

#include "dmx/dmx_kernel.h"
#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

/// Null if the op is well formed, else why not.
static std::optional<std::string> scatterProblem(Operation *op) {
  auto elements = dyn_cast<dmir::ScatterElementsOp>(op);
  if (!elements || dmir::elementsOf(elements.getIndices().getType()).is(0))
    return std::nullopt;
  for (int64_t axis = 0; axis < typeOf(elements.getData()).getRank(); ++axis)
    if (axis != static_cast<int64_t>(elements.getAxis()) && !typeOf(elements.getIndices()).isDynamicDim(axis) &&
        !typeOf(elements.getData()).isDynamicDim(axis) &&
        shapeOf(elements.getIndices())[axis] > shapeOf(elements.getData())[axis])
      return "its indices reach past its data on axis " + std::to_string(axis) + ": their dim is " +
             std::to_string(shapeOf(elements.getIndices())[axis]) + ", that of the data " +
             std::to_string(shapeOf(elements.getData())[axis]);
  return std::nullopt;
}

namespace {

/// How the result is cut into work items: rows of its last joined axis, or where that is the only one, runs of it.
struct Parts {
  SmallVector<AxisGroup> groups; ///< joined axes of the data
  Dim count = 1;                 ///< of work items
  /// A run is the least that an item takes of a single axis: whole vectors and lines.
  static constexpr int64_t kRun = 64;

  bool inRows() const { return groups.size() > 1; }
  Dim rows() const {
    Dim all = 1;
    for (const AxisGroup &group : ArrayRef(groups).drop_back())
      all *= group.size;
    return all;
  }
};

/// Each item copies its part of the data and then does all updates that fall into it, in order.
class ScatterEmitter {
public:
  ScatterEmitter(KernelBuilder &b, const RegionBody &body, const Parts &parts)
      : b(b), body(body), parts(parts), e(b, body.block), root(body.root), data(root->getOperand(0)),
        indices(root->getOperand(1)), updates(root->getOperand(2)), element(getElementTypeOrSelf(data.getType())),
        target(b.buffer(body.block->getNumArguments())) {}

  void emitItem(Value item);

private:
  /// Positions [first, last) of what an item takes: rows, or elements of the only axis.
  struct Range {
    Value first, last;
  };
  void copyData(Range part);
  void copyRun(ArrayRef<Index> outer, Value lo, Value hi);
  /// Puts the updates to their places. Without data there are none.
  void apply(Range part);
  void applyAll(Range part);

  /// Loops over a shape, in row-major order.
  void overShape(ArrayRef<Dim> shape, llvm::function_ref<void(ArrayRef<Value>)> bodyFn);
  Value position(ArrayRef<Index> at, Dim dim);
  Value combine(Value old, Value update);

  KernelBuilder &b;
  const RegionBody &body;
  const Parts &parts;
  ElementExpr e;
  Operation *root;
  Value data, indices, updates;
  Type element;
  Value target;
};

void ScatterEmitter::overShape(ArrayRef<Dim> shape, llvm::function_ref<void(ArrayRef<Value>)> bodyFn) {
  SmallVector<Value> at;
  auto nest = [&](auto &&self) -> void {
    if (at.size() == shape.size())
      return bodyFn(at);
    b.forLoop(b.idx(0), b.idx(shape[at.size()]), b.idx(1), [&](Value i) {
      at.push_back(i);
      self(self);
      at.pop_back();
    });
  };
  nest(nest);
}

void ScatterEmitter::emitItem(Value item) {
  const int64_t unit = parts.inRows() ? 1 : Parts::kRun;
  Dim all = parts.inRows() ? parts.rows() : parts.groups.empty() ? Dim(1) : parts.groups.back().size;
  Value units = b.idx(Dim::ceilDiv(all, unit)), count = b.idx(parts.count);
  auto bound = [&](Value at) { return b.minS(b.mulC(b.floorDiv(b.mul(at, units), count), unit), b.idx(all)); };
  Range part = parts.count.is(1) ? Range{b.idx(0), b.idx(all)} : Range{bound(item), bound(b.addC(item, 1))};
  copyData(part);
  apply(part);
}

/// Elements [lo, hi) of the last joined axis.
void ScatterEmitter::copyRun(ArrayRef<Index> outer, Value lo, Value hi) {
  unsigned narrowest;
  int64_t lanes = chooseLanes(data, b.processor(), &narrowest);
  laneLoop(e, lo, hi, lanes, narrowest, Parts::kRun, [&](Index along) {
    SmallVector<Index> at(outer);
    at.push_back(along);
    Indices index = spread(e, parts.groups, at, typeOf(data).getRank());
    e.store(e.evaluate(data, index), target, body.resultType(), index);
    e.forget();
  });
}

void ScatterEmitter::copyData(Range part) {
  auto copy = [&] {
    if (parts.groups.empty())
      return e.storeAt(e.evaluate(data, {}), target, e.at(0));
    if (!parts.inRows())
      return copyRun({}, part.first, part.last);
    b.forLoop(part.first, part.last, b.idx(1), [&](Value row) {
      Indices outer(parts.groups.size() - 1);
      Index rest = e.at(row);
      for (size_t i = outer.size(); i-- > 1;)
        std::tie(rest, outer[i]) = e.divRem(rest, parts.groups[i].size.is(0) ? Dim(1) : parts.groups[i].size);
      outer[0] = rest;
      copyRun(outer, b.idx(0), b.idx(parts.groups.back().size));
    });
  };
  auto argument = dyn_cast<BlockArgument>(data);
  if (!argument)
    return copy();
  // The memory phase may have given the result the data's buffer.
  Type i64 = b.getI64Type();
  Value from = LLVM::PtrToIntOp::create(b, i64, b.buffer(argument.getArgNumber()));
  Value to = LLVM::PtrToIntOp::create(b, i64, target);
  b.ifThen(arith::CmpIOp::create(b, arith::CmpIPredicate::ne, from, to), copy);
}

/// One index, wrapped and checked; 0 where it is out of range and the kernel fails.
Value ScatterEmitter::position(ArrayRef<Index> at, Dim dim) {
  Value raw = e.evaluate(indices, at);
  if (raw.getType() != b.getI64Type())
    raw = arith::ExtSIOp::create(b, b.getI64Type(), raw);
  Value negative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, raw, b.idx(0));
  Value wrapped = arith::SelectOp::create(b, negative, arith::AddIOp::create(b, raw, b.idx(dim)), raw);
  Value outside = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, wrapped, b.idx(dim));
  b.failIf(outside, DMX_KERNEL_INDEX_OUT_OF_RANGE);
  return arith::SelectOp::create(b, outside, b.idx(0), wrapped);
}

Value ScatterEmitter::combine(Value old, Value update) {
  auto mode = static_cast<dmir::ScatterMode>(mlir::isa<dmir::ScatterElementsOp>(root)
                                                 ? cast<dmir::ScatterElementsOp>(root).getMode()
                                                 : cast<dmir::ScatterNDOp>(root).getMode());
  if (mode == dmir::ScatterMode::replace)
    return update;
  if (element.isInteger(1)) {
    bool isOr = mode == dmir::ScatterMode::add || mode == dmir::ScatterMode::max;
    return isOr ? Value(arith::OrIOp::create(b, old, update)) : Value(arith::AndIOp::create(b, old, update));
  }
  Value x = e.widen(old, element), y = e.widen(update, element), result;
  bool isFloat = mlir::isa<FloatType>(element), isUnsigned = isUnsignedElement(element);
  switch (mode) {
  case dmir::ScatterMode::add:
    result = isFloat ? Value(arith::AddFOp::create(b, x, y)) : Value(arith::AddIOp::create(b, x, y));
    break;
  case dmir::ScatterMode::mul:
    result = isFloat ? Value(arith::MulFOp::create(b, x, y)) : Value(arith::MulIOp::create(b, x, y));
    break;
  case dmir::ScatterMode::max:
    result = emitMax(b, x, y, isUnsigned);
    break;
  default:
    result = emitMin(b, x, y, isUnsigned);
    break;
  }
  return e.narrow(result, element);
}

void ScatterEmitter::apply(Range part) {
  Dim elements = dmir::elementsOf(data.getType());
  if (elements.valueOr(0) > 0)
    return applyAll(part);
  auto any = [&](Dim count) { return b.cmp(arith::CmpIPredicate::ne, b.idx(count), b.idx(0)); };
  auto fail = [&] {
    b.ifThen(any(dmir::elementsOf(updates.getType())),
             [&] { b.failIf(b.constantInt(b.getI1Type(), 1), DMX_KERNEL_INDEX_OUT_OF_RANGE); });
  };
  if (elements.is(0))
    return fail();
  b.ifThen(any(elements), [&] { applyAll(part); }, fail);
}

void ScatterEmitter::applyAll(Range part) {
  Dim row = parts.inRows() ? parts.groups.back().size : Dim(1);
  Value lo = b.mulC(part.first, row), hi = b.mulC(part.last, row);
  auto nd = dyn_cast<dmir::ScatterNDOp>(root);
  int64_t rank = typeOf(data).getRank();
  SmallVector<Dim> dims = dmir::dimsOf(data);
  overShape(dmir::dimsOf(updates), [&](ArrayRef<Value> at) {
    e.forget();
    Indices index;
    for (Value i : at)
      index.push_back(e.at(i));
    Indices to(index);
    if (nd) {
      int64_t lead = typeOf(indices).getRank() - 1, width = shapeOf(indices).back();
      Indices tuple(index.begin(), index.begin() + lead);
      to.clear();
      for (int64_t j = 0; j < width; ++j) {
        tuple.push_back(e.at(j));
        to.push_back(e.at(position(tuple, dims[j])));
        tuple.pop_back();
      }
      to.append(index.begin() + lead, index.end());
    } else {
      int64_t axis = cast<dmir::ScatterElementsOp>(root).getAxis();
      to[axis] = e.at(position(index, dims[axis]));
    }
    assert(static_cast<int64_t>(to.size()) == rank);
    static_cast<void>(rank);
    Index offset = e.offsetOf(body.resultType(), to);
    auto put = [&] {
      Value old = b.load(e.carried(element), target, offset.base);
      e.storeAt(combine(old, e.evaluate(updates, index)), target, offset);
    };
    if (parts.count.is(1))
      return put();
    Value behind = b.cmp(arith::CmpIPredicate::sge, offset.base, lo);
    b.ifThen(arith::AndIOp::create(b, behind, b.cmp(arith::CmpIPredicate::slt, offset.base, hi)), put);
  });
}

} // namespace

/// The data is copied (unless the result shares its buffer), then updates are applied in order. Much data that few
/// updates change, as a growing cache is, is cut into work items, each of which looks at all updates.
static Parts partsOf(const RegionBody &body) {
  constexpr int64_t elementsOfItem = 1 << 15, mostItems = 16;
  Parts parts;
  Value data = body.root->getOperand(0), updates = body.root->getOperand(2);
  parts.groups = groupAxes(data);
  Dim all = dmir::elementsOf(data.getType());
  int64_t few = nominal(body.block, all) / mostItems;
  if (!isPacked(typeOf(data).getElementType()) && nominal(body.block, dmir::elementsOf(updates.getType())) <= few)
    parts.count = Dim::max(1, Dim::min(mostItems, Dim::floorDiv(all, elementsOfItem)));
  return parts;
}

static Result<KernelPlan> planScatter(const RegionBody &body, const PlanRequest &) {
  if (auto problem = scatterProblem(body.root))
    return modelError("node '" + dmir::nodeName(body.root) + "': " + *problem);
  Parts parts = partsOf(body);
  KernelPlan plan;
  plan.algorithm = "scatter";
  plan.work = parts.count;
  plan.emit = [body, parts](KernelBuilder &b) {
    b.forItems(parts.count, [&](Value item) { ScatterEmitter(b, body, parts).emitItem(item); });
  };
  return plan;
}

void dmxc::kernels::registerScatters(KernelTable &table) {
  table.add<dmir::ScatterElementsOp, dmir::ScatterNDOp>({.plan = planScatter, .inPlace = InPlace::Copied});
}
