//===- Crash.cpp - signals, crashes and reproducers -----------------------===//
//
// Everything that runs in a handler uses static memory and async-signal-safe
// calls alone. The last good phase's text is not kept during a compile (it may
// be large): a second run of this program, up to that phase, makes it when it
// is needed.
//
//===----------------------------------------------------------------------===//
#include "Crash.h"
#include "compile/Work.h"

#include "dmxc/Driver/Driver.h"
#include "dmxc/Phases/PhaseTable.h"
#include "dmxc/Support/DataFile.h"
#include "dmxc/Support/OutputFile.h"

#include "llvm/Support/ErrorHandling.h"

#include <alloca.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <new>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace dmxc::driver {

static char stepText[64], detailText[64];

static void copyText(char *to, std::string_view from) {
  size_t size = std::min<size_t>(from.size(), 63);
  std::memcpy(to, from.data(), size);
  to[size] = 0;
}

void setCurrentWork(std::string_view step, std::string_view detail) {
  copyText(stepText, step);
  copyText(detailText, detail);
}
const char *currentStep() { return stepText; }
const char *currentDetail() { return detailText; }

//===----------------------------------------------------------------------===//
// Reproducer
//===----------------------------------------------------------------------===//

namespace {
struct ReproducerState {
  int argc = 0;
  char **argv = nullptr;
  char folder[PATH_MAX] = "";
  char inputFile[PATH_MAX + 32] = "";
  char dataFolders[4 * PATH_MAX] = ""; ///< options for resuming from a text that names files there
  bool resumes = false;
  int from = -1;
};
ReproducerState state;
} // namespace

static void put(int fd, const char *text) {
  size_t size = std::strlen(text);
  while (size) {
    ssize_t done = ::write(fd, text, size);
    if (done <= 0)
      return;
    text += done;
    size -= static_cast<size_t>(done);
  }
}

/// The folders of a model's data, which its texts name, as options to paste.
static std::string dataFoldersOf(const Options &options) {
  std::vector<std::string> folders;
  if (Result<DataFile> model = findDataFile(options.model, {""}))
    folders.push_back(folderOf(model->real));
  for (const std::string &given : options.externalDataDirs)
    if (Result<DataFile> folder = findDataFile(given, {""}))
      folders.push_back(folder->real);
  std::string text;
  for (const std::string &folder : folders)
    text += " --allow-external-data '" + folder + "'";
  return text;
}

void prepareReproducer(const Options &options) {
  std::string folder = options.reproducer;
  if (folder.empty()) {
    const char *tmp = std::getenv("TMPDIR");
    folder = std::string(tmp && *tmp ? tmp : "/tmp") + "/dmxc-reproducer-" + std::to_string(getpid());
  }
  if (folder.size() >= sizeof state.folder)
    return;
  std::strcpy(state.folder, folder.c_str());
  std::strcpy(state.inputFile, folder.c_str());
  std::strcat(state.inputFile, "/last-good.mlir");
  if (std::string folders = dataFoldersOf(options); folders.size() < sizeof state.dataFolders)
    std::strcpy(state.dataFolders, folders.c_str());
  state.from = options.from.empty() ? -1 : phaseIndex(options.from);
}

/// The phase before the one that failed, when there is one whose text can be
/// made; codegen's input is schedule's text.
static const char *lastGoodPhase() {
  int failed = phaseIndex(stepText);
  if (std::strcmp(stepText, "write") == 0)
    failed = static_cast<int>(phases().size()) - 1;
  return failed - 1 > state.from && failed > 0 ? phases()[failed - 1].name : nullptr;
}

