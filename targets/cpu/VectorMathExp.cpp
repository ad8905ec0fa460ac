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

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <optional>

namespace dmxc::cpu::expr {

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

/// The level's own m * 2^n, for full vectors of levels that have it; null otherwise.
static std::optional<Expr> scaleInstruction(Expr m, Expr n) {
  auto type = mlir::dyn_cast<mlir::VectorType>(m.value.getType());
  if (!m.context->hasAvx512 || !type || type.getNumElements() * m.width() != 512)
    return std::nullopt;
  mlir::Type flags = m.b().getIntegerType(type.getNumElements()), word = m.b().getI32Type();
  auto number = [&](mlir::Type type, int64_t value) -> mlir::Value {
    return mlir::arith::ConstantOp::create(m.b(), m.b().getIntegerAttr(type, value));
  };
  mlir::Value all = number(flags, -1), asTheEnvironment = number(word, 4);
  auto name =
      m.b().getStringAttr(m.isF32() ? "llvm.x86.avx512.mask.scalef.ps.512" : "llvm.x86.avx512.mask.scalef.pd.512");
  auto call = mlir::LLVM::CallIntrinsicOp::create(m.b(), type, name,
                                                  mlir::ValueRange{m.value, n.value, m.value, all, asTheEnvironment});
  return Expr(*m.context, call.getResult(0));
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

Expr expAny(Expr x) {
  const Format &f = formatOf(x);
  ExpParts e = reduceExp(atMost(atLeast(x, f.low), f.high), twoStepOffset(x));
  return scaleBy(1.0 + e.em1, e.n, e.t);
}

/// 2^x: the reduction is exact, r ln2 rounds once.
static Expr exp2Any(Expr x) {
  const Format &f = formatOf(x);
  Expr c = atMost(atLeast(x, 1.5 * f.low), 1.5 * f.high);
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

/// The unit of sigmoidByTable. Of all mantissas this one's products with 2^(i/16), i < 16, lie nearest to floats:
/// within 0.13 * 2^-23 of them where 1 would have 0.4. The exponent keeps the products of e^104 and e^-20 normal.
constexpr double kSigmoidUnit = 0x1.d026fcp-64;

/// The elements of a table of 16 that the low four bits of an i32, or of each of a vector, tell. For AVX-512.
static Expr lookUp(llvm::ArrayRef<int32_t> table, Expr index) {
  mlir::ImplicitLocOpBuilder &b = index.b();
  auto full = mlir::VectorType::get({16}, b.getI32Type());
  mlir::Value values = mlir::arith::ConstantOp::create(b, mlir::DenseElementsAttr::get(full, table));
  auto permuted = [&](mlir::Value indices) -> mlir::Value {
    return mlir::LLVM::CallIntrinsicOp::create(b, full, b.getStringAttr("llvm.x86.avx512.permvar.si.512"),
                                               mlir::ValueRange{values, indices})
        .getResult(0);
  };
  auto type = mlir::dyn_cast<mlir::VectorType>(index.value.getType());
  if (type == full)
    return {*index.context, permuted(index.value)};
  if (!type) {
    mlir::Value spread = mlir::vector::BroadcastOp::create(b, full, index.value);
    return {*index.context, mlir::vector::ExtractOp::create(b, permuted(spread), 0)};
  }
  // Any other number of lanes, 16 at a time.
  int64_t lanes = type.getNumElements();
  mlir::Value found = index.value; // of the same type
  for (int64_t first = 0; first < lanes; first += 16) {
    llvm::SmallVector<int64_t> in, out;
    for (int64_t i = 0; i < 16; ++i)
      in.push_back(std::min(first + i, lanes - 1));
    mlir::Value part = permuted(mlir::vector::ShuffleOp::create(b, index.value, index.value, in));
    llvm::SmallVector<int64_t> widen;
    for (int64_t i = 0; i < lanes; ++i)
      widen.push_back(std::clamp<int64_t>(i - first, 0, 15));
    mlir::Value spread = mlir::vector::ShuffleOp::create(b, part, part, widen);
    for (int64_t i = 0; i < lanes; ++i)
      out.push_back(i >= first ? lanes + i : i);
    found = mlir::vector::ShuffleOp::create(b, found, spread, out);
  }
  return {*index.context, found};
}

/// 2^(t - magic) * unit for t that was rounded to sixteenths by adding magic = 1.5 * 2^19. The low four bits of t look
/// up its fraction; the others, added to the exponent, bring those bits and magic's along, which the table takes back.
static Expr sixteenthPower(Expr t, double unit) {
  llvm::SmallVector<int32_t> table;
  for (uint32_t i = 0; i < 16; ++i)
    table.push_back(static_cast<int32_t>(std::bit_cast<uint32_t>(static_cast<float>(unit * std::exp2(i / 16.0))) -
                                         ((std::bit_cast<uint32_t>(0x1.8p19f) + i) << 19)));
  Expr index = bits(t);
  return asFloat(lookUp(table, index) + (index << 19));
}

/// c + c e^-x where c e^-x is a normal number. e^-x = 2^n e^-r with n in sixteenths, so |r| <= R = ln2/32 and Taylor's
/// terms to r^3 leave out r^4/24; 0.0345 R^2 r^2 more, the best that r^2 can do for it, leaves 1.6e-9.
/// The reduction takes ln2 in one part, which as an f32 is 1.9e-9 too large: an error of 2.7e-9 |x|, one unit for each
/// 43 of a negative x. Multiply-adds are what this costs, and the second part would be a seventh of them.
static Expr onePlusExpByTable(Expr x, double c) {
  constexpr double magic = 0x1.8p19;
  Expr t = fma(x, -log2e, x.num(magic));
  Expr n = t - magic;
  Expr r = fma(n, std::numbers::ln2, x);
  Expr power = fma(fma(fma(r, -1.0 / 6, r.num(0.5 + 1.62e-5)), r, -1.0), r, 1.0);
  return fma(power, sixteenthPower(t, c), c);
}

/// 1 / (1 + e^-x).
static Expr sigmoidByTable(Expr x) {
  Expr bounded = atLeast(atMost(x, 20.0), f32Format.low); // 1 above, 0 below
  return kSigmoidUnit / onePlusExpByTable(bounded, kSigmoidUnit);
}

static Expr sigmoidAny(Expr x) {
  if (x.isF32() && x.context->hasAvx512)
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

/// x / (1 + e^-x): no product, so the unit is 1 and e^-x must stay below 2^127. What lies beyond, past -2^-120, is 0;
/// of infinity, as the product with sigmoid's zero, NaN.
static Expr siluByTable(Expr x) {
  Expr quotient = x / onePlusExpByTable(atMost(x, 87.0), 1.0);
  return select(x < -88.0, x - x, quotient);
}

static Expr siluAny(Expr x) { return x.isF32() && x.context->hasAvx512 ? siluByTable(x) : x * sigmoidAny(x); }

/// A polynomial near zero; 1 - 2 / (1 + e^2|x|) beyond, of which the rounding errors are halved at least.
static Expr tanhF32(Expr x) {
  constexpr double split = 0.55;
  Expr a = atMost(abs(x), 10.0); // past which the result rounds to 1
  Expr z = x * x;
  Expr small = fma(x * z, poly(z, coefficients::tanhSmallF32), x);
  auto inverse = [&] { // 1 / (1 + e^2a)
    if (x.context->hasAvx512)
      return sigmoidByTable(-2.0 * a);
    ExpParts e = reduceExp(2.0 * a, f32Format.bias);
    Expr s = powerOfTwo(e.t);
    return 1.0 / fma(s, e.em1, 1.0 + s);
  };
  return giveSign(select(a < split, small, fma(inverse(), -2.0, x.num(1.0))), x); // restores -0
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

} // namespace dmxc::cpu::expr

using namespace dmxc::cpu;
using namespace dmxc::cpu::expr;

mlir::Value VectorMath::exp(Value x) { return apply(x, expAny, expAny); }
mlir::Value VectorMath::exp2(Value x) { return apply(x, exp2Any, exp2Any); }
mlir::Value VectorMath::expm1(Value x) { return apply(x, expm1Any, expm1Any); }
mlir::Value VectorMath::sigmoid(Value x) { return apply(x, sigmoidAny, sigmoidAny); }
mlir::Value VectorMath::silu(Value x) { return apply(x, siluAny, siluAny); }
mlir::Value VectorMath::tanh(Value x) { return apply(x, tanhF32, tanhF64); }
mlir::Value VectorMath::sinh(Value x) { return apply(x, nullptr, sinhAny); }
mlir::Value VectorMath::cosh(Value x) { return apply(x, nullptr, coshAny); }
