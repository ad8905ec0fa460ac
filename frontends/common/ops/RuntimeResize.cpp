//===- RuntimeResize.cpp - resampling by scales known at run time -------===//
//
// Indices and weights of the taps are computed from the scales, in double like those of constant scales.
//
//===----------------------------------------------------------------------===//
#include "Require.h"
#include "Resize.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace dmxc::dmir;

namespace dmxc::frontend {
namespace {

using Axis = ResizeAxis;

/// More taps than these are summed by a reduction instead of one after the other.
constexpr int64_t kMaxUnrolledTaps = 32;

class Resampler {
public:
  Resampler(Emitter &e, const ResizeOptions &o) : e(e), o(o) {}

  Val run(const Val &x, int64_t axis, const Axis &a);
  /// What lies outside of the operand on one axis takes the extrapolation value.
  Val extrapolate(const Val &y, int64_t axis, const Axis &a);

private:
  Val number(double value) { return e.scalar(DType::F64, value); }
  Val floor(const Val &x) { return e.emit<FloorOp>({x}); }
  Val ceil(const Val &x) { return e.emit<CeilOp>({x}); }
  Val minus(const Val &x, double by) { return e.add(x, -by); }
  Val asSingle(const Val &x) { return e.cast(e.cast(x, DType::F32), DType::F64); }
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
  /// Which element is nearest is decided in f32, see Resize.cpp.
  Val asDecided(const Val &place) {
    return o.mode == "nearest" ? e.cast(e.cast(place, DType::F32), DType::F64) : place;
  }
  Val coordinates(const Axis &a);
  Val nearest(const Val &at);
  Val weight(const Val &distance);
  struct Taps {
    Val weights, index;
  };
  Dim reach(const Axis &a);
  Taps tapsOf(const Axis &a);
  Val weighted(const Val &x, int64_t axis, const Axis &a);

