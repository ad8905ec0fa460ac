//===- Resize.cpp - Resize and Upsample -----------------------------------===//
#include "frontends/common/ops/Resize.h"
#include "../Differences.h"
#include "../NodeContext.h"

#include <algorithm>
#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

std::vector<double> constantDoubles(NodeContext &c, int i, const char *what) {
  Tensor tensor = c.constantOperand(i, what);
  std::vector<double> values(tensor.numElements());
  for (size_t k = 0; k < values.size(); ++k)
    values[k] = tensor.asDouble(k);
  return values;
}

/// Products of sizes and scales, rounded down as f32: what ONNX's shape inference and ONNX Runtime have.
Val scaledLengths(Emitter &e, const Val &sizes, const Val &scales) {
  return e.cast(e.emit<FloorOp>({e.cast(e.mul(sizes, scales), DType::F32)}), DType::F64);
}

/// Scales that the run brings, and with them the sizes.
void resampleByScales(NodeContext &c, const ResizeOptions &o, const std::vector<int64_t> &axes, int operand) {
  Emitter &e = c.e;
  Val x = c.operand(0), scales = e.cast(c.operand(operand), DType::F64);
  int64_t count = axes.size();
  c.requireShape(mayEqual(scales.elements(), count), "the scales do not fit the axes");
  scales = e.reshape(scales, {count});
  Dims own;
  for (int64_t axis : axes)
    own.push_back(x.extent(axis));
  Val lengths = scaledLengths(e, e.cast(e.sizes(own), DType::F64), scales);
  Dims sizes = e.dimsOf(e.cast(lengths, DType::I64));
  std::vector<ResizeAxis> plans;
  for (Dim dim : x.dims())
    plans.push_back({dim, dim});
  for (int64_t i = 0; i < count; ++i) {
    plans[axes[i]].out = sizes[i];
    plans[axes[i]].scale = e.reshape(e.sliceAxis(scales, 0, i, 1), {});
  }
  c.result(resampleAtRun(e, x, o, axes, plans, c.optional(1)));
}

/// The scales, and what the declared shape asks of them.
std::vector<Val> scalesOf(NodeContext &c, const ResizeOptions &o, const std::vector<int64_t> &axes, int scales,
                          int sizes, const Shape &declared) {
  Emitter &e = c.e;
  Val x = c.operand(0), given = e.cast(c.operand(scales >= 0 ? scales : sizes), DType::F64);
  c.requireShape(given.numElements() == static_cast<int64_t>(axes.size()),
                 std::to_string(given.numElements()) + " scales or sizes for " + std::to_string(axes.size()) + " axes");
  given = e.reshape(given, {given.numElements()});
  std::vector<double> dims, results;
  for (int64_t axis : axes) {
    c.requireShape(x.dim(axis) > 0, "an empty axis");
    dims.push_back(static_cast<double>(x.dim(axis)));
    results.push_back(static_cast<double>(declared[axis]));
  }
  int64_t count = axes.size();
  Val in = e.floats(DType::F64, {count}, dims), zero = e.scalar(DType::F64, 0), lengths;
  const std::string &policy = o.policy;
  if (scales >= 0) {
    lengths = scaledLengths(e, in, given);
  } else if (policy == "stretch") {
    lengths = given;
    given = e.div(given, in);
  } else {
    c.requireAttr(policy == "not_larger" || policy == "not_smaller",
                  "keep_aspect_ratio_policy '" + policy + "' is unknown");
    Val common = e.reduce(policy == "not_larger" ? Reduction::min : Reduction::max, e.div(given, in), {0}, true);
    given = e.broadcast(common, {count});
    lengths = e.emit<FloorOp>({e.add(e.mul(given, in), 0.5)});
  }
  c.requireAtRun(e.compare(Compare::eq, lengths, e.floats(DType::F64, {count}, results)));
  c.requireAtRun(e.compare(scales >= 0 ? Compare::gt : Compare::ge, given, zero));
  std::vector<Val> list;
  for (int64_t i = 0; i < count; ++i)
    list.push_back(e.reshape(e.sliceAxis(given, 0, i, 1), {}));
  return list;
}

/// Scales, sizes or a region known at run time only, of the declared shape; `axes` are those that the numbers stand
/// for, and -1 as an operand's number means that there is none.
void importRuntimeResize(NodeContext &c, const ResizeOptions &o, const std::vector<int64_t> &axes, int scales,
                         int sizes, const Shape &declared) {
  Val x = c.operand(0);
  c.requireShape(static_cast<int64_t>(declared.size()) == x.rank(), "the declared shape has another rank");
  std::vector<ResizeAxis> plans;
  for (int64_t i = 0; i < x.rank(); ++i)
    plans.push_back({x.dim(i), declared[i]});
  std::vector<Val> factors = scalesOf(c, o, axes, scales, sizes, declared);
  for (size_t i = 0; i < axes.size(); ++i)
    plans[axes[i]].scale = factors[i];
  for (const ResizeAxis &a : plans)
    c.requireShape(a.scale || a.in == a.out, "the declared shape changes an axis that is not resampled");
  c.result(resampleAtRun(c.e, x, o, axes, plans, c.optional(1)));
}

