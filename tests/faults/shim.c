/* shim.c - lets the k-th call of a kind fail; for LD_PRELOAD, or, without the memory functions (which are a sanitizer's
 * there), linked into a test with operator new of its own (DMX_FAULTS_IN_PROCESS, allocations.cpp)
 *
 * A fault is "KIND:K[+][:HOW]": the K-th call (from 1; with '+' all from there on) of
 *   open    open, openat, creat, fopen, opendir, fdopendir, memfd_create, pipe2
 *   read    read, pread           write   write, pwrite         sync    fsync, fdatasync
 *   map     mmap                  stat    stat, fstat, fstatat  rename  rename, renameat, renameat2, linkat
 *   mkdir   mkdir, mkdirat        thread  pthread_create        alloc   malloc, calloc, realloc, aligned_alloc, ...
 * fails with the errno that HOW names (default: the usual one), or is "short" (a part of the bytes, no error) or "end"
 * (0 bytes). Standard error is left alone. DMX_FAULT has a fault for the whole process, DMX_FAULT_COUNTS a file that
 * gets "KIND COUNT" lines at the end, DMX_FAULT_TRACE one that gets the names of calls that make output durable, in
 * order. A test that runs many faults in one process finds dmx_fault_arm and its sisters by dlsym.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OPEN, READ, WRITE, SYNC, MAP, STAT, RENAME, MKDIR, THREAD, ALLOC, KINDS };
static const char *const names[KINDS] = {"open", "read",   "write", "sync",   "map",
                                         "stat", "rename", "mkdir", "thread", "alloc"};
static const int usual[KINDS] = {EACCES, EIO, ENOSPC, EIO, ENOMEM, EIO, EIO, ENOSPC, EAGAIN, ENOMEM};
static const struct {
  const char *name;
  int value;
} errors[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EINTR", EINTR}, {"ENOMEM", ENOMEM},         {"EMFILE", EMFILE},
              {"EACCES", EACCES}, {"EDQUOT", EDQUOT}, {"EROFS", EROFS}, {"EOPNOTSUPP", EOPNOTSUPP}, {"EINVAL", EINVAL}};
enum { SHORT = -1, END = -2 };

static atomic_long counts[KINDS];
static atomic_long live;   /* allocations that are not freed */
static atomic_long mapped; /* mappings less those taken back */
static int armed = -1, how, onwards;
static long target;

/* Parses a fault and counts anew; NULL: no fault. 0 when it is not one. */
int dmx_fault_arm(const char *fault) {
  armed = -1;
  for (int i = 0; i < KINDS; ++i)
    atomic_store(&counts[i], 0);
  if (!fault)
    return 1;
  for (int kind = 0; kind < KINDS; ++kind) {
    size_t length = strlen(names[kind]);
    if (strncmp(fault, names[kind], length) != 0 || fault[length] != ':')
      continue;
    char *end;
    target = strtol(fault + length + 1, &end, 10);
    onwards = *end == '+';
    end += onwards;
    how = usual[kind];
    if (*end == ':') {
      how = strcmp(end + 1, "short") == 0 ? SHORT : strcmp(end + 1, "end") == 0 ? END : 0;
      for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i)
        if (strcmp(end + 1, errors[i].name) == 0)
          how = errors[i].value;
      if (!how)
        return 0;
    }
    armed = kind;
    return 1;
  }
  return 0;
}

long dmx_fault_count(const char *kind) {
  for (int i = 0; i < KINDS; ++i)
    if (strcmp(kind, names[i]) == 0)
      return atomic_load(&counts[i]);
  return -1;
}

long dmx_fault_live(void) { return atomic_load(&live); }
long dmx_fault_mapped(void) { return atomic_load(&mapped); }

/* Counts a call; 0: it goes on, else what happens to it. */
static int fault(int kind) {
  long number = atomic_fetch_add(&counts[kind], 1) + 1;
  if (armed != kind || !(number == target || (onwards && number > target)))
    return 0;
  if (how > 0)
    errno = how;
  return how;
}

/* For an allocator that is not ours: whether this allocation shall fail, and how many more there are than before. */
int dmx_fault_allocation(void) { return fault(ALLOC); }
void dmx_fault_allocated(long more) { atomic_fetch_add(&live, more); }

