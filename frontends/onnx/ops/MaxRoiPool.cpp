//===- MaxRoiPool.cpp - the largest elements of regions' bins ------------------===//
#include "../NodeContext.h"

#include <limits>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// Which of an axis's `size` elements lie in which of `bins`: bool [regions, bins, size]. Bins overlap where a region
/// does not divide evenly: each begins at the floor of its start and ends at the ceiling of its end.
Val membersOf(Emitter &e, const Val &first, const Val &last, Dim size, int64_t bins) {
  auto rounded = [&](const Val &x) { return e.emit<FloorOp>({e.add(x, 0.5)}); };
  Val start = rounded(first);
  Val extent = e.add(e.sub(rounded(last), start), 1);
  Val step = e.div(e.max(extent, e.scalarLike(extent, 1)), e.scalarLike(extent, static_cast<double>(bins)));
  Val bin = e.reshape(e.iota(first.dtype(), {bins}, 0), {1, bins, 1});
  Val low = e.add(e.emit<FloorOp>({e.mul(bin, step)}), start);
  Val high = e.add(e.emit<CeilOp>({e.mul(e.add(bin, 1), step)}), start);
  Val at = e.reshape(e.iota(first.dtype(), {size}, 0), {1, 1, size});
  return e.emit<AndOp>({e.compare(Compare::ge, at, low), e.compare(Compare::lt, at, high)});
}

void importMaxRoiPool(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0), rois = c.operand(1);
  c.requireShape(x.rank() == 4 && rois.rank() == 2 && mayEqual(rois.extent(1), 5),
                 "expected an image of rank 4 and regions [n, 5]");
  std::vector<int64_t> bins = c.attrInts("pooled_shape", {});
  c.requireAttr(bins.size() == 2 && bins[0] > 0 && bins[1] > 0 && bins[0] < 4096 && bins[1] < 4096,
                "pooled_shape must be two positive numbers");
  Val image = e.cast(e.reshape(e.sliceAxis(rois, 1, 0, 1), {rois.extent(0)}), DType::I64);
  Val scaled = e.mul(rois, c.attrFloat("spatial_scale", 1));
  const Dim regions = rois.extent(0), channels = x.extent(1), height = x.extent(2), width = x.extent(3);
  auto column = [&](int64_t k) { return e.reshape(e.sliceAxis(scaled, 1, k, 1), {regions, 1, 1}); };
  Val inRows = membersOf(e, column(2), column(4), height, bins[0]);
  Val inColumns = membersOf(e, column(1), column(3), width, bins[1]);
  Val least = e.scalarLike(x, -std::numeric_limits<double>::infinity());
  Val own = e.reshape(e.gather(x, image, 0), {regions, channels, height, 1, width});
  Val rows = e.reduce(Reduction::max, e.select(e.reshape(inColumns, {regions, 1, 1, bins[1], width}), own, least), {4},
                      /*keepDims=*/false); // [regions, channels, height, bins]
  Val across = e.reshape(e.transpose(rows, {0, 1, 3, 2}), {regions, channels, 1, bins[1], height});
  Val pooled = e.reduce(Reduction::max, e.select(e.reshape(inRows, {regions, 1, bins[0], 1, height}), across, least),
                        {4}, /*keepDims=*/false);
  // A bin without an element is 0.
  auto any = [&](const Val &members) { return e.reduce(Reduction::max, e.cast(members, DType::I32), {2}, false); };
  Val members =
      e.mul(e.reshape(any(inRows), {regions, 1, bins[0], 1}), e.reshape(any(inColumns), {regions, 1, 1, bins[1]}));
  c.result(e.select(e.compare(Compare::eq, members, e.scalarLike(members, 0)), e.scalarLike(pooled, 0), pooled));
}

} // namespace

std::vector<OpRows> maxRoiPoolOps() {
  return {{"MaxRoiPool", {1, 22}, "TT>1", importMaxRoiPool, "pooled_shape,spatial_scale", {types::Float}}};
}

} // namespace dmxc::onnxfe
