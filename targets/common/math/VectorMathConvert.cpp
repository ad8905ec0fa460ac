//===- VectorMathConvert.cpp - conversions and rounding -----------------------===//
//
// Conversions between element types without poison, library calls or double rounding.
//
//===----------------------------------------------------------------------===//

#include "VectorMath.h"
#include "VectorMathExpr.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace dmxc::kernels::expr {

Expr truncateToOdd(Expr x) {
  Expr nearest = toF32(x), back = toF64(nearest), pattern = bits(nearest);
  // Rounded away from zero: step back. Inexact: set the last bit. NaN compares as neither.
  Expr away = abs(back) > abs(x);
  Expr inexact = compare(arith::CmpFPredicate::ONE, back, x);
  Expr toZero = pattern - select(away, pattern.integer(1), pattern.integer(0));
  return asFloat(select(inexact, toZero | 1, pattern));
}

namespace {

/// An 8-bit float format, or the 4-bit one with its sign moved to bit 7.
struct Format8 {
  int exponentBits, mantissaBits, bias;
  bool hasInfinity;
  bool fnuz; ///< NaN is the pattern of minus zero, which does not exist
  uint32_t maxFinite;
  uint32_t nan;
  uint32_t overflow; ///< what is too large, where it is neither saturated nor infinite
};

Format8 formatOf(FloatType type) {
  if (isa<Float4E2M1FNType>(type)) // no NaN: it becomes minus zero
    return {2, 1, 1, false, false, 7, 0x80, 7};
  if (isa<Float8E4M3FNType>(type))
    return {4, 3, 7, false, false, 0x7e, 0x7f, 0x7f};
  if (isa<Float8E4M3FNUZType>(type))
    return {4, 3, 8, false, true, 0x7f, 0x80, 0x80};
  if (isa<Float8E5M2FNUZType>(type))
    return {5, 2, 16, false, true, 0x7f, 0x80, 0x80};
  assert(isa<Float8E5M2Type>(type) && "an f8 format");
  return {5, 2, 15, true, false, 0x7b, 0x7e, 0x7c};
}

bool isFloat8(Type type) { return isa<FloatType>(type) && type.getIntOrFloatBitWidth() == 8; }

/// The patterns, one i32 a lane, of f32 values.
Expr encode(Expr x, const Format8 &f, Overflow overflow) {
  int drop = 23 - f.mantissaBits;
  Expr raw = bits(x);
  Expr magnitude = raw & 0x7fffffff, sign = (raw >> 24) & 0x80;
  // Normal results: rebias and round to even on the last bit kept; a carry moves the exponent up.
  uint32_t rebias = uint32_t(f.bias - 127) << 23, half = (1u << (drop - 1)) - 1;
  Expr normal = (magnitude + ((magnitude >> drop) & 1) + magnitude.integer(rebias + half)) >> drop;
  // Subnormal results: adding 2^(23 + exponent of their unit) lets the adder round at that unit.
  double magic = std::ldexp(1.0, 23 + 1 - f.bias - f.mantissaBits);
  Expr aligned = bits(asFloat(magnitude) + magic) - bits(asFloat(magnitude).num(magic));
  Expr r = select(asFloat(magnitude) < std::ldexp(1.0, 1 - f.bias), aligned, normal);
  // Compared as floats first: the integer arithmetic above wraps for huge values.
  Expr bound = raw.integer(f.maxFinite);
  Expr tooBig = (asFloat(magnitude) >= 0x1p17) | compareInt(arith::CmpIPredicate::ugt, r, bound);
  Expr infinity = raw.integer(f.overflow);
  Expr over = overflow == Overflow::Infinity ? infinity : bound;
  if (overflow == Overflow::SaturateFinite && f.hasInfinity)
    over = select(compareInt(arith::CmpIPredicate::eq, magnitude, magnitude.integer(0x7f800000)), infinity, bound);
  r = select(tooBig, over, r);
  r = select(isNaN(x), raw.integer(f.nan), r);
  if (!f.fnuz)
    return r | sign;
  // No minus zero, and NaN has one pattern only.
  Expr special = compareInt(arith::CmpIPredicate::eq, r & 0x7f, r.integer(0));
  return select(special, r, r | sign);
}

/// f32 values of patterns held one i32 a lane.
Expr decode(Expr raw, const Format8 &f) {
  Expr magnitude = raw & 0x7f, sign = (raw & 0x80) << 24;
  // The pattern read as a tiny f32, then scaled by the difference of the biases: exact, and
  // right for subnormals as well.
  Expr value = asFloat(magnitude << (23 - f.mantissaBits)) * std::ldexp(1.0, 127 - f.bias);
  Expr out = bits(value) | sign;
  Expr nan = out.integer(0x7fc00000);
  if (f.fnuz)
    return asFloat(select(compareInt(arith::CmpIPredicate::eq, raw, raw.integer(0x80)), nan, out));
  Expr special = compareInt(arith::CmpIPredicate::ugt, magnitude, magnitude.integer(f.maxFinite));
  Expr what = nan | sign;
  if (f.hasInfinity)
    what = select(compareInt(arith::CmpIPredicate::eq, magnitude, magnitude.integer(f.maxFinite + 1)),
                  raw.integer(0x7f800000) | sign, what);
  return asFloat(select(special, what, out));
}

/// To a signed integer of `width` bits: saturates, NaN gives 0, nothing is poison.
Expr toSigned(Expr x, unsigned width) {
  double limit = std::ldexp(1.0, width - 1);
  Expr above = x >= limit, below = x < -limit;
  Expr inside = (x < limit) & (x >= -limit);
  Expr i = select(inside, x, 0.0).convert<arith::FPToSIOp>(x.b().getIntegerType(width));
  uint64_t top = uint64_t(1) << (width - 1);
  return select(above, i.integer(top - 1), select(below, i.integer(top), i));
}

Expr toUnsigned64(Expr x) {
  Expr high = x >= 0x1p63;
  Expr i = toSigned(select(high, x - 0x1p63, x), 64);
  return select(high, i | (uint64_t(1) << 63), i);
}

Expr roundAwayAny(Expr x) {
  Expr a = abs(x), t = trunc(a);
  return copysign(t + select(a - t >= 0.5, t.num(1.0), 0.0), x);
}

} // namespace

} // namespace dmxc::kernels::expr

