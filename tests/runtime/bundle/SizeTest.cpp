//===- SizeTest.cpp - sizes that cannot wrap ------------------------------===//
//
// Held against 128 bits, in which sums and products of two numbers of 63 do not wrap.
//
//===----------------------------------------------------------------------===//
#include "schemas/Size.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

using dmx::Size;

namespace {

using Wide = unsigned __int128;

std::vector<uint64_t> numbers() {
  std::vector<uint64_t> all{0, 1, 2, 3, 279040, 246241, 268468226, UINT64_MAX, UINT64_MAX - 1};
  std::mt19937_64 random(57);
  for (unsigned bits : {8u, 16u, 31u, 32u, 33u, 48u, 62u, 63u})
    for (uint64_t beside : {0, 1, 2})
      all.push_back((uint64_t(1) << bits) + beside - 1);
  for (int i = 0; i < 200; ++i)
    all.push_back(random() >> random() % 64);
  return all;
}

void expectSame(Size got, Wide wanted) {
  bool isKnown = wanted <= Wide(INT64_MAX);
  ASSERT_EQ(got.isKnown(), isKnown);
  ASSERT_EQ(got.value(), isKnown ? static_cast<uint64_t>(wanted) : UINT64_MAX);
}

TEST(Size, SumsAndProducts) {
  for (uint64_t a : numbers())
    for (uint64_t b : numbers()) {
      bool areKnown = a <= INT64_MAX && b <= INT64_MAX;
      Wide none = Wide(1) << 100;
      expectSame(Size(a) + b, areKnown ? Wide(a) + b : none);
      expectSame(Size(a) * b, areKnown ? Wide(a) * b : none);
      for (uint64_t room : {uint64_t(0), uint64_t(4096), uint64_t(INT64_MAX)})
        EXPECT_EQ(dmx::liesWithin(a, b, room), areKnown && Wide(a) + b <= room) << a << " " << b << " " << room;
    }
}

TEST(Size, WhatIsTooLargeStaysThat) {
  Size product = Size(279040) * 246241 * 268468226u;
  EXPECT_EQ(279040 * 246241ull * 268468226ull, 1024u) << "which is why it is asked";
  EXPECT_FALSE(product.isKnown());
  EXPECT_FALSE((product * 0).isKnown());
  EXPECT_FALSE((product + 1).isKnown());
  EXPECT_FALSE(product.fits(UINT64_MAX >> 1));
  EXPECT_FALSE(Size(0).fits(product));
  EXPECT_EQ(product.text(), "more than 2^63");
  EXPECT_EQ(Size(12).text(), "12");
}

TEST(Size, NothingIsNegative) {
  for (int64_t number : {int64_t(-1), INT64_MIN, int64_t(-64)})
    EXPECT_FALSE(Size(number).isKnown());
  EXPECT_FALSE(Size(int8_t(-1)).isKnown());
  EXPECT_EQ(Size(uint8_t(255)).value(), 255u);
  EXPECT_FALSE(dmx::liesWithin(-16, 32, 1024));
  EXPECT_FALSE(dmx::liesWithin(16, -16, 1024));
}

} // namespace
