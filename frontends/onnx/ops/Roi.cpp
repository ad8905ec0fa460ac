//===- Roi.cpp - pooling of regions whose place is computed ---------------===//
#include "../Differences.h"
#include "../NodeContext.h"

#include "frontends/common/ops/vision/Regions.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

void importRoiAlign(NodeContext &c) {
  Emitter &e = c.e;
  std::string mode = c.attrString("mode", "avg");
  std::string transform =
      c.attrString("coordinate_transformation_mode", c.since() >= 16 ? "half_pixel" : "output_half_pixel");
  c.requireAttr(mode == "avg" || mode == "max", "mode '" + mode + "' is unknown");
  c.requireAttr(transform == "half_pixel" || transform == "output_half_pixel",
                "coordinate_transformation_mode '" + transform + "' is unknown");
  bool half = transform == "half_pixel";
  RegionBins bins{c.attrInt("output_height", 1), c.attrInt("output_width", 1)};
  Val scaled = e.mul(c.operand(1), c.attrFloat("spatial_scale", 1));
  if (c.since() < 16)
    c.noteDifference("roialign-before-16");
  if (half)
    scaled = e.add(scaled, -0.5);
  c.result(sampledRegions(e, c.operand(0), scaled, c.cast64(2), bins,
                          {c.attrInt("sampling_ratio", 0), mode == "max", !half}));
}

} // namespace

std::vector<OpRows> roiOps() {
  using namespace types;
  return {
      {"RoiAlign",
       {10},
       "TT.>1",
       importRoiAlign,
       "mode,output_height,output_width,sampling_ratio,spatial_scale",
       {Float, Float, Index}},
      {"RoiAlign",
       {16, 22},
       "TT.>1",
       importRoiAlign,
       "coordinate_transformation_mode,mode,output_height,output_width,"
       "sampling_ratio,spatial_scale",
       {Float, Float, Index}},
  };
}

std::vector<Difference> roiDifferences() {
  return {
      {"roialign-before-16", "RoiAlign", "before opset 16", "half_pixel", "output_half_pixel", "output_half_pixel",
       "output_half_pixel", "what later opsets call output_half_pixel; the reference has only the newest", "", true},
  };
}

} // namespace dmxc::onnxfe
