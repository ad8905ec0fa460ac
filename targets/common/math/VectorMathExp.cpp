//===- VectorMathExp.cpp - exponentials and hyperbolic functions --------------===//
//
// e^x = 2^n e^r with n = round(x / ln2), |r| <= ln2/2 (Cody and Waite's two-part ln2: the high
// part has so many trailing zeros that n * high is exact, with and without FMA). e^r - 1 is
// r + r^2 q(r), q a minimax polynomial; everything else is built from e^r - 1, which keeps its
// relative accuracy near zero.
//
//===----------------------------------------------------------------------===//

#include "VectorMath.h"
#include "VectorMathCoefficients.h"
#include "VectorMathExpr.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <optional>

namespace dmxc::kernels::expr {

namespace {

/// The parameters of a binary format that the reductions need.
struct Format {
  int mantissaBits, bias;
  double magic; ///< 1.5 * 2^mantissaBits: adding it leaves an integer in the low bits
  double ln2High, ln2Low;
  /// e^x is zero below `low` and infinite above `high`.
  double low, high;
  /// e^x - 1 is -1 below.
  double minusOne;
};

constexpr Format f32Format = {23, 127, 0x1.8p23, 0x1.62e4p-1, 0x1.7f7d1cp-20, -104.0, 89.0, -18.0};
constexpr Format f64Format = {52, 1023, 0x1.8p52, 0x1.62e42feep-1, 0x1.a39ef35793c76p-33, -746.0, 710.0, -40.0};

const Format &formatOf(Expr x) { return x.isF32() ? f32Format : f64Format; }

constexpr double log2e = 0x1.71547652b82fep+0;

/// 2^n from the low bits of t = n + magic + bias.
Expr powerOfTwo(Expr t) { return asFloat(bits(t) << formatOf(t).mantissaBits); }

} // namespace

Expr expm1Kernel(Expr r) {
  Expr q = r.isF32() ? poly(r, coefficients::expF32) : poly(r, coefficients::expF64);
  return fma(r * r, q, r);
}

ExpParts reduceExp(Expr x, double offset) {
  const Format &f = formatOf(x);
  double magic = f.magic + offset;
  // Rounds to an integer in one operation; rounding once more without FMA moves n only when r
  // is at the end of its interval anyway.
  Expr t = fma(x, log2e, x.num(magic));
  Expr n = t - magic;
  Expr r = fma(n, -f.ln2High, x);
  r = fma(n, -f.ln2Low, r);
  return {expm1Kernel(r), n, t};
}

double twoStepOffset(Expr x) { return 2.0 * formatOf(x).bias; }

/// The processor's own m * 2^n, for vectors that it takes; null for others.
static std::optional<Expr> scaleInstruction(Expr m, Expr n) {
  mlir::Value scaled = m.context->traits.scale(m.b(), m.value, n.value);
  return scaled ? std::optional(Expr(*m.context, scaled)) : std::nullopt;
}

Expr scaleBy(Expr m, Expr n, Expr t) {
  if (std::optional<Expr> scaled = scaleInstruction(m, n))
    return *scaled;
  // The low bits hold n + 2 bias. Halving gives the biased exponents of two factors whose
  // product is 2^n; the first product is exact, the second rounds (subnormals) or overflows.
  int shift = formatOf(t).mantissaBits;
  Expr raw = bits(t);
  Expr half = raw >> 1;
  return m * asFloat(half << shift) * asFloat((raw - half) << shift);
}

static bool hasScaling(Expr x) { return x.context->traits.scales(x.value.getType()); }

/// What `x` may be at least where e^x, or 2^x, is zero below `low`. Results that are zero or below the least normal
/// number take 150 cycles, and under a mask most are zero. The instruction that scales has none of that where they
/// would be so by some hundreds of powers of two: a bound far below costs nothing.
static Expr aboveUnderflow(Expr x, double low) { return atLeast(x, hasScaling(x) ? 100 * low : low); }

/// Without the instruction what is zero has no mantissa, for the same reason.
static Expr mantissaAbove(Expr x, double low, Expr mantissa) {
  return hasScaling(x) ? mantissa : select(x < low, 0.0, mantissa);
}

/// Computes a function of an f32 in vectors of 16 lanes, whatever the number of lanes. For processors with tables.
static Expr inSixteens(Expr x, llvm::function_ref<Expr(Expr)> function) {
  constexpr int64_t full = 16;
  mlir::ImplicitLocOpBuilder &b = x.b();
  auto type = mlir::dyn_cast<mlir::VectorType>(x.value.getType());
  auto wide = mlir::VectorType::get({full}, b.getF32Type());
  auto compute = [&](mlir::Value lanes) { return function({*x.context, lanes}).value; };
  if (type == wide)
    return function(x);
  if (!type) {
    mlir::Value spread = mlir::vector::BroadcastOp::create(b, wide, x.value);
    return {*x.context, mlir::vector::ExtractOp::create(b, compute(spread), 0)};
  }
  int64_t lanes = type.getNumElements();
  mlir::Value found = x.value; // of the same type
  for (int64_t first = 0; first < lanes; first += full) {
    llvm::SmallVector<int64_t> in, out, widen;
    for (int64_t i = 0; i < full; ++i)
      in.push_back(std::min(first + i, lanes - 1));
    mlir::Value part = compute(mlir::vector::ShuffleOp::create(b, x.value, x.value, in));
    for (int64_t i = 0; i < lanes; ++i)
      widen.push_back(std::clamp<int64_t>(i - first, 0, full - 1));
    mlir::Value spread = mlir::vector::ShuffleOp::create(b, part, part, widen);
    for (int64_t i = 0; i < lanes; ++i)
      out.push_back(i >= first ? lanes + i : i);
    found = mlir::vector::ShuffleOp::create(b, found, spread, out);
  }
  return {*x.context, found};
}

/// The elements of a table of 16 that the low four bits of 16 lanes tell.
static Expr lookUp(llvm::ArrayRef<float> table, Expr lanes) {
  mlir::ImplicitLocOpBuilder &b = lanes.b();
  auto type = mlir::cast<mlir::VectorType>(lanes.value.getType());
  mlir::Value values = mlir::arith::ConstantOp::create(b, mlir::DenseElementsAttr::get(type, table));
  return {*lanes.context, lanes.context->traits.lookUp(b, values, bits(lanes).value)};
}

/// 16 lanes brought into [-limit, limit]; a NaN may become either end.
static Expr within(Expr x, double limit) {
  return {*x.context, x.context->traits.within(x.b(), x.value, x.num(limit).value)};
}

/// Adding it rounds to sixteenths, with their number in the low bits.
constexpr double kSixteenths = 0x1.8p19;

/// e^x = 2^n e^r with n in sixteenths, whose fraction a table has, so that |r| <= ln2/32 and e^r - 1 is r + r^2 q(r)
/// with a linear q. r alone is bounded: where x is beyond all results, n is too and scaling by it saturates; for NaN n
/// is NaN.
static Expr expByTable(Expr x) {
  const Format &f = f32Format;
  Expr t = fma(x, log2e, x.num(kSixteenths));
  Expr n = t - kSixteenths;
  Expr r = within(fma(n, -f.ln2Low, fma(n, -f.ln2High, x)), 0.022);
  llvm::SmallVector<float> table;
  for (int i = 0; i < 16; ++i)
    table.push_back(static_cast<float>(std::exp2(i / 16.0)));
  Expr power = lookUp(table, t);
  Expr q = fma(r, coefficients::expTableOddF32[0], r.num(coefficients::expTableEvenF32[0]));
  return *scaleInstruction(fma(power, fma(r * r, q, r), power), n);
}

Expr expAny(Expr x) {
  if (x.isF32() && x.context->traits.hasTables())
    return inSixteens(x, expByTable);
  const Format &f = formatOf(x);
  ExpParts e = reduceExp(atMost(aboveUnderflow(x, f.low), f.high), twoStepOffset(x));
  return scaleBy(mantissaAbove(x, f.low, 1.0 + e.em1), e.n, e.t);
}

/// 2^x: the reduction is exact, r ln2 rounds once.
static Expr exp2Any(Expr x) {
  const Format &f = formatOf(x);
  Expr c = atMost(aboveUnderflow(x, 1.5 * f.low), 1.5 * f.high);
  Expr t = c + (f.magic + twoStepOffset(x));
  Expr n = t - (f.magic + twoStepOffset(x));
  return scaleBy(1.0 + expm1Kernel((c - n) * 0x1.62e42fefa39efp-1), n, t);
}

/// e^x - 1 = 2^n (em1 + (1 - 2^-n)).
static Expr expm1From(ExpParts e) {
  const Format &f = formatOf(e.n);
  // Past 64 the term 2^-n is below the last place; the bound keeps its exponent in range.
  Expr inverse = powerOfTwo((f.magic + f.bias) - atMost(e.n, 64.0));
  return scaleBy(e.em1 + (1.0 - inverse), e.n, e.t);
}

Expr expm1Any(Expr x) {
  const Format &f = formatOf(x);
  ExpParts e = reduceExp(atMost(atLeast(x, f.minusOne), f.high), twoStepOffset(x));
  return copysign(expm1From(e), x); // the sign of x; restores -0
}

/// e^-r, |r| <= ln2/32, as scale * (z^3 + linear z + constant) with z = r - 22 ln2/16: two multiply-adds where a
/// polynomial in r takes three. A cubic has no square about its point of inflection, and Taylor's for e^-r has it at
/// r = 1 (Knuth, The Art of Computer Programming, 4.6.4: adapting coefficients). A whole number of sixteenths costs
/// nothing, and 22 keeps z and z^2 + linear within one binade each, where 23, nearer to 1/ln2 * 16, rounds worse.
/// The best relative error, 2.1e-8.
namespace cubicPower {
constexpr int shift = 22; ///< in sixteenths
constexpr double linear = 0x1.7f1d24p+1, constant = -0x1.fff29p+0, scale = -0x1.662830ee79a1p-3;
} // namespace cubicPower

/// Subtracting it from t = n + kSixteenths leaves n - cubicPower::shift / 16.
constexpr double kShiftedSixteenths = kSixteenths + cubicPower::shift / 16.0;

/// 2^n * unit for t = n + kSixteenths. The low four bits of t look up the fraction; scaling by n - shift/16, which is
/// at hand, leaves its own fraction out and saturates at both ends.
static Expr sixteenthPower(Expr t, double unit) {
  constexpr double shift = cubicPower::shift / 16.0;
  llvm::SmallVector<float> table;
  for (int i = 0; i < 16; ++i)
    table.push_back(static_cast<float>(unit * std::exp2(i / 16.0 - std::floor(i / 16.0 - shift))));
  return inSixteens(t, [&](Expr lanes) { return *scaleInstruction(lookUp(table, lanes), lanes - kShiftedSixteenths); });
}

/// c + c e^(-times x), `times` a power of two or less one. e^-y = 2^n e^-r with n in sixteenths, so |r| <= ln2/32. The
/// reduction takes ln2 in one part, which as an f32 is 1.9e-9 too large: an error of 2.7e-9 |y|, one unit for each 43
/// of a negative y. Multiply-adds are what this costs (comparisons may go to the same ports, additions and scaling to
/// others): five, and the division's two. z is that of cubicPower over `times`, which its polynomial takes in.
static Expr onePlusExpByTable(Expr x, double c, double times = 1) {
  const double square = times * times, cube = square * times;
  Expr t = fma(x, -log2e * times, x.num(kSixteenths));
  Expr z = fma(t - kShiftedSixteenths, std::numbers::ln2 / times, x);
  Expr power = fma(fma(z, z, z.num(cubicPower::linear / square)), z, cubicPower::constant / cube);
  return fma(power, sixteenthPower(t, c * cubicPower::scale * cube), c);
}

/// The unit of sigmoidByTable. Of all mantissas this one's products with cubicPower::scale and 2^(i/16), i < 16, lie
/// nearest to floats: within 0.15 * 2^-23 of them where 1 would have 0.44. The exponent keeps the products of e^104 and
/// e^-20 normal.
constexpr double kSigmoidUnit = 0x1.931b48p-64;

/// 1 / (1 + e^-x).
static Expr sigmoidByTable(Expr x) {
  Expr bounded = atLeast(atMost(x, 20.0), f32Format.low); // 1 above, 0 below
  return kSigmoidUnit / onePlusExpByTable(bounded, kSigmoidUnit);
}

static Expr sigmoidAny(Expr x) {
  if (x.isF32() && x.context->traits.hasTables())
    return sigmoidByTable(x);
  // With e = e^-|x| <= 1: 1/(1+e) or, for negative x, e/(1+e).
  // Without an instruction e is scaled in two steps for the subnormal ones; as n <= 0, the second can be a constant.
  const Format &f = formatOf(x);
  int shift = x.isF32() ? 64 : 512;
  ExpParts p = reduceExp(atLeast(-abs(x), f.low), f.bias + shift);
  std::optional<Expr> scaled = scaleInstruction(1.0 + p.em1, p.n);
  Expr e = scaled ? *scaled : (1.0 + p.em1) * powerOfTwo(p.t) * std::ldexp(1.0, -shift);
  return select(x < 0.0, e, 1.0) / (1.0 + e);
}

/// x / (1 + e^-x). Far below zero e^-x is infinite and the quotient 0 (of infinity, as the product with sigmoid's zero,
/// NaN); far above, the bound keeps the reduced x finite for the product with zero.
static Expr siluByTable(Expr x) { return x / onePlusExpByTable(atMost(x, 128.0), 1.0); }

static Expr siluAny(Expr x) { return x.isF32() && x.context->traits.hasTables() ? siluByTable(x) : x * sigmoidAny(x); }

/// A polynomial near zero; 1 - 2 / (1 + e^2|x|) beyond, of which the rounding errors are halved at least.
static Expr tanhF32(Expr x) {
  constexpr double split = 0.55;
  Expr a = atMost(abs(x), 10.0); // past which the result rounds to 1
  Expr z = x * x;
  Expr small = fma(x * z, poly(z, coefficients::tanhSmallF32), x);
  auto large = [&] {
    if (x.context->traits.hasTables())
      return 1.0 + -2.0 * kSigmoidUnit / onePlusExpByTable(a, kSigmoidUnit, -2);
    ExpParts e = reduceExp(2.0 * a, f32Format.bias);
    Expr s = powerOfTwo(e.t), inverse = 1.0 / fma(s, e.em1, 1.0 + s);
    return fma(inverse, -2.0, x.num(1.0));
  };
  return giveSign(select(a < split, small, large()), x); // restores -0
}

static Expr tanhF64(Expr x) {
  // With e = e^-2|x|: tanh|x| = (1 - e) / (1 + e) near zero and 1 - 2e / (1 + e) beyond 1/2, where
  // the first would lose a bit by rounding 1 - e. Past the bound the result rounds to 1.
  Expr a = atMost(abs(x), 22.0);
  ExpParts e = reduceExp(-2.0 * a, f64Format.bias);
  Expr s = powerOfTwo(e.t), large = a > 0.55;
  Expr power = fma(s, e.em1, s), difference = fma(-s, e.em1, 1.0 - s);
  Expr q = select(large, power, difference) / fma(s, e.em1, 1.0 + s);
  return giveSign(select(large, fma(q, -2.0, q.num(1.0)), q), x);
}

/// e^a / 2 for a >= 0, without overflow before the result does: one less in the exponent.
static Expr halfExp(const ExpParts &e) { return scaleBy(1.0 + e.em1, e.n - 1.0, e.t - 1.0); }

static Expr sinhAny(Expr x) {
  Expr a = atMost(abs(x), formatOf(x).high + 2.0);
  ExpParts e = reduceExp(a, twoStepOffset(x));
  Expr t = expm1From(e);
  Expr small = 0.5 * (t + t / (t + 1.0));
  // Past 22 the term e^-a is below the last place.
  return copysign(select(a < 22.0, small, halfExp(e)), x);
}

static Expr coshAny(Expr x) {
  Expr a = atMost(abs(x), formatOf(x).high + 2.0);
  ExpParts e = reduceExp(a, twoStepOffset(x));
  Expr h = halfExp(e);
  return h + 0.25 / h;
}

} // namespace dmxc::kernels::expr

using namespace dmxc::kernels;
using namespace dmxc::kernels::expr;

mlir::Value VectorMath::exp(Value x) { return apply(x, expAny, expAny); }
mlir::Value VectorMath::exp2(Value x) { return apply(x, exp2Any, exp2Any); }
mlir::Value VectorMath::expm1(Value x) { return apply(x, expm1Any, expm1Any); }
mlir::Value VectorMath::sigmoid(Value x) { return apply(x, sigmoidAny, sigmoidAny); }
mlir::Value VectorMath::silu(Value x) { return apply(x, siluAny, siluAny); }
mlir::Value VectorMath::tanh(Value x) { return apply(x, tanhF32, tanhF64); }
mlir::Value VectorMath::sinh(Value x) { return apply(x, nullptr, sinhAny); }
mlir::Value VectorMath::cosh(Value x) { return apply(x, nullptr, coshAny); }
