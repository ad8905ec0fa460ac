//===- Libraries.cpp - operators of torchvision and transformers ----------===//
#include "Math.h"

#include "frontends/common/ops/Boxes.h"
#include "frontends/common/ops/Counting.h"
#include "frontends/common/ops/Product.h"

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

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

/// Of transformers: rows sorted by the expert that takes them, and where each expert's rows end.
void importGroupedFallback(AtenContext &c) {
  c.result(groupedProduct(c.e, c.tensor("input"), c.tensor("weight"), c.tensor("offs")));
}

} // namespace

std::vector<AtenRow> libraryOps() {
  return {
      {"torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", importNms},
      {"transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor", importGroupedFallback},
  };
}

} // namespace dmxc::torchfe
