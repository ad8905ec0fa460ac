//===- IndexFacts.cpp - facts as pieces, and what is left of them without an axis ----===//
#include "IndexRules.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

//===----------------------------------------------------------------------===//
// Rules in a space
//===----------------------------------------------------------------------===//

SmallVector<Conditions> IndexFunctions::casesAt(const Rule &rule, ArrayRef<AffineExpr> index) {
  SmallVector<AffineExpr> symbols;
  for (Dim dim : rule.dims)
    symbols.push_back(exprOf(dim));
  SmallVector<Conditions> cases;
  for (IntegerSet set : rule.cases) {
    Conditions own;
    bool isPossible = true;
    for (const Condition &condition : conditionsOf(set)) {
      bool readsValue = llvm::any_of(llvm::seq<unsigned>(rule.dims.size(), set.getNumSymbols()),
                                     [&](unsigned symbol) { return condition.expr.isFunctionOfSymbol(symbol); });
      if (readsValue) // a set of more elements
        continue;
      AffineExpr expr = condition.expr.replaceDimsAndSymbols(index, symbols);
      isPossible = isPossible && add(own, {expr, condition.isEq});
    }
    if (isPossible)
      cases.push_back(own);
  }
  return cases;
}

std::optional<Rule> IndexFunctions::ruleOf(ArrayRef<Conditions> cases) const {
  Rule rule;
  rule.rank = rank;
  auto reads = [](const Condition &c, size_t position) { return c.expr.isFunctionOfSymbol(position); };
  SmallVector<AffineExpr> renamed(symbolList.size(), number(0));
  for (auto [position, symbol] : llvm::enumerate(symbolList)) {
    bool used = llvm::any_of(cases, [&](const Conditions &conditions) {
      return llvm::any_of(conditions, [&](const Condition &c) { return reads(c, position); });
    });
    if (symbol.value || !used)
      continue;
    renamed[position] = getAffineSymbolExpr(rule.dims.size(), context);
    rule.dims.push_back(symbol.dim);
  }
  for (const Conditions &conditions : cases) {
    Conditions own;
    for (const Condition &condition : conditions) {
      bool readsValue = llvm::any_of(llvm::enumerate(symbolList), [&](auto symbol) {
        return symbol.value().value && reads(condition, symbol.index());
      });
      if (!readsValue && faultOf(condition.expr).empty())
        own.push_back({condition.expr.replaceDimsAndSymbols({}, renamed), condition.isEq});
    }
    if (own.empty())
      return std::nullopt;
    rule.cases.push_back(caseOf(rank, rule.dims.size(), own));
  }
  return rule;
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

std::optional<SmallVector<Conditions>> IndexFunctions::outside(ArrayRef<Conditions> cases) const {
  SmallVector<Conditions> rest{{}};
  for (const Conditions &one : cases) {
    SmallVector<Conditions> next;
    for (const Conditions &before : rest) {
      Conditions met = before;
      for (const Condition &condition : one) {
        for (int64_t sign : {1, -1}) { // what is not >= 0, and what is not <= 0
          AffineExpr opposite = condition.expr * -sign - 1;
          Conditions where = met;
          if ((sign == 1 || condition.isEq) && add(where, {opposite, false}))
            next.push_back(where);
        }
        if (!add(met, condition))
          break;
      }
    }
    rest = std::move(next);
    constexpr size_t most = 64;
    if (rest.size() > most)
      return std::nullopt;
  }
  return rest;
}

Pieces IndexFunctions::chosen(const Rule &rule, const Index &index, Leaf inside, Leaf outside, Operation *op) {
  Pieces result;
  SmallVector<Conditions> cases = casesAt(rule, index);
  for (size_t at = 0; at < cases.size(); ++at) { // each without those before it
    std::optional<SmallVector<Conditions>> rest = this->outside(ArrayRef(cases).take_front(at));
    for (const Conditions &before : rest.value_or(SmallVector<Conditions>()))
      if (std::optional<Conditions> where = both(before, cases[at]))
        result.push_back({*where, inside});
  }
  std::optional<SmallVector<Conditions>> rest = this->outside(cases);
  if (!rest)
    return unknown(op, "what is known of it has more than 64 pieces");
  for (const Conditions &where : *rest)
    result.push_back({where, outside});
  return limited(std::move(result), op);
}

Pieces IndexFunctions::readMask(MaskOp op, const Index &index) {
  if (op.getKeep().empty() || op.getAdds())
    return unknown(op, "it has no rule of what replaces an element");
  Rule rule = dmir::ruleOf(op);
  Pieces input = at(op.getInput(), index);
  if (op.getLow())
    return input;
  // What is outside of a rule without its values or its tiles is outside of the whole; what is inside is not said.
  Leaf inside = rule.values.empty() && !rule.tiles ? Leaf::of(1.0) : Leaf();
  Pieces keeps = chosen(rule, index, inside, Leaf::of(0.0), op);
  Pieces fill{Piece{{}, Leaf::of(cast<FloatAttr>(op.getFill()).getValueAsDouble())}};
  return ElementRules(*this, op).select(keeps, input, fill);
}

//===----------------------------------------------------------------------===//
// Projection
//===----------------------------------------------------------------------===//

namespace {

/// Takes variables out of conditions, as Fourier and Motzkin do. What is left holds wherever the whole did for some
/// numbers in their places; over rational numbers, so that it may hold elsewhere too.
class Elimination {
public:
  Elimination(const Conditions &conditions, std::function<Interval(AffineExpr)> range)
      : conditions(conditions), range(std::move(range)) {}

  /// `atom`: a term that is a variable here, whatever it is made of.
  bool eliminate(AffineExpr atom) {
    constexpr size_t most = 48;
    SmallVector<std::pair<int64_t, Condition>> with; // its factor, and the condition
    Conditions rest;
    addBounds(atom);
    for (const Condition &condition : conditions) {
      int64_t factor = factorOf(condition.expr, atom);
      if (factor)
        with.push_back({factor, condition});
      else
        rest.push_back(condition);
    }
    auto unit = llvm::find_if(with, [](const auto &c) { return c.second.isEq && std::abs(c.first) == 1; });
    for (const auto &[a, x] : with)
      for (const auto &[b, y] : with) {
        if (unit != with.end() ? &x != &unit->second || &x == &y : !pairs(a, x, b, y))
          continue;
        // |b| x and |a| y have opposite factors of the atom; an equation takes any sign.
        int64_t sign = unit != with.end() && a * b > 0 ? -1 : 1;
        AffineExpr sum = inOrder(x.expr * (sign * std::abs(b)) + y.expr * std::abs(a));
        rest.push_back({sum, unit != with.end() && y.isEq});
        if (rest.size() > most)
          return false;
      }
    conditions = std::move(rest);
    return true;
  }

  Conditions conditions;

private:
  static int64_t factorOf(AffineExpr expr, AffineExpr atom) {
    int64_t constant = 0;
    for (const AffineTerm &term : termsOf(expr, constant))
      if (term.atom == atom)
        return term.factor;
    return 0;
  }

  /// A lower and an upper bound.
  static bool pairs(int64_t a, const Condition &x, int64_t b, const Condition &y) {
    return a > 0 && b < 0 && !x.isEq && !y.isEq;
  }

  /// Equations without a unit factor are two conditions, and the atom has a range.
  void addBounds(AffineExpr atom) {
    Conditions split;
    for (const Condition &condition : conditions) {
      int64_t factor = factorOf(condition.expr, atom);
      if (!condition.isEq || std::abs(factor) == 1 || !factor) {
        split.push_back(condition);
        continue;
      }
      split.push_back({condition.expr, false});
      split.push_back({-condition.expr, false});
    }
    Interval bounds = range(atom);
    split.push_back({atom - bounds.min, false});
    split.push_back({-atom + bounds.max, false});
    conditions = std::move(split);
  }

  std::function<Interval(AffineExpr)> range;
};

} // namespace

std::optional<Conditions> IndexFunctions::without(AffineDimExpr dim, const Conditions &conditions) const {
  auto reads = [&](AffineExpr expr) { return expr.isFunctionOfDim(dim.getPosition()); };
  llvm::SmallSetVector<AffineExpr, 4> atoms;
  Conditions all = conditions;
  for (const Condition &condition : conditions) {
    int64_t constant = 0;
    for (const AffineTerm &term : termsOf(condition.expr, constant))
      if (reads(term.atom) && term.atom != dim)
        atoms.insert(term.atom);
  }
  for (AffineExpr atom : atoms) { // a quotient says where the number is
    auto binary = cast<AffineBinaryOpExpr>(atom);
    if (binary.getKind() != AffineExprKind::FloorDiv)
      continue;
    int64_t by = cast<AffineConstantExpr>(binary.getRHS()).getValue();
    all.push_back({binary.getLHS() - atom * by, false});
    all.push_back({atom * by + (by - 1) - binary.getLHS(), false});
  }
  Elimination work(all, [&](AffineExpr expr) { return range(expr); });
  if (!work.eliminate(dim))
    return std::nullopt;
  for (AffineExpr atom : atoms)
    if (!work.eliminate(atom))
      return std::nullopt;
  Conditions result;
  for (const Condition &condition : work.conditions) {
    if (reads(condition.expr)) // of an atom that another one is made of
      continue;
    if (!add(result, condition))
      return Conditions{{number(-1), false}}; // nowhere
  }
  constexpr size_t most = 16;
  return result.size() <= most ? std::optional(result) : std::nullopt;
}
