/* dmx.h - the public C API of libdmxrt, the runtime that opens and runs bundles.
 *
 * A bundle is what the compiler wrote: one file (or the same tree in a
 * directory) with the task graph, the weights and the machine code. Typical use:
 *
 *   dmx_error error = DMX_ERROR_INIT;
 *   dmx_bundle *bundle = NULL;
 *   dmx_session *session = NULL;
 *   if (dmx_bundle_open("m.bundle", &bundle, &error) ||
 *       dmx_session_create(bundle, NULL, NULL, &session, &error))
 *     die(error.message);
 *   int64_t dims[] = {1, 3, 224, 224};
 *   dmx_tensor_view x = {DMX_DTYPE_F32, 4, dims, pixels};
 *   dmx_session_bind(session, DMX_INPUT, 0, &x, &error);
 *   ... dmx_session_shape(session, DMX_OUTPUT, 0, ...), bind the output ...
 *   dmx_session_run(session, &error);
 *
 * Conventions, for every function unless it says otherwise:
 *  - A call that can fail returns a dmx_status and, when `error` is not NULL, fills it with one sentence: what
 *    failed, on which tensor, task or entry, what was expected, what came, what to do. `*error` is set on success too
 *    (DMX_OK, empty message). Outputs are written on success only.
 *  - Options and info structs start with `struct_size`, which the caller sets to sizeof(the struct); the runtime
 *    reads and writes no further than that.
 *  - Strings are UTF-8 and NUL-terminated. A `const char *` that is returned lives as long as the object it was asked
 *    from (bundle or session).
 *  - Sizes are bytes, times are nanoseconds of CLOCK_MONOTONIC.
 *  - A dmx_bundle is immutable and may be used by any number of threads at once. A dmx_session serves one caller at a
 *    time (a second one gets DMX_STATUS_BUSY); sessions are independent of each other. There are no globals.
 *  - No C++ exception leaves a function. No function prints or exits.
 *  - Kernels are machine code: a bundle is as trustworthy as a program. Checksums find damage, not malice; signatures
 *    (dmx_bundle_options) find both. See SECURITY.md.
 */
#ifndef DMX_DMX_H
#define DMX_DMX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#define DMX_API __attribute__((visibility("default")))
#else
#define DMX_API
#endif
/* ---- Version ------------------------------------------------------------ */
#define DMX_VERSION_MAJOR 0
#define DMX_VERSION_MINOR 1
#define DMX_VERSION_PATCH 0

/* Of the library that is linked: major * 1000000 + minor * 1000 + patch. Programs of an older minor keep working. */
DMX_API uint32_t dmx_version(void);
/* The same as text, e.g. "0.1.0". Static storage. */
DMX_API const char *dmx_version_string(void);

/* ---- Status and errors -------------------------------------------------- */
typedef int32_t dmx_status;
enum {
  DMX_OK = 0,
  DMX_STATUS_INVALID_ARGUMENT = 1, /* the call is wrong: index, name, dtype, shape, alignment */
  DMX_STATUS_IO = 2,               /* a file cannot be opened, read or mapped */
  DMX_STATUS_INVALID_BUNDLE = 3,   /* damaged, truncated or inconsistent bundle */
  DMX_STATUS_CHECKSUM = 4,         /* bytes differ from their recorded sha256 */
  DMX_STATUS_UNSUPPORTED = 5,      /* newer format, unknown required feature, missing CPU feature or device */
  DMX_STATUS_OUT_OF_MEMORY = 6,
  DMX_STATUS_NOT_READY = 7,      /* an input or output is not bound yet, or no run is in flight */
  DMX_STATUS_BUSY = 8,           /* the session is in use by another thread or an async run */
  DMX_STATUS_KERNEL = 9,         /* a task refused its data, e.g. a gather index out of range */
  DMX_STATUS_INTERNAL = 10,      /* a bug of the runtime */
  DMX_STATUS_SHAPE_UNKNOWN = 11, /* an output's shape depends on the data: ask again after a run */
  DMX_STATUS_UNTRUSTED = 12      /* no valid signature by a trusted key */
};

