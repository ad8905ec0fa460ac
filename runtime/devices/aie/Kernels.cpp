//===- Kernels.cpp - bodies of the cores' library -------------------------===//
//
// Plain loops with the numerics of schemas/aie/NUMERICS.md: products of bf16 are exact in f32, sums go up in k.
//
//===----------------------------------------------------------------------===//
#include "Array.h"

#include <bit>
#include <cstring>

namespace dmxrt::aie {
namespace {

using hw::kStepK;
using hw::kStepM;
using hw::kStepN;

float fromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

/// One matrix step: c += a * b of packed tiles.
void matrixStep(const uint16_t *a, const uint16_t *b, float *c) {
  for (int64_t i = 0; i < kStepM; ++i)
    for (int64_t k = 0; k < kStepK; ++k) {
      float left = fromBf16(a[i * kStepK + k]);
      for (int64_t j = 0; j < kStepN; ++j)
        c[i * kStepN + j] += left * fromBf16(b[k * kStepN + j]);
    }
}

void matmul(const hw::Call &call, const uint16_t *a, const uint16_t *b, float *c) {
  int64_t rows = call.scalars[0] / kStepM, depth = call.scalars[1] / kStepK, columns = call.scalars[2] / kStepN;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t k = 0; k < depth; ++k)
        matrixStep(a + (i * depth + k) * kStepM * kStepK, b + (k * columns + j) * kStepK * kStepN,
                   c + (i * columns + j) * kStepM * kStepN);
}

} // namespace

void compute(const hw::Call &call, std::byte *const *touched) {
  switch (call.kernel) {
  case hw::KernelId::ZeroF32:
    std::memset(touched[0], 0, static_cast<size_t>(4 * call.scalars[0]));
    return;
  case hw::KernelId::MatmulBf16F32:
    return matmul(call, reinterpret_cast<const uint16_t *>(touched[0]), reinterpret_cast<const uint16_t *>(touched[1]),
                  reinterpret_cast<float *>(touched[2]));
  case hw::KernelId::Count:
    return;
  }
}

} // namespace dmxrt::aie
