//===- Fusion.cpp - what regions of the CPU target leave to others ------------===//

#include "Fusion.h"

#include "targets/common/roots/Contraction.h"

#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

bool dmxc::cpu::endsOtherKernel(Operation *root, Operation *producer) {
  auto cast = dyn_cast<dmir::CastOp>(producer);
  if (!cast || !Contraction::is(root))
    return false;
  auto bitsOf = [](Value value) { return getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth(); };
  if (bitsOf(cast.getResult()) != 8 || bitsOf(cast.getInput()) <= 8)
    return false;
  // Up through what its epilogue computes: each value is read by the next op alone.
  for (Value value = cast.getInput(); value.hasOneUse();) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    if (Contraction::is(op))
      return op != root && bitsOf(value) == 32;
    if (!op->hasTrait<dmir::Elementwise>())
      return false;
    value = op->getOperand(0);
  }
  return false;
}
