//===- GridSample.cpp - sampling images at computed places ----------------===//
#include "GridSample.h"
#include "../Require.h"

using namespace dmxc::dmir;

namespace dmxc::frontend {
namespace {

/// Triangle wave over the places of an axis of `size` elements: what reflecting at both ends over and over gives.
Val reflected(const Sampler &s, const Val &x, Dim size) {
  Emitter &e = s.e;
  double low = s.alignCorners ? 0 : -0.5; // the ends are elements, or the borders around them
  Val range = e.size(s.alignCorners ? size - 1 : size, x.dtype());
  Val twice = e.mul(range, 2.0);
  Val phase = e.emit<ModOp>({e.add(x, -low), e.max(twice, e.scalarLike(x, 1))});
  return e.add(e.min(phase, e.sub(twice, phase)), low);
}

/// A place that is no number is the first element's, as in torch.
Val clamped(const Sampler &s, const Val &x, Dim size) {
  Emitter &e = s.e;
  Val zero = e.scalarLike(x, 0);
  return e.select(e.compare(Compare::ge, x, zero), e.min(x, e.size(size - 1, x.dtype())), zero);
}

/// The place on an axis of `size` elements that a grid coordinate in [-1, 1] stands for.
Val place(const Sampler &s, const Val &grid, Dim size) {
  Emitter &e = s.e;
  Val n = e.size(size, grid.dtype()), fromStart = e.add(grid, 1.0);
  Val at = s.alignCorners ? e.mul(fromStart, e.mul(e.add(n, -1.0), 0.5)) : e.mul(e.add(e.mul(fromStart, n), -1.0), 0.5);
  if (s.mode == "nearest")
    at = e.emit<RoundOp>({at});
  if (s.padding == Padding::Border) // each of sixteen pixels is clamped, not the point among them
    return s.mode == "cubic" ? at : clamped(s, at, size);
  if (s.padding == Padding::Zeros)
    return at;
  Val folded = reflected(s, at, size);
  return s.mode == "cubic" ? folded : clamped(s, folded, size);
}

Tap tapAt(const Sampler &s, const Val &at, const Val &weight, Dim size) {
  Emitter &e = s.e;
  Tap tap{weight, at, Val()};
  if (s.padding == Padding::Reflection)
    tap.index = reflected(s, at, size);
  else if (s.padding == Padding::Zeros)
    tap.inside = e.emit<AndOp>(
        {e.compare(Compare::ge, at, e.scalarLike(at, 0)), e.compare(Compare::le, at, e.size(size - 1, at.dtype()))});
  tap.index = e.cast(clamped(s, tap.index, size), DType::I64);
  return tap;
}

/// The cubic convolution weight of a tap at distance |d|, as a polynomial in d.
Val cubicWeight(Emitter &e, const Val &d, bool inner) {
  constexpr double a = -0.75;
  if (inner) // (a + 2) d^3 - (a + 3) d^2 + 1
    return e.add(e.mul(e.mul(d, d), e.add(e.mul(d, a + 2), -(a + 3))), 1.0);
  return e.add(e.mul(e.add(e.mul(e.add(e.mul(d, a), -5 * a), d), 8 * a), d), -4 * a);
}

} // namespace

std::vector<Tap> tapsOf(const Sampler &s, const Val &at, Dim size) {
  Emitter &e = s.e;
  if (s.mode == "nearest")
    return {tapAt(s, at, Val(), size)};
  Val base = e.emit<FloorOp>({at}), ratio = e.sub(at, base), rest = e.sub(e.scalarLike(at, 1), ratio);
  auto shifted = [&](double by) { return e.add(base, by); };
  if (s.mode == "linear")
    return {tapAt(s, base, rest, size), tapAt(s, shifted(1), ratio, size)};
  return {tapAt(s, shifted(-1), cubicWeight(e, e.add(ratio, 1.0), false), size),
          tapAt(s, base, cubicWeight(e, ratio, true), size), tapAt(s, shifted(1), cubicWeight(e, rest, true), size),
          tapAt(s, shifted(2), cubicWeight(e, e.add(rest, 1.0), false), size)};
}

namespace {

/// Sums image elements over all combinations of taps.
struct TapSum {
  const Sampler &s;
  const Val &image; ///< [N, C, elements]
  const std::vector<std::vector<Tap>> &taps;
  Val total;

