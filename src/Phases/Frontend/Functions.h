//===- Functions.h - activations that are written out -----------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "mlir/IR/Builders.h"

namespace dmxc {

/// A function of DMIR (silu, gelu, gelu_tanh, hard_swish, softplus, rsqrt) that gives what the op gives, of the value
/// from which the op's formula is computed; null if it ends no such formula. Equal to 1e-5 at places from -30 to 40.
mlir::Operation *createFunction(mlir::OpBuilder &builder, mlir::Operation *op);

} // namespace dmxc
