//===- Resize.cpp - resampling --------------------------------------------===//
//
// Where sizes are known at compile time, each axis is a sum of a few gathers with constant indices, each times a
// constant weight vector.
//
//===----------------------------------------------------------------------===//
#include "Resize.h"
#include "Formulas.h"
#include "Require.h"
#include "Window.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

using namespace dmxc::dmir;

namespace dmxc::frontend {
namespace {

using Options = ResizeOptions;

struct AxisPlan {
  int64_t in = 1, out = 1;
  double scale = 1;
  double roiStart = 0, roiEnd = 1;
};

/// The same as torch's kernels compute it, for what its modes are exported as; nullopt for others.
std::optional<double> torchCoordinate(const Options &o, const AxisPlan &a, int64_t i) {
  const auto x = static_cast<float>(i), step = static_cast<float>(1 / a.scale);
  if (o.antialias)
    return step * (x + 0.5F) - 0.5F;
  if (o.mode == "nearest" && o.coordinates == "half_pixel") // one rounding: torch's compiler fuses the two operations
    return static_cast<float>(static_cast<double>(step) * (static_cast<double>(x) + 0.5) - 0.5);
  if (o.mode != "cubic" && a.in == a.out && o.keepsSizes)
    return x;
  if (o.coordinates == "asymmetric")
    return o.mode == "nearest" && a.out == 2 * a.in ? x / 2 : x * step;
  if (o.coordinates == "align_corners")
    return a.out == 1 ? 0 : x * (static_cast<float>(a.in - 1) / static_cast<float>(a.out - 1));
  if (o.coordinates == "half_pixel" || (o.coordinates == "pytorch_half_pixel" && a.out > 1))
    return step * (x + 0.5F) - 0.5F;
  return std::nullopt;
}

/// Which element is nearest is decided in f32, as ONNX Runtime and torch do: a place of 5 that a scale like 0.6 gives
/// is below 5 in f64, where the scale's f32 is more than 0.6.
double asDecided(const Options &o, double place) { return o.mode == "nearest" ? static_cast<float>(place) : place; }

/// Where result element i lies on the input axis.
double coordinate(const Options &o, const AxisPlan &a, int64_t i) {
  // The result's length before it was rounded down: what the official cases
  // were made with.
  double in = static_cast<double>(a.in), out = a.scale * in, x = static_cast<double>(i);
  if (std::optional<double> place = o.asTorch ? torchCoordinate(o, a, i) : std::nullopt)
    return *place;
  const double centre = asDecided(o, (x + 0.5) / a.scale), halfPixel = asDecided(o, centre - 0.5);
  if (o.coordinates == "asymmetric")
    return asDecided(o, x / a.scale);
  if (o.coordinates == "align_corners")
    return out == 1 || a.out == 1 ? 0 : asDecided(o, x * (in - 1) / (out - 1));
  if (o.coordinates == "pytorch_half_pixel")
    return a.out > 1 ? halfPixel : 0;
  if (o.coordinates == "tf_half_pixel_for_nn")
    return centre;
  if (o.coordinates == "tf_crop_and_resize")
    return a.out > 1 ? a.roiStart * (in - 1) + x * (a.roiEnd - a.roiStart) * (in - 1) / (out - 1)
                     : 0.5 * (a.roiStart + a.roiEnd) * (in - 1);
  if (o.coordinates == "half_pixel_symmetric") { // the part of an element that a whole result
                                                 // size loses is split in two
    double adjustment = static_cast<double>(a.out) / out, offset = in / 2 * (1 - adjustment);
    return asDecided(o, offset + centre - 0.5);
  }
  return halfPixel;
}

int64_t nearestIndex(const Options &o, double x) {
  if (o.nearest == "round_prefer_floor")
    return static_cast<int64_t>(std::ceil(x - 0.5));
  if (o.nearest == "round_prefer_ceil")
    return static_cast<int64_t>(std::floor(o.asTorch ? static_cast<float>(x + 0.5) : x + 0.5));
  return static_cast<int64_t>(o.nearest == "floor" ? std::floor(x) : std::ceil(x));
}

double cubicWeight(double x, double a) {
  x = std::abs(x);
  if (x <= 1)
    return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

/// Lanczos' kernel of three lobes: sinc(x) sinc(x / 3).
double lanczosWeight(double x) {
  auto sinc = [](double t) { return t == 0 ? 1 : std::sin(t) / t; };
  return std::abs(x) < 3 ? sinc(M_PI * x) * sinc(M_PI * x / 3) : 0;
}

double tapWeight(const Options &o, double x) {
  return o.mode == "lanczos" ? lanczosWeight(x)
         : o.mode == "cubic" ? cubicWeight(x, o.cubicA)
                             : std::clamp(1 - std::abs(x), 0.0, 1.0);
}

/// Weights of the taps base + first, base + first + 1, ...; `ratio` in (0, 1]
/// is the distance from base.
std::vector<double> tapWeights(const Options &o, double ratio, double scale, int64_t &first) {
  double squeeze = o.antialias ? std::min(scale, 1.0) : 1.0;
  first = static_cast<int64_t>(std::floor(-static_cast<double>(reachOf(o)) / squeeze)) + 1;
  std::vector<double> weights;
  double sum = 0;
  for (int64_t k = first; k < 2 - first; ++k) {
    weights.push_back(tapWeight(o, (static_cast<double>(k) - ratio) * squeeze));
    sum += weights.back();
  }
  for (double &weight : weights)
    weight /= sum;
  return weights;
}

constexpr int64_t kMaxTaps = 1024;
/// Elements of one resampled axis: its indices and weights are constants.
constexpr int64_t kMaxResampled = int64_t(1) << 24;

/// What each result element takes, a list over those for each tap.
struct Taps {
  std::vector<std::vector<int64_t>> index;
  std::vector<std::vector<double>> weight;
};

Taps tapsOf(const Options &o, const AxisPlan &a) {
  int64_t first = 0;
  int64_t taps = tapWeights(o, 1, a.scale, first).size();
  requireShape(taps <= kMaxTaps && taps * a.out < (int64_t(1) << 28), "the filter is too wide");
  Taps all{std::vector<std::vector<int64_t>>(taps, std::vector<int64_t>(a.out)),
           std::vector<std::vector<double>>(taps, std::vector<double>(a.out))};
  for (int64_t i = 0; i < a.out; ++i) {
    double at = coordinate(o, a, i), base = std::ceil(at) - 1;
    std::vector<double> weights = tapWeights(o, at - base, a.scale, first);
    double sum = 0;
    for (int64_t k = 0; k < taps; ++k) {
      int64_t source = static_cast<int64_t>(base) + first + k;
      if (o.excludeOutside && (source < 0 || source >= a.in))
        weights[k] = 0;
      sum += weights[k];
      all.index[k][i] = std::clamp<int64_t>(source, 0, a.in - 1);
    }
    for (int64_t k = 0; k < taps; ++k)
      all.weight[k][i] = o.excludeOutside && sum != 0 ? weights[k] / sum : weights[k];
  }
  return all;
}

/// The sum of the elements of x by their weights, which are of its type.
Val weighted(Emitter &e, const Val &x, int64_t axis, const Taps &taps) {
  Val result;
  for (size_t k = 0; k < taps.index.size(); ++k) {
    Dim out(static_cast<int64_t>(taps.index[k].size()));
    Val part = e.mul(e.gather(x, e.ints(taps.index[k]), axis),
                     alongAxis(e, e.floats(x.dtype(), {*out.known()}, taps.weight[k]), axis, x.rank()));
    result = result ? e.add(result, part) : part;
  }
  return result;
}

/// The same of bytes, rounded: weights are whole multiples of a power of two, the smallest with which the largest
/// weight still has 16 bits.
Val weightedBytes(Emitter &e, const Val &x, int64_t axis, Taps taps) {
  double largest = 0;
  for (size_t k = 0; k < taps.index.size(); ++k)
    for (size_t i = 0; i < taps.index[k].size(); ++i) {
      if (k > 0 && taps.index[k][i] == taps.index[k - 1][i]) // beyond the ends; one element has one weight
        taps.weight[k][i] += std::exchange(taps.weight[k - 1][i], 0);
      largest = std::max(largest, taps.weight[k][i]);
    }
  constexpr int kMostBits = 22; // as many as the sums' 32 bits leave
  int64_t one = 1;
  while (one < int64_t(1) << kMostBits && std::floor(largest * static_cast<double>(2 * one) + 0.5) < 1 << 15)
    one *= 2;
  for (std::vector<double> &weights : taps.weight)
    for (double &weight : weights)
      weight = std::trunc(weight * static_cast<double>(one) + (weight < 0 ? -0.5 : 0.5));
  Val sum = weighted(e, e.cast(x, DType::I32), axis, taps);
  sum = e.max(e.add(sum, e.intScalar(DType::I32, one / 2)), e.intScalar(DType::I32, 0));
  return e.cast(e.min(e.div(sum, e.intScalar(DType::I32, one)), e.intScalar(DType::I32, 255)), DType::U8);
}

Val interpolate(Emitter &e, const Val &x, int64_t axis, const Options &o, const AxisPlan &a) {
  requireShape(a.out <= kMaxResampled, "an axis cannot be resampled to " + std::to_string(a.out) + " elements");
  if (o.mode != "nearest")
    return o.wholeWeights ? weightedBytes(e, x, axis, tapsOf(o, a)) : weighted(e, x, axis, tapsOf(o, a));
  std::vector<int64_t> index(a.out);
  for (int64_t i = 0; i < a.out; ++i)
    index[i] = std::clamp<int64_t>(nearestIndex(o, coordinate(o, a, i)), 0, a.in - 1);
  return e.gather(x, e.ints(index), axis);
}

/// tf_crop_and_resize: what lies outside of the input gets the extrapolation
/// value.
Val extrapolate(Emitter &e, const Val &y, int64_t axis, const Options &o, const AxisPlan &a) {
  Tensor outside(DType::Bool, {a.out});
  bool any = false;
  for (int64_t i = 0; i < a.out; ++i) {
    double at = coordinate(o, a, i);
    outside.setInt(i, at < 0 || at > static_cast<double>(a.in - 1));
    any |= outside.asInt(i) != 0;
  }
  if (!any)
    return y;
  return e.select(alongAxis(e, e.constant(std::move(outside)), axis, y.rank()), e.scalarLike(y, o.extrapolation), y);
}

/// floor(dim * scale) as an expression: a float is a whole number over a power of two, and a number that someone wrote
/// one over a power of ten.
Dim scaledSize(Dim dim, double scale) {
  requireShape(std::isfinite(scale) && scale > 1e-6 && scale < 1e6,
               "the scale " + std::to_string(scale) + " is not usable");
  for (int64_t power = 1; power <= 1000000000; power *= 10)
    if (const double whole = std::round(scale * static_cast<double>(power));
        whole / static_cast<double>(power) == scale)
      return Dim::floorDiv(dim * static_cast<int64_t>(whole), power);
  int64_t denominator = 1;
  while (scale != std::floor(scale) && denominator < (int64_t(1) << 40)) {
    scale *= 2;
    denominator *= 2;
  }
  return Dim::floorDiv(dim * static_cast<int64_t>(scale), denominator);
}

} // namespace

Val resampled(Emitter &e, const Val &x, const ResizeOptions &o, DType type) {
  if (!o.asTorch || !isInt(type) || !isFloat(x.dtype()))
    return e.cast(x, type);
  // Bytes: torch resamples no other integers.
  auto limit = [&](double number) { return e.scalarLike(x, number); };
  double low = type == DType::I8 ? -128 : 0;
  Val rounded = e.emit<FloorOp>({e.add(x, 0.5)});
  return e.cast(type == DType::I8 || type == DType::U8 ? e.min(e.max(rounded, limit(low)), limit(low + 255)) : rounded,
                type);
}

namespace {

Val resample(Emitter &e, Val x, const Options &o, const std::vector<AxisPlan> &plans) {
  DType type = x.dtype();
  // Weighted sums of narrow floats and integers are rounded once, at the end.
  if (o.mode != "nearest" && type != DType::F64 && !o.wholeWeights)
    x = e.cast(x, DType::F32);
  bool crop = isCrop(o);
  for (int64_t i = 0; i < x.rank(); ++i) {
    const int64_t axis = o.wholeWeights ? x.rank() - 1 - i : i;
    const AxisPlan &a = plans[axis];
    bool whatever = o.asTorch && o.antialias; // the scale is
    if (a.in == a.out && (a.scale == 1 || whatever) && !crop)
      continue;
    requireShape(a.in > 0 || a.out == 0, "an empty axis cannot grow");
    if (a.out == 0)
      x = e.sliceAxis(x, axis, 0, 0);
    else
      x = interpolate(e, x, axis, o, a);
  }
  for (int64_t axis = 0; crop && axis < static_cast<int64_t>(plans.size()); ++axis)
    x = extrapolate(e, x, axis, o, plans[axis]);
  return resampled(e, x, o, type);
}

void checkScale(double scale, int64_t dim) {
  requireShape(std::isfinite(scale) && scale > 0 && scale * static_cast<double>(dim) < 1e9,
               "the scale " + std::to_string(scale) + " is not usable");
}

/// Between the outermost elements; no distance lies between those of one element.
double cornerScale(int64_t in, int64_t out) {
  return out > 1 ? static_cast<double>(out - 1) / static_cast<double>(in - 1) : std::numeric_limits<double>::infinity();
}

/// The size of a scaled axis: the product rounded down, of f32 as ONNX's shape inference and ONNX Runtime have it, or
/// of torch's f64.
AxisPlan scaledAxis(const Options &o, int64_t dim, double scale) {
  checkScale(scale, dim);
  const double product = o.asTorch ? static_cast<double>(dim) * scale
                                   : static_cast<double>(static_cast<float>(dim) * static_cast<float>(scale));
  const auto out = static_cast<int64_t>(std::floor(product));
  return {dim, out, o.cornerScale ? cornerScale(dim, out) : scale, 0, 1};
}

std::vector<AxisPlan> plansFromScales(const Val &x, const Options &o, const std::vector<int64_t> &axes,
                                      const std::vector<double> &scales) {
  requireShape(scales.size() == axes.size(),
               std::to_string(scales.size()) + " scales for " + std::to_string(axes.size()) + " axes");
  std::vector<AxisPlan> plans;
  for (int64_t dim : x.shape())
    plans.push_back({dim, dim, 1, 0, 1});
  for (size_t i = 0; i < axes.size(); ++i)
    plans[axes[i]] = scaledAxis(o, x.dim(axes[i]), scales[i]);
  return plans;
}

std::vector<AxisPlan> plansFromSizes(const Val &x, const std::vector<int64_t> &axes, const std::vector<int64_t> &sizes,
                                     const Options &o) {
  const std::string &policy = o.policy;
  requireShape(sizes.size() == axes.size(),
               std::to_string(sizes.size()) + " sizes for " + std::to_string(axes.size()) + " axes");
  requireAttr(policy == "stretch" || policy == "not_larger" || policy == "not_smaller",
              "keep_aspect_ratio_policy '" + policy + "' is unknown");
  std::vector<AxisPlan> plans;
  for (int64_t dim : x.shape())
    plans.push_back({dim, dim, 1, 0, 1});
  double common = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t dim = x.dim(axes[i]);
    requireShape(dim > 0 && sizes[i] >= 0 && sizes[i] < (int64_t(1) << 30),
                 "a size of " + std::to_string(sizes[i]) + " for dim " + std::to_string(dim));
    double scale =
        o.cornerScale ? cornerScale(dim, sizes[i]) : static_cast<double>(sizes[i]) / static_cast<double>(dim);
    common = i == 0 ? scale : policy == "not_larger" ? std::min(common, scale) : std::max(common, scale);
    plans[axes[i]] = {dim, sizes[i], scale, 0, 1};
  }
  if (policy != "stretch")
    for (int64_t axis : axes) {
      plans[axis].scale = common;
      plans[axis].out = static_cast<int64_t>(std::floor(common * static_cast<double>(plans[axis].in) + 0.5));
    }
  return plans;
}

/// The axes at the sizes that are asked for, or all at the scale of one of them, which keeps the aspect ratio.
void scaleToSizes(Emitter &e, const Options &o, const std::vector<int64_t> &axes, const Dims &sizes,
                  std::vector<ResizeAxis> &plans) {
  const std::string &policy = o.policy;
  requireAttr(policy == "stretch" || policy == "not_larger" || policy == "not_smaller",
              "keep_aspect_ratio_policy '" + policy + "' is unknown");
  auto extremum = [&](Dim a, Dim b) { return policy == "not_larger" ? Dim::min(a, b) : Dim::max(a, b); };
  Val common;
  for (size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis &a = plans[axes[i]];
    requireShape(!a.in.is(0), "an empty axis");
    a.out = sizes[i];
    a.scale = e.div(e.size(sizes[i], DType::F64), e.size(a.in, DType::F64));
    common = !common ? a.scale : policy == "not_larger" ? e.min(common, a.scale) : e.max(common, a.scale);
  }
  for (int64_t axis : axes) {
    ResizeAxis &a = plans[axis];
    if (policy == "stretch") {
      if (a.in == a.out && !isCrop(o))
        a.scale = Val(); // the axis stays as it is
      continue;
    }
    a.scale = common;
    std::optional<Dim> out; // in * size / dim, rounded half up, of the axis that decides
    for (size_t i = 0; i < axes.size(); ++i) {
      Dim dim = plans[axes[i]].in, scaled = Dim::floorDiv(a.in * sizes[i] * 2 + dim, dim * 2);
      out = out ? extremum(*out, scaled) : scaled;
    }
    a.out = *out;
  }
}

/// Axes of symbolic sizes: indices and weights of the taps are computed at run time.
Val resampleSymbolic(Emitter &e, const Val &x, const Options &o, const std::vector<int64_t> &axes,
                     const std::vector<double> &scales, const Dims &sizes, const Val &region) {
  requireShape(!o.wholeWeights, "bytes are weighed where sizes are numbers");
  requireShape((sizes.empty() ? scales.size() : sizes.size()) == axes.size(),
               "the scales or sizes do not fit the axes");
  std::vector<ResizeAxis> plans;
  for (Dim dim : x.dims())
    plans.push_back({dim, dim});
  if (!sizes.empty())
    scaleToSizes(e, o, axes, sizes, plans);
  for (size_t i = 0; i < scales.size(); ++i) {
    ResizeAxis &a = plans[axes[i]];
    a.out = scaledSize(a.in, o.asTorch ? scales[i] : asWritten(scales[i]));
    if (scales[i] != 1 || isCrop(o))
      a.scale = e.scalar(DType::F64, scales[i]);
  }
  return resampleAtRun(e, x, o, axes, plans, region);
}

/// What a crop takes of the axes: all starts, then all ends. Numbers that are known.
void takeRegion(const Val &region, const std::vector<int64_t> &axes, std::vector<AxisPlan> &plans) {
  std::vector<double> roi;
  for (int64_t i = 0; region.isConstant() && i < region.numElements(); ++i)
    roi.push_back(region.constant().asDouble(i));
  requireShape(roi.size() == 2 * axes.size(),
               "the region of interest must have " + std::to_string(2 * axes.size()) + " numbers");
  for (size_t i = 0; i < axes.size(); ++i) {
    plans[axes[i]].roiStart = roi[i];
    plans[axes[i]].roiEnd = roi[i + axes.size()];
  }
}

} // namespace

/// The number that was rounded to the f32 of a file: the shortest one that is.
double asWritten(double single) {
  char text[32];
  std::to_chars_result end = std::to_chars(text, std::end(text), static_cast<float>(single));
  double number = single;
  std::from_chars(text, end.ptr, number);
  return number;
}

std::vector<int64_t> allAxes(const Val &x) { return axesFrom(0, x.rank()); }

Val resize(Emitter &e, const Val &x, const ResizeOptions &o, const std::vector<int64_t> &axes,
           const std::vector<double> &scales, const Dims &sizes, const Val &region) {
  bool known = x.hasStaticShape() && llvm::all_of(sizes, [](Dim size) { return size.isStatic(); });
  bool crop = isCrop(o);
  if (!known || (crop && !region.isConstant() && !region.elements().is(0)))
    return resampleSymbolic(e, x, o, axes, scales, sizes, region);
  std::vector<AxisPlan> plans =
      sizes.empty() ? plansFromScales(x, o, axes, scales) : plansFromSizes(x, axes, numbersOf(sizes), o);
  if (crop)
    takeRegion(region, axes, plans);
  return resample(e, x, o, plans);
}

namespace {

/// Whether other elements are nearest by places in f64.
bool hasOtherNearest(const Options &o, const AxisPlan &a, const Options &exact, const AxisPlan &b) {
  for (int64_t i = 0; i < std::min(a.out, kMaxResampled); ++i)
    if (nearestIndex(o, coordinate(o, a, i)) != nearestIndex(o, coordinate(exact, b, i)))
      return true;
  return false;
}

} // namespace

bool hangsOnRounding(const Val &x, const ResizeOptions &o, const std::vector<int64_t> &axes,
                     const std::vector<double> &scales, const Dims &sizes) {
  if (!x.hasStaticShape() || !(sizes.empty() || o.policy == "stretch"))
    return false;
  std::vector<AxisPlan> plans =
      sizes.empty() ? plansFromScales(x, o, axes, scales) : plansFromSizes(x, axes, numbersOf(sizes), o);
  ResizeOptions exact = o;
  exact.asTorch = false;
  exact.mode = "linear"; // places in f64
  for (size_t i = 0; i < axes.size(); ++i) {
    const AxisPlan &a = plans[axes[i]];
    AxisPlan b = a;
    if (sizes.empty()) {
      b.scale = static_cast<float>(scales[i]);
      if (a.out != static_cast<int64_t>(std::floor(static_cast<double>(a.in) * b.scale)))
        return true;
    }
    if (o.mode == "nearest" && o.coordinates != "align_corners" && !isCrop(o) && hasOtherNearest(o, a, exact, b))
      return true;
  }
  return false;
}

} // namespace dmxc::frontend
