//===- CoreAttention.cpp - attention by tensor cores ---------------------===//

#include "CoreAttention.h"

#include "dmxc/Dialect/DMIR/Dims.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

/// Numbers in the place of scores weigh something from here on: all keys are looked at.
static constexpr double kMostLookedFor = -1000;
static constexpr int64_t kFewestStages = 2, kMostStages = 3;

/// Whether each case of a rule has a condition that can be told for a block's rows and a tile of keys: not by numbers
/// that an operand brings for each row or key.
static bool canBeTold(const dmir::Rule &rule) {
  auto isTold = [&](const dmir::Condition &condition) {
    for (auto [i, value] : llvm::enumerate(rule.values))
      if ((value.ofRows || value.ofColumns) && condition.expr.isFunctionOfSymbol(rule.dims.size() + i))
        return false;
    return true;
  };
  return rule.tiles || (!rule.cases.empty() && llvm::all_of(rule.cases, [&](IntegerSet set) {
           return llvm::any_of(dmir::conditionsOf(set), isTold);
         }));
}

dmir::MaskOp CoreAttention::leavesOut(const FewQueries &few) {
  Attention attention = few.attention;
  auto mask = attention.softmax.getInput().getDefiningOp<dmir::MaskOp>();
  if (!mask || mask.getAdds() || !canBeTold(dmir::ruleOf(mask)))
    return {};
  // Looking again takes registers that wide results have.
  const double fill = cast<FloatAttr>(mask.getFill()).getValueAsDouble();
  return std::isinf(fill) || (fill <= kMostLookedFor && isAhead(few)) ? mask : dmir::MaskOp();
}

double CoreAttention::fill() const { return cast<FloatAttr>(dmir::MaskOp(mask).getFill()).getValueAsDouble(); }

CoreAttention::CoreAttention(const FewQueries &few, const RegionBody &body, const hw::Machine &machine, bool usesRules)
    : few(few) {
  if (usesRules)
    mask = leavesOut(few);
  const int64_t rows = nominal(body.block, few.groupRows());
  findMaps(body);
  // Beside threads that copy two warpgroups have too few registers for wide results.
  warpgroups = rows > dmx::cuda::kMmaRows && (byMaps() || isAhead(few)) ? 2 : 1;
  // What multiplies is one slot ahead.
  auto fits = [&](int64_t slots) {
    stages = slots;
    return sharedBytes() <= machine.mostShared;
  };
  if (!fits(kFewestStages))
    warpgroups = 1;
  for (int64_t slots = kMostStages; slots >= kFewestStages && !fits(slots);)
    --slots;
  pairs = mask && nominal(body.block, blocks()) > machine.multiprocessors;
}

void CoreAttention::findMaps(const RegionBody &body) {
  Attention attention = few.attention;
  auto ofKeys = std::make_shared<GemmProduct>(attention.scores, body.block),
       ofValues = std::make_shared<GemmProduct>(attention.result, body.block);
  auto isRead = [](const GemmProduct &product) { return product.refusal().empty() && product.right.byThreads.empty(); };
  if (isRead(*ofKeys) && isRead(*ofValues))
    keys = ofKeys, values = ofValues;
}

Launch CoreAttention::launch() const {
  Launch launch{blocks(), threads(), sharedBytes()};
  if (byMaps())
    launch.maps = {keys->map(keys->right, kKeys), values->map(values->right, few.width)};
  launch.movesRegisters = movesRegisters();
  return launch;
}

std::vector<int64_t> CoreAttention::tile() const { return {blockRows(), kKeys, kKeys}; }
