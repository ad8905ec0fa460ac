//===- AffineNormalizeFuse.cpp - normalize, then fuse ---------------------===//
#include "AffineSupport.h"

#include "dmxc/Dialect/Transform/Passes.h"

#include "mlir/Dialect/Affine/Analysis/LoopAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/Dialect/Affine/LoopFusionUtils.h"
#include "mlir/Dialect/Affine/LoopUtils.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc::transform {
#define GEN_PASS_DEF_AFFINENORMALIZEFUSE
#include "dmxc/Dialect/Transform/Passes.h.inc"
} // namespace dmxc::transform

using namespace mlir;
using affine::AffineForOp;

namespace {

/// True if the second loop reads what the first stores.
bool feeds(AffineForOp producer, AffineForOp consumer) {
  llvm::SmallDenseSet<Value> stored;
  producer.walk([&](affine::AffineWriteOpInterface store) { stored.insert(store.getMemRef()); });
  return consumer
      .walk([&](affine::AffineReadOpInterface load) {
        return stored.contains(load.getMemRef()) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool haveEqualBounds(AffineForOp a, AffineForOp b) {
  return dmxc::transform::isPlainLoop(a) && dmxc::transform::isPlainLoop(b) &&
         a.getConstantLowerBound() == b.getConstantLowerBound() &&
         a.getConstantUpperBound() == b.getConstantUpperBound() && a.getStep() == b.getStep();
}

struct AffineNormalizeFuse : dmxc::transform::impl::AffineNormalizeFuseBase<AffineNormalizeFuse> {
  using AffineNormalizeFuseBase::AffineNormalizeFuseBase;

  void runOnOperation() override {
    if (normalize)
      // A loop that has no normal form keeps its own.
      getOperation().walk([](AffineForOp loop) { (void)affine::normalizeAffineFor(loop); });
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) { blocks.push_back(block); });
    for (Block *block : blocks)
      fuseIn(*block);
  }

  /// Fuses neighbouring loops, as often as it goes: a fused consumer is the next one's producer.
  void fuseIn(Block &block) {
    for (auto at = block.begin(); at != block.end();) {
      auto producer = dyn_cast<AffineForOp>(*at++);
      auto consumer = producer && at != block.end() ? dyn_cast<AffineForOp>(*at) : AffineForOp();
      if (!consumer || !haveEqualBounds(producer, consumer) || !feeds(producer, consumer) ||
          !dmxc::transform::hasOnlyAffineAccesses(producer) || !dmxc::transform::hasOnlyAffineAccesses(consumer))
        continue;
      affine::ComputationSliceState slice;
      affine::FusionResult result =
          affine::canFuseLoops(producer, consumer, /*dstLoopDepth=*/1, &slice,
                               affine::FusionStrategy(affine::FusionStrategy::ProducerConsumer));
      // Only where each trip of the consumer needs its own trips of the producer, all of them: nothing is computed
      // twice and the producer may go, even if others read what it stores.
      if (result.value != affine::FusionResult::Success || slice.isMaximal() != std::optional(true))
        continue;
      affine::fuseLoops(producer, consumer, slice);
      producer.erase();
    }
  }
};

} // namespace
