//===- Window.h - windows of convolutions and pools -------------*- C++ -*-===//
#pragma once

#include "../Emitter.h"

namespace dmxc::frontend {

/// What windows take of [n, c, spatial..]; one entry a spatial axis.
struct Window {
  Dims kernel;
  std::vector<int64_t> strides, dilations;
  Dims low, high; ///< zeros around the input; negative ones cut it
  Dims ceilExtra; ///< the part of `high` that rounding up the number of windows added
};

/// Far beyond any image; keeps the arithmetic of windows from overflowing.
inline constexpr int64_t kMaxExtent = int64_t(1) << 30;

/// Fails unless spatial dims, and the sizes of a kernel, are in range.
void requireSpatial(llvm::ArrayRef<Dim> spatial);
void requireKernel(const Dims &kernel);
/// Fails unless the numbers called `name` are at least `least` and in range.
void requireEntries(const char *name, llvm::ArrayRef<int64_t> values, int64_t least);

/// What is added to `high` on an axis so that one more window counts where the last overhangs, unless it would start in
/// the padding behind the input. `room`: how far the first window can move.
Dim ceilExtraOf(Dim spatial, Dim low, Dim room, int64_t stride);

/// The attributes strides, dilations, low and high of an op with the window, and `ceilExtra` where asked for.
llvm::SmallVector<mlir::NamedAttribute> windowAttributes(Emitter &e, const Window &window, bool ceilExtra = false);
/// Dims that are numbers, as numbers.
std::vector<int64_t> numbersOf(const Dims &dims);

Val pool(Emitter &e, dmir::Pooling kind, const Val &x, const Window &w, bool countPadding = false);
/// Where in the whole tensor the maximum of each window stands.
Val argMaxPool(Emitter &e, const Val &x, const Window &w, bool columnMajor = false);

/// conv with the window; negative pads crop. Adds `bias` (one number a channel) if it is there.
Val convolve(Emitter &e, Val x, const Val &weights, const Val &bias, const Window &window, int64_t groups);
/// Transposed: `weights` are [c, o / groups, k..]; `extra` results are added at the end of each spatial axis.
Val convolveTransposed(Emitter &e, Val x, Val weights, const Val &bias, Window window,
                       const std::vector<int64_t> &extra, int64_t groups);
/// y with one number of `bias` added for each channel.
Val withBias(Emitter &e, const Val &y, const Val &bias);

} // namespace dmxc::frontend
