//===- ElementArith.cpp - elementwise ops on kernel values --------------------===//
//
// Each op as its definition in DMIROps.td says and src/Reference computes it: integers wrap, floats
// narrower than f32 are computed in f32, and the result is rounded to its element type once.
//
//===----------------------------------------------------------------------===//

#include "ElementExpr.h"
#include "targets/common/math/VectorMath.h"

#include "dmx/dmx_kernel.h"
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/DMIR.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;
using arith::CmpFPredicate;
using arith::CmpIPredicate;

/// Whether a float is NaN or within 2^30 of 0: a min of a max with such numbers, or the other way round.
static bool isClamped(Value value) {
  auto inside = [](Value of) -> Value { // the other operand of a min or max with such a number
    Operation *op = of ? of.getDefiningOp() : nullptr;
    for (unsigned number = 0; isa_and_nonnull<dmir::MinOp, dmir::MaxOp>(op) && number < 2; ++number) {
      std::optional<Tensor> bound = dmir::constantTensor(op->getOperand(number));
      if (bound && bound->numElements() == 1 && std::abs(bound->asDouble(0)) <= 0x1p30)
        return op->getOperand(1 - number);
    }
    return {};
  };
  Value between = inside(value);
  return inside(between) && value.getDefiningOp()->getName() != between.getDefiningOp()->getName();
}

namespace {

/// One op being emitted: its operands in computed form.
struct Emitter {
  ElementExpr &e;
  KernelBuilder &b;
  Operation *op;
  Type in, out; ///< element types of the first operand and the result, as in DMIR
  SmallVector<Value> x;
  Value raw; ///< the first operand as it is carried
  bool isFloat, isUnsigned;

  Emitter(ElementExpr &e, Operation *op, ArrayRef<Value> operands) : e(e), b(e.builder()), op(op) {
    in = getElementTypeOrSelf(op->getOperand(0).getType());
    out = getElementTypeOrSelf(op->getResult(0).getType());
    raw = operands.front();
    for (auto [operand, value] : llvm::zip(op->getOperands(), operands))
      x.push_back(e.widen(value, getElementTypeOrSelf(operand.getType())));
    isFloat = mlir::isa<FloatType>(in);
    isUnsigned = isUnsignedElement(in);
  }

  VectorMath math() { return VectorMath(b, b.processor()); }
  Type type() const { return x[0].getType(); }
  template <typename Op> Value unary() { return Op::create(b, x[0]); }
  template <typename Op> Value binary() { return Op::create(b, x[0], x[1]); }
  template <typename Float, typename Int> Value binary() { return isFloat ? binary<Float>() : binary<Int>(); }
  Value num(double v) { return b.constant(type(), v); }
  Value integer(int64_t v) { return b.constantInt(type(), v); }
  Value select(Value c, Value t, Value f) { return arith::SelectOp::create(b, c, t, f); }
  Value cmp(CmpIPredicate p, Value l, Value r) { return arith::CmpIOp::create(b, p, l, r); }
  Value cmp(CmpFPredicate p, Value l, Value r) { return arith::CmpFOp::create(b, p, l, r); }
  Value bitOr(Value l, Value r) { return arith::OrIOp::create(b, l, r); }
  unsigned width() const { return getElementTypeOrSelf(type()).getIntOrFloatBitWidth(); }

  Value abs() {
    if (isFloat)
      return unary<math::AbsFOp>();
    if (isUnsigned)
      return x[0];
    Value negated = arith::SubIOp::create(b, integer(0), x[0]);
    return select(cmp(CmpIPredicate::slt, x[0], integer(0)), negated, x[0]);
  }

  Value sign() {
    if (isFloat) {
      Value one = select(cmp(CmpFPredicate::OGT, x[0], num(0)), num(1), num(0));
      Value either = select(cmp(CmpFPredicate::OLT, x[0], num(0)), num(-1), one);
      return select(cmp(CmpFPredicate::UNO, x[0], x[0]), x[0], either);
    }
    Value one =
        select(cmp(isUnsigned ? CmpIPredicate::ugt : CmpIPredicate::sgt, x[0], integer(0)), integer(1), integer(0));
    return isUnsigned ? one : select(cmp(CmpIPredicate::slt, x[0], integer(0)), integer(-1), one);
  }

