//===- Elementwise.cpp - arithmetic and comparisons -----------------------===//
#include "Math.h"

#include "frontends/common/ops/special/SpecialFunctions.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

//===--- One operand ------------------------------------------------------------===//

template <typename Op> void unaryFloat(AtenContext &c) { c.result(c.e.emit<Op>({c.asFloat(c.tensor("self"))})); }

/// abs, neg, sign, relu: any number; bool has its own meaning or none.
template <typename Op> void unaryNumber(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(x.dtype() == DType::Bool ? x : c.e.emit<Op>({x}));
}

/// Of NaN it is 0.
void importSign(AtenContext &c) {
  Val x = c.tensor("self");
  if (x.dtype() == DType::Bool)
    return c.result(x);
  Val sign = c.e.emit<SignOp>({x});
  c.result(isFloat(x.dtype()) ? c.e.select(isNaN(c.e, x), c.like(x, 0), sign) : sign);
}

/// ceil, floor, round, trunc: integers are what they are.
template <typename Op> void rounding(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(isFloat(x.dtype()) ? c.e.emit<Op>({x}) : x);
}

Val truncated(Emitter &e, const Val &x) {
  Val whole = e.emit<FloorOp>({absOf(e, x)});
  return e.select(e.compare(Compare::lt, x, e.scalarLike(x, 0)), negOf(e, whole), whole);
}
void importTrunc(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(isFloat(x.dtype()) ? truncated(c.e, x) : x);
}
void importFrac(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(c.e.sub(x, truncated(c.e, x)));
}

template <typename Formula> void wideFloat(AtenContext &c, Formula formula) {
  c.result(computeWide(c, c.asFloat(c.tensor("self")), formula));
}
void importLog10(AtenContext &c) {
  wideFloat(c, [&](const Val &x) { return c.e.mul(logOf(c.e, x), 1 / std::log(10.0)); });
}
void importRsqrt(AtenContext &c) {
  wideFloat(c, [&](const Val &x) { return reciprocal(c.e, sqrtOf(c.e, x)); });
}
void importExp2(AtenContext &c) {
  wideFloat(c, [&](const Val &x) { return c.e.emit<PowOp>({c.e.scalarLike(x, 2), x}); });
}
void importErfc(AtenContext &c) {
  wideFloat(c, [&](const Val &x) { return erfcOf(c.e, x); });
}

/// Giles' approximation, good to f32, then two steps of Newton's method.
void importErfinv(AtenContext &c) {
  wideFloat(c, [&](const Val &x) {
    Emitter &e = c.e;
    Val w = negOf(e, e.emit<Log1pOp>({negOf(e, square(e, x))}));
    Val near = polynomial(e, e.add(w, -2.5),
                          {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                           -0.00125372503, -0.00417768164, 0.246640727, 1.50140941});
    Val far = polynomial(e, e.add(sqrtOf(e, w), -3.0),
                         {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
                          0.00943887047, 1.00167406, 2.83297682});
    Val y = e.mul(e.select(e.compare(Compare::lt, w, e.scalarLike(w, 5)), near, far), x);
    for (int step = 0; step < 2; ++step) {
      Val wrong = e.sub(e.emit<ErfOp>({y}), x);
      y = e.sub(y, e.div(wrong, e.mul(expOf(e, negOf(e, square(e, y))), 2 / std::sqrt(M_PI))));
    }
    Val one = e.scalarLike(x, 1), infinite = e.mul(x, INFINITY);
    return e.select(e.compare(Compare::eq, absOf(e, x), one), infinite, y);
  });
}

template <typename Test> void floatTest(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(isFloat(x.dtype()) ? c.e.emit<Test>({x}) : c.e.splat(DType::Bool, x.dims(), 0));
}
void importIsFinite(AtenContext &c) {
  Val x = c.tensor("self");
  if (!isFloat(x.dtype()))
    return c.result(c.e.splat(DType::Bool, x.dims(), 1));
  c.result(notOf(c.e, either(c.e, isNaN(c.e, x), c.e.emit<IsInfOp>({x}))));
}
void importBitwiseNot(AtenContext &c) { c.result(notOf(c.e, c.tensor("self"))); }
void importLogicalNot(AtenContext &c) { c.result(notOf(c.e, c.truth(c.tensor("self")))); }
void importSquare(AtenContext &c) { c.result(square(c.e, c.tensor("self"))); }
void importSame(AtenContext &c) { c.result(c.tensor("self")); }

