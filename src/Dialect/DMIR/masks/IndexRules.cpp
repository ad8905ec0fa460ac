//===- IndexRules.cpp - elementwise ops on pieces -------------------------===//
//
// Numbers are computed in the tensor's type. A score plus -inf, or plus what is less than -1e38 as exporters add it, is
// taken for replaced: a finite score of any model drowns in it.
//
//===----------------------------------------------------------------------===//
#include "IndexRules.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

bool Leaf::operator==(const Leaf &other) const {
  if (kind != other.kind)
    return false;
  bool sameNumber = number == other.number && std::signbit(number) == std::signbit(other.number);
  return kind == Number ? sameNumber : kind == Affine ? affine == other.affine : true;
}

static constexpr const char *kNotAffine = "what it makes of these numbers is no affine expression of the index";

static bool isMasking(double number) { return number < -1e38; }
static constexpr double kLargestHalf = 65504;

AffineExpr ElementRules::integer(const Leaf &leaf) const {
  if (leaf.kind == Leaf::Affine)
    return leaf.affine;
  bool whole = leaf.kind == Leaf::Number && std::abs(leaf.number) < 1e15 && std::trunc(leaf.number) == leaf.number;
  return whole ? f.number(static_cast<int64_t>(leaf.number)) : AffineExpr();
}

Leaf ElementRules::exactly(AffineExpr expr, Type element) const {
  auto number = dyn_cast<AffineConstantExpr>(expr);
  if (number && isa<FloatType>(element))
    return std::abs(number.getValue()) <= 1 << 24 ? Leaf::of(static_cast<double>(number.getValue())) : Leaf();
  unsigned bits = element.isInteger() ? element.getIntOrFloatBitWidth() - 1
                  : element.isF64()   ? 53
                  : element.isF32()   ? 24
                                      : 8;
  int64_t most = int64_t(1) << std::min(bits, 50u); // nothing that is made of a few of them leaves 64 bits
  Interval range = f.range(expr);
  bool fits = range.max < most && range.min >= (element.isUnsignedInteger() ? 0 : -most);
  return fits ? Leaf::of(expr) : Leaf();
}

Pieces ElementRules::product(const Pieces &a, const Pieces &b, Rule rule) {
  Pieces result;
  for (const Piece &x : a)
    for (const Piece &y : b) {
      std::optional<Conditions> where = f.both(x.where, y.where);
      if (!where)
        continue;
      for (const Piece &z : rule(x.leaf, y.leaf))
        if (std::optional<Conditions> all = f.both(*where, z.where))
          result.push_back({*all, z.leaf});
      if (result.size() > 64)
        return f.unknown(op, "it has more than 64 pieces");
    }
  return f.limited(std::move(result), op);
}

Pieces ElementRules::select(const Pieces &condition, const Pieces &onTrue, const Pieces &onFalse) {
  Pieces either = product(onTrue, onFalse, [](const Leaf &x, const Leaf &y) { return one(x == y ? x : Leaf()); });
  Pieces result;
  for (const Piece &c : condition) {
    const Pieces &chosen = c.leaf.isNumber(1) ? onTrue : c.leaf.isNumber(0) ? onFalse : either;
    for (const Piece &piece : chosen)
      if (std::optional<Conditions> where = f.both(c.where, piece.where))
        result.push_back({*where, piece.leaf});
  }
  return f.limited(std::move(result), op);
}

Pieces ElementRules::test(AffineExpr expr, bool isEq, bool negated) {
  Leaf yes = Leaf::of(negated ? 0.0 : 1.0), no = Leaf::of(negated ? 1.0 : 0.0);
  Interval range = f.range(expr);
  if (range.max < 0 || (isEq && range.min > 0))
    return one(no);
  if (range.min >= 0 && (!isEq || range.max == 0))
    return one(yes);
  if (!isEq)
    return {Piece{{{expr, false}}, yes}, Piece{{{-expr - 1, false}}, no}};
  return {Piece{{{expr, true}}, yes}, Piece{{{expr - 1, false}}, no}, Piece{{{-expr - 1, false}}, no}};
}

