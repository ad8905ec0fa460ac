//===- StridedView.cpp - tensors as views of buffers --------------------------===//

#include "StridedView.h"

#include "ElementExpr.h"

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Dialect/DMIR/Dims.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

static std::optional<StridedView> reshapedView(const StridedView &view, ArrayRef<Dim> from, ArrayRef<Dim> to) {
  StridedView result{view.buffer, view.offset, SmallVector<Dim>(to.size(), 0)};
  if (llvm::is_contained(from, Dim(0)))
    return result;
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    auto [iEnd, jEnd] = equalRuns(from, to, i, j);
    // The run must be contiguous in itself; axes of one element do not matter.
    Dim stride = 0, extent = 1;
    for (size_t k = iEnd; k-- > i;) {
      if (from[k].is(1))
        continue;
      if (extent.is(1))
        stride = view.strides[k];
      else if (!(view.strides[k] == stride * extent))
        return std::nullopt;
      extent *= from[k];
    }
    for (size_t k = jEnd; k-- > j; stride *= to[k])
      result.strides[k] = stride;
    i = iEnd, j = jEnd;
  }
  return result;
}

StridedView dmxc::kernels::denseView(ArrayRef<Dim> dims, unsigned buffer) {
  StridedView view{buffer, 0, SmallVector<Dim>(dims.size())};
  Dim stride = 1;
  for (size_t axis = dims.size(); axis-- > 0; stride *= dims[axis])
    view.strides[axis] = stride;
  return view;
}

std::optional<StridedView> dmxc::kernels::stridedView(Value value, Value origin, bool throughCasts) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (origin ? value == origin : bool(argument)) {
    if (dmir::layoutOf(value.getType()))
      return std::nullopt;
    return denseView(dmir::dimsOf(value), argument ? argument.getArgNumber() : 0);
  }
  Operation *op = value.getDefiningOp();
  if (throughCasts && mlir::isa_and_nonnull<dmir::CastOp>(op))
    return stridedView(op->getOperand(0), origin, throughCasts);
  if (!op || !mlir::isa<dmir::TransposeOp, dmir::SliceOp, dmir::BroadcastOp, dmir::ReshapeOp>(op))
    return std::nullopt;
  std::optional<StridedView> from = stridedView(op->getOperand(0), origin, throughCasts);
  if (!from)
    return std::nullopt;
  if (mlir::isa<dmir::ReshapeOp>(op))
    return reshapedView(*from, dmir::dimsOf(op->getOperand(0)), dmir::dimsOf(value));
  StridedView view{from->buffer, from->offset, {}};
  if (auto transpose = dyn_cast<dmir::TransposeOp>(op)) {
    for (int64_t axis : transpose.getPermutation())
      view.strides.push_back(from->strides[axis]);
  } else if (auto slice = dyn_cast<dmir::SliceOp>(op)) {
    for (auto [stride, start, step] : llvm::zip(from->strides, slice.getStartDims(), slice.getSteps())) {
      view.offset += start * stride;
      view.strides.push_back(stride * step);
    }
  } else {
    SmallVector<Dim> own = dmir::dimsOf(op->getOperand(0)), wide = dmir::dimsOf(value);
    view.strides.assign(wide.size(), 0);
    size_t missing = wide.size() - own.size();
    for (size_t axis = 0; axis < own.size(); ++axis) {
      if (!own[axis].isStatic() && !(own[axis] == wide[axis + missing]))
        return std::nullopt; // its stride depends on whether it is 1
      if (!own[axis].is(1) || wide[axis + missing].is(1))
        view.strides[axis + missing] = from->strides[axis];
    }
  }
  return view;
}
