//===- ScheduleChecks.cpp - what scripts must not do ----------------------===//
#include "Schedule.h"

#include "dmxc/Dialect/DLIR/DLIR.h"
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
  std::set<std::string> known;
  for (const auto &[name, parameter] : seen)
    known.insert(name);
  for (Script &script : scripts) // which run behind another stop
    for (const Entry &entry : script.entries)
      if (entry.stop != kPartition)
        script.module->walk([&](transform::ParamOp op) { known.insert(op.getName().str()); });
  for (const std::string &name : known) {
    names.push_back(name);
    list += (list.empty() ? "'" : ", '") + name + "'";
  }
  for (const auto &[name, value] : set)
    if (!known.contains(name)) {
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
  Builder b(module.getContext());
  for (auto program : module.getOps<dlir::ProgramOp>())
    entries.emplace_back(program.getSymName(), b.getArrayAttr({program.getInputs(), program.getOutputs()}));
  if (entries.empty()) // beside programs functions are kernels
    for (auto function : module.getOps<func::FuncOp>())
      if (function.isPublic())
        entries.emplace_back(function.getSymName(), function.getFunctionTypeAttr());
  return entries;
}

/// "'transform.x' at s.mlir:4:5": the first op of a script behind which the model is not valid.
std::string Schedule::culprit(ModuleOp untouched, StringRef stop) {
  OwningOpRef<ModuleOp> before(untouched.clone());
  for (Script &script : scripts) {
    mlir::transform::NamedSequenceOp whole = script.at(stop);
    if (!whole)
      continue;
    const size_t steps = whole.getBody().front().getOperations().size();
    for (size_t count = 1; count <= steps; ++count) {
      OwningOpRef<ModuleOp> model(before->clone());
      mlir::transform::NamedSequenceOp part = whole.clone();
      script.module->push_back(part);
      Operation *last = nullptr;
      for (auto [number, op] : llvm::enumerate(llvm::make_early_inc_range(part.getBody().front().without_terminator())))
        if (number + 1 == count)
          last = &op;
      while (last && &*std::prev(part.getBody().front().end(), 2) != last)
        part.getBody().front().getTerminator()->getPrevNode()->erase();
      std::string found = last ? "'" + last->getName().getStringRef().str() + "' at " + placeText(last->getLoc()) : "";
      std::vector<mlir::Diagnostic> messages;
      const bool good = succeeded(interpret(part, *model, messages)) && succeeded(verify(*model));
      part.erase();
      if (!good)
        return found;
      if (!last) {
        before = std::move(model);
        break;
      }
    }
  }
  return "";
}

std::string Schedule::changesAt(StringRef stop) const {
  std::string changes;
  for (const Script &script : scripts)
    if (mlir::transform::NamedSequenceOp sequence = script.at(stop))
      for (Operation &op : sequence.getBody().front())
        if (auto transform = dyn_cast<mlir::transform::TransformOpInterface>(op);
            transform && mlir::transform::doesModifyPayload(transform))
          changes +=
              (changes.empty() ? "'" : ", '") + op.getName().getStringRef().str() + "' at " + placeText(op.getLoc());
  return changes;
}

/// Passes and patterns of a script may make of the model what no phase takes up.
bool Schedule::checkModel(ModuleOp module, const Entries &before, ModuleOp untouched, StringRef stop) {
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
  if (failed(verify(module))) {
    const std::string first = why, by = culprit(untouched, stop);
    return refuse("what the scripts made of the model is not valid" + (by.empty() ? "" : " behind " + by) + ": " +
                  first);
  }
  if (entriesOf(module) != before)
    return refuse("the scripts changed what of the model can be called, or its inputs and outputs; leave out the "
                  "transforms of functions");
  return true;
}

} // namespace dmxc::driver