/* Where a failed call explains itself; owned by the caller, may be reused. */
typedef struct dmx_error {
  size_t struct_size; /* sizeof(dmx_error) */
  dmx_status status;
  char message[512]; /* one sentence, truncated to fit, always NUL-terminated */
} dmx_error;
#define DMX_ERROR_INIT {sizeof(dmx_error), DMX_OK, {0}}

/* Short name of a status, e.g. "invalid argument". Static storage; never NULL. */
DMX_API const char *dmx_status_name(dmx_status status);

/* ---- Tensors ------------------------------------------------------------ */

typedef int32_t dmx_dtype;
enum {
  DMX_DTYPE_BOOL = 1, /* one byte, 0 or 1 */
  DMX_DTYPE_I4 = 2,   /* 4-bit types: two to a byte, low nibble first */
  DMX_DTYPE_I8 = 3,
  DMX_DTYPE_I16 = 4,
  DMX_DTYPE_I32 = 5,
  DMX_DTYPE_I64 = 6,
  DMX_DTYPE_U4 = 7,
  DMX_DTYPE_U8 = 8,
  DMX_DTYPE_U16 = 9,
  DMX_DTYPE_U32 = 10,
  DMX_DTYPE_U64 = 11,
  DMX_DTYPE_F16 = 12,
  DMX_DTYPE_BF16 = 13,
  DMX_DTYPE_F32 = 14,
  DMX_DTYPE_F64 = 15,
  DMX_DTYPE_F8E4M3FN = 16,
  DMX_DTYPE_F8E4M3FNUZ = 17,
  DMX_DTYPE_F8E5M2 = 18,
  DMX_DTYPE_F8E5M2FNUZ = 19,
  DMX_DTYPE_F4E2M1 = 20,
  DMX_DTYPE_F8E8M0 = 21, /* an exponent: 2^(bits - 127), 255 is NaN */
  DMX_DTYPE_I2 = 22,     /* 2-bit types: four to a byte, lowest bits first */
  DMX_DTYPE_U2 = 23
};

/* Highest rank a tensor of a bundle may have. */
#define DMX_MAX_RANK 32

/* Name as in the manifest ("f32"); NULL for an unknown value. Static storage. */
DMX_API const char *dmx_dtype_name(dmx_dtype dtype);
/* Bits of one element: 2, 4, 8, 16, 32 or 64; 0 for an unknown value. */
DMX_API uint32_t dmx_dtype_bits(dmx_dtype dtype);
/* Bytes of a dense tensor (types of 4 and 2 bits rounded up to whole bytes), or -1 when a dim is negative, the dtype
 * unknown or the product exceeds 63 bits. `dims` may be NULL for rank 0. */
DMX_API int64_t dmx_tensor_bytes(dmx_dtype dtype, uint32_t rank, const int64_t *dims);
/* A dense, row-major, little-endian tensor in the caller's memory. */
typedef struct dmx_tensor_view {
  dmx_dtype dtype;
  uint32_t rank;
  const int64_t *dims; /* `rank` non-negative extents; read during the call only */
  void *data;          /* aligned to the element size; may be NULL when the tensor has no elements.
                          Inputs are only read. */
} dmx_tensor_view;

typedef int32_t dmx_io;
enum { DMX_INPUT = 0, DMX_OUTPUT = 1 };

/* One extent of an input or output. */
typedef struct dmx_dim {
  const char *name; /* NULL when fixed; else the symbolic dim ("batch") or, for a computed one,
                       its expression as text ("batch * 49") */
  int64_t min;      /* inclusive bounds; min == max when fixed. For a computed dim they */
  int64_t max;      /* follow from its operands' bounds; INT64_MAX where unbounded. */
} dmx_dim;

/* What an entry point says of one input or output. Pointers live as long as the bundle. */
typedef struct dmx_tensor_info {
  size_t struct_size;
  const char *name;
  dmx_dtype dtype;
  uint32_t rank;
  const dmx_dim *dims;     /* `rank` of them */
  const char *description; /* what the model says of it, for people, UTF-8; NULL when it says nothing */
} dmx_tensor_info;

/* ---- Bundle ------------------------------------------------------------- */

