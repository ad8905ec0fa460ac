/* badkernels.c - kernel objects that the loader must refuse, one a macro. */
#include "dmx/dmx_kernel.h"

static int32_t nothing(const dmx_kernel_args *a) {
  (void)a;
  return DMX_KERNEL_OK;
}

#ifdef DMX_TEST_UNDEFINED
extern int32_t somebody_elses(const dmx_kernel_args *a);
#define FIRST somebody_elses
#else
#define FIRST nothing
#endif

#ifdef DMX_TEST_CONSTRUCTOR
volatile int started;
__attribute__((constructor)) static void start(void) { started = 1; }
#endif

#ifdef DMX_TEST_TLS
__attribute__((visibility("default"))) __thread int counter;
#endif

static const dmx_kernel_entry kernels[] = {
#if defined(DMX_TEST_BADNAME)
    {(const char *)16, FIRST, 0},
#elif defined(DMX_TEST_BADFN)
    {"nothing", (dmx_kernel_fn)(void *)"not code", 0},
#elif defined(DMX_TEST_TWICE)
    {"nothing", FIRST, 0},
    {"nothing", FIRST, 0},
#else
    {"nothing", FIRST, 0},
#endif
};

static const dmx_kernel_table table = {DMX_KERNEL_ABI_VERSION,
#ifdef DMX_TEST_BADCOUNT
                                       100000,
#else
                                       sizeof kernels / sizeof *kernels,
#endif
                                       "x86-64", kernels};

#ifdef DMX_TEST_NOQUERY
#define QUERY other_name
#else
#define QUERY dmx_query_kernels
#endif
__attribute__((visibility("default"))) const dmx_kernel_table *QUERY(uint32_t abi) {
  return abi == DMX_KERNEL_ABI_VERSION ? &table : 0;
}
