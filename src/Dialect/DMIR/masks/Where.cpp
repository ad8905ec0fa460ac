//===- Where.cpp - rules about the index of a tensor ----------------------===//
#include "dmxc/Dialect/DMIR/masks/Where.h"

#include "dmxc/Dialect/DMIR/masks/Columns.h"

#include <set>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

static int64_t saturate(__int128 value) {
  constexpr int64_t most = int64_t(1) << 62;
  return value > most ? most : value < -most ? -most : static_cast<int64_t>(value);
}

/// Dims first, then symbols, then divisions in the order of their text.
static bool isBefore(AffineExpr a, AffineExpr b) {
  auto rank = [](AffineExpr e) { return isa<AffineDimExpr>(e) ? 0 : isa<AffineSymbolExpr>(e) ? 1 : 2; };
  if (rank(a) != rank(b))
    return rank(a) < rank(b);
  if (auto dim = dyn_cast<AffineDimExpr>(a))
    return dim.getPosition() < cast<AffineDimExpr>(b).getPosition();
  if (auto symbol = dyn_cast<AffineSymbolExpr>(a))
    return symbol.getPosition() < cast<AffineSymbolExpr>(b).getPosition();
  auto text = [](AffineExpr e) {
    std::string s;
    llvm::raw_string_ostream(s) << e;
    return s;
  };
  return text(a) < text(b);
}

