//===- LLDMIR.h - ops of the array on tiles ---------------------*- C++ -*-===//
#pragma once

#include "targets/corsair/dialect/AffineExt/AffineExt.h"

#include "schemas/corsair/Machine.h"

#include <memory>

#include "targets/corsair/dialect/LLDMIR/LLDMIRDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "targets/corsair/dialect/LLDMIR/LLDMIRAttrs.h.inc"
#define GET_OP_CLASSES
#include "targets/corsair/dialect/LLDMIR/LLDMIROps.h.inc"

namespace dmxc::lldmir {

/// What is decided of an op of a region, under these names among its attributes. `deal` is a DealAttr, `plan` a
/// PlanAttr.
inline constexpr llvm::StringLiteral kDealAttr = "lldmir.deal", kPlanAttr = "lldmir.plan";
/// Functions that no DMIR op on whole buffers has the name of: lldmir.simd "copy", lldmir.reshape "gather" and
/// "scatter".
inline constexpr llvm::StringLiteral kCopy = "copy", kGatherRows = "gather", kScatterRows = "scatter";
/// Array of i64: operands of which all parts are sent to all quads before the op.
inline constexpr llvm::StringLiteral kGatherAttr = "lldmir.gather";
/// Unit, of an addition: its vector lies in OB before the product's sums do.
inline constexpr llvm::StringLiteral kBiasAttr = "lldmir.bias";

/// The machine of the compile, as the dialect in this context knows it.
const dmx::corsair::Machine &machineOf(mlir::MLIRContext *context);
/// Gives the dialect a machine wherever it is loaded.
void registerMachine(mlir::DialectRegistry &registry, const dmx::corsair::Machine &machine);

} // namespace dmxc::lldmir