  Value relu() {
    if (isFloat) // NaN > 0 as an unordered comparison: stays
      return select(cmp(CmpFPredicate::UGT, x[0], num(0)), x[0], num(0));
    return isUnsigned ? x[0] : Value(arith::MaxSIOp::create(b, x[0], integer(0)));
  }

  /// The divisor where it is harmless: 1 in the place of 0, which fails the kernel, and of -1, which
  /// traps on some processors with the smallest integer.
  Value safeDivisor(Value &isMinusOne) {
    Value zero = cmp(CmpIPredicate::eq, x[1], integer(0));
    e.failIf(zero, DMX_KERNEL_DIVISION_BY_ZERO);
    Value replace = zero;
    if (!isUnsigned) {
      isMinusOne = cmp(CmpIPredicate::eq, x[1], integer(-1));
      replace = bitOr(zero, isMinusOne);
    }
    return select(replace, integer(1), x[1]);
  }

  /// x * sigmoid(x) is one function. Narrower floats have the sigmoid's rounding between, which stays.
  Value mul() {
    for (int i : {0, 1})
      if (auto sigmoid = op->getOperand(1 - i).getDefiningOp<dmir::SigmoidOp>())
        if (sigmoid.getOperand() == op->getOperand(i) && (out.isF32() || out.isF64()))
          return math().silu(x[i]);
    return binary<arith::MulFOp, arith::MulIOp>();
  }

  Value div() {
    if (isFloat)
      return binary<arith::DivFOp>();
    Value minusOne, divisor = safeDivisor(minusOne);
    if (isUnsigned)
      return arith::DivUIOp::create(b, x[0], divisor);
    Value quotient = arith::DivSIOp::create(b, x[0], divisor);
    return select(minusOne, arith::SubIOp::create(b, integer(0), x[0]), quotient);
  }

  Value fmod() {
    if (isFloat)
      return math().fmod(x[0], x[1]);
    Value minusOne, divisor = safeDivisor(minusOne); // x % 1 is x % -1
    if (isUnsigned)
      return arith::RemUIOp::create(b, x[0], divisor);
    return arith::RemSIOp::create(b, x[0], divisor);
  }

  Value mod() {
    Value rest = fmod();
    if (isFloat) {
      Value zero = num(0);
      Value differ = arith::XOrIOp::create(b, cmp(CmpFPredicate::OLT, rest, zero), cmp(CmpFPredicate::OLT, x[1], zero));
      Value moved = select(differ, arith::AddFOp::create(b, rest, x[1]), rest);
      Value signedZero = math::CopySignOp::create(b, zero, x[1]);
      return select(cmp(CmpFPredicate::OEQ, rest, zero), signedZero, moved);
    }
    if (isUnsigned)
      return rest;
    Value zero = integer(0);
    Value differ = arith::XOrIOp::create(b, cmp(CmpIPredicate::slt, rest, zero), cmp(CmpIPredicate::slt, x[1], zero));
    Value isZero = cmp(CmpIPredicate::eq, rest, zero);
    Value moved = select(differ, arith::AddIOp::create(b, rest, x[1]), rest);
    return select(isZero, zero, moved);
  }

  Value intPow() {
    // Square and multiply over all bits of the exponent.
    Value one = integer(1), zero = integer(0);
    SmallVector<Value> end = b.forLoop(
        b.idx(0), b.idx(width()), b.idx(1), {one, x[0], x[1]}, [&](Value, ValueRange c) -> SmallVector<Value> {
          Value odd = cmp(CmpIPredicate::ne, arith::AndIOp::create(b, c[2], one), zero);
          Value product = arith::MulIOp::create(b, c[0], c[1]);
          Value square = arith::MulIOp::create(b, c[1], c[1]);
          return {select(odd, product, c[0]), square, arith::ShRUIOp::create(b, c[2], one)};
        });
    if (isUnsigned)
      return end[0];
    Value negative = cmp(CmpIPredicate::slt, x[1], zero);
    Value odd = cmp(CmpIPredicate::ne, arith::AndIOp::create(b, x[1], one), zero);
    Value ofMinusOne = select(odd, x[0], one);
    Value ofOthers = select(cmp(CmpIPredicate::eq, x[0], one), one, zero);
    Value inverse = select(cmp(CmpIPredicate::eq, x[0], integer(-1)), ofMinusOne, ofOthers);
    return select(negative, inverse, end[0]);
  }

