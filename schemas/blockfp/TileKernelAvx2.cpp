//===- TileKernelAvx2.cpp - the tile product with AVX2 -----===//

#include "TileKernel.h"

#if defined(__x86_64__)
#include <bit>
#include <cstring>
#include <immintrin.h>

// Only what follows is compiled for AVX2: functions of the headers above
// stay callable on every CPU.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

namespace dmx::blockfp {
namespace {

struct Pairs {
  using Vector = __m256i;
  static constexpr int kLanes = 8, kVectors = 4, kRows = 2;
  static Vector zero() { return _mm256_setzero_si256(); }
  static Vector load(const int16_t *pairs) { return _mm256_loadu_si256(reinterpret_cast<const Vector *>(pairs)); }
  static Vector broadcast(int32_t pair) { return _mm256_set1_epi32(pair); }
  static Vector multiplyAdd(Vector sum, Vector a, Vector w) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, w)); }
  static void store(int32_t *out, Vector sum) { _mm256_storeu_si256(reinterpret_cast<Vector *>(out), sum); }
};

#include "TileKernelBody.inc"
} // namespace

void tileKernelAvx2(const TileOperands &operands) { multiplyTile<Pairs::kRows>(operands); }

} // namespace dmx::blockfp

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif // __x86_64__
