//===- Window.h - geometry of convolutions and pools ------------*- C++ -*-===//
#pragma once

#include "../NodeContext.h"

namespace dmxc::onnxfe {

/// One entry a spatial axis. All from the attributes, checked; `pads` and
/// `auto_pad` are resolved to low and high.
struct Window {
  Dims kernel;
  std::vector<int64_t> strides, dilations;
  Dims low, high;
  Dims ceilExtra; ///< the part of `high` that ceil_mode added
};

/// For an input of `shape` (N x C x spatial). `kernel` empty: the attribute
/// kernel_shape.
Window windowOf(NodeContext &c, const Dims &shape, Dims kernel = {});
/// The attributes strides, dilations, low and high of an op with the window, and `ceilExtra` where asked for.
llvm::SmallVector<mlir::NamedAttribute> windowAttributes(Emitter &e, const Window &window, bool ceilExtra = false);
/// Dims that are numbers, as numbers.
std::vector<int64_t> numbersOf(const Dims &dims);

/// conv with the window; negative pads crop. Adds `bias` (one number a channel)
/// if it is there.
Val convolve(Emitter &e, Val x, const Val &weights, const Val &bias, const Window &window, int64_t groups);

/// y with one number of `bias` added for each channel.
Val withBias(Emitter &e, const Val &y, const Val &bias);

/// [c] as [c, 1, 1, ...] that broadcasts along axis 1 of a tensor of `rank`.
Val perChannel(Emitter &e, const Val &value, int64_t rank);

} // namespace dmxc::onnxfe
