//===- Views.cpp - buffers looked at in other ways ------------------------===//
#include "Views.h"

#include "targets/corsair/dialect/AffineExt/AffineExt.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace dmxc;
using corsair::DeviceTensor;

DeviceTensor dmxc::layoutOf(MemRefType type) {
  auto [strides, offset] = type.getStridesAndOffset();
  if (type.hasStaticShape() && type.getNumElements() == 0) // strides of nothing are said to be dynamic
    strides.assign(strides.size(), 0);
  DeviceTensor layout{
      corsair::hw::ElemKind::U8, SmallVector<int64_t>(type.getShape()), SmallVector<int64_t>(strides), {}};
  layout.address.offset = offset;
  return layout;
}

MemRefType dmxc::denseBuffer(ArrayRef<int64_t> shape, Type element, ArrayRef<unsigned> order) {
  MemRefLayoutAttrInterface layout;
  if (order != ArrayRef<unsigned>(corsair::rowMajor(shape.size())))
    layout = StridedLayoutAttr::get(element.getContext(), 0, corsair::denseStrides(shape, order, 1));
  return MemRefType::get(shape, element, layout, StringAttr::get(element.getContext(), "GM"));
}

Value dmxc::transposedView(OpBuilder &builder, Location loc, Value buffer, ArrayRef<int64_t> permutation) {
  SmallVector<unsigned> dims(permutation.begin(), permutation.end());
  AffineMap map = AffineMap::getPermutationMap(dims, builder.getContext());
  return memref::TransposeOp::create(builder, loc, buffer, AffineMapAttr::get(map));
}

Value dmxc::slicedView(OpBuilder &builder, Location loc, Value buffer, ArrayRef<int64_t> starts,
                       ArrayRef<int64_t> sizes, ArrayRef<int64_t> steps) {
  return memref::SubViewOp::create(builder, loc, buffer, starts, sizes, steps);
}

/// Other dims and strides from the buffer's first element on.
static Value recast(OpBuilder &builder, Location loc, Value buffer, const DeviceTensor &layout) {
  auto type = cast<MemRefType>(buffer.getType());
  const int64_t offset = layout.address.offset;
  auto strided = StridedLayoutAttr::get(builder.getContext(), offset, layout.strides);
  const bool plain =
      offset == 0 && layout.strides == corsair::denseStrides(layout.shape, corsair::rowMajor(layout.rank()), 1);
  auto made =
      MemRefType::get(layout.shape, type.getElementType(),
                      plain ? MemRefLayoutAttrInterface() : MemRefLayoutAttrInterface(strided), type.getMemorySpace());
  return memref::ReinterpretCastOp::create(builder, loc, made, buffer, offset, layout.shape, layout.strides);
}

Value dmxc::broadcastView(OpBuilder &builder, Location loc, Value buffer, ArrayRef<int64_t> shape) {
  return recast(builder, loc, buffer, layoutOf(cast<MemRefType>(buffer.getType())).broadcast(shape));
}

Value dmxc::reshapedView(OpBuilder &builder, Location loc, Value buffer, ArrayRef<int64_t> shape) {
  const DeviceTensor from = layoutOf(cast<MemRefType>(buffer.getType()));
  std::optional<DeviceTensor> view = from.reshaped(shape);
  return view ? recast(builder, loc, buffer, *view) : Value();
}

bool dmxc::isBufferView(Operation *op) {
  return isa_and_present<memref::SubViewOp, memref::TransposeOp, memref::ReinterpretCastOp>(op);
}

Value dmxc::rootOf(Value buffer) {
  while (isBufferView(buffer.getDefiningOp()) || buffer.getDefiningOp<affine_ext::TilesOp>())
    buffer = buffer.getDefiningOp()->getOperand(0);
  return buffer;
}

Operation *dmxc::topOf(Operation *op) {
  while (!isa<FunctionOpInterface>(op->getParentOp()))
    op = op->getParentOp();
  return op;
}
