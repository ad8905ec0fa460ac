//===- BlockTest.cpp - blocks, tiles and tensors --------------------------===//
#include "TestSupport.h"

#include <gtest/gtest.h>

#include <algorithm>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace dmx::blockfp::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Block {
  uint8_t exponent;
  std::vector<int16_t> mantissas;
  bool operator==(const Block &) const = default;
};

Block quantized(const std::vector<float> &x, const QuantizeMode &mode) {
  Block block{0, std::vector<int16_t>(x.size())};
  block.exponent = quantizeBlock(x, mode, block.mantissas);
  return block;
}

std::vector<float> values(const Block &block, int precision) {
  std::vector<float> out(block.mantissas.size());
  dequantizeBlock(block.exponent, block.mantissas, precision, out);
  return out;
}

TEST(Block, QuantizingIsIdempotent) {
  std::mt19937 random(1);
  for (int precision : {4, 6, 8, 16})
    for (int exponent = 1; exponent <= 254; ++exponent)
      for (int round = 0; round < 20; ++round) {
        int limit = (1 << (precision - 1)) - 1;
        Block block{static_cast<uint8_t>(exponent), {}};
        for (int i = 0; i < 64; ++i)
          block.mantissas.push_back(static_cast<int16_t>(int(random() % (2 * limit + 1)) - limit));
        // A block as quantizers write it uses the upper half of the range.
        int large = (limit + 1) / 2 + int(random() % (limit - limit / 2));
        block.mantissas[random() % 64] = static_cast<int16_t>(random() % 2 ? large : -large);
        for (Rounding rounding : {Rounding::Nearest, Rounding::Down, Rounding::Up})
          ASSERT_EQ(quantized(values(block, precision), {precision, false, rounding}), block)
              << precision << " " << exponent;
      }
}

TEST(Block, ErrorIsHalfAStepOrTheClamp) {
  std::mt19937_64 random(2);
  for (int precision : {4, 6, 8, 16})
    for (int round = 0; round < 500; ++round) {
      std::vector<float> x = randomMatrix(random, 64, int(random() % 200) - 100);
      Block block = quantized(x, {precision});
      std::vector<float> y = values(block, precision);
      double step = std::ldexp(1.0, block.exponent - 127 - (precision - 2));
      int limit = (1 << (precision - 1)) - 1;
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_TRUE(std::fabs(double(x[i]) - y[i]) <= step / 2 || std::abs(block.mantissas[i]) == limit);
    }
}

TEST(Block, NotFiniteValuesMakeNaN) {
  for (float bad : {kNaN, -kNaN, kInfinity, -kInfinity})
    for (Rounding rounding : {Rounding::Nearest, Rounding::Down}) {
      std::vector<float> x(64, 1.0f);
      x[17] = bad;
      Block block = quantized(x, {8, false, rounding});
      EXPECT_EQ(block, (Block{255, std::vector<int16_t>(64)}));
      for (float value : values(block, 8))
        EXPECT_TRUE(std::isnan(value));
    }
}

/// Rounding to nearest has a fast path for blocks that are not tiny; both paths
/// give the same mantissas, ties among them.
TEST(Block, BothPathsAgreeAtTheirBorder) {
  std::mt19937_64 random(3);
  for (int precision : {4, 6, 8, 16})
    for (int exponent = -126; exponent <= -80; ++exponent) {
      std::vector<float> x = randomMatrix(random, 64, exponent - 3, 3);
      x[0] = std::ldexp(1.5f, exponent);
      int half = exponent - (precision - 2) - 1; // of a step
      for (int i = 1; i < 32; ++i)
        x[i] = std::ldexp(static_cast<float>(int(random() % 255) - 127), half);
      Block tiny = quantized(x, {precision});
      // 2^64 times larger, it takes the other path.
      for (float &value : x)
        value = std::ldexp(value, 64);
      Block large = quantized(x, {precision});
      ASSERT_EQ(large.mantissas, tiny.mantissas) << precision << " " << exponent;
      ASSERT_EQ(large.exponent, tiny.exponent + 64);
    }
}

