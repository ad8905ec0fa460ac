//===- Simd.h - EXEC_SIMD on one slice --------------------------*- C++ -*-===//
#pragma once

#include "Quad.h"
#include "Region.h"

#include "schemas/corsair/simd/SimdJob.h"

namespace dmxrt::corsair {

using isa::isRowFunction, isa::isReduction, isa::isWindowFunction, isa::readFloat;
using isa::kF16Largest, isa::SimdFunction, isa::SimdJob, isa::SimdOperand;

/// Results of a job that f16 could not hold: made before it is computed, asked behind it.
class SaturationCount {
public:
  explicit SaturationCount(const SimdJob &job);
  uint64_t count() const;

private:
  const SimdJob &job;
  int64_t n[4]; ///< of the result
  bool isCounted;
  std::vector<bool> excused; ///< by element, of jobs that write over an operand
};

} // namespace dmxrt::corsair