static void collect(AffineExpr expr, int64_t factor, int64_t &constant, SmallVectorImpl<AffineTerm> &terms) {
  auto scale = [&](int64_t by) { return saturate(static_cast<__int128>(factor) * by); };
  if (auto number = dyn_cast<AffineConstantExpr>(expr)) {
    constant = saturate(static_cast<__int128>(constant) + scale(number.getValue()));
    return;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (binary && binary.getKind() == AffineExprKind::Add) {
    collect(binary.getLHS(), factor, constant, terms);
    return collect(binary.getRHS(), factor, constant, terms);
  }
  auto by = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : AffineConstantExpr();
  if (by && binary.getKind() == AffineExprKind::Mul)
    return collect(binary.getLHS(), scale(by.getValue()), constant, terms);
  auto same = llvm::find_if(terms, [&](const AffineTerm &term) { return term.atom == expr; });
  if (same == terms.end())
    terms.push_back({factor, expr});
  else
    same->factor = saturate(static_cast<__int128>(same->factor) + factor);
}

SmallVector<AffineTerm> dmir::termsOf(AffineExpr expr, int64_t &constant) {
  SmallVector<AffineTerm> terms;
  collect(expr, 1, constant, terms);
  llvm::erase_if(terms, [](const AffineTerm &term) { return term.factor == 0; });
  llvm::sort(terms, [](const AffineTerm &a, const AffineTerm &b) { return isBefore(a.atom, b.atom); });
  return terms;
}

AffineExpr dmir::inOrder(AffineExpr expr) {
  int64_t constant = 0;
  AffineExpr sum = getAffineConstantExpr(0, expr.getContext());
  for (const AffineTerm &term : termsOf(expr, constant)) {
    AffineExpr atom = term.atom;
    if (auto binary = dyn_cast<AffineBinaryOpExpr>(atom))
      atom = getAffineBinaryOpExpr(binary.getKind(), inOrder(binary.getLHS()), binary.getRHS());
    sum = sum + atom * term.factor;
  }
  return sum + constant;
}

Interval dmir::rangeOf(AffineExpr expr, ArrayRef<Interval> dims, ArrayRef<Interval> symbols) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  auto by = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : AffineConstantExpr();
  if (by && by.getValue() > 0 &&
      (binary.getKind() == AffineExprKind::FloorDiv || binary.getKind() == AffineExprKind::Mod)) {
    Interval inner = rangeOf(binary.getLHS(), dims, symbols);
    Interval quotient{llvm::divideFloorSigned(inner.min, by.getValue()),
                      llvm::divideFloorSigned(inner.max, by.getValue())};
    if (binary.getKind() == AffineExprKind::FloorDiv)
      return quotient;
    if (quotient.min == quotient.max)
      return {inner.min - quotient.min * by.getValue(), inner.max - quotient.min * by.getValue()};
    return {0, by.getValue() - 1};
  }
  if (binary && binary.getKind() != AffineExprKind::Add && (!by || binary.getKind() != AffineExprKind::Mul))
    return {saturate(-(static_cast<__int128>(1) << 100)), saturate(static_cast<__int128>(1) << 100)};
  int64_t constant = 0;
  __int128 low = 0, high = 0;
  for (const AffineTerm &term : termsOf(expr, constant)) {
    Interval range = rangeOf(term.atom, dims, symbols);
    if (term.factor < 0)
      std::swap(range.min, range.max);
    low = saturate(low + static_cast<__int128>(range.min) * term.factor);
    high = saturate(high + static_cast<__int128>(range.max) * term.factor);
  }
  return {saturate(low + constant), saturate(high + constant)};
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

IntegerSet dmir::caseOf(unsigned rank, unsigned symbols, const Conditions &conditions) {
  SmallVector<AffineExpr> exprs;
  SmallVector<bool> isEq;
  for (const Condition &condition : conditions) {
    exprs.push_back(inOrder(condition.expr));
    isEq.push_back(condition.isEq);
  }
  return IntegerSet::get(rank, symbols, exprs, isEq);
}

IntegerSet dmir::wholeCase(unsigned rank, unsigned symbols, MLIRContext *context) {
  return IntegerSet::get(rank, symbols, getAffineConstantExpr(0, context), {false});
}

Conditions dmir::conditionsOf(IntegerSet set) {
  Conditions conditions;
  for (auto [expr, isEq] : llvm::zip(set.getConstraints(), set.getEqFlags()))
    conditions.push_back({expr, isEq});
  return conditions;
}

bool dmir::keeps(const Rule &rule, ArrayRef<int64_t> index, ArrayRef<int64_t> symbols) {
  SmallVector<Interval> box;
  for (int64_t at : index)
    box.push_back({at, at});
  return classify(rule, box, symbols) == TileKind::Full;
}

TileKind dmir::classifyTiles(const TileLists &tiles, Interval rows, Interval columns) {
  bool none = true, all = true;
  for (int64_t row = rows.min / tiles.rows; row <= rows.max / tiles.rows; ++row)
    for (int64_t column = columns.min / tiles.columns; column <= columns.max / tiles.columns; ++column)
      (llvm::binary_search(tiles.of(row), column) ? none : all) = false;
  return none ? TileKind::Empty : all ? TileKind::Full : TileKind::Mixed;
}

TileKind dmir::classify(const Rule &rule, ArrayRef<Interval> box, ArrayRef<int64_t> symbols) {
  TileKind tiles = rule.tiles ? classifyTiles(rule.tiles, box[rule.rank - 2], box[rule.rank - 1]) : TileKind::Full;
  if (tiles == TileKind::Empty)
    return tiles;
  SmallVector<Interval> numbers;
  for (int64_t symbol : symbols)
    numbers.push_back({symbol, symbol});
  bool empty = true;
  for (IntegerSet set : rule.cases) {
    bool always = true, never = false;
    for (const Condition &condition : conditionsOf(set)) {
      Interval range = rangeOf(condition.expr, box, numbers);
      always &= range.min >= 0 && (!condition.isEq || range.max <= 0);
      never |= range.max < 0 || (condition.isEq && range.min > 0);
    }
    if (always)
      return tiles;
    empty &= never;
  }
  return empty ? TileKind::Empty : TileKind::Mixed;
}

const Integers<int64_t> &dmir::plainIntegers() {
  using I = int64_t;
  static const Integers<I> numbers = {
      [](I x) { return x; },
      [](I a, I b) { return saturate(static_cast<__int128>(a) + b); },
      [](I a, I b) { return std::min(a, b); },
      [](I a, I b) { return std::max(a, b); },
      [](I a, I b) { return saturate(static_cast<__int128>(a) * b); },
      [](I a, I b) { return llvm::divideFloorSigned(a, b); },
      [](I a, I b, I then, I otherwise) { return a < b ? then : otherwise; },
  };
  return numbers;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {

/// Writes rules with the usual names of an index.
class Writer {
public:
  explicit Writer(const Rule &rule) {
    constexpr const char *last[] = {"b", "h", "i", "j"};
    for (unsigned axis = 0; axis < rule.rank; ++axis)
      dims.push_back(rule.rank - axis <= 4 ? last[4 - (rule.rank - axis)] : "a" + std::to_string(axis));
    for (Dim dim : rule.dims)
      symbols.push_back(dim.symbolName() ? *dim.symbolName() : "(" + dim.str() + ")");
    const std::string row = dims.size() < 2 ? "" : dims[dims.size() - 2], column = dims.empty() ? "" : dims.back();
    for (const RuleValue &value : rule.values) {
      if (value.isBool)
        bools.insert(symbols.size());
      symbols.push_back(value.name +
                        (value.ofRows && value.ofColumns ? "[" + row + ", " + column + "]"
                         : value.ofRows                  ? "[" + row + "]"
                         : value.ofColumns               ? "[" + column + "]"
                                                         : "") +
                        value.after);
    }
  }

  /// The conditions of a case; two that bound a difference from both sides alike are one.
  std::string conjunction(ArrayRef<Condition> conditions) const {
    SmallVector<bool> said(conditions.size(), false);
    std::string text;
    for (size_t at = 0; at < conditions.size(); ++at) {
      if (said[at])
        continue;
      std::string one = comparison(conditions[at]);
      for (size_t other = at + 1; other < conditions.size(); ++other)
        if (std::optional<std::string> both = distance(conditions[at], conditions[other]); both && !said[other]) {
          one = *both, said[other] = true;
          break;
        }
      text += (text.empty() ? "" : " and ") + one;
    }
    return text;
  }

private:
  /// What is negative is on the left, what is positive on the right.
  std::string comparison(const Condition &condition) const {
    int64_t constant = 0;
    std::string left, right;
    SmallVector<AffineTerm> terms = termsOf(condition.expr, constant);
    if (std::optional<std::string> flag = boolOf(terms, constant); flag && !condition.isEq)
      return *flag;
    for (const AffineTerm &term : terms)
      addTo(term.factor < 0 ? left : right, std::abs(term.factor), atom(term.atom));
    bool isLess = !condition.isEq && constant == -1 && !left.empty() && !right.empty();
    if (isLess)
      return left + " < " + right;
    if (condition.isEq && left.empty())
      std::swap(left, right), constant = -constant;
    if (constant || left.empty() || right.empty()) {
      std::string &side = constant < 0 || (constant == 0 && left.empty()) ? left : right;
      if (constant || side.empty())
        side += (side.empty() ? "" : " + ") + std::to_string(std::abs(constant));
    }
    return (left.empty() ? "0" : left) + " " + (condition.isEq ? "==" : "<=") + " " + (right.empty() ? "0" : right);
  }

  /// Whether a bool is true, or is not.
  std::optional<std::string> boolOf(ArrayRef<AffineTerm> terms, int64_t constant) const {
    auto symbol = terms.size() == 1 ? dyn_cast<AffineSymbolExpr>(terms[0].atom) : AffineSymbolExpr(nullptr);
    if (!symbol || !bools.contains(symbol.getPosition()))
      return std::nullopt;
    bool isSet = terms[0].factor == 1 && constant == -1, isNot = terms[0].factor == -1 && constant == 0;
    const std::string &text = symbols[symbol.getPosition()];
    return isSet ? std::optional(text) : isNot ? std::optional("not (" + text + ")") : std::nullopt;
  }

  /// "|i - j| < 64", of i - j + 63 >= 0 and j - i + 63 >= 0.
  std::optional<std::string> distance(const Condition &a, const Condition &b) const {
    int64_t sum = 0, constant = 0, other = 0;
    SmallVector<AffineTerm> terms = termsOf(a.expr, constant);
    termsOf(b.expr, other);
    bool isOne = terms.size() == 2 && terms[0].factor == -terms[1].factor && std::abs(terms[0].factor) == 1;
    if (a.isEq || b.isEq || !isOne || !termsOf(a.expr + b.expr, sum).empty() || constant != other)
      return std::nullopt;
    return "|" + atom(terms[0].atom) + " - " + atom(terms[1].atom) + "| < " + std::to_string(constant + 1);
  }

  static void addTo(std::string &side, int64_t factor, const std::string &text) {
    side += (side.empty() ? "" : " + ") + text + (factor == 1 ? "" : " * " + std::to_string(factor));
  }

  std::string atom(AffineExpr expr) const {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      return dims[dim.getPosition()];
    if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
      return symbols[symbol.getPosition()];
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    if (!binary)
      return std::to_string(cast<AffineConstantExpr>(expr).getValue());
    const char *sign = binary.getKind() == AffineExprKind::Mod ? " % " : " // ";
    int64_t constant = 0;
    bool isOne = termsOf(binary.getLHS(), constant).size() == 1 && constant == 0;
    std::string left = sum(binary.getLHS());
    return (isOne ? left : "(" + left + ")") + sign + sum(binary.getRHS());
  }

  std::string sum(AffineExpr expr) const {
    int64_t constant = 0;
    std::string text;
    auto add = [&](int64_t number, const std::string &of) {
      text += text.empty() ? (number < 0 ? "-" : "") : number < 0 ? " - " : " + ";
      text += of.empty() ? std::to_string(std::abs(number)) : of;
      if (!of.empty() && std::abs(number) != 1)
        text += " * " + std::to_string(std::abs(number));
    };
    for (const AffineTerm &term : termsOf(expr, constant))
      add(term.factor, atom(term.atom));
    if (constant || text.empty())
      add(constant, "");
    return text;
  }

  SmallVector<std::string> dims, symbols;
  std::set<unsigned> bools; ///< of the symbols
};

} // namespace

std::string dmir::describe(const Rule &rule) {
  Writer writer(rule);
  std::string text;
  for (IntegerSet set : rule.cases) {
    std::string one = writer.conjunction(conditionsOf(set));
    text += (text.empty() ? "" : " or ") + (rule.cases.size() > 1 ? "(" + one + ")" : one);
  }
  if (!rule.tiles)
    return text;
  int64_t listed = 0;
  for (size_t row = 0; row < rule.tiles.lists.size(); ++row)
    listed += static_cast<int64_t>(rule.tiles.of(static_cast<int64_t>(row)).size());
  bool isWhole =
      rule.cases.size() == 1 && rule.cases[0] == wholeCase(rule.rank, rule.symbols(), rule.cases[0].getContext());
  return std::to_string(listed) + " tiles of " + std::to_string(rule.tiles.rows) + " x " +
         std::to_string(rule.tiles.columns) + (isWhole ? "" : " where " + text);
}