#if defined(__x86_64__)
/// Hosts may run with subnormal numbers off; packing does not change.
TEST(Block, HostFlushingDoesNotMatter) {
  constexpr unsigned kFlushAndDaz = 0x8040;
  unsigned saved = _mm_getcsr();
  std::mt19937_64 random(4);
  for (int precision : {4, 8, 16})
    for (int exponent = -126; exponent <= 127; exponent += 1) {
      std::vector<float> x = randomMatrix(random, 64, exponent - 3, 3);
      x[3] = std::ldexp(1.25f, exponent);
      x[4] = 0x1p-127f;
      x[5] = -0x1.8p-130f;
      Block expected = quantized(x, {precision});
      _mm_setcsr(saved | kFlushAndDaz);
      Block flushed = quantized(x, {precision});
      _mm_setcsr(saved);
      ASSERT_EQ(flushed, expected) << precision << " " << exponent;
    }
}
#endif

TEST(Block, Bfp32Edges) {
  EXPECT_EQ(toBits(roundToBfp32(fromBits(0x3fffffff))), 0x40000000u); // carry
  EXPECT_EQ(toBits(roundToBfp32(fromBits(0x7f7fffff))), 0x7f7ffffeu); // saturates
  EXPECT_EQ(toBits(roundToBfp32(fromBits(0xff7fffff))), 0xff7ffffeu);
  EXPECT_EQ(toBits(roundToBfp32(fromBits(0x007fffff))), 0u); // before rounding
  EXPECT_EQ(toBits(roundToBfp32(fromBits(0x80000001))), 0u);
  EXPECT_EQ(toBits(roundToBfp32(-0.0f)), 0u);
  EXPECT_EQ(toBits(roundToBfp32(fromBits(0x00800000))), 0x00800000u);
  EXPECT_EQ(toBits(roundToBfp32(kInfinity)), 0x7fc00000u);
  EXPECT_EQ(toBits(roundToBfp32(-kNaN)), 0x7fc00000u);
}

TEST(Block, WireBytes) {
  const int16_t m[8] = {1, -2, 3, -4, 5, -6, 7, -8};
  std::byte bytes[16] = {};
  auto expect = [&](int precision, const std::vector<int> &expected) {
    packMantissas(m, 8, precision, bytes);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(static_cast<int>(bytes[i]), expected[i]) << precision << " " << i;
    int16_t back[8];
    unpackMantissas(bytes, 8, precision, back);
    EXPECT_TRUE(std::equal(m, m + 8, back)) << precision;
  };
  expect(4, {0xe1, 0xc3, 0xa5, 0x87}); // element 2i in the low nibble
  expect(8, {1, 0xfe, 3, 0xfc, 5, 0xfa, 7, 0xf8});
  expect(16, {1, 0, 0xfe, 0xff, 3, 0, 0xfc, 0xff});
  // 1 | 62 << 6 | 3 << 12 | 60 << 18, little-endian.
  expect(6, {0x81, 0x3f, 0xf0, 0x85, 0x7e, 0xe0});
}

TEST(Tile, Sizes) {
  const std::pair<const char *, int> kTiles[] = {
      {"BFP16_64", 4160},  {"BFP12_128", 4160},    {"BFP12_64", 64 * 2 + 4096}, {"BFP24_64", 8256},
      {"BFP14_64", 3136},  {"SBFP12_16", 36 * 64}, {"BFP32_1", 16384},          {"BFP16_16", 64 * 4 + 4096},
      {"BFP16_128", 8256}, {"BFP16_64A", 4160},
  };
  std::string error;
  for (auto [name, bytes] : kTiles) {
    BlockFormat format = parseFormat(name, error)->format.block;
    auto shape = makeTileShape(format, defaultTileDepth(format), error);
    ASSERT_TRUE(shape) << error;
    EXPECT_EQ(shape->bytes(), bytes) << name;
    EXPECT_EQ(shape->bytes() % 64, 0) << name;
  }
  BlockFormat narrow = parseFormat("BFP12_64", error)->format.block;
  EXPECT_EQ(makeTileShape(narrow, 64, error)->bytes(), 2112); // 33 bytes a run
}

