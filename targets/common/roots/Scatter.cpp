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

class ScatterEmitter {
public:
  ScatterEmitter(KernelBuilder &b, const RegionBody &body)
      : b(b), body(body), e(b, body.block), root(body.root), data(root->getOperand(0)), indices(root->getOperand(1)),
        updates(root->getOperand(2)), element(getElementTypeOrSelf(data.getType())),
        target(b.buffer(body.block->getNumArguments())) {}

  void copyData();
  /// Puts the updates to their places. Without data there are none.
  void apply();

private:
  void applyAll();

  /// Loops over a shape, in row-major order.
  void overShape(ArrayRef<Dim> shape, llvm::function_ref<void(ArrayRef<Value>)> bodyFn);
  Value position(ArrayRef<Index> at, Dim dim);
  Value combine(Value old, Value update);

  KernelBuilder &b;
  const RegionBody &body;
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

void ScatterEmitter::copyData() {
  SmallVector<AxisGroup> groups = groupAxes(data);
  SmallVector<Dim> dims;
  for (AxisGroup &group : groups)
    dims.push_back(group.size);
  unsigned narrowest;
  int64_t lanes = chooseLanes(data, b.processor(), &narrowest);
  auto copy = [&] {
    if (dims.empty())
      return e.storeAt(e.evaluate(data, {}), target, e.at(0));
    overShape(ArrayRef<Dim>(dims).drop_back(), [&](ArrayRef<Value> outer) {
      laneLoop(e, b.idx(0), b.idx(dims.back()), lanes, narrowest, 64, [&](Index along) {
        SmallVector<Index> at;
        for (Value position : outer)
          at.push_back(e.at(position));
        at.push_back(along);
        Indices index = spread(e, groups, at, typeOf(data).getRank());
        e.store(e.evaluate(data, index), target, body.resultType(), index);
        e.forget();
      });
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

void ScatterEmitter::apply() {
  Dim elements = dmir::elementsOf(data.getType());
  if (elements.valueOr(0) > 0)
    return applyAll();
  auto any = [&](Dim count) { return b.cmp(arith::CmpIPredicate::ne, b.idx(count), b.idx(0)); };
  auto fail = [&] {
    b.ifThen(any(dmir::elementsOf(updates.getType())),
             [&] { b.failIf(b.constantInt(b.getI1Type(), 1), DMX_KERNEL_INDEX_OUT_OF_RANGE); });
  };
  if (elements.is(0))
    return fail();
  b.ifThen(any(elements), [&] { applyAll(); }, fail);
}

void ScatterEmitter::applyAll() {
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
    Value old = b.load(e.carried(element), target, offset.base);
    e.storeAt(combine(old, e.evaluate(updates, index)), target, offset);
  });
}

} // namespace

/// The data is copied (unless the result shares its buffer), then updates are applied in order. One work item.
static Result<KernelPlan> planScatter(const RegionBody &body, const PlanRequest &) {
  if (auto problem = scatterProblem(body.root))
    return modelError("node '" + dmir::nodeName(body.root) + "': " + *problem);
  KernelPlan plan("scatter", {});
  plan.emit = [body](KernelBuilder &b) {
    b.forItems(1, [&](Value) {
      ScatterEmitter emitter(b, body);
      emitter.copyData();
      emitter.apply();
    });
  };
  return plan;
}

void dmxc::kernels::registerScatters(KernelTable &table) {
  table.add<dmir::ScatterElementsOp, dmir::ScatterNDOp>({.plan = planScatter, .inPlace = InPlace::Copied});
}
