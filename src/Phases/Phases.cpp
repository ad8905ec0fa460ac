//===- Phases.cpp - what passes of all phases may ask ---------------------===//
#include "dmxc/Phases/Phases.h"

#include "dmxc/Dialect/DMIR/Kernels.h"
#include "dmxc/Dialect/DMIR/Model.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/StringExtras.h"

#include <fnmatch.h>

using namespace mlir;

namespace dmxc {

bool PlaceRule::matches(const std::string &node) const { return fnmatch(glob.c_str(), node.c_str(), 0) == 0; }

bool PlaceRule::matches(Operation *op) const {
  llvm::SetVector<StringAttr> nodes;
  dmir::collectNodes(op->getLoc(), nodes);
  return nodes.empty() ? matches(dmir::nodeName(op))
                       : llvm::any_of(nodes, [&](StringAttr node) { return matches(node.str()); });
}

bool PhaseContext::keepsPrecision(Operation *op) const {
  return llvm::any_of(keptPrecision, [&](const std::string &glob) { return PlaceRule{glob, {}}.matches(op); });
}

const PlaceRule *PhaseContext::placeOf(Operation *op) const {
  auto last = llvm::find_if(llvm::reverse(places), [&](const PlaceRule &rule) { return rule.matches(op); });
  return last == places.rend() ? nullptr : &*last;
}

/// "; it has some for corsair, cpu".
static std::string targetsOf(dmir::ExternOp op) {
  llvm::SetVector<StringRef> targets;
  for (auto body : op.getBodies().getAsRange<DictionaryAttr>())
    targets.insert(body.getAs<StringAttr>("target").getValue());
  return targets.empty() ? "" : "; it has some for " + llvm::join(targets, ", ");
}

std::optional<std::string> PhaseContext::refusalAlone(const TargetBackend &target, Operation *op) const {
  auto function = op->getParentOfType<func::FuncOp>();
  if (function && function.isPrivate() && !target.runsOnHost())
    return "the graphs of branches and loops run on the host";
  if (auto user = dyn_cast<dmir::ExternOp>(op); user && user.bodiesFor(target.name()).empty())
    return "the kernel '" + user.getKernel().str() + "' has no body for the target " + target.name().str() +
           targetsOf(user);
  if (std::optional<std::string> reason = target.refuses(op); reason || misfits.empty())
    return reason;
  auto misfit = misfits.find({target.name().str(), dmir::nodeName(op)});
  return misfit == misfits.end() ? std::nullopt : std::optional(misfit->second);
}

std::optional<std::string> PhaseContext::refusal(const TargetBackend &target, Operation *op) const {
  if (const PlaceRule *place = placeOf(op); place && place->target != target.name())
    if (const TargetBackend *wanted = this->target(place->target); wanted && !refusalAlone(*wanted, op))
      return "--place " + place->glob + "=" + place->target;
  return refusalAlone(target, op);
}

const TargetBackend *PhaseContext::responsible(Operation *op) const {
  for (const TargetBackend *target : targets)
    if (!refusal(*target, op))
      return target;
  return nullptr;
}

const TargetBackend *PhaseContext::responsibleAlone(Operation *op) const {
  auto first = [&](auto refusal) -> const TargetBackend * {
    auto at = llvm::find_if(targets, [&](const TargetBackend *t) { return t->startsRegion(op) && !refusal(*t, op); });
    return at == targets.end() ? nullptr : *at;
  };
  const TargetBackend *wanted = first([&](auto &...asked) { return refusal(asked...); });
  return wanted ? wanted : first([&](auto &...asked) { return refusalAlone(asked...); });
}

} // namespace dmxc
