#include <stdint.h>
/* y[i] is where the first of the largest of x[i, 0..n) lies. */
int32_t argmax(void **buffers, const int64_t *dims, int64_t begin, int64_t end, void *scratch) {
  for (int64_t i = begin, n = dims[0]; i < end; ++i) {
    const _Float16 *x = (const _Float16 *)buffers[0] + i * n;
    int64_t best = 0;
    for (int64_t j = 1; j < n; ++j)
      best = x[j] > x[best] ? j : best;
    ((int64_t *)buffers[1])[i] = best;
  }
  return 0;
}
