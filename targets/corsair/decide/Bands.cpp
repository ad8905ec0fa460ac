//===- Bands.cpp - rows of scores that are computed band by band ----------===//
#include "Bands.h"

#include "dmxc/Dialect/DMIR/masks/Where.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

/// The operand of an elementwise op that has its result's shape and is no argument: the scores so far.
static Value scoresAmong(Operation *op) {
  Value found;
  for (Value operand : op->getOperands())
    if (operand.getDefiningOp() && operand.hasOneUse() && operand.getType() == op->getResult(0).getType()) {
      if (found)
        return {};
      found = operand;
    }
  return found;
}

std::optional<Scores> dmxc::corsair::scoresOf(dmir::SoftmaxOp softmax) {
  Scores scores;
  scores.softmax = softmax;
  const auto rank = static_cast<int64_t>(shapeOf(softmax.getInput()).size());
  if (softmax.getLog() || rank < 2 || static_cast<int64_t>(softmax.getAxis()) != rank - 1 || !softmax->hasOneUse())
    return std::nullopt;
  scores.weighted = dyn_cast<dmir::MatMulOp>(*softmax->user_begin());
  Value value = softmax.getInput();
  while (!scores.product) {
    Operation *op = value && value.hasOneUse() ? value.getDefiningOp() : nullptr;
    if (!op || op->getBlock() != softmax->getBlock() || scores.between.size() > 8)
      return std::nullopt;
    if ((scores.product = dyn_cast<dmir::MatMulOp>(op)))
      break;
    if (!op->hasTrait<dmir::Elementwise>() || op->getNumResults() != 1)
      return std::nullopt;
    scores.between.insert(scores.between.begin(), op);
    value = isa<dmir::MaskOp>(op) ? op->getOperand(0) : scoresAmong(op);
  }
  auto isArgumentOfOthers = [](Value value) { return isa<BlockArgument>(value) && !value.hasOneUse(); };
  if (!scores.weighted || scores.weighted.getLhs() != softmax.getResult() ||
      scores.weighted.getRhs() == softmax.getResult() || isArgumentOfOthers(softmax.getResult()))
    return std::nullopt;
  return scores;
}

/// A quad's rows of each matrix, and the columns of its scores.
static std::pair<int64_t, int64_t> sizesOf(Scores scores, const Distribution &deal) {
  const SmallVector<int64_t> share = shareOf(shapeOf(scores.product.getResult()), deal.at(scores.product.getResult()));
  return {share[share.size() - 2], share.back()};
}

std::optional<std::string> dmxc::corsair::unfitForBands(Scores scores, const Distribution &deal) {
  for (dmir::MatMulOp product : {scores.product, scores.weighted})
    if (deal.packed.contains(product.getRhs()) || deal.depth.contains(product))
      return "a product by a constant has no bands";
  const Split split = deal.at(scores.product.getResult());
  SmallVector<Operation *> all(scores.between.begin(), scores.between.end());
  all.append({scores.softmax, scores.weighted});
  for (Operation *op : all) {
    const auto gathered = deal.gathers.find(op);
    const bool scoresMove =
        gathered != deal.gathers.end() && llvm::any_of(gathered->second, [&](Value value) {
          Operation *maker = value.getDefiningOp();
          return maker == scores.product || maker == scores.softmax || llvm::is_contained(scores.between, maker);
        });
    if (scoresMove || !(deal.at(op->getResult(0)) == split))
      return "each quad must have its own rows from the scores to the values";
  }
  if (split && split.dim + 1 == static_cast<int>(shapeOf(scores.product.getResult()).size()))
    return "each quad must have whole rows of scores";
  const auto [rows, columns] = sizesOf(scores, deal);
  if (rows % kBandRows || columns % kBandRows)
    return "it has " + std::to_string(rows) + " rows of " + std::to_string(columns) +
           " columns in a quad, and bands are " + std::to_string(kBandRows) + " of whole tiles";
  return std::nullopt;
}

Status dmxc::corsair::readBands(Block *body, Distribution &deal) {
  for (Operation &op : body->without_terminator()) {
    if (!op.hasAttr(lldmir::kBandsAttr))
      continue;
    auto softmax = dyn_cast<dmir::SoftmaxOp>(op);
    const std::optional<Scores> scores = softmax ? scoresOf(softmax) : std::nullopt;
    const std::optional<std::string> why =
        scores ? unfitForBands(*scores, deal)
               : std::optional<std::string>("it is no softmax of scores between two products of values");
    if (why)
      return modelError("node '" + dmir::nodeName(&op) + "': it has '" + lldmir::kBandsAttr.str() + "', but " + *why +
                        "; what is left out is decided");
    deal.bands.insert(&op);
  }
  return Status::ok();
}

void dmxc::corsair::chooseBands(Block *body, Distribution &deal) {
  constexpr int64_t fewestRows = 2 * kBandRows, fewestColumns = 512;
  for (auto softmax : body->getOps<dmir::SoftmaxOp>()) {
    const std::optional<Scores> scores = scoresOf(softmax);
    if (!scores || unfitForBands(*scores, deal))
      continue;
    const auto [rows, columns] = sizesOf(*scores, deal);
    if (rows >= fewestRows && columns >= fewestColumns)
      deal.bands.insert(softmax);
  }
}

/// The softmax of scores that a value is, or leads to.
static dmir::SoftmaxOp softmaxOf(Value value) {
  for (int steps = 0; steps < 16; ++steps) {
    Operation *reader = value.hasOneUse() ? *value.user_begin() : nullptr;
    if (auto softmax = dyn_cast_or_null<dmir::SoftmaxOp>(reader))
      return softmax;
    if (!reader || !reader->hasTrait<dmir::Elementwise>() || reader->getNumResults() != 1)
      return {};
    value = reader->getResult(0);
  }
  return {};
}

bool dmxc::corsair::isInBands(dmir::MatMulOp product, const Distribution &deal) {
  if (deal.bands.contains(product.getLhs().getDefiningOp()))
    return true;
  const dmir::SoftmaxOp softmax = softmaxOf(product.getResult());
  return softmax && deal.bands.contains(softmax) && scoresOf(softmax)->product == product;
}

bool dmxc::corsair::isStrip(Value value, const Distribution &deal) {
  Operation *op = value.getDefiningOp();
  const dmir::SoftmaxOp softmax = !op                        ? dmir::SoftmaxOp()
                                  : isa<dmir::SoftmaxOp>(op) ? cast<dmir::SoftmaxOp>(op)
                                                             : softmaxOf(value);
  if (!softmax || !deal.bands.contains(softmax))
    return false;
  std::optional<Scores> scores = scoresOf(softmax);
  return scores && (op == softmax || op == scores->product || llvm::is_contained(scores->between, op));
}
