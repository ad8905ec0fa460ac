//===- Resize.h - what the two ways to resample share ---------*- C++ -*-===//
#pragma once

#include "../NodeContext.h"

namespace dmxc::onnxfe {

struct ResizeOptions {
  std::string mode = "nearest", coordinates = "half_pixel", nearest = "round_prefer_floor";
  double cubicA = -0.75, extrapolation = 0;
  bool excludeOutside = false, antialias = false;
};

/// Resize with scales, sizes or a region known at run time only, of the declared shape; `axes` are those that the
/// numbers stand for, and -1 as an operand's number means that there is none.
void importRuntimeResize(NodeContext &c, const ResizeOptions &o, const std::vector<int64_t> &axes, int roi, int scales,
                         int sizes, const Shape &declared);

} // namespace dmxc::onnxfe