  Value shift(bool left) {
    // Counts at or beyond the width (read as unsigned) shift everything out.
    Value out = cmp(CmpIPredicate::uge, x[1], integer(width()));
    if (!left && !isUnsigned) {
      Value count = select(out, integer(width() - 1), x[1]);
      return arith::ShRSIOp::create(b, x[0], count);
    }
    Value count = select(out, integer(0), x[1]);
    Value shifted = left ? Value(arith::ShLIOp::create(b, x[0], count)) : Value(arith::ShRUIOp::create(b, x[0], count));
    return select(out, integer(0), shifted);
  }

  Value compare(dmir::Compare kind) {
    if (isFloat) {
      constexpr CmpFPredicate floats[] = {CmpFPredicate::OEQ, CmpFPredicate::UNE, CmpFPredicate::OLT,
                                          CmpFPredicate::OLE, CmpFPredicate::OGT, CmpFPredicate::OGE};
      return cmp(floats[static_cast<unsigned>(kind)], x[0], x[1]);
    }
    constexpr CmpIPredicate ints[] = {CmpIPredicate::eq,  CmpIPredicate::ne,  CmpIPredicate::slt,
                                      CmpIPredicate::sle, CmpIPredicate::sgt, CmpIPredicate::sge};
    constexpr CmpIPredicate unsignedInts[] = {CmpIPredicate::eq,  CmpIPredicate::ne,  CmpIPredicate::ult,
                                              CmpIPredicate::ule, CmpIPredicate::ugt, CmpIPredicate::uge};
    return cmp((isUnsigned ? unsignedInts : ints)[static_cast<unsigned>(kind)], x[0], x[1]);
  }

  Type like(Type element) { return b.laneType(element, e.lanes()); }

  Value castToInt(IntegerType to) {
    IntegerType plain = cast<IntegerType>(e.carried(to));
    if (isFloat && width() == 32 && plain.getWidth() <= 16 && isClamped(op->getOperand(0))) {
      // What quantisation writes. Some processors convert to 64 bits number by number.
      Value number = select(cmp(CmpFPredicate::UNO, x[0], x[0]), num(0), x[0]);
      return arith::TruncIOp::create(b, like(plain), arith::FPToSIOp::create(b, like(b.getI32Type()), number));
    }
    if (isFloat) {
      // The reference clamps to the widest integer and wraps to the result's width.
      if (to.getWidth() == 64 && to.isUnsigned()) {
        Value wide = math().floatToInt(x[0], plain, true);
        return select(cmp(CmpFPredicate::OGT, x[0], num(0)), wide, b.constantInt(wide.getType(), 0));
      }
      Value wide = math().floatToInt(x[0], b.getI64Type(), false);
      return to.getWidth() == 64 ? wide : Value(arith::TruncIOp::create(b, like(plain), wide));
    }
    if (plain.getWidth() < width())
      return arith::TruncIOp::create(b, like(plain), x[0]);
    if (plain.getWidth() == width())
      return x[0];
    if (isUnsigned)
      return arith::ExtUIOp::create(b, like(plain), x[0]);
    return arith::ExtSIOp::create(b, like(plain), x[0]);
  }

  Value castResult(bool saturate) {
    Overflow overflow = saturate ? Overflow::Saturate : Overflow::Infinity;
    if (in == out)
      return e.narrow(x[0], out, overflow);
    if (out.isInteger(1))
      return isFloat ? cmp(CmpFPredicate::UNE, x[0], num(0)) : cmp(CmpIPredicate::ne, x[0], integer(0));
    if (auto to = dyn_cast<IntegerType>(out))
      return castToInt(to);
    auto to = cast<FloatType>(out);
    // A float of 8 bits or less overflows long before f32 is inexact for integers.
    auto computed = cast<FloatType>(to.getWidth() <= 8 ? Type(b.getF32Type()) : out);
    Value value = x[0];
    if (in.isInteger(1))
      value = select(x[0], b.constant(like(computed), 1), b.constant(like(computed), 0));
    else if (!isFloat)
      value = math().intToFloat(x[0], computed, isUnsigned);
    else if (to.getWidth() >= 32 && width() < to.getWidth())
      value = math().extendFloat(x[0], to);
    else if (to.getWidth() == 32 && width() == 64)
      value = math().truncateFloat(x[0], to);
    return e.narrow(value, out, overflow);
  }