/// Runs this program again with the same arguments, up to `phase`. Later
/// options win over earlier ones in our parser.
static bool runUpTo(const char *phase) {
  static char emit[80] = "--emit=";
  static char output[] = "-o";
  static std::array<char *, 4096> arguments;
  std::strncpy(emit + 7, phase, sizeof emit - 8);
  size_t count = 0;
  for (int i = 0; i < state.argc && count + 4 < arguments.size(); ++i)
    arguments[count++] = state.argv[i];
  arguments[count++] = emit;
  arguments[count++] = output;
  arguments[count++] = state.inputFile;
  arguments[count] = nullptr;
  pid_t child = fork();
  if (child == 0) {
    int null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    dup2(null, STDOUT_FILENO);
    signal(SIGALRM, SIG_DFL);
    alarm(600);
    static char mark[] = "DMXC_IN_REPRODUCER=1";
    static std::array<char *, 4096> environment = {mark};
    for (size_t i = 0; environ[i] && i + 2 < environment.size(); ++i)
      environment[i + 1] = environ[i];
    execve("/proc/self/exe", arguments.data(), environment.data());
    _exit(127);
  }
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void writeCommand() {
  char path[PATH_MAX + 32];
  std::strcpy(path, state.folder);
  std::strcat(path, "/command.txt");
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0)
    return;
  put(fd, "dmxc " DMXC_VERSION "\nfailed in: ");
  put(fd, stepText);
  put(fd, " ");
  put(fd, detailText);
  put(fd, "\narguments, one a line:\n");
  for (int i = 0; i < state.argc; ++i) {
    put(fd, state.argv[i]);
    put(fd, "\n");
  }
  close(fd);
}

void writeReproducer() {
  if (!state.folder[0] || !state.argv || getenv("DMXC_IN_REPRODUCER"))
    return;
  if (mkdir(state.folder, 0755) != 0 && access(state.folder, W_OK) != 0) {
    put(STDERR_FILENO, "dmxc: the reproducer's folder cannot be made: ");
    put(STDERR_FILENO, state.folder);
    put(STDERR_FILENO, "\n");
    return;
  }
  writeCommand();
  const char *phase = lastGoodPhase();
  bool text = phase && runUpTo(phase);
  put(STDERR_FILENO, "dmxc: note: reproducer written to ");
  put(STDERR_FILENO, state.folder);
  if (text) {
    put(STDERR_FILENO, "; run: dmxc --from ");
    put(STDERR_FILENO, phase);
    put(STDERR_FILENO, " ");
    put(STDERR_FILENO, state.inputFile);
    put(STDERR_FILENO, state.dataFolders);
  }
  put(STDERR_FILENO, "\n");
}

//===----------------------------------------------------------------------===//
// Handlers
//===----------------------------------------------------------------------===//

/// What was being done, for the end of a sentence.
static void putWork() {
  put(STDERR_FILENO, " in ");
  put(STDERR_FILENO, stepText[0] ? stepText : "start-up");
  if (detailText[0]) {
    put(STDERR_FILENO, ", pass ");
    put(STDERR_FILENO, detailText);
  }
}

/// The first thread that gets here ends the process, with `code`; others wait for that. A handler that fails itself
/// ends it at once.
static void claimEnd(int code) {
  static std::atomic<pid_t> owner{0};
  static std::atomic<int> claimed{0};
  pid_t self = gettid(), none = 0;
  if (owner.compare_exchange_strong(none, self)) {
    claimed = code;
    removeTemporariesFromSignal();
    return;
  }
  if (none == self)
    _exit(claimed);
  for (;;)
    pause();
}

/// The end for what is no bug: what would reproduce it is the machine.
[[noreturn]] static void endWithoutReproducer(const char *what, const char *advice) {
  claimEnd(3);
  put(STDERR_FILENO, *program_invocation_short_name ? program_invocation_short_name : "dmxc");
  put(STDERR_FILENO, ": error: ");
  put(STDERR_FILENO, what);
  putWork();
  put(STDERR_FILENO, advice);
  _exit(3);
}

/// LLVM cannot go on after an allocation that failed, so that is the end wherever it happens.
[[noreturn]] static void endOutOfMemory() {
  endWithoutReproducer("out of memory", "; fewer threads (-j 1) need less of it [out-of-memory]\n");
}

[[noreturn]] static void endCrashed(const char *what) {
  claimEnd(70);
  put(STDERR_FILENO, "dmxc: error: internal error: ");
  put(STDERR_FILENO, what);
  putWork();
  put(STDERR_FILENO, " [internal-crash]\n");
  writeReproducer();
  _exit(70);
}

static const char *crashName(int signal) {
  switch (signal) {
  case SIGSEGV:
    return "segmentation fault";
  case SIGBUS:
    return "bus error";
  case SIGFPE:
    return "arithmetic fault";
  case SIGILL:
    return "illegal instruction";
  default:
    return "abort";
  }
}

