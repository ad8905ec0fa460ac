//===- Window.h - windows of convolutions and poolings ----------*- C++ -*-===//
#pragma once

#include "targets/common/code/KernelBuilder.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

namespace dmxc::kernels {

/// Window of one spatial axis of a pooling or convolution.
struct WindowAxis {
  Dim in, out, taps;
  int64_t stride = 1, dilation = 1;
  Dim low = 0;             ///< padding before the image
  Dim apart = 0;           ///< of a convolution's view: elements from a pixel of the image to the next
  Dim high = 0, extra = 0; ///< of a pooling: padding behind the image, and what of it rounding up has added
  bool operator==(const WindowAxis &) const = default;

  /// Whether an output reads the pixel in its own place, and nothing else.
  bool isPointwise() const { return taps.is(1) && stride == 1 && low.is(0) && in == out; }
  /// The input position of tap 0, which may be negative, and of a tap.
  mlir::Value origin(KernelBuilder &b, mlir::Value at) const { return b.sub(b.mulC(at, stride), b.idx(low)); }
  mlir::Value position(KernelBuilder &b, mlir::Value at, mlir::Value tap) const {
    return b.add(origin(b, at), b.mulC(tap, dilation));
  }
  /// Outputs [first, last) whose taps all lie inside the input, if there are any.
  std::pair<Dim, Dim> interior() const;
};

/// The spatial axes of a convolution, the outermost first; without places in memory.
llvm::SmallVector<WindowAxis> windowsOf(dmir::ConvOp op);
/// Those of a dmir.pool or dmir.arg_max_pool.
llvm::SmallVector<WindowAxis> windowsOfPool(mlir::Operation *op);

/// Taps [first, last) whose input position is in [from, to), for the window of output `out`.
std::pair<mlir::Value, mlir::Value> validTaps(KernelBuilder &b, const WindowAxis &axis, mlir::Value out, Dim from,
                                              Dim to);

} // namespace dmxc::kernels