typedef struct dmx_bundle dmx_bundle;

/* Checks that `path` (a file or directory) is a bundle this runtime can read,
 * from the archive's directory and its manifest alone: format version, minimum
 * runtime, required features, the manifest's own checksum. Reads no other entry. */
DMX_API dmx_status dmx_bundle_check_header(const char *path, dmx_error *error);
/* Bytes of an Ed25519 public key. */
#define DMX_PUBLIC_KEY_BYTES 32

/* Bits of dmx_bundle_options.flags. */
enum {
  DMX_BUNDLE_COPY = 1u << 0,        /* the whole bundle is read once, at open, into private memory; see below */
  DMX_BUNDLE_CONTRACTS = 1u << 1,   /* refuse code that does not say what its kernels rely on (dmx_code_info) */
  DMX_BUNDLE_NO_USER_CODE = 1u << 2 /* DMX_STATUS_UNTRUSTED where a user wrote some of the code (dmxc --kernels) */
};

/* How a bundle is opened. By default it is mapped: opening costs no more than reading manifest, graph and code,
 * weights come into memory when they are first used, are shared by all processes that have the file open, and may
 * be dropped and read again at any time. That makes them those of the file: while the bundle is open, a program
 * that truncates the file takes pages away, and the process dies of SIGBUS at the next use of one; a program that
 * writes into the file changes the weights of later runs, without an error. Replacing the file by renaming another
 * one over it (what dmxc does) and removing it are safe.
 * With DMX_BUNDLE_COPY open reads all of it, which takes the time to read the file and as much memory a process as
 * the file has bytes; afterwards nothing that happens to the file matters. A file that becomes shorter during open
 * is DMX_STATUS_IO.
 * Manifest, graph and code are copied in both cases, and used from the very bytes whose sha256 was checked. Code of
 * a level that is not the best one for this machine is copied and checked when a session asks for it.
 *
 * With trusted_keys a bundle is refused unless one of these keys signed it (dmx-sign; schemas/FORMAT.md, "Signature"):
 * DMX_STATUS_UNTRUSTED when it is not signed, is signed by another key, or carries a signature that is damaged, forged
 * or of another bundle; DMX_STATUS_CHECKSUM when an entry is not the one that was signed; DMX_STATUS_UNSUPPORTED for
 * a signature of a later version, and for any keys where the library was built without signatures. Keys imply
 * DMX_BUNDLE_COPY, and open then checks the sha256 of every entry, weights too: about 1.4 s a GiB where the CPU has
 * SHA instructions, 5.3 s where not, besides reading it. The signature is checked before anything of the bundle but the
 * archive's directory is interpreted, and no code is mapped executable before all is checked.
 * Keys and signature are read during the call only.
 *
 * A bit or a field set that this runtime does not know is refused with DMX_STATUS_UNSUPPORTED. */
typedef struct dmx_bundle_options {
  size_t struct_size;
  uint32_t flags;                    /* DMX_BUNDLE_... */
  uint32_t trusted_key_count;        /* 0 and NULL keys: nobody's signature is asked for */
  const unsigned char *trusted_keys; /* trusted_key_count times DMX_PUBLIC_KEY_BYTES bytes, one after the other */
  const void *signature;             /* contents of a detached signature, which counts instead of the one in the */
  size_t signature_size;             /* bundle; NULL and 0: there is none. Goes with trusted_keys only */
} dmx_bundle_options;
#define DMX_BUNDLE_OPTIONS_INIT {sizeof(dmx_bundle_options), 0, 0, NULL, NULL, 0}

/* Opens a bundle file (mapped read-only, never extracted) or directory. Checks the bounds of everything and the sha256
 * of manifest, graph and the code that is best for this machine; code of other levels is checked when a session takes
 * it (options.isa), weights by dmx_bundle_verify. Unless it is opened with DMX_BUNDLE_COPY the file must not be
 * modified while the bundle is open. `*bundle` is to be closed with dmx_bundle_close. */
DMX_API dmx_status dmx_bundle_open(const char *path, dmx_bundle **bundle, dmx_error *error);
/* The same with options; NULL: all defaults. */
DMX_API dmx_status dmx_bundle_open_with(const char *path, const dmx_bundle_options *options, dmx_bundle **bundle,
                                        dmx_error *error);

