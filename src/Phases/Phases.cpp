//===- Phases.cpp - what passes of all phases may ask ---------------------===//
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace dmxc {

std::optional<std::string> PhaseContext::refusal(const TargetBackend &target, Operation *op) const {
  auto function = op->getParentOfType<func::FuncOp>();
  if (function && function.isPrivate() && !target.runsOnHost())
    return "the graphs of branches and loops run on the host";
  return target.refuses(op);
}

const TargetBackend *PhaseContext::responsible(Operation *op) const {
  for (const TargetBackend *target : targets)
    if (!refusal(*target, op))
      return target;
  return nullptr;
}

} // namespace dmxc
