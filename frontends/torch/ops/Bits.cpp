//===- Bits.cpp - floats taken apart, steps between them, integers --------===//
#include "Math.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

/// How a float is made of bits: the sign, then the exponent, then the fraction.
struct Layout {
  DType bits; ///< integers of the same width
  int fraction, bias;
};
Layout layoutOf(DType type) {
  switch (type) {
  case DType::F16:
    return {DType::I16, 10, 15};
  case DType::BF16:
    return {DType::I16, 7, 127};
  case DType::F32:
    return {DType::I32, 23, 127};
  default:
    return {DType::I64, 52, 1023};
  }
}
Val bitcast(Emitter &e, const Val &x, DType type) { return e.emitAs<BitcastOp>(e.typeOf(type, x.dims()), {x}); }

/// The same bits as elements of another type.
void importViewType(AtenContext &c) {
  Val x = c.tensor("self");
  DType type = c.type("dtype", x.dtype());
  if (type == x.dtype())
    return c.result(x);
  c.require(dtypeBits(type) == dtypeBits(x.dtype()) && type != DType::Bool && x.dtype() != DType::Bool,
            "a view as another type must have elements of the same width, none of them bool");
  c.result(bitcast(c.e, x, type));
}

void importSignBit(AtenContext &c) {
  Val x = c.tensor("self");
  if (x.dtype() == DType::Bool)
    return c.result(c.e.splat(DType::Bool, x.dims(), 0));
  Val bits = isFloat(x.dtype()) ? bitcast(c.e, x, layoutOf(x.dtype()).bits) : x;
  c.result(c.e.compare(Compare::lt, bits, c.e.intScalar(bits.dtype(), 0)));
}

/// The float beside x on the way to y: floats of one sign are in the order of their bits.
void importNextAfter(AtenContext &c) {
  Emitter &e = c.e;
  std::vector<Val> v = broadcastTogether(c, promote(c, {{c.tensor("self"), false}, {c.tensor("other"), false}}));
  const Val &x = v[0], &y = v[1];
  c.require(isFloat(x.dtype()), "nextafter takes floats");
  const DType type = layoutOf(x.dtype()).bits;
  auto number = [&](int64_t value) { return e.intScalar(type, value); };
  Val bits = bitcast(e, x, type), zero = e.scalarLike(x, 0), up = e.compare(Compare::lt, x, y);
  // Of negative ones the lesser has the greater bits.
  Val away = e.compare(Compare::eq, up, e.compare(Compare::ge, bits, number(0)));
  Val next = bitcast(e, e.add(bits, e.select(away, number(1), number(-1))), x.dtype());
  const int64_t sign = -(int64_t(1) << (dtypeBits(x.dtype()) - 2)) * 2;
  Val least = bitcast(e, e.select(up, number(1), number(sign + 1)), x.dtype());
  next = e.select(e.compare(Compare::eq, x, zero), least, next);
  next = e.select(e.compare(Compare::eq, x, y), y, next);
  c.result(e.select(either(e, isNaN(e, x), isNaN(e, y)), e.add(x, y), next));
}

/// x as a mantissa in [0.5, 1) times a power of two.
void importFrexp(AtenContext &c) {
  Emitter &e = c.e;
  Val x = c.tensor("self");
  c.require(isFloat(x.dtype()), "frexp takes floats");
  const Layout layout = layoutOf(x.dtype());
  auto number = [&](int64_t value) { return e.intScalar(layout.bits, value); };
  const int64_t exponents = (int64_t(1) << (dtypeBits(x.dtype()) - 1 - layout.fraction)) - 1;
  auto exponentOf = [&](const Val &bits) {
    return e.emit<AndOp>({e.emit<ShrOp>({bits, number(layout.fraction)}), number(exponents)});
  };
  // What is too small for an exponent of its own gets one.
  const int64_t lift = layout.fraction + 1;
  Val zero = e.scalarLike(x, 0), bits = bitcast(e, x, layout.bits), field = exponentOf(bits);
  Val small = e.compare(Compare::eq, field, number(0));
  Val lifted = bitcast(e, e.mul(x, std::ldexp(1.0, static_cast<int>(lift))), layout.bits);
  bits = e.select(small, lifted, bits);
  Val exponent = e.add(exponentOf(bits), number(1 - layout.bias));
  exponent = e.sub(exponent, e.select(small, number(lift), number(0)));
  // Sign and fraction with the exponent of a half.
  const int64_t field0 = exponents << layout.fraction;
  Val half = number(static_cast<int64_t>(layout.bias - 1) << layout.fraction);
  Val mantissa = bitcast(e, e.emit<OrOp>({e.emit<AndOp>({bits, number(~field0)}), half}), x.dtype());
  Val plain = either(e, e.compare(Compare::eq, x, zero), e.compare(Compare::eq, field, number(exponents)));
  c.result(0, e.select(plain, x, mantissa));
  c.result(1, c.cast(e.select(plain, number(0), exponent), DType::I32));
}
/// self * 2^other, the power in two halves: it may be no number of the type where the product is one.
void importLdexp(AtenContext &c) {
  Emitter &e = c.e;
  std::vector<Val> v = promote(c, {{c.tensor("self"), false}, {c.tensor("other"), false}});
  Val power = c.cast(v[1], DType::F64), first = e.emit<FloorOp>({e.mul(power, 0.5)});
  auto raised = [&](const Val &by) { return e.emit<PowOp>({e.scalarLike(by, 2), by}); };
  Val product = e.mul(e.mul(c.cast(v[0], DType::F64), raised(first)), raised(e.sub(power, first)));
  c.result(c.cast(product, c.asFloat(v[0]).dtype()));
}

