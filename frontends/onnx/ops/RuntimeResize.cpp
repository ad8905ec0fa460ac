//===- RuntimeResize.cpp - resampling by scales known at run time -------===//
//
// The declared shape says how many elements there are; indices and weights of the taps are computed from the scales, in
// double like those of constant scales.
//
//===----------------------------------------------------------------------===//
#include "Resize.h"

#include <algorithm>
#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

using Axis = ResizeAxis;

constexpr int64_t kMaxTaps = 256;

class Resampler {
public:
  Resampler(NodeContext &c, const ResizeOptions &o) : c(c), e(c.e), o(o) {}

  Val run(Val x, int64_t axis, const Axis &a);
  /// What lies outside of the operand on one axis takes the extrapolation value.
  Val extrapolate(const Val &y, int64_t axis, const Axis &a);

private:
  Val number(double value) { return e.scalar(DType::F64, value); }
  Val floor(const Val &x) { return e.emit<FloorOp>({x}); }
  Val ceil(const Val &x) { return e.emit<CeilOp>({x}); }
  Val minus(const Val &x, double by) { return e.add(x, -by); }
  Val number(Dim size) { return e.size(size, DType::F64); }
  Val along(const Val &y, int64_t axis, const Val &vector) {
    Dims shape(y.rank(), 1);
    shape[axis] = vector.elements();
    return e.reshape(vector, shape);
  }
  Val index(const Val &at, Dim dim) { return e.cast(e.min(e.max(at, number(0.0)), number(dim - 1)), DType::I64); }
  /// `otherwise` where the axis has one result element or none.
  Val unlessOne(const Axis &a, const Val &value, const Val &otherwise) {
    if (a.out.isStatic())
      return a.out.is(0) || a.out.is(1) ? otherwise : value;
    return e.select(e.compare(Compare::gt, e.size(a.out), e.size(1)), value, otherwise);
  }
  Val coordinates(const Axis &a);
  Val nearest(const Val &at);
  Val weight(const Val &distance);
  Val weighted(const Val &x, int64_t axis, const Axis &a);

  NodeContext &c;
  Emitter &e;
  const ResizeOptions &o;
};

/// Where each result element lies on the operand's axis.
Val Resampler::coordinates(const Axis &a) {
  Val in = number(a.in), last = minus(in, 1);
  Val i = e.iota(DType::F64, {a.out}, 0), length = e.mul(a.scale, in), half = e.add(i, 0.5), zero = e.mul(i, 0.0);
  if (o.coordinates == "asymmetric")
    return e.div(i, a.scale);
  if (o.coordinates == "align_corners") {
    if (a.out.is(1))
      return zero;
    Val at = e.div(e.mul(i, last), minus(length, 1));
    return unlessOne(a, e.select(e.compare(Compare::eq, length, number(1.0)), zero, at), zero);
  }
  if (o.coordinates == "pytorch_half_pixel")
    return unlessOne(a, minus(e.div(half, a.scale), 0.5), zero);
  if (o.coordinates == "tf_half_pixel_for_nn")
    return e.div(half, a.scale);
  if (o.coordinates == "tf_crop_and_resize") {
    Val middle = e.add(zero, e.mul(e.mul(e.add(a.roiStart, a.roiEnd), 0.5), last));
    Val reach = e.mul(e.sub(a.roiEnd, a.roiStart), last);
    return unlessOne(a, e.add(e.mul(a.roiStart, last), e.div(e.mul(i, reach), minus(length, 1))), middle);
  }
  if (o.coordinates == "half_pixel_symmetric") {
    Val adjustment = e.div(number(a.out), length);
    Val offset = e.mul(e.sub(number(1.0), adjustment), e.mul(in, 0.5));
    return minus(e.add(offset, e.div(half, a.scale)), 0.5);
  }
  return minus(e.div(half, a.scale), 0.5); // half_pixel
}

Val Resampler::nearest(const Val &at) {
  if (o.nearest == "round_prefer_floor")
    return ceil(minus(at, 0.5));
  if (o.nearest == "round_prefer_ceil")
    return floor(e.add(at, 0.5));
  return o.nearest == "floor" ? floor(at) : ceil(at);
}

Val Resampler::weight(const Val &distance) {
  Val x = e.emit<AbsOp>({distance});
  if (o.mode == "linear")
    return e.min(e.max(e.sub(number(1.0), x), number(0.0)), number(1.0));
  double a = o.cubicA;
  Val square = e.mul(x, x), cube = e.mul(square, x);
  Val inner = e.add(e.sub(e.mul(cube, a + 2), e.mul(square, a + 3)), 1.0);
  Val outer = minus(e.add(e.sub(e.mul(cube, a), e.mul(square, 5 * a)), e.mul(x, 8 * a)), 4 * a);
  Val tail = e.select(e.compare(Compare::lt, x, number(2.0)), outer, number(0.0));
  return e.select(e.compare(Compare::le, x, number(1.0)), inner, tail);
}