  void add(size_t axis, const Val &index, const Val &weight, const Val &inside, llvm::ArrayRef<Dim> spatial) {
    Emitter &e = s.e;
    if (axis == taps.size()) {
      Dims row{index.extent(0), 1, index.extent(1)}, full{index.extent(0), image.extent(1), index.extent(1)};
      Val picked =
          e.emit<GatherElementsOp>({image, e.broadcast(e.reshape(index, row), full)}, {e.attr("axis", int64_t(2))});
      if (inside)
        picked = e.select(e.reshape(inside, row), picked, e.scalarLike(picked, 0));
      if (weight)
        picked = e.mul(picked, e.reshape(weight, row));
      total = total ? e.add(total, picked) : picked;
      return;
    }
    for (const Tap &tap : taps[axis]) {
      Val nextIndex = index ? e.add(e.mul(index, e.size(spatial[axis])), tap.index) : tap.index;
      Val nextWeight = weight && tap.weight ? e.mul(weight, tap.weight) : tap.weight;
      Val nextInside = inside && tap.inside ? e.emit<AndOp>({inside, tap.inside}) : tap.inside;
      add(axis + 1, nextIndex, nextWeight, nextInside, spatial);
    }
  }
};

} // namespace

Val sampled(const Sampler &s, const Val &x, DType wide, const std::vector<std::vector<Tap>> &taps) {
  Emitter &e = s.e;
  llvm::SmallVector<Dim> dims = x.dims();
  llvm::ArrayRef<Dim> spatial = llvm::ArrayRef<Dim>(dims).drop_front(2);
  Val image = e.cast(e.reshape(x, {dims[0], dims[1], product(spatial)}), wide);
  TapSum sum{s, image, taps, Val()};
  sum.add(0, Val(), Val(), Val(), spatial);
  return sum.total;
}

bool isEmpty(const Val &x) {
  return llvm::any_of(x.dims(), [](Dim dim) { return dim.is(0); });
}

Val gridSample(const Sampler &s, const Val &x, Val grid) {
  Emitter &e = s.e;
  int64_t axes = x.rank() - 2;
  requireShape(axes >= 1 && axes <= 3 && grid.rank() == x.rank() && mayEqual(grid.extent(-1), axes) &&
                   mayEqual(grid.extent(0), x.extent(0)),
               "expected an image of 1 to 3 spatial axes and a grid with as many coordinates");
  Dims whole = grid.dims(), result{x.extent(0), x.extent(1)};
  whole.front() = x.extent(0);
  whole.back() = axes;
  result.append(whole.begin() + 1, whole.end() - 1);
  Dim points = product(llvm::ArrayRef<Dim>(result).drop_front(2));
  if (isEmpty(x)) { // all points are outside
    requireShape(s.padding == Padding::Zeros || product(result).is(0),
                 "an image without elements has no border to continue");
    return e.broadcast(e.scalarLike(x, 0), result);
  }
  // Half precision cannot tell the pixels of a large image apart.
  DType wide = grid.dtype() == DType::F64 ? DType::F64 : DType::F32;
  grid = e.cast(e.expectDims(grid, whole), wide);
  std::vector<std::vector<Tap>> taps;
  for (int64_t axis = 0; axis < axes; ++axis) { // the last coordinate belongs to the first spatial axis
    Val coordinate = e.reshape(e.sliceAxis(grid, grid.rank() - 1, axes - 1 - axis, 1), {x.extent(0), points});
    taps.push_back(tapsOf(s, place(s, coordinate, x.extent(axis + 2)), x.extent(axis + 2)));
  }
  return e.cast(e.reshape(sampled(s, x, wide, taps), result), x.dtype());
}

} // namespace dmxc::frontend
