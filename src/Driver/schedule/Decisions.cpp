//===- Decisions.cpp - --explain-decisions --------------------------------===//
#include "Schedule.h"

#include "dmxc/Phases/Decisions.h"

using namespace mlir;

namespace dmxc::driver {

std::string explainDecisions(ModuleOp module, const PhaseContext &context, const Schedule *schedule) {
  std::string text;
  module.walk([&](dmir::RegionOp region) {
    const TargetBackend *target = context.target(region.getDevice());
    auto algorithm =
        region.getStrategyAttr() ? region.getStrategyAttr().getAs<StringAttr>(strategy::kAlgorithm) : StringAttr();
    text += "node '" + dmir::nodeName(region) + "': " + region.getDevice().str() +
            (algorithm ? ", " + algorithm.str() : "") + "\n";
    DictionaryAttr decided = decidedOf(region);
    if (!target || !decided)
      return;
    bool none = true;
    for (const Decision &decision : target->decisions(region, decided)) {
      Attribute value = decidedValue(decided, decision);
      std::string by = value && schedule ? schedule->decider(region, decision.scope, decision.name) : "";
      text += "  " + (decision.scope.empty() ? "" : decision.scope + ".") + decision.name + " = " +
              valueText(value ? value : decision.preferred) + "  (" + (value ? by.empty() ? "text" : by : "default") +
              ")  of " + decision.domain.str() + "; " + decision.help + "; changes " +
              (decision.effect == Effect::Bits ? "no bits" : "results by " + effectName(decision.effect).str()) +
              (decision.inTask ? " and no code: the task says it" : "") + "\n";
      none = false;
    }
    if (none)
      text += "  nothing is free\n";
    if (std::string estimated = target->explain(region, decided); !estimated.empty())
      text += "  " + estimated + "\n";
  });
  return text;
}

} // namespace dmxc::driver
