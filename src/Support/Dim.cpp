//===- Dim.cpp - arithmetic of symbolic sizes -----------------------------===//

#include "DimText.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>

using namespace dmxc;

std::string_view dmxc::dimCallName(Dim::Call call) {
  constexpr std::string_view names[] = {"floordiv", "min", "max", "broadcast"};
  return names[static_cast<int>(call)];
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

namespace {

int64_t saturate(__int128 value) { return static_cast<int64_t>(std::clamp<__int128>(value, -INT64_MAX, INT64_MAX)); }
int64_t addNumbers(int64_t a, int64_t b) { return saturate(__int128(a) + b); }
int64_t mulNumbers(int64_t a, int64_t b) { return saturate(__int128(a) * b); }
int64_t floorDivide(int64_t a, int64_t b) {
  __int128 x = a, y = b;
  return saturate(x / y - (x % y != 0 && (x < 0) != (y < 0)));
}

//===----------------------------------------------------------------------===//
// The pool
//===----------------------------------------------------------------------===//

/// All factors and sums of the process, by their text.
class Pool {
public:
  static Pool &get() {
    static Pool *pool = new Pool; // never destroyed: Dims may outlive static objects
    return *pool;
  }
  const DimFactor *factor(DimFactor made) { return intern(factors, std::move(made)); }
  const DimSum *sum(DimSum made) { return intern(sums, std::move(made)); }

private:
  template <typename T> using Table = std::map<std::string, std::unique_ptr<T>>;
  template <typename T> const T *intern(Table<T> &table, T made) {
    std::lock_guard<std::mutex> guard(lock);
    std::unique_ptr<T> &entry = table[made.text];
    if (!entry)
      entry = std::make_unique<T>(std::move(made));
    return entry.get();
  }

  std::mutex lock;
  Table<DimFactor> factors;
  Table<DimSum> sums;
};

std::string quoted(std::string_view name) {
  if (isIdentifier(name))
    return std::string(name);
  std::string text = "'";
  for (char c : name) {
    if (c == '\'' || c == '\\')
      text += '\\';
    text += c;
  }
  return text + "'";
}

//===----------------------------------------------------------------------===//
// Sums of terms
//===----------------------------------------------------------------------===//

using Factors = std::vector<const DimFactor *>;

bool textBefore(const DimFactor *a, const DimFactor *b) { return a->text < b->text; }

/// Graded lexicographic order, greatest first: an order of monomials, as the long division needs it.
bool comesBefore(const Factors &a, const Factors &b) {
  if (a.size() != b.size())
    return a.size() > b.size();
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), textBefore);
}

std::string termText(const DimTerm &term, int64_t magnitude) {
  std::string text = term.factors.empty() || magnitude != 1 ? std::to_string(magnitude) : "";
  for (const DimFactor *factor : term.factors)
    text += (text.empty() ? "" : "*") + factor->text;
  return text;
}

std::string sumText(const std::vector<DimTerm> &terms) {
  std::string text;
  for (const DimTerm &term : terms) {
    // The sign joins the terms, but for the smallest number, which has no magnitude.
    bool negative = term.coefficient < 0 && term.coefficient != INT64_MIN;
    std::string sign = text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    text += sign + termText(term, negative ? -term.coefficient : term.coefficient);
  }
  return text;
}

/// Orders terms, adds up those of equal factors and drops those that vanish.
std::vector<DimTerm> normalized(std::vector<DimTerm> terms) {
  std::stable_sort(terms.begin(), terms.end(),
                   [](const DimTerm &a, const DimTerm &b) { return comesBefore(a.factors, b.factors); });
  std::vector<DimTerm> result;
  for (DimTerm &term : terms)
    if (!result.empty() && result.back().factors == term.factors)
      result.back().coefficient = addNumbers(result.back().coefficient, term.coefficient);
    else
      result.push_back(std::move(term));
  std::erase_if(result, [](const DimTerm &term) { return term.coefficient == 0; });
  return result;
}

DimTerm product(const DimTerm &a, const DimTerm &b) {
  DimTerm term{mulNumbers(a.coefficient, b.coefficient), {}};
  std::merge(a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end(), std::back_inserter(term.factors),
             textBefore);
  return term;
}

