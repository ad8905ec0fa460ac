/* kernels.c - the kernel object of the runtime's tests, built like the
 * compiler's: freestanding, one exported function, no undefined symbol. */
#include "dmx/dmx_kernel.h"

static int32_t fill(const dmx_kernel_args *a) { /* i32 out[i] = i */
  int32_t *out = a->buffers[0];
  for (int64_t i = a->begin; i < a->end; ++i)
    out[i] = (int32_t)i;
  return DMX_KERNEL_OK;
}

static int32_t add(const dmx_kernel_args *a) { /* f32 */
  const float *x = a->buffers[0], *y = a->buffers[1];
  float *out = a->buffers[2];
  for (int64_t i = a->begin; i < a->end; ++i)
    out[i] = x[i] + y[i];
  return DMX_KERNEL_OK;
}

static int32_t scale(const dmx_kernel_args *a) { /* f32, by dims[0] */
  const float *x = a->buffers[0];
  float *out = a->buffers[1];
  for (int64_t i = a->begin; i < a->end; ++i)
    out[i] = x[i] * (float)a->dims[0];
  return DMX_KERNEL_OK;
}

static int32_t gather(const dmx_kernel_args *a) { /* f32 data[dims[0]], i64 index */
  const float *data = a->buffers[0];
  const int64_t *index = a->buffers[1];
  float *out = a->buffers[2];
  for (int64_t i = a->begin; i < a->end; ++i) {
    if (index[i] < 0 || index[i] >= a->dims[0])
      return DMX_KERNEL_INDEX_OUT_OF_RANGE;
    out[i] = data[index[i]];
  }
  return DMX_KERNEL_OK;
}

static int32_t accumulate(const dmx_kernel_args *a) { /* f32 state += x; out = state */
  const float *x = a->buffers[0];
  float *state = a->buffers[1], *out = a->buffers[2];
  for (int64_t i = a->begin; i < a->end; ++i)
    out[i] = state[i] += x[i];
  return DMX_KERNEL_OK;
}

static int32_t reverse_by_scratch(const dmx_kernel_args *a) { /* i32 blocks of dims[0], one an item */
  const int32_t *x = a->buffers[0];
  int32_t *out = a->buffers[1], *room = a->scratch;
  int64_t n = a->dims[0];
  if (!room || (uintptr_t)room % 64)
    return DMX_KERNEL_INVALID_ARGUMENT;
  for (int64_t block = a->begin; block < a->end; ++block) {
    for (int64_t i = 0; i < n; ++i)
      room[i] = x[block * n + i];
    for (int64_t i = 0; i < n; ++i)
      out[block * n + i] = room[n - 1 - i];
  }
  return DMX_KERNEL_OK;
}

/* Two tasks that each need the other to be running: i32 flags[2] in, own index
 * in dims[0]. Gives up after a long while, so that a serial executor ends. */
static int32_t rendezvous(const dmx_kernel_args *a) {
  int32_t *flags = a->buffers[0], *met = a->buffers[1];
  __atomic_store_n(&flags[a->dims[0]], 1, __ATOMIC_SEQ_CST);
  *met = 0;
  for (int64_t i = 0; i < 50000000; ++i) {
    if (__atomic_load_n(&flags[1 - a->dims[0]], __ATOMIC_SEQ_CST)) {
      *met = 1;
      break;
    }
    __builtin_ia32_pause();
  }
  return DMX_KERNEL_OK;
}

static int32_t control_word(const dmx_kernel_args *a) { /* i32: MXCSR */
  *(uint32_t *)a->buffers[0] = __builtin_ia32_stmxcsr();
  return DMX_KERNEL_OK;
}

static int32_t range(const dmx_kernel_args *a) { /* i64 out[i] = begin of the slice that did i */
  int64_t *out = a->buffers[0];
  for (int64_t i = a->begin; i < a->end; ++i)
    out[i] = a->begin;
  return DMX_KERNEL_OK;
}

static int32_t spin(const dmx_kernel_args *a) { /* i32 out = in, after dims[0] rounds */
  for (volatile int64_t i = 0; i < a->dims[0]; ++i)
    ;
  *(int32_t *)a->buffers[1] = *(const int32_t *)a->buffers[0];
  return DMX_KERNEL_OK;
}

