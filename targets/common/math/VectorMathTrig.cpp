//===- VectorMathTrig.cpp - trigonometric functions ---------------------------===//
//
// sin, cos and tan reduce to |r| <= pi/4 (VectorMathReduce.cpp) and use minimax polynomials in
// r^2; in f64 r comes as a pair, whose low part enters to first order. The inverse functions use
// the classical identities named at each of them.
//
//===----------------------------------------------------------------------===//

#include "VectorMathTrig.h"
#include "VectorMath.h"
#include "VectorMathCoefficients.h"
#include "VectorMathExpr.h"

#include <limits>

namespace dmxc::kernels::expr {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double halfPiHigh = 0x1.921fb54442d18p+0, halfPiLow = 0x1.1a62633145c07p-54;

/// sin(r + low) for |r| <= pi/4.
Expr sinKernel(const TrigParts &p) {
  Expr z = p.r * p.r;
  Expr tail = fma(z * p.r, poly(z, coefficients::sinF64), p.low * fma(z, -0.5, z.num(1.0)));
  return p.r + tail;
}

/// cos(r + low): 1 - z/2 is rounded, and what it lost is added back with the small terms.
Expr cosKernel(const TrigParts &p) {
  Expr z = p.r * p.r, h = 0.5 * z, w = 1.0 - h;
  Expr tail = fma(z * z, poly(z, coefficients::cosF64), -(p.r * p.low));
  return w + (((1.0 - w) - h) + tail);
}

/// Negates where bit 1 of the quadrant is set.
Expr flipByQuadrant(Expr y, Expr quadrant) { return asFloat(bits(y) ^ ((quadrant & 2) << 62)); }

Expr isOdd(Expr quadrant) { return compareInt(mlir::arith::CmpIPredicate::ne, quadrant & 1, quadrant.integer(0)); }

Expr sinOf(Expr x, bool precise) {
  TrigParts p = reduceTrig(x, precise);
  Expr y = flipByQuadrant(select(isOdd(p.quadrant), cosKernel(p), sinKernel(p)), p.quadrant);
  return select(abs(x) < 0x1p-27, x, y); // restores -0, and subnormals
}

Expr cosOf(Expr x, bool precise) {
  TrigParts p = reduceTrig(x, precise);
  Expr y = select(isOdd(p.quadrant), sinKernel(p), cosKernel(p));
  return flipByQuadrant(y, p.quadrant + p.quadrant.integer(1));
}

Expr tanOf(Expr x, bool precise) {
  TrigParts p = reduceTrig(x, precise);
  Expr s = sinKernel(p), c = cosKernel(p), odd = isOdd(p.quadrant);
  Expr y = select(odd, -c, s) / select(odd, s, c);
  return select(abs(x) < 0x1p-27, x, y);
}

using Function = Expr (*)(Expr, bool);
template <Function fn> Expr f32Via(Expr x) { return toF32(fn(toF64(x), false)); }
template <Function fn> Expr f64Via(Expr x) { return fn(x, true); }

/// atan(t) - t for |t| <= tan(pi/8).
Expr atanTail(Expr t) {
  Expr z = t * t;
  return t * z * poly(z, coefficients::atanF64);
}

/// num/den and an angle (high, low) with atan(a/b) = angle + atan(num/den), |num/den| <= tan(pi/8),
/// for a, b >= 0: atan(x) = pi/2 - atan(1/x) = pi/4 + atan((x-1)/(x+1)).
struct AtanParts {
  Expr t, high, low;
};
AtanParts reduceAtan(Expr a, Expr b) {
  Expr big = a > b * 0x1.3504f333f9de6p+1, middle = a > b * 0x1.a827999fcef32p-2;
  Expr num = select(big, -b, select(middle, a - b, a));
  Expr den = select(big, a, select(middle, a + b, b));
  Expr high = select(big, halfPiHigh, select(middle, a.num(halfPiHigh / 2), 0.0));
  Expr low = select(big, halfPiLow, select(middle, a.num(halfPiLow / 2), 0.0));
  return {num / den, high, low};
}

Expr atanF64(Expr x) {
  AtanParts p = reduceAtan(abs(x), x.num(1.0));
  return copysign(p.high + (p.t + (p.low + atanTail(p.t))), x);
}

Expr atan2F64(Expr y, Expr x) {
  Expr a = abs(y), b = abs(x);
  // Both infinite: the angle of (1, 1). Both zero: the angle of (0, 1).
  Expr both = select(a < b, a, b) == infinity;
  a = select(both, 1.0, a);
  b = select(both, 1.0, b);
  b = select(select(a < b, b, a) == 0.0, 1.0, b);
  // a + b must not overflow, and a multiple of b not lose bits; what the scaling rounds away is
  // below the ratio's last place.
  Expr larger = select(a < b, b, a);
  Expr scale = select(larger > 0x1p1000, a.num(0.25), select(larger < 0x1p-900, a.num(0x1p200), 1.0));
  AtanParts p = reduceAtan(a * scale, b * scale);
  // A negative x (or -0) mirrors the angle at pi/2: pi - angle.
  Expr negative = copysign(x.num(1.0), x) < 0.0;
  Expr t = select(negative, -p.t, p.t), tail = atanTail(p.t);
  Expr high = select(negative, 2.0 * halfPiHigh - p.high, p.high);
  Expr low = select(negative, 2.0 * halfPiLow - p.low, p.low);
  Expr r = high + (t + (low + select(negative, -tail, tail)));
  Expr unordered = compare(mlir::arith::CmpFPredicate::UNO, x, y);
  return copysign(select(unordered, x + y, r), y);
}

/// (asin(t) - t) / t with z = t^2 <= 1/4.
Expr asinFactor(Expr z) { return z * poly(z, coefficients::asinF64); }

/// sqrt(z) = high + low, high short enough that high^2 is exact.
Pair longSqrt(Expr z) {
  Expr s = sqrt(z);
  Expr high = asFloat(bits(s) & 0xffffffff00000000ull);
  // z == 0 would divide zero by zero.
  Expr sum = select(s == 0.0, 1.0, s + high);
  return {high, (z - high * high) / sum};
}

/// asin(a) = pi/2 - 2 asin(sqrt((1-a)/2)) above 1/2.
Expr asinF64(Expr x) {
  Expr a = abs(x), z = 0.5 * (1.0 - a);
  Pair s = longSqrt(z);
  Expr tail = sqrt(z) * asinFactor(z);
  Expr large = (halfPiHigh - 2.0 * s.hi) - (2.0 * (tail + s.lo) - halfPiLow);
  Expr square = x * x;
  Expr small = fma(a, asinFactor(square), a);
  return copysign(select(a <= 0.5, small, large), x);
}

/// acos(x) = pi/2 - asin(x), 2 asin(sqrt((1-x)/2)) above 1/2, pi minus that below -1/2.
Expr acosF64(Expr x) {
  Expr z = 0.5 * (1.0 - abs(x));
  Pair s = longSqrt(z);
  Expr half = s.hi + (s.lo + sqrt(z) * asinFactor(z));
  Expr outer = select(x < 0.0, 2.0 * (halfPiHigh - (half - halfPiLow)), 2.0 * half);
  Expr inner = halfPiHigh - (x - (halfPiLow - x * asinFactor(x * x)));
  return select(abs(x) <= 0.5, inner, outer);
}

} // namespace

} // namespace dmxc::kernels::expr

using namespace dmxc::kernels;
using namespace dmxc::kernels::expr;

mlir::Value VectorMath::sin(Value x) { return apply(x, f32Via<sinOf>, f64Via<sinOf>); }
mlir::Value VectorMath::cos(Value x) { return apply(x, f32Via<cosOf>, f64Via<cosOf>); }
mlir::Value VectorMath::tan(Value x) { return apply(x, f32Via<tanOf>, f64Via<tanOf>); }
mlir::Value VectorMath::asin(Value x) { return apply(x, nullptr, asinF64); }
mlir::Value VectorMath::acos(Value x) { return apply(x, nullptr, acosF64); }
mlir::Value VectorMath::atan(Value x) { return apply(x, nullptr, atanF64); }
mlir::Value VectorMath::atan2(Value y, Value x) { return apply(y, x, nullptr, atan2F64); }
