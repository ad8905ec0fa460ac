//===- DimTest.cpp - symbolic sizes against plain arithmetic --------------===//
#include "dmxc/Support/Dim.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

using namespace dmxc;

namespace {

const Dim n = Dim::symbol("n"), m = Dim::symbol("m"), k = Dim::symbol("k");

TEST(Dim, EqualSizesAreEqualHoweverTheyWereMade) {
  EXPECT_EQ(n * 4 + n * 4, n * 8);
  EXPECT_EQ((n + 1) * (n - 1), n * n - 1);
  EXPECT_EQ(n - n, Dim(0));
  EXPECT_EQ(n * m * k, k * n * m);
  EXPECT_FALSE(n * m == n * k);
  EXPECT_EQ((n * 0).known(), 0);
  EXPECT_EQ(Dim::symbol("n"), n);
}

TEST(Dim, DivisionThatLeavesNoRestIsSeen) {
  EXPECT_EQ(Dim::floorDiv(n * m * 768, m * 64), n * 12);
  EXPECT_EQ(Dim::floorDiv((n + m) * k * 6, (n + m) * 3), k * 2);
  EXPECT_EQ(Dim::floorDiv(n * n + n * m * 2 + m * m, n + m), n + m);
  EXPECT_EQ(Dim::divideExactly(n * 3, 2), std::nullopt);
  EXPECT_EQ(Dim::divideExactly(n, 0), std::nullopt);
  EXPECT_EQ(Dim::divideExactly(0, n), Dim(0));
}

TEST(Dim, DivisionTakesOutWhatItCan) {
  EXPECT_EQ(Dim::floorDiv(n * 6 + m + 5, 3).str(), "floordiv(m + 2, 3) + 2*n + 1");
  EXPECT_EQ(Dim::ceilDiv(n * 4, 4), n);
  EXPECT_EQ(Dim::floorDiv(Dim::floorDiv(n, 2) + 3, 2), Dim::floorDiv(n + 6, 4));
  // The multiple of 5 below the coefficient has more than 64 bits.
  EXPECT_EQ(Dim::floorDiv(n - INT64_MAX, 5).str(), "floordiv(n + 3, 5) - 1844674407370955162");
  EXPECT_EQ(Dim::mod(n * 6 + 5, 3), Dim(2));
}

TEST(Dim, MinimumsAreSeenWhereSymbolsAreNotNegative) {
  EXPECT_EQ(Dim::max(n + 3, n), n + 3);
  EXPECT_EQ(Dim::min(n + m, m), m);
  EXPECT_EQ(Dim::max(n - 1, 0).str(), "max(0, n - 1)");
  EXPECT_EQ(Dim::max(n, m), Dim::max(m, n));
  EXPECT_TRUE(Dim::max(n - 1, 0).neverNegative());
  EXPECT_FALSE((n - 1).neverNegative());
}

TEST(Dim, BroadcastFollowsNumpy) {
  EXPECT_EQ(Dim::broadcast(n, 1), n);
  EXPECT_EQ(Dim::broadcast(1, n), n);
  EXPECT_EQ(Dim::broadcast(n, n), n);
  EXPECT_EQ(Dim::broadcast(n, 7), Dim(7));
  Dim both = Dim::broadcast(n, m);
  EXPECT_EQ(Dim::broadcast(both, m), both);
  EXPECT_EQ(Dim::broadcast(n, both), both);
  // As many as fit into a table of 512, with the whole: where they broadcast, the whole.
  EXPECT_EQ(Dim::broadcast(Dim::min(512, n), n), n);
  EXPECT_EQ(Dim::broadcast(n, Dim::min(n, 1)), n);
  EXPECT_NE(Dim::broadcast(n, Dim::min(n, 0)), n);
  EXPECT_NE(Dim::broadcast(n, Dim::min(512, m)), n);
  EXPECT_NE(Dim::broadcast(both, n + 1), both);
  EXPECT_NE(Dim::broadcast(both + 1, m), both + 1);
  auto value = [&](int64_t a, int64_t b) {
    return both.evaluate([&](std::string_view name) { return name == "n" ? a : b; });
  };
  EXPECT_EQ(value(1, 5), 5);
  EXPECT_EQ(value(5, 1), 5);
  EXPECT_EQ(value(0, 1), 0);
  EXPECT_EQ(value(4, 4), 4);
  EXPECT_EQ(value(3, 4), std::nullopt);
}

TEST(Dim, ContentIsTheCommonFactor) {
  auto [content, primitive] = (n * m * 12 + n * 18).contentAndPrimitive();
  EXPECT_EQ(content, 6);
  EXPECT_EQ(primitive, n * m * 2 + n * 3);
  EXPECT_EQ(Dim(24).contentAndPrimitive(), std::make_pair(int64_t(24), Dim(1)));
  EXPECT_EQ(Dim(0).contentAndPrimitive(), std::make_pair(int64_t(0), Dim(1)));
}

TEST(Dim, TextIsReadBack) {
  Dim odd = Dim::symbol("past + 1");
  for (Dim dim : {n, n * 4 - 1, Dim(-3) * n + m * k, Dim::floorDiv(n + 1, 2) * m, Dim::max(n - 4, 0) - 2, odd * 2,
                  Dim::symbol("it's"), Dim::symbol("max"), Dim(0), Dim(-5), Dim::broadcast(n, m)}) {
    Result<Dim> again = Dim::parse(dim.str());
    ASSERT_TRUE(again) << dim.str();
    EXPECT_EQ(*again, dim) << dim.str();
  }
  EXPECT_EQ((odd * 2).str(), "2*'past + 1'");
  for (const char *text :
       {"", "n +", "3 n", "floordiv(n)", "foo(n, m)", "'n", "(n", "n)", "99999999999999999999", "*n"})
    EXPECT_FALSE(Dim::parse(text)) << text;
  EXPECT_FALSE(Dim::parse(std::string(100000, '(')));
}

TEST(Dim, BoundsHoldTheValue) {
  auto symbols = [](std::string_view) { return Dim::Bounds{1, 512}; };
  Dim::Bounds bounds = (Dim::ceilDiv(n, 64) * 4 - 1).bounds(symbols);
  EXPECT_EQ(bounds.min, 3);
  EXPECT_EQ(bounds.max, 31);
}

TEST(Dim, WhatLeaves64BitsHasNoValue) {
  auto large = [](std::string_view) { return std::optional<int64_t>(INT64_MAX / 2); };
  EXPECT_EQ((n * 3).evaluate(large), std::nullopt);
  EXPECT_EQ(Dim::floorDiv(m, n - k).evaluate(large), std::nullopt); // by zero
  EXPECT_EQ(Dim(INT64_MAX) * Dim(4), Dim(INT64_MAX));
}

/// A random expression, and its value by plain arithmetic.
struct Sample {
  Dim dim;
  int64_t value;
};

Sample sample(std::mt19937 &random, const std::map<std::string, int64_t, std::less<>> &values, int depth) {
  auto pick = [&](int count) { return static_cast<int>(random() % count); };
  if (depth == 0 || pick(5) == 0) {
    if (pick(3) == 0) {
      int64_t number = pick(9);
      return {number, number};
    }
    auto it = std::next(values.begin(), pick(static_cast<int>(values.size())));
    return {Dim::symbol(it->first), it->second};
  }
  Sample a = sample(random, values, depth - 1), b = sample(random, values, depth - 1);
  auto floored = [](int64_t x, int64_t y) { return x / y - (x % y != 0 && (x < 0) != (y < 0)); };
  switch (pick(7)) {
  case 0:
  case 1:
    return {a.dim + b.dim, a.value + b.value};
  case 2:
    return {a.dim - b.dim, a.value - b.value};
  case 3:
    return {a.dim * b.dim, a.value * b.value};
  case 4:
    return {Dim::min(a.dim, b.dim), std::min(a.value, b.value)};
  case 5:
    return {Dim::max(a.dim, b.dim), std::max(a.value, b.value)};
  default:
    if (b.value == 0)
      return a;
    return {Dim::floorDiv(a.dim, b.dim), floored(a.value, b.value)};
  }
}

TEST(Dim, RandomExpressionsHaveTheValueOfPlainArithmetic) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::map<std::string, int64_t, std::less<>> values = {
        {"a", static_cast<int64_t>(random() % 7)}, {"b", static_cast<int64_t>(random() % 20)}, {"c", 1}};
    Sample s = sample(random, values, 4);
    auto lookup = [&](std::string_view name) { return std::optional<int64_t>(values.find(name)->second); };
    std::optional<int64_t> value = s.dim.evaluate(lookup);
    ASSERT_TRUE(value) << s.dim.str();
    ASSERT_EQ(*value, s.value) << s.dim.str() << " with a=" << values["a"] << " b=" << values["b"];
    Result<Dim> again = Dim::parse(s.dim.str());
    ASSERT_TRUE(again && *again == s.dim) << s.dim.str();
    ASSERT_FALSE(s.dim.neverNegative() && s.value < 0) << s.dim.str();
    Dim replaced = s.dim.substitute([&](std::string_view name) { return Dim(*lookup(name)); });
    ASSERT_TRUE(replaced.is(s.value)) << s.dim.str();
  }
}

TEST(Dim, TextsThatMultiplyOutAreBounded) {
  std::string factor = "(n + m + k + l + 1)", product = factor;
  for (int i = 1; i < 12; ++i)
    product += "*" + factor;
  auto whole = Dim::parse(product);
  ASSERT_FALSE(whole);
  EXPECT_NE(whole.error().message.find("when it is multiplied out"), std::string::npos) << whole.error().message;
  EXPECT_LT(whole.error().message.size(), 300u);
  EXPECT_TRUE(Dim::parse(factor + "*" + factor + "*" + factor));
  EXPECT_FALSE(Dim::parse("floordiv(" + product + ", 7)"));
  EXPECT_FALSE(Dim::parse(std::string(5000, 'n')));
  EXPECT_TRUE(Dim::parse(std::string(300, 'n')));
}

} // namespace
