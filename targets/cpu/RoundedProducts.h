//===- RoundedProducts.h - products that --numerics bf16 rounds -*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"

namespace dmxc::cpu {

/// Whether a product is better off with the operands it has: shorter ones make none of few rows faster, nor what may be
/// few in a run beside weights that lie in the nearest cache; and the gates of a recurrent net, whose state each run
/// takes from the one before, would add up what rounding changes.
bool keepsOperands(dmir::MatMulOp op);
/// Whether a product is an attention's last one, whose kernel rounds its weights.
bool roundsWeightsOf(mlir::Operation *product);

} // namespace dmxc::cpu
