//===- Expr.cpp - integer expressions over the dim table ------------------===//
#include "dmxc/Bundle/Expr.h"

#include <algorithm>
#include <array>

namespace dmxc::bundle {

namespace {
constexpr std::array<std::string_view, 9> opNames = {"add", "sub", "mul", "floordiv", "ceildiv",
                                                     "mod", "min", "max", "broadcast"};

std::optional<int64_t> divide(Expr::Op op, int64_t lhs, int64_t rhs) {
  if (rhs == 0 || (lhs == INT64_MIN && rhs == -1))
    return std::nullopt;
  int64_t quotient = lhs / rhs, rest = lhs % rhs;
  bool negative = (rest < 0) != (rhs < 0);
  if (op == Expr::Op::Mod)
    return rest != 0 && negative ? rest + rhs : rest;
  if (op == Expr::Op::FloorDiv)
    return rest != 0 && negative ? quotient - 1 : quotient;
  return rest != 0 && !negative ? quotient + 1 : quotient;
}
} // namespace

std::string_view exprOpName(Expr::Op op) { return opNames[static_cast<size_t>(op)]; }

std::optional<Expr::Op> exprOpFromName(std::string_view name) {
  auto it = std::find(opNames.begin(), opNames.end(), name);
  if (it == opNames.end())
    return std::nullopt;
  return static_cast<Expr::Op>(it - opNames.begin());
}

std::optional<int64_t> applyExprOp(Expr::Op op, int64_t lhs, int64_t rhs) {
  int64_t out = 0;
  switch (op) {
  case Expr::Op::Add:
    return __builtin_add_overflow(lhs, rhs, &out) ? std::nullopt : std::optional(out);
  case Expr::Op::Sub:
    return __builtin_sub_overflow(lhs, rhs, &out) ? std::nullopt : std::optional(out);
  case Expr::Op::Mul:
    return __builtin_mul_overflow(lhs, rhs, &out) ? std::nullopt : std::optional(out);
  case Expr::Op::Min:
    return std::min(lhs, rhs);
  case Expr::Op::Max:
    return std::max(lhs, rhs);
  case Expr::Op::Broadcast:
    return lhs == rhs || rhs == 1 ? std::optional(lhs) : lhs == 1 ? std::optional(rhs) : std::nullopt;
  default:
    return divide(op, lhs, rhs);
  }
}

Expr Expr::dim(std::string name) {
  Expr expr;
  expr.what = Kind::Dim;
  expr.dimName = std::move(name);
  return expr;
}

Expr Expr::binary(Op op, Expr lhs, Expr rhs) {
  if (lhs.isInt() && rhs.isInt())
    if (std::optional<int64_t> value = applyExprOp(op, lhs.number, rhs.number))
      return Expr(*value);
  Expr expr;
  expr.what = Kind::Op;
  expr.operation = op;
  expr.args.push_back(std::move(lhs));
  expr.args.push_back(std::move(rhs));
  return expr;
}

Result<int64_t> Expr::evaluate(const DimValues &dims) const {
  if (isInt())
    return number;
  if (what == Kind::Dim) {
    auto it = dims.find(dimName);
    if (it == dims.end())
      return modelError("dim '" + dimName + "' is not in the dim table");
    return it->second;
  }
  Result<int64_t> lhs = args[0].evaluate(dims);
  if (!lhs)
    return lhs;
  Result<int64_t> rhs = args[1].evaluate(dims);
  if (!rhs)
    return rhs;
  if (std::optional<int64_t> value = applyExprOp(operation, *lhs, *rhs))
    return *value;
  if (operation == Op::Broadcast)
    return Error{ErrorKind::Constraint, "cannot broadcast " + std::to_string(*lhs) + " and " + std::to_string(*rhs)};
  return modelError("'" + str() + "' overflows 64 bits or divides by zero (" + std::string(exprOpName(operation)) +
                    " of " + std::to_string(*lhs) + " and " + std::to_string(*rhs) + ")");
}

std::optional<int64_t> Expr::constant() const {
  Result<int64_t> value = evaluate({});
  return value ? std::optional(*value) : std::nullopt;
}

void Expr::collectDims(std::vector<std::string> &names) const {
  if (what == Kind::Dim)
    names.push_back(dimName);
  for (const Expr &arg : args)
    arg.collectDims(names);
}

std::string Expr::str() const {
  if (isInt())
    return std::to_string(number);
  if (what == Kind::Dim)
    return dimName;
  auto side = [](const Expr &expr) {
    bool infix = expr.what == Kind::Op && expr.operation <= Op::Mul;
    return infix ? "(" + expr.str() + ")" : expr.str();
  };
  if (operation <= Op::Mul)
    return side(args[0]) + "+-*"[static_cast<size_t>(operation)] + side(args[1]);
  return std::string(exprOpName(operation)) + "(" + args[0].str() + "," + args[1].str() + ")";
}

bool Expr::operator==(const Expr &other) const {
  return what == other.what && number == other.number && dimName == other.dimName &&
         (what != Kind::Op || operation == other.operation) && args == other.args;
}

std::string shapeString(const std::vector<Expr> &shape) {
  if (shape.empty())
    return "scalar";
  std::string text;
  for (const Expr &dim : shape) {
    if (!text.empty())
      text += "x";
    text += dim.kind() == Expr::Kind::Op ? "(" + dim.str() + ")" : dim.str();
  }
  return text;
}

} // namespace dmxc::bundle
