//===- RunPass.cpp - transform.dmx.run_pass -------------------------------===//
#include "dmxc/Dialect/Transform/Transform.h"

#include "dmxc/Support/Diagnostic.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::transform;
using Failure = DiagnosedSilenceableFailure;

/// "a=1 b=x": options as a command line has them; fails at the first that is of another kind.
static std::optional<std::string> optionText(DictionaryAttr options, std::string &wrong) {
  std::string text;
  for (NamedAttribute entry : options) {
    std::string value = valueText(entry.getValue());
    if (auto string = dyn_cast<StringAttr>(entry.getValue()))
      value = string.str();
    else if (!isa<IntegerAttr>(entry.getValue())) {
      wrong = entry.getName().str();
      return std::nullopt;
    }
    text += (text.empty() ? "" : " ") + entry.getName().str() + "=" + value;
  }
  return text;
}

/// Whether an op is of a kind, or holds one that is.
static bool has(Operation *op, StringRef kind) {
  return op
      ->walk([&](Operation *inner) {
        return inner->getName().getStringRef() == kind ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

Failure RunPassOp::apply(mlir::transform::TransformRewriter &, mlir::transform::TransformResults &results,
                         mlir::transform::TransformState &state) {
  auto refuse = [&](const std::string &why) {
    return emitSilenceableError() << "'dmx.run_pass' " << why << " [schedule-refused]";
  };
  const PassInfo *info = PassInfo::lookup(getPass());
  if (!info) {
    auto *extension = state.getExtension<ScheduleExtension>();
    std::vector<std::string> names = extension ? extension->host.passNames() : std::vector<std::string>();
    return refuse("knows no pass '" + getPass().str() + "'" + nearName(getPass(), names));
  }
  std::string wrong;
  std::optional<std::string> options = optionText(getOptions().value_or(DictionaryAttr::get(getContext())), wrong);
  if (!options)
    return refuse("'" + getPass().str() + "': the option '" + wrong + "' is a number, true, false, or a text");
  SmallVector<Operation *> ops = llvm::to_vector(state.getPayloadOps(getTarget()));
  OpPassManager probe(OpPassManager::Nesting::Implicit); // which tells what the pass runs on
  std::string problem;
  if (failed(info->addToPipeline(probe, *options, [&](const Twine &message) {
        problem = message.str();
        return failure();
      })))
    return refuse("'" + getPass().str() +
                  "': " + (problem.empty() ? "cannot have the options '" + *options + "'" : problem));
  for (Operation *op : ops) {
    const std::string kind = op->getName().getStringRef().str();
    for (Pass &pass : probe.getPasses())
      if (std::optional<StringRef> on = pass.getOpName(); on && !has(op, *on))
        return refuse("'" + getPass().str() + "' runs on '" + on->str() + "', which is not in the '" + kind +
                      "' that it is given");
    if (!op->hasTrait<OpTrait::IsIsolatedFromAbove>())
      return refuse("'" + getPass().str() + "' is given a '" + kind + "'; passes run on functions and modules");
    PassManager manager(getContext(), kind, OpPassManager::Nesting::Implicit);
    (void)info->addToPipeline(manager, *options, [](const Twine &) { return failure(); }); // as above
    if (failed(manager.run(op)))
      return emitDefiniteFailure() << "the pass '" << getPass() << "' failed [schedule-refused]";
  }
  results.set(cast<OpResult>(getResult()), ops);
  return Failure::success();
}

void RunPassOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  mlir::transform::consumesHandle(getTargetMutable(), effects);
  mlir::transform::producesHandle(getOperation()->getOpResults(), effects);
  mlir::transform::modifiesPayload(effects);
}