  Emitter &e;
  const ResizeOptions &o;
};

/// Where each result element lies on the operand's axis.
Val Resampler::coordinates(const Axis &a) {
  Val in = number(a.in), last = minus(in, 1);
  Val i = e.iota(DType::F64, {a.out}, 0), length = e.mul(a.scale, in), half = e.add(i, 0.5), zero = e.mul(i, 0.0);
  if (o.asTorch && o.mode == "nearest" && o.coordinates == "half_pixel") // in f32, where halves fall either way
    return asSingle(minus(e.mul(asSingle(e.div(number(1.0), a.scale)), half), 0.5));
  if (o.coordinates == "asymmetric")
    return asDecided(e.div(i, a.scale));
  if (o.coordinates == "align_corners" && o.asTorch)
    length = number(a.out);
  if (o.coordinates == "align_corners") {
    if (a.out.is(1))
      return zero;
    Val at = asDecided(e.div(e.mul(i, last), minus(length, 1)));
    return unlessOne(a, e.select(e.compare(Compare::eq, length, number(1.0)), zero, at), zero);
  }
  if (o.coordinates == "pytorch_half_pixel")
    return unlessOne(a, asDecided(minus(asDecided(e.div(half, a.scale)), 0.5)), zero);
  if (o.coordinates == "tf_half_pixel_for_nn")
    return asDecided(e.div(half, a.scale));
  if (o.coordinates == "tf_crop_and_resize") {
    Val middle = e.add(zero, e.mul(e.mul(e.add(a.roiStart, a.roiEnd), 0.5), last));
    Val reach = e.mul(e.sub(a.roiEnd, a.roiStart), last);
    return unlessOne(a, e.add(e.mul(a.roiStart, last), e.div(e.mul(i, reach), minus(length, 1))), middle);
  }
  if (o.coordinates == "half_pixel_symmetric") {
    Val adjustment = e.div(number(a.out), length);
    Val offset = e.mul(e.sub(number(1.0), adjustment), e.mul(in, 0.5));
    return asDecided(minus(e.add(offset, asDecided(e.div(half, a.scale))), 0.5));
  }
  return asDecided(minus(asDecided(e.div(half, a.scale)), 0.5)); // half_pixel
}

Val Resampler::nearest(const Val &at) {
  if (o.nearest == "round_prefer_floor")
    return ceil(minus(at, 0.5));
  if (o.nearest == "round_prefer_ceil")
    return floor(o.asTorch ? asSingle(e.add(at, 0.5)) : e.add(at, 0.5));
  return o.nearest == "floor" ? floor(at) : ceil(at);
}

Val Resampler::weight(const Val &distance) {
  Val x = e.emit<AbsOp>({distance});
  if (o.mode == "linear")
    return e.min(e.max(e.sub(number(1.0), x), number(0.0)), number(1.0));
  if (o.mode == "lanczos") {
    Val angle = e.mul(x, M_PI), third = e.mul(angle, 1.0 / 3);
    Val lobes = e.div(e.mul(e.emit<SinOp>({angle}), e.emit<SinOp>({third})), e.mul(angle, third));
    lobes = e.select(e.compare(Compare::eq, x, number(0.0)), number(1.0), lobes);
    return e.select(e.compare(Compare::lt, x, number(3.0)), lobes, number(0.0));
  }
  double a = o.cubicA;
  Val square = e.mul(x, x), cube = e.mul(square, x);
  Val inner = e.add(e.sub(e.mul(cube, a + 2), e.mul(square, a + 3)), 1.0);
  Val outer = minus(e.add(e.sub(e.mul(cube, a), e.mul(square, 5 * a)), e.mul(x, 8 * a)), 4 * a);
  Val tail = e.select(e.compare(Compare::lt, x, number(2.0)), outer, number(0.0));
  return e.select(e.compare(Compare::le, x, number(1.0)), inner, tail);
}

/// The taps of a result element are those up to so many elements before and after its place; further ones weigh
/// nothing.
Dim Resampler::reach(const Axis &a) {
  int64_t support = reachOf(o);
  if (!o.antialias)
    return support;
  if (a.scale.isConstant())
    return static_cast<int64_t>(
        std::clamp(std::ceil(static_cast<double>(support) / a.scale.constant().asDouble(0)), double(support), 1e9));
  if (o.cornerScale)
    return Dim::max(support, Dim::ceilDiv((a.in - 1) * support, Dim::max(a.out - 1, 1)));
  // No smaller scale gives this many results: a size may have been rounded up from one half more.
  return Dim::max(support, Dim::ceilDiv(a.in * (2 * support), Dim::max(a.out * 2 - 1, 1)));
}

/// What the taps of each result element weigh and where they are, [results, taps].
Resampler::Taps Resampler::tapsOf(const Axis &a) {
  Dim side = reach(a);
  Val at = e.reshape(coordinates(a), {a.out, 1}), base = minus(ceil(at), 1), ratio = e.sub(at, base);
  Val squeeze = o.antialias ? e.min(a.scale, number(1.0)) : number(1.0);
  Val k = e.add(e.iota(DType::F64, {1, side * 2}, 1), number(1 - side)), source = e.add(base, k);
  auto total = [&](const Val &weights) { return e.reduce(Reduction::sum, weights, {1}, true); };
  Val weights = weight(e.mul(e.sub(k, ratio), squeeze));
  weights = e.div(weights, total(weights));
  if (o.excludeOutside) {
    Val outside =
        e.emit<OrOp>({e.compare(Compare::lt, source, number(0.0)), e.compare(Compare::gt, source, number(a.in - 1))});
    weights = e.select(outside, number(0.0), weights);
    Val inside = total(weights);
    weights = e.div(weights, e.select(e.compare(Compare::eq, inside, number(0.0)), number(1.0), inside));
  }
  return {weights, index(source, a.in)};
}

Val Resampler::weighted(const Val &x, int64_t axis, const Axis &a) {
  Taps taps = tapsOf(a);
  Val factors = e.cast(taps.weights, x.dtype());
  Dim count = factors.extent(1);
  if (count.valueOr(INT64_MAX) > kMaxUnrolledTaps) {
    Dims shape(x.rank() + 1, 1);
    shape[axis] = a.out;
    shape[axis + 1] = count;
    Val products = e.mul(e.gather(x, taps.index, axis), e.reshape(factors, shape));
    return e.reduce(Reduction::sum, products, {axis + 1}, false);
  }
  auto column = [&](const Val &table, int64_t k) { return e.reshape(e.sliceAxis(table, 1, k, 1), {a.out}); };
  Val result;
  for (int64_t k = 0; k < *count.known(); ++k) {
    Val part = e.mul(e.gather(x, column(taps.index, k), axis), along(x, axis, column(factors, k)));
    result = result ? e.add(result, part) : part;
  }
  return result;
}

Val Resampler::run(const Val &x, int64_t axis, const Axis &a) {
  bool crop = isCrop(o);
  requireShape(!a.in.is(0) || a.out.valueOr(0) == 0, "an empty axis cannot grow");
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

/// The scale of the distances between the outermost elements; one element lies at the first.
Val alignedScale(Emitter &e, const Axis &a) {
  Val in = e.size(a.in - 1, DType::F64), out = e.size(a.out - 1, DType::F64), zero = e.scalar(DType::F64, 0);
  Val one = e.emit<OrOp>({e.compare(Compare::eq, in, zero), e.compare(Compare::eq, out, zero)});
  return e.select(one, e.scalar(DType::F64, std::numeric_limits<double>::infinity()), e.div(out, in));
}

/// The region of interest: a start for each of the axes that the numbers stand for, then an end.
void takeRegion(Emitter &e, Val region, const std::vector<int64_t> &axes, std::vector<Axis> &plans) {
  int64_t count = axes.size();
  region = e.cast(region, DType::F64);
  requireShape(mayEqual(region.elements(), 2 * count),
               "the region of interest must have " + std::to_string(2 * count) + " numbers");
  region = e.reshape(region, {2 * count});
  for (int64_t i = 0; i < count; ++i) {
    plans[axes[i]].roiStart = e.reshape(e.sliceAxis(region, 0, i, 1), {});
    plans[axes[i]].roiEnd = e.reshape(e.sliceAxis(region, 0, i + count, 1), {});
  }
}

} // namespace

Val resampleAtRun(Emitter &e, Val x, const ResizeOptions &o, const std::vector<int64_t> &named,
                  std::vector<ResizeAxis> axes, const Val &region) {
  DType type = x.dtype();
  if (o.mode != "nearest" && type != DType::F64)
    x = e.cast(x, DType::F32); // weighted sums are rounded once, at the end
  bool crop = isCrop(o);
  if (crop)
    takeRegion(e, region, named, axes);
  for (int64_t axis = 0; o.cornerScale && axis < x.rank(); ++axis)
    if (axes[axis].scale)
      axes[axis].scale = alignedScale(e, axes[axis]);
  Resampler resampler(e, o);
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (axes[axis].scale)
      x = resampler.run(x, axis, axes[axis]);
  for (int64_t axis = 0; crop && axis < x.rank(); ++axis)
    if (axes[axis].scale && !axes[axis].out.is(0))
      x = resampler.extrapolate(x, axis, axes[axis]);
  return resampled(e, x, o, type);
}

} // namespace dmxc::frontend
