//===- AffinePromoteSingle.cpp - innermost loops of one trip --------------===//
//
// Outer loops of one trip stay: they are what is dealt out, and what comes later counts on them.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Dialect/Transform/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/LoopUtils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc::transform {
#define GEN_PASS_DEF_AFFINEPROMOTESINGLE
#include "dmxc/Dialect/Transform/Passes.h.inc"
} // namespace dmxc::transform

using namespace mlir;
using affine::AffineForOp;

namespace {

struct AffinePromoteSingle : dmxc::transform::impl::AffinePromoteSingleBase<AffinePromoteSingle> {
  void runOnOperation() override {
    // All are found before any goes, so that a loop that becomes innermost stays.
    SmallVector<AffineForOp> innermost;
    getOperation().walk([&](AffineForOp loop) {
      bool holdsLoop = loop.getBody()->walk([](AffineForOp) { return WalkResult::interrupt(); }).wasInterrupted();
      if (!holdsLoop)
        innermost.push_back(loop);
    });
    // Loops of other trip counts are left as they are.
    for (AffineForOp loop : innermost)
      (void)affine::promoteIfSingleIteration(loop);
  }
};

} // namespace
