//===- Trial.cpp - work on code that may be damaged -----------------------===//

#include "Trial.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dmxc;
using namespace dmxc::cpu;

/// Of the trial; it may wait for a lock that another thread had when it began, and says nothing then.
static constexpr unsigned kMostSeconds = 60;

Status dmxc::cpu::tryWork(const UserCode &code, llvm::function_ref<void()> work) {
  pid_t child = fork();
  if (child < 0) // done without one
    return Status::ok();
  if (child == 0) {
    for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGALRM})
      std::signal(signal, SIG_DFL);
    rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (int silence = open("/dev/null", O_WRONLY); silence >= 0)
      dup2(silence, STDERR_FILENO);
    alarm(kMostSeconds);
    work();
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return Status::ok();
  bool crashed = (WIFSIGNALED(status) && WTERMSIG(status) != SIGALRM) || (WIFEXITED(status) && WEXITSTATUS(status));
  return crashed ? Status(code.refusal("LLVM crashes on it, so it is damaged, or no code of a compiler"))
                 : Status::ok();
}
