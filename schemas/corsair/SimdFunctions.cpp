//===- SimdFunctions.cpp - functions of the SIMD device's kernels ---------===//

#include "SimdFunctions.h"

#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>

namespace dmx::corsair {
namespace {

constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
using F16Table = std::array<uint16_t, 65536>;

/// x * weight(x) where the weight goes to 0 on the left and 1 on the right.
double gated(double x, double weight) {
  if (std::isinf(x))
    return x > 0 ? x : 0; // not Inf * 0
  return x * weight;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

uint16_t f16Constant(double value) { return f16Round(value); }

} // namespace

double evaluate(Function function, double x) {
  switch (function) {
  case Function::Exp:
    return std::exp(x);
  case Function::Log:
    // One zero: log(-0) is log(+0), not NaN.
    return std::log(x == 0 ? 0.0 : x);
  case Function::Tanh:
    return std::tanh(x);
  case Function::Erf:
    return std::erf(x);
  case Function::Gelu: // erfc does not cancel for negative x
    return gated(x, 0.5 * std::erfc(-x * kSqrtHalf));
  case Function::GeluTanh: // (1 + tanh(u)) / 2 is sigmoid(2u)
    return gated(x, sigmoid(2 * kSqrtTwoOverPi * (x + 0.044715 * x * x * x)));
  case Function::Sigmoid:
    return sigmoid(x);
  case Function::Silu:
    return gated(x, sigmoid(x));
  case Function::Sqrt:
    return std::sqrt(x);
  case Function::Rsqrt:
    return 1 / std::sqrt(x == 0 ? 0.0 : x);
  case Function::Reciprocal:
    return 1 / (x == 0 ? 0.0 : x);
  case Function::Sin:
    return std::sin(x);
  case Function::Cos:
    return std::cos(x);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

uint16_t f16Function(Function function, uint16_t x, Overflow overflow) {
  return f16Round(evaluate(function, f16Read(x)), overflow);
}

const F16Table &f16Table(Function function, Overflow overflow) {
  static std::unique_ptr<F16Table> tables[kFunctions][2];
  static std::once_flag built[kFunctions][2];
  int row = static_cast<int>(function), column = static_cast<int>(overflow);
  std::call_once(built[row][column], [&] {
    auto table = std::make_unique<F16Table>();
    for (size_t bits = 0; bits < table->size(); ++bits)
      (*table)[bits] = f16Function(function, static_cast<uint16_t>(bits), overflow);
    tables[row][column] = std::move(table);
  });
  return *tables[row][column];
}

float f32Function(Function function, float x) { return f32Round(evaluate(function, x)); }

// --- approximations ----------------------------------------------------------

ExpParts approxExp(uint16_t x, ExpShape shape) {
  uint16_t scaled = f16Mul(x, f16Constant(1.4426950408889634));
  double value = f16Read(scaled);
  if (std::isnan(value))
    return {0, kF16NaN};
  if (shape == ExpShape::Linear) {
    double k = std::floor(value);
    uint16_t v = f16Sub(scaled, f16Round(k));
    return {static_cast<int>(k), f16Add(v, f16Constant(0.957))};
  }
  double k = std::nearbyint(value);
  uint16_t multiple = f16Mul(f16Round(k), f16Constant(0.69314718055994531));
  uint16_t r = f16Sub(x, multiple);
  uint16_t inner = f16Add(f16Constant(1.015082), f16Mul(f16Constant(0.503765), r));
  return {static_cast<int>(k), f16Add(f16Constant(1), f16Mul(inner, r))};
}

uint16_t approxReciprocal(uint16_t x) {
  uint16_t seed = static_cast<uint16_t>(0x77A8 - x);
  uint16_t residual = f16Sub(f16Constant(1), f16Mul(x, seed));
  return f16Add(seed, f16Mul(residual, seed));
}

uint16_t approxRsqrt(uint16_t x) {
  uint16_t seed = static_cast<uint16_t>(0x59BE - (x >> 1));
  uint16_t half = f16Mul(f16Mul(f16Constant(0.5), x), seed);
  uint16_t step = f16Sub(f16Constant(1.5), f16Mul(half, seed));
  return f16Mul(step, seed);
}

float approxRsqrtF32(float x) {
  float seed = std::bit_cast<float>(0x5F3759DFu - (std::bit_cast<uint32_t>(x) >> 1));
  float half = f32Mul(f32Mul(0.5f, x), seed);
  return f32Mul(f32Sub(1.5f, f32Mul(half, seed)), seed);
}

uint16_t approxGelu(uint16_t x) {
  uint16_t scaled = f16Mul(x, f16Constant(kSqrtHalf));
  bool negative = f16Read(scaled) < 0;
  uint16_t clip = f16Constant(1.769);
  uint16_t magnitude = f16Min(scaled & 0x7fff, clip);
  uint16_t r = f16Sub(magnitude, clip);
  uint16_t square = f16Mul(r, r);
  uint16_t gate =
      negative ? f16Mul(f16Constant(0.1444), square) : f16Add(f16Mul(f16Constant(-0.1444), square), f16Constant(1));
  return f16Mul(x, gate);
}

} // namespace dmx::corsair