TEST(Tile, Refusals) {
  std::string error;
  BlockFormat format;
  EXPECT_FALSE(makeTileShape(format, 96, error));
  EXPECT_EQ(error, "tiles of BFP16_64 cannot be 96 deep");
  format.block = 128;
  EXPECT_FALSE(makeTileShape(format, 64, error));
  EXPECT_FALSE(makeLayout(*blockFormatFromName("MXFP8_E4M3K32"), Orientation::Row, 1, 1, error));
  EXPECT_EQ(error, "MXFP8_E4M3K32 has no tile layout; convert it to BFP16 first");
  EXPECT_FALSE(makeLayout({}, Orientation::Row, -1, 4, error));
  EXPECT_FALSE(makeLayout({}, Orientation::Row, int64_t(1) << 40, int64_t(1) << 40, error));
  EXPECT_TRUE(makeLayout({}, Orientation::Row, 0, 4, error));
}

const char *const kFormats[] = {"BFP16_16", "BFP16_32",  "BFP16_64",  "BFP16_128", "BFP16_64A", "BFP14_16",
                                "BFP14_64", "BFP14_128", "BFP12_16",  "BFP12_64",  "BFP12_128", "BFP12_64A",
                                "BFP24_16", "BFP24_64",  "SBFP12_16", "BFP32_1"};

/// Section 11.3, with ragged edges too.
TEST(Tensor, ColumnPackingIsRowPackingOfTheTranspose) {
  std::mt19937_64 random(5);
  for (const char *format : kFormats)
    for (auto [k, n] : {std::pair{64, 64}, {512, 192}, {1, 1}, {100, 70}, {129, 65}, {300, 3}}) {
      std::vector<float> w = randomMatrix(random, k * n);
      for (Rounding rounding : {Rounding::Nearest, Rounding::Up}) {
        Packed columns = pack(format, Orientation::Column, w, k, n, {rounding, {}});
        Packed rows = pack(format, Orientation::Row, transposed(w, k, n), n, k, {rounding, {}});
        ASSERT_EQ(columns.bytes, rows.bytes) << format << " " << k << " x " << n;
      }
    }
}

/// Every element of a packed tensor is what its own block says, wherever the
/// tile lies; padding is zero.
TEST(Tensor, PackingIsBlockwise) {
  std::mt19937_64 random(6);
  constexpr int64_t kRows = 70, kCols = 150;
  std::vector<float> x = randomMatrix(random, kRows * kCols);
  for (const char *name : kFormats) {
    Packed packed = pack(name, Orientation::Row, x, kRows, kCols);
    const BlockFormat &format = packed.layout.tile.format;
    std::vector<float> back(kRows * kCols);
    dequantizeTensor(packed.layout, packed.bytes.data(), back.data(), kCols);
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t c = 0; c < kCols; c += format.block) {
        std::vector<float> block(format.block), expected(format.block);
        int64_t count = std::min<int64_t>(format.block, kCols - c);
        std::copy_n(x.begin() + r * kCols + c, count, block.begin());
        std::vector<int16_t> m(format.block);
        if (format.isBfp32()) {
          expected[0] = roundToBfp32(block[0]);
        } else if (format.kind == FormatKind::Sbfp) {
          float scale = sbfpScale(quantizeSbfpBlock(block, format.scaleBias, m), format.scaleBias);
          for (int i = 0; i < format.block; ++i)
            expected[i] = m[i] * scale;
        } else {
          uint8_t exponent = quantizeBlock(block, {format.precision, format.asymmetric}, m);
          dequantizeBlock(exponent, m, format.precision, expected);
        }
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(toBits(back[r * kCols + c + i]), toBits(expected[i])) << name;
      }
  }
  // The last tile holds rows 64..69 and, from its 23rd element on, nothing.
  Packed packed = pack("BFP16_64", Orientation::Row, x, kRows, kCols);
  const std::byte *tile = packed.tile(1, 2);
  for (int run = 6; run < 64; ++run)
    EXPECT_EQ(tile[run], std::byte(0));
  for (int k = 22; k < 64; ++k)
    EXPECT_EQ(tile[64 + k], std::byte(0));
}

