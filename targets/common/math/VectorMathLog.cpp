//===- VectorMathLog.cpp - logarithms and inverse hyperbolic functions --------===//
//
// log x = k ln2 + log(1 + f). In f32 log(1+f) = f - f^2/2 + f^3 P(f), P a minimax polynomial. In
// f64 s = f/(2+f) and log(1+f) = 2 atanh s = 2s + s R(s^2); since 2s = f - s f and
// s f = h - s h for h = f^2/2, this is f - (h - s (h + R)), in which only the small last term
// carries the division's rounding error.
//
//===----------------------------------------------------------------------===//

#include "VectorMath.h"
#include "VectorMathCoefficients.h"
#include "VectorMathExpr.h"

#include <limits>

namespace dmxc::kernels::expr {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Format {
  int mantissaBits, bias;
  double two;            ///< 2^mantissaBits
  uint64_t twoBits;      ///< its pattern
  uint64_t rootHalfBits; ///< pattern of sqrt(1/2)
  uint64_t oneBits;      ///< pattern of 1
  double minNormal;
  double ln2High, ln2Low;
};

constexpr Format f32Format = {23,         127,      0x1p23,      0x4b000000,    0x3f3504f3,
                              0x3f800000, 0x1p-126, 0x1.62e4p-1, 0x1.7f7d1cp-20};
constexpr Format f64Format = {52,
                              1023,
                              0x1p52,
                              0x4330000000000000,
                              0x3fe6a09e667f3bcd,
                              0x3ff0000000000000,
                              0x1p-1022,
                              0x1.62e42feep-1,
                              0x1.a39ef35793c76p-33};

const Format &formatOf(Expr x) { return x.isF32() ? f32Format : f64Format; }

/// Splits the pattern of a positive normal float: k + bias as an integer, and the bits of 1 + f.
/// Subtracting sqrt(1/2) from the pattern first makes the exponent step there, not at 1.
std::pair<Expr, Expr> splitExponent(Expr raw, const Format &f) {
  Expr shifted = raw + raw.integer(f.oneBits - f.rootHalfBits);
  Expr exponent = shifted >> f.mantissaBits;
  uint64_t mask = (uint64_t(1) << f.mantissaBits) - 1;
  return {exponent, (shifted & mask) + raw.integer(f.rootHalfBits)};
}

/// A small non-negative integer as a float, minus `less`: the pattern of 2^mantissaBits + i.
Expr smallIntToFloat(Expr i, const Format &f, Expr less) { return asFloat(i | f.twoBits) - less; }

/// log of a reduced argument.
Expr logOf(Expr k, Expr f) {
  const Format &c = formatOf(f);
  if (f.isF32()) {
    Expr f2 = f * f;
    Expr y = f2 * f * poly(f, coefficients::logF32);
    y = fma(k, c.ln2Low, y);
    y = fma(f2, -0.5, y);
    return fma(k, c.ln2High, f + y);
  }
  Expr s = f / (2.0 + f), z = s * s, h = 0.5 * f * f;
  Expr r = z * poly(z, coefficients::logF64);
  Expr low = fma(s, h + r, k * c.ln2Low);
  return k * c.ln2High - ((h - low) - f);
}

/// log's values for zero, negative numbers, infinity and NaN.
Expr logSpecials(Expr x, Expr result) {
  Expr bad = select(x == 0.0, x.num(-infinity), nan);
  return select(x == infinity, x, select(x > 0.0, result, bad));
}

} // namespace

LogParts reduceLog(Expr x) {
  const Format &f = formatOf(x);
  Expr subnormal = x < f.minNormal;
  Expr scaled = select(subnormal, x * f.two, x);
  auto [exponent, significand] = splitExponent(bits(scaled), f);
  Expr less = select(subnormal, x.num(f.two + f.bias + f.mantissaBits), x.num(f.two + f.bias));
  return {smallIntToFloat(exponent, f, less), asFloat(significand) - 1.0};
}

