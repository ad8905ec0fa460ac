//===- VectorMathExpr.h - values with operators -----------------*- C++ -*-===//
//
// Lets the emitters of VectorMath*.cpp be written as formulas. An Expr is an SSA value (a scalar
// or a vector, float or integer) and the builder it came from; its operators emit arith/math
// operations. Numbers on either side become splat constants of the other operand's type.
// Internal to VectorMath*.cpp.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "MathTraits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace dmxc::kernels::expr {

struct Context {
  mlir::ImplicitLocOpBuilder &b;
  const MathTraits &traits;
};

class Expr {
public:
  Expr(const Context &context, mlir::Value value) : context(&context), value(value) {}

  const Context *context;
  mlir::Value value;

  mlir::ImplicitLocOpBuilder &b() const { return context->b; }
  mlir::Type element() const { return mlir::getElementTypeOrSelf(value.getType()); }
  bool isFloat() const { return mlir::isa<mlir::FloatType>(element()); }
  bool isF32() const { return element().isF32(); }
  unsigned width() const { return element().getIntOrFloatBitWidth(); }
  /// The type of this shape with another element.
  mlir::Type typeOf(mlir::Type other) const {
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(value.getType()))
      return vector.clone(other);
    return other;
  }
  mlir::Type intType(unsigned bits) const { return typeOf(b().getIntegerType(bits)); }

  /// Constants of this type. The float is rounded to it; the integer is taken modulo its width.
  Expr num(double v) const { return splat(b().getFloatAttr(element(), v)); }
  Expr integer(uint64_t v) const { return splat(b().getIntegerAttr(element(), llvm::APInt(64, v).trunc(width()))); }

  template <typename Op> Expr make(Expr y) const { return {*context, Op::create(b(), value, y.value)}; }
  template <typename Op> Expr make() const { return {*context, Op::create(b(), value)}; }
  template <typename Op> Expr convert(mlir::Type to) const { return {*context, Op::create(b(), typeOf(to), value)}; }

private:
  Expr splat(mlir::TypedAttr attr) const {
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(value.getType()))
      attr = mlir::DenseElementsAttr::get(vector, llvm::ArrayRef<mlir::Attribute>(attr));
    return {*context, mlir::arith::ConstantOp::create(b(), attr)};
  }
};

// --- float arithmetic (numbers) and integer arithmetic (same operators) -------------
inline Expr operator+(Expr x, Expr y) {
  return x.isFloat() ? x.make<mlir::arith::AddFOp>(y) : x.make<mlir::arith::AddIOp>(y);
}
inline Expr operator-(Expr x, Expr y) {
  return x.isFloat() ? x.make<mlir::arith::SubFOp>(y) : x.make<mlir::arith::SubIOp>(y);
}
inline Expr operator*(Expr x, Expr y) {
  return x.isFloat() ? x.make<mlir::arith::MulFOp>(y) : x.make<mlir::arith::MulIOp>(y);
}
inline Expr operator/(Expr x, Expr y) { return x.make<mlir::arith::DivFOp>(y); }
inline Expr operator-(Expr x) { return x.make<mlir::arith::NegFOp>(); }
inline Expr operator+(Expr x, double y) { return x + x.num(y); }
inline Expr operator-(Expr x, double y) { return x - x.num(y); }
inline Expr operator*(Expr x, double y) { return x * x.num(y); }
inline Expr operator+(double x, Expr y) { return y.num(x) + y; }
inline Expr operator-(double x, Expr y) { return y.num(x) - y; }
inline Expr operator*(double x, Expr y) { return y.num(x) * y; }
inline Expr operator/(double x, Expr y) { return y.num(x) / y; }

/// x*y + z, fused where the level can.
inline Expr fma(Expr x, Expr y, Expr z) {
  if (!x.context->traits.hasFma)
    return x * y + z;
  return {*x.context, mlir::math::FmaOp::create(x.b(), x.value, y.value, z.value)};
}
inline Expr fma(Expr x, double y, Expr z) { return fma(x, x.num(y), z); }
inline Expr fma(Expr x, Expr y, double z) { return fma(x, y, x.num(z)); }

