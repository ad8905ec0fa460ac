//===- ScalarNumbers.h - scalar numbers beside the blocks -------*- C++ -*-===//
//
// Section 6: f16 and f32 arithmetic with flush-to-zero and the 8-bit float
// casts; section 7: the stochastic stream.
//
// Common to all of it:
//  - Rounding is to nearest, ties to even, once, from the exact result.
//  - A result below the smallest normal number is flushed, and tininess is
//    judged before rounding.
//  - There is one zero: what is zero or flushed is +0 (the specification is
//    written in rational numbers). -0 is accepted as an operand.
//  - There is one NaN: 0x7e00 in f16, 0x7fc00000 in f32.
//
// The host's floating-point unit must round to nearest, its initial state.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "BlockFormat.h"

#include <cmath>
#include <cstdint>

namespace dmx::blockfp {

/// What becomes of a result beyond the largest finite number, and of an
/// infinite operand that is merely converted.
enum class Overflow : uint8_t {
  Saturate, ///< the largest finite number
  Infinity  ///< IEEE
};

// --- f16: IEEE binary16, as bits ---------------------------------------------

constexpr uint16_t kF16NaN = 0x7e00, kF16Infinity = 0x7c00, kF16Max = 0x7bff;

/// `value` rounded to f16. Exact for every double; a double that is itself
/// rounded must carry the rounding of `sumToOdd` to stay correct.
uint16_t f16Round(double value, Overflow overflow = Overflow::Saturate);
/// Whether a finite number lies so far beyond 65504 that it is rounded to more.
inline bool saturatesF16(double value) { return std::isfinite(value) && std::fabs(value) >= 65520; }
/// An operand as arithmetic reads it: subnormal numbers are zero.
double f16Read(uint16_t bits);
/// The exact value, subnormal numbers kept: for casts into block formats.
float f16Widen(uint16_t bits);
/// The exact value of bfloat16 bits.
float bf16Widen(uint16_t bits);

uint16_t f16Add(uint16_t a, uint16_t b, Overflow overflow = Overflow::Saturate);
uint16_t f16Sub(uint16_t a, uint16_t b, Overflow overflow = Overflow::Saturate);
uint16_t f16Mul(uint16_t a, uint16_t b, Overflow overflow = Overflow::Saturate);
/// x/0 is an overflow with the sign of x; 0/0 is NaN.
uint16_t f16Div(uint16_t a, uint16_t b, Overflow overflow = Overflow::Saturate);
/// a * b + c, rounded once.
uint16_t f16Fma(uint16_t a, uint16_t b, uint16_t c, Overflow overflow = Overflow::Saturate);
/// A NaN operand gives NaN.
uint16_t f16Max(uint16_t a, uint16_t b);
uint16_t f16Min(uint16_t a, uint16_t b);

// --- f32 inside reductions and kernels ---------------------------------------

/// `value` rounded to f32, flushed, overflowing to infinity.
float f32Round(double value);
float f32Add(float a, float b);
float f32Sub(float a, float b);
float f32Mul(float a, float b);
float f32Div(float a, float b);
/// a * b + c, rounded once; only where an operation says fma.
float f32Fma(float a, float b, float c);

/// a + b rounded to odd: its rounding to any format at least two bits narrower
/// than f64 is the rounding of the exact sum.
double sumToOdd(double a, double b);

// --- 8-bit and general narrow floats -----------------------------------------

/// `value` rounded to a format whose codes are all finite; saturates. Formats
/// without a sign take the magnitude. With `compatRange` the largest exponent
/// is 2^(e-1) whatever the bias, as in the public emulator. NaN stays NaN.
double roundToFormat(double value, const FloatFormat &format, bool compatRange = false);

enum class F8Kind : uint8_t { E4M3, E5M2 };
enum class F8Mode : uint8_t {
  Compat,      ///< no Inf or NaN codes: up to 480 and 114688; NaN becomes the
               ///< largest number
  OcpSaturate, ///< OCP codes; what overflows becomes the largest number
  OcpOverflow  ///< OCP codes; what overflows becomes NaN (E4M3) or Inf (E5M2)
};

/// Compat has one zero like the other numbers here; the OCP modes keep its
/// sign, as OCP's conversions do. `flushSubnormals` is the letter F of FP[..].
uint8_t f8Round(double value, F8Kind kind, F8Mode mode, bool flushSubnormals = false);
float f8Widen(uint8_t bits, F8Kind kind, F8Mode mode);

// --- stochastic rounding -----------------------------------------------------

/// Section 7: 16-bit numbers that depend on nothing but a seed, a tensor and
/// the place of an element, so that tiling and threads do not matter.
struct StochasticStream {
  uint64_t seed = 0;
  uint64_t tensorId = 0; ///< below 2^24

  /// u of the element with this row-major index, below 2^40.
  uint16_t at(uint64_t linearIndex) const;
};

} // namespace dmx::blockfp
