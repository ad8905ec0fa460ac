//===- Fusion.h - what regions of the CPU target leave to others -*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"

namespace dmxc::cpu {

/// Whether a producer is the end of what another product's or convolution's kernel should write: bytes, made of that
/// one's sums. A kernel that pulled it in would read the sums instead, four times as much.
bool endsOtherKernel(mlir::Operation *root, mlir::Operation *producer);

} // namespace dmxc::cpu