void importReciprocal(AtenContext &c) { c.result(reciprocal(c.e, c.asFloat(c.tensor("self")))); }

void importNanToNum(AtenContext &c) {
  Val x = c.tensor("self");
  if (!isFloat(x.dtype()))
    return c.result(x);
  double highest = x.dtype() == DType::F16    ? 65504
                   : x.dtype() == DType::BF16 ? 3.3895313892515355e38
                   : x.dtype() == DType::F32  ? 3.4028234663852886e38
                                              : 1.7976931348623157e308;
  Val top = c.like(x, c.number("posinf", highest)), bottom = c.like(x, c.number("neginf", -highest));
  Val finite =
      c.e.select(c.e.emit<IsInfOp>({x}), c.e.select(c.e.compare(Compare::gt, x, c.like(x, 0)), top, bottom), x);
  c.result(c.e.select(isNaN(c.e, x), c.like(x, c.number("nan", 0)), finite));
}

void importRoundDecimals(AtenContext &c) {
  Val x = c.tensor("self");
  double scale = std::pow(10.0, static_cast<double>(c.integer("decimals")));
  c.result(isFloat(x.dtype()) ? c.e.div(c.e.emit<RoundOp>({c.e.mul(x, scale)}), c.like(x, scale)) : x);
}

//===--- Two operands -----------------------------------------------------------===//

/// self and other with the type that both are computed in.
std::pair<Val, Val> operands(AtenContext &c, const char *first = "self", const char *second = "other") {
  std::vector<Val> values = promote(c, {c.operand(first), c.operand(second)});
  return {values[0], values[1]};
}
std::pair<Val, Val> floatOperands(AtenContext &c, const char *first = "self", const char *second = "other") {
  auto [a, b] = operands(c, first, second);
  return {c.asFloat(a), c.asFloat(b)};
}

void importAdd(AtenContext &c) {
  auto [a, b] = operands(c);
  c.result(a.dtype() == DType::Bool ? either(c.e, a, b) : c.e.add(a, scaled(c, b)));
}
void importSub(AtenContext &c) {
  auto [a, b] = operands(c);
  c.require(a.dtype() != DType::Bool, "torch does not subtract bools");
  c.result(c.e.sub(a, scaled(c, b)));
}
void importRsub(AtenContext &c) {
  auto [a, b] = operands(c);
  c.require(a.dtype() != DType::Bool, "torch does not subtract bools");
  c.result(c.e.sub(b, scaled(c, a)));
}
void importMul(AtenContext &c) {
  auto [a, b] = operands(c);
  c.result(a.dtype() == DType::Bool ? both(c.e, a, b) : c.e.mul(a, b));
}

/// a / b rounded to minus infinity, as Python does: exact where the quotient is near an integer.
Val floorDivided(AtenContext &c, const Val &a, const Val &b) {
  Emitter &e = c.e;
  if (!isFloat(a.dtype())) {
    Val rest = e.emit<ModOp>({a, b}); // has b's sign, so that the division leaves none
    return e.div(e.sub(a, rest), b);
  }
  Val x = c.wide(a), y = c.wide(b);
  Val zero = e.scalarLike(x, 0), rest = e.emit<FmodOp>({x, y}), quotient = e.div(e.sub(x, rest), y);
  Val differ = e.emit<XorOp>({e.compare(Compare::lt, rest, zero), e.compare(Compare::lt, y, zero)});
  Val below = both(e, e.compare(Compare::ne, rest, zero), differ);
  quotient = e.select(below, e.add(quotient, -1.0), quotient);
  Val whole = e.emit<FloorOp>({quotient});
  whole = e.select(e.compare(Compare::gt, e.sub(quotient, whole), e.scalarLike(x, 0.5)), e.add(whole, 1.0), whole);
  Val result = e.select(e.compare(Compare::eq, y, zero), e.div(x, y), whole);
  return c.cast(result, a.dtype());
}

