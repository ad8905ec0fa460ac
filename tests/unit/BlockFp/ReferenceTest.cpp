//===- ReferenceTest.cpp - against the specification's executable form ----===//
//
// reference_cases.py computes random cases with exact rational arithmetic. The
// environment variables DMXC_CORSAIR_CASES and DMXC_CORSAIR_SEED choose how many
// blocks and which; the default is a few seconds' worth.
//
//===----------------------------------------------------------------------===//
#include "TestSupport.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/wait.h>

namespace dmx::blockfp::test {
namespace {

/// The records of one run of the script.
class Stream {
public:
  Stream(const char *kind, long count) {
    const char *seed = std::getenv("DMXC_CORSAIR_SEED");
    std::string command = "/usr/bin/python3 -B '" DMXC_REFERENCE_SCRIPT "' ";
    command += std::string(kind) + " " + std::to_string(count) + " " + std::to_string(seed ? std::atol(seed) : 1);
    pipe = popen(command.c_str(), "r");
  }
  ~Stream() {
    if (pipe)
      pclose(pipe);
  }
  /// False at the end.
  template <typename T> bool read(T *values, size_t count) {
    return pipe && fread(values, sizeof(T), count, pipe) == count;
  }
  template <typename T> std::vector<T> read(size_t count) {
    std::vector<T> values(count);
    if (!read(values.data(), count))
      values.clear();
    return values;
  }
  int exitStatus() {
    int status = pipe ? pclose(pipe) : -1;
    pipe = nullptr;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

private:
  FILE *pipe = nullptr;
};

constexpr int kNoReference = 77;

long casesOr(long usual) {
  const char *cases = std::getenv("DMXC_CORSAIR_CASES");
  return cases ? std::atol(cases) : usual;
}

TEST(Reference, Blocks) {
  long wanted = casesOr(5000), seen = 0;
  Stream stream("blocks", wanted);
  uint16_t head[6];
  for (; stream.read(head, 6); ++seen) {
    auto [p, size, mode, a, exponent, unused] = head;
    auto x = stream.read<float>(size);
    auto u = stream.read<uint16_t>(size);
    auto expected = stream.read<int16_t>(size);
    ASSERT_EQ(expected.size(), size);
    std::vector<int16_t> m(size);
    QuantizeMode quantize{p, a == 1, static_cast<Rounding>(mode)};
    ASSERT_EQ(quantizeBlock(x, quantize, m, u), exponent) << "block " << seen;
    ASSERT_EQ(m, expected) << "block " << seen << ", p " << p << ", rounding " << mode << ", A " << a;
  }
  int status = stream.exitStatus();
  if (status == kNoReference)
    GTEST_SKIP() << "bfp_ref.py is not beside the checkout: nothing to compare with";
  ASSERT_EQ(status, 0);
  EXPECT_EQ(seen, wanted);
  std::printf("%ld blocks\n", seen);
}

void checkSbfp(Stream &stream, const uint32_t *w) {
  auto x = stream.read<float>(16);
  auto expected = stream.read<int16_t>(16);
  std::vector<int16_t> m(16);
  int bias = static_cast<int>(w[0]);
  ASSERT_EQ(quantizeSbfpBlock(x, bias, m), w[1]);
  ASSERT_EQ(toBits(sbfpScale(static_cast<uint8_t>(w[1]), bias)), w[2]);
  ASSERT_EQ(m, expected);
}

void checkDots(Stream &stream, const uint32_t *w) {
  int p = static_cast<int>(w[0]);
  size_t size = w[1], count = w[2];
  std::vector<float> partials;
  for (size_t i = 0; i < count; ++i) {
    auto a = stream.read<int16_t>(size + 1), b = stream.read<int16_t>(size + 1);
    BlockView va{static_cast<uint8_t>(a[0]), std::span(a).subspan(1), p};
    BlockView vb{static_cast<uint8_t>(b[0]), std::span(b).subspan(1), p};
    partials.push_back(partialToF32(dotBlocks(va, vb)));
  }
  float reduced = roundSum(reducePartials(partials));
  ASSERT_EQ(toBits(reduced), w[5]);
  ASSERT_EQ(toBits(addToSum(fromBits(w[4]), reduced)), w[6]);
}

void checkNumber(Stream &stream, uint32_t kind, const uint32_t *w) {
  float x = fromBits(w[0]), y = fromBits(w[1]);
  switch (kind) {
  case 0:
    ASSERT_EQ(toBits(roundToBfp32(x)), w[1]) << x;
    break;
  case 1:
    ASSERT_EQ(f16Round(x), w[1]) << x;
    ASSERT_EQ(f16Round(x, Overflow::Infinity), w[2]) << x;
    break;
  case 2:
    ASSERT_EQ(toBits(f32Add(x, y)), w[2]) << x << " " << y;
    ASSERT_EQ(toBits(f32Mul(x, y)), w[3]) << x << " " << y;
    if (y != 0) {
      ASSERT_EQ(toBits(f32Div(x, y)), w[4]) << x << " " << y;
    }
    break;
  case 3: {
    FloatFormat format{w[5] == 0, static_cast<uint8_t>(w[1]), static_cast<uint8_t>(w[2]), static_cast<int16_t>(w[3]),
                       w[4] == 1};
    ASSERT_EQ(toBits(static_cast<float>(roundToFormat(x, format, w[6] == 1))), w[7]) << x;
    break;
  }
  case 4:
    checkSbfp(stream, w);
    break;
  default:
    ASSERT_EQ(kind, 5u);
    checkDots(stream, w);
  }
}

TEST(Reference, Numbers) {
  long wanted = casesOr(5000) / 5, seen = 0;
  Stream stream("numbers", wanted);
  uint32_t record[10];
  for (; stream.read(record, 10); ++seen) {
    checkNumber(stream, record[0], record + 2);
    ASSERT_FALSE(HasFatalFailure()) << "record " << seen << " of kind " << record[0];
  }
  int status = stream.exitStatus();
  if (status == kNoReference)
    GTEST_SKIP() << "bfp_ref.py is not beside the checkout: nothing to compare with";
  ASSERT_EQ(status, 0);
  EXPECT_EQ(seen, 6 * wanted);
}

/// x W + bias in BASIC numerics: the bias is preloaded into OB.
std::vector<uint16_t> linear(const std::vector<float> &x, const std::vector<float> &w, const std::vector<float> &bias,
                             int rows, int depth) {
  Packed a = pack("BFP16_64", Orientation::Row, x, rows, depth);
  Packed b = pack("BFP16_64", Orientation::Column, w, depth, 64);
  std::vector<float> ob;
  for (int r = 0; r < rows; ++r)
    for (float value : bias)
      ob.push_back(roundToBfp32(value));
  std::vector<const std::byte *> aTiles, wTiles;
  for (int t = 0; t < depth / 64; ++t) {
    aTiles.push_back(a.tile(0, t));
    wTiles.push_back(b.tile(0, t));
  }
  TileProduct product{a.layout.tile, b.layout.tile, rows, true};
  TileMatmul unit;
  EXPECT_EQ(unit.run(product, aTiles, wTiles, ob.data()), std::nullopt);
  return toF16(ob);
}

/// Section 11.6.
TEST(Reference, BasicMlp) {
  Stream stream("mlp", 24);
  uint32_t shape[4] = {};
  if (!stream.read(shape, 4)) {
    ASSERT_EQ(stream.exitStatus(), kNoReference);
    GTEST_SKIP() << "bfp_ref.py is not beside the checkout: nothing to compare with";
  }
  auto [rows, depth, hidden, columns] = shape;
  ASSERT_TRUE(rows <= 64 && hidden == 64 && columns == 64);
  auto x = stream.read<float>(rows * depth), w1 = stream.read<float>(depth * hidden);
  auto b1 = stream.read<float>(hidden), w2 = stream.read<float>(hidden * columns), b2 = stream.read<float>(columns);
  auto expected = stream.read<uint16_t>(rows * columns);
  std::vector<uint16_t> inner = linear(x, w1, b1, rows, depth);
  std::vector<float> activated;
  int zeros = 0;
  for (uint16_t value : inner) {
    uint16_t relu = f16Max(value, 0);
    zeros += relu == 0;
    activated.push_back(f16Widen(relu));
  }
  EXPECT_GT(zeros, static_cast<int>(rows * hidden) / 8);
  EXPECT_LT(zeros, static_cast<int>(rows * hidden) * 7 / 8);
  EXPECT_EQ(linear(activated, w2, b2, rows, hidden), expected);
}

} // namespace
} // namespace dmx::blockfp::test
