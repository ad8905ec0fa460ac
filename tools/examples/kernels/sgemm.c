#include <immintrin.h>
#include <stdint.h>
/* c[6][16] = a[k][6] * b[k][16], or c + that. */
void sgemm(const float *a, const float *b, float *c, int64_t k, int64_t ldb, int64_t panel, int64_t ldc, int32_t adds) {
  __m256 sum[6][2] = {0};
  for (int64_t i = 0; i < k; ++i, a += 6, b += ldb)
    for (int r = 0; r < 6; ++r)
      for (int v = 0; v < 2; ++v)
        sum[r][v] = _mm256_fmadd_ps(_mm256_broadcast_ss(a + r), _mm256_loadu_ps(b + 8 * v), sum[r][v]);
  for (int r = 0; r < 6; ++r, c += ldc)
    for (int v = 0; v < 2; ++v)
      _mm256_storeu_ps(c + 8 * v, adds ? _mm256_add_ps(sum[r][v], _mm256_loadu_ps(c + 8 * v)) : sum[r][v]);
}
