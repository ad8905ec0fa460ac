//===- FloatLowering.h - conversions of narrow floats -----------*- C++ -*-===//
#pragma once

#include "mlir/Pass/Pass.h"

#include <memory>

namespace dmxc::kernels {

/// Rewrites arith.extf and arith.truncf between f16/bf16 and f32/f64, which LLVM would turn into calls of library
/// functions, into integer arithmetic; f16 <-> f32 is left to the hardware where it has them (`hasHalf`). Rounds to
/// nearest even, once (also from f64); NaN stays NaN. What is left of bf16, moves, becomes i16.
std::unique_ptr<mlir::Pass> createFloatLoweringPass(bool hasHalf);

} // namespace dmxc::kernels
