//===- VectorMathErf.cpp - the error function ---------------------------------===//
//
// Up to 1 or so: x + x P(x^2) with P(0) = 2/sqrt(pi) - 1 about 0.13, so that the sum rounds once and P's
// error hardly counts. Beyond: 1 - erfc. In f32 erfc is the 8th power of a polynomial (an idea of
// Hastings: a root of erfc is smooth enough for a short one); in f64 it is e^(-a^2) times a
// polynomial in (a-3)/(a+3).
//
//===----------------------------------------------------------------------===//

#include "VectorMath.h"
#include "VectorMathCoefficients.h"
#include "VectorMathExpr.h"

namespace dmxc::kernels::expr {

static Expr erfF32(Expr x) {
  // The 8th root of erfc is almost exactly a float here (fit_vector_math.py).
  constexpr double split = 1.08203125;
  Expr a = abs(x);
  Expr small = fma(x, poly(x * x, coefficients::erfSmallF32), x);
  // Past 3.84 the result rounds to 1.
  Expr root = poly(atMost(a, 4.0) - split, coefficients::erfLargeF32);
  Expr root2 = root * root, root4 = root2 * root2;
  Expr large = fma(-root4, root4, 1.0);
  return select(a < split, small, giveSign(large, x));
}

static Expr erfF64(Expr x) {
  Expr a = abs(x);
  Expr small = fma(x, poly(x * x, coefficients::erfSmallF64), x);
  // Past 5.93 the result rounds to 1.
  Expr c = atMost(a, 6.0);
  Expr t = (c - 3.0) / (c + 3.0);
  Expr large = 1.0 - expAny(-c * c) * poly(t, coefficients::erfLargeF64);
  return select(a < 1.0, small, giveSign(large, x));
}

} // namespace dmxc::kernels::expr

using namespace dmxc::kernels;

mlir::Value VectorMath::erf(Value x) { return apply(x, expr::erfF32, expr::erfF64); }
