/* kernels-1.0.c - the kernel inside format-1.0.bundle (see make_golden.sh). */
#include "dmx/dmx_kernel.h"

/* f32 out[row, i] = 2 * x[row, i] + w[i]; a work item is a row, dims[0] is the width. */
static int32_t affine(const dmx_kernel_args *a) {
  const float *x = a->buffers[0], *w = a->buffers[1];
  float *out = a->buffers[2];
  int64_t width = a->dims[0];
  for (int64_t row = a->begin; row < a->end; ++row)
    for (int64_t i = 0; i < width; ++i)
      out[row * width + i] = 2.0f * x[row * width + i] + w[i];
  return DMX_KERNEL_OK;
}

static const dmx_kernel_entry kernels[] = {{"k0_affine", affine}};
static const dmx_kernel_table table = {DMX_KERNEL_ABI_VERSION, 1, "x86-64-v2", kernels};

__attribute__((visibility("default"))) const dmx_kernel_table *dmx_query_kernels(uint32_t abi) {
  return abi == DMX_KERNEL_ABI_VERSION ? &table : 0;
}
