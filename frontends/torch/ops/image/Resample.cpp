//===- Resample.cpp - resampling of images --------------------------------===//
#include "../Math.h"

#include "frontends/common/ops/Resize.h"
#include "frontends/common/ops/vision/GridSample.h"

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

enum class Filter { Nearest, NearestExact, Linear, Cubic, SmoothLinear, SmoothCubic, SmoothLanczos };

bool corners(AtenContext &c) { return c.given("align_corners") && c.flag("align_corners"); }

ResizeOptions filterOptions(AtenContext &c, Filter filter) {
  ResizeOptions o;
  o.asTorch = true;
  o.nearest = "floor";
  switch (filter) {
  case Filter::Nearest:
    o.coordinates = "asymmetric";
    return o;
  case Filter::NearestExact:
    o.nearest = "round_prefer_ceil";
    return o;
  case Filter::Linear:
  case Filter::Cubic:
    o.mode = filter == Filter::Linear ? "linear" : "cubic";
    o.coordinates = corners(c) ? "align_corners" : "half_pixel";
    return o;
  default: // the filter is as wide as the scale asks for, and aligned corners change nothing but the scale
    o.mode = filter == Filter::SmoothLinear ? "linear" : filter == Filter::SmoothCubic ? "cubic" : "lanczos";
    o.cubicA = -0.5;
    o.antialias = o.excludeOutside = true;
    o.cornerScale = corners(c);
    return o;
  }
}

ResizeOptions optionsOf(AtenContext &c, Filter filter, const Val &x) {
  ResizeOptions o = filterOptions(c, filter);
  o.wholeWeights = o.mode != "nearest" && x.dtype() == DType::U8 && x.rank() == 4;
  o.keepsSizes = o.mode != "nearest" || x.rank() == 4; // the kernels of lines and volumes know no such case
  c.require(o.mode == "nearest" || isFloat(x.dtype()) || o.wholeWeights,
            "of numbers that are no floats torch resamples bytes of images alone, or takes the nearest");
  return o;
}

void checkScales(AtenContext &c, const Val &x, size_t axes, llvm::ArrayRef<double> scales) {
  c.requireShape(x.rank() == static_cast<int64_t>(2 + axes), "the sizes do not fit the rank");
  for (double scale : scales)
    c.require(scale > 0 && scale <= 65536, "a scale is no sensible number");
}

/// torch resamples by the scales where they are given, else by the sizes; with the corners aligned, by the sizes
/// always.
template <Filter filter> void importUpsample(AtenContext &c) {
  Dims size = c.dims("output_size");
  std::vector<double> scales = c.numbers("scale_factors");
  c.require(size.empty() != scales.empty(), "exactly one of output_size and scale_factors must be given");
  Val x = c.tensor("input");
  checkScales(c, x, std::max(size.size(), scales.size()), scales);
  for (size_t i = 0; i < scales.size() && corners(c); ++i)
    size.push_back(static_cast<int64_t>(static_cast<double>(x.dim(i + 2)) * scales[i]));
  if (!size.empty())
    scales.clear();
  c.result(resize(c.e, x, optionsOf(c, filter, x), axesFrom(2, x.rank()), scales, size));
}

/// The same with the sizes and, of each axis, the scale that they were made with, or none.
template <Filter filter> void importUpsampleTo(AtenContext &c) {
  Dims size = c.dims("output_size");
  static const std::vector<const char *> names[] = {
      {"scales"}, {"scales_h", "scales_w"}, {"scales_d", "scales_h", "scales_w"}};
  c.require(size.size() >= 1 && size.size() <= 3, "there must be one to three sizes");
  std::vector<int64_t> scaled, sized;
  std::vector<double> scales;
  Dims sizes, result;
  for (size_t i = 0; i < size.size(); ++i) {
    const char *scale = names[size.size() - 1][i];
    if (c.given(scale) && !corners(c)) {
      scaled.push_back(i + 2);
      scales.push_back(c.number(scale));
    } else {
      sized.push_back(i + 2);
      sizes.push_back(size[i]);
    }
  }
  Val x = c.tensor("self"), y = c.wide(x);
  checkScales(c, x, size.size(), scales);
  if (!scaled.empty())
    y = resize(c.e, y, optionsOf(c, filter, y), scaled, scales, {});
  if (!sized.empty())
    y = resize(c.e, y, optionsOf(c, filter, y), sized, {}, sizes);
  result.append({x.extent(0), x.extent(1)});
  result.append(size.begin(), size.end());
  c.requireShape(mayEqual(y.dims(), result), "the scales give other sizes than output_size");
  c.result(c.cast(c.e.expectDims(y, result), x.dtype()));
}

