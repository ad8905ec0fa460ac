//===- SimdFunctions.h - functions of the SIMD device -----------*- C++ -*-===//
//
// Section 6 of the numerics: the functions of the default kernels and their optional approximations, on the scalar
// numbers of schemas/blockfp/ScalarNumbers.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Numbers.h"

#include <array>
#include <cstdint>

namespace dmx::corsair {

// --- functions of the default kernels ----------------------------------------

enum class Function : uint8_t {
  Exp,
  Log,
  Tanh,
  Erf,
  Gelu,     ///< x * Phi(x), with erf
  GeluTanh, ///< its tanh form
  Sigmoid,
  Silu,
  Sqrt,
  Rsqrt,
  Reciprocal,
  Sin,
  Cos
};
constexpr int kFunctions = static_cast<int>(Function::Cos) + 1;

/// The function in f64, a few units in the last place from the exact value.
double evaluate(Function function, double x);
/// Correctly rounded: no f16 operand brings the exact value so near to a
/// rounding boundary that the error of `evaluate` could matter (a test checks
/// all of them), hence the same bits on every host.
uint16_t f16Function(Function function, uint16_t x, Overflow overflow = Overflow::Saturate);
/// f16Function of every operand, computed on first use.
const std::array<uint16_t, 65536> &f16Table(Function function, Overflow overflow = Overflow::Saturate);
/// The function inside an f32 kernel: `evaluate` rounded to f32. Not proved to
/// be correctly rounded for all operands.
float f32Function(Function function, float x);

// --- optional approximations (`approx=`), each operation rounded to f16 ------

enum class ExpShape : uint8_t {
  Quadratic, ///< 1 + 1.015082 r + 0.503765 r^2, |r| <= ln(2)/2
  Linear     ///< 2^v ~ v + 0.957, 0 <= v < 1
};
/// exp(x) ~ significand * 2^exponent. Softmax takes the largest exponent of the
/// row for its maximum.
struct ExpParts {
  int exponent;
  uint16_t significand; ///< f16
};
ExpParts approxExp(uint16_t x, ExpShape shape);
/// Seed 0x77A8 - bits and one Newton step.
uint16_t approxReciprocal(uint16_t x);
/// Seed 0x59BE - bits/2 and one Newton step.
uint16_t approxRsqrt(uint16_t x);
/// Seed 0x5F3759DF - bits/2 and one Newton step, in f32.
float approxRsqrtF32(float x);
/// x * L(x/sqrt(2)), L a clipped quadratic with -0.1444 and -1.769.
uint16_t approxGelu(uint16_t x);
/// What softmax kernels add to their denominators.
constexpr float kSoftmaxDenominatorBias = 0x1p-24f;

} // namespace dmx::corsair
