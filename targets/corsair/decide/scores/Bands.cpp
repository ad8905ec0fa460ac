//===- Bands.cpp - rows of scores that are computed band by band ----------===//
#include "Bands.h"
#include "../Spread.h"
#include "Diagonals.h"

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
    scores.product = dyn_cast<dmir::MatMulOp>(op);
    if (scores.product)
      break;
    if (!op->hasTrait<dmir::Elementwise>() || op->getNumResults() != 1)
      return std::nullopt;
    scores.between.insert(scores.between.begin(), op);
    value = isa<dmir::MaskOp>(op) ? op->getOperand(0) : scoresAmong(op);
  }
  if (!scores.weighted || scores.weighted.getLhs() != softmax.getResult() ||
      scores.weighted.getRhs() == softmax.getResult())
    return std::nullopt;
  return scores;
}

/// The diagonals that the first mask of scores keeps; none where there is no mask.
static Diagonals keptOf(const Scores &scores) {
  for (Operation *op : scores.between)
    if (auto mask = dyn_cast<dmir::MaskOp>(op))
      return diagonalsOf(mask).value_or(Diagonals());
  return {};
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
  constexpr int64_t mostLoops = 4; // of the eight that a program has
  if (llvm::count_if(shapeOf(scores.product.getResult()).drop_back(2), [](int64_t extent) { return extent != 1; }) >
      mostLoops)
    return "its batch has more than four dims";
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

/// The values between the host's queries and the host's result that have their rows from the one to the other in the
/// same order; empty where others read them, or where an operand differs by row.
static SmallVector<Value> rowsFromHostToHost(Scores scores, const Distribution &deal) {
  const Value made = scores.product.getResult();
  const Split split = deal.at(made);
  const auto rank = static_cast<int64_t>(shapeOf(made).size());
  if (!split || split.dim + 2 != rank || split.part % (2 * kBandRows) || !deal.bands.contains(scores.softmax))
    return {};
  SmallVector<Value> values{made};
  auto isPart = [&](Value value) { return value.hasOneUse() && deal.at(value).part == split.part; };
  Value query = scores.product.getLhs();
  for (; isPart(query) && query.getDefiningOp() && isView(query.getDefiningOp());
       query = query.getDefiningOp()->getOperand(0))
    values.push_back(query);
  if (!isPart(query) || !isa<BlockArgument>(query))
    return {};
  values.push_back(query);
  const Diagonals kept = keptOf(scores);
  const bool masks = kept.upper && !kept.lower && !computesMasked(scores.softmax);
  for (Operation *op : scores.between) {
    for (Value operand : op->getOperands()) {
      ArrayRef<int64_t> shape = shapeOf(operand);
      if (!llvm::is_contained(values, operand) && shape.size() > 1 && shape[shape.size() - 2] != 1)
        return {};
    }
    values.push_back(op->getResult(0));
  }
  values.append({scores.softmax.getResult(), scores.weighted.getResult()});
  for (Value result = scores.weighted.getResult();; values.push_back(result)) {
    Operation *reader = isPart(result) ? *result.user_begin() : nullptr;
    if (!reader)
      return {};
    if (reader->hasTrait<OpTrait::IsTerminator>())
      return masks ? values : SmallVector<Value>();
    if (!isView(reader))
      return {};
    result = reader->getResult(0);
  }
}

void dmxc::corsair::chooseFolds(Block *body, Distribution &deal, llvm::function_ref<bool(Value)> isInput) {
  for (auto softmax : body->getOps<dmir::SoftmaxOp>()) {
    const std::optional<Scores> scores = scoresOf(softmax);
    const SmallVector<Value> values = scores ? rowsFromHostToHost(*scores, deal) : SmallVector<Value>();
    if (llvm::all_of(values, [&](Value value) { return !isa<BlockArgument>(value) || isInput(value); }))
      deal.folded.insert(values.begin(), values.end());
  }
}

Status dmxc::corsair::checkFolds(Block *body, const Distribution &deal) {
  llvm::DenseSet<Value> whole = deal.folded;
  for (auto softmax : body->getOps<dmir::SoftmaxOp>()) {
    const std::optional<Scores> scores = scoresOf(softmax);
    const SmallVector<Value> values = scores ? rowsFromHostToHost(*scores, deal) : SmallVector<Value>();
    if (llvm::all_of(values, [&](Value value) { return deal.folded.contains(value); }))
      for (Value value : values)
        whole.erase(value);
  }
  if (whole.empty())
    return Status::ok();
  Operation *op = whole.begin()->getDefiningOp();
  return modelError(
      "node '" + dmir::nodeName(op ? op : *whole.begin()->user_begin()) + "': '" + lldmir::kDealAttr.str() +
      "' is folded, but rows are so from queries that the host brings to the result that goes back to it, all through "
      "scores in bands of which a mask keeps the columns up to a diagonal");
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

bool dmxc::corsair::isOfWindow(dmir::MatMulOp product, const Distribution &deal) {
  constexpr int64_t most = 1024;
  if (!isInBands(product, deal))
    return false;
  auto softmax = product.getLhs().getDefiningOp<dmir::SoftmaxOp>();
  const std::optional<Scores> scores = scoresOf(softmax ? softmax : softmaxOf(product.getResult()));
  const Diagonals kept = scores ? keptOf(*scores) : Diagonals();
  return kept.lower && kept.upper && *kept.upper - *kept.lower < most;
}

int64_t dmxc::corsair::columnsAtOnce(Block *body, const Distribution &deal) {
  for (auto softmax : body->getOps<dmir::SoftmaxOp>()) {
    std::optional<Scores> scores = deal.bands.contains(softmax) ? scoresOf(softmax) : std::nullopt;
    auto plan = scores ? scores->product->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr) : lldmir::PlanAttr();
    const bool ends = plan && !computesMasked(softmax) && keptOf(*scores).upper;
    const int64_t columns = ends ? 64 * planOf(scores->product, deal).tilesARound() : 0;
    if (columns && shapeOf(softmax.getInput()).back() % columns == 0)
      return columns;
  }
  return 0;
}

bool dmxc::corsair::mayBeStrip(Value value) {
  auto softmax = dyn_cast_or_null<dmir::SoftmaxOp>(value.getDefiningOp());
  softmax = softmax ? softmax : softmaxOf(value);
  std::optional<Scores> scores = softmax ? scoresOf(softmax) : std::nullopt;
  if (!scores || scores->product.getRhs().getDefiningOp<dmir::ConstantOp>() ||
      scores->weighted.getRhs().getDefiningOp<dmir::ConstantOp>())
    return false;
  ArrayRef<int64_t> shape = shapeOf(softmax.getInput());
  return shape[shape.size() - 2] % kBandRows == 0 && shape.back() % kBandRows == 0;
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