TEST(Tensor, RunsOfATile) {
  std::mt19937_64 random(9);
  std::vector<float> x = randomMatrix(random, 64 * 64);
  for (const char *name : {"BFP16_16", "BFP16_64", "SBFP12_16", "BFP32_1"}) {
    Packed packed = pack(name, Orientation::Row, x, 64, 64);
    const TileShape &shape = packed.layout.tile;
    std::vector<float> expected(64 * 64), actual(64);
    dequantizeTensor(packed.layout, packed.bytes.data(), expected.data(), 64);
    for (int run = 0; run < 64; ++run) {
      std::vector<std::byte> scales(shape.scaleBytes() / 64), mantissas(shape.runBytes());
      ASSERT_TRUE(quantizeRun(shape, &x[run * 64], Rounding::Nearest, nullptr, scales.data(), mantissas.data()));
      TileRun inTile = runOf(shape, packed.tile(0, 0), run);
      EXPECT_TRUE(std::equal(scales.begin(), scales.end(), inTile.scales));
      EXPECT_TRUE(std::equal(mantissas.begin(), mantissas.end(), inTile.mantissas));
      dequantizeRun(shape, inTile, actual.data());
      EXPECT_TRUE(std::equal(actual.begin(), actual.end(), expected.begin() + run * 64));
    }
  }
  std::vector<float> bad(64, kNaN);
  std::vector<std::byte> out(256);
  EXPECT_FALSE(quantizeRun({*blockFormatFromName("SBFP12_16"), 64}, bad.data(), Rounding::Nearest, nullptr, out.data(),
                           out.data() + 4));
}

TEST(Tensor, StochasticStream) {
  // splitmix64 of seed 0 starts with e220a8397b1dcdaf.
  EXPECT_EQ((StochasticStream{0x9e3779b97f4a7c15, 0}.at(0)), 0xe220);
  EXPECT_EQ((StochasticStream{0x9e3779b97f4a7c15 ^ (uint64_t(3) << 40) ^ 7, 3}.at(7)), 0xe220);
  std::mt19937_64 random(7);
  constexpr int64_t kRows = 70, kCols = 130;
  std::vector<float> x = randomMatrix(random, kRows * kCols);
  for (Orientation orientation : {Orientation::Row, Orientation::Column}) {
    StochasticStream stream{42, 9};
    Packed packed = pack("BFP16_16", orientation, x, kRows, kCols, {Rounding::Stochastic, stream});
    bool row = orientation == Orientation::Row;
    for (int64_t run = 0; run < packed.layout.runs(); run += 23)
      for (int64_t block = 0; block < 8; ++block) {
        std::vector<float> values;
        std::vector<uint16_t> u;
        for (int64_t k = block * 16; k < block * 16 + 16; ++k) {
          int64_t index = row ? run * kCols + k : k * kCols + run;
          bool inside = k < packed.layout.runLength();
          values.push_back(inside ? x[index] : 0.0f);
          u.push_back(stream.at(index));
        }
        std::vector<int16_t> m(16);
        uint8_t exponent = quantizeBlock(values, {8, false, Rounding::Stochastic}, m, u);
        const std::byte *tile = packed.tile(run / 64, block / 4);
        ASSERT_EQ(static_cast<uint8_t>(tile[run % 64 * 4 + block % 4]), exponent);
        for (int k = 0; k < 16; ++k)
          ASSERT_EQ(static_cast<int8_t>(tile[256 + run % 64 * 64 + block % 4 * 16 + k]), m[k]);
      }
  }
}

