//===- DimFactsTest.cpp - narrowed sizes against all values that meet the facts -===//
#include "dmxc/Support/DimFacts.h"

#include <gtest/gtest.h>

#include <random>

using namespace dmxc;

namespace {

const Dim n = Dim::symbol("n"), m = Dim::symbol("m"), past = Dim::symbol("past");

/// The dim as text, and in brackets what it rests on.
std::string narrowed(const DimFacts &facts, Dim dim) {
  DimFacts::Sources sources;
  std::string text = facts.narrow(dim, sources).str() + " [";
  for (size_t source : sources)
    text += std::to_string(source);
  return text + "]";
}

TEST(DimFacts, NothingFollowsFromNothing) {
  DimFacts facts;
  EXPECT_EQ(narrowed(facts, Dim::min(256, past + 1)), "min(256, past + 1) []");
  EXPECT_EQ(narrowed(facts, Dim::max(n - 1, 0) + m), "m + max(0, n - 1) []");
}

TEST(DimFacts, PartOfATableIsAsLongAsWhatItMeets) {
  DimFacts facts;
  facts.addBroadcast(Dim::min(256, past + 1), past + 1, 4);
  EXPECT_EQ(narrowed(facts, Dim::min(256, past + 1)), "past + 1 [4]");
  EXPECT_EQ(narrowed(facts, Dim::min(256, past)), "past [4]");
  EXPECT_EQ(narrowed(facts, Dim::max(0, Dim::min(256, past + 1) - Dim::min(256, past))), "1 [4]");
  // past = 255 is one that meets it.
  EXPECT_EQ(narrowed(facts, Dim::min(256, past + 2)), "min(256, past + 2) []");
  EXPECT_EQ(narrowed(facts, Dim::min(255, past)), "past [4]");
  EXPECT_EQ(narrowed(facts, Dim::min(254, past)), "min(254, past) []");
  EXPECT_EQ(narrowed(facts, Dim::max(300, past)), "300 [4]");
}

TEST(DimFacts, OneBroadcastsToAnything) {
  DimFacts one, open, other;
  one.addBroadcast(Dim::min(1, n), n, 0); // min(1, 7) is 1, which broadcasts to 7
  EXPECT_EQ(narrowed(one, Dim::min(1, n)), "min(1, n) []");
  open.addBroadcast(Dim::min(m, n), n, 0); // m = 1
  EXPECT_EQ(narrowed(open, Dim::min(m, n)), "min(m, n) []");
  other.addBroadcast(Dim::min(256, n), n + 1, 0); // never equal, but n = 0 and n = 1 meet it
  EXPECT_EQ(narrowed(other, Dim::min(256, n)), "min(256, n) []");
  open.addLessOrEqual(2, m, 1); // what comes later helps what comes after it
  open.addBroadcast(n, Dim::min(m, n), 2);
  EXPECT_EQ(narrowed(open, Dim::min(m, n)), "n [12]");
}

TEST(DimFacts, SlicesEndInsideTheirOperand) {
  DimFacts facts;
  facts.addLessOrEqual(2 * n + 6, 1024, 7);
  EXPECT_EQ(narrowed(facts, Dim::min(509, n)), "n [7]");
  EXPECT_EQ(narrowed(facts, Dim::min(508, n)), "min(508, n) []");
  EXPECT_EQ(narrowed(facts, Dim::min(509, n + m)), "min(509, m + n) []");
}

TEST(DimFacts, EqualSizesAreOrderedBothWays) {
  DimFacts facts;
  facts.addEqual(n, m + 3, 0);
  EXPECT_EQ(narrowed(facts, Dim::min(n, m + 3)), "m + 3 [0]");
  EXPECT_EQ(narrowed(facts, Dim::max(n - 3, m)), "m [0]");
  EXPECT_EQ(narrowed(facts, Dim::max(n - 4, m)), "m [0]");
  EXPECT_EQ(narrowed(facts, Dim::max(n - 2, m)), "n - 2 [0]");
}

TEST(DimFacts, BroadcastsThatMustBeOneOfTheirOperands) {
  DimFacts facts;
  facts.addEqual(Dim::broadcast(n, m), past, 0); // says nothing of which of both it is
  EXPECT_EQ(narrowed(facts, Dim::broadcast(n, m) + 1), "broadcast(m, n) + 1 []");
  facts.addEqual(Dim::broadcast(n, m), m, 1);
  EXPECT_EQ(narrowed(facts, Dim::broadcast(n, m) + 1), "m + 1 [1]");
  EXPECT_EQ(narrowed(facts, Dim::broadcast(n, past)), "broadcast(n, past) []");
  EXPECT_EQ(narrowed(facts, n), "n []"); // which may be 1
}

TEST(DimFacts, BoundsOfSymbolsRestOnNothing) {
  DimFacts facts(
      [](std::string_view symbol) { return symbol == "n" ? Dim::Bounds{1, 512} : Dim::Bounds{0, INT64_MAX}; });
  EXPECT_EQ(narrowed(facts, Dim::min(512, n)), "n []");
  EXPECT_EQ(narrowed(facts, Dim::min(511, n)), "min(511, n) []");
  EXPECT_EQ(narrowed(facts, Dim::max(0, n - 1)), "n - 1 []");
  EXPECT_EQ(narrowed(facts, Dim::min(512, m)), "min(512, m) []");
  EXPECT_FALSE(facts.contradictory());
  facts.addLessOrEqual(600, n, 0);
  EXPECT_TRUE(facts.contradictory());
}

TEST(DimFacts, ComputedSymbolsAreWhatTheyBecome) {
  DimFacts facts;
  facts.define("rows", Dim::min(256, past + 1) - Dim::min(256, past));
  facts.define("more", Dim::symbol("rows") + past);
  facts.define("long", n * m + past);
  facts.define("open", Dim::min(n, m) + Dim::symbol("rows"));
  facts.addBroadcast(Dim::min(256, past + 1), past + 1, 3);
  EXPECT_EQ(narrowed(facts, Dim::symbol("rows") * n), "n [3]");
  EXPECT_EQ(narrowed(facts, Dim::symbol("more")), "past + 1 [3]");
  EXPECT_EQ(narrowed(facts, Dim::symbol("long")), "long []"); // has its name because it is long
  EXPECT_EQ(narrowed(facts, Dim::symbol("open")), "open []");
}

//===----------------------------------------------------------------------===//
// All values of random conditions
//===----------------------------------------------------------------------===//

constexpr int64_t most = 7;

struct Condition {
  int kind; ///< at most, equal, broadcast
  Dim lhs, rhs;