  Value finish(Value value) { return e.narrow(value, out); }
  Value function(Value (VectorMath::*f)(Value)) {
    VectorMath m = math();
    return finish((m.*f)(x[0]));
  }

  /// What targets with an instruction for it recognise; here as it is written out.
  Value gelu() {
    VectorMath m = math();
    return times(times(x[0], num(0.5)), plus(num(1), m.erf(times(x[0], num(std::sqrt(0.5))))));
  }
  Value geluTanh() {
    VectorMath m = math();
    Value cube = times(times(x[0], x[0]), x[0]);
    Value inner = times(num(std::sqrt(2 / M_PI)), plus(x[0], times(num(0.044715), cube)));
    return times(times(x[0], num(0.5)), plus(num(1), m.tanh(inner)));
  }
  Value hardSwish() {
    Value gate = emitMin(b, emitMax(b, plus(x[0], num(3)), num(0), false), num(6), false);
    return times(x[0], times(gate, num(1.0 / 6)));
  }
  /// max(x, 0) + ln(1 + exp(-|x|)), which does not overflow.
  Value softplus() {
    VectorMath m = math();
    Value rest = m.log1p(m.exp(arith::NegFOp::create(b, unary<math::AbsFOp>())));
    return plus(emitMax(b, x[0], num(0), false), rest);
  }
  Value times(Value a, Value c) { return arith::MulFOp::create(b, a, c); }
  Value plus(Value a, Value c) { return arith::AddFOp::create(b, a, c); }

