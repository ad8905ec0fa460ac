//===- ModelWork.cpp - what a model asks of the arrays --------------------===//
#include "ModelWork.h"
#include "Spread.h"
#include "scores/Bands.h"
#include "scores/Diagonals.h"

#include "targets/common/roots/Contraction.h"

#include "dmxc/Dialect/DMIR/masks/Tiles.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

/// Of so many multiply-adds, the same number for each score, those of scores that a mask keeps; all where none is
/// obeyed.
static int64_t keptOf(const Scores &scores, int64_t of) {
  for (Operation *op : scores.between) {
    auto mask = dyn_cast<dmir::MaskOp>(op);
    if (!mask || !diagonalsOf(mask) || computesMasked(op))
      continue;
    const dmir::TileSize tile{kBandRows, kBandRows, kBandRows};
    if (auto counts = dmir::countAllTiles(dmir::ruleOf(mask), shapeOf(mask.getResult()), {}, tile, 0);
        counts && counts->elements)
      return of / counts->elements * counts->kept;
  }
  return of;
}

/// Of a product's multiply-adds those by tiles of weights that it takes.
static int64_t taken(Operation *op, const Distribution &deal, int64_t all) {
  Attribute given = op->getAttr(lldmir::kKeptAttr);
  if (!given)
    return all;
  const corsair::Spread plan = planOf(op, deal);
  const std::optional<Rounds> rounds = readRounds(given, plan.rounds(), plan.kChunks);
  if (!rounds)
    return all;
  const int64_t width = 64 * plan.tilesARound();
  int64_t columns = 0; // of blocks along K
  for (auto [round, blocks] : llvm::enumerate(*rounds))
    columns += static_cast<int64_t>(blocks.size()) * std::min(width, plan.n - static_cast<int64_t>(round) * width);
  return all / (plan.n * plan.kChunks) * columns;
}

int64_t dmxc::corsair::multiplyAddsOf(dmir::MatMulOp product, const Distribution &deal) {
  return taken(product, deal, kernels::Contraction::ofWhole(product).multiplyAdds().valueOr(0));
}

/// Calls `each` with every product of the arrays and its multiply-adds.
static void forProducts(Block *body, const Distribution &deal, llvm::function_ref<void(Operation *, int64_t)> each) {
  llvm::DenseMap<Operation *, Scores> banded; ///< by both products
  for (Operation *softmax : deal.bands)
    if (std::optional<Scores> scores = scoresOf(cast<dmir::SoftmaxOp>(softmax))) {
      banded.insert({scores->product, *scores});
      banded.insert({scores->weighted, *scores});
    }
  for (Operation &op : *body) {
    auto conv = dyn_cast<dmir::ConvOp>(op);
    if (!kernels::Contraction::is(&op) || (conv && isDepthwise(conv)))
      continue;
    const int64_t whole = kernels::Contraction::ofWhole(&op).multiplyAdds().valueOr(0);
    const auto found = banded.find(&op);
    each(&op, found == banded.end() ? taken(&op, deal, whole) : keptOf(found->second, whole));
  }
}

int64_t dmxc::corsair::multiplyAdds(Block *body, const Distribution &deal) {
  int64_t sum = 0;
  forProducts(body, deal, [&](Operation *, int64_t macs) { sum += macs; });
  return sum;
}

int64_t dmxc::corsair::repeatedMultiplyAdds(Block *body, const Distribution &deal) {
  int64_t sum = 0;
  forProducts(body, deal, [&](Operation *op, int64_t macs) {
    if (!deal.at(op->getResult(0)) && !deal.columns.contains(op) && !deal.depth.contains(op))
      sum += (deal.quads - 1) * macs;
  });
  return sum;
}
