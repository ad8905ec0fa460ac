//===- MatmulTest.cpp - dot products, reduction and tile products ---------===//
#include "TestSupport.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

namespace dmx::blockfp::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Dot, FourPassesAreTheExactProduct) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<int16_t> a(64), b(64);
    int64_t exact = 0;
    for (int k = 0; k < 64; ++k) {
      a[k] = round == 0 ? -32767 : static_cast<int16_t>(random() % 65535 - 32767);
      b[k] = round == 0 ? 32767 : static_cast<int16_t>(random() % 65535 - 32767);
      exact += int64_t(a[k]) * b[k];
    }
    ASSERT_EQ(dotInFourPasses(a, b), exact);
    ASSERT_LT(std::abs(exact), int64_t(1) << 37); // 38 bits signed
    ASSERT_EQ(dotBlocks({127, a, 16}, {127, b, 16}).accumulator, exact);
  }
}

TEST(Dot, ExponentsAndNaN) {
  std::vector<int16_t> a(64, 127), b(64, -127), four(128, 7);
  Partial partial = dotBlocks({130, a, 8}, {120, b, 8});
  EXPECT_EQ(partial.accumulator, -1032256);
  EXPECT_EQ(partial.exponent, 250 - 254 - 12);
  partial = dotBlocks({127, four, 4}, {127, four, 4});
  EXPECT_EQ(partial.accumulator, 6272);
  EXPECT_EQ(partial.exponent, -4);
  four.resize(64);
  EXPECT_EQ(dotBlocks({127, a, 8}, {127, four, 4}).exponent, -8);
  EXPECT_FALSE(partial.isNaN);
  EXPECT_TRUE(std::isnan(partialToF32(dotBlocks({255, a, 8}, {0, b, 8}))));
  EXPECT_TRUE(std::isnan(partialToF32(dotBlocks({0, a, 8}, {255, b, 8}))));
}

TEST(Dot, PartialsAtTheEndsOfF32) {
  EXPECT_EQ(partialToF32({1, -126}), 0x1p-126f);
  EXPECT_EQ(partialToF32({1, -127}), 0.0f);
  EXPECT_EQ(partialToF32({(1 << 25) - 1, -127 - 24}), 0.0f); // not rounded up first
  EXPECT_EQ(partialToF32({-1032256, 100}), -1032256 * 0x1p100f);
  EXPECT_EQ(partialToF32({1032256, 121}), kInfinity);
  EXPECT_EQ(partialToF32({(int64_t(1) << 24) + 1, 0}), 0x1p24f);                    // tie to even
  EXPECT_EQ(partialToF32({(int64_t(1) << 36) + (1 << 12) + 1, 0}), 0x1.000002p36f); // above the tie
}

/// The balanced tree, padded with zeros, as section 5 says it.
float treeOf(std::vector<float> v, int mode) {
  v.resize(size_t(1) << mode, 0.0f);
  while (v.size() > 1) {
    for (size_t i = 0; i < v.size() / 2; ++i)
      v[i] = f32Add(v[2 * i], v[2 * i + 1]);
    v.resize(v.size() / 2);
  }
  return v[0];
}

TEST(Ppr, MissingPartialsAreZeros) {
  std::mt19937_64 random(2);
  for (size_t count = 1; count <= 64; ++count)
    for (int round = 0; round < 20; ++round) {
      std::vector<float> partials = randomMatrix(random, count, round - 10, 12);
      float expected = treeOf(partials, 6);
      ASSERT_EQ(toBits(reducePartials(partials)), toBits(expected)) << count;
      for (int mode = std::bit_width(count - 1); mode < 6; ++mode)
        ASSERT_EQ(toBits(treeOf(partials, mode)), toBits(expected));
    }
  EXPECT_EQ(reducePartials({}), 0.0f);
  EXPECT_TRUE(std::isnan(roundSum(reducePartials(std::vector{1.0f, kInfinity}))));
}

TEST(Ppr, ObAccumulatesInF32First) {
  // 1 + 2^-23 is an f32 number but no BFP32_1 number.
  EXPECT_EQ(addToSum(1.0f, 0x1p-23f), 1.0f);
  EXPECT_EQ(addToSum(1.0f, 0x1.8p-22f), 1.0f + 0x1p-21f); // tie to even
  EXPECT_EQ(addToSum(0x1p-126f, -0x1.8p-126f), 0.0f);     // flushed
  EXPECT_EQ(toBits(addToSum(1.0f, -1.0f)), 0u);
}

struct Kind {
  const char *a, *w;
  int depth;
};
std::ostream &operator<<(std::ostream &out, const Kind &kind) {
  return out << kind.a << " x " << kind.w << " depth " << kind.depth;
}

