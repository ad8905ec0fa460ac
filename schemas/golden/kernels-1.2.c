/* kernels-1.2.c - the kernels inside format-1.2.bundle (see make_golden.sh): those of 1.1, two of them in a common
 * object, which -DCOMMON asks for. */
#ifdef COMMON
#define GOLDEN_KERNELS                                                                                                 \
  {"k2_twice", twice}, { "k3_yes", yes }
#else
#define GOLDEN_KERNELS                                                                                                 \
  {"k0_affine", affine}, { "k1_negate", negate }
#endif
#include "kernels-1.1.c"