void importDiv(AtenContext &c) {
  std::string mode = c.text("rounding_mode", "");
  if (mode.empty()) {
    auto [a, b] = floatOperands(c);
    return c.result(c.e.div(a, b));
  }
  c.require(mode == "floor" || mode == "trunc", "the rounding mode '" + mode + "' is unknown");
  auto [a, b] = operands(c);
  if (mode == "floor")
    return c.result(floorDivided(c, a, b));
  Val quotient = c.e.div(a, b);
  c.result(isFloat(a.dtype()) ? truncated(c.e, quotient) : quotient);
}
void importFloorDivide(AtenContext &c) {
  auto [a, b] = operands(c);
  c.result(floorDivided(c, a, b));
}

template <typename Op> void binary(AtenContext &c) {
  auto [a, b] = operands(c);
  c.result(c.e.emit<Op>({a, b}));
}
template <typename Op> void shift(AtenContext &c) {
  auto [a, b] = operands(c);
  c.require(isInt(a.dtype()), "shifts take integers");
  c.result(c.e.emit<Op>({a, b}));
}

/// maximum and minimum; of bools they are or and and.
template <typename Op, typename BoolOp> void extremum(AtenContext &c) {
  auto [a, b] = operands(c);
  c.result(a.dtype() == DType::Bool ? c.e.emit<BoolOp>({a, b}) : c.e.emit<Op>({a, b}));
}
/// fmax and fmin: NaN only where both are.
template <typename Op> void extremumOfNumbers(AtenContext &c) {
  auto [a, b] = operands(c);
  Val best = c.e.emit<Op>({a, b});
  if (isFloat(a.dtype()))
    best = c.e.select(isNaN(c.e, a), b, c.e.select(isNaN(c.e, b), a, best));
  c.result(best);
}

void importPow(AtenContext &c) {
  if (c.arg("exponent").kind != Arg::Kind::Tensor && !c.arg("exponent").numbers.empty()) {
    auto [x, unused] = operands(c, "self", "exponent");
    return c.result(powerOf(c.e, x, c.number("exponent")));
  }
  if (c.arg("exponent").kind == Arg::Kind::Int && c.arg("exponent").ints[0].isStatic()) {
    auto [x, unused] = operands(c, "self", "exponent");
    c.require(isFloat(x.dtype()) || c.integer("exponent") >= 0, "torch takes no integers to negative powers");
    return c.result(powerOf(c.e, x, c.number("exponent")));
  }
  auto [a, b] = operands(c, "self", "exponent");
  c.result(c.e.emit<PowOp>({a, b}));
}

void importAtan2(AtenContext &c) {
  auto [y, x] = floatOperands(c);
  Emitter &e = c.e;
  Val a = c.wide(y), b = c.wide(x), zero = e.scalarLike(a, 0);
  auto number = [&](double value) { return e.scalarLike(a, value); };
  // The sign of a zero: 1/x of it is an infinity.
  auto negative = [&](const Val &v) {
    return e.compare(Compare::lt, e.select(e.compare(Compare::eq, v, zero), reciprocal(e, v), v), zero);
  };
  Val up = absOf(e, a), right = absOf(e, b);
  // The smaller over the larger keeps the quotient in [0, 1]; 0/0 and inf/inf are 0 and 1.
  Val larger = e.max(up, right), smaller = e.min(up, right);
  Val quotient = e.div(smaller, larger);
  quotient = e.select(e.compare(Compare::eq, larger, zero), zero, quotient);
  Val infinite = e.compare(Compare::eq, smaller, number(INFINITY));
  quotient = e.select(infinite, number(1), quotient);
  Val angle = e.emit<AtanOp>({quotient});
  angle = e.select(e.compare(Compare::gt, up, right), e.sub(number(M_PI / 2), angle), angle);
  angle = e.select(negative(b), e.sub(number(M_PI), angle), angle);
  angle = e.select(negative(a), negOf(e, angle), angle);
  c.result(c.cast(angle, y.dtype()));
}

