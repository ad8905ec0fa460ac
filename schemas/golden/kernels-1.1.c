/* kernels-1.1.c - the kernels inside format-1.1.bundle (see make_golden.sh). */
#include "dmx/dmx_kernel.h"

/* f32 row = 2 * x[row] + s[row] * w, where x or s may have one row for all; rows that start with a positive number are
 * kept, one behind the other, and counted. dims: rows of x, of s and of both, the width. */
static int32_t affine(const dmx_kernel_args *a) {
  const float *x = a->buffers[0], *s = a->buffers[1], *w = a->buffers[2];
  float *out = a->buffers[3];
  int64_t kept = 0, width = a->dims[3];
  for (int64_t row = 0; row < a->dims[2]; ++row) {
    const float *from = x + (a->dims[0] == 1 ? 0 : row * width);
    float factor = s[a->dims[1] == 1 ? 0 : row];
    for (int64_t i = 0; i < width; ++i)
      out[kept * width + i] = 2.0f * from[i] + factor * w[i];
    kept += out[kept * width] > 0;
  }
  a->results[0] = kept;
  return DMX_KERNEL_OK;
}

/* f32 out = factor * x; a work item is a row, dims[0] is the width. */
static void scale(const dmx_kernel_args *a, float factor) {
  const float *x = a->buffers[0];
  float *out = a->buffers[1];
  for (int64_t i = a->begin * a->dims[0]; i < a->end * a->dims[0]; ++i)
    out[i] = factor * x[i];
}

static int32_t negate(const dmx_kernel_args *a) {
  scale(a, -1.0f);
  return DMX_KERNEL_OK;
}

static int32_t twice(const dmx_kernel_args *a) {
  scale(a, 2.0f);
  return DMX_KERNEL_OK;
}

/* bool out = true. */
static int32_t yes(const dmx_kernel_args *a) {
  *(uint8_t *)a->buffers[0] = 1;
  return DMX_KERNEL_OK;
}

#ifndef GOLDEN_KERNELS
#define GOLDEN_KERNELS                                                                                                 \
  {"k0_affine", affine}, {"k1_negate", negate}, {"k2_twice", twice}, { "k3_yes", yes }
#endif
static const dmx_kernel_entry kernels[] = {GOLDEN_KERNELS};
static const dmx_kernel_table table = {DMX_KERNEL_ABI_VERSION, sizeof kernels / sizeof *kernels, "x86-64-v2", kernels};

__attribute__((visibility("default"))) const dmx_kernel_table *dmx_query_kernels(uint32_t abi) {
  return abi == DMX_KERNEL_ABI_VERSION ? &table : 0;
}
