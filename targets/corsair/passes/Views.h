//===- Views.h - buffers looked at in other ways ----------------*- C++ -*-===//
//
// A view of a buffer has strides and an offset that are known when it is compiled, both counted from the first element
// of the whole buffer: a transpose exchanges strides, a broadcast has some that are 0.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/corsair/write/DeviceTensor.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace dmxc {

/// What a buffer's type says of it, its strides and its offset in elements. The kind means nothing.
corsair::DeviceTensor layoutOf(mlir::MemRefType type);
/// The type of a buffer in GM without gaps, its dims in memory in this order, the outermost first.
mlir::MemRefType denseBuffer(llvm::ArrayRef<int64_t> shape, mlir::Type element, llvm::ArrayRef<unsigned> order);

mlir::Value transposedView(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer,
                           llvm::ArrayRef<int64_t> permutation);
mlir::Value slicedView(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer, llvm::ArrayRef<int64_t> starts,
                       llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> steps);
/// Of a shape that the buffer's is broadcast to.
mlir::Value broadcastView(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer,
                          llvm::ArrayRef<int64_t> shape);
/// With other dims of as many elements; null where the strides allow none.
mlir::Value reshapedView(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer,
                         llvm::ArrayRef<int64_t> shape);

/// Fails with an error where a slice of a tensor, or what is inserted into one, steps over numbers; with `whole` also
/// where it does not begin at the first one.
template <typename Op> mlir::LogicalResult checkSlice(Op op, bool whole = false) {
  auto are = [](llvm::ArrayRef<int64_t> all, int64_t number) {
    return llvm::all_of(all, [number](int64_t each) { return each == number; });
  };
  if (!are(op.getStaticStrides(), 1))
    return op.emitError("steps over numbers; what is taken lies side by side");
  if (whole && !are(op.getStaticOffsets(), 0))
    return op.emitError("does not begin at the first number of what is filled up to whole tiles");
  return mlir::success();
}

/// Whether an op is one of these.
bool isBufferView(mlir::Operation *op);
/// The op of the body of its function, a kernel too, that an op is in.
mlir::Operation *topOf(mlir::Operation *op);
/// What a view, grid of tiles, or one of these again, is of.
mlir::Value rootOf(mlir::Value buffer);

} // namespace dmxc
