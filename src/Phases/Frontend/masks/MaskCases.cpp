//===- MaskCases.cpp - what bools of masks keep, as cases that may overlap ===//
#include "MaskCases.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"

#include <numeric>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

using Cases = SmallVector<Conditions>;

/// 2 i - 2 j - 1 >= 0 as i - j - 1 >= 0.
static Condition reduced(const Condition &condition) {
  int64_t constant = 0, divisor = 0;
  SmallVector<AffineTerm> terms = termsOf(condition.expr, constant);
  for (const AffineTerm &term : terms)
    divisor = std::gcd(divisor, term.factor);
  if (divisor < 2 || condition.isEq)
    return condition;
  AffineExpr sum = getAffineConstantExpr(llvm::divideFloorSigned(constant, divisor), condition.expr.getContext());
  for (const AffineTerm &term : terms)
    sum = sum + term.atom * (term.factor / divisor);
  return {inOrder(sum), false};
}

/// Whether no index meets conditions and another one, as far as that is seen.
static bool exclude(const IndexFunctions &functions, const Conditions &conditions, AffineExpr atLeast0) {
  std::optional<Conditions> all = functions.both(conditions, {{atLeast0, false}});
  if (!all)
    return true;
  MLIRContext *context = atLeast0.getContext();
  for (unsigned axis = 0; axis < functions.axes(); ++axis) {
    AffineExpr place = getAffineDimExpr(axis, context);
    Interval range = functions.range(place);
    all->append({{place - range.min, false}, {-place + range.max, false}});
  }
  constexpr unsigned symbols = 32; // more than functions have
  return FlatLinearValueConstraints(caseOf(functions.axes(), symbols, *all)).isEmpty();
}

/// Whether conditions hold wherever others do, as far as that is seen.
static bool follow(const IndexFunctions &functions, const Conditions &from, const Conditions &conditions) {
  return llvm::all_of(conditions, [&](const Condition &condition) {
    return exclude(functions, from, -condition.expr - 1) &&
           (!condition.isEq || exclude(functions, from, condition.expr - 1));
  });
}

/// The case that two are together, where one condition and its opposite are all that keeps them apart.
static std::optional<Conditions> joined(const IndexFunctions &functions, const Conditions &a, const Conditions &b) {
  for (const Condition &x : a)
    for (const Condition &y : b) {
      int64_t constant = 0;
      if (x.isEq || y.isEq || !termsOf(x.expr + y.expr, constant).empty() || constant != -1)
        continue;
      Conditions restOfA, restOfB;
      llvm::copy_if(a, std::back_inserter(restOfA), [&](const Condition &c) { return !(c == x); });
      llvm::copy_if(b, std::back_inserter(restOfB), [&](const Condition &c) { return !(c == y); });
      if (follow(functions, a, restOfB) && follow(functions, b, restOfA))
        return functions.both(restOfA, restOfB);
    }
  return std::nullopt;
}

/// Takes away a condition of a case that only keeps it apart from another.
static bool relax(const IndexFunctions &functions, Conditions &conditions, const Conditions &other) {
  for (size_t at = 0; at < conditions.size(); ++at) {
    Conditions rest = conditions;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(at));
    const Condition &condition = conditions[at];
    std::optional<Conditions> without =
        condition.isEq ? std::nullopt : functions.both(rest, {{-condition.expr - 1, false}});
    if (rest.empty() || !without || !follow(functions, *without, other))
      continue;
    conditions = rest;
    return true;
  }
  return false;
}

static void joinCases(const IndexFunctions &functions, SmallVectorImpl<Conditions> &cases) {
  for (size_t i = 0; i < cases.size(); ++i)
    for (size_t j = 0; j < cases.size(); ++j) {
      if (i == j)
        continue;
      std::optional<Conditions> both =
          follow(functions, cases[j], cases[i]) ? cases[i] : joined(functions, cases[i], cases[j]);
      if (!both)
        continue;
      cases[i] = *both;
      cases.erase(cases.begin() + static_cast<std::ptrdiff_t>(j));
      return joinCases(functions, cases);
    }
}

void dmxc::tidyCases(const IndexFunctions &functions, SmallVectorImpl<Conditions> &cases) {
  if (cases.size() < 2)
    return;
  for (Conditions &conditions : cases)
    llvm::transform(conditions, conditions.begin(), reduced);
  llvm::erase_if(cases, [&](const Conditions &conditions) {
    return !conditions.empty() &&
           exclude(functions, conditions, getAffineConstantExpr(0, conditions[0].expr.getContext()));
  });
  joinCases(functions, cases);
  auto relaxOne = [&](Conditions &one) {
    return llvm::any_of(cases, [&](const Conditions &other) { return &one != &other && relax(functions, one, other); });
  };
  while (llvm::any_of(cases, relaxOne))
    ;
}

std::optional<Cases> dmxc::casesWhere(IndexFunctions &functions, Value value, bool wanted) {
  constexpr size_t most = 16;
  Operation *op = value.getDefiningOp();
  if (!elementOf(value).isInteger(1))
    return std::nullopt;
  if (isa_and_nonnull<NotOp>(op))
    return casesWhere(functions, op->getOperand(0), !wanted);
  Cases cases;
  if (!isa_and_nonnull<AndOp, OrOp>(op)) {
    for (const Piece &piece : functions.ofBroadcast(value)) {
      if (piece.leaf.kind != Leaf::Number)
        return std::nullopt;
      if (piece.leaf.isNumber(wanted ? 1 : 0))
        cases.push_back(piece.where);
    }
    tidyCases(functions, cases);
    return cases;
  }
  std::optional<Cases> a = casesWhere(functions, op->getOperand(0), wanted),
                       b = a ? casesWhere(functions, op->getOperand(1), wanted) : std::nullopt;
  if (!b || a->size() * b->size() > most)
    return std::nullopt;
  if (isa<OrOp>(op) == wanted) {
    llvm::append_range(cases, *a);
    llvm::append_range(cases, *b);
  } else {
    for (const Conditions &one : *a)
      for (const Conditions &other : *b)
        if (std::optional<Conditions> both = functions.both(one, other))
          cases.push_back(*both);
  }
  tidyCases(functions, cases);
  return cases;
}
