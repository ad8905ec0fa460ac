//===- WholeBuffers.cpp - values of a kernel as whole buffers -------------===//
#include "WholeBuffers.h"
#include "KernelFunctions.h"
#include "Views.h"

#include "targets/corsair/decide/Ops.h"
#include "targets/corsair/user/UserBody.h"

using namespace mlir;
using namespace dmxc;

WholeBuffers::WholeBuffers(func::FuncOp function)
    : function(function), builder(function.getContext()),
      quads(static_cast<int>(function->getAttrOfType<IntegerAttr>(kQuadsAttr).getInt())) {}

Value WholeBuffers::allocate(Location loc, ArrayRef<int64_t> shape, Type element, ArrayRef<unsigned> order) {
  SmallVector<unsigned> plain = corsair::rowMajor(shape.size());
  return memref::AllocOp::create(
      builder, loc, denseBuffer(shape, element, order.size() == shape.size() ? order : ArrayRef<unsigned>(plain)));
}

Value WholeBuffers::numbersOf(Operation *op, Value operand) {
  Place place = places.lookup(operand);
  if (place.memref && !place.format)
    return place.memref;
  op->emitError("'") << op->getName() << "' reads a value that has no buffer of numbers";
  return {};
}

corsair::Split WholeBuffers::splitOf(Operation *op) const {
  return corsair::splitOf(op->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr), shapeOf(op->getResult(0)), quads);
}

SmallVector<int64_t> WholeBuffers::shareOf(Operation *op) const {
  return corsair::shareOf(shapeOf(op->getResult(0)), splitOf(op));
}

corsair::Split WholeBuffers::viewedSplit(Operation *view) const {
  return corsair::viewedSplit(view, places.lookup(view->getOperand(0)).split, quads).value_or(corsair::Split());
}

SmallVector<int64_t> WholeBuffers::viewedShare(Operation *view) const {
  return corsair::shareOf(shapeOf(view->getResult(0)), viewedSplit(view));
}

static SmallVector<unsigned> orderOf(Value buffer) { return layoutOf(cast<MemRefType>(buffer.getType())).order(); }

/// A result lies in memory as its largest operand does.
static SmallVector<unsigned> orderOfLargest(ArrayRef<Value> inputs) {
  auto count = [](Value value) { return cast<MemRefType>(value.getType()).getNumElements(); };
  return inputs.empty() ? SmallVector<unsigned>()
                        : orderOf(*llvm::max_element(inputs, [&](Value a, Value b) { return count(a) < count(b); }));
}

void WholeBuffers::copy(Location loc, Value from, Value to, corsair::Split split) {
  auto made = lldmir::SimdOp::create(builder, loc, TypeRange(), lldmir::kCopy, from, to, builder.getDictionaryAttr({}));
  if (split)
    made->setAttr(lldmir::kDealAttr, lldmir::DealAttr::get(builder.getContext(), split.dim, quads));
}

Value WholeBuffers::copied(Location loc, Value value, Value buffer, ArrayRef<unsigned> order) {
  auto type = cast<MemRefType>(buffer.getType());
  Value made = allocate(loc, type.getShape(), type.getElementType(), order);
  copy(loc, buffer, made, places.lookup(value).split);
  return made;
}

Value WholeBuffers::rowByRow(Location loc, Value value, Value buffer) {
  return layoutOf(cast<MemRefType>(buffer.getType())).isRowMajor() ? buffer : copied(loc, value, buffer, {});
}

Value WholeBuffers::withoutGaps(Location loc, Value value) {
  Value buffer = memrefOf(value);
  auto type = buffer ? cast<MemRefType>(buffer.getType()) : MemRefType();
  if (!type || isa<affine_ext::VecExtType>(type.getElementType()) || !type.getNumElements() || layoutOf(type).isDense())
    return buffer;
  return copied(loc, value, buffer, orderOf(buffer));
}

Value WholeBuffers::rowsTogether(Location loc, Value value, Value buffer, ArrayRef<int64_t> axes) {
  const corsair::DeviceTensor layout = layoutOf(cast<MemRefType>(buffer.getType()));
  if (layout.dimsOfWalk(axes) <= corsair::kSimdDims)
    return buffer;
  SmallVector<unsigned> order = corsair::rowMajor(layout.rank());
  std::stable_partition(order.begin(), order.end(), [&](unsigned dim) { return !llvm::is_contained(axes, dim); });
  return copied(loc, value, buffer, order);
}