using namespace dmxc::kernels;
using namespace dmxc::kernels::expr;

Value VectorMath::apply(Value x, Expr (*f32)(Expr), Expr (*f64)(Expr)) {
  Context context{b, traits};
  Expr e(context, x);
  Type element = e.element();
  if (element.isF64())
    return f64(e).value;
  if (element.isF32())
    return f32 ? f32(e).value : toF32(f64(toF64(e))).value;
  assert(element.isF16() || element.isBF16());
  Value wide = arith::ExtFOp::create(b, e.typeOf(b.getF32Type()), x);
  return arith::TruncFOp::create(b, x.getType(), apply(wide, f32, f64));
}

Value VectorMath::apply(Value x, Value y, Expr (*f32)(Expr, Expr), Expr (*f64)(Expr, Expr)) {
  Context context{b, traits};
  Expr ex(context, x), ey(context, y);
  assert(x.getType() == y.getType());
  Type element = ex.element();
  if (element.isF64())
    return f64(ex, ey).value;
  if (element.isF32())
    return f32 ? f32(ex, ey).value : toF32(f64(toF64(ex), toF64(ey))).value;
  assert(element.isF16() || element.isBF16());
  Type wide = ex.typeOf(b.getF32Type());
  Value r = apply(arith::ExtFOp::create(b, wide, x), arith::ExtFOp::create(b, wide, y), f32, f64);
  return arith::TruncFOp::create(b, x.getType(), r);
}

Value VectorMath::roundHalfEven(Value x) {
  auto even = [](Expr e) { return e.make<math::RoundEvenOp>(); };
  return apply(x, even, even);
}
Value VectorMath::roundHalfAway(Value x) { return apply(x, roundAwayAny, roundAwayAny); }