/// What readers of ONNX make of the same numbers, where all are known.
void noteReadings(const NodeContext &c, const ResizeOptions &o, const std::vector<int64_t> &axes,
                  const std::vector<double> &scales, const Dims &sizes) {
  Val x = c.operand(0);
  const bool known = llvm::all_of(axes, [&](int64_t axis) { return x.extent(axis).isStatic(); }) &&
                     llvm::all_of(sizes, [](Dim size) { return size.isStatic(); }) &&
                     axes.size() == (sizes.empty() ? scales.size() : sizes.size());
  bool fraction = false, one = false;
  for (size_t i = 0; known && i < axes.size(); ++i) {
    double product = sizes.empty() ? scales[i] * static_cast<double>(x.dim(axes[i])) : 0;
    fraction |= sizes.empty() && std::abs(product - std::round(product)) > 1e-6 * product;
    one |= x.dim(axes[i]) > 1 && (sizes.empty() ? std::floor(product) == 1 : sizes[i].is(1));
  }
  if (fraction && o.coordinates == "align_corners")
    c.noteDifference("resize-aligned-scales");
  if (fraction && isCrop(o))
    c.noteDifference("resize-crop-scales");
  if (o.antialias && (o.cornerScale || o.coordinates == "align_corners"))
    c.noteDifference("resize-aligned-filter");
  if (isInt(x.dtype()) && o.mode != "nearest")
    c.noteDifference("resize-integers");
  if (one && o.mode == "cubic" && o.coordinates == "pytorch_half_pixel")
    c.noteDifference("resize-one-cubic");
  if (known && hangsOnRounding(x, o, axes, scales, sizes))
    c.noteDifference("resize-rounding");
}

/// Upsample, and Resize 10, which has no options: asymmetric coordinates,
/// rounded down.
void importUpsample(NodeContext &c) {
  Val x = c.operand(0);
  ResizeOptions o;
  std::string mode = c.attrString("mode", "nearest");
  c.requireAttr(mode == "nearest" || mode == "linear" || mode == "bilinear", "mode '" + mode + "' is unknown");
  o.mode = mode == "nearest" ? "nearest" : "linear";
  o.coordinates = "asymmetric";
  o.nearest = "floor";
  std::vector<double> scales;
  if (c.since() == 1) {
    c.requireShape(x.rank() == 4, "expected rank 4");
    scales = {1, 1, c.attrFloat("height_scale", 1), c.attrFloat("width_scale", 1)};
  } else if (c.since() == 7) {
    scales = c.attrFloats("scales").value_or(std::vector<double>());
  } else if (std::optional<Shape> declared = c.declaredShape(); !c.isConstant(1) && declared && x.hasStaticShape()) {
    return importRuntimeResize(c, o, allAxes(x), 1, -1, *declared);
  } else if (!c.isConstant(1)) {
    return resampleByScales(c, o, allAxes(x), 1);
  } else {
    scales = constantDoubles(c, 1, "scales");
  }
  if (c.since() == 10 && mode == "nearest" && llvm::any_of(scales, [](double scale) { return scale < 1; }))
    c.noteDifference("resize-10-nearest");
  noteReadings(c, o, allAxes(x), scales, {});
  c.result(resize(c.e, x, o, allAxes(x), scales, {}));
}