/// By the same matrix as forward: what each unit of the input gives, an axis at a time.
template <Filter filter> void importUpsampleBackward(AtenContext &c) {
  Val g = c.tensor("grad_output");
  std::vector<int64_t> size = c.integers("input_size");
  c.requireShape(size.size() == 4 && g.rank() == 4, "expected rank 4");
  for (int64_t axis = 2; axis < 4; ++axis) {
    int64_t in = size[axis], out = g.dim(axis);
    c.requireShape(in > 0 && out > 0 && in <= 8192 && out <= 8192, "an axis is empty or too large");
    Val units = c.e.cast(c.e.compare(Compare::eq, c.e.iota(DType::I64, {in, 1}, 0), c.e.iota(DType::I64, {1, in}, 1)),
                         g.dtype());
    std::vector<double> scales = c.numbers("scale_factors");
    bool bySize = scales.size() != 2 || corners(c);
    scales = bySize ? std::vector<double>() : std::vector<double>{1.0, 1.0, scales[axis - 2]};
    Val images = c.e.reshape(units, {in, 1, in});
    Val matrix =
        resize(c.e, images, filterOptions(c, filter), allAxes(images), scales, bySize ? Dims{in, 1, out} : Dims());
    matrix = c.e.reshape(matrix, {in, out});
    if (axis == 3)
      g = c.e.matmul(g, c.e.transposeLast(matrix));
    else
      g = c.e.matmul(matrix, g);
  }
  c.result(c.e.expectDims(g, Dims(size)));
}

void importGridSample(AtenContext &c) {
  int64_t mode = c.integer("interpolation_mode"), padding = c.integer("padding_mode");
  c.require(mode >= 0 && mode <= 2 && padding >= 0 && padding <= 2, "the mode is unknown");
  static const char *const modes[] = {"linear", "nearest", "cubic"};
  static const Padding paddings[] = {Padding::Zeros, Padding::Border, Padding::Reflection};
  Sampler sampler{c.e, modes[mode], paddings[padding], c.flag("align_corners")};
  c.result(gridSample(sampler, c.tensor("input"), c.tensor("grid")));
}

/// Pixels' places in [-1, 1]: their centres, or with `corners` the outermost ones at the ends.
Val places(Emitter &e, DType type, Dim count, bool corners) {
  Val at = e.cast(e.iota(DType::I64, {count}, 0), type), size = e.cast(e.size(count), type);
  Val twice = e.mul(at, 2.0), place = corners ? e.div(twice, e.add(size, -1.0)) : e.div(e.add(twice, 1.0), size);
  Val alone = e.compare(Compare::le, size, e.scalar(type, 1));
  return e.select(alone, e.scalar(type, 0), e.add(place, -1.0));
}
/// theta [n, d, d + 1] applied to each pixel's place (x, y, .., 1): [n, spatial.., d].
void importAffineGrid(AtenContext &c) {
  Val theta = c.tensor("theta");
  Emitter &e = c.e;
  Dims size = c.dims("size");
  int64_t axes = static_cast<int64_t>(size.size()) - 2;
  c.requireShape((axes == 2 || axes == 3) && theta.rank() == 3 && theta.extent(1).is(axes) &&
                     theta.extent(2).is(axes + 1),
                 "theta must be [n, 2, 3] for images or [n, 3, 4] for volumes");
  Dims spatial(llvm::ArrayRef<Dim>(size).drop_front(2)), column = spatial;
  column.push_back(1);
  std::vector<Val> columns;
  for (int64_t i = axes - 1; i >= 0; --i) { // x is the last axis
    Dims line(axes + 1, 1);
    line[i] = spatial[i];
    columns.push_back(
        e.broadcast(e.reshape(places(e, theta.dtype(), spatial[i], c.flag("align_corners")), line), column));
  }
  columns.push_back(e.splat(theta.dtype(), column, 1));
  Val base = e.reshape(e.concat(columns, axes), {1, product(spatial), axes + 1});
  Dims dims{theta.extent(0)};
  dims.append(spatial.begin(), spatial.end());
  dims.push_back(axes);
  c.result(e.reshape(e.matmul(base, e.transposeLast(theta)), dims));
}

} // namespace

