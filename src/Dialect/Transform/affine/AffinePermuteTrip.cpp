//===- AffinePermuteTrip.cpp - the largest trip count outermost -----------===//
#include "AffineSupport.h"

#include "dmxc/Dialect/Transform/Passes.h"

#include "mlir/Dialect/Affine/Analysis/LoopAnalysis.h"
#include "mlir/Dialect/Affine/LoopUtils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc::transform {
#define GEN_PASS_DEF_AFFINEPERMUTETRIP
#include "dmxc/Dialect/Transform/Passes.h.inc"
} // namespace dmxc::transform

using namespace mlir;
using affine::AffineForOp;

namespace {

/// The places that loops of these trip counts go to; equal ones keep their order.
SmallVector<unsigned> placesByTrip(ArrayRef<uint64_t> trips) {
  SmallVector<unsigned> order(llvm::to_vector(llvm::seq<unsigned>(0, trips.size()))), places(trips.size());
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return trips[a] > trips[b]; });
  for (auto [place, loop] : llvm::enumerate(order))
    places[loop] = place;
  return places;
}

struct AffinePermuteTrip : dmxc::transform::impl::AffinePermuteTripBase<AffinePermuteTrip> {
  void runOnOperation() override {
    SmallVector<AffineForOp> roots;
    getOperation().walk([&](AffineForOp loop) {
      if (!isa<AffineForOp>(loop->getParentOp()))
        roots.push_back(loop);
    });
    for (AffineForOp root : roots)
      permute(root);
  }

  void permute(AffineForOp root) {
    SmallVector<AffineForOp> loops;
    affine::getPerfectlyNestedLoops(loops, root);
    SmallVector<uint64_t> trips;
    for (AffineForOp loop : loops) {
      std::optional<uint64_t> trip = affine::getConstantTripCount(loop);
      if (!trip || !dmxc::transform::isPlainLoop(loop))
        return;
      trips.push_back(*trip);
    }
    SmallVector<unsigned> places = placesByTrip(trips);
    if (llvm::is_sorted(places) || !dmxc::transform::hasOnlyAffineAccesses(root) ||
        !affine::isValidLoopInterchangePermutation(loops, places))
      return;
    affine::permuteLoops(loops, places);
  }
};

} // namespace
