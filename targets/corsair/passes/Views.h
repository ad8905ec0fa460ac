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

/// Whether an op is one of these.
bool isBufferView(mlir::Operation *op);

} // namespace dmxc