std::vector<AtenRow> resampleOps() {
#define VEC "Tensor input, SymInt[]? output_size, "
#define GRAD "Tensor grad_output, SymInt[]? output_size, SymInt[] input_size, "
#define TO(n) "Tensor self, SymInt[" #n "] output_size, "
#define SCALES_1 "float? scales=None"
#define SCALES_2 "float? scales_h=None, float? scales_w=None"
#define SCALES_3 "float? scales_d=None, " SCALES_2
#define UPSAMPLE(name, n, filter)                                                                                      \
  {name ".vec(" VEC "float[]? scale_factors) -> Tensor", importUpsample<Filter::filter>},                              \
      {name "(" TO(n) SCALES_##n ") -> Tensor", importUpsampleTo<Filter::filter>}
#define UPSAMPLE_CORNERS(name, n, filter)                                                                              \
  {name ".vec(" VEC "bool align_corners, float[]? scale_factors) -> Tensor", importUpsample<Filter::filter>}, {        \
    name "(" TO(n) "bool align_corners, " SCALES_##n ") -> Tensor", importUpsampleTo<Filter::filter>                   \
  }
  return {
      UPSAMPLE("upsample_nearest1d", 1, Nearest),
      UPSAMPLE("upsample_nearest2d", 2, Nearest),
      UPSAMPLE("upsample_nearest3d", 3, Nearest),
      UPSAMPLE("_upsample_nearest_exact1d", 1, NearestExact),
      UPSAMPLE("_upsample_nearest_exact2d", 2, NearestExact),
      UPSAMPLE("_upsample_nearest_exact3d", 3, NearestExact),
      UPSAMPLE_CORNERS("upsample_linear1d", 1, Linear),
      UPSAMPLE_CORNERS("upsample_bilinear2d", 2, Linear),
      UPSAMPLE_CORNERS("upsample_trilinear3d", 3, Linear),
      UPSAMPLE_CORNERS("upsample_bicubic2d", 2, Cubic),
      UPSAMPLE_CORNERS("_upsample_bilinear2d_aa", 2, SmoothLinear),
      UPSAMPLE_CORNERS("_upsample_bicubic2d_aa", 2, SmoothCubic),
      UPSAMPLE_CORNERS("_upsample_lanczos2d_aa", 2, SmoothLanczos),
      {"upsample_nearest2d_backward.vec(" GRAD "float[]? scale_factors) -> Tensor",
       importUpsampleBackward<Filter::Nearest>},
      {"upsample_bilinear2d_backward.vec(" GRAD "bool align_corners, float[]? scale_factors) -> Tensor",
       importUpsampleBackward<Filter::Linear>},
      {"grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
       "Tensor",
       importGridSample},
      {"grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
       "Tensor",
       importGridSample},
      {"affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor", importAffineGrid},
  };
#undef UPSAMPLE_CORNERS
#undef UPSAMPLE
#undef SCALES_3
#undef SCALES_2
#undef SCALES_1
#undef TO
#undef GRAD
#undef VEC
}

} // namespace dmxc::torchfe