static int32_t chain(const dmx_kernel_args *a) { /* i64 out[i] = 3 * in[(i + dims[0]) % dims[1]] + 1 */
  const int64_t *x = a->buffers[0];
  int64_t *out = a->buffers[1];
  for (int64_t i = a->begin; i < a->end; ++i)
    out[i] = 3 * x[(i + a->dims[0]) % a->dims[1]] + 1;
  return DMX_KERNEL_OK;
}

static int32_t nonzero(const dmx_kernel_args *a) { /* f32[dims[0]] -> i64 positions, how many */
  const float *x = a->buffers[0];
  int64_t *out = a->buffers[1], count = 0;
  for (int64_t i = 0; i < a->dims[0]; ++i)
    if (x[i] != 0)
      out[count++] = i;
  a->results[0] = count;
  return DMX_KERNEL_OK;
}

static int32_t return_dims(const dmx_kernel_args *a) { /* all but dims[0], which is how many */
  for (int64_t i = 0; i < a->dims[0]; ++i)
    a->results[i] = a->dims[1 + i];
  return DMX_KERNEL_OK;
}

static int32_t add_i64(const dmx_kernel_args *a) { /* out[i] = x[i] + y[i * dims[0]] */
  const int64_t *x = a->buffers[0], *y = a->buffers[1];
  int64_t *out = a->buffers[2];
  for (int64_t i = a->begin; i < a->end; ++i)
    out[i] = x[i] + y[i * a->dims[0]];
  return DMX_KERNEL_OK;
}

static int32_t append(const dmx_kernel_args *a) { /* i64 out = x[dims[0]], then *y */
  const int64_t *x = a->buffers[0];
  int64_t *out = a->buffers[2];
  for (int64_t i = 0; i < a->dims[0]; ++i)
    out[i] = x[i];
  out[a->dims[0]] = *(const int64_t *)a->buffers[1];
  return DMX_KERNEL_OK;
}

static int32_t put_rows(const dmx_kernel_args *a) { /* f32 out[.., p .. p + n, 2] = x[.., n, 2], of items with room */
  const float *x = a->buffers[1];
  float *out = a->buffers[2];
  int64_t p = a->dims[0], n = a->dims[1], room = a->dims[2];
  for (int64_t item = a->begin; item < a->end; ++item)
    for (int64_t i = 0; i < 2 * n; ++i)
      out[(item * room + p) * 2 + i] = x[item * n * 2 + i];
  return DMX_KERNEL_OK;
}

static int32_t below(const dmx_kernel_args *a) { /* bool out = *x < *y */
  *(uint8_t *)a->buffers[2] = *(const int64_t *)a->buffers[0] < *(const int64_t *)a->buffers[1];
  return DMX_KERNEL_OK;
}

static int32_t is_true(const dmx_kernel_args *a) { /* bool out = 1 */
  *(uint8_t *)a->buffers[0] = 1;
  return DMX_KERNEL_OK;
}

static int32_t fail_at(const dmx_kernel_args *a) { /* i64 out = *x, but not dims[0] */
  int64_t x = *(const int64_t *)a->buffers[0];
  *(int64_t *)a->buffers[1] = x;
  return x == a->dims[0] ? DMX_KERNEL_INDEX_OUT_OF_RANGE : DMX_KERNEL_OK;
}

/* add with a mistake: one element more than it was asked for */
static int32_t add_one_more(const dmx_kernel_args *a) {
  const float *x = a->buffers[0], *y = a->buffers[1];
  float *out = a->buffers[2];
  for (int64_t i = a->begin; i <= a->end; ++i)
    out[i] = x[i] + y[i];
  return DMX_KERNEL_OK;
}

/* add, and an access to byte dims[1] of operand dims[0] (-1: scratch, -2: dims, -3: the list of operands), which is
 * written when dims[2] is 1 */
static int32_t add_astray(const dmx_kernel_args *a) {
  char *bases[] = {(char *)a->buffers, (char *)a->dims, a->scratch};
  volatile char *at = (a->dims[0] < 0 ? bases[3 + a->dims[0]] : (char *)a->buffers[a->dims[0]]) + a->dims[1];
  for (int64_t i = a->begin; i < a->end; ++i)
    ((float *)a->buffers[2])[i] = ((const float *)a->buffers[0])[i] + ((const float *)a->buffers[1])[i];
  if (a->dims[2])
    *at = 0x5A;
  else
    (void)*at;
  return DMX_KERNEL_OK;
}

