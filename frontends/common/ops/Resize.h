//===- Resize.h - resampling ------------------------------------*- C++ -*-===//
#pragma once

#include "../Emitter.h"

#include <string>

namespace dmxc::frontend {

struct ResizeOptions {
  std::string mode = "nearest"; ///< or linear, cubic, lanczos
  std::string coordinates = "half_pixel", nearest = "round_prefer_floor";
  std::string policy = "stretch"; ///< or not_larger, not_smaller: sizes at one scale
  double cubicA = -0.75, extrapolation = 0;
  bool excludeOutside = false, antialias = false;
  /// Places are numbers of f32, and aligned corners are those of the result's size, not of the size before it is
  /// rounded.
  bool asTorch = false;
  /// Of torch: an axis whose size stays is not resampled, whatever its scale.
  bool keepsSizes = true;
  /// The scale is that of the distances between the outermost elements, whatever the coordinates.
  bool cornerScale = false;
  /// Bytes as torch's kernels weigh them: the last axis first, by whole numbers of 16 bits, each axis rounded to bytes.
  /// For sizes that are known.
  bool wholeWeights = false;
};

/// How far from its place a result element takes elements, where the scale is 1.
inline int64_t reachOf(const ResizeOptions &o) { return o.mode == "lanczos" ? 3 : o.mode == "cubic" ? 2 : 1; }
/// Weighted sums as elements of the type: integers are truncated, and as torch does it rounded half up and clamped.
Val resampled(Emitter &e, const Val &x, const ResizeOptions &o, DType type);

/// Whether a part of the operand is cut out, and what lies outside of it extrapolated.
inline bool isCrop(const ResizeOptions &o) { return o.coordinates == "tf_crop_and_resize"; }

/// The number that was rounded to the f32 of a file: the shortest one that is.
double asWritten(double single);

std::vector<int64_t> allAxes(const Val &x);

/// x with the axes resampled to sizes, or by scales where there are no sizes; for a crop `region` has the start of each
/// axis, then the end of each.
Val resize(Emitter &e, const Val &x, const ResizeOptions &o, const std::vector<int64_t> &axes,
           const std::vector<double> &scales, const Dims &sizes, const Val &region = Val());

/// Whether a size, or which element is nearest, is another one where it is computed in f64, as ONNX's reference does.
bool hangsOnRounding(const Val &x, const ResizeOptions &o, const std::vector<int64_t> &axes,
                     const std::vector<double> &scales, const Dims &sizes);

/// One axis resampled by a scale that is known at run time only, or of a size that is; the numbers are f64 of rank 0.
/// An axis without a scale stays as it is.
struct ResizeAxis {
  Dim in, out;
  Val scale = {}, roiStart = {}, roiEnd = {};
};
/// x resampled so; a crop's region is that of the `named` axes.
Val resampleAtRun(Emitter &e, Val x, const ResizeOptions &o, const std::vector<int64_t> &named,
                  std::vector<ResizeAxis> axes, const Val &region);

} // namespace dmxc::frontend