/* The same over bytes that the caller keeps alive and unchanged until the bundle
 * and every session of it are gone. `data` must be 64-byte aligned. */
DMX_API dmx_status dmx_bundle_open_memory(const void *data, size_t size, dmx_bundle **bundle, dmx_error *error);
/* The same with options. With DMX_BUNDLE_COPY the bytes need no alignment and are not used after the call. */
DMX_API dmx_status dmx_bundle_open_memory_with(const void *data, size_t size, const dmx_bundle_options *options,
                                               dmx_bundle **bundle, dmx_error *error);

/* The same over `size` bytes at `offset` of an open regular file (size 0: up to its end). `offset` must be a multiple
 * of 64. The descriptor stays the caller's and may be closed after the call. */
DMX_API dmx_status dmx_bundle_open_fd(int fd, uint64_t offset, uint64_t size, dmx_bundle **bundle, dmx_error *error);
/* The same with options. */
DMX_API dmx_status dmx_bundle_open_fd_with(int fd, uint64_t offset, uint64_t size, const dmx_bundle_options *options,
                                           dmx_bundle **bundle, dmx_error *error);

/* Releases the caller's hold; sessions keep what they need. NULL is allowed. */
DMX_API void dmx_bundle_close(dmx_bundle *bundle);
/* The manifest as JSON text, checked against its sha256. */
DMX_API const char *dmx_bundle_describe(const dmx_bundle *bundle);

/* What the model's file says of the model under `key`, UTF-8: of an ONNX file its metadata_props and "onnx.producer",
 * "onnx.domain", "onnx.version", "onnx.description" where they are set. dmx_bundle_describe has all of them, in
 * "model", "metadata". Lives as long as the bundle; NULL where nothing is said. */
DMX_API const char *dmx_bundle_metadata(const dmx_bundle *bundle, const char *key);
/* Checks every byte: sha256 of all entries including weights, and the archive's
 * padding and CRCs. Reads the whole file; may be called from any thread. */
DMX_API dmx_status dmx_bundle_verify(const dmx_bundle *bundle, dmx_error *error);
/* Bytes of one entry by name ("tests/input_0.bin"), in place; unchecked for weights,
 * debug and tests unless dmx_bundle_verify was called. Lives as long as the bundle. */
DMX_API dmx_status dmx_bundle_entry(const dmx_bundle *bundle, const char *name, const void **data, size_t *size,
                                    dmx_error *error);

/* A code object of a bundle. Strings live as long as the bundle. */
typedef struct dmx_code_info {
  size_t struct_size;
  const char *target; /* "cpu" */
  const char *arch;   /* "x86-64-v3" */
  const char *entry;  /* "code/cpu/x86-64-v3/kernels.so" */
  int32_t contracts;  /* 1: it says of each kernel which buffers, work and scratch it relies on, and a graph.json that
                         says otherwise is refused; 0: compiled before dmxc wrote that, graph.json is believed;
                         -1: this runtime has no device for it */
} dmx_code_info;

DMX_API uint32_t dmx_bundle_code_count(const dmx_bundle *bundle);
/* By index; `info->struct_size` must be set. Checks the object's form, runs none of it. */
DMX_API dmx_status dmx_bundle_code_info(const dmx_bundle *bundle, uint32_t index, dmx_code_info *info,
                                        dmx_error *error);

/* Entry points (functions of the model), at least one. `name` NULL means the first. */
DMX_API uint32_t dmx_bundle_entry_point_count(const dmx_bundle *bundle);
/* NULL when `index` is out of range. */
DMX_API const char *dmx_bundle_entry_point_name(const dmx_bundle *bundle, uint32_t index);
/* Inputs or outputs of an entry point. 0 for an unknown entry point. */
DMX_API uint32_t dmx_bundle_tensor_count(const dmx_bundle *bundle, const char *entry_point, dmx_io io);
/* By index; `info->struct_size` must be set. */
DMX_API dmx_status dmx_bundle_tensor_info(const dmx_bundle *bundle, const char *entry_point, dmx_io io, uint32_t index,
                                          dmx_tensor_info *info, dmx_error *error);
