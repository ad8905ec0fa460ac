//===- VectorMathTrig.h - argument reduction of sin, cos, tan ---*- C++ -*-===//
// Internal to VectorMath*.cpp.
#pragma once

#include "VectorMathExpr.h"

namespace dmxc::kernels::expr {

/// x = quadrant * pi/2 + r + low, |r| <= pi/4 (a little more where rounding chose the neighbour).
struct TrigParts {
  Expr r, low;   ///< f64
  Expr quadrant; ///< i64; only its low two bits count
};

/// Reduces an f64 of any size. `precise` makes r + low good to about 2^-100 relative; otherwise
/// low is zero and r good to 2^-40 relative for arguments that are f32 values.
TrigParts reduceTrig(Expr x, bool precise);

} // namespace dmxc::kernels::expr