Packed packAt(const char *format, int depth, Orientation orientation, const std::vector<float> &values, int64_t rows,
              int64_t cols) {
  std::string error;
  TensorLayout layout{*makeTileShape(*blockFormatFromName(format), depth, error), orientation, rows, cols};
  Packed packed{layout, std::vector<std::byte>(layout.bytes())};
  EXPECT_EQ(quantizeTensor(layout, {values.data(), cols}, {}, packed.bytes.data()), std::nullopt);
  return packed;
}

constexpr Kind kKinds[] = {
    {"BFP16_64", "BFP16_64", 64},    {"BFP16_16", "BFP16_16", 64},    {"BFP16_32", "BFP16_32", 64},
    {"BFP16_32", "BFP16_32", 128},   {"BFP16_128", "BFP16_128", 128}, {"BFP16_64A", "BFP16_64", 64},
    {"BFP16_64A", "BFP16_64A", 64},  {"BFP12_128", "BFP12_128", 128}, {"BFP12_64", "BFP12_64", 128},
    {"BFP12_64A", "BFP12_64A", 128}, {"BFP12_16", "BFP12_16", 128},   {"BFP24_64", "BFP24_64", 64},
    {"BFP24_16", "BFP24_16", 64},    {"BFP16_64", "BFP12_64", 64},    {"BFP12_32", "BFP16_32", 128},
};

class TileProductTest : public testing::TestWithParam<int> {
protected:
  SimdLevel level = static_cast<SimdLevel>(GetParam());
  void SetUp() override {
    if (!isSupported(level))
      GTEST_SKIP() << "this CPU has no " << nameOf(level);
  }
};

/// All kinds, tile counts and rows, and exponents up to both ends of f32, where
/// partials flush and overflow.
TEST_P(TileProductTest, IsTheDefinition) {
  std::mt19937_64 random(3);
  for (const Kind &kind : kKinds)
    for (int tiles : {1, 2, 3, 8})
      for (int exponent : {0, -30, 40, -54, -62, -70, 63, 66}) {
        int rows = 1 + int(random() % 7);
        int64_t k = kind.depth * tiles - int64_t(random() % 20);
        std::vector<float> x = randomMatrix(random, rows * k, exponent);
        std::vector<float> w = randomMatrix(random, k * 64, exponent, 8);
        if (tiles == 3)
          x[random() % x.size()] = kInfinity;
        if (tiles == 8)
          std::fill(w.begin(), w.begin() + 64 * 20, 0.0f); // empty blocks
        Packed a = packAt(kind.a, kind.depth, Orientation::Row, x, rows, k);
        Packed b = packAt(kind.w, kind.depth, Orientation::Column, w, k, 64);
        std::vector<float> fast = matmul(a, b, tiles, level);
        std::vector<float> expected = matmulByDefinition(a, b, tiles);
        for (size_t i = 0; i < fast.size(); ++i)
          ASSERT_EQ(toBits(fast[i]), toBits(expected[i]))
              << kind << ", " << tiles << " tiles, exponent " << exponent << ", element " << i;
      }
}

TEST_P(TileProductTest, AllRowsAndAccumulation) {
  std::mt19937_64 random(4);
  std::vector<float> x = randomMatrix(random, 64 * 1024), w = randomMatrix(random, 1024 * 64);
  Packed a = pack("BFP16_64", Orientation::Row, x, 64, 1024);
  Packed b = pack("BFP16_64", Orientation::Column, w, 1024, 64);
  for (int tiles : {16, 8, 5})
    ASSERT_EQ(crcOf(matmul(a, b, tiles, level)), crcOf(matmulByDefinition(a, b, tiles))) << tiles;
}

/// A bias in OB, rows from anywhere and a row stride.
TEST_P(TileProductTest, RowsFromAnywhere) {
  std::mt19937_64 random(5);
  std::vector<float> x = randomMatrix(random, 200 * 128), w = randomMatrix(random, 128 * 64);
  Packed a = pack("BFP16_64", Orientation::Row, x, 200, 128);
  Packed b = pack("BFP16_64", Orientation::Column, w, 128, 64);
  std::vector<float> plain = matmulByDefinition(a, b, 2);
  const std::byte *weights[] = {b.tile(0, 0), b.tile(0, 1)};
  for (int rows : {1, 2, 3, 70, 130}) {
    std::vector<TileRun> runs;
    std::vector<int64_t> chosen;
    for (int r = 0; r < rows; ++r)
      chosen.push_back(r % 5 == 4 ? -1 : int64_t(random() % 200));
    for (int t = 0; t < 2; ++t)
      for (int64_t row : chosen)
        runs.push_back(row < 0 ? TileRun{} : runOf(a.layout.tile, a.tile(row / 64, t), static_cast<int>(row % 64)));
    constexpr ptrdiff_t kStride = 80;
    std::vector<float> ob(rows * kStride, 0.75f);
    TileProduct product{a.layout.tile, b.layout.tile, rows, true};
    TileMatmul unit(level);
    ASSERT_EQ(unit.runRows(product, runs, weights, ob.data(), kStride), std::nullopt);
    for (int r = 0; r < rows; ++r)
      for (int n = 0; n < kStride; ++n) {
        float expected = 0.75f;
        if (n < 64)
          expected = addToSum(0.75f, chosen[r] < 0 ? 0.0f : plain[chosen[r] * 64 + n]);
        ASSERT_EQ(ob[r * kStride + n], expected) << r << " " << n;
      }
  }
}

