//===- Decisions.cpp - what of a region's strategy is free --------------------===//

#include "Kernels.h"

#include "targets/cpu/product/GemmDecisions.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

namespace {

struct Alternative {
  KernelPlan plan;
  std::optional<GemmSpec> product; ///< that it blocks
};

/// Of the packings that keep the weights' values, one plan for each algorithm; the default's is the first.
std::vector<Alternative> alternativesOf(dmir::RegionOp region, WeightFormat weights) {
  auto constant = [&](unsigned operand) { return dmir::isConstant(region.getInputs()[operand]); };
  std::vector<Alternative> all;
  for (Packing packing : {Packing::Fastest, Packing::Plain, Packing::Fours, Packing::Winograd, Packing::None}) {
    std::optional<GemmSpec> product;
    auto keep = [&](const GemmSpec &spec) { product = spec; };
    Choice choice;
    choice.constant = constant;
    choice.weights = weights;
    choice.packing = packing;
    choice.onProduct = keep;
    Result<KernelPlan> plan = cpuKernels().plan(region.getBlock(), choice);
    if (plan && llvm::none_of(all, [&](const Alternative &known) { return known.plan.algorithm == plan->algorithm; }))
      all.push_back({std::move(*plan), product});
  }
  return all;
}

} // namespace

std::vector<Decision> dmxc::cpu::decisionsOf(dmir::RegionOp region, DictionaryAttr decided, WeightFormat weights,
                                             ArrayRef<IsaLevel> levels) {
  MLIRContext *context = region.getContext();
  Builder b(context);
  std::vector<Decision> free;
  std::vector<Alternative> all = alternativesOf(region, weights);
  if (all.empty())
    return free;
  const Alternative *chosen = &all.front();
  Attribute asked = decided ? decided.get(strategy::kAlgorithm) : Attribute();
  SmallVector<Attribute> names;
  for (const Alternative &one : all) {
    names.push_back(b.getStringAttr(one.plan.algorithm));
    if (names.back() == asked)
      chosen = &one;
  }
  if (all.size() > 1)
    free.push_back({strategy::kAlgorithm.str(), "", Domain::oneOf(names), names.front(), Effect::Algorithm,
                    "how it is computed, from weights in which form"});
  if (chosen->product)
    for (const IsaLevel &isa : levels)
      llvm::append_range(free, gemmDecisions(*chosen->product, isa, gemmChoiceOf(decided, isa.name, decided)));
  // Of an open number of items no grain is wrong: a task has at least one part. It follows from tiles, too.
  constexpr int64_t manyItems = int64_t{1} << 20;
  Result<KernelPlan> tiled = Error{};
  const KernelPlan *plan = &chosen->plan;
  if (DictionaryAttr tiles = decided ? tilesOf(region, plan->algorithm, decided, weights, levels) : DictionaryAttr();
      tiles && !tiles.empty()) {
    NamedAttrList algorithm;
    algorithm.set(strategy::kAlgorithm, b.getStringAttr(plan->algorithm));
    tiled = planRegion(region, algorithm.getDictionary(context), weights, tiles);
    plan = tiled ? &*tiled : plan;
  }
  int64_t items = std::max<int64_t>(plan->work.valueOr(manyItems), plan->grain.valueOr(1));
  if (items > 1 && plan->grain.isStatic())
    free.push_back({strategy::kGrain.str(), "", Domain::range(context, 1, items), dmir::dimAttr(context, plan->grain),
                    Effect::Bits, "fewest work items that a thread gets"});
  return free;
}

DictionaryAttr dmxc::cpu::tilesOf(dmir::RegionOp region, StringRef algorithm, DictionaryAttr decided,
                                  WeightFormat weights, ArrayRef<IsaLevel> levels) {
  for (const Alternative &one : alternativesOf(region, weights))
    if (one.plan.algorithm == algorithm && one.product)
      return decidedTiles(*one.product, levels, decided);
  return DictionaryAttr::get(region.getContext());
}
