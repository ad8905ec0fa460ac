//===- PhaseTable.cpp - the one table of phases and their passes ----------===//
#include "dmxc/Phases/PhaseTable.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace dmxc {

// Each is defined in the file of its name; Passes.td of its phase says what it does.
std::unique_ptr<Pass> createNarrowDimsPass(const PhaseContext &);
std::unique_ptr<Pass> createIntegerPoolsPass(const PhaseContext &);
std::unique_ptr<Pass> createIntegerProductsPass(const PhaseContext &);
std::unique_ptr<Pass> createFindMasksPass(const PhaseContext &);
std::unique_ptr<Pass> createRaiseSlicesPass(const PhaseContext &);
std::unique_ptr<Pass> createPropagateSparsityPass(const PhaseContext &);
std::unique_ptr<Pass> createFoldConstantsPass(const PhaseContext &);
std::unique_ptr<Pass> createRecognizeSoftmaxPass(const PhaseContext &);
std::unique_ptr<Pass> createRecognizeFunctionsPass(const PhaseContext &);
std::unique_ptr<Pass> createSimplifyPass(const PhaseContext &);
std::unique_ptr<Pass> createBindStatesPass(const PhaseContext &);
std::unique_ptr<Pass> createCollectConstraintsPass(const PhaseContext &);
std::unique_ptr<Pass> createPlaceKernelsPass(const PhaseContext &);
std::unique_ptr<Pass> createCheckSupportPass(const PhaseContext &);
std::unique_ptr<Pass> createFoldScalingPass(const PhaseContext &);
std::unique_ptr<Pass> createGroupHeadsPass(const PhaseContext &);
std::unique_ptr<Pass> createJoinProductsPass(const PhaseContext &);
std::unique_ptr<Pass> createRepeatNormsPass(const PhaseContext &);
std::unique_ptr<Pass> createOwnWeightsPass(const PhaseContext &);
std::unique_ptr<Pass> createRoundProductsPass(const PhaseContext &);
std::unique_ptr<Pass> createRoundWeightsPass(const PhaseContext &);
std::unique_ptr<Pass> createRoundRowsPass(const PhaseContext &);
std::unique_ptr<Pass> createAssignLayoutsPass(const PhaseContext &);
std::unique_ptr<Pass> createCutConcatsPass(const PhaseContext &);
std::unique_ptr<Pass> createFormRegionsPass(const PhaseContext &);
std::unique_ptr<Pass> createKeepFormsPass(const PhaseContext &);
std::unique_ptr<Pass> createChooseStrategiesPass(const PhaseContext &);
std::unique_ptr<Pass> createCheckPlacementPass(const PhaseContext &);
std::unique_ptr<Pass> createPlaceBuffersPass(const PhaseContext &);
std::unique_ptr<Pass> createBuildProgramPass(const PhaseContext &);
std::unique_ptr<Pass> createOrderTasksPass(const PhaseContext &);
std::unique_ptr<Pass> createScheduleDevicesPass(const PhaseContext &);

static bool optimising(const PhaseContext &context) { return context.optLevel > 0; }
/// What a target of a narrow range rounds depends on which formulas are functions, and what numbers share an exponent
/// on which weights are scaled: its bits at -O0 are those of all levels.
static bool decidingBits(const PhaseContext &context) {
  return optimising(context) ||
         llvm::any_of(context.targets, [](const TargetBackend *target) { return target->hasNarrowRange(); });
}
static bool readsText(const PhaseContext &context) { return context.checkStrategies; }

static constexpr PassRow frontend[] = {
    {createNarrowDimsPass, optimising},   // before dims are compared
    {createIntegerPoolsPass, optimising}, // before constants are no longer bytes
    {createIntegerProductsPass, optimising},
    {createRecognizeSoftmaxPass, optimising}, // before masks are looked for behind it
    {createFindMasksPass, optimising},        // before masks are tensors
    {createFoldConstantsPass},
    {createIntegerPoolsPass, optimising}, // once products are of bytes it is seen who rounds behind them
    {createRecognizeFunctionsPass, decidingBits},
    {createSimplifyPass},
    {createBindStatesPass},
    {createRaiseSlicesPass, optimising},
    {createPropagateSparsityPass, optimising},
    {createCollectConstraintsPass},
};
static constexpr PassRow partition[] = {{createPlaceKernelsPass},
                                        {createCheckSupportPass},
                                        {createFoldScalingPass, decidingBits},
                                        {createGroupHeadsPass, optimising},
                                        {createJoinProductsPass, optimising},
                                        {createRoundProductsPass},
                                        {createFoldConstantsPass, decidingBits},
                                        {createRoundWeightsPass},
                                        {createAssignLayoutsPass, optimising},
                                        {createSimplifyPass, optimising},
                                        {createPropagateSparsityPass, optimising}, // of what is left
                                        {createRepeatNormsPass, optimising},
                                        {createOwnWeightsPass, optimising},
                                        {createRoundRowsPass},
                                        {createCutConcatsPass},
                                        {createFormRegionsPass},
                                        {createKeepFormsPass, optimising},
                                        {createChooseStrategiesPass}};