Expr logAny(Expr x) {
  LogParts p = reduceLog(x);
  return logSpecials(x, logOf(p.k, p.f));
}

Expr log1pAny(Expr x) {
  // u = 1 + x rounds; what it lost, scaled by u's exponent, is added to f. For k == 0 that makes
  // f equal to x exactly, so small arguments keep their accuracy.
  const Format &f = formatOf(x);
  Expr u = 1.0 + x;
  Expr lost = x - (u - 1.0);
  auto [exponent, significand] = splitExponent(bits(u), f);
  // 2^-k has a biased exponent of 2 bias - (k + bias); the largest k would make it negative.
  Expr bound = exponent.integer(2 * f.bias - 1);
  Expr less = compareInt(mlir::arith::CmpIPredicate::slt, exponent, bound);
  Expr inverse = (exponent.integer(2 * f.bias) - select(less, exponent, bound)) << f.mantissaBits;
  Expr k = smallIntToFloat(exponent, f, x.num(f.two + f.bias));
  Expr r = logOf(k, fma(lost, asFloat(inverse), asFloat(significand) - 1.0));
  return logSpecials(u, copysign(r, x)); // the sign of x; restores -0
}

/// k + log(1+f)/ln2 with the product in two parts, so that it is exact for powers of two and
/// keeps its relative accuracy near 1.
static Expr log2F64(Expr x) {
  LogParts p = reduceLog(x);
  Expr f = p.f, s = f / (2.0 + f), z = s * s, h = 0.5 * f * f;
  Expr r = z * poly(z, coefficients::logF64);
  Expr high = asFloat(bits(f - h) & 0xffffffff00000000ull);
  Expr low = ((f - high) - h) + s * (h + r);
  constexpr double log2eHigh = 0x1.71547652p+0, log2eLow = 0x1.705fc2eefa2p-33;
  Expr productHigh = high * log2eHigh;
  Expr productLow = fma(low + high, log2eLow, low * log2eHigh);
  Pair sum = fastTwoSum(p.k, productHigh);
  // With k == 0 fastTwoSum is exact as well: k is then zero.
  return logSpecials(x, sum.hi + (sum.lo + productLow));
}

static Expr asinhF64(Expr x) {
  // a + sqrt(a^2+1) - 1 = a + a^2 / (1 + sqrt(a^2+1)); large: log(2a) = log1p(a-1) + ln2.
  Expr a = abs(x), big = a > 0x1p28, square = a * a;
  Expr arg = select(big, a - 1.0, a + square / (1.0 + sqrt(square + 1.0)));
  Expr r = log1pAny(arg) + select(big, x.num(0x1.62e42fefa39efp-1), 0.0);
  return copysign(r, x);
}

static Expr acoshF64(Expr x) {
  Expr t = x - 1.0, big = x > 0x1p28;
  Expr arg = select(big, t, t + sqrt(fma(t, t, 2.0 * t)));
  Expr r = log1pAny(arg) + select(big, x.num(0x1.62e42fefa39efp-1), 0.0);
  return select(x >= 1.0, r, nan);
}

static Expr atanhF64(Expr x) {
  Expr a = abs(x);
  return copysign(0.5 * log1pAny(2.0 * a / (1.0 - a)), x);
}

} // namespace dmxc::kernels::expr

using namespace dmxc::kernels;
using namespace dmxc::kernels::expr;

mlir::Value VectorMath::log(Value x) { return apply(x, logAny, logAny); }
mlir::Value VectorMath::log2(Value x) { return apply(x, nullptr, log2F64); }
mlir::Value VectorMath::log1p(Value x) { return apply(x, log1pAny, log1pAny); }
mlir::Value VectorMath::asinh(Value x) { return apply(x, nullptr, asinhF64); }
mlir::Value VectorMath::acosh(Value x) { return apply(x, nullptr, acoshF64); }
mlir::Value VectorMath::atanh(Value x) { return apply(x, nullptr, atanhF64); }
