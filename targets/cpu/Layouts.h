//===- Layouts.h - which layouts the CPU target wants -----------*- C++ -*-===//
//
// The answers of CpuTarget about layouts; see TargetBackend.h for the questions.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"

namespace dmxc::cpu {

mlir::Attribute preferredResultLayout(mlir::Operation *op);
bool acceptsLayout(mlir::Operation *op, unsigned operand, mlir::Attribute layout);

} // namespace dmxc::cpu
