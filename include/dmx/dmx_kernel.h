/* dmx_kernel.h - the kernel ABI: the only code-level contract between the
 * compiler (which emits kernels) and the runtime (which calls them).
 *
 * A code entry of a bundle (code/cpu/<level>/kernels.so) is a freestanding ELF
 * shared object: no undefined symbol, no constructor, no thread-local storage,
 * relative relocations only. It exports a versioned table of kernels,
 * DMX_KERNEL_TABLE_SYMBOL, and a function that returns it,
 * DMX_KERNEL_QUERY_SYMBOL.
 *
 * Versioning: DMX_KERNEL_ABI_VERSION changes whenever a field's meaning or
 * offset changes, and when one is added that kernels rely on. The query
 * function returns NULL for a version it was not built for; where there is no
 * exported table, as before version 3, the runtime asks for those down to
 * DMX_KERNEL_OLDEST_ABI_VERSION, then refuses the bundle.
 * Version 2 added `kept`, version 3 contracts and the exported table.
 *
 * Plain C11, no includes beyond <stdint.h>: it is parsed by C consumers and
 * mirrored, field by field, by the code generator.
 */
#ifndef DMX_DMX_KERNEL_H
#define DMX_DMX_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DMX_KERNEL_ABI_VERSION 3u
#define DMX_KERNEL_OLDEST_ABI_VERSION 1u
#define DMX_KERNEL_QUERY_SYMBOL "dmx_query_kernels"
#define DMX_KERNEL_TABLE_SYMBOL "dmx_kernel_table_v3"

/* What a kernel returns. Anything but OK stops the run; the runtime adds the
 * task's node name to the message. */
enum {
  DMX_KERNEL_OK = 0,
  DMX_KERNEL_INDEX_OUT_OF_RANGE = 1, /* a gather/scatter index left its axis */
  DMX_KERNEL_DIVISION_BY_ZERO = 2,   /* integer division by zero */
  DMX_KERNEL_INVALID_ARGUMENT = 3    /* an operand's value breaks the op's rule */
};

/* Arguments of one kernel call. Thread-safe by construction: calls on disjoint
 * [begin, end) ranges of one task may run at the same time; they write disjoint
 * bytes and share only read-only inputs. */
typedef struct dmx_kernel_args {
  /* The task's buffers in graph.json's order: operands, then results. Each
   * pointer is aligned to at least 64 bytes unless the buffer is bound by the
   * caller (inputs/outputs), which are aligned to their element size. */
  void *const *buffers;
  /* Values of the task's "dims" expressions, in order; NULL when it has none. */
  const int64_t *dims;
  /* Half-open range of work items to compute, within [0, work). */
  int64_t begin;
  int64_t end;
  /* This thread's scratch: the task's "scratch" bytes, 64-byte aligned,
   * contents undefined on entry but for `kept`. NULL when the task asked for
   * none. */
  void *scratch;
  /* Where a task with data-dependent result dims stores them; NULL otherwise. */
  int64_t *results;
  /* A number that a call may leave for this thread's next one: -1, unless that
   * thread's last call was of this task, in this run; then what that call left,
   * and scratch is as it was left. Says what is prepared there. */
  int64_t *kept;
} dmx_kernel_args;

typedef int32_t (*dmx_kernel_fn)(const dmx_kernel_args *args);

/* What a kernel relies on, in words of 64 bits:
 *
 *   [0] how many words there are, this one included
 *   [1] how many buffers the kernel gets: operands, then results
 *   [2] how many of them, the last ones, it writes
 *   [3] how many dims
 *   [4] how many values it stores in `results`
 *   then expressions over the dims: the work items of the task, the bytes of
 *   scratch that a call may touch, and for each buffer how many bytes it has:
 *   a dense tensor's, or those of a constant's packed form. The kernel touches
 *   no others.
 *
 * An expression is in prefix notation: DMX_WORD_NUMBER and the number,
 * DMX_WORD_DIM and the position among the dims, or an operation and its two
 * operands, each an expression; with the meaning that graph.json's have.
 *
 * The runtime compares each task of graph.json with its kernel's contract
 * before it runs: counts, work and bytes must be equal, scratch may be more. */
enum {
  DMX_WORD_NUMBER = 0,
  DMX_WORD_DIM = 1,
  DMX_WORD_ADD = 2,
  DMX_WORD_SUB = 3,
  DMX_WORD_MUL = 4,
  DMX_WORD_FLOORDIV = 5, /* towards minus infinity */
  DMX_WORD_CEILDIV = 6,
  DMX_WORD_MOD = 7,
  DMX_WORD_MIN = 8,
  DMX_WORD_MAX = 9,
  DMX_WORD_BROADCAST = 10 /* of two extents that are equal, or one of which is 1 */
};

typedef struct dmx_kernel_entry {
  const char *name; /* NUL-terminated, unique in the table */
  dmx_kernel_fn fn;
  const int64_t *contract; /* see above; NULL: none */
} dmx_kernel_entry;

/* The entry of tables before version 3. */
typedef struct dmx_kernel_entry_v2 {
  const char *name;
  dmx_kernel_fn fn;
} dmx_kernel_entry_v2;

typedef struct dmx_kernel_table {
  uint32_t abi_version; /* DMX_KERNEL_ABI_VERSION of the compiler */
  uint32_t kernel_count;
  const char *isa;                 /* "x86-64-v3", ...: the level this object was built for */
  const dmx_kernel_entry *kernels; /* before version 3: dmx_kernel_entry_v2 */
} dmx_kernel_table;

typedef const dmx_kernel_table *(*dmx_query_kernels_fn)(uint32_t abi_version);

#ifdef __cplusplus
}
#endif
#endif /* DMX_DMX_KERNEL_H */
