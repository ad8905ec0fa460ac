//===- DimFacts.h - what sizes become where more is known of them -*- C++ -*-===//
//
// A graph asks things of its sizes that each run checks: an index lies inside a table, two shapes broadcast. In every
// run that goes on they hold, and there `min(256, past)` may be `past`. Facts are such conditions, each with the
// number of what it was taken from, so that who relies on a fact knows which condition must stay checked.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Dim.h"

#include <map>
#include <set>

namespace dmxc {

/// Not safe to use from several threads at once.
class DimFacts {
public:
  /// Numbers of the conditions that something rests on, as the caller counts them.
  using Sources = std::set<size_t>;

  /// `bounds` are those of the symbols, which hold anyway; without them symbols are not negative.
  explicit DimFacts(std::function<Dim::Bounds(std::string_view symbol)> bounds = {}) : bounds(std::move(bounds)) {}

  /// The symbol is computed, and what from.
  void define(std::string_view symbol, Dim value);

  // Conditions. What follows from those before it is no fact of its own.
  void addLessOrEqual(Dim lhs, Dim rhs, size_t source);
  void addEqual(Dim lhs, Dim rhs, size_t source);
  /// They are equal, or one of them is 1.
  void addBroadcast(Dim lhs, Dim rhs, size_t source);

  /// Whether no value of the symbols is seen that meets a single fact: then nothing follows that would be worth it.
  bool contradictory() const;

  /// Whether no value of the symbols that meets the facts makes it negative; false also where that is not seen.
  /// `sources` gets what that rests on.
  bool neverNegative(Dim dim, Sources &sources) const;
  /// A dim that has the same value wherever the facts hold: calls whose operands they order or divide are gone, and
  /// computed symbols whose value becomes a polynomial by them. `sources` gets what that rests on.
  Dim narrow(Dim dim, Sources &sources) const;

private:
  struct Fact {
    Dim dim; ///< is not negative
    Sources sources;
  };
  struct Narrowed {
    Dim dim;
    Sources sources;
  };
  void addNotNegative(Dim dim, Sources sources);
  void addWithin(Dim part, Dim whole, const Sources &sources);
  void addSame(Dim call, Dim value, const Sources &sources);
  bool holdsAnyway(Dim dim) const;
  Dim narrowSymbol(std::string_view symbol, Sources &sources) const;
  Dim narrowCall(Dim::Call call, Dim lhs, Dim rhs, Sources &sources) const;

  std::function<Dim::Bounds(std::string_view)> bounds;
  std::map<std::string, Dim, std::less<>> definitions;
  std::vector<Fact> facts;
  using Table = std::map<std::pair<int64_t, const void *>, Narrowed>; ///< by Dim::key
  Table sameAs;                                                       ///< broadcasts whose value is another dim
  mutable Table known;
};

} // namespace dmxc
