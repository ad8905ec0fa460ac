//===- LayoutsTest.cpp - tiles and sums of tensor cores -----------------------===//
//
// Against tables and pictures of the PTX ISA manual, written down here by hand: "Strides", "Swizzling modes", "Matrix
// descriptor format" and "Register fragments for wgmma.mma_async.m64n8k16".
//
//===----------------------------------------------------------------------===//

#include "schemas/cuda/Layouts.h"

#include <gtest/gtest.h>

#include <set>

using namespace dmx::cuda;

// In a row of 128 bytes the swizzle exchanges its eight units of 16 bytes: unit c of row r lies at c xor (r mod 8).
TEST(Layouts, SwizzleExchangesUnitsOfARow) {
  const int rowOne[] = {1, 0, 3, 2, 5, 4, 7, 6}, rowSeven[] = {7, 6, 5, 4, 3, 2, 1, 0};
  for (uint64_t unit = 0; unit < 8; ++unit) {
    EXPECT_EQ(swizzled(unit * 16), unit * 16);
    EXPECT_EQ(swizzled(128 + unit * 16 + 5), 128u + rowOne[unit] * 16 + 5);
    EXPECT_EQ(swizzled(7 * 128 + unit * 16), 7u * 128 + rowSeven[unit] * 16);
    EXPECT_EQ(swizzled(9 * 128 + unit * 16), 9u * 128 + rowOne[unit] * 16); // the pattern begins again each 1024 bytes
  }
}

TEST(Layouts, DescriptorHasItsFields) {
  const uint64_t descriptor = descriptorOf(8192) | descriptorAddress(0x12400);
  EXPECT_EQ(descriptor & 0x3fff, 0x1240u);          // bits 0 to 13: address / 16
  EXPECT_EQ(descriptor >> 16 & 0x3fff, 8192u / 16); // 16 to 29: leading offset / 16
  EXPECT_EQ(descriptor >> 32 & 0x3fff, 1024u / 16); // 32 to 45: stride offset / 16
  EXPECT_EQ(descriptor >> 49 & 7, 0u);              // 49 to 51: base offset of tiles at multiples of 1024
  EXPECT_EQ(descriptor >> 62, 1u);                  // 62 to 63: the swizzle of 128 bytes
  EXPECT_EQ(descriptor & ~0xC000'3fff'3fff'3fffull, 0u);
}

TEST(Layouts, StepsAlongK) {
  EXPECT_EQ(KMajor::offset(0, 16) - KMajor::offset(0, 0), KMajor::kStep);
  EXPECT_EQ(MnMajor::offset(0, 16, 64) - MnMajor::offset(0, 0, 64), MnMajor::kStep);
  EXPECT_EQ(MnMajor::offset(64, 0, 64), MnMajor::leading(64));
  EXPECT_EQ(KMajor::offset(8, 0), uint64_t{kPatternBytes});
  EXPECT_EQ(MnMajor::offset(0, 8, 64), uint64_t{kPatternBytes});
}

TEST(Layouts, FragmentsAsInTheManual) {
  struct Known {
    int64_t thread, number, row, column;
  };
  const Known known[] = {{0, 0, 0, 0},   {0, 1, 0, 1},   {0, 2, 8, 0},    {0, 3, 8, 1},     {0, 4, 0, 8},
                         {1, 0, 0, 2},   {3, 1, 0, 7},   {4, 0, 1, 0},    {31, 1, 7, 7},    {31, 3, 15, 7},
                         {32, 0, 16, 0}, {64, 2, 40, 0}, {127, 3, 63, 7}, {127, 7, 63, 15}, {33, 5, 16, 11}};
  for (const Known &k : known) {
    EXPECT_EQ(threadRow(k.thread) + registerRow(k.number), k.row) << k.thread << " " << k.number;
    EXPECT_EQ(threadColumn(k.thread) + registerColumn(k.number), k.column) << k.thread << " " << k.number;
  }
}

TEST(Layouts, FragmentsCoverATileOnce) {
  constexpr int64_t columns = 64;
  std::set<std::pair<int64_t, int64_t>> places;
  for (int64_t thread = 0; thread < 128; ++thread)
    for (int64_t i = 0; i < columns / 2; ++i) {
      EXPECT_TRUE(places.emplace(threadRow(thread) + registerRow(i), threadColumn(thread) + registerColumn(i)).second);
      EXPECT_EQ(registerOf(registerRow(i) / 8, registerColumn(i)), i);
    }
  EXPECT_EQ(places.size(), 64u * columns);
  EXPECT_EQ(*places.rbegin(), std::make_pair(int64_t{63}, columns - 1));
}