//===--- Integers -----------------------------------------------------------------------===//

/// Euclid's algorithm, of all elements until the last of them ends.
Val commonDivisor(AtenContext &c, const Val &a, const Val &b) {
  Emitter &e = c.e;
  Val zero = e.intScalar(a.dtype(), 0), one = e.intScalar(a.dtype(), 1);
  auto anyLeft = [&](const Val &rest) {
    Val left = e.cast(e.compare(Compare::ne, rest, zero), DType::U8);
    Val flat = e.pad(e.reshape(left, {left.elements()}), e.intScalar(DType::U8, 0), {0}, {1});
    return e.cast(e.reduce(Reduction::max, flat, {0}, false), DType::Bool);
  };
  Val start = absOf(e, b);
  auto step = [&](const Val &, const Val &, llvm::ArrayRef<Val> carried) {
    const Val &large = carried[0], &small = carried[1];
    Val done = e.compare(Compare::eq, small, zero);
    Val rest = e.emit<ModOp>({large, e.select(done, one, small)});
    Val next = e.select(done, zero, rest);
    return std::vector<Val>{anyLeft(next), e.select(done, large, small), next};
  };
  return e.loop(Val(), anyLeft(start), {absOf(e, a), start}, step)[0];
}
std::pair<Val, Val> integerPair(AtenContext &c) {
  std::vector<Val> v = broadcastTogether(c, promote(c, {{c.tensor("self"), false}, {c.tensor("other"), false}}));
  c.require(isInt(v[0].dtype()), "the operands must be integers");
  return {v[0], v[1]};
}
void importGcd(AtenContext &c) {
  auto [a, b] = integerPair(c);
  c.result(commonDivisor(c, a, b));
}
void importLcm(AtenContext &c) {
  auto [a, b] = integerPair(c);
  Val divisor = c.e.max(commonDivisor(c, a, b), c.e.intScalar(a.dtype(), 1)); // 1 where both are 0
  c.result(absOf(c.e, c.e.mul(c.e.div(a, divisor), b)));
}

//===--- Comparisons, distances ---------------------------------------------------------===//

void importHeaviside(AtenContext &c) {
  Val x = c.tensor("self"), values = c.tensor("values");
  c.require(x.dtype() == values.dtype(), "self and values differ in type");
  Val zero = c.like(x, 0), above = c.cast(c.e.compare(Compare::gt, x, zero), x.dtype());
  c.result(c.e.select(c.e.compare(Compare::eq, x, zero), values, above));
}
template <bool positive> void importIsInfinite(AtenContext &c) {
  Val x = c.tensor("self");
  if (!isFloat(x.dtype()))
    return c.result(c.e.splat(DType::Bool, x.dims(), 0));
  c.result(c.e.compare(Compare::eq, x, c.like(x, positive ? INFINITY : -INFINITY)));
}
void importDist(AtenContext &c) {
  Val difference = called(c, "sub.Tensor", {c.arg("self"), c.arg("other")});
  c.result(called(c, "norm.Scalar", {Arg::tensor(difference), c.arg("p")}));
}

} // namespace

std::vector<AtenRow> bitOps() {
  return {
      {"view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", importViewType, "of elements of the same width"},
      {"view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor", importViewType, "of elements of the same width"},
      {"signbit(Tensor self) -> Tensor", importSignBit},
      {"nextafter(Tensor self, Tensor other) -> Tensor", importNextAfter},
      {"frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", importFrexp},
      {"ldexp.Tensor(Tensor self, Tensor other) -> Tensor", importLdexp},
      {"gcd(Tensor self, Tensor other) -> Tensor", importGcd},
      {"lcm(Tensor self, Tensor other) -> Tensor", importLcm},
      {"heaviside(Tensor self, Tensor values) -> Tensor", importHeaviside},
      {"isposinf(Tensor self) -> Tensor", importIsInfinite<true>},
      {"isneginf(Tensor self) -> Tensor", importIsInfinite<false>},
      {"dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", importDist},
  };
}

} // namespace dmxc::torchfe
