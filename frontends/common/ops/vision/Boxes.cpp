//===- Boxes.cpp - boxes that overlap -------------------------------------===//
#include "Boxes.h"

using namespace dmxc::dmir;

namespace dmxc::frontend {

Val keptBoxes(Emitter &e, const Boxes &b, const Val &candidates, const Val &overlap, const Val &limit) {
  const Dim lines = candidates.extent(0), count = candidates.extent(1);
  auto left = [&](const Val &v) { return e.reshape(v, {lines, count, 1}); };
  auto right = [&](const Val &v) { return e.reshape(v, {lines, 1, count}); };
  Val zero = e.scalarLike(b.y1, 0), area = e.mul(e.sub(b.y2, b.y1), e.sub(b.x2, b.x1));
  Val height = e.max(e.sub(e.min(left(b.y2), right(b.y2)), e.max(left(b.y1), right(b.y1))), zero);
  Val width = e.max(e.sub(e.min(left(b.x2), right(b.x2)), e.max(left(b.x1), right(b.x1))), zero);
  Val shared = e.mul(height, width), together = e.sub(e.add(left(area), right(area)), shared);
  Val excludes = e.emit<AndOp>({e.compare(Compare::gt, e.div(shared, together), e.cast(overlap, shared.dtype())),
                                e.compare(Compare::gt, shared, zero)});
  return e.emit<GreedySelectOp>({candidates, excludes, e.cast(limit, DType::I64)});
}

} // namespace dmxc::frontend
