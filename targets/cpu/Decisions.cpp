//===- Decisions.cpp - what of a region's strategy is free --------------------===//

#include "Kernels.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

std::vector<Decision> dmxc::cpu::decisionsOf(dmir::RegionOp region, DictionaryAttr decided, WeightFormat weights) {
  MLIRContext *context = region.getContext();
  Builder b(context);
  std::vector<Decision> free;
  std::vector<KernelPlan> plans = plansOf(region, weights);
  if (plans.empty())
    return free;
  KernelPlan *plan = &plans.front();
  if (plans.size() > 1) {
    SmallVector<Attribute> names;
    for (const KernelPlan &one : plans)
      names.push_back(b.getStringAttr(one.algorithm));
    free.push_back({strategy::kAlgorithm.str(), "", Domain::oneOf(names), names.front(), Effect::Algorithm,
                    "how it is computed, from weights in which form"});
    Attribute asked = decided ? decided.get(strategy::kAlgorithm) : Attribute();
    for (auto [name, one] : llvm::zip_equal(names, plans))
      if (name == asked)
        plan = &one;
  }
  // Of an open number of items no grain is wrong: a task has at least one part.
  constexpr int64_t manyItems = int64_t{1} << 20;
  int64_t items = std::max<int64_t>(plan->work.valueOr(manyItems), plan->grain.valueOr(1));
  if (items > 1 && plan->grain.isStatic())
    free.push_back({strategy::kGrain.str(), "", Domain::range(context, 1, items), dmir::dimAttr(context, plan->grain),
                    Effect::Bits, "fewest work items that a thread gets"});
  return free;
}
