//===- Resize.h - what the two ways to resample share ---------*- C++ -*-===//
#pragma once

#include "../NodeContext.h"

namespace dmxc::onnxfe {

struct ResizeOptions {
  std::string mode = "nearest", coordinates = "half_pixel", nearest = "round_prefer_floor";
  double cubicA = -0.75, extrapolation = 0;
  bool excludeOutside = false, antialias = false;
};

/// Whether a part of the operand is cut out, and what lies outside of it extrapolated.
inline bool isCrop(const ResizeOptions &o) { return o.coordinates == "tf_crop_and_resize"; }

/// One axis resampled by a scale that is known at run time only, or of a size that is; the numbers are f64 of rank 0.
/// An axis without a scale stays as it is.
struct ResizeAxis {
  Dim in, out;
  Val scale = {}, roiStart = {}, roiEnd = {};
};
/// Sets the result to operand 0 resampled so. For a crop, operand 1 has the region of the `named` axes.
void resampleAtRun(NodeContext &c, const ResizeOptions &o, const std::vector<int64_t> &named,
                   std::vector<ResizeAxis> axes);

/// Resize with scales, sizes or a region known at run time only, of the declared shape; `axes` are those that the
/// numbers stand for, and -1 as an operand's number means that there is none.
void importRuntimeResize(NodeContext &c, const ResizeOptions &o, const std::vector<int64_t> &axes, int scales,
                         int sizes, const Shape &declared);

} // namespace dmxc::onnxfe
