//===- Resample.cpp - resampling of images --------------------------------===//
#include "Math.h"

#include "frontends/common/ops/GridSample.h"
#include "frontends/common/ops/Resize.h"

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

ResizeOptions resizeMode(AtenContext &c, const std::string &mode) {
  bool corners = c.given("align_corners") && c.flag("align_corners");
  ResizeOptions o;
  o.mode = mode;
  o.coordinates = mode == "nearest" ? "asymmetric" : corners ? "align_corners" : "half_pixel";
  o.nearest = "floor";
  o.asTorch = true;
  return o;
}

/// torch resamples by the scales where they are given, else by the sizes; with the corners aligned, by the sizes
/// always.
Val resized(AtenContext &c, const Val &x, const std::string &mode) {
  Dims size = c.dims("output_size");
  std::vector<double> scales = c.numbers("scale_factors");
  c.require(size.empty() != scales.empty(), "exactly one of output_size and scale_factors must be given");
  c.requireShape(x.rank() == static_cast<int64_t>(2 + std::max(size.size(), scales.size())),
                 "the sizes do not fit the rank");
  for (double scale : scales)
    c.require(scale > 0 && scale <= 65536, "a scale is no sensible number");
  for (size_t i = 0; i < scales.size() && c.given("align_corners") && c.flag("align_corners"); ++i)
    size.push_back(static_cast<int64_t>(static_cast<double>(x.dim(i + 2)) * scales[i]));
  if (size.empty())
    scales.insert(scales.begin(), 2, 1.0);
  else
    scales.clear();
  Dims whole{x.extent(0), x.extent(1)};
  whole.append(size.begin(), size.end());
  return resize(c.e, x, resizeMode(c, mode), allAxes(x), scales, size.empty() ? Dims() : whole);
}
template <char mode> void importUpsample(AtenContext &c) {
  c.result(resized(c, c.tensor("input"), mode == 'n' ? "nearest" : mode == 'l' ? "linear" : "cubic"));
}

/// By the same matrix as forward: what each unit of the input gives, an axis at a time.
template <char mode> void importUpsampleBackward(AtenContext &c) {
  Val g = c.tensor("grad_output");
  std::vector<int64_t> size = c.integers("input_size");
  c.requireShape(size.size() == 4 && g.rank() == 4, "expected rank 4");
  for (int64_t axis = 2; axis < 4; ++axis) {
    int64_t in = size[axis], out = g.dim(axis);
    c.requireShape(in > 0 && out > 0 && in <= 8192 && out <= 8192, "an axis is empty or too large");
    Val units = c.e.cast(c.e.compare(Compare::eq, c.e.iota(DType::I64, {in, 1}, 0), c.e.iota(DType::I64, {1, in}, 1)),
                         g.dtype());
    std::vector<double> scales = c.numbers("scale_factors");
    bool bySize = scales.size() != 2 || (c.given("align_corners") && c.flag("align_corners"));
    scales = bySize ? std::vector<double>() : std::vector<double>{1.0, 1.0, scales[axis - 2]};
    Val images = c.e.reshape(units, {in, 1, in});
    Val matrix = resize(c.e, images, resizeMode(c, mode == 'n' ? "nearest" : "linear"), allAxes(images), scales,
                        bySize ? Dims{in, 1, out} : Dims());
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
  return {
      {"upsample_nearest1d.vec(" VEC "float[]? scale_factors) -> Tensor", importUpsample<'n'>},
      {"upsample_nearest2d.vec(" VEC "float[]? scale_factors) -> Tensor", importUpsample<'n'>},
      {"upsample_nearest3d.vec(" VEC "float[]? scale_factors) -> Tensor", importUpsample<'n'>},
      {"upsample_linear1d.vec(" VEC "bool align_corners, float[]? scale_factors) -> Tensor", importUpsample<'l'>},
      {"upsample_bilinear2d.vec(" VEC "bool align_corners, float[]? scale_factors) -> Tensor", importUpsample<'l'>},
      {"upsample_trilinear3d.vec(" VEC "bool align_corners, float[]? scale_factors) -> Tensor", importUpsample<'l'>},
      {"upsample_bicubic2d.vec(" VEC "bool align_corners, float[]? scale_factors) -> Tensor", importUpsample<'c'>},
      {"upsample_nearest2d_backward.vec(" GRAD "float[]? scale_factors) -> Tensor", importUpsampleBackward<'n'>},
      {"upsample_bilinear2d_backward.vec(" GRAD "bool align_corners, float[]? scale_factors) -> Tensor",
       importUpsampleBackward<'l'>},
      {"grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
       "Tensor",
       importGridSample},
      {"grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
       "Tensor",
       importGridSample},
      {"affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor", importAffineGrid},
  };
#undef VEC
#undef GRAD
}

} // namespace dmxc::torchfe
