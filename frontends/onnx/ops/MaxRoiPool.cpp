//===- MaxRoiPool.cpp - the largest elements of regions' bins ------------------===//
#include "../NodeContext.h"

#include "frontends/common/ops/vision/Regions.h"

namespace dmxc::onnxfe {
namespace {

void importMaxRoiPool(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0), rois = c.operand(1);
  c.requireShape(x.rank() == 4 && rois.rank() == 2 && mayEqual(rois.extent(1), 5),
                 "expected an image of rank 4 and regions [n, 5]");
  std::vector<int64_t> bins = c.attrInts("pooled_shape", {});
  c.requireAttr(bins.size() == 2, "pooled_shape must be two positive numbers");
  Val image = e.cast(e.reshape(e.sliceAxis(rois, 1, 0, 1), {rois.extent(0)}), DType::I64);
  Val boxes = e.mul(e.sliceAxis(rois, 1, 1, 4), c.attrFloat("spatial_scale", 1));
  c.result(largestOfRegions(e, x, boxes, image, {bins[0], bins[1]}));
}

} // namespace

std::vector<OpRows> maxRoiPoolOps() {
  return {{"MaxRoiPool", {1, 22}, "TT>1", importMaxRoiPool, "pooled_shape,spatial_scale", {types::Float}}};
}

} // namespace dmxc::onnxfe
