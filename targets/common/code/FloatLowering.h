//===- FloatLowering.h - conversions of narrow floats -----------*- C++ -*-===//
#pragma once

#include "mlir/Pass/Pass.h"

#include <memory>

namespace dmxc::kernels {

/// Conversions that the hardware has.
struct NarrowFloats {
  bool half = false;         ///< f16 from and to f32
  bool roundsToBf16 = false; ///< f32 to bf16
};

/// Rewrites arith.extf and arith.truncf between f16/bf16 and f32/f64, which LLVM would turn into calls of library
/// functions, into integer arithmetic, but what the hardware has. Rounds to nearest even, once (also from f64); NaN
/// stays NaN. What is left of bf16, moves, becomes i16.
std::unique_ptr<mlir::Pass> createFloatLoweringPass(NarrowFloats has);

} // namespace dmxc::kernels
