//===- SearchTest.cpp - which candidates a tuner tries --------------------===//
#include "src/Driver/tune/Search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

using namespace dmxc::driver;

namespace {

/// Two axes; promising are powers of two on both.
struct Grid {
  std::vector<Point> points;
  std::vector<size_t> promising;
  explicit Grid(int64_t side) {
    auto isPower = [](int64_t value) { return (value & (value - 1)) == 0; };
    for (int64_t i = 1; i <= side; ++i)
      for (int64_t j = 1; j <= side; ++j) {
        if (isPower(i) && isPower(j))
          promising.push_back(points.size());
        points.push_back({i, j});
      }
  }
};

TEST(Search, TriesAllOfASmallSpaceOnce) {
  Grid grid(5);
  std::multiset<size_t> tried;
  auto found = searchSpace(grid.points, 3, grid.promising, 100, [&](size_t i) {
    tried.insert(i);
    return std::optional<double>(std::abs(static_cast<double>(i) - 17.2));
  });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->best, 17U);
  EXPECT_EQ(found->trials, 25U);
  EXPECT_EQ(tried.size(), std::set<size_t>(tried.begin(), tried.end()).size());
}

TEST(Search, NeverTriesMoreThanItMay) {
  Grid grid(16);
  for (size_t trials : {1, 2, 7, 50, 255, 256, 1000}) {
    size_t count = 0;
    auto found = searchSpace(grid.points, 9, grid.promising, trials, [&](size_t) {
      ++count;
      return std::optional<double>(1);
    });
    ASSERT_TRUE(found);
    EXPECT_EQ(count, std::min<size_t>(trials, 256));
    EXPECT_EQ(found->trials, count);
  }
}

/// A smooth bowl whose bottom is no promising candidate: a fifth of the space comes within 5 % of it.
TEST(Search, ComesNearTheBestOfABowl) {
  Grid grid(12);
  for (double x : {2.0, 5.0, 7.0, 11.0})
    for (double y : {1.0, 6.0, 10.0}) {
      auto found = searchSpace(grid.points, 0, grid.promising, grid.points.size() / 5, [&](size_t i) {
        double dx = static_cast<double>(grid.points[i][0]) - x, dy = static_cast<double>(grid.points[i][1]) - y;
        return std::optional<double>(100 + dx * dx + dy * dy);
      });
      ASSERT_TRUE(found);
      EXPECT_LE(found->value, 105) << x << ", " << y;
    }
}

/// The fastest of all computes half: it is no candidate, however fast.
TEST(Search, DropsWhatHasNoMeasure) {
  Grid grid(6);
  auto found = searchSpace(grid.points, 0, grid.promising, 36,
                           [&](size_t i) { return i == 14 ? std::nullopt : std::optional<double>(i == 20 ? 5 : 10); });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->best, 20U);
  EXPECT_FALSE(searchSpace(grid.points, 0, grid.promising, 36, [](size_t) { return std::optional<double>(); }));
  EXPECT_FALSE(searchSpace({}, 0, {}, 36, [](size_t) { return std::optional<double>(1); }));
}

} // namespace
