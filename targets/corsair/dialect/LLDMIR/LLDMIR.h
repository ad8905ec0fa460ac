//===- LLDMIR.h - ops of the array on tiles ---------------------*- C++ -*-===//
#pragma once

#include "targets/corsair/dialect/AffineExt/AffineExt.h"

#include "schemas/corsair/Machine.h"

#include <memory>

#include "targets/corsair/dialect/LLDMIR/LLDMIRDialect.h.inc"
#define GET_OP_CLASSES
#include "targets/corsair/dialect/LLDMIR/LLDMIROps.h.inc"

namespace dmxc::lldmir {

/// The machine of the compile, as the dialect in this context knows it.
const dmx::corsair::Machine &machineOf(mlir::MLIRContext *context);
/// Gives the dialect a machine wherever it is loaded.
void registerMachine(mlir::DialectRegistry &registry, const dmx::corsair::Machine &machine);

} // namespace dmxc::lldmir
