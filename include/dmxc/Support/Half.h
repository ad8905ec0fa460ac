//===- Half.h - narrow float conversions ------------------------*- C++ -*-===//
//
// Bit-exact conversions between f32/f64 and the narrow float formats, rounding
// to nearest even, subnormals kept, NaN stays NaN.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/DType.h"

#include <cstdint>

namespace dmxc {

float halfToFloat(uint16_t bits);
/// Rounds once from double, so f64 -> f16 has no double rounding.
uint16_t doubleToHalf(double value);
float bfloatToFloat(uint16_t bits);
uint16_t doubleToBfloat(double value);

/// Value of an f8/f4 bit pattern.
float narrowToFloat(DType type, uint8_t bits);
/// Rounds to an f8/f4 pattern. With `saturate`, out-of-range finite and infinite values
/// become the largest finite one; without, they become inf or NaN as the format has them
/// (ONNX Cast, `saturate` attribute). To F8E8M0 it rounds away from zero and drops the sign; what is less than its
/// least number becomes that, respectively NaN.
uint8_t doubleToNarrow(DType type, double value, bool saturate);

} // namespace dmxc
