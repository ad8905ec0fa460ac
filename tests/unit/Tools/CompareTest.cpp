//===- CompareTest.cpp - how near tensors are to expected ones ------------===//
#include "dmxc/Tools/Compare.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace dmxc::tools::test {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

Tensor floats(std::vector<float> values, Shape shape = {}) {
  if (shape.empty())
    shape = {static_cast<int64_t>(values.size())};
  Tensor t(DType::F32, shape);
  std::copy(values.begin(), values.end(), t.as<float>());
  return t;
}

bool same(std::vector<float> a, std::vector<float> b, Tolerance t = {0, 0}) {
  return compareTensors(floats(a), floats(b), t).pass;
}

TEST(Compare, NanAndInfinity) {
  EXPECT_TRUE(same({nan, inf, -inf}, {nan, inf, -inf}));
  EXPECT_FALSE(same({nan}, {1}, {1, 1}));
  EXPECT_FALSE(same({1}, {nan}, {1, 1}));
  EXPECT_FALSE(same({inf}, {-inf}, {1, 1}));
  EXPECT_FALSE(same({inf}, {3e38f}, {1e9, 1e9}));
  EXPECT_FALSE(same({3e38f}, {inf}, {1e9, 1e9}));
  EXPECT_TRUE(same({0.0f}, {-0.0f}));
}

TEST(Compare, TheToleranceIsRelativeToTheExpected) {
  EXPECT_TRUE(same({110}, {100}, {0.1, 0}));
  EXPECT_FALSE(same({100}, {90}, {0.1, 0}));
  EXPECT_TRUE(same({100}, {90}, {0.1, 1}));
  EXPECT_TRUE(same({1e-8f}, {0}, {0, 1e-7}));
  EXPECT_FALSE(same({1e-6f}, {0}, {1, 1e-7}));
}

TEST(Compare, WithoutAToleranceTheLargestElementCounts) {
  // 2e-3 of the element and 2e-4 of the largest, which is -10
  EXPECT_TRUE(same({0.0019f, -10}, {0, -10}, {}));
  EXPECT_FALSE(same({0.0021f, -10}, {0, -10}, {}));
  EXPECT_TRUE(same({1.0039f, -10}, {1, -10}, {}));
  EXPECT_FALSE(same({1.0041f, -10}, {1, -10}, {}));
  EXPECT_FALSE(same({0.0019f, 9}, {0, 9}, {})); // the expected's largest, of either sign
  EXPECT_TRUE(same({inf, 0.0019f, 10}, {inf, 0, 10}, {}));
  EXPECT_FALSE(same({nan, 10}, {0, 10}, {}));
  EXPECT_FALSE(same({1e-9f}, {0}, {}));
}

TEST(Compare, OneToleranceThatIsGivenBringsTheUsualOther) {
  EXPECT_TRUE(same({1.0009f}, {1}, {{}, 0}));
  EXPECT_FALSE(same({1.0011f}, {1}, {{}, 0}));
  EXPECT_TRUE(same({0.9e-7f, 10}, {0, 10}, {0, {}}));
  EXPECT_FALSE(same({1.1e-7f, 10}, {0, 10}, {0, {}}));
}

TEST(Compare, IntegersAreEqualWithoutATolerance) {
  Tensor a(DType::I32, {1}), b(DType::I32, {1});
  a.setInt(0, 100001);
  b.setInt(0, 100000);
  EXPECT_FALSE(compareTensors(a, b, {}).pass);
  EXPECT_TRUE(compareTensors(b, b, {}).pass);
  EXPECT_TRUE(compareTensors(a, b, {1e-3, 0}).pass);
}

TEST(Compare, TheRuleInWords) {
  EXPECT_EQ(ruleText({}), "|error| <= 0.002 |expected| + 0.0002 max |expected|; integers equal");
  EXPECT_EQ(ruleText({0.5, {}}), "|error| <= 0.5 |expected| + 1e-07");
  EXPECT_EQ(ruleText({{}, 0}), "|error| <= 0.001 |expected| + 0");
  EXPECT_EQ(ruleText({{}, {}, 22}), "floats by their noise, SQNR >= 22 dB; integers equal");
}