inline Expr abs(Expr x) { return x.make<mlir::math::AbsFOp>(); }
inline Expr sqrt(Expr x) { return x.make<mlir::math::SqrtOp>(); }
inline Expr floor(Expr x) { return x.make<mlir::math::FloorOp>(); }
inline Expr trunc(Expr x) { return x.make<mlir::math::TruncOp>(); }
inline Expr copysign(Expr magnitude, Expr sign) { return magnitude.make<mlir::math::CopySignOp>(sign); }

/// c0 + c1 x + c2 x^2 + ...: neighbours are joined with x, then (in f64, for long ones) pairs with
/// x^2, the rest by Horner's rule. One or two operations more than plain Horner, but a chain less
/// than half as long. A further level in f32 was no faster and cost erf half an ulp.
inline Expr poly(Expr x, llvm::ArrayRef<double> c) {
  llvm::SmallVector<Expr> terms;
  for (size_t i = 0; i < c.size(); i += 2)
    terms.push_back(i + 1 < c.size() ? fma(x, x.num(c[i + 1]), x.num(c[i])) : x.num(c[i]));
  Expr power = x * x;
  if (!x.isF32() && c.size() >= 8) {
    llvm::SmallVector<Expr> wider;
    for (size_t i = 0; i < terms.size(); i += 2)
      wider.push_back(i + 1 < terms.size() ? fma(power, terms[i + 1], terms[i]) : terms[i]);
    terms = std::move(wider);
    power = power * power;
  }
  Expr y = terms.pop_back_val();
  while (!terms.empty())
    y = fma(y, power, terms.pop_back_val());
  return y;
}

// --- comparisons (ordered: false for NaN) and selection -------------------------------
inline Expr compare(mlir::arith::CmpFPredicate p, Expr x, Expr y) {
  return {*x.context, mlir::arith::CmpFOp::create(x.b(), p, x.value, y.value)};
}
inline Expr operator<(Expr x, Expr y) { return compare(mlir::arith::CmpFPredicate::OLT, x, y); }
inline Expr operator>(Expr x, Expr y) { return compare(mlir::arith::CmpFPredicate::OGT, x, y); }
inline Expr operator<=(Expr x, Expr y) { return compare(mlir::arith::CmpFPredicate::OLE, x, y); }
inline Expr operator>=(Expr x, Expr y) { return compare(mlir::arith::CmpFPredicate::OGE, x, y); }
inline Expr operator==(Expr x, Expr y) { return compare(mlir::arith::CmpFPredicate::OEQ, x, y); }
inline Expr operator<(Expr x, double y) { return x < x.num(y); }
inline Expr operator>(Expr x, double y) { return x > x.num(y); }
inline Expr operator<=(Expr x, double y) { return x <= x.num(y); }
inline Expr operator>=(Expr x, double y) { return x >= x.num(y); }
inline Expr operator==(Expr x, double y) { return x == x.num(y); }
inline Expr isNaN(Expr x) { return compare(mlir::arith::CmpFPredicate::UNO, x, x); }
inline Expr compareInt(mlir::arith::CmpIPredicate p, Expr x, Expr y) {
  return {*x.context, mlir::arith::CmpIOp::create(x.b(), p, x.value, y.value)};
}

inline Expr select(Expr c, Expr x, Expr y) {
  return {*x.context, mlir::arith::SelectOp::create(x.b(), c.value, x.value, y.value)};
}
inline Expr select(Expr c, double x, Expr y) { return select(c, y.num(x), y); }
inline Expr select(Expr c, Expr x, double y) { return select(c, x, x.num(y)); }
/// Clamps that let NaN through (one min/max instruction each).
inline Expr atLeast(Expr x, double low) { return select(x.num(low) > x, low, x); }
inline Expr atMost(Expr x, double high) { return select(x.num(high) < x, high, x); }

