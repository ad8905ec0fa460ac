//===- RoundedWeightsTest.cpp - packed forms that round weights -----------===//

#include "targets/cpu/product/RoundedWeights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace dmxc;
using namespace dmxc::cpu;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<std::byte> pack(WeightFormat format, const FloatMatrix &matrix) {
  std::vector<std::byte> out(roundedPanelBytes(format, matrix.k, matrix.n), std::byte(0xee));
  packRounded(format, matrix, out);
  return out;
}

float scaleOf(const std::vector<std::byte> &packed, const FloatMatrix &matrix, int64_t col) {
  float scale;
  std::memcpy(&scale, packed.data() + scalesOffset(matrix.k, matrix.n) + 4 * col, 4);
  return scale;
}

TEST(RoundedWeights, Names) {
  EXPECT_EQ(numericsOfMode("")->weights, WeightFormat::Kept);
  EXPECT_EQ(numericsOfMode("strict")->weights, WeightFormat::Kept);
  EXPECT_EQ(numericsOfMode("bf16-weights")->weights, WeightFormat::BF16);
  EXPECT_EQ(numericsOfMode("bf16")->weights, WeightFormat::BF16); // of what stays f32
  EXPECT_TRUE(numericsOfMode("bf16")->roundsProducts);
  EXPECT_EQ(numericsOfMode("int8-columns")->weights, WeightFormat::S8);
  EXPECT_FALSE(numericsOfMode("s8"));
  EXPECT_EQ(numericsModes(),
            "strict, bf16, bf16-convs, bf16-weights, int8[:BLOCK], int8-weights[:BLOCK], int8-weights-zeros[:BLOCK], "
            "int4-weights[:BLOCK], int4-weights-zeros[:BLOCK], int8-columns");
  EXPECT_EQ(numericsOfMode("int4-weights")->blocks, (BlockRounding{4, 32, false}));
  EXPECT_EQ(numericsOfMode("int8-weights-zeros:128")->blocks, (BlockRounding{8, 128, true}));
  EXPECT_FALSE(numericsOfMode("int8-weights")->roundsRows);
  EXPECT_TRUE(numericsOfMode("int8:64")->roundsRows);
  EXPECT_EQ(numericsOfMode("int8:64")->blocks, (BlockRounding{8, 64, false}));
  for (const char *wrong : {"int4-weights:", "int4-weights:33", "int4-weights:32:32", "bf16:32", "strict:16"})
    EXPECT_FALSE(numericsOfMode(wrong)) << wrong;
  for (WeightFormat format : {WeightFormat::Kept, WeightFormat::BF16, WeightFormat::S8})
    EXPECT_EQ(formatOfForm(panelForm(format)), format);
  EXPECT_FALSE(formatOfForm("quads16"));
}

TEST(RoundedWeights, Bf16RoundsToNearestEven) {
  // 1 + 2^-8 lies between 1 and 1 + 2^-7: ties go to the even one.
  std::vector<float> values{1.0f, 1.00390625f, 1.01171875f, -3.40282347e38f};
  FloatMatrix matrix{values.data(), 2, 2, 2, 1};
  std::vector<std::byte> packed = pack(WeightFormat::BF16, matrix);
  auto *to = reinterpret_cast<const uint16_t *>(packed.data());
  EXPECT_EQ(to[0], 0x3f80);
  EXPECT_EQ(to[1], 0x3f80);
  EXPECT_EQ(to[16], 0x3f82);
  EXPECT_EQ(to[17], 0xff80); // beyond the greatest bf16
  EXPECT_EQ(to[2], 0);       // padding
  EXPECT_EQ(roundingError(WeightFormat::BF16, matrix), kInf);
}

TEST(RoundedWeights, ScalesAreOfColumns) {
  // [row][col] of 3 x 18, in memory transposed; column c holds -c, 0 and c/2.
  std::vector<float> values;
  for (int64_t c = 0; c < 18; ++c)
    values.insert(values.end(), {-1.0f * c, 0.0f, 0.5f * c});
  FloatMatrix matrix{values.data(), 3, 18, 1, 3};
  std::vector<std::byte> packed = pack(WeightFormat::S8, matrix);
  auto *to = reinterpret_cast<const int8_t *>(packed.data());
  EXPECT_EQ(to[5], -127);
  EXPECT_EQ(to[16 + 5], 0);
  EXPECT_EQ(to[32 + 5], 64); // 63.5: ties to even
  EXPECT_EQ(to[48 + 1], -127);
  EXPECT_EQ(to[48 + 2], 0); // padding
  EXPECT_EQ(to[0], 0);      // a column of zeros
  EXPECT_EQ(scaleOf(packed, matrix, 0), 0.0f);
  EXPECT_EQ(scaleOf(packed, matrix, 17), 17.0f / 127.0f);
  EXPECT_EQ(scaleOf(packed, matrix, 18), 0.0f);
  // Each column is off by half a step, of 127, where it is c/2.
  EXPECT_NEAR(roundingError(WeightFormat::S8, matrix), 0.5 / 127 / std::sqrt(1.25), 1e-7);
}

TEST(RoundedWeights, ColumnsThatAreNotFinite) {
  std::vector<float> values{1.0f, kInf, kNan, 2.0f, -2.0f, 1.0f, 1.0f, 1e-45f};
  FloatMatrix matrix{values.data(), 2, 4, 4, 1};
  std::vector<std::byte> packed = pack(WeightFormat::S8, matrix);
  EXPECT_EQ(scaleOf(packed, matrix, 0), 2.0f / 127.0f);
  EXPECT_TRUE(std::isnan(scaleOf(packed, matrix, 1)));
  EXPECT_TRUE(std::isnan(scaleOf(packed, matrix, 2)));
  EXPECT_EQ(roundingError(WeightFormat::S8, matrix), kInf); // the finite values of columns 1 and 2 are lost
  EXPECT_LT(roundingError(WeightFormat::BF16, matrix), 1e-9);
}

TEST(RoundedWeights, ScalesBelowTheLeastNormalNumber) {
  std::vector<float> values{1e-43f, -1e-43f, 1e-45f};
  FloatMatrix matrix{values.data(), 3, 1, 1, 1};
  auto packed = pack(WeightFormat::S8, matrix);
  auto *to = reinterpret_cast<const int8_t *>(packed.data());
  EXPECT_EQ(to[16], -to[0]);
  EXPECT_LE(roundingError(WeightFormat::S8, matrix), 1.0);
}

} // namespace