ResizeOptions optionsOf(NodeContext &c) {
  ResizeOptions o;
  o.mode = c.attrString("mode", "nearest");
  o.coordinates = c.attrString("coordinate_transformation_mode", "half_pixel");
  o.nearest = c.attrString("nearest_mode", "round_prefer_floor");
  o.cubicA = c.attrFloat("cubic_coeff_a", -0.75);
  o.extrapolation = c.attrFloat("extrapolation_value", 0);
  o.excludeOutside = c.attrInt("exclude_outside", 0) != 0;
  o.antialias = c.attrInt("antialias", 0) != 0;
  o.asTorch = c.isFromPytorch();
  o.policy = c.attrString("keep_aspect_ratio_policy", "stretch");
  auto known = [&](const std::string &name, const std::string &value, std::initializer_list<const char *> values) {
    c.requireAttr(std::find(values.begin(), values.end(), value) != values.end(), name + " '" + value + "' is unknown");
  };
  known("mode", o.mode, {"nearest", "linear", "cubic"});
  known("nearest_mode", o.nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  known("coordinate_transformation_mode", o.coordinates,
        {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
         "tf_half_pixel_for_nn", "tf_crop_and_resize"});
  o.cornerScale = o.asTorch && o.antialias && o.coordinates == "align_corners";
  if (o.cornerScale) // torch's filter has pixels' centres
    o.coordinates = "half_pixel";
  return o;
}

void importResize(NodeContext &c) {
  Val x = c.operand(0);
  ResizeOptions o = optionsOf(c);
  std::vector<int64_t> axes = allAxes(x);
  if (std::optional<std::vector<int64_t>> given = c.attrInts("axes")) {
    axes = *given;
    for (int64_t &axis : axes)
      axis = c.normalizeAxis(axis, x.rank());
  }
  // An empty tensor stands for an operand that is not there.
  bool hasSizes = c.has(3) && !c.operand(3).elements().is(0), hasScales = c.has(2) && !c.operand(2).elements().is(0);
  c.requireShape(hasSizes != hasScales || x.rank() == 0, "exactly one of scales and sizes must be given");
  bool crop = isCrop(o);
  bool runtime = (hasSizes && !c.isConstant(3)) || (hasScales && !c.isConstant(2)) || (crop && !c.isConstant(1));
  if (std::optional<Shape> declared = c.declaredShape();
      runtime && declared && x.hasStaticShape() && hasSizes != hasScales)
    return importRuntimeResize(c, o, axes, hasScales ? 2 : -1, hasSizes ? 3 : -1, *declared);
  if (hasScales && !hasSizes && !c.isConstant(2))
    return resampleByScales(c, o, axes, 2);
  Dims sizes = hasSizes ? c.sizes(3, "sizes", std::nullopt, axes.size()) : Dims();
  std::vector<double> scales = hasScales ? constantDoubles(c, 2, "scales") : std::vector<double>();
  for (double &scale : scales)
    scale = o.asTorch ? asWritten(scale) : scale;
  noteReadings(c, o, axes, scales, sizes);
  c.result(resize(c.e, x, o, axes, scales, sizes, crop ? c.operand(1) : Val()));
}

} // namespace

std::vector<OpRows> resizeOps() {
  using namespace types;
  const char *options = "coordinate_transformation_mode,cubic_coeff_a,exclude_"
                        "outside,extrapolation_value,mode,nearest_mode";
  const char *options18 = "antialias,axes,coordinate_transformation_mode,cubic_"
                          "coeff_a,exclude_outside,extrapolation_value,"
                          "keep_aspect_ratio_policy,mode,nearest_mode";
  return {
      {"Upsample", {1}, ".>1", importUpsample, "height_scale,mode,width_scale", {Any}},
      {"Upsample", {7}, ".>1", importUpsample, "mode,scales", {Any}},
      {"Upsample", {9}, "..>1", importUpsample, "mode", {Any, Float}},
      {"Resize", {10}, "..>1", importUpsample, "mode", {Any, Float}},
      {"Resize", {11, 13}, "....>1", importResize, options, {Any, Float, Float, Index}},
      {"Resize", {18, 19}, "....>1", importResize, options18, {Any, Float, Float, Index}},
  };
}

std::vector<Difference> resizeDifferences() {
  return {
      {"resize-aligned-scales", "Resize", "align_corners with scales that give no whole size",
       "the last place is that of the size before it is rounded", "the last place is the last element",
       "the last place is the last element", "the last place is that of the size before it is rounded",
       "official cases of ONNX have it so; files of PyTorch mean what torch does", "the last place is the last element",
       true},
      {"resize-rounding", "Resize",
       "scales that give a size, or in mode nearest a place, that is a whole number up to rounding", "rounded in f64",
       "rounded in f32", "rounded in f32", "rounded in f32",
       "1.3 as f32 is less than 1.3, and 10 elements scaled by it are to be 13; ONNX's shape inference has it so", "",
       true},
      {"resize-crop-scales", "Resize", "tf_crop_and_resize with scales that give no whole size",
       "the last place is that of the size before it is rounded", "the last place is the end of the region", "",
       "the last place is that of the size before it is rounded", "as of align_corners; exporters write sizes", "",
       true},
      {"resize-aligned-filter", "Resize", "antialias and align_corners", "places of corners", "places of corners",
       "places of centres, at the scale of corners", "places of corners", "files of PyTorch mean what torch does",
       "places of centres, at the scale of corners", true},
      {"resize-integers", "Resize", "integers in mode linear or cubic", "rounded half to even", "truncated",
       "rounded half up and clamped", "truncated", "files of PyTorch mean what torch does",
       "rounded half up and clamped", true},
      {"resize-one-cubic", "Resize", "mode cubic and pytorch_half_pixel to one element",
       "elements of the border weigh twice", "the first element", "", "the first element", "its place is 0", "", true},
      {"resize-10-nearest", "Resize", "in opset 10, mode nearest with a scale below 1", "fails", "rounded up",
       "rounded down", "rounded down", "as Upsample; torch's exporters mean it so", "", true},
  };
}

} // namespace dmxc::onnxfe