  Value unaryFunction();
  Value emit();
};

Value Emitter::unaryFunction() {
  using Function = Value (VectorMath::*)(Value);
  Function f = llvm::TypeSwitch<Operation *, Function>(op)
                   .Case([](dmir::ExpOp) { return &VectorMath::exp; })
                   .Case([](dmir::LogOp) { return &VectorMath::log; })
                   .Case([](dmir::Log2Op) { return &VectorMath::log2; })
                   .Case([](dmir::Log1pOp) { return &VectorMath::log1p; })
                   .Case([](dmir::Expm1Op) { return &VectorMath::expm1; })
                   .Case([](dmir::SinOp) { return &VectorMath::sin; })
                   .Case([](dmir::CosOp) { return &VectorMath::cos; })
                   .Case([](dmir::TanOp) { return &VectorMath::tan; })
                   .Case([](dmir::AsinOp) { return &VectorMath::asin; })
                   .Case([](dmir::AcosOp) { return &VectorMath::acos; })
                   .Case([](dmir::AtanOp) { return &VectorMath::atan; })
                   .Case([](dmir::SinhOp) { return &VectorMath::sinh; })
                   .Case([](dmir::CoshOp) { return &VectorMath::cosh; })
                   .Case([](dmir::TanhOp) { return &VectorMath::tanh; })
                   .Case([](dmir::AsinhOp) { return &VectorMath::asinh; })
                   .Case([](dmir::AcoshOp) { return &VectorMath::acosh; })
                   .Case([](dmir::AtanhOp) { return &VectorMath::atanh; })
                   .Case([](dmir::ErfOp) { return &VectorMath::erf; })
                   .Case([](dmir::SigmoidOp) { return &VectorMath::sigmoid; })
                   .Case([](dmir::SiluOp) { return &VectorMath::silu; })
                   .Default([](Operation *) { return nullptr; });
  return f ? function(f) : Value();
}

Value Emitter::emit() {
  if (Value value = unaryFunction())
    return value;
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](dmir::CastOp o) { return castResult(o.getSaturate()); })
      .Case([&](dmir::BitcastOp) { return arith::BitcastOp::create(b, like(e.carried(out)), raw); })
      .Case([&](dmir::CompareOp o) { return compare(o.getKind()); })
      .Case([&](dmir::SelectOp) { return finish(select(x[0], x[1], x[2])); })
      .Case([&](dmir::NegOp) {
        return finish(isFloat ? unary<arith::NegFOp>() : Value(arith::SubIOp::create(b, integer(0), x[0])));
      })
      .Case([&](dmir::AbsOp) { return finish(abs()); })
      .Case([&](dmir::SignOp) { return finish(sign()); })
      .Case([&](dmir::CeilOp) { return finish(unary<math::CeilOp>()); })
      .Case([&](dmir::FloorOp) { return finish(unary<math::FloorOp>()); })
      .Case([&](dmir::RoundOp) { return finish(math().roundHalfEven(x[0])); })
      .Case([&](dmir::SqrtOp) { return finish(unary<math::SqrtOp>()); })
      .Case([&](dmir::ReciprocalOp) { return finish(arith::DivFOp::create(b, num(1), x[0])); })
      .Case([&](dmir::RsqrtOp) { return finish(arith::DivFOp::create(b, num(1), unary<math::SqrtOp>())); })
      .Case([&](dmir::GeluOp) { return finish(gelu()); })
      .Case([&](dmir::GeluTanhOp) { return finish(geluTanh()); })
      .Case([&](dmir::HardSwishOp) { return finish(hardSwish()); })
      .Case([&](dmir::SoftplusOp) { return finish(softplus()); })
      .Case([&](dmir::ReluOp) { return finish(relu()); })
      .Case([&](dmir::NotOp) { return Value(arith::XOrIOp::create(b, x[0], integer(-1))); })
      .Case([&](dmir::IsNaNOp) { return cmp(CmpFPredicate::UNO, x[0], x[0]); })
      .Case([&](dmir::IsInfOp) { return cmp(CmpFPredicate::OEQ, unary<math::AbsFOp>(), num(INFINITY)); })
      .Case([&](dmir::AddOp) { return finish(binary<arith::AddFOp, arith::AddIOp>()); })
      .Case([&](dmir::SubOp) { return finish(binary<arith::SubFOp, arith::SubIOp>()); })
      .Case([&](dmir::MulOp) { return finish(mul()); })
      .Case([&](dmir::DivOp) { return finish(div()); })
      .Case([&](dmir::ModOp) { return finish(mod()); })
      .Case([&](dmir::FmodOp) { return finish(fmod()); })
      .Case([&](dmir::PowOp) { return finish(isFloat ? math().pow(x[0], x[1]) : intPow()); })
      .Case([&](dmir::MaxOp) { return finish(emitMax(b, x[0], x[1], isUnsigned)); })
      .Case([&](dmir::MinOp) { return finish(emitMin(b, x[0], x[1], isUnsigned)); })
      .Case([&](dmir::AndOp) { return binary<arith::AndIOp>(); })
      .Case([&](dmir::OrOp) { return binary<arith::OrIOp>(); })
      .Case([&](dmir::XorOp) { return binary<arith::XOrIOp>(); })
      .Case([&](dmir::ShlOp) { return shift(true); })
      .Case([&](dmir::ShrOp) { return shift(false); })
      .Default([](Operation *) { return Value(); });
}

} // namespace

Value dmxc::kernels::emitMax(KernelBuilder &b, Value x, Value y, bool isUnsigned) {
  if (mlir::isa<FloatType>(getElementTypeOrSelf(x.getType())))
    return arith::MaximumFOp::create(b, x, y);
  return isUnsigned ? Value(arith::MaxUIOp::create(b, x, y)) : Value(arith::MaxSIOp::create(b, x, y));
}

Value dmxc::kernels::emitMin(KernelBuilder &b, Value x, Value y, bool isUnsigned) {
  if (mlir::isa<FloatType>(getElementTypeOrSelf(x.getType())))
    return arith::MinimumFOp::create(b, x, y);
  return isUnsigned ? Value(arith::MinUIOp::create(b, x, y)) : Value(arith::MinSIOp::create(b, x, y));
}

Value dmxc::kernels::emitElementwise(ElementExpr &e, Operation *op, ArrayRef<Value> operands) {
  Value value = Emitter(e, op, operands).emit();
  assert(value && "every elementwise op is in the table above");
  return value;
}
