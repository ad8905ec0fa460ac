//===- Kept.cpp - products that leave out zeros of weights ----------------===//
#include "Kept.h"

#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair::stages;

static Status multiplyBlocks(ArrayRef<int64_t> blocks, const Sums::Part &part, const std::optional<View> &bias,
                             const View &out) {
  const int64_t depth = part.left.shape[1];
  if (blocks.empty() || !llvm::all_of(blocks, [&](int64_t block) { return block >= 0 && block * 64 < depth; }))
    return modelError("has no such blocks along K as are to be multiplied");
  Sums sums;
  sums.parts.push_back({blocksOf(part.left, 1, blocks), blocksOf(part.right, 0, blocks), part.atOnce});
  sums.bias = bias;
  return sumsInto(sums, out);
}

Status dmxc::corsair::stages::multiplyKept(dmir::MatMulOp op, const Sums &whole, const View &out) {
  const Sums::Part &part = whole.parts.front();
  if (auto blocks = op->getAttrOfType<DenseI64ArrayAttr>(lldmir::kBlocksAttr))
    return multiplyBlocks(blocks, part, whole.bias, out);
  auto plan = op->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr);
  auto rounds = op->getAttrOfType<ArrayAttr>(lldmir::kKeptAttr);
  auto deal = op->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr);
  if (!plan || !rounds)
    return modelError("takes rounds of columns without a plan that says how wide they are");
  const bool own = deal && deal.getDim() + 1 == typeOf(op.getResult()).getRank();
  const int64_t all = part.right.shape[1], columns = all / (own ? deal.getQuads() : 1),
                slices = plan.getSpread().getShare() == "columns" ? plan.getSpread().getSlices() : 1,
                width = 64 * plan.getSpread().getGroups() * slices;
  if (columns < 1 || static_cast<int64_t>(rounds.size()) != (columns + width - 1) / width)
    return modelError("has not the rounds of columns that its plan makes");
  for (int64_t from = 0; from < all;) {
    const int64_t at = from % columns, count = std::min(width, columns - at);
    auto blocks = dyn_cast<DenseI64ArrayAttr>(rounds[at / width]);
    std::optional<View> bias = whole.bias ? std::optional(whole.bias->slice(0, from, count)) : std::nullopt;
    if (Status done =
            multiplyBlocks(blocks ? blocks.asArrayRef() : ArrayRef<int64_t>(),
                           {part.left, part.right.slice(1, from, count), part.atOnce}, bias, out.slice(1, from, count));
        !done)
      return done;
    from += count;
  }
  return Status::ok();
}
