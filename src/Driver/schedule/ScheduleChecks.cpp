//===- ScheduleChecks.cpp - what scripts must not do ----------------------===//
#include "Schedule.h"

#include "dmxc/Phases/Decisions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace dmxc::driver {

/// Upstream's ops say nothing of what they cannot do with the model.
bool Schedule::guard(Script &script) {
  bool good = true;
  script.module->walk([&](mlir::transform::AlternativesOp op) {
    if (op.getScope())
      return;
    diagnostics.report(modelError("'transform.alternatives' without a handle is of the model itself, which cannot be "
                                  "exchanged; give it one of regions or ops"),
                       "schedule-refused", placeText(op.getLoc()));
    good = false;
  });
  transform::addGuards(*script.module);
  return good;
}

bool Schedule::hasDecision(Operation *op, StringRef name) const {
  auto region = dyn_cast<dmir::RegionOp>(op);
  if (!region)
    region = op->getParentOfType<dmir::RegionOp>();
  const TargetBackend *target = region ? phases.target(region.getDevice()) : nullptr;
  return target && decidedOf(region) &&
         llvm::any_of(target->decisions(region, decidedOf(region)),
                      [&](const Decision &decision) { return decision.name == name; });
}

/// What is set and no script reads would be ignored.
bool Schedule::checkKnobs() {
  std::vector<std::string> names;
  std::string list;
  for (const auto &[name, parameter] : seen) {
    names.push_back(name);
    list += (list.empty() ? "'" : ", '") + name + "'";
  }
  for (const auto &[name, value] : set)
    if (!seen.contains(name)) {
      diagnostics.report(modelError("--set " + name + "=" + value + ": the scripts have no parameter '" + name +
                                    "'; they have " + (list.empty() ? "none" : list) +
                                    transform::nearName(name, names)),
                         "schedule-set", scripts.back().path);
      return false;
    }
  return true;
}

Schedule::Entries Schedule::entriesOf(ModuleOp module) {
  Entries entries;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic())
      entries.emplace_back(function.getSymName(), function.getFunctionType());
  return entries;
}

/// Passes and patterns of a script may make of the model what no phase takes up.
bool Schedule::checkModel(ModuleOp module, const Entries &before) {
  auto refuse = [&](const std::string &text) {
    diagnostics.report(modelError(text), "schedule-invalid", scripts.empty() ? "" : scripts.back().path);
    return false;
  };
  std::string why;
  ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &message) {
    std::string node = dmir::nodeName(message.getLocation());
    if (why.empty())
      why = (node.empty() ? "" : "node '" + node + "': ") + message.str();
    return success();
  });
  if (failed(verify(module)))
    return refuse("what the scripts made of the model is not valid: " + why);
  if (entriesOf(module) != before)
    return refuse("the scripts changed what of the model can be called, or its inputs and outputs; leave out the "
                  "transforms of functions");
  return true;
}

} // namespace dmxc::driver
