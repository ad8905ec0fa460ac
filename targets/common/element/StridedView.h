//===- StridedView.h - tensors as views of buffers --------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/Value.h"

#include <optional>

namespace dmxc::kernels {

/// A tensor as a strided view of a kernel's buffer: element [i..] is at offset + sum of i * stride.
struct StridedView {
  unsigned buffer = 0;
  Dim offset = 0;
  llvm::SmallVector<Dim> strides; ///< one an axis
};
/// The view that `value` is of an operand through transposes, slices, broadcasts and reshapes; nullopt
/// when it is not one. With an `origin`, of that value as if it lay in a buffer. `throughCasts`: of the numbers that
/// are cast to the value's.
std::optional<StridedView> stridedView(mlir::Value value, mlir::Value origin = {}, bool throughCasts = false);

/// A tensor of such dims that lies in a buffer as row-major order has it.
StridedView denseView(llvm::ArrayRef<Dim> dims, unsigned buffer = 0);

} // namespace dmxc::kernels
