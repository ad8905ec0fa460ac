//===- Stages.cpp - the stage of phase schedule ---------------------------===//
#include "Passes.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace dmxc;

namespace {

/// Each kernel of the array to its program of grids. What it asks of the target is in the kernels' strategies.
struct AieGrid : PassWrapper<AieGrid, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AieGrid)
  explicit AieGrid(const aie::GridTarget &target) : target(target) {}

  StringRef getArgument() const override { return "aie-grid"; }
  StringRef getDescription() const override { return "Kernels of the array to cores, rings and walks of a grid"; }
  void getDependentDialects(DialectRegistry &registry) const override { target.registerDialects(registry); }

  void runOnOperation() override {
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<dlir::KernelOp>())) {
      if (kernel.getDevice() != target.name())
        continue;
      if (Status written = target.writeGrid(kernel); !written) {
        kernel.emitError() << written.error().message;
        return signalPassFailure();
      }
    }
  }

  const aie::GridTarget &target;
};

constexpr TargetStage kStages[] = {{"grid", "kernels", "dlir.device_program",
                                    "cores, rings and walks: who fills and drains which slots, in which order",
                                    [](OpPassManager &pm, const TargetBackend &target) {
                                      pm.addPass(
                                          std::make_unique<AieGrid>(static_cast<const aie::GridTarget &>(target)));
                                    }}};

} // namespace

ArrayRef<TargetStage> dmxc::stagesAieTarget() { return kStages; }
