//===- VectorMathPow.cpp - pow and fmod ---------------------------------------===//
//
// pow(x, y) = e^(y log|x|). In f64 log|x| is a double-double good to about 2^-66: the exponent
// magnifies its relative error by up to 745. In f32 plain f64 arithmetic has bits to spare.
// fmod is long division of the significands.
//
//===----------------------------------------------------------------------===//

#include "VectorMath.h"
#include "VectorMathCoefficients.h"
#include "VectorMathExpr.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;

namespace dmxc::kernels::expr {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// log of a positive finite x: k ln2 + 2s + (2/3) s^3 + s^5 Q(s^2) with s = f/(2+f), all but the
/// last term in double-double.
Pair logPair(Expr x) {
  LogParts p = reduceLog(x);
  Expr den = 2.0 + p.f, denLow = p.f - (den - 2.0);
  Expr s = p.f / den;
  Pair back = twoProd(s, den);
  Expr sLow = (((p.f - back.hi) - back.lo) - s * denLow) / den;
  Pair z = twoProd(s, s);
  Expr zLow = z.lo + 2.0 * s * sLow;
  Pair cube = twoProd(s, z.hi);
  Expr cubeLow = cube.lo + (s * zLow + sLow * z.hi);
  Pair third = twoProd(cube.hi, cube.hi.num(0x1.5555555555555p-1));
  Expr thirdLow = third.lo + (cube.hi * 0x1.5555555555555p-55 + cubeLow * 0x1.5555555555555p-1);
  Expr rest = cube.hi * z.hi * poly(z.hi, coefficients::powLogF64);
  Pair a = twoSum(p.k * 0x1.62e42feep-1, 2.0 * s); // the product is exact
  Pair b = twoSum(a.hi, third.hi);
  Pair c = twoSum(b.hi, rest);
  Expr low = c.lo + b.lo + a.lo + 2.0 * sLow + thirdLow + p.k * 0x1.a39ef35793c76p-33;
  return fastTwoSum(c.hi, low);
}

/// e^(e.hi + e.lo); e.hi of any size.
Expr expPair(Pair e) {
  constexpr double beyond = 800.0;
  Expr small = abs(e.hi) < beyond;
  Expr high = atMost(atLeast(e.hi, -beyond), beyond);
  Expr low = select(small, e.lo, 0.0);
  double magic = 0x1.8p52 + twoStepOffset(high);
  Expr t = fma(high, 0x1.71547652b82fep+0, high.num(magic));
  Expr n = t - magic;
  Expr r = fma(n, -0x1.62e42feep-1, high); // exact
  r = r - fma(n, 0x1.a39ef35793c76p-33, -low);
  return scaleBy(1.0 + expm1Kernel(r), n, t);
}

/// |x|^y for 0 < |x| < inf and finite y.
Expr powMagnitude(Expr a, Expr y, bool precise) {
  if (!precise)
    return expAny(y * logAny(a));
  Pair l = logPair(a);
  Pair p = twoProd(y, l.hi);
  return expPair({p.hi, fma(y, l.lo, p.lo)});
}

/// All special cases of C99 F.9.4.4. x and y are f64.
Expr powSpecials(Expr x, Expr y, Expr r) {
  Expr a = abs(x), one = x.num(1.0);
  Expr isInteger = trunc(y) == y; // infinities too
  Expr half = 0.5 * y;
  Expr odd = (isInteger & logicalNot(floor(half) == half)) & (abs(y) < 0x1p53);
  // 0 and infinity: to the power of anything but zero.
  Expr toInfinity = (a == infinity) ^ (y < 0.0);
  Expr extreme = (a == 0.0) | (a == infinity);
  r = select(extreme, select(toInfinity, x.num(infinity), 0.0), r);
  // The sign: negative for a negative x (or -0) with an odd exponent.
  Expr negative = copysign(one, x) < 0.0;
  r = select(negative & odd, -r, r);
  r = select((x < 0.0) & logicalNot(extreme | isInteger), nan, r);
  // Infinite exponents.
  Expr grows = (a > 1.0) ^ (y < 0.0);
  Expr limit = select(a == 1.0, 1.0, select(grows, x.num(infinity), 0.0));
  r = select(abs(y) == infinity, limit, r);
  r = select(compare(arith::CmpFPredicate::UNO, x, y), x + y, r);
  return select((y == 0.0) | (x == 1.0), 1.0, r);
}

Expr powF64(Expr x, Expr y) { return powSpecials(x, y, powMagnitude(abs(x), y, true)); }

/// f32 operands, widened.
Expr powF32(Expr x, Expr y) {
  Expr wx = toF64(x), wy = toF64(y);
  return toF32(powSpecials(wx, wy, powMagnitude(abs(wx), wy, false)));
}

//===----------------------------------------------------------------------===//
// fmod
//===----------------------------------------------------------------------===//

struct Significand {
  Expr m, exponent; ///< i64: value = m * 2^(exponent - constant), exponent >= 1
};

Significand splitFloat(Expr a, int mantissaBits) {
  Expr raw = bits(a);
  if (a.isF32())
    raw = raw.convert<arith::ExtUIOp>(a.b().getI64Type());
  Expr exponent = raw >> mantissaBits;
  Expr zero = raw.integer(0);
  Expr subnormal = compareInt(arith::CmpIPredicate::eq, exponent, zero);
  uint64_t hidden = uint64_t(1) << mantissaBits;
  Expr m = (raw & (hidden - 1)) | select(subnormal, zero, raw.integer(hidden));
  return {m, select(subnormal, raw.integer(1), exponent)};
}

/// (m * 2^shift) mod divisor for a divisor of at most mantissaBits + 1 bits: each round of the
/// loop appends as many zero bits to the remainder as fit beside it in 64 bits.
Expr longDivision(Expr m, Expr shift, Expr divisor, int mantissaBits) {
  ImplicitLocOpBuilder &b = m.b();
  const Context &context = *m.context;
  Expr zero = m.integer(0), step = m.integer(63 - mantissaBits);
  Value init[] = {m.make<arith::RemUIOp>(divisor).value, shift.value};
  Type types[] = {m.value.getType(), m.value.getType()};
  auto loop = scf::WhileOp::create(b, types, init);
  OpBuilder::InsertionGuard guard(b);
  Location loc = b.getLoc();
  Block *before = b.createBlock(&loop.getBefore(), {}, types, {loc, loc});
  Expr left(context, before->getArgument(1));
  Value more = compareInt(arith::CmpIPredicate::sgt, left, zero).value;
  if (isa<VectorType>(more.getType()))
    more = vector::ReductionOp::create(b, vector::CombiningKind::OR, more);
  scf::ConditionOp::create(b, more, before->getArguments());
  Block *after = b.createBlock(&loop.getAfter(), {}, types, {loc, loc});
  Expr r(context, after->getArgument(0)), rest(context, after->getArgument(1));
  // Finished lanes shift by zero.
  Expr positive = rest.make<arith::MaxSIOp>(zero);
  Expr now = positive.make<arith::MinSIOp>(step);
  Expr next = r.make<arith::ShLIOp>(now).make<arith::RemUIOp>(divisor);
  scf::YieldOp::create(b, ValueRange{next.value, (positive - now).value});
  return {context, loop.getResult(0)};
}

/// m * 2^(exponent - constant), exact: m has at most mantissaBits + 1 bits and the result is a
/// multiple of the format's unit at `exponent`.
Expr joinFloat(Expr m, Expr exponent, Expr like, int mantissaBits) {
  Expr scale = exponent << mantissaBits;
  Expr value = m;
  if (like.isF32()) {
    value = m.convert<arith::TruncIOp>(like.b().getI32Type());
    scale = scale.convert<arith::TruncIOp>(like.b().getI32Type());
  }
  value = value.convert<arith::SIToFPOp>(like.element());
  Expr unit = like.isF32() ? like.num(0x1p-23) : like.num(0x1p-52);
  // 2^(exponent-bias) is normal for every exponent >= 1; the product may be subnormal, and exact.
  return value * unit * asFloat(scale);
}

Expr fmodAny(Expr x, Expr y) {
  int mantissaBits = x.isF32() ? 23 : 52;
  Expr a = abs(x), d = abs(y);
  Expr usable = (a < infinity) & (d > 0.0); // false for NaN
  Expr safeA = select(usable, a, 1.0);
  Expr safeD = select(usable & (d < infinity), d, 1.0);
  Significand n = splitFloat(safeA, mantissaBits), m = splitFloat(safeD, mantissaBits);
  // |x| < |y| leaves x itself; its lanes divide by themselves once and are replaced below.
  Expr r = longDivision(n.m, n.exponent - m.exponent, m.m, mantissaBits);
  Expr result = select(a < d, a, joinFloat(r, m.exponent, x, mantissaBits));
  result = select(usable, result, nan);
  return copysign(result, x);
}

} // namespace

} // namespace dmxc::kernels::expr

using namespace dmxc::kernels;
using namespace dmxc::kernels::expr;

Value VectorMath::pow(Value x, Value y) { return apply(x, y, powF32, powF64); }
Value VectorMath::fmod(Value x, Value y) { return apply(x, y, fmodAny, fmodAny); }
