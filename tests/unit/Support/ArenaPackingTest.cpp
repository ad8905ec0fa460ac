//===- ArenaPackingTest.cpp - offsets never overlap -----------------------===//
#include "dmxc/Support/ArenaPacking.h"

#include <gtest/gtest.h>

#include <random>

using namespace dmxc;

namespace {

bool sound(const std::vector<LiveRange> &ranges, int64_t arena) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    const LiveRange &a = ranges[i];
    if (a.offset < 0 || a.offset % 64 || a.offset + a.size > arena)
      return false;
    for (size_t j = 0; j < i; ++j) {
      const LiveRange &b = ranges[j];
      bool together = a.first <= b.last && b.first <= a.last;
      if (together && a.offset < b.offset + b.size && b.offset < a.offset + a.size)
        return false;
    }
  }
  return true;
}

TEST(ArenaPacking, EmptyNeedsNothing) {
  std::vector<LiveRange> none;
  EXPECT_EQ(packArena(none), 0);
  EXPECT_EQ(arenaLowerBound(none), 0);
}

TEST(ArenaPacking, ChainNeedsTwoNeighbours) {
  std::vector<LiveRange> chain;
  for (int i = 0; i < 10; ++i)
    chain.push_back({64 * (i + 1), i, i + 1, 0});
  EXPECT_EQ(arenaLowerBound(chain), 64 * 19);
  int64_t arena = packArena(chain);
  EXPECT_TRUE(sound(chain, arena));
  EXPECT_EQ(arena, 64 * 19);
}

TEST(ArenaPacking, RandomRangesAreSoundAndNearTheBound) {
  std::mt19937 random(7);
  double worst = 1;
  for (int round = 0; round < 200; ++round) {
    std::vector<LiveRange> ranges(1 + random() % 60);
    for (LiveRange &r : ranges) {
      r.size = 64 * (1 + random() % 100);
      r.first = random() % 50;
      r.last = r.first + random() % 8;
    }
    int64_t bound = arenaLowerBound(ranges);
    int64_t arena = packArena(ranges);
    ASSERT_TRUE(sound(ranges, arena)) << "round " << round;
    ASSERT_GE(arena, bound);
    worst = std::max(worst, double(arena) / bound);
  }
  EXPECT_LT(worst, 1.35);
}

TEST(ArenaPacking, OverlapIsDetectedByTheCheckItself) {
  // Negative control of `sound`.
  std::vector<LiveRange> two = {{64, 0, 1, 0}, {64, 1, 2, 0}};
  EXPECT_FALSE(sound(two, 128));
}

} // namespace
