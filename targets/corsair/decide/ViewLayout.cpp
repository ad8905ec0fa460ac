//===- ViewLayout.cpp - where views look ----------------------------------===//

#include "ViewLayout.h"
#include "Kernels.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

static DeviceTensor denseLayout(ArrayRef<int64_t> shape, ArrayRef<unsigned> order) {
  return DeviceTensor::dense(hw::ElemKind::U8, shape, order);
}

static DeviceTensor rowByRow(ArrayRef<int64_t> shape) { return denseLayout(shape, rowMajor(shape.size())); }

/// Of a value that is no view.
static DeviceTensor rootLayout(Value value) {
  ArrayRef<int64_t> shape = shapeOf(value);
  const bool isImage = isa_and_present<dmir::ConvOp, dmir::PoolOp>(value.getDefiningOp());
  return denseLayout(shape, isImage                     ? channelsLast(shape.size())
                            : isa<BlockArgument>(value) ? preferredOrder(value, shape.size())
                                                        : rowMajor(shape.size()));
}

DeviceTensor dmxc::corsair::viewLayout(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isView(op))
    return rootLayout(value);
  DeviceTensor from = viewLayout(op->getOperand(0));
  return llvm::TypeSwitch<Operation *, DeviceTensor>(op)
      .Case([&](dmir::TransposeOp transpose) { return from.transposed(transpose.getPermutation()); })
      .Case([&](dmir::BroadcastOp) { return from.broadcast(shapeOf(value)); })
      .Case([&](dmir::SliceOp slice) {
        from.shape.assign(slice.getSizes().begin(), slice.getSizes().end());
        for (auto [stride, step] : llvm::zip(from.strides, slice.getSteps()))
          stride *= step;
        return from;
      })
      .Default([&](Operation *) { return from.reshaped(shapeOf(value)).value_or(rowByRow(shapeOf(value))); });
}

DeviceTensor dmxc::corsair::operandLayout(Value value, unsigned fromEnd) {
  DeviceTensor layout = viewLayout(value);
  const size_t dim = layout.rank() - fromEnd;
  return layout.strides[dim] == 0 && layout.shape[dim] > 1 ? denseLayout(layout.shape, layout.order()) : layout;
}

bool dmxc::corsair::viewCopies(Operation *view) {
  return isa<dmir::ReshapeOp>(view) && !viewLayout(view->getOperand(0)).reshaped(shapeOf(view->getResult(0)));
}
