//===- GoldenTest.cpp - the golden vectors V1 to V17 ----------------------===//
//
// The expected values are those of section 10 of the numerics specification.
//
//===----------------------------------------------------------------------===//
#include "TestSupport.h"

#include <gtest/gtest.h>

namespace dmx::blockfp::test {
namespace {

using Bits = std::vector<uint32_t>;
using Mantissas = std::vector<int16_t>;

void expectBlock(const Bits &bits, const QuantizeMode &mode, int exponent, const Mantissas &expected,
                 const std::vector<uint16_t> &u = {}) {
  std::vector<float> x;
  for (uint32_t word : bits)
    x.push_back(fromBits(word));
  Mantissas mantissas(x.size());
  EXPECT_EQ(quantizeBlock(x, mode, mantissas, u), exponent);
  EXPECT_EQ(mantissas, expected);
}

const Bits kV4{0xbfff0000, 0xbffeffff, 0x3f800000, 0x00000000};
const Bits kV10{0x3f800000, 0x3e99999a, 0xbe99999a, 0x00000000};

TEST(Golden, V1Basic) { expectBlock({0x3f800000, 0xbf000000, 0x3e99999a, 0x3ffe0000}, {}, 127, {64, -32, 19, 127}); }

TEST(Golden, V2Clamp) { expectBlock({0x3fff7ced, 0x3c000000, 0xbfff7ced, 0x3f800000}, {}, 127, {127, 0, -127, 64}); }

TEST(Golden, V3TiesToEven) {
  expectBlock({0x3f800000, 0x3c000000, 0x3cc00000, 0x3d200000, 0xbc000000, 0xbcc00000, 0xbd200000}, {}, 127,
              {64, 0, 2, 2, 0, -2, -2});
}

TEST(Golden, V4Asymmetric) {
  expectBlock(kV4, {8, true}, 127, {-128, -127, 64, 0});
  expectBlock(kV4, {8, false}, 127, {-127, -127, 64, 0});
}

TEST(Golden, V5Bfp12) {
  expectBlock({0x3f800000, 0x3e99999a, 0xbf200000, 0x3ff33333, 0x3dfdf3b6, 0x3e000000, 0x3e010625, 0xbec00000}, {4},
              127, {4, 1, -2, 7, 0, 0, 1, -2});
}

TEST(Golden, V6Bfp24) {
  expectBlock({0x3f800000, 0x3eaaaaab, 0xbf2aaaab, 0x3fffffff}, {16}, 127, {16384, 5461, -10923, 32767});
}

TEST(Golden, V7DoubleRounding) { expectBlock({0x3f800000, 0x3d200010, 0x3cbfffe0}, {}, 127, {64, 3, 1}); }

TEST(Golden, V8Subnormal) { expectBlock({0x00400000, 0x80200000, 0x00000000, 0x00000000}, {}, 0, {0, 0, 0, 0}); }

TEST(Golden, V9Huge) { expectBlock({0x7f7fffff, 0xff000000, 0x3f800000, 0x00000000}, {}, 254, {127, -64, 0, 0}); }

TEST(Golden, V10OtherRoundings) {
  expectBlock({0x3f800000, 0x3e99999a, 0x3e99999a, 0x3e99999a}, {8, false, Rounding::Stochastic}, 127, {64, 19, 19, 20},
              {0, 0x4000, 0x8000, 0xffff});
  expectBlock(kV10, {8, false, Rounding::Down}, 127, {64, 19, -20, 0});
  expectBlock(kV10, {8, false, Rounding::Up}, 127, {64, 20, -19, 0});
}

TEST(Golden, V11Dot) {
  std::vector<float> a, b;
  for (int k = 0; k < 64; ++k) {
    a.push_back(static_cast<float>((k % 2 ? -1 : 1) * (k + 1) / 64.0));
    b.push_back(static_cast<float>(1.0 / (k + 1)));
  }
  Mantissas ma(64), mb(64);
  BlockView va{quantizeBlock(a, {}, ma), ma, 8};
  BlockView vb{quantizeBlock(b, {}, mb), mb, 8};
  EXPECT_EQ(va.exponent, 127);
  EXPECT_EQ(vb.exponent, 127);
  Partial partial = dotBlocks(va, vb);
  EXPECT_EQ(partial.accumulator, -20);
  EXPECT_EQ(partial.exponent, -12);
  EXPECT_EQ(partialToF32(partial), -0.0048828125f);
  EXPECT_EQ(toBits(partialToF32(partial)), 0xbba00000u);
}

TEST(Golden, V12Ppr) {
  const Partial partials[] = {{1032256, 0},  {-1, -12}, {3, -30}, {1048575, -20},
                              {-1032256, 0}, {1, -12},  {7, -40}, {12345, -8}};
  std::vector<float> leaves;
  for (const Partial &partial : partials)
    leaves.push_back(partialToF32(partial));
  float reduced = roundSum(reducePartials(leaves));
  EXPECT_EQ(toBits(reduced), 0x42450000u);
  EXPECT_EQ(reduced, 49.25f);
  // The exact sum, rounded once, is another number: order is semantics.
  double exact = 0;
  for (const Partial &partial : partials)
    exact += std::ldexp(double(partial.accumulator), partial.exponent);
  EXPECT_EQ(toBits(roundToBfp32(static_cast<float>(exact))), 0x4244e400u);
}

TEST(Golden, V13F16) {
  EXPECT_EQ(f16Round(65519.0), 0x7bff);
  EXPECT_EQ(f16Round(65520.0), 0x7bff);
  EXPECT_EQ(f16Round(70000.0), 0x7bff);
  EXPECT_EQ(f16Round(0x1p-14 - 0x1p-26), 0x0000);
  EXPECT_EQ(f16Round(6.102025508880615e-05), 0x0000);
  EXPECT_EQ(f16Round(2049.0), 0x6800);
  EXPECT_EQ(f16Round(2051.0), 0x6802);
  EXPECT_EQ(f16Round(-1.0 / 3), 0xb555);
}

TEST(Golden, V14Bfp32) {
  EXPECT_EQ(toBits(roundToBfp32(fromBits(0x3f800001))), 0x3f800000u);
  EXPECT_EQ(toBits(roundToBfp32(fromBits(0x3f800003))), 0x3f800004u);
  EXPECT_EQ(toBits(roundToBfp32(fromBits(0x40490fdb))), 0x40490fdcu);
}

TEST(Golden, V15Sbfp) {
  std::vector<float> x{0.7f, -0.35f, 0.1f, 0.05f, -0.7f, 0.2f,  0.15f, 0.3f,
                       0.0f, 0.6f,   0.5f, 0.4f,  0.45f, 0.55f, 0.65f, 0.25f};
  const Mantissas expected{7, -4, 1, 0, -7, 2, 2, 3, 0, 6, 5, 4, 4, 6, 6, 2};
  Mantissas mantissas(16);
  EXPECT_EQ(quantizeSbfpBlock(x, 7, mantissas), 0x3a);
  EXPECT_EQ(mantissas, expected);
  EXPECT_EQ(sbfpScale(0x3a, 7), 13.0f / 128);
  for (float &value : x)
    value /= 64;
  EXPECT_EQ(quantizeSbfpBlock(x, 7, mantissas), 0x00);
  EXPECT_EQ(sbfpScale(0x00, 7), 0.0f);
  EXPECT_EQ(quantizeSbfpBlock(x, 13, mantissas), 0x3a);
  EXPECT_EQ(mantissas, expected);
  EXPECT_EQ(sbfpScale(0x3a, 13), 13.0f / 8192);
}

TEST(Golden, V16MxInt) {
  std::string error;
  std::vector<float> x;
  Mantissas eight, mantissas(32);
  for (int k = 0; k < 32; ++k) {
    x.push_back((k - 15) / 8.0f);
    eight.push_back(static_cast<int16_t>(4 * (k - 15)));
  }
  BlockFormat format = parseFormat("MXINT8{32}", error)->format.block;
  EXPECT_EQ(quantizeBlock(x, {format.precision}, mantissas), 128);
  EXPECT_EQ(mantissas, eight);
  format = parseFormat("MXINT4{32}", error)->format.block;
  EXPECT_EQ(quantizeBlock(x, {format.precision}, mantissas), 128);
  EXPECT_EQ(mantissas, (Mantissas{-4, -4, -3, -3, -3, -2, -2, -2, -2, -2, -1, -1, -1, 0, 0, 0,
                                  0,  0,  1,  1,  1,  2,  2,  2,  2,  2,  3,  3,  3,  4, 4, 4}));
}

class GoldenMatmul : public testing::TestWithParam<int> {};

TEST_P(GoldenMatmul, V17) {
  auto level = static_cast<SimdLevel>(GetParam());
  if (!isSupported(level))
    GTEST_SKIP() << "this CPU has no " << nameOf(level);
  std::vector<float> a = goldenInput(1, 64 * 512, 512);
  std::vector<float> b = goldenInput(2, 512 * 64, 64);
  EXPECT_EQ(crcOf(a), 0x058deee4u);
  EXPECT_EQ(crcOf(b), 0xb62e584au);
  Packed aTiles = pack("BFP16_64R", Orientation::Row, a, 64, 512);
  Packed bTiles = pack("BFP16_64C", Orientation::Column, b, 512, 64);
  EXPECT_EQ(aTiles.layout.tile.bytes(), 4160);
  EXPECT_EQ(crcOf(aTiles.bytes), 0x4f798a96u);
  EXPECT_EQ(crcOf(bTiles.bytes), 0x758834fcu);
  std::vector<float> c = matmul(aTiles, bTiles, 8, level);
  EXPECT_EQ(crcOf(c), 0xd75a42bau);
  EXPECT_EQ(toBits(c[0]), 0x41768480u);
  EXPECT_EQ(toBits(c[1]), 0xc18318e0u);
  EXPECT_EQ(toBits(c[64 * 64 - 1]), 0xc3011ee0u);
  std::vector<uint16_t> half = toF16(c);
  EXPECT_EQ(crcOf(half), 0x60b8a470u);
  EXPECT_EQ(half[0], 0x4bb4);
  EXPECT_EQ(half[64 * 64 - 1], 0xd809);

  double error = 0, norm = 0;
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 64; ++j) {
      double exact = 0;
      for (int k = 0; k < 512; ++k)
        exact += double(a[i * 512 + k]) * b[k * 64 + j];
      error += (c[i * 64 + j] - exact) * (c[i * 64 + j] - exact);
      norm += exact * exact;
    }
  EXPECT_NEAR(std::sqrt(error / norm), 2.588e-02, 0.5e-05);
}

INSTANTIATE_TEST_SUITE_P(Levels, GoldenMatmul, testing::Range(0, kSimdLevels),
                         [](const auto &info) { return nameOf(static_cast<SimdLevel>(info.param)); });

} // namespace
} // namespace dmx::blockfp::test
