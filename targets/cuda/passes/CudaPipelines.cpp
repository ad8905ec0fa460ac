//===- CudaPipelines.cpp - kernels to how they are made ---------------------===//
#include "Passes.h"

#include "targets/cuda/product/Gemm.h"

namespace dmxc {
#define GEN_PASS_DEF_CUDAPIPELINES
#include "targets/cuda/passes/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

struct CudaPipelines : dmxc::impl::CudaPipelinesBase<CudaPipelines> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<dlir::KernelOp>())
      if (kernel.getDevice() == "cuda")
        if (Status made = cuda::makePipeline(kernel, cuda::machineOf(&getContext())); !made) {
          kernel.emitError() << made.error().message;
          return signalPassFailure();
        }
  }
};

} // namespace