Val Resampler::weighted(const Val &x, int64_t axis, const Axis &a) {
  // As many taps as the smallest scale with this many results needs; further ones weigh nothing.
  double smallest = 1;
  if (a.scale.isConstant())
    smallest = std::min(a.scale.constant().asDouble(0), 1.0);
  else if (a.in.isStatic() && a.out.isStatic())
    smallest = std::min((static_cast<double>(*a.out.known()) - 0.5) / static_cast<double>(*a.in.known()), 1.0);
  else if (o.antialias)
    fail("op-dynamic-dim", "the width of the antialiasing filter depends on dims that are known at run time only");
  double reach = (o.mode == "cubic" ? 2 : 1) / (o.antialias ? smallest : 1.0);
  int64_t first = static_cast<int64_t>(std::floor(-reach)) + 1;
  c.requireShape(2 - 2 * first <= kMaxTaps, "the filter is too wide");
  Val at = coordinates(a), base = minus(ceil(at), 1), ratio = e.sub(at, base);
  Val squeeze = o.antialias ? e.min(a.scale, number(1.0)) : number(1.0), sum;
  std::vector<Val> weights, sources;
  for (int64_t k = first; k < 2 - first; ++k) {
    weights.push_back(weight(e.mul(e.sub(number(static_cast<double>(k)), ratio), squeeze)));
    sources.push_back(e.add(base, static_cast<double>(k)));
    sum = sum ? e.add(sum, weights.back()) : weights.back();
  }
  Val inside;
  for (size_t k = 0; k < weights.size(); ++k) {
    weights[k] = e.div(weights[k], sum);
    if (!o.excludeOutside)
      continue;
    Val out = e.emit<OrOp>(
        {e.compare(Compare::lt, sources[k], number(0.0)), e.compare(Compare::gt, sources[k], number(a.in - 1))});
    weights[k] = e.select(out, number(0.0), weights[k]);
    inside = inside ? e.add(inside, weights[k]) : weights[k];
  }
  if (inside)
    inside = e.select(e.compare(Compare::eq, inside, number(0.0)), number(1.0), inside);
  Val result;
  for (size_t k = 0; k < weights.size(); ++k) {
    Val factor = e.cast(inside ? e.div(weights[k], inside) : weights[k], x.dtype());
    Val part = e.mul(e.gather(x, index(sources[k], a.in), axis), along(x, axis, factor));
    result = result ? e.add(result, part) : part;
  }
  return result;
}

Val Resampler::run(Val x, int64_t axis, const Axis &a) {
  bool crop = o.coordinates == "tf_crop_and_resize";
  c.requireShape(!a.in.is(0) || a.out.valueOr(0) == 0, "an empty axis cannot grow");
  if (a.out.is(0))
    return e.sliceAxis(x, axis, 0, 0);
  if (a.in.is(1)) { // all weights go to the one element
    Dims dims = x.dims();
    dims[axis] = a.out;
    return e.broadcast(x, dims);
  }
  Val y = o.mode == "nearest" ? e.gather(x, index(nearest(coordinates(a)), a.in), axis) : weighted(x, axis, a);
  // A scale of 1 leaves the axis as it is: an infinite element must not meet a weight of 0.
  return a.in == a.out && !crop ? e.select(e.compare(Compare::eq, a.scale, number(1.0)), x, y) : y;
}

Val Resampler::extrapolate(const Val &y, int64_t axis, const Axis &a) {
  Val at = coordinates(a);
  Val outside = e.emit<OrOp>({e.compare(Compare::lt, at, number(0.0)), e.compare(Compare::gt, at, number(a.in - 1))});
  return e.select(along(y, axis, outside), e.scalarLike(y, o.extrapolation), y);
}

/// The scales, and what the declared shape asks of them.
std::vector<Val> scalesOf(NodeContext &c, const std::vector<int64_t> &axes, int scales, int sizes,
                          const Shape &declared) {
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
  std::string policy = c.attrString("keep_aspect_ratio_policy", "stretch");
  if (scales >= 0) {
    lengths = e.emit<FloorOp>({e.mul(in, given)});
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

} // namespace

void importRuntimeResize(NodeContext &c, const ResizeOptions &o, const std::vector<int64_t> &axes, int roi, int scales,
                         int sizes, const Shape &declared) {
  Emitter &e = c.e;
  Val x = c.operand(0);
  c.requireShape(static_cast<int64_t>(declared.size()) == x.rank(), "the declared shape has another rank");
  std::vector<Axis> plans;
  for (int64_t i = 0; i < x.rank(); ++i)
    plans.push_back({x.dim(i), declared[i], Val(), e.scalar(DType::F64, 0), e.scalar(DType::F64, 1)});
  std::vector<Val> factors = scalesOf(c, axes, scales, sizes, declared);
  for (size_t i = 0; i < axes.size(); ++i)
    plans[axes[i]].scale = factors[i];
  bool crop = o.coordinates == "tf_crop_and_resize";
  if (crop) {
    int64_t count = axes.size();
    Val region = e.cast(c.operand(roi), DType::F64);
    c.requireShape(region.numElements() == 2 * count,
                   "the region of interest must have " + std::to_string(2 * count) + " numbers");
    region = e.reshape(region, {2 * count});
    for (int64_t i = 0; i < count; ++i) {
      plans[axes[i]].roiStart = e.reshape(e.sliceAxis(region, 0, i, 1), {});
      plans[axes[i]].roiEnd = e.reshape(e.sliceAxis(region, 0, i + count, 1), {});
    }
  }
  for (const Axis &a : plans)
    c.requireShape(a.scale || a.in == a.out, "the declared shape changes an axis that is not resampled");
  resampleAtRun(c, o, plans);
}

void resampleAtRun(NodeContext &c, const ResizeOptions &o, const std::vector<ResizeAxis> &axes) {
  Emitter &e = c.e;
  Val x = c.operand(0);
  DType type = x.dtype();
  if (o.mode != "nearest" && type != DType::F64)
    x = e.cast(x, DType::F32); // weighted sums are rounded once, at the end
  Resampler resampler(c, o);
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (axes[axis].scale)
      x = resampler.run(x, axis, axes[axis]);
  for (int64_t axis = 0; o.coordinates == "tf_crop_and_resize" && axis < x.rank(); ++axis)
    if (axes[axis].scale && !axes[axis].out.is(0))
      x = resampler.extrapolate(x, axis, axes[axis]);
  c.result(e.cast(x, type));
}

} // namespace dmxc::onnxfe
