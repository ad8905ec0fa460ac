#include <stdint.h>
/* Of a row a call has [begin, end); the results are what the calls before made of them. */
int32_t argmax_core(void **buffers, const int64_t *dims, int64_t begin, int64_t end, void *scratch) {
  const float *x = buffers[0];
  int64_t *y = buffers[1];
  float *most = buffers[2];
  for (int64_t i = begin; i < end; ++i)
    if (i == 0 || x[i - begin] > *most) {
      *most = x[i - begin];
      *y = i;
    }
  return 0;
}