  bool holds(const Dim::Values &values) const {
    std::optional<int64_t> a = lhs.evaluate(values), b = rhs.evaluate(values);
    if (!a || !b)
      return false;
    return kind == 0 ? *a <= *b : *a == *b || (kind == 2 && (*a == 1 || *b == 1));
  }
};

class RandomDims {
public:
  explicit RandomDims(uint32_t seed) : random(seed) {}
  int64_t below(int64_t end) { return std::uniform_int_distribution<int64_t>(0, end - 1)(random); }
  Dim dim(int depth = 3) {
    switch (below(depth ? 10 : 3)) {
    case 0:
      return below(most);
    case 1:
      return n;
    case 2:
      return past;
    case 3:
      return dim(depth - 1) + dim(depth - 1);
    case 4:
      return dim(depth - 1) - below(4);
    case 5:
      return Dim::floorDiv(dim(depth - 1), 1 + below(3));
    case 6:
      return Dim::broadcast(dim(depth - 1), dim(depth - 1));
    case 7:
      return Dim::max(dim(depth - 1), dim(depth - 1));
    default:
      return Dim::min(dim(depth - 1), dim(depth - 1));
    }
  }
  Condition condition() {
    Condition made{static_cast<int>(below(3)), dim(2), dim(2)};
    if (below(2)) // the forms that something follows from
      made.rhs = n + below(2), made.lhs = below(2) ? Dim::min(below(most), made.rhs) : Dim::broadcast(past, made.rhs);
    return made;
  }

private:
  std::mt19937 random;
};

TEST(DimFacts, ValuesStayWhereverTheConditionsThatAreReliedOnHold) {
  int changed = 0, met = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    RandomDims random(seed);
    std::vector<Condition> conditions;
    DimFacts facts;
    for (size_t i = 0; i < 3; ++i) {
      Condition c = conditions.emplace_back(random.condition());
      if (c.kind == 0)
        facts.addLessOrEqual(c.lhs, c.rhs, i);
      else if (c.kind == 1)
        facts.addEqual(c.lhs, c.rhs, i);
      else
        facts.addBroadcast(c.lhs, c.rhs, i);
    }
    Dim dim = random.dim();
    DimFacts::Sources sources;
    Dim narrow = facts.narrow(dim, sources);
    changed += !(narrow == dim);
    for (int64_t both = 0; both < most * most; ++both) {
      Dim::Values values = [&](std::string_view symbol) { return symbol == "n" ? both % most : both / most; };
      bool holds = std::all_of(sources.begin(), sources.end(), [&](size_t i) { return conditions[i].holds(values); });
      std::optional<int64_t> value = dim.evaluate(values); // none where it broadcasts what does not
      met += holds && value && !(narrow == dim);
      if (holds && value) {
        ASSERT_EQ(value, narrow.evaluate(values)) << seed << ": " << dim.str() << " became " << narrow.str()
                                                  << " at n = " << both % most << ", past = " << both / most;
      }
    }
  }
  EXPECT_GT(changed, 200);
  EXPECT_GT(met, 1000);
}

} // namespace
