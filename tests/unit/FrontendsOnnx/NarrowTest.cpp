//===- NarrowTest.cpp - casts to powers of two, element types that share bytes -===//
#include "ModelBuilder.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace dmxc;
using namespace dmxc::test;

namespace {

constexpr int kFloat = 1, kScale = 24, kUint8 = 2;

/// What the model's only result is for these inputs; nothing where it has none.
std::optional<Tensor> run(const ModelBuilder &builder, const std::vector<Tensor> &inputs) {
  Result<std::vector<Tensor>> results = evaluate(builder, inputs);
  EXPECT_TRUE(bool(results)) << results.error().message;
  return results ? std::optional<Tensor>(results->front()) : std::nullopt;
}

/// By the definition: the least of all finite scales that is not below x, and so on.
uint8_t scaleOf(double x, const std::string &mode, bool saturate) {
  if (std::isnan(x))
    return 255;
  const double least = std::ldexp(1.0, -127), largest = std::ldexp(1.0, 127);
  if (x < least)
    return saturate ? 0 : 255;
  int below = 0;
  while (below < 254 && std::ldexp(1.0, below + 1 - 127) <= x)
    ++below;
  const double low = std::ldexp(1.0, below - 127), high = 2 * low;
  int chosen = below;
  if (x > low && (mode == "up" || (mode == "nearest" && high - x <= x - low)))
    ++chosen;
  if (chosen == 255 || std::isinf(x) || x >= 2 * largest)
    return saturate ? 254 : 255;
  return static_cast<uint8_t>(chosen);
}

std::vector<float> numbers() {
  std::vector<float> values{0,           1,           1.5F,       1.4999999F,     0x1p-127F, 0x1.8p-127F,
                            0x1.7p-127F, 0x1.fp-127F, 0x1p-128F,  0x1p-149F,      0x1p-126F, 0x1.8p126F,
                            0x1p127F,    0x1.4p127F,  0x1.8p127F, 0x1.fffffep127F};
  values.push_back(std::numeric_limits<float>::infinity());
  values.push_back(std::numeric_limits<float>::quiet_NaN());
  std::mt19937 random(5);
  while (values.size() < 500)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random() & 0x7fffffff)));
  return values;
}

} // namespace

TEST(Narrow, NumbersBecomePowersOfTwoByTheRoundingAskedFor) {
  const std::vector<float> values = numbers();
  Tensor x(DType::F32, {static_cast<int64_t>(values.size())});
  std::memcpy(x.mutableData(), values.data(), x.byteSize());
  for (const char *mode : {"up", "down", "nearest"})
    for (bool saturate : {true, false}) {
      ModelBuilder builder(24);
      builder.input("x", std::to_string(values.size())).output("y");
      onnx::NodeProto &node = builder.node("Cast", {"x"}, {"y"}, "cast");
      ModelBuilder::setInt(node, "to", kScale);
      ModelBuilder::setInt(node, "saturate", saturate);
      ModelBuilder::setString(node, "round_mode", mode);
      std::optional<Tensor> y = run(builder, {x});
      ASSERT_TRUE(y);
      ASSERT_EQ(y->dtype(), DType::F8E8M0);
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_EQ(y->as<uint8_t>()[i], scaleOf(values[i], mode, saturate))
            << std::hexfloat << values[i] << " " << mode << (saturate ? " saturated" : "");
    }
}

TEST(Narrow, EveryPowerOfTwoBecomesItsNumber) {
  Tensor x(DType::F8E8M0, {256});
  for (int i = 0; i < 256; ++i)
    x.as<uint8_t>()[i] = static_cast<uint8_t>(i);
  ModelBuilder builder(24);
  builder.input("x", "256", kScale).output("y");
  ModelBuilder::setInt(builder.node("Cast", {"x"}, {"y"}, "cast"), "to", kFloat);
  std::optional<Tensor> y = run(builder, {x});
  ASSERT_TRUE(y);
  for (int i = 0; i < 255; ++i)
    EXPECT_EQ(y->as<float>()[i], std::ldexp(1.0F, i - 127));
  EXPECT_TRUE(std::isnan(y->as<float>()[255]));
}

TEST(Narrow, ElementsThatShareBytesAreMoved) {
  // FLOAT4E2M1, FLOAT8E8M0, UINT4, INT4, UINT2, INT2.
  for (auto [code, type] : {std::pair{23, DType::F4E2M1},
                            {24, DType::F8E8M0},
                            {21, DType::U4},
                            {22, DType::I4},
                            {25, DType::U2},
                            {26, DType::I2}}) {
    Tensor x(type, {3, 5});
    std::mt19937 random(code);
    for (uint64_t i = 0; i < dtypeBytes(type, 15); ++i)
      x.as<uint8_t>()[i] = static_cast<uint8_t>(random());
    ModelBuilder builder(24);
    builder.input("x", "3,5", code).output("y");
    builder.node("Transpose", {"x"}, {"t"}, "transpose");
    builder.node("Concat", {"t", "t"}, {"y"}, "concat");
    ModelBuilder::setInt(*builder.graph().mutable_node(1), "axis", 0);
    std::optional<Tensor> y = run(builder, {x});
    ASSERT_TRUE(y);
    ASSERT_EQ(y->dtype(), type);
    ASSERT_EQ(y->shape(), (Shape{10, 3}));
    for (int64_t row = 0; row < 10; ++row)
      for (int64_t column = 0; column < 3; ++column) {
        const double from = x.asDouble(column * 5 + row % 5), to = y->asDouble(row * 3 + column);
        EXPECT_TRUE(from == to || (std::isnan(from) && std::isnan(to)))
            << dtypeName(type) << " " << row << "," << column;
      }
  }
}

TEST(Narrow, BitsOfBoolsAreBytes) {
  ModelBuilder builder(26);
  builder.input("x", "3", /*bool*/ 9).output("y");
  ModelBuilder::setInt(builder.node("BitCast", {"x"}, {"y"}, "bits"), "to", kUint8);
  Tensor x(DType::Bool, {3});
  x.as<uint8_t>()[1] = 1;
  std::optional<Tensor> y = run(builder, {x});
  ASSERT_TRUE(y);
  EXPECT_EQ(y->dtype(), DType::U8);
  EXPECT_EQ(y->asInt(0), 0);
  EXPECT_EQ(y->asInt(1), 1);
}
