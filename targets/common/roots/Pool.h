//===- Pool.h - pooling -----------------------------------------*- C++ -*-===//
#pragma once

#include "Loops.h"

namespace dmxc::kernels {

/// Window of one spatial axis of a pooling or convolution.
struct WindowAxis {
  Dim in, window;
  int64_t stride, dilation;
  Dim low, high, extra;
};
/// Taps [first, last) whose input position is in [from, to), for the window of output `out`.
std::pair<mlir::Value, mlir::Value> validTaps(KernelBuilder &b, const WindowAxis &axis, mlir::Value out, Dim from,
                                              Dim to);

} // namespace dmxc::kernels
