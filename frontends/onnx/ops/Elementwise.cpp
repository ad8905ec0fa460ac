//===- Elementwise.cpp - arithmetic, one result element from one index ----===//
#include "Elementwise.h"
#include "../Differences.h"

#include "frontends/common/ops/Formulas.h"

#include <cstring>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {

std::pair<Val, Val> broadcastOperands(NodeContext &c) {
  Val a = c.operand(0), b = c.operand(1);
  if (c.since() >= 7)
    return {a, b};
  // Before opset 7 the second operand is broadcast only when asked, aligned at
  // `axis`, or at the end without it.
  if (!c.attrInt("broadcast", 0)) {
    c.requireShape(mayEqual(a.dims(), b.dims()), "without 'broadcast' both operands must have one shape");
    return {a, b};
  }
  if (c.hasAttr("axis")) {
    int64_t axis = c.normalizeAxis(c.attrInt("axis"), a.rank());
    c.requireShape(axis + b.rank() <= a.rank(),
                   "operand 1 does not fit at axis " + std::to_string(axis) + " of operand 0");
    Dims shape = b.dims();
    shape.resize(a.rank() - axis, 1);
    b = c.e.reshape(b, shape);
  }
  return {a, b};
}

namespace {

template <typename OpTy> void binary(NodeContext &c) {
  auto [a, b] = broadcastOperands(c);
  c.result(c.e.emit<OpTy>({a, b}));
}

template <typename OpTy> void unary(NodeContext &c) { c.result(c.e.emit<OpTy>({c.operand(0)})); }

/// Of NaN it is NaN, in torch 0.
void importSign(NodeContext &c) {
  Val x = c.operand(0), sign = c.e.emit<SignOp>({x});
  bool asTorch = c.isFromPytorch() && isFloat(x.dtype());
  c.result(asTorch ? c.e.select(isNaN(c.e, x), c.e.scalarLike(x, 0), sign) : sign);
}

void importMod(NodeContext &c) {
  auto a = c.operand(0), b = c.operand(1);
  bool fmod = c.attrInt("fmod", 0) != 0;
  if (!fmod && isFloat(a.dtype()))
    fail("op-attribute", "floating-point operands need fmod=1");
  c.result(fmod ? c.e.emit<FmodOp>({a, b}) : c.e.emit<ModOp>({a, b}));
}

void importPow(NodeContext &c) {
  auto [base, exponent] = broadcastOperands(c);
  // The common exponents of exported models. Others, the square root too,
  // differ from a product in infinities or signs.
  if (exponent.isConstant() && exponent.elements().is(1) && exponent.rank() <= base.rank() && isFloat(base.dtype())) {
    double number = exponent.constant().asDouble(0);
    if (number == 2)
      return c.result(c.e.mul(base, base));
    if (number == 3)
      return c.result(c.e.mul(c.e.mul(base, base), base));
  }
  if (base.dtype() == exponent.dtype())
    return c.result(c.e.emit<PowOp>({base, exponent}));
  if (isFloat(base.dtype()) || isInt(exponent.dtype()))
    return c.result(c.e.emit<PowOp>({base, c.e.cast(exponent, base.dtype())}));
  // An integer base with a float exponent: computed in double, then truncated
  // to the base's type.
  Val power = c.e.emit<PowOp>({c.e.cast(base, DType::F64), c.e.cast(exponent, DType::F64)});
  c.result(c.e.cast(power, base.dtype()));
}

template <typename OpTy> Val foldOperands(NodeContext &c) {
  Val result = c.operand(0);
  for (int i = 1; i < c.numOperands(); ++i)
    result = c.e.emit<OpTy>({result, c.operand(i)});
  return result;
}
template <typename OpTy> void variadic(NodeContext &c) { c.result(foldOperands<OpTy>(c)); }

void importMean(NodeContext &c) {
  if (c.numOperands() == 1)
    return c.result(c.operand(0));
  Val sum = widened(c.e, c.operand(0));
  for (int i = 1; i < c.numOperands(); ++i)
    sum = c.e.add(sum, widened(c.e, c.operand(i)));
  c.result(c.e.cast(c.e.div(sum, c.e.scalarLike(sum, c.numOperands())), c.operand(0).dtype()));
}

void importClipAttributes(NodeContext &c) {
  Val x = c.operand(0);
  if (c.hasAttr("min"))
    x = c.e.max(x, c.e.scalarLike(x, c.attrFloat("min", 0)));
  if (c.hasAttr("max"))
    x = c.e.min(x, c.e.scalarLike(x, c.attrFloat("max", 0)));
  c.result(x);
}

void importClip(NodeContext &c) {
  Val x = c.operand(0);
  for (int i : {1, 2})
    if (Val bound = c.optional(i)) {
      c.requireShape(mayEqual(bound.elements(), 1), "the bounds must be scalars");
      bound = c.e.reshape(bound, {});
      x = i == 1 ? c.e.max(x, bound) : c.e.min(x, bound);
    }
  c.result(x);
}

DType castTarget(NodeContext &c) {
  if (c.since() > 1)
    return c.attrType("to");
  std::string name = c.attrString("to"); // version 1 spells the type
  for (int32_t type = 1; type <= 16; ++type)
    if (onnxTypeName(type) == name)
      if (std::optional<DType> found = dtypeOfOnnx(type))
        return *found;
  fail("op-dtype", "the attribute 'to' asks for " + name + ", which has no tensor meaning here");
}

Val castAs(NodeContext &c, const Val &x, DType to) {
  bool saturate = c.attrInt("saturate", 1) != 0;
  // torch saturates only what becomes f8e4m3fn; its exporters leave the attribute out.
  bool overflows = to == DType::F8E5M2 || to == DType::F8E4M3FNUZ || to == DType::F8E5M2FNUZ;
  if (c.isFromPytorch() && overflows && !c.hasAttr("saturate"))
    saturate = false;
  if (to != DType::F8E8M0 || x.dtype() == to) // round_mode is for that type alone
    return c.e.cast(x, to, saturate);
  std::string mode = c.attrString("round_mode", "up");
  c.requireAttr(mode == "up" || mode == "down" || mode == "nearest", "round_mode '" + mode + "' is unknown");
  return c.e.castToScale(x, saturate,
                         mode == "up"     ? ScaleRounding::Up
                         : mode == "down" ? ScaleRounding::Down
                                          : ScaleRounding::Nearest);
}

void importCast(NodeContext &c) { c.result(castAs(c, c.operand(0), castTarget(c))); }
/// The same bits as another type of the same width.
void importBitCast(NodeContext &c) {
  Val x = c.operand(0);
  DType to = c.attrType("to");
  c.requireAttr(dtypeBits(x.dtype()) == dtypeBits(to), "'to' has another width than the operand's type");
  if (x.dtype() == to)
    return c.result(x);
  Val bits = x.dtype() == DType::Bool ? c.e.cast(x, DType::U8) : x; // a byte, 0 or 1
  DType target = to == DType::Bool ? DType::U8 : to;
  if (bits.dtype() != target)
    bits = c.e.emitAs<BitcastOp>(c.e.typeOf(target, bits.dims()), {bits});
  c.result(c.e.cast(bits, to));
}

void importCastLike(NodeContext &c) { c.result(castAs(c, c.operand(0), c.operand(1).dtype())); }

void importIdentity(NodeContext &c) { c.result(c.anyOperand(0)); }

} // namespace

