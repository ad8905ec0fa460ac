//===- CpuRegions.cpp - regions for the CPU target ----------------------------===//
//
// At the levels that this machine runs; and the rows that this target adds to those of targets/common also at a level
// of one lane, without masks and fused multiply-add.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

#include "targets/cpu/CpuTarget.h"
#include "targets/cpu/Kernels.h"
#include "tests/unit/TargetsCommon/RegionHarness.h"

#include "targets/common/code/KernelDialects.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include <cstdlib>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::cpu::test;
using namespace mlir;

static const IsaLevel &oneLane() {
  static const IsaLevel level = [] {
    IsaLevel one = *IsaLevel::byName("x86-64-v2");
    one.name = "one-lane";
    one.vectorBytes = 1;
    return one;
  }();
  return level;
}

static Result<LoadedKernels> compileOneLane(ArrayRef<dlir::KernelOp> kernels) {
  std::vector<KernelObject> objects;
  for (dlir::KernelOp kernel : kernels) {
    loadKernelDialects(*kernel->getContext());
    if (Status complete = completeKernel(kernel, {oneLane()}); !complete)
      return complete.takeError();
    OwningOpRef<ModuleOp> module = ModuleOp::create(kernel->getLoc());
    auto contract = cpuKernels().emit(*module, kernel, Choice(kernel.getStrategy()), oneLane());
    if (!contract)
      return contract.takeError();
    auto object = compileKernel(*module, oneLane());
    if (!object)
      return object.takeError();
    objects.push_back(std::move(*object));
  }
  auto so = linkKernels(objects, oneLane());
  if (!so)
    return so.takeError();
  return LoadedKernels(*so);
}

/// Bytes four at a time are summed in vectors, and where sizes are open, so are the ends of rows.
static bool lacks(const std::string &level, DictionaryAttr strategy) {
  StringRef algorithm = strategy.getAs<StringAttr>(strategy::kAlgorithm).getValue();
  bool own = algorithm.starts_with("matmul") || algorithm.starts_with("conv") || algorithm.starts_with("attention");
  return level == oneLane().name &&
         (!own || algorithm.contains("quads") || !strategy.getAs<IntegerAttr>(strategy::kWork));
}

/// Tiles of one lane are deeper than those that a strategy is made for.
static Dim scratchOf(const std::string &level, dlir::KernelOp kernel) {
  DictionaryAttr strategy = kernel.getStrategy();
  if (level != oneLane().name)
    return dmir::dimOfAttr(strategy.get(strategy::kScratch));
  Choice choice(strategy, oneLane());
  choice.completes = true;
  return cpuKernels().plan(kernel.getBlock(), choice)->scratch;
}

RegionTarget dmxc::kernels::test::makeRegionTarget() {
  TargetOptions options;
  for (const IsaLevel &isa : runnableLevels())
    options.levels.push_back(isa.name);
  if (const char *dir = getenv("DMXC_KERNEL_TEMPS"))
    options.saveTempsDir = dir;
  RegionTarget target;
  target.backend = std::move(*createCpuTarget(options));
  target.levels = options.levels;
  target.levels.push_back(oneLane().name);
  target.lacks = lacks;
  target.scratch = scratchOf;
  target.compile = [backend =
                        target.backend.get()](ArrayRef<dlir::KernelOp> kernels) -> Result<RegionTarget::FindKernel> {
    // By level; "": kernels that are the same at all of them.
    auto libraries = std::make_shared<std::map<std::string, LoadedKernels>>();
    auto code = backend->emit(SmallVector<Operation *>(kernels.begin(), kernels.end()));
    if (!code)
      return code.takeError();
    for (CodeEntry &entry : *code)
      if (!entry.bytes.empty()) // a level with nothing of its own
        libraries->emplace(entry.arch, LoadedKernels(entry.bytes));
    SmallVector<dlir::KernelOp> scalar;
    for (dlir::KernelOp kernel : kernels)
      if (!lacks(oneLane().name, kernel.getStrategy()))
        scalar.push_back(kernel);
    if (!scalar.empty()) {
      auto own = compileOneLane(scalar);
      if (!own)
        return own.takeError();
      libraries->emplace(oneLane().name, std::move(*own));
    }
    return RegionTarget::FindKernel([libraries](const std::string &level, const std::string &name) {
      dmx_kernel_fn fn = nullptr;
      for (const std::string &arch : {level, level == oneLane().name ? level : std::string()})
        if (auto library = libraries->find(arch); !fn && library != libraries->end())
          fn = library->second.find(name);
      return fn;
    });
  };
  return target;
}
