//===- Deformed.cpp - convolutions whose kernels' elements move -----------===//
#include "Deformed.h"
#include "../Formulas.h"
#include "../Require.h"
#include "GridSample.h"

using namespace dmxc::dmir;

namespace dmxc::frontend {
namespace {

constexpr int64_t kMaxColumns = int64_t(1) << 26;

/// Where on `axis` the elements of the kernels lie without an offset: -pad + stride * result + dilation * kernel
/// element, [kernel elements, results].
Val undeformed(Emitter &e, const Window &w, llvm::ArrayRef<Dim> out, size_t axis, DType type) {
  size_t axes = out.size();
  auto part = [&](Dim count, int64_t by, size_t at) {
    return alongAxis(e, e.mul(e.iota(type, {count}, 0), static_cast<double>(by)), at, 2 * axes);
  };
  Val at = e.add(part(out[axis], w.strides[axis], axes + axis), part(w.kernel[axis], w.dilations[axis], axis));
  Dims all = w.kernel;
  all.append(out.begin(), out.end());
  return e.reshape(e.broadcast(e.sub(at, e.size(w.low[axis], type)), all), {product(w.kernel), product(out)});
}

/// The image sampled where the kernels' elements, moved by the offsets, lie: [n * offset groups, channels of a group,
/// kernel elements * results].
Val deformedSamples(Emitter &e, const Val &x, const DeformedConvolution &d, const Val &offsets, DType wide) {
  const Window &w = d.window;
  int64_t axes = x.rank() - 2;
  llvm::SmallVector<Dim> dims = offsets.dims();
  llvm::ArrayRef<Dim> out = llvm::ArrayRef<Dim>(dims).drop_front(2);
  Dim n = x.extent(0) * d.offsetGroups, taps = product(w.kernel), points = product(out);
  Val moved = e.reshape(e.cast(offsets, wide), {n, taps, axes, points});
  Sampler sampler{e, "linear", Padding::Zeros, true};
  std::vector<std::vector<Tap>> places;
  for (int64_t axis = 0; axis < axes; ++axis) {
    Val place = e.add(e.reshape(e.sliceAxis(moved, 2, axis, 1), {n, taps, points}), undeformed(e, w, out, axis, wide));
    places.push_back(tapsOf(sampler, e.reshape(place, {n, taps * points}), x.extent(axis + 2)));
  }
  Dims image = x.dims();
  image[0] = n;
  image[1] = Dim::floorDiv(image[1], d.offsetGroups);
  Val samples = sampled(sampler, e.reshape(x, image), wide, places);
  if (!d.mask)
    return samples;
  Dims mask = offsets.dims();
  mask[1] = taps * d.offsetGroups;
  requireShape(mayEqual(d.mask.dims(), mask), "the mask does not fit the offsets");
  return e.mul(samples, e.reshape(e.cast(e.expectDims(d.mask, mask), wide), {n, 1, taps * points}));
}

} // namespace

Val deformedConvolution(Emitter &e, const Val &x, const DeformedConvolution &d) {
  const Window &w = d.window;
  int64_t axes = x.rank() - 2;
  requireShape(axes >= 1 && axes <= 3 && d.weights.rank() == x.rank() && d.offsets.rank() == x.rank(),
               "expected input, weights and offsets of one rank from 3 to 5");
  Dim channels = x.extent(1), filters = d.weights.extent(0);
  requireAttr(d.groups > 0 && d.offsetGroups > 0 && channels.valueOr(0) % d.offsetGroups == 0 &&
                  mayEqual(channels, d.weights.extent(1) * d.groups) && filters.valueOr(0) % d.groups == 0,
              "the channels do not divide into the groups");
  Dims result{x.extent(0), filters}, moves{x.extent(0), product(w.kernel) * d.offsetGroups * axes};
  for (int64_t i = 0; i < axes; ++i) {
    Dim out = windowExtent(x.extent(i + 2), w.kernel[i], w.strides[i], w.dilations[i], w.low[i], w.high[i]);
    requireShape(out.valueOr(1) > 0 && mayEqual(d.offsets.extent(i + 2), out),
                 "the offsets do not have the result's spatial shape");
    result.push_back(out);
    moves.push_back(out);
  }
  Dim taps = product(w.kernel), points = product(llvm::ArrayRef<Dim>(result).drop_front(2));
  requireShape(mayEqual(d.offsets.dims(), moves) && (taps * points).valueOr(0) < kMaxColumns,
               "the offsets do not fit the kernel and the offset groups");
  DType wide = x.dtype() == DType::F64 ? DType::F64 : DType::F32; // rounded once, at the end
  if (isEmpty(x)) {                                               // sums of nothing
    Val zeros = e.broadcast(e.scalarLike(x, 0), result);
    return d.bias ? e.add(zeros, perChannel(e, d.bias, zeros.rank())) : zeros;
  }
  Dim depth = d.weights.extent(1) * taps;
  Val columns =
      e.reshape(deformedSamples(e, x, d, e.expectDims(d.offsets, moves), wide), {x.extent(0), d.groups, depth, points});
  Val rows = e.reshape(e.cast(d.weights, wide), {d.groups, Dim::floorDiv(filters, d.groups), depth});
  Val y = e.reshape(e.matmul(rows, columns), result);
  if (d.bias)
    y = e.add(y, perChannel(e, e.cast(d.bias, wide), y.rank()));
  return e.cast(y, x.dtype());
}

} // namespace dmxc::frontend