TEST(Compare, ReportsFirstAndWorst) {
  Tensor actual = floats({1, 2.5f, 3, 4, 9, 6}, {2, 3}), expected = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  Comparison c = compareTensors(actual, expected, {0, 0.1});
  EXPECT_FALSE(c.pass);
  EXPECT_EQ(c.mismatches, 2);
  EXPECT_EQ(c.first, 1);
  EXPECT_EQ(c.worst, 4);
  EXPECT_DOUBLE_EQ(c.maxAbsolute, 4);
  EXPECT_DOUBLE_EQ(c.maxRelative, 0.8);
  std::string text = describe(c, actual, expected);
  for (const char *part : {"2 of 6 elements differ (33.3 %)", "first mismatch at [0, 1]: got 2.5, expected 2",
                           "worst mismatch at [1, 1]: got 9, expected 5", "max abs 4"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Compare, SignalToNoiseOfAWholeTensor) {
  Tolerance tolerance;
  tolerance.minSqnr = 20;
  // signal 3^2 + 4^2 = 25, noise 0.5^2 = 0.25: 100, thus 20 dB
  Comparison c = compareTensors(floats({3, 4.5f}), floats({3, 4}), tolerance);
  EXPECT_TRUE(c.pass);
  EXPECT_NEAR(c.sqnr, 20, 1e-9);
  tolerance.minSqnr = 20.1;
  c = compareTensors(floats({3, 4.5f}), floats({3, 4}), tolerance);
  EXPECT_FALSE(c.pass);
  EXPECT_EQ(describe(c, floats({3, 4.5f}), floats({3, 4})),
            "SQNR 20.0 dB, max abs 0.5, max rel 0.125, which is too noisy");
  EXPECT_TRUE(compareTensors(floats({0, nan}), floats({0, nan}), tolerance).pass);
  EXPECT_FALSE(compareTensors(floats({100, nan}), floats({100, 1}), tolerance).pass);
}

TEST(Compare, DtypeAndShapeMustBeEqual) {
  Comparison c = compareTensors(floats({1, 2}), floats({1, 2}, {2, 1}), {});
  EXPECT_FALSE(c.pass);
  EXPECT_EQ(c.structural, "is f32 2, expected f32 2x1");
  Tensor ints(DType::I32, {2});
  EXPECT_FALSE(compareTensors(floats({0, 0}), ints, {}).pass);
}

TEST(Compare, LargeIntegersAreExact) {
  Tensor a(DType::I64, {1}), b(DType::I64, {1});
  a.as<int64_t>()[0] = (int64_t(1) << 60) + 1;
  b.as<int64_t>()[0] = int64_t(1) << 60;
  EXPECT_FALSE(compareTensors(a, b, {0, 0}).pass);
  EXPECT_TRUE(compareTensors(a, b, {0, 1}).pass);
  a.as<int64_t>()[0] = INT64_MIN;
  b.as<int64_t>()[0] = INT64_MAX;
  EXPECT_FALSE(compareTensors(a, b, {0, 1e18}).pass);
  Tensor u(DType::U64, {1}), v(DType::U64, {1});
  u.as<uint64_t>()[0] = UINT64_MAX;
  v.as<uint64_t>()[0] = UINT64_MAX - 1;
  EXPECT_FALSE(compareTensors(u, v, {0, 0}).pass);
}

TEST(Compare, EmptyTensorsAreEqual) {
  EXPECT_TRUE(compareTensors(Tensor(DType::F32, {0}), Tensor(DType::F32, {0}), {}).pass);
}

TEST(Random, IsReproducibleAndInRange) {
  Tensor a = randomTensor(DType::F32, {1000}, 3), b = randomTensor(DType::F32, {1000}, 3);
  Tensor c = randomTensor(DType::F32, {1000}, 4);
  EXPECT_TRUE(compareTensors(a, b, {0, 0}).pass);
  EXPECT_FALSE(compareTensors(a, c, {0, 0}).pass);
  double sum = 0;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_GE(a.as<float>()[i], -1.0f);
    ASSERT_LE(a.as<float>()[i], 1.0f);
    sum += a.as<float>()[i];
  }
  EXPECT_LT(std::fabs(sum / 1000), 0.1);
  Tensor ints = randomTensor(DType::I64, {1000}, 1);
  int64_t ones = 0;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(ints.as<int64_t>()[i] == 0 || ints.as<int64_t>()[i] == 1);
    ones += ints.as<int64_t>()[i];
  }
  EXPECT_NEAR(static_cast<double>(ones), 500, 80);
}

TEST(Index, IsRowMajor) {
  EXPECT_EQ(indexString({2, 3, 4}, 23), "[1, 2, 3]");
  EXPECT_EQ(indexString({2, 3, 4}, 4), "[0, 1, 0]");
  EXPECT_EQ(indexString({}, 0), "[]");
}

} // namespace
} // namespace dmxc::tools::test