// --- bits ---------------------------------------------------------------------------------
inline Expr bits(Expr x) { return x.convert<mlir::arith::BitcastOp>(x.b().getIntegerType(x.width())); }
inline Expr asFloat(Expr x) {
  mlir::Type to = x.width() == 32   ? mlir::Type(x.b().getF32Type())
                  : x.width() == 64 ? mlir::Type(x.b().getF64Type())
                                    : mlir::Type(x.b().getF16Type());
  return x.convert<mlir::arith::BitcastOp>(to);
}
inline Expr operator&(Expr x, Expr y) { return x.make<mlir::arith::AndIOp>(y); }
inline Expr operator|(Expr x, Expr y) { return x.make<mlir::arith::OrIOp>(y); }
inline Expr operator^(Expr x, Expr y) { return x.make<mlir::arith::XOrIOp>(y); }
inline Expr operator&(Expr x, uint64_t y) { return x & x.integer(y); }
inline Expr operator|(Expr x, uint64_t y) { return x | x.integer(y); }
inline Expr operator<<(Expr x, unsigned n) { return x.make<mlir::arith::ShLIOp>(x.integer(n)); }
/// Logical shift.
inline Expr operator>>(Expr x, unsigned n) { return x.make<mlir::arith::ShRUIOp>(x.integer(n)); }
inline Expr logicalNot(Expr x) { return x ^ x.integer(1); }

/// copysign of a magnitude that is known to have no sign bit: one instruction less.
inline Expr giveSign(Expr magnitude, Expr sign) {
  uint64_t mask = uint64_t(1) << (sign.width() - 1);
  return asFloat(bits(magnitude) | (bits(sign) & mask));
}

// --- float widths ----------------------------------------------------------------------------
inline Expr toF64(Expr x) { return x.convert<mlir::arith::ExtFOp>(x.b().getF64Type()); }
inline Expr toF32(Expr x) { return x.convert<mlir::arith::TruncFOp>(x.b().getF32Type()); }

// --- double-double: unevaluated sums hi + lo, |lo| <= ulp(hi)/2 -----------------------------
struct Pair {
  Expr hi, lo;
};
/// x + y exactly (Knuth).
inline Pair twoSum(Expr x, Expr y) {
  Expr s = x + y;
  Expr back = s - x;
  return {s, (x - (s - back)) + (y - back)};
}
/// x + y exactly for |x| >= |y| or x == 0 (Dekker).
inline Pair fastTwoSum(Expr x, Expr y) {
  Expr s = x + y;
  return {s, y - (s - x)};
}
/// x * y exactly; without FMA by Dekker's splitting, whose halves are cut by masking the bits
/// (no overflow for large x).
inline Pair twoProd(Expr x, Expr y) {
  Expr p = x * y;
  if (x.context->traits.hasFma)
    return {p, fma(x, y, -p)};
  auto head = [](Expr v) { return asFloat(bits(v) & 0xfffffffff8000000ull); };
  Expr xh = head(x), yh = head(y);
  Expr xl = x - xh, yl = y - yh;
  return {p, xl * yl - (((p - xh * yh) - xl * yh) - xh * yl)};
}

// --- what the parts of the library use of each other (definitions in VectorMath*.cpp) --------
/// e^r - 1 of the reduced argument r, and t with the integer n in its low bits: x = n ln2 + r.
struct ExpParts {
  Expr em1; ///< e^r - 1
  Expr n;   ///< float, integral
  Expr t;   ///< bits of n + magic + offset
};
ExpParts reduceExp(Expr x, double offset);
/// e^r - 1 for |r| <= ln2/2.
Expr expm1Kernel(Expr r);
/// m * 2^n with one rounding, where `n` and `t` came from reduceExp with offset twoStepOffset(x) and
/// 2^n itself may be out of the normal range.
Expr scaleBy(Expr m, Expr n, Expr t);
double twoStepOffset(Expr x);

/// x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for positive finite x; subnormals included.
struct LogParts {
  Expr k; ///< float, integral
  Expr f;
};
LogParts reduceLog(Expr x);

Expr expAny(Expr x);
Expr expm1Any(Expr x);
Expr logAny(Expr x);
Expr log1pAny(Expr x);

/// f64 -> f32 rounding to odd: a second rounding to a format of at most 22 bits is then the only one.
Expr truncateToOdd(Expr x);

} // namespace dmxc::kernels::expr
