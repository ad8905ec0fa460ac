//===- Pool.h - pooling -----------------------------------------*- C++ -*-===//
#pragma once

#include "Loops.h"

namespace dmxc::cpu {

/// Window of one spatial axis of a pooling or convolution.
struct WindowAxis {
  Dim in, window;
  int64_t stride, dilation;
  Dim low, high, extra;
};
/// Taps [first, last) whose input position is in [from, to), for the window of output `out`.
std::pair<mlir::Value, mlir::Value> validTaps(KernelBuilder &b, const WindowAxis &axis, mlir::Value out, Dim from,
                                              Dim to);

/// How dmir.pool and dmir.arg_max_pool are computed: lanes along the channels of a block where the
/// result is blocked, else along the innermost spatial axis.
struct PoolPlan {
  int64_t block = 0; ///< channels in a block; 0: row-major
  WorkPlan work;
};

PoolPlan planPool(const RegionBody &body);
void emitPool(KernelBuilder &b, const RegionBody &body, const PoolPlan &plan);

} // namespace dmxc::cpu