/// a / b of single terms, if that is one.
std::optional<DimTerm> quotient(const DimTerm &a, const DimTerm &b) {
  if (a.coefficient % b.coefficient)
    return std::nullopt;
  DimTerm term{floorDivide(a.coefficient, b.coefficient), {}};
  std::set_difference(a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end(),
                      std::back_inserter(term.factors), textBefore);
  if (term.factors.size() + b.factors.size() != a.factors.size())
    return std::nullopt;
  return term;
}

} // namespace

//===----------------------------------------------------------------------===//
// Construction
//===----------------------------------------------------------------------===//

std::vector<DimTerm> Dim::terms() const {
  if (sum)
    return sum->terms;
  return number ? std::vector<DimTerm>{{number, {}}} : std::vector<DimTerm>{};
}

Dim Dim::fromTerms(std::vector<DimTerm> terms) {
  terms = normalized(std::move(terms));
  if (terms.empty())
    return 0;
  if (terms.size() == 1 && terms[0].factors.empty())
    return terms[0].coefficient;
  std::string text = sumText(terms);
  Dim dim;
  dim.sum = Pool::get().sum({std::move(terms), std::move(text)});
  return dim;
}

Dim Dim::symbol(std::string_view name) {
  DimFactor factor{std::string(name), std::nullopt, 0, 0, quoted(name)};
  return fromTerms({{1, {Pool::get().factor(std::move(factor))}}});
}

Dim Dim::fromCall(Call call, Dim a, Dim b) {
  std::string text = std::string(dimCallName(call)) + "(" + a.str() + ", " + b.str() + ")";
  return fromTerms({{1, {Pool::get().factor({"", call, a, b, std::move(text)})}}});
}

std::string Dim::str() const { return sum ? sum->text : std::to_string(number); }

