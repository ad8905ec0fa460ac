//===- ElementFunctions.h - functions of single elements --------*- C++ -*-===//
#pragma once

#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "schemas/corsair/Isa.h"

#include "mlir/IR/OwningOpRef.h"

#include <optional>

namespace dmxc {

/// An op of DMIR as lldmir.simd names it, with its parameters as attributes; null where DMIR has none of the name.
mlir::OwningOpRef<mlir::Operation *> namedOp(lldmir::SimdOp op);

/// A function of a convolution's epilogue as an op of its own, of no block.
mlir::OwningOpRef<lldmir::SimdOp> functionOf(lldmir::ConvOp conv, mlir::Attribute unit);

/// A function of elements with its numbers.
struct ElementFunction {
  dmx::corsair::SimdFunction function;
  float imm0 = 0, imm1 = 0;
};
/// Nothing for other functions.
std::optional<ElementFunction> elementwise(lldmir::SimdOp op);

} // namespace dmxc
