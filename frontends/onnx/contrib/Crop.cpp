//===- Crop.cpp - regions of an image, resized ----------------------------===//
#include "Contrib.h"

#include "frontends/common/ops/Formulas.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// Where the samples of all regions lie along an axis of the image, [regions, samples] each.
struct Places {
  Val low, high; ///< the pixels around, or twice the nearest one (i64)
  Val share;     ///< of the higher one
  Val inside;    ///< the others lie outside of the image
};

/// `start` and `end`: [regions, 1], from 0 at the first pixel to 1 at the last. The first and the last sample lie
/// there; a single one between them.
Places placesOf(Emitter &e, const Val &start, const Val &end, Dim size, Dim samples, bool nearest) {
  Val index = e.iota(DType::F32, {1, samples}, 1), last = e.size(samples - 1, DType::F32);
  Val single = e.compare(Compare::eq, last, e.scalarLike(last, 0));
  Val t = e.select(single, e.scalarLike(last, 0.5), e.div(index, e.max(last, e.scalarLike(last, 1))));
  Val from = e.mul(start, e.sub(e.scalarLike(t, 1), t)), edge = e.size(size - 1, DType::F32);
  Val at = e.mul(e.add(from, e.mul(end, t)), edge);
  Places p;
  p.inside = both(e, e.compare(Compare::ge, at, e.scalarLike(at, 0)), e.compare(Compare::le, at, edge));
  at = whereOrZero(e, p.inside, at);
  Val low = e.emit<FloorOp>({nearest ? e.add(at, 0.5) : at});
  p.share = e.sub(at, low);
  p.low = e.cast(low, DType::I64);
  p.high = nearest ? p.low : e.cast(e.emit<CeilOp>({at}), DType::I64);
  return p;
}

Val alongRows(Emitter &e, const Val &x) { return unsqueeze(e, x, 2); }
Val alongColumns(Emitter &e, const Val &x) { return unsqueeze(e, x, 1); }

/// The channels of the pixels at the places, [regions, rows, columns, channels], between their neighbours.
Val sampled(Emitter &e, const Val &x, const Val &batch, const Places &rows, const Places &columns, bool nearest) {
  const Dim w = x.extent(3), area = x.extent(2) * w;
  Val pixels = e.reshape(e.transpose(x, {0, 2, 3, 1}), {x.extent(0) * area, x.extent(1)});
  Val base = e.reshape(e.mul(batch, e.size(area)), {batch.extent(0), 1, 1});
  auto pixel = [&](const Val &row, const Val &column) {
    Val at = e.add(e.add(base, e.mul(alongRows(e, row), e.size(w))), alongColumns(e, column));
    return e.cast(e.gather(pixels, at, 0), DType::F32);
  };
  if (nearest)
    return pixel(rows.low, columns.low);
  Val right = unsqueeze(e, alongColumns(e, columns.share), 3), down = unsqueeze(e, alongRows(e, rows.share), 3);
  auto between = [&](const Val &a, const Val &b, const Val &share) { return e.add(a, e.mul(e.sub(b, a), share)); };
  Val top = between(pixel(rows.low, columns.low), pixel(rows.low, columns.high), right);
  Val bottom = between(pixel(rows.high, columns.low), pixel(rows.high, columns.high), right);
  return between(top, bottom, down);
}

void importCropAndResize(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0), rois = e.cast(c.operand(1), DType::F32), batch = c.cast64(2);
  c.requireShape(x.rank() == 4 && rois.rank() == 2 && mayEqual(rois.extent(1), 4) && batch.rank() == 1 &&
                     mayEqual(batch.extent(0), rois.extent(0)),
                 "expected an image [n, c, h, w], regions [r, 4] and r indices of images");
  for (Dim dim : x.dims())
    c.requireShape(!dim.is(0), "the image has no pixels");
  std::string mode = c.attrString("mode", "bilinear");
  c.requireAttr(mode == "bilinear" || mode == "nearest", "the mode '" + mode + "' is unknown");
  const bool nearest = mode == "nearest";
  Dims crop = c.sizes(3, "crop size", std::nullopt, 2);
  c.requireShape(crop.size() == 2 && crop[0].valueOr(1) > 0 && crop[1].valueOr(1) > 0,
                 "the crop size must be two positive numbers");
  const Dim regions = batch.extent(0);
  rois = e.expectDims(rois, {regions, 4});
  auto corner = [&](int64_t i) { return e.sliceAxis(rois, 1, i, 1); };
  Places rows = placesOf(e, corner(0), corner(2), x.extent(2), crop[0], nearest);
  Places columns = placesOf(e, corner(1), corner(3), x.extent(3), crop[1], nearest);
  Val y = sampled(e, x, batch, rows, columns, nearest);
  Val inside = unsqueeze(e, both(e, alongRows(e, rows.inside), alongColumns(e, columns.inside)), 3);
  y = e.select(inside, y, e.scalarLike(y, c.attrFloat("extrapolation_value", 0)));
  c.result(e.cast(e.transpose(y, {0, 3, 1, 2}), x.dtype()));
}

} // namespace

std::vector<OpRows> contribCropOps() {
  using namespace types;
  constexpr TypeSet Single = bitOf(DType::F16) | bitOf(DType::F32) | bitOf(DType::F64), I32 = bitOf(DType::I32);
  return {{"CropAndResize",
           {1},
           "TTUU>1",
           importCropAndResize,
           "extrapolation_value,mode",
           {Single, Single, I32, I32},
           "",
           kMicrosoft}};
}

} // namespace dmxc::onnxfe
