//===- CastTest.cpp - conversion between element types --------------------===//
#include "Cases.h"

#include "Convert.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Support/Half.h"

#include <bit>
#include <cmath>
#include <random>

namespace dmxc::reference::test {

namespace {

const Family
    cast("Cast",
         {
             {"cast", "", {"3x{T}: 0 1 3"}, {"3xf32: 0 1 3"}, kNumbers},
             {"cast", "", {"3xf32: 0 1 3"}, {"3x{T}: 0 1 3"}, kNumbers},
             {"cast", "", {"3x{T}: 0 1 3"}, {"3xi64: 0 1 3"}, kNumbers},
             {"cast", "", {"3xi64: 0 1 3"}, {"3x{T}: 0 1 3"}, kNumbers},
             {"cast", "", {"3x{T}: 0 1 3"}, {"3xui8: 0 1 3"}, kNumbers},
             {"cast", "", {"3x{T}: 0 1 3"}, {"3xi1: 0 1 1"}, kNumbers},
             {"cast", "", {"2xi1: 0 1"}, {"2x{T}: 0 1"}, kAll},
             {"cast", "", {"3x{T}: 0 1 3"}, {"3xf16: 0 1 3"}, kNumbers},
             {"cast", "", {"3xf64: 0 1 3"}, {"3x{T}: 0 1 3"}, kNumbers},
             // To bool: x != 0.
             {"cast", "", {"5xf32: nan -0 1e-45 inf -1"}, {"5xi1: 1 0 1 1 1"}},
             {"cast", "", {"2xi64: 4294967296 0"}, {"2xi1: 1 0"}},
             // Integers wrap.
             {"cast", "", {"4xi32: 300 -1 128 -129"}, {"4xi8: 44 -1 -128 127"}},
             {"cast", "", {"3xi32: 300 -1 256"}, {"3xui8: 44 255 0"}},
             {"cast", "", {"3xi64: 7 8 -9"}, {"3xi4: 7 -8 7"}},
             {"cast", "", {"3xi64: 15 16 -1"}, {"3xui4: 15 0 15"}},
             {"cast", "", {"2xi8: -1 -128"}, {"2xui64: 18446744073709551615 18446744073709551488"}},
             {"cast", "", {"ui64: 18446744073709551615"}, {"i64: -1"}},
             {"cast", "", {"ui32: 4294967295"}, {"i64: 4294967295"}},
             {"cast", "", {"3xi4: -8 7 -1"}, {"3xi16: -8 7 -1"}},
             {"cast", "", {"3xui4: 15 7 8"}, {"3xi4: -1 7 -8"}},
             {"cast", "", {"5xi64: 1 2 -3 -2 7"}, {"5xi2: 1 -2 1 -2 -1"}},
             {"cast", "", {"5xf32: 3 4 -1 0 2"}, {"5xui2: 3 0 3 0 2"}},
             {"cast", "", {"5xi2: -2 -1 0 1 1"}, {"5xf32: -2 -1 0 1 1"}},
             // Float to integer: truncated, NaN is 0, clamped to 64 bits, then wrapped.
             {"cast", "", {"6x{T}: 1.5 -1.5 0.5 -0.5 nan 3"}, {"6xi32: 1 -1 0 0 0 3"}, kWideFloats},
             {"cast", "", {"3xf32: 3e9 -3e9 4294967296"}, {"3xi32: -1294967296 1294967296 0"}},
             {"cast",
              "",
              {"4xf64: 1e300 -1e300 inf -inf"},
              {"4xi64: 9223372036854775807 -9223372036854775808 9223372036854775807 -9223372036854775808"}},
             {"cast", "", {"4xf32: 1e30 -1e30 inf -inf"}, {"4xi32: -1 0 -1 0"}},
             {"cast", "", {"4xf32: 300 -1 -1.9 -300.5"}, {"4xui8: 44 255 255 212"}},
             {"cast", "", {"4xf32: 300 -129 1e30 -1e30"}, {"4xi8: 44 127 -1 0"}},
             {"cast",
              "",
              {"5xf64: 1e30 -1 18446744073709549568 nan -inf"},
              {"5xui64: 18446744073709551615 0 18446744073709549568 0 0"}},
             {"cast", "", {"2xf32: -1 4294967040"}, {"2xui32: 4294967295 4294967040"}},
             {"cast", "", {"3xf32: 7.9 8 -9"}, {"3xi4: 7 -8 7"}},
             // Integer to float rounds once, to even.
             {"cast",
              "",
              {"3xi64: 16777217 16777219 9223372036854775807"},
              {"3xf32: 16777216 16777220 9223372036854775808"}},
             {"cast", "", {"2xi64: 9007199254740993 -9007199254740993"}, {"2xf64: 9007199254740992 -9007199254740992"}},
             {"cast", "", {"ui64: 18446744073709551615"}, {"f32: 18446744073709551616"}},
             // 2^60 + 2^52 is halfway between two bf16; one more must round up although a double cannot hold it.
             {"cast", "", {"2xi64: 1157425104234217472 1157425104234217473"}, {"2xbf16: 0x1p60 0x1.02p60"}},
             {"cast", "", {"3xi32: 2049 65519 65520"}, {"3xf16: 2048 65504 inf"}},
             // Float to narrower float rounds once. 1 + 2^-11 + 2^-40 through f32 would round twice, to 1.
             {"cast", "", {"f64: 0x1.0020000001p0"}, {"f16: 0x1.004p0"}},
             {"cast", "", {"f64: 0x1.0100000001p0"}, {"bf16: 0x1.02p0"}},
             {"cast", "", {"4xf32: 65519.996 65520 0x1p-25 0x1.8p-25"}, {"4xf16: 65504 inf 0 0x1p-24"}},
             {"cast", "", {"f64: 1e300"}, {"f32: inf"}},
             {"cast", "", {"2xf32: 3.4e38 -inf"}, {"2xbf16: 0x1.00p128 -inf"}},
             {"cast", "", {"3x{T}: nan inf -inf"}, {"3xf64: nan inf -inf"}, kWideFloats + " f8E5M2"},
             // Saturation.
             {"cast", "", {"4xf32: 500 -1000 inf nan"}, {"4xf8E4M3FN: 448 -448 448 nan"}},
             {"cast", "saturate = false", {"3xf32: 500 -inf 448"}, {"3xf8E4M3FN: nan nan 448"}},
             {"cast", "", {"3xf32: 1e6 -inf 57344"}, {"3xf8E5M2: 57344 -57344 57344"}},
             {"cast", "saturate = false", {"3xf32: 1e6 -inf 57344"}, {"3xf8E5M2: inf -inf 57344"}},
             {"cast", "saturate = false", {"2xf32: 1e6 -0"}, {"2xf8E4M3FNUZ: nan 0"}},
             {"cast", "", {"5xf32: 100 -100 2.5 5 0.25"}, {"5xf4E2M1FN: 6 -6 2 4 0"}},
             {"cast", "", {"2xi32: 500 17"}, {"2xf8E4M3FN: 448 16"}},
         });

const Family bitcast("Bitcast", {
                                    {"bitcast", "", {"3xf32: 1 -0 inf"}, {"3xi32: 1065353216 -2147483648 2139095040"}},
                                    {"bitcast", "", {"2xui64: 4607182418800017408 1"}, {"2xf64: 1 0x1p-1074"}},
                                    {"bitcast", "", {"2xi16: 15360 -17408"}, {"2xf16: 1 -1"}},
                                    {"bitcast", "", {"2xf4E2M1FN: 6 -0.5"}, {"2xui4: 7 9"}},
                                    {"bitcast", "", {"5xui2: 0 1 2 3 3"}, {"5xi2: 0 1 -2 -1 -1"}},
                                    {"bitcast", "", {"3xui8: 0 127 254"}, {"3xf8E8M0FNU: 0x1p-127 1 0x1p127"}},
                                });

} // namespace

TEST(ReferenceConvert, FastHalfIsTheExactOne) {
  auto check = [](float value) {
    if (std::isnan(value))
      return;
    ASSERT_EQ(floatToHalf(value), doubleToHalf(value)) << std::hexfloat << value;
    ASSERT_EQ(floatToBfloat(value), doubleToBfloat(value)) << std::hexfloat << value;
  };
  // Every f16 and bf16 value, the midpoints above them, and both neighbours of those.
  for (uint32_t i = 0; i < 65536; ++i)
    for (uint32_t bits : {std::bit_cast<uint32_t>(halfToFloat(static_cast<uint16_t>(i))), i << 16})
      for (uint32_t offset : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u})
        check(std::bit_cast<float>(bits + offset));
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i)
    check(std::bit_cast<float>(static_cast<uint32_t>(random())));
  EXPECT_TRUE(std::isnan(halfToFloat(floatToHalf(NAN))));
  EXPECT_TRUE(std::isnan(bfloatToFloat(floatToBfloat(-NAN))));
}

TEST(ReferenceConvert, StickyDoubleKeepsTheSideOfAMidpoint) {
  EXPECT_EQ(toDoubleSticky(int64_t(-5)), -5.0);
  EXPECT_EQ(toDoubleSticky(std::numeric_limits<int64_t>::min()), -0x1p63);
  EXPECT_GT(toDoubleSticky((int64_t(1) << 60) + 1), 0x1p60);
  EXPECT_EQ(toDoubleSticky(uint64_t(1) << 63), 0x1p63);
}

} // namespace dmxc::reference::test
