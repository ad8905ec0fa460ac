//===- OutlineSpmd.cpp - kernels' functions to programs over quads --------===//
#include "KernelFunctions.h"
#include "OutlineKernel.h"
#include "Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace dmxc {
#define GEN_PASS_DEF_OUTLINESPMD
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

struct OutlineSpmd : dmxc::impl::OutlineSpmdBase<OutlineSpmd> {
  void runOnOperation() override {
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (function->hasAttr(kQuadsAttr) && failed(outlineKernel(function)))
        return signalPassFailure();
  }
};

} // namespace