/* Index of a name. */
DMX_API dmx_status dmx_bundle_find_tensor(const dmx_bundle *bundle, const char *entry_point, dmx_io io,
                                          const char *name, uint32_t *index, dmx_error *error);

/* Lays out a run of an entry point (NULL: the first) for inputs of these dtypes and shapes, in the entry point's order,
 * and checks all that a run checks before kernels start: shapes, views, offsets, sizes and contracts, of branches and
 * bodies of loops too. Of what only a run tells, both ends of the bounds are tried. Every code object of the bundle is
 * taken once, whether this CPU has what it needs or not. Computes nothing, allocates no arena, maps nothing
 * executable; `data` of the views is not looked at. May be called from any thread.
 * DMX_STATUS_INVALID_ARGUMENT when inputs of these shapes do not go together or break a constraint;
 * DMX_STATUS_OUT_OF_MEMORY when no machine could run them; DMX_STATUS_UNSUPPORTED for code without
 * contracts (dmx_code_info); DMX_STATUS_INVALID_BUNDLE when the bundle is not sound. */
DMX_API dmx_status dmx_bundle_rehearse(const dmx_bundle *bundle, const char *entry_point, const dmx_tensor_view *inputs,
                                       uint32_t count, dmx_error *error);

/* ---- Session ------------------------------------------------------------ */

typedef struct dmx_session dmx_session;

/* Source of the session's large memory: arenas, state and scratch. Both callbacks may be called
 * from whichever thread creates, binds, runs or destroys the session, never during a kernel.
 * `alignment` is a power of two of at least 64. Return NULL when out of memory. */
typedef struct dmx_allocator {
  void *user;
  void *(*allocate)(void *user, size_t size, size_t alignment);
  void (*release)(void *user, void *pointer, size_t size);
} dmx_allocator;

/* Somebody else's threads. `parallel` calls fn(arg, i) once for each i in [0, count), in any order and on any threads,
 * and returns when all have returned. Calls do not wait for each other: one after another is allowed. */
typedef struct dmx_executor {
  void *user;
  void (*parallel)(void *user, uint32_t count, void (*fn)(void *arg, uint32_t index), void *arg);
} dmx_executor;

/* Options of devices are texts "target.key=value", or "key=value" for every device of the session that knows the key;
 * what no device of the session knows is refused, with what those it has know.
 *
 * cpu, the processor of the host:
 *   cpu.spin_us=0..1000000          how long an idle thread spins before it sleeps (default 50)
 *   cpu.pin=0|1                     bind each own worker thread to one allowed CPU (default 0)
 *   cpu.guard=start|end             for tests: kernels work on copies of their operands beside inaccessible pages, on
 *                                   the calling thread; one that leaves them ends the run with a sentence (replaces
 *                                   the handler of SIGSEGV meanwhile)
 * corsair, a simulated card, whose runs use `threads` host threads:
 *   corsair.hazards=0|1             check every access (default 1)
 *   corsair.skew_seed=N             not 0: quads start at random, reproducible times
 *   corsair.report=FILE             JSON of clocks, bytes, energy, bounds; FILE.txt as text
 *   corsair.strict_range=0|1        a run in which f16 could not hold a value is an error (default 0:
 *                                   dmx_session_info's `remarks` says so)
 *   corsair.trace=FILE              the last run as a Chrome trace
 * aie, a simulated array of AI Engines:
 *   aie.report=FILE                 JSON of clocks, and what each core, channel and stream did; FILE.txt as text
 *   aie.trace=FILE                  the last run as a Chrome trace
 *   aie.skew_seed=0..4294967295     not 0: cores and channels begin at random, reproducible times
 * cuda, GPUs of NVIDIA or their simulator; dmx_session_info's `machine` says which:
 *   cuda.sim=auto|on|off            the GPU where there is one, else the simulator; the simulator; the GPU or an error
 *                                   (default off, and auto under DMX_SESSION_SIMULATE)
 *   cuda.device=N                   that one of the driver's GPUs, and no simulator
 *   cuda.blocking=0|1               wait for each task, so that a fault is the right one's (default 0)
 *   cuda.driver=FILE                the driver's library (default libcuda.so.1)
 *   cuda.sim_seed=N                 not 0: blocks and warps in another order
 *   cuda.sim_checks=0|1             look for races and unwritten bytes (default 1)
 *   cuda.sim_steps=N                most instructions without a warp's end, behind which a launch is endless
 *   cuda.report=FILE                JSON of what launches are estimated to take, by the simulator
 *   cuda.trace=FILE                 the last run as a Chrome trace, the same
 *   cuda.sim_machine=FILE           the GPU that is estimated (default schemas/cuda/h100.json)
 *   cuda.sim_blocks=N               run N blocks of each launch, for estimates alone: results are not computed */
