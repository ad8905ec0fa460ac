//===- Regions.cpp - pooling of regions whose place is computed -----------===//
#include "Regions.h"
#include "../Formulas.h"
#include "../Require.h"

#include <limits>

using namespace dmxc::dmir;

namespace dmxc::frontend {
namespace {

/// Samples of a bin that a region's size asks for: no more than these.
constexpr int64_t kMaxSamples = 1 << 16;

void requireRegions(const Val &x, const Val &boxes, const Val &images, const RegionBins &bins) {
  bool filled = x.rank() == 4 && !x.extent(0).is(0) && !x.extent(2).is(0) && !x.extent(3).is(0);
  requireShape(filled && boxes.rank() == 2 && mayEqual(boxes.extent(1), 4) && images.rank() == 1 &&
                   mayEqual(images.extent(0), boxes.extent(0)),
               "expected images of rank 4 and regions of four numbers");
  requireAttr(bins.height > 0 && bins.width > 0 && bins.height < 4096 && bins.width < 4096,
              "a region is divided into 1 to 4095 bins along each axis");
  requireShape(!bins.ownChannels || x.dim(1) % (bins.height * bins.width) == 0,
               "the channels do not divide into those of the bins");
}

/// A corner's coordinate of all regions: [regions, 1].
Val column(Emitter &e, const Val &boxes, int64_t k) { return e.sliceAxis(boxes, 1, k, 1); }

//===--- Samples between elements -----------------------------------------------------===//

/// Bilinear samples along one axis of all regions: [regions, samples] each.
struct Samples {
  Val low, high;             ///< indices, i64
  Val lowWeight, highWeight; ///< they add up to 1
  Val inside;                ///< what lies further out counts as 0
};

Val extentOf(Emitter &e, const Val &from, const Val &to, const RegionSampling &o) {
  Val extent = e.sub(to, from);
  return o.atLeastOne ? e.max(extent, e.scalarLike(extent, 1)) : extent;
}

/// `from`: [regions, 1]; `count` samples of an axis of `size` elements.
Samples samplesOf(Emitter &e, const Val &from, const Val &extent, Dim size, Dim count) {
  Val centers = e.div(e.add(e.iota(DType::F64, {1, count}, 1), 0.5), e.size(Dim::max(count, 1), DType::F64));
  Val at = e.add(from, e.mul(extent, e.cast(centers, from.dtype())));
  Samples samples;
  samples.inside =
      both(e, e.compare(Compare::ge, at, e.scalarLike(at, -1)), e.compare(Compare::le, at, e.size(size, at.dtype())));
  at = e.min(e.max(at, e.scalarLike(at, 0)), e.size(size - 1, at.dtype()));
  Val low = e.emit<FloorOp>({at});
  samples.highWeight = e.sub(at, low);
  samples.lowWeight = e.sub(e.scalarLike(at, 1), samples.highWeight);
  samples.low = e.cast(low, DType::I64);
  samples.high = e.min(e.add(samples.low, 1.0), e.size(size - 1));
  return samples;
}

/// [regions, n] as [regions, n, 1] or [regions, 1, n].
Val along(Emitter &e, const Val &value, bool rows) {
  Dim n = value.extent(0), samples = value.extent(1);
  return e.reshape(value, rows ? Dims{n, samples, 1} : Dims{n, 1, samples});
}

/// One row of channels a pixel (and a bin, where bins have their own), so that a sample is one gathered row.
Val pixelsOf(Emitter &e, const Val &x, const RegionBins &bins) {
  Dim pixels = x.extent(0) * x.extent(2) * x.extent(3);
  if (!bins.ownChannels)
    return e.reshape(e.transpose(x, {0, 2, 3, 1}), {pixels, x.extent(1)});
  int64_t count = bins.height * bins.width, channels = x.dim(1) / count;
  Val split = e.reshape(x, {x.extent(0), channels, count, x.extent(2), x.extent(3)});
  return e.reshape(e.transpose(split, {0, 3, 4, 2, 1}), {pixels * count, channels});
}

/// The number of the bin that each sample is in: [1, height * rows, width * columns].
Val binsOfSamples(Emitter &e, const RegionBins &bins, Dim rows, Dim columns) {
  Val i =
      e.reshape(e.broadcast(e.iota(DType::I64, {bins.height, 1}, 0), {bins.height, rows}), {1, rows * bins.height, 1});
  Val j = e.reshape(e.broadcast(e.iota(DType::I64, {bins.width, 1}, 0), {bins.width, columns}),
                    {1, 1, columns * bins.width});
  return e.add(e.mul(i, e.size(bins.width)), j);
}

struct Pooled {
  Val pixels;
  Dim height, width; ///< of an image
  DType type;
};

/// Bins of `rows` by `columns` samples: [regions, height, width, channels].
Val pooled(Emitter &e, const Pooled &image, const Val &boxes, const Val &images, const RegionBins &bins,
           const RegionSampling &o, Dim rows, Dim columns) {
  Dim regions = boxes.extent(0);
  auto samples = [&](int64_t k, Dim size, Dim count) {
    Val from = column(e, boxes, k);
    return samplesOf(e, from, extentOf(e, from, column(e, boxes, k + 2), o), size, count);
  };
  Samples ys = samples(1, image.height, rows * bins.height), xs = samples(0, image.width, columns * bins.width);
  Val base = e.reshape(e.mul(images, e.size(image.height * image.width)), {regions, 1, 1});
  Dims weightShape{regions, rows * bins.height, columns * bins.width, 1};
  Val total;
  for (bool upper : {false, true})
    for (bool right : {false, true}) {
      Val row = along(e, upper ? ys.high : ys.low, true);
      Val index = e.add(e.add(base, e.mul(row, e.size(image.width))), along(e, right ? xs.high : xs.low, false));
      if (bins.ownChannels)
        index = e.add(e.mul(index, e.size(bins.height * bins.width)), binsOfSamples(e, bins, rows, columns));
      Val weight = e.mul(along(e, upper ? ys.highWeight : ys.lowWeight, true),
                         along(e, right ? xs.highWeight : xs.lowWeight, false));
      Val part = e.mul(e.gather(image.pixels, index, 0), e.cast(e.reshape(weight, weightShape), image.type));
      // The maximum is over the weighted corners, as ONNX defines it.
      total = !total ? part : o.largest ? e.max(total, part) : e.add(total, part);
    }
  Val inside = both(e, along(e, ys.inside, true), along(e, xs.inside, false));
  total = e.select(e.reshape(inside, weightShape), total, e.scalarLike(total, 0));
  Val split = e.reshape(total, {regions, bins.height, rows, bins.width, columns, total.extent(3)});
  if (o.ratio > 0)
    return e.reduce(o.largest ? Reduction::max : Reduction::mean, split, {2, 4}, false);
  Val sum = e.reduce(o.largest ? Reduction::max : Reduction::sum, split, {2, 4}, false);
  Val count = e.size(rows * columns, image.type);
  if (bins.ownChannels)
    return e.div(sum, count); // torchvision's mean of no samples is NaN
  Val none = e.compare(Compare::le, count, e.scalarLike(count, 0));
  return e.select(none, e.scalarLike(sum, 0), o.largest ? sum : e.div(sum, count));
}

/// Regions one after the other: of each, the run decides how many samples there are.
Val pooledAdaptively(Emitter &e, const Pooled &image, const Val &boxes, const Val &images, const RegionBins &bins,
                     const RegionSampling &o) {
  auto body = [&](const Val &iteration, const Val &, llvm::ArrayRef<Val>) -> std::vector<Val> {
    Val box = e.reshape(e.gather(boxes, iteration, 0), {1, 4});
    auto samples = [&](int64_t k, int64_t count) {
      Val extent = extentOf(e, column(e, box, k), column(e, box, k + 2), o);
      Val each = e.emit<CeilOp>({e.div(extent, e.scalarLike(extent, static_cast<double>(count)))});
      return e.reshape(e.cast(e.max(each, e.scalarLike(each, 0)), DType::I64), {1});
    };
    Dims grid = e.dimsOf(e.concat({samples(1, bins.height), samples(0, bins.width)}, 0), kMaxSamples);
    Val own = pooled(e, image, box, e.reshape(e.gather(images, iteration, 0), {1}), bins, o, grid[0], grid[1]);
    return {e.scalar(DType::Bool, 1), e.reshape(own, {bins.height, bins.width, own.extent(3)})};
  };
  return e.loop(e.size(boxes.extent(0)), Val(), {}, body).front();
}

} // namespace

Val sampledRegions(Emitter &e, const Val &x, const Val &boxes, const Val &images, const RegionBins &bins,
                   const RegionSampling &o) {
  requireRegions(x, boxes, images, bins);
  requireAttr(o.ratio >= 0 && o.ratio < 64, "the sampling ratio is out of range");
  Val ends = e.expectDims(boxes, {boxes.extent(0), 4}), owners = e.expectDims(images, {boxes.extent(0)});
  Pooled image{pixelsOf(e, x, bins), x.extent(2), x.extent(3), x.dtype()};
  Val all = o.ratio > 0 ? pooled(e, image, ends, owners, bins, o, o.ratio, o.ratio)
                        : pooledAdaptively(e, image, ends, owners, bins, o);
  return e.transpose(all, {0, 3, 1, 2});
}

//===--- Whole elements ---------------------------------------------------------------===//

namespace {

/// Which elements below `limit` lie in which bin: bool [regions, bins, size]. Bins overlap where a region does not
/// divide evenly: each begins at the floor of its start and ends at the ceiling of its end. `beyond`: by how much the
/// region is longer than the distance of its ends.
Val membersOf(Emitter &e, const Val &boxes, int64_t k, Dim size, Dim limit, int64_t bins, double beyond) {
  auto rounded = [&](const Val &x) { // halves away from 0
    Val away = e.emit<FloorOp>({e.add(absOf(e, x), 0.5)});
    return e.select(e.compare(Compare::lt, x, e.scalarLike(x, 0)), negOf(e, away), away);
  };
  auto end = [&](int64_t at) { return e.reshape(rounded(column(e, boxes, at)), {boxes.extent(0), 1, 1}); };
  Val start = end(k), extent = e.add(e.sub(end(k + 2), start), beyond);
  Val step = e.div(e.max(extent, e.scalarLike(extent, 1)), e.scalarLike(extent, static_cast<double>(bins)));
  Val bin = e.reshape(e.iota(step.dtype(), {bins}, 0), {1, bins, 1});
  Val low = e.add(e.emit<FloorOp>({e.mul(bin, step)}), start);
  Val high = e.add(e.emit<CeilOp>({e.mul(e.add(bin, 1), step)}), start);
  Val at = e.reshape(e.iota(step.dtype(), {size}, 0), {1, 1, size});
  return both(e, e.compare(Compare::ge, at, low), e.compare(Compare::lt, at, e.min(high, e.size(limit, step.dtype()))));
}

/// How many members each bin has: [regions, bins].
Val countOf(Emitter &e, const Val &members, DType type) { return sumOver(e, e.cast(members, type), {2}, false); }

} // namespace

Val largestOfRegions(Emitter &e, const Val &x, const Val &boxes, const Val &images, const RegionBins &bins) {
  requireRegions(x, boxes, images, bins);
  const Dim regions = boxes.extent(0), channels = x.extent(1), height = x.extent(2), width = x.extent(3);
  Val inRows = membersOf(e, boxes, 1, height, height, bins.height, 1);
  Val inColumns = membersOf(e, boxes, 0, width, width, bins.width, 1);
  Val least = e.scalarLike(x, -std::numeric_limits<double>::infinity());
  Val own = e.reshape(e.gather(x, images, 0), {regions, channels, height, 1, width});
  Val rows =
      e.reduce(Reduction::max, e.select(e.reshape(inColumns, {regions, 1, 1, bins.width, width}), own, least), {4},
               /*keepDims=*/false); // [regions, channels, height, bins]
  Val across = e.reshape(e.transpose(rows, {0, 1, 3, 2}), {regions, channels, 1, bins.width, height});
  Val largest =
      e.reduce(Reduction::max, e.select(e.reshape(inRows, {regions, 1, bins.height, 1, height}), across, least), {4},
               /*keepDims=*/false);
  Val members = e.mul(e.reshape(countOf(e, inRows, DType::I32), {regions, 1, bins.height, 1}),
                      e.reshape(countOf(e, inColumns, DType::I32), {regions, 1, 1, bins.width}));
  return e.select(e.compare(Compare::eq, members, e.scalarLike(members, 0)), e.scalarLike(largest, 0), largest);
}

Val meansOfRegions(Emitter &e, const Val &x, const Val &boxes, const Val &images, const RegionBins &bins) {
  requireRegions(x, boxes, images, bins);
  const Dim regions = boxes.extent(0), height = x.extent(2), width = x.extent(3);
  const int64_t channels = x.dim(1) / (bins.height * bins.width);
  Val inRows = membersOf(e, boxes, 1, height, height - 1, bins.height, 0);
  Val inColumns = membersOf(e, boxes, 0, width, width - 1, bins.width, 0);
  Val own = e.reshape(e.gather(x, images, 0), {regions, channels, bins.height, bins.width, height, width});
  Val rows = sumOver(e, whereOrZero(e, e.reshape(inColumns, {regions, 1, 1, bins.width, 1, width}), own), {5}, false);
  Val total = sumOver(e, whereOrZero(e, e.reshape(inRows, {regions, 1, bins.height, 1, height}), rows), {4}, false);
  Val area = e.mul(e.reshape(countOf(e, inRows, x.dtype()), {regions, 1, bins.height, 1}),
                   e.reshape(countOf(e, inColumns, x.dtype()), {regions, 1, 1, bins.width}));
  return e.div(total, e.max(area, e.scalarLike(area, 1)));
}

} // namespace dmxc::frontend
