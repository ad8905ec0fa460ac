//===- Roi.cpp - pooling of regions whose place is computed ---------------===//
#include "../Differences.h"
#include "../NodeContext.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// Bilinear samples along one axis of all regions: [regions, samples] each.
struct Samples {
  Val low, high;             ///< indices, i64
  Val lowWeight, highWeight; ///< they add up to 1
  Val inside;                ///< what lies further out counts as 0
};

/// `from`, `to`: [regions, 1] ends of the regions in elements of an axis of
/// `size`; `bins` of `ratio` samples each.
Samples samplesOf(Emitter &e, const Val &from, const Val &to, Dim size, int64_t bins, int64_t ratio, bool atLeastOne) {
  Val extent = e.sub(to, from);
  if (atLeastOne)
    extent = e.max(extent, e.scalarLike(extent, 1));
  int64_t count = bins * ratio;
  std::vector<double> centers(count);
  for (int64_t i = 0; i < count; ++i)
    centers[i] = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
  Val at = e.add(from, e.mul(extent, e.floats(from.dtype(), {1, count}, centers)));
  Samples samples;
  samples.inside = e.emit<AndOp>(
      {e.compare(Compare::ge, at, e.scalarLike(at, -1)), e.compare(Compare::le, at, e.size(size, at.dtype()))});
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

void importRoiAlign(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0), rois = c.operand(1), batch = c.cast64(2);
  bool filled = x.rank() == 4 && !x.extent(0).is(0) && !x.extent(2).is(0) && !x.extent(3).is(0);
  c.requireShape(filled && rois.rank() == 2 && mayEqual(rois.extent(1), 4) && batch.rank() == 1 &&
                     mayEqual(batch.extent(0), rois.extent(0)),
                 "expected an image of rank 4, regions [n, 4] and n indices");
  std::string mode = c.attrString("mode", "avg");
  std::string transform =
      c.attrString("coordinate_transformation_mode", c.since() >= 16 ? "half_pixel" : "output_half_pixel");
  c.requireAttr(mode == "avg" || mode == "max", "mode '" + mode + "' is unknown");
  c.requireAttr(transform == "half_pixel" || transform == "output_half_pixel",
                "coordinate_transformation_mode '" + transform + "' is unknown");
  bool half = transform == "half_pixel";
  int64_t height = c.attrInt("output_height", 1), width = c.attrInt("output_width", 1),
          ratio = c.attrInt("sampling_ratio", 0);
  c.requireAttr(height > 0 && width > 0 && height < 4096 && width < 4096 && ratio >= 0 && ratio < 64,
                "an output size or the sampling ratio is out of range");
  if (ratio == 0)
    fail("op-dynamic-shape", "with sampling_ratio 0 the number of samples "
                             "depends on the regions' values");
  if (c.since() < 16)
    c.noteDifference("roialign-before-16");
  Dim regions = rois.extent(0), channels = x.extent(1), h = x.extent(2), w = x.extent(3), area = h * w;
  Val scaled = e.mul(e.expectDims(rois, {regions, 4}), c.attrFloat("spatial_scale", 1));
  if (half)
    scaled = e.add(scaled, -0.5);
  auto column = [&](int64_t k) { return e.sliceAxis(scaled, 1, k, 1); };
  Samples ys = samplesOf(e, column(1), column(3), h, height, ratio, !half);
  Samples xs = samplesOf(e, column(0), column(2), w, width, ratio, !half);
  // One row of channels a pixel, so that a sample is one gathered row.
  Val pixels = e.reshape(e.transpose(x, {0, 2, 3, 1}), {x.extent(0) * area, channels});
  Val base = e.reshape(e.mul(e.expectDims(batch, {regions}), e.size(area)), {regions, 1, 1});
  Dims weightShape{regions, height * ratio, width * ratio, 1};
  Val total;
  for (bool upper : {false, true})
    for (bool right : {false, true}) {
      Val row = along(e, upper ? ys.high : ys.low, true);
      Val index = e.add(e.add(base, e.mul(row, e.size(w))), along(e, right ? xs.high : xs.low, false));
      Val weight = e.mul(along(e, upper ? ys.highWeight : ys.lowWeight, true),
                         along(e, right ? xs.highWeight : xs.lowWeight, false));
      Val part = e.mul(e.gather(pixels, index, 0), e.cast(e.reshape(weight, weightShape), x.dtype()));
      // The maximum is over the weighted corners, as the operator defines it.
      total = !total ? part : mode == "avg" ? e.add(total, part) : e.max(total, part);
    }
  Val inside = e.emit<AndOp>({along(e, ys.inside, true), along(e, xs.inside, false)});
  total = e.select(e.reshape(inside, weightShape), total, e.scalarLike(total, 0));
  Val bins = e.reshape(total, {regions, height, ratio, width, ratio, channels});
  Val pooled = e.reduce(mode == "avg" ? Reduction::mean : Reduction::max, bins, {2, 4}, false);
  c.result(e.transpose(pooled, {0, 3, 1, 2}));
}

} // namespace

std::vector<OpRows> roiOps() {
  using namespace types;
  const char *note = "sampling_ratio must be positive";
  return {
      {"RoiAlign",
       {10},
       "TT.>1",
       importRoiAlign,
       "mode,output_height,output_width,sampling_ratio,spatial_scale",
       {Float, Float, Index},
       note},
      {"RoiAlign",
       {16, 22},
       "TT.>1",
       importRoiAlign,
       "coordinate_transformation_mode,mode,output_height,output_width,"
       "sampling_ratio,spatial_scale",
       {Float, Float, Index},
       note},
  };
}

std::vector<Difference> roiDifferences() {
  return {
      {"roialign-before-16", "RoiAlign", "before opset 16", "half_pixel", "output_half_pixel", "output_half_pixel",
       "output_half_pixel", "what later opsets call output_half_pixel; the reference has only the newest", "", true},
  };
}

} // namespace dmxc::onnxfe