typedef struct dmx_session_options {
  size_t struct_size;
  uint32_t threads;                  /* threads of a run, the caller's included; 0: as many CPUs as the affinity mask
                                        and the cgroup quota allow. At most 1024. */
  const char *isa;                   /* ISA level among the bundle's ("x86-64-v3"), for the devices that have such
                                        code; NULL: the best for every device */
  const dmx_allocator *allocator;    /* NULL: aligned memory of the C library; copied */
  const dmx_executor *executor;      /* NULL: the session's own threads, started at creation; copied */
  const char *const *device_options; /* `device_option_count` texts, see above */
  uint32_t device_option_count;
  uint32_t reserved; /* 0 */
  uint32_t flags;    /* DMX_SESSION_... */
} dmx_session_options;
#define DMX_SESSION_OPTIONS_INIT {sizeof(dmx_session_options), 0, NULL, NULL, NULL, NULL, 0, 0, 0}

/* A machine that is not there is simulated, which may take thousands of times as long, where its device can do that and
 * options do not say otherwise; dmx_session_info's `machine` tells. Without the flag that is an error. */
#define DMX_SESSION_SIMULATE 1u

/* Makes a session for one entry point (NULL: the first). `options` NULL: all defaults.
 * Makes a device for each target the entry point runs on, loads their code, starts the threads and, where
 * all shapes are fixed, allocates the arenas. The session holds the bundle alive. */
DMX_API dmx_status dmx_session_create(const dmx_bundle *bundle, const char *entry_point,
                                      const dmx_session_options *options, dmx_session **session, dmx_error *error);

/* Waits for an async run in flight, then frees everything. NULL is allowed. */
DMX_API void dmx_session_destroy(dmx_session *session);

/* Binds the caller's memory to an input or output, without a copy; it stays bound until bound anew. The data must stay
 * valid during runs; `view` itself and its dims are read now. dtype, rank, fixed dims, bounds of symbolic dims and
 * alignment are checked here; agreement between tensors (one symbolic dim in several) and outputs overlapping other
 * tensors at the run. Outputs need not be bound: the session then keeps them in memory of its own (dmx_session_output).
 * An output whose shape depends on the data (dmx_session_shape says DMX_STATUS_SHAPE_UNKNOWN) may be bound to memory
 * that is large enough: the view's dims then only say how many bytes there are. A run that needs more fails with
 * DMX_STATUS_INVALID_ARGUMENT; else the tensor lies dense at the start. */
DMX_API dmx_status dmx_session_bind(dmx_session *session, dmx_io io, uint32_t index, const dmx_tensor_view *view,
                                    dmx_error *error);
/* The same with strides: `view->rank` numbers of elements from one to the next along each axis, as in DLPack; not
 * negative, and no two elements in one place. Refused of types of 4 and 2 bits and of outputs whose shape depends on
 * data. What tasks do not take as it lies is copied to memory of the session before a run, or from there behind it
 * (dmx_session_info's `copied_bytes`). As they lie, on the cpu, they take dense tensors and caches: an input `past` and
 * an output that is `past` and the run's rows behind it. Both may be one buffer [batch, heads, capacity, size]: bind
 * `past` as [batch, heads, n, size] and the output as [batch, heads, n + m, size] to its start, with the strides {heads
 * * capacity * size, capacity * size, size, 1}; a run writes the m rows alone. Caches that grow alike have one
 * capacity, or are copied. Only such a pair, of one address and the same strides, may overlap. dmx_session_output gives
 * no strided outputs. */