static constexpr PassRow memory[] = {{createChooseStrategiesPass, readsText}, {createPlaceBuffersPass}};
static constexpr PassRow schedule[] = {{createChooseStrategiesPass, readsText},
                                       {createCheckPlacementPass, readsText},
                                       {createBuildProgramPass},
                                       {createOrderTasksPass}};
static constexpr PassRow devices[] = {{createScheduleDevicesPass}};

static const Phase table[] = {
    {"frontend", "import, op audit, shape inference, folding, canonical form", "model file", "DMIR", ".mlir", frontend},
    {"partition", "layouts, fusion into regions, which target computes what, and how", "DMIR",
     "DMIR regions with a device and a strategy", ".mlir", partition},
    {"memory", "which buffer each value has: arena offsets, in-place reuse, aliases", "DMIR regions",
     "regions with placed buffers", ".mlir", memory},
    {"schedule", "kernels outlined, tasks ordered by tokens, hazards verified, device queues scheduled",
     "placed regions", "DLIR", ".mlir", schedule, devices},
    {"codegen", "kernels compiled per target, constants packed, the task graph serialised", "DLIR",
     "graph.json and code", ".json"},
};

llvm::ArrayRef<Phase> phases() { return table; }

int phaseIndex(llvm::StringRef name) {
  name = name.split('.').first;
  for (size_t i = 0; i < std::size(table); ++i)
    if (name == table[i].name)
      return static_cast<int>(i);
  return -1;
}

std::vector<std::string> phaseNames() {
  std::vector<std::string> names;
  for (const Phase &phase : table)
    names.push_back(phase.name);
  return names;
}

//===----------------------------------------------------------------------===//
// Stops
//===----------------------------------------------------------------------===//

std::vector<Stop> stops(llvm::ArrayRef<llvm::ArrayRef<TargetStage>> stages) {
  std::vector<Stop> all;
  for (const Phase &phase : phases()) {
    const std::string number = std::to_string(&phase - table + 1);
    char letter = 'a';
    bool opens = true;
    for (size_t target = 0; phase.hasStages() && target < stages.size(); ++target)
      for (const TargetStage &stage : stages[target]) {
        const std::string name = stage.name;
        all.push_back({&phase, &stage, target, opens, phase.name + ("." + name),
                       number + letter++ + "-" + name + phase.extension});
        opens = false;
      }
    all.push_back({&phase, nullptr, 0, opens, phase.name, number + "-" + phase.name + phase.extension});
  }
  return all;
}

std::vector<Stop> stops(const PhaseContext &context) {
  std::vector<llvm::ArrayRef<TargetStage>> stages;
  for (const TargetBackend *target : context.targets)
    stages.push_back(target->stages());
  return stops(stages);
}

//===----------------------------------------------------------------------===//
// Pass managers
//===----------------------------------------------------------------------===//

static void append(llvm::ArrayRef<PassRow> rows, OpPassManager &pm, const PhaseContext &context) {
  for (const PassRow &row : rows) {
    if (row.when && !row.when(context))
      continue;
    std::unique_ptr<Pass> pass = row.create(context);
    // Passes of functions and programs run on those of the module.
    std::optional<StringRef> on = pass->getOpName();
    OpPassManager &at = !on || *on == ModuleOp::getOperationName() ? pm : pm.nest(*on);
    at.addPass(std::move(pass));
  }
}

void Stop::build(OpPassManager &pm, const PhaseContext &context) const {
  if (opensPhase)
    append(phase->passes, pm, context);
  if (!stage)
    append(phase->afterStages, pm, context);
  else if (context.optLevel >= stage->fromLevel)
    stage->addPasses(pm, *context.targets[target]);
}

void Phase::build(OpPassManager &pm, const PhaseContext &context) const {
  for (const Stop &stop : stops(context))
    if (stop.phase == this)
      stop.build(pm, context);
}

static void eachRow(llvm::function_ref<void(const PassRow &)> work) {
  for (const Phase &phase : table)
    for (llvm::ArrayRef<PassRow> rows : {phase.passes, phase.afterStages})
      for (const PassRow &row : rows)
        work(row);
}

void registerPhasePasses(const PhaseContext &(*current)()) {
  eachRow([&](const PassRow &row) { registerPass([create = row.create, current] { return create(current()); }); });
}

std::vector<std::string> phasePassNames(const PhaseContext &context) {
  std::vector<std::string> names;
  eachRow([&](const PassRow &row) { names.push_back(row.create(context)->getArgument().str()); });
  return names;
}

void registerAllPasses(const PhaseContext &context) {
  eachRow([&](const PassRow &row) { registerPass([create = row.create, &context] { return create(context); }); });
  for (const Phase &phase : table)
    if (phase.makesIR())
      PassPipelineRegistration<>(("dmxc-" + llvm::Twine(phase.name)).str(), "the " + std::string(phase.name) + " phase",
                                 [&phase, &context](OpPassManager &pm) { phase.build(pm, context); });
  for (const Stop &stop : stops(context))
    if (stop.stage)
      PassPipelineRegistration<>("dmxc-" + stop.name, stop.stage->summary,
                                 [stop, &context](OpPassManager &pm) { stop.build(pm, context); });
}

} // namespace dmxc
