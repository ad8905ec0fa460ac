//===- DimFacts.cpp - what sizes become where more is known of them -------===//
#include "dmxc/Support/DimFacts.h"

#include "DimText.h"

using namespace dmxc;

using Call = Dim::Call;

/// Calls `visit` with the calls in a dim, inner ones first: which, its operands, itself.
template <typename Visit> static void forEachCall(Dim dim, Visit visit) {
  Dim::Builder<Dim> builder;
  builder.number = [](int64_t number) { return Dim(number); };
  builder.symbol = [](std::string_view symbol) { return Dim::symbol(symbol); };
  builder.add = [](Dim a, Dim b) { return a + b; };
  builder.mul = [](Dim a, Dim b) { return a * b; };
  builder.call = [&](Call call, Dim lhs, Dim rhs) {
    Dim result = simplifiedCall(call, lhs, rhs);
    visit(call, lhs, rhs, result);
    return result;
  };
  dim.build(builder);
}

/// Sums of products of numbers and symbols.
static bool isPolynomial(Dim dim) {
  bool calls = false;
  forEachCall(dim, [&](Call, Dim, Dim, Dim) { calls = true; });
  return !calls;
}

struct Operands {
  Dim lhs, rhs;
};

/// Of a dim that is a call and nothing more.
static std::optional<Operands> loneCall(Dim dim, Call wanted) {
  std::optional<Operands> found;
  forEachCall(dim, [&](Call call, Dim lhs, Dim rhs, Dim result) {
    if (call == wanted && result == dim)
      found = {lhs, rhs};
  });
  return found;
}

//===----------------------------------------------------------------------===//
// Facts
//===----------------------------------------------------------------------===//

void DimFacts::define(std::string_view symbol, Dim value) {
  definitions.insert_or_assign(std::string(symbol), value);
  known.clear();
}

void DimFacts::addNotNegative(Dim dim, Sources sources) {
  Sources already;
  if (dim.isStatic() || neverNegative(dim, already))
    return;
  facts.push_back({dim.contentAndPrimitive().second, std::move(sources)});
  known.clear();
}

/// part <= whole, and they broadcast: they are equal or part is at most 1. Where part is the least of `whole` and
/// something that is 2 or more, it is `whole`: 1 is the least of both only where `whole` is 1.
void DimFacts::addWithin(Dim part, Dim whole, const Sources &sources) {
  std::optional<Operands> least = loneCall(part, Call::Min);
  for (bool swapped : {false, true}) {
    if (!least || !((swapped ? least->rhs : least->lhs) == whole))
      continue;
    Dim other = swapped ? least->lhs : least->rhs;
    Sources all = sources;
    if (neverNegative(other - 2, all))
      addNotNegative(other - whole, all);
  }
}

/// Two shapes meet in a third one that one of them was to be: the broadcast of both is that.
void DimFacts::addSame(Dim call, Dim value, const Sources &sources) {
  std::optional<Operands> operands = loneCall(call, Call::Broadcast);
  if (!operands || !(operands->lhs == value || operands->rhs == value))
    return;
  sameAs.try_emplace(call.key(), Narrowed{value, sources});
  known.clear();
}

void DimFacts::addLessOrEqual(Dim lhs, Dim rhs, size_t source) {
  Sources sources{source};
  Dim difference = narrow(rhs, sources) - narrow(lhs, sources);
  addNotNegative(difference, sources);
}

void DimFacts::addEqual(Dim lhs, Dim rhs, size_t source) {
  Sources sources{source};
  Dim a = narrow(lhs, sources), b = narrow(rhs, sources);
  addNotNegative(b - a, sources);
  addNotNegative(a - b, sources);
  addSame(a, b, sources);
  addSame(b, a, sources);
}

void DimFacts::addBroadcast(Dim lhs, Dim rhs, size_t source) {
  Sources sources{source};
  Dim a = narrow(lhs, sources), b = narrow(rhs, sources);
  addWithin(a, b, sources);
  addWithin(b, a, sources);
}

bool DimFacts::holdsAnyway(Dim dim) const {
  Dim primitive = dim.contentAndPrimitive().second;
  if (dim.isStatic())
    return *dim.known() >= 0;
  return primitive.neverNegative() || (bounds && primitive.bounds(bounds).min >= 0);
}

bool DimFacts::neverNegative(Dim dim, Sources &sources) const {
  if (holdsAnyway(dim))
    return true;
  Dim primitive = dim.isStatic() ? dim : dim.contentAndPrimitive().second;
  for (const Fact &fact : facts)
    if (holdsAnyway(primitive - fact.dim)) {
      sources.insert(fact.sources.begin(), fact.sources.end());
      return true;
    }
  return false;
}

bool DimFacts::contradictory() const {
  return bounds && std::any_of(facts.begin(), facts.end(), [&](const Fact &f) { return f.dim.bounds(bounds).max < 0; });
}

//===----------------------------------------------------------------------===//
// Dims
//===----------------------------------------------------------------------===//

Dim DimFacts::narrow(Dim dim, Sources &sources) const {
  if (dim.isStatic())
    return dim;
  auto row = known.find(dim.key());
  if (row == known.end()) {
    Narrowed made;
    Dim::Builder<Dim> builder;
    builder.number = [](int64_t number) { return Dim(number); };
    builder.symbol = [&](std::string_view symbol) { return narrowSymbol(symbol, made.sources); };
    builder.add = [](Dim a, Dim b) { return a + b; };
    builder.mul = [](Dim a, Dim b) { return a * b; };
    builder.call = [&](Call call, Dim lhs, Dim rhs) { return narrowCall(call, lhs, rhs, made.sources); };
    made.dim = dim.build(builder);
    row = known.emplace(dim.key(), std::move(made)).first;
  }
  sources.insert(row->second.sources.begin(), row->second.sources.end());
  return row->second.dim;
}

Dim DimFacts::narrowSymbol(std::string_view symbol, Sources &sources) const {
  auto row = definitions.find(symbol);
  if (row == definitions.end())
    return Dim::symbol(symbol);
  Sources own;
  Dim value = narrow(row->second, own);
  if (own.empty() || !isPolynomial(value))
    return Dim::symbol(symbol);
  sources.merge(own);
  return value;
}

Dim DimFacts::narrowCall(Call call, Dim lhs, Dim rhs, Sources &sources) const {
  Dim plain = simplifiedCall(call, lhs, rhs);
  if (auto row = sameAs.find(plain.key()); row != sameAs.end()) {
    sources.insert(row->second.sources.begin(), row->second.sources.end());
    return row->second.dim;
  }
  if ((call != Call::Min && call != Call::Max) || !loneCall(plain, call))
    return plain;
  Dim difference = call == Call::Min ? rhs - lhs : lhs - rhs;
  if (neverNegative(difference, sources))
    return lhs;
  return neverNegative(Dim(0) - difference, sources) ? rhs : plain;
}