DMX_API dmx_status dmx_session_bind_strided(dmx_session *session, dmx_io io, uint32_t index,
                                            const dmx_tensor_view *view, const int64_t *strides, dmx_error *error);
/* Takes a binding back: an input has to be bound before the next run, an output is left to the session. */
DMX_API dmx_status dmx_session_unbind(dmx_session *session, dmx_io io, uint32_t index, dmx_error *error);

/* Shape of an input or output for the inputs bound now. Fixed shapes are known at any time; others need the inputs that
 * define their dims (DMX_STATUS_NOT_READY names the missing one), and where the shape of an output depends on the data,
 * a run: DMX_STATUS_SHAPE_UNKNOWN before it and after inputs of other shapes were bound, then the last run's shape.
 * Writes `*rank` and up to `capacity` extents; fails when `capacity` is smaller than the rank. */
DMX_API dmx_status dmx_session_shape(dmx_session *session, dmx_io io, uint32_t index, int64_t *dims, uint32_t capacity,
                                     uint32_t *rank, dmx_error *error);

/* An output of the last run, bound or not: fills `*view` with dtype, shape and address. dims and data are valid until
 * the session runs, is bound or destroyed. DMX_STATUS_NOT_READY before the first run, after a run that failed and after
 * something was bound that changes outputs. */
DMX_API dmx_status dmx_session_output(dmx_session *session, uint32_t index, dmx_tensor_view *view, dmx_error *error);

/* Runs the entry point and returns when the outputs are written. All inputs must be bound. Nothing is allocated and no
 * lock is taken unless the shapes changed since the last run, those inside of the model that depend on data included.
 * After a failed run the outputs' contents are undefined and the session can be used on. */
DMX_API dmx_status dmx_session_run(dmx_session *session, dmx_error *error);
/* Starts a run on another thread and returns; the bound memory belongs to the run until dmx_session_wait. Errors found
 * before the start are returned here, later ones by dmx_session_wait. */
DMX_API dmx_status dmx_session_run_async(dmx_session *session, dmx_error *error);
/* Waits for the run in flight and returns its status. Every async run is waited for once. */
DMX_API dmx_status dmx_session_wait(dmx_session *session, dmx_error *error);
/* Sets all states back to zero, as after creation; of those with a length no row is there then. */
DMX_API dmx_status dmx_session_reset_state(dmx_session *session, dmx_error *error);
/* States with a length (dmxc --state, of inputs that grow): caches with room for `capacity` rows; `length` are there, 0
 * after creation; a run appends its own, one that fails none. A run of more than there is room for changes nothing
 * (DMX_STATUS_INVALID_ARGUMENT). States whose rows are one dim of the model share a length, of the dim's `name` (NULL:
 * the first). `length` and `capacity` may be NULL. */
DMX_API dmx_status dmx_session_state_length(dmx_session *session, const char *name, int64_t *length, int64_t *capacity,
                                            dmx_error *error);
/* Forgets the rows from `length` on, which is no more than there are; `name` NULL: of all states with a length. */
DMX_API dmx_status dmx_session_state_truncate(dmx_session *session, const char *name, int64_t length, dmx_error *error);
/* Copies the states of another session of the same bundle and entry point, of those with a length the rows that are
 * there. States that a device other than the host keeps are DMX_STATUS_UNSUPPORTED, here and below. */
DMX_API dmx_status dmx_session_state_copy(dmx_session *to, dmx_session *from, dmx_error *error);
/* Writes them to memory, for sessions of the same bundle. `*size` is the room at `data` and becomes what is needed;
 * NULL `data` asks for that alone. Bytes of others, or damaged ones, are not taken back (DMX_STATUS_INVALID_ARGUMENT).
 */
DMX_API dmx_status dmx_session_state_save(dmx_session *session, void *data, size_t *size, dmx_error *error);
DMX_API dmx_status dmx_session_state_load(dmx_session *session, const void *data, size_t size, dmx_error *error);

