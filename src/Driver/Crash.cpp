//===- Crash.cpp - signals, crashes and reproducers -----------------------===//
//
// Everything that runs in a handler uses static memory and async-signal-safe
// calls alone. The last good phase's text is not kept during a compile (it may
// be large): a second run of this program, up to that phase, makes it when it
// is needed.
//
//===----------------------------------------------------------------------===//
#include "Crash.h"
#include "TextOutput.h"
#include "Work.h"

#include "dmxc/Bundle/Writer.h"
#include "dmxc/Driver/PhaseTable.h"

#include "llvm/Support/ErrorHandling.h"

#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
  }
  put(STDERR_FILENO, "\n");
}

//===----------------------------------------------------------------------===//
// Handlers
//===----------------------------------------------------------------------===//

static void onInterrupt(int signal) {
  removeTextTemporaryFromSignal();
  bundle::removeTemporariesFromSignal();
  _exit(128 + signal);
}

static const char *crashName(int signal) {
  switch (signal) {
  case SIGSEGV:
    return "segmentation fault";
  case SIGBUS:
    return "bus error (was an input file truncated while it was read?)";
  case SIGFPE:
    return "arithmetic fault";
  case SIGILL:
    return "illegal instruction";
  default:
    return "abort";
  }
}

[[noreturn]] static void endCrashed(const char *what) {
  removeTextTemporaryFromSignal();
  bundle::removeTemporariesFromSignal();
  put(STDERR_FILENO, "dmxc: error: internal error: ");
  put(STDERR_FILENO, what);
  put(STDERR_FILENO, " in ");
  put(STDERR_FILENO, stepText[0] ? stepText : "start-up");
  if (detailText[0]) {
    put(STDERR_FILENO, ", pass ");
    put(STDERR_FILENO, detailText);
  }
  put(STDERR_FILENO, " [internal-crash]\n");
  writeReproducer();
  _exit(70);
}

static void onCrash(int signal) {
  static std::atomic_flag once = ATOMIC_FLAG_INIT;
  if (once.test_and_set()) // another thread crashed first, or the handler
                           // itself did
    _exit(70);
  endCrashed(crashName(signal));
}

static void onFatalError(void *, const char *reason, bool) { endCrashed(reason); }

void installSignalHandlers(int argc, char **argv) {
  state.argc = argc;
  state.argv = argv;
  static std::array<char, 1 << 16> alternate; // a stack overflow leaves no room on the normal one
  stack_t stack{};
  stack.ss_sp = alternate.data();
  stack.ss_size = alternate.size();
  sigaltstack(&stack, nullptr);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    struct sigaction action {};
    action.sa_handler = onCrash;
    action.sa_flags = SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old {};
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_IGN)
      continue;
    struct sigaction action {};
    action.sa_handler = onInterrupt;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
  llvm::install_fatal_error_handler(onFatalError, nullptr);
}

} // namespace dmxc::driver
