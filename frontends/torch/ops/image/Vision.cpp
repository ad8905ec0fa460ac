//===- Vision.cpp - torchvision's operators -------------------------------===//
#include "../Windows.h"

#include "frontends/common/ops/Counting.h"
#include "frontends/common/ops/vision/Boxes.h"
#include "frontends/common/ops/vision/Deformed.h"
#include "frontends/common/ops/vision/Regions.h"

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

//===--- Regions ----------------------------------------------------------------------===//

/// The input, computed wide, and regions of it: rois [n, 5] are the image's number and the corners.
struct Given {
  Val x, boxes, images;
  RegionBins bins;
};
Given givenOf(AtenContext &c, bool ownChannels) {
  Emitter &e = c.e;
  Val x = c.tensor("input"), rois = c.tensor("rois");
  c.require(isFloat(x.dtype()) && x.dtype() == rois.dtype(), "images and regions must be floats of one type");
  c.requireShape(rois.rank() == 2 && mayEqual(rois.extent(1), 5), "expected regions [n, 5]");
  Val wide = c.wide(rois);
  return {c.wide(x),
          e.mul(e.sliceAxis(wide, 1, 1, 4), c.number("spatial_scale")),
          c.cast(e.reshape(e.sliceAxis(wide, 1, 0, 1), {rois.extent(0)}), DType::I64),
          {c.integer("pooled_height"), c.integer("pooled_width"), ownChannels}};
}
int64_t ratioOf(AtenContext &c) { return std::max<int64_t>(c.integer("sampling_ratio"), 0); }

void importRoiAlign(AtenContext &c) {
  Given g = givenOf(c, false);
  bool aligned = c.flag("aligned");
  Val boxes = aligned ? c.e.add(g.boxes, -0.5) : g.boxes;
  c.result(c.cast(sampledRegions(c.e, g.x, boxes, g.images, g.bins, {ratioOf(c), false, !aligned}),
                  c.tensor("input").dtype()));
}
void importRoiPool(AtenContext &c) {
  Given g = givenOf(c, false);
  c.result(c.cast(largestOfRegions(c.e, g.x, g.boxes, g.images, g.bins), c.tensor("input").dtype()));
}

/// Bins with channels of their own, and which channel each result is of.
void ownChannels(AtenContext &c, const Val &pooled) {
  Emitter &e = c.e;
  c.result(0, c.cast(pooled, c.tensor("input").dtype()));
  Dims each(llvm::ArrayRef<Dim>(pooled.dims()).drop_front());
  Val channel = e.reshape(e.iota(DType::I32, {product(each)}, 0), each);
  c.result(1, e.broadcast(channel, pooled.dims()));
}
void importPsRoiAlign(AtenContext &c) {
  Given g = givenOf(c, true);
  ownChannels(c, sampledRegions(c.e, g.x, c.e.add(g.boxes, -0.5), g.images, g.bins, {ratioOf(c)}));
}
void importPsRoiPool(AtenContext &c) {
  Given g = givenOf(c, true);
  ownChannels(c, meansOfRegions(c.e, g.x, g.boxes, g.images, g.bins));
}

/// Boxes that no better one overlaps, best first.
void importNms(AtenContext &c) {
  Counting n(c.e);
  Emitter &e = c.e;
  Val boxes = c.tensor("dets"), scores = c.tensor("scores");
  c.requireShape(boxes.rank() == 2 && mayEqual(boxes.extent(1), 4) && scores.rank() == 1 &&
                     mayEqual(boxes.extent(0), scores.extent(0)),
                 "expected boxes [n, 4] and scores [n], not " + boxes.describe() + " and " + scores.describe());
  const double overlap = c.number("iou_threshold");
  c.require(overlap >= 0, "iou_threshold is " + std::to_string(overlap) + ", but overlaps are not negative");
  const Dim count = scores.extent(0);
  Val order = n.sorted(scores, 0, /*largest=*/true)[1], best = e.gather(boxes, order, 0);
  auto corner = [&](int64_t i) { return e.reshape(e.sliceAxis(best, 1, i, 1), {1, count}); };
  Val kept = keptBoxes(e, {corner(1), corner(0), corner(3), corner(2)}, e.splat(DType::Bool, {1, count}, 1),
                       e.scalar(boxes.dtype(), overlap), e.size(count));
  c.result(e.gather(order, n.whereTrue(n.flat(kept)), 0));
}

//===--- Convolutions -----------------------------------------------------------------===//

void importDeformConv(AtenContext &c) {
  Val x = c.tensor("input"), weights = c.tensor("weight");
  c.requireShape(x.rank() == 4 && weights.rank() == 4, "expected images and weights of rank 4");
  Window w;
  w.kernel = {weights.extent(2), weights.extent(3)};
  w.strides = {c.integer("stride_h"), c.integer("stride_w")};
  w.dilations = {c.integer("dilation_h"), c.integer("dilation_w")};
  std::vector<int64_t> pads{c.integer("pad_h"), c.integer("pad_w")};
  w.low = w.high = Dims(pads);
  w.ceilExtra = Dims(2, 0);
  requireSpatial({x.extent(2), x.extent(3)});
  requireKernel(w.kernel);
  requireEntries("stride", w.strides, 1);
  requireEntries("dilation", w.dilations, 1);
  requireEntries("padding", pads, 0);
  DeformedConvolution d{weights,
                        c.tensor("offset"),
                        c.flag("use_mask") ? c.tensor("mask") : Val(),
                        c.tensor("bias"),
                        w,
                        c.integer("groups"),
                        c.integer("offset_groups")};
  c.result(deformedConvolution(c.e, x, d));
}

} // namespace

std::vector<AtenRow> visionOps() {
#define REGIONS "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
  return {
      {"torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", importNms},
      {"torchvision::roi_align(" REGIONS ", int sampling_ratio, bool aligned) -> Tensor", importRoiAlign},
      {"torchvision::roi_pool(" REGIONS ") -> (Tensor, Tensor)", importRoiPool, "the first result alone"},
      {"torchvision::ps_roi_align(" REGIONS ", int sampling_ratio) -> (Tensor, Tensor)", importPsRoiAlign},
      {"torchvision::ps_roi_pool(" REGIONS ") -> (Tensor, Tensor)", importPsRoiPool},
      {"torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt "
       "stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
       "SymInt offset_groups, bool use_mask) -> Tensor",
       importDeformConv},
  };
#undef REGIONS
}

} // namespace dmxc::torchfe
