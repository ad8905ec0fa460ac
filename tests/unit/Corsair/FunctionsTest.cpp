//===- FunctionsTest.cpp - functions of the SIMD device -------------------===//
#include "schemas/corsair/SimdFunctions.h"

#include "../BlockFp/F16Oracle.h"

#include <gtest/gtest.h>

namespace dmx::corsair::test {
namespace {

using namespace blockfp::test;

Real exactly(Function function, Real x) {
  switch (function) {
  case Function::Exp:
    return std::exp(x);
  case Function::Log:
    return std::log(x);
  case Function::Tanh:
    return std::tanh(x);
  case Function::Erf:
    return std::erf(x);
  case Function::Gelu:
    return x * std::erfc(-x / std::sqrt(Real(2))) / 2;
  case Function::GeluTanh: {
    Real u = std::sqrt(2 / std::acos(Real(-1))) * (x + Real(0.044715L) * x * x * x);
    return x / (1 + std::exp(-2 * u));
  }
  case Function::Sigmoid:
    return 1 / (1 + std::exp(-x));
  case Function::Silu:
    return x / (1 + std::exp(-x));
  case Function::Sqrt:
    return std::sqrt(x);
  case Function::Rsqrt:
    return 1 / std::sqrt(x);
  case Function::Reciprocal:
    return 1 / x;
  case Function::Sin:
    return std::sin(x);
  case Function::Cos:
    return std::cos(x);
  }
  return 0;
}

/// How far |value| is from the nearest place where the f16 result changes, as a
/// part of it: midpoints and the flush border.
Real marginOf(Real value) {
  Real magnitude = std::fabs(value);
  const std::vector<Real> &all = normals();
  if (!std::isfinite(value) || magnitude > 70000 || magnitude < all[0] / 2)
    return 1;
  Real nearest = std::fabs(magnitude - all[0]);
  size_t above = std::upper_bound(all.begin(), all.end(), magnitude) - all.begin();
  if (above > 0) {
    Real next = above < all.size() ? all[above] : Real(65536);
    nearest = std::min(nearest, std::fabs(magnitude - (all[above - 1] + next) / 2));
  }
  return nearest / magnitude;
}

/// All operands against an 80-bit evaluation. The margin is what makes
/// f16Function independent of the host's mathematics library: as long as f64
/// results are good to 2^-38, the f16 results are these.
TEST(Functions, EveryOperandIsCorrectlyRounded) {
  for (int index = 0; index < kFunctions; ++index) {
    auto function = static_cast<Function>(index);
    Real smallest = 1;
    for (int i = 0; i < 65536; ++i) {
      auto bits = static_cast<uint16_t>(i);
      Real x = read(bits);
      if (std::isinf(x))
        continue;
      Real exact = exactly(function, x);
      for (Overflow mode : kModes)
        ASSERT_EQ(f16Table(function, mode)[i], oracle(exact, mode)) << index << " of " << f16Read(bits);
      // On the border itself the f64 value is exact too (sqrt, 1/x, f(0) ...).
      Real margin = marginOf(exact);
      if (margin > 0)
        smallest = std::min(smallest, margin);
      else
        ASSERT_EQ(Real(evaluate(function, f16Read(bits))), exact) << index << " of " << f16Read(bits);
    }
    RecordProperty("margin" + std::to_string(index), std::to_string(-std::log2(static_cast<double>(smallest))));
    EXPECT_GT(smallest, 0x1p-38L) << index;
  }
}

TEST(Functions, SpecialOperands) {
  const uint16_t kPlus = 0x7c00, kMinus = 0xfc00;
  auto at = [](Function function, uint16_t x) { return f16Function(function, x, Overflow::Infinity); };
  EXPECT_EQ(at(Function::Exp, kMinus), 0);
  EXPECT_EQ(at(Function::Exp, kPlus), kPlus);
  EXPECT_EQ(at(Function::Log, 0x8000), kMinus); // one zero
  EXPECT_EQ(at(Function::Log, 0x8400), kF16NaN);
  EXPECT_EQ(at(Function::Reciprocal, 0x8000), kPlus);
  EXPECT_EQ(f16Function(Function::Reciprocal, 0x0000), kF16Max);
  EXPECT_EQ(f16Function(Function::Reciprocal, 0x83ff), kF16Max); // subnormal operand
  EXPECT_EQ(at(Function::Rsqrt, 0x8000), kPlus);
  EXPECT_EQ(at(Function::Sqrt, 0xbc00), kF16NaN);
  for (Function gate : {Function::Gelu, Function::GeluTanh, Function::Silu}) {
    EXPECT_EQ(at(gate, kMinus), 0);
    EXPECT_EQ(at(gate, kPlus), kPlus);
  }
  EXPECT_EQ(at(Function::Sin, kPlus), kF16NaN);
  for (int index = 0; index < kFunctions; ++index)
    for (uint16_t nan : {0x7c01, 0x7e00, 0xffff})
      EXPECT_EQ(at(static_cast<Function>(index), nan), kF16NaN);
  EXPECT_EQ(f32Function(Function::Exp, 1.0f), 0x1.5bf0a8p+1f);
  EXPECT_EQ(f32Function(Function::Exp, -88.0f), 0.0f); // e^-88 < 2^-126
}

// --- approximations ----------------------------------------------------------

double f16Ratio(uint16_t bits, double exact) { return f16Read(bits) / exact - 1; }

TEST(Approximations, StayWithinTheirErrors) {
  double quadratic = 0, linear = 0, reciprocal = 0, rsqrt = 0, gelu = 0;
  for (int i = 0; i < 65536; ++i) {
    auto bits = static_cast<uint16_t>(i);
    double x = f16Read(bits);
    if ((i & 0x7c00) == 0 || !(std::fabs(x) < 16000))
      continue;
    if (std::fabs(x) < 8) {
      ExpParts parts = approxExp(bits, ExpShape::Quadratic);
      quadratic =
          std::max(quadratic, std::fabs(std::ldexp(f16Read(parts.significand), parts.exponent) / std::exp(x) - 1));
      parts = approxExp(bits, ExpShape::Linear);
      linear = std::max(linear, std::fabs(std::ldexp(f16Read(parts.significand), parts.exponent) / std::exp(x) - 1));
      gelu = std::max(gelu, std::fabs(f16Read(approxGelu(bits)) - evaluate(Function::Gelu, x)));
    }
    // Farther out, corrections of the Newton step are flushed.
    if (std::fabs(x) > 0x1p-10 && std::fabs(x) < 32) {
      reciprocal = std::max(reciprocal, std::fabs(f16Ratio(approxReciprocal(bits), 1 / x)));
      if (x > 0)
        rsqrt = std::max(rsqrt, std::fabs(f16Ratio(approxRsqrt(bits), 1 / std::sqrt(x))));
    }
  }
  EXPECT_LT(quadratic, 0.012); // of the reduction in f16, growing with |x|
  EXPECT_LT(linear, 0.06);
  EXPECT_LT(reciprocal, 0.006);
  EXPECT_LT(rsqrt, 0.004);
  EXPECT_LT(gelu, 0.03);
  for (float x : {1.0f, 2.0f, 0.3f, 1e20f, 1e-20f})
    EXPECT_LT(std::fabs(approxRsqrtF32(x) * std::sqrt(x) - 1), 0.0018f);
}

TEST(Approximations, Fixed) {
  // Hand-computed: each operation rounded to f16.
  EXPECT_EQ(approxExp(0x0000, ExpShape::Quadratic).exponent, 0);
  EXPECT_EQ(approxExp(0x0000, ExpShape::Quadratic).significand, 0x3c00);
  EXPECT_EQ(approxExp(0x0000, ExpShape::Linear).significand, f16Round(0.957));
  // 1 * 1.4424 = 1.4424; k = 1, v = 0.4424 exactly representable.
  EXPECT_EQ(approxExp(0x3c00, ExpShape::Linear).exponent, 1);
  EXPECT_EQ(approxExp(0x3c00, ExpShape::Linear).significand,
            f16Round(f16Read(f16Round(1.4426950408889634)) - 1 + f16Read(f16Round(0.957))));
  EXPECT_EQ(approxExp(0xfc00, ExpShape::Linear).exponent, -65504); // saturates
  EXPECT_EQ(approxExp(0x7e00, ExpShape::Quadratic).significand, kF16NaN);
  // Seed 0x77a8 - 0x3c00 = 0x3ba8 is 0.957; 0.957 + (1 - 0.957) 0.957.
  EXPECT_EQ(approxReciprocal(0x3c00), f16Fma(f16Round(1 - 0x1.eap-1), 0x3ba8, 0x3ba8));
  EXPECT_EQ(approxReciprocal(0xbc00), 0x8000 | approxReciprocal(0x3c00));
  EXPECT_EQ(approxGelu(0x4800), 0x4800); // 8: the gate is 1
  EXPECT_EQ(approxGelu(0xc800), 0);      // and 0
  // x (1 + L(x / sqrt 2)) / 2 by the quadratic of NUMERICS, within some roundings to f16.
  for (int i = -32; i <= 32; ++i) {
    const double x = i / 8.0;
    const double near = std::fmin(std::fabs(x) / std::sqrt(2.0), 1.769) - 1.769, step = 0.1444 * near * near;
    EXPECT_NEAR(f16Read(approxGelu(f16Round(x))), x * (x < 0 ? step : 1 - step), 0.002 * std::fmax(std::fabs(x), 0.5))
        << x;
  }
}

} // namespace
} // namespace dmx::corsair::test