TEST(Tensor, StochasticRoundingIsUnbiased) {
  constexpr int kSize = 256;
  std::vector<float> x(kSize * kSize, 19.3f / 64); // between two steps
  for (int i = 0; i < kSize; ++i)
    x[i * kSize] = 1.0f;
  for (int i = 0; i < kSize; ++i)
    for (int j = 0; j < kSize; j += 64)
      x[i * kSize + j] = 1.0f; // fixes every block's exponent
  Packed packed = pack("BFP16_64", Orientation::Row, x, kSize, kSize, {Rounding::Stochastic, {1, 2}});
  std::vector<float> back(x.size());
  dequantizeTensor(packed.layout, packed.bytes.data(), back.data(), kSize);
  double sum = 0;
  int count = 0;
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i] != 1) {
      sum += back[i] * 64;
      ++count;
    }
  EXPECT_NEAR(sum / count, 19.3, 0.01); // sigma of the mean is 0.0018
}

TEST(Tensor, SbfpBias) {
  std::string error;
  auto biasOf = [&](float small, float large) {
    std::vector<float> x(32, 0.0f);
    x[3] = small;
    x[20] = -large;
    return chooseSbfpBias(Orientation::Row, 1, 32, {x.data(), 32}, error);
  };
  EXPECT_EQ(biasOf(7.0f, 14.0f), 4);
  EXPECT_EQ(biasOf(7.0f / 8, 7.0f), 4); // scale 2^-3, the threshold of bias 4
  EXPECT_EQ(biasOf(6.9f / 8, 7.0f), 5); // just below it
  EXPECT_EQ(biasOf(7.0f / 1024, 7.0f), 11);
  EXPECT_EQ(biasOf(0.0f, 0.0f), 4); // nothing to flush
  EXPECT_EQ(biasOf(0x1p-20f, 0x1p-20f), std::nullopt);
  EXPECT_NE(error.find("no SBFP12_16 bias"), std::string::npos);
  EXPECT_EQ(biasOf(7.0f / 8, 7 * 3968.0f), 4); // the largest scale of bias 4
  EXPECT_EQ(biasOf(7.0f / 8, 7 * 3969.0f), std::nullopt);
  EXPECT_EQ(biasOf(1.0f, kInfinity), std::nullopt);
  EXPECT_NE(error.find("NaN or infinite"), std::string::npos);
  EXPECT_EQ(biasOf(kNaN, 1.0f), std::nullopt);

  std::vector<float> x(16, kInfinity);
  auto layout = makeLayout(*blockFormatFromName("SBFP12_16"), Orientation::Row, 1, 16, error);
  std::vector<std::byte> bytes(layout->bytes());
  EXPECT_EQ(quantizeTensor(*layout, {x.data(), 16}, {}, bytes.data()), "SBFP12_16_7 has no code for NaN or infinity");
}

/// Section 2.2: storage kinds reach the compute kinds through exact values.
TEST(Tensor, ConvertingTiles) {
  std::mt19937_64 random(8);
  std::vector<float> w = randomMatrix(random, 64 * 64, -3, 1);
  std::string error;
  for (auto [from, to] : {std::pair{"SBFP12_16_9", "BFP16_64"}, {"BFP14_16", "BFP16_64"}, {"BFP16_64", "BFP12_64"}}) {
    BlockFormat source = *blockFormatFromName(from), target = *blockFormatFromName(to);
    TensorLayout stored{*makeTileShape(source, 64, error), Orientation::Column, 64, 64};
    TensorLayout wanted{*makeTileShape(target, 64, error), Orientation::Column, 64, 64};
    std::vector<std::byte> bytes(stored.bytes()), converted(wanted.bytes()), expected(wanted.bytes());
    ASSERT_EQ(quantizeTensor(stored, {w.data(), 64}, {}, bytes.data()), std::nullopt);
    std::vector<float> exact(64 * 64);
    dequantizeTensor(stored, bytes.data(), exact.data(), 64);
    ASSERT_EQ(quantizeTensor(wanted, {exact.data(), 64}, {}, expected.data()), std::nullopt);
    ASSERT_EQ(convertTile(stored.tile, bytes.data(), wanted.tile, converted.data()), std::nullopt);
    EXPECT_EQ(converted, expected) << from << " -> " << to;
  }
  TileShape deep{*blockFormatFromName("BFP12_128"), 128};
  EXPECT_TRUE(convertTile(TileShape{}, nullptr, deep, nullptr));
}

} // namespace
} // namespace dmx::blockfp::test