Value VectorMath::decodeF8(Value pattern, FloatType format, FloatType element) {
  Context context{b, traits};
  Expr raw = Expr(context, pattern).convert<arith::ExtUIOp>(b.getI32Type());
  if (format.getWidth() == 4)
    raw = (raw & 7) | ((raw & 8) << 4);
  Value f32 = decode(raw, formatOf(format)).value;
  return extendFloat(f32, element);
}

Value VectorMath::encodeF8(Value x, FloatType format, Overflow overflow) {
  Context context{b, traits};
  Expr e(context, x);
  if (e.width() < 32)
    e = e.convert<arith::ExtFOp>(b.getF32Type());
  if (!e.isF32())
    e = truncateToOdd(e);
  Expr pattern = encode(e, formatOf(format), overflow);
  if (format.getWidth() == 4)
    pattern = (pattern & 7) | ((pattern >> 4) & 8);
  return pattern.convert<arith::TruncIOp>(b.getI8Type()).value;
}

Value VectorMath::extendFloat(Value x, FloatType element) {
  Context context{b, traits};
  Expr e(context, x);
  if (e.element() == element)
    return x;
  if (isFloat8(e.element())) {
    auto format = cast<FloatType>(e.element());
    Value wide = decodeF8(bits(e).value, format, b.getF32Type());
    // Every f8 value is exact in f16 and bf16 as well.
    return element.getWidth() < 32 ? truncateFloat(wide, element) : extendFloat(wide, element);
  }
  return e.convert<arith::ExtFOp>(element).value;
}

Value VectorMath::truncateFloat(Value x, FloatType element, Overflow overflow) {
  Context context{b, traits};
  Expr e(context, x);
  if (e.element() == element)
    return x;
  if (isFloat8(element)) {
    Expr pattern(context, encodeF8(x, element, overflow));
    return pattern.convert<arith::BitcastOp>(element).value;
  }
  return e.convert<arith::TruncFOp>(element).value;
}

Value VectorMath::floatToInt(Value x, IntegerType element, bool isUnsigned) {
  Context context{b, traits};
  Expr e(context, x);
  if (e.width() < 32)
    e = Expr(context, extendFloat(x, b.getF32Type()));
  unsigned width = element.getWidth();
  if (width == 64)
    return (isUnsigned ? toUnsigned64(e) : toSigned(e, 64)).value;
  if (width == 32)
    return isUnsigned ? toSigned(e, 64).convert<arith::TruncIOp>(element).value : toSigned(e, 32).value;
  return toSigned(e, 32).convert<arith::TruncIOp>(element).value;
}

Value VectorMath::intToFloat(Value x, FloatType element, bool isUnsigned) {
  Context context{b, traits};
  Expr e(context, x);
  auto convert = [&](Expr from, FloatType to) {
    return isUnsigned ? from.convert<arith::UIToFPOp>(to) : from.convert<arith::SIToFPOp>(to);
  };
  if (element.getWidth() >= 32)
    return convert(e, element).value;
  if (e.width() <= 16) // exact in f32
    return truncateFloat(convert(e, b.getF32Type()).value, element);
  if (e.width() == 64) {
    // Beyond 53 bits: cut 11 bits and keep them as a sticky bit (rounding to odd), which is exact
    // in f64. Small values keep all their bits.
    Expr low = e & 0x7ff, zero = e.integer(0), top = e.integer(uint64_t(1) << 52);
    Expr sticky = select(compareInt(arith::CmpIPredicate::eq, low, zero), zero, e.integer(0x800));
    // -2^52 <= e < 2^52, as one unsigned comparison.
    Expr shifted = isUnsigned ? e : e + top;
    Expr bound = isUnsigned ? top : e.integer(uint64_t(1) << 53);
    Expr small = compareInt(arith::CmpIPredicate::ult, shifted, bound);
    e = select(small, e, (e & ~uint64_t(0x7ff)) | sticky);
  }
  // Not truncf of sitofp: MLIR folds the two, and the pair it is lowered to rounds twice.
  return truncateFloat(truncateToOdd(convert(e, b.getF64Type())).value, element);
}