void importCopysign(AtenContext &c) {
  auto [a, b] = floatOperands(c);
  Val zero = c.like(b, 0), sign = c.e.select(c.e.compare(Compare::eq, b, zero), reciprocal(c.e, b), b);
  Val size = absOf(c.e, a);
  c.result(c.e.select(c.e.compare(Compare::lt, sign, zero), negOf(c.e, size), size));
}
void importHypot(AtenContext &c) {
  auto [a, b] = floatOperands(c);
  c.result(c.cast(sqrtOf(c.e, c.e.add(square(c.e, c.wide(a)), square(c.e, c.wide(b)))), a.dtype()));
}
/// x * log(y), 0 where x is.
template <typename Log> void importXlogy(AtenContext &c) {
  auto [x, y] = floatOperands(c);
  Val product = c.e.mul(x, c.e.emit<Log>({y}));
  c.result(c.e.select(both(c.e, c.e.compare(Compare::eq, x, c.like(x, 0)), notOf(c.e, isNaN(c.e, y))), c.like(x, 0),
                      product));
}

template <Compare kind> void comparison(AtenContext &c) {
  auto [a, b] = operands(c);
  c.result(c.e.compare(kind, a, b));
}
template <typename Op> void logical(AtenContext &c) {
  c.result(c.e.emit<Op>({c.truth(c.tensor("self")), c.truth(c.tensor("other"))}));
}

void unaryRows(std::vector<AtenRow> &rows) {
  const AtenRow list[] = {
      {"abs(Tensor self) -> Tensor", unaryNumber<AbsOp>},
      {"neg(Tensor self) -> Tensor", unaryNumber<NegOp>},
      {"sign(Tensor self) -> Tensor", importSign},
      {"sgn(Tensor self) -> Tensor", importSign},
      {"relu(Tensor self) -> Tensor", unaryNumber<ReluOp>},
      {"positive(Tensor(a) self) -> Tensor(a)", importSame},
      {"square(Tensor self) -> Tensor", importSquare},
      {"ceil(Tensor self) -> Tensor", rounding<CeilOp>},
      {"floor(Tensor self) -> Tensor", rounding<FloorOp>},
      {"round(Tensor self) -> Tensor", rounding<RoundOp>},
      {"round.decimals(Tensor self, *, int decimals) -> Tensor", importRoundDecimals},
      {"special_round(Tensor self, *, int decimals=0) -> Tensor", importRoundDecimals},
      {"trunc(Tensor self) -> Tensor", importTrunc},
      {"fix(Tensor self) -> Tensor", importTrunc},
      {"frac(Tensor self) -> Tensor", importFrac},
      {"sqrt(Tensor self) -> Tensor", unaryFloat<SqrtOp>},
      {"rsqrt(Tensor self) -> Tensor", importRsqrt},
      {"reciprocal(Tensor self) -> Tensor", importReciprocal},
      {"exp(Tensor self) -> Tensor", unaryFloat<ExpOp>},
      {"exp2(Tensor self) -> Tensor", importExp2},
      {"expm1(Tensor self) -> Tensor", unaryFloat<Expm1Op>},
      {"log(Tensor self) -> Tensor", unaryFloat<LogOp>},
      {"log1p(Tensor self) -> Tensor", unaryFloat<Log1pOp>},
      {"log2(Tensor self) -> Tensor", unaryFloat<Log2Op>},
      {"log10(Tensor self) -> Tensor", importLog10},
      {"sin(Tensor self) -> Tensor", unaryFloat<SinOp>},
      {"cos(Tensor self) -> Tensor", unaryFloat<CosOp>},
      {"tan(Tensor self) -> Tensor", unaryFloat<TanOp>},
      {"asin(Tensor self) -> Tensor", unaryFloat<AsinOp>},
      {"acos(Tensor self) -> Tensor", unaryFloat<AcosOp>},
      {"atan(Tensor self) -> Tensor", unaryFloat<AtanOp>},
      {"sinh(Tensor self) -> Tensor", unaryFloat<SinhOp>},
      {"cosh(Tensor self) -> Tensor", unaryFloat<CoshOp>},
      {"tanh(Tensor self) -> Tensor", unaryFloat<TanhOp>},
      {"asinh(Tensor self) -> Tensor", unaryFloat<AsinhOp>},
      {"acosh(Tensor self) -> Tensor", unaryFloat<AcoshOp>},
      {"atanh(Tensor self) -> Tensor", unaryFloat<AtanhOp>},
      {"erf(Tensor self) -> Tensor", unaryFloat<ErfOp>},
      {"erfc(Tensor self) -> Tensor", importErfc},
      {"erfinv(Tensor self) -> Tensor", importErfinv},
      {"sigmoid(Tensor self) -> Tensor", unaryFloat<SigmoidOp>},
      {"isnan(Tensor self) -> Tensor", floatTest<IsNaNOp>},
      {"isinf(Tensor self) -> Tensor", floatTest<IsInfOp>},
      {"isfinite(Tensor self) -> Tensor", importIsFinite},
      {"bitwise_not(Tensor self) -> Tensor", importBitwiseNot},
      {"logical_not(Tensor self) -> Tensor", importLogicalNot},
      {"nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", importNanToNum},
  };
  rows.insert(rows.end(), std::begin(list), std::end(list));
}

