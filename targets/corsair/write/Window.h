//===- Window.h - a window walking over an image ----------------*- C++ -*-===//
#pragma once

#include "mlir/IR/Builders.h"

#include "llvm/ADT/ArrayRef.h"

namespace dmxc::corsair {

/// Geometry of a convolution or pooling over one or two spatial dims; a missing dim is one row.
struct Window {
  /// Shapes are [n, c, (h,) w]; the others have one number a spatial dim.
  Window(llvm::ArrayRef<int64_t> image, llvm::ArrayRef<int64_t> result, llvm::ArrayRef<int64_t> kernel,
         llvm::ArrayRef<int64_t> stride, llvm::ArrayRef<int64_t> dilation, llvm::ArrayRef<int64_t> low);

  int64_t h, w, outH, outW, kh, kw, sh, sw, dh, dw, ph, pw;

  /// As the clause of a task.
  mlir::DictionaryAttr attribute(mlir::Builder &builder) const;
};

} // namespace dmxc::corsair
