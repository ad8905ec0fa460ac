//===- ProductFacts.cpp - what is known of products, and used -------------===//

#include "ProductFacts.h"
#include "targets/corsair/decide/ModelWork.h"
#include "targets/corsair/decide/Spread.h"
#include "targets/corsair/decide/scores/Bands.h"

#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Dialect/DMIR/masks/Sparsity.h"
#include "dmxc/Target/TargetBackend.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

static bool isZeroSomewhere(Value operand) {
  std::optional<dmir::Known> known = dmir::knownOf(operand);
  return known && known->value == 0;
}

/// Whether a round takes fewer blocks along K than there are.
static bool leavesOut(dmir::MatMulOp product, const Distribution &deal) {
  if (!product->hasAttr(lldmir::kKeptAttr))
    return false;
  const Spread plan = planOf(product, deal);
  const std::optional<Rounds> rounds = readRounds(product->getAttr(lldmir::kKeptAttr), plan.rounds(), plan.kChunks);
  return rounds &&
         llvm::any_of(*rounds, [&](const auto &blocks) { return static_cast<int64_t>(blocks.size()) < plan.kChunks; });
}

/// Why zeros of the right operand are multiplied.
static std::string whyAll(dmir::MatMulOp product, const Distribution &deal) {
  if (!deal.packed.contains(product.getRhs()))
    return "a right operand that is computed is made tiles, and multiplied, as a whole";
  if (deal.depth.contains(product))
    return "each quad adds up a part of K of its own, by the same loops as the others";
  return "less than a tenth of the arrays' clocks would be left out: a round of " +
         std::to_string(64 * planOf(product, deal).tilesARound()) + " columns takes whole blocks of 64 along K";
}

void dmxc::corsair::noteFacts(Block *body, const Distribution &deal, bool computesZeros) {
  Builder b(body->getParentOp()->getContext());
  llvm::DenseSet<Operation *> attention;
  for (auto softmax : body->getOps<dmir::SoftmaxOp>())
    if (std::optional<Scores> scores = scoresOf(softmax))
      attention.insert_range(ArrayRef<Operation *>{scores->product, scores->weighted});
  for (auto product : body->getOps<dmir::MatMulOp>()) {
    product->removeAttr(dmir::kProductAttr);
    const bool skips = leavesOut(product, deal);
    SmallVector<std::string> reasons;
    if (isZeroSomewhere(product.getLhs()))
      reasons.push_back("loops over K are the same for all rows of a left operand");
    if (isZeroSomewhere(product.getRhs()) && !skips)
      reasons.push_back(whyAll(product, deal));
    if (dmir::demandOf(product.getResult()))
      reasons.push_back("loops compute all tiles of a result");
    if (attention.contains(product) || makesNothing(product) || (!skips && reasons.empty()))
      continue;
    NamedAttrList list;
    list.set(strategy::kFlops, b.getI64IntegerAttr(2 * multiplyAddsOf(product, deal)));
    if (skips)
      list.set(strategy::kSkips, b.getStrArrayAttr({"right"}));
    if (!reasons.empty())
      list.set(dmir::kFactsKey,
               b.getStringAttr(computesZeros ? "--sparsity asks for all of it" : llvm::join(reasons, "; ")));
    product->setAttr(dmir::kProductAttr, list.getDictionary(b.getContext()));
  }
}