static void putText(const char *variable, const char *text) {
  const char *path = getenv(variable);
  long fd = path ? syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
  if (fd < 0)
    return;
  syscall(SYS_write, fd, text, strlen(text));
  syscall(SYS_close, fd);
}

static void trace(const char *call) {
  int error = errno;
  putText("DMX_FAULT_TRACE", call);
  errno = error;
}

__attribute__((constructor(101))) static void start(void) {
  const char *text = getenv("DMX_FAULT");
  if (text && !dmx_fault_arm(text)) {
    static const char message[] = "shim: DMX_FAULT is not a fault\n";
    syscall(SYS_write, 2, message, sizeof message - 1);
    _exit(99);
  }
}

__attribute__((destructor)) static void stop(void) {
  char line[64];
  for (int i = 0; i < KINDS; ++i) {
    snprintf(line, sizeof line, "%s %ld\n", names[i], atomic_load(&counts[i]));
    putText("DMX_FAULT_COUNTS", line);
  }
}

/* ---- files ---- */

#define MODE(flags)                                                                                                    \
  ({                                                                                                                   \
    mode_t m = 0;                                                                                                      \
    if ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE) {                                                     \
      va_list l;                                                                                                       \
      va_start(l, flags);                                                                                              \
      m = va_arg(l, mode_t);                                                                                           \
      va_end(l);                                                                                                       \
    }                                                                                                                  \
    m;                                                                                                                 \
  })
int open(const char *path, int flags, ...) {
  mode_t mode = MODE(flags);
  return fault(OPEN) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  mode_t mode = MODE(flags);
  return fault(OPEN) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
  mode_t mode = MODE(flags);
  return fault(OPEN) ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
  mode_t mode = MODE(flags);
  return fault(OPEN) ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
}
int memfd_create(const char *name, unsigned flags) {
  return fault(OPEN) ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}
int pipe2(int ends[2], int flags) { return fault(OPEN) ? -1 : (int)syscall(SYS_pipe2, ends, flags); }

#define NEXT(type, name, ...)                                                                                          \
  static type (*next)(__VA_ARGS__);                                                                                    \
  if (!next)                                                                                                           \
  next = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)
FILE *fopen(const char *path, const char *mode) {
  NEXT(FILE *, "fopen", const char *, const char *);
  return fault(OPEN) ? NULL : next(path, mode);
}
FILE *fopen64(const char *path, const char *mode) {
  NEXT(FILE *, "fopen64", const char *, const char *);
  return fault(OPEN) ? NULL : next(path, mode);
}
DIR *opendir(const char *path) {
  NEXT(DIR *, "opendir", const char *);
  return fault(OPEN) ? NULL : next(path);
}
DIR *fdopendir(int fd) {
  NEXT(DIR *, "fdopendir", int);
  return fault(OPEN) ? NULL : next(fd);
}

/* Bytes of a call that is to be short, -1 for one that fails. */
static ssize_t part(int what, size_t size) {
  return what == SHORT ? (ssize_t)(size > 1 ? size / 2 : size) : what == END ? 0 : -1;
}
ssize_t read(int fd, void *data, size_t size) {
  int what = fault(READ);
  ssize_t most = what ? part(what, size) : (ssize_t)size;
  return most <= 0 && what ? most : syscall(SYS_read, fd, data, (size_t)most);
}
ssize_t pread(int fd, void *data, size_t size, off_t offset) {
  int what = fault(READ);
  ssize_t most = what ? part(what, size) : (ssize_t)size;
  return most <= 0 && what ? most : syscall(SYS_pread64, fd, data, (size_t)most, offset);
}
ssize_t pread64(int fd, void *data, size_t size, off_t offset) { return pread(fd, data, size, offset); }
ssize_t write(int fd, const void *data, size_t size) {
  int what = fd == 2 ? 0 : fault(WRITE);
  ssize_t most = what ? part(what, size) : (ssize_t)size;
  return most <= 0 && what ? most : syscall(SYS_write, fd, data, (size_t)most);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
  trace("pwrite\n");
  int what = fault(WRITE);
  ssize_t most = what ? part(what, size) : (ssize_t)size;
  return most <= 0 && what ? most : syscall(SYS_pwrite64, fd, data, (size_t)most, offset);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t offset) { return pwrite(fd, data, size, offset); }