/* f32 out[0] = x[0], by an instruction that takes aligned addresses only */
static int32_t aligned_copy(const dmx_kernel_args *a) {
  typedef float vector __attribute__((vector_size(16)));
  vector value = *(const vector *)a->buffers[0];
  __asm__ volatile("movaps %1, %0" : "=m"(*(vector *)a->buffers[1]) : "x"(value));
  return DMX_KERNEL_OK;
}

/* f32 out[0] = whether scratch and out are NaNs before they are written; out[1] = x[0] */
static int32_t find_nans(const dmx_kernel_args *a) {
  const float *room = a->scratch;
  float *out = a->buffers[1];
  int nans = room[0] != room[0] && room[15] != room[15] && out[0] != out[0] && out[1] != out[1];
  out[0] = nans;
  out[1] = ((const float *)a->buffers[0])[0];
  return DMX_KERNEL_OK;
}

static int32_t twice_by_scratch(const dmx_kernel_args *a) { /* f32 out = 2 x over dims[0] elements, see its contract */
  const float *x = a->buffers[0];
  float *out = a->buffers[1], *room = a->scratch;
  for (int64_t i = a->begin; i < a->end; ++i)
    room[i] = 2 * x[i];
  for (int64_t i = a->begin; i < a->end; ++i)
    out[i] = room[i];
  return DMX_KERNEL_OK;
}

#ifndef DMX_TEST_ABI
#define DMX_TEST_ABI DMX_KERNEL_ABI_VERSION
#endif
#ifndef DMX_TEST_WORDS
#define DMX_TEST_WORDS 22
#endif
#ifndef DMX_TEST_DIM
#define DMX_TEST_DIM DMX_WORD_DIM, 0
#endif

#if DMX_TEST_ABI < 3
#define CONTRACT(words)
typedef dmx_kernel_entry_v2 entry;
#else
#define CONTRACT(words) , words
typedef dmx_kernel_entry entry;
/* f32 [n] to f32 [n]: n work items, 4 n bytes of scratch. */
static const int64_t twice_contract[] = {DMX_TEST_WORDS,
                                         2,
                                         1,
                                         1,
                                         0,
                                         DMX_TEST_DIM,
                                         DMX_WORD_MUL,
                                         DMX_WORD_DIM,
                                         0,
                                         DMX_WORD_NUMBER,
                                         4,
                                         DMX_WORD_MUL,
                                         DMX_WORD_DIM,
                                         0,
                                         DMX_WORD_NUMBER,
                                         4,
                                         DMX_WORD_MUL,
                                         DMX_WORD_DIM,
                                         0,
                                         DMX_WORD_NUMBER,
                                         4};
#endif

#define KERNEL(name) {#name, name CONTRACT(0)}
static const entry kernels[] = {
#ifndef DMX_TEST_PROMISED /* each kernel has a contract */
    KERNEL(fill),
    KERNEL(add),
    KERNEL(scale),
    KERNEL(gather),
    KERNEL(accumulate),
    KERNEL(reverse_by_scratch),
    KERNEL(rendezvous),
    KERNEL(control_word),
    KERNEL(range),
    KERNEL(spin),
    KERNEL(chain),
    KERNEL(nonzero),
    KERNEL(return_dims),
    KERNEL(add_i64),
    KERNEL(append),
    KERNEL(put_rows),
    KERNEL(below),
    KERNEL(is_true),
    KERNEL(fail_at),
    KERNEL(add_one_more),
    KERNEL(add_astray),
    KERNEL(aligned_copy),
    KERNEL(find_nans),
#endif
    {"twice_by_scratch", twice_by_scratch CONTRACT(twice_contract)},
};

#ifdef DMX_TEST_EXPORT
#define TABLE __attribute__((visibility("default"))) const dmx_kernel_table dmx_kernel_table_v3
#define table dmx_kernel_table_v3
#else
#define TABLE static const dmx_kernel_table table
#endif
TABLE = {DMX_TEST_ABI, sizeof kernels / sizeof *kernels, "x86-64", (const dmx_kernel_entry *)kernels};

__attribute__((visibility("default"))) const dmx_kernel_table *dmx_query_kernels(uint32_t abi) {
  return abi == DMX_TEST_ABI ? &table : 0;
}
