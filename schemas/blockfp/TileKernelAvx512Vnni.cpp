//===- TileKernelAvx512Vnni.cpp - the tile product with AVX-512 VNNI -----===//

#include "TileKernel.h"

#if defined(__x86_64__)
#include <bit>
#include <cstring>
#include <immintrin.h>

// Only what follows is compiled for AVX-512 VNNI: functions of the headers above
// stay callable on every CPU.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"))),                 \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")
#endif

namespace dmx::blockfp {
namespace {

struct Pairs {
  using Vector = __m512i;
  static constexpr int kLanes = 16, kVectors = 4, kRows = 4;
  static Vector zero() { return _mm512_setzero_si512(); }
  static Vector load(const int16_t *pairs) { return _mm512_loadu_si512(pairs); }
  static Vector broadcast(int32_t pair) { return _mm512_set1_epi32(pair); }
  static Vector multiplyAdd(Vector sum, Vector a, Vector w) { return _mm512_dpwssd_epi32(sum, a, w); }
  static void store(int32_t *out, Vector sum) { _mm512_storeu_si512(out, sum); }
};

#include "TileKernelBody.inc"
} // namespace

void tileKernelAvx512Vnni(const TileOperands &operands) { multiplyTile<Pairs::kRows>(operands); }

} // namespace dmx::blockfp

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif // __x86_64__