void binaryRows(std::vector<AtenRow> &rows) {
  const AtenRow list[] = {
      {"add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", importAdd},
      {"add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", importAdd},
      {"sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", importSub},
      {"sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", importSub},
      {"rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", importRsub},
      {"rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", importRsub},
      {"mul.Tensor(Tensor self, Tensor other) -> Tensor", importMul},
      {"mul.Scalar(Tensor self, Scalar other) -> Tensor", importMul},
      {"div.Tensor(Tensor self, Tensor other) -> Tensor", importDiv},
      {"div.Scalar(Tensor self, Scalar other) -> Tensor", importDiv},
      {"div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", importDiv},
      {"div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", importDiv},
      {"true_divide.Tensor(Tensor self, Tensor other) -> Tensor", importDiv},
      {"true_divide.Scalar(Tensor self, Scalar other) -> Tensor", importDiv},
      {"floor_divide(Tensor self, Tensor other) -> Tensor", importFloorDivide},
      {"floor_divide.Scalar(Tensor self, Scalar other) -> Tensor", importFloorDivide},
      {"fmod.Tensor(Tensor self, Tensor other) -> Tensor", binary<FmodOp>},
      {"fmod.Scalar(Tensor self, Scalar other) -> Tensor", binary<FmodOp>},
      {"remainder.Tensor(Tensor self, Tensor other) -> Tensor", binary<ModOp>},
      {"remainder.Scalar(Tensor self, Scalar other) -> Tensor", binary<ModOp>},
      {"remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", binary<ModOp>},
      {"pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", importPow},
      {"pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", importPow},
      {"pow.Scalar(Scalar self, Tensor exponent) -> Tensor", importPow},
      {"maximum(Tensor self, Tensor other) -> Tensor", extremum<MaxOp, OrOp>},
      {"minimum(Tensor self, Tensor other) -> Tensor", extremum<MinOp, AndOp>},
      {"max.other(Tensor self, Tensor other) -> Tensor", extremum<MaxOp, OrOp>},
      {"min.other(Tensor self, Tensor other) -> Tensor", extremum<MinOp, AndOp>},
      {"fmax(Tensor self, Tensor other) -> Tensor", extremumOfNumbers<MaxOp>},
      {"fmin(Tensor self, Tensor other) -> Tensor", extremumOfNumbers<MinOp>},
      {"atan2(Tensor self, Tensor other) -> Tensor", importAtan2},
      {"atan2.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", importAtan2},
      {"copysign.Tensor(Tensor self, Tensor other) -> Tensor", importCopysign},
      {"copysign.Scalar(Tensor self, Scalar other) -> Tensor", importCopysign},
      {"hypot(Tensor self, Tensor other) -> Tensor", importHypot},
      {"xlogy.Tensor(Tensor self, Tensor other) -> Tensor", importXlogy<LogOp>},
      {"special_xlogy(Tensor self, Tensor other) -> Tensor", importXlogy<LogOp>},
      {"special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor", importXlogy<LogOp>},
      {"special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor", importXlogy<LogOp>},
      {"special_xlog1py(Tensor self, Tensor other) -> Tensor", importXlogy<Log1pOp>},
      {"special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor", importXlogy<Log1pOp>},
      {"special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor", importXlogy<Log1pOp>},
      {"xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor", importXlogy<LogOp>},
      {"xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor", importXlogy<LogOp>},
      {"bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor", binary<AndOp>},
      {"bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", binary<AndOp>},
      {"bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor", binary<AndOp>},
      {"bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor", binary<OrOp>},
      {"bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", binary<OrOp>},
      {"bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor", binary<OrOp>},
      {"bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor", binary<XorOp>},
      {"bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", binary<XorOp>},
      {"bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor", binary<XorOp>},
      {"bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor", shift<ShlOp>},
      {"bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor", shift<ShlOp>},
      {"bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor", shift<ShrOp>},
      {"bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor", shift<ShrOp>},
      {"__lshift__.Tensor(Tensor self, Tensor other) -> Tensor", shift<ShlOp>},
      {"__lshift__.Scalar(Tensor self, Scalar other) -> Tensor", shift<ShlOp>},
      {"bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", shift<ShlOp>},
      {"__rshift__.Tensor(Tensor self, Tensor other) -> Tensor", shift<ShrOp>},
      {"__rshift__.Scalar(Tensor self, Scalar other) -> Tensor", shift<ShrOp>},
      {"bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", shift<ShrOp>},
      {"__and__.Tensor(Tensor self, Tensor other) -> Tensor", binary<AndOp>},
      {"__or__.Tensor(Tensor self, Tensor other) -> Tensor", binary<OrOp>},
      {"__xor__.Tensor(Tensor self, Tensor other) -> Tensor", binary<XorOp>},
      {"__and__.Scalar(Tensor self, Scalar other) -> Tensor", binary<AndOp>},
      {"__or__.Scalar(Tensor self, Scalar other) -> Tensor", binary<OrOp>},
      {"__xor__.Scalar(Tensor self, Scalar other) -> Tensor", binary<XorOp>},
      {"logical_and(Tensor self, Tensor other) -> Tensor", logical<AndOp>},
      {"logical_or(Tensor self, Tensor other) -> Tensor", logical<OrOp>},
      {"logical_xor(Tensor self, Tensor other) -> Tensor", logical<XorOp>},
      {"eq.Tensor(Tensor self, Tensor other) -> Tensor", comparison<Compare::eq>},
      {"eq.Scalar(Tensor self, Scalar other) -> Tensor", comparison<Compare::eq>},
      {"ne.Tensor(Tensor self, Tensor other) -> Tensor", comparison<Compare::ne>},
      {"ne.Scalar(Tensor self, Scalar other) -> Tensor", comparison<Compare::ne>},
      {"lt.Tensor(Tensor self, Tensor other) -> Tensor", comparison<Compare::lt>},
      {"lt.Scalar(Tensor self, Scalar other) -> Tensor", comparison<Compare::lt>},
      {"le.Tensor(Tensor self, Tensor other) -> Tensor", comparison<Compare::le>},
      {"le.Scalar(Tensor self, Scalar other) -> Tensor", comparison<Compare::le>},
      {"gt.Tensor(Tensor self, Tensor other) -> Tensor", comparison<Compare::gt>},
      {"gt.Scalar(Tensor self, Scalar other) -> Tensor", comparison<Compare::gt>},
      {"ge.Tensor(Tensor self, Tensor other) -> Tensor", comparison<Compare::ge>},
      {"ge.Scalar(Tensor self, Scalar other) -> Tensor", comparison<Compare::ge>},
  };
  rows.insert(rows.end(), std::begin(list), std::end(list));
}

} // namespace

std::vector<AtenRow> elementwiseOps() {
  std::vector<AtenRow> rows;
  unaryRows(rows);
  binaryRows(rows);
  return rows;
}

} // namespace dmxc::torchfe