/// Set while the stack is made as large as it may become: that it cannot be is a lack of memory, too.
static volatile sig_atomic_t reservingStack = 0;

/// MLIR does not look at what malloc returns (its tables of interfaces), nor does the C library everywhere: they
/// write to address 0, or abort, right after malloc has said why in errno.
static bool lacksMemory(int signal, const siginfo_t *info) {
  constexpr uintptr_t firstPages = 1 << 16;
  bool null = signal == SIGSEGV && reinterpret_cast<uintptr_t>(info->si_addr) < firstPages;
  return (errno == ENOMEM && (null || signal == SIGABRT)) || (signal == SIGSEGV && reservingStack);
}

static void onCrash(int signal, siginfo_t *info, void *) {
  if (lacksMemory(signal, info))
    endOutOfMemory();
  if (signal == SIGBUS && info->si_code == BUS_ADRERR)
    endWithoutReproducer("a file became shorter while it was read", "; run dmxc again when nothing writes it [io]\n");
  endCrashed(crashName(signal));
}

static void onFatalError(void *, const char *reason, bool) {
  // Threads that cannot be started are reported as text alone.
  for (const char *text : {"pthread_", "Cannot allocate memory", "out of memory"})
    if (std::strstr(reason, text))
      endOutOfMemory();
  // A stream of LLVM's that could not be written (--save-temps on a full disk) says so when it is too late to return.
  if (std::strstr(reason, "IO failure on output stream"))
    endWithoutReproducer(reason, "; is there room where it is written? [io]\n");
  endCrashed(reason);
}

static void onBadAlloc(void *, const char *, bool) { endOutOfMemory(); }

/// Exceptions that nobody expects: they name themselves.
[[noreturn]] static void onTerminate() {
  try {
    if (std::exception_ptr thrown = std::current_exception())
      std::rethrow_exception(thrown);
  } catch (const std::bad_alloc &) {
    endOutOfMemory();
  } catch (const std::system_error &error) {
    if (error.code() == std::errc::resource_unavailable_try_again || error.code() == std::errc::not_enough_memory)
      endOutOfMemory();
    endCrashed(error.what());
  } catch (const std::exception &error) {
    endCrashed(error.what());
  } catch (...) {
    endCrashed("an exception of an unknown type was thrown");
  }
  endCrashed("std::terminate was called");
}

void installMemoryHandlers() {
  std::set_new_handler(endOutOfMemory);
  std::set_terminate(onTerminate);
  llvm::install_bad_alloc_error_handler(onBadAlloc, nullptr);
  llvm::install_fatal_error_handler(onFatalError, nullptr);
}

/// Makes the main thread's stack as large as its limit allows, in address space, so that it does not find later, in
/// the middle of a function, that there is no more (ulimit -v).
__attribute__((noinline)) static void reserveStack() {
  rlimit space, limit;
  if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY || getrlimit(RLIMIT_STACK, &limit) != 0)
    return;
  constexpr rlim_t most = 8 << 20, spare = 256 << 10;
  char *top = state.argv[0]; // arguments and environment lie at the stack's other end
  for (char **list : {state.argv, environ})
    for (; *list; ++list)
      top = std::max(top, *list + std::strlen(*list));
  rlim_t size = std::min(limit.rlim_cur, most),
         used = static_cast<rlim_t>(top - reinterpret_cast<char *>(&space)) + spare;
  if (size <= used)
    return;
  reservingStack = 1;
  *static_cast<volatile char *>(alloca(size - used)) = 0; // the far end; what lies between costs nothing
  reservingStack = 0;
}

void installSignalHandlers(int argc, char **argv) {
  state.argc = argc;
  state.argv = argv;
  static std::array<char, 1 << 16> alternate; // a stack overflow leaves no room on the normal one
  stack_t stack{};
  stack.ss_sp = alternate.data();
  stack.ss_size = alternate.size();
  sigaltstack(&stack, nullptr);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    struct sigaction action{};
    action.sa_sigaction = onCrash;
    action.sa_flags = SA_ONSTACK | SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
  installInterruptCleanup();
  installMemoryHandlers();
  if (environ) // not yet before the libraries' constructors
    reserveStack();
}

} // namespace dmxc::driver
