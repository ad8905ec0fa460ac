//===- Pipelines.cpp - which passes make which phase ----------------------===//
#include "dmxc/Phases/Frontend/Passes.h"
#include "dmxc/Phases/Memory/Passes.h"
#include "dmxc/Phases/Partition/Passes.h"
#include "dmxc/Phases/Schedule/Passes.h"

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

void buildFrontendPhase(OpPassManager &pm, const PhaseContext &context) {
  if (context.optLevel > 0) { // before constants are folded, which are then no longer bytes
    pm.addNestedPass<func::FuncOp>(createIntegerPoolsPass(context));
    pm.addNestedPass<func::FuncOp>(createIntegerProductsPass(context));
  }
  pm.addNestedPass<func::FuncOp>(createFoldConstantsPass(context));
  pm.addNestedPass<func::FuncOp>(createSimplifyPass(context));
  pm.addNestedPass<func::FuncOp>(createBindStatesPass(context));
  pm.addNestedPass<func::FuncOp>(createCollectConstraintsPass(context));
}

void buildPartitionPhase(OpPassManager &pm, const PhaseContext &context) {
  pm.addNestedPass<func::FuncOp>(createCheckSupportPass(context));
  if (context.optLevel > 0) {
    pm.addNestedPass<func::FuncOp>(createFoldScalingPass(context));
    pm.addNestedPass<func::FuncOp>(createFoldConstantsPass(context));
    pm.addNestedPass<func::FuncOp>(createAssignLayoutsPass(context));
    pm.addNestedPass<func::FuncOp>(createSimplifyPass(context));
  }
  pm.addNestedPass<func::FuncOp>(createFormRegionsPass(context));
  pm.addNestedPass<func::FuncOp>(createChooseStrategiesPass(context));
}

void buildMemoryPhase(OpPassManager &pm, const PhaseContext &context) {
  if (context.checkStrategies)
    pm.addNestedPass<func::FuncOp>(createChooseStrategiesPass(context));
  pm.addNestedPass<func::FuncOp>(createPlaceBuffersPass(context));
}

void buildSchedulePhase(OpPassManager &pm, const PhaseContext &context) {
  if (context.checkStrategies)
    pm.addNestedPass<func::FuncOp>(createChooseStrategiesPass(context));
  pm.addPass(createBuildProgramPass(context));
  pm.addNestedPass<dlir::ProgramOp>(createOrderTasksPass(context));
  pm.addPass(createScheduleDevicesPass(context));
}

void registerAllPasses(const PhaseContext &context) {
  using Create = std::unique_ptr<Pass> (*)(const PhaseContext &);
  static constexpr Create passes[] = {createIntegerPoolsPass, createIntegerProductsPass,  createFoldConstantsPass,
                                      createSimplifyPass,     createBindStatesPass,       createCollectConstraintsPass,
                                      createCheckSupportPass, createFoldScalingPass,      createAssignLayoutsPass,
                                      createFormRegionsPass,  createChooseStrategiesPass, createPlaceBuffersPass,
                                      createBuildProgramPass, createOrderTasksPass,       createScheduleDevicesPass};
  for (Create create : passes)
    registerPass([create, &context] { return create(context); });
  using Build = void (*)(OpPassManager &, const PhaseContext &);
  static constexpr std::tuple<const char *, const char *, Build> phases[] = {
      {"dmxc-frontend", "the frontend phase", buildFrontendPhase},
      {"dmxc-partition", "the partition phase", buildPartitionPhase},
      {"dmxc-memory", "the memory phase", buildMemoryPhase},
      {"dmxc-schedule", "the schedule phase", buildSchedulePhase}};
  for (auto [name, summary, build] : phases)
    PassPipelineRegistration<>(name, summary, [build = build, &context](OpPassManager &pm) { build(pm, context); });
}

} // namespace dmxc
