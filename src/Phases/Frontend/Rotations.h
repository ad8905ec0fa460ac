//===- Rotations.h - rotary embeddings --------------------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "mlir/IR/Builders.h"

namespace dmxc {

/// Where an op ends x * cos + [-x1, x0] * sin, x0 and x1 being the halves of x or its even and odd places, and both
/// angles the same for both: [x0 cos - x1 sin, x1 cos + x0 sin] of half the angles, whose last op is returned; null for
/// other ops.
mlir::Operation *createRotation(mlir::OpBuilder &builder, mlir::Operation *op);

} // namespace dmxc
