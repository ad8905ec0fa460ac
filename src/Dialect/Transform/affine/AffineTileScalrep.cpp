//===- AffineTileScalrep.cpp - loads and stores that need not be ----------===//
//
// Store-to-load forwarding, redundant loads and dead stores. The rules are MLIR's, which ask the effects of every op
// between; ops on memrefs of tiles tell theirs.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Dialect/Transform/Passes.h"

#include "mlir/Analysis/AliasAnalysis.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Dominance.h"

namespace dmxc::transform {
#define GEN_PASS_DEF_AFFINETILESCALREP
#include "dmxc/Dialect/Transform/Passes.h.inc"
} // namespace dmxc::transform

using namespace mlir;

namespace {

struct AffineTileScalrep : dmxc::transform::impl::AffineTileScalrepBase<AffineTileScalrep> {
  void runOnOperation() override {
    affine::affineScalarReplace(getOperation(), getAnalysis<DominanceInfo>(), getAnalysis<PostDominanceInfo>(),
                                getAnalysis<AliasAnalysis>());
  }
};

} // namespace
