//===- StageCrossings.cpp - rows that cross while others are computed -----===//
#include "../KernelFunctions.h"
#include "StageWriter.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

Status StageWriter::addLeaving() {
  for (auto [index, value] : llvm::enumerate(function.getBody().front().getTerminator()->getOperands())) {
    if (!function.getResultAttr(index, lldmir::kBandsAttr))
      continue;
    auto refuse = [&, number = index](const Twine &why) {
      return fail(function, "has '" + lldmir::kBandsAttr + "' of result " + Twine(number) + ", " + why);
    };
    Result<HostResult> host = hostResult(index);
    if (!host)
      return host.takeError();
    auto alloc = value.getDefiningOp<memref::AllocOp>();
    if (!alloc || states.count(index) || host->type.getRank() != 2 || host->split.folded ||
        (quads > 1 && host->split.dim != 0))
      return refuse("of which no quad has rows in a buffer of its own");
    Result<DeviceTensor> tensor = tensorOf(alloc, value);
    if (!tensor)
      return tensor.takeError();
    if (tensor->shape != shareOf(host->type.getShape(), host->split) || !tensor->isRowMajor() ||
        leaving.count(tensor->address.buffer))
      return refuse("whose rows do not lie one after the other");
    const DeviceTensor &ddr = left[index] = resultInDdr(*tensor, host->type, index);
    leaving[tensor->address.buffer] = {static_cast<unsigned>(index), ddr.local(host->split).address,
                                       tensor->elements() * tensor->elementSize()};
  }
  return Status::ok();
}

Status StageWriter::cross(affine::AffineForOp loop, const TileOrder &order, bool inPieces, PlacedProduct &placed) {
  MatmulOperands &at = placed.operands;
  const Spread &product = placed.product;
  const auto in = arriving.find(at.a.buffer), out = leaving.find(at.out.buffer);
  const bool isPlain = order.isWhole() && batch.empty() && placed.batch.empty() && product.sharing != Sharing::Batch;
  auto isAll = [](const Crossing &crossing, const Address &place, int64_t bytes) {
    return place.offset == 0 && place.terms.empty() && crossing.bytes == bytes;
  };
  auto refuse = [&](const Crossing &crossing, const char *what, const char *why) {
    return fail(loop, "has rows of " + Twine(what) + " " + Twine(crossing.number) +
                          " that depend on each other, and '" + lldmir::kBandsAttr +
                          "' lets them cross band after band: " + why);
  };
  if (in != arriving.end()) {
    const int64_t rows = at.aTiles ? (product.m + 63) / 64 * 64 : product.m;
    if (!isPlain || !isAll(in->second, at.a, rows * at.aRow))
      return refuse(in->second, "argument", "its tiles do not come row after row, or column after column, all of them");
    at.arrives = in->second.ddr;
    arriving.erase(in);
  }
  if (out != leaving.end()) {
    const bool isByRows = isPlain && !inPieces && (!order.nodes.front().box.columnsOutside || product.rounds() == 1);
    if (!isByRows || !isAll(out->second, at.out, product.m * at.outRow))
      return refuse(out->second, "result", "others are begun before all columns of a band are there");
    at.leaves = out->second.ddr;
    leaving.erase(out);
  }
  return Status::ok();
}

Status StageWriter::checkArrived(Operation *user, Value buffer) {
  const auto tensor = tensors.find(rootOf(buffer));
  const auto in = tensor == tensors.end() ? arriving.end() : arriving.find(tensor->second.address.buffer);
  return in == arriving.end() ? Status::ok()
                              : fail(user, "needs all rows of argument " + Twine(in->second.number) + ", which '" +
                                               lldmir::kBandsAttr + "' lets cross with the loops that read them");
}

Status StageWriter::checkCrossed() {
  for (const auto &[buffer, in] : arriving)
    return fail(function, "has '" + lldmir::kBandsAttr + "' of argument " + Twine(in.number) +
                              ", whose rows no loops over tiles read");
  for (const auto &[buffer, out] : leaving)
    return fail(function, "has '" + lldmir::kBandsAttr + "' of result " + Twine(out.number) +
                              ", whose rows no loops over tiles fill");
  return Status::ok();
}
