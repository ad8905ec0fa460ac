//===- DataDependent.cpp - results whose shape depends on values ----------===//
//
// How many elements there are is counted at run time and becomes a dim; after that the operators are gathers and
// scatters of known rank. Where the operands are constant, all of it is folded.
//
//===----------------------------------------------------------------------===//
#include "../Differences.h"
#include "../NodeContext.h"

#include "frontends/common/ops/Counting.h"
#include "frontends/common/ops/order/Groups.h"
#include "frontends/common/ops/vision/Boxes.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

void importNonZero(NodeContext &c) {
  Counting n(c.e);
  Val x = c.operand(0), flags = x;
  if (x.dtype() != DType::Bool)
    flags = c.e.compare(Compare::ne, x, c.e.scalarLike(x, 0));
  Val found = n.whereTrue(n.flat(flags));
  std::vector<Val> index(x.rank());
  for (int64_t axis = x.rank(); axis-- > 0;) {
    index[axis] = axis ? n.rest(found, x.extent(axis)) : found;
    found = axis ? n.divide(found, x.extent(axis)) : found;
  }
  c.result(index.empty() ? c.e.reshape(c.e.sliceAxis(found, 0, 0, 0), {0, found.extent(0)}) : n.stacked(index, 0));
}

void importCompress(NodeContext &c) {
  Counting n(c.e);
  Val x = c.operand(0), condition = c.operand(1);
  c.requireShape(condition.rank() == 1, "the condition must be a vector");
  int64_t axis = 0;
  if (c.hasAttr("axis"))
    axis = c.normalizeAxis(c.attrInt("axis"), x.rank());
  else
    x = n.flat(x);
  c.result(c.e.gather(x, n.whereTrue(condition), axis));
}

//===--- Unique -----------------------------------------------------------------===//

void importUnique(NodeContext &c) {
  Counting n(c.e);
  Emitter &e = c.e;
  Val x = c.operand(0);
  bool whole = !c.hasAttr("axis");
  int64_t axis = whole ? 0 : c.normalizeAxis(c.attrInt("axis"), x.rank());
  Val rows = whole ? n.flat(x) : x; // what is unique lies along `axis`
  auto [first, inverse, counts] = equalRows(e, rows, axis);
  if (!c.attrInt("sorted", 1)) { // in the order they first occur in
    Dim count = first.extent(0);
    Val order = n.sorted(first, 0)[1];
    Val place = n.scatter(e.splat(DType::I64, {count}, 0), order, n.positions(count));
    first = e.gather(first, order, 0);
    counts = e.gather(counts, order, 0);
    inverse = e.gather(place, inverse, 0);
  }
  c.result(0, e.gather(rows, first, axis));
  c.result(1, first);
  c.result(2, inverse);
  c.result(3, counts);
}

//===--- Non-maximum suppression ------------------------------------------------===//

/// Corners of boxes as vectors [batch, boxes].
Boxes boxesOf(NodeContext &c, const Val &boxes) {
  Emitter &e = c.e;
  auto column = [&](int64_t i) { return e.reshape(e.sliceAxis(boxes, 2, i, 1), {boxes.extent(0), boxes.extent(1)}); };
  Val a = column(0), b = column(1), p = column(2), q = column(3);
  if (!c.attrInt("center_point_box", 0))
    return {e.min(a, p), e.min(b, q), e.max(a, p), e.max(b, q)};
  Val halfWidth = e.mul(p, 0.5), halfHeight = e.mul(q, 0.5); // x and y of the centre, width, height
  return {e.sub(b, halfHeight), e.sub(a, halfWidth), e.add(b, halfHeight), e.add(a, halfWidth)};
}

void importNonMaxSuppression(NodeContext &c) {
  Counting n(c.e);
  Emitter &e = c.e;
  Val boxes = c.operand(0), scores = c.operand(1);
  c.requireShape(boxes.rank() == 3 && scores.rank() == 3 && mayEqual(boxes.extent(2), 4) &&
                     mayEqual(boxes.extent(0), scores.extent(0)) && mayEqual(boxes.extent(1), scores.extent(2)),
                 "expected boxes [batch, n, 4] and scores [batch, classes, n]");
  Dim classes = scores.extent(1), count = scores.extent(2), lines = scores.extent(0) * classes;
  auto scalar = [&](int i, const Val &otherwise) { return c.has(i) ? e.reshape(c.operand(i), {}) : otherwise; };
  Val limit = scalar(2, e.size(0)), overlap = scalar(3, e.scalar(DType::F32, 0));
  std::vector<Val> sorted = n.sorted(scores, 2, /*largest=*/true);
  Val order = e.reshape(sorted[1], {lines, count}), candidates = e.splat(DType::Bool, {lines, count}, 1);
  if (c.has(4))
    candidates = e.compare(Compare::gt, e.reshape(sorted[0], {lines, count}), scalar(4, Val()));
  Boxes all = boxesOf(c, boxes);
  auto inOrder = [&](const Val &corner) { // [batch, n] -> [batch * classes, n], by score
    Val wide = e.broadcast(e.reshape(corner, {scores.extent(0), 1, count}), scores.dims());
    return e.emit<GatherElementsOp>({e.reshape(wide, {lines, count}), order}, {e.attr("axis", int64_t(1))});
  };
  Boxes b{inOrder(all.y1), inOrder(all.x1), inOrder(all.y2), inOrder(all.x2)};
  Val kept = keptBoxes(e, b, candidates, overlap, limit);
  Val found = n.whereTrue(n.flat(kept)), box = e.gather(n.flat(order), found, 0), line = n.divide(found, count);
  c.result(n.stacked({n.divide(line, classes), n.rest(line, classes), box}, 1));
}

} // namespace

std::vector<OpRows> dataDependentOps() {
  using namespace types;
  return {
      {"NonZero", {9, 13}, ".>1", importNonZero},
      {"Compress", {9, 11}, "..>1", importCompress, "axis", {Any, Bool}},
      {"Unique", {11}, ".>4", importUnique, "axis,sorted", {Number}},
      {"NonMaxSuppression",
       {10, 11},
       ".....>1",
       importNonMaxSuppression,
       "center_point_box",
       {Float, Float, Index, Float, Float}},
  };
}

std::vector<Difference> dataDependentDifferences() {
  return {
      {"unique-nan", "Unique", "more than one NaN", "one NaN for all", "no NaN", "each NaN by itself",
       "each NaN by itself", "NaN is equal to nothing"},
  };
}

} // namespace dmxc::onnxfe
