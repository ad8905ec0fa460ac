//===- Exprs.cpp - sizes as bundles write them ----------------------------===//
#include "Exprs.h"

using namespace mlir;
using namespace dmxc;

bundle::Expr dmxc::exprOf(Dim dim) {
  using bundle::Expr;
  Dim::Builder<Expr> builder;
  builder.number = [](int64_t number) { return Expr(number); };
  builder.symbol = [](std::string_view name) { return Expr::dim(std::string(name)); };
  builder.add = [](Expr a, Expr b) { return Expr::binary(Expr::Op::Add, std::move(a), std::move(b)); };
  builder.mul = [](Expr a, Expr b) { return Expr::binary(Expr::Op::Mul, std::move(a), std::move(b)); };
  builder.call = [](Dim::Call call, Expr a, Expr b) {
    constexpr Expr::Op ops[] = {Expr::Op::FloorDiv, Expr::Op::Min, Expr::Op::Max, Expr::Op::Broadcast};
    return Expr::binary(ops[static_cast<int>(call)], std::move(a), std::move(b));
  };
  return dim.build(builder);
}

std::vector<bundle::Expr> dmxc::exprShape(Type type) {
  std::vector<bundle::Expr> shape;
  for (Dim dim : dmir::dimsOf(type))
    shape.push_back(exprOf(dim));
  return shape;
}

bundle::ConstraintDesc dmxc::constraintDesc(const dmir::DimConstraint &constraint) {
  using Kind = dmir::DimConstraint::Kind;
  bundle::ConstraintDesc desc;
  desc.lhs = exprOf(constraint.lhs);
  desc.rhs = exprOf(constraint.rhs);
  desc.text = constraint.text;
  desc.relation = constraint.kind == Kind::LessOrEqual ? bundle::Relation::Le : bundle::Relation::Eq;
  if (constraint.kind == Kind::Broadcast || constraint.kind == Kind::BroadcastTo)
    desc.lhs = bundle::Expr::binary(bundle::Expr::Op::Broadcast, desc.lhs, desc.rhs);
  if (constraint.kind == Kind::Broadcast)
    desc.rhs = desc.lhs;
  return desc;
}
