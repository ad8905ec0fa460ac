//===- ProductMath.cpp - the sums of wgmma ------------------------------------===//
//
// Products of two 16-bit floats, and of two tf32, have at most 22 bits, so that a product and a sum round once, fused
// or not. The hardware's order of sums within an instruction is not documented; here it is ascending k.
//
//===----------------------------------------------------------------------===//

#include "Product.h"

namespace dmxrt::cuda {
namespace {

using Rows = float __attribute__((vector_size(32), may_alias));

/// Four columns at a time: sums of one wait for each other.
[[gnu::always_inline]] inline void multiply(float *d, const float *a, const float *b, uint32_t columns,
                                            uint32_t depth) {
  const auto *left = reinterpret_cast<const Rows *>(a);
  for (uint32_t column = 0; column < columns; column += 4) {
    auto *to = reinterpret_cast<Rows *>(d + column * 16);
    Rows sums[8];
    for (int i = 0; i < 8; ++i)
      sums[i] = to[i];
    for (uint32_t k = 0; k < depth; ++k)
      for (uint32_t i = 0; i < 4; ++i) {
        float right = b[(column + i) * depth + k];
        sums[2 * i] += left[2 * k] * right;
        sums[2 * i + 1] += left[2 * k + 1] * right;
      }
    for (int i = 0; i < 8; ++i)
      to[i] = sums[i];
  }
}

void multiplyPlain(float *d, const float *a, const float *b, uint32_t columns, uint32_t depth) {
  multiply(d, a, b, columns, depth);
}
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void multiplyAvx2(float *d, const float *a, const float *b, uint32_t columns,
                                                      uint32_t depth) {
  multiply(d, a, b, columns, depth);
}
#endif

} // namespace

void multiplyTile(float *d, const float *a, const float *b, uint32_t columns, uint32_t depth) {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has)
    return multiplyAvx2(d, a, b, columns, depth);
#endif
  multiplyPlain(d, a, b, columns, depth);
}

} // namespace dmxrt::cuda