std::vector<OpRows> elementwiseOps() {
  using namespace types;
  const char *legacy = "axis,broadcast";
  return {
      {"Add", {1, 6}, "TT>1", binary<AddOp>, legacy, {Number}},
      {"Add", {7, 13, 14}, "TT>1", binary<AddOp>, "", {Number}},
      {"Sub", {1, 6}, "TT>1", binary<SubOp>, legacy, {Number}},
      {"Sub", {7, 13, 14}, "TT>1", binary<SubOp>, "", {Number}},
      {"Mul", {1, 6}, "TT>1", binary<MulOp>, legacy, {Number}},
      {"Mul", {7, 13, 14}, "TT>1", binary<MulOp>, "", {Number}},
      {"Div", {1, 6}, "TT>1", binary<DivOp>, legacy, {Number}},
      {"Div", {7, 13, 14}, "TT>1", binary<DivOp>, "", {Number}},
      {"Pow", {1}, "TT>1", importPow, legacy, {Number}},
      {"Pow", {7}, "TT>1", importPow, "", {Number}},
      {"Pow", {12, 13, 15}, "..>1", importPow, "", {Number}},
      {"Mod", {10, 13}, "TT>1", importMod, "fmod", {Number}},
      {"Max", {1, 6, 8, 12, 13}, "T*>1", variadic<MaxOp>, "", {Number}},
      {"Min", {1, 6, 8, 12, 13}, "T*>1", variadic<MinOp>, "", {Number}},
      {"Sum", {1, 6, 8, 13}, "T*>1", variadic<AddOp>, "", {Float}},
      {"Mean", {1, 6, 8, 13}, "T*>1", importMean, "", {Float}},
      {"Abs", {1, 6, 13}, ".>1", unary<AbsOp>, "", {Number}},
      {"Neg", {1, 6, 13}, ".>1", unary<NegOp>, "", {Number}},
      {"Sign", {9, 13}, ".>1", importSign, "", {Number}},
      {"Ceil", {1, 6, 13}, ".>1", unary<CeilOp>, "", {Float}},
      {"Floor", {1, 6, 13}, ".>1", unary<FloorOp>, "", {Float}},
      {"Round", {11, 22}, ".>1", unary<RoundOp>, "", {Float}},
      {"Sqrt", {1, 6, 13}, ".>1", unary<SqrtOp>, "", {Float}},
      {"Reciprocal", {1, 6, 13}, ".>1", unary<ReciprocalOp>, "", {Float}},
      {"Exp", {1, 6, 13}, ".>1", unary<ExpOp>, "", {Float}},
      {"Log", {1, 6, 13}, ".>1", unary<LogOp>, "", {Float}},
      {"Sin", {7, 22}, ".>1", unary<SinOp>, "", {Float}},
      {"Cos", {7, 22}, ".>1", unary<CosOp>, "", {Float}},
      {"Tan", {7, 22}, ".>1", unary<TanOp>, "", {Float}},
      {"Asin", {7, 22}, ".>1", unary<AsinOp>, "", {Float}},
      {"Acos", {7, 22}, ".>1", unary<AcosOp>, "", {Float}},
      {"Atan", {7, 22}, ".>1", unary<AtanOp>, "", {Float}},
      {"Sinh", {9, 22}, ".>1", unary<SinhOp>, "", {Float}},
      {"Cosh", {9, 22}, ".>1", unary<CoshOp>, "", {Float}},
      {"Tanh", {1, 6, 13}, ".>1", unary<TanhOp>, "", {Float}},
      {"Asinh", {9, 22}, ".>1", unary<AsinhOp>, "", {Float}},
      {"Acosh", {9, 22}, ".>1", unary<AcoshOp>, "", {Float}},
      {"Atanh", {9, 22}, ".>1", unary<AtanhOp>, "", {Float}},
      {"Erf", {9, 13}, ".>1", unary<ErfOp>, "", {Float}, "integers are refused"},
      {"Sigmoid", {1, 6, 13}, ".>1", unary<SigmoidOp>, "", {Float}},
      {"Relu", {1, 6, 13, 14}, ".>1", unary<ReluOp>, "", {Number}},
      {"Clip", {1, 6}, ".>1", importClipAttributes, "max,min", {Float}},
      {"Clip", {11, 12, 13}, "TTT>1", importClip, "", {Number}},
      {"Cast", {1}, ".>1", importCast, "to=string", {Any}},
      {"Cast", {6, 9, 13}, ".>1", importCast, "to", {Any}},
      {"Cast", {19, 21, 23}, ".>1", importCast, "saturate,to", {Any}},
      {"Cast", {24, 25}, ".>1", importCast, "round_mode,saturate,to", {Any}},
      {"BitCast", {26}, ".>1", importBitCast, "to", {Any}},
      {"CastLike", {15}, "..>1", importCastLike, "", {Any}},
      {"CastLike", {19, 21, 23}, "..>1", importCastLike, "saturate", {Any}},
      {"CastLike", {24, 25}, "..>1", importCastLike, "round_mode,saturate", {Any}},
      {"Identity", {1, 13, 14, 16, 19, 21, 23, 24, 25}, ".>1", importIdentity},
  };
}

