//===- ScalarTest.cpp - f16, f32 and narrow floats ------------------------===//
#include "F16Oracle.h"
#include "TestSupport.h"

#include <gtest/gtest.h>

namespace dmx::blockfp::test {
namespace {

TEST(F16, EveryPattern) {
  for (int i = 0; i < 65536; ++i) {
    auto bits = static_cast<uint16_t>(i);
    int magnitude = i & 0x7fff;
    double value = f16Read(bits);
    if (magnitude > 0x7c00) {
      EXPECT_TRUE(std::isnan(value) && std::isnan(f16Widen(bits)));
      EXPECT_EQ(f16Round(value), kF16NaN);
      continue;
    }
    EXPECT_EQ(Real(value), read(bits));
    EXPECT_EQ(f16Round(value, Overflow::Infinity), magnitude < 0x400 ? 0 : bits);
    double exact = magnitude < 0x400 ? std::ldexp(magnitude, -24) : std::fabs(value);
    EXPECT_EQ(f16Widen(bits), static_cast<float>(i >> 15 ? -exact : exact));
  }
  EXPECT_EQ(f16Round(kInfinity), kF16Max);
  EXPECT_EQ(f16Round(-kInfinity), 0x8000 | kF16Max);
  EXPECT_EQ(f16Round(-kInfinity, Overflow::Infinity), 0xfc00);
  EXPECT_EQ(toBits(bf16Widen(0x4049)), 0x40490000u);
}

/// Around every number, every midpoint and every f64 neighbour of both.
TEST(F16, RoundingAtEveryBorder) {
  for (size_t i = 0; i + 1 < normals().size(); ++i) {
    double low = static_cast<double>(normals()[i]);
    double middle = static_cast<double>((normals()[i] + normals()[i + 1]) / 2);
    for (double value : {low, middle})
      for (double near : {std::nextafter(value, 0.0), value, std::nextafter(value, kInfinity)})
        for (double sign : {1.0, -1.0})
          ASSERT_EQ(f16Round(sign * near), oracle(sign * near, Overflow::Saturate)) << sign * near;
  }
  for (Overflow mode : kModes)
    for (double value : {65504.0, 65519.999, 65520.0, 65536.0, 1e300, -65520.0, 0x1p-15, -0x1p-1060})
      EXPECT_EQ(f16Round(value, mode), oracle(value, mode)) << value;
}

/// Operands that make ties, cancellation, flushes and overflows, and random ones.
std::vector<uint16_t> chosenOperands() {
  std::vector<uint16_t> out{0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x0401, 0x8400, 0x3c00, 0x3c01, 0xbc00,
                            0x3bff, 0x3800, 0x4000, 0x4200, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x7c01,
                            0x0800, 0x1000, 0x1400, 0x2c00, 0x5bff, 0x6400, 0x7800, 0x3555};
  std::mt19937 random(1);
  while (out.size() < 64)
    out.push_back(static_cast<uint16_t>(random()));
  return out;
}

/// All operands on one side. f64 holds sums and products exactly and quotients
/// to 53 bits; 64 bits are more.
TEST(F16, Arithmetic) {
  for (uint16_t b : chosenOperands())
    for (int i = 0; i < 65536; ++i) {
      auto a = static_cast<uint16_t>(i);
      Overflow mode = kModes[i >> 3 & 1];
      Real x = read(a), y = read(b);
      ASSERT_EQ(f16Add(a, b, mode), oracle(x + y, mode)) << a << " + " << b;
      ASSERT_EQ(f16Sub(b, a, mode), oracle(y - x, mode)) << b << " - " << a;
      ASSERT_EQ(f16Mul(a, b, mode), oracle(x * y, mode)) << a << " * " << b;
      ASSERT_EQ(f16Div(a, b, mode), oracle(x / (y == 0 ? Real(0) : y), mode)) << a << " / " << b;
      ASSERT_EQ(f16Div(b, a, mode), oracle(y / (x == 0 ? Real(0) : x), mode)) << b << " / " << a;
      bool nan = std::isnan(x) || std::isnan(y);
      ASSERT_EQ(f16Max(a, b), nan ? kF16NaN : oracle(std::max(x, y), Overflow::Infinity));
      ASSERT_EQ(f16Min(a, b), nan ? kF16NaN : oracle(std::min(x, y), Overflow::Infinity));
    }
}

/// a * b + c can need 80 bits; 128-bit integers in units of 2^-48 hold it.
TEST(F16, FusedMultiplyAdd) {
  auto units = [](uint16_t bits) { // of 2^-24
    return static_cast<int64_t>(std::ldexp(static_cast<double>(read(bits)), 24));
  };
  std::mt19937 random(2);
  std::vector<uint16_t> chosen = chosenOperands();
  auto finite = [&] {
    for (;;) {
      auto bits = random() % 4 == 0 ? chosen[random() % chosen.size()] : static_cast<uint16_t>(random());
      if ((bits & 0x7c00) != 0x7c00)
        return bits;
    }
  };
  for (int round = 0; round < 1000000; ++round) {
    uint16_t a = finite(), b = finite(), c = finite();
    if (round % 2) { // c near -a*b or far below it: cancellation and sticky bits
      c = f16Round(-f16Read(a) * f16Read(b) * (round % 4 == 1 ? 1 : 0x1p-12));
      c ^= static_cast<uint16_t>(random() % 4);
    }
    __int128 exact = __int128(units(a)) * units(b) + (__int128(units(c)) << 24);
    // To 62 bits with a sticky one: the oracle's midpoints stay decidable.
    bool negative = exact < 0;
    unsigned __int128 magnitude = negative ? -exact : exact;
    int shift = 0;
    bool sticky = false;
    for (; magnitude >> 62; ++shift) {
      sticky |= magnitude & 1;
      magnitude >>= 1;
    }
    Real value = std::ldexp(Real(uint64_t(magnitude) | sticky), shift - 48);
    ASSERT_EQ(f16Fma(a, b, c), oracle(negative ? -value : value, Overflow::Saturate)) << a << " " << b << " " << c;
  }
  EXPECT_EQ(f16Fma(0x7c00, 0x0000, 0x3c00), kF16NaN);
  EXPECT_EQ(f16Fma(0x7c00, 0x3c00, 0xfc00), kF16NaN);
  EXPECT_EQ(f16Fma(0x7c00, 0x3c00, 0x3c00), kF16Max);
}

TEST(F32, FlushAndRounding) {
  EXPECT_EQ(f32Mul(0x1p-100f, 0x1p-26f), 0x1p-126f);
  EXPECT_EQ(f32Mul(0x1p-100f, 0x1p-27f), 0.0f);
  // Just below the smallest normal number: IEEE would round it up to that.
  float below = f32Mul(0x1.fffffep-64f, 0x1.000001p-63f); // 2^-126 (1 - 2^-48)
  EXPECT_EQ(below, 0.0f);
  EXPECT_EQ(f32Add(0x1.8p-126f, -0x1p-126f), 0.0f);
  EXPECT_EQ(f32Sub(0x1p-126f, 0x1p-127f), 0.0f);
  EXPECT_EQ(f32Add(0x1.fffffep127f, 0x1p103f), std::numeric_limits<float>::infinity());
  EXPECT_EQ(toBits(f32Mul(-1.0f, 0.0f)), 0u); // one zero
  EXPECT_EQ(toBits(f32Add(-0.0f, -0.0f)), 0u);
  EXPECT_EQ(f32Div(-1.0f, -0.0f), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(toBits(f32Div(0.0f, 0.0f)), 0x7fc00000u);
  EXPECT_EQ(f32Div(1.0f, 3.0f), 1.0f / 3.0f);
  // 97 * 172961 is 2^24 + 1: the product is a midpoint, c far below f64's digits.
  EXPECT_EQ(f32Fma(97.0f, 172961 * 0x1p-24f, 0x1p-60f), 1.0f + 0x1p-23f);
  EXPECT_EQ(f32Fma(97.0f, 172961 * 0x1p-24f, -0x1p-60f), 1.0f);
  EXPECT_EQ(f32Fma(-97.0f, 172961 * 0x1p-24f, -0x1p-60f), -1.0f - 0x1p-23f);
  // And just below the smallest normal number.
  EXPECT_EQ(f32Fma(1.0f, 0x1p-126f, -0x1p-149f), 0.0f);
  EXPECT_EQ(f32Fma(0x1p-63f, 0x1p-63f, -0x1p-149f), 0.0f);
  EXPECT_EQ(f32Fma(0x1.000002p0f, 0x1.000002p0f, -1.0f), std::fma(0x1.000002p0f, 0x1.000002p0f, -1.0f));
}

/// Where nothing is flushed, the host's own f32 instructions.
TEST(F32, RandomAgainstTheHost) {
  std::mt19937 random(3);
  auto flushed = [](float value) { return std::isnan(value) || value == 0 ? std::fabs(value) : value; };
  int compared = 0;
  for (int round = 0; round < 2000000; ++round) {
    float a = fromBits(random()), b = fromBits(random()), c = fromBits(random());
    if (round % 2) {
      b = std::ldexp(1 + b * 0x1p-130f, int(random() % 50) - 25);
      c = -a * b * (1 + float(random() % 3) * 0x1p-23f);
    }
    struct {
      float ours, host;
    } results[] = {{f32Add(a, b), a + b},
                   {f32Sub(a, b), a - b},
                   {f32Mul(a, b), a * b},
                   {f32Div(a, b), a / b},
                   {f32Fma(a, b, c), std::fma(a, b, c)}};
    for (auto [ours, host] : results) {
      if (std::fabs(host) <= 0x1p-126f && host != 0) {
        ASSERT_TRUE(ours == 0 || std::fabs(ours) == 0x1p-126f);
        continue;
      }
      ++compared;
      if (std::isnan(host)) {
        ASSERT_EQ(toBits(ours), 0x7fc00000u);
      } else if (b != 0 || host == 0) {
        ASSERT_EQ(toBits(ours), toBits(flushed(host))) << a << " " << b << " " << c;
      }
    }
  }
  EXPECT_GT(compared, 8000000);
}

// --- 8-bit floats ------------------------------------------------------------

struct F8Case {
  F8Kind kind;
  F8Mode mode;
  double largest;
};
constexpr F8Case kF8Cases[] = {
    {F8Kind::E4M3, F8Mode::Compat, 480},        {F8Kind::E4M3, F8Mode::OcpSaturate, 448},
    {F8Kind::E4M3, F8Mode::OcpOverflow, 448},   {F8Kind::E5M2, F8Mode::Compat, 114688},
    {F8Kind::E5M2, F8Mode::OcpSaturate, 57344}, {F8Kind::E5M2, F8Mode::OcpOverflow, 57344},
};

/// All f16 numbers and what lies between them, against a search of the codes.
TEST(F8, EveryValue) {
  for (const F8Case &f8 : kF8Cases) {
    std::vector<double> codes; // finite, ascending with the pattern
    for (int bits = 0; bits < 128; ++bits) {
      double value = f8Widen(static_cast<uint8_t>(bits), f8.kind, f8.mode);
      EXPECT_EQ(f8Widen(static_cast<uint8_t>(bits | 0x80), f8.kind, f8.mode) == -value, !std::isnan(value));
      if (std::isfinite(value))
        codes.push_back(value);
    }
    ASSERT_TRUE(std::is_sorted(codes.begin(), codes.end()));
    ASSERT_EQ(codes.back(), f8.largest);
    double overflow = codes.back() + (codes.back() - codes[codes.size() - 2]) / 2;
    bool evenLargest = codes.size() % 2 == 1;
    for (int i = 0; i < 65536; ++i) {
      for (double value : {double(f16Widen(static_cast<uint16_t>(i))), f16Widen(static_cast<uint16_t>(i)) * 1.0001}) {
        uint8_t actual = f8Round(value, f8.kind, f8.mode);
        double magnitude = std::fabs(value);
        if (std::isnan(value)) {
          ASSERT_EQ(actual, 0x7f);
          continue;
        }
        size_t index = std::upper_bound(codes.begin(), codes.end(), magnitude) - codes.begin() - 1;
        if (index + 1 < codes.size()) {
          double middle = (codes[index] + codes[index + 1]) / 2;
          index += magnitude > middle || (magnitude == middle && index % 2 == 1);
        } else if (f8.mode == F8Mode::OcpOverflow &&
                   (magnitude > overflow || (magnitude == overflow && !evenLargest))) {
          index = f8.kind == F8Kind::E4M3 ? 0x7f : 0x7c;
        }
        uint8_t sign = std::signbit(value) && (index != 0 || f8.mode != F8Mode::Compat) ? 0x80 : 0;
        ASSERT_EQ(actual, sign | index) << value;
        if (magnitude < codes[f8.kind == F8Kind::E4M3 ? 8 : 4]) { // below the normal numbers
          ASSERT_EQ(f8Round(value, f8.kind, f8.mode, true) & 0x7f, 0);
        }
      }
    }
  }
}

TEST(F8, GeneralFormatsAgree) {
  std::string error;
  for (auto [name, kind] : {std::pair{"AFLOAT8", F8Kind::E4M3}, {"BFLOAT8", F8Kind::E5M2}}) {
    FloatFormat format = parseFormat(name, error)->format.floating;
    for (int i = 0; i < 65536; ++i) {
      double value = f16Widen(static_cast<uint16_t>(i));
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(roundToFormat(value, format)));
        continue;
      }
      double code = f8Widen(f8Round(value, kind, F8Mode::Compat), kind, F8Mode::Compat);
      ASSERT_EQ(roundToFormat(value, format), code) << value;
      ASSERT_EQ(roundToFormat(value, format, true), code) << value; // bias 2^(e-1) - 1
    }
  }
  // The compat range ignores the bias: section 3's remark on scales.
  FloatFormat scale{false, 4, 4, 13, true};
  EXPECT_EQ(roundToFormat(1e9, scale), 1.9375 * 4);
  EXPECT_EQ(roundToFormat(1e9, scale, true), 1.9375 * 256);
  EXPECT_EQ(roundToFormat(-3.0, scale), 3.0);
  EXPECT_EQ(roundToFormat(0x1.ffp-13, scale), 0.0);
}

} // namespace
} // namespace dmx::blockfp::test