/// Scales around 2^-126 and 2^127, where the fast arithmetic ends, with products
/// down to one: what is flushed depends on the last exponent.
TEST_P(TileProductTest, ExponentBorders) {
  std::mt19937 random(8);
  for (int border : {266 - 126, 266 + 127})
    for (int offset = -3; offset <= 3; ++offset)
      for (int wExponent : {12, 13, 14, 127, 200, 250, 254}) {
        int aExponent = border + offset - wExponent;
        if (aExponent < 1 || aExponent > 254)
          continue;
        Packed a{{{}, Orientation::Row, 5, 128}, {}}, w{{{}, Orientation::Column, 128, 64}, {}};
        for (auto [packed, exponent] : {std::pair{&a, aExponent}, {&w, wExponent}})
          for (int i = 0; i < 2 * 4160; ++i)
            packed->bytes.push_back(static_cast<std::byte>(i % 4160 < 64  ? exponent
                                                           : random() % 8 ? 0
                                                                          : int(random() % 3) - 1));
        std::vector<float> fast = matmul(a, w, 2, level), expected = matmulByDefinition(a, w, 2);
        for (size_t i = 0; i < fast.size(); ++i)
          ASSERT_EQ(toBits(fast[i]), toBits(expected[i])) << border + offset << " " << wExponent;
      }
}

/// OCP's scale byte 0 is 2^-127: our quantizers write it for empty blocks only,
/// an imported MXINT8 tensor may have elements under it.
TEST_P(TileProductTest, ImportedTinyScales) {
  TileShape shape;
  std::vector<std::byte> a(shape.bytes(), std::byte(3)), w(shape.bytes(), std::byte(5));
  for (int r = 0; r < 64; ++r) {
    a[r] = std::byte(0);
    w[r] = std::byte(254);
  }
  TileProduct product{shape, shape, 5};
  std::vector<float> ob(64 * 64);
  TileMatmul unit(level);
  ASSERT_EQ(
      unit.run(product, std::vector<const std::byte *>{a.data()}, std::vector<const std::byte *>{w.data()}, ob.data()),
      std::nullopt);
  for (int i = 0; i < 5 * 64; ++i)
    ASSERT_EQ(ob[i], std::ldexp(15.0f * 64, 0 + 254 - 254 - 12));
}

/// Section 11.7: exactly the row, in the tensor's own output.
TEST_P(TileProductTest, NaNInOneRow) {
  std::vector<float> x = goldenInput(1, 64 * 512, 512), w = goldenInput(2, 512 * 64, 64);
  Packed b = pack("BFP16_64", Orientation::Column, w, 512, 64);
  std::vector<float> clean = matmul(pack("BFP16_64", Orientation::Row, x, 64, 512), b, 8, level);
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
    std::vector<float> damaged = x;
    damaged[41 * 512 + 300] = bad;
    std::vector<float> c = matmul(pack("BFP16_64", Orientation::Row, damaged, 64, 512), b, 8, level);
    for (int i = 0; i < 64 * 64; ++i)
      ASSERT_EQ(toBits(c[i]), i / 64 == 41 ? 0x7fc00000 : toBits(clean[i])) << i;
  }
}

