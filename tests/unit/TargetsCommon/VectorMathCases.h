//===- VectorMathCases.h - references and inputs of the math tests -*- C++
//-*-===//
#pragma once

#include "targets/common/math/VectorMath.h"
#include "tests/unit/TargetsCpu/KernelHarness.h"

#include <string_view>
#include <vector>

namespace dmxc::cpu::test {

/// The function computed in long double (64-bit significands), whose error is
/// far below the units in the last place it measures. NaN-valued for unknown
/// names, which the tests refuse.
long double referenceUnary(std::string_view name, long double x);
/// `fmod`, `pow` and `atan2`, the last with y first.
long double referenceBinary(std::string_view name, long double x, long double y);

/// Distance in units in the last place of the exact value in T; infinity counts
/// as the first power of two past the range. Wrong NaNs and wrong signs of zero
/// are infinitely far.
template <typename T> double ulpDistance(T got, long double exact);

/// Values at which functions change branch or have special results, with their
/// neighbours.
template <typename T> std::vector<T> specialValues();
/// `count` values of each of several distributions (bit patterns, magnitudes
/// near 0, 1 and 1e6, near multiples of pi/2, ...); the same ones at every
/// call.
template <typename T> std::vector<T> sampleValues(size_t count);

/// `out[i] = fn(x[i])` or fn(x[i], y[i]) over [begin, end), a multiple of the
/// lane count; buffers x, (y,) out. `lanes` == 0 means a full register.
TestKernel makeMathKernel(const VectorMathFunction &fn, const IsaLevel &isa, unsigned bits, int64_t lanes = 0);

} // namespace dmxc::cpu::test