Pieces ElementRules::compare(Compare kind, const Leaf &x, const Leaf &y) {
  if (x.kind == Leaf::Number && y.kind == Leaf::Number) {
    double a = x.number, b = y.number;
    bool values[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
    return one(Leaf::of(values[static_cast<int>(kind)] ? 1.0 : 0.0));
  }
  if (x.kind == Leaf::Unknown || y.kind == Leaf::Unknown)
    return one(Leaf());
  AffineExpr a = integer(x), b = integer(y);
  if (!a || !b)
    return f.unknown(op, "it compares with something else than an integer");
  switch (kind) {
  case Compare::eq:
  case Compare::ne:
    return test(a - b, true, kind == Compare::ne);
  case Compare::lt:
    return test(b - a - 1, false, false);
  case Compare::le:
    return test(b - a, false, false);
  case Compare::gt:
    return test(a - b - 1, false, false);
  case Compare::ge:
    return test(a - b, false, false);
  }
  llvm_unreachable("not a comparison");
}

Pieces ElementRules::extremum(AffineExpr x, AffineExpr y, bool greatest) {
  if (!greatest)
    std::swap(x, y);
  Leaf more = Leaf::of(x), less = Leaf::of(y); // where x >= y
  if (greatest)
    return {Piece{{{x - y, false}}, more}, Piece{{{y - x - 1, false}}, less}};
  return {Piece{{{x - y, false}}, less}, Piece{{{y - x - 1, false}}, more}};
}

/// The op of two integers.
Leaf ElementRules::integers(AffineExpr x, AffineExpr y) {
  Type element = elementOf(op->getResult(0));
  auto by = dyn_cast<AffineConstantExpr>(y);
  auto isSmall = [&](AffineExpr expr) {
    Interval range = f.range(expr);
    return range.max < int64_t(1) << 24 && range.min > -(int64_t(1) << 24);
  };
  if (isa<MulOp>(op) && !isSmall(by ? y : x))
    return {};
  bool divides = by && by.getValue() > 0 && (isa<ModOp>(op) || f.range(x).min >= 0);
  AffineExpr result = llvm::TypeSwitch<Operation *, AffineExpr>(op)
                          .Case([&](AddOp) { return x + y; })
                          .Case([&](SubOp) { return x - y; })
                          .Case([&](MulOp) { return by || isa<AffineConstantExpr>(x) ? x * y : AffineExpr(); })
                          .Case([&](DivOp) { return divides && element.isInteger() ? x.floorDiv(y) : AffineExpr(); })
                          .Case<ModOp, FmodOp>([&](auto) { return divides ? x % y : AffineExpr(); })
                          .Default([](Operation *) { return AffineExpr(); });
  return result ? exactly(result, element) : Leaf();
}

/// The op of two numbers of a float type, or bools.
Leaf ElementRules::floats(double x, double y) {
  Type element = elementOf(op->getResult(0));
  auto wide = llvm::TypeSwitch<Operation *, std::optional<double>>(op)
                  .Case([&](AddOp) { return x + y; })
                  .Case([&](SubOp) { return x - y; })
                  .Case([&](MulOp) { return x * y; })
                  .Case([&](DivOp) { return x / y; })
                  .Case([&](MaxOp) { return std::max(x, y); })
                  .Case([&](MinOp) { return std::min(x, y); })
                  .Case([&](AndOp) { return x != 0 && y != 0 ? 1.0 : 0.0; })
                  .Case([&](OrOp) { return x != 0 || y != 0 ? 1.0 : 0.0; })
                  .Case([&](XorOp) { return (x != 0) != (y != 0) ? 1.0 : 0.0; })
                  .Default([](Operation *) { return std::nullopt; });
  if (!wide || std::isnan(*wide) || std::isnan(x) || std::isnan(y))
    return {};
  if (element.isF32())
    return Leaf::of(static_cast<double>(static_cast<float>(*wide)));
  if (f.facts && *wide == 0 && isa<FloatType>(element))
    return Leaf::of(0.0);
  bool isBool = element.isInteger(1) && (*wide == 0 || *wide == 1);
  return element.isF64() || isBool ? Leaf::of(*wide) : Leaf();
}

/// Whether a value is made of products and small numbers alone, so that the least number of a float drowns it. What a
/// caller gives, or what holds such numbers itself, may be a mask: the sum of two is -inf.
static bool drowns(Value value) {
  constexpr size_t most = 64;
  SmallVector<Value> work{value};
  for (size_t next = 0; next < work.size(); ++next) {
    Operation *op = work[next].getDefiningOp();
    if (!isa<FloatType>(elementOf(work[next])) || isa_and_nonnull<MatMulOp, IotaOp, DimTensorOp>(op))
      continue;
    if (op && isa<ConstantOp>(op)) {
      std::optional<Tensor> tensor = hostFormOf(work[next].getType()) ? constantTensor(work[next]) : std::nullopt;
      if (!tensor || tensor->numElements() > 1 << 20)
        return false;
      for (int64_t i = 0; i < tensor->numElements(); ++i)
        if (!(std::abs(tensor->asDouble(i)) < 1e9))
          return false;
      continue;
    }
    bool divides = op && isa<DivOp>(op) && isa_and_nonnull<ConstantOp>(op->getOperand(1).getDefiningOp());
    if (!op || work.size() > most ||
        (!divides &&
         !isa<AddOp, SubOp, MulOp, NegOp, SelectOp, CastOp, TanhOp, ReshapeOp, BroadcastOp, TransposeOp, SliceOp>(op)))
      return false;
    for (Value operand : op->getOperands())
      if (!llvm::is_contained(work, operand))
        work.push_back(operand);
  }
  return true;
}

/// The op where one side is unknown.
Leaf ElementRules::withUnknown(const Leaf &x, const Leaf &y) {
  const Leaf &known = x.kind == Leaf::Unknown ? y : x;
  if ((f.facts || f.zeros) && isa<MulOp>(op) &&
      known.isNumber(0)) // what is infinite spreads no more than in any fused attention
    return known;
  if (isa<AndOp>(op) && known.isNumber(0))
    return known;
  if (isa<OrOp>(op) && known.isNumber(1) && elementOf(op->getResult(0)).isInteger(1))
    return known;
  if (!isa<AddOp, SubOp>(op) || !isa<FloatType>(elementOf(op->getResult(0))) || known.kind != Leaf::Number ||
      (isa<SubOp>(op) && y.kind != Leaf::Number))
    return {};
  double added = isa<SubOp>(op) ? -known.number : known.number;
  const bool saturates = f.narrow && added <= -2 * kLargestHalf; // whatever it is added to
  bool replaces =
      saturates || (isMasking(added) && (std::isinf(added) || drowns(op->getOperand(x.kind == Leaf::Unknown ? 0 : 1))));
  return replaces ? Leaf::of(added) : Leaf();
}

Pieces ElementRules::binary(const Leaf &x, const Leaf &y) {
  if (auto op = dyn_cast<CompareOp>(this->op))
    return compare(op.getKind(), x, y);
  if (x.kind == Leaf::Unknown || y.kind == Leaf::Unknown)
    return one(withUnknown(x, y));
  if (x.kind == Leaf::Number && y.kind == Leaf::Number) {
    Leaf leaf = floats(x.number, y.number);
    return leaf.kind == Leaf::Unknown ? f.unknown(op, "what it makes of two numbers is not computed here") : one(leaf);
  }
  AffineExpr a = integer(x), b = integer(y);
  if (a && b && isa<MaxOp, MinOp>(op))
    return extremum(a, b, isa<MaxOp>(op));
  Leaf leaf = a && b ? integers(a, b) : Leaf();
  return leaf.kind == Leaf::Unknown ? f.unknown(op, kNotAffine) : one(leaf);
}

Pieces ElementRules::cast(const Leaf &x) {
  Type to = elementOf(op->getResult(0));
  if (to.isInteger(1))
    return x.kind == Leaf::Number ? one(Leaf::of(x.number != 0 ? 1.0 : 0.0)) : test(x.affine, true, true);
  if (auto type = dyn_cast<FloatType>(to); type && x.kind == Leaf::Number) {
    bool inexact = false;
    APFloat value(x.number);
    value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
    return type.getWidth() >= 16 ? one(Leaf::of(value.convertToDouble()))
                                 : f.unknown(op, "its type has less than 16 bits");
  }
  AffineExpr whole = integer(x);
  Leaf leaf = whole ? exactly(whole, to) : Leaf();
  return leaf.kind == Leaf::Unknown ? f.unknown(op, "its type does not hold these numbers exactly") : one(leaf);
}

/// What functions make of a number exactly, whatever computes them: zeros above all.
std::optional<double> ElementRules::kept(double x) const {
  if (isa<ReluOp>(op))
    return std::max(x, 0.0);
  if (isa<SignOp>(op))
    return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0;
  if (isa<CeilOp, FloorOp, RoundOp>(op) && std::trunc(x) == x)
    return x;
  bool keepsZero = isa<SqrtOp, SinOp, TanOp, AsinOp, AtanOp, SinhOp, TanhOp, AsinhOp, AtanhOp, ErfOp, Expm1Op, Log1pOp,
                       SiluOp, GeluOp, GeluTanhOp, HardSwishOp>(op);
  return keepsZero && x == 0 ? std::optional(0.0) : std::nullopt;
}

Leaf ElementRules::leafOf(double number, Type element) {
  bool isReal = isa<FloatType>(element) || element.isInteger(1);
  return isReal ? Leaf::of(number)
                : Leaf::of(getAffineConstantExpr(static_cast<int64_t>(number), element.getContext()));
}

Pieces ElementRules::unary(const Leaf &x) {
  if (x.kind == Leaf::Unknown)
    return one(x);
  if (f.facts && x.kind == Leaf::Number)
    if (std::optional<double> number = kept(x.number))
      return one(Leaf::of(*number));
  if (isa<CastOp>(op))
    return cast(x);
  if (x.kind == Leaf::Number && isa<NotOp>(op))
    return one(Leaf::of(x.number != 0 ? 0.0 : 1.0));
  if (x.kind == Leaf::Number && isa<NegOp, AbsOp>(op))
    return one(Leaf::of(isa<NegOp>(op) ? -x.number : std::abs(x.number)));
  if (x.kind == Leaf::Affine && isa<NegOp>(op)) {
    Leaf leaf = exactly(-x.affine, elementOf(op->getResult(0)));
    return leaf.kind == Leaf::Unknown ? f.unknown(op, kNotAffine) : one(leaf);
  }
  if (x.kind == Leaf::Affine && isa<AbsOp>(op))
    return extremum(x.affine, -x.affine, true);
  return f.unknown(op, kNotAffine);
}

Pieces ElementRules::apply(ArrayRef<Pieces> operands) {
  if (isa<SelectOp>(op))
    return select(operands[0], operands[1], operands[2]);
  if (operands.size() == 2)
    return product(operands[0], operands[1], [this](const Leaf &x, const Leaf &y) { return binary(x, y); });
  if (operands.size() != 1)
    return f.unknown(op, "rules are not read through this op");
  return product(operands[0], one(Leaf::of(0.0)), [this](const Leaf &x, const Leaf &) { return unary(x); });
}
