//===- Saturation.cpp - results that f16 could not hold -------------------===//
//
// A result is saturated where it is at the end of f16's range, but no operand was (an infinity, the fill of a mask),
// nor is the exact result infinite. Looked for behind the computation: where nothing is at the end, which is nearly
// always, only the result is read.
//
//===----------------------------------------------------------------------===//

#include "Simd.h"

#include <algorithm>
#include <cmath>

namespace dmxrt::corsair {
namespace {

using F = SimdFunction;

bool isZero(const SimdOperand &operand, const int64_t (&i)[4]) { return readFloat(operand.at(i), operand.kind) == 0; }

/// Whether an element is as large as its kind can say.
bool isAtEnd(const SimdOperand &operand, const int64_t (&i)[4]) {
  if (!isFloatKind(operand.kind))
    return false;
  float size = std::fabs(readFloat(operand.at(i), operand.kind));
  return operand.kind == ElemKind::F16 ? size >= kF16Largest : size >= 3e38f; // the fill of a mask in f32, or infinite
}

/// Whether the exact result is infinite.
bool isPole(const SimdJob &job, const int64_t (&i)[4]) {
  switch (job.function) {
  case F::Log:
  case F::Reciprocal:
  case F::Rsqrt:
  case F::Pow:
    return isZero(job.a, i);
  case F::Div:
    return isZero(job.b, i);
  default:
    return false;
  }
}

/// Visits the elements of a space: visit(index).
template <typename Visit> void eachOf(const int64_t (&n)[4], Visit visit) {
  int64_t i[4];
  for (i[0] = 0; i[0] < n[0]; ++i[0])
    for (i[1] = 0; i[1] < n[1]; ++i[1])
      for (i[2] = 0; i[2] < n[2]; ++i[2])
        for (i[3] = 0; i[3] < n[3]; ++i[3])
          visit(i);
}

/// Whether an operand of the element at `i`, or of its row, is at the end.
bool hasOperandAtEnd(const SimdJob &job, const int64_t (&i)[4]) {
  const int operands = isa::operandCount(job.function);
  if (isRowFunction(job.function)) {
    const int64_t first = 4 - job.inner;
    int64_t n[4];
    for (int64_t dim = 0; dim < 4; ++dim)
      n[dim] = dim < first ? 1 : job.n[dim];
    bool found = false;
    eachOf(n, [&](int64_t (&row)[4]) {
      int64_t at[4];
      for (int64_t dim = 0; dim < 4; ++dim)
        at[dim] = dim < first ? i[dim] : row[dim];
      found = found || isAtEnd(job.a, at);
    });
    return found;
  }
  return isAtEnd(job.a, i) || (operands > 1 && job.hasB && isAtEnd(job.b, i)) ||
         (operands > 2 && job.hasC && isAtEnd(job.c, i));
}

} // namespace

SaturationCount::SaturationCount(const SimdJob &job) : job(job) {
  const F f = job.function;
  isCounted = job.d.kind == ElemKind::F16 && f != F::Fill && f != F::Iota && f != F::CausalMask;
  std::copy(std::begin(job.n), std::end(job.n), n);
  for (int64_t dim = 4 - job.inner; isReduction(f) && dim < 4; ++dim)
    n[dim] = 1;
  const int operands = isa::operandCount(f);
  const bool overwrites = (operands > 0 && job.a.data == job.d.data) || (operands > 1 && job.b.data == job.d.data) ||
                          (operands > 2 && job.c.data == job.d.data);
  if (!isCounted || !overwrites || isWindowFunction(f))
    return;
  eachOf(n, [&](const int64_t (&i)[4]) { excused.push_back(hasOperandAtEnd(job, i) || isPole(job, i)); });
}

uint64_t SaturationCount::count() const {
  if (!isCounted)
    return 0;
  uint64_t found = 0;
  size_t number = 0;
  const bool isWindow = isWindowFunction(job.function);
  eachOf(n, [&](const int64_t (&i)[4]) {
    const size_t at = number++;
    if (std::fabs(readFloat(job.d.at(i), job.d.kind)) < kF16Largest)
      return;
    if (isWindow)
      found += !windowHasEnd(job, i);
    else
      found += excused.empty() ? !hasOperandAtEnd(job, i) && !isPole(job, i) : !excused[at];
  });
  return found;
}

} // namespace dmxrt::corsair