std::optional<std::string> Dim::symbolName() const {
  if (!sum || sum->terms.size() != 1 || sum->terms[0].coefficient != 1 || sum->terms[0].factors.size() != 1 ||
      sum->terms[0].factors[0]->call)
    return std::nullopt;
  return sum->terms[0].factors[0]->name;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Dim dmxc::operator+(Dim a, Dim b) {
  if (a.isStatic() && b.isStatic())
    return addNumbers(a.number, b.number);
  std::vector<DimTerm> terms = a.terms(), more = b.terms();
  terms.insert(terms.end(), more.begin(), more.end());
  return Dim::fromTerms(std::move(terms));
}

Dim dmxc::operator-(Dim a, Dim b) { return a + Dim(-1) * b; }

Dim dmxc::operator*(Dim a, Dim b) {
  if (a.isStatic() && b.isStatic())
    return mulNumbers(a.number, b.number);
  std::vector<DimTerm> terms, left = a.terms(), right = b.terms();
  for (const DimTerm &x : left)
    for (const DimTerm &y : right)
      terms.push_back(product(x, y));
  return Dim::fromTerms(std::move(terms));
}

/// Long division of polynomials.
std::optional<Dim> Dim::divideExactly(Dim a, Dim b) {
  std::vector<DimTerm> divisor = b.terms();
  if (divisor.empty())
    return std::nullopt;
  Dim result, rest = a;
  // Each step takes the greatest term away and adds smaller ones only; the bound is against saturated coefficients.
  for (int steps = 0; !rest.is(0); ++steps) {
    std::optional<DimTerm> next = quotient(rest.terms().front(), divisor.front());
    if (!next || steps > 64)
      return std::nullopt;
    Dim part = fromTerms({*next});
    result += part;
    rest -= part * b;
  }
  return result;
}

Dim Dim::floorDiv(Dim a, Dim b) {
  if (a.isStatic() && b.isStatic() && b.number)
    return floorDivide(a.number, b.number);
  if (std::optional<Dim> exact = divideExactly(a, b))
    return *exact;
  if (!b.isStatic() || b.number <= 0)
    return fromCall(Call::FloorDiv, a, b);
  // What b divides comes out: floordiv(6*n + m + 5, 3) = 2*n + 1 + floordiv(m + 2, 3).
  std::vector<DimTerm> whole, rest;
  for (DimTerm term : a.terms()) {
    int64_t times = floorDivide(term.coefficient, b.number);
    int64_t left = static_cast<int64_t>(term.coefficient - __int128(times) * b.number); // times * b may exceed 64 bits
    // A rest with another sign would hide that the value is not negative.
    if (left && !term.factors.empty()) {
      rest.push_back(std::move(term));
      continue;
    }
    whole.push_back({times, term.factors});
    rest.push_back({left, std::move(term.factors)});
  }
  Dim remaining = fromTerms(rest);
  if (remaining.isStatic())
    return fromTerms(std::move(whole)) + floorDivide(remaining.number, b.number);
  return fromTerms(std::move(whole)) + divideCalls(remaining, b.number);
}

/// floordiv(floordiv(x, m) + k, n) is floordiv(x + k*m, m*n): convolutions with strides one after the other.
Dim Dim::divideCalls(Dim a, int64_t by) {
  std::vector<DimTerm> all = a.terms();
  bool one = !all.empty() && all.size() <= 2 && all[0].coefficient == 1 && all[0].factors.size() == 1 &&
             (all.size() == 1 || all[1].factors.empty());
  const DimFactor *inner = one ? all[0].factors[0] : nullptr;
  if (!inner || inner->call != Call::FloorDiv || inner->rhs.valueOr(0) <= 0)
    return fromCall(Call::FloorDiv, a, by);
  Dim rest = all.size() == 2 ? all[1].coefficient : 0;
  return floorDiv(inner->lhs + rest * inner->rhs, inner->rhs * by);
}

Dim Dim::min(Dim a, Dim b) {
  if ((b - a).neverNegative())
    return a;
  return (a - b).neverNegative() ? b : apply(Call::Min, a, b);
}

Dim Dim::max(Dim a, Dim b) {
  if ((a - b).neverNegative())
    return a;
  return (b - a).neverNegative() ? b : apply(Call::Max, a, b);
}

Dim Dim::broadcast(Dim a, Dim b) {
  // min(n, b) and b: they are equal, or one of them is 1 and the other b.
  auto isLeast = [](Dim a, Dim b) {
    std::vector<DimTerm> all = a.terms();
    if (all.size() != 1 || all[0].coefficient != 1 || all[0].factors.size() != 1)
      return false;
    const DimFactor *factor = all[0].factors[0];
    return factor->call == Call::Min &&
           ((factor->lhs == b && factor->rhs.valueOr(0) >= 1) || (factor->rhs == b && factor->lhs.valueOr(0) >= 1));
  };
  // The broadcast of b and another dim stays what it is with b once more.
  auto includes = [](Dim a, Dim b) {
    std::vector<DimTerm> all = a.terms();
    if (all.size() != 1 || all[0].coefficient != 1 || all[0].factors.size() != 1)
      return false;
    const DimFactor *factor = all[0].factors[0];
    return factor->call == Call::Broadcast && (factor->lhs == b || factor->rhs == b);
  };
  if (a == b || b.is(1) || includes(a, b) || isLeast(b, a))
    return a;
  if (a.is(1) || includes(b, a) || isLeast(a, b))
    return b;
  // A number other than 1 decides; whether the other fits it is checked where shapes meet.
  if (a.isStatic() && !b.isStatic())
    return a;
  return b.isStatic() && !a.isStatic() ? b : apply(Call::Broadcast, a, b);
}

/// The calls whose order of operands does not matter.
Dim Dim::apply(Call call, Dim a, Dim b) { return b.str() < a.str() ? fromCall(call, b, a) : fromCall(call, a, b); }

bool Dim::neverNegative() const {
  auto factorIs = [](const DimFactor *factor) {
    if (!factor->call || *factor->call == Call::Broadcast)
      return true;
    bool lhs = factor->lhs.neverNegative(), rhs = factor->rhs.neverNegative();
    return *factor->call == Call::Max ? lhs || rhs : lhs && rhs;
  };
  std::vector<DimTerm> all = terms();
  return std::all_of(all.begin(), all.end(), [&](const DimTerm &term) {
    return term.coefficient >= 0 && std::all_of(term.factors.begin(), term.factors.end(), factorIs);
  });
}

std::pair<int64_t, Dim> Dim::contentAndPrimitive() const {
  std::vector<DimTerm> all = terms();
  int64_t content = 0;
  for (const DimTerm &term : all)
    content = std::gcd(content, term.coefficient == INT64_MIN ? 1 : term.coefficient);
  if (content == 0)
    return {0, 1};
  for (DimTerm &term : all)
    term.coefficient /= content;
  return {content, fromTerms(std::move(all))};
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::optional<int64_t> Dim::evaluate(const Values &values) const {
  using Value = std::optional<int64_t>;
  auto checked = [](auto operation) {
    return [operation](Value a, Value b) -> Value {
      int64_t result;
      return a && b && !operation(*a, *b, &result) ? Value(result) : std::nullopt;
    };
  };
  Builder<Value> builder;
  builder.number = [](int64_t number) { return Value(number); };
  builder.symbol = [&](std::string_view name) { return values(name); };
  builder.add = checked([](int64_t a, int64_t b, int64_t *r) { return __builtin_add_overflow(a, b, r); });
  builder.mul = checked([](int64_t a, int64_t b, int64_t *r) { return __builtin_mul_overflow(a, b, r); });
  builder.call = [](Call call, Value a, Value b) -> Value {
    if (!a || !b)
      return std::nullopt;
    switch (call) {
    case Call::FloorDiv:
      return *b ? Value(floorDivide(*a, *b)) : std::nullopt;
    case Call::Min:
      return std::min(*a, *b);
    case Call::Max:
      return std::max(*a, *b);
    case Call::Broadcast:
      return *a == *b || *b == 1 ? a : *a == 1 ? b : std::nullopt;
    }
    return std::nullopt;
  };
  return build(builder);
}

Dim dmxc::simplifiedCall(Dim::Call call, Dim a, Dim b) {
  switch (call) {
  case Dim::Call::FloorDiv:
    return Dim::floorDiv(a, b);
  case Dim::Call::Min:
    return Dim::min(a, b);
  case Dim::Call::Max:
    return Dim::max(a, b);
  case Dim::Call::Broadcast:
    break;
  }
  return Dim::broadcast(a, b);
}

Dim Dim::substitute(const std::function<Dim(std::string_view)> &values) const {
  Builder<Dim> builder;
  builder.number = [](int64_t number) { return Dim(number); };
  builder.symbol = values;
  builder.add = [](Dim a, Dim b) { return a + b; };
  builder.mul = [](Dim a, Dim b) { return a * b; };
  builder.call = simplifiedCall;
  return build(builder);
}

Dim::Bounds Dim::bounds(const std::function<Bounds(std::string_view)> &symbols) const {
  auto corners = [](Bounds a, Bounds b, auto operation) {
    int64_t all[] = {operation(a.min, b.min), operation(a.min, b.max), operation(a.max, b.min),
                     operation(a.max, b.max)};
    auto [low, high] = std::minmax_element(std::begin(all), std::end(all));
    return Bounds{*low, *high};
  };
  Builder<Bounds> builder;
  builder.number = [](int64_t number) { return Bounds{number, number}; };
  builder.symbol = symbols;
  builder.add = [](Bounds a, Bounds b) { return Bounds{addNumbers(a.min, b.min), addNumbers(a.max, b.max)}; };
  builder.mul = [&](Bounds a, Bounds b) { return corners(a, b, mulNumbers); };
  builder.call = [&](Call call, Bounds a, Bounds b) -> Bounds {
    switch (call) {
    case Call::FloorDiv:
      return b.min > 0 ? corners(a, b, floorDivide) : Bounds{INT64_MIN, INT64_MAX};
    case Call::Min:
      return {std::min(a.min, b.min), std::min(a.max, b.max)};
    case Call::Max:
      return {std::max(a.min, b.min), std::max(a.max, b.max)};
    case Call::Broadcast:
      break;
    }
    return {std::min(a.min, b.min), std::max(a.max, b.max)};
  };
  return build(builder);
}

void Dim::forEachSymbol(const std::function<void(std::string_view)> &visit) const {
  if (!sum)
    return;
  for (const DimTerm &term : sum->terms)
    for (const DimFactor *factor : term.factors) {
      if (!factor->call)
        visit(factor->name);
      factor->lhs.forEachSymbol(visit);
      factor->rhs.forEachSymbol(visit);
    }
}