int fsync(int fd) {
  struct stat info;
  trace(syscall(SYS_fstat, fd, &info) == 0 && S_ISDIR(info.st_mode) ? "sync-folder\n" : "sync-file\n");
  return fault(SYNC) ? -1 : (int)syscall(SYS_fsync, fd);
}
int fdatasync(int fd) { return fault(SYNC) ? -1 : (int)syscall(SYS_fdatasync, fd); }

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
  if (fault(MAP))
    return MAP_FAILED;
  void *memory = (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
  mapped += memory != MAP_FAILED;
  return memory;
}
void *mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
  return mmap(address, size, protection, flags, fd, offset);
}
int munmap(void *address, size_t size) {
  int failed = (int)syscall(SYS_munmap, address, size);
  mapped -= failed == 0;
  return failed;
}

int stat(const char *restrict path, struct stat *restrict info) {
  return fault(STAT) ? -1 : (int)syscall(SYS_newfstatat, AT_FDCWD, path, info, 0);
}
int stat64(const char *restrict path, struct stat64 *restrict info) {
  return fault(STAT) ? -1 : (int)syscall(SYS_newfstatat, AT_FDCWD, path, info, 0);
}
int fstat(int fd, struct stat *info) { return fault(STAT) ? -1 : (int)syscall(SYS_fstat, fd, info); }
int fstat64(int fd, struct stat64 *info) { return fault(STAT) ? -1 : (int)syscall(SYS_fstat, fd, info); }
int fstatat(int folder, const char *restrict path, struct stat *restrict info, int flags) {
  return fault(STAT) ? -1 : (int)syscall(SYS_newfstatat, folder, path, info, flags);
}
int fstatat64(int folder, const char *restrict path, struct stat64 *restrict info, int flags) {
  return fault(STAT) ? -1 : (int)syscall(SYS_newfstatat, folder, path, info, flags);
}

int rename(const char *from, const char *to) {
  trace("rename\n");
  return fault(RENAME) ? -1 : (int)syscall(SYS_rename, from, to);
}
int renameat(int fromFolder, const char *from, int toFolder, const char *to) {
  trace("rename\n");
  return fault(RENAME) ? -1 : (int)syscall(SYS_renameat, fromFolder, from, toFolder, to);
}
int renameat2(int fromFolder, const char *from, int toFolder, const char *to, unsigned flags) {
  trace("rename\n");
  return fault(RENAME) ? -1 : (int)syscall(SYS_renameat2, fromFolder, from, toFolder, to, flags);
}
int linkat(int fromFolder, const char *from, int toFolder, const char *to, int flags) {
  trace("link\n");
  return fault(RENAME) ? -1 : (int)syscall(SYS_linkat, fromFolder, from, toFolder, to, flags);
}
int mkdir(const char *path, mode_t mode) { return fault(MKDIR) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode); }
int mkdirat(int folder, const char *path, mode_t mode) {
  return fault(MKDIR) ? -1 : (int)syscall(SYS_mkdirat, folder, path, mode);
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*body)(void *),
                   void *restrict argument) {
  NEXT(int, "pthread_create", pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  int what = fault(THREAD);
  return what ? what : next(thread, attributes, body, argument);
}

/* ---- memory ---- */

#ifndef DMX_FAULTS_IN_PROCESS
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static void *counted(void *memory) {
  live += memory != NULL;
  return memory;
}
void *malloc(size_t size) { return fault(ALLOC) ? NULL : counted(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return fault(ALLOC) ? NULL : counted(__libc_calloc(count, size)); }
void *realloc(void *old, size_t size) {
  if (size && fault(ALLOC))
    return NULL;
  void *memory = __libc_realloc(old, size);
  live += (!old && memory) - (old && !memory && !size);
  return memory;
}
void *memalign(size_t alignment, size_t size) {
  return fault(ALLOC) ? NULL : counted(__libc_memalign(alignment, size));
}
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **memory, size_t alignment, size_t size) {
  int error = errno;
  *memory = memalign(alignment, size);
  errno = error;
  return *memory ? 0 : ENOMEM;
}
void free(void *memory) {
  live -= memory != NULL;
  __libc_free(memory);
}
#endif