/// Section 11.5: other plans stay within the bound of section 5.
TEST_P(TileProductTest, PlansDifferWithinTheBound) {
  std::mt19937_64 random(6);
  constexpr int kDepth = 1024;
  std::vector<float> x = randomMatrix(random, 64 * kDepth), w = randomMatrix(random, kDepth * 64);
  Packed a = pack("BFP16_64", Orientation::Row, x, 64, kDepth);
  Packed b = pack("BFP16_64", Orientation::Column, w, kDepth, 64);
  dequantizeTensor(a.layout, a.bytes.data(), x.data(), kDepth);
  dequantizeTensor(b.layout, b.bytes.data(), w.data(), 64);
  for (int tiles : {16, 8, 4, 1}) {
    std::vector<float> c = matmul(a, b, tiles, level);
    int mode = std::bit_width(static_cast<unsigned>(tiles - 1)), chunks = 16 / tiles;
    for (int i = 0; i < 64; ++i)
      for (int j = 0; j < 64; ++j) {
        double exact = 0, magnitude = 0;
        for (int t = 0; t < kDepth; t += 64) {
          double partial = 0;
          for (int k = t; k < t + 64; ++k)
            partial += double(x[i * kDepth + k]) * w[k * 64 + j];
          exact += partial;
          magnitude += std::fabs(partial);
        }
        ASSERT_LE(std::fabs(c[i * 64 + j] - exact), (mode + chunks) * 0x1p-22 * magnitude) << tiles;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, TileProductTest, testing::Range(0, kSimdLevels),
                         [](const auto &info) { return nameOf(static_cast<SimdLevel>(info.param)); });

TEST(TileProduct, ThreadsDoNotMatter) {
  std::mt19937_64 random(7);
  constexpr int kSize = 512;
  std::vector<float> x = randomMatrix(random, kSize * kSize), w = randomMatrix(random, kSize * kSize);
  Packed a = pack("BFP16_64", Orientation::Row, x, kSize, kSize);
  Packed b = pack("BFP16_64", Orientation::Column, w, kSize, kSize);
  auto multiplied = [&](int threads) {
    std::vector<float> c(kSize * kSize);
    auto work = [&](int thread) {
      TileMatmul unit;
      for (int tile = thread; tile < 64; tile += threads) {
        int i = tile / 8, j = tile % 8;
        std::vector<const std::byte *> aTiles, wTiles;
        for (int t = 0; t < 8; ++t) {
          aTiles.push_back(a.tile(i, t));
          wTiles.push_back(b.tile(j, t));
        }
        MaybeError error =
            unit.run({a.layout.tile, b.layout.tile, 64}, aTiles, wTiles, c.data() + i * 64 * kSize + j * 64, kSize);
        ASSERT_EQ(error, std::nullopt);
      }
    };
    std::vector<std::thread> pool;
    for (int thread = 0; thread < threads; ++thread)
      pool.emplace_back(work, thread);
    for (std::thread &thread : pool)
      thread.join();
    return crcOf(c);
  };
  uint32_t one = multiplied(1);
  EXPECT_EQ(multiplied(2), one);
  EXPECT_EQ(multiplied(8), one);
}

TEST(TileProduct, Refusals) {
  auto shape = [&](const char *name) {
    BlockFormat format = *blockFormatFromName(name);
    return TileShape{format, defaultTileDepth(format)};
  };
  auto check = [&](const char *a, const char *w, int rows, size_t tiles) {
    return checkTileProduct({shape(a), shape(w), rows}, tiles).value_or("");
  };
  EXPECT_EQ(check("BFP16_64", "BFP16_64", 64, 64), "");
  EXPECT_EQ(check("BFP16_64", "BFP16_64", 64, 65), "a product has 1 to 64 tiles along K, not 65");
  EXPECT_NE(check("BFP16_64", "BFP16_64", 64, 0), "");
  EXPECT_NE(check("BFP16_64", "BFP16_64", 0, 1), "");
  EXPECT_EQ(check("BFP16_64", "BFP16_32", 64, 1),
            "the operands of BFP16_64 x BFP16_32 need the same block size and tile depth");
  EXPECT_NE(check("BFP16_64", "BFP12_64", 64, 1), ""); // depth 64 and 128
  EXPECT_EQ(check("BFP14_64", "BFP14_64", 64, 1),
            "the array has no product BFP14_64 x BFP14_64; cast the operands to BFP16, BFP12 or BFP24");
  EXPECT_NE(check("BFP24_64", "BFP16_64", 64, 1), "");
  EXPECT_NE(check("SBFP12_16", "SBFP12_16", 64, 1), "");
  EXPECT_NE(check("BFP32_1", "BFP32_1", 64, 1), "");

  std::vector<std::byte> tile(4160);
  std::vector<const std::byte *> one{tile.data()}, two{tile.data(), tile.data()};
  std::vector<float> ob(64 * 64);
  TileMatmul unit;
  EXPECT_TRUE(unit.run({}, two, one, ob.data()));
  EXPECT_TRUE(unit.run({{}, {}, 65}, one, one, ob.data()));
  EXPECT_FALSE(unit.run({}, one, one, ob.data()));
}

} // namespace
} // namespace dmx::blockfp::test
