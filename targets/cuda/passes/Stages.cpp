//===- Stages.cpp - the stages of phase schedule, with their passes -------===//
#include "Passes.h"

#include "dmxc/Target/TargetBackend.h"

#include "mlir/Pass/PassManager.h"

namespace dmxc {
#define GEN_PASS_REGISTRATION
#include "targets/cuda/passes/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

static constexpr TargetStage stages[] = {
    {"pipeline", "kernels", "kernels with cuda.pipeline",
     "slots of shared memory, roles of warpgroups, walks and tiles of products",
     [](OpPassManager &pm, const TargetBackend &) { pm.addPass(createCudaPipelines()); }},
};

ArrayRef<TargetStage> dmxc::stagesCudaTarget() { return stages; }

void dmxc::registerCudaPasses(DialectRegistry &registry) {
  registry.insert<dmir::DMIRDialect, dlir::DLIRDialect, cuda::CudaDialect>();
  registerCudaPasses();
}