typedef struct dmx_session_info {
  size_t struct_size;
  uint32_t threads;           /* of a run; of several devices, which take turns, the most */
  uint32_t task_count;        /* indices of dmx_session_task_info and of profile events: the entry point's tasks, then
                                 those of the graphs that its branches and loops run */
  const char *target;         /* "cpu"; of several devices all targets: "cpu,corsair" */
  const char *isa;            /* chosen level, "x86-64-v3"; of several devices their levels in the order of `target`,
                                 without those that run no code; "" when all tasks are copies */
  uint64_t arena_bytes;       /* allocated now, all arenas; 0 before the shapes are known */
  uint64_t arena_lower_bound; /* the compiler's lower bound for the same (for the bound shapes) */
  uint64_t scratch_bytes;     /* all threads and devices together */
  uint64_t state_bytes;
  uint64_t constant_bytes; /* weights used by the entry point, in place in the bundle */
  uint64_t output_bytes;   /* allocated now for outputs left to the session, and for those of branches and loops */
  const char *better_isa;  /* level that the host CPU has and the bundle has no code of, "x86-64-v4": compiled for it,
                              the model would run faster; "" when there is none */
  const char *machine;   /* what runs tasks that the host's processor does not, where a target has several: "NVIDIA H100
                            PCIe", or a simulator and why; of the host's, why it does not take the bundle's best code;
                            "" where there is nothing to say */
  const char *remarks;   /* what the numbers of the last run suffered: "node 'a' saturated 12 values" where the device's
                            format could not hold them; "" where there is nothing to say. Until the next run. */
  uint64_t copied_bytes; /* by the last run, between tensors of the caller and where its tasks have them: those bound
                            with strides, and old rows of caches that the caller has in two tensors */
} dmx_session_info;

/* Facts of the session as it is now. `info->struct_size` must be set. */
DMX_API dmx_status dmx_session_get_info(dmx_session *session, dmx_session_info *info, dmx_error *error);

/* ---- Profiling ---------------------------------------------------------- */

typedef struct dmx_task_info {
  size_t struct_size;
  const char *name;
  const char *kernel;       /* NULL for a copy, a branch or a loop */
  const char *const *nodes; /* `node_count` names of the model's nodes it computes */
  uint32_t node_count;
  uint32_t slices; /* parts it is cut in for the bound shapes, some for each thread; 0 before they are known */
  int64_t work;    /* work items; -1 before the shapes are known */
  int64_t flops;   /* cost model's figures for the bound shapes; -1 when unknown */
  int64_t bytes;
  uint64_t calls;    /* executions seen while profiling was on */
  uint64_t total_ns; /* their wall time, first slice's start to last slice's end */
  uint64_t busy_ns;  /* their time summed over threads */
} dmx_task_info;

/* One task, in execution order; the names of tasks that a branch or loop runs begin with its name. `info->struct_size`
 * must be set. */
DMX_API dmx_status dmx_session_task_info(dmx_session *session, uint32_t task, dmx_task_info *info, dmx_error *error);
/* One slice of one task on one thread. */
typedef struct dmx_profile_event {
  uint32_t task;
  uint32_t thread; /* of the task's device; 0 is the thread that called run */
  uint64_t run;    /* number of the run since profiling was enabled, from 0 */
  uint64_t start_ns;
  uint64_t end_ns;
  const char *name; /* the task's name; lives as long as the session */
} dmx_profile_event;

/* Turns profiling on with room for `capacity` events in all (0: off, and all events and figures are forgotten). The
 * room is allocated here; events that find none are counted as dropped. */
DMX_API dmx_status dmx_session_profile(dmx_session *session, uint32_t capacity, dmx_error *error);

/* Moves up to `capacity` recorded events to the caller, earliest start first. `*count` becomes the
 * number written and `*dropped` (may be NULL) the number lost since the last call. Events that did not fit
 * stay. With `events` NULL nothing is moved and `*count` becomes the number waiting. */
DMX_API dmx_status dmx_session_take_events(dmx_session *session, dmx_profile_event *events, uint32_t capacity,
                                           uint32_t *count, uint64_t *dropped, dmx_error *error);

#ifdef __cplusplus
}
#endif
#endif /* DMX_DMX_H */
