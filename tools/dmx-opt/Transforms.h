//===- Transforms.h - the ops of schedules, as data -------------*- C++ -*-===//
#pragma once

#include "mlir/IR/MLIRContext.h"

namespace dmxc {

/// A line of JSON an op of schedules that `context` knows: names of operands, results and attributes with their kinds,
/// which operands are gone behind it, and the normal forms that it needs and keeps; then a line a normal form. Tells on
/// stderr of what cannot be said, and returns false.
bool printTransforms(mlir::MLIRContext &context);

} // namespace dmxc