std::vector<Difference> elementwiseDifferences() {
  return {
      {"cast-out-of-range", "Cast", "floats beyond the integers of the result, and NaN",
       "what the processor's instruction gives", "what the processor's instruction gives",
       "what the processor's instruction gives", "clamped to 64 bits, then the lowest bits of that; NaN is 0",
       "ONNX leaves it open and processors differ; this is the same on all"},
      {"cast-f8-range", "Cast",
       "to f8e5m2, f8e4m3fnuz or f8e5m2fnuz without the attribute saturate, numbers beyond the type's range",
       "the largest number", "the largest number", "infinity, or NaN in a type without", "the largest number",
       "torch's exporters leave the attribute out, and its default saturates", "infinity, or NaN in a type without"},
      {"sign-nan", "Sign", "NaN", "NaN", "NaN", "0", "NaN", "torch compares with 0", "0"},
      {"clip-nan-bound", "Clip", "a bound that is NaN", "NaN", "as without the bound", "NaN", "NaN",
       "a wrong bound should be seen"},
      {"pow-integer-overflow", "Pow", "integers whose power is beyond their type", "the lowest bits",
       "the smallest number", "the lowest bits", "the lowest bits", "as a product of integers"},
      {"mean-half", "Mean", "f16 whose sum is beyond its range", "infinity", "the mean", "", "the mean",
       "sums are taken in f32"},
      {"mod-zero", "Mod", "integers by 0", "0", "fails", "fails", "fails",
       "a division by 0 is a mistake of the model or its input"},
  };
}

} // namespace dmxc::onnxfe
