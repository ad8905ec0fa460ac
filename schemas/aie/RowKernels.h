//===- RowKernels.h - kernels of rows of f32 --------------------*- C++ -*-===//
//
// What of the cores' library works on rows as they lie, of a pitch of whole vectors: operands joined number by number
// or row by row, softmax, normalisation. NUMERICS.md says what is computed; clocks are counted from that, slot by slot.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Kernels.h"

namespace dmx::aie {

/// f32 that an access has: what rows are filled up to.
inline constexpr int64_t kRowUnit = 8;
/// f32 of one vector: partial sums of a row, which are then joined by halves.
inline constexpr int64_t kRowLanes = 16;
/// Words of a core's parameters: how many numbers of a row count, and the bits of what a normalisation adds.
inline constexpr int64_t kColumnsWord = 0, kEpsilonWord = 1;

/// The terms of exp(x) = 2^n (1 + r + r^2 / 2 + .. + r^7 / 7!): n = x / ln 2 to the nearest, r = x - n kLn2High - n
/// kLn2Low. Below kLeastExponent it is 0.
inline constexpr float kLog2E = 1.44269504F, kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F, kLeastExponent = -87;
inline constexpr int64_t kExpTerms = 7;

/// Whether a call has the sizes of a matrix, not a count of numbers.
inline bool takesMatrix(KernelId kernel) { return kernel >= KernelId::AddRowF32 && kernel <= KernelId::RmsNormF32; }

/// As touches() and clocksOf() ask, of these kernels; clocks without those of the call.
std::vector<Touch> touchesOfRows(const Call &call, std::string &error);
int64_t clocksOfRows(const Machine &machine, const Call &call);

} // namespace dmx::aie
