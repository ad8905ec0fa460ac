//===- Convert.h - element conversions --------------------------*- C++ -*-===//
#pragma once

#include <cstdint>

namespace dmxc::reference {

/// f32 to f16 and bf16 bits, to nearest even: what doubleToHalf does, without its cost.
uint16_t floatToHalf(float value);
uint16_t floatToBfloat(float value);
/// f16 to f32 through a table of all 65536 values.
const float *halfTable();

/// A 64-bit integer as a double whose rounding error cannot change a later rounding to a narrower float (the bits that
/// are lost leave a sticky bit: round to odd).
double toDoubleSticky(int64_t value);
double toDoubleSticky(uint64_t value);

} // namespace dmxc::reference
