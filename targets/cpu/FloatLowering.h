//===- FloatLowering.h - conversions of narrow floats -----------*- C++ -*-===//
#pragma once

#include "IsaLevel.h"

#include "mlir/Pass/Pass.h"

#include <memory>

namespace dmxc::cpu {

/// Rewrites arith.extf and arith.truncf between f16/bf16 and f32/f64, which
/// LLVM would turn into calls of library functions, into integer arithmetic;
/// f16 <-> f32 is left to the hardware where the level has F16C. Rounds to
/// nearest even, once (also from f64); NaN stays NaN. What is left of bf16, moves,
/// becomes i16.
std::unique_ptr<mlir::Pass> createFloatLoweringPass(const IsaLevel &isa);

} // namespace dmxc::cpu