Value WholeBuffers::writtenOut(Operation *op, Value operand, unsigned fromEnd) {
  Value buffer = numbersOf(op, operand);
  if (!buffer)
    return {};
  auto type = cast<MemRefType>(buffer.getType());
  if (isa<affine_ext::VecExtType>(type.getElementType()) || type.getRank() < fromEnd)
    return buffer; // tiles
  const corsair::DeviceTensor layout = layoutOf(type);
  const size_t dim = layout.rank() - fromEnd;
  if (layout.strides[dim] != 0 || layout.shape[dim] < 2)
    return buffer;
  return copied(op->getLoc(), operand, buffer, layout.order());
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

LogicalResult WholeBuffers::lower(dmir::TransposeOp op) {
  Place place = places.lookup(op.getInput()); // of what is quantised where it is loaded the format turns too
  if (!place.memref)
    return op.emitError("transposes a value that has no buffer");
  putView(op, transposedView(builder, op.getLoc(), place.memref, op.getPermutation()),
          place.format ? elementOf(op.getResult()) : Type());
  return success();
}

LogicalResult WholeBuffers::lower(dmir::SliceOp op) {
  Value from = numbersOf(op, op.getInput());
  if (!from)
    return failure();
  putView(op, slicedView(builder, op.getLoc(), from, op.getStarts(), viewedShare(op), op.getSteps()));
  return success();
}

LogicalResult WholeBuffers::lower(dmir::BroadcastOp op) {
  Value from = numbersOf(op, op.getInput());
  if (!from)
    return failure();
  putView(op, broadcastView(builder, op.getLoc(), from, viewedShare(op)));
  return success();
}

LogicalResult WholeBuffers::lower(dmir::ReshapeOp op) {
  Value from = numbersOf(op, op.getInput());
  if (!from)
    return failure();
  const SmallVector<int64_t> shape = viewedShare(op);
  Value view = reshapedView(builder, op.getLoc(), from, shape);
  if (!view)
    view = reshapedView(builder, op.getLoc(), rowByRow(op.getLoc(), op.getInput(), from), shape);
  putView(op, view);
  return success();
}

//===----------------------------------------------------------------------===//
// What moves or computes
//===----------------------------------------------------------------------===//

void WholeBuffers::fill(Operation *op, Type element) {
  auto splat = cast<SplatElementsAttr>(cast<dmir::ConstantOp>(op).getValue());
  Value made = allocate(op->getLoc(), shapeOf(op->getResult(0)), element);
  TypedAttr value = isa<FloatType>(splat.getElementType()) ? TypedAttr(splat.getSplatValue<FloatAttr>())
                                                           : TypedAttr(splat.getSplatValue<IntegerAttr>());
  fill(op->getLoc(), made, value);
  places[op->getResult(0)] = {made, {}};
}

void WholeBuffers::fill(Location loc, Value buffer, TypedAttr value) {
  lldmir::SimdOp::create(builder, loc, TypeRange(), "fill", ValueRange(), buffer,
                         builder.getDictionaryAttr(builder.getNamedAttr("value", value)));
}

LogicalResult WholeBuffers::lower(dmir::ConstantOp op) {
  if (!isa<SplatElementsAttr>(op.getValue()))
    return op.emitError("has more than one value: constants of a kernel are arguments");
  if (!isWide(elementOf(op))) // else the cast to f16 says how it is kept
    fill(op, elementOf(op));
  return success();
}

LogicalResult WholeBuffers::lower(dmir::ConcatOp op) {
  Value made;
  SmallVector<int64_t> starts(shapeOf(op.getResult()).size(), 0), ones(starts.size(), 1);
  for (Value input : op.getInputs()) {
    Value from = numbersOf(op, input);
    if (!from)
      return failure();
    if (!made)
      made = allocate(op.getLoc(), shareOf(op), elementOf(op.getResult()), orderOf(from));
    if (corsair::elementsOf(input))
      copy(op.getLoc(), from,
           slicedView(builder, op.getLoc(), made, starts, corsair::shareOf(shapeOf(input), splitOf(op)), ones),
           splitOf(op));
    starts[op.getAxis()] += shapeOf(input)[op.getAxis()];
  }
  put(op, made);
  return success();
}

LogicalResult WholeBuffers::lower(dmir::PadOp op) {
  Value from = numbersOf(op, op.getInput()), value = numbersOf(op, op.getValue());
  if (!from || !value)
    return failure();
  Value made = allocate(op.getLoc(), shapeOf(op.getResult()), elementOf(op.getResult()), orderOf(from));
  copy(op.getLoc(), value, made, {});
  SmallVector<int64_t> steps;
  for (int64_t interior : op.getInterior())
    steps.push_back(1 + interior);
  if (corsair::elementsOf(op.getInput()))
    copy(op.getLoc(), from, slicedView(builder, op.getLoc(), made, op.getLow(), shapeOf(op.getInput()), steps), {});
  places[op.getResult()] = {made, {}};
  return success();
}

LogicalResult WholeBuffers::lower(dmir::GatherOp op) {
  Value data = numbersOf(op, op.getData()), indices = numbersOf(op, op.getIndices());
  if (!data || !indices)
    return failure();
  data = rowByRow(op.getLoc(), op.getData(), data);
  indices = rowByRow(op.getLoc(), op.getIndices(), indices);
  Value made = allocate(op.getLoc(), shareOf(op), elementOf(op.getResult()));
  auto axis = builder.getNamedAttr("axis", builder.getI64IntegerAttr(static_cast<int64_t>(op.getAxis())));
  auto reshape = lldmir::ReshapeOp::create(builder, op.getLoc(), TypeRange(), lldmir::kGatherRows,
                                           ValueRange{data, indices}, made, builder.getDictionaryAttr(axis));
  if (Attribute deal = op->getAttr(lldmir::kDealAttr))
    reshape->setAttr(lldmir::kDealAttr, deal);
  put(op, made);
  return success();
}

LogicalResult WholeBuffers::lower(dmir::ScatterElementsOp op) {
  Value data = numbersOf(op, op.getData()), indices = numbersOf(op, op.getIndices()),
        updates = numbersOf(op, op.getUpdates());
  if (!data || !indices || !updates)
    return failure();
  // Straight into a state that nothing else reads.
  auto argument = dyn_cast<BlockArgument>(op.getData());
  const bool inPlace = argument && argument.hasOneUse() && function.getArgAttr(argument.getArgNumber(), kStateAttr);
  Value made = inPlace ? data : allocate(op.getLoc(), shapeOf(op.getResult()), elementOf(op.getResult()));
  if (!inPlace)
    copy(op.getLoc(), data, made, {});
  places[op.getResult()] = {made, {}};
  auto axis = builder.getNamedAttr("axis", builder.getI64IntegerAttr(static_cast<int64_t>(op.getAxis())));
  if (corsair::elementsOf(op.getUpdates()))
    lldmir::ReshapeOp::create(builder, op.getLoc(), TypeRange(), lldmir::kScatterRows, ValueRange{updates, indices},
                              made, builder.getDictionaryAttr(axis));
  return success();
}

/// Infinities are the largest magnitude here, which they saturate to.
LogicalResult WholeBuffers::lower(dmir::IsInfOp op) {
  Value from = numbersOf(op, op.getInput());
  if (!from)
    return failure();
  Location loc = op.getLoc();
  Attribute deal = op->getAttr(lldmir::kDealAttr);
  auto element = cast<MemRefType>(from.getType()).getElementType();
  const SmallVector<unsigned> order = orderOf(from);
  Value sizes = allocate(loc, shareOf(op), element, order), largest = allocate(loc, {}, element),
        made = allocate(loc, shareOf(op), elementOf(op.getResult()), order);
  fill(loc, largest, builder.getFloatAttr(element, 65504));
  auto simd = [&](StringRef function, ValueRange inputs, Value out, DictionaryAttr parameters) {
    auto unit = lldmir::SimdOp::create(builder, loc, TypeRange(), function, inputs, out, parameters);
    if (deal)
      unit->setAttr(lldmir::kDealAttr, deal);
  };
  simd("abs", from, sizes, builder.getDictionaryAttr({}));
  auto kind = dmir::CompareAttr::get(op.getContext(), dmir::Compare::ge);
  simd("compare", {sizes, largest}, made, builder.getDictionaryAttr(builder.getNamedAttr("kind", kind)));
  put(op, made);
  return success();
}

LogicalResult WholeBuffers::lower(lldmir::SumOp op) {
  Value parts = numbersOf(op, op.getParts());
  if (!parts)
    return failure();
  Value made = allocate(op.getLoc(), shapeOf(op.getResult()), elementOf(op.getResult()));
  lldmir::SumOp::create(builder, op.getLoc(), TypeRange(), parts, made);
  places[op.getResult()] = {made, {}};
  return success();
}

LogicalResult WholeBuffers::lowerWhole(Operation *op) {
  if (op->getName().getDialectNamespace() != "dmir" || op->getNumRegions() || op->getNumResults() != 1)
    return op->emitError("'") << op->getName() << "' has no form on buffers";
  SmallVector<Value> inputs;
  for (Value operand : op->getOperands()) {
    inputs.push_back(numbersOf(op, operand));
    if (!inputs.back())
      return failure();
  }
  std::optional<corsair::RowsOp> rows = corsair::rowsOp(op);
  if (rows)
    inputs[0] = rowsTogether(op->getLoc(), op->getOperand(0), inputs[0], rows->axes);
  const bool keepsShape = !rows || shapeOf(op->getOperand(0)) == shapeOf(op->getResult(0));
  unit(op, inputs, keepsShape ? orderOfLargest(inputs) : SmallVector<unsigned>());
  return success();
}

LogicalResult WholeBuffers::lowerMask(const corsair::DeviceFunction &function, Operation *op) {
  Value from = numbersOf(op, function.operands[0]);
  if (!from)
    return failure();
  const auto [lower, upper] = function.diagonals;
  for (auto [key, bound] : {std::pair(lldmir::kLower, lower), std::pair(lldmir::kUpper, upper)}) {
    if (!bound)
      continue;
    const NamedAttribute parameters[] = {builder.getNamedAttr("imm0", builder.getF32FloatAttr(function.imm0)),
                                         builder.getNamedAttr(key, builder.getI64IntegerAttr(*bound))};
    unit(op, corsair::hw::nameOf(function.function), builder.getDictionaryAttr(parameters), from, orderOf(from));
    from = memrefOf(op->getResult(0));
  }
  return success();
}

LogicalResult WholeBuffers::lowerAs(const corsair::DeviceFunction &function, Operation *op) {
  if (function.function == corsair::hw::SimdFunction::CausalMask)
    return lowerMask(function, op);
  SmallVector<Value> inputs;
  for (Value operand : function.operands) {
    inputs.push_back(numbersOf(op, operand));
    if (!inputs.back())
      return failure();
  }
  if (ArrayRef<int64_t> shape = shapeOf(op->getResult(0)), whole = shapeOf(function.operands[0]);
      function.axes.empty() && !whole.empty() && whole.size() == shape.size() && whole.back() > shape.back()) {
    SmallVector<int64_t> starts(shape.size(), 0), ones(shape.size(), 1);
    starts.back() = function.first;
    inputs[0] = slicedView(builder, op->getLoc(), inputs[0], starts,
                           corsair::shareOf(shape, places.lookup(function.operands[0]).split), ones);
  }
  NamedAttrList parameters;
  for (auto [key, number] : {std::pair("imm0", function.imm0), std::pair("imm1", function.imm1)})
    if (number != 0)
      parameters.set(key, builder.getF32FloatAttr(number));
  if (!function.axes.empty()) {
    inputs[0] = rowsTogether(op->getLoc(), function.operands[0], inputs[0], function.axes);
    parameters.set("axes", builder.getDenseI64ArrayAttr(function.axes));
  }
  if (function.diagonals.upper)
    parameters.set(lldmir::kUpper, builder.getI64IntegerAttr(*function.diagonals.upper));
  if (Attribute bands = op->getAttr(lldmir::kBandsAttr))
    parameters.set(lldmir::kBandsAttr, bands);
  const bool keepsShape = shapeOf(function.operands[0]) == shapeOf(op->getResult(0));
  unit(op, corsair::hw::nameOf(function.function), parameters.getDictionary(op->getContext()), inputs,
       keepsShape ? orderOfLargest(inputs) : SmallVector<unsigned>());
  return success();
}

void WholeBuffers::unit(Operation *op, ValueRange inputs, ArrayRef<unsigned> order) {
  NamedAttrList parameters(op->getAttrDictionary());
  parameters.erase(lldmir::kDealAttr);
  unit(op, op->getName().stripDialect(), parameters.getDictionary(op->getContext()), inputs, order);
}

void WholeBuffers::unit(Operation *op, StringRef function, DictionaryAttr parameters, ValueRange inputs,
                        ArrayRef<unsigned> order) {
  Value made = allocate(op->getLoc(), shareOf(op), elementOf(op->getResult(0)), order);
  auto simd = lldmir::SimdOp::create(builder, op->getLoc(), TypeRange(), function, inputs, made, parameters);
  if (Attribute deal = op->getAttr(lldmir::kDealAttr))
    simd->setAttr(lldmir::kDealAttr, deal);
  put(op, made);
}

//===----------------------------------------------------------------------===//
// Images
//===----------------------------------------------------------------------===//

/// Of each channel on its own; the channels of a pixel lie side by side.
LogicalResult WholeBuffers::lower(dmir::ConvOp op) {
  Value image = numbersOf(op, op.getInput()), kernel = numbersOf(op, op.getWeights());
  if (!image || !kernel)
    return failure();
  auto type = cast<MemRefType>(image.getType());
  const SmallVector<unsigned> order = corsair::channelsLast(type.getRank());
  if (layoutOf(type).strides[1] != 1 && type.getDimSize(1) > 1)
    image = copied(op.getLoc(), op.getInput(), image, order);
  unit(op, ValueRange{image, kernel}, order);
  return success();
}

LogicalResult WholeBuffers::lower(dmir::PoolOp op) {
  Value image = numbersOf(op, op.getInput());
  if (!image)
    return failure();
  unit(op, image, corsair::channelsLast(shapeOf(op.getResult()).size()));
  return success();
}

LogicalResult WholeBuffers::lower(lldmir::ConvOp op) {
  const size_t rank = shapeOf(op.getImage()).size();
  Value image = writtenOut(op, op.getImage(), rank - 1), weights = memrefOf(op.getWeights()),
        bias = op.getBias() ? memrefOf(op.getBias()) : Value();
  if (!image)
    return failure();
  if (!weights || (op.getBias() && !bias))
    return op.emitError("convolves by weights that have no buffer");
  Value made = allocate(op.getLoc(), shareOf(op), elementOf(op.getResult()), corsair::channelsLast(rank));
  auto conv = lldmir::ConvOp::create(builder, op.getLoc(), TypeRange(), image, weights, bias, ValueRange(), made,
                                     op.getKernel(), op.getStrides(), op.getDilations(), op.getLow(), op.getGroups(),
                                     ArrayAttr());
  conv->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  put(op, made);
  return success();
}

/// What lies in a larger buffer is copied, so that whatever is beyond it is no part of the operand's.
LogicalResult WholeBuffers::lower(dmir::ExternOp op) {
  const dmx::corsair::Machine &machine = lldmir::machineOf(op.getContext());
  if (std::optional<std::string> why = corsair::whyNoBody(op, machine)) // of a text
    return op.emitError() << *why;
  SmallVector<Value> inputs;
  for (Value operand : op.getInputs()) {
    Value buffer = numbersOf(op, operand);
    if (!buffer)
      return failure();
    buffer = rowByRow(op.getLoc(), operand, buffer);
    auto count = [](Value memref) { return cast<MemRefType>(memref.getType()).getNumElements(); };
    inputs.push_back(count(dmxc::rootOf(buffer)) == count(buffer) ? buffer : copied(op.getLoc(), operand, buffer, {}));
  }
  Value result = op.getResults().front();
  Value made = allocate(op.getLoc(), shapeOf(result), elementOf(result));
  lldmir::ExternOp::create(builder, op.getLoc(), TypeRange(), op.getKernel(), inputs, made,
                           corsair::userParameters(op, machine));
  put(op, made);
  return success();
}
