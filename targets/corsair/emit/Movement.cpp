//===- Movement.cpp - views, and data that must move ----------------------===//
//
// A transpose, slice or broadcast changes strides alone; a reshape does where the strides allow it.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

static DeviceTensor sliced(const DeviceTensor &tensor, dmir::SliceOp op) {
  DeviceTensor view = tensor;
  view.shape = SmallVector<int64_t>(op.getSizes());
  for (size_t i = 0; i < tensor.rank(); ++i) {
    view.address.offset += op.getStarts()[i] * tensor.strides[i];
    view.strides[i] = tensor.strides[i] * op.getSteps()[i];
  }
  return view;
}

static DeviceTensor broadcast(const DeviceTensor &tensor, ArrayRef<int64_t> shape) {
  DeviceTensor view{tensor.kind, SmallVector<int64_t>(shape), SmallVector<int64_t>(shape.size(), 0), tensor.address};
  size_t missing = shape.size() - tensor.rank();
  for (size_t i = 0; i < tensor.rank(); ++i)
    if (tensor.shape[i] == shape[i + missing])
      view.strides[i + missing] = tensor.strides[i];
  return view;
}

Status KernelLowering::lowerMovement(Operation *op) {
  const DeviceTensor source = values[op->getOperand(0)];
  ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  DeviceTensor &result = values[op->getResult(0)];
  if (auto transpose = dyn_cast<dmir::TransposeOp>(op)) {
    result = source;
    for (size_t i = 0; i < source.rank(); ++i) {
      result.shape[i] = source.shape[transpose.getPermutation()[i]];
      result.strides[i] = source.strides[transpose.getPermutation()[i]];
    }
  } else if (auto slice = dyn_cast<dmir::SliceOp>(op)) {
    result = sliced(source, slice);
  } else if (isa<dmir::BroadcastOp>(op)) {
    result = broadcast(source, shape);
  } else if (std::optional<DeviceTensor> view = source.reshaped(shape)) {
    result = *view;
  } else {
    DeviceTensor dense = copied(source, rowMajor(source.rank()));
    values[op->getResult(0)] = *dense.reshaped(shape);
  }
  return Status::ok();
}

Status KernelLowering::lowerConcat(Operation *op) {
  auto concat = cast<dmir::ConcatOp>(op);
  DeviceTensor result = allocate(concat.getResult(), &values[concat.getInputs().front()]);
  int64_t at = 0, axis = concat.getAxis();
  for (Value input : concat.getInputs()) {
    DeviceTensor part = result;
    part.shape[axis] = values[input].shape[axis];
    part.address.offset += at * result.strides[axis];
    at += part.shape[axis];
    copyInto(values[input], part, deal.at(concat.getResult()));
  }
  values[concat.getResult()] = result;
  return Status::ok();
}

Status KernelLowering::lowerPad(Operation *op) {
  auto pad = cast<dmir::PadOp>(op);
  DeviceTensor source = values[pad.getInput()], result = allocate(pad.getResult(), &source);
  copyInto(broadcast(values[pad.getValue()], result.shape), result, {});
  DeviceTensor middle = result;
  for (size_t i = 0; i < source.rank(); ++i) {
    middle.shape[i] = source.shape[i];
    middle.address.offset += pad.getLow()[i] * result.strides[i];
    middle.strides[i] = result.strides[i] * (1 + pad.getInterior()[i]);
  }
  copyInto(source, middle, {});
  values[pad.getResult()] = result;
  return Status::ok();
}

Status KernelLowering::lowerGather(Operation *op) {
  auto gather = cast<dmir::GatherOp>(op);
  DeviceTensor data = values[gather.getData()], indices = values[gather.getIndices()];
  if (data.order() != rowMajor(data.rank()) || !data.isDense())
    data = copied(data, rowMajor(data.rank()));
  if (indices.order() != rowMajor(indices.rank()) || !indices.isDense())
    indices = copied(indices, rowMajor(indices.rank()));
  DeviceTensor result = allocate(gather.getResult());
  values[gather.getResult()] = result;
  // Dealt out by the indices: all dims of them before the one that is split are 1.
  const Split split = deal.at(gather.getResult());
  if (split)
    indices = indices.local({split.dim, split.part});
  gatherRows(data, indices, result.local(split), static_cast<int64_t>(gather.getAxis()));
  return Status::ok();
}

/// One row of updates for each index along the axis, straight into a state where the data is one.
Status KernelLowering::lowerScatter(Operation *op) {
  auto scatter = cast<dmir::ScatterElementsOp>(op);
  const DeviceTensor updates = values[scatter.getUpdates()], indices = values[scatter.getIndices()];
  DeviceTensor result = values[scatter.getData()];
  auto argument = dyn_cast<BlockArgument>(scatter.getData());
  if (!argument || !argument.hasOneUse() || !stateResults.contains(argument.getArgNumber())) {
    result = allocate(scatter.getResult());
    copyInto(values[scatter.getData()], result, {});
  }
  values[scatter.getResult()] = result;
  if (updates.elements() == 0)
    return Status::ok();
  const size_t axis = scatter.getAxis();
  DeviceTensor rows = updates, places = result; // of one index
  places.shape = rows.shape;
  rows.shape[axis] = places.shape[axis] = 1;
  SmallVector<CopyDim> dims = copyDims(rows, places);
  if (dims.size() > 4)
    return Error{ErrorKind::Constraint, "the rows that node '" + node + "' scatters have too many dims apart"};
  DmaSpec spec{hw::nameOf(result.kind)};
  spec.unit = dims.back().extent / result.elementSize();
  spec.dims = {{updates.shape[axis], updates.strides[axis], result.strides[axis]}};
  addDims(spec, ArrayRef(dims).drop_back());
  reshapeByIndex("insert", "scatter", updates, result, indices, spec, indices.strides[axis], result.shape[axis]);
  return Status::ok();
}
